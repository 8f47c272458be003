"""Reads the messages of one session of opencode before 1.2, ``storage/message/<session>/<message>.json``.

Later ones keep a database. Where they took the files over they left them as they were: an answer that both tell is one.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from agentmon.usage.fields import milliseconds_in, object_in, parse_record, ref_in, text_in
from agentmon.usage.following import Cursor, Read
from agentmon.usage.opencode import PARSER_VERSION, answer_in, has_ended, is_answer, is_copy
from agentmon.usage.reading import Answers, Reading, ReadingProblem
from agentmon.usage.session_notes import SessionNotes

if TYPE_CHECKING:
    from collections.abc import Iterator

    from agentmon.usage.sources import SourceFile

_MAX_BYTES: Final = 8 * 1_048_576
_MAX_PARENTS: Final = 16


def read_session_folder(source: SourceFile) -> Iterator[Read]:
    """Yield what the messages in the folder tell, all of them in one piece."""
    folder = Path(source.path)
    answers, problems = Answers(), []
    sessions = _SessionFiles(folder.parent.parent / "session")
    root = sessions.root_of(folder.name)
    try:
        paths = sorted(folder.glob("*.json"))
    except OSError:
        paths = []
    for path in paths:
        record = _read(path)
        if record is None:
            problems.append(ReadingProblem(offset=0, reason=f"the damaged message {path.name}"))
        elif record.get("role") is not None and is_answer(record) and has_ended(record):
            key = ref_in(record, "id") or path.stem[:200]
            answer = answer_in(record, key=key, session_ref=root, is_subagent=root != folder.name, offset=0)
            if answer is not None and not is_copy(key, record):
                answers.add(answer)
    notes = SessionNotes()
    if root == folder.name:
        sessions.note(root, notes)
    yield Read(
        reading=Reading(answers=tuple(answers.by_key.values()), sessions=notes.sessions(), problems=tuple(problems)),
        cursor=Cursor(
            path=source.path,
            inode=source.inode,
            size=source.size,
            mtime_ns=source.mtime_ns,
            offset=source.size,
            head_hash="",
            parser_version=PARSER_VERSION,
            state={},
        ),
    )


class _SessionFiles:
    """What the files beside the messages tell about sessions, ``storage/session/<project>/<session>.json``."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._records: dict[str, dict[str, object]] = {}

    def root_of(self, session_ref: str) -> str:
        """Return the session whose subagent this one is; itself when it is none."""
        for _ in range(_MAX_PARENTS):
            parent = ref_in(self._record(session_ref), "parentID")
            if not parent:
                break
            session_ref = parent
        return session_ref

    def note(self, session_ref: str, notes: SessionNotes) -> None:
        """Take the facts about a session."""
        record = self._record(session_ref)
        times = object_in(record, "time")
        notes.note(
            session_ref,
            at_ms=milliseconds_in(times, "created"),
            title=text_in(record, "title"),
            cwd=text_in(record, "directory"),
        )
        if milliseconds_in(times, "updated"):
            notes.touch(session_ref, milliseconds_in(times, "updated"))

    def _record(self, session_ref: str) -> dict[str, object]:
        if session_ref not in self._records:
            name = f"{session_ref}.json"
            found = next((path for path in self._folder.glob(f"*/{name}")), None) if "/" not in name else None
            self._records[session_ref] = (_read(found) if found is not None else None) or {}
        return self._records[session_ref]


def _read(path: Path) -> dict[str, object] | None:
    """Return the object in a file; None when there is none, or it is too long."""
    try:
        with path.open("rb") as opened:
            written = opened.read(_MAX_BYTES + 1)
    except OSError:
        return None
    return parse_record(written.replace(b"\n", b" ")) if len(written) <= _MAX_BYTES else None
