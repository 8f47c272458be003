"""What agents tell live and what their own files tell later are the same answers."""

from __future__ import annotations

import itertools
import sqlite3
from contextlib import closing
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from agentmon.domain.billing import BilledAnswer, Confidence, FailedCall, HistorySession
from agentmon.domain.board import ColumnRequest
from agentmon.domain.clock import FakeClock
from agentmon.domain.conversation import CostNews, SessionNews, UsageNews
from agentmon.domain.costs import CostGroup, FileCursor, PricedAnswer
from agentmon.domain.task_status import TaskStatus
from agentmon.store.board_pages import BoardRepository
from agentmon.store.summaries import DaySpan, SummaryRepository
from agentmon.store.usage_costs import CostRepository
from agentmon.store.usage_days import UsageDayRepository
from agentmon.store.usage_import import FilePiece, UsageImport
from agentmon.store.usage_prices import UsagePriceRepository
from tests.store.conversation_place import NOON_MS, an_ending, opened_place
from tests.store.queue_place import NOON
from tests.store.recounts import counted_anew, kept_counts

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator, Sequence
    from pathlib import Path

    from agentmon.domain.board import Card
    from agentmon.domain.ids import ExecutionId
    from tests.store.conversation_place import ConversationPlace

REF = "0c0ffee0-session"


@pytest.fixture
async def place(tmp_path: Path) -> AsyncIterator[ConversationPlace]:
    async with opened_place(tmp_path) as opened:
        yield opened


@pytest.fixture
def files(place: ConversationPlace) -> Iterator[UsageImport]:
    store = UsageImport(place.database.path, zone_name="UTC", clock=FakeClock(NOON))
    yield store
    store.close()


def bills(key: str, tokens: int = 10, *, is_key_provisional: bool = False) -> UsageNews:
    return UsageNews(
        key=key, model="m", provider="anthropic", prompt_tokens=tokens, is_key_provisional=is_key_provisional
    )


def told(key: str, tokens: int = 10, *, at_ms: int = NOON_MS, ref: str = REF, offset: int = 0) -> PricedAnswer:
    answer = BilledAnswer(
        key=key,
        session_ref=ref,
        cwd="/w",
        provider="anthropic",
        model="m",
        at_ms=at_ms,
        prompt_tokens=tokens,
        cache_read_tokens=0,
        cache_write_5m_tokens=0,
        cache_write_1h_tokens=0,
        response_tokens=0,
        reasoning_tokens=0,
        offset=offset,
    )
    return PricedAnswer(answer=answer, cost_nano=tokens * 1000, cost_source="list", price_version="1", project="/w")


def write(
    store: UsageImport,
    *answers: PricedAnswer,
    path: str = "/a.jsonl",
    sessions: Sequence[HistorySession] = (),
    failures: Sequence[FailedCall] = (),
    mtime_ns: int = 1,
) -> None:
    """Let a file of Claude's tell these answers, behind what it told before."""
    before = store.cursors().get(path)
    after = FileCursor(
        agent_slug="claude",
        path=path,
        thread_key=path,
        inode=1,
        size_bytes=100,
        mtime_ns=mtime_ns,
        read_offset=(0 if before is None else before.read_offset) + 100,
        head_hash="",
        parser_version=1,
    )
    told_of = sessions or [HistorySession(session_ref=one.answer.session_ref, cwd="/w") for one in answers[:1]]
    piece = FilePiece(before=before, after=after, answers=answers, sessions=told_of, failures=failures)
    assert store.write(piece)


def totals(place: ConversationPlace) -> tuple[object, ...]:
    (kept,) = place.rows("SELECT coalesce(sum(answers), 0) a, coalesce(sum(prompt_tokens), 0) t FROM daily_usage")
    (rows,) = place.rows("SELECT count(*) a, coalesce(sum(prompt_tokens), 0) t FROM llm_interactions")
    sessions = place.rows("SELECT sum(total_tokens) t FROM sessions")
    assert kept == rows
    assert sessions == [{"t": rows["t"]}]
    return tuple(rows.values())


