"""What the files of one agent in its own screen tell: its process, its own signal, its title, and whether it writes."""

from __future__ import annotations

import os
import re
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from agentmon.domain.json_values import read_object
from agentmon.runners.execution_folder import open_at_once
from agentmon.runners.screens.reading import ScreenText, read_title
from agentmon.runners.screens.signals import is_halted, read_signal

if TYPE_CHECKING:
    from collections.abc import Mapping

    from agentmon.runners.execution_folder import ExecutionFolder
    from agentmon.runners.screens.rules import ScreenRules
    from agentmon.runners.screens.states import Finding, ScreenState

_ALL_FILES_EVERY_S: Final = 0.5
_TITLE_WITHIN_BYTES: Final = 64 * 1024
_TITLE_OVERLAP_BYTES: Final = 256
_TITLE: Final = re.compile(rb"\x1b\][02];([^\x07\x1b]{0,200})(?:\x07|\x1b\\)")
_JOURNAL_HEAD_BYTES: Final = 64 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class FileNews:
    """What is new since the files were read before."""

    has_started: bool = False
    """Whether its process was found now."""
    grown_bytes: int | None = None
    """How much it has written; None when its log is as it was."""
    is_telling: bool = False
    """Whether its signal or its title says something else, or it was halted or let go on."""
    has_worked: bool = False
    """Whether its signal or a title told of work meanwhile, also of work that is over by now."""


class ScreenFiles:
    """The files of one try of one agent."""

    def __init__(
        self, folder: ExecutionFolder, rules: ScreenRules, environ: Mapping[str, str], *, attempt: int = 0
    ) -> None:
        self._folder = folder
        self._attempt = attempt
        self._rules = rules
        self.environ = environ
        """What the agent was given."""
        self._log_stamp: tuple[int, int] | None = None
        self._signal_stamp: int | None = None
        self._title_state: ScreenState | None = None
        self._read_at = float("-inf")
        self.pid: int | None = None
        """Its process; None before it is known."""
        self.signal: Finding | None = None
        self.is_halted = False

    def may_have_changed(self, at: float) -> bool:
        """Return whether it is time to read the files of an agent that rests: two stamps tell, and the clock."""
        if at - self._read_at >= _ALL_FILES_EVERY_S:
            return True
        return self._find_log_stamp() != self._log_stamp or _stamp_of(self.signal) != self._signal_stamp

    def read(self) -> FileNews:
        """Read all of them; blocks."""
        self._read_at = time.monotonic()
        has_started = False
        if self.pid is None and self._folder.is_of_try(self._attempt):
            self.pid = _find_pid(self._folder)
            has_started = self.pid is not None
        if self.pid is None:
            return FileNews()
        grown_bytes, is_telling, has_worked = None, False, False
        stamp = self._find_log_stamp()
        if stamp != self._log_stamp:
            known = self._log_stamp[0] if self._log_stamp is not None else 0
            states = self._read_titles(known, stamp[0])
            grown_bytes, is_telling = abs(stamp[0] - known), bool(states) and states[-1] is not self._title_state
            has_worked = any(one is not None and one.is_busy for one in states)
            self._log_stamp, self._title_state = stamp, states[-1] if states else self._title_state
        # Before it is read: what is written meanwhile has another stamp.
        self._signal_stamp = _stamp_of(self.signal)
        signal = read_signal(self._rules.signal, self.environ, self.pid) if self._rules.signal else None
        halted = is_halted(self.pid)
        if signal != self.signal or halted is not self.is_halted:
            has_worked = has_worked or _tells_of_work(self.signal, signal)
            self.signal, self.is_halted, is_telling = signal, halted, True
        return FileNews(has_started=has_started, grown_bytes=grown_bytes, is_telling=is_telling, has_worked=has_worked)

    def _find_log_stamp(self) -> tuple[int, int]:
        try:
            stat = self._folder.output_log.stat()
        except OSError:
            return self._log_stamp or (0, 0)
        return stat.st_size, stat.st_mtime_ns

    def _read_titles(self, known: int, size: int) -> list[ScreenState | None]:
        """Return what the titles say that the output since the last look sets, in their order; None is no state."""
        if not any(rule.is_for_title for rule in self._rules.rules):
            return []
        known = min(known, size)
        # A title whose sequence was cut in two by the last look is read again from its begin.
        begin = max(0, known - _TITLE_OVERLAP_BYTES, size - _TITLE_WITHIN_BYTES)
        try:
            with open_at_once(self._folder.output_log) as file:
                file.seek(begin)
                fresh = file.read(max(0, size - begin))
        except OSError:
            return []
        titles = [match.group(1) for match in _TITLE.finditer(fresh) if match.end() > known - begin]
        findings = (read_title(self._rules, ScreenText.of(one.decode("utf-8", "replace"), ())) for one in titles)
        return [finding.state if finding is not None else None for finding in findings]


def _tells_of_work(before: Finding | None, now: Finding | None) -> bool:
    """Return whether an agent's own signal says that it works, or that it has worked since it was free before."""
    if now is None or now.state.is_busy:
        return now is not None
    if before is None or not (before.state.is_free and now.state.is_free):
        return False
    return before.changed_at_ms != now.changed_at_ms


def _stamp_of(signal: Finding | None) -> int | None:
    if signal is None:
        return None
    try:
        return os.stat(signal.where).st_mtime_ns  # noqa: PTH116 - asked often; a path of it would be made each time
    except OSError:
        return None


def _find_pid(folder: ExecutionFolder) -> int | None:
    try:
        with open_at_once(folder.journal) as file:
            lines = file.read(_JOURNAL_HEAD_BYTES).split(b"\n")[:-1]
    except OSError:
        return None
    for line in lines:
        entry = read_object(line) or {}
        pid = entry.get("pid")
        if entry.get("type") == "agent_started" and isinstance(pid, int):
            return pid
    return None
