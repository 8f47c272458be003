"""Escape sequences that come in two pieces."""

from __future__ import annotations

import pytest
from textual import constants, events

from agentmon.widgets.layouts import latin_of
from agentmon.widgets.whole_keys import WholeKeyParser


@pytest.fixture(autouse=True)
def delay(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(constants, "ESCAPE_DELAY", 0.0)


def keys(*pieces: str) -> list[str]:
    """Return the keys that come of the pieces, with time enough between them for a lone ESC to count as one."""
    parser = WholeKeyParser()
    tokens = []
    for piece in pieces:
        tokens += [*parser.feed(piece), *parser.tick()]
    return [token.key if isinstance(token, events.Key) else type(token).__name__ for token in tokens]


@pytest.mark.parametrize(
    ("rest", "meant"),
    [
        ("[D", "left"),
        ("[Z", "shift+tab"),
        ("OP", "f1"),
        ("[3~", "delete"),
        ("[1;5C", "ctrl+right"),
        ("[<0;5;6M", "MouseDown"),
        ("[200~D\x1b[201~", "Paste"),
    ],
)
def test_the_rest_of_a_sequence_behind_a_lone_esc_is_no_letters(rest: str, meant: str) -> None:
    assert keys("\x1b", rest) == ["escape", meant]
    assert keys(f"\x1b{rest}") == [meant]


@pytest.mark.parametrize(
    ("pieces", "meant"),
    [
        (("\x1b[", "D"), "left"),
        (("\x1b[1;", "5C"), "ctrl+right"),
        (("\x1bO", "P"), "f1"),
        (("\x1b[<0;", "5;6M"), "MouseDown"),
    ],
)
def test_a_sequence_that_has_begun_is_waited_for(pieces: tuple[str, ...], meant: str) -> None:
    assert keys(*pieces) == [meant]


@pytest.mark.parametrize(
    "rest", ["]11;rgb:ffff/ffff/ffff\x07", "P>|xterm(390)\x1b\\", "_Gi=1;OK\x1b\\", "[?62;4c", "[5;9R"]
)
def test_the_rest_of_a_reply_behind_a_lone_esc_is_no_key(rest: str) -> None:
    assert keys("\x1b", rest) == ["escape"]


@pytest.mark.parametrize("rest", ["d", "D", "[", "O", "0"])
def test_what_a_person_types_behind_esc_is_what_it_was(rest: str) -> None:
    assert keys("\x1b", rest) == ["escape", *keys(rest)]


def test_a_sequence_like_letters_without_esc_before_them_are_letters() -> None:
    assert keys("\x1b", "j", "[D") == ["escape", "j", "left_square_bracket", "D"]
    assert keys("[D") == ["left_square_bracket", "D"]


@pytest.mark.parametrize(
    ("sequence", "key", "latin"),
    [
        ("ф", "ф", "a"),
        ("Ф", "Ф", "A"),
        ("ш", "ш", "i"),
        ("ש", "ש", "a"),
        ("γ", "γ", "g"),
        ("ز", "ز", "."),
        ("ㅂ", "ㅂ", "q"),
        ("\x1b[1092::97;1;1092u", "ф", "a"),
        # In a layout of another place the terminal knows better than the table.
        ("\x1b[1092::98;1;1092u", "ф", "b"),
        ("\x1b[1092:1060:97;2;1060u", "Ф", "A"),
        ("\x1b[1092::97;5u", "ctrl+a", ""),
        ("\x1b[97::113;1;97u", "a", ""),
        ("\x1b[233::50;1;233u", "é", ""),
        ("é", "é", ""),
        ("a", "a", ""),
        ("漢", "漢", ""),
    ],
)
def test_a_letter_of_another_script_has_the_place_of_a_latin_one(sequence: str, key: str, latin: str) -> None:
    (event,) = [token for token in WholeKeyParser().feed(sequence) if isinstance(token, events.Key)]

    assert (event.key, latin_of(event)) == (key, latin)
