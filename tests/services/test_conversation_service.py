from __future__ import annotations

from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING

import pytest
from sqlalchemy import update

from agentmon.domain.activity import DELIVERY_SOURCE, Activity
from agentmon.domain.conversation import (
    AskKind,
    MessageNews,
    PlanNews,
    PlanStatus,
    PlanStep,
    SessionNews,
    ToolStartedNews,
)
from agentmon.domain.diffs import DiffSide, LineSpan
from agentmon.domain.errors import ConflictError, NotFoundError, UsageError
from agentmon.domain.events import EventType, TaskEventType
from agentmon.domain.execution_mode import ExecutionMode
from agentmon.domain.execution_status import ExecutionStatus
from agentmon.domain.executions import CommandType
from agentmon.domain.ids import new_id
from agentmon.domain.operations import MessageRole, OperationType
from agentmon.domain.review_comments import ReviewComment
from agentmon.services.actors import USER_ACTOR
from agentmon.store import tables
from tests.conversing import a_wish, conversing

if TYPE_CHECKING:
    from pathlib import Path


async def test_a_message_of_any_size_goes_to_the_agent_that_runs(tmp_path: Path) -> None:
    text = "käse;\n$(rm) " * 100_000
    async with conversing(tmp_path) as place:
        task = await place.add_task()
        execution = await place.begin(task.id)

        sent = await place.services.conversations.send(task.id, text, actor=USER_ACTOR)
        (command,) = await place.commands(execution.id)
        trail = await place.services.audit.of_task(task.id, limit=100)
        (told,) = [event for event in trail if event.event_type is TaskEventType.MESSAGE_SENT]

        assert (sent.execution.id, sent.is_new_execution) == (execution.id, False)
        assert (command.type, command.payload) == (CommandType.MESSAGE, {"text": text})
        assert "text" not in told.payload


async def test_a_message_says_what_keeps_it_from_its_agent(tmp_path: Path) -> None:
    async with conversing(tmp_path) as place:
        task = await place.add_task()
        execution = await place.begin(task.id)
        send = partial(place.services.conversations.send, task.id, actor=USER_ACTOR)
        first, second = await send("one"), await send("two")
        commands, executions = tables.execution_commands, tables.executions
        async with place.services.database.writing() as connection:
            await connection.execute(update(commands).values(delivered_at=datetime.now(UTC)))
        third = await send("three")
        async with place.services.database.writing() as connection:
            lost = {"activity": Activity.WAITING, "activity_source": DELIVERY_SOURCE, "activity_note": "not shown"}
            await connection.execute(update(executions).where(executions.c.id == execution.id).values(lost))
        fourth = await send("four")

        assert first.waits_for == ""
        assert second.waits_for.startswith("1 ")
        assert third.waits_for == ""
        assert fourth.waits_for == "not shown"


async def test_a_message_goes_on_with_the_newest_conversation_when_none_runs(tmp_path: Path) -> None:
    async with conversing(tmp_path) as place:
        task = await place.add_task()
        execution = await place.begin(task.id)
        await place.end(execution.id)

        sent = await place.services.conversations.send(task.id, "now the other test", actor=USER_ACTOR)

        assert sent.is_new_execution
        assert sent.execution.status is ExecutionStatus.QUEUED
        assert sent.execution.parent_execution_id == execution.id
        assert sent.execution.session_id == execution.session_id
        assert sent.execution.prompt == "now the other test"


@pytest.mark.parametrize("is_running", [True, False])
async def test_comments_are_noted_as_sent_with_their_message_and_never_without_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_running: bool
) -> None:
    async with conversing(tmp_path) as place:
        task = await place.add_task()
        execution = await place.begin(task.id)
        if not is_running:
            await place.end(execution.id)
        changes, conversations = place.services.changes, place.services.conversations
        span = LineSpan("a.py", DiffSide.NEW, 1, 1)
        comment = ReviewComment(
            id=new_id(), execution_id=execution.id, span=span, quoted="", text="why", digest="", sent_at=None
        )
        await changes.write_comment(comment, actor=USER_ACTOR)

        async def die(*_: object, **__: object) -> None:
            raise KeyboardInterrupt

        with pytest.raises(UsageError):
            await conversations.send(task.id, " ", comment_ids=[comment.id], actor=USER_ACTOR)
        unsent = await changes.comments_of(task.id)
        monkeypatch.setattr(place.services.queue, "deliver", die)
        with pytest.raises(KeyboardInterrupt):
            await conversations.send(task.id, "why", comment_ids=[comment.id], actor=USER_ACTOR)
        (sent,) = await changes.comments_of(task.id)

        assert [one.sent_at for one in unsent] == [None]
        assert sent.sent_at is not None


