"""Characters whose width terminals disagree on: none of them moves what stands behind it in its line.

Each is drawn over blanks of the width that it has here, and what follows is put into its own column by number. So a
terminal that takes it for narrower leaves a blank, and for one that takes it for wider its end is drawn over.
"""

from __future__ import annotations

import re
import unicodedata
from typing import TYPE_CHECKING, Final

from rich import cells
from rich._unicode_data import load

if TYPE_CHECKING:
    from collections.abc import Iterator

_AGREED: Final = (
    "\x00-\x7e\xa0-\xac\xae-\u02ff\u0370-\u0377\u037a-\u0482\u048a-\u052f\u2010-\u2027\u2190-\u22ff\u2400-\u2426\u2500-\u25fc"
    "\u2713\u2717\u2800-\u28ff\u3001-\u3029\u3041-\u3096\u30a0-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7a3\uff01-\uff60\ufffd"
)
"""Characters that are as wide everywhere; nothing that joins others is among them."""
_DOUBTFUL: Final = re.compile(f"[^{_AGREED}]")
_LINE: Final = re.compile(r"\x1b\[\d+;(\d+)H((?:[^\n\x1b]|\x1b(?!\[\d+;\d+H))*)")
"""What is drawn from one place on, up to the next."""
_CODE_OR_TEXT: Final = re.compile(r"(\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\))|([^\x1b]+)|\x1b")

_JOINER: Final = "\u200d"
_SKIN_TONES: Final = range(0x1F3FB, 0x1F400)
_FLAG_LETTERS: Final = range(0x1F1E6, 0x1F200)


def keep_columns(data: str) -> str:
    """Return what is to be drawn so that each column holds on every terminal."""
    return _LINE.sub(_keep_line, data) if _DOUBTFUL.search(data) else data


def give_marks_a_cell() -> None:
    """Let spacing marks, such as the vowel signs of India, have a cell, as they have in most terminals and in tmux.

    Where they have none a blank stands behind the letter; without the cell the next letter would hide the sign.
    """
    widths = load("auto").widths
    if not isinstance(widths, list):
        return
    widths[:] = [part for entry in widths for part in _without_marks(*entry)]
    cells.get_character_cell_size.cache_clear()
    cells.cached_cell_len.cache_clear()


def _without_marks(first: int, last: int, width: int) -> Iterator[tuple[int, int, int]]:
    begun = first
    for code in range(first, last + 1) if width == 0 else ():
        if unicodedata.category(chr(code)) == "Mc":
            if begun < code:
                yield begun, code - 1, width
            begun = code + 1
    if begun <= last:
        yield begun, last, width


def _keep_line(line: re.Match[str]) -> str:
    if not _DOUBTFUL.search(line[2]):
        return line[0]
    kept = [line[0][: line.start(2) - line.start()]]
    column = int(line[1])
    for piece in _CODE_OR_TEXT.finditer(line[2]):
        text = piece[2]
        if text is None:
            kept.append(piece[0])
            continue
        for cluster, width in _clusters(text):
            if _DOUBTFUL.search(cluster):
                kept.append(f"{' ' * width}\x1b[{column}G{cluster}\x1b[{column + width}G")
            else:
                kept.append(cluster)
            column += width
    return "".join(kept)


def _clusters(text: str) -> Iterator[tuple[str, int]]:
    """Yield what is drawn as one, with its width here; for rich that has no width which a joiner joins to something."""
    begun, width = "", 0
    for start, end, size in cells.split_graphemes(text)[0]:
        part = text[start:end]
        if begun and _joins(begun, part):
            begun, width = begun + part, width + size
            continue
        if begun:
            yield begun, width
        begun, width = part, size
    if begun:
        yield begun, width


def _joins(before: str, part: str) -> bool:
    code = ord(part[0])
    is_flag = code in _FLAG_LETTERS and len(before) == 1 and ord(before) in _FLAG_LETTERS
    is_mark = unicodedata.category(part[0]).startswith("M")
    return is_flag or is_mark or code in _SKIN_TONES or before.endswith(_JOINER) or part[0] == _JOINER
