from __future__ import annotations

import pytest

from agentmon.logs.log_pieces import piece_text

SPINNER = b"".join(b"\x1b[2K* Working %d\n\x1b[2K> type here\x1b[1A\x1b[G" % count for count in range(500))
INK = b"".join(b"frame %d\nhint\x1b[2K\x1b[1A\x1b[2K\x1b[G" % count for count in range(500)) + b"frame 500\nhint"
BARS = b"a 1\nb 1\n\x1b[2A\x1b[2Ka 2\n\x1b[2Kb 2\n"


@pytest.mark.parametrize(
    ("content", "seen"),
    [
        (b"real\n" + SPINNER, ["real", "* Working 499", "> type here"]),
        (b"real\n" + INK, ["real", "frame 500", "hint"]),
        (BARS, ["a 2", "b 2"]),
        (b"first\nsecond\x1b[1A\x1b[1B\nthird\n", ["first", "second", "third"]),
        (b"kept\n\x1b[1A\n\nnext\n", ["kept", "next"]),
        (b"plain\nlines\n", ["plain", "lines"]),
    ],
    ids=["a spinner", "frames", "two bars", "up and down", "nothing written", "plain lines"],
)
def test_a_piece_has_what_a_terminal_leaves_of_its_lines(content: bytes, seen: list[str]) -> None:
    text = piece_text(content)

    assert [line for line in text.split("\n") if line.strip()] == seen
    assert text.count("\n") == content.count(b"\n")
