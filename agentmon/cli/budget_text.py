"""Budgets as lines and as documents."""

from collections.abc import Sequence

from agentmon.cli.columns import table
from agentmon.cli.json_form import json_form
from agentmon.domain.budgets import Budget, BudgetAction, BudgetLevel, BudgetPeriod, BudgetState, BudgetUnit

_GLYPHS = {BudgetLevel.FINE: "●", BudgetLevel.WARNED: "◆", BudgetLevel.SPENT: "✗"}
_ACTIONS = {
    BudgetAction.WARN: "warns",
    BudgetAction.BLOCK: "starts nothing",
    BudgetAction.STOP: "stops",
}
_NANO_PER_DOLLAR = 1_000_000_000
_HEADINGS = ("", "ABOUT", "PER", "SPENT", "OF", "USED", "LEFT", "THEN", "ID", "NOTE")


def budget_lines(states: Sequence[BudgetState], width: int) -> list[str]:
    """Return the lines of a table of budgets."""
    rows = [
        (
            _GLYPHS[state.level],
            state.budget.about,
            "in all" if state.budget.period is BudgetPeriod.TOTAL else state.budget.period.value,
            state.budget.amount_text(state.use.spent).partition(" token")[0],
            state.budget.limit_text,
            f"{state.percent} %",
            state.budget.amount_text(state.left).partition(" token")[0],
            _ACTIONS[state.budget.action],
            state.budget.id[-8:],
            state.unknown_words,
        )
        for state in states
    ]
    return table(_HEADINGS, rows, width)


def state_words(state: BudgetState) -> str:
    """Return a budget in one line: ``the budget of claude, $20.00 a day: $4.21 of $20.00 (21 %)``."""
    return f"{state.budget.words}: {state.words}  {state.budget.id}"


def removed_words(budget: Budget) -> str:
    """Return that a budget is gone."""
    return f"removed: {budget.words}"


def budget_form(state: BudgetState) -> dict[str, object]:
    """Return a budget as a document; money in dollars and in nano-dollars."""
    budget = state.budget
    amounts = {"limit": budget.limit, "spent": state.use.spent, "left": state.left}
    if budget.unit is BudgetUnit.MONEY:
        document: dict[str, object] = {f"{name}_nano": amount for name, amount in amounts.items()}
        document |= {f"{name}_usd": amount / _NANO_PER_DOLLAR for name, amount in amounts.items()}
    else:
        document = {f"{name}_tokens": amount for name, amount in amounts.items()}
    return {
        "id": budget.id,
        "scope": budget.scope.value,
        "scope_id": budget.scope_id,
        "about": budget.about,
        "period": budget.period.value,
        "since_day": None if state.span is None else state.span.first_day,
        "until_day": None if state.span is None else state.span.last_day,
        "unit": budget.unit.value,
        "counts_cached": budget.counts_cached,
        "action": budget.action.value,
        "level": state.level.value,
        "percent": state.percent,
        **document,
        "unpriced_answers": state.use.unpriced_answers,
        **(budget.money.named if budget.unit is BudgetUnit.MONEY else {}),
        "created_at": json_form(budget.created_at),
    }
