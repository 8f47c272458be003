"""Notices what began to wait for the person since the last look."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from agentmon.domain.notifications import Channel, NotificationKind
from agentmon.widgets.cells import cut, even_line
from agentmon.widgets.request_words import wish_words

if TYPE_CHECKING:
    from datetime import datetime

    from agentmon.bootstrap import Services
    from agentmon.domain.tasks import Workspace

_RING_EVERY_S: Final = 5.0
_TOAST_CELLS: Final = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class NewNeeds:
    """What is to be told."""

    toast: str = ""
    """One sentence; empty for none."""
    rings: bool = False


class NeedsWatch:
    """Remembers what was waiting, so that each thing is told once."""

    def __init__(self) -> None:
        self._known: set[str] | None = None
        self._rang_at: float | None = None

    async def find_news(self, services: Services, workspace: Workspace, now: datetime) -> NewNeeds:
        """Return what is new since the last call, and how it is told; nothing at the first."""
        told: dict[str, str] = {}
        for listing in await services.approvals.inbox(workspace.id):
            approval = listing.approval
            told[str(approval.id)] = f"#{listing.task_number} {wish_words(approval, folder=listing.working_dir)}"
        for one in await services.executions.without_request(workspace):
            note = even_line(one.execution.activity_note or "waits for a message")
            told[f"execution-{one.execution.id}"] = f"#{one.task_number} {note}"
        for one in await services.executions.ended_by_budgets(workspace):
            told[f"execution-{one.execution.id}"] = f"#{one.task_number} {even_line(one.execution.error or '')}"
        known, self._known = self._known, set(told)
        if known is None:
            return NewNeeds()
        new = [words for key, words in told.items() if key not in known]
        if not new:
            return NewNeeds()
        words = cut(new[0], _TOAST_CELLS)
        more = f" (and {len(new) - 1} more)" if len(new) > 1 else ""
        settings = await services.settings.notifications()
        channels = settings.channels_of(NotificationKind.NEEDS_YOU)
        return NewNeeds(
            toast=f"◆ {words}{more}\n6 shows what waits for you" if Channel.TOAST in channels else "",
            rings=Channel.BELL in channels and not settings.are_hours_quiet(now.astimezone()),
        )

    def may_ring(self, present_s: float) -> bool:
        """Whether the bell has not rung for a while; when it has not, it counts as rung now."""
        if self._rang_at is not None and present_s - self._rang_at < _RING_EVERY_S:
            return False
        self._rang_at = present_s
        return True
