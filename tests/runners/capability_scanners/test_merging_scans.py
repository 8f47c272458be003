from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from agentmon.domain.agents import CapabilitySource
from agentmon.domain.ids import AgentId
from agentmon.runners.capability_scanners import to_capability
from agentmon.runners.capability_scanners.bash_completion import read_bash
from agentmon.runners.capability_scanners.command_tree import CommandTree
from agentmon.runners.capability_scanners.fig import read_fig
from agentmon.runners.capability_scanners.fish_completion import read_fish
from agentmon.runners.capability_scanners.man import read_man
from agentmon.runners.capability_scanners.merging import merge
from agentmon.runners.capability_scanners.scanned import ScannedCapability, ValueKind
from agentmon.runners.capability_scanners.zsh_completion import read_zsh

HELP, MAN, SHELL = CapabilitySource.SCAN_HELP, CapabilitySource.SCAN_MAN, CapabilitySource.SCAN_COMPLETION
READERS = (read_bash, read_zsh, read_fish, read_man, read_fig)
PIECES = (
    *("tool", " ", "\n", "'", '"', "\\", "$", "`", "(", ")", "{", "}", "[", "]", ":", ";;", "|", "=", ",", "#", "/"),
    *("--flag", "-x", "${a[@]}", "$(", "case $prev in", "esac", "complete -c tool -l a", "_arguments", "compgen -W"),
    *(
        "_tool() {",
        ".SH OPTIONS",
        ".TP",
        ".It Fl a",
        ".RS 4",
        r"\fB",
        r"\*(",
        ".if n \\{\\",
        "var a=",
        "export default",
    ),
    *("=>", "...", "name:", "options:", "<<EOF", "opts='", "complete -F _tool tool"),
)


def tree(source: CapabilitySource) -> CommandTree:
    return CommandTree("tool", source)


def merged(*trees: tuple[ScannedCapability, ...]) -> ScannedCapability:
    (one,) = merge(trees)
    return one.scanned


def test_an_option_of_several_sources_is_one_that_names_them_all() -> None:
    of_help, of_man, of_shell = tree(HELP), tree(MAN), tree(SHELL)
    of_help.add_option((), ["--depth"], description="How deep")
    of_man.add_option((), ["-d", "--depth"], kind=ValueKind.STRING, value_name="N", description="By the manual")
    of_shell.add_option((), ["-d"], kind=ValueKind.STRING, choices=("1", "2"))
    of_shell.add_option((), ["--other"])

    (found,) = merge([of_help.capabilities(), of_man.capabilities(), of_shell.capabilities()])
    depth = found.scanned.options[0]

    assert (depth.names, depth.kind, depth.value_name) == (("--depth", "-d"), ValueKind.STRING, "N")
    assert (depth.description, depth.choices) == ("How deep", ("1", "2"))
    assert found.option_sources["depth"] == (HELP, MAN, SHELL)
    assert found.option_sources["other"] == (SHELL,)
    assert found.sources == (HELP, MAN, SHELL)


def test_a_less_trusted_source_does_not_make_two_options_one() -> None:
    of_help, of_shell = tree(HELP), tree(SHELL)
    of_help.add_option((), ["-f"])
    of_help.add_option((), ["--output"], kind=ValueKind.STRING)
    of_shell.add_option((), ["-f", "--output"], kind=ValueKind.STRING)

    found = merged(of_help.capabilities(), of_shell.capabilities())

    assert [one.names for one in found.options] == [("-f",), ("--output",)]


def test_a_command_takes_any_words_only_where_nobody_knows_its_arguments() -> None:
    of_help, of_shell = tree(HELP), tree(SHELL)
    of_help.learn(())
    of_shell.add_option((), ["-a"])

    alone = merged(of_shell.capabilities())
    with_help = merged(of_help.capabilities(), of_shell.capabilities())

    assert [one.key for one in alone.options] == ["a", "words"]
    assert [one.key for one in with_help.options] == ["a"]


def test_options_whose_names_differ_by_signs_alone_have_keys_of_their_own() -> None:
    of_man = tree(MAN)
    of_man.add_option((), ["-n"])
    of_man.add_option((), ["--n"])

    capability = to_capability(merged(of_man.capabilities()), agent_id=AgentId("x"))

    assert capability.command_tokens[:2] == ("{{-n args.n}}", "{{--n args.n_2}}")


@settings(max_examples=150)
@given(st.lists(st.sampled_from(PIECES), max_size=60).map("".join))
def test_whatever_a_file_holds_no_reader_fails(text: str) -> None:
    for read in READERS:
        for one in merge([read(text, "tool")]):
            to_capability(one.scanned, agent_id=AgentId("x"))
