from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentmon.domain.card_moves import status_at_end, status_at_start
from agentmon.domain.errors import IllegalMoveError
from agentmon.domain.execution_status import ExecutionStatus
from agentmon.domain.life_cycles import (
    EXECUTION_MOVES,
    SESSION_MOVES,
    TASK_MOVES,
    require_execution_move,
    require_session_move,
    require_task_move,
)
from agentmon.domain.sessions import SessionStatus, registry_status
from agentmon.domain.task_status import TaskStatus


def test_every_state_has_its_row_of_moves() -> None:
    assert set(TASK_MOVES) == set(TaskStatus)
    assert set(EXECUTION_MOVES) == set(ExecutionStatus)
    assert set(SESSION_MOVES) == set(SessionStatus)


@given(source=st.sampled_from(ExecutionStatus), target=st.sampled_from(ExecutionStatus))
def test_an_execution_makes_the_moves_of_its_table_and_no_other(
    source: ExecutionStatus, target: ExecutionStatus
) -> None:
    if target in EXECUTION_MOVES[source]:
        require_execution_move(source, target)
    else:
        with pytest.raises(IllegalMoveError, match=f"from {source.value} to {target.value}"):
            require_execution_move(source, target)


def test_a_running_execution_is_never_cancelled_without_being_stopped_first() -> None:
    with pytest.raises(IllegalMoveError):
        require_execution_move(ExecutionStatus.RUNNING, ExecutionStatus.CANCELLED)


@pytest.mark.parametrize("status", [ExecutionStatus.SUCCEEDED, ExecutionStatus.CANCELLED, ExecutionStatus.TIMED_OUT])
def test_what_is_over_stays_over(status: ExecutionStatus) -> None:
    assert EXECUTION_MOVES[status] == frozenset()
    assert not status.is_open


def test_a_failed_execution_goes_nowhere_but_back_into_the_queue() -> None:
    assert EXECUTION_MOVES[ExecutionStatus.FAILED] == {ExecutionStatus.QUEUED}


def test_a_closed_task_is_reopened_but_not_closed_otherwise() -> None:
    require_task_move(TaskStatus.DONE, TaskStatus.TODO)
    require_task_move(TaskStatus.DONE, TaskStatus.DONE)
    with pytest.raises(IllegalMoveError):
        require_task_move(TaskStatus.DONE, TaskStatus.CANCELLED)


def test_a_paused_session_does_not_complete_without_running_again() -> None:
    require_session_move(SessionStatus.PAUSED, SessionStatus.RUNNING)
    with pytest.raises(IllegalMoveError):
        require_session_move(SessionStatus.PAUSED, SessionStatus.COMPLETED)


@given(status=st.sampled_from(SessionStatus))
def test_the_registry_mirrors_every_session_status(status: SessionStatus) -> None:
    assert registry_status(status).value in {"active", "paused", "completed", "error"}


@given(present=st.sampled_from(TaskStatus), outcome=st.sampled_from(ExecutionStatus), is_reviewed=st.booleans())
def test_a_card_never_makes_a_move_by_itself_that_a_task_cannot_make(
    present: TaskStatus, outcome: ExecutionStatus, is_reviewed: bool
) -> None:
    require_task_move(present, status_at_start(present))
    after = status_at_end(present, outcome, is_reviewed=is_reviewed)
    require_task_move(present, after)
    assert (after is TaskStatus.REVIEW and present is not after) <= (
        is_reviewed and present is TaskStatus.IN_PROGRESS and outcome is ExecutionStatus.SUCCEEDED
    )


def test_a_card_that_a_person_closed_meanwhile_stays_closed() -> None:
    assert status_at_end(TaskStatus.DONE, ExecutionStatus.CANCELLED) is TaskStatus.DONE
    assert status_at_end(TaskStatus.DONE, ExecutionStatus.FAILED) is TaskStatus.BLOCKED
    assert status_at_start(TaskStatus.CANCELLED) is TaskStatus.CANCELLED
