"""Which tool call changed which file, of those between two looks at a folder.

The system dates each change of a file. One that falls into the time of a single call is its own; where several calls
may have made it, the words of their protocols decide as far as they give exactly what is there, and else nobody is said
to have made it. So a change of a person between two calls is on none of them.
"""

from __future__ import annotations

import contextlib
import os
import re
import stat
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final, NamedTuple

from agentmon.workspaces.comparison import content, sides
from agentmon.workspaces.files import FileState
from agentmon.workspaces.objects import hash_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from agentmon.workspaces.snapshots import Snapshot, SnapshotStore

_BEGAN_BEFORE_S: Final = 0.25
"""A call may be at work for so long before its agent's word of it is dated."""
_CLOCK_LAG_S: Final = 0.02
"""The times of files lag behind the clock."""
_TOO_LARGE: Final = 4 << 20
_HEAD: Final = re.compile(r"@@ -(\d+)(?:,(\d+))? \+\d+(?:,\d+)? @@")
TOUCHED_SINCE: Final = "it was changed again before it could be looked at"
_BESIDE: Final = "another call may have written it at the same time"
_BESIDE_RUN: Final = "another run works in this folder and may have written it at the same time"
_WHICH: Final = "it ran beside other calls, and which of them made all changes is not known"
_WHILE_PAUSED: Final = "it was changed while its agent was waiting"
_SOMETHING_WHILE_PAUSED: Final = "something was changed while its agent was waiting, and who did it is not known"
_UNSEEN_S: Final = 10.0
_UNSEEN: Final = "it may have been changed before the call too: the folder had not been looked at for a while"
_NOT_AS_TOLD: Final = "it differs from what the agent reported, so someone else may have written it too"


class Change(NamedTuple):
    """A file that differs between two looks."""

    before: FileState | None
    after: FileState | None
    at: float
    """When it was changed last, in seconds since 1970."""
    since: float
    """When the first of the two looks began."""


@dataclass(frozen=True, slots=True)
class Found:
    """What one call did to one file."""

    before: FileState | None
    after: FileState | None
    why_not: str = ""
    """Why it is not known exactly, so that it cannot be taken back; empty where it is."""


@dataclass(slots=True, kw_only=True, eq=False)
class Call:
    """A tool call that may write; times are in seconds since 1970."""

    paths: set[str] | None
    """What it writes, relative to the folder; None for a command, which may write anything."""
    began_at: float
    ended_at: float | None = None
    told: dict[str, list[str]] = field(default_factory=dict)
    """By path: how its agent says that it changed the file, as unified hunks; empty where it does not show them."""
    found: dict[str, Found] = field(default_factory=dict)
    """What it did, by path, as far as it is known by now."""
    unclear: str = ""
    """Why something may be its work that is not put on it; empty where all is known."""
    is_told_late: bool = False
    """Whether it became known after it began, so that no look at the folder may be right before it."""
    pauses: Sequence[tuple[float, float]] = ()
    """Stretches of time in which its run waited for somebody."""

    def may_write(self, path: str, at: float, since: float) -> bool:
        """Return whether it was at work at some time from ``since`` to ``at``, and may write the path."""
        was_at_work = self.began_at - _BEGAN_BEFORE_S <= at and (self.ended_at is None or self.ended_at >= since)
        return was_at_work and (self.paths is None or path in self.paths)

    def is_at_work(self, at: float) -> bool:
        """Return whether it was at work at a time."""
        return self._lasts_at(at) and not self._waits_at(at)

    def is_paused_at(self, at: float) -> bool:
        """Return whether its run waited for somebody at a time, and had not done so when the call began."""
        return self._lasts_at(at) and self._waits_at(at)

    def _lasts_at(self, at: float) -> bool:
        return self.began_at - _BEGAN_BEFORE_S <= at and (self.ended_at is None or at <= self.ended_at)

    def _waits_at(self, at: float) -> bool:
        # One that began before it was about something else.
        return any(self.began_at - _BEGAN_BEFORE_S <= begin <= at < end for begin, end in self.pauses)

    def why_not_alone(self, change: Change, *, doubt: str) -> str:
        """Return why a change that no other call can have made is not known exactly; empty where it is.

        Args:
            change: What differs.
            doubt: Why somebody else may have made it; empty where nothing says so.
        """
        if self.is_paused_at(change.at):
            return _WHILE_PAUSED
        if not self.is_at_work(change.at):
            return TOUCHED_SINCE
        if doubt or not self.is_told_late:
            return doubt
        begun_at = max([self.began_at, *(end for _, end in self.pauses if end <= change.at)])
        return _UNSEEN if change.since < begun_at - _UNSEEN_S else ""

    def take(self, path: str, found: Found) -> None:
        """Add what another look found."""
        known = self.found.get(path)
        if known is None:
            self.found[path] = found
        elif known.after == found.before:
            self.found[path] = replace(found, before=known.before, why_not=known.why_not or found.why_not)
        else:
            self.found[path] = replace(found, before=known.before, why_not=_BESIDE)


