"""Words of a search as patterns of LIKE, with its wildcards escaped."""

from __future__ import annotations

from typing import Final

from sqlalchemy import ColumnElement, or_

ESCAPE: Final = "\\"
_PAST_ALL_TEXTS: Final = "\U0010ffff"


def containing(word: str) -> str:
    """Return the pattern of texts that hold the word."""
    escaped = word.replace(ESCAPE, ESCAPE * 2).replace("%", f"{ESCAPE}%").replace("_", f"{ESCAPE}_")
    return f"%{escaped}%"


def has_word(word: str, *columns: ColumnElement[str] | ColumnElement[str | None]) -> ColumnElement[bool]:
    """Return the condition that one of the columns holds the word; ASCII letters match in either case."""
    return or_(*(column.like(containing(word), escape=ESCAPE) for column in columns))


def starts_with(column: ColumnElement[str], text: str) -> ColumnElement[bool]:
    """Return the condition that the column begins with the text, letter for letter; an index of the column serves."""
    return (column >= text) & (column < text + _PAST_ALL_TEXTS)
