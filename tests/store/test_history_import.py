"""Messages and tool calls of history as rows: once each, whatever is read how often and in which order."""

from __future__ import annotations

import itertools
import random
import sqlite3
from contextlib import closing
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from agentmon.domain.billing import HistorySession
from agentmon.domain.clock import FakeClock
from agentmon.domain.conversation import MessageNews, SessionNews
from agentmon.domain.costs import CostGroup, FileCursor
from agentmon.domain.execution_mode import ExecutionMode
from agentmon.domain.execution_status import ExecutionStatus
from agentmon.domain.history import HistoryMessage, HistoryOperation
from agentmon.domain.operations import MessageRole, OperationStatus, OperationType
from agentmon.store.activity import ActivityRepository
from agentmon.store.activity_sums import COUNT_OPERATIONS
from agentmon.store.history_import import HistoryImport, HistoryPiece
from agentmon.store.usage_costs import CostRepository
from agentmon.store.usage_import import FilePiece, UsageImport
from tests.seeds import seeds
from tests.store.conversation_place import NOON_MS, an_ending, opened_place
from tests.store.queue_place import NOON

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator, Sequence
    from pathlib import Path

    from agentmon.domain.executions import Execution
    from tests.store.conversation_place import ConversationPlace

REF = "0c0ffee0-session"
DAY_MS = 86_400_000
BEFORE_MS = NOON_MS - 30 * DAY_MS


@pytest.fixture
async def place(tmp_path: Path) -> AsyncIterator[ConversationPlace]:
    async with opened_place(tmp_path) as opened:
        yield opened


@pytest.fixture
def history(place: ConversationPlace) -> Iterator[HistoryImport]:
    with closing(HistoryImport(place.database.path, zone_name="UTC", clock=FakeClock(NOON))) as store:
        yield store


def says(ref: str = "m1", text: str = "hello", *, at_ms: int = BEFORE_MS, **fields: Any) -> HistoryMessage:
    facts = {"session_ref": REF, "role": MessageRole.USER, **fields}
    return HistoryMessage(ref=ref, text=text, at_ms=at_ms, **facts)


def calls(ref: str = "c1", *, at_ms: int = BEFORE_MS, **fields: Any) -> HistoryOperation:
    facts = {"session_ref": REF, "status": OperationStatus.SUCCESS, "finished_at_ms": at_ms + 5, **fields}
    return HistoryOperation(
        ref=ref, tool_name="Bash", type=OperationType.EXECUTE, target="ls", started_at_ms=at_ms, **facts
    )


def write(
    store: HistoryImport, *parts: HistoryMessage | HistoryOperation, path: str = "/a.jsonl", slug: str = "claude"
) -> bool:
    """Let a file tell these parts, behind what it told before."""
    before = store.cursors().get(path)
    return store.write(
        HistoryPiece(
            before=before,
            after=a_cursor(path, slug, 100 if before is None else before.read_offset + 100),
            messages=[part for part in parts if isinstance(part, HistoryMessage)],
            operations=[part for part in parts if isinstance(part, HistoryOperation)],
        )
    )


def begins(place: ConversationPlace, *sessions: HistorySession) -> None:
    """Let the import of answers know these conversations."""
    with closing(UsageImport(place.database.path, zone_name="UTC", clock=FakeClock(NOON))) as store:
        before = store.cursors().get("/a.jsonl")
        after = a_cursor("/a.jsonl", "claude", 100 if before is None else before.read_offset + 100)
        store.write(FilePiece(before=before, after=after, answers=(), sessions=sessions))
        store.adopt_conversations()


def rows(place: ConversationPlace, query: str) -> list[tuple[Any, ...]]:
    with closing(sqlite3.connect(place.database.path)) as connection:
        return connection.execute(query).fetchall()


