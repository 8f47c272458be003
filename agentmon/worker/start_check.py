"""Whether a command that is about to start is the one that was judged, and allowed, when it was queued."""

from __future__ import annotations

import asyncio
import shlex
from typing import TYPE_CHECKING

from agentmon.domain.approvals import ApprovalStatus
from agentmon.domain.conversation import AskKind
from agentmon.domain.errors import RunnerError
from agentmon.domain.start_danger import start_danger
from agentmon.runners.danger import danger_rules_in_force
from agentmon.worker.preparation import asked_folder_of, command_of, folder_of
from agentmon.worker.requests import environment_words, start_digest

if TYPE_CHECKING:
    from agentmon.domain.approvals import Approval
    from agentmon.domain.executions import ClaimedExecution
    from agentmon.paths import Paths
    from agentmon.store.approvals import ApprovalRepository

_HINT = "run it again, so that it is judged as it is now"


async def require_as_queued(claimed: ClaimedExecution, *, approvals: ApprovalRepository, paths: Paths) -> None:
    """Refuse a command that has become another one while it waited: by its task, its program or its folder.

    What a conversation is told was kept when it was queued.

    Raises:
        RunnerError: It is not what was allowed, or nobody has allowed it and it would wait for leave now.
    """
    if claimed.execution.mode.is_conversation:
        return
    asked = [one for one in await approvals.of_execution(claimed.execution.id) if one.ask_kind is AskKind.START]
    allowed = next((one for one in reversed(asked) if one.status is ApprovalStatus.ALLOWED), None)
    await asyncio.to_thread(_require_as_queued, claimed, allowed, paths)


def _require_as_queued(claimed: ClaimedExecution, allowed: Approval | None, paths: Paths) -> None:
    rules = danger_rules_in_force(paths.danger_rules_file)
    command = command_of(claimed)
    words = (*environment_words(claimed.task.input_context.env_overrides, danger_rules=rules), *command)
    if allowed is not None:
        kept = folder_of(claimed.execution, paths).read_environment()
        search_path = None if kept is None else kept.get("PATH")
        found = start_digest(shlex.join(words), asked_folder_of(claimed), command, search_path=search_path)
        if found != allowed.input_digest:
            raise RunnerError(
                "what it would run, or where, or a file that it names, is not what was allowed any more", hint=_HINT
            )
        return
    finding = rules.judge(words)
    # What a person may type without being asked was kept when it was queued, so that it counts as typed.
    danger = start_danger(claimed.agent, claimed.capability, finding, is_typed=True)
    if danger.waits:
        raise RunnerError(f"it needs leave now, and nobody has given it: {danger.reason}", hint=_HINT)
