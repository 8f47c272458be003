"""When an agent changed what it does, and when its card showed it."""

from __future__ import annotations

import itertools
import json
import re
import sqlite3
import threading
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from agentmon.domain.activity import Activity

if TYPE_CHECKING:
    from pathlib import Path

_LOOK_EVERY_S: Final = 0.01
_MEASURED_TOGETHER_MS: Final = 100
"""An agent's change that is older than the card's one before it was hidden by something else, such as a delivery."""
_TITLE: Final = re.compile(rb"\x1b\][02];([^\x07\x1b]*)(?:\x07|\x1b\\)")
_TITLES: Final = {
    "codex": ((re.compile("^\\[ [!.] \\]"), Activity.WAITING), (re.compile("^[⠁-⣿] "), Activity.WORKING)),
    "gemini": ((re.compile("^[✋◇]"), Activity.WAITING), (re.compile("^[✦⏲]"), Activity.WORKING)),
}
_CODEX_IDLE: Final = re.compile(r" \| \S")
_CLAUDE_STATES: Final = {"busy": Activity.WORKING, "idle": Activity.WAITING, "waiting": Activity.WAITING}


@dataclass(slots=True)
class Change:
    """From when on something was so."""

    at_ms: float
    activity: Activity


@dataclass(slots=True)
class _Log:
    offset: int = 0
    rest: bytes = b""


@dataclass(slots=True)
class ChangeWatch:
    """Looks at the rows and at the agent's own signs every few milliseconds, in a thread of its own."""

    slug: str
    database: Path
    executions_dir: Path
    agent_home: Path
    cards: dict[str, list[Change]] = field(default_factory=dict)
    """By execution."""
    own: list[Change] = field(default_factory=list)
    """What the agent's own screen or session file told."""
    _logs: dict[Path, _Log] = field(default_factory=dict)
    _stop: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None

    def start(self) -> None:
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()
        if self._thread is not None:
            self._thread.join(timeout=10)

    def delays_ms(self) -> list[tuple[str, str, float]]:
        """Return mode, the activity that the card went to, and how much later than the agent it did."""
        connection = sqlite3.connect(self.database)
        try:
            modes = dict(connection.execute("SELECT id, mode FROM executions").fetchall())
            told = connection.execute(
                "SELECT execution_id, timestamp_ms, json_extract(payload, '$.activity') FROM events"
                " WHERE type = 'status_change' AND json_extract(payload, '$.activity') IS NOT NULL ORDER BY id"
            ).fetchall()
        finally:
            connection.close()
        found = []
        for execution_id, cards in self.cards.items():
            is_own_screen = modes[execution_id] == "tmux"
            changes = (
                self.own
                if is_own_screen
                else [
                    Change(self._line_before(one, at), Activity(what)) for one, at, what in told if one == execution_id
                ]
            )
            for before, card in itertools.pairwise(cards):
                since = _begin_of(card, changes)
                if since is not None and since >= before.at_ms - _MEASURED_TOGETHER_MS:
                    found.append(
                        ("own screen" if is_own_screen else "protocol", card.activity.value, card.at_ms - since)
                    )
        return found

    def _line_before(self, execution_id: str, at_ms: float) -> float:
        """Return when the line came or went that the news tells of; it is written a moment before the news."""
        newest = at_ms
        try:
            lines = (self.executions_dir / execution_id / "protocol.jsonl").read_text("utf-8", "replace").splitlines()
        except OSError:
            return at_ms
        for line in lines:
            entry = json.loads(line)
            if entry["dir"] in {"in", "out"}:
                if entry["at_ms"] > at_ms:
                    break
                newest = entry["at_ms"]
        return newest

    def _run(self) -> None:
        connection = sqlite3.connect(f"file:{self.database}?mode=ro", uri=True)
        version = None
        try:
            while not self._stop.wait(_LOOK_EVERY_S):
                seen = connection.execute("PRAGMA data_version").fetchone()
                if seen != version:
                    version = seen
                    self._look_at_rows(connection)
                if self.slug == "claude":
                    self._look_at_session_files()
                elif self.slug in _TITLES:
                    self._look_at_titles()
        finally:
            connection.close()

    def _look_at_rows(self, connection: sqlite3.Connection) -> None:
        at_ms = time.time() * 1000
        rows = connection.execute("SELECT id, activity FROM executions WHERE activity IS NOT NULL").fetchall()
        for execution_id, word in rows:
            known = self.cards.setdefault(execution_id, [])
            if not known or known[-1].activity.value != word:
                known.append(Change(at_ms, Activity(word)))

    def _look_at_session_files(self) -> None:
        for path in (self.agent_home / ".claude" / "sessions").glob("*.json"):
            try:
                document = json.loads(path.read_bytes())
            except (OSError, ValueError):
                continue
            activity = _CLAUDE_STATES.get(document.get("status"))
            if activity is not None and "statusUpdatedAt" in document:
                self._note(document["statusUpdatedAt"], activity)

    def _look_at_titles(self) -> None:
        for path in self.executions_dir.glob("*/output.log"):
            log = self._logs.setdefault(path, _Log())
            with path.open("rb") as file:
                file.seek(log.offset)
                fresh = file.read()
            if not fresh:
                continue
            log.offset += len(fresh)
            text = log.rest + fresh
            for title in _TITLE.findall(text):
                self._note_title(title.decode("utf-8", "replace"))
            begun = text.rfind(b"\x1b]")
            log.rest = text[begun:] if begun >= 0 and not _TITLE.match(text, begun) else text[-1:]

    def _note_title(self, title: str) -> None:
        activity = next((what for pattern, what in _TITLES[self.slug] if pattern.match(title)), None)
        if activity is None and self.slug == "codex" and _CODEX_IDLE.search(title):
            activity = Activity.WAITING
        if activity is not None:
            self._note(time.time() * 1000, activity)

    def _note(self, at_ms: float, activity: Activity) -> None:
        if not self.own or self.own[-1].activity is not activity:
            self.own.append(Change(at_ms, activity))


def _begin_of(card: Change, changes: list[Change]) -> float | None:
    """Return when the agent began to be what the card shows."""
    begin = None
    previous = None
    for change in changes:
        if change.at_ms > card.at_ms:
            break
        if change.activity is card.activity and previous is not card.activity:
            begin = change.at_ms
        previous = change.activity
    return begin if previous is card.activity else None
