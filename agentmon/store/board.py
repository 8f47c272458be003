"""The board's read model: one page of cards per column, in plain SQL over plain ``sqlite3``.

It must not import SQLAlchemy: the first frame runs it on the standard library's sqlite3.
"""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import PurePath
from typing import TYPE_CHECKING, Final

from agentmon.domain.activity import Activity
from agentmon.domain.any_command import ANY_COMMAND_SLUG
from agentmon.domain.board import ALL_WORKSPACES, BoardPage, BoardSort, Card, ColumnPage, StatusLine
from agentmon.domain.execution_mode import ExecutionMode
from agentmon.domain.execution_status import LIVE_STATUSES, EndReason, ExecutionStatus, WaitReason
from agentmon.domain.ids import ExecutionId, TaskId
from agentmon.domain.live_state import live_state
from agentmon.domain.near_paths import near_text
from agentmon.domain.spending import Spent
from agentmon.domain.task_status import AwaitedState, TaskStatus
from agentmon.domain.verifications import Verdict, VerificationStatus, is_running
from agentmon.store.board_counts import BOARD_COUNTS
from agentmon.store.board_setting import BEFORE, BOARD_ROWS, ORDERS, board_setting, own_limits
from agentmon.store.card_states import ARCHIVED, NO_RANK, ON_BOARD, OVERLAP_SHOWN, RANKS, awaited, holds
from agentmon.store.moments import moment_text
from agentmon.store.money_setting import money_format
from agentmon.store.status_counts import NEEDING_YOU, OPEN_EXECUTIONS, OVERLAPPING, SETTINGS, TODAY, StoredSettings
from agentmon.store.work_places import FOLDER_HOLDERS

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Mapping, Sequence

    from agentmon.domain.amounts import MoneyFormat
    from agentmon.domain.board import ColumnRequest
    from agentmon.domain.ids import WorkspaceId
    from agentmon.domain.overlaps import Overlap

_CARDS: Final = """
WITH {ranks} page AS MATERIALIZED ({page})
SELECT t.id, t.number, t.title, t.status, t.priority, t.input_context, t.next_run_at, a.slug,
       e.id, e.status, e.exit_code, e.error, e.started_at, e.ended_at,
       CASE WHEN e.ended_at IS NULL THEN coalesce(e.journal_problem, e.last_line) ELSE e.last_line END,
       e.end_reason, e.wait_reason, e.not_before, e.paused_at, x.parked_until, x.park_note,
       e.activity, e.is_held, e.activity_note, s.workspace, e.mode, t.due_at, t.archived_at, t.workspace_id,
       k.branch, k.path, e.verification_status, e.verification_command, e.verification_ms,
       pr.number, pr.state, pr.is_draft, pr.checks, pr.review, t.alternatives_id, e.log_file_path
FROM page CROSS JOIN tasks t ON t.id = page.task_id {rank}
LEFT JOIN agents a ON a.id = t.assignee_agent_id
LEFT JOIN executions e ON e.id = (
    SELECT newest.id FROM executions newest WHERE newest.task_id = t.id
    ORDER BY newest.created_at DESC, newest.id DESC LIMIT 1)
LEFT JOIN sessions s ON s.id = e.session_id
LEFT JOIN worktrees k ON k.id = e.worktree_id AND k.status <> 'removed'
LEFT JOIN pull_requests pr ON pr.id = (
    SELECT newest.id FROM pull_requests newest WHERE newest.task_id = t.id
    ORDER BY newest.updated_at DESC, newest.id DESC LIMIT 1)
LEFT JOIN agents x ON x.id = e.agent_id AND e.status = 'queued' AND x.parked_until > :now
ORDER BY {order}
"""
"""The page is chosen by an index alone, before anything is joined to its cards."""
_PAGE: Final = """
    SELECT t.id AS task_id FROM tasks t
    WHERE t.status = :status {scope} AND {wanted}
    ORDER BY {order}
    LIMIT :limit OFFSET :offset"""
