"""Every step of a card's life, for each agent in both modes: after it the rows are what the mock model counted."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pytest

from agentmon.domain.approvals import ApprovalStatus
from agentmon.domain.errors import ConflictError
from agentmon.domain.execution_status import ExecutionStatus
from agentmon.domain.live_state import LiveState
from agentmon.domain.task_status import TaskStatus
from agentmon.services.actors import USER_ACTOR
from tests.agents.counts import PRICES, Expected, count, counted
from tests.agents.drive import DEADLINE_S
from tests.agents.test_states import kill, require_asked
from tests.app_program import START
from tests.terminals import terminal
from tests.waiting import until

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping
    from pathlib import Path

    from agentmon.domain.approvals import ApprovalListing
    from agentmon.domain.executions import Execution
    from agentmon.domain.tasks import Task
    from tests.agents.drive import Drive
    from tests.live_home import LiveHome

pytestmark = [pytest.mark.agents, pytest.mark.usefixtures("changes")]

KEEPS_WHAT_WAS_SAID = frozenset({"claude"})
"""Writes down what it had said when it was interrupted in its own screen."""
WRITES_AS_IT_SPEAKS = frozenset({"opencode"})
"""Writes down in its own screen what it says, some moments behind that."""
CALLS_WHEN_OVER = frozenset({"gemini"})
"""Writes a call down when that is over."""
DENIAL_ABORTS = frozenset({"codex", "gemini"})
"""A denial in its own screen aborts the turn, and its file tells that as it tells an interrupt."""
BILLS_BEHIND_CALLS = frozenset({"opencode"})
"""Tells what an answer took when the calls that it asked for are over."""
COPIES_NOTHING = frozenset({"gemini"})
_ESCALATED = {"sandbox_permissions": "require_escalated", "justification": "May I?"}
SAID, WORKED = {"text": "I have read it."}, {"text": "It is done."}
HELD = {"words": 40, "holds": True}
AND_THIS = "and this #mock:plain"


def steps(*answers: Mapping[str, object]) -> str:
    return f"go #mock:{json.dumps(list(answers))}"


def shell(command: str) -> dict[str, object]:
    """Return a step that calls the shell in a way that every agent asks about."""
    return {"text": "I run it.", "tools": [["shell", {"command": command, "extra": _ESCALATED}]]}


@dataclass(kw_only=True)
class Life:
    """One card and what was said to its agent."""

    drive: Drive
    home: LiveHome
    capability_key: str
    task: Task | None = None
    expected: Expected = field(default_factory=lambda: Expected(column=TaskStatus.TODO, state=None, sessions=0))
    files: frozenset[Path] = frozenset()
    """What was in the project before its agent began."""

    @property
    def is_own_screen(self) -> bool:
        return self.capability_key == "screen"

    @property
    def column_at_the_end(self) -> TaskStatus:
        has_changed = self.files != frozenset(self.drive.project.iterdir())
        return TaskStatus.REVIEW if has_changed else TaskStatus.DONE

    @property
    def slug(self) -> str:
        return self.drive.agent.slug

    async def add(self, prompt: str) -> Task:
        more = {"permission_mode": "ask"} if (self.slug, self.capability_key) == ("codex", "screen") else {}
        self.task = await self.drive.add(prompt, capability_key=self.capability_key, **more)
        return self.task

    async def run(self, *answers: Mapping[str, object]) -> Execution:
        prompt = steps(*answers)
        task = await self.add(prompt)
        self.expected.said.append(prompt)
        self.expected.sessions = 1
        self.files = frozenset(self.drive.project.iterdir())
        return await self.drive.services.queue.run(task.id, actor=USER_ACTOR, environ=self.drive.agent.environ)

    async def say(self, text: str) -> Execution:
        assert self.task is not None
        sent = await self.drive.services.conversations.send(self.task.id, text, actor=USER_ACTOR)
        self.expected.said.append(text)
        return sent.execution

    async def until_asked(self, execution: Execution) -> ApprovalListing:
        """Wait for a request that can be answered from here."""

        async def is_asked() -> ApprovalListing | None:
            pending = await self.drive.services.approvals.inbox(None)
            own = [one for one in pending if one.approval.execution_id == execution.id]
            return next((one for one in own if one.approval.typed or not self.is_own_screen), None)

        found: ApprovalListing = await self.drive.until(is_asked, "a request")
        return found

    async def until_speaking(self, execution: Execution) -> None:
        """Wait until the model holds an answer whose first words the agent has, which has written down its prompt."""
        log = self.drive.services.paths.execution_dir(execution.id) / "output.log"

        async def has_spoken() -> bool:
            if not any(one["is_held"] for one in self.drive.answered()):
                return False
            # Not every screen draws what it has at once.
            return bool(self.drive.texts(execution, "user")) and (self.is_own_screen or b"word3" in log.read_bytes())

        await self.drive.until(has_spoken, "the first words")

    def breaks_off(self, *, is_interrupted: bool) -> None:
        """The answer is broken off: a protocol has told its beginning, a screen's file tells what the agent kept."""
        keeps = not self.is_own_screen or (is_interrupted and self.slug in KEEPS_WHAT_WAS_SAID)
        self.expected.keeps_broken_text = self.expected.keeps_broken_usage = keeps
        self.expected.may_keep_broken_text = self.slug in WRITES_AS_IT_SPEAKS

    async def rests(self, execution: Execution) -> None:
        """The turn is done: its run in its own screen waits, that in a protocol is over."""
        if self.is_own_screen:
            self.expects(TaskStatus.IN_PROGRESS, LiveState.NEEDS_YOU)
        else:
            ended = await self.drive.until_over(execution)
            assert ended.status is ExecutionStatus.SUCCEEDED, f"{ended.error} {self.drive.story()}"
            self.expects(self.column_at_the_end, LiveState.DONE)

    async def finishes(self, execution: Execution) -> Execution:
        await self.drive.services.conversations.finish(execution.task_id, actor=USER_ACTOR)
        ended = await self.drive.until_over(execution)
        self.expects(self.column_at_the_end, LiveState.DONE)
        return ended

    async def over(self, *answers: Mapping[str, object]) -> Execution:
        """Have one whole run, and let its conversation be as old as the agent needs it to be to go on with it."""
        started = await self.run(*answers)
        await self.rests(started)
        if self.is_own_screen:
            await self.equal()
            return await self.finishes(started)
        if self.slug == "gemini":
            # It loses a conversation that is resumed in the minute of its beginning, which the name of its file tells.
            ref = (await self.drive.session_of(started)).session_ref or ""
            (chat,) = self.drive.home.glob(f".gemini/tmp/*/chats/session-*-{ref[:8]}.jsonl")
            chat.rename(chat.with_name(f"session-2026-01-01T00-00-{ref[:8]}.jsonl"))
        return await self.drive.until_over(started)

    def expects(self, column: TaskStatus, state: LiveState | None) -> None:
        self.expected.column, self.expected.state = column, state

    async def equal(self) -> None:
        """Wait until the rows are what the mock model counted."""
        assert self.task is not None
        task_id = self.task.id
        found: list[str] = []

        async def are_equal() -> bool:
            rows = await count(self.drive, task_id)
            model = vars(counted(self.drive, self.expected, rows))
            found[:] = [f"{name}: {one}, not {model[name]}" for name, one in vars(rows).items() if one != model[name]]
            return not found

        try:
            await until(are_equal, deadline_s=DEADLINE_S)
        except AssertionError:
            raise AssertionError("\n".join(found)) from None

    async def equal_after_all_is_read(self) -> None:
        """Read all that the agent wrote down, which has to change nothing."""
        await self.equal()
        await self.drive.services.costs.import_history()
        await self.drive.services.costs.import_conversations(rescan=True)
        await self.equal()