async def costs(place: ConversationPlace, execution_id: ExecutionId) -> tuple[int | None, int]:
    """Return what a run and its session cost."""
    session = await place.sessions.get(await place.session_id(execution_id))
    return (await place.queue.executions.get(execution_id)).cost_nano, session.total_cost_nano


async def reprice(place: ConversationPlace, cost_nano: int | None) -> None:
    version = str(len(place.rows("SELECT DISTINCT price_version FROM llm_interactions")) + 1)
    source = "none" if cost_nano is None else "list"
    await UsagePriceRepository(place.database).price_all(
        lambda answer: PricedAnswer(answer=answer, cost_nano=cost_nano, cost_source=source, price_version=version)
    )


async def test_what_a_conversation_tells_is_in_the_sums_at_once(place: ConversationPlace) -> None:
    execution = await place.begin()
    await place.tell(execution.id, SessionNews(session_ref=REF), bills("a", 4), bills("b", 5))
    await place.tell(execution.id, bills("a", 40))

    assert place.rows("SELECT project, answers, prompt_tokens, unpriced_answers FROM daily_usage") == [
        {"project": "/w", "answers": 2, "prompt_tokens": 45, "unpriced_answers": 2}
    ]
    assert totals(place) == (2, 45)


async def test_what_is_assumed_of_a_live_answer_is_marked_until_it_is_told(
    place: ConversationPlace, files: UsageImport
) -> None:
    execution = await place.begin()
    assumed = replace(bills("a"), cache_write_5m_tokens=5_000, confidence=Confidence.ASSUMED)
    await place.tell(execution.id, SessionNews(session_ref=REF), assumed, replace(assumed, key="b"))
    assert place.rows("SELECT DISTINCT confidence FROM llm_interactions") == [{"confidence": "assumed"}]

    await place.tell(execution.id, bills("a"))
    write(files, told("b"))

    assert place.rows("SELECT DISTINCT confidence FROM llm_interactions") == [{"confidence": "exact"}]


async def test_a_file_takes_over_what_was_told_live_and_its_run_stays(
    place: ConversationPlace, files: UsageImport
) -> None:
    execution = await place.begin()
    await place.tell(execution.id, SessionNews(session_ref=REF), bills("a", 4))

    write(files, told("a", 44), told("b", 6, at_ms=NOON_MS + 2000))
    await place.tell(execution.id, bills("a", 5), bills("c", 7))

    rows = place.rows("SELECT key, prompt_tokens, cost_nano, execution_id FROM llm_interactions ORDER BY key")
    assert [(row["key"], row["prompt_tokens"], row["cost_nano"]) for row in rows] == [
        ("a", 44, 44_000),
        ("b", 6, 6_000),
        ("c", 7, None),
    ]
    assert {row["execution_id"] for row in rows} <= {execution.id, None}
    assert totals(place) == (3, 57)


async def test_answers_of_a_file_belong_to_the_run_in_whose_time_they_came(
    place: ConversationPlace, files: UsageImport
) -> None:
    execution = await place.begin()
    await place.tell(execution.id, SessionNews(session_ref=REF), ending=an_ending())
    place_of_run = place.rows("SELECT started_at, ended_at FROM executions")
    assert None not in place_of_run[0].values()

    hour = round(timedelta(hours=1).total_seconds() * 1000)
    write(files, told("before", at_ms=NOON_MS - hour), told("in", at_ms=NOON_MS), told("after", at_ms=NOON_MS + hour))

    rows = {row["key"]: row["execution_id"] for row in place.rows("SELECT key, execution_id FROM llm_interactions")}
    assert rows == {"before": None, "in": execution.id, "after": None}
    assert (await place.queue.executions.get(execution.id)).tokens_used == 10
    assert totals(place) == (3, 30)


async def card(place: ConversationPlace) -> Card:
    page = await BoardRepository(place.database).page(
        None,
        [ColumnRequest(status=status) for status in TaskStatus],
        running_limit=4,
        money_words={},
        board_words={},
    )
    (only,) = [one for column in page.columns.values() for one in column.cards]
    return only