_RANKED_PAGE: Final = """
    SELECT task_id FROM (
        SELECT * FROM (
            SELECT t.id AS task_id, r.place AS place, t.sort_order AS sort_order
            FROM ranks r CROSS JOIN tasks t ON t.id = r.task_id
            WHERE t.status = :status {scope} AND {wanted})
        UNION ALL SELECT * FROM (
            SELECT t.id, {no_rank}, t.sort_order FROM tasks t
            WHERE t.status = :status {scope} AND {wanted} AND t.id NOT IN (SELECT task_id FROM ranks)
            ORDER BY t.sort_order, t.id
            LIMIT :limit + :offset))
    ORDER BY place, sort_order, task_id
    LIMIT :limit OFFSET :offset"""
"""The few cards with a rank, and behind them as many of the rest as can be in the page."""
_RANK: Final = "LEFT JOIN ranks r ON r.task_id = t.id"
_IN_WORKSPACE: Final = "AND t.workspace_id = :workspace_id"
_TOTALS: Final = """
SELECT t.status, t.workspace_id, count(*) FROM tasks t
WHERE t.status IN ('todo', 'in_progress', 'blocked', 'review', 'done', 'cancelled') {scope} AND {wanted}
GROUP BY t.status, t.workspace_id
"""
_FOUND: Final = "SELECT t.id FROM tasks t NOT INDEXED WHERE {wanted} {scope}"
_FEW: Final = 1000
"""Cards found, up to which they are looked for once more for all columns, and not once more by each."""
_TOTALS_OF_WORDS: Final = f"""
SELECT {", ".join(f"count(*) FILTER (WHERE t.status = '{status.value}')" for status in TaskStatus)}
FROM tasks t NOT INDEXED WHERE {{wanted}} {{scope}}
"""
"""In the order of ``TaskStatus``. Words are looked for in every task: reading on through the table takes half as long
as going from an index to each of its rows, and adding up a third of what grouping takes."""
_WORKSPACE: Final = "SELECT id, name, root_path, settings FROM workspaces WHERE id = :workspace_id"
_WORKSPACES: Final = "SELECT id, name, root_path, settings FROM workspaces ORDER BY root_path"
_WAITS_FOR: Final = f"""
SELECT d.task_id, p.number, {awaited("p")} FROM task_dependencies d
JOIN tasks p ON p.id = d.depends_on_task_id
JOIN tasks t ON t.id = d.task_id
WHERE d.task_id IN ({{ids}}) AND {holds("p")} AND t.status IN ('todo', 'in_progress', 'blocked', 'review')
ORDER BY p.number
"""
_SUBTASKS: Final = """
SELECT s.parent_task_id, count(*), sum(s.status IN ('done', 'cancelled')) FROM tasks s
WHERE s.parent_task_id IN ({ids}) AND s.deleted_at IS NULL
GROUP BY s.parent_task_id
"""
_SPENT: Final = """
SELECT e.task_id, sum(e.cost_nano), sum(e.tokens_used), sum(e.cost_nano IS NULL AND e.tokens_used > 0), count(*)
FROM executions e
WHERE e.task_id IN ({ids})
GROUP BY e.task_id
"""
_CHANGED: Final = """
SELECT e.task_id, count(DISTINCT c.path), sum(c.lines_added), sum(c.diff_lines - c.lines_added)
FROM executions e JOIN changes c ON c.execution_id = e.id AND c.operation_id IS NULL
WHERE e.task_id IN ({ids})
GROUP BY e.task_id
"""
"""Those of tool calls are of their runs too."""
_OVERLAPS: Final = f"""
SELECT e.task_id, v.execution_id, v.other_id, p.number, v.kind, v.paths, v.path_count, v.is_own_doing, v.detail
FROM overlaps v
CROSS JOIN executions e ON e.id = v.execution_id AND e.status IN ('running', 'cancelling')
CROSS JOIN executions x ON x.id = v.other_id AND x.status IN ('running', 'cancelling')
CROSS JOIN tasks p ON p.id = x.task_id
WHERE e.task_id IN ({{ids}}) AND {OVERLAP_SHOWN}
ORDER BY p.number
"""
_LABELS: Final = "SELECT task_id, label FROM task_labels WHERE task_id IN ({ids})"
"""The primary key gives those of a task in their order."""
_ALTERNATIVES: Final = """
SELECT t.id, v.number, v.status FROM tasks t
JOIN tasks v ON v.alternatives_id = t.alternatives_id AND v.id <> t.id
WHERE t.id IN ({ids}) AND v.deleted_at IS NULL AND v.status <> 'cancelled'
ORDER BY v.number
"""
_GROUP: Final = """
    SELECT t.id AS task_id FROM tasks t
    WHERE t.alternatives_id = (SELECT own.alternatives_id FROM tasks own WHERE own.id = :task_id)
      AND t.deleted_at IS NULL"""
