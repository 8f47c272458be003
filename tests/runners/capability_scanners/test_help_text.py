from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from agentmon.domain.ids import AgentId
from agentmon.runners.adapters.arguments import check_arguments
from agentmon.runners.adapters.template import render_command
from agentmon.runners.capability_scanners import (
    ScannedCapability,
    ScannedOption,
    ValueJoin,
    ValueKind,
    args_schema,
    parse_help,
    to_capability,
)

TEXTS: Final = Path(__file__).parent / "help_texts"
"""What these programs printed when they were asked for their help, unchanged."""

OPTIONS: Final = {
    "git": "-v,--version -h,--help -C -c --exec-path --html-path --man-path --info-path -p,--paginate,-P --no-pager"
    " --no-replace-objects --bare --git-dir --work-tree --namespace --super-prefix --config-env",
    "git log": "-q,--quiet --source --use-mailmap --mailmap --clear-decorations --decorate-refs"
    " --decorate-refs-exclude --decorate -L",
    "docker image ls": "-a,--all --digests -f,--filter --format --no-trunc -q,--quiet --tree",
    "uv cache prune": "--ci --force -n,--no-cache --cache-dir --managed-python --no-managed-python"
    " --no-python-downloads -q,--quiet -v,--verbose --color --system-certs --offline --allow-insecure-host"
    " --no-progress --directory --project --config-file --no-config -h,--help",
    "mako-render": "-h,--help --var --template-dir --output-encoding --output-file",
    "typer": "--app --func --version --install-completion --show-completion --help",
    "json-server": "-c,--config -p,--port -H,--host -w,--watch -r,--routes -m,--middlewares -s,--static"
    " --read-only,--ro --no-cors,--nc --no-gzip,--ng -S,--snapshots -d,--delay -i,--id --foreignKeySuffix,--fks"
    " -q,--quiet -h,--help -v,--version",
    "npx": "--package -c,--call -w,--workspace --workspaces --include-workspace-root --allow-scripts"
    " --strict-allow-scripts --dangerously-allow-all-scripts",
    "ninja": "--version -v,--verbose --quiet -C -f -j -k -l -n -d -t -w",
    "jq": "-c -n -e -s -r -R -C -M -S --tab --arg --argjson --slurpfile --rawfile --args --jsonargs",
    "perl": "-0 -a -C -c -d -D -e -E -f -F -i -I -l -m -M -n -p -s -S -t -T -u -U -v -V -w -W -x -X",
    "python": "-b -B -d -E -h -i -I -O -OO -P -q -s -S -u -v -V -W -x -X --check-hash-based-pycs --help-env"
    " --help-xoptions --help-all -c -m",
    "ip": "-force -batch,-b -V,-Version -s,-statistics -d,-details -r,-resolve -h,-human-readable -iec -j,-json"
    " -p,-pretty -f,-family -4 -6 -M -B -0 -l,-loops -br,-brief -o,-oneline -t,-timestamp -ts,-tshort"
    " -rc,-rcvbuf -n,-netns -N,-Numeric -a,-all -c,-color",
    "find": "-daystart -follow -nowarn -regextype -warn -depth -files0-from -maxdepth -mindepth -mount -noleaf -xdev"
    " -ignore_readdir_race -noignore_readdir_race -amin -anewer -atime -cmin -cnewer -context -ctime -empty -false"
    " -fstype -gid -group -ilname -iname -inum -iwholename -iregex -links -lname -mmin -mtime -name -newer -nouser"
    " -nogroup -path -perm -regex -readable -writable -executable -wholename -size -true -type -uid -used -user -xtype"
    " -delete -print0 -printf -fprintf -print -fprint0 -fprint -ls -fls -prune -quit -exec -ok -execdir -okdir"
    " --help --version -H -L -P -Olevel -D",
}
"""Their options, read off each text by eye."""


def scanned(command: str) -> tuple[ScannedCapability, ...]:
    program, *subcommand = command.split()
    text = (TEXTS / f"{command.replace(' ', '-')}.txt").read_text(encoding="utf-8")
    return parse_help(text, program=program, subcommand=subcommand)


def option(command: str, key: str) -> ScannedOption:
    return next(found for found in scanned(command)[0].options if found.key == key)


@pytest.mark.parametrize("command", OPTIONS)
def test_all_options_of_a_real_help_text_are_found_and_no_others(command: str) -> None:
    found = [",".join(found.names) for found in scanned(command)[0].options if not found.is_positional]

    assert found == OPTIONS[command].split()


@pytest.mark.parametrize("command", OPTIONS)
def test_what_is_scanned_is_a_valid_capability_that_passes_nothing_by_itself(command: str) -> None:
    capability = to_capability(scanned(command)[0], agent_id=AgentId("agent"))
    required = capability.args_schema["required"]
    assert isinstance(required, list)
    args = check_arguments(capability.args_schema, dict.fromkeys(required, "x"))

    words = render_command(capability, binary="p", base_args=(), task_title="", args=args, prompt_additions="")

    assert set(words[1 + len(command.split()[1:]) :]) <= {"x", "--"}


