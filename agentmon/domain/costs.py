"""What billed answers took and cost, one by one and summed up."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from enum import StrEnum
from operator import add, attrgetter
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

    from agentmon.domain.billing import BilledAnswer


class CostSource(StrEnum):
    """Where the cost of an answer comes from."""

    LIST = "list"
    """The vendor's list price of that day."""
    OVERRIDE = "override"
    """A price that the person set."""
    REPORTED = "reported"
    """The agent wrote it down."""
    NONE = "none"
    """No price is known."""


class CostGroup(StrEnum):
    """By what costs are summed up."""

    DAY = "day"
    WEEK = "week"
    """From Monday to Sunday, named by its Monday."""
    MONTH = "month"
    AGENT = "agent"
    MODEL = "model"
    PROJECT = "project"
    TASK = "task"
    SESSION = "session"
    EXECUTION = "execution"


@dataclass(frozen=True, slots=True, kw_only=True)
class PricedAnswer:
    """A billed answer with what it cost."""

    answer: BilledAnswer
    cost_nano: int | None
    """None when no price is known."""
    cost_source: str
    price_version: str
    """Never empty: an empty one marks an answer that nobody has looked up a price for."""
    project: str = ""
    """The folder or repository in which the agent worked; empty when it is not known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FileCursor:
    """Up to where a file of an agent was read, and what its reader has to know to go on."""

    agent_slug: str
    path: str
    thread_key: str
    inode: int
    size_bytes: int
    mtime_ns: int
    read_offset: int
    """Behind the last whole line, in bytes after decompression."""
    head_hash: str
    parser_version: int
    state: dict[str, object] = field(default_factory=dict)
    """JSON."""


@dataclass(frozen=True, slots=True)
class CostSums:
    """Sums over any number of answers.

    Not by keyword alone: reports make tens of thousands of them from columns in this order, three times as fast so.
    """

    answers: int = 0
    prompt_tokens: int = 0
    """Neither from a cache nor written to one."""
    cache_read_tokens: int = 0
    cache_write_5m_tokens: int = 0
    cache_write_1h_tokens: int = 0
    response_tokens: int = 0
    """With those of reasoning."""
    reasoning_tokens: int = 0
    web_searches: int = 0
    cost_nano: int = 0
    """Of the answers with a known cost."""
    unpriced_answers: int = 0
    reported_answers: int = 0
    """Those whose cost the agent itself reported."""

    def __add__(self, other: CostSums) -> CostSums:
        return CostSums(*map(add, _numbers(self), _numbers(other)))

    @classmethod
    def of_all(cls, parts: Iterable[CostSums]) -> CostSums:
        """Return the sums over all parts; much quicker than to add one after the other."""
        return cls(*map(sum, zip(*map(_numbers, parts), strict=True)))

    @property
    def total_tokens(self) -> int:
        """All tokens; those of reasoning are among those of the response."""
        return (
            self.prompt_tokens
            + self.cache_read_tokens
            + self.cache_write_5m_tokens
            + self.cache_write_1h_tokens
            + self.response_tokens
        )

    @property
    def known_cost_nano(self) -> int | None:
        """The cost, or None when there are answers and none of them has a known cost."""
        return None if self.answers and self.unpriced_answers == self.answers else self.cost_nano


_numbers: Final = attrgetter(*(part.name for part in fields(CostSums)))


@dataclass(frozen=True, slots=True, kw_only=True)
class CostPart:
    """The sums of one group, agent and model."""

    group: str
    """A day, the first day of a week, a month, a slug, a model, a folder, or the id of a row; empty for none."""
    agent_slug: str
    model: str
    sums: CostSums


@dataclass(frozen=True, slots=True, kw_only=True)
class CostFilter:
    """Which answers count; None and empty mean all."""

    since_day: str | None = None
    """The first day, ``2026-03-01``, in the zone of the days."""
    until_day: str | None = None
    """The last day."""
    agent_slug: str = ""
    model: str = ""
    project: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerSource:
    """One answer as it is kept, with the place where it was found."""

    answer: BilledAnswer
    id: str
    agent_slug: str
    session_id: str
    execution_id: str | None
    day_local: str
    cost_nano: int | None
    cost_source: str
    price_version: str
    is_provisional: bool
    path: str | None
    """The file that told it; None for what only a conversation here told."""
    error: str = ""
    """Why the call brought no answer; empty for an answer."""
    error_status: int | None = None