def contents(place: ConversationPlace) -> tuple[list[tuple[Any, ...]], ...]:
    messages = rows(
        place,
        "SELECT m.id, s.session_ref, m.role, m.content, m.created_at FROM messages m JOIN sessions s "
        "ON s.id = m.session_id ORDER BY m.id",
    )
    operations = rows(
        place,
        "SELECT o.id, s.session_ref, o.target, o.status, o.started_at, o.finished_at, o.day_local FROM operations o "
        "JOIN sessions s ON s.id = o.session_id ORDER BY o.id",
    )
    sessions = rows(place, "SELECT session_ref, operation_count, initial_prompt FROM sessions ORDER BY 1")
    counted = rows(place, "SELECT * FROM daily_operations ORDER BY 1, 2, 3, 4, 5")
    assert counted == sorted(rows(place, COUNT_OPERATIONS))
    return messages, operations, sessions


async def test_a_conversation_of_history_has_its_words_and_calls(
    place: ConversationPlace, history: HistoryImport
) -> None:
    answer = says("m2", "It lists.", at_ms=BEFORE_MS + 20, role=MessageRole.ASSISTANT)

    write(history, says(text="list it"), calls(at_ms=BEFORE_MS + 10), answer)

    (listing,) = await place.sessions.list(None, limit=9)
    session = listing.session
    assert (session.initial_prompt, session.operation_count, listing.title) == ("list it", 1, "list it")
    assert [one.content for one in await place.conversations.messages(session.id)] == ["list it", "It lists."]
    (operation,) = await place.conversations.operations(session_id=session.id)
    assert (operation.target, operation.status, operation.execution_id) == ("ls", OperationStatus.SUCCESS, None)


@pytest.mark.parametrize(
    ("prompt", "title"),
    [
        ("Your role: reviewer\n\nFix it\n\nAnd test it", "Fix it"),
        ("Your role: reviewer\n\nBe brief.\n\nBe kind.\n\nFix it\n\nAnd test it", "Fix it"),
        ("Be brief.\n\nBe kind.\n\nFix it", "Fix it"),
        ("Be brief.\n\nBe kind.", "Be brief."),
        ("Be brief.\n\nBe kind. Fix it", "Be brief."),
        ("Your role: a poet. Write.", "Your role: a poet. Write."),
        ("your role: reviewer\n\nFix it", "your role: reviewer"),
    ],
)
async def test_a_conversation_is_called_after_what_was_asked_and_not_after_what_its_agent_is_told_each_time(
    place: ConversationPlace, history: HistoryImport, prompt: str, title: str
) -> None:
    with closing(sqlite3.connect(place.database.path)) as connection, connection:
        connection.execute("UPDATE agents SET instructions = ?", ("Be brief.\n\nBe kind.\n",))

    write(history, says(text=prompt))

    (listing,) = await place.sessions.list(None, limit=9)
    labels = await CostRepository(place.database).labels(CostGroup.SESSION, [listing.session.id])
    assert listing.title == labels[listing.session.id] == title
    assert listing.session.initial_prompt == prompt


def test_the_first_prompt_is_that_of_a_person(place: ConversationPlace, history: HistoryImport) -> None:
    write(
        history,
        says("m1", "<command-name>/clear", role=MessageRole.SYSTEM),
        says("m2", "sub work", at_ms=BEFORE_MS + 1, parent_ref="toolu_1"),
        says("m3", "mine", at_ms=BEFORE_MS + 2),
    )

    assert rows(place, "SELECT initial_prompt FROM sessions") == [("mine",)]


def test_records_of_one_millisecond_keep_their_order(place: ConversationPlace, history: HistoryImport) -> None:
    write(history, *(says(f"m{number}", str(number), place=number) for number in reversed(range(20))))

    assert [content for (content,) in rows(place, "SELECT content FROM messages ORDER BY id")] == [
        str(number) for number in range(20)
    ]


def test_a_call_that_was_told_without_its_end_gets_it(place: ConversationPlace, history: HistoryImport) -> None:
    write(history, calls(status=OperationStatus.CANCELLED, finished_at_ms=None))
    write(history, calls(output_summary="a"))
    write(history, calls(status=OperationStatus.CANCELLED, finished_at_ms=None))

    assert rows(place, "SELECT status, output_summary FROM operations") == [("success", "a")]
    assert rows(place, "SELECT operations, successes FROM daily_operations") == [(1, 1)]


