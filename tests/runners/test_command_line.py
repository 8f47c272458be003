from __future__ import annotations

import shlex
import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentmon.domain.errors import UsageError
from agentmon.runners.adapters.command_line import parse_command

WORDS = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=12)


@given(words=st.lists(WORDS, min_size=1, max_size=6).filter(lambda words: words[0] != "" and "=" not in words[0]))
def test_quoted_words_of_any_kind_come_back_as_they_were(words: list[str]) -> None:
    assert parse_command(shlex.join(words)) == tuple(words)


@pytest.mark.parametrize(
    "line",
    [
        "make test",
        "  make\t test  \n",
        r"echo a\ b \'c\' \"d\" \\ \n",
        r"""echo "a b" 'c d' "it's" 'say "x"' a"b c"'d e'""",
        r'echo "\$HOME \"q\" \\ \x \`y\`"',
        "echo '' \"\" x",
        "echo 'a | b' \"c && d\" \\; \\> \\(",
        "echo one\\\ntwo \\\n three",
        'echo "one\\\ntwo"',
        "echo 'line\nbreak' \"and\nanother\"",
        "echo -n -- --flag=a=b é 漢",
    ],
)
def test_words_are_those_that_a_shell_makes(line: str) -> None:
    seen_by_a_shell = subprocess.run(
        ["sh", "-c", f"show() {{ printf '%s\\0' \"$@\"; }}; show {line.strip(chr(10))}"],
        check=True,
        capture_output=True,
        timeout=30,
    ).stdout.decode()

    assert parse_command(line) == tuple(seen_by_a_shell.split("\0")[:-1])


@pytest.mark.parametrize(
    ("line", "operator"),
    [
        ("make | tee log", "|"),
        ("a || b", "||"),
        ("make&&make install", "&&"),
        ("a > b", ">"),
        ("a 2>&1", ">&"),
        ("a >>b", ">>"),
        ("sort < b", "<"),
        ("cat <<EOF", "<<"),
        ("server &", "&"),
        ("cd x; ls", ";"),
        ("(a)", "("),
        ("echo `date`", "`"),
        ("echo $(date)", "$("),
        ('echo "today $(date)"', "$("),
        ('echo "today `date`"', "`"),
        ("make\nmake install", "a line break"),
    ],
)
def test_what_only_a_shell_can_do_is_refused_with_the_line_for_a_shell(line: str, operator: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_command(line)

    assert str(caught.value) == f"the command uses {operator}, which only a shell understands"
    assert parse_command(caught.value.hint) == ("sh", "-c", line)


def test_a_variable_set_before_the_program_is_refused_with_the_line_for_a_shell() -> None:
    with pytest.raises(UsageError, match="sets a variable before the program") as caught:
        parse_command("CI=1 make test")

    assert caught.value.hint == "sh -c 'CI=1 make test'"


def test_variables_wildcards_and_tildes_stay_as_typed() -> None:
    assert parse_command("ls $HOME ~/x *.py ${A} a=b #c") == ("ls", "$HOME", "~/x", "*.py", "${A}", "a=b", "#c")


@pytest.mark.parametrize("line", ["echo 'a", 'echo "a', 'echo "a\\"', "echo it's"])
def test_an_open_quote_is_named(line: str) -> None:
    with pytest.raises(UsageError, match="of the command is not closed"):
        parse_command(line)


def test_a_backslash_at_the_end_is_named() -> None:
    with pytest.raises(UsageError, match="ends with a backslash"):
        parse_command("echo a\\")


@pytest.mark.parametrize("line", ["", "   ", "\n", "''", '"" a'])
def test_a_line_without_a_program_is_refused(line: str) -> None:
    with pytest.raises(UsageError, match="the command is empty"):
        parse_command(line)


def test_a_nul_is_refused() -> None:
    with pytest.raises(UsageError, match="NUL"):
        parse_command("echo a\0b")
