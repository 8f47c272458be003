"""What an agent says, does and spends in its own screen belongs to its card, as in a protocol."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from agentmon.domain.activity import Activity
from agentmon.domain.approvals import ApprovalStatus, RuleDecision
from agentmon.domain.budgets import BudgetPeriod, BudgetScope
from agentmon.domain.conversation import AskKind
from agentmon.domain.errors import ConflictError
from agentmon.domain.execution_status import EndReason, ExecutionStatus
from agentmon.domain.executions import ConversationStart
from agentmon.domain.live_state import LiveState
from agentmon.services.actors import USER_ACTOR
from agentmon.worker.presence import read_presence
from tests.agents.dialogs import AgentPane
from tests.agents.test_states import (
    ASKS,
    DONE_NOTE,
    MADE,
    distrust,
    kill,
    require_asked,
    start_own_screen,
    until_noted,
)
from tests.shared_folders import let_agents_share_folders
from tests.waiting import wait_for

if TYPE_CHECKING:
    from collections.abc import Sequence

    from agentmon.domain.approvals import ApprovalListing
    from agentmon.domain.executions import Execution
    from tests.agents.drive import Drive, Row
    from tests.live_home import LiveHome

pytestmark = [pytest.mark.agents]


async def until_told(drive: Drive, execution: Execution, *, answers: int, texts: int) -> Execution:
    """Wait until the card of the execution has so many billed answers, and texts of the agent."""

    async def is_told() -> bool:
        told = [text for text in drive.texts(execution, "assistant") if text]
        return len(drive.rows("llm_interactions", execution)) >= answers and len(told) >= texts

    await drive.until(is_told, f"{answers} answers and {texts} texts on the card")
    return await drive.services.executions.get(execution.id)


async def until_call_is_open(drive: Drive, execution: Execution) -> None:
    # Gemini CLI writes a call down when that is over.
    if drive.agent.slug != "gemini":
        assert (await drive.until_operation(execution, "pending"))["tool_name"]


def sessions(drive: Drive) -> list[Row]:
    return drive._select("SELECT * FROM sessions ORDER BY id", ())


async def test_what_is_said_and_spent_in_an_own_screen_is_on_its_card(drive: Drive) -> None:
    started = await start_own_screen(drive, ASKS[drive.agent.slug])
    await until_noted(drive, started, Activity.WAITING, "permission", "asks")
    await until_call_is_open(drive, started)

    await drive.press(started, "Enter")
    await until_noted(drive, started, Activity.WAITING, DONE_NOTE)
    told = await until_told(drive, started, answers=2, texts=2)

    assert told.session_ref
    assert told.tokens_used > 0
    (session,) = sessions(drive)
    assert (session["id"], session["task_id"], session["session_ref"]) == (
        told.session_id,
        told.task_id,
        told.session_ref,
    )
    assert session["total_tokens"] == told.tokens_used
    assert session["context_tokens"]
    assert [row["status"] for row in drive.rows("operations", started)] == ["success"]
    assert any(ASKS[drive.agent.slug] in text for text in drive.texts(started, "user"))

    await drive.services.conversations.finish(started.task_id, actor=USER_ACTOR)
    ended = await drive.until_over(started)
    sent = await drive.services.conversations.send(ended.task_id, "again #mock:plain", actor=USER_ACTOR)
    assert sent.is_new_execution
    await require_asked(drive, "again #mock:plain")
    await until_told(drive, sent.execution, answers=1, texts=1)
    assert len(sessions(drive)) == 1
    assert {row["session_id"] for row in drive.rows("llm_interactions", sent.execution)} == {session["id"]}


async def test_an_own_screen_that_is_finished_while_it_asks_waits_for_the_answer(drive: Drive) -> None:
    started = await start_own_screen(drive, ASKS[drive.agent.slug])
    await until_noted(drive, started, Activity.WAITING, "permission", "asks")
    await until_call_is_open(drive, started)
    await drive.services.conversations.finish(started.task_id, actor=USER_ACTOR)

    await drive.press(started, "Enter")
    ended = await drive.until_over(started)

    assert (ended.status, ended.end_reason) == (ExecutionStatus.SUCCEEDED, EndReason.FINISHED)
    assert (drive.project / MADE[drive.agent.slug]).exists()
    await until_told(drive, ended, answers=2, texts=2)
    assert [row["status"] for row in drive.rows("operations", ended)] == ["success"]


ROUNDS = "go #mock:" + json.dumps(
    [{"text": f"Round {number}.", "delay": 2, "tools": [["read", {"path": "notes.txt"}]]} for number in range(20)]
)


@pytest.mark.parametrize("capability_key", ["work", "screen"])
async def test_a_budget_lets_one_more_answer_through_and_the_run_waits_until_a_person_lets_it_go_on(
    drive: Drive, capability_key: str
) -> None:
    drive.services.paths.prices_file.parent.mkdir(parents=True, exist_ok=True)
    drive.services.paths.prices_file.write_text(
        '[[price]]\nmodel = "*"\ninput = 1\noutput = 2\ncache_read = 1\ncache_write = 1\ncache_write_1h = 1\n'
    )
    (drive.project / "notes.txt").write_text("a note\n")
    more = {"permission_mode": "ask"} if (drive.agent.slug, capability_key) == ("codex", "screen") else {}
    task = await drive.add(ROUNDS, capability_key=capability_key, **more)
    await drive.services.budgets.set(
        scope=BudgetScope.TASK, scope_id=task.id, period=BudgetPeriod.TOTAL, limit=100_000, actor=USER_ACTOR
    )

    async def answers() -> int:
        await drive.services.costs.import_history()
        return len(drive.rows("llm_interactions", started))

    async def is_without_worker() -> bool:
        return not read_presence(drive.services.paths.worker_lock).is_running

    async def is_at_rest() -> bool:
        commands = drive.rows("execution_commands", started)
        return all(row["obeyed_at"] is not None for row in commands if row["type"] == "interrupt")

    started = await drive.services.queue.run(task.id, actor=USER_ACTOR, environ=drive.agent.environ)
    asked = await drive.until_asked(started, AskKind.BUDGET)
    await drive.until(is_at_rest, "the interrupt to be obeyed")
    first = await answers()
    worker = read_presence(drive.services.paths.worker_lock)
    assert worker.pid is not None
    os.kill(worker.pid, signal.SIGKILL)
    await drive.until(is_without_worker, "the end of the worker")
    await drive.services.workers.ensure_running()
    waiting = await drive.services.executions.get(started.id)

    assert 1 <= first <= 2, drive.story()
    assert asked.approval.ask_kind is AskKind.BUDGET
    assert (waiting.status, waiting.live_state) == (ExecutionStatus.RUNNING, LiveState.NEEDS_YOU)

    await drive.decide_budget(started, drive.allow)

    async def has_gone_on() -> bool:
        return await answers() > first

    await drive.until(has_gone_on, "another answer")
    if drive.agent.slug == "gemini":
        # What it is told begins another turn, to which the mock model has a plain answer.
        if capability_key == "screen":
            await drive.services.queue.stop(task.id, actor=USER_ACTOR)
        await drive.until_over(started)
        return
    again = await drive.until_asked(started, AskKind.BUDGET)
    await drive.until(is_at_rest, "the second interrupt to be obeyed")
    second = await answers()
    assert again.approval.id != asked.approval.id
    assert second <= first + 2, drive.story()

    await drive.services.budgets.set(
        scope=BudgetScope.TASK, scope_id=task.id, period=BudgetPeriod.TOTAL, limit=10**9, actor=USER_ACTOR
    )

    async def has_gone_on_again() -> bool:
        return await answers() > second

    await drive.until(has_gone_on_again, "an answer under the raised budget")
    assert AskKind.BUDGET not in {one.approval.ask_kind for one in await drive.services.approvals.inbox(None)}
    await drive.services.queue.stop(task.id, actor=USER_ACTOR)
    ended = await drive.until_over(started)
    assert ended.live_state is LiveState.CANCELLED


@pytest.mark.only("claude", "codex", "opencode")  # Gemini CLI copies none.
async def test_a_copy_of_a_conversation_in_an_own_screen_is_a_session_of_its_own(drive: Drive) -> None:
    started = await start_own_screen(drive, "first #mock:plain")
    first = await until_told(drive, started, answers=1, texts=1)
    await until_noted(drive, started, Activity.WAITING, DONE_NOTE)
    await drive.services.conversations.finish(started.task_id, actor=USER_ACTOR)
    await drive.until_over(started)

    forked = await drive.services.queue.run(
        started.task_id,
        actor=USER_ACTOR,
        environ=drive.agent.environ,
        message="second #mock:plain",
        start=ConversationStart.FORK,
        parent_execution_id=started.id,
    )
    told = await until_told(drive, forked, answers=1, texts=1)
    await drive.services.costs.import_history()

    assert told.session_id != first.session_id
    assert len(sessions(drive)) == 2
    assert [len(drive.rows("llm_interactions", one)) for one in (first, told)] == [1, 1]
    assert [drive.texts(one, "user") for one in (first, told)] == [["first #mock:plain"], ["second #mock:plain"]]


BEGINS_ANEW = {"claude": "/clear", "codex": "/new", "gemini": "/clear", "opencode": "/new"}


async def test_a_conversation_that_is_begun_anew_in_the_same_screen_stays_on_its_card(drive: Drive) -> None:
    started = await start_own_screen(drive, "first #mock:plain")
    first = await until_told(drive, started, answers=1, texts=1)
    await until_noted(drive, started, Activity.WAITING, DONE_NOTE)

    assert first.tmux_session_name is not None
    command = BEGINS_ANEW[drive.agent.slug]
    pane = AgentPane(slug=drive.agent.slug, socket=drive.services.paths.tmux_socket, session=first.tmux_session_name)
    pane.ask_tmux("send-keys", "-l", command)

    async def is_typed() -> bool:
        return command in pane.ask_tmux("capture-pane", "-p")

    await drive.until(is_typed, "the command in the box")
    pane.ask_tmux("send-keys", "Enter")

    async def has_another_id() -> bool:
        return (await drive.services.executions.get(started.id)).session_ref != first.session_ref

    if drive.agent.slug == "claude":
        # It says so before anything is said in it.
        await drive.until(has_another_id, "another conversation in the same screen")
    elif drive.agent.slug == "codex":

        async def is_asked_where() -> bool:
            return "Where should the new conversation run?" in pane.ask_tmux("capture-pane", "-p")

        await drive.until(is_asked_where, "the question where the conversation is to run")
        pane.ask_tmux("send-keys", "Enter")
    await drive.services.conversations.send(started.task_id, "second #mock:plain", actor=USER_ACTOR)
    await drive.until(has_another_id, "another conversation in the same screen")
    await until_told(drive, started, answers=2, texts=2)
    assert drive.texts(started, "user") == ["first #mock:plain", "second #mock:plain"]
    assert [row["id"] for row in sessions(drive)] == [first.session_id]


@pytest.mark.only("codex", "gemini", "opencode")  # Claude Code is given the id.
async def test_a_run_that_is_killed_right_behind_its_first_answer_keeps_its_conversation(drive: Drive) -> None:
    prompt = f"go in {drive.project} #mock:plain"
    started = await start_own_screen(drive, prompt)
    await require_asked(drive, prompt)
    kill(await drive.services.executions.get(started.id))

    ended = await drive.until_over(started)
    told = await until_told(drive, ended, answers=0, texts=0)
    await drive.services.costs.import_history()
    await drive.services.costs.import_conversations(rescan=True)

    assert told.session_ref
    assert [(row["id"], row["session_ref"]) for row in sessions(drive)] == [(told.session_id, told.session_ref)]
    assert drive.texts(ended, "user") == [prompt]


async def test_two_runs_in_one_folder_at_the_same_time_have_a_conversation_each(drive: Drive) -> None:
    words = ["one #mock:plain", "two #mock:plain"]
    await let_agents_share_folders(drive.services.database, drive.workspace.id)
    # One after the other: Codex damages its own database when two are the first to open it.
    told = [await until_told(drive, await start_own_screen(drive, prompt), answers=1, texts=1) for prompt in words]
    assert all(one.status.is_open for one in told)
    await drive.services.costs.import_history()

    assert [drive.texts(one, "user") for one in told] == [[prompt] for prompt in words]
    assert {row["id"] for row in sessions(drive)} == {one.session_id for one in told}


@pytest.mark.only("codex", "opencode")
async def test_a_worker_that_is_killed_takes_no_conversation_along(drive: Drive, live_home: LiveHome) -> None:
    started = await start_own_screen(drive, ASKS[drive.agent.slug])
    await until_noted(drive, started, Activity.WAITING, "permission", "asks")
    live_home.kill_worker()
    await drive.services.workers.ensure_running()
    await drive.press(started, "Enter")
    await until_noted(drive, started, Activity.WAITING, DONE_NOTE)
    told = await until_told(drive, started, answers=2, texts=2)

    assert [row["status"] for row in drive.rows("operations", started)] == ["success"]
    assert [(row["id"], row["session_ref"]) for row in sessions(drive)] == [(told.session_id, told.session_ref)]


@pytest.mark.only("opencode")  # The others keep their files where variables of their own say.
async def test_an_agent_whose_data_lie_elsewhere_has_its_conversation_on_its_card(
    drive: Drive, monkeypatch: pytest.MonkeyPatch
) -> None:
    elsewhere = drive.home / "else where"
    monkeypatch.setenv("XDG_DATA_HOME", str(elsewhere))
    moved = replace(drive.agent, environ=drive.agent.environ | {"XDG_DATA_HOME": str(elsewhere)})
    there = replace(drive, agent=moved)

    started = await start_own_screen(there, "go #mock:plain")
    told = await until_told(there, started, answers=1, texts=1)

    assert (elsewhere / "opencode" / "opencode.db").exists()
    assert [(row["id"], row["session_ref"]) for row in sessions(there)] == [(told.session_id, told.session_ref)]


async def until_offered(drive: Drive, execution: Execution) -> ApprovalListing:
    """Wait for the request of an own screen that says what is typed for it."""

    async def is_offered() -> ApprovalListing | None:
        pending = await drive.services.approvals.inbox(None)
        return next((one for one in pending if one.approval.execution_id == execution.id and one.approval.typed), None)

    found: ApprovalListing = await drive.until(is_offered, "a request that can be answered from here")
    return found


async def until_decided(drive: Drive, execution: Execution) -> Row:
    """Wait until the one request of the execution is over, and return its row."""

    async def is_over() -> Row | None:
        rows = drive.rows("approvals", execution)
        return rows[-1] if rows and all(row["closed_at"] for row in rows) else None

    found: Row = await drive.until(is_over, "the end of the request")
    return found


def typed(drive: Drive, execution: Execution) -> list[str]:
    """Return the keys that were handed to the agent's host, without pasted texts and their return keys."""
    control = drive.services.paths.executions_dir / execution.id / "control.jsonl"
    lines = [json.loads(line) for line in control.read_text().splitlines() if line]
    return [one["text"] for one in lines if one["type"] == "type" and not one["is_paste"] and "submit" not in one["id"]]


