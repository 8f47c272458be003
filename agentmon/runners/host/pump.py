"""From the program's terminal to the log, the pane and the counters, in this order."""

from __future__ import annotations

import os
import select

from agentmon.runners.host import terminal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from agentmon.runners.host.agent import Agent
    from agentmon.runners.host.control import Command
    from agentmon.runners.host.journal import Journal
    from agentmon.runners.host.output_log import OutputLog
    from agentmon.runners.host.pane import Pane
    from agentmon.runners.host.progress import Progress
    from agentmon.runners.host.terminal_question import TerminalQuestion
    from agentmon.runners.host.typed_keys import TypedKeys

_BATCH_BYTES = 256 * 1024
_FULL_READ_BYTES = 4000
_NEXT_READ_WITHIN_MS = 1
_MAX_LAST_READS = 16
"""More than a terminal holds; what cannot be ended may write for ever."""
_MAX_WAITING_KEYS = 64 * 1024
_PASTE_START, _PASTE_END = b"\x1b[200~", b"\x1b[201~"
_PASTE_MODE_ON, _PASTE_MODE_OFF = b"\x1b[?2004h", b"\x1b[?2004l"
_ARROW_MODE_ON, _ARROW_MODE_OFF = b"\x1b[?1h", b"\x1b[?1l"
_ARROWS = (b"A", b"B", b"C", b"D", b"H", b"F")


