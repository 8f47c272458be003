"""Text in columns of a terminal: wide characters count twice, and what does not fit ends in an ellipsis."""

import shutil
from collections.abc import Sequence

from agentmon.domain.letters import columns_of, cut

DEFAULT_WIDTH = 100
_NARROWEST = 40


def terminal_width() -> int:
    """Return the columns of the terminal, 100 when the output is none; never less than 40."""
    return max(_NARROWEST, shutil.get_terminal_size((DEFAULT_WIDTH, 24)).columns)


def fit(text: str, columns: int) -> str:
    """Return the text cut to the columns, the last of them ``…`` when something is missing; a shorter one as it is."""
    return cut(text, columns, columns_of)


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
