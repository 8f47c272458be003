"""What the command line says of alternatives: one thing done by several agents, each on a card of its own."""

from collections.abc import Sequence
from datetime import datetime

from agentmon.bootstrap import Services
from agentmon.cli.columns import table, terminal_width
from agentmon.cli.output import tell
from agentmon.domain.board import Card
from agentmon.domain.live_state import numbers_text
from agentmon.domain.task_status import TaskStatus
from agentmon.domain.tasks import Task


async def left_open(services: Services, taken: Task) -> tuple[int, ...]:
    """Return the alternatives to a task that are still open though it was taken; none while it was not."""
    if taken.status is not TaskStatus.DONE:
        return ()
    return tuple(one.number for one in await services.board.alternatives(taken.id) if one.is_on_offer)


def tell_left_open(numbers: Sequence[int], taken: int) -> None:
    """Say which alternatives are still open, and what lets them go."""
    if numbers:
        is_one = len(numbers) == 1
        what, them = ("is an alternative", "it") if is_one else ("are alternatives", "them")
        tell(f"{numbers_text(numbers)} {what} to #{taken}; agentmon task let-go {taken} cancels {them}")


def alternative_lines(cards: Sequence[Card], now: datetime) -> list[str]:
    """Return a line for each alternative, with what it changed, how that was verified, its cost and time."""
    rows = [(f"#{card.number}", card.status.label, *card.figures(now)) for card in cards]
    heads = ("TASK", "STATUS", "AGENT", "RUN", "CHANGES", "VERIFIED", "TIME", "COST")
    return table(heads, rows, terminal_width() - 4)