_PLACE: Final = """
{ranks}
SELECT p.status, (
    SELECT count(*) FROM tasks t {rank}
    WHERE t.status = p.status {scope} AND {before} AND {wanted})
FROM tasks p WHERE p.id = :task_id {own_scope} AND {own_wanted}
"""


def read_board(
    connection: sqlite3.Connection,
    *,
    workspace_id: WorkspaceId | None,
    workspace_name: str,
    requests: Sequence[ColumnRequest],
    running_limit: int,
    money_words: Mapping[str, str],
    board_words: Mapping[str, str],
    is_all: bool = False,
) -> BoardPage:
    """Return the asked pages and the status line.

    Args:
        connection: Reads; the caller sees to it that all statements see one moment.
        workspace_id: Whose board; None gives empty columns, unless those of all are asked for.
        workspace_name: Is handed through.
        requests: One per wanted column; all share filter and order of the first.
        running_limit: Shown when the database holds no limit of its own.
        money_words: Say how amounts are shown where the database does not; see ``money_setting``.
        board_words: Say how the board is sorted where the database does not; see ``board_setting``.
        is_all: Whether the cards of all workspaces are shown together.
    """
    text_filter = requests[0].text_filter if requests else ""
    setting = board_setting(board_words, connection.execute(BOARD_ROWS).fetchall())
    sort = (requests[0].sort if requests else None) or setting.sort
    status_line = read_status_line(connection, running_limit, money_words)
    columns = {request.status: ColumnPage(status=request.status, offset=request.offset) for request in requests}
    workspaces = _Workspaces((), setting.limits)
    if requests and (is_all or workspace_id is not None):
        scope = _Scope(None if is_all else workspace_id, text_filter)
        statement = _WORKSPACES if is_all else _WORKSPACE
        rows = connection.execute(statement, {"workspace_id": workspace_id}).fetchall()
        workspaces = _Workspaces(rows, setting.limits, is_all=is_all)
        counts: dict[str, dict[str, int]] = {}
        for status, owner_id, count in _totals(connection, scope):
            counts.setdefault(str(status), {})[str(owner_id)] = _integer(count)
        if scope.has_words and 0 < sum(sum(present.values()) for present in counts.values()) <= _FEW:
            scope.narrow([str(row[0]) for row in connection.execute(scope.filled(_FOUND), scope.parameters)])
        for request in requests:
            present = counts.get(request.status, {})
            columns[request.status] = ColumnPage(
                status=request.status,
                total=sum(present.values()),
                offset=request.offset,
                cards=_cards(connection, scope, request, sort, status_line.money, workspaces) if present else (),
                card_limit=None if text_filter or is_all else workspaces.limit(str(workspace_id), request.status),
                workspaces_over=() if text_filter or not is_all else workspaces.over(present, request.status),
            )
    return BoardPage(
        workspace_name=ALL_WORKSPACES if is_all else workspace_name,
        workspaces=workspaces.root_paths,
        columns=columns,
        sort=sort,
        has_review=setting.has_review,
        status_line=status_line,
    )