async def test_a_card_has_the_sum_over_the_runs_of_its_task(place: ConversationPlace, files: UsageImport) -> None:
    first = await place.begin()
    await place.tell(first.id, SessionNews(session_ref=REF), ending=an_ending())
    write(files, told("a", 1800))
    assert (await card(place)).cost_nano == 1_800_000

    await place.enqueue(first.task_id, prompt="Go on", parent=first.id)
    second = (await place.claim()).execution
    assert (await card(place)).cost_nano == 1_800_000
    await place.tell(second.id, bills("b", 7))

    shown = await card(place)
    assert (shown.execution_id, shown.cost_nano, shown.tokens_used, shown.unpriced_runs) == (
        second.id,
        1_800_000,
        1807,
        1,
    )


async def test_stand_ins_go_when_the_file_has_told_the_answers(place: ConversationPlace, files: UsageImport) -> None:
    execution = await place.begin()
    minute = 60_000
    await place.tell(execution.id, SessionNews(session_ref=REF), bills("turn:1", 30, is_key_provisional=True))
    await place.tell(execution.id, bills("turn:2", 8, is_key_provisional=True), at_ms=NOON_MS + 10 * minute)
    assert totals(place) == (2, 38)

    write(files, told("a", 10, at_ms=NOON_MS), told("b", 20, at_ms=NOON_MS + 900))
    assert totals(place) == (3, 38)
    write(files, told("c", 8, at_ms=NOON_MS + 10 * minute - 700))

    assert [row["key"] for row in place.rows("SELECT key FROM llm_interactions ORDER BY key")] == ["a", "b", "c"]
    assert totals(place) == (3, 38)
    assert (await place.queue.executions.get(execution.id)).tokens_used == 38


@pytest.mark.parametrize("is_provisional", [False, True])
@pytest.mark.parametrize("is_file_first", [False, True])
async def test_how_long_an_answer_took_stays_whoever_tells_of_it_first(
    place: ConversationPlace, files: UsageImport, is_file_first: bool, is_provisional: bool
) -> None:
    execution = await place.begin()
    await place.tell(execution.id, SessionNews(session_ref=REF))
    live = replace(bills("1:10" if is_provisional else "a", 10, is_key_provisional=is_provisional), latency_ms=1_234)

    if is_file_first:
        write(files, told("a", 10))
        await place.tell(execution.id, live)
    else:
        await place.tell(execution.id, live)
        await place.tell(execution.id, replace(live, latency_ms=None))
        write(files, told("a", 10, at_ms=NOON_MS + 900))

    assert place.rows("SELECT key, latency_ms FROM llm_interactions") == [{"key": "a", "latency_ms": 1_234}]
    assert totals(place) == (1, 10)


async def test_what_the_file_has_told_already_needs_no_stand_in(place: ConversationPlace, files: UsageImport) -> None:
    execution = await place.begin()
    await place.tell(execution.id, SessionNews(session_ref=REF))
    write(files, told("a", 10, at_ms=NOON_MS), told("b", 20, at_ms=NOON_MS + 900))

    await place.tell(execution.id, bills("1:10", 10, is_key_provisional=True))
    assert totals(place) == (2, 30)
    await place.tell(execution.id, bills("turn:1", 30, is_key_provisional=True), at_ms=NOON_MS + 1000)
    assert totals(place) == (3, 60)
    files.drop_stand_ins(since_ms=NOON_MS)

    assert totals(place) == (2, 30)
    assert (await place.queue.executions.get(execution.id)).tokens_used == 30


async def test_a_file_that_was_read_before_the_agent_named_its_conversation_is_given_to_the_run(
    place: ConversationPlace, files: UsageImport
) -> None:
    execution = await place.begin()
    write(files, told("a", 10), told("b", 5))
    await place.tell(execution.id, SessionNews(session_ref=REF), bills("a", 10))
    assert len(place.rows("SELECT id FROM sessions")) == 2

    assert files.adopt_conversations() == 1
    assert files.adopt_conversations() == 0

    session_id = await place.session_id(execution.id)
    assert {row["session_id"] for row in place.rows("SELECT session_id FROM llm_interactions")} == {session_id}
    assert {row["execution_id"] for row in place.rows("SELECT execution_id FROM llm_interactions")} == {execution.id}
    assert len(place.rows("SELECT id FROM sessions")) == 1
    assert (await place.queue.executions.get(execution.id)).tokens_used == 15
    assert totals(place) == (2, 15)


