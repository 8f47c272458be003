"""News in any order, repeated and of unknown things: nothing raises, and the rows stay whole."""

from __future__ import annotations

import asyncio
import shutil
import sqlite3
import tempfile
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from agentmon.domain import conversation as told
from agentmon.domain.activity import Activity
from agentmon.domain.approvals import ApprovalScope, ApprovalStatus
from agentmon.domain.changes import ChangeType
from agentmon.domain.events import EventLevel
from agentmon.domain.execution_status import ExecutionStatus
from agentmon.domain.executions import TimedNews
from agentmon.domain.operations import MessageRole, OperationStatus, OperationType
from agentmon.services.actors import USER_ACTOR
from tests.store.conversation_place import NOON_MS, an_ending, opened_copy, opened_place
from tests.store.queue_place import NOON
from tests.store.recounts import counted_anew, kept_counts

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tests.store.conversation_place import ConversationPlace

pytestmark = pytest.mark.proof

_REFS: Final = st.sampled_from(["1", "2", "3"])
_KEYS: Final = st.sampled_from(["a", "b"])
_TEXTS: Final = st.sampled_from(["", "Hello", "ä\n", "100%"])
_COUNTS: Final = st.integers(0, 1000)

NEWS: Final[st.SearchStrategy[told.ConversationNews]] = st.one_of(
    st.builds(told.SessionNews, session_ref=st.none() | _REFS, title=st.none() | _TEXTS, model=st.none() | _KEYS),
    st.builds(told.ActivityNews, activity=st.sampled_from(Activity), note=_TEXTS, source=_TEXTS),
    st.builds(
        told.MessageNews, message_ref=_REFS, role=st.sampled_from(MessageRole), text=_TEXTS, continues=st.booleans()
    ),
    st.builds(told.PlanNews, steps=st.just(())),
    st.builds(
        told.ToolStartedNews,
        tool_ref=_REFS,
        tool_name=_KEYS,
        type=st.sampled_from(OperationType),
        target=_TEXTS,
        answer_key=st.none() | _KEYS,
    ),
    st.builds(
        told.ToolFinishedNews,
        tool_ref=_REFS,
        status=st.sampled_from(OperationStatus),
        duration_ms=st.none() | _COUNTS,
    ),
    st.builds(
        told.DiffNews,
        path=_TEXTS,
        change_type=st.sampled_from(ChangeType),
        diff=_TEXTS,
        added_lines=_COUNTS,
        removed_lines=_COUNTS,
        tool_ref=st.none() | _REFS,
    ),
    st.builds(
        told.AskNews,
        request_id=_REFS,
        ask_kind=st.sampled_from(told.AskKind),
        title=_TEXTS,
        tool_ref=st.none() | _REFS,
        type=st.none() | st.sampled_from(OperationType),
        questions=st.just((told.AskQuestion(question="?", choices=(told.AskChoice(key="k", label="l"),)),)),
    ),
    st.builds(told.AskClosedNews, request_id=_REFS, outcome=st.sampled_from(told.AskOutcome)),
    st.builds(
        told.UsageNews,
        key=_KEYS,
        model=_KEYS,
        provider=st.just("p"),
        prompt_tokens=_COUNTS,
        cache_read_tokens=_COUNTS,
        response_tokens=_COUNTS,
        reasoning_tokens=_COUNTS,
        is_final=st.booleans(),
        is_key_provisional=st.booleans(),
    ),
    st.builds(told.CostNews, cost_nano=_COUNTS),
    st.builds(told.TurnStartedNews),
    st.builds(told.TurnEndedNews, outcome=st.sampled_from(told.TurnOutcome)),
    st.builds(told.NoticeNews, level=st.sampled_from(EventLevel), text=_TEXTS),
    st.builds(told.CommandNews, command_id=_REFS, was_obeyed=st.booleans(), is_queued=st.booleans()),
)
_STRETCHES: Final = st.lists(st.lists(NEWS, max_size=8), min_size=1, max_size=5)
_QUICK: Final = settings(
    max_examples=8,
    deadline=None,
    database=None,
    derandomize=True,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=[HealthCheck.too_slow],
)


@pytest.fixture(scope="module")
def template() -> Iterator[Path]:
    """A folder with a database in which one execution is queued, copied for each example."""
    with tempfile.TemporaryDirectory() as folder:

        async def make() -> None:
            async with opened_place(Path(folder)) as place:
                await place.enqueue()
                await place.enqueue(prompt=None)

        asyncio.run(make())
        yield Path(folder)


@_QUICK
@given(stretches=_STRETCHES, ends=st.booleans())
def test_any_news_leave_whole_rows_and_the_same_ones_however_they_are_cut(
    template: Path, stretches: list[list[told.ConversationNews]], ends: bool
) -> None:
    at_once = [[news for stretch in stretches for news in stretch]]
    one_by_one = [[], *([news] for news in at_once[0])]

    ways = [_play(template, way, ends=ends) for way in (stretches, at_once, one_by_one)]

    assert ways[0] == ways[1] == ways[2]