async def test_who_cannot_be_told_says_what_to_do(tmp_path: Path) -> None:
    async with conversing(tmp_path) as place:
        send = place.services.conversations.send
        silent, waiting, held, tool = [await place.add_task(title) for title in "abcd"]
        await place.begin(tool.id, mode=ExecutionMode.TEMPLATE)
        await place.enqueue(waiting.id)
        await place.enqueue(held.id, start_approval=a_wish(ask_kind=AskKind.START))

        with pytest.raises(UsageError, match="has no conversation") as without:
            await send(silent.id, "hello", actor=USER_ACTOR)
        with pytest.raises(ConflictError, match="has not started yet") as early:
            await send(waiting.id, "hello", actor=USER_ACTOR)
        with pytest.raises(ConflictError, match="waits for a leave") as unallowed:
            await send(held.id, "hello", actor=USER_ACTOR)
        with pytest.raises(ConflictError, match="takes no messages") as deaf:
            await send(tool.id, "hello", actor=USER_ACTOR)
        with pytest.raises(UsageError, match="empty"):
            await send(tool.id, " \n", actor=USER_ACTOR)

        assert without.value.hint == f"`agentmon run {silent.number}` starts one with an agent"
        assert early.value.hint == "try again when it runs"
        assert f"agentmon approve '#{held.number}'" in unallowed.value.hint
        assert f"`agentmon attach {tool.number}`" in deaf.value.hint


async def test_a_running_agent_is_interrupted_switched_and_finished(tmp_path: Path) -> None:
    async with conversing(tmp_path) as place:
        task = await place.add_task()
        execution = await place.begin(task.id)
        conversations = place.services.conversations

        await conversations.interrupt(task.id, actor=USER_ACTOR)
        await conversations.switch(task.id, model=" opus ", permission_mode="plan", actor=USER_ACTOR)
        await conversations.finish(task.id, actor=USER_ACTOR)

        assert [(command.type, command.payload) for command in await place.commands(execution.id)] == [
            (CommandType.INTERRUPT, {}),
            (CommandType.SET_MODEL, {"model": "opus"}),
            (CommandType.SET_PERMISSION_MODE, {"permission_mode": "plan"}),
            (CommandType.FINISH, {}),
        ]
        with pytest.raises(UsageError):
            await conversations.switch(task.id, model="opus", permission_mode=" ", actor=USER_ACTOR)


async def test_nobody_is_interrupted_when_no_agent_runs(tmp_path: Path) -> None:
    async with conversing(tmp_path) as place:
        task = await place.add_task()

        with pytest.raises(ConflictError, match="no agent of #1 runs"):
            await place.services.conversations.interrupt(task.id, actor=USER_ACTOR)


async def test_what_was_said_and_done_is_read_back(tmp_path: Path) -> None:
    async with conversing(tmp_path) as place:
        task = await place.add_task()
        execution = await place.begin(task.id)
        assert execution.session_id is not None
        plan = PlanNews(steps=(PlanStep(text="look", status=PlanStatus.COMPLETED),))
        await place.tell(
            execution.id,
            MessageNews(message_ref="m1", role=MessageRole.ASSISTANT, text="I look."),
            ToolStartedNews(tool_ref="t1", tool_name="Bash", type=OperationType.EXECUTE, target="ls"),
            plan,
        )
        conversations = place.services.conversations

        messages = await conversations.messages(execution.session_id)
        operations = await conversations.operations(session_id=execution.session_id)
        events = await conversations.events(execution_id=execution.id, types=[EventType.TOOL_STARTED])

        assert "I look." in [message.content for message in messages]
        assert await conversations.messages(execution.session_id, after=messages[-1].id) == ()
        assert [(one.tool_name, one.target) for one in operations] == [("Bash", "ls")]
        assert await conversations.plan(execution.id) == plan
        assert [event.type for event in events] == [EventType.TOOL_STARTED]
        assert (
            await conversations.events(execution_id=execution.id, after_id=events[-1].id, types=[EventType.LOG]) == ()
        )


