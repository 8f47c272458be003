"""The text of a log that a person copies: what is selected, marked, or in view."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from agentmon.logs.line_text import plain_text

if TYPE_CHECKING:
    from textual.selection import Selection

    from agentmon.widgets.log_rows import LineSource, Row, RowReader

_MOST_BYTES: Final = 4 * 1024 * 1024
_LINES_AT_ONCE: Final = 256


def marked_span(rows: list[Row], mark: int | None) -> tuple[int, int]:
    """Return the starts of the first and the last line from the mark to the far end of the view, or of the view."""
    start, end = rows[0].line.start, rows[-1].line.start
    return (start, end) if mark is None else (min(start, mark), max(end, mark))


def lines_text(source: LineSource, start: int, end: int) -> tuple[str, bool]:
    """Return the text of the lines that begin from ``start`` up to ``end``, and whether all of it is there."""
    texts: list[str] = []
    offset = start
    while offset <= end:
        lines = source.lines_from(offset, _LINES_AT_ONCE)
        texts += [plain_text(line.content) for line in lines if line.start <= end]
        if not lines:
            break
        offset = lines[-1].end
        if offset - start > _MOST_BYTES:
            return "\n".join(texts), offset > end
    return "\n".join(texts), True


def selected_text(reader: RowReader, rows: list[Row], selection: Selection) -> str:
    """Return the selected text; what begins or ends outside the view counts from the rows in view.

    Selections hold a line's offset in the file as their row, so they stay with the text while the view scrolls.
    """
    start_x, start = selection.start if selection.start else (rows[0].start, rows[0].line.start)
    end_x, end = selection.end if selection.end else (rows[-1].end, rows[-1].line.start)
    texts: list[str] = []
    offset = start
    while offset <= end and offset - start < _MOST_BYTES:
        line = reader.line_at(offset)
        if line is None or line.end <= offset:
            break
        stop = max(0, end_x) if line.start == end else len(line.text)
        texts.append(line.text[max(0, start_x) if line.start == start else 0 : stop])
        offset = line.end
    return "\n".join(texts)