async def create(life: Life) -> None:
    await life.add(steps(SAID))


async def watch(life: Life) -> None:
    (life.drive.project / "notes.txt").write_text("a note\n")
    started = await life.run({"text": "I read.", "tools": [["read", {"path": "notes.txt"}]]}, HELD)
    if (life.slug, life.is_own_screen) == ("codex", False):
        # It reads by its shell, about which it asks in the mode of these tests.
        await life.drive.allow(await life.until_asked(started))
        life.expected.requests = [ApprovalStatus.ALLOWED]
    await life.until_speaking(started)
    life.expects(TaskStatus.IN_PROGRESS, LiveState.RUNNING)
    life.expected.calls = [("read", "success")]
    life.expected.keeps_broken_usage = not life.is_own_screen
    await life.equal()
    life.drive.release()
    await life.rests(started)


async def allow(life: Life) -> None:
    started = await life.run(shell("touch allowed"), WORKED)
    asked = await life.until_asked(started)
    assert not (life.drive.project / "allowed").exists()
    life.expects(TaskStatus.IN_PROGRESS, LiveState.NEEDS_YOU)
    life.expected.calls = [] if life.slug in CALLS_WHEN_OVER and life.is_own_screen else [("execute", "pending")]
    life.expected.requests = [ApprovalStatus.PENDING]
    life.expected.is_billed = life.slug not in BILLS_BEHIND_CALLS
    await life.equal()
    life.expected.is_billed = True
    await life.drive.allow(asked)
    life.expected.calls, life.expected.requests = [("execute", "success")], [ApprovalStatus.ALLOWED]
    await life.rests(started)
    await life.equal()
    assert (life.drive.project / "allowed").exists()


