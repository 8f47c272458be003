"""Runs that go on with a conversation that is over: its work did not pass, or a message came too late."""

from __future__ import annotations

import logging
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from agentmon.domain.errors import AgentmonError, RunnerError, StoreError
from agentmon.domain.execution_mode import ExecutionMode
from agentmon.domain.execution_status import EndReason, ExecutionStatus
from agentmon.domain.executions import ConversationStart, FollowUp
from agentmon.domain.ids import ExecutionId, new_id
from agentmon.runners.adapters.prompt import PERMISSION_MODE_ARGUMENT
from agentmon.runners.danger import danger_rules_in_force
from agentmon.runners.execution_folder import ExecutionFolder
from agentmon.threads import in_daemon_thread
from agentmon.worker.file_trust import require_trusted
from agentmon.worker.preparation import environment_of
from agentmon.worker.project_folders import find_project, find_repository
from agentmon.worker.requests import build_request

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from agentmon.domain.executions import ExecutionCommand, ExecutionRequest
    from agentmon.paths import Paths
    from agentmon.store.agent_files import AgentFileRepository
    from agentmon.store.agents import AgentRepository
    from agentmon.store.settling import SettlementRepository
    from agentmon.store.task_authors import TaskAuthorRepository
    from agentmon.worker.verifying import Verifier
    from agentmon.worker.watching import Watched

_log = logging.getLogger(__name__)


class FollowUps:
    """Finds out which runs go on, and makes the folders of those.

    Args:
        verifier: Says what an agent is told whose work did not pass.
        settlement: Knows what was said too late.
        agents: The programs of the machine, as they are now.
        agent_files: What is trusted of the files of projects.
        authors: Who wrote a task.
        paths: Where the folders of runs are.
    """

    def __init__(
        self,
        *,
        verifier: Verifier,
        settlement: SettlementRepository,
        agents: AgentRepository,
        agent_files: AgentFileRepository,
        authors: TaskAuthorRepository,
        paths: Paths,
    ) -> None:
        self._verifier = verifier
        self._settlement = settlement
        self._agents = agents
        self._agent_files = agent_files
        self._authors = authors
        self._paths = paths

    async def find(self, ended: Sequence[Watched]) -> Mapping[ExecutionId, FollowUp | None]:
        """Return what goes on with each of these that has to; None where that cannot be.

        Raises:
            StoreError: It is not known.
        """
        late = await self._settlement.late_messages([watched.id for watched in ended if _may_have_heard_late(watched)])
        return {
            watched.id: await self._find(watched, late.get(watched.id, ()))
            for watched in ended
            if watched.id in late or _is_unverified(watched)
        }

    async def _find(self, watched: Watched, late: Sequence[ExecutionCommand]) -> FollowUp | None:
        try:
            complaint = await self._verifier.complaint(watched) if _is_unverified(watched) else None
            if complaint is None and not late:
                return None
            said = [str(command.payload.get("text", "")) for command in late]
            text = "\n\n".join([*([] if complaint is None else [complaint.text]), *said])
            request = await self._request(watched, text)
            folder = ExecutionFolder(self._paths.execution_dir(ExecutionId(new_id())))
            await in_daemon_thread(partial(_make, folder, watched), name="follow-up")
        except StoreError:
            raise
        except (AgentmonError, OSError) as error:
            _log.warning("execution %s: its agent cannot go on: %s", watched.id, error)
            return None
        return FollowUp(
            id=ExecutionId(folder.path.name),
            request=request,
            log_file_path=str(folder.output_log),
            verify_retry=0 if complaint is None else complaint.verify_retry,
            verify_retries=0 if complaint is None else complaint.verify_retries,
            message_ids=frozenset(command.id for command in late),
        )

    async def _request(self, watched: Watched, text: str) -> ExecutionRequest:
        claimed = watched.claimed
        agent = await self._agents.find(claimed.agent.id)
        if agent is None:
            raise RunnerError("its program is gone")
        agent.require_usable(claimed.task.workspace_id)
        await require_trusted(self._agent_files, agent, claimed.workspace_root)
        working_dir = agent.work_folder(claimed.task.input_context.working_dir, claimed.workspace_root)
        is_typed = not await self._authors.has_agent(claimed.task.id)
        request = await in_daemon_thread(
            lambda: build_request(
                claimed.task,
                agent,
                agent.choose_capability(claimed.capability.key),
                args=claimed.execution.args,
                working_dir=working_dir,
                danger_rules=danger_rules_in_force(self._paths.danger_rules_file),
                is_typed=is_typed,
                known_mode=claimed.execution.args.get(PERMISSION_MODE_ARGUMENT),
                project=find_project(working_dir),
                repository=find_repository(working_dir),
                message=text,
                start=ConversationStart.RESUME,
                parent_execution_id=watched.id,
                own_screen=claimed.execution.mode is ExecutionMode.TMUX,
            ),
            name="follow-up",
        )
        return replace(request, sandbox=claimed.execution.sandbox)


def _may_have_heard_late(watched: Watched) -> bool:
    has_succeeded = watched.ending is not None and watched.ending.status is ExecutionStatus.SUCCEEDED
    return watched.claimed.execution.mode.is_protocol and (has_succeeded or _is_unverified(watched))


def _is_unverified(watched: Watched) -> bool:
    return watched.ending is not None and watched.ending.reason is EndReason.UNVERIFIED


def _make(folder: ExecutionFolder, watched: Watched) -> None:
    folder.make()
    folder.write_environment(environment_of(watched.claimed, watched.folder))
