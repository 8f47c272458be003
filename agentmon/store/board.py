"""The board's read model: one page of cards per column, in plain SQL that any connection can run.

It must not import SQLAlchemy: the first frame runs it on the standard library's sqlite3.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import PurePath
from typing import TYPE_CHECKING, Final, Protocol

from agentmon.domain.activity import Activity
from agentmon.domain.any_command import ANY_COMMAND_SLUG
from agentmon.domain.board import BoardPage, Card, ColumnPage, StatusLine
from agentmon.domain.execution_mode import ExecutionMode
from agentmon.domain.execution_status import EndReason, ExecutionStatus, WaitReason
from agentmon.domain.ids import ExecutionId, TaskId
from agentmon.domain.live_state import live_state
from agentmon.domain.near_paths import near_text
from agentmon.domain.task_status import TaskStatus
from agentmon.store.board_setting import BEFORE, BOARD_ROWS, ORDERS, board_setting
from agentmon.store.moments import moment_text
from agentmon.store.money_setting import money_format
from agentmon.store.status_counts import NEEDING_YOU, OPEN_EXECUTIONS, SETTINGS, TODAY, StoredSettings

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from agentmon.domain.amounts import MoneyFormat
    from agentmon.domain.board import BoardSort, ColumnRequest
    from agentmon.domain.ids import WorkspaceId

_CARDS: Final = """
SELECT t.id, t.number, t.title, t.status, t.priority, t.input_context, t.next_run_at, a.slug,
       e.id, e.status, e.exit_code, e.error, e.started_at, e.ended_at, e.last_line, e.cost_nano,
       e.end_reason, e.wait_reason, e.not_before, e.paused_at, r.parked_until, r.park_note,
       e.activity, e.is_held, e.activity_note, s.workspace, e.mode, t.due_at
FROM tasks t
LEFT JOIN agents a ON a.id = t.assignee_agent_id
LEFT JOIN executions e ON e.id = (
    SELECT newest.id FROM executions newest WHERE newest.task_id = t.id
    ORDER BY newest.created_at DESC, newest.id DESC LIMIT 1)
LEFT JOIN sessions s ON s.id = e.session_id
LEFT JOIN agents r ON r.id = e.agent_id AND e.status = 'queued' AND r.parked_until > :now
WHERE t.workspace_id = :workspace_id AND t.status = :status AND t.deleted_at IS NULL AND t.archived_at IS NULL
  {text_filter}
ORDER BY {order}
LIMIT :limit OFFSET :offset
"""
_TOTALS: Final = """
SELECT t.status, count(*) FROM tasks t
WHERE t.status IN ('todo', 'in_progress', 'blocked', 'done', 'cancelled') AND t.workspace_id = :workspace_id
  AND t.deleted_at IS NULL AND t.archived_at IS NULL {text_filter}
GROUP BY t.status
"""
_WAITS_FOR: Final = """
SELECT d.task_id, p.number FROM task_dependencies d
JOIN tasks p ON p.id = d.depends_on_task_id
WHERE d.task_id IN ({ids}) AND p.status IN ('todo', 'in_progress', 'blocked') AND p.deleted_at IS NULL
ORDER BY p.number
"""
_SUBTASKS: Final = """
SELECT s.parent_task_id, count(*), sum(s.status IN ('done', 'cancelled')) FROM tasks s
WHERE s.parent_task_id IN ({ids}) AND s.deleted_at IS NULL
GROUP BY s.parent_task_id
"""
_LABELS: Final = "SELECT task_id, label FROM task_labels WHERE task_id IN ({ids})"
"""The primary key gives those of a task in their order."""
_PLACE: Final = """
SELECT p.status, (
    SELECT count(*) FROM tasks t
    WHERE t.workspace_id = p.workspace_id AND t.status = p.status AND t.deleted_at IS NULL
      AND t.archived_at IS NULL AND {before} {text_filter})