class _Scope:
    """Which cards are meant: of one workspace or of all, and those that fit the filter."""

    __slots__ = ("_is_all", "_wanted", "has_filter", "has_words", "parameters")

    def __init__(self, workspace_id: WorkspaceId | None, text_filter: str) -> None:
        self._is_all = workspace_id is None
        self._wanted, self.parameters = _filter_of(text_filter)
        self.has_filter = bool(text_filter)
        self.has_words = not {"word0", "slug0"}.isdisjoint(self.parameters)
        if workspace_id is not None:
            self.parameters["workspace_id"] = workspace_id

    def narrow(self, task_ids: Sequence[str]) -> None:
        """Mean these cards alone, which are those that fit."""
        import json  # noqa: PLC0415 - the first frame has no filter

        is_archived = ARCHIVED in self._wanted
        self._wanted = f"{ARCHIVED if is_archived else ON_BOARD} AND t.id IN (SELECT value FROM json_each(:found))"
        kept = {name: value for name, value in self.parameters.items() if name == "workspace_id"}
        self.parameters = {**kept, "found": json.dumps(task_ids)}

    def filled(self, statement: str, sort: BoardSort | None = None, *, is_alone: bool = False) -> str:
        """Return the statement for these cards, in this order; ``is_alone`` where its ``WITH`` has nothing else."""
        is_own_order = self._is_all and sort is BoardSort.ORDER
        is_ranked = sort is BoardSort.STATE
        ranks = f"{'WITH ' if is_alone else ''}{RANKS}{'' if is_alone else ','}" if is_ranked else ""
        own = "t.workspace_id, t.sort_order, t.id"
        order = "" if sort is None else own if is_own_order else ORDERS[sort]
        before = "" if sort is None else f"({own}) < ({own.replace('t.', 'p.')})" if is_own_order else BEFORE[sort]
        scope = "" if self._is_all else _IN_WORKSPACE
        page = _RANKED_PAGE if is_ranked else _PAGE
        return statement.replace("{page}", page).format(
            no_rank=NO_RANK,
            ranks=ranks,
            rank=_RANK if is_ranked else "",
            scope=scope,
            own_scope=scope.replace("t.", "p."),
            wanted=self._wanted,
            own_wanted=(ARCHIVED if ARCHIVED in self._wanted else ON_BOARD).replace("t.", "p."),
            order=order,
            before=before,
        )


class _Workspaces:
    """The names and limits of the workspaces."""

    __slots__ = ("_limits", "_own_limits", "names", "root_paths")

    def __init__(
        self, rows: Sequence[Sequence[object]], limits: Mapping[TaskStatus, int], *, is_all: bool = False
    ) -> None:
        self._limits = limits
        self._own_limits = {str(row[0]): own_limits(row[3]) for row in rows}
        self.names: Mapping[str, str] = {}
        """Short names of the workspaces by id, where all are shown together."""
        self.root_paths: Mapping[str, str] = {}
        if is_all:
            from agentmon.domain.workspace_names import short_names  # noqa: PLC0415 - the first frame shows one

            self.names = short_names({str(row[0]): (str(row[1]), str(row[2])) for row in rows})
            self.root_paths = {self.names[str(row[0])]: str(row[2]) for row in rows}

    def limit(self, workspace_id: str, status: TaskStatus) -> int | None:
        """Return how many cards a column of the workspace should have at most."""
        return self._own_limits.get(workspace_id, {}).get(status) or self._limits.get(status)

    def over(self, counts: Mapping[str, int], status: TaskStatus) -> tuple[str, ...]:
        """Return the names of the workspaces whose column has more cards than it should."""
        return tuple(
            sorted(
                self.names.get(workspace_id, "")
                for workspace_id, count in counts.items()
                if count > (self.limit(workspace_id, status) or count)
            )
        )


