"""Styles of the theme's variables for widgets that draw their lines themselves.

Component classes would say the same, but Textual works them out anew for every widget at every change of styles: a
dozen of them on five columns cost 14 ms of the first frame (measured).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.style import Style
from textual.color import Color, ColorParseError

if TYPE_CHECKING:
    from textual.widget import Widget


def theme_style(
    widget: Widget,
    variable: str,
    *,
    is_bold: bool = False,
    background: str | None = None,
    ground: Style | None = None,
) -> Style:
    """Return the colour of a theme variable on the widget's own ground, or on that of another variable.

    Who asks for many styles hands in the widget's ``rich_style`` as the ``ground``: it is worked out at each look.
    """
    style = (widget.rich_style if ground is None else ground) + Style(
        color=_colour(widget, variable).rich_color, bold=is_bold
    )
    if background is not None:
        style += Style(bgcolor=_colour(widget, background, instead="panel").rich_color)
    return style


def _colour(widget: Widget, variable: str, *, instead: str = "foreground") -> Color:
    """Return the colour of a theme variable, or of another one where a theme has none or an automatic one."""
    variables = widget.app.theme_variables
    try:
        return Color.parse(variables.get(variable) or variables[instead])
    except ColorParseError:
        return Color.parse(variables[instead])
