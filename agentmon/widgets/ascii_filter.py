"""Draws only ASCII, for terminals and fonts that have nothing else."""

from __future__ import annotations

import unicodedata
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from rich.cells import cell_len
from rich.segment import Segment
from textual.filter import LineFilter

if TYPE_CHECKING:
    from textual.color import Color

_SIGNS: Final = {
    **dict.fromkeys("─━═╌┄┈╴╶╸╺▔▁", "-"),
    **dict.fromkeys("│┃║╎┆┊╵╷╹╻▏▕", "|"),
    **dict.fromkeys("┌┐└┘├┤┬┴┼╭╮╯╰╒╓╔╕╖╗╘╙╚╛╜╝╞╡╪╬┏┓┗┛╠╣┣┫", "+"),
    **dict.fromkeys("█▉▊▋▇▆▅▓▀▄▐▌■▪", "#"),
    **dict.fromkeys("▍▎▃▂▒░", ":"),
    **dict.fromkeys("→›»▶▸⟩", ">"),
    **dict.fromkeys("←‹«◀◂⟨", "<"),
    **dict.fromkeys("↑▲△", "^"),
    **dict.fromkeys("↓▼▽", "v"),
    **dict.fromkeys("‘’‚′", "'"),
    **dict.fromkeys("“”„″", '"'),
    **dict.fromkeys("–—−‐‑", "-"),
    **dict.fromkeys("·•∙⋅", "."),
    **dict.fromkeys("✓✔", "+"),
    **dict.fromkeys("✗✘×⊘", "x"),
    **dict.fromkeys("●⬤✳✦⬢", "*"),
    **dict.fromkeys("◌○◍", "o"),
    "◆": "!",
    "◇": "!",
    "⚠": "!",
    "…": "~",
    "⋯": "~",
    "±": "~",
    "↻": "~",
    "☑": "x",
    "☐": "_",
    "╳": "x",
    "▾": "v",
    "◈": "+",
    "◐": "o",
    "∴": ":",
    "∞": "-",
    "°": "o",
    "µ": "u",
    "❯": ">",
    "¥": "Y",
    "₹": "R",
    "⏸": "=",
    "‖": "=",
    "⏎": "<",
    "↵": "<",
    "≤": "<",
    "≥": ">",
    "≈": "~",
    "€": "E",
    "£": "L",
    "\u00a0": " ",
}


class AsciiFilter(LineFilter):
    """Puts a sign of ASCII in the place of any other; each line keeps its width."""

    def apply(self, segments: list[Segment], background: Color) -> list[Segment]:  # noqa: ARG002 - Textual's signature
        """Return the segments in ASCII."""
        return [
            segment if segment.control or segment.text.isascii() else Segment(ascii_text(segment.text), segment.style)
            for segment in segments
        ]


@lru_cache(4096)
def ascii_text(text: str) -> str:
    """Return the text in ASCII, as many cells wide as before; what has no likeness becomes question marks."""
    return "".join(letter if letter.isascii() else _likeness(letter) for letter in text)


def _likeness(letter: str) -> str:
    width = cell_len(letter)
    sign = _SIGNS.get(letter)
    if sign is None:
        plain = unicodedata.normalize("NFKD", letter).encode("ascii", "ignore").decode()
        sign = plain if plain.isprintable() and len(plain) == width else "?" * width
    return sign if len(sign) == width else (sign * width)[:width]
