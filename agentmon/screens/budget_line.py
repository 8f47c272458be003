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
_OVERSHOOT: Final = "an answer that is being written is still paid"


def budget_content(states: Sequence[BudgetState]) -> Content:
    """Return how far the budgets are used: ``everything a day $16.20 of $20.00 (81 %)``; empty without any."""
    parts: list[tuple[str, str]] = []
    for state in sorted(states, key=lambda one: -one.percent):
        budget = state.budget
        about = even_line(budget.about, max_characters=60)
        parts.append((f"{about} {budget.period_words} {state.words}   ", _STYLES[state.level]))
    if not parts:
        return Content("")
    return Content.assemble(("Budgets  ", "bold"), *parts, (_OVERSHOOT, "$text-muted"))
