from __future__ import annotations

import asyncio
import json
import shutil
import sqlite3
import tempfile
from collections import Counter
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeVar

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from agentmon.domain.agents import ToolType
from agentmon.domain.approvals import ApprovalScope, ApprovalStatus
from agentmon.domain.conversation import AskKind, AskNews
from agentmon.domain.errors import ConflictError, IllegalMoveError, NotFoundError
from agentmon.domain.execution_status import EndReason, ExecutionStatus
from agentmon.domain.executions import CommandType, ExecutionEnding, ExecutionProgress
from agentmon.domain.ids import ApprovalId, ExecutionId, TaskId, WorkerId, WorkspaceId
from agentmon.domain.life_cycles import require_execution_move, require_session_move, require_task_move
from agentmon.domain.refusals import Refusal, RefusalKind
from agentmon.domain.sessions import SessionStatus
from agentmon.domain.task_status import Priority, TaskStatus
from agentmon.domain.tasks import TaskDraft
from agentmon.services.actors import USER_ACTOR
from agentmon.store.database import Database
from agentmon.store.moments import moment_text
from tests.endings import end_without_journal, record
from tests.store.queue_model import Card, ModelAgent, QueueModel, RefusedError, Run
from tests.store.queue_place import NOON, QueuePlace, an_agent, make_queue_file, opened_queue, read_rows

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Mapping, Sequence
    from enum import StrEnum

pytestmark = pytest.mark.proof


_One = TypeVar("_One")

# Written out once more, as the data model draws them.
TASKS_DRAWN: Final = {
    "todo": {"in_progress", "blocked", "review", "done", "cancelled"},
    "in_progress": {"todo", "blocked", "review", "done", "cancelled"},
    "blocked": {"todo", "in_progress", "review", "done", "cancelled"},
    "review": {"todo", "in_progress", "blocked", "done", "cancelled"},
    "done": {"todo", "in_progress", "blocked", "review"},
    "cancelled": {"todo", "in_progress", "blocked", "review"},
}
EXECUTIONS_DRAWN: Final = {
    "queued": {"running", "cancelled"},
    "running": {"cancelling", "finalizing"},
    "cancelling": {"finalizing"},
    "finalizing": {"succeeded", "failed", "timed_out", "cancelled"},
    "succeeded": set[str](),
    "failed": {"queued"},
    "cancelled": set[str](),
    "timed_out": set[str](),
}
SESSIONS_DRAWN: Final = {
    "planning": {"running", "waiting_for_input", "completed", "failed", "cancelled"},
    "running": {"waiting_for_input", "paused", "completed", "failed", "cancelled"},
    "waiting_for_input": {"running", "completed", "failed", "cancelled"},
    "paused": {"running", "waiting_for_input", "failed", "cancelled"},
    "completed": {"planning"},
    "failed": {"planning"},
    "cancelled": {"planning"},
}
SEEN_OVER_ONE_CHANGE: Final = EXECUTIONS_DRAWN | {
    # Through finalizing, and from there through failed, between two looks.
    "running": EXECUTIONS_DRAWN["running"] | EXECUTIONS_DRAWN["finalizing"] | {"queued"},
    "cancelling": EXECUTIONS_DRAWN["cancelling"] | {"cancelled"},
}

START: Final = AskNews(request_id="start", ask_kind=AskKind.START, title="May it start?")

# What fails is shown as it came: to make it smaller would take minutes.
QUICK: Final = settings(
    phases=[Phase.generate],
    database=None,
    report_multiple_bugs=False,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)

PARK_AFTER: Final = 2
AGENTS: Final = (
    an_agent("one", max_concurrent=1),
    an_agent("two", max_concurrent=2, tool_type=ToolType.AI_AGENT),
    an_agent("any", max_concurrent=0, tool_type=ToolType.SHELL_UTIL),
    an_agent("watch", max_concurrent=0, tool_type=ToolType.DAEMON),
)
WORKSPACE_LIMITS: Final = {"narrow": 2, "wide": 0}