def test_a_cursor_that_has_moved_writes_nothing(place: ConversationPlace, history: HistoryImport) -> None:
    write(history, says())

    was_written = history.write(
        HistoryPiece(before=None, after=a_cursor("/a.jsonl", "claude", 900), messages=[says("m2")], operations=())
    )

    assert not was_written
    assert rows(place, "SELECT count(*) FROM messages") == [(1,)]


@pytest.mark.parametrize("seed", seeds(6, quick=2))
def test_any_order_and_any_number_of_times_gives_the_same_rows(
    place: ConversationPlace, history: HistoryImport, seed: int
) -> None:
    begins(
        place,
        HistorySession(session_ref="older", first_at_ms=BEFORE_MS - 10, last_at_ms=BEFORE_MS),
        HistorySession(session_ref="copy", first_at_ms=BEFORE_MS, last_at_ms=BEFORE_MS + 10),
    )
    told = [says(f"m{number}", f"text {number}", at_ms=BEFORE_MS + number, session_ref="older") for number in range(4)]
    copied: Sequence[HistoryMessage | HistoryOperation] = [replace(one, session_ref="copy") for one in told[:3]]
    both = [calls("c1", session_ref="copy"), calls("c1", session_ref="older")]
    late = calls("c2", session_ref="older", status=OperationStatus.CANCELLED, finished_at_ms=None)
    parts = [*told, *copied, *both, late, calls("c2", session_ref="older"), says("m9", session_ref="copy")]
    write(history, *told, *both[1:], calls("c2", session_ref="older"), says("m9", session_ref="copy"))
    expected = contents(place)
    with closing(sqlite3.connect(place.database.path)) as connection, connection:
        for table in ("messages", "operations"):
            connection.execute(f"DELETE FROM {table}")

    dice = random.Random(seed)
    for part in dice.sample(parts, len(parts)):
        write(history, part, path=f"/{dice.randint(0, 2)}.jsonl")
        if dice.random() < 0.3:
            history.forget_cursors()

    assert contents(place) == expected
    assert expected[2] == [("copy", 0, "hello"), ("older", 2, "text 0")]


@pytest.mark.parametrize("order", list(itertools.permutations(range(3))))
def test_unmarked_copies_belong_to_the_older_conversation(
    place: ConversationPlace, history: HistoryImport, order: tuple[int, ...]
) -> None:
    begins(
        place,
        *(
            HistorySession(session_ref=f"s{number}", first_at_ms=BEFORE_MS + number, last_at_ms=BEFORE_MS + 50)
            for number in range(3)
        ),
    )

    for number in order:
        write(history, says(session_ref=f"s{number}"), path=f"/{number}.jsonl")

    assert rows(place, "SELECT session_ref FROM messages JOIN sessions ON sessions.id = session_id") == [("s0",)]


def test_a_marked_owner_wins_over_the_older_conversation(place: ConversationPlace, history: HistoryImport) -> None:
    begins(
        place,
        HistorySession(session_ref="older", first_at_ms=BEFORE_MS - 10, last_at_ms=BEFORE_MS),
        HistorySession(session_ref="owner", first_at_ms=BEFORE_MS, last_at_ms=BEFORE_MS + 10),
    )

    write(history, says(session_ref="older"))
    write(history, says(session_ref="owner", is_owner_marked=True))

    assert rows(place, "SELECT session_ref FROM messages JOIN sessions ON sessions.id = session_id") == [("owner",)]


def _live(ref: str, text: str) -> MessageNews:
    return MessageNews(message_ref=ref, role=MessageRole.ASSISTANT, text=text)


