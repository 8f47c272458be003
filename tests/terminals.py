"""Programs in pseudo-terminals of their own, as a person has them."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios
from time import monotonic
from typing import TYPE_CHECKING

from tests.waiting import DEADLINE_S

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence


class Terminal:
    """A running program and what it wrote to its terminal."""

    def __init__(self, argv: Sequence[str], environ: Mapping[str, str], *, width: int = 100, height: int = 30) -> None:
        self._master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", height, width, 0, 0))
        self.modes_before = termios.tcgetattr(slave)
        self._slave = slave
        self.process = subprocess.Popen(
            list(argv), stdin=slave, stdout=slave, stderr=slave, env=dict(environ), start_new_session=True
        )
        self.output = b""

    @property
    def modes(self) -> list[object]:
        return termios.tcgetattr(self._slave)

    def send(self, keys: bytes) -> None:
        os.write(self._master, keys)

    def read_until(self, condition: Callable[[bytes], bool], what: str, *, deadline_s: float = DEADLINE_S) -> None:
        end = monotonic() + deadline_s
        while not condition(self.output):
            assert monotonic() < end, f"{what} never came; the end of the output: {self.output[-2000:]!r}"
            self._read(0.05)

    def drain(self, timeout_s: float = 0.0) -> None:
        """Take what is written, as a terminal does all the time."""
        self._read(timeout_s)

    def wait(self, *, deadline_s: float = DEADLINE_S) -> int:
        """Return the exit code, reading all output meanwhile."""
        end = monotonic() + deadline_s
        while self.process.poll() is None:
            assert monotonic() < end, f"it did not end; the end of the output: {self.output[-2000:]!r}"
            self._read(0.05)
        while self._read(0.05):
            pass
        return self.process.returncode

    def _read(self, timeout_s: float) -> bool:
        if not select.select([self._master], [], [], timeout_s)[0]:
            return False
        try:
            piece = os.read(self._master, 65536)
        except OSError:
            return False
        self.output += piece
        return bool(piece)

    def vanish(self) -> None:
        """Take the terminal away, as the end of the terminal program does."""
        for descriptor in (self._master, self._slave):
            os.close(descriptor)
        # So that closing again closes nobody else's.
        self._master = self._slave = -1

    def close(self) -> None:
        if self.process.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
        for descriptor in (self._master, self._slave):
            with contextlib.suppress(OSError):
                os.close(descriptor)


@contextlib.contextmanager
def terminal(
    argv: Sequence[str], environ: Mapping[str, str], *, width: int = 100, height: int = 30
) -> Iterator[Terminal]:
    opened = Terminal(argv, environ, width=width, height=height)
    try:
        yield opened
    finally:
        opened.close()


def words_of(output: bytes) -> bytes:
    """Return what is written, without the codes between: a word is drawn in two where a column ends below it."""
    return re.sub(rb"\x1b\[[0-9;]*[A-Za-z]", b"", output)
