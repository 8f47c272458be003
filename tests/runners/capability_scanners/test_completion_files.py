from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from agentmon.runners.capability_scanners.bash_completion import read_bash
from agentmon.runners.capability_scanners.completion import scan_completion
from agentmon.runners.capability_scanners.fish_completion import read_fish
from agentmon.runners.capability_scanners.program_place import find_place
from agentmon.runners.capability_scanners.scanned import ScannedCapability, ScannedOption, ValueJoin, ValueKind
from agentmon.runners.capability_scanners.zsh_completion import read_zsh

if TYPE_CHECKING:
    from collections.abc import Sequence

SYSTEM = Path("/usr/share")


def by_command(found: Sequence[ScannedCapability]) -> dict[str, ScannedCapability]:
    return {" ".join(capability.subcommand): capability for capability in found}


def option(capability: ScannedCapability, name: str) -> ScannedOption:
    return next(one for one in capability.options if name in one.names)


def test_bash_lists_and_branches_of_the_word_before_are_read() -> None:
    text = """
    _tool_module()
    {
        local cur prev OPTS COLUMNS_ALL
        COLUMNS_ALL="NAME SIZE TYPE"
        case $prev in
            '-e'|'--exclude'|'-I'|'--include') COMPREPLY=( $(compgen -W "$(ls)" -- $cur) ); return 0 ;;
            '-w'|'--width') COMPREPLY=( $(compgen -W "number" -- $cur) ); return 0 ;;
            '-s'|'--sort') COMPREPLY=( $(compgen -W "$COLUMNS_ALL" -- $cur) ); return 0 ;;
            '-h'|'--help') return 0 ;;
        esac
        case $cur in -*)
            OPTS="--exclude --include
                  --width --sort --json --color= --help"
            COMPREPLY=( $(compgen -W "${OPTS[*]}" -- $cur) )
        esac
    }
    complete -F _tool_module tool
    """

    (found,) = read_bash(text, "tool")

    assert found.key == "run"
    assert option(found, "--exclude").names == ("-e", "--exclude")
    assert option(found, "--include").names == ("-I", "--include")
    assert option(found, "-w").value_name == "number"
    assert option(found, "-s").choices == ("NAME", "SIZE", "TYPE")
    assert option(found, "--json").kind is ValueKind.BOOLEAN
    assert option(found, "--help").kind is ValueKind.BOOLEAN
    assert option(found, "--color").kind is ValueKind.STRING


def test_bash_files_of_systemd_clap_cobra_and_git_tell_their_subcommands() -> None:
    systemd = """
    _ctl () {
        local -A OPTS=( [STANDALONE]='--all -a' [ARG]='--host -H' )
        COMPREPLY=( $(compgen -W '${OPTS[*]}' -- "$cur") )
        local -A VERBS=( [UNITS]='start stop' [NONE]='list-jobs' )
    }
    """
    clap = """
    _fd() {
        case "${cmd}" in
            fd) opts="-v --verbose"; COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") ) ;;
            fd__remote__add) opts="-n --name"; COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") ) ;;
        esac
    }
    """
    cobra = """
    _kube_get() { flags=(); two_word_flags+=("-o"); flags+=("--output="); flags+=("--watch"); }
    _kube_root_command() { commands=(); commands+=("get"); commands+=("apply"); flags+=("--context="); }
    """
    git = """
    __git_options="--quiet"
    _git_cherry_pick () { local unused="--hidden --other"; __gitcomp "$__git_options --edit"; }
    _git_cherry () { __gitcomp "--abbrev="; }
    __git_complete_file () { __gitcomp "--of-several"; }
    __git_main () { __gitcomp "--paginate"; }
    """

    ctl = by_command(read_bash(systemd, "ctl"))
    fd = by_command(read_bash(clap, "fd"))
    kube = by_command(read_bash(cobra, "kube"))
    of_git = by_command(read_bash(git, "git"))

    assert list(ctl) == ["", "start", "stop", "list-jobs"]
    assert (option(ctl[""], "--host").kind, option(ctl[""], "-a").kind) == (ValueKind.STRING, ValueKind.BOOLEAN)
    assert not ctl["start"].is_learned
    assert option(fd["remote add"], "--name").key == "name"
    assert option(kube["get"], "--output").kind is ValueKind.STRING
    assert set(kube) == {"", "get", "apply"}
    assert [one.names for one in of_git["cherry-pick"].options] == [("--quiet",), ("--edit",)]
    assert option(of_git["cherry"], "--abbrev").kind is ValueKind.STRING
    assert [one.names for one in of_git[""].options] == [("--paginate",)]