def test_the_larger_telling_counts_in_any_order(place: ConversationPlace, files: UsageImport) -> None:
    write(files, told("a", 3), told("b", 30))
    write(files, told("a", 30, offset=50), told("b", 3, offset=50))
    write(files, told("a", 9), told("b", 9), path="/copy.jsonl")

    assert [row["prompt_tokens"] for row in place.rows("SELECT prompt_tokens FROM llm_interactions")] == [30, 30]
    assert totals(place) == (2, 60)


ORIGINAL = "/projects/p/0aaaaaaa-main.jsonl"


@pytest.mark.parametrize(
    "copies",
    [
        {ORIGINAL: "0aaaaaaa-main", "/projects/p/fork.jsonl": "fork"},
        {ORIGINAL: "0aaaaaaa-main", "/projects/p/0aaaaaaa-main/subagents/agent-1.jsonl": "0aaaaaaa-main"},
        {ORIGINAL: "0aaaaaaa-main", "/projects/p/fork.jsonl": "fork", "/projects/p/marked.jsonl": "0aaaaaaa-main"},
        {
            "/chats/session-2026-01-02T09-00-0aaaaaaa.json": "0aaaaaaa-main",
            "/chats/session-x-0bbbbbbb.json": "0bbbbbbb",
        },
    ],
    ids=["fork", "subagent", "marked", "short"],
)
@pytest.mark.parametrize("original_tokens", [10, 500])
def test_of_copies_that_disagree_the_original_counts_in_any_order(
    place: ConversationPlace, files: UsageImport, copies: dict[str, str], original_tokens: int
) -> None:
    orders = list(itertools.permutations(copies.items()))
    for turn, order in enumerate(orders):
        key = f"a{turn}"
        for path, ref in order:
            is_copy = path != next(iter(copies))
            at_ms = NOON_MS + turn * 10 + (ref != "0aaaaaaa-main")
            one = told(key, 100 if is_copy else original_tokens, at_ms=at_ms, ref=ref)
            facts = replace(
                one.answer, is_owner_marked=path.endswith("marked.jsonl"), is_subagent="subagents" in path, offset=turn
            )
            write(files, replace(one, answer=facts), path=path)

    rows = place.rows(
        "SELECT session_ref, prompt_tokens, cost_nano, is_subagent FROM llm_interactions i "
        "JOIN sessions s ON s.id = i.session_id"
    )
    assert {tuple(row.values()) for row in rows} == {("0aaaaaaa-main", original_tokens, original_tokens * 1000, 0)}
    assert totals(place) == (len(orders), original_tokens * len(orders))


@dataclass(frozen=True, kw_only=True)
class Copy:
    """A file that tells the answer; ``{0}`` stands for the order in which the files are read."""

    path: str
    ref: str
    after_ms: int = 0
    is_marked: bool = False
    mtime_ns: int = 1

    def tell(self, files: UsageImport, turn: int, tokens: int) -> None:
        one = told(f"{self.path}{turn}", tokens, at_ms=NOON_MS + self.after_ms, ref=self.ref.format(turn))
        is_subagent = "subagents" in self.path
        facts = replace(
            one.answer, key=f"a{turn}", is_owner_marked=self.is_marked, is_subagent=is_subagent, offset=turn
        )
        write(files, replace(one, answer=facts), path=self.path.format(turn), mtime_ns=self.mtime_ns)


ORIGINAL_COPY = Copy(path="/p/-w/{0}-main.jsonl", ref="{0}-main")
COPIES = (
    Copy(path="/p/-w/{0}-main/subagents/agent-1.jsonl", ref="{0}-main"),
    Copy(path="/p/-moved/{0}-main.jsonl", ref="{0}-main"),
    Copy(path="/p/-w/{0}-fork.jsonl", ref="{0}-fork", after_ms=5),
    Copy(path="/p/-w/{0}-fork/subagents/agent-1.jsonl", ref="{0}-fork", after_ms=5),
    Copy(path="/p/-w/{0}-a-pure-copy.jsonl", ref="{0}-a-pure-copy", mtime_ns=2),
    Copy(path="/p/-w/{0}-marked.jsonl", ref="{0}-main", after_ms=9, is_marked=True),
)


