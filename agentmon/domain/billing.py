"""What the files that agents keep tell about billed answers of models and about the conversations that paid them."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Confidence(StrEnum):
    """How sure the numbers of a billed answer are."""

    EXACT = "exact"
    """As the agent wrote them down."""
    DERIVED = "derived"
    """The difference of two running totals."""
    FALLBACK_MODEL = "fallback_model"
    """The agent did not name the model; the one it used by default at that time is assumed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BilledAnswer:
    """One billed answer of a model, as an agent's own file tells it; the same key again replaces the earlier one."""

    key: str
    """Unique per agent; ``UsageNews`` of a live conversation names the same answer by the same key."""
    session_ref: str
    """The conversation that paid: the first owner of copied history, the parent of a subagent."""
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
    """Where the record's line begins in the file, in bytes after decompression."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HistorySession:
    """What a file tells about a conversation; later facts win, and None was not told."""

    session_ref: str
    """The agent's own id of the conversation."""
    parent_ref: str | None = None
    """The conversation that it was forked from, or whose subagent it is."""
    title: str | None = None
    cwd: str | None = None
    git_branch: str | None = None
    model: str | None = None
    first_at_ms: int | None = None
    """UTC, as the times below."""
    last_at_ms: int | None = None
