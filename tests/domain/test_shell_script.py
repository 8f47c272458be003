from __future__ import annotations

import time
from contextlib import suppress

import pytest

from agentmon.domain.shell_script import UnreadableScriptError, read_script


@pytest.mark.parametrize(
    ("script", "commands"),
    [
        ("rm -r a; echo 'b c' && ls", [("rm", "-r", "a"), ("echo", "b c"), ("ls",)]),
        ('echo "a $(date) b" x\\ y', [("echo", "a $(…) b", "x y")]),
        ("A=1 B='2 3' make all # rm -rf /", [("make", "all")]),
        ("if true; then git reset --hard; fi", [("true",), ("git", "reset", "--hard")]),
        ("cat <<EOF > out\nrm -rf /\nEOF\nls", [("cat",), ("ls",)]),
        ("cat <<-'X'\n\trm -rf /\n\tX\nls", [("cat",), ("ls",)]),
        ("(cd x && make) | tee log", [("cd", "x"), ("make",), ("tee", "log")]),
        ("ls 2>/dev/null >out a", [("ls", "a")]),
        ("r\\m -rf x; \\\n$'r\\x6d' y", [("rm", "-rf", "x"), ("rm", "y")]),
        ("echo 'open", [("echo", "open")]),
        ("", []),
    ],
)
def test_a_script_is_read_as_its_commands(script: str, commands: list[tuple[str, ...]]) -> None:
    assert [command.words for command in read_script(script)] == commands


def test_what_feeds_a_command_and_where_it_writes_is_known() -> None:
    _, tee, shell = read_script("curl -s x | tee log | sudo bash -s >> /etc/x 2>&1")

    assert shell.fed_by is tee
    assert tee.fed_by is not None
    assert tee.fed_by.words == ("curl", "-s", "x")
    assert [(one.operator, one.target) for one in shell.redirections] == [(">>", "/etc/x"), (">&", "1")]


@pytest.mark.parametrize("script", ["echo `rm x`", 'echo "$(rm x)"', "echo <(rm x)", 'echo "`rm x`"', "a=$(rm x)"])
def test_the_commands_of_a_substitution_are_found(script: str) -> None:
    (command,) = read_script(script)

    assert [inner.words for inner in command.inner] == [("rm", "x")]


def test_what_a_here_document_gives_is_text_of_its_command() -> None:
    first, second = read_script("sh <<A; cat <<< 'x y'\nrm -rf /\nA\n")

    assert (first.input_text, second.input_text) == ("rm -rf /", "x y")


@pytest.mark.parametrize("script", ["x" * 300_000, "a;" * 3000, "$(" * 50, "`" + "$(" * 30])
def test_what_is_too_much_is_refused(script: str) -> None:
    with pytest.raises(UnreadableScriptError):
        read_script(script)


def test_variables_that_make_a_script_too_long_are_refused() -> None:
    with pytest.raises(UnreadableScriptError):
        read_script(f"a='{'x ' * 1000}'; " + "$a; " * 1000)


@pytest.mark.parametrize("script", ["{" + "," * 120_000, "${IFS" * 20_000, "<<A " * 30_000, "`" * 120_000])
def test_no_script_takes_long_to_be_read(script: str) -> None:
    began = time.process_time()

    with suppress(UnreadableScriptError):
        read_script(script)

    # What grows with the square of the length takes minutes.
    assert time.process_time() - began < 5
