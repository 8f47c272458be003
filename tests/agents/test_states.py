"""Every state in which a real agent can be, and what its card says of it."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from typing import TYPE_CHECKING

import pytest

from agentmon.domain.activity import Activity
from agentmon.domain.approvals import ApprovalStatus
from agentmon.domain.conversation import AskKind
from agentmon.domain.execution_status import EndReason, ExecutionStatus
from agentmon.domain.live_state import LiveState
from agentmon.domain.sessions import SessionStatus
from agentmon.logs.line_text import plain_text
from agentmon.services.actors import USER_ACTOR

if TYPE_CHECKING:
    from collections.abc import Callable

    from agentmon.domain.executions import Execution
    from tests.agents.drive import Drive

    Seen = Callable[[str, Execution], None]

pytestmark = [pytest.mark.agents, pytest.mark.usefixtures("changes")]

DONE_NOTE = "done: waits for your next message"
# What makes each agent ask before it runs a command.
ASKS = {
    "claude": "go #mock:shell",
    "codex": "go #mock:escalate",
    "gemini": "go #mock:shell",
    "opencode": "go #mock:shell",
}
MADE = {"claude": "made-by-agent", "codex": "escalated", "gemini": "made-by-agent", "opencode": "made-by-agent"}
QUESTION = {
    "question": "Which colour?",
    "header": "Colour",
    "options": [{"label": "Red", "description": "warm"}, {"label": "Blue", "description": "cold"}],
    "multiSelect": False,
}
ASK_QUESTION = "go #mock:" + json.dumps([{"tools": [["AskUserQuestion", {"questions": [QUESTION]}]]}, {"text": "Ok."}])


async def start_own_screen(drive: Drive, prompt: str) -> Execution:
    # Codex has no mode of that name in its own screen.
    more = {"permission_mode": "ask"} if drive.agent.slug == "codex" else {}
    return await drive.start(prompt, capability_key="screen", **more)


async def until_noted(drive: Drive, execution: Execution, activity: Activity, *words: str) -> Execution:
    """Wait until the agent's card says that activity, with one of the words in its note."""

    async def is_so() -> Execution | None:
        found = await drive.services.executions.get(execution.id)
        assert found.status.is_open, f"it is over: {found.error} {drive.story()}"
        is_noted = not words or any(word in (found.activity_note or "") for word in words)
        return found if found.activity is activity and is_noted else None

    try:
        found: Execution = await drive.until(is_so, f"{activity.value} with {words}")
    except AssertionError as error:
        now = await drive.services.executions.get(execution.id)
        raise AssertionError(f"{now.activity} {now.activity_note!r} {now.activity_source!r}; {error}") from None
    return found


async def until_at_work(drive: Drive, execution: Execution) -> Execution:
    """Wait until the agent itself says that it works, after its start and with its prompt."""
    ours = {"start", "launch", "output", "prompt delivery"}

    async def is_so() -> Execution | None:
        found = await drive.services.executions.get(execution.id)
        is_told = found.activity_source not in ours and found.activity_note != "starts"
        return found if found.activity is Activity.WORKING and is_told else None

    try:
        found: Execution = await drive.until(is_so, "work of its own words")
    except AssertionError as error:
        now = await drive.services.executions.get(execution.id)
        raise AssertionError(f"{now.activity} {now.activity_note!r} {now.activity_source!r}; {error}") from None
    return found


def require_board(execution: Execution, state: LiveState) -> None:
    assert execution.live_state is state
    assert execution.activity_source
    assert execution.status is ExecutionStatus.RUNNING


async def until_settled(drive: Drive, execution: Execution) -> tuple[ApprovalStatus, ...]:
    """Wait until nothing of the execution is pending in the inbox."""

    async def is_settled() -> tuple[ApprovalStatus, ...]:
        states = drive.approval_states(execution)
        return () if ApprovalStatus.PENDING in states else tuple(states)

    found: tuple[ApprovalStatus, ...] = await drive.until(is_settled, "the end of what was asked")
    return found


def kill(execution: Execution) -> None:
    assert execution.pid is not None
    os.killpg(execution.pid, signal.SIGKILL)


# Its own screen


