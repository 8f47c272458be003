"""What all runs of a task together may cost: the one of its budgets that the editor shows."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from agentmon.bootstrap import Services
    from agentmon.domain.budgets import Budget
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


async def store_budget(
    services: Services,
    task_id: TaskId,
    present: Budget | None,
    limit_nano: int | None,
    *,
    removed: Budget | None = None,
) -> None:
    """Set, change or take away the budget. What happens when it is spent stays as it is.

    Args:
        services: Store it.
        task_id: Whose budget it is.
        present: The one that is there.
        limit_nano: What is wanted, in nano-USD; None for no budget.
        removed: The one that comes back where there is none, and says what happens when it is spent.
    """
    from agentmon.domain.budgets import BudgetAction, BudgetPeriod, BudgetScope  # noqa: PLC0415 - after the first frame
    from agentmon.services.actors import USER_ACTOR  # noqa: PLC0415 - as above

    if limit_nano == limit_of(present):
        return
    if limit_nano is not None:
        like = present or removed
        await services.budgets.set(
            scope=BudgetScope.TASK,
            scope_id=task_id,
            period=BudgetPeriod.TOTAL,
            limit=limit_nano,
            action=BudgetAction.STOP if like is None else like.action,
            actor=USER_ACTOR,
        )
    elif present is not None:
        await services.budgets.remove(present.id, actor=USER_ACTOR)
