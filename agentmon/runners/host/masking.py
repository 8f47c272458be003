"""Secrets by their shape, masked before anything an agent says is written; only protocols need it, so it comes late."""

from __future__ import annotations

import json
import math
import re

from agentmon.domain.redaction import MASK, redact

_SECRET_NAME = re.compile(r"(?i)api[_-]?key|secret|passw(?:or)?d|credential|authorization|(?:^|[_-])token$")
_SHORTEST_SECRET = 6
_SHORTEST_SECRET_NAME = 16
"""A shorter name of a field is no secret of any shape."""
_MAX_DEPTH = 100
_KEY_BEGIN, _KEY_END = "PRIVATE KEY-----", "-----END "
_MAX_WORD_CHARACTERS = 4_000
"""A longer word that is still being written is shown unfinished."""
_MAX_LINE_CHARACTERS = 1_000
_CONTEXT_CHARACTERS = 200


def mask(value: object, depth: int = 0) -> object:
    """Return the JSON value with every text in it masked, names among them; numbers and the form stay.

    What no reader of JSON takes is ``None``: a number that is none, and what is nested more than 100 deep.
    """
    if isinstance(value, str):
        return redact(value)
    if depth > _MAX_DEPTH or (isinstance(value, float) and not math.isfinite(value)):
        return None
    if isinstance(value, dict):
        return {
            _mask_name(str(name)): MASK
            if isinstance(part, str) and len(part) >= _SHORTEST_SECRET and _SECRET_NAME.search(str(name))
            else mask(part, depth + 1)
            for name, part in value.items()
        }
    if isinstance(value, list | tuple):
        return [mask(part, depth + 1) for part in value]
    return value


def _mask_name(name: str) -> str:
    return name if len(name) < _SHORTEST_SECRET_NAME else redact(name)


def mask_lines(text: str) -> list[str]:
    """Return the lines of a protocol, masked; the very same lines when nothing in them looks like a secret."""
    lines = text.split("\n")
    return [_mask_line(line) for line in lines] if _may_hold_secret(text) else lines


def mask_text(text: str) -> str:
    """Return a text with what has the shape of a secret masked."""
    return redact(text)


def _may_hold_secret(text: str) -> bool:
    if "\\" in text:  # texts in texts: their line feeds part words, their quotation marks are marks
        text = text.replace("\\n", " ").replace("\\t", " ").replace("\\", "")
    return redact(text) != text


def _mask_line(line: str) -> str:
    if not _may_hold_secret(line):
        return line
    try:
        document = json.loads(line)
        masked = mask(document)
    except (ValueError, RecursionError):
        return redact(line)
    return line if masked == document else json.dumps(masked, ensure_ascii=False, separators=(",", ":"))


class StreamMask:
    """Masks a text that comes in pieces cut anywhere: a word is shown once it is whole."""

    __slots__ = ("_cut", "_is_in_key", "_line", "_shown")

    def __init__(self) -> None:
        self._line = ""
        """The line so far, as it came."""
        self._cut = 0
        """Up to where it was shown."""
        self._shown = ""
        """What was returned of it."""
        self._is_in_key = False

    def feed(self, piece: str) -> str:
        """Return what can be shown now."""
        *whole, rest = piece.split("\n")
        shown = "".join([self._end_line(part) for part in whole])
        self._line += rest
        if self._is_in_key:
            return shown
        cut = self._find_cut()
        if cut > self._cut:
            self._cut = cut
            shown += self._show(self._line[:cut])
        if cut > _MAX_LINE_CHARACTERS:
            self._line = self._line[cut - _CONTEXT_CHARACTERS :]
            self._cut = _CONTEXT_CHARACTERS
            self._shown = redact(self._line[:_CONTEXT_CHARACTERS])
        return shown

    def _find_cut(self) -> int:
        """Return up to where nothing that comes later makes a secret of the line."""
        line = self._line
        cut = max(line.rfind(" "), line.rfind("\t")) + 1
        word = line[cut:]
        # Scripts without blanks: a secret that is not assigned to a name is ASCII throughout.
        if not word.isascii() and "=" not in line and ":" not in line:
            cut += max(at for at, letter in enumerate(word, 1) if not letter.isascii())
        return len(line) if len(line) - cut > _MAX_WORD_CHARACTERS else cut

    def flush(self) -> str:
        """Return what was held back; nothing follows."""
        shown = "" if self._is_in_key else self._show(self._line)
        self._line = self._shown = ""
        self._cut = 0
        self._is_in_key = False
        return shown

    def _end_line(self, rest: str) -> str:
        self._line += rest
        line = self._line
        if self._is_in_key:
            self._is_in_key = _KEY_END not in line
            shown = ""
        else:
            shown = self._show(line) + "\n"
            self._is_in_key = _KEY_BEGIN in line and _KEY_END not in line
        self._line = self._shown = ""
        self._cut = 0
        return shown

    def _show(self, text: str) -> str:
        """Return what of the masked beginning of the line was not returned yet."""
        masked = redact(text)
        added = masked[len(self._shown) :]
        if added:
            self._shown = masked
        return added