async def test_an_own_screen_starts_works_asks_and_is_done(drive: Drive, seen: Seen) -> None:
    started = await start_own_screen(drive, ASKS[drive.agent.slug])
    starts = await until_noted(drive, started, Activity.WORKING, "starts")
    require_board(starts, LiveState.RUNNING)
    seen("starting", starts)

    asks = await until_noted(drive, started, Activity.WAITING, "permission", "asks")
    require_board(asks, LiveState.NEEDS_YOU)
    listing = (await drive.until_asked(started)).approval
    assert listing.ask_kind is AskKind.PERMISSION
    assert MADE[drive.agent.slug] in listing.detail
    seen("asks a permission", asks)

    await drive.press(started, "Enter")
    done = await until_noted(drive, started, Activity.WAITING, DONE_NOTE)
    require_board(done, LiveState.NEEDS_YOU)
    assert set(await until_settled(drive, started)) <= {ApprovalStatus.ALLOWED, ApprovalStatus.ANSWERED}
    assert (drive.project / MADE[drive.agent.slug]).exists()
    seen("turn ended", done)

    await drive.services.conversations.finish(started.task_id, actor=USER_ACTOR)
    ended = await drive.until_over(started)
    assert (ended.status, ended.end_reason) == (ExecutionStatus.SUCCEEDED, EndReason.FINISHED)
    assert ended.activity is None
    seen("finished", ended)


async def test_an_own_screen_is_interrupted_takes_a_message_and_shows_an_error(drive: Drive, seen: Seen) -> None:
    started = await start_own_screen(drive, "go #mock:slow")
    works = await until_at_work(drive, started)
    require_board(works, LiveState.RUNNING)
    seen("working", works)

    await drive.services.conversations.interrupt(started.task_id, actor=USER_ACTOR)
    interrupted = await until_noted(drive, started, Activity.WAITING, "done", "interrupted")
    require_board(interrupted, LiveState.NEEDS_YOU)
    seen("interrupted", interrupted)

    message = f"next in {drive.project} #mock:e400"
    await drive.services.conversations.send(started.task_id, message, actor=USER_ACTOR)
    await require_asked(drive, message)
    # opencode draws an error as it draws a message, so that its screen does not tell them apart.
    words = (DONE_NOTE,) if drive.agent.slug == "opencode" else ("error", "mock bad request")
    failed = await until_noted(drive, started, Activity.WAITING, *words)
    require_board(failed, LiveState.NEEDS_YOU)
    seen("API error", failed)


@pytest.mark.only("claude")  # The others offer their models no tool that asks.
async def test_an_own_screen_asks_a_question(drive: Drive, seen: Seen) -> None:
    started = await start_own_screen(drive, ASK_QUESTION)
    asks = await until_noted(drive, started, Activity.WAITING, "question")
    require_board(asks, LiveState.NEEDS_YOU)
    assert "Which colour?" in (asks.activity_note or "")
    assert "Blue" in (await drive.until_asked(started)).approval.detail
    seen("asks a question", asks)

    await drive.press(started, "Enter")
    await until_noted(drive, started, Activity.WAITING, DONE_NOTE)
    await until_settled(drive, started)


def distrust(drive: Drive) -> None:
    """Let the agent's settings know nothing of the project's folder."""
    match drive.agent.slug:
        case "claude":
            path = drive.home / ".claude.json"
            path.write_text(json.dumps(json.loads(path.read_text()) | {"projects": {}}))
        case "codex":
            path = drive.home / ".codex" / "config.toml"
            path.write_text(path.read_text().replace(str(drive.project), "/somewhere-else"))
        case _:
            path = drive.home / ".gemini" / "settings.json"
            settings = json.loads(path.read_text())
            settings["security"]["folderTrust"]["enabled"] = True
            path.write_text(json.dumps(settings))


@pytest.mark.only("claude", "codex", "gemini")  # opencode trusts every folder.
async def test_an_own_screen_asks_for_trust_before_it_is_given_its_prompt(drive: Drive, seen: Seen) -> None:
    distrust(drive)
    prompt = f"say hello in {drive.project} #mock:plain"
    started = await start_own_screen(drive, prompt)
    asks = await until_noted(drive, started, Activity.WAITING, "trusted")
    require_board(asks, LiveState.NEEDS_YOU)
    assert (await drive.until_asked(started)).approval.ask_kind is AskKind.DIALOG
    seen("asks for trust", asks)
    assert not any(prompt in text for text in drive.asked())

    # Claude Code has "No, exit" chosen.
    await drive.press(started, *(["Down"] if drive.agent.slug == "claude" else []), "Enter")
    await until_noted(drive, started, Activity.WAITING, DONE_NOTE)
    await require_asked(drive, prompt)


async def test_an_own_screen_that_is_killed_fails(drive: Drive, seen: Seen) -> None:
    started = await start_own_screen(drive, "go #mock:hang")
    running = await until_noted(drive, started, Activity.WORKING)

    async def has_pid() -> Execution | None:
        found = await drive.services.executions.get(started.id)
        return found if found.pid is not None else None

    running = await drive.until(has_pid, "a process")
    kill(running)
    ended = await drive.until_over(started)
    assert ended.status is ExecutionStatus.FAILED
    assert ended.activity is None
    seen("killed", ended)