@pytest.mark.parametrize(
    ("command", "key", "expected"),
    [
        ("git log", "decorate", {"kind": ValueKind.STRING, "is_value_optional": True, "join": ValueJoin.EQUALS}),
        (
            "git log",
            "decorate_refs",
            {"value_name": "pattern", "description": "only decorate refs that match <pattern>"},
        ),
        ("git", "config_env", {"value_name": "name", "join": ValueJoin.EQUALS}),
        ("docker image ls", "filter", {"kind": ValueKind.STRING, "join": ValueJoin.WORD}),
        ("uv cache prune", "verbose", {"kind": ValueKind.BOOLEAN, "is_repeated": True}),
        ("uv cache prune", "color", {"choices": ("auto", "always", "never"), "value_name": "COLOR_CHOICE"}),
        ("mako-render", "var", {"is_repeated": True, "value_name": "VAR"}),
        ("typer", "version", {"kind": ValueKind.BOOLEAN}),
        ("json-server", "watch", {"kind": ValueKind.BOOLEAN}),
        ("json-server", "host", {"kind": ValueKind.STRING, "default": "localhost"}),
        ("json-server", "middlewares", {"kind": ValueKind.STRING, "is_repeated": True}),
        ("npx", "call", {"kind": ValueKind.STRING, "value_name": "call"}),
        ("npx", "workspace", {"value_name": "workspace-name"}),
        ("ninja", "k", {"kind": ValueKind.INTEGER, "default": 1, "join": ValueJoin.WORD}),
        ("ip", "family", {"choices": ("inet", "inet6", "mpls", "bridge", "link")}),
        ("python", "W", {"value_name": "arg", "join": ValueJoin.WORD}),
        ("python", "check_hash_based_pycs", {"choices": ("always", "default", "never"), "join": ValueJoin.WORD}),
        ("perl", "V", {"value_name": "configvar", "is_value_optional": True, "join": ValueJoin.COLON}),
        ("perl", "i", {"is_value_optional": True, "join": ValueJoin.NOTHING}),
        ("perl", "I", {"value_name": "directory", "is_repeated": True, "join": ValueJoin.NOTHING}),
        ("find", "maxdepth", {"value_name": "LEVELS", "join": ValueJoin.WORD}),
        ("git log", "path", {"names": (), "is_repeated": True, "is_required": False}),
        ("jq", "jq_filter", {"is_required": True}),
        ("mako-render", "input", {"is_required": False, "is_repeated": False}),
    ],
)
def test_an_option_is_told_with_its_value(command: str, key: str, expected: dict[str, object]) -> None:
    found = option(command, key)

    assert {name: getattr(found, name) for name in expected} == expected


@pytest.mark.parametrize(
    ("command", "description"),
    [
        ("jq", "commandline JSON processor [version 1.6]"),
        ("docker image ls", "List images"),
        ("typer", "Run Typer scripts with completion, without having to create a package"),
        ("npx", "Run a command from a local or remote npm package"),
        ("find", "Default path is the current directory"),
        ("git", ""),
    ],
)
def test_what_a_command_does_is_the_first_sentence_about_it(command: str, description: str) -> None:
    assert scanned(command)[0].description == description


def test_subcommands_are_named_with_their_words_and_not_learned() -> None:
    first, *named = scanned("git")

    assert first.is_learned
    assert [command.key for command in named][:6] == ["clone", "init", "add", "mv", "restore", "rm"]
    assert len(named) == 22
    assert not named[0].is_learned
    assert named[0].description == "Clone a repository into a new directory"
    assert "route" in [command.key for command in scanned("ip")[1:]]
    assert [command.subcommand for command in scanned("typer")[1:]] == [("utils",)]


def test_usage_lines_that_begin_with_different_words_name_subcommands() -> None:
    text = "Usage:\n  p ship new <name>...\n  p ship shoot <x> [--hard]\n  p mine (set|remove) <x>\n  p --version\n"

    program_itself, *named = parse_help(text, program="p")
    _, *of_ship = parse_help(text, program="p", subcommand=("ship",))

    assert [found.names for found in program_itself.options] == [("--hard",), ("--version",)]
    assert [command.subcommand for command in named] == [("ship",), ("mine",)]
    assert [command.subcommand for command in of_ship] == [("ship", "new"), ("ship", "shoot")]


def test_choices_are_told_in_words_or_in_the_place_of_the_value() -> None:
    text = """  --format <name>  a format (choices: "text", "json")
  --color <auto|never>  when
  --to FILE|DIR  where
  --level {low,high}  how
"""

    choices = {found.key: found.choices for found in parse_help(text, program="p")[0].options}

    assert choices == {"format": ("text", "json"), "color": ("auto", "never"), "to": (), "level": ("low", "high")}


