from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from agentmon.domain.activity import Activity
from agentmon.domain.conversation import (
    ActivityNews,
    CostNews,
    MessageNews,
    SessionNews,
    ToolFinishedNews,
    ToolStartedNews,
    UsageNews,
)
from agentmon.domain.errors import NotFoundError
from agentmon.domain.events import Event, EventLevel, EventType
from agentmon.domain.execution_status import ExecutionStatus
from agentmon.domain.ids import SessionId, TaskId
from agentmon.domain.operations import MessageRole, OperationStatus, OperationType
from agentmon.domain.sessions import SessionStatus
from tests.store.conversation_place import an_ending, opened_place
from tests.store.queue_place import NOON

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping
    from pathlib import Path

    from agentmon.domain.ids import ExecutionId
    from tests.store.conversation_place import ConversationPlace


@pytest.fixture
async def place(tmp_path: Path) -> AsyncIterator[ConversationPlace]:
    async with opened_place(tmp_path) as opened:
        yield opened


def says(ref: str, text: str, *, continues: bool = False) -> MessageNews:
    return MessageNews(message_ref=ref, role=MessageRole.ASSISTANT, text=text, continues=continues)


def calls(ref: str, *, answer_key: str | None = None, target: str = "a.py") -> ToolStartedNews:
    return ToolStartedNews(
        tool_ref=ref, tool_name="Edit", type=OperationType.WRITE, target=target, answer_key=answer_key
    )


def bills(key: str, tokens: int, *, is_final: bool = True) -> UsageNews:
    return UsageNews(
        key=key, model="opus", provider="anthropic", prompt_tokens=tokens, response_tokens=7, is_final=is_final
    )


async def test_a_session_learns_its_name_and_its_agents_id_and_keeps_a_title_that_it_has(
    place: ConversationPlace,
) -> None:
    execution = await place.begin()
    session_id = await place.session_id(execution.id)

    await place.tell(
        execution.id,
        SessionNews(session_ref="abc", model="opus", permission_modes=("plan", "auto"), permission_mode="plan"),
        SessionNews(title="Login"),
        SessionNews(title="Another", models=("opus", "haiku")),
    )

    session = await place.sessions.get(session_id)
    assert (session.session_ref, session.title, session.model) == ("abc", "Login", "opus")
    assert (session.permission_modes, session.models, session.permission_mode) == (
        ("plan", "auto"),
        ("opus", "haiku"),
        "plan",
    )
    assert (await place.queue.executions.get(execution.id)).session_ref == "abc"
    await place.sessions.set_title(session_id, "Mine", at=NOON)
    await place.tell(execution.id, SessionNews(title="Theirs"))
    assert (await place.sessions.get(session_id)).title == "Mine"


async def test_a_session_follows_its_run_from_plan_to_end_with_its_registry_row(place: ConversationPlace) -> None:
    execution = await place.begin()
    session_id = await place.session_id(execution.id)
    seen = []

    async def look() -> None:
        (row,) = place.rows("SELECT status FROM agent_registry") or [{"status": None}]
        seen.append(((await place.sessions.get(session_id)).status.value, row["status"]))

    await look()
    await place.tell(execution.id)
    await look()
    await place.tell(execution.id, ActivityNews(activity=Activity.WAITING))
    await look()
    await place.tell(execution.id, is_paused=True)
    await look()
    await place.tell(execution.id, is_paused=False)
    await look()
    await place.tell(execution.id, ending=an_ending())
    await look()

    assert seen == [
        ("planning", None),
        ("running", "active"),
        ("waiting_for_input", "active"),
        ("paused", "paused"),
        ("waiting_for_input", "active"),
        ("completed", "completed"),
    ]
    assert (await place.sessions.get(session_id)).ended_at == NOON


async def test_a_run_that_is_tried_again_begins_its_session_again(place: ConversationPlace) -> None:
    execution = await place.begin(max_retries=1)
    await place.tell(execution.id, says("1", "first try"))
    await place.tell(execution.id, ending=an_ending(ExecutionStatus.FAILED))
    session_id = await place.session_id(execution.id)
    assert (await place.sessions.get(session_id)).status is SessionStatus.PLANNING

    await place.claim(NOON + timedelta(minutes=1))
    await place.tell(execution.id, says("1", "second try"))

    messages = await place.conversations.messages(session_id)
    assert [one.role.value for one in messages] == ["assistant", "system", "assistant"]
    assert [messages[0].content, messages[2].content] == ["first try", "second try"]
    assert "exit 0" in messages[1].content


async def test_a_try_that_names_another_conversation_is_the_same_session(place: ConversationPlace) -> None:
    execution = await place.begin(max_retries=1)
    await place.tell(execution.id, SessionNews(session_ref="first"))
    await place.tell(execution.id, ending=an_ending(ExecutionStatus.FAILED))
    await place.claim(NOON + timedelta(minutes=1))
    await place.tell(execution.id, SessionNews(session_ref="second"), SessionNews(session_ref="second"))

    (row,) = place.rows("SELECT session_ref, task_id, metadata FROM sessions")
    assert (row["session_ref"], row["task_id"]) == ("second", execution.task_id)
    assert json.loads(str(row["metadata"]))["former_refs"] == ["first"]


