"""What follows from a command depends on its cause and its try, in whatever order they come."""

from __future__ import annotations

import asyncio
import shutil
import sqlite3
import tempfile
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest
from hypothesis import Phase, settings
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
from agentmon.domain.budgets import Budget, BudgetPeriod, BudgetScope, BudgetState, BudgetUnit, BudgetUse
from agentmon.domain.conversation import AskKind, AskNews
from agentmon.domain.errors import ConflictError
from agentmon.domain.execution_status import EndReason, ExecutionStatus
from agentmon.domain.executions import CommandCause, CommandType, ExecutionEnding
from agentmon.domain.ids import BudgetId, new_id
from agentmon.domain.operations import OperationType
from agentmon.services.actors import USER_ACTOR
from agentmon.store.budget_enforcing import NEVER, BudgetEnforcement
from agentmon.store.budget_pauses import INTERRUPT_GRACE
from agentmon.store.budgets import BudgetRepository
from agentmon.store.database import Database
from agentmon.store.moments import moment_text
from agentmon.store.task_moves import SYSTEM_ACTOR
from tests.endings import end_without_journal
from tests.store.conversation_place import ConversationPlace
from tests.store.queue_place import NOON, QueuePlace, an_agent, make_queue_file

if TYPE_CHECKING:
    from collections.abc import Coroutine, Mapping
    from datetime import datetime

    from agentmon.domain.executions import Execution
    from agentmon.domain.ids import WorkspaceId

AGENT: Final = an_agent("claude", max_concurrent=0, tool_type=ToolType.AI_AGENT)
_ENDS: Final = frozenset({CommandType.STOP, CommandType.KILL})
_MOST_RETRIES: Final = 2


