"""A real agent on a real board: what a person does, and what the database has afterwards."""

from __future__ import annotations

import asyncio
import json
import os
import sqlite3
import urllib.request
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agentmon.domain.approvals import ApprovalScope, ApprovalStatus
from agentmon.domain.conversation import AskKind
from agentmon.domain.errors import ConflictError
from agentmon.domain.execution_status import ExecutionStatus
from agentmon.domain.tasks import InputContext, TaskDraft
from agentmon.services.actors import USER_ACTOR
from tests.agents.dialogs import AgentPane

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from agentmon.bootstrap import Services
    from agentmon.domain.activity import Activity
    from agentmon.domain.approvals import ApprovalListing
    from agentmon.domain.executions import Execution
    from agentmon.domain.sessions import Session
    from agentmon.domain.tasks import Task, Workspace
    from tests.agents.agent_homes import AgentHome

DEADLINE_S = float(os.environ.get("AGENTMON_AGENT_DEADLINE_S", "60"))
_LOOK_EVERY_S = 0.05

Row = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Drive:
    """One agent, one workspace and the services over them."""

    services: Services
    workspace: Workspace
    project: Path
    agent: AgentHome
    mock_url: str

    @property
    def home(self) -> Path:
        """The agent's own home."""
        return Path(self.agent.environ["HOME"])

    async def add(self, prompt: str, *, description: str = "", capability_key: str = "work", **args: object) -> Task:
        agent = await self.services.agents.by_slug(self.agent.slug)
        draft = TaskDraft(
            title=prompt,
            description=description,
            assignee_agent_id=agent.id,
            input_context=InputContext(
                capability_key=capability_key, args={**self.agent.args, **args}, env_passed=self.agent.passed
            ),
        )
        return await self.services.tasks.add(self.workspace, draft, actor=USER_ACTOR)

    async def start(
        self, prompt: str, *, description: str = "", capability_key: str = "work", **args: object
    ) -> Execution:
        task = await self.add(prompt, description=description, capability_key=capability_key, **args)
        return await self.services.queue.run(task.id, actor=USER_ACTOR, environ=self.agent.environ)

    async def until(self, condition: Callable[[], Any], what: str) -> Any:
        """Return what the asynchronous condition returns once that is true."""
        try:
            async with asyncio.timeout(DEADLINE_S):
                while not (found := await condition()):  # noqa: ASYNC110 - another process changes the rows
                    await asyncio.sleep(_LOOK_EVERY_S)
        except TimeoutError:
            raise AssertionError(f"{self.agent.slug}: {what} did not happen; {self.story()}") from None
        return found

    async def until_over(self, execution: Execution) -> Execution:
        async def is_over() -> Execution | None:
            found = await self.services.executions.get(execution.id)
            return None if found.status.is_open else found

        found: Execution = await self.until(is_over, "the end of the run")
        return found

    async def until_asked(self, execution: Execution, kind: AskKind | None = None) -> ApprovalListing:
        """Wait for a request of the execution, of one kind or any."""

        async def ask() -> ApprovalListing | None:
            pending = await self.services.approvals.inbox(None)
            own = [one for one in pending if one.approval.execution_id == execution.id]
            return next((one for one in own if kind in {None, one.approval.ask_kind}), None)

        found: ApprovalListing = await self.until(ask, "a request")
        return found

    async def until_active(self, execution: Execution, activity: Activity) -> Execution:
        async def is_so() -> Execution | None:
            found = await self.services.executions.get(execution.id)
            return found if found.activity is activity else None

        found: Execution = await self.until(is_so, f"the activity {activity.value}")
        return found

    async def until_operation(self, execution: Execution, status: str) -> Row:
        async def is_there() -> Row | None:
            return next((row for row in self.rows("operations", execution) if row["status"] == status), None)

        found: Row = await self.until(is_there, f"an operation that is {status}")
        return found

    async def allow(self, listing: ApprovalListing, scope: ApprovalScope = ApprovalScope.ONCE) -> None:
        approval = listing.approval
        await self.services.approvals.allow(
            approval.id, actor=USER_ACTOR, seen_digest=approval.input_digest, scope=scope
        )

    async def deny(self, listing: ApprovalListing, reason: str = "") -> None:
        approval = listing.approval
        await self.services.approvals.deny(
            approval.id, actor=USER_ACTOR, seen_digest=approval.input_digest, reason=reason
        )

    async def decide_budget(self, execution: Execution, decide: Callable[[ApprovalListing], Awaitable[None]]) -> None:
        """Decide on a spent budget; what its request tells of the money moves until the last answer is billed."""

        async def is_decided() -> bool:
            try:
                await decide(await self.until_asked(execution, AskKind.BUDGET))
            except ConflictError:
                return False
            return True

        await self.until(is_decided, "the decision on the budget")

    async def allow_all_until_over(self, execution: Execution) -> Execution:
        """Allow whatever is asked, until the run is over."""

        async def go_on() -> Execution | None:
            for listing in await self.services.approvals.inbox(None):
                if listing.approval.execution_id == execution.id:
                    await self.allow(listing)
            found = await self.services.executions.get(execution.id)
            return None if found.status.is_open else found

        found: Execution = await self.until(go_on, "the end of the run")
        return found

    async def session_of(self, execution: Execution) -> Session:
        found = await self.services.executions.get(execution.id)
        assert found.session_id is not None
        return await self.services.sessions.get(found.session_id)

    async def press(self, execution: Execution, *keys: str) -> None:
        """Press keys in a dialog of the agent's own screen, each once the one before is heard, by tmux's names."""
        session = (await self.services.executions.get(execution.id)).tmux_session_name
        assert session is not None
        pane = AgentPane(slug=self.agent.slug, socket=self.services.paths.tmux_socket, session=session)
        for key in keys:
            await pane.press(key)

    def asked(self) -> list[str]:
        """Return every text of a user that the model was asked, oldest first."""
        found: list[str] = self._look_at_mock("asked")
        return found

    def answered(self) -> list[Row]:
        """Return every answer of the model to a request that offered tools, oldest first; see the mock model."""
        found: list[Row] = self._look_at_mock("answered")
        return found

    def release(self) -> None:
        """Let the model go on with the answers that it holds, and hold no others."""
        self._look_at_mock("release")

    def _look_at_mock(self, what: str) -> Any:
        with urllib.request.urlopen(f"{self.mock_url}/{what}", timeout=10) as answer:
            return json.load(answer)[what]

    def executions(self) -> list[Row]:
        return self._select("SELECT * FROM executions ORDER BY id", ())

    def rows(self, table: str, execution: Execution) -> list[Row]:
        return self._select(f"SELECT * FROM {table} WHERE execution_id = ? ORDER BY id", (execution.id,))

    def _select(self, statement: str, values: tuple[str, ...]) -> list[Row]:
        connection = sqlite3.connect(self.services.paths.database_path)
        connection.row_factory = sqlite3.Row
        try:
            return [dict(row) for row in connection.execute(statement, values)]
        finally:
            connection.close()

    def texts(self, execution: Execution, role: str) -> list[str]:
        return [
            row["content"] for row in self.rows("messages", execution) if row["role"] == role and not row["is_thinking"]
        ]

    def approval_states(self, execution: Execution) -> list[ApprovalStatus]:
        return [ApprovalStatus(row["status"]) for row in self.rows("approvals", execution)]

    def story(self) -> str:
        """Return what the newest logs say, for a failed test."""
        logs = sorted(self.services.paths.executions_dir.glob("*/output.log"))
        tails = [log.read_text("utf-8", "replace")[-1500:] for log in logs[-2:]]
        for protocol in sorted(self.services.paths.executions_dir.glob("*/protocol.jsonl"))[-1:]:
            lines = [line[:300] for line in protocol.read_text("utf-8", "replace").splitlines() if "elta" not in line]
            tails.append("\n".join(lines[-25:]))
        return "\n--- log ---\n".join(["", *tails])


def require_succeeded(execution: Execution, drive: Drive) -> None:
    assert execution.status is ExecutionStatus.SUCCEEDED, f"{execution.status} {execution.error} {drive.story()}"