FROM tasks p WHERE p.id = :task_id AND p.deleted_at IS NULL AND p.archived_at IS NULL
"""


class Execute(Protocol):
    """Runs one statement with named parameters and returns all rows."""

    def __call__(self, statement: str, parameters: Mapping[str, object], /) -> Sequence[Sequence[object]]:
        """Return the rows of the statement."""
        ...


def read_board(
    execute: Execute,
    *,
    workspace_id: WorkspaceId | None,
    workspace_name: str,
    requests: Sequence[ColumnRequest],
    running_limit: int,
    money_words: Mapping[str, str],
    board_words: Mapping[str, str],
) -> BoardPage:
    """Return the asked pages and the status line.

    Args:
        execute: Runs the statements, all on one connection.
        workspace_id: Whose board; None gives empty columns.
        workspace_name: Is handed through.
        requests: One per wanted column; all share filter and order of the first.
        running_limit: Shown when the database holds no limit of its own.
        money_words: Say how amounts are shown where the database does not; see ``money_setting``.
        board_words: Say how the board is sorted where the database does not; see ``board_setting``.
    """
    text_filter = requests[0].text_filter if requests else ""
    where, parameters = _filter_of(text_filter)
    setting = board_setting(board_words, execute(BOARD_ROWS, {}))
    sort = (requests[0].sort if requests else None) or setting.sort
    status_line = read_status_line(execute, running_limit, money_words)
    totals: dict[str, int] = {}
    if workspace_id is not None:
        rows = execute(_TOTALS.format(text_filter=where), {"workspace_id": workspace_id, **parameters})
        totals = {str(status): _integer(count) for status, count in rows}
    columns = {
        request.status: ColumnPage(
            status=request.status,
            total=totals.get(request.status, 0),
            offset=request.offset,
            cards=_cards(execute, workspace_id, request, sort, status_line.money)
            if workspace_id is not None and totals.get(request.status)
            else (),
            card_limit=None if text_filter else setting.limits.get(request.status),
        )
        for request in requests
    }
    return BoardPage(workspace_name=workspace_name, columns=columns, sort=sort, status_line=status_line)


def read_status_line(execute: Execute, running_limit: int, money_words: Mapping[str, str]) -> StatusLine:
    """Return the numbers above the board, over all workspaces of the database."""
    counts = {str(status): _integer(count) for status, count in execute(OPEN_EXECUTIONS, {})}
    settings = StoredSettings(execute(SETTINGS, {}))
    cost, unpriced, tokens, budget = execute(TODAY, {"today": settings.today()})[0]
    return StatusLine(
        running=counts.get(ExecutionStatus.RUNNING, 0) + counts.get(ExecutionStatus.CANCELLING, 0),
        running_limit=settings.running_limit(running_limit),
        queued=counts.get(ExecutionStatus.QUEUED, 0),
        is_paused=settings.is_paused,
        needs_you=_integer(execute(NEEDING_YOU, {})[0][0]),
        cost_today_nano=_integer(cost),
        tokens_today=_integer(tokens),
        unpriced_today=_integer(unpriced),
        budget_today_nano=None if budget is None else _integer(budget),
        money=money_format({**money_words, **settings.money_words}),
    )


def find_place(
    execute: Execute, *, task_id: TaskId, text_filter: str, sort: BoardSort | None, board_words: Mapping[str, str]
) -> tuple[TaskStatus, int] | None:
    """Return the column of a task and how many cards stand above it there; None when it is gone.

    Without a ``sort`` the cards stand as it is set.
    """
    sort = sort or board_setting(board_words, execute(BOARD_ROWS, {})).sort
    where, parameters = _filter_of(text_filter)
    rows = execute(_PLACE.format(text_filter=where, before=BEFORE[sort]), {"task_id": task_id, **parameters})
    return (TaskStatus(str(rows[0][0])), _integer(rows[0][1])) if rows else None


def _cards(
    execute: Execute, workspace_id: WorkspaceId, request: ColumnRequest, sort: BoardSort, money: MoneyFormat
) -> tuple[Card, ...]:
    where, parameters = _filter_of(request.text_filter)
    rows = execute(
        _CARDS.format(text_filter=where, order=ORDERS[sort]),
        {
            "workspace_id": workspace_id,
            "status": request.status.value,
            "limit": request.limit,
            "offset": request.offset,
            "now": moment_text(datetime.now(UTC)),
            **parameters,
        },
    )
    task_ids = [str(row[0]) for row in rows]
    waits_for, subtasks = _waits_for(execute, task_ids), _subtasks(execute, task_ids)
    labels = _labels(execute, task_ids)
    return tuple(
        _card(
            row,
            waits_for.get(str(row[0]), ()),
            subtasks.get(str(row[0]), (0, 0)),
            tuple(labels.get(str(row[0]), ())),
            money,
        )
        for row in rows
    )


def _waits_for(execute: Execute, task_ids: Sequence[str]) -> dict[str, tuple[int, ...]]:
    numbers: dict[str, tuple[int, ...]] = {}
    for task_id, number in _rows_of(execute, _WAITS_FOR, task_ids):
        numbers[str(task_id)] = (*numbers.get(str(task_id), ()), _integer(number))
    return numbers


def _subtasks(execute: Execute, task_ids: Sequence[str]) -> dict[str, tuple[int, int]]:
    rows = _rows_of(execute, _SUBTASKS, task_ids)
    return {str(task_id): (_integer(count), _integer(closed)) for task_id, count, closed in rows}


def _labels(execute: Execute, task_ids: Sequence[str]) -> dict[str, list[str]]:
    labels: dict[str, list[str]] = {}
    for task_id, label in _rows_of(execute, _LABELS, task_ids):
        labels.setdefault(str(task_id), []).append(str(label))
    return labels


def _rows_of(execute: Execute, statement: str, task_ids: Sequence[str]) -> Sequence[Sequence[object]]:
    if not task_ids:
        return ()
    names = {f"id{index}": task_id for index, task_id in enumerate(task_ids)}
    return execute(statement.format(ids=", ".join(f":{name}" for name in names)), names)


def _card(
    row: Sequence[object],
    waits_for: tuple[int, ...],
    subtasks: tuple[int, int],
    labels: tuple[str, ...],
    money: MoneyFormat,
) -> Card:
    (task_id, number, title, status, priority, input_context, next_run_at, slug) = row[:8]
    (execution_id, execution_status, exit_code, error, started_at, ended_at, last_line, cost_nano) = row[8:16]
    end_reason, wait_reason, not_before, paused_at, parked_until, park_note = row[16:22]
    activity, is_held, activity_note, working_dir, mode, due_at = row[22:]
    folder = _optional_text(working_dir) or ""
    is_queued = execution_status == ExecutionStatus.QUEUED
    waits_until = _latest(_optional_time(not_before), _optional_time(parked_until)) if is_queued else None
    return Card(
        task_id=TaskId(str(task_id)),
        number=_integer(number),
        title=str(title),
        status=TaskStatus(str(status)),
        priority=_integer(priority),
        agent_slug=_optional_text(slug),
        command_word=_command_word(slug, input_context),
        execution_id=None if execution_id is None else ExecutionId(str(execution_id)),
        state=None
        if execution_status is None
        else live_state(
            ExecutionStatus(str(execution_status)),
            end_reason=None if end_reason is None else EndReason(str(end_reason)),
            is_parked=parked_until is not None or (wait_reason is not None and WaitReason(str(wait_reason)).is_parking),
            is_paused=paused_at is not None,
            is_stuck=error is not None,
            is_held=bool(is_held),
            activity=None if activity is None else Activity(str(activity)),
        ),
        exit_code=None if exit_code is None else _integer(exit_code),
        error=_optional_text(error if park_note is None else park_note),
        started_at=_optional_time(started_at),
        ended_at=_optional_time(ended_at),
        last_line=_near(last_line, folder),
        cost_nano=None if cost_nano is None else _integer(cost_nano),
        money=money,
        activity_note=_near(activity_note, folder),
        is_conversation=mode is not None and ExecutionMode(str(mode)).is_conversation,
        waits_until=waits_until,
        is_retry=wait_reason == WaitReason.RETRY,
        waits_for=waits_for,
        subtask_count=subtasks[0],
        subtasks_closed=subtasks[1],
        next_run_at=_optional_time(next_run_at),
        due_at=_optional_time(due_at),
        labels=labels,
    )


def _command_word(slug: object, input_context: object) -> str | None:
    if slug != ANY_COMMAND_SLUG:
        return None
    context = _parsed(input_context)
    args = context.get("args") if isinstance(context, dict) else None
    words = args.get("argv") if isinstance(args, dict) else None
    return PurePath(str(words[0])).name if isinstance(words, list) and words else None


def _filter_of(text_filter: str) -> tuple[str, dict[str, object]]:
    if not text_filter:
        return "", {}
    from agentmon.store.board_filter import filter_condition  # noqa: PLC0415 - the first frame has no filter

    return filter_condition(text_filter, datetime.now(UTC))


def _parsed(text: object) -> object:
    if not isinstance(text, str | bytes):
        return text
    try:
        return json.loads(text)
    except ValueError:
        return None


def _integer(number: object, fallback: int = 0) -> int:
    return number if isinstance(number, int) else fallback


def _optional_text(text: object) -> str | None:
    return None if text is None else str(text)


def _near(text: object, folder: str) -> str | None:
    return None if text is None else near_text(str(text), folder)


def _latest(*moments: datetime | None) -> datetime | None:
    return max((moment for moment in moments if moment is not None), default=None)


def _optional_time(moment: object) -> datetime | None:
    if moment is None or isinstance(moment, datetime):
        return moment
    return datetime.fromisoformat(str(moment))