@pytest.mark.proof
@pytest.mark.parametrize("size", [1, 300])
async def test_of_many_conversations_in_one_run_the_newest_former_ones_are_kept(
    place: ConversationPlace, size: int
) -> None:
    execution = await place.begin()
    refs = [f"s{number % 250}" for number in range(300)]
    for begin in range(0, len(refs), size):
        await place.tell(execution.id, *(SessionNews(session_ref=ref) for ref in refs[begin : begin + size]))

    (row,) = place.rows("SELECT session_ref, metadata FROM sessions")
    assert row["session_ref"] == "s49"
    expected = [*range(99, 250), *range(49)]
    assert json.loads(str(row["metadata"]))["former_refs"] == [f"s{number}" for number in expected]


async def test_why_a_conversation_cannot_be_resumed_is_kept_until_it_is(place: ConversationPlace) -> None:
    execution = await place.begin()
    await place.tell(execution.id, SessionNews(session_ref="s", cannot_fork="no copies"))
    session_id = await place.session_id(execution.id)
    at_first = await place.sessions.get(session_id)
    await place.tell(execution.id, SessionNews(cannot_resume="it is gone"))
    refused = await place.sessions.get(session_id)
    await place.tell(execution.id, SessionNews(session_ref="s"))
    found_again = await place.sessions.get(session_id)

    assert (at_first.cannot_resume, at_first.cannot_fork) == ("", "no copies")
    assert (refused.cannot_resume, refused.cannot_fork) == ("it is gone", "it is gone")
    assert (found_again.cannot_resume, found_again.cannot_fork) == ("", "")


async def test_parts_of_a_message_make_one_and_a_whole_one_takes_its_place(place: ConversationPlace) -> None:
    execution = await place.begin()
    await place.tell(execution.id, says("1", "Hel"), says("1", "lo", continues=True), says("2", "x"))
    await place.tell(execution.id, says("1", " you", continues=True), says("2", "y"))
    session_id = await place.session_id(execution.id)

    messages = await place.conversations.messages(session_id)

    assert [one.content for one in messages] == ["Hello you", "y"]
    assert await place.conversations.messages(session_id, after=messages[0].id) == messages[1:]
    assert await place.conversations.messages(session_id, limit=1) == messages[:1]


async def test_the_calls_of_an_answer_share_its_tokens_to_the_last_one(place: ConversationPlace) -> None:
    execution = await place.begin()
    await place.tell(execution.id, bills("a", 4, is_final=False), calls("1", answer_key="a"))
    await place.tell(execution.id, calls("2", answer_key="a"), calls("3", answer_key="a"), calls("4"))
    await place.tell(execution.id, bills("a", 100), ToolFinishedNews(tool_ref="2", status=OperationStatus.FAILED))

    operations = await place.conversations.operations(execution_id=execution.id)

    assert [one.input_tokens for one in operations] == [34, 33, 33, 0]
    assert [one.output_tokens for one in operations] == [3, 2, 2, 0]
    assert [one.status.value for one in operations] == ["pending", "failed", "pending", "pending"]
    session = await place.sessions.get(await place.session_id(execution.id))
    assert (session.total_tokens, session.operation_count) == (107, 4)
    assert (await place.queue.executions.get(execution.id)).tokens_used == 107
    (bill,) = place.rows("SELECT cost_nano, cost_source, is_provisional FROM llm_interactions")
    assert tuple(bill.values()) == (None, "none", 0)


async def test_what_a_conversation_costs_is_told_since_its_beginning_and_counted_once(place: ConversationPlace) -> None:
    execution = await place.begin()
    await place.tell(execution.id, SessionNews(session_ref="abc"), CostNews(cost_nano=100), CostNews(cost_nano=250))
    await place.tell(execution.id, CostNews(cost_nano=300), ending=an_ending())
    second = await place.enqueue(execution.task_id, parent=execution.id)
    await place.claim()
    await place.tell(second.id, CostNews(cost_nano=420))

    session = await place.sessions.get(await place.session_id(second.id))

    assert session.id == await place.session_id(execution.id)
    assert [(await place.queue.executions.get(one)).cost_nano for one in (execution.id, second.id)] == [300, 120]
    assert session.total_cost_nano == 420
    assert [one.id for one in await place.sessions.executions(session.id)] == [execution.id, second.id]


async def test_news_of_a_run_without_a_session_make_one(place: ConversationPlace) -> None:
    execution = await place.begin(prompt=None)
    await place.tell(execution.id, ActivityNews(activity=Activity.WORKING))
    assert (await place.queue.executions.get(execution.id)).session_id is None

    event = Event(execution_id=execution.id, trace_id=execution.id, type=EventType.MESSAGE, timestamp_ms=1)
    await place.tell(execution.id, says("1", "Hello"), events=[event], ending=an_ending())

    session = await place.sessions.get(await place.session_id(execution.id))
    assert (session.status, session.workspace) == (SessionStatus.COMPLETED, "/w")
    assert [one.session_id for one in await place.events.list(session_id=session.id)] == [session.id]