def read_status_line(connection: sqlite3.Connection, running_limit: int, money_words: Mapping[str, str]) -> StatusLine:
    """Return the numbers above the board, over all workspaces of the database."""
    counts = {str(status): _integer(count) for status, count in connection.execute(OPEN_EXECUTIONS)}
    settings = StoredSettings(connection.execute(SETTINGS).fetchall())
    cost, unpriced, tokens, budget = connection.execute(TODAY, {"today": settings.today()}).fetchone()
    return StatusLine(
        running=sum(counts.get(status, 0) for status in LIVE_STATUSES),
        running_limit=settings.running_limit(running_limit),
        queued=counts.get(ExecutionStatus.QUEUED, 0),
        is_paused=settings.is_paused,
        needs_you=_integer(connection.execute(NEEDING_YOU).fetchone()[0]),
        overlapping=_integer(connection.execute(OVERLAPPING).fetchone()[0]),
        cost_today_nano=_integer(cost),
        tokens_today=_integer(tokens),
        unpriced_today=_integer(unpriced),
        budget_today_nano=None if budget is None else _integer(budget),
        money=money_format({**money_words, **settings.money_words}),
    )


def find_place(
    connection: sqlite3.Connection,
    *,
    workspace_id: WorkspaceId | None,
    task_id: TaskId,
    text_filter: str,
    sort: BoardSort | None,
    board_words: Mapping[str, str],
) -> tuple[TaskStatus, int] | None:
    """Return the column of a task and how many cards stand above it there; None when it is not there.

    That is among the cards of the workspace, or of all when there is none. Without a ``sort`` the cards stand as it is
    set.
    """
    sort = sort or board_setting(board_words, connection.execute(BOARD_ROWS).fetchall()).sort
    scope = _Scope(workspace_id, text_filter)
    rows = connection.execute(
        scope.filled(_PLACE, sort, is_alone=True), {"task_id": task_id, **scope.parameters}
    ).fetchall()
    return (TaskStatus(str(rows[0][0])), _integer(rows[0][1])) if rows else None


def _totals(connection: sqlite3.Connection, scope: _Scope) -> Sequence[Sequence[object]]:
    """Return status, workspace and number of cards; of a filter with words the workspaces are not told apart."""
    if not scope.has_filter:
        return connection.execute(scope.filled(BOARD_COUNTS), scope.parameters).fetchall()
    if not scope.has_words:
        return connection.execute(scope.filled(_TOTALS), scope.parameters).fetchall()
    counts = connection.execute(scope.filled(_TOTALS_OF_WORDS), scope.parameters).fetchone()
    return [(status.value, "", count) for status, count in zip(TaskStatus, counts, strict=True) if count]


def _cards(
    connection: sqlite3.Connection,
    scope: _Scope,
    request: ColumnRequest,
    sort: BoardSort,
    money: MoneyFormat,
    workspaces: _Workspaces,
) -> tuple[Card, ...]:
    parameters = {
        "status": request.status.value,
        "limit": request.limit,
        "offset": request.offset,
        **scope.parameters,
    }
    return _read_cards(connection, scope.filled(_CARDS, sort), parameters, money, workspaces.names)


def read_alternatives(
    connection: sqlite3.Connection, task_id: TaskId, money_words: Mapping[str, str]
) -> tuple[Card, ...]:
    """Return the cards that are alternatives of each other, the task's own among them, by number; none without any."""
    statement = _CARDS.format(ranks="", page=_GROUP, rank="", order="t.number")
    money = money_format({**money_words, **StoredSettings(connection.execute(SETTINGS).fetchall()).money_words})
    return _read_cards(connection, statement, {"task_id": task_id}, money, {})


def _read_cards(
    connection: sqlite3.Connection,
    statement: str,
    parameters: Mapping[str, object],
    money: MoneyFormat,
    workspace_names: Mapping[str, str],
) -> tuple[Card, ...]:
    rows = connection.execute(statement, {**parameters, "now": moment_text(datetime.now(UTC))}).fetchall()
    task_ids = [str(row[0]) for row in rows]
    waits_for, subtasks = _waits_for(connection, task_ids), _subtasks(connection, task_ids)
    labels, spent = _labels(connection, task_ids), read_spent(connection, task_ids)
    changed = {str(row[0]): row[1:] for row in _rows_of(connection, _CHANGED, task_ids)}
    overlaps = _overlaps(connection, task_ids)
    alternatives: dict[str, dict[int, TaskStatus]] = {}
    in_groups = [str(row[0]) for row in rows if row[39] is not None]
    for task_id, number, status in _rows_of(connection, _ALTERNATIVES, in_groups):
        alternatives.setdefault(str(task_id), {})[_integer(number)] = TaskStatus(str(status))
    return tuple(
        _card(
            row,
            waits_for.get(str(row[0]), {}),
            subtasks.get(str(row[0]), (0, 0)),
            tuple(labels.get(str(row[0]), ())),
            spent.get(str(row[0]), Spent()),
            changed.get(str(row[0]), (0, 0, 0)),
            tuple(overlaps.get(str(row[0]), ())),
            alternatives.get(str(row[0]), {}),
            money,
            workspace_names,
        )
        for row in rows
    )


