"""How far the program's output has come: bytes, lines, and the newest line in a form a person can read."""

from __future__ import annotations

_TAIL_BYTES = 4096
_MAX_CHARACTERS = 200
_ESCAPE = "\x1b"
_BELL = "\x07"
_TO_COLUMN_1 = ("\x1b[1G", "\x1b[G")


class Progress:
    """Counts what the program wrote; looks only at the end of each chunk for the newest line."""

    __slots__ = ("_is_mid_line", "_last_line", "_line_feeds", "_tail", "byte_count")

    def __init__(self) -> None:
        self.byte_count = 0
        self._line_feeds = 0
        self._is_mid_line = False
        self._tail = b""
        self._last_line = ""

    @property
    def line_count(self) -> int:
        """Lines so far; an unfinished last one counts."""
        return self._line_feeds + self._is_mid_line

    def add(self, chunk: bytes) -> None:
        """Count what the program wrote next; an empty chunk changes nothing."""
        if not chunk:
            return
        self.byte_count += len(chunk)
        self._line_feeds += chunk.count(b"\n")
        self._is_mid_line = not chunk.endswith(b"\n")
        self._tail = chunk[-_TAIL_BYTES:] if len(chunk) >= _TAIL_BYTES else (self._tail + chunk)[-_TAIL_BYTES:]

    def last_line(self) -> str:
        """Return the newest line with visible text, without escape sequences, at most 200 characters."""
        tail = self._tail.decode("utf-8", "replace")
        for code in _TO_COLUMN_1:
            tail = tail.replace(code, "\r")
        for line in reversed(tail.split("\n")):
            # A progress bar rewrites its line after each carriage return, or ends each state with one.
            for state in reversed(line.split("\r")):
                text = visible_text(state)
                if text:
                    self._last_line = text[:_MAX_CHARACTERS]
                    return self._last_line
        return self._last_line


def visible_text(line: str) -> str:
    """Return the line without escape sequences, control codes and blanks at its ends."""
    if _ESCAPE in line:
        first, *rest = line.split(_ESCAPE)
        line = first + "".join([_after_sequence(piece) for piece in rest])
    line = line.replace("\t", " ")
    if not line.isprintable():
        line = "".join([letter for letter in line if letter.isprintable() or letter > "\x9f"])
    return line.strip()


def _after_sequence(piece: str) -> str:
    """Return what follows the escape sequence whose escape character stood before the piece (source: ECMA-48)."""
    kind = piece[:1]
    if kind == "[":
        for position, letter in enumerate(piece[1:], 1):
            if "@" <= letter <= "~":
                return piece[position + 1 :]
        return ""
    if kind in {"]", "P", "X", "^", "_"}:
        return piece.partition(_BELL)[2]  # one ended by ESC \ ends at the next piece
    return piece.lstrip(" !\"#$%&'()*+,-./")[1:]