_ends = st.sampled_from(
    [
        (ExecutionStatus.SUCCEEDED, EndReason.EXITED, 0),
        (ExecutionStatus.FAILED, EndReason.EXITED, 1),
        (ExecutionStatus.FAILED, EndReason.EXITED, 1),
        (ExecutionStatus.FAILED, EndReason.TERMINATED, None),
        (ExecutionStatus.FAILED, EndReason.START_FAILED, None),
        (ExecutionStatus.TIMED_OUT, EndReason.TIMED_OUT, 143),
        (ExecutionStatus.CANCELLED, EndReason.STOPPED, 143),
    ]
)
_picks = st.integers(min_value=0, max_value=11)
_agents = st.integers(min_value=0, max_value=len(AGENTS) - 1)
_words = st.sampled_from(["make", "make", "make", "try"])
_delays_s = st.sampled_from([None, None, None, -5, 5, 3600])


class Queue(RuleBasedStateMachine):
    """Everything that happens to cards and their runs, in any order, held against the model after every step."""

    def __init__(self, template: Path, workspaces: Mapping[str, WorkspaceId]) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp(prefix="amq-", dir=template.parent))
        self.path = self.folder / "a.db"
        shutil.copy(template, self.path)
        self.loop = asyncio.Runner()
        self.place = QueuePlace(
            database=Database(self.path), agents={agent.slug: agent for agent in AGENTS}, workspaces=workspaces
        )
        self.reader = sqlite3.connect(self.path, isolation_level=None)
        self.reader.row_factory = sqlite3.Row
        self.model = QueueModel(
            agents=[
                ModelAgent(
                    id=agent.id,
                    max_concurrent=agent.max_concurrent,
                    tool_type=agent.tool_type,
                )
                for agent in AGENTS
            ],
            workspace_limits={workspaces[name]: limit for name, limit in WORKSPACE_LIMITS.items()},
        )
        self.at = NOON
        self.last_stretch: ExecutionProgress | None = None
        self.seen_events = self.rows("SELECT * FROM task_events ORDER BY id")
        self.seen_runs: dict[str, sqlite3.Row] = {}
        self.seen_cards: dict[str, sqlite3.Row] = {}

    def teardown(self) -> None:
        self.reader.close()
        self.loop.run(self.place.database.close())
        self.loop.close()
        shutil.rmtree(self.folder)

    # Ways to the database

    def rows(self, query: str, *parameters: str) -> list[sqlite3.Row]:
        return self.reader.execute(query, parameters).fetchall()

    def do(self, change: Coroutine[object, object, _One], in_model: Callable[[], object]) -> _One | None:
        """Make a change in both; the one may refuse what the other refuses, and only that."""
        try:
            in_model()
        except RefusedError:
            with pytest.raises((ConflictError, NotFoundError)):
                self.loop.run(change)
            return None
        except BaseException:
            change.close()
            raise
        return self.loop.run(change)

    def slug(self, agent: ModelAgent) -> str:
        return next(slug for slug, found in self.place.agents.items() if found.id == agent.id)

    # Cards

    @initialize()
    def start_with_some_cards(self) -> None:
        for workspace, priority in (("narrow", 3), ("wide", 3), ("narrow", 2)):
            self.add_task(workspace, priority, [])

    @rule(
        workspace=st.sampled_from(["narrow", "wide"]),
        priority=st.integers(1, 5),
        after=st.lists(_picks, max_size=2),
    )
    def add_task(self, workspace: str, priority: int, after: list[int]) -> None:
        workspace_id = self.place.workspaces[workspace]
        neighbours = [card for card in self.model.cards if card.workspace == workspace_id and not card.is_deleted]
        needs = [neighbours[pick % len(neighbours)] for pick in after] if neighbours else []
        numbers = [card.number for card in needs]
        task = self.loop.run(self.place.add_task(workspace, priority=Priority(priority), after=numbers, at=self.at))
        card = Card(id=task.id, number=task.number, workspace=workspace_id, priority=priority)
        self.model.added(card, needs)

    @rule(pick=_picks, priority=st.integers(1, 5))
    def edit(self, pick: int, priority: int) -> None:
        card = _choose([run.card for run in self.model.live] or self.model.cards, pick)
        version = self.rows(f"SELECT version FROM tasks WHERE id = '{card.id}'")[0]["version"]
        draft = TaskDraft(title="a task", priority=Priority(priority))
        edit = self.place.tasks.edit(
            TaskId(card.id), draft, expected_version=version, next_run_at=None, actor=USER_ACTOR, at=self.at
        )
        self.do(edit, lambda: self.model.edited(card, priority))

    @rule(pick=_picks, column=st.sampled_from(TaskStatus), index=st.sampled_from([None, None, 0, 3]))
    def move(self, pick: int, column: TaskStatus, index: int | None) -> None:
        card = _choose(self.model.cards, pick)
        move = self.place.tasks.move(TaskId(card.id), column, index=index, actor=USER_ACTOR, at=self.at)
        self.do(move, lambda: self.model.moved(card, column, at=self.at))

    @precondition(lambda self: self.model.live)
    @rule(pick=_picks, column=st.sampled_from([TaskStatus.DONE, TaskStatus.DONE, TaskStatus.CANCELLED]))
    def close_what_runs(self, pick: int, column: TaskStatus) -> None:
        card = _choose(self.model.live, pick).card
        self.move(self.model.cards.index(card), column, None)

    @rule(pick=_picks)
    def delete(self, pick: int) -> None:
        card = _choose(self.model.cards, pick)
        self.do(
            self.place.tasks.delete(TaskId(card.id), actor=USER_ACTOR, at=self.at), lambda: self.model.deleted(card)
        )

    @precondition(lambda self: any(card.is_deleted for card in self.model.cards))
    @rule(pick=_picks)
    def restore(self, pick: int) -> None:
        card = _choose([card for card in self.model.cards if card.is_deleted], pick)
        self.do(
            self.place.tasks.restore(TaskId(card.id), actor=USER_ACTOR, at=self.at), lambda: self.model.restored(card)
        )

    @rule(pick=_picks)
    def archive(self, pick: int) -> None:
        card = _choose(self.model.cards, pick)
        self.do(
            self.place.archive.archive(TaskId(card.id), actor=USER_ACTOR, at=self.at), lambda: self.model.archived(card)
        )

    @precondition(lambda self: any(card.is_archived for card in self.model.cards))
    @rule(pick=_picks)
    def unarchive(self, pick: int) -> None:
        card = _choose([card for card in self.model.cards if card.is_archived], pick)
        self.do(
            self.place.archive.unarchive(TaskId(card.id), next_run_at=None, actor=USER_ACTOR, at=self.at),
            lambda: self.model.unarchived(card),
        )

    @precondition(lambda self: any(run.asks for run in self.model.runs))
    @rule(pick=_picks)
    def start_anyway(self, pick: int) -> None:
        card = _choose([run.card for run in self.model.runs if run.asks], pick)
        start = self.place.executions.start_anyway(TaskId(card.id), actor=USER_ACTOR, at=self.at)
        started: list[bool] = []
        execution = self.do(start, lambda: started.append(self.model.started_anyway(card)))
        assert [execution is not None] == started

    @precondition(lambda self: any(card.needs and not card.is_deleted for card in self.model.cards))
    @rule(pick=_picks, drops=_picks, adds=st.booleans())
    def change_what_is_waited_for(self, pick: int, drops: int, *, adds: bool) -> None:
        card = _choose([card for card in self.model.cards if card.needs and not card.is_deleted], pick)
        dropped = _choose(card.needs, drops)
        # What is younger cannot be waited for in a ring.
        older = [
            one for one in self.model.cards if one.workspace == card.workspace and one.number < card.number and adds
        ]
        added = [one for one in older if not one.is_deleted][drops % 2 :: 2]
        change = self.place.dependencies.change(
            TaskId(card.id),
            added=[one.number for one in added],
            removed=[dropped.number],
            actor=USER_ACTOR,
            at=self.at,
        )
        self.do(change, lambda: self.model.waits_changed(card, added, [dropped]))

    # The queue

    @rule(
        pick=_picks,
        agent=_agents,
        max_retries=st.integers(0, 2),
        wait_s=_delays_s,
        word=_words,
        when_ready=st.booleans(),
        is_held=st.sampled_from([False, False, False, True]),
    )
    def enqueue(
        self,
        pick: int,
        agent: int,
        max_retries: int,
        wait_s: float | None,
        word: str,
        *,
        when_ready: bool,
        is_held: bool = False,
    ) -> None:
        card, chosen = _choose(self.model.cards, pick), self.model.agents[agent]
        not_before = None if wait_s is None else self.at + timedelta(seconds=wait_s)
        run = Run(
            id="",
            card=card,
            agent=chosen,
            max_retries=max_retries,
            created_at=self.at,
            queued_at=self.at,
            args=word,
            is_held=is_held,
        )
        execution = self.do(
            self.place.enqueue(
                TaskId(card.id),
                self.slug(chosen),
                max_retries=max_retries,
                not_before=not_before,
                may_wait=when_ready,
                args={"word": word},
                start_approval=START if is_held else None,
                at=self.at,
            ),
            lambda: self.model.enqueued(run, not_before=not_before, when_ready=when_ready, at=self.at),
        )
        if execution is not None:
            run.id = execution.id

    @precondition(lambda self: any(run.is_held for run in self.model.runs))
    @rule(pick=_picks, is_allowed=st.booleans())
    def decide_a_start(self, pick: int, *, is_allowed: bool) -> None:
        run = _choose([run for run in self.model.runs if run.is_held], pick)
        (request,) = self.rows("SELECT id FROM approvals WHERE status = 'pending' AND execution_id = ?", run.id)
        decide = self.place.approvals.decide(
            ApprovalId(request["id"]),
            status=ApprovalStatus.ALLOWED if is_allowed else ApprovalStatus.DENIED,
            scope=ApprovalScope.ONCE,
            actor=USER_ACTOR,
            reason="",
            answer={},
            rule_id=None,
            seen_digest="",
            at=self.at,
        )
        self.do(decide, lambda: self.model.start_decided(run, is_allowed=is_allowed, at=self.at))

    @rule(pick=_picks, word=st.sampled_from([CommandType.STOP, CommandType.KILL]))
    def stop(self, pick: int, word: CommandType) -> None:
        with_runs = [card for card in self.model.cards if card.open_run] or self.model.cards
        card = _choose(with_runs, pick)
        stop = self.place.executions.request_stop(TaskId(card.id), command_type=word, actor=USER_ACTOR, at=self.at)
        self.do(stop, lambda: self.model.stopped(card, word.value, at=self.at))

    @precondition(lambda self: self.model.live)
    @rule(halts_running=st.booleans())
    def pause(self, *, halts_running: bool) -> None:
        pause = self.place.pauses.pause(halts_running=halts_running, actor=USER_ACTOR, at=self.at)
        self.do(pause, lambda: self.model.paused(halts_running=halts_running))

    @precondition(lambda self: self.model.is_paused)
    @rule()
    def resume(self) -> None:
        self.do(self.place.pauses.resume(actor=USER_ACTOR, at=self.at), self.model.resumed)

    @rule(agent=_agents)
    def release(self, agent: int) -> None:
        chosen = self.model.agents[agent]
        release = self.place.parking.release(self.place.agents[self.slug(chosen)].id, actor=USER_ACTOR, at=self.at)
        self.do(release, lambda: self.model.released(chosen, at=self.at))

    # The worker

    @precondition(lambda self: not self.model.is_paused and any(card.open_run for card in self.model.cards))
    @rule()
    def claim_all_there_is(self) -> None:
        before = -1
        while len(self.model.live) != before:
            before = len(self.model.live)
            self.claim(max_running=100, limit=3)
        assert not self.model.ready(park_after=PARK_AFTER, at=self.at)

    @precondition(lambda self: not self.model.is_paused)
    @rule(pick=_picks, agent=_agents, max_retries=st.integers(0, 2), word=_words)
    def run_at_once(self, pick: int, agent: int, max_retries: int, word: str) -> None:
        idle = [
            card
            for card in self.model.cards
            if card.is_open and not card.is_archived and not card.open_run and not card.waits
        ]
        if idle:
            self.enqueue(self.model.cards.index(_choose(idle, pick)), agent, max_retries, None, word, when_ready=False)
            self.check()
            self.claim(max_running=100, limit=4)

    @precondition(lambda self: not self.model.is_paused)
    @rule(
        pick=_picks,
        agent=_agents,
        max_retries=st.sampled_from([0, 0, 1]),
        word=_words,
        ends=st.lists(_ends, min_size=1, max_size=3),
    )
    def run_to_an_end(
        self,
        pick: int,
        agent: int,
        max_retries: int,
        word: str,
        ends: list[tuple[ExecutionStatus, EndReason, int | None]],
    ) -> None:
        for number, end in enumerate(ends):
            self.run_at_once(pick + number, agent, max_retries, word)
            self.check()
            if self.model.live:
                self.record_the_end(-1, end, output=False, spoils=False)
                self.check()

    def check(self) -> None:
        self.the_database_is_as_the_model_says()
        self.every_change_is_one_that_is_drawn()
        self.every_change_is_told_once_with_who_made_it()

    @precondition(lambda self: not self.model.is_paused and any(_waits_for_a_time(run) for run in self.model.runs))
    @rule(pick=_picks)
    def wait_for_one_and_claim(self, pick: int) -> None:
        run = _choose([run for run in self.model.runs if _waits_for_a_time(run)], pick)
        assert run.not_before is not None
        self.at = max(self.at, run.not_before)
        self.claim(max_running=100, limit=4)

    @rule(max_running=st.sampled_from([0, 1, 2, 5]), limit=st.integers(1, 4))
    def claim(self, max_running: int, limit: int) -> None:
        self.model.clock_seen(self.at)
        ready = self.model.ready(park_after=PARK_AFTER, at=self.at)
        room = max(0, max_running - len(self.model.live))
        rooms = {run.agent.id: self.model.agent_room(run.agent, park_after=PARK_AFTER) for run in ready}
        rooms |= {run.card.workspace: self.model.workspace_room(run.card.workspace) for run in ready}

        claimed = self.loop.run(
            self.place.claims.claim(
                worker_id=WorkerId("w"), max_running=max_running, park_after=PARK_AFTER, limit=limit, at=self.at
            )
        )

        taken = [_with_id(ready, one.execution.id) for one in claimed]
        assert taken == [run for run in ready if run in taken], "not in the order of the queue"
        assert len(taken) <= min(limit, room)
        used = Counter(run.agent.id for run in taken) + Counter(run.card.workspace for run in taken)
        assert all(count <= rooms[name] for name, count in used.items())
        if ready and room:
            assert taken[:1] == ready[:1], "what comes first could have been taken"
        for run in taken:
            self.model.claimed(run)
        assert [one.task.status for one in claimed] == [run.card.status for run in taken]

    @precondition(lambda self: self.model.live)
    @rule(pick=_picks, end=_ends, output=st.booleans(), spoils=st.booleans())
    def record_the_end(
        self, pick: int, end: tuple[ExecutionStatus, EndReason, int | None], *, output: bool, spoils: bool
    ) -> None:
        run = _choose(self.model.live, pick)
        status, reason, exit_code = end
        ending = ExecutionEnding(
            status=status,
            ended_at=self.at,
            reason=reason,
            exit_code=exit_code,
            may_retry=reason is not EndReason.START_FAILED,
        )
        if output:
            self.record(run, None)
        if spoils:
            self.record(run, ending, from_offset=run.offset + 7)
        self.record(run, ending)

    @precondition(lambda self: self.model.live)
    @rule(pick=_picks)
    def record_that_it_could_not_be_started(self, pick: int) -> None:
        ending = ExecutionEnding(
            status=ExecutionStatus.FAILED, ended_at=self.at, reason=EndReason.START_FAILED, error="tmux hangs"
        )
        self.record(_choose(self.model.live, pick), ending)

    @precondition(lambda self: self.model.live)
    @rule(pick=_picks, kind=st.sampled_from(RefusalKind), until_s=st.sampled_from([None, -60, 120, 7200]))
    def record_a_refusal(self, pick: int, kind: RefusalKind, until_s: float | None) -> None:
        until = None if until_s is None else self.at + timedelta(seconds=until_s)
        ending = ExecutionEnding(
            status=ExecutionStatus.FAILED,
            ended_at=self.at,
            reason=EndReason.EXITED,
            exit_code=1,
            refusal=Refusal(kind=kind, text="come back later", until=until, advice="wait"),
        )
        self.record(_choose(self.model.live, pick), ending)

    @precondition(lambda self: self.last_stretch is not None)
    @rule()
    def record_the_same_again(self) -> None:
        assert self.last_stretch is not None
        run = _with_id(self.model.runs, self.last_stretch.execution_id)
        if not run.is_live or run.offset != self.last_stretch.from_offset:
            assert not self.loop.run(
                record(self.place.database, [self.last_stretch], park_after=PARK_AFTER, at=self.at)
            )

    @precondition(lambda self: self.model.runs)
    @rule(pick=_picks)
    def lose(self, pick: int) -> None:
        run = _choose(self.model.live or self.model.runs, pick)
        ending = ExecutionEnding(
            status=ExecutionStatus.FAILED, ended_at=self.at, reason=EndReason.LOST, error="lost: its host died"
        )
        was_live = run.is_live

        over = self.loop.run(
            end_without_journal(self.place.database, ExecutionId(run.id), ending, park_after=PARK_AFTER, at=self.at)
        )

        expected = {run.id: self.model.ended(run, ending, park_after=PARK_AFTER, at=self.at)} if was_live else {}
        assert over == expected

    @rule(step_s=st.sampled_from([1, 3, 60, 120, 1200, 7300, -1, -60, -7200]))
    def let_time_pass(self, step_s: int) -> None:
        self.at += timedelta(seconds=step_s)

    def record(self, run: Run, ending: ExecutionEnding | None, *, from_offset: int | None = None) -> None:
        start = run.offset if from_offset is None else from_offset
        stretch = ExecutionProgress(
            execution_id=ExecutionId(run.id), from_offset=start, to_offset=start + 10, last_line="a line", ending=ending
        )
        is_next = start == run.offset

        over = self.loop.run(record(self.place.database, [stretch], park_after=PARK_AFTER, at=self.at))

        if not is_next:
            assert not over
            return
        self.last_stretch = stretch
        run.offset = stretch.to_offset
        if ending is None:
            assert not over
        else:
            assert over == {run.id: self.model.ended(run, ending, park_after=PARK_AFTER, at=self.at)}

    # What must hold after each of them

    @invariant()
    def the_database_is_as_the_model_says(self) -> None:
        self.model.ask()
        cards = {row["id"]: row for row in self.rows("SELECT * FROM tasks")}
        assert {key: (row["status"], row["priority"], row["deleted_at"] is not None) for key, row in cards.items()} == {
            card.id: (card.status.value, card.priority, card.is_deleted) for card in self.model.cards
        }
        runs = {row["id"]: row for row in self.rows("SELECT * FROM executions")}
        told = (
            "status",
            "retry_count",
            "attempt",
            "not_before",
            "queued_at",
            "wait_reason",
            "wait_count",
            "args",
            "is_held",
            "activity",
            "activity_note",
        )
        assert {key: tuple(row[name] for name in told) for key, row in runs.items()} == {
            run.id: (
                run.status.value,
                run.retry_count,
                run.attempt,
                None if run.not_before is None else moment_text(run.not_before),
                moment_text(run.queued_at),
                run.wait_reason,
                run.wait_count,
                json.dumps({"word": run.args}, separators=(",", ":")),
                run.is_held,
                "waiting" if run.asks else None,
                START.title if run.is_held else run.asks,
            )
            for run in self.model.runs
        }
        assert {key: row["error"] for key, row in runs.items() if row["ended_at"] is None} == {
            run.id: run.error for run in self.model.runs if run.is_open
        }
        agents = self.rows("SELECT id, failure_streak, parked_until, park_reason FROM agents")
        assert {row["id"]: tuple(row)[1:] for row in agents} == {
            agent.id: (
                agent.streak,
                None if agent.parked_until is None else moment_text(agent.parked_until),
                agent.park_reason,
            )
            for agent in self.model.agents
        }

    @invariant()
    def the_promises_hold(self) -> None:
        runs = self.rows(
            "SELECT e.*, t.workspace_id, t.status AS card, t.priority AS card_priority, t.deleted_at"
            " FROM executions e JOIN tasks t ON t.id = e.task_id"
        )
        open_runs = [run for run in runs if run["status"] in {"queued", "running", "cancelling"}]
        assert max(Counter(run["task_id"] for run in open_runs).values(), default=0) <= 1
        live = [run for run in open_runs if run["status"] != "queued"]
        for agent in self.model.agents:
            assert not agent.max_concurrent or sum(run["agent_id"] == agent.id for run in live) <= agent.max_concurrent
        for workspace, limit in self.model.workspace_limits.items():
            assert not limit or sum(run["workspace_id"] == workspace for run in live) <= limit
        assert all(run["retry_count"] <= run["max_retries"] for run in runs)
        assert not [run for run in open_runs if run["card"] == "cancelled" or run["deleted_at"] is not None]
        assert not [run for run in live if run["error"] is not None], "that would say that they could not be stopped"
        queued = [run for run in open_runs if run["status"] == "queued"]
        assert [run["priority"] for run in queued] == [run["card_priority"] for run in queued]

    @invariant()
    def every_change_is_one_that_is_drawn(self) -> None:
        for row in (runs := self.rows("SELECT * FROM executions")):
            before = self.seen_runs.get(row["id"])
            # One that is new was queued first.
            source, target = "queued" if before is None else before["status"], row["status"]
            assert source == target or target in SEEN_OVER_ONE_CHANGE[source], (source, target)
            if before is not None and source != "queued" and target == "queued":
                assert row["attempt"] == before["attempt"] + 1
                assert before["status"] == "running"
        self.seen_runs = {row["id"]: row for row in runs}

    @invariant()
    def every_change_is_told_once_with_who_made_it(self) -> None:
        self.model.ask()
        events = self.rows("SELECT * FROM task_events ORDER BY id")
        assert events[: len(self.seen_events)] == self.seen_events
        fresh, self.seen_events = events[len(self.seen_events) :], events
        told = Counter((row["task_id"], row["actor_type"], row["event_type"]) for row in fresh)
        assert told == Counter(self.model.trail)
        assert all(row["actor_id"] for row in fresh if row["actor_type"] == "user")
        self.model.trail.clear()
        columns = {key: row["status"] for key, row in self.seen_cards.items()}
        for row in fresh:
            if row["event_type"] == "task_moved":
                self._follow_move(row, columns)
        self.seen_cards = {row["id"]: row for row in self.rows("SELECT * FROM tasks")}
        for row in self.seen_cards.values():
            assert row["status"] == columns.get(row["id"], "todo")

    @staticmethod
    def _follow_move(row: sqlite3.Row, columns: dict[str, str]) -> None:
        payload = json.loads(row["payload"])
        assert payload["from"] == columns.get(row["task_id"], "todo")
        assert payload["to"] in TASKS_DRAWN[payload["from"]]
        columns[row["task_id"]] = payload["to"]