def _waits_for(connection: sqlite3.Connection, task_ids: Sequence[str]) -> dict[str, dict[int, AwaitedState]]:
    waits_for: dict[str, dict[int, AwaitedState]] = {}
    for task_id, number, state in _rows_of(connection, _WAITS_FOR, task_ids):
        waits_for.setdefault(str(task_id), {})[_integer(number)] = AwaitedState(str(state))
    for task_id, number in _rows_of(connection, FOLDER_HOLDERS, task_ids):
        waits_for.setdefault(str(task_id), {}).setdefault(_integer(number), AwaitedState.SAME_FOLDER)
    return waits_for


def _subtasks(connection: sqlite3.Connection, task_ids: Sequence[str]) -> dict[str, tuple[int, int]]:
    rows = _rows_of(connection, _SUBTASKS, task_ids)
    return {str(task_id): (_integer(count), _integer(closed)) for task_id, count, closed in rows}


def _labels(connection: sqlite3.Connection, task_ids: Sequence[str]) -> dict[str, list[str]]:
    labels: dict[str, list[str]] = {}
    for task_id, label in _rows_of(connection, _LABELS, task_ids):
        labels.setdefault(str(task_id), []).append(str(label))
    return labels


def _overlaps(connection: sqlite3.Connection, task_ids: Sequence[str]) -> dict[str, list[Overlap]]:
    rows = _rows_of(connection, _OVERLAPS, task_ids)
    if not rows:
        return {}
    from agentmon.domain.overlaps import Overlap, OverlapKind  # noqa: PLC0415 - most first frames have none

    overlaps: dict[str, list[Overlap]] = {}
    for task_id, execution_id, other_id, number, kind, paths, count, is_own_doing, detail in rows:
        listed = _parsed(paths)
        overlaps.setdefault(str(task_id), []).append(
            Overlap(
                execution_id=ExecutionId(str(execution_id)),
                other_id=ExecutionId(str(other_id)),
                other_number=_integer(number),
                kind=OverlapKind(str(kind)),
                paths=tuple(map(str, listed)) if isinstance(listed, list) else (),
                path_count=_integer(count),
                is_own_doing=None if is_own_doing is None else bool(is_own_doing),
                detail=str(detail),
            )
        )
    return overlaps


def read_spent(connection: sqlite3.Connection, task_ids: Sequence[str]) -> dict[str, Spent]:
    """Return by task what all of its runs took together; nothing of tasks that never ran."""
    return {
        str(task_id): Spent(
            None if cost is None else _integer(cost), _integer(tokens), _integer(unpriced), _integer(runs)
        )
        for task_id, cost, tokens, unpriced, runs in _rows_of(connection, _SPENT, task_ids)
    }


def _rows_of(connection: sqlite3.Connection, statement: str, task_ids: Sequence[str]) -> Sequence[Sequence[object]]:
    if not task_ids:
        return ()
    names = {f"id{index}": task_id for index, task_id in enumerate(task_ids)}
    return connection.execute(statement.format(ids=", ".join(f":{name}" for name in names)), names).fetchall()