async def test_what_ran_here_is_told_once_and_what_was_said_elsewhere_is_added(
    place: ConversationPlace, history: HistoryImport
) -> None:
    execution = await place.begin()
    await place.tell(execution.id, SessionNews(session_ref=REF), _live("m1", "told live"))
    await place.tell(execution.id, ending=an_ending())

    write(history, says("m1", "told live", at_ms=NOON_MS + 1_000), says("m2", "in a terminal", at_ms=NOON_MS + DAY_MS))

    assert rows(place, "SELECT content FROM messages ORDER BY created_at") == [("told live",), ("in a terminal",)]


async def test_history_that_turns_out_to_have_run_here_is_not_told_twice(
    place: ConversationPlace, history: HistoryImport
) -> None:
    begins(place, HistorySession(session_ref=REF, first_at_ms=BEFORE_MS, last_at_ms=NOON_MS + 1_000))
    write(history, says("m0", "weeks ago"), calls("c0"), says("m1", "told live", at_ms=NOON_MS + 1_000))
    write(history, calls("c1", at_ms=NOON_MS + 1_000))
    execution = await place.begin()
    await place.tell(execution.id, SessionNews(session_ref=REF), _live("m1", "told live"))

    begins(place)

    assert rows(place, "SELECT content FROM messages ORDER BY id") == [("weeks ago",), ("told live",)]
    assert rows(place, "SELECT count(*), sum(operation_count) FROM sessions") == [(1, 1)]
    assert rows(place, "SELECT sum(operations) FROM daily_operations") == [(1,)]


async def begin_own_screen(place: ConversationPlace, ref: str = REF) -> Execution:
    execution = await place.begin(mode=ExecutionMode.TMUX)
    await ActivityRepository(place.database).name_conversation(execution.id, ref)
    return execution


async def test_what_is_said_and_done_in_an_own_screen_belongs_to_its_execution(
    place: ConversationPlace, history: HistoryImport
) -> None:
    execution = await begin_own_screen(place)
    open_call = calls("c1", at_ms=NOON_MS + 20, status=OperationStatus.CANCELLED, finished_at_ms=None)

    write(history, says("m0", "weeks ago"), says("m1", at_ms=NOON_MS + 10), open_call)
    write(history, says("m1", "hello, all of it", at_ms=NOON_MS + 10), open_call)

    assert rows(place, "SELECT content, execution_id FROM messages ORDER BY id") == [
        ("weeks ago", None),
        ("hello, all of it", execution.id),
    ]
    assert rows(place, "SELECT status, execution_id FROM operations") == [("pending", execution.id)]
    assert rows(place, "SELECT id, operation_count FROM sessions") == [(await place.session_id(execution.id), 1)]

    await place.tell(execution.id, ending=an_ending())
    assert rows(place, "SELECT status FROM operations") == [("cancelled",)]
    history.forget_cursors()
    write(history, open_call)
    assert rows(place, "SELECT status FROM operations") == [("cancelled",)]
    write(history, calls("c1", at_ms=NOON_MS + 20))
    assert rows(place, "SELECT status, execution_id FROM operations") == [("success", execution.id)]


async def test_history_that_turns_out_to_have_run_in_an_own_screen_comes_to_its_execution(
    place: ConversationPlace, history: HistoryImport
) -> None:
    begins(place, HistorySession(session_ref=REF, first_at_ms=NOON_MS, last_at_ms=NOON_MS + 1_000))
    write(history, says("m1", at_ms=NOON_MS + 1_000), calls("c1", at_ms=NOON_MS + 2_000))
    execution = await begin_own_screen(place)

    begins(place)

    assert rows(place, "SELECT execution_id FROM messages") == [(execution.id,)]
    assert rows(place, "SELECT execution_id FROM operations") == [(execution.id,)]
    assert rows(place, "SELECT id, session_ref, operation_count FROM sessions") == [
        (await place.session_id(execution.id), REF, 1)
    ]