def _choose(candidates: Sequence[_One], pick: int) -> _One:
    return candidates[pick % len(candidates)]


def _waits_for_a_time(run: Run) -> bool:
    return run.status is ExecutionStatus.QUEUED and run.not_before is not None


def _with_id(runs: Sequence[Run], run_id: str) -> Run:
    (found,) = [run for run in runs if run.id == run_id]
    return found


def test_whatever_happens_to_cards_and_their_runs_every_promise_holds(tmp_path: Path) -> None:
    workspaces = make_queue_file(tmp_path / "template.db", AGENTS, WORKSPACE_LIMITS)

    run_state_machine_as_test(
        lambda: Queue(tmp_path / "template.db", workspaces),  # type: ignore[arg-type] # any maker of a machine will do
        settings=settings(QUICK, max_examples=14, stateful_step_count=40),
    )


class Walks(RuleBasedStateMachine):
    """Moves of one card, one execution and one session, as they come."""

    def __init__(self) -> None:
        super().__init__()
        self.task: StrEnum = TaskStatus.TODO
        self.execution: StrEnum = ExecutionStatus.QUEUED
        self.session: StrEnum = SessionStatus.PLANNING

    @rule(status=st.sampled_from(TaskStatus))
    def move_the_task(self, status: TaskStatus) -> None:
        drawn = TASKS_DRAWN[self.task] | {self.task.value}
        self.task = self._step("task", require_task_move, self.task, status, drawn)

    @rule(status=st.sampled_from(ExecutionStatus))
    def move_the_execution(self, status: ExecutionStatus) -> None:
        drawn = EXECUTIONS_DRAWN[self.execution]
        self.execution = self._step("execution", require_execution_move, self.execution, status, drawn)

    @rule(status=st.sampled_from(SessionStatus))
    def move_the_session(self, status: SessionStatus) -> None:
        drawn = SESSIONS_DRAWN[self.session]
        self.session = self._step("session", require_session_move, self.session, status, drawn)

    @rule()
    def begin_another_execution(self) -> None:
        if not EXECUTIONS_DRAWN[self.execution]:
            self.execution = ExecutionStatus.QUEUED

    @staticmethod
    def _step(
        life_cycle: str, require_move: Callable[..., None], source: StrEnum, target: StrEnum, drawn: set[str]
    ) -> StrEnum:
        if target.value in drawn:
            require_move(source, target)
            return target
        with pytest.raises(IllegalMoveError) as caught:
            require_move(source, target)
        assert (caught.value.life_cycle, caught.value.source, caught.value.target) == (life_cycle, source, target)
        assert f"from {source} to {target}" in str(caught.value)
        return source


