"""Whether somebody looks at the pane: asked of tmux in a process of its own, never waited for."""

from __future__ import annotations

import os

from agentmon.runners.host.lean import signal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

_ASK_EVERY_S = 1.0
_ANSWER_WITHIN_S = 5.0  # on a busy machine; a tmux that hangs is noticed by the pane that takes nothing


class Attachment:
    """The last known answer; no answer counts as nobody."""

    __slots__ = ("_answer", "_asked_at", "_on_start", "_pid", "is_attached", "reader")

    def __init__(self, on_start: Callable[[int], object]) -> None:
        """``on_start`` is told the pid of each process that asks."""
        self._on_start = on_start
        self._answer = b""
        self._asked_at = float("-inf")
        self._pid = 0
        self.is_attached = False
        self.reader: int | None = None
        """What becomes readable when tmux answers; ``None`` while no question is open."""

    def ask(self, now: float) -> None:
        """Ask unless that was done within the last second."""
        if self.reader is not None:
            if now - self._asked_at > _ANSWER_WITHIN_S:
                self.cancel()
            return
        if now - self._asked_at < _ASK_EVERY_S:
            return
        self._asked_at = now
        server, pane = os.environ.get("TMUX", "").rsplit(",", 2)[0], os.environ.get("TMUX_PANE", "")
        if not server or not pane:
            return
        reader, writer = os.pipe()
        actions = [
            (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
            (os.POSIX_SPAWN_DUP2, writer, 1),
            (os.POSIX_SPAWN_OPEN, 2, os.devnull, os.O_WRONLY, 0),
        ]
        command = ["tmux", "-S", server, "display-message", "-p", "-t", pane, "#{session_attached}"]
        try:
            self._pid = os.posix_spawnp("tmux", command, os.environ, file_actions=actions)
        except OSError:
            os.close(reader)
            self.is_attached = False
            return
        finally:
            os.close(writer)
        os.set_blocking(reader, False)
        self._answer = b""
        self.reader = reader
        self._on_start(self._pid)

    def read_answer(self) -> None:
        """Take what tmux answers; call when ``reader`` is readable."""
        if self.reader is None:
            return
        try:
            piece = os.read(self.reader, 100)
        except BlockingIOError:
            return
        self._answer += piece
        if not piece:
            answer = self._answer.strip()
            self.is_attached = answer.isdigit() and int(answer) > 0
            os.close(self.reader)
            self.reader = None

    def cancel(self) -> None:
        """Give up an open question; nobody counts as looking."""
        if self.reader is not None:
            os.close(self.reader)
            self.reader = None
            self.is_attached = False
            try:
                os.kill(self._pid, signal.SIGKILL)  # a child not reaped yet, so the pid is still its own
            except OSError:
                pass
