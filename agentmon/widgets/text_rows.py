"""Rows of styled text that fit a width: paragraphs wrapped at words, code at any cell, differences in their colours."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from agentmon.domain.letters import fitting, letter_behind
from agentmon.domain.plain_text import plain_lines
from agentmon.widgets.cells import cells, even_line

if TYPE_CHECKING:
    from typing import TypeAlias

_TAB: Final = "    "
_LONGEST_LINE: Final = 40_000
_FILE_HEADS: Final = ("--- ", "+++ ", "diff ", "index ")
DIFF_HEADS: Final = ("@@", *_FILE_HEADS)
"""How the lines of a difference begin that belong to no file's text."""


class Span(NamedTuple):
    """A piece of a row and the name of its style."""

    text: str
    style: str = "text"


if TYPE_CHECKING:
    Row: TypeAlias = tuple[Span, ...]


def wrapped(text: str, width: int, *, at_words: bool = True) -> list[str]:
    """Return the lines of the text in rows of at most ``width`` cells, safe to draw; blanks at line starts stay.

    Args:
        text: Any text; an empty one is one empty row.
        width: At least one cell.
        at_words: Whether a row ends behind a word where it can; code is cut where the room ends.
    """
    width = max(1, width)
    rows: list[str] = []
    for line in plain_lines(text.replace("\t", _TAB)).split("\n"):
        even = even_line(line, max_characters=_LONGEST_LINE).rstrip()
        while len(even) > width // 2 and (end := fitting(even, width, cells) or letter_behind(even, 0)) < len(even):
            blank = even.rfind(" ", 0, end + 1) if at_words else -1
            if blank > len(even) - len(even.lstrip()) and blank > end // 3:
                end = blank
            rows.append(even[:end].rstrip())
            even = even[end:].lstrip(" ") if at_words else even[end:]
        rows.append(even)
    return rows


def text_rows(text: str, width: int, style: str = "text", *, indent: str = "", at_words: bool = True) -> list[Row]:
    """Return the wrapped text as rows of one style behind an indent."""
    room = width - cells(indent)
    return [(Span(indent, style), Span(row, style)) for row in wrapped(text, room, at_words=at_words)]


class GrowingRows:
    """The rows of a text that grows at its end: what is wrapped once for a width is not wrapped again."""

    def __init__(self) -> None:
        self._form: tuple[int, str, str] | None = None
        self._text = ""
        self._wrapped = 0
        """Characters of it that were wrapped for good: whole lines with their line feeds."""
        self._rows: list[Row] = []
        self._count = 0
        """Rows of these characters."""

    def rows(self, text: str, width: int, style: str = "text", *, indent: str = "") -> list[Row]:
        """Return the rows that ``text_rows`` makes of the text; the list is the same each time, and grows."""
        if self._form != (width, style, indent) or not text.startswith(self._text):
            self._form, self._wrapped, self._rows, self._count = (width, style, indent), 0, [], 0
        elif text.rfind("\n") < self._wrapped and len(self._text) - self._wrapped > _LONGEST_LINE:
            return self._rows  # nothing is shown of what comes so late in a line
        self._text = text
        del self._rows[self._count :]
        whole = text.rfind("\n") + 1
        if whole > self._wrapped:
            self._rows += text_rows(text[self._wrapped : whole - 1].removesuffix("\r"), width, style, indent=indent)
            self._wrapped, self._count = whole, len(self._rows)
        self._rows += text_rows(text[self._wrapped :], width, style, indent=indent)
        return self._rows


def diff_rows(diff: str, width: int, *, indent: str = "") -> list[Row]:
    """Return a unified difference as rows: what is added, what is removed, and where, each in its style."""
    rows: list[Row] = []
    for line in diff.split("\n"):
        rows += text_rows(line, width, _diff_style(line), indent=indent, at_words=False)
    return rows


def is_diff(text: str) -> bool:
    """Whether the text is a unified difference."""
    return any(line.startswith("@@ ") for line in text.split("\n", 40)[:40])


def _diff_style(line: str) -> str:
    if line.startswith(_FILE_HEADS):
        return "muted"
    return {"+": "good", "-": "bad", "@": "primary"}.get(line[:1], "text")
