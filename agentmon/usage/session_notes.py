"""Facts about conversations, gathered while a stretch of a file is read."""

from __future__ import annotations

from dataclasses import dataclass

from agentmon.domain.billing import HistorySession


@dataclass(slots=True)
class _Notes:
    parent_ref: str = ""
    title: str = ""
    cwd: str = ""
    git_branch: str = ""
    model: str = ""
    first_at_ms: int = 0
    last_at_ms: int = 0
    facts: tuple[object, ...] | None = None
    """As they were written when they were last noted."""


class SessionNotes:
    """What was told of each conversation; a later fact replaces an earlier one, an empty one does not."""

    __slots__ = ("_by_ref",)

    def __init__(self) -> None:
        self._by_ref: dict[str, _Notes] = {}

    def note(
        self,
        session_ref: str,
        *,
        at_ms: int = 0,
        parent_ref: str = "",
        title: str = "",
        cwd: str = "",
        git_branch: str = "",
        model: str = "",
    ) -> None:
        """Take facts about a conversation; without its id they are dropped."""
        if not session_ref:
            return
        notes = self._by_ref.get(session_ref)
        if notes is None:
            notes = self._by_ref[session_ref] = _Notes()
        notes.parent_ref = parent_ref or notes.parent_ref
        notes.title = title or notes.title
        notes.cwd = cwd or notes.cwd
        notes.git_branch = git_branch or notes.git_branch
        notes.model = model or notes.model
        if at_ms:
            notes.first_at_ms = min(notes.first_at_ms or at_ms, at_ms)
            notes.last_at_ms = max(notes.last_at_ms, at_ms)

    def touch(self, session_ref: str, at_ms: int, facts: tuple[object, ...] | None = None) -> bool:
        """Take that a conversation went on, and return whether the facts are others than at the last time."""
        notes = self._by_ref.get(session_ref)
        if notes is None or not notes.first_at_ms <= at_ms:
            self.note(session_ref, at_ms=at_ms)
            notes = self._by_ref.get(session_ref)
        if notes is None:
            return False
        notes.last_at_ms = max(notes.last_at_ms, at_ms)
        is_other = facts is not None and facts != notes.facts
        if is_other:
            notes.facts = facts
        return is_other

    def sessions(self) -> tuple[HistorySession, ...]:
        """Return what was told, in the order in which the conversations were first named."""
        return tuple(
            HistorySession(
                session_ref=session_ref,
                parent_ref=notes.parent_ref or None,
                title=notes.title or None,
                cwd=notes.cwd or None,
                git_branch=notes.git_branch or None,
                model=notes.model or None,
                first_at_ms=notes.first_at_ms or None,
                last_at_ms=notes.last_at_ms or None,
            )
            for session_ref, notes in self._by_ref.items()
        )
