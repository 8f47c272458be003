from __future__ import annotations

import sys
import unicodedata

from rich.cells import get_character_cell_size

from agentmon.widgets.cells import even_line, is_single


def test_what_takes_no_look_at_each_character_is_one_cell_wide_and_stays_as_it_is() -> None:
    single = "".join(filter(is_single, map(chr, range(sys.maxunicode + 1))))

    assert {get_character_cell_size(character) for character in single} == {1}
    assert unicodedata.normalize("NFC", single) == even_line(single, max_characters=len(single)) == single
    assert is_single("x␀é─�")
    assert not is_single("e\u0301")
    assert not is_single("漢")


def test_a_line_of_nothing_but_control_codes_shows_their_symbols() -> None:
    assert even_line("".join(map(chr, [0, 1, 7, 0x1F, 0x7F, 0x80, 0x202E]))) == "␀␁␇␟␡��"
