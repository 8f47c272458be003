"""What the rows of a card add up to, beside what the mock model counted."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from http import HTTPStatus
from itertools import chain, repeat
from typing import TYPE_CHECKING, Final

from agentmon.domain.board import ColumnRequest
from agentmon.domain.task_status import TaskStatus

if TYPE_CHECKING:
    from agentmon.domain.approvals import ApprovalStatus
    from agentmon.domain.board import Card
    from agentmon.domain.ids import TaskId
    from agentmon.domain.live_state import LiveState
    from tests.agents.drive import Drive

PRICES: Final = '[[price]]\nmodel = "*"\ninput = 1\noutput = 2\ncache_read = 1\ncache_write = 1\ncache_write_1h = 1\n'
_INPUT_NANO: Final = 1_000
_OUTPUT_NANO: Final = 2_000
_SHORTEST_PIECE: Final = "word0 word1"


@dataclass(frozen=True, kw_only=True)
class Count:
    """All rows of a database that has one card; whatever belongs to no session or run of that is told by number."""

    sessions: int
    strays: int
    said: list[str]
    answers: list[str]
    calls: Counter[tuple[str, str]]
    """Type and status."""
    requests: list[ApprovalStatus]
    billed: Counter[tuple[int, int, int]]
    """Tokens of an answer that came from no cache, from one, and of what was answered."""
    session_tokens: int
    card: tuple[TaskStatus, LiveState | None, int, int]
    """Column, state, tokens, cost in nano-USD."""


@dataclass(kw_only=True)
class Expected:
    """What a step knows beside the mock's count."""

    column: TaskStatus
    state: LiveState | None
    sessions: int = 1
    keeps_broken_text: bool = False
    """Whether the words that an answer had before it was broken off are told."""
    may_keep_broken_text: bool = False
    """Whether they are told if the agent had written them down by then."""
    keeps_broken_usage: bool = False
    """Whether the tokens that such an answer told by then are."""
    is_billed: bool = True
    """Whether the agent has told yet what its answers took."""
    said: list[str] = field(default_factory=list)
    calls: list[tuple[str, str]] = field(default_factory=list)
    requests: list[ApprovalStatus] = field(default_factory=list)


async def count(drive: Drive, task_id: TaskId) -> Count:
    """Count the rows."""
    sessions = drive._select("SELECT * FROM sessions", ())
    messages = drive._select("SELECT * FROM messages ORDER BY created_at, id", ())
    operations = drive._select("SELECT * FROM operations", ())
    billed = [row for row in drive._select("SELECT * FROM llm_interactions", ()) if row["success"]]
    known = {row["id"] for row in drive.executions()}
    card = await find_card(drive, task_id)
    texts = [row for row in messages if not row["is_thinking"] and row["content"]]
    return Count(
        sessions=len(sessions),
        strays=sum(row["task_id"] != task_id or not row["session_ref"] for row in sessions)
        + sum(row["execution_id"] not in known for row in (*messages, *operations, *billed)),
        said=[row["content"] for row in texts if row["role"] == "user"],
        answers=[row["content"] for row in texts if row["role"] == "assistant"],
        calls=Counter((row["type"], row["status"]) for row in operations),
        requests=[row["status"] for row in drive._select("SELECT * FROM approvals ORDER BY asked_at, id", ())],
        billed=Counter(
            (
                row["prompt_tokens"] + row["cache_write_5m_tokens"] + row["cache_write_1h_tokens"],
                row["cache_read_tokens"],
                row["response_tokens"],
            )
            for row in billed
        ),
        session_tokens=sum(row["total_tokens"] for row in sessions),
        card=(card.status, card.state, card.tokens_used, card.cost_nano or 0),
    )


def counted(drive: Drive, expected: Expected, rows: Count) -> Count:
    """Return what the rows have to add up to, by the mock's own count.

    Args:
        drive: With the mock.
        expected: What only the step knows.
        rows: Of an answer that was broken off, how far it came is taken from them.
    """
    answered = [one for one in drive.answered() if one["status"] == HTTPStatus.OK]
    whole = [one for one in answered if one["ended_at_ms"] is not None]
    whole_texts = [one for one in whole if one["text"]]
    is_kept = expected.may_keep_broken_text and len(rows.answers) > len(whole_texts)
    told = [one for one in answered if one["text"]] if expected.keeps_broken_text or is_kept else whole_texts
    texts = [
        said if one["ended_at_ms"] is None and _is_piece(said, one["text"]) else one["text"]
        for one, said in zip(told, chain(rows.answers, repeat("")), strict=False)
    ]
    usages = [one["usage"] for one in (answered if expected.keeps_broken_usage else whole) if one["usage"]]
    if not expected.is_billed:
        usages.clear()
    taken = [(one["input"] + one["cache_write"], one["cache_read"], one["output"]) for one in usages]
    tokens = sum(sum(one) for one in taken)
    cost = sum((fresh + cached) * _INPUT_NANO + out * _OUTPUT_NANO for fresh, cached, out in taken)
    return Count(
        sessions=expected.sessions,
        strays=0,
        said=expected.said,
        answers=texts,
        calls=Counter(expected.calls),
        requests=expected.requests,
        billed=Counter(taken),
        session_tokens=tokens,
        card=(expected.column, expected.state, tokens, cost),
    )


def _is_piece(said: str, whole: str) -> bool:
    return said.startswith(_SHORTEST_PIECE) and whole.startswith(said.strip())


async def find_card(drive: Drive, task_id: TaskId) -> Card:
    requests = [ColumnRequest(status) for status in TaskStatus]
    page = await drive.services.board.page(drive.workspace, requests)
    return next(card for column in page.columns.values() for card in column.cards if card.task_id == task_id)