async def test_what_an_own_screen_asks_is_allowed_from_here(drive: Drive) -> None:
    started = await start_own_screen(drive, ASKS[drive.agent.slug])
    listing = await until_offered(drive, started)
    approval = listing.approval
    assert MADE[drive.agent.slug] in approval.target
    assert {"allow", "deny"} <= set(approval.typed)

    await drive.allow(listing)
    with pytest.raises(ConflictError):
        await drive.deny(listing)
    row = await until_decided(drive, started)

    assert (row["status"], row["decided_by_type"]) == (ApprovalStatus.ALLOWED, "user")
    await until_noted(drive, started, Activity.WAITING, DONE_NOTE)
    assert (drive.project / MADE[drive.agent.slug]).exists()
    assert len(typed(drive, started)) == 1
    assert drive.approval_states(started)[-1] is ApprovalStatus.ALLOWED
    (command,) = [one for one in drive.rows("execution_commands", started) if one["type"] == "answer"]
    assert command["obeyed_at"]
    assert not command["error"]


@pytest.mark.parametrize("reason", ["", "use another file #mock:plain"])
async def test_what_an_own_screen_asks_is_denied_from_here(drive: Drive, reason: str) -> None:
    started = await start_own_screen(drive, ASKS[drive.agent.slug])
    listing = await until_offered(drive, started)

    await drive.deny(listing, reason)
    row = await until_decided(drive, started)

    assert (row["status"], row["decided_by_type"]) == (ApprovalStatus.DENIED, "user")
    if reason:
        await require_asked(drive, reason)
    await until_noted(drive, started, Activity.WAITING)
    assert not (drive.project / MADE[drive.agent.slug]).exists()
    assert len(typed(drive, started)) == 1