def test_a_random_walk_never_leaves_the_drawn_life_cycles() -> None:
    run_state_machine_as_test(Walks, settings=settings(QUICK, max_examples=60, stateful_step_count=50))


async def test_a_retry_has_the_priority_that_its_card_was_given_while_it_ran(tmp_path: Path) -> None:
    async with opened_queue(tmp_path / "a.db", AGENTS, WORKSPACE_LIMITS) as place:
        task = await place.add_task("wide")
        await place.enqueue(task.id, "any", max_retries=1)
        (claimed,) = await place.claims.claim(
            worker_id=WorkerId("w"), max_running=1, park_after=PARK_AFTER, limit=1, at=NOON
        )
        draft = TaskDraft(title="a task", priority=Priority.URGENT)
        failure = ExecutionEnding(status=ExecutionStatus.FAILED, ended_at=NOON, reason=EndReason.EXITED, exit_code=1)

        await place.tasks.edit(
            task.id, draft, expected_version=claimed.task.version, next_run_at=None, actor=USER_ACTOR, at=NOON
        )
        await end_without_journal(place.database, claimed.execution.id, failure, park_after=PARK_AFTER, at=NOON)

    (row,) = read_rows(tmp_path / "a.db", "SELECT status, priority FROM executions")
    assert tuple(row) == ("queued", 1)