async def test_a_session_is_found_named_gone_on_with_copied_and_begun_anew(tmp_path: Path) -> None:
    async with conversing(tmp_path) as place:
        task = await place.add_task()
        execution = await place.begin(task.id)
        sessions = place.services.sessions
        (session,) = await sessions.of_task(task.id)

        with pytest.raises(ConflictError, match="goes on already"):
            await sessions.resume(session.id, "more", actor=USER_ACTOR)
        await place.end(execution.id)
        await sessions.rename(session.id, " rounding ")
        with pytest.raises(UsageError):
            await sessions.rename(session.id, " ")
        with pytest.raises(UsageError):
            await sessions.resume(session.id, " ", actor=USER_ACTOR)
        found = await sessions.find(session.id[:30])
        by_ref = await sessions.find(f"ref-{execution.id}")
        resumed = await sessions.resume(session.id, "more", actor=USER_ACTOR)
        await place.services.queue.stop(task.id, actor=USER_ACTOR)
        forked = await sessions.fork(session.id, "otherwise", actor=USER_ACTOR)
        await place.services.queue.stop(task.id, actor=USER_ACTOR)
        restarted = await sessions.restart(session.id, actor=USER_ACTOR)

        assert found == by_ref
        assert found.title == "rounding"
        assert (resumed.session_id, resumed.prompt) == (session.id, "more")
        assert forked.session_id not in {None, session.id}
        assert forked.prompt == "otherwise"
        assert restarted.session_id not in {None, session.id, forked.session_id}
        assert (restarted.prompt, restarted.session_ref) == (session.initial_prompt, None)
        with pytest.raises(NotFoundError):
            await sessions.find("zzz")
        with pytest.raises(UsageError, match="several sessions"):
            await sessions.find("0")


async def test_a_conversation_that_was_never_named_is_begun_anew_only(tmp_path: Path) -> None:
    async with conversing(tmp_path) as place:
        task = await place.add_task()
        await place.enqueue(task.id)
        await place.services.queue.stop(task.id, actor=USER_ACTOR)
        (session,) = await place.services.sessions.of_task(task.id)

        with pytest.raises(ConflictError, match="never named") as refused:
            await place.services.sessions.resume(session.id, "more", actor=USER_ACTOR)

        assert f"sessions restart {session.id} --message" in str(refused.value.hint)


async def test_a_conversation_that_cannot_be_resumed_hands_its_history_to_a_fresh_one(tmp_path: Path) -> None:
    async with conversing(tmp_path) as place:
        task = await place.add_task()
        execution = await place.begin(task.id)
        await place.tell(
            execution.id,
            MessageNews(message_ref="m", role=MessageRole.ASSISTANT, text="the zebra crossed"),
            SessionNews(cannot_resume="it is gone"),
        )
        await place.end(execution.id)
        (session,) = await place.services.sessions.of_task(task.id)

        with pytest.raises(ConflictError, match="it is gone") as refused:
            await place.services.conversations.send(task.id, "more", actor=USER_ACTOR)
        with pytest.raises(ConflictError, match="cannot copy"):
            await place.services.sessions.fork(session.id, "more", actor=USER_ACTOR)
        fresh = await place.services.sessions.restart(session.id, "and now?", actor=USER_ACTOR)

        assert f"sessions restart {session.id} --message" in str(refused.value.hint)
        assert (fresh.agent_id, fresh.parent_execution_id) == (execution.agent_id, None)
        assert fresh.session_id not in {None, session.id}
        prompt = fresh.prompt or ""
        assert prompt.index("the zebra crossed") < prompt.index("and now?")
        newest = (await place.services.sessions.of_task(task.id))[0]
        assert newest.initial_prompt == "and now?"