async def test_an_answer_to_a_dialog_that_has_just_gone_types_nothing(drive: Drive, live_home: LiveHome) -> None:
    started = await start_own_screen(drive, ASKS[drive.agent.slug])
    listing = await until_offered(drive, started)
    await asyncio.to_thread(live_home.kill_worker)
    await drive.press(started, "Enter")
    await asyncio.to_thread(wait_for, (drive.project / MADE[drive.agent.slug]).exists, "what was allowed there")

    await drive.deny(listing)
    await drive.services.workers.ensure_running()
    row = await until_decided(drive, started)

    assert row["status"] in {ApprovalStatus.ALLOWED, ApprovalStatus.ANSWERED}
    assert row["decided_by_type"] is None
    assert "gone" in row["decision_reason"]
    assert typed(drive, started) == []
    assert len(drive.rows("approvals", started)) == 1


async def test_an_answer_is_typed_once_whatever_becomes_of_the_worker(drive: Drive, live_home: LiveHome) -> None:
    started = await start_own_screen(drive, ASKS[drive.agent.slug])
    listing = await until_offered(drive, started)

    await drive.allow(listing)
    control = drive.services.paths.executions_dir / started.id / "control.jsonl"
    before = control.stat().st_size
    await asyncio.to_thread(wait_for, lambda: control.stat().st_size > before, "the keys")
    await asyncio.to_thread(live_home.kill_worker)
    await drive.services.workers.ensure_running()
    row = await until_decided(drive, started)

    assert (row["status"], row["decided_by_type"]) == (ApprovalStatus.ALLOWED, "user")
    await until_noted(drive, started, Activity.WAITING, DONE_NOTE)
    assert (drive.project / MADE[drive.agent.slug]).exists()
    assert len(typed(drive, started)) == 1


