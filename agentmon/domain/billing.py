"""What the files that agents keep tell about billed answers of models and about the conversations that paid them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum


class Confidence(StrEnum):
    """How sure the numbers of a billed answer are."""

    EXACT = "exact"
    """As the agent wrote them down."""
    DERIVED = "derived"
    """The difference of two running totals, or an even part of a sum over many answers."""
    ASSUMED = "assumed"
    """Something that the record leaves out is assumed as it mostly is: which model answered, how long a cache lives, or
    that running totals which fell have begun anew."""
    INCOMPLETE = "incomplete"
    """Written down while the answer had only begun; its end was never told."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BilledAnswer:
    """One billed answer of a model, as an agent's own file tells it; see ``merge_answers`` when it is told again."""

    key: str
    """Unique per agent; ``UsageNews`` of a live conversation names the same answer by the same key."""
    session_ref: str
    """The conversation that paid: the first owner of copied history, the parent of a subagent."""
    is_owner_marked: bool = False
    """Whether the record names the owner of copied history. Where none does, the oldest file that has it owns it."""
    cwd: str = ""
    """Where the agent worked then; empty when the record does not say."""
    provider: str
    """``anthropic``, ``openai``, ``google`` …; empty when it is not known."""
    model: str
    """As recorded; empty only when none was recorded and none can be assumed."""
    at_ms: int
    """UTC; 0 when the record has no time."""
    prompt_tokens: int
    """Neither from a cache nor written to one."""
    cache_read_tokens: int
    cache_write_5m_tokens: int
    """Those of agents that do not tell how long a cache lives as well."""
    cache_write_1h_tokens: int
    response_tokens: int
    """With those of reasoning."""
    reasoning_tokens: int
    web_searches: int = 0
    speed: str = "standard"
    """``standard``, ``fast``, ``priority``, ``flex`` or ``batch``."""
    geo: str = ""
    """``us`` when the record says that only computers there were used."""
    is_subagent: bool = False
    reported_cost_nano: int | None = None
    """What the agent itself wrote down as the cost, in nano-dollars."""
    confidence: Confidence = Confidence.EXACT
    offset: int
    """Where the record's line begins in the file, in bytes after decompression; in a database the number of its row."""
    provisional_key: str = ""
    """The key under which a live conversation told of it, where the protocol does not name the true one."""

    @property
    def total_tokens(self) -> int:
        """All tokens of the answer; those of reasoning are among those of the response."""
        return (
            self.prompt_tokens
            + self.cache_read_tokens
            + self.cache_write_5m_tokens
            + self.cache_write_1h_tokens
            + self.response_tokens
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class FailedCall:
    """A call of a model that brought no answer, as an agent's own file tells it: it is not billed."""

    key: str
    """Unique per agent, among the keys of answers too."""
    session_ref: str
    provider: str
    model: str
    """Empty when the record does not say it."""
    at_ms: int
    """UTC."""
    error: str
    """What the vendor or the agent said, in one line."""
    status: int | None = None
    """With which status the vendor answered; None when none is told."""
    is_subagent: bool = False
    offset: int
    """Where the record's line begins in the file, in bytes after decompression."""


def merge_answers(earlier: BilledAnswer, later: BilledAnswer) -> BilledAnswer:
    """Return what is known of an answer that was told twice under one key.

    The numbers are those of the whole telling of the conversation itself rather than of its subagent, else those of the
    larger one: agents write an answer down before its size is known, and copy it into other files. Of two alike ones
    the later counts. Its time is that of the earliest telling, since copies may be stamped anew. A marked owner stays,
    and so does the first one when none is marked; a cost once reported stays.
    """
    best = later if _rank(later) >= _rank(earlier) else earlier
    owner = later if later.is_owner_marked and not earlier.is_owner_marked else earlier
    times = [answer.at_ms for answer in (earlier, later) if answer.at_ms]
    costs = [answer.reported_cost_nano for answer in (best, later, earlier) if answer.reported_cost_nano is not None]
    return replace(
        best,
        session_ref=owner.session_ref,
        is_owner_marked=owner.is_owner_marked,
        cwd=owner.cwd or best.cwd,
        at_ms=min(times, default=0),
        reported_cost_nano=costs[0] if costs else None,
    )


def _rank(answer: BilledAnswer) -> tuple[bool, bool, int, int, int]:
    is_whole = answer.confidence is not Confidence.INCOMPLETE
    return is_whole, not answer.is_subagent, answer.response_tokens, answer.total_tokens, answer.web_searches


@dataclass(frozen=True, slots=True, kw_only=True)
class HistorySession:
    """What a file tells about a conversation; later facts win, and None was not told."""

    session_ref: str
    """The agent's own id of the conversation."""
    parent_ref: str | None = None
    """The conversation that it was forked from, or whose subagent it is."""
    title: str | None = None
    cwd: str | None = None
    project: str = ""
    """The repository around ``cwd``; empty until somebody has looked for it, which no reader does."""
    git_branch: str | None = None
    model: str | None = None
    first_at_ms: int | None = None
    """UTC, as the times below."""
    last_at_ms: int | None = None


def merge_sessions(earlier: HistorySession, later: HistorySession) -> HistorySession:
    """Return what is known of a conversation that was told of twice: later facts win, its times widen."""
    begun = [at_ms for at_ms in (earlier.first_at_ms, later.first_at_ms) if at_ms is not None]
    ended = [at_ms for at_ms in (earlier.last_at_ms, later.last_at_ms) if at_ms is not None]
    return HistorySession(
        session_ref=earlier.session_ref,
        parent_ref=later.parent_ref or earlier.parent_ref,
        title=later.title or earlier.title,
        cwd=later.cwd or earlier.cwd,
        project=later.project if later.cwd else earlier.project,
        git_branch=later.git_branch or earlier.git_branch,
        model=later.model or earlier.model,
        first_at_ms=min(begun, default=None),
        last_at_ms=max(ended, default=None),
    )