async def deny(life: Life) -> None:
    # Gemini CLI forgets a call that was denied, so that the model would ask for the same again.
    reason = "not here #mock:plain"
    started = await life.run(shell("touch denied"), WORKED)
    await life.drive.deny(await life.until_asked(started), reason)
    if (life.slug, life.is_own_screen) != ("claude", False):
        # That one has the reason as what came of its call.
        await require_asked(life.drive, reason)
        life.expected.said.append(reason)
    status = "cancelled" if life.slug in DENIAL_ABORTS and life.is_own_screen else "blocked"
    life.expected.calls, life.expected.requests = [("execute", status)], [ApprovalStatus.DENIED]
    await life.rests(started)
    await life.equal()
    assert not (life.drive.project / "denied").exists()


async def message_while_it_works(life: Life) -> None:
    started = await life.run(HELD)
    await life.until_speaking(started)
    assert await life.say(AND_THIS) == await life.drive.services.executions.get(started.id)
    life.drive.release()
    await life.rests(started)


async def message_when_it_is_done(life: Life) -> None:
    if not life.is_own_screen:
        await life.over(SAID)
        await life.rests(await life.say(AND_THIS))
        return
    started = await life.run(SAID)
    await life.rests(started)
    await life.equal()
    assert (await life.say(AND_THIS)).id == started.id


async def interrupt(life: Life) -> None:
    started = await life.run(HELD)
    await life.until_speaking(started)
    await life.drive.services.conversations.interrupt(started.task_id, actor=USER_ACTOR)
    life.expects(TaskStatus.IN_PROGRESS, LiveState.NEEDS_YOU)
    life.breaks_off(is_interrupted=True)
    await life.equal()
    await life.say(AND_THIS)
    await life.rests(started)


async def resume(life: Life) -> None:
    first = await life.over(SAID)
    session = await life.drive.session_of(first)
    second = await life.drive.services.sessions.resume(session.id, AND_THIS, actor=USER_ACTOR)
    life.expected.said.append(AND_THIS)
    assert (second.parent_execution_id, second.session_id) == (first.id, session.id)
    await life.rests(second)


