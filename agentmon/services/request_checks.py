"""What the doctor looks at of the inbox: requests that nobody has decided for long."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Final

from agentmon.domain.amounts import duration_text
from agentmon.services.findings import fine, warning

if TYPE_CHECKING:
    from agentmon.domain.clock import Clock
    from agentmon.services.findings import Finding
    from agentmon.store.approvals import ApprovalRepository

_LONG: Final = timedelta(hours=1)


class RequestChecks:
    """Looks at what waits for a person; nothing is changed."""

    def __init__(self, *, approvals: ApprovalRepository, clock: Clock) -> None:
        self._approvals = approvals
        self._clock = clock

    async def waiting(self) -> Finding:
        """Return whether agents have waited for a decision for more than an hour."""
        now = self._clock.now()
        waiting = await self._approvals.pending(None)
        late = [listing for listing in waiting if now - listing.approval.asked_at > _LONG]
        if not late:
            count = len(waiting) + sum(listing.more for listing in waiting)
            return fine("requests", f"{count} wait for a decision" if waiting else "nobody waits for a decision")
        oldest = late[0]
        ago = duration_text((now - oldest.approval.asked_at).total_seconds())
        return warning(
            "requests",
            f"{len(late)} wait for a decision for more than an hour; the oldest, of #{oldest.task_number} in "
            f"{oldest.workspace_name}, for {ago}",
            hint="`agentmon inbox --all` lists them; `agentmon settings approvals.timeout_s SECONDS` lets agentmon "
            "deny what nobody decides",
        )
