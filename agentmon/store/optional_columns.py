"""Columns that may be null."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

_Text = TypeVar("_Text", bound=str)


def optional(kind: Callable[[str], _Text], stored: str | None) -> _Text | None:
    """Return what is stored as a value of that kind; None stays None."""
    return None if stored is None else kind(stored)