async def test_what_is_said_under_a_former_id_of_the_conversation_stays_with_its_session(
    place: ConversationPlace, history: HistoryImport
) -> None:
    execution = await begin_own_screen(place)
    first = says("m1", at_ms=NOON_MS + 10, is_owner_marked=True)
    write(history, first)
    activity = ActivityRepository(place.database)
    for ref in ("after /clear", "after another", REF, "after another"):
        await activity.name_conversation(execution.id, ref)

    history.forget_cursors()
    late = says("m2", at_ms=NOON_MS + 15, is_owner_marked=True)
    write(history, first, late)
    write(history, says("m3", at_ms=NOON_MS + 20, session_ref="after /clear"), path="/b.jsonl")
    write(history, says("m4", at_ms=NOON_MS + 30, session_ref="after another"), path="/c.jsonl")

    session_id = await place.session_id(execution.id)
    assert rows(place, "SELECT id, session_ref FROM sessions") == [(session_id, "after another")]
    assert rows(place, "SELECT session_id, execution_id FROM messages") == [(session_id, execution.id)] * 4


@pytest.mark.parametrize("is_read_early", [True, False], ids=["read early", "read late"])
@pytest.mark.parametrize("mode", [ExecutionMode.STREAM_JSON, ExecutionMode.TMUX])
async def test_the_conversation_of_a_failed_try_is_no_session_of_its_own(
    place: ConversationPlace, history: HistoryImport, mode: ExecutionMode, is_read_early: bool
) -> None:
    said, called = says("m1", at_ms=NOON_MS + 10), calls("c1", at_ms=NOON_MS + 20)
    execution = await place.begin(max_retries=1, mode=mode)
    if is_read_early:
        write(history, said, called)
    name = ActivityRepository(place.database).name_conversation
    await name(execution.id, REF)
    await place.tell(execution.id, ending=an_ending(ExecutionStatus.FAILED))
    write(history, says("m2", at_ms=NOON_MS + 30))
    await place.claim(NOON + timedelta(minutes=1))
    await name(execution.id, "second try")
    history.forget_cursors()
    write(history, said, called)
    begins(place)

    session_id = await place.session_id(execution.id)
    assert rows(place, "SELECT id, task_id FROM sessions") == [(session_id, execution.task_id)]
    told = [(session_id, execution.id)] * 2 if mode is ExecutionMode.TMUX else []
    of_file = "SELECT session_id, execution_id FROM messages WHERE role = 'user'"
    assert rows(place, of_file) == told
    assert rows(place, "SELECT session_id, execution_id FROM operations") == told[:1]


async def test_a_copy_of_what_was_said_in_an_own_screen_is_no_second_message(
    place: ConversationPlace, history: HistoryImport
) -> None:
    execution = await begin_own_screen(place)
    write(history, says("m1", at_ms=NOON_MS + 10))
    begins(place, HistorySession(session_ref="copy", first_at_ms=NOON_MS + 50, last_at_ms=NOON_MS + 60))

    write(history, says("m1", at_ms=NOON_MS + 10, session_ref="copy"), path="/copy.jsonl")

    assert rows(place, "SELECT execution_id FROM messages") == [(execution.id,)]


async def test_the_days_of_calls_are_those_of_the_zone_that_is_set(
    place: ConversationPlace, history: HistoryImport
) -> None:
    begins(place, HistorySession(session_ref=REF, first_at_ms=BEFORE_MS, last_at_ms=BEFORE_MS))
    late_ms = int((NOON.replace(hour=23, minute=30) - timedelta(days=30)).timestamp() * 1000)
    with closing(sqlite3.connect(place.database.path)) as connection, connection:
        connection.execute("UPDATE settings SET value = '\"Asia/Tokyo\"' WHERE key = 'usage.zone'")

    write(history, calls(at_ms=late_ms))

    ((day,),) = rows(place, "SELECT day_local FROM operations")
    assert day == (NOON - timedelta(days=29)).date().isoformat()


def a_cursor(path: str, slug: str, offset: int) -> FileCursor:
    return FileCursor(
        agent_slug=slug,
        path=path,
        thread_key=path,
        inode=1,
        size_bytes=offset,
        mtime_ns=1,
        read_offset=offset,
        head_hash="",
        parser_version=1,
    )