def changes_between(store: SnapshotStore, before: Snapshot, after: Snapshot, *, since: float) -> dict[str, Change]:
    """Return what differs between two looks, with its time; ``since`` is when the first began."""
    return {
        path: Change(
            was,
            became,
            _gone_at(after.root, path)
            if became is None
            else _changed_at(after.root, path, since=since if was is None else None),
            since,
        )
        for path, (was, became) in sides(store, before, after).items()
    }


def attribute(
    store: SnapshotStore, changes: Mapping[str, Change], calls: Sequence[Call], *, is_beside: bool = False
) -> dict[str, Change]:
    """Put changes between two looks on the calls that made them.

    Args:
        store: That has the contents.
        changes: By path.
        calls: All of the folder that were at work since the first look, whichever run made them.
        is_beside: Whether another run works there of whose calls nothing is known.

    Returns:
        The changes that none of the calls made.
    """
    others = {}
    for path, change in changes.items():
        possible = [call for call in calls if call.may_write(path, change.at, change.since)]
        told = [call for call in possible if any(call.told.get(path, ()))]
        told.sort(key=lambda call: call.ended_at or change.at)
        if told and (_take_as_told(store, path, change, told) or _take_as_shown(store, path, change, told)):
            continue
        announced = [call for call in possible if call.began_at - _CLOCK_LAG_S <= change.at] or possible
        said = [call for call in told if call in announced]
        is_otherwise = any(call.is_told_late or _is_otherwise(store, path, change, call) for call in said)
        doubt = _NOT_AS_TOLD if is_otherwise else _BESIDE_RUN if is_beside else ""
        if not _put(path, change, announced, said, doubt=doubt):
            others[path] = change
    return others


def _put(path: str, change: Change, possible: Sequence[Call], told: Sequence[Call], *, doubt: str) -> bool:
    """Put a change on whoever may have made it, with why that is not certain; return False when nobody did.

    Args:
        path: The file.
        change: What differs there.
        possible: The calls that may have made it.
        told: Those of them that say how they changed the file, in their order.
        doubt: Why it may be the work of somebody else all the same; empty where nothing says so.
    """
    at_work = [call for call in possible if call.is_at_work(change.at)]
    naming = [call for call in possible if call.paths is not None]
    # When a file was gone at the latest, the call that names it may have ended.
    is_named = any(change.after is None or call.is_paused_at(change.at) for call in naming)
    if len(possible) == 1 and (at_work or told or is_named):
        why_not = possible[0].why_not_alone(change, doubt=doubt)
        possible[0].take(path, Found(change.before, change.after, why_not))
        return True
    # By its folder it is only known when a file was gone at the latest.
    is_dated = change.after is not None or len(possible) < 2  # noqa: PLR2004 - of one alone any time will do
    certain = told or at_work if is_dated else naming
    if len(certain) == 1 or (told and is_dated):
        for call in certain:
            call.take(path, Found(change.before, change.after, _BESIDE))
        return True
    if at_work or not is_dated:
        for call in at_work if is_dated else possible:
            call.unclear = _WHICH
        return True
    for call in possible:
        if call.is_paused_at(change.at):
            call.unclear = _SOMETHING_WHILE_PAUSED
    return False


def _take_as_told(store: SnapshotStore, path: str, change: Change, calls: Iterable[Call]) -> bool:
    """Put a change on several calls as their agents tell it, where that is exactly what happened."""
    before, after = change.before, change.after
    known = after or before
    if known is None or not all(one is None or one.is_regular for one in (before, after)):
        return False
    text = b"" if before is None else content(store, before.ref)
    git = store.git(hash_name=hash_of(known.ref))
    found: list[tuple[Call, Found]] = []
    state = before
    mode = known.mode if before is None else before.mode
    for call in calls:
        for hunks in call.told[path]:
            applied = applied_hunks(text, hunks)
            if applied is None:
                return False
            text = applied
        ref = git.run("hash-object", "-w", "--stdin", "--no-filters", data=text).decode().strip()
        found.append((call, Found(state, FileState(mode, ref))))
        state = FileState(mode, ref)
    if after is None and not text:
        # A file that is taken away is told as one that loses all lines.
        found[-1] = (found[-1][0], replace(found[-1][1], after=None))
    elif state != after:
        return False
    for call, one in found:
        call.take(path, one)
    return True


def _take_as_shown(store: SnapshotStore, path: str, change: Change, calls: Sequence[Call]) -> bool:
    """Put a change on the only call that tells it, where its hunks give what is there but for how they show blanks."""
    texts = _texts(store, change)
    if texts is None or len(calls) != 1:
        return False
    shown: bytes | None = _shown(texts[0])
    for hunks in calls[0].told[path]:
        shown = None if shown is None else applied_hunks(shown, _shown_hunks(hunks))
    if shown != _shown(texts[1]):
        return False
    calls[0].take(path, Found(change.before, change.after))
    return True