@_QUICK
@given(before=st.lists(NEWS, max_size=12), after=st.lists(NEWS, max_size=12), pick=st.integers(0, 5))
def test_a_decision_between_any_news_is_made_once_and_stays(
    template: Path, before: list[told.ConversationNews], after: list[told.ConversationNews], pick: int
) -> None:
    async def play(folder: Path) -> None:
        async with opened_copy(folder / "a.db") as place:
            execution_id = (await place.claim()).execution.id
            await place.tell(execution_id, *before)
            pending = [
                one.approval
                for one in await place.approvals.pending(None)
                if one.approval.ask_kind not in {told.AskKind.DIALOG, told.AskKind.START}
            ]
            if not pending:
                return
            chosen = pending[pick % len(pending)]
            decided = await place.approvals.decide(
                chosen.id,
                status=ApprovalStatus.ALLOWED,
                scope=ApprovalScope.ONCE,
                actor=USER_ACTOR,
                reason="",
                answer={"decision": "allow"},
                rule_id=None,
                seen_digest=chosen.input_digest,
                at=NOON,
            )
            await place.tell(execution_id, *after, at_ms=NOON_MS + 60_000)
            _check(place)
            assert (await place.approvals.get(decided.id)).approval.status is ApprovalStatus.ALLOWED
            assert (await place.queue.executions.get(execution_id)).status is ExecutionStatus.RUNNING

    with tempfile.TemporaryDirectory() as folder:
        shutil.copy(template / "a.db", Path(folder) / "a.db")
        asyncio.run(play(Path(folder)))


def _play(template: Path, stretches: Sequence[Sequence[told.ConversationNews]], *, ends: bool) -> object:
    """Return the rows that the news leave."""
    with tempfile.TemporaryDirectory() as folder:
        shutil.copy(template / "a.db", Path(folder) / "a.db")
        return asyncio.run(_told(Path(folder), stretches, ends=ends))


async def _told(folder: Path, stretches: Sequence[Sequence[told.ConversationNews]], *, ends: bool) -> object:
    async with opened_copy(folder / "a.db") as place:
        begun = [(await place.claim()).execution.id for _ in range(2)]
        for execution_id in begun:
            at_ms = NOON_MS
            for stretch in stretches:
                timed = [TimedNews(at_ms=at_ms + index, news=news) for index, news in enumerate(stretch)]
                await place.tell_at(execution_id, timed)
                at_ms += len(stretch)
                if len(stretch) != 1:
                    _check(place)
            if ends:
                await place.tell(execution_id, ending=an_ending(ExecutionStatus.FAILED))
        _check(place)
        return _contents(place, is_over=ends)


def _check(place: ConversationPlace) -> None:
    with closing(sqlite3.connect(place.database.path)) as connection:
        assert kept_counts(connection) == counted_anew(connection)
    for table, ref in (("messages", "message_ref"), ("operations", "operation_ref"), ("approvals", "request_ref")):
        assert not place.rows(f"SELECT {ref} FROM {table} GROUP BY execution_id, {ref} HAVING count(*) > 1")
    assert not place.rows(
        "SELECT a.id FROM approvals a JOIN executions e ON e.id = a.execution_id "
        "WHERE a.status = 'pending' AND e.status NOT IN ('queued', 'running', 'cancelling')"
    )
    assert not place.rows(
        "SELECT e.id FROM executions e JOIN approvals a ON a.execution_id = e.id AND a.status = 'pending' "
        "WHERE e.status = 'running' AND e.activity IS NOT 'waiting'"
    )
    tokens = "prompt_tokens + cache_read_tokens + cache_write_5m_tokens + cache_write_1h_tokens + response_tokens"
    for table, column, total in (
        ("executions", "execution_id", "tokens_used"),
        ("sessions", "session_id", "total_tokens"),
    ):
        assert not place.rows(
            f"SELECT t.id FROM {table} t WHERE t.{total} <> "
            f"(SELECT coalesce(sum({tokens}), 0) FROM llm_interactions i WHERE i.{column} = t.id)"
        )
    assert not place.rows(
        "SELECT s.id FROM sessions s WHERE s.total_cost_nano <> "
        "(SELECT coalesce(sum(e.cost_nano), 0) FROM executions e WHERE e.session_id = s.id) OR s.operation_count <> "
        "(SELECT count(*) FROM operations o WHERE o.session_id = s.id)"
    )
    assert not place.rows(
        "SELECT i.key FROM llm_interactions i JOIN operations o ON o.answer_key = i.key "
        "AND o.execution_id = i.execution_id GROUP BY i.id, o.execution_id "
        f"HAVING sum(o.input_tokens + o.output_tokens) <> {tokens}"
    )
    assert not place.rows(
        "SELECT s.id FROM sessions s JOIN agent_registry r ON r.session_id = s.id WHERE r.status <> CASE s.status "
        "WHEN 'completed' THEN 'completed' WHEN 'failed' THEN 'error' WHEN 'cancelled' THEN 'error' "
        "WHEN 'paused' THEN 'paused' ELSE 'active' END"
    )


def _contents(place: ConversationPlace, *, is_over: bool) -> object:
    """Return all rows of conversations without their ids; what an agent does at the moment only when it is over."""
    passing = {"id", "session_id", "operation_id", "updated_at"}
    if not is_over:
        passing |= {"activity", "activity_note", "activity_source", "activity_at"}
    passing.add("journal_offset")
    return {
        table: [
            {
                name: content
                for name, content in row.items()
                if name not in passing and (is_over or (table, name) != ("sessions", "status"))
            }
            for row in place.rows(f"SELECT * FROM {table} ORDER BY id")
        ]
        for table in ("sessions", "messages", "operations", "approvals", "llm_interactions", "executions")
    }
