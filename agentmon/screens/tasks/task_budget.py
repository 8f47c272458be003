"""What all runs of a task together may cost: the one of its budgets that the editor shows."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from agentmon.bootstrap import Services
    from agentmon.domain.budgets import Budget, TaskBudget
    from agentmon.domain.ids import TaskId


def limit_of(budget: Budget | None) -> int | None:
    """Return what a budget allows, in nano-USD."""
    return None if budget is None else budget.limit


async def find_budget(services: Services, task_id: TaskId) -> Budget | None:
    """Return the present one; None where there is none."""
    from agentmon.domain.budgets import BudgetPeriod, BudgetScope, BudgetUnit  # noqa: PLC0415 - after the first frame

    wanted = (BudgetScope.TASK, task_id, BudgetPeriod.TOTAL, BudgetUnit.MONEY)
    budgets = [state.budget for state in await services.budgets.states()]
    return next((one for one in budgets if (one.scope, one.scope_id, one.period, one.unit) == wanted), None)


def changed_budget(
    present: Budget | None, limit_nano: int | None, *, removed: Budget | None = None
) -> TaskBudget | None:
    """Return what is to be stored; None when the budget stays. What happens when it is spent is as it was.

    Args:
        present: The one that is there.
        limit_nano: What is wanted, in nano-USD; None for no budget.
        removed: The one that comes back where there is none, and says what happens when it is spent.
    """
    from agentmon.domain.budgets import BudgetAction, TaskBudget  # noqa: PLC0415 - after the first frame

    if limit_nano == limit_of(present):
        return None
    like = present or removed
    return TaskBudget(limit=limit_nano, action=BudgetAction.STOP if like is None else like.action)
