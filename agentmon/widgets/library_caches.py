"""Keeps the caches of Textual and Rich small.

Each is a method cached by ``lru_cache`` that keeps more than was meant; a release that needs none of this is left as it
is.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Final

from rich.segment import Segment
from textual._styles_cache import StylesCache

if TYPE_CHECKING:
    from textual.color import Color
    from textual.style import Style

_computed: Final = getattr(StylesCache.get_inner_outer, "__wrapped__", None)
_split: Final = getattr(getattr(Segment, "_split_cells", None), "__wrapped__", None)


@lru_cache(1024)
def _inner_outer(base_background: Color, background: Color) -> tuple[Style, Style]:
    styles: tuple[Style, Style] = _computed(StylesCache, base_background, background)  # type: ignore[misc] # asked below
    return styles


@lru_cache(1024)
def _split_cells(segment: Segment, cut: int) -> tuple[Segment, Segment]:
    parts: tuple[Segment, Segment] = _split(Segment, segment, cut)  # type: ignore[misc] # asked below
    return parts


def bound_caches() -> None:
    """Let go of widgets that are gone, and of texts that are not shown any more.

    Textual 8 keeps the drawn lines of its last 1024 widgets that are gone, some 50 MB: its cached method keeps each
    ``self`` alive, which its first parameter, ``cls``, was not meant to be. It is cached by the colours alone here.

    Rich keeps the last 16,384 texts that were cut within characters of any width, some 14 MB: the last line of a live
    run is another one each second. A few screens of them are kept here.
    """
    if _computed is not None:
        StylesCache.get_inner_outer = staticmethod(_inner_outer)  # type: ignore[assignment, method-assign] # see above
    if _split is not None:
        Segment._split_cells = staticmethod(_split_cells)  # type: ignore[assignment, method-assign] # noqa: SLF001 - as above
