"""From the program's terminal to the log, the pane and the counters, in this order."""

from __future__ import annotations

import os
import select

from agentmon.runners.host import terminal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from agentmon.runners.host.agent import Agent
    from agentmon.runners.host.output_log import OutputLog
    from agentmon.runners.host.pane import Pane
    from agentmon.runners.host.progress import Progress

_BATCH_BYTES = 256 * 1024
_FULL_READ_BYTES = 4000
_NEXT_READ_WITHIN_MS = 1
_MAX_WAITING_KEYS = 64 * 1024


class Pump:
    """Moves bytes both ways between the program and everybody else, never waiting for either."""

    __slots__ = ("_agent", "_buffer", "_keys", "_more", "_newlines", "_output", "_pane", "_progress")

    def __init__(self, agent: Agent, output: OutputLog, progress: Progress, pane: Pane) -> None:
        self._agent = agent
        self._output = output
        self._progress = progress
        self._pane = pane
        self._newlines = terminal.NewlineUndo()
        self._keys = bytearray()
        self._buffer = bytearray(_BATCH_BYTES)
        self._more = select.poll()
        self._more.register(agent.outer_end, select.POLLIN)

    @property
    def takes_keys(self) -> bool:
        """Whether there is room for more typing."""
        return len(self._keys) < _MAX_WAITING_KEYS

    @property
    def has_keys(self) -> bool:
        """Whether typing waits for the program to take it."""
        return bool(self._keys)

    def move_output(self, now: float) -> bool:
        """Record and show what the program has written, at most one batch; ``False`` when there was nothing."""
        chunk = self._read()
        if not chunk:
            return False
        modes = terminal.Modes(self._agent.inner_terminal)
        written = self._newlines.undo(chunk, is_mapped=modes.maps_newlines)
        self._progress.add(written)
        if written:
            self._output.append(written)
        self._pane.show(chunk, now, is_line_by_line=modes.is_line_by_line)
        return True

    def move_keys(self, keys: bytes = b"") -> None:
        """Give the program what was typed, as far as it takes it."""
        self._keys += keys
        try:
            while self._keys:
                del self._keys[: os.write(self._agent.outer_end, self._keys)]
        except BlockingIOError:
            pass
        except OSError:
            self._keys.clear()

    def finish(self) -> None:
        """Record what is held back; the program writes nothing any more."""
        rest = self._newlines.flush()
        self._progress.add(rest)
        if rest:
            self._output.append(rest)

    def throw_away(self) -> None:
        """Count what the program's terminal still holds as left out."""
        while chunk := self._read():
            written = self._newlines.undo(chunk, is_mapped=terminal.Modes(self._agent.inner_terminal).maps_newlines)
            self._progress.add(written)
            self._output.give_up(len(written))

    def _read(self) -> bytes:
        filled = count = 0
        with memoryview(self._buffer) as room:
            while filled < _BATCH_BYTES:
                try:
                    count = os.readv(self._agent.outer_end, (room[filled:],))
                except BlockingIOError:
                    # The terminal hands out one small buffer at a time; after a full one the next is on its way.
                    if count < _FULL_READ_BYTES or not self._more.poll(_NEXT_READ_WITHIN_MS):
                        break
                    continue
                except OSError:
                    break
                if not count:
                    break
                filled += count
        return bytes(memoryview(self._buffer)[:filled])
