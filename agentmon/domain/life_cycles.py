"""Life cycles: one table of legal moves each; every change of a state passes ``require_move``."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Final, TypeVar

from agentmon.domain.errors import IllegalMoveError
from agentmon.domain.execution_status import ExecutionStatus as Execution
from agentmon.domain.sessions import SessionStatus as Session
from agentmon.domain.task_status import TaskStatus as Task

if TYPE_CHECKING:
    from collections.abc import Mapping

_State = TypeVar("_State", bound=StrEnum)

TASK_MOVES: Final[Mapping[Task, frozenset[Task]]] = {
    Task.TODO: frozenset({Task.IN_PROGRESS, Task.BLOCKED, Task.REVIEW, Task.DONE, Task.CANCELLED}),
    Task.IN_PROGRESS: frozenset({Task.TODO, Task.BLOCKED, Task.REVIEW, Task.DONE, Task.CANCELLED}),
    Task.BLOCKED: frozenset({Task.TODO, Task.IN_PROGRESS, Task.REVIEW, Task.DONE, Task.CANCELLED}),
    Task.REVIEW: frozenset({Task.TODO, Task.IN_PROGRESS, Task.BLOCKED, Task.DONE, Task.CANCELLED}),
    Task.DONE: frozenset({Task.TODO, Task.IN_PROGRESS, Task.BLOCKED, Task.REVIEW}),
    Task.CANCELLED: frozenset({Task.TODO, Task.IN_PROGRESS, Task.BLOCKED, Task.REVIEW}),
}
"""A person may reopen what is closed; done and cancelled do not turn into each other."""

EXECUTION_MOVES: Final[Mapping[Execution, frozenset[Execution]]] = {
    Execution.QUEUED: frozenset({Execution.RUNNING, Execution.CANCELLED}),
    Execution.RUNNING: frozenset({Execution.CANCELLING, Execution.FINALIZING}),
    Execution.CANCELLING: frozenset({Execution.FINALIZING}),
    Execution.FINALIZING: frozenset(
        {Execution.SUCCEEDED, Execution.FAILED, Execution.TIMED_OUT, Execution.CANCELLED},
    ),
    Execution.SUCCEEDED: frozenset(),
    Execution.FAILED: frozenset({Execution.QUEUED}),
    Execution.CANCELLED: frozenset(),
    Execution.TIMED_OUT: frozenset(),
}
"""A failed execution goes back to the queue only while it has retries left."""

SESSION_MOVES: Final[Mapping[Session, frozenset[Session]]] = {
    Session.PLANNING: frozenset(
        {Session.RUNNING, Session.WAITING_FOR_INPUT, Session.COMPLETED, Session.FAILED, Session.CANCELLED}
    ),
    Session.RUNNING: frozenset(
        {Session.WAITING_FOR_INPUT, Session.PAUSED, Session.COMPLETED, Session.FAILED, Session.CANCELLED},
    ),
    Session.WAITING_FOR_INPUT: frozenset({Session.RUNNING, Session.COMPLETED, Session.FAILED, Session.CANCELLED}),
    Session.PAUSED: frozenset({Session.RUNNING, Session.WAITING_FOR_INPUT, Session.FAILED, Session.CANCELLED}),
    Session.COMPLETED: frozenset({Session.PLANNING}),
    Session.FAILED: frozenset({Session.PLANNING}),
    Session.CANCELLED: frozenset({Session.PLANNING}),
}
"""One that is over begins again when another execution goes on with it."""


def require_task_move(source: Task, target: Task) -> None:
    """Return when a task may make the move; staying where it is counts as legal.

    Raises:
        IllegalMoveError: The life cycle of tasks has no such move.
    """
    if source is not target:
        _require_move("task", TASK_MOVES, source, target)


def require_execution_move(source: Execution, target: Execution) -> None:
    """Return when an execution may make the move.

    Raises:
        IllegalMoveError: The life cycle of executions has no such move.
    """
    _require_move("execution", EXECUTION_MOVES, source, target)


def require_session_move(source: Session, target: Session) -> None:
    """Return when a session may make the move.

    Raises:
        IllegalMoveError: The life cycle of sessions has no such move.
    """
    _require_move("session", SESSION_MOVES, source, target)


def _require_move(life_cycle: str, moves: Mapping[_State, frozenset[_State]], source: _State, target: _State) -> None:
    if target not in moves[source]:
        raise IllegalMoveError(life_cycle=life_cycle, source=source.value, target=target.value)