class Causes(RuleBasedStateMachine):
    """One conversation at a time: a person, a budget and a rule speak to it, and its tries fail.

    The model knows what was asked of the present try, by whom, and of earlier ones what a person said in vain.
    """

    def __init__(self, template: Path, workspaces: Mapping[str, WorkspaceId]) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp(prefix="amc-", dir=template.parent))
        self.path = self.folder / "a.db"
        shutil.copy(template, self.path)
        self.loop = asyncio.Runner()
        database = Database(self.path)
        queue = QueuePlace(database=database, agents={"claude": AGENT}, workspaces=workspaces)
        self.place = ConversationPlace(queue=queue)
        self.enforcement = BudgetEnforcement(database)
        self.at = NOON
        self.is_spent = False
        self.asks = 0

    @initialize()
    def make_a_task_with_a_budget(self) -> None:
        self.task_id = self.loop.run(self.place.queue.add_task("w")).id
        budget = Budget(
            id=BudgetId(new_id()),
            scope=BudgetScope.TASK,
            scope_id=self.task_id,
            period=BudgetPeriod.TOTAL,
            unit=BudgetUnit.MONEY,
            limit=1,
            created_at=NOON,
        )
        self.loop.run(BudgetRepository(self.place.database).set(budget, actor=USER_ACTOR, at=NOON))
        self.begin()

    def teardown(self) -> None:
        self.loop.run(self.place.database.close())
        self.loop.close()
        shutil.rmtree(self.folder)

    def begin(self) -> None:
        self.loop.run(self.place.enqueue(self.task_id, max_retries=_MOST_RETRIES, at=self.at))
        self.begin_try()
        self.tries = 1

    def begin_try(self) -> None:
        self.execution: Execution = self.loop.run(self.place.claim(self.at)).execution
        self.status = ExecutionStatus.RUNNING
        self.asked: list[tuple[CommandType, CommandCause]] = []
        self.interrupted_at: datetime | None = None
        """Since when it waits for its budget."""

    def refused_unless(self, is_allowed: bool, change: Coroutine[object, object, object]) -> None:
        if is_allowed:
            self.loop.run(change)
            return
        with pytest.raises(ConflictError):
            self.loop.run(change)

    @rule(word=st.sampled_from([CommandType.INTERRUPT, CommandType.FINISH, CommandType.MESSAGE]))
    def person_speaks(self, word: CommandType) -> None:
        payload = {"text": "more"} if word is CommandType.MESSAGE else {}
        is_held_up = word is CommandType.MESSAGE and self.interrupted_at is not None
        is_heard = self.status is ExecutionStatus.RUNNING and not is_held_up
        self.refused_unless(
            is_heard, self.place.commands.add(self.execution.id, (word, payload), actor=USER_ACTOR, at=self.at)
        )
        if is_heard:
            self.asked.append((word, CommandCause.PERSON))

    @rule(word=st.sampled_from([CommandType.STOP, CommandType.KILL]))
    def person_ends(self, word: CommandType) -> None:
        self.loop.run(
            self.place.queue.executions.request_stop(self.task_id, command_type=word, actor=USER_ACTOR, at=self.at)
        )
        known = {kind for kind, _ in self.asked} & _ENDS
        if CommandType.KILL not in known and word not in known:
            self.asked.append((word, CommandCause.PERSON))
        self.status = ExecutionStatus.CANCELLING

    @precondition(lambda self: self.status is ExecutionStatus.RUNNING)
    @rule()
    def rule_answers(self) -> None:
        self.asks += 1
        ask = AskNews(
            request_id=str(self.asks),
            ask_kind=AskKind.PERMISSION,
            type=OperationType.EXECUTE,
            title="Run make test",
            tool_input={"command": "make test"},
            input_digest="d1",
        )
        self.loop.run(self.place.tell(self.execution.id, ask))
        asked = self.loop.run(self.place.approvals.undecided([self.execution.id]))
        (listing,) = [one for one in asked if one.approval.ask_kind is AskKind.PERMISSION]
        self.loop.run(
            self.place.approvals.decide(
                listing.approval.id,
                status=ApprovalStatus.ALLOWED,
                scope=ApprovalScope.ONCE,
                actor=SYSTEM_ACTOR,
                reason="",
                answer={"decision": "allow"},
                rule_id=None,
                seen_digest="d1",
                at=self.at,
            )
        )
        self.asked.append((CommandType.ANSWER, CommandCause.RULE))

    def budget_is(self, *, is_spent: bool) -> None:
        self.is_spent = is_spent
        with closing(sqlite3.connect(self.path)) as connection, connection:
            connection.execute("UPDATE budgets SET spent_until = ?", (moment_text(NEVER) if is_spent else None,))

    @rule(
        is_spent=st.booleans(),
        later=st.sampled_from([timedelta(0), timedelta(seconds=1), INTERRUPT_GRACE]),
        looks=st.integers(1, 2),
    )
    def budget_looks(self, later: timedelta, looks: int, *, is_spent: bool) -> None:
        self.budget_is(is_spent=is_spent)
        self.at += later
        for _ in range(looks):
            self.loop.run(self.enforcement.hold_up(self.states(), at=self.at))
        if self.status is not ExecutionStatus.RUNNING:
            return
        since = self.interrupted_at
        if is_spent and since is None:
            self.asked.append((CommandType.INTERRUPT, CommandCause.BUDGET))
            self.interrupted_at = self.at
        elif is_spent and since is not None and since <= self.at - INTERRUPT_GRACE:
            self.asked.append((CommandType.STOP, CommandCause.BUDGET))
            self.status = ExecutionStatus.CANCELLING
        elif not is_spent and since is not None:
            self.asked.append((CommandType.MESSAGE, CommandCause.BUDGET))
            self.interrupted_at = None

    def states(self) -> list[BudgetState]:
        budgets = self.loop.run(BudgetRepository(self.place.database).list())
        use = BudgetUse(spent=2 if self.is_spent else 0)
        return [BudgetState(budget=budget, use=use, span=None) for budget in budgets]

    @rule(
        word=st.sampled_from([CommandType.INTERRUPT, CommandType.FINISH]),
        later=st.sampled_from([timedelta(0), INTERRUPT_GRACE]),
    )
    def budget_looks_behind_a_person(self, word: CommandType, later: timedelta) -> None:
        self.person_speaks(word)
        self.budget_looks(timedelta(0), 2, is_spent=True)
        self.budget_looks(later, 1, is_spent=True)

    @property
    def is_ended_by_command(self) -> bool:
        return any(kind in _ENDS for kind, _ in self.asked)

    @rule()
    def try_fails(self) -> None:
        """A failed try is followed by another, and one that was asked to end by another execution."""
        self.budget_is(is_spent=False)
        is_tried_again = self.status is ExecutionStatus.RUNNING and self.tries <= _MOST_RETRIES
        ending = ExecutionEnding(status=ExecutionStatus.FAILED, ended_at=self.at, reason=EndReason.EXITED, exit_code=1)
        self.loop.run(end_without_journal(self.place.queue.database, self.execution.id, ending, at=self.at))
        self.at += timedelta(hours=1)
        if is_tried_again:
            # What a person said and nobody heard is said to the next try.
            unheard = [one for one in self.asked if one == (CommandType.MESSAGE, CommandCause.PERSON)]
            self.begin_try()
            self.asked = unheard
            self.tries += 1
        else:
            self.begin()

    @invariant()
    def what_was_asked_of_this_try_and_its_state_are_as_the_model_says(self) -> None:
        if not hasattr(self, "execution"):
            return
        with closing(sqlite3.connect(self.path)) as connection:
            rows = connection.execute(
                "SELECT c.type, c.cause FROM execution_commands c JOIN executions e ON e.id = c.execution_id"
                " WHERE e.id = ? AND c.attempt = e.attempt ORDER BY c.id",
                (self.execution.id,),
            ).fetchall()
            (status,) = connection.execute(
                "SELECT status FROM executions WHERE id = ?", (self.execution.id,)
            ).fetchone()
        assert [(CommandType(kind), CommandCause(cause)) for kind, cause in rows] == self.asked
        assert status == self.status
        assert self.is_ended_by_command == (self.status is ExecutionStatus.CANCELLING)


@pytest.mark.proof
@pytest.mark.parametrize("examples", [40])
def test_a_command_counts_for_its_cause_and_its_try_alone(tmp_path: Path, examples: int) -> None:
    workspaces = make_queue_file(tmp_path / "template.db", [AGENT], {"w": 0})

    run_state_machine_as_test(
        lambda: Causes(tmp_path / "template.db", workspaces),  # type: ignore[arg-type] # any maker of a machine will do
        settings=settings(
            phases=[Phase.generate],
            database=None,
            max_examples=examples,
            stateful_step_count=25,
            report_multiple_bugs=False,
            deadline=None,
        ),
    )
