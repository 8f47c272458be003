"""What real agents change, by their own tools and by shell, is seen, read, commented on and taken back."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest

from agentmon.domain.activity import Activity
from agentmon.domain.approvals import RuleDecision
from agentmon.domain.changes import ChangeType
from agentmon.domain.executions import ConversationStart
from agentmon.services.actors import USER_ACTOR
from tests.agents.dialogs import AgentPane
from tests.agents.drive import require_succeeded
from tests.agents.test_states import DONE_NOTE, require_asked, start_own_screen
from tests.waiting import until
from tests.workspaces.folders import files_of, git, write

if TYPE_CHECKING:
    from pathlib import Path

    from agentmon.domain.executions import Execution
    from tests.agents.drive import Drive

pytestmark = pytest.mark.agents

_HEARD_WITHIN_S = 5.0
_SHELL = "echo more >>shelled.txt; echo new >made.txt; rm rest.txt; chmod +x tool.sh"
_STEPS: list[dict[str, object]] = [
    {"tools": [["read", {"path": "edited.txt"}]]},
    {"tools": [["edit", {"path": "edited.txt", "old": "two", "new": "2"}]]},
    {"tools": [["write", {"path": "own.txt", "content": "own\n"}]]},
    {"tools": [["delete", {"path": "gone.txt"}]]},
    {"tools": [["shell", {"command": _SHELL}]]},
    {"text": "All is changed."},
]
PROMPT = "go #mock:" + json.dumps(_STEPS)
_AGAIN: list[dict[str, object]] = [
    {"tools": [["read", {"path": "edited.txt"}]]},
    {"tools": [["edit", {"path": "edited.txt", "old": "2", "new": "zwei"}]]},
    {"text": "Changed again."},
]
# As the screen of changes writes it.
COMMENT = "edited.txt:2\n> 2\nin words, please #mock:" + json.dumps(_AGAIN)
CHANGED = {
    "edited.txt": ChangeType.MODIFY,
    "own.txt": ChangeType.CREATE,
    "gone.txt": ChangeType.DELETE,
    "shelled.txt": ChangeType.MODIFY,
    "made.txt": ChangeType.CREATE,
    "rest.txt": ChangeType.DELETE,
    "tool.sh": ChangeType.MODE,
}


# By call, in their order.
_MAKING = (
    {"edited.txt"},
    {"own.txt"},
    {"gone.txt"},
    {"shelled.txt", "made.txt", "rest.txt", "tool.sh"},
)


def _fill(project: Path) -> None:
    write(project / "edited.txt", b"one\ntwo\nthree\n")
    for name in ("gone", "shelled", "rest", "untouched"):
        write(project / f"{name}.txt", f"{name}\nof the person\n".encode())
    write(project / "tool.sh", b"#!/bin/sh\n")
    git(project, "add", "-A")
    git(project, "commit", "-q", "-m", "first")
    write(project / "person.txt", b"not committed\n")
    write(project / "untouched.txt", b"edited by the person\n")
    git(project, "stash", "push", "-q", "untouched.txt")
    write(project / "untouched.txt", b"edited again\n")
    git(project, "add", "untouched.txt")


def _of_person(project: Path) -> tuple[str, ...]:
    """Return index, refs and stash; what an agent's own `git status` refreshes is none of them."""
    return tuple(
        git(project, *words)
        for words in (["ls-files", "-s"], ["for-each-ref"], ["stash", "list"], ["rev-parse", "HEAD"])
    )


