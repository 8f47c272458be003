"""Lets what a widget had drawn go with the widget.

Textual 8 keeps the drawn lines of its last 1024 widgets that are gone, some 50 MB: a method that is cached by
``lru_cache`` keeps each ``self`` alive, which its first parameter, ``cls``, was not meant to be.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Final

from textual._styles_cache import StylesCache

if TYPE_CHECKING:
    from textual.color import Color
    from textual.style import Style

_computed: Final = getattr(StylesCache.get_inner_outer, "__wrapped__", None)


@lru_cache(1024)
def _inner_outer(base_background: Color, background: Color) -> tuple[Style, Style]:
    styles: tuple[Style, Style] = _computed(StylesCache, base_background, background)  # type: ignore[misc] # asked below
    return styles


def let_go_of_dead_widgets() -> None:
    """Cache by the colours alone; a release of Textual that needs none of this is left as it is."""
    if _computed is not None:
        StylesCache.get_inner_outer = staticmethod(_inner_outer)  # type: ignore[assignment, method-assign] # see above
