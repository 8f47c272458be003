from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentmon.domain.agents import Capability
from agentmon.domain.errors import ArgumentsError
from agentmon.domain.ids import AgentId, CapabilityId
from agentmon.runners.adapters.template import render_command

if TYPE_CHECKING:
    from collections.abc import Mapping

HOSTILE = "{{args.b}} $(touch X) `id` ${HOME} \"q\" 'q' \\ \n -rf; | & !"


def capability(*tokens: str, names: tuple[str, ...] = ("a", "b", "c")) -> Capability:
    return Capability(
        id=CapabilityId("capability"),
        agent_id=AgentId("agent"),
        key="try",
        label="Try",
        command_tokens=tokens,
        args_schema={"type": "object", "properties": {name: {} for name in names}},
    )


def render(
    *tokens: str,
    args: Mapping[str, object] | None = None,
    title: str = "Title",
    additions: str = "",
    binary: str = "prog",
    base_args: tuple[str, ...] = (),
) -> tuple[str, ...]:
    return render_command(
        capability(*tokens),
        binary=binary,
        base_args=base_args,
        task_title=title,
        args=args or {},
        prompt_additions=additions,
    )


def test_words_follow_the_binary_and_its_base_arguments_which_are_never_filled_in() -> None:
    assert render("log", "x", base_args=("--no-pager", "{{args.a}}")) == (
        "prog",
        "--no-pager",
        "{{args.a}}",
        "log",
        "x",
    )


def test_placeholders_are_filled_in_inside_words_with_or_without_blanks() -> None:
    words = render(
        "-n{{args.a}}",
        "{{ args.b }}:{{task_title}}",
        "{{input_context.prompt_additions}}",
        args={"a": 3, "b": "x"},
        title="T",
        additions="more",
    )

    assert words == ("prog", "-n3", "x:T", "more")


@pytest.mark.parametrize(
    ("value", "text"),
    [(True, "true"), (False, "false"), (3, "3"), (3.0, "3"), (0.5, "0.5"), ("", ""), ({"k": "é"}, '{"k": "é"}')],
)
def test_values_become_text(value: object, text: str) -> None:
    assert render("x{{args.a}}", args={"a": value}) == ("prog", f"x{text}")


def test_a_list_becomes_as_many_words_as_it_has() -> None:
    assert render("{{args.a}}", "end", args={"a": ["x y", "", 3]}) == ("prog", "x y", "", "3", "end")
    assert render("{{args.a}}", "end", args={"a": []}) == ("prog", "end")


def test_a_list_inside_a_word_is_refused() -> None:
    with pytest.raises(ArgumentsError, match="is a list and cannot be a part of the word --x="):
        render("--x={{args.a}}", args={"a": ["x"]})


def test_a_word_whose_argument_has_no_value_vanishes() -> None:
    assert render("{{args.a}}", "--b={{args.b}}", "{{args.c}}{{args.b}}", "end", args={"a": None, "c": "c"}) == (
        "prog",
        "end",
    )


@pytest.mark.parametrize(
    ("token", "value", "words"),
    [
        ("{{--all args.a}}", True, ("--all",)),
        ("{{--all args.a}}", False, ()),
        ("{{--all args.a}}", None, ()),
        ("{{ -n  args.a }}", 0, ("-n", "0")),
        ("{{-n args.a}}", "", ("-n", "")),
        ("{{-e args.a}}", ["x", "-y z"], ("-e", "x", "-e", "-y z")),
        ("{{-e args.a}}", [], ()),
        ("{{--not= args.a}}", ["x", "{{args.b}}"], ("--not=x", "--not={{args.b}}")),
        ("{{-I+ args.a}}", ["lib", "src"], ("-Ilib", "-Isrc")),
        ("{{-v* args.a}}", 3, ("-v", "-v", "-v")),
        ("{{-v* args.a}}", 0, ()),
        ("{{-v* args.a}}", True, ("-v",)),
        ("{{-v* args.a}}", 10**9, ("-v",) * 20),
    ],
)
def test_an_option_is_there_as_often_as_its_argument_says(token: str, value: object, words: tuple[str, ...]) -> None:
    assert render(token, "end", args={"a": value, "b": "NO"}) == ("prog", *words, "end")


@pytest.mark.parametrize(
    "token", ["{{--x args.z}}", "{{--x task_title}}", "{{args.z}}", "x{{title}}", "{{}}", "{{args.}}", "{{ env.HOME }}"]
)
def test_an_unknown_placeholder_is_refused_with_the_known_ones(token: str) -> None:
    with pytest.raises(ArgumentsError, match="is unknown") as caught:
        render(token, args={"a": "1"})

    assert "{{task_title}}, {{input_context.prompt_additions}}, {{args.a}}" in caught.value.hint


@given(value=st.text(st.characters(codec="utf-8", exclude_characters="\0")) | st.just(HOSTILE))
def test_what_is_filled_in_is_never_looked_at_again(value: str) -> None:
    words = render(
        "{{args.a}}",
        "<{{args.a}}|{{task_title}}>",
        "{{args.c}}",
        args={"a": value, "b": "NO", "c": [value]},
        title=value,
    )

    assert words == ("prog", value, f"<{value}|{value}>", value)


def test_a_program_gets_every_hostile_text_unchanged() -> None:
    words = render(
        "-c", "import sys; sys.stdout.write(sys.argv[1])", "{{args.a}}", args={"a": HOSTILE}, binary=sys.executable
    )

    assert subprocess.run(words, check=True, capture_output=True, text=True, timeout=60).stdout == HOSTILE


def test_the_first_word_names_the_program_when_there_is_no_binary() -> None:
    assert render("{{args.a}}", args={"a": ["make", "test"]}, binary="") == ("make", "test")


@pytest.mark.parametrize("argv", [[], [""], ["", "x"], None])
def test_a_command_without_a_program_is_refused(argv: list[str] | None) -> None:
    with pytest.raises(ArgumentsError, match="names no program"):
        render("{{args.a}}", args={"a": argv}, binary="")


@pytest.mark.parametrize(("value", "message"), [("a\0b", "NUL"), ("\ud800", "cannot be written as bytes")])
def test_a_text_that_no_program_can_be_given_is_refused(value: str, message: str) -> None:
    with pytest.raises(ArgumentsError, match=message):
        render("{{task_title}}", title=value)


def test_bytes_of_a_file_name_that_are_not_text_are_kept() -> None:
    assert render("{{args.a}}", args={"a": "caf\udce9"}) == ("prog", "caf\udce9")


def test_words_are_checked_as_the_host_writes_them_whatever_the_locale() -> None:
    script = (
        "from agentmon.runners.adapters.template import _require_possible; import sys;"
        "assert sys.getfilesystemencoding() == 'ascii'; _require_possible('\\u6f22')"
    )
    environ = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}

    checked = subprocess.run([sys.executable, "-c", script], env=environ, check=False)

    assert checked.returncode == 0