def texts_of_any_kind(word: str) -> list[str]:
    """Return one text of each kind, all with the word in them."""
    return [
        f"say {word} #mock:plain",
        f"first {word}\n\n  second #mock:plain\n\tthird",
        f"-c say {word} #mock:plain",
        f"/etc/{word} is a file #mock:plain",
        f"!echo {word} #mock:plain",
        f"ends {word} #mock:plain ;",
        f"long {word} #mock:plain " + "0123456789 abcdef\n" * 5690 + "the end",
    ]


async def test_texts_of_any_kind_come_into_an_own_screen_whole(drive: Drive) -> None:
    first, *others = texts_of_any_kind(drive.project.parent.name)
    started = await start_own_screen(drive, first)
    await require_asked(drive, first)
    for text in others:
        await drive.services.conversations.send(started.task_id, text, actor=USER_ACTOR)
        await require_asked(drive, text)


async def require_asked(drive: Drive, text: str) -> None:
    wanted = "".join(text.split())

    async def is_asked() -> bool:
        return any(wanted in "".join(one.split()) for one in drive.asked())

    await drive.until(is_asked, f"a request with the text {text[:40]!r}")


# Its protocol


async def test_a_conversation_works_asks_and_is_done(drive: Drive, seen: Seen) -> None:
    started = await drive.start(ASKS[drive.agent.slug])
    asked = await drive.until_asked(started)
    asks = await until_noted(drive, started, Activity.WAITING)
    require_board(asks, LiveState.NEEDS_YOU)
    assert asked.approval.ask_kind is AskKind.PERMISSION
    seen("asks a permission", asks)

    await drive.allow(asked)
    ended = await drive.until_over(started)
    assert ended.status is ExecutionStatus.SUCCEEDED
    assert (ended.live_state, ended.activity) == (LiveState.DONE, None)
    seen("turn ended", ended)


async def test_a_conversation_is_interrupted_and_killed(drive: Drive, seen: Seen) -> None:
    prompt = f"go in {drive.project} #mock:slow"
    started = await drive.start(prompt)
    await require_asked(drive, prompt)
    works = await until_noted(drive, started, Activity.WORKING)
    require_board(works, LiveState.RUNNING)
    seen("working", works)

    await drive.services.conversations.interrupt(started.task_id, actor=USER_ACTOR)
    interrupted = await until_noted(drive, started, Activity.WAITING)
    require_board(interrupted, LiveState.NEEDS_YOU)
    assert (await drive.session_of(interrupted)).status is SessionStatus.WAITING_FOR_INPUT
    seen("interrupted", interrupted)

    kill(interrupted)
    ended = await drive.until_over(started)
    assert (ended.status, ended.activity) == (ExecutionStatus.FAILED, None)
    assert (await drive.session_of(ended)).status is SessionStatus.FAILED
    seen("killed", ended)


async def test_a_conversation_that_the_vendor_refuses_fails(drive: Drive, seen: Seen) -> None:
    ended = await drive.until_over(await drive.start("go #mock:e400"))
    assert (ended.live_state, ended.activity) == (LiveState.FAILED, None)
    assert ended.error
    seen("API error", ended)


@pytest.mark.only("claude")  # The others offer their models no tool that asks.
async def test_a_conversation_asks_a_question(drive: Drive, seen: Seen) -> None:
    started = await drive.start(ASK_QUESTION)
    asked = (await drive.until_asked(started)).approval
    asks = await until_noted(drive, started, Activity.WAITING)
    require_board(asks, LiveState.NEEDS_YOU)
    assert asked.ask_kind is AskKind.QUESTION
    seen("asks a question", asks)

    await drive.services.approvals.answer(
        asked.id, actor=USER_ACTOR, seen_digest=asked.input_digest, answers={"Which colour?": "Red"}
    )
    assert (await drive.until_over(started)).status is ExecutionStatus.SUCCEEDED


async def test_an_own_screen_is_shown_as_it_stands_while_it_lives_and_afterwards(drive: Drive) -> None:
    execution = await start_own_screen(drive, "go #mock:plain")
    await until_noted(drive, execution, Activity.WAITING, DONE_NOTE)
    log = drive.services.executions.log_path(execution)

    async def shown_alike() -> list[str] | None:
        live = plain_lines_of(await drive.services.screens.text(execution.id))
        emulated = plain_lines_of(await asyncio.to_thread(drive.services.screens._emulate, log))
        return live if live and live == emulated else None

    live = await drive.until(shown_alike, "the emulator shows what tmux shows")
    await drive.services.queue.stop(execution.task_id, actor=USER_ACTOR, kill=True)
    over = await drive.services.queue.wait(execution.id)

    assert plain_lines_of(await drive.services.screens.text(over.id)) == live


def plain_lines_of(text: bytes) -> list[str]:
    return [line for one in text.splitlines() if (line := plain_text(one).strip())][-20:]