class Pump:
    """Moves bytes both ways between the program and everybody else, never waiting for either."""

    __slots__ = (
        "_agent",
        "_buffer",
        "_has_own_arrows",
        "_is_paste_marked",
        "_journal",
        "_keys",
        "_more",
        "_newlines",
        "_output",
        "_pane",
        "_progress",
        "_question",
        "_tail",
        "_typed",
        "_typed_bytes",
        "_typed_keys",
    )

    is_blocked = False
    outcome: str | None = None
    error: str | None = None

    def __init__(
        self,
        agent: Agent,
        journal: Journal,
        output: OutputLog,
        progress: Progress,
        pane: Pane,
        typed_keys: TypedKeys,
        question: TerminalQuestion | None = None,
    ) -> None:
        self._agent = agent
        self._journal = journal
        self._typed_keys = typed_keys
        self._is_paste_marked = self._has_own_arrows = False
        self._tail = b""
        self._typed: list[tuple[int, str]] = []
        """Commands whose text waits, each with how many bytes have to be taken before it is in."""
        self._typed_bytes = 0
        self._output = output
        self._progress = progress
        self._question = question
        """None for an agent in its own screen, which is read by rules."""
        self._pane = pane
        self._newlines = terminal.NewlineUndo()
        self._keys = bytearray()
        self._buffer = bytearray(_BATCH_BYTES)
        self._more = select.poll()
        self._more.register(agent.outer_end, select.POLLIN)

    @property
    def reads(self) -> list[int]:
        """Files to read from."""
        return [self._agent.outer_end]

    @property
    def writes(self) -> list[int]:
        """Files that typing waits for."""
        return [self._agent.outer_end] if self._keys else []

    def begin(self) -> None:
        """Say nothing: the program begins."""

    @property
    def next_step(self) -> float:
        """When ``advance`` has something to do, on the monotonic clock."""
        return float("inf") if self._question is None else self._question.next_look

    def advance(self, now: float) -> None:
        """Look whether the program waits for a person."""
        if self._question is not None:
            self._question.look(now)

    def is_overdue(self, now: float) -> bool:
        """Return false: a program decides itself when it ends."""
        del now
        return False

    def renew_patience(self, now: float) -> None:
        """Do nothing: nothing is waited for."""

    def move(self, readable: list[int], writable: list[int], now: float) -> bool:
        """Read and write what can be; return whether anything came from the program."""
        has_moved = False
        if self._agent.outer_end in readable:
            self.move_rest(now)
            has_moved = True
        if self._agent.outer_end in writable:
            self.type(b"")
        return has_moved

    def resize(self, size: tuple[int, int]) -> None:
        """Give the program's terminal another size."""
        terminal.set_window_size(self._agent.outer_end, size)

    def obey(self, command: Command) -> None:
        """Type what a client asks for; ``command_id`` is told once the program has taken all of it."""
        text = command.document.get("text")
        if command.kind != "type" or not isinstance(text, str):
            self._tell(command.command_id, error="this program runs in a terminal: attach to it to answer")
            return
        typed = text.encode("utf-8", "replace")
        if command.document.get("is_paste"):
            typed = typed.replace(b"\r\n", b"\r").replace(b"\n", b"\r")
            while _PASTE_END in typed:  # what is left may be one again
                typed = typed.replace(_PASTE_END, b"")
            if self._is_paste_marked:
                typed = _PASTE_START + typed + _PASTE_END
        if command.document.get("is_sent"):
            # Worker and screens type of their own accord, too; this is somebody who could have attached.
            self._typed_keys.record_sent(command.command_id, typed, is_hidden=self.hides_typing)
            if self._has_own_arrows:
                for final in _ARROWS:
                    typed = typed.replace(b"\x1b[" + final, b"\x1bO" + final)
        self._keys += typed
        self._typed.append((self._typed_bytes + len(self._keys), command.command_id))
        self.type(b"")

    def retry_storage(self) -> bool:
        """Return true: nothing of a terminal is written but by the log."""
        return True

    @property
    def hides_typing(self) -> bool:
        """Whether the program reads whole lines without showing them, as for a password."""
        return terminal.Modes(self._agent.inner_terminal).is_hidden

    @property
    def takes_keys(self) -> bool:
        """Whether there is room for more typing."""
        return len(self._keys) < _MAX_WAITING_KEYS

    def move_rest(self, now: float) -> bool:
        """Record and show what the program has written, at most one batch; ``False`` when there was nothing."""
        chunk = self._read()
        if not chunk:
            return False
        modes = terminal.Modes(self._agent.inner_terminal)
        written = self._newlines.undo(chunk, is_mapped=modes.maps_newlines)
        self._progress.add(written)
        if written:
            self._output.append(written)
        self._follow_modes(chunk)
        if self._question is not None:
            self._question.note_output(now)
        self._pane.show(chunk, now, is_line_by_line=modes.is_line_by_line)
        return True

    def type(self, keys: bytes) -> None:
        """Give the program what was typed, as far as it takes it."""
        self._keys += keys
        try:
            while self._keys:
                written = os.write(self._agent.outer_end, self._keys)
                del self._keys[:written]
                self._typed_bytes += written
        except BlockingIOError:
            pass
        except OSError:
            self._keys.clear()
            while self._typed:
                self._tell(self._typed.pop(0)[1], error="the program takes nothing any more")
        while self._typed and self._typed[0][0] <= self._typed_bytes:
            self._tell(self._typed.pop(0)[1])

    def _tell(self, command_id: str, error: str | None = None) -> None:
        event = {"kind": "command", "command_id": command_id, "was_obeyed": error is None, "error": error}
        self._journal.add("agent_event", event=event)

    def _follow_modes(self, chunk: bytes) -> None:
        """Note bracketed paste and application cursor keys, as the program switches them (source: xterm, DECSET)."""
        seen = self._tail + chunk
        self._is_paste_marked = _is_on(seen, _PASTE_MODE_ON, _PASTE_MODE_OFF, self._is_paste_marked)
        self._has_own_arrows = _is_on(seen, _ARROW_MODE_ON, _ARROW_MODE_OFF, self._has_own_arrows)
        self._tail = seen[-len(_PASTE_MODE_ON) + 1 :]

    def finish(self) -> None:
        """Record what is held back; the program writes nothing any more."""
        while self._typed:
            self._tell(self._typed.pop(0)[1], error="the program ended before it took all of it")
        rest = self._newlines.flush()
        self._progress.add(rest)
        if rest:
            self._output.append(rest)

    def throw_away(self) -> None:
        """Count what the program's terminal still holds as left out."""
        for _ in range(_MAX_LAST_READS):
            chunk = self._read()
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


def _is_on(seen: bytes, switch_on: bytes, switch_off: bytes, was_on: bool) -> bool:
    on, off = seen.rfind(switch_on), seen.rfind(switch_off)
    return was_on if on == off else on > off
