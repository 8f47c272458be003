from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.segment import Segment
from textual.color import Color

from agentmon.domain.live_state import LiveState
from agentmon.widgets.ascii_filter import AsciiFilter, ascii_text


@given(st.text())
def test_any_text_becomes_ascii_of_the_same_width(text: str) -> None:
    drawn = ascii_text(text)

    assert drawn.isascii()
    assert cell_len(drawn) == cell_len(text)


def test_letters_keep_their_likeness_and_lines_their_form() -> None:
    assert ascii_text("Müller – naïve “x” … 日") == 'Muller - naive "x" ~ ??'
    assert ascii_text("╭─┤█▏") == "+-+#|"


def test_states_can_be_told_apart() -> None:
    signs = {state: ascii_text(state.glyph) for state in (LiveState.RUNNING, LiveState.NEEDS_YOU, LiveState.QUEUED)}

    assert len(set(signs.values())) == len(signs)


def test_control_codes_are_left_alone() -> None:
    segments = [Segment("é"), Segment("", None, [(1,)])]  # type: ignore[list-item] # as a terminal's own

    assert AsciiFilter().apply(segments, Color(0, 0, 0))[1] is segments[1]


def test_boxes_that_are_ticked_and_empty_differ() -> None:
    assert len({ascii_text("☑"), ascii_text("☐"), "?"}) == 3
