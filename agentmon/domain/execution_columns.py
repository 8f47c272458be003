"""The columns of the table of executions, and how a person names those to be shown."""

from __future__ import annotations

from enum import StrEnum
from typing import Final

from agentmon.domain.errors import UsageError


class ExecutionColumn(StrEnum):
    """What can be told of an execution in one cell; the value is its name in settings."""

    STATE = "state"
    TASK = "task"
    AGENT = "program"
    CAPABILITY = "capability"
    MODEL = "model"
    QUEUED = "queued"
    STARTED = "started"
    ENDED = "ended"
    ELAPSED = "time"
    TRIES = "tries"
    EXIT = "exit"
    OUTPUT = "output"
    CHANGES = "changes"
    VERIFICATION = "verification"
    TOKENS = "tokens"
    COST = "cost"
    LAST_LINE = "last-line"

    @property
    def heading(self) -> str:
        """What stands above the column."""
        return self.value.replace("-", " ").capitalize()


DEFAULT_COLUMNS: Final = (
    ExecutionColumn.STATE,
    ExecutionColumn.TASK,
    ExecutionColumn.AGENT,
    ExecutionColumn.MODEL,
    ExecutionColumn.STARTED,
    ExecutionColumn.ELAPSED,
    ExecutionColumn.TOKENS,
    ExecutionColumn.COST,
    ExecutionColumn.LAST_LINE,
)
"""From left to right; where there is no room for all, the most needed stay."""


def parse_columns(text: str) -> tuple[ExecutionColumn, ...]:
    """Return the columns of their names, apart by blanks or commas, each once; empty gives the default.

    Raises:
        UsageError: There is no such column; the hint names all.
    """
    chosen: dict[ExecutionColumn, None] = {}
    for word in text.replace(",", " ").split():
        try:
            chosen[ExecutionColumn(word.lower())] = None
        except ValueError as error:
            raise UsageError(f"there is no column {word}", hint=f"columns are {', '.join(ExecutionColumn)}") from error
    return tuple(chosen) or DEFAULT_COLUMNS


def columns_text(columns: tuple[ExecutionColumn, ...]) -> str:
    """Return the columns as they stand in a setting; the default is the empty text."""
    return "" if columns == DEFAULT_COLUMNS else " ".join(columns)
