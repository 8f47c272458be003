"""Text in columns of a terminal: wide characters count twice, and what does not fit ends in an ellipsis."""

import shutil
import unicodedata
from collections.abc import Sequence

DEFAULT_WIDTH = 100
_NARROWEST = 40


def terminal_width() -> int:
    """Return the columns of the terminal, 100 when the output is none; never less than 40."""
    return max(_NARROWEST, shutil.get_terminal_size((DEFAULT_WIDTH, 24)).columns)


def columns_of(text: str) -> int:
    """Return how many columns the text takes."""
    return len(text) if text.isascii() else sum(map(_columns_of_character, text))


def fit(text: str, columns: int) -> str:
    """Return the text cut to the columns, the last of them ``…`` when something is missing; a shorter one as it is."""
    if columns_of(text) <= columns:
        return text
    kept, taken = [], 0
    for character in text:
        taken += _columns_of_character(character)
        if taken > columns - 1:
            break
        kept.append(character)
    return "".join(kept) + "…" if columns > 0 else ""


def fill(text: str, columns: int) -> str:
    """Return the text cut to the columns, or with blanks behind it up to them."""
    fitted = fit(text, columns)
    return fitted + " " * (columns - columns_of(fitted))


def table(headings: tuple[str, ...], rows: Sequence[tuple[str, ...]], width: int) -> list[str]:
    """Return the lines of a table whose last column takes what the others leave; without rows only the headings."""
    widths = [max(columns_of(row[index]) for row in [headings, *rows]) for index in range(len(headings) - 1)]
    last_width = max(10, width - sum(widths) - 2 * len(widths))
    return [
        "  ".join(
            [*(fill(cell, columns) for cell, columns in zip(row, widths, strict=False)), fit(row[-1], last_width)]
        ).rstrip()
        for row in [headings, *rows]
    ]


def _columns_of_character(character: str) -> int:
    if unicodedata.combining(character) or unicodedata.category(character) in {"Mn", "Me", "Cf"}:
        return 0
    return 2 if unicodedata.east_asian_width(character) in {"W", "F"} else 1
