"""What each column of the table of executions says, and by what it is sorted."""

from __future__ import annotations

from pathlib import PurePath
from typing import TYPE_CHECKING, Final, NamedTuple

from agentmon.domain.amounts import count_text, size_text
from agentmon.domain.any_command import ANY_COMMAND_SLUG
from agentmon.domain.execution_columns import ExecutionColumn
from agentmon.domain.execution_status import ExecutionStatus
from agentmon.widgets.local_time import local_time_text
from agentmon.widgets.state_words import Wait, execution_words, reason_text

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from datetime import datetime
    from typing import TypeAlias

    from agentmon.domain.amounts import MoneyFormat
    from agentmon.domain.executions import Execution, ExecutionListing

    SortKey: TypeAlias = float | str | None

_STATE_ORDER: Final = {
    ExecutionStatus.RUNNING: 0,
    ExecutionStatus.CANCELLING: 1,
    ExecutionStatus.FINALIZING: 1,
    ExecutionStatus.QUEUED: 2,
    ExecutionStatus.FAILED: 3,
    ExecutionStatus.TIMED_OUT: 4,
    ExecutionStatus.CANCELLED: 5,
    ExecutionStatus.SUCCEEDED: 6,
}


class Row(NamedTuple):
    """One execution, with all that its cells are told from."""

    listing: ExecutionListing
    wait: Wait
    now: datetime
    money: MoneyFormat

    @property
    def execution(self) -> Execution:
        """The execution itself."""
        return self.listing.execution

    @property
    def elapsed_s(self) -> float | None:
        """For how many seconds it ran or has been running."""
        return self.execution.elapsed_s(self.now)


class Cell(NamedTuple):
    """One column."""

    text: Callable[[Row], str]
    key: Callable[[Row], SortKey]
    """Keys of one column are all numbers or all texts; rows without a key come last, either way round."""
    width: int = 0
    """In terminal cells; 0 takes a part of what the others leave."""
    is_right: bool = False


def program_word(listing: ExecutionListing) -> str:
    """Return what runs, in one word: the agent's slug, or the program of the agent that runs any command."""
    argv = listing.execution.args.get("argv")
    if listing.agent_slug != ANY_COMMAND_SLUG or not isinstance(argv, list | tuple) or not argv:
        return listing.agent_slug
    return PurePath(str(argv[0])).name


def _moment(row: Row, moment: datetime | None) -> str:
    return "" if moment is None else local_time_text(moment, row.now)


def _seconds_of(moment: datetime | None) -> float | None:
    return None if moment is None else moment.timestamp()


def _elapsed(row: Row) -> str:
    return row.execution.elapsed_text(row.now)


def _exit(row: Row) -> str:
    code = row.execution.exit_code
    return "" if code is None else str(code)


def _output(row: Row) -> str:
    size = row.execution.log_byte_size
    return size_text(size) if size else ""


def _changes(row: Row) -> str:
    execution = row.execution
    if not execution.changed_files:
        return ""
    return f"+{execution.lines_added or 0} −{execution.lines_removed or 0}"


def _verification(row: Row) -> str:
    verdict = row.execution.verification
    return "" if verdict is None else verdict.text


def _tokens(row: Row) -> str:
    return count_text(row.execution.tokens_used) if row.execution.tokens_used else ""


def _cost(row: Row) -> str:
    cost_nano = row.execution.cost_nano
    return "" if cost_nano is None else row.money.text(cost_nano)


def _last_line(row: Row) -> str:
    said = reason_text(row.execution, row.wait) or row.execution.last_line or ""
    return "  ".join(text for text in (_verification(row), said) if text)


CELLS: Final[Mapping[ExecutionColumn, Cell]] = {
    ExecutionColumn.STATE: Cell(
        lambda row: execution_words(row.execution, row.now, row.wait).text,
        lambda row: _STATE_ORDER[row.execution.status],
        width=20,
    ),
    ExecutionColumn.TASK: Cell(lambda row: row.listing.task_title, lambda row: row.listing.task_number),
    ExecutionColumn.AGENT: Cell(lambda row: program_word(row.listing), lambda row: program_word(row.listing), width=10),
    ExecutionColumn.CAPABILITY: Cell(
        lambda row: row.listing.capability_key, lambda row: row.listing.capability_key or None, width=12
    ),
    ExecutionColumn.MODEL: Cell(lambda row: row.listing.model or "", lambda row: row.listing.model or None, width=18),
    ExecutionColumn.QUEUED: Cell(
        lambda row: _moment(row, row.execution.created_at), lambda row: _seconds_of(row.execution.created_at), width=12
    ),
    ExecutionColumn.STARTED: Cell(
        lambda row: _moment(row, row.execution.started_at), lambda row: _seconds_of(row.execution.started_at), width=12
    ),
    ExecutionColumn.ENDED: Cell(
        lambda row: _moment(row, row.execution.ended_at), lambda row: _seconds_of(row.execution.ended_at), width=12
    ),
    ExecutionColumn.ELAPSED: Cell(_elapsed, lambda row: row.elapsed_s, width=7, is_right=True),
    ExecutionColumn.TRIES: Cell(
        lambda row: str(row.execution.attempt + 1), lambda row: row.execution.attempt, width=5, is_right=True
    ),
    ExecutionColumn.EXIT: Cell(_exit, lambda row: row.execution.exit_code, width=5, is_right=True),
    ExecutionColumn.OUTPUT: Cell(_output, lambda row: row.execution.log_byte_size, width=8, is_right=True),
    ExecutionColumn.CHANGES: Cell(_changes, lambda row: row.execution.changed_files or None, width=11, is_right=True),
    ExecutionColumn.VERIFICATION: Cell(_verification, lambda row: _verification(row) or None, width=14),
    ExecutionColumn.TOKENS: Cell(_tokens, lambda row: row.execution.tokens_used or None, width=7, is_right=True),
    ExecutionColumn.COST: Cell(_cost, lambda row: row.execution.cost_nano, width=8, is_right=True),
    ExecutionColumn.LAST_LINE: Cell(
        _last_line, lambda row: (row.execution.error or row.execution.last_line or "").casefold() or None
    ),
}
"""Every column, with what stands in it."""