async def test_what_is_answered_in_the_terminal_is_recorded_as_far_as_the_screen_tells(drive: Drive) -> None:
    started = await start_own_screen(drive, ASKS[drive.agent.slug])
    await until_offered(drive, started)

    await drive.press(started, "Enter")
    row = await until_decided(drive, started)

    # Claude Code and opencode write nothing for what was allowed, and Gemini CLI not always at once.
    sure = {"codex": {ApprovalStatus.ALLOWED}, "gemini": {ApprovalStatus.ALLOWED, ApprovalStatus.ANSWERED}}
    assert row["status"] in sure.get(drive.agent.slug, {ApprovalStatus.ANSWERED})
    assert (row["decided_by_type"], row["decision_reason"]) == (None, "in its terminal")
    assert typed(drive, started) == []


@pytest.mark.only("claude", "codex", "gemini")  # opencode trusts every folder.
async def test_a_folder_is_trusted_from_here_before_the_prompt(drive: Drive) -> None:
    distrust(drive)
    prompt = f"say hello in {drive.project} #mock:plain"
    started = await start_own_screen(drive, prompt)

    await drive.allow(await until_offered(drive, started))
    await require_asked(drive, prompt)

    await until_noted(drive, started, Activity.WAITING, DONE_NOTE)
    assert (await until_decided(drive, started))["status"] == ApprovalStatus.ALLOWED


