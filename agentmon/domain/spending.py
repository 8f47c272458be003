"""What runs took and cost, in words."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from agentmon.domain.amounts import count_text

if TYPE_CHECKING:
    from agentmon.domain.amounts import MoneyFormat
    from agentmon.domain.executions import Execution


class Spent(NamedTuple):
    """What some runs took and cost together."""

    cost_nano: int | None = None
    """Nano-USD of the runs whose cost is known; None when that of none is."""
    tokens: int = 0
    unpriced_runs: int = 0
    """Runs that took tokens whose price is not known."""
    runs: int = 0

    @property
    def named(self) -> dict[str, int | None]:
        """The same under the names that documents have for it."""
        return {"cost_nano": self.cost_nano, "tokens_used": self.tokens, "unpriced_runs": self.unpriced_runs}

    def text(self, money: MoneyFormat) -> str:
        """Return money and tokens: ``$0.38, 12 K tokens``, ``$0.38 + ?, 12 K tokens``; empty for nothing."""
        return ", ".join(part for part in (self._cost_text(money), self._tokens_text) if part)

    def short_text(self, money: MoneyFormat) -> str:
        """Return the money, and the tokens only where no price is known; empty for nothing."""
        return self._cost_text(money) or self._tokens_text

    def _cost_text(self, money: MoneyFormat) -> str:
        if self.cost_nano is None or not (self.cost_nano or self.tokens):
            return ""
        return f"{money.text(self.cost_nano)}{' + ?' if self.unpriced_runs else ''}"

    @property
    def _tokens_text(self) -> str:
        return f"{count_text(self.tokens)} tokens" if self.tokens else ""


def spent_by(execution: Execution) -> Spent:
    """Return what one run took."""
    is_unpriced = execution.cost_nano is None and execution.tokens_used > 0
    return Spent(execution.cost_nano, execution.tokens_used, unpriced_runs=int(is_unpriced), runs=1)
