"""How far the program's output has come: bytes, lines, and the newest line in a form a person can read."""

from __future__ import annotations

_TAIL_BYTES = 4096
_MAX_CHARACTERS = 200
_ESCAPE = "\x1b"
_BELL = "\x07"
_MAX_DIGITS = 6
_ALTERNATE_SCREENS = (b"\x1b[?1049", b"\x1b[?1047", b"\x1b[?47")
_LONGEST_SWITCH = 8
_LEAVES_LINE = frozenset("ABEFHdfru")


class Progress:
    """Counts what the program wrote; looks only at the end of each chunk for the newest line."""

    __slots__ = ("_is_mid_line", "_last_line", "_line_feeds", "_tail", "byte_count", "is_on_other_screen")

    def __init__(self) -> None:
        self.byte_count = 0
        self.is_on_other_screen = False
        """Whether the program draws on the alternate screen, which has no lines that anybody scrolls back to."""
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
        self._note_screen(self._tail[1 - _LONGEST_SWITCH :] + chunk)
        self._line_feeds += chunk.count(b"\n")
        self._is_mid_line = not chunk.endswith(b"\n")
        self._tail = chunk[-_TAIL_BYTES:] if len(chunk) >= _TAIL_BYTES else (self._tail + chunk)[-_TAIL_BYTES:]

    def _note_screen(self, output: bytes) -> None:
        if b"\x1b[?" in output:
            entered = max(output.rfind(name + b"h") for name in _ALTERNATE_SCREENS)
            left = max(output.rfind(name + b"l") for name in _ALTERNATE_SCREENS)
            if entered != left:
                self.is_on_other_screen = entered > left

    def last_line(self) -> str:
        """Return the newest line that a terminal shows text in, without escape sequences, at most 200 characters."""
        for line in reversed(shown_lines(self._tail.decode("utf-8", "replace"))):
            text = visible_text(line)
            if text:
                self._last_line = text[:_MAX_CHARACTERS]
                break
        return self._last_line

    def open_line(self) -> str:
        """Return the text of the last line while it is unfinished; empty when it has none, or is finished."""
        if not self._is_mid_line:
            return ""
        return visible_text(shown_lines(self._tail.decode("utf-8", "replace"))[-1])[-_MAX_CHARACTERS:]


def shown_lines(text: str) -> list[str]:
    """Return the lines of a text as a terminal leaves them: what is written over or erased in its line is gone.

    What follows a move out of the line is a line of its own.
    """
    lines: list[list[str]] = [[]]
    column = 0
    first, *others = text.split(_ESCAPE)
    for parameters, final, piece in [("", "", first), *map(_sequence, others)]:
        cells = lines[-1]
        number = int(parameters) if parameters.isdecimal() and len(parameters) < _MAX_DIGITS else 0
        if final in _LEAVES_LINE or (final == "J" and number > 1):
            cells, column = [], 0
            lines.append(cells)
        elif final == "C":
            column = min(column + max(1, number), _TAIL_BYTES)
        elif final == "D":
            column = max(0, column - max(1, number))
        elif final in {"G", "`"}:
            column = min(max(0, number - 1), _TAIL_BYTES)
        elif final in {"J", "K"}:
            cells[:] = cells[:column] if number == 0 else [" "] * len(cells) if number == 2 else cells  # noqa: PLR2004
        column = _write(lines, piece, column)
    return ["".join(cells) for cells in lines]


def _write(lines: list[list[str]], text: str, column: int) -> int:
    """Write plain text from a column of the last line on, and return the column after it."""
    cells = lines[-1]
    for letter in text:
        if letter == "\n":
            cells, column = [], 0
            lines.append(cells)
        elif letter == "\r":
            column = 0
        elif letter == "\b":
            column = max(0, column - 1)
        else:
            cells.extend(" " * (column - len(cells)))
            cells[column : column + 1] = letter
            column += 1
    return column


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
    return _sequence(piece)[2]


def _sequence(piece: str) -> tuple[str, str, str]:
    """Return what follows an escape character: parameters and final letter of its sequence, and what comes after it.

    Source: ECMA-48, 5.4 and 5.6.
    """
    kind = piece[:1]
    if kind == "[":
        for position, letter in enumerate(piece[1:], 1):
            if "@" <= letter <= "~":
                return piece[1:position], letter, piece[position + 1 :]
        return "", "", ""
    if kind in {"]", "P", "X", "^", "_"}:
        return "", "", piece.partition(_BELL)[2]  # one ended by ESC \ ends at the next piece
    return "", "", piece.lstrip(" !\"#$%&'()*+,-./")[1:]