@pytest.mark.only("claude", "codex")  # Gemini CLI goes on in a folder that it does not trust.
async def test_a_folder_that_is_not_trusted_from_here_is_left(drive: Drive) -> None:
    distrust(drive)
    started = await start_own_screen(drive, "say hello #mock:plain")

    await drive.deny(await until_offered(drive, started))
    await drive.until_over(started)

    row = await until_decided(drive, started)
    assert (row["status"], row["decided_by_type"]) == (ApprovalStatus.DENIED, "user")
    assert drive.asked() == []


async def require_decided_from_here(drive: Drive, call: Sequence[object], decision: ApprovalStatus) -> None:
    """Start an agent that asks before that call of a tool, decide, and check what is recorded of it."""
    # Codex asks before it writes outside of what it may write to.
    more = {"permission_mode": "read-only"} if drive.agent.slug == "codex" else {}
    prompt = f"go #mock:{json.dumps([{'tools': [call]}, {'text': 'Over.'}])}"
    started = await drive.start(prompt, capability_key="screen", **more)

    listing = await until_offered(drive, started)
    await (drive.allow if decision is ApprovalStatus.ALLOWED else drive.deny)(listing)
    row = await until_decided(drive, started)

    assert (row["status"], row["decided_by_type"]) == (decision, "user")
    await until_noted(drive, started, Activity.WAITING)
    assert len(typed(drive, started)) == 1