_SITUATIONS = given(
    copies=st.lists(st.sampled_from(COPIES), min_size=1, max_size=3, unique=True),
    sizes=st.lists(st.sampled_from([50, 100, 500]), min_size=4, max_size=4),
    has_original=st.booleans(),
)
_RUN = partial(settings, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@_SITUATIONS
@example(copies=[COPIES[1]], sizes=[50, 500, 500, 500], has_original=True)
@example(copies=[COPIES[0], COPIES[3]], sizes=[50, 500, 500, 500], has_original=False)
@example(copies=[COPIES[4]], sizes=[50, 500, 500, 500], has_original=True)
@_RUN(max_examples=5)
def test_whose_an_answer_is_and_which_copy_counts_is_the_same_in_every_order_of_files(
    place: ConversationPlace, files: UsageImport, copies: list[Copy], sizes: list[int], has_original: bool
) -> None:
    _require_one_result(place, files, copies, sizes, has_original=has_original)


@pytest.mark.proof
@_SITUATIONS
@_RUN(max_examples=40)
def test_so_it_is_in_many_situations(
    place: ConversationPlace, files: UsageImport, copies: list[Copy], sizes: list[int], has_original: bool
) -> None:
    _require_one_result(place, files, copies, sizes, has_original=has_original)


def _require_one_result(
    place: ConversationPlace, files: UsageImport, copies: list[Copy], sizes: list[int], *, has_original: bool
) -> None:
    if not has_original:
        copies = [one for one in copies if not one.is_marked]
    told_of = list(zip([ORIGINAL_COPY] * has_original + copies, sizes, strict=False))
    first = len(place.rows("SELECT id FROM llm_interactions"))
    for turn, order in enumerate(itertools.permutations(told_of), start=first):
        for copy, tokens in order:
            copy.tell(files, turn, tokens)

    rows = place.rows(
        "SELECT key, session_ref, prompt_tokens, cost_nano, is_subagent FROM llm_interactions i "
        f"JOIN sessions s ON s.id = i.session_id WHERE i.source_offset >= {first}"
    )
    ends = {
        (str(row["session_ref"]).partition("-")[2], row["prompt_tokens"], row["cost_nano"], row["is_subagent"])
        for row in rows
    }
    assert len(ends) <= 1
    if has_original:
        assert ends == {("main", sizes[0], sizes[0] * 1000, 0)}


@pytest.mark.parametrize("original_tokens", [10, 500])
@pytest.mark.parametrize("order", list(itertools.permutations(["old", "new", "fork"])))
async def test_the_original_counts_too_where_its_conversation_has_another_id_since(
    place: ConversationPlace, files: UsageImport, order: tuple[str, ...], original_tokens: int
) -> None:
    execution = await place.begin()
    await place.tell(execution.id, SessionNews(session_ref="old-ref"))
    await place.tell(execution.id, SessionNews(session_ref="new-ref"))

    for name in order:
        tokens = original_tokens if name == "old" else 100
        at_ms = NOON_MS + (3_600_000 if name == "fork" else 0)
        write(files, told("a", tokens, ref=f"{name}-ref", at_ms=at_ms), path=f"/projects/p/{name}-ref.jsonl")

    assert place.rows("SELECT session_id, prompt_tokens FROM llm_interactions") == [
        {"session_id": await place.session_id(execution.id), "prompt_tokens": original_tokens}
    ]


def test_of_an_original_that_was_cut_off_a_whole_copy_counts(place: ConversationPlace, files: UsageImport) -> None:
    begun = told("a", 3, ref="0aaaaaaa-main")
    write(files, told("a", 30, ref="fork", at_ms=NOON_MS + 5), path="/fork.jsonl")
    write(files, replace(begun, answer=replace(begun.answer, confidence=Confidence.INCOMPLETE)), path=ORIGINAL)

    assert totals(place) == (1, 30)


async def test_a_copy_of_a_conversation_is_no_session_of_its_own_until_it_goes_on(
    place: ConversationPlace, files: UsageImport
) -> None:
    days = UsageDayRepository(place.database)

    zones = itertools.cycle(("Asia/Tokyo", "UTC"))

    async def counted() -> int:
        await days.move_to(next(zones), at=NOON)
        return (await SummaryRepository(place.database).activity(DaySpan())).session_count

    old = [told(key, at_ms=NOON_MS + at, ref="old") for key, at in (("a", 0), ("b", 1000))]
    copied = [told(key, at_ms=NOON_MS + at, ref="new") for key, at in (("a", 500), ("b", 1500))]
    marked = [replace(one, answer=replace(one.answer, is_owner_marked=True)) for one in old]
    fork = HistorySession(session_ref="fork", parent_ref="old", title="Fork", first_at_ms=NOON_MS + 2000)

    write(files, *copied, path="/new.jsonl")
    assert await counted() == 1
    write(files, *old, path="/old.jsonl")
    assert await counted() == 1
    write(files, *marked, path="/fork.jsonl", sessions=[fork])
    write(files, path="/fork.jsonl", sessions=[replace(fork, title="Renamed")])
    assert await counted() == 1
    write(files, told("c", at_ms=NOON_MS + 9000, ref="new"), path="/new.jsonl")
    assert await counted() == 2
    write(files, told("d", at_ms=NOON_MS + 9000, ref="fork"), path="/fork.jsonl")
    assert await counted() == 3
    with closing(sqlite3.connect(place.database.path)) as connection:
        assert kept_counts(connection) == counted_anew(connection)


def test_copied_answers_belong_to_the_older_conversation_in_any_order(
    place: ConversationPlace, files: UsageImport
) -> None:
    copied = [told(key, at_ms=NOON_MS + at, ref="new") for key, at in (("a", 0), ("b", 1000), ("c", 9000))]
    write(files, *copied, path="/new.jsonl")
    write(files, *(told(key, at_ms=NOON_MS + at, ref="old") for key, at in (("a", 0), ("b", 1000))), path="/old.jsonl")

    owners = place.rows(
        "SELECT key, session_ref FROM llm_interactions i JOIN sessions s ON s.id = i.session_id ORDER BY key"
    )
    assert [tuple(row.values()) for row in owners] == [("a", "old"), ("b", "old"), ("c", "new")]
    assert totals(place) == (3, 30)


@pytest.mark.parametrize("order", list(itertools.permutations(["old", "unmarked", "marked"])))
def test_a_record_that_names_its_owner_decides_in_any_order(
    place: ConversationPlace, files: UsageImport, order: tuple[str, ...]
) -> None:
    for name in order:
        ref = "older" if name == "old" else "owner"
        begun_ms = NOON_MS if name == "old" else NOON_MS + 5000
        priced = told("a", at_ms=begun_ms, ref=ref)
        marked = replace(priced.answer, is_owner_marked=name == "marked")
        write(files, replace(priced, answer=marked), path=f"/{name}.jsonl")

    (row,) = place.rows(
        "SELECT session_ref, is_owner_marked, at_ms FROM llm_interactions i JOIN sessions s ON s.id = i.session_id"
    )
    assert row == {"session_ref": "owner", "is_owner_marked": 1, "at_ms": NOON_MS}
    assert totals(place) == (1, 10)


def test_a_cursor_that_somebody_else_moved_writes_nothing(place: ConversationPlace, files: UsageImport) -> None:
    write(files, told("a"))
    stale = FilePiece(before=None, after=files.cursors()["/a.jsonl"], answers=[told("b")], sessions=[])

    assert files.write(stale) is False
    assert totals(place) == (1, 10)


async def test_a_run_costs_what_its_answers_do_and_until_one_has_a_price_what_the_agent_said(
    place: ConversationPlace, files: UsageImport
) -> None:
    execution = await place.begin()
    await place.tell(execution.id, SessionNews(session_ref=REF), bills("a", 4), CostNews(cost_nano=900))
    assert await costs(place, execution.id) == (900, 900)

    await reprice(place, None)
    assert await costs(place, execution.id) == (900, 900)
    write(files, told("a", 4), told("b", 6))
    assert await costs(place, execution.id) == (10_000, 10_000)

    await place.tell(execution.id, CostNews(cost_nano=950))
    assert await costs(place, execution.id) == (10_000, 10_000)
    await reprice(place, None)
    assert await costs(place, execution.id) == (950, 950)


async def test_an_agent_that_says_no_cost_has_that_of_its_answers(place: ConversationPlace) -> None:
    execution = await place.begin()
    await place.tell(execution.id, SessionNews(session_ref=REF), bills("a", 4))
    assert await costs(place, execution.id) == (None, 0)

    await reprice(place, 7)
    assert await costs(place, execution.id) == (7, 7)
    await place.tell(execution.id, bills("b", 4))
    assert await costs(place, execution.id) == (7, 7)


async def test_an_answer_that_is_told_again_keeps_its_cost_until_it_is_priced_anew(place: ConversationPlace) -> None:
    execution = await place.begin()
    await place.tell(execution.id, SessionNews(session_ref=REF), bills("a", 4))
    await reprice(place, 7)

    await place.tell(execution.id, bills("a", 40))

    assert await costs(place, execution.id) == (7, 7)
    assert await UsagePriceRepository(place.database).find_unlooked(until_ms=NOON_MS + 10_000)
    await reprice(place, 70)
    assert await costs(place, execution.id) == (70, 70)


async def test_of_a_conversation_that_is_resumed_each_run_costs_its_own(
    place: ConversationPlace, files: UsageImport
) -> None:
    first = await place.begin()
    await place.tell(first.id, SessionNews(session_ref=REF), CostNews(cost_nano=300), ending=an_ending())
    write(files, told("a", 4))
    second = await place.enqueue(first.task_id, parent=first.id)
    await place.claim()
    await place.tell(second.id, bills("b", 1), CostNews(cost_nano=420))

    assert await costs(place, first.id) == (4_000, 4_120)
    assert await costs(place, second.id) == (120, 4_120)


def test_a_session_of_history_costs_what_its_answers_do(place: ConversationPlace, files: UsageImport) -> None:
    write(files, told("a", 3), told("b", 30))

    assert place.rows("SELECT total_tokens, total_cost_nano FROM sessions") == [
        {"total_tokens": 33, "total_cost_nano": 33_000}
    ]


async def test_a_session_without_a_title_is_called_by_its_first_words(place: ConversationPlace) -> None:
    named, unnamed = [await place.begin(prompt=f"\n  Fix {what}  \nplease") for what in ("it", "that")]
    await place.tell(named.id, SessionNews(session_ref=REF, title="Mending"))
    sessions = [await place.session_id(one.id) for one in (named, unnamed)]

    labels = await CostRepository(place.database).labels(CostGroup.SESSION, [str(one) for one in sessions])

    assert [labels[one] for one in sessions] == ["Mending", "Fix that"]


async def test_failed_calls_told_live_or_by_a_file_are_rows_that_are_in_no_sum(
    place: ConversationPlace, files: UsageImport
) -> None:
    execution = (await place.begin()).id
    await place.tell(execution, SessionNews(session_ref=REF), bills("a"))
    live = UsageNews(key="live", model="m", provider="p", error="529: overloaded", error_status=529)
    await place.tell(execution, live)
    by_file = FailedCall(
        key="file", session_ref=REF, provider="p", model="", at_ms=NOON_MS, error="bad", status=400, offset=7
    )
    write(files, told("a"), failures=[by_file, replace(by_file, key="x", session_ref="nobody")])

    seen, _ = await UsagePriceRepository(place.database).price_all(lambda answer: told(answer.key))
    await UsageDayRepository(place.database).move_to("Asia/Tokyo", at=NOON)
    explained = await CostRepository(place.database).find_answers("file")

    with closing(sqlite3.connect(place.database.path)) as connection:
        rows = connection.execute(
            "SELECT key, success, error_message, error_status, cost_nano, execution_id FROM llm_interactions "
            "WHERE NOT success ORDER BY key"
        ).fetchall()
        answers = connection.execute("SELECT sum(answers) FROM session_usage").fetchone()
    assert rows == [
        ("file", 0, "bad", 400, 0, execution),
        ("live", 0, "529: overloaded", 529, 0, execution),
    ]
    assert answers == (1,)
    assert seen == 3
    assert [(one.error, one.error_status) for one in explained] == [("bad", 400)]
