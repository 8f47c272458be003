"""The field for words over the rows of a screen: there while somebody types into it, and while it holds words.

The style sheet of the screen shows it while the screen has the class ``-filtering``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from textual.screen import Screen
    from textual.widgets import Input

_FILTERING = "-filtering"


def show_filter(screen: Screen[Any], field: Input) -> None:
    """Show the field and type into it."""
    screen.add_class(_FILTERING)
    # At once, not after what was typed behind the key.
    screen.set_focus(field)


def leave_filter(screen: Screen[Any], field: Input) -> None:
    """Let the field go when it is empty; the caller gives the focus to the rows."""
    screen.set_class(bool(field.value.strip()), _FILTERING)


def clear_filter(screen: Screen[Any], field: Input) -> bool:
    """Empty the field and let it go; return whether it was there."""
    was_shown = screen.has_class(_FILTERING)
    field.value = ""
    screen.remove_class(_FILTERING)
    return was_shown