def _is_otherwise(store: SnapshotStore, path: str, change: Change, call: Call) -> bool:
    """Return whether what a call tells, taken back from what is there, leaves something else than what was there."""
    texts = _texts(store, change)
    if texts is None:
        return False
    before, after = texts
    found: bytes | None = after
    for hunks in reversed(call.told[path]):
        found = None if found is None else taken_back(found, hunks)
    return found is not None and found.rstrip(b"\n") != before.rstrip(b"\n")


def _texts(store: SnapshotStore, change: Change) -> tuple[bytes, bytes] | None:
    """Return both contents of a regular file, empty where it is not there; None of what is none, or is too large."""
    if not all(one is None or one.is_regular for one in (change.before, change.after)):
        return None
    before, after = (b"" if one is None else content(store, one.ref) for one in (change.before, change.after))
    return (before, after) if max(len(before), len(after)) <= _TOO_LARGE else None


def _shown(text: bytes) -> bytes:
    """Return a text as agents show lines to a person: leading tabs as blanks, lines without carriage returns."""
    return re.sub(rb"(?m)^\t+", lambda found: b"  " * len(found[0]), text.replace(b"\r\n", b"\n"))


def _shown_hunks(hunks: str) -> str:
    unified = hunks.replace("\r\n", "\n").removesuffix("\r")
    return re.sub(r"(?m)^([ +-])(\t+)", lambda found: found[1] + "  " * len(found[2]), unified)


def taken_back(text: bytes, hunks: str) -> bytes | None:
    """Return a text without what unified hunks did to it, wherever that is; None where it is not there exactly once."""
    try:
        lines = text.split(b"\n")
        for old, new in reversed(_sides(hunks)):
            places = [at for at in range(len(lines)) if lines[at] == new[0] and lines[at : at + len(new)] == new]
            if len(places) != 1:
                return None
            lines[places[0] : places[0] + len(new)] = old
    except (ValueError, IndexError):
        return None
    return b"\n".join(lines)


def _sides(hunks: str) -> list[tuple[list[bytes], list[bytes]]]:
    """Return the lines before and after of each hunk.

    Raises:
        ValueError: A line is no text.
    """
    found: list[tuple[list[bytes], list[bytes]]] = []
    for line in hunks.removesuffix("\n").split("\n"):
        if _HEAD.match(line):
            found.append(([], []))
        elif found and line[:1] in {" ", "-", "+"}:
            old, new = found[-1]
            old += [os.fsencode(line[1:])] if line[0] != "+" else []
            new += [os.fsencode(line[1:])] if line[0] != "-" else []
    return found


def applied_hunks(text: bytes, hunks: str) -> bytes | None:
    """Return a text with unified hunks applied; None where they do not fit exactly, or it is too large."""
    try:
        return _applied(text, hunks) if len(text) <= _TOO_LARGE else None
    except ValueError:
        # A line that is no text, or a number of thousands of digits.
        return None


def _applied(text: bytes, hunks: str) -> bytes | None:
    old = text.split(b"\n")
    ends_with_line = old[-1] == b""
    old = old[:-1] if ends_with_line else old
    ends_with_line = ends_with_line if text else True
    new: list[bytes] = []
    at, last = 0, ""
    for line in hunks.removesuffix("\n").split("\n"):
        head = _HEAD.match(line)
        kind, rest = line[:1], os.fsencode(line[1:])
        if head is not None:
            start = int(head[1]) - (0 if head[2] == "0" else 1)
            if not at <= start <= len(old):
                return None
            new += old[at:start]
            at = start
        elif kind == "+":
            new.append(rest)
        elif kind in {" ", "-"}:
            if at >= len(old) or old[at] != rest:
                return None
            new += [rest] if kind == " " else []
            at += 1
        elif kind == "\\":
            ends_with_line = last == "-"
        else:
            return None
        last = kind
    new += old[at:]
    return b"\n".join(new) + (b"\n" if ends_with_line and new else b"")


def _changed_at(root: Path, path: str, *, since: float | None) -> float:
    """Return when a path was changed; of what is new, with ``since``, with the folders that it may have come in."""
    top, full = os.fspath(root), os.path.join(root, path)  # noqa: PTH118 - a path of any bytes
    try:
        at = os.lstat(full).st_ctime
    except OSError:
        return _gone_at(root, path)
    if since is None or at >= since - _CLOCK_LAG_S:
        return at
    folder = full
    while len(folder) > len(top):
        folder = os.path.dirname(folder)  # noqa: PTH120 - a path of any bytes
        with contextlib.suppress(OSError):
            at = max(at, os.lstat(folder).st_ctime)
    return at


def _gone_at(root: Path, path: str) -> float:
    """Return when a path went at the latest: by the folder that is left of those above it, or what is in its place."""
    at, above = 0.0, os.fspath(root)
    for part in path.split("/"):
        try:
            found = os.lstat(above)
        except OSError:
            break
        at = found.st_ctime
        if not stat.S_ISDIR(found.st_mode):
            # A link in the place of a folder may lead to one that has such a path.
            break
        above = os.path.join(above, part)  # noqa: PTH118 - a path of any bytes
    return at
