"""What runs took and cost, in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentmon.domain.amounts import count_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from agentmon.domain.amounts import MoneyFormat
    from agentmon.domain.executions import Execution


def spent_words(executions: Sequence[Execution], money: MoneyFormat) -> str:
    """Return what the runs took together: ``$0.38, 12 K tokens``; empty for nothing.

    A run without a known cost is in no sum of money.
    """
    costs = [execution.cost_nano for execution in executions if execution.cost_nano is not None]
    tokens = sum(execution.tokens_used for execution in executions)
    parts = [money.text(sum(costs)) if costs else "", f"{count_text(tokens)} tokens" if tokens else ""]
    return ", ".join(part for part in parts if part)
