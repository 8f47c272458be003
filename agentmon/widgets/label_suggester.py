"""Completes the last word of a line of labels with one that is known."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual.suggester import Suggester

if TYPE_CHECKING:
    from collections.abc import Sequence


class LabelSuggester(Suggester):
    """Suggests the most used label that begins as the last word does and is not there yet."""

    def __init__(self, known: Sequence[str]) -> None:
        """Suggest these, the most wanted first."""
        super().__init__(use_cache=False)
        self._known = tuple(known)

    async def get_suggestion(self, value: str) -> str | None:
        """Return the line with its last word completed; None when nothing is known for it."""
        words = value.split()
        if not words or value.endswith((" ", ",")):
            return None
        last = words[-1].rpartition(",")[2].removeprefix("#")
        present = {word.strip(",").removeprefix("#").lower() for word in words[:-1]}
        for label in self._known:
            if last and label.startswith(last.lower()) and label not in present:
                return value + label[len(last) :]
        return None
