"""A program in a pseudo-terminal of its own, and how long it takes to answer there. Linux and macOS."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import signal
import struct
import subprocess
import termios
import time
from typing import TYPE_CHECKING, Final, Self

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

COLUMNS: Final = 120
ROWS: Final = 40
TIMEOUT_S: Final = 300.0
_CHUNK: Final = 65_536


class TimedTerminal:
    """A program on 120×40 cells; ends with the block that it is opened for."""

    def __init__(self, argv: Sequence[str], environ: Mapping[str, str]) -> None:
        self._master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
        self._argv = argv
        self._started = time.monotonic()
        self._process = subprocess.Popen(
            argv, stdin=slave, stdout=slave, stderr=slave, env=dict(environ), start_new_session=True
        )
        os.close(slave)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        os.close(self._master)

    @property
    def pid(self) -> int:
        """The program's process number."""
        return self._process.pid

    def wait_for(self, marker: bytes) -> float:
        """Return the seconds from the start of the program to the marker in its terminal.

        Raises:
            RuntimeError: It did not come within five minutes.
        """
        output = b""
        while marker not in output:
            if time.monotonic() - self._started > TIMEOUT_S:
                message = f"{self._argv[1:]} never showed {marker!r}: {output[-500:]!r}"
                raise RuntimeError(message)
            output += self._read(1.0)
        return time.monotonic() - self._started

    def wait_until_quiet(self, quiet_s: float) -> None:
        """Return when nothing was drawn for this long."""
        while self._read(quiet_s):
            pass

    def drain(self, timeout_s: float) -> None:
        """Take what is drawn, once, within this time."""
        self._read(timeout_s)

    def time_of_last(self, quiet_s: float) -> float:
        """Return when the last bytes came before nothing came for this long, as ``time.monotonic`` counts."""
        last = time.monotonic()
        while self._read(quiet_s):
            last = time.monotonic()
        return last

    def press(self, keys: bytes, marker: bytes = b"") -> float:
        """Return the seconds from the press to the first bytes that are drawn then, or to the marker among them.

        Raises:
            RuntimeError: Nothing came within five minutes.
        """
        pressed = time.monotonic()
        os.write(self._master, keys)
        output = b""
        while not output or marker not in output:
            if time.monotonic() - pressed > TIMEOUT_S:
                message = f"{keys!r} was not answered: {output[-500:]!r}"
                raise RuntimeError(message)
            output += self._read(1.0)
        return time.monotonic() - pressed

    def _read(self, timeout_s: float) -> bytes:
        if select.select([self._master], [], [], timeout_s)[0]:
            return os.read(self._master, _CHUNK)
        return b""