async def _agentmon(drive: Drive, *words: str) -> bytes:
    command = [sys.executable, "-m", "agentmon", words[0], "1", "-C", str(drive.project), *words[1:]]
    done = await asyncio.to_thread(subprocess.run, command, check=False, capture_output=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


async def _changes(drive: Drive, *words: str) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(await _agentmon(drive, "changes", "--json", *words))
    return document


def _types(document: dict[str, Any]) -> dict[str, ChangeType]:
    return {one["path"]: ChangeType(one["change_type"]) for one in document["files"]}


async def _require_calls(drive: Drive) -> None:
    """Require that each change becomes known of the call that made it; one that is not certain says why."""

    async def found() -> list[dict[str, Any]] | None:
        document = await _changes(drive, "--calls")
        calls: list[dict[str, Any]] = document["calls"]
        return calls if len(calls) == len(_MAKING) and all(one["operation"]["changes"] for one in calls) else None

    made: dict[str, ChangeType] = {}
    for paths, call in zip(_MAKING, await drive.until(found, "what each call changed"), strict=True):
        changed = {one["path"]: ChangeType(one["change_type"]) for one in call["files"]}
        assert changed.keys() <= paths, call
        assert changed.keys() == paths or call["operation"]["changes"]["note"], call
        assert all(one["can_undo"] or one["why_not"] for one in call["files"])
        made |= changed
    assert made.items() <= CHANGED.items()
    # What an agent's own tools edit is certain by its own words.
    assert made.keys() >= {"edited.txt", "own.txt"}


async def _commented(drive: Drive, mode: str, started: Execution) -> Execution:
    """Send a comment on the edited line, and return the run that got it."""
    if drive.agent.slug == "gemini" and mode == "work":
        # It keeps no conversation that it could go on with here.
        return await drive.services.queue.run(
            started.task_id,
            actor=USER_ACTOR,
            environ=drive.agent.environ,
            message=COMMENT,
            start=ConversationStart.FRESH,
        )
    sent = await drive.services.conversations.send(started.task_id, COMMENT, actor=USER_ACTOR)
    assert sent.is_new_execution == (mode == "work")
    return sent.execution


async def _allowed_until_done(drive: Drive, started: Execution, last_words: str) -> None:
    """Answer each dialog of an own screen with its first choice, until the agent has said its last words."""

    async def has_gone_on() -> bool:
        return len(await asyncio.to_thread(drive.answered)) > answers

    async def is_done_or_asks() -> str:
        now = await drive.services.executions.get(started.id)
        assert now.status.is_open, f"it is over: {now.error} {drive.story()}"
        if now.activity is not Activity.WAITING:
            return ""
        is_done = any(last_words in text for text in drive.texts(started, "assistant"))
        return "done" if is_done and DONE_NOTE in (now.activity_note or "") else "" if is_done else "asks"

    while await drive.until(is_done_or_asks, f"a dialog, or {last_words!r}") == "asks":
        answers = len(await asyncio.to_thread(drive.answered))
        session = (await drive.services.executions.get(started.id)).tmux_session_name
        assert session is not None
        pane = AgentPane(slug=drive.agent.slug, socket=drive.services.paths.tmux_socket, session=session)
        await asyncio.to_thread(pane.ask_tmux, "send-keys", "Enter")
        # A dialog is drawn before it listens: where nothing comes of it, the next turn presses again.
        with suppress(AssertionError):
            await until(has_gone_on, "another request of the agent", deadline_s=_HEARD_WITHIN_S)


@pytest.mark.parametrize("mode", ["work", "screen"])
async def test_what_an_agent_changes_is_read_commented_on_and_taken_back(drive: Drive, mode: str) -> None:
    project = drive.project
    await asyncio.to_thread(_fill, project)
    before, of_person = files_of(project), _of_person(project)
    if mode == "work":
        await drive.services.approvals.add_rule(decision=RuleDecision.ALLOW, actor=USER_ACTOR)
        started = await drive.until_over(await drive.start(PROMPT))
        require_succeeded(started, drive)
    else:
        started = await start_own_screen(drive, PROMPT)
        await _allowed_until_done(drive, started, "All is changed.")
        await _require_calls(drive)

    # Also of one whose screen is still open.
    found = await _changes(drive)
    after = files_of(project)
    assert _types(found) == CHANGED
    assert found["is_live"] == (mode == "screen")
    assert after["edited.txt"] == (0o100644, b"one\n2\nthree\n")
    patch = await _agentmon(drive, "diff")
    copy = project.parent / "copy"
    git(project.parent, "clone", "-q", str(project), str(copy))
    git(copy, "apply", "-", data=patch)
    assert {path: files_of(copy).get(path) for path in CHANGED} == {path: after.get(path) for path in CHANGED}

    again = await _commented(drive, mode, started)
    await require_asked(drive, COMMENT.partition(" #")[0])
    if mode == "work":
        again = await drive.until_over(again)
        require_succeeded(again, drive)
    else:
        await _allowed_until_done(drive, started, "Changed again.")
        await drive.services.conversations.finish(started.task_id, actor=USER_ACTOR)
        again = await drive.until_over(started)
    now = files_of(project)
    assert now["edited.txt"] == (0o100644, b"one\nzwei\nthree\n")
    assert _types(await _changes(drive)) == ({"edited.txt": ChangeType.MODIFY} if mode == "work" else CHANGED)

    await _agentmon(drive, "undo")
    assert files_of(project) == (after if mode == "work" else before)
    await _agentmon(drive, "undo", "--redo")
    assert files_of(project) == now
    await _agentmon(drive, "undo")
    if mode == "work":
        await _agentmon(drive, "undo", "--run", "1")
    assert files_of(project) == before
    assert _of_person(project) == of_person
