"""What a run asks that a spent budget holds up: raise the budget, go on once, or stop."""

from __future__ import annotations

import hashlib
import json
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from agentmon.domain.budgets import BudgetUnit
from agentmon.domain.conversation import AskChoice, AskKind, AskNews, AskQuestion
from agentmon.domain.errors import UsageError
from agentmon.domain.money_text import parse_money, parse_tokens

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from agentmon.domain.amounts import MoneyFormat
    from agentmon.domain.approvals import Approval
    from agentmon.domain.budgets import BudgetState

CONTINUE: Final = "Continue where you were interrupted."
"""What an agent is told that may go on."""
QUESTION: Final = "How should this run continue?"


class BudgetAnswer(StrEnum):
    """The choices; any other answer is an amount to which the budget is raised."""

    RAISE = "raise"
    ONCE = "once"
    """The run alone may spend the amount of the budget once more; the budget stays spent for everything else."""
    STOP = "stop"


def budget_ask(state: BudgetState, **circumstances: object) -> AskNews:
    """Return the request of a run that the spent budget holds up.

    Args:
        state: The budget and what is spent of it.
        **circumstances: What has to be known when the run goes on; part of ``tool_input``.
    """
    budget, spent = state.budget, state.use.spent
    raised = budget.limit * ((spent + budget.limit // 2) // budget.limit + 1)
    limit = budget.amount_text(budget.limit)
    decided_on = {
        "budget_id": budget.id,
        "unit": budget.unit.value,
        "limit": budget.limit,
        "raised_to": raised,
        "first_day": state.first_day,
    }
    choices = (
        AskChoice(
            key=BudgetAnswer.RAISE,
            label=f"Raise the budget to {budget.amount_text(raised)}",
            description="for another limit, type the amount",
        ),
        AskChoice(
            key=BudgetAnswer.ONCE,
            label="Go on once",
            description=f"this run alone, for {limit} more; nothing else of the budget starts",
        ),
        AskChoice(key=BudgetAnswer.STOP, label="Stop the run"),
    )
    return AskNews(
        request_id=f"budget:{budget.id}",
        ask_kind=AskKind.BUDGET,
        title=f"Budget spent: {budget.about}, {budget.amount_text(spent)} of {limit} {budget.period_words}",
        tool_input={**decided_on, "spent": spent, **circumstances},
        # What is spent moves on while somebody reads; the choices are the same.
        input_digest=hashlib.sha256(json.dumps(decided_on, sort_keys=True).encode()).hexdigest(),
        questions=(AskQuestion(question=QUESTION, choices=choices),),
    )


def new_limit(approval: Approval, answer: str, money: MoneyFormat) -> int:
    """Return the limit to which an answer raises the budget, in its unit.

    Raises:
        UsageError: The answer is no amount, or one that is spent already.
    """
    asked = approval.tool_input
    if answer == BudgetAnswer.RAISE:
        return _number(asked, "raised_to")
    limit = parse_tokens(answer) if asked.get("unit") == BudgetUnit.TOKENS else parse_money(answer, money)
    if limit <= _number(asked, "spent"):
        raise UsageError(f"{answer} is spent already", hint=f"{approval.title}; name a larger amount")
    return limit


def _number(asked: Mapping[str, object], name: str) -> int:
    number = asked.get(name)
    return number if isinstance(number, int) else 0


def is_granted(state: BudgetState, granted: Sequence[Mapping[str, object]]) -> bool:
    """Return whether the run may go on although the budget is spent.

    Args:
        state: The budget, and what is spent of it now.
        granted: ``tool_input`` of the requests of the run that were answered with "go on once".
    """
    return any(
        one.get("budget_id") == state.budget.id
        and one.get("first_day") == state.first_day
        and state.use.spent < _number(one, "granted")
        for one in granted
    )
