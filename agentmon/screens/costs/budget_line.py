"""Budgets in one line, the most used first."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from textual.content import Content

from agentmon.domain.budgets import BudgetLevel
from agentmon.widgets.cells import even_line

if TYPE_CHECKING:
    from collections.abc import Sequence

    from agentmon.domain.budgets import BudgetState

_STYLES: Final = {
    BudgetLevel.FINE: "$text-muted",
    BudgetLevel.WARNED: "$warning",
    BudgetLevel.SPENT: "$error bold",
}
_GLYPHS: Final = {BudgetLevel.FINE: "", BudgetLevel.WARNED: "◆ ", BudgetLevel.SPENT: "✗ "}
"""As in the list of the command line; a level is never told by its colour alone."""
_OVERSHOOT: Final = "an answer that is being written is still paid"


def budget_content(states: Sequence[BudgetState]) -> Content:
    """Return how far the budgets are used: ``everything a day $16.20 of $20.00 (81 %)``; empty without any."""
    parts: list[tuple[str, str]] = []
    for state in sorted(states, key=lambda one: -one.percent):
        budget = state.budget
        about = even_line(budget.about, max_characters=60)
        glyph = _GLYPHS[state.level]
        parts.append((f"{glyph}{about} {budget.period_words} {state.words}   ", _STYLES[state.level]))
    if not parts:
        return Content("")
    # Behind the first one, which is the nearest to its end, so that it is in view however many there are.
    return Content.assemble(("Budgets  ", "bold"), parts[0], (f"{_OVERSHOOT}   ", "$text-muted"), *parts[1:])
