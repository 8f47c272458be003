"""Keys, the mouse and pastes, and nothing else that a terminal sends: its replies and reports are none of them.

Textual takes a sequence that it does not know for the letters that it is made of, and ends with one whose numbers are
impossible. Here the input is taken apart first (``input_units``), and Textual is asked only what a whole, possible
sequence means. A terminal behind a slow line sends ``ESC`` and ``[D`` apart; the rest, a moment behind a lone ESC, is
no letters that act.
"""

from __future__ import annotations

import re
import sys
import unicodedata
from time import monotonic
from typing import TYPE_CHECKING, Final

from textual import constants, events, messages
from textual._ansi_sequences import ANSI_SEQUENCES_KEYS
from textual._keyboard_protocol import FUNCTIONAL_KEYS
from textual._xterm_parser import FOCUSIN, FOCUSOUT, XTermParser
from textual.keys import Keys, _character_to_key

from agentmon.widgets.input_units import ESC, WAIT_S, InputUnits, Kind, Unit
from agentmon.widgets.layouts import placed

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from textual.message import Message

_REST: Final = re.compile(
    r"\[(?:[0-9;:<=>?]*[ -/]*[@-~]|<[0-9;]*$|[0-9;]+$)|O[@-~]"
    r"|[P\]X^_][^\x00-\x1f]*(?:\x07|\x1b\\)|\][0-9]+;|P(?:[01]?[$+]|[>!]\|)|_G"
)
"""What follows ESC in a sequence, in one piece; of a long one at least its beginning. Nobody types it at once."""
_BEGUN: Final = re.compile(r"\x1b(?:\[[0-9;]*|O)?")
_SSH_DELAY_S: Final = 0.3

_MODIFIERS: Final = r"(\d{0,3})(?::([1-3]))?"
_UNICODE_KEY: Final = re.compile(
    rf"\x1b\[(\d{{1,7}})(?::\d{{0,7}}){{0,2}}(?:;{_MODIFIERS}(?:;(\d{{1,7}}(?::\d{{1,7}}){{0,15}})?)?)?u"
)
"""A key as its character, in the protocol of kitty: number, modifiers, whether it went down or up, what it types."""
_PLACED_KEY: Final = re.compile(r"\x1b\[(\d{3,7}):\d{0,7}:(\d{2,3})(?:;(\d{1,3})(:[1-3])?(;[\d:]*)?)?u")
"""One whose terminal also says what the layout of the US has in its place."""
_SHIFT: Final = 1
_NO_TEXT: Final = 0b111110
"""The modifiers with which a key types nothing."""
_NAMED_KEY: Final = re.compile(rf"\x1b\[(\d{{1,2}});{_MODIFIERS}([~ABCDEFHPQS])")
_PRIVATE: Final = range(0xE000, 0xF900)
"""Characters that stand for keys there."""
_OTHER_KEY: Final = re.compile(r"\x1b\[27;(\d{1,3});(\d{1,7})~")
"""A key as xterm sends it with ``modifyOtherKeys``."""
_REPORT_LIKE_KEY: Final = re.compile(r"\x1b\[\d+;\d+R")
"""Where the cursor is, or F3 with a modifier in the first row; nobody can tell."""
_RELEASED: Final = "3"
_MOST_MODIFIERS: Final = 256
_MOUSE: Final = re.compile(r"\x1b\[<(\d{1,3});(\d{1,5});(\d{1,5})[Mm]")
_NO_SUCH_BUTTON: Final = 128
_KNOWS_SYNCHRONIZED: Final = re.compile(r"\x1b\[\?2026;[1-4]\$y")


_JOINERS: Final = frozenset({"\u200c", "\u200d"})
"""They draw nothing themselves, and Persian, Hindi and emoji are not written without them."""


class Joiner(events.Key):
    """A character that a field takes like a letter."""

    @property
    def is_printable(self) -> bool:
        """Whether a field takes it."""
        return True


Joiner.handler_name = events.Key.handler_name  # Textual hands events on by the name of their class


