from __future__ import annotations

import shlex
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentmon.domain.command_words import command_segments, plain_words

WORDS = st.text(st.characters(codec="utf-8", exclude_characters="\n\r\0\v\f"), max_size=12)


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("git status", ("git", "status")),
        ("  git\tstatus  ", ("git", "status")),
        ("git commit -m 'a; b && c'", ("git", "commit", "-m", "a; b && c")),
        ('git commit -m "say \\"no\\""', ("git", "commit", "-m", 'say "no"')),
        ("ls *.py", ("ls", "*.py")),
        ("echo a\\;b c#d e{f}", ("echo", "a;b", "c#d", "e{f}")),
        ("bash -lc 'git status'", ("git", "status")),
        ("git show stash@{0}", ("git", "show", "stash@{0}")),
        ("/bin/zsh -lc \"sh -c 'git status'\"", ("git", "status")),
    ],
)
def test_a_single_plain_command_has_its_words(line: str, words: tuple[str, ...]) -> None:
    assert plain_words(line) == words


@pytest.mark.parametrize(
    "line",
    [
        *("", "   ", "git status; rm -rf /", "git status;rm -rf /", "git status && rm x", "git status || rm x"),
        *("git status | sh", "git status & rm x", "git status\nrm x", "git status\rrm x", "git status > /etc/passwd"),
        *("git status >> x", "git status < x", "git status `rm x`", "git status $(rm x)", 'git status "$(rm x)"'),
        *('git status "`rm x`"', "git status $HOME", 'git status "$HOME"', "git status <(rm x)", "(git status)"),
        *("git status 'open", 'git status "open', "git status \\", "A=1 git status", "git status # rm", "{ git status"),
        *("git status {a,b}", "git status\vrm", "git status\frm", "! git status", "if git status", "bash -c"),
        *("bash -c 'git status; rm x'", "bash -lc 'git status' extra", "bash -o pipefail -c 'rm x'", "sh -c 'A=1 git'"),
        *("bash -norc 'git status'", "bash --rcfile x -c 'git status'", "bash -e -c 'git status'", "git diff a{1..3}"),
        *("./bash -c 'git status'", "/tmp/x/sh -c 'git status'", "fish --init-command=x -c 'git status'"),
        *("bash -c \"bash -c 'git status; rm x'\"", "''", 'git status "a\nb"', "git status 'a\nb'", 'git "!x"'),
    ],
)
def test_what_is_more_than_one_plain_command_has_none(line: str) -> None:
    assert plain_words(line) == ()


@given(st.lists(WORDS, min_size=1, max_size=6).filter(lambda words: bool(words[0])))
def test_quoted_words_are_read_back(words: list[str]) -> None:
    read = plain_words(shlex.join(words))

    assert read in {tuple(words), ()}


@given(
    st.lists(st.sampled_from(["git", "status", "'a b'", "-x", '"q"', "a\\ b"]), min_size=1, max_size=4),
    st.sampled_from([";", "&&", "||", "|", "&", "\n", "|&", ";;", "\r\n", ">", "<", ">>", "$(", "`", "(", ")", "<("]),
    st.lists(st.sampled_from(["rm", "-rf", "/", "'x y'"]), max_size=3),
    st.sampled_from(["", " "]),
)
def test_no_operator_makes_a_plain_command(before: list[str], operator: str, after: list[str], blank: str) -> None:
    line = " ".join(before) + blank + operator + blank + " ".join(after)

    assert plain_words(line) == ()


@pytest.mark.parametrize(
    "line",
    [
        *("rm -rf x", "git status; rm -rf x", "git status && rm -rf x", "a | rm -rf x", "(rm -rf x)", "{ rm -rf x; }"),
        *("echo $(rm -rf x)", "echo `rm -rf x`", 'echo "now $(rm -rf x)"', "A=1 B='2 3' rm -rf x", "a\nrm -rf x"),
        *(
            "sudo rm -rf x",
            "sudo -u root rm -rf x",
            "nohup rm -rf x",
            "timeout 5 rm -rf x",
            "timeout -k 3s 5s rm -rf x",
        ),
        *("ls | xargs rm -rf x", "ls | xargs -n 1 rm -rf x", "env A=1 rm -rf x", "sudo env A=1 nice -n 5 rm -rf x"),
        *("bash -c 'rm -rf x'", 'bash -lc "cd y && rm -rf x"', "eval rm -rf x", "eval 'rm -rf x'", "time rm -rf x"),
        *("if true; then rm -rf x; fi", "for a in b; do rm -rf x; done", "find . -exec rm -rf x \\;", "! rm -rf x"),
        *(
            "> log rm -rf x",
            "2>&1 rm -rf x",
            "r\\m -rf x",
            "'rm' -rf x",
            "a;;rm -rf x",
            "cat <(rm -rf x)",
            "\\\nrm -rf x",
        ),
        *("a 'open; rm -rf x' ; rm -rf x", "sudo bash -c 'rm -rf x'", "exec rm -rf x", "a & rm -rf x"),
    ],
)
def test_a_suspected_command_is_found_wherever_it_hides(line: str) -> None:
    assert any(segment[:2] == ("rm", "-rf") for segment in command_segments(line))


@pytest.mark.parametrize("line", ["echo rm -rf x", "git commit -m 'rm -rf x'", "grep -r 'rm' .", "ls > rm", "cat rm"])
def test_words_that_only_look_like_a_command_are_not_found(line: str) -> None:
    assert not any(segment[:1] == ("rm",) for segment in command_segments(line))


@given(st.text(max_size=200))
def test_any_text_can_be_looked_at(text: str) -> None:
    assert isinstance(plain_words(text), tuple)
    assert all(command_segments(text))


@pytest.mark.parametrize("depth", [6, 12])
def test_a_long_line_of_nested_shells_is_read_in_the_end(depth: int) -> None:
    nested = "rm x"
    for _ in range(depth):
        nested = f"bash -c {shlex.quote(nested)}"

    assert plain_words(nested) == ()
    assert command_segments("$(" * 5000) == ()
    assert len(command_segments("a;" * 100_000)) <= 2001


@pytest.mark.proof
@pytest.mark.parametrize(
    "part",
    [
        *("-x ", "-x eval ", "-x sudo ", "-x 'a b' ", "-x ' ' ", "A='b c' ", "1 ", "-c 'sh -c a' ", "-exec a ", "a\\b"),
        *('"$(a)" ', "; sudo -x 1 -x 'a b' ", "'env A=1 sh -c \"env A=1 B=2\"' ", '"', "'", "`", "\\"),
    ],
)
@pytest.mark.parametrize("start", ["sudo ", "sh -c "])
def test_no_line_costs_more_than_a_moment(start: str, part: str) -> None:
    line = start + part * (100_000 // len(part))
    began = time.process_time()

    plain_words(line)
    command_segments(line)

    assert time.process_time() - began < 5.0


def test_a_line_that_fits_no_shell_is_not_plain_and_is_suspected_all_the_same() -> None:
    line = "rm -rf " + "x" * 128 * 1024

    assert plain_words(line) == ()
    assert command_segments(line)[0][:2] == ("rm", "-rf")