def test_zsh_specifications_tell_names_values_choices_and_arguments() -> None:
    text = r"""#compdef tool
    _tool() {
      common=('(-q)*'{-v,--verbose}'[say more]')
      _arguments -s -S $common \
        {-n+,--lines=}'[how many]:number' \
        "--color=[when to colour\: see below]:when:(auto always never)" \
        '--level=[how much]:level:((low\:"a little" high\:"a lot"))' \
        '--boot=[since a boot]::boot id:_boots' \
        '1:file:_files' '*:: :->rest'
      case $state in
        (rest)
          case ${words[1]} in
            add | a) _arguments '-f[force]' '*:path:_files' ;;
          esac ;;
      esac
    }
    _tool_commands() { local commands; commands=('add:Add a thing' 'gone\:by:Odd'); _describe -t commands c commands; }
    """

    found = by_command(read_zsh(text, "tool"))
    root = found[""]

    assert option(root, "-v").names == ("-v", "--verbose")
    assert option(root, "-v").is_repeated
    assert (option(root, "-n").value_name, option(root, "-n").join) == ("number", ValueJoin.EQUALS)
    assert option(root, "--color").choices == ("auto", "always", "never")
    assert option(root, "--color").description == "when to colour: see below"
    assert option(root, "--level").choices == ("low", "high")
    assert option(root, "--boot").is_value_optional
    assert [one.key for one in root.options if one.is_positional] == ["file"]
    assert found["add"].description == "Add a thing"
    assert [(one.names, one.key, one.is_repeated) for one in found["add"].options] == [
        (("-f",), "f", False),
        ((), "path", True),
    ]


def test_fish_lines_tell_options_their_commands_and_what_they_take() -> None:
    text = r"""
    complete -c tool -e
    complete -c other -l not-mine
    complete -c tool -n __fish_use_subcommand -xa 'add\t"Add a thing"
    remove\t"Remove it"'
    complete -c tool -s v -l verbose -d 'Say what isn\'t said'
    complete -c tool -n '__fish_seen_subcommand_from add remove' -l color -x -a '{auto\t"",never\t""}'
    complete -c tool -n '__fish_seen_subcommand_from add; and not __fish_seen_subcommand_from remove' -s o -r
    complete -c tool -o old -a '(tool list)'
    """

    found = by_command(read_fish(text, "tool"))

    assert found["add"].description == "Add a thing"
    assert option(found[""], "--verbose").names == ("-v", "--verbose")
    assert option(found[""], "-v").description == "Say what isn't said"
    assert option(found[""], "-old").kind is ValueKind.STRING
    assert option(found["remove"], "--color").choices == ("auto", "never")
    assert [one.names for one in found["add"].options] == [("--color",), ("-o",)]
    assert all("--not-mine" not in one.names for capability in found.values() for one in capability.options)


@pytest.mark.parametrize(
    ("shell", "place"),
    [
        ("bash", "bash-completion/completions/tool"),
        ("zsh", "zsh/site-functions/_tool"),
        ("fish", "fish/vendor_completions.d/tool.fish"),
    ],
)
def test_a_completion_file_is_found_beside_the_program_and_never_run(tmp_path: Path, shell: str, place: str) -> None:
    canary = tmp_path / "ran"
    lines = {
        "bash": f'touch {canary}\n_tool() {{ COMPREPLY=( $(compgen -W "--flag $(touch {canary})") ); }}\n',
        "zsh": f"touch {canary}\n_arguments '--flag[what `touch {canary}` does]'\n",
        "fish": f"touch {canary}\ncomplete -c tool -l flag -a '(touch {canary})'\n",
    }
    (tmp_path / "opt/bin").mkdir(parents=True)
    (tmp_path / "opt/bin/tool").write_text("#!/bin/sh\n")
    (tmp_path / "opt/bin/tool").chmod(0o755)
    file = tmp_path / "opt/share" / place
    file.parent.mkdir(parents=True)
    file.write_text(lines[shell])

    found = scan_completion(find_place("tool", {"PATH": str(tmp_path / "opt/bin"), "HOME": str(tmp_path)}))

    assert [one.names for one in found[0].options] == [("--flag",)]
    assert not canary.exists()


@pytest.mark.skipif(not (SYSTEM / "bash-completion/completions/lsblk").exists(), reason="no completions of util-linux")
def test_the_completion_files_of_this_machine_are_read() -> None:
    folder = SYSTEM / "bash-completion/completions"

    (lsblk,) = read_bash((folder / "lsblk").read_text(), "lsblk")

    assert option(lsblk, "--output").names == ("-o", "--output")
    assert {name for one in lsblk.options for name in one.names} >= {"--json", "--tree", "--bytes"} - {"--tree"}
    assert option(lsblk, "--json").kind is ValueKind.BOOLEAN


@pytest.mark.parametrize("nest", ["(", "x $(", 'x "$('])
def test_what_is_nested_without_end_stops_no_scan(nest: str) -> None:
    assert [read(nest * 20_000, "tool") for read in (read_bash, read_zsh, read_fish)] == [(), (), ()]
