"""What a terminal sends, taken apart: text, keys with alt, escape sequences, strings such as its own replies, pastes.

The grammar is that of ECMA-48, so that also what nobody knows has an end. Raw bytes that are no UTF-8 come as lone
surrogates (``surrogateescape``).
"""

from __future__ import annotations

import re
from enum import Enum, auto
from time import monotonic
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

ESC: Final = "\x1b"
WAIT_S: Final = 3.0
"""So long the rest of what has begun is waited for: a slow line cuts anywhere."""


class Kind(Enum):
    """What a piece of the input is."""

    TEXT = auto()
    """Characters, each a key."""
    ALONE = auto()
    """ESC, maybe with one character, and nothing behind it for a while."""
    ALT = auto()
    """ESC and one character."""
    SEQUENCE = auto()
    """CSI or SS3, whole, begun with ESC."""
    PASTE = auto()
    """What was pasted."""


class Unit(NamedTuple):
    """One piece of the input."""

    kind: Kind
    text: str


_CSI: Final = r"(?:\x1b\[|[\x9b\udc9b])"
_STRING: Final = r"(?:\x1b[P\]X^_]|[\x90\x98\x9d-\x9f\udc90\udc98\udc9d-\udc9f])[^\x00-\x1f\x9c\udc9c]*"
"""DCS, OSC, SOS, PM, APC, up to their end."""
_UNIT: Final = re.compile(
    rf"(?P<old_mouse>{_CSI}M)"
    rf"|(?P<sequence>{_CSI}(?:\[[A-E]|[0-9]+\$|[ -?]*[@-Z\\-~])|(?:\x1bO|[\x8f\udc8f])[0-9;]*[:-~])"
    rf"|(?P<string>{_STRING}(?:[\x07\x9c\udc9c]|\x1b\\))"
    rf"|(?P<begun>(?:\x1b|{_CSI}(?:\[|[ -?]*)|(?:\x1bO|[\x8f\udc8f])[0-9;]*|{_STRING}\x1b?)\Z)"
    rf"|(?P<broken>{_CSI}\[?[ -?]*|(?:\x1bO|[\x8f\udc8f])[0-9;]*|{_STRING}(?:\x1b(?=\x1b))?|[\x80-\x9f\udc80-\udcff])"
    r"|(?P<alt>\x1b[^\x1b])"
    r"|(?P<lone>\x1b)"
    r"|(?P<text>[^\x1b\x80-\x9f\udc80-\udcff]+)",
    re.DOTALL,
)
_C1_CSI: Final = re.compile("[\x9b\udc9b]")
_C1_SS3: Final = re.compile("[\x8f\udc8f]")
_MAY_BE_ALT: Final = re.compile(r"\x1b[P\]X^_]?")
_LONGEST_BEGUN: Final = 256
_STRING_BEGUN: Final = re.compile(
    r"(\x1b[P\]X^_].|[\x90\x98\x9d-\x9f\udc90\udc98\udc9d-\udc9f])[^\x1b]*(\x1b?)", re.DOTALL
)
_OLD_MOUSE_BYTES: Final = 3
_PASTE_BEGIN: Final = "\x1b[200~"
_PASTE_END: Final = "\x1b[201~"
_LONE_ESC: Final = frozenset({ESC, "\x1b[27u", "\x1b[27;1u"})


class InputUnits:
    """Takes the input apart as it comes; what is cut off is waited for, then dropped."""

    def __init__(self) -> None:
        self._begun = ""
        self._at = monotonic()
        self._pasted: list[str] | None = None

    def feed(self, data: str) -> Iterator[Unit]:
        """Yield what is complete with this."""
        now = monotonic()
        if self._is_stuck_paste(data, now):
            # Its end was lost. In a paste, ESC is nothing that a terminal lets through by itself.
            yield self._end_paste()
            return
        data, self._begun = self._begun + data, ""
        place = 0
        while place < len(data):
            if self._pasted is not None:
                place, unit = self._paste_on(data, place)
            else:
                place, unit = self._next(data, place)
            if unit is not None:
                yield unit
        self._at = monotonic()

    def tick(self, esc_delay_s: float) -> Iterator[Unit]:
        """Yield what is a key by now, since nothing came behind it for so many seconds; nothing may be there unread."""
        waited_s = monotonic() - self._at
        if self._begun and self._pasted is None:
            if _MAY_BE_ALT.fullmatch(self._begun) and waited_s >= esc_delay_s:
                unit, self._begun = Unit(Kind.ALONE, self._begun), ""
                yield unit
            elif waited_s >= WAIT_S:
                self._begun = ""

    def _next(self, data: str, place: int) -> tuple[int, Unit | None]:
        """Return where the next unit ends, and the unit; None when it is nothing or not whole yet."""
        found = _UNIT.match(data, place)
        if found is None:
            return place + 1, None
        text, end = found[0], found.end()
        match found.lastgroup:
            case "text":
                return end, Unit(Kind.TEXT, text)
            case "alt":
                return end, Unit(Kind.ALT, text)
            case "lone":
                return end, Unit(Kind.ALONE, text)
            case "old_mouse":
                return self._skip_old_mouse(data, place, end), None
            case "begun":
                self._begun = _STRING_BEGUN.sub(r"\1\2", text)[:_LONGEST_BEGUN]
                return len(data), None
            case "sequence":
                text = _C1_SS3.sub("\x1bO", _C1_CSI.sub("\x1b[", text))
                if text == _PASTE_BEGIN:
                    self._pasted = []
                    return end, None
                return end, Unit(Kind.SEQUENCE, text)
        return end, None

    def _skip_old_mouse(self, data: str, place: int, end: int) -> int:
        """Return the place behind the three bytes that follow; they may be halves of characters, but not ESC."""
        missing = _OLD_MOUSE_BYTES
        while missing > 0:
            if end == len(data):
                self._begun = data[place:]
                break
            if data[end] == ESC:
                break
            missing -= len(data[end].encode("utf-8", "surrogateescape"))
            end += 1
        return end

    def _paste_on(self, data: str, place: int) -> tuple[int, Unit | None]:
        assert self._pasted is not None
        end = data.find(_PASTE_END, place)
        if end >= 0:
            self._pasted.append(data[place:end])
            return end + len(_PASTE_END), self._end_paste()
        escape = data.rfind(ESC, max(place, len(data) - len(_PASTE_END) + 1))
        if escape >= 0 and _PASTE_END.startswith(data[escape:]):
            self._pasted.append(data[place:escape])
            self._begun = data[escape:]
        else:
            self._pasted.append(data[place:])
        return len(data), None

    def _is_stuck_paste(self, data: str, now: float) -> bool:
        return self._pasted is not None and data in _LONE_ESC and now - self._at >= WAIT_S

    def _end_paste(self) -> Unit:
        pasted, self._pasted, self._begun = "".join(self._pasted or ()), None, ""
        return Unit(Kind.PASTE, pasted.encode("utf-8", "surrogateescape").decode("utf-8", "replace"))