async def test_a_card_that_was_closed_while_its_run_went_on_gets_no_retry(tmp_path: Path) -> None:
    async with opened_queue(tmp_path / "a.db", AGENTS, WORKSPACE_LIMITS) as place:
        task = await place.add_task("wide")
        await place.enqueue(task.id, "any", max_retries=1)
        (claimed,) = await place.claims.claim(
            worker_id=WorkerId("w"), max_running=1, park_after=PARK_AFTER, limit=1, at=NOON
        )
        failure = ExecutionEnding(status=ExecutionStatus.FAILED, ended_at=NOON, reason=EndReason.EXITED, exit_code=1)

        await place.tasks.move(task.id, TaskStatus.DONE, index=None, actor=USER_ACTOR, at=NOON)
        await end_without_journal(place.database, claimed.execution.id, failure, park_after=PARK_AFTER, at=NOON)

    (row,) = read_rows(tmp_path / "a.db", "SELECT e.status, t.status AS card FROM executions e, tasks t")
    assert tuple(row) == ("failed", "blocked")


async def test_the_card_of_a_stopped_run_waits_again_when_what_it_waits_for_was_opened(tmp_path: Path) -> None:
    async with opened_queue(tmp_path / "a.db", AGENTS, WORKSPACE_LIMITS) as place:
        first = await place.add_task("wide")
        await place.tasks.move(first.id, TaskStatus.DONE, index=None, actor=USER_ACTOR, at=NOON)
        task = await place.add_task("wide", after=[first.number])
        await place.enqueue(task.id, "any")
        (claimed,) = await place.claims.claim(
            worker_id=WorkerId("w"), max_running=1, park_after=PARK_AFTER, limit=1, at=NOON
        )
        stopped = ExecutionEnding(status=ExecutionStatus.CANCELLED, ended_at=NOON, reason=EndReason.STOPPED)

        await place.tasks.move(first.id, TaskStatus.TODO, index=None, actor=USER_ACTOR, at=NOON)
        during = (await place.tasks.get(task.id)).status
        await end_without_journal(place.database, claimed.execution.id, stopped, park_after=PARK_AFTER, at=NOON)
        after = (await place.tasks.get(task.id)).status

    assert (during, after) == (TaskStatus.IN_PROGRESS, TaskStatus.BLOCKED)
