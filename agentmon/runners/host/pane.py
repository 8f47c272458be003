"""The pane: shows what the program writes and takes keys, and never holds the program up for nobody."""

from __future__ import annotations

import os
import select

from agentmon.runners.host import terminal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from agentmon.runners.host.attachment import Attachment

_INPUT, _OUTPUT = 0, 1
_MAX_WAITING_BYTES = 256 * 1024
_HEAVY_BYTES_PER_S = 1024 * 1024
_SAMPLE_BYTES = 48 * 1024
_SAMPLE_EVERY_S = 0.25  # with the sample's size: about 200 kB/s
_LIGHT_AFTER_S = 2.0
_STALLED_AFTER_S = 2.0
_WRITE_BYTES = 64 * 1024
_ROOM_WITHIN_MS = 2
_MAX_ROOM_WAITS = 16
_READ_BYTES = 4096
_FULL_RESET = b"\x1bc"  # RIS, source: ECMA-48
# CAN ends a sequence that the program left unfinished; DSR asks for the status: the answer tells that all was drawn.
_ASK_STATUS = b"\x18\x1b[5n"
_STATUS = b"\x1b[0n"


class Pane:
    """The host's own terminal, in raw mode from ``open`` to ``close``.

    Everything is shown, and the program waits for the pane, while somebody looks or output is light. Heavy output that
    nobody looks at is shown in samples of its newest lines, since tmux's drawing costs more than all else together.
    """

    __slots__ = (
        "_attachment",
        "_attributes",
        "_has_shown",
        "_is_line_by_line",
        "_is_raw_dropped",
        "_is_stalled",
        "_last_progress",
        "_next_sample",
        "_room",
        "_sample",
        "_skipped_bytes",
        "_waiting",
        "_window_bytes",
        "_window_start",
        "_windows_are_heavy",
        "has_input",
        "has_output",
    )

    def __init__(self, attachment: Attachment, now: float) -> None:
        self._attachment = attachment
        self._waiting = bytearray()
        self._sample = b""
        self._skipped_bytes = 0
        self._next_sample = now
        self._window_start = now
        self._window_bytes = 0
        self._windows_are_heavy = False
        self._last_progress = now
        self._is_line_by_line = True
        self._is_raw_dropped = False
        self._is_stalled = False
        self._has_shown = False
        self.has_input = True
        self.has_output = True
        self._attributes = terminal.make_raw(_INPUT)
        os.set_blocking(_INPUT, False)
        os.set_blocking(_OUTPUT, False)
        self._room = select.poll()
        self._room.register(_OUTPUT, select.POLLOUT)

    @property
    def wants_to_write(self) -> bool:
        """Whether something waits for the pane to take it."""
        return self.has_output and bool(self._waiting)

    @property
    def next_step(self) -> float:
        """When ``advance`` has something to do, on the monotonic clock."""
        return self._next_sample if self._sample else float("inf")

    def holds_program_up(self, now: float) -> bool:
        """Whether the program should wait, so that all it writes is seen; ends when the pane takes nothing for 2 s."""
        if not self.has_output or len(self._waiting) <= _MAX_WAITING_BYTES:
            return False
        self._is_stalled = self._is_stalled or now - self._last_progress >= _STALLED_AFTER_S
        return not self._may_leave_out()

    def show(self, chunk: bytes, now: float, *, is_line_by_line: bool) -> None:
        """Show what the program wrote, as its terminal delivered it."""
        if not self.has_output:
            return
        self._is_line_by_line = is_line_by_line
        if not self._waiting:
            self._last_progress = now
        if self._is_heavy(len(chunk), now):
            self._attachment.ask(now)
            if self._may_leave_out():
                self._take_sample(chunk)
                self.advance(now)
                return
        if self._sample:
            self._flush_sample()
        self._waiting += chunk
        self.write(now)

    def note(self, text: str) -> None:
        """Show a line of the host's own."""
        if self.has_output:
            self._waiting += f"\r\n[agentmon: {text}]\r\n".encode()

    def advance(self, now: float) -> None:
        """Show the newest sample when its time has come."""
        if self._sample and now >= self._next_sample and len(self._waiting) <= _SAMPLE_BYTES:
            self._flush_sample()
            self._next_sample = now + _SAMPLE_EVERY_S
            self.write(now)

    def write(self, now: float) -> None:
        """Write what waits as far as the pane takes it."""
        patience = _MAX_ROOM_WAITS
        while self._waiting and self.has_output:
            try:
                with memoryview(self._waiting) as waiting:
                    written = os.write(_OUTPUT, waiting[:_WRITE_BYTES])
            except BlockingIOError:
                # The pane takes one small buffer at a time; going round the whole loop for each would halve the speed.
                patience -= 1
                if len(self._waiting) < _WRITE_BYTES or not patience or not self._room.poll(_ROOM_WITHIN_MS):
                    return
                continue
            except OSError:
                self._lose_output()
                return
            del self._waiting[:written]
            self._has_shown = True
            self._last_progress = now
            self._is_stalled = False

    def read_keys(self) -> bytes:
        """Return what the person typed; sets ``has_input`` to false when there is nobody to type any more."""
        try:
            keys = os.read(_INPUT, _READ_BYTES)
        except BlockingIOError:
            return b""
        except OSError:
            keys = b""
        if not keys:
            self.has_input = False
        return keys

    def find_window_size(self) -> tuple[int, int] | None:
        """Return rows and columns of the pane; ``None`` when it is no terminal."""
        return terminal.find_window_size(_OUTPUT)

    def finish(self, now: float) -> None:
        """Bring up what was held back as a sample; the program writes nothing any more."""
        self._attachment.cancel()
        if self._sample:
            self._flush_sample()
        self.write(now)

    def ask_whether_drawn(self) -> bool:
        """Ask the pane to answer once it has drawn everything; ``False`` when there is nothing to wait for.

        tmux forgets what it has not read yet when the pane's process ends, so the host has to outlive its own output.
        """
        if not (self._has_shown and self.has_output and self.has_input and self._attributes and "TMUX" in os.environ):
            return False
        try:
            return os.write(_OUTPUT, _ASK_STATUS) == len(_ASK_STATUS)
        except OSError:
            return False

    def is_drawn(self, answer: bytes) -> bool:
        """Return whether what came from the pane since ``ask_whether_drawn`` holds its answer."""
        return _STATUS in answer

    def close(self) -> None:
        """Give the terminal its earlier modes back."""
        for file in (_INPUT, _OUTPUT):
            try:
                os.set_blocking(file, True)
            except OSError:
                pass
        if self._attributes is not None:
            terminal.restore(_INPUT, self._attributes)

    def _is_heavy(self, size_bytes: int, now: float) -> bool:
        if now - self._window_start >= 1.0:
            was_recent = now - self._window_start < _LIGHT_AFTER_S
            self._windows_are_heavy = was_recent and self._window_bytes > _HEAVY_BYTES_PER_S
            self._window_start = now
            self._window_bytes = 0
        self._window_bytes += size_bytes
        return (
            self._windows_are_heavy
            or self._window_bytes > _HEAVY_BYTES_PER_S
            or len(self._waiting) + size_bytes > _MAX_WAITING_BYTES
        )

    def _may_leave_out(self) -> bool:
        # A program that draws its whole screen would leave a torn one.
        is_wanted = self._attachment.is_attached or self._attachment.reader is not None or not self._is_line_by_line
        return self._is_stalled or not is_wanted

    def _take_sample(self, chunk: bytes) -> None:
        if len(self._waiting) > _MAX_WAITING_BYTES:
            self._skipped_bytes += len(self._waiting)
            self._waiting.clear()
        before = len(self._sample) + len(chunk)
        newest = chunk if len(chunk) >= _SAMPLE_BYTES else self._sample + chunk
        if len(newest) > _SAMPLE_BYTES:
            newest = newest[-_SAMPLE_BYTES:]
            first_line_feed = newest.find(b"\n", 0, -1)
            newest = newest[first_line_feed + 1 :]
        self._skipped_bytes += before - len(newest)
        self._sample = newest
        self._is_raw_dropped = self._is_raw_dropped or not self._is_line_by_line

    def _flush_sample(self) -> None:
        if self._is_raw_dropped:
            self._waiting += _FULL_RESET
            self._is_raw_dropped = False
        if self._skipped_bytes:
            megabytes = self._skipped_bytes / 1_000_000
            self._waiting += f"\r\n[agentmon: {megabytes:,.1f} MB not shown here, all of it is in the log]\r\n".encode()
            self._skipped_bytes = 0
        self._waiting += self._sample
        self._sample = b""

    def _lose_output(self) -> None:
        self.has_output = False
        self._waiting.clear()
        self._sample = b""
