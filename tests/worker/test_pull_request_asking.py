"""What became of pull requests, asked with a program that writes down how it is called."""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest

from agentmon.domain.ids import PullRequestId, new_id
from agentmon.domain.pull_requests import (
    ChecksState,
    PullRequest,
    PullRequestProgram,
    PullRequestState,
    PullRequestStatus,
    ReviewState,
)
from agentmon.services.actors import USER_ACTOR
from agentmon.store.pull_requests import PullRequestRepository
from agentmon.worker.pull_request_asking import PullRequestAsker
from agentmon.workspaces import forges
from tests.stored_runs import Stored, stored

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

_OPEN = PullRequestState.OPEN


class _Clock:
    def now(self) -> datetime:
        return datetime.now(UTC)


@pytest.fixture
async def place(tmp_path: Path) -> AsyncIterator[Stored]:
    async with stored(tmp_path) as found:
        yield found


def _program(folder: Path, monkeypatch: pytest.MonkeyPatch, name: str, script: str) -> Path:
    """Put a program on PATH, and return the file in which its calls are."""
    calls = folder / "calls"
    program = folder / "bin" / name
    program.parent.mkdir(exist_ok=True)
    program.write_text(f'#!/bin/sh\necho "$*" >> {calls}\n{script}\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    return calls


async def _opened(place: Stored, folder: Path, program: PullRequestProgram, number: int | None = 7) -> PullRequest:
    task = await place.add_task("it")
    one = PullRequest(
        id=PullRequestId(new_id()),
        task_id=task.id,
        program=program,
        folder=str(folder),
        branch="agentmon/1-it",
        base="main",
        url=f"https://example.org/pull/{number}",
        number=number,
        status=PullRequestStatus(),
        created_at=datetime.now(UTC),
    )
    await PullRequestRepository(place.services.database).add(one, actor=USER_ACTOR)
    return one


def _gh(state: str = "OPEN", *, review: str = "", checks: tuple[dict[str, str], ...] = ()) -> str:
    told = {"state": state, "isDraft": False, "reviewDecision": review, "statusCheckRollup": list(checks)}
    return f"cat <<'END'\n{json.dumps(told)}\nEND"


async def test_what_the_server_says_is_written_and_asked_rarely(
    place: Stored, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = PullRequestRepository(place.services.database)
    one = await _opened(place, tmp_path, PullRequestProgram.GH)
    await _opened(place, tmp_path, PullRequestProgram.GIT, number=None)
    calls = _program(
        tmp_path, monkeypatch, "gh", _gh(review="APPROVED", checks=({"status": "COMPLETED", "conclusion": "SUCCESS"},))
    )
    asker = PullRequestAsker(repository=rows, clock=_Clock())

    await asker.look()
    await asker.look()
    found = await rows.of_task(one.task_id)

    assert found is not None
    assert found.status == PullRequestStatus(checks=ChecksState.PASSED, review=ReviewState.APPROVED)
    assert found.label == "PR 7 · checks passed · approved"
    assert calls.read_text().splitlines() == [f"pr view 7 --json {forges._GH_FIELDS}"]


async def test_one_that_is_merged_is_not_asked_about_any_more(
    place: Stored, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = PullRequestRepository(place.services.database)
    one = await _opened(place, tmp_path, PullRequestProgram.GH)
    calls = _program(tmp_path, monkeypatch, "gh", _gh("MERGED"))
    for _ in range(2):
        await PullRequestAsker(repository=rows, clock=_Clock()).look()

    found = await rows.of_task(one.task_id)
    assert found is not None
    assert found.status.state is PullRequestState.MERGED
    assert len(calls.read_text().splitlines()) == 1


async def test_that_nobody_is_logged_in_is_said_once(
    place: Stored, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    rows = PullRequestRepository(place.services.database)
    one = await _opened(place, tmp_path, PullRequestProgram.GH)
    _program(tmp_path, monkeypatch, "gh", "echo 'please run: gh auth login' >&2; exit 4")
    for _ in range(3):
        await PullRequestAsker(repository=rows, clock=_Clock()).look()

    found = await rows.of_task(one.task_id)
    assert found is not None
    assert "gh auth login" in found.error
    assert (found.status, len(caplog.records)) == (PullRequestStatus(), 1)


def test_a_program_that_hangs_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _program(tmp_path, monkeypatch, "gh", "exec sleep 600")
    monkeypatch.setattr(forges, "_ASK_WITHIN_S", 0.2)

    with pytest.raises(forges.ForgeError, match="took longer"):
        forges.ask(tmp_path, PullRequestProgram.GH, 7)


@pytest.mark.parametrize(
    ("ends", "checks"),
    [
        ([], None),
        ([{"status": "IN_PROGRESS", "conclusion": ""}, {"conclusion": "SUCCESS"}], ChecksState.PENDING),
        ([{"state": "PENDING"}], ChecksState.PENDING),
        ([{"conclusion": "SUCCESS"}, {"conclusion": "SKIPPED"}, {"state": "SUCCESS"}], ChecksState.PASSED),
        ([{"conclusion": "FAILURE"}, {"status": "IN_PROGRESS"}], ChecksState.FAILED),
        ([{"state": "ERROR"}], ChecksState.FAILED),
    ],
)
def test_all_checks_of_github_together_are_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ends: list[dict[str, str]], checks: ChecksState | None
) -> None:
    _program(tmp_path, monkeypatch, "gh", _gh(checks=tuple(ends)))

    assert forges.ask(tmp_path, PullRequestProgram.GH, 7) == PullRequestStatus(state=_OPEN, checks=checks)


@pytest.mark.parametrize(
    ("told", "status"),
    [
        ({"state": "opened", "draft": True}, PullRequestStatus(is_draft=True)),
        ({"state": "merged"}, PullRequestStatus(state=PullRequestState.MERGED)),
        ({"state": "closed"}, PullRequestStatus(state=PullRequestState.CLOSED)),
        (
            {"state": "opened", "head_pipeline": {"status": "running"}, "detailed_merge_status": "not_approved"},
            PullRequestStatus(checks=ChecksState.PENDING, review=ReviewState.REQUIRED),
        ),
        ({"state": "opened", "pipeline": {"status": "failed"}}, PullRequestStatus(checks=ChecksState.FAILED)),
    ],
)
def test_what_gitlab_says_means_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, told: dict[str, object], status: PullRequestStatus
) -> None:
    calls = _program(tmp_path, monkeypatch, "glab", f"cat <<'END'\n{json.dumps(told)}\nEND")

    assert forges.ask(tmp_path, PullRequestProgram.GLAB, 3) == status
    assert calls.read_text() == "mr view 3 --output json\n"
