"""Keys by their names, as a terminal sends them to a program (xterm's sequences)."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from agentmon.domain.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping

_PLAIN: Final[Mapping[str, str]] = {
    "enter": "\r", "return": "\r", "tab": "\t", "esc": "\x1b", "escape": "\x1b", "space": " ", "backspace": "\x7f",
    "shift+tab": "\x1b[Z", "alt+enter": "\x1b\r", "ctrl+space": "\0",
    "f1": "\x1bOP", "f2": "\x1bOQ", "f3": "\x1bOR", "f4": "\x1bOS",
}  # fmt: skip
_LETTERED: Final[Mapping[str, str]] = {"up": "A", "down": "B", "right": "C", "left": "D", "home": "H", "end": "F"}
_NUMBERED: Final[Mapping[str, int]] = {
    "insert": 2, "delete": 3, "pageup": 5, "pagedown": 6,
    "f5": 15, "f6": 17, "f7": 18, "f8": 19, "f9": 20, "f10": 21, "f11": 23, "f12": 24,
}  # fmt: skip
_MODIFIERS: Final[Mapping[str, int]] = {"shift": 1, "alt": 2, "ctrl": 4}
_CONTROLS: Final = re.compile(r"ctrl\+([a-z@\[\]\\^_])")
_EXAMPLES: Final = "enter, esc, tab, backspace, up, pagedown, f5, ctrl+c, alt+x, shift+tab, or one character"


def key_sequence(name: str) -> str:
    """Return what a terminal sends for a key, such as ``enter``, ``ctrl+c``, ``shift+up`` or ``y``.

    Raises:
        UsageError: There is no such key.
    """
    if len(name) == 1 and name.isprintable():
        return name
    known = name.lower()
    if known in _PLAIN:
        return _PLAIN[known]
    if control := _CONTROLS.fullmatch(known):
        return chr(ord(control[1].upper()) & 0x1F)
    *held, key = known.split("+")
    if held == ["alt"] and len(key) == 1 and key.isprintable():
        return f"\x1b{name[-1]}"
    if not all(one in _MODIFIERS for one in held) or len(set(held)) < len(held):
        raise _unknown(name)
    modifier = 1 + sum(_MODIFIERS[one] for one in held)
    if key in _LETTERED:
        return f"\x1b[1;{modifier}{_LETTERED[key]}" if held else f"\x1b[{_LETTERED[key]}"
    if key in _NUMBERED:
        return f"\x1b[{_NUMBERED[key]};{modifier}~" if held else f"\x1b[{_NUMBERED[key]}~"
    raise _unknown(name)


def _unknown(name: str) -> UsageError:
    return UsageError(f"there is no key {name!r}", hint=f"name one such as {_EXAMPLES}")
