"""Pushing a branch, and pull requests by the programs of GitHub and GitLab, each call bounded in time."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from agentmon.domain.errors import ConflictError, GitError
from agentmon.domain.plain_text import plain_line
from agentmon.domain.pull_requests import (
    ChecksState,
    PullRequestProgram,
    PullRequestState,
    PullRequestStatus,
    ReviewState,
)
from agentmon.workspaces.git import Git, GitFailedError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

_PUSH_WITHIN_S: Final = 300.0
_OPEN_WITHIN_S: Final = 60.0
_ASK_WITHIN_S: Final = 20.0
_MAX_SAID: Final = 500
_URL: Final = re.compile(r"https?://[^\s'\"<>]+")
_NUMBER: Final = re.compile(r"/(?:pull|pulls|merge_requests)/([0-9]+)")
_LOG_IN: Final = re.compile(r"auth login|not logged in|authenticat|401 Unauthorized", re.IGNORECASE)
_GH_FIELDS: Final = "number,url,state,isDraft,statusCheckRollup,reviewDecision"
_FAILED: Final = frozenset({"FAILURE", "ERROR", "TIMED_OUT", "CANCELLED", "ACTION_REQUIRED", "STARTUP_FAILURE"})
_PASSED: Final = frozenset({"SUCCESS", "NEUTRAL", "SKIPPED"})
_GLAB_CHECKS: Final = {
    "success": ChecksState.PASSED, "skipped": ChecksState.PASSED, "manual": ChecksState.PENDING,
    "failed": ChecksState.FAILED, "canceled": ChecksState.FAILED,
    "created": ChecksState.PENDING, "pending": ChecksState.PENDING, "running": ChecksState.PENDING,
    "preparing": ChecksState.PENDING, "waiting_for_resource": ChecksState.PENDING, "scheduled": ChecksState.PENDING,
}  # fmt: skip
_GLAB_REVIEWS: Final = {
    "not_approved": ReviewState.REQUIRED,
    "requested_changes": ReviewState.CHANGES_REQUESTED,
}


class ForgeError(ConflictError):
    """The program of a forge refused, is not logged in, or took too long."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pushed:
    """A branch that was pushed."""

    remote: str
    address: str
    """Of the remote, without what is secret in it."""
    said: str
    """What the server printed."""
    url: str
    """That the server printed, where it did; empty otherwise."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Opened:
    """A pull request on its server."""

    url: str
    number: int | None
    status: PullRequestStatus
    is_new: bool


def find_remote(folder: Path, base: str) -> str:
    """Return the remote that a branch is pushed to, as git would choose it for its base.

    Raises:
        ConflictError: There is none, or there are several and nothing says which.
    """
    git = Git(git_dir=folder, cwd=folder, acts_as_person=True)
    remotes = git.run("remote").decode().split()
    for key in ("remote.pushDefault", f"branch.{base}.pushRemote", f"branch.{base}.remote"):
        named = git.run("config", "--get", key, fine=(0, 1)).decode().strip()
        if named in remotes:
            return named
    if "origin" in remotes or len(remotes) == 1:
        return "origin" if "origin" in remotes else remotes[0]
    if not remotes:
        raise ConflictError(
            f"{folder} has no remote to push to", hint=f"git -C {folder} remote add origin URL; or agentmon merge"
        )
    raise ConflictError(
        f"there are several remotes: {', '.join(remotes)}", hint="git config remote.pushDefault NAME chooses one"
    )


def find_program(folder: Path, remote: str) -> PullRequestProgram:
    """Return what opens a pull request at a remote: the program of its forge, as far as it is installed."""
    address = _address(folder, remote).lower()
    gh, glab = shutil.which("gh") is not None, shutil.which("glab") is not None
    if "gitlab" in address:
        gh = False
    elif "github" in address:
        glab = False
    if gh:
        return PullRequestProgram.GH
    return PullRequestProgram.GLAB if glab else PullRequestProgram.GIT


def push(folder: Path, remote: str, branch: str, *, beside: Path) -> Pushed:
    """Push a branch under its own name, never over what is there; hooks run.

    Args:
        folder: The working tree in which its files are.
        remote: By its name.
        branch: By its name.
        beside: The person's working tree, from which a path of a remote counts.

    Raises:
        GitError: The server or a hook refused, or it took too long; the message has the words.
    """
    address = _address(folder, remote)
    cwd = beside if address.startswith(("./", "../")) else folder
    git = Git(git_dir=cwd, cwd=cwd, acts_as_person=True, limit_s=_PUSH_WITHIN_S)
    running = git.start("push", "--porcelain", remote, f"refs/heads/{branch}:refs/heads/{branch}")
    try:
        running.end()
    except GitFailedError as error:
        said = plain_line(running.warnings.strip()[-_MAX_SAID:])
        raise GitError(
            f"{branch} could not be pushed to {remote}: {said}",
            hint="git fetch shows what is there; agentmon never forces a push",
        ) from error
    said = "\n".join(
        line.removeprefix("remote:").strip() for line in running.warnings.splitlines() if line.startswith("remote:")
    ).strip()
    found = _URL.search(said)
    return Pushed(remote=remote, address=without_secret(address), said=said, url=found[0] if found else "")


def open_pull_request(
    folder: Path, program: PullRequestProgram, *, branch: str, base: str, title: str, body: str, is_draft: bool
) -> Opened:
    """Open a pull request for a branch that is pushed, or return the one that is open for it.

    Raises:
        ForgeError: The program refused, is not logged in, or took too long.
    """
    known = _open_one(folder, program, branch)
    if known is not None:
        return known
    draft = ["--draft"] if is_draft else []
    if program is PullRequestProgram.GH:
        words = ["gh", "pr", "create", "--head", branch, "--base", base, "--title", title, "--body", body, *draft]
    else:
        words = ["glab", "mr", "create", "--source-branch", branch, "--target-branch", base, "--title", title]
        words += ["--description", body, *draft, "--yes"]
    said = _run(folder, words, within_s=_OPEN_WITHIN_S)
    urls = _URL.findall(said)
    url = next((one for one in reversed(urls) if _NUMBER.search(one)), urls[-1] if urls else "")
    if not url:
        raise ForgeError(f"{program.value} opened something, and did not say where: {plain_line(said[-_MAX_SAID:])}")
    number = _NUMBER.search(url)
    return Opened(
        url=url,
        number=int(number[1]) if number else None,
        status=PullRequestStatus(is_draft=is_draft),
        is_new=True,
    )


def ask(folder: Path, program: PullRequestProgram, number: int) -> PullRequestStatus:
    """Return what the server says of a pull request now.

    Raises:
        ForgeError: The program refused, is not logged in, or took too long.
    """
    return _status(program, _told(folder, _view_words(program, str(number))))


def _open_one(folder: Path, program: PullRequestProgram, branch: str) -> Opened | None:
    try:
        told = _told(folder, _view_words(program, branch))
    except ForgeError:
        # There is none; what else is wrong the next call says.
        return None
    status = _status(program, told)
    url, number = told.get("url") or told.get("web_url"), told.get("number") or told.get("iid")
    if status.state is not PullRequestState.OPEN or not isinstance(url, str) or not isinstance(number, int):
        return None
    return Opened(url=url, number=number, status=status, is_new=False)


def _view_words(program: PullRequestProgram, which: str) -> list[str]:
    if program is PullRequestProgram.GH:
        return ["gh", "pr", "view", which, "--json", _GH_FIELDS]
    return ["glab", "mr", "view", which, "--output", "json"]


def _told(folder: Path, words: list[str]) -> Mapping[str, object]:
    said = _run(folder, words, within_s=_ASK_WITHIN_S)
    try:
        told = json.loads(said)
    except ValueError as error:
        raise ForgeError(f"{words[0]} did not answer in JSON: {plain_line(said[:_MAX_SAID])}") from error
    return told if isinstance(told, dict) else {}


def _status(program: PullRequestProgram, told: Mapping[str, object]) -> PullRequestStatus:
    state = str(told.get("state", "")).lower()
    known = {
        "state": {"merged": PullRequestState.MERGED, "closed": PullRequestState.CLOSED}.get(
            state, PullRequestState.OPEN
        ),
        "is_draft": bool(told.get("isDraft") or told.get("draft")),
    }
    if program is PullRequestProgram.GLAB:
        pipeline = told.get("head_pipeline") or told.get("pipeline")
        checks = str(pipeline.get("status")) if isinstance(pipeline, dict) else ""
        review = _GLAB_REVIEWS.get(str(told.get("detailed_merge_status")))
        return PullRequestStatus(**known, checks=_GLAB_CHECKS.get(checks), review=review)  # type: ignore[arg-type]
    review = {
        "APPROVED": ReviewState.APPROVED,
        "CHANGES_REQUESTED": ReviewState.CHANGES_REQUESTED,
        "REVIEW_REQUIRED": ReviewState.REQUIRED,
    }.get(str(told.get("reviewDecision")))
    return PullRequestStatus(**known, checks=_checks(told.get("statusCheckRollup")), review=review)  # type: ignore[arg-type]


def _checks(told: object) -> ChecksState | None:
    """Return what all checks say together: one that failed counts most, then one that is not over."""
    if not isinstance(told, list) or not told:
        return None
    ends = [str(one.get("conclusion") or one.get("state") or "") for one in told if isinstance(one, dict)]
    if any(end in _FAILED for end in ends):
        return ChecksState.FAILED
    return ChecksState.PASSED if all(end in _PASSED for end in ends) else ChecksState.PENDING


def _run(folder: Path, words: list[str], *, within_s: float) -> str:
    environment = os.environ | {
        "GH_PROMPT_DISABLED": "1", "GIT_TERMINAL_PROMPT": "0", "NO_COLOR": "1", "GH_PAGER": "cat", "PAGER": "cat",
        "GH_NO_UPDATE_NOTIFIER": "1", "GLAB_CHECK_UPDATE": "false", "NO_PROMPT": "1",
    }  # fmt: skip
    try:
        done = subprocess.run(
            words,
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=within_s,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise ForgeError(f"{words[0]} took longer than {within_s:g} s", hint="try again later") from error
    except OSError as error:
        raise ForgeError(f"{words[0]} could not be started: {error.strerror}") from error
    if done.returncode == 0:
        return done.stdout
    said = plain_line((done.stderr.strip() or done.stdout.strip())[-_MAX_SAID:])
    if _LOG_IN.search(said):
        raise ForgeError(f"{words[0]} is not logged in: {said}", hint=f"{words[0]} auth login")
    raise ForgeError(f"{' '.join(words[:3])} failed: {said}", hint=f"try it by hand in {folder}")


def _address(folder: Path, remote: str) -> str:
    git = Git(git_dir=folder, cwd=folder, acts_as_person=True)
    return os.fsdecode(git.run("remote", "get-url", "--push", remote).strip())


def without_secret(address: str) -> str:
    """Return the address of a remote without the name and password in it."""
    return re.sub(r"(://)[^/@]*@", r"\1", address)