@pytest.mark.only("codex", "gemini", "opencode")  # Claude Code edits only what it has read.
@pytest.mark.parametrize("decision", [ApprovalStatus.ALLOWED, ApprovalStatus.DENIED])
async def test_an_edit_is_decided_from_here(drive: Drive, decision: ApprovalStatus) -> None:
    notes = drive.project / "notes.txt"
    notes.write_text("one\n")

    await require_decided_from_here(drive, ["edit", {"path": "notes.txt", "old": "one", "new": "two"}], decision)

    assert notes.read_text() == ("two\n" if decision is ApprovalStatus.ALLOWED else "one\n")


FETCHES = {
    "claude": ["WebFetch", {"url": "http://127.0.0.1:1/x", "prompt": "what is it"}],
    "gemini": ["web_fetch", {"prompt": "read http://127.0.0.1:1/x and say what it is"}],
    "opencode": ["webfetch", {"url": "http://127.0.0.1:1/x", "format": "text"}],
}


@pytest.mark.only(*FETCHES)
@pytest.mark.parametrize("decision", [ApprovalStatus.ALLOWED, ApprovalStatus.DENIED])
async def test_a_fetch_is_decided_from_here(drive: Drive, decision: ApprovalStatus) -> None:
    await require_decided_from_here(drive, FETCHES[drive.agent.slug], decision)


@pytest.mark.only("claude")  # The others read without asking, or say only which folder.
@pytest.mark.parametrize("decision", [ApprovalStatus.ALLOWED, ApprovalStatus.DENIED])
async def test_a_file_outside_is_read_as_was_decided_from_here(drive: Drive, decision: ApprovalStatus) -> None:
    await require_decided_from_here(drive, ["Read", {"file_path": "/etc/hostname"}], decision)


async def test_a_rule_decides_what_an_own_screen_asks(drive: Drive) -> None:
    await drive.services.approvals.add_rule(decision=RuleDecision.ALLOW, actor=USER_ACTOR)
    started = await start_own_screen(drive, ASKS[drive.agent.slug])

    await until_noted(drive, started, Activity.WAITING, DONE_NOTE)

    row = await until_decided(drive, started)
    assert (row["status"], row["decided_by_type"]) == (ApprovalStatus.ALLOWED, "system")
    assert (drive.project / MADE[drive.agent.slug]).exists()
