"""What becomes of one file when a change is taken back: from what it was, what it became, and what it is today."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from agentmon.workspaces.comparison import contents
from agentmon.workspaces.files import NOT_KEPT, FileState
from agentmon.workspaces.git import GitFailedError

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from agentmon.workspaces.git import Git


class UndoAction(StrEnum):
    """What an undo does to one file."""

    RESTORE = "restore"
    """It becomes again what it was."""
    REMOVE = "remove"
    """It was made since, and goes."""
    MERGE = "merge"
    """It keeps what somebody did since, without what is taken back."""
    CONFLICT = "conflict"
    """Somebody touched it since, and both cannot be had: it is left alone until one side is chosen."""
    IMPOSSIBLE = "impossible"
    """Its content was not kept: it is left alone."""


class Side(StrEnum):
    """Which side of a conflict to take."""

    BEFORE = "before"
    NOW = "now"


@dataclass(frozen=True, slots=True, kw_only=True)
class UndoStep:
    """What an undo does to one path."""

    path: str
    action: UndoAction
    before: FileState | None
    """As it was before what is taken back; None where it was not there."""
    now: FileState | None
    result: FileState | None
    """As it will be."""
    reason: str = ""
    """Why it is left alone."""

    @property
    def is_done(self) -> bool:
        """Whether the undo does anything to it."""
        return self.action not in {UndoAction.CONFLICT, UndoAction.IMPOSSIBLE}

    def left_alone(self, reason: str) -> UndoStep:
        """Return it as a conflict."""
        return replace(self, action=UndoAction.CONFLICT, result=self.now, reason=reason)


class ThreeWay:
    """Decides on files, one after the other.

    Args:
        git: Sees all contents, and keeps what is merged.
        missing: Ids of contents that are not there.
        choices: Which side to take, by path.
    """

    def __init__(self, git: Git, *, missing: Collection[str], choices: Mapping[str, Side]) -> None:
        self._git = git
        self._missing = missing
        self._choices = choices

    def decide(
        self, path: str, before: FileState | None, after: FileState | None, now: FileState | None
    ) -> UndoStep | None:
        """Return what happens to a path; None when it is as it was before, or stays by choice."""
        choice = self._choices.get(path)
        if now == before or choice is Side.NOW:
            return None
        step = UndoStep(path=path, action=UndoAction.CONFLICT, before=before, now=now, result=now)
        if not (self._is_kept(before) and self._is_kept(now)):
            return replace(step, action=UndoAction.IMPOSSIBLE, reason="its content was not kept")
        if now == after or choice is Side.BEFORE:
            return replace(step, action=UndoAction.REMOVE if before is None else UndoAction.RESTORE, result=before)
        if before and after and now and all(state.is_regular for state in (before, after, now)):
            merged = self._merged(before, after, now)
            if merged == now:
                return None
            if merged is not None:
                return replace(step, action=UndoAction.MERGE, result=merged)
            return step.left_alone("the same lines were changed since")
        if now is None:
            return step.left_alone("deleted since")
        return step.left_alone("changed since" if after else "made anew since")

    def decide_renamed(
        self,
        old: tuple[str, FileState | None, FileState | None],
        new: tuple[str, FileState | None, FileState | None],
    ) -> list[UndoStep] | None:
        """Return what happens to a renamed file that was changed since; None where each path is decided by itself.

        Args:
            old: Its path before, what was there then, and what is there now.
            new: Its path after, what came there, and what is there now.
        """
        old_path, before, now_at_old = old
        new_path, after, now = new
        choice = self._choices.get(new_path)
        if choice is Side.NOW:
            return []
        if choice is Side.BEFORE or now in {after, None} or now_at_old is not None:
            return None
        merged = None
        if before and after and all(state.is_regular for state in (before, after, now)):
            merged = self._merged(before, after, now) if self._is_kept(before) and self._is_kept(now) else None
        at_old = UndoStep(path=old_path, action=UndoAction.MERGE, before=before, now=None, result=merged)
        at_new = UndoStep(path=new_path, action=UndoAction.REMOVE, before=None, now=now, result=None)
        if merged is None:
            return [step.left_alone("renamed, and changed since") for step in (at_old, at_new)]
        return [at_old, at_new]

    def _is_kept(self, state: FileState | None) -> bool:
        return state is None or (state.mode != NOT_KEPT and state.ref not in self._missing)

    def _merged(self, before: FileState, after: FileState, now: FileState) -> FileState | None:
        """Return a file of today without the change from ``before`` to ``after``; None for a conflict."""
        mode = before.mode if now.mode == after.mode else now.mode
        if now.ref == after.ref:
            return FileState(mode, before.ref)
        if before.ref in {after.ref, now.ref}:
            return FileState(mode, now.ref)
        if after.ref in self._missing:
            return None
        with TemporaryDirectory(prefix="agentmon-merge-") as folder:
            places = [Path(folder) / name for name in ("now", "after", "before")]
            refs = (now.ref, after.ref, before.ref)
            for place, content in zip(places, contents(self._git, refs), strict=True):
                place.write_bytes(content)
            try:
                merged = self._git.run("merge-file", "-p", "-q", *map(str, places))
            except GitFailedError:
                return None
        ref = self._git.run("hash-object", "-w", "--stdin", "--no-filters", data=merged).decode().strip()
        return FileState(mode, ref)