class WholeKeyParser(XTermParser):
    """Makes events of what a terminal sends."""

    def __init__(self, debug: bool = False) -> None:
        super().__init__(debug)
        self._units = InputUnits()
        self._alone_at = float("-inf")
        """When the last key was a lone ESC; long ago when it was another."""

    def feed(self, data: str) -> Iterable[Message]:
        """Yield the events of what came; what is no UTF-8 in it comes as lone surrogates."""
        if _REST.match(data) and monotonic() - self._alone_at < WAIT_S:
            data = ESC + data
        for unit in self._units.feed(data):
            yield from self._seen(self._events(unit))

    def tick(self) -> Iterable[Message]:
        """Yield the events of what will not come any more."""
        for unit in self._units.tick(constants.ESCAPE_DELAY):
            yield from self._seen(self._events(unit))

    def _seen(self, tokens: Iterable[Message]) -> Iterator[Message]:
        for token in tokens:
            if isinstance(token, events.Key) and token.character in _JOINERS:
                yield Joiner(token.key, token.character)
                continue
            if isinstance(token, events.Key):
                if token.key == Keys.Ignore:
                    continue
                self._alone_at = monotonic() if token.key == "escape" else float("-inf")
            yield token

    def _events(self, unit: Unit) -> Iterator[Message]:
        match unit.kind:
            case Kind.TEXT:
                for character in unit.text:
                    if character in _JOINERS:
                        yield events.Key(_character_to_key(character), character)
                    else:
                        yield from self._sequence_to_key_events(character)
            case Kind.ALT if unit.text not in ANSI_SEQUENCES_KEYS:
                yield from self._sequence_to_key_events(unit.text[-1], alt=True)
            case Kind.ALT | Kind.ALONE:
                yield from self._sequence_to_key_events(unit.text)
            case Kind.PASTE:
                yield events.Paste(unit.text.replace("\x00", ""))
            case Kind.SEQUENCE:
                yield from self._events_of_sequence(unit.text)

    def _events_of_sequence(self, sequence: str) -> Iterator[Message]:
        mouse = _MOUSE.fullmatch(sequence)
        if sequence == FOCUSIN:
            yield events.AppFocus()
        elif sequence == FOCUSOUT:
            yield events.AppBlur()
        elif mouse is not None:
            event = self.parse_mouse_code(sequence) if int(mouse[1]) < _NO_SUCH_BUTTON else None
            if event is not None:
                yield event
        elif _KNOWS_SYNCHRONIZED.fullmatch(sequence):
            yield messages.TerminalSupportsSynchronizedOutput()
        else:
            yield from self._keys_of(sequence)

    def _keys_of(self, sequence: str) -> Iterator[events.Key]:
        found = _PLACED_KEY.fullmatch(sequence)
        base = chr(int(found[2])) if found else ""
        if found is None or not (base.isascii() and base.isprintable()):
            yield from self._sequence_to_key_events(_possible_key(sequence))
            return
        modifiers = int(found[3] or 1) - 1
        if modifiers & _NO_TEXT:
            sequence = f"\x1b[{found[2]};{found[3]}{found[4] or ''}u"
        keys = self._sequence_to_key_events(_possible_key(sequence))
        yield from placed(iter(keys), base, is_shifted=bool(modifiers & _SHIFT))


def _possible_key(sequence: str) -> str:
    """Return the sequence as Textual knows it; empty when it is no key that goes down."""
    if other := _OTHER_KEY.fullmatch(sequence):
        sequence = f"\x1b[{other[2]};{other[1]}u"
    if named := _NAMED_KEY.fullmatch(sequence):
        number, modifiers, event, final = named.groups(default="")
        is_known = f"{number}{final}" in FUNCTIONAL_KEYS and _are_modifiers(modifiers)
        if is_known:
            return f"\x1b[{number};{modifiers}{final}" if event != _RELEASED else ""
    elif key := _UNICODE_KEY.fullmatch(sequence):
        code, modifiers, event, text = key.groups(default="")
        is_possible = f"{code}u" in FUNCTIONAL_KEYS or (int(code) not in _PRIVATE and _is_character(code))
        if is_possible and _are_modifiers(modifiers) and all(map(_is_character, text.split(":") if text else ())):
            return f"\x1b[{code};{modifiers};{text}u" if event != _RELEASED else ""
    is_known = sequence in ANSI_SEQUENCES_KEYS and not _REPORT_LIKE_KEY.fullmatch(sequence)
    return sequence if is_known else ""


def _are_modifiers(number: str) -> bool:
    return not number or 1 <= int(number) <= _MOST_MODIFIERS


def _is_character(code: str) -> bool:
    """Return whether the number is one of a character that can be typed: no control, no half of a pair."""
    number = int(code)
    return number <= sys.maxunicode and unicodedata.category(chr(number)) not in {"Cc", "Cs"}


class SplitSequence:
    """Follows the keys that a sequence becomes which comes in three or more pieces: ``ESC``, ``[``, ``D``."""

    def __init__(self) -> None:
        self.within_s = WAIT_S
        """So long after one piece a key may be the next one."""
        self._begun = ""
        self._at = float("-inf")

    def may_go_on_with(self, key: events.Key) -> bool:
        """Take the next key, and return whether it may be no key but the next piece of a sequence that has begun."""
        begun = self._begun if key.time - self._at < self.within_s else ""
        character = ESC if key.key == "escape" else key.character or ""
        is_begun = _BEGUN.fullmatch(begun + character) is not None
        self._begun = begun + character if is_begun else ESC if character == ESC else ""
        self._at = key.time
        return (is_begun and begun != "") or begun not in {"", ESC}


def escape_delay_s(environ: Mapping[str, str]) -> float:
    """Return how long the rest of a sequence is waited for: longer over SSH, but as long as ``ESCDELAY`` says."""
    is_far = "ESCDELAY" not in environ and bool(environ.get("SSH_CONNECTION") or environ.get("SSH_TTY"))
    return _SSH_DELAY_S if is_far else constants.ESCAPE_DELAY