async def _searched(place: ConversationPlace) -> list[ExecutionId]:
    first = await place.enqueue(prompt="Mend the LOGIN form")
    second = await place.enqueue(prompt="Write docs", at=NOON + timedelta(seconds=1))
    for _ in range(2):
        await place.claim(NOON + timedelta(seconds=2))
    await place.tell(first.id, SessionNews(session_ref="ses_abc"), says("1", "It is at 100% now"), calls("1"))
    await place.tell(second.id, says("1", "a_b and\n100 of 1000"), calls("1", target="src/Login.tsx"))
    await place.tell(first.id, ending=an_ending())
    return [first.id, second.id]


@pytest.mark.parametrize(
    ("search", "found", "match"),
    [
        ("", [1, 0], ""),
        ("login", [1, 0], None),
        ("login form", [0], None),
        ("100%", [0], "It is at 100% now"),
        ("a_b", [1], "a_b and 100 of 1000"),
        ("AxB", [], None),
        ("tsx docs", [1], None),
        ("ses_abc", [0], ""),
        ("nothing login", [], None),
    ],
)
async def test_a_search_finds_the_sessions_in_which_every_word_occurs(
    place: ConversationPlace, search: str, found: list[int], match: str | None
) -> None:
    ids = await _searched(place)

    listed = await place.sessions.list(None, search=search, limit=9)

    assert [ids.index(one.newest_execution_id) for one in listed if one.newest_execution_id] == found
    if match is not None:
        assert listed[0].match == match


async def test_sessions_are_listed_by_workspace_and_by_being_live(place: ConversationPlace) -> None:
    ids = await _searched(place)
    live = await place.sessions.list(place.queue.workspaces["w"], live_only=True, limit=9)

    assert [one.newest_execution_id for one in live] == ids[1:]
    assert (live[0].is_live, live[0].agent_slug, live[0].task_number, live[0].task_title) == (
        True,
        "claude",
        2,
        "a task",
    )
    assert await place.sessions.list(place.queue.workspaces["v"], limit=9) == ()
    first = (await place.queue.executions.get(ids[0])).task_id
    (session,) = await place.sessions.of_task(first)
    assert await place.sessions.find_by_prefix("ses_") == await place.sessions.find_by_prefix(session.id) == (session,)
    with closing(sqlite3.connect(place.database.path)) as connection, connection:
        (ref,) = connection.execute("SELECT session_ref FROM sessions WHERE id = ?", (session.id,)).fetchone()
        connection.execute("UPDATE sessions SET session_ref = ? || '0' WHERE id <> ?", (ref, session.id))
    assert await place.sessions.find_by_prefix(ref) == (session,)
    assert len(await place.sessions.find_by_prefix(ref[:-1])) > 1
    assert await place.sessions.find_by_prefix("") == await place.sessions.find_by_prefix("%") == ()
    assert await place.sessions.of_task(TaskId("none")) == ()
    with pytest.raises(NotFoundError):
        await place.sessions.get(SessionId("none"))
    with pytest.raises(NotFoundError):
        await place.sessions.set_title(SessionId("none"), "x", at=NOON)


async def test_the_stream_is_read_on_from_an_id_and_by_types_and_levels(place: ConversationPlace) -> None:
    execution = await place.begin()
    steps = [{"text": "one", "status": "completed"}, {"text": "two", "status": "never"}]
    kinds: list[tuple[EventType, EventLevel | None, Mapping[str, object]]] = [
        (EventType.LOG, EventLevel.WARN, {}),
        (EventType.PLAN_UPDATE, None, {"steps": []}),
        (EventType.PLAN_UPDATE, None, {"steps": steps}),
        (EventType.LOG, EventLevel.INFO, {}),
    ]
    await place.tell(
        execution.id,
        events=[
            Event(
                execution_id=execution.id,
                trace_id=execution.id,
                type=kind,
                level=level,
                timestamp_ms=1,
                payload=payload,
            )
            for kind, level, payload in kinds
        ],
    )

    everything = await place.events.list(execution_id=execution.id)
    plan = await place.conversations.plan(execution.id)

    assert [one.type for one in everything] == [kind for kind, _, _ in kinds]
    assert await place.events.list(after_id=everything[1].id) == everything[2:]
    assert await place.events.list(levels=[EventLevel.WARN]) == everything[:1]
    assert await place.events.list(types=[EventType.LOG], limit=1) == everything[:1]
    assert await place.events.last(execution_id=execution.id, types=[EventType.LOG], limit=1) == everything[3:]
    assert plan is not None
    assert [step.text for step in plan.steps] == ["one"]
    assert await place.conversations.operations() == ()
