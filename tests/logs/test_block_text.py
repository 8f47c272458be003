from __future__ import annotations

from hypothesis import example, given, settings
from hypothesis import strategies as st

from agentmon.logs import block_text
from agentmon.logs.block_text import BlockText

PIECES = [
    b"\x1b[31m",
    b"\x1b[m",
    b"\x1b[",
    b"\x1b",
    b"[1m",
    b"1m",
    b"\x1b]0;a",
    b"\x07",
    b"\x1b[2K",
    b"x",
    b"\n",
    b"\xff",
]


@settings(max_examples=200, deadline=None)
@example(pieces=[b"\x1b[", b"\x1b[m", b"1m"])
@example(pieces=[b"\x1b]0;a", b"\x1b[m", b"x", b"\x07"])
@given(pieces=st.lists(st.sampled_from(PIECES), max_size=12))
def test_taking_out_one_colour_after_the_other_leaves_what_taking_out_all_sequences_does(pieces: list[bytes]) -> None:
    block = b"".join(pieces)
    shown = BlockText(block, sees_blanks=False, sees_ends=False)

    expected = block_text._ESCAPE_SEQUENCE.sub(b"", block).decode("utf-8", "replace")
    assert shown.text(is_lowered=False) == expected


def test_few_colours_are_taken_out_without_a_look_for_any_sequence() -> None:
    line = b"\x1b[2m10:00\x1b[0m \x1b[32mINFO\x1b[0m text\n"

    assert block_text._without_colours(line * 1000) == b"10:00 INFO text\n" * 1000
    assert block_text._without_colours(b"".join(b"\x1b[38;5;%dmx" % colour for colour in range(100))) is None