@pytest.mark.parametrize("metavar", [None, "COMMAND"])
def test_subcommands_of_argparse_stand_below_their_placeholder(metavar: str | None) -> None:
    parser = argparse.ArgumentParser(prog="p")
    parser.add_argument("folder", help="where it works")
    subcommands = parser.add_subparsers(metavar=metavar, required=True)
    subcommands.add_parser("build", help="make everything").add_argument("--fast")
    subcommands.add_parser("a-very-long-subcommand-name", help="its words stand on the next line")

    named = parse_help(parser.format_help(), program="p")[1:]

    assert [(command.key, command.description) for command in named] == [
        ("build", "make everything"),
        ("a-very-long-subcommand-name", "its words stand on the next line"),
    ]


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("usage: p [--max N]\n\noptions:\n  --max N  how many\n", "--max 5"),
        ("Options:\n  --max <N>...  [default: 3] [required]\n", "--max 5"),
        ("  -max int\n    \thow many (default 3)\n", "-max 5"),
        ("\t-m, --max=N\thow many\n", "--max=5"),
        ("  -mN    how many\n  --max=NUM\n", "--max=5"),
        ("\x1b[1m  --max\x1b[0m=\x1b[4mN\x1b[0m\n      how many\n", "--max=5"),
        ("│ *  --max  -m      INTEGER RANGE [x>=1]  how many [required] │\n", "--max 5"),
        ("Options:\n    --max=3:\n\tHow many.\n", "--max=5"),
        ("Usage: p [-m|--max <n>]\n", "--max 5"),
    ],
    ids=["argparse", "clap", "go", "busybox", "getopt", "man", "click", "kubectl", "usage alone"],
)
def test_a_number_is_passed_as_the_program_wants_it(text: str, line: str) -> None:
    capability = to_capability(parse_help(text, program="p")[0], agent_id=AgentId("agent"))
    args = check_arguments(capability.args_schema, {"max": 5})

    words = render_command(capability, binary="p", base_args=(), task_title="", args=args, prompt_additions="")

    assert words == ("p", *line.split())


def test_a_flag_that_is_on_can_be_turned_off() -> None:
    cobra = parse_help("      --proxy    Proxy signals (default true)\n", program="p")[0]

    assert args_schema(cobra)["properties"] == {
        "proxy": {
            "type": "string",
            "enum": ["true", "false"],
            "title": "--proxy",
            "description": "Proxy signals (default true)",
        }
    }


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Usage:",
        "usage-",
        "SYNOPSIS\n",
        "--",
        "-\n--\n---\n- -\n",
        "Segmentation fault\n",
        "The option --all is gone, use --every instead.\nSo is -x.\n",
        "Examples:\n  $ p --all\n  p -x | q --long\n",
    ],
)
def test_a_text_that_is_no_help_has_no_options(text: str) -> None:
    assert [len(found.options) for found in parse_help(text, program="p")] == [0]


PIECES: Final = st.sampled_from(
    [
        *("--all", "-a", "-", "--", "=", "[", "]", "<", ">", "{", "}", "(", ")", "|", ",", ", ", " ", "  ", "\t", "\n"),
        *("\n\n", "...", "N", "FILE", "word", "usage: p ", "Usage:\n", "Options:\n", "Commands:\n", "  ", "\x1b[1m"),
        *("a\x08a", "│", ":", ":=", "--[no-]x", "where X := {", "[default: ", "'", '"', "#", "or: ", "é", "\0", "-#"),
    ]
)


def test_a_long_name_keeps_its_value_beside_a_short_one_of_several_uses() -> None:
    strace = parse_help("  -e read=SET, --read=SET\n  -e write=SET, --write=SET  dump it\n", program="strace")[0]

    assert [(found.names, found.value_name) for found in strace.options] == [
        (("-e", "--read"), "SET"),
        (("--write",), "SET"),
    ]


@given(text=st.lists(PIECES | st.text(max_size=5), max_size=60).map("".join))
def test_no_text_makes_the_parser_fail(text: str) -> None:
    found = parse_help(text, program="p", subcommand=("word",))

    keys = [option.key for option in found[0].options]
    assert len(set(keys)) == len(keys)
    Draft202012Validator.check_schema(args_schema(found[0]))


@pytest.mark.parametrize(
    "piece",
    [
        "-",
        "--a ",
        "--a[",
        "<",
        "[-a ",
        "usage: p [",
        "a, ",
        "  a",
        "\x1b]",
        "-a\n",
        "  --a, --b=<c>  d\n",
        "a\x08",
        " (default ",
        "x" * 999,
    ],
)
def test_ten_megabytes_of_anything_are_read_at_once(piece: str) -> None:
    text = piece * (10 * 1024 * 1024 // len(piece))
    start = time.process_time()

    parse_help(text, program="p")

    assert time.process_time() - start < 5