def _card(
    row: Sequence[object],
    waits_for: Mapping[int, AwaitedState],
    subtasks: tuple[int, int],
    labels: tuple[str, ...],
    spent: Spent,
    changed: Sequence[object],
    overlaps: tuple[Overlap, ...],
    alternatives: Mapping[int, TaskStatus],
    money: MoneyFormat,
    workspace_names: Mapping[str, str],
) -> Card:
    (task_id, number, title, status, priority, input_context, next_run_at, slug) = row[:8]
    (execution_id, execution_status, exit_code, error, started_at, ended_at, last_line) = row[8:15]
    end_reason, wait_reason, not_before, paused_at, parked_until, park_note = row[15:21]
    activity, is_held, activity_note, working_dir, mode, due_at, archived_at, workspace_id = row[21:29]
    folder = _optional_text(working_dir) or ""
    verification = _verdict(*row[31:34])
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
        log_file_path=_optional_text(row[40]),
        state=None
        if execution_status is None
        else live_state(
            ExecutionStatus(str(execution_status)),
            end_reason=None if end_reason is None else EndReason(str(end_reason)),
            is_parked=parked_until is not None or (wait_reason is not None and WaitReason(str(wait_reason)).is_parking),
            is_paused=paused_at is not None,
            is_stuck=error is not None,
            is_held=bool(is_held),
            is_verifying=is_running(verification),
            activity=None if activity is None else Activity(str(activity)),
        ),
        exit_code=None if exit_code is None else _integer(exit_code),
        error=_optional_text(error if park_note is None else park_note),
        started_at=_optional_time(started_at),
        ended_at=_optional_time(ended_at),
        last_line=_near(last_line, folder),
        cost_nano=spent.cost_nano,
        tokens_used=spent.tokens,
        unpriced_runs=spent.unpriced_runs,
        changed_files=_integer(changed[0]),
        lines_added=_integer(changed[1]),
        lines_removed=_integer(changed[2]),
        money=money,
        activity_note=_near(activity_note, folder),
        is_conversation=mode is not None and ExecutionMode(str(mode)).is_conversation,
        waits_until=waits_until,
        is_retry=wait_reason == WaitReason.RETRY,
        waits_for=tuple(waits_for),
        awaited_states=waits_for,
        subtask_count=subtasks[0],
        subtasks_closed=subtasks[1],
        next_run_at=_optional_time(next_run_at),
        due_at=_optional_time(due_at),
        labels=labels,
        archived_at=_optional_time(archived_at),
        workspace_name=workspace_names.get(str(workspace_id), ""),
        branch=_optional_text(row[29]) or "",
        worktree_path=_optional_text(row[30]) or "",
        verification=verification,
        pull_request="" if row[35] is None else _pull_request_label(row[34:39]),
        overlaps=overlaps,
        alternatives=alternatives,
    )


def _pull_request_label(columns: Sequence[object]) -> str:
    from agentmon.domain.pull_requests import (  # noqa: PLC0415 - most boards have none
        ChecksState,
        PullRequestState,
        PullRequestStatus,
        ReviewState,
    )

    number, state, is_draft, checks, review = columns
    status = PullRequestStatus(
        state=PullRequestState(str(state)),
        is_draft=bool(is_draft),
        checks=None if checks is None else ChecksState(str(checks)),
        review=None if review is None else ReviewState(str(review)),
    )
    return status.label(None if number is None else _integer(number))


def _verdict(status: object, command: object, took_ms: object) -> Verdict | None:
    if status is None:
        return None
    return Verdict(VerificationStatus(str(status)), str(command), None if took_ms is None else _integer(took_ms))


def _command_word(slug: object, input_context: object) -> str | None:
    if slug != ANY_COMMAND_SLUG:
        return None
    context = _parsed(input_context)
    args = context.get("args") if isinstance(context, dict) else None
    words = args.get("argv") if isinstance(args, dict) else None
    return PurePath(str(words[0])).name if isinstance(words, list) and words else None


def _filter_of(text_filter: str) -> tuple[str, dict[str, object]]:
    if not text_filter:
        return ON_BOARD, {}
    from agentmon.store.board_filter import filter_condition  # noqa: PLC0415 - the first frame has no filter

    return filter_condition(text_filter, datetime.now(UTC))


def _parsed(text: object) -> object:
    if not isinstance(text, str | bytes):
        return text
    import json  # noqa: PLC0415 - only cards of the agent for any command need it

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
