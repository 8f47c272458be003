"""Text from outside made safe to draw: no control code, escape sequence or direction override survives."""

from __future__ import annotations

import re

from agentmon.domain.letters import cut

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

# CSI, OSC/DCS/SOS/PM/APC strings (ended by BEL or ST, or unfinished), and two-byte escapes. Source: ECMA-48.
_ESCAPE_SEQUENCE: Final = (
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]?"
    r"|(?:\x1b[\]PX^_]|[\x9d\x90\x98\x9e\x9f])[^\x07\x1b\x9c]*(?:\x07|\x1b\\|\x9c)?"
    r"|\x1b[ -/]*[0-~]?"
)
# C0 and C1 controls, bidirectional overrides and isolates, line separators, lone surrogates.
_UNSAFE: Final = "[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]"
# Joiners, variation selectors, skin tones, tags, keycaps and invisible characters: terminals disagree on the width of
# what they make together. Source: Unicode 17, UAX 29 and UTS 51.
UNEVEN: Final = (
    "[\u00ad\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200d\u2060-\u2064\u206a-\u206f\u20e3\u3164\ufe00-\ufe0f"
    "\ufeff\uffa0\ufff0-\ufffb\U0001f3fb-\U0001f3ff\U000e0000-\U000e0fff]"
)
_UNSTORABLE: Final = "[\0\ud800-\udfff]"
_SYMBOLS: Final = {"\x7f": "␡"} | {chr(code): chr(0x2400 + code) for code in range(0x20)}


def plain_line(text: str, *, max_characters: int | None = None) -> str:
    """Return the text as one line that is safe to draw letter for letter.

    Escape sequences vanish, line breaks and tabs become one blank, other control codes become the visible symbol of
    their kind, and direction overrides become ``�``. A longer text is cut to ``max_characters`` with ``…`` at its end.
    """
    if max_characters is not None and len(text) > 64 * max_characters:
        text = text[: 64 * max_characters]
    line = text
    # Nothing of what is looked for counts as printable; most texts are, and need no expression to be compiled.
    if not text.isprintable():
        line = re.sub(_ESCAPE_SEQUENCE, "", re.sub(r"[\r\n\t\v\f]+", " ", text))
        # One look at each code is many times as fast as one at each place, where a text is full of them.
        for control, symbol in _SYMBOLS.items():
            line = line.replace(control, symbol)
        line = re.sub(_UNSAFE, "�", line)
    return line if max_characters is None else cut(line, max_characters)


def plain_lines(text: str) -> str:
    """Return the text with its line breaks kept (as line feeds) and each line as ``plain_line`` makes it."""
    return "\n".join(plain_line(line) for line in re.split(r"\r\n|\r|\n", text))


def exact_line(text: str) -> str:
    r"""Return the text as one line with nothing left out: what cannot be seen stands as its number, ``\u200d``.

    So a command that is hidden in an escape sequence is seen before it is allowed. A tab becomes one blank.
    """
    return re.sub(f"{_UNSAFE}|{UNEVEN}", _number, text.replace("\t", " "))


def exact_lines(text: str) -> str:
    """Return the text with its line breaks kept (as line feeds) and each line as ``exact_line`` makes it."""
    return "\n".join(exact_line(line) for line in text.replace("\r\n", "\n").split("\n"))


def storable(text: str, *, shows_numbers: bool = False) -> str:
    """Return the text as a database, a path and an argument can hold it: NUL and lone surrogates become ``�``.

    Args:
        text: Any text.
        shows_numbers: Whether they become their numbers instead, as in ``exact_line``.
    """
    if "\0" not in text and (text.isascii() or _is_encodable(text)):
        return text
    return re.sub(_UNSTORABLE, _number if shows_numbers else "\ufffd", text)


def _is_encodable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _number(found: re.Match[str]) -> str:
    return f"\\u{ord(found[0]):04x}"
