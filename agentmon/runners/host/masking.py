"""Secrets by their shape, masked before anything an agent says is written; only protocols need it, so it comes late."""

from __future__ import annotations

import json
import math
import re

from agentmon.domain.redaction import KEY_BEGIN, KEY_END, LONGEST_NAME, MASK, is_named, last_gap, redact

_SECRET_NAME = re.compile(r"(?i)api[_-]?key|secret|passw(?:or)?d|credential|authorization|(?:^|[_-])token$")
_SHORTEST_SECRET = 6
_SHORTEST_SECRET_NAME = 16
"""A shorter name of a field is no secret of any shape."""
_MAX_DEPTH = 100
_MAX_HELD_CHARACTERS = 4_000
_LEFT_OUT = "…"
_BEGUN_MARKER = re.compile(r"-{1,5}\Z|-----[BE][A-Z -]*\Z")
_LONGEST_MARKER = 80
_BLANKS = re.compile(r"\s+")
_HOLDS_TOGETHER = re.compile(r"[\s=:]")


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
    """Masks a text that comes in pieces cut anywhere as ``redact`` masks the whole.

    What may become a secret is held back, so that a word is shown once it is whole. One that is too long to be held is
    left out, up to the next blank.
    """

    __slots__ = ("_before", "_held", "_is_in_key", "_is_leaving_out", "_marker")

    def __init__(self) -> None:
        self._before = ""
        """The letter before what is held, where no blank is between them: it says whether a name begins there."""
        self._marker = ""
        """What may be the beginning of the line at either end of a private key."""
        self._is_in_key = False
        self._held = ""
        """What is before that and was not shown, without private keys; it begins where no secret is open."""
        self._is_leaving_out = False
        """Whether the end of a word that is left out is held, for what its end may name."""

    def feed(self, piece: str) -> str:
        """Return what can be shown now."""
        start = len(self._held)
        self._held += self._without_keys(piece)
        if self._is_leaving_out:
            if not self._find_end(start):
                self._held = self._held[-LONGEST_NAME:]
                return ""
            self._is_leaving_out = False
            start = 0
        cut = self._find_cut(start)
        shown = self._redact(self._held[:cut])
        if cut:
            last = self._held[cut - 1]
            self._before = "" if last.isascii() else last
        self._held = self._held[cut:]
        if len(self._held) > _MAX_HELD_CHARACTERS:
            shown += _LEFT_OUT
            self._is_leaving_out = True
            self._before = ""
            self._held = self._held[-LONGEST_NAME:]
        return shown

    def flush(self) -> str:
        """Return what was held back; nothing follows."""
        rest = "" if self._is_leaving_out else self._held + ("" if self._is_in_key else self._marker)
        self._marker = self._held = ""
        self._is_in_key = self._is_leaving_out = False
        shown, self._before = self._redact(rest), ""
        return shown

    def _redact(self, text: str) -> str:
        return redact(self._before + text).removeprefix(self._before)

    def _without_keys(self, piece: str) -> str:
        """Return the text with each private key masked, but for the end that may begin or end one."""
        text = self._marker + piece
        kept = []
        at = 0
        while marker := (KEY_END if self._is_in_key else KEY_BEGIN).search(text, at):
            if not self._is_in_key:
                kept += [text[at : marker.start()], MASK]
            self._is_in_key = not self._is_in_key
            at = marker.end()
        begun = _BEGUN_MARKER.search(text, max(at, len(text) - _LONGEST_MARKER))
        end = begun.start() if begun else len(text)
        if not self._is_in_key:
            kept.append(text[at:end])
        self._marker = text[end:]
        return "".join(kept)

    def _find_end(self, start: int) -> bool:
        """Hold what follows the word that is left out, and all that it names; return whether there is any."""
        for blanks in _BLANKS.finditer(self._held, max(0, start - 1)):
            if not is_named(self._held, blanks.end()):
                self._held = self._held[blanks.end() - 1 :]
                return True
        return False

    def _find_cut(self, start: int) -> int:
        """Return up to where nothing that comes later makes a secret of it; before ``start`` there is no such place."""
        cut = last_gap(self._held, start)
        word = self._held[cut:]
        # Scripts without blanks: a secret that is not assigned to a name is ASCII throughout.
        if not word.isascii() and not _HOLDS_TOGETHER.search(word):
            cut += max(at for at, letter in enumerate(word, 1) if not letter.isascii())
        return cut