async def fork(life: Life) -> None:
    first = await life.over(SAID)
    session = await life.drive.session_of(first)
    if life.slug in COPIES_NOTHING:
        with pytest.raises(ConflictError, match="cannot copy"):
            await life.drive.services.sessions.fork(session.id, AND_THIS, actor=USER_ACTOR)
        assert "no way to copy" in session.cannot_fork
        return
    forked = await life.drive.services.sessions.fork(session.id, AND_THIS, actor=USER_ACTOR)
    life.expected.said.append(AND_THIS)
    life.expected.sessions = 2
    await life.rests(forked)


async def stop(life: Life) -> None:
    started = await life.run(HELD)
    await life.until_speaking(started)
    await life.drive.services.queue.stop(started.task_id, actor=USER_ACTOR)
    await life.drive.until_over(started)
    life.breaks_off(is_interrupted=False)
    life.expects(TaskStatus.TODO, LiveState.CANCELLED)


async def finish(life: Life) -> None:
    started = await life.run(HELD)
    await life.until_speaking(started)
    await life.drive.services.conversations.finish(started.task_id, actor=USER_ACTOR)
    life.drive.release()
    ended = await life.drive.until_over(started)
    assert ended.status is ExecutionStatus.SUCCEEDED, f"{ended.error} {life.drive.story()}"
    life.expects(TaskStatus.DONE, LiveState.DONE)


async def kill_the_worker(life: Life) -> None:
    started = await life.run(HELD)
    await life.until_speaking(started)
    await asyncio.to_thread(life.home.kill_worker)
    life.drive.release()
    await life.drive.services.workers.ensure_running()
    await life.rests(started)


async def kill_the_app(life: Life) -> None:
    """The app starts the run, and is killed while the agent asks."""
    prompt = steps(shell("touch allowed"), WORKED)
    await life.add(prompt)
    life.expected.said, life.expected.sessions = [prompt], 1
    argv = [sys.executable, "-c", START.format(extra="App = AgentmonApp"), str(life.drive.project)]
    with terminal(argv, os.environ) as app:
        await asyncio.to_thread(app.read_until, lambda output: b"go #mock" in output, "the card")
        app.send(b"r")

        async def is_started() -> Execution | None:
            found = life.drive.executions()
            return await life.drive.services.executions.get(found[0]["id"]) if found else None

        started = await life.drive.until(is_started, "a run")
        asked = await life.until_asked(started)
        os.killpg(app.process.pid, signal.SIGKILL)
    await life.drive.allow(asked)
    life.expected.calls, life.expected.requests = [("execute", "success")], [ApprovalStatus.ALLOWED]
    await life.rests(started)


async def kill_the_agent(life: Life) -> None:
    started = await life.run(HELD)
    await life.until_speaking(started)
    kill(await life.drive.services.executions.get(started.id))
    await life.drive.until_over(started)
    life.breaks_off(is_interrupted=False)
    life.expects(TaskStatus.BLOCKED, LiveState.FAILED)


STEPS: tuple[Callable[[Life], Awaitable[None]], ...] = (
    *(
        create,
        watch,
        allow,
        deny,
        message_while_it_works,
        message_when_it_is_done,
        interrupt,
        resume,
        fork,
        stop,
        finish,
    ),
    *(kill_the_worker, kill_the_app, kill_the_agent),
)


@pytest.mark.parametrize("step", STEPS, ids=lambda step: step.__name__)
@pytest.mark.parametrize("capability_key", ["work", "screen"])
async def test_the_rows_are_what_the_model_counted(
    drive: Drive, live_home: LiveHome, capability_key: str, step: Callable[[Life], Awaitable[None]]
) -> None:
    drive.services.paths.prices_file.parent.mkdir(parents=True, exist_ok=True)
    drive.services.paths.prices_file.write_text(PRICES)
    life = Life(drive=drive, home=live_home, capability_key=capability_key)
    await step(life)
    await life.equal_after_all_is_read()
