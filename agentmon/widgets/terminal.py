"""The terminal as the app reads and writes it, also when it is slow or gone."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING, TextIO

from textual import constants
from textual.drivers import linux_driver
from textual.drivers.linux_driver import LinuxDriver

from agentmon.widgets.whole_keys import WholeKeyParser, escape_delay_s

if TYPE_CHECKING:
    from textual.app import App


class Terminal(LinuxDriver):
    """Reads escape sequences whole that come in pieces, and lets the app end when its terminal is gone.

    Textual writes in a thread, which ends with the first write that fails; the app would then wait for ever until that
    thread makes room for more.
    """

    def __init__(
        self, app: App[object], *, debug: bool = False, mouse: bool = True, size: tuple[int, int] | None = None
    ) -> None:
        super().__init__(app, debug=debug, mouse=mouse, size=size)
        if self._file is not None:
            self._file = _Output(self._file)  # type: ignore[assignment] # all that the driver asks of it

    def run_input_thread(self) -> None:
        """Read what is typed until the app ends."""
        constants.ESCAPE_DELAY = escape_delay_s(os.environ)  # type: ignore[misc] # read anew at each key
        linux_driver.XTermParser = WholeKeyParser  # type: ignore[attr-defined] # what the driver makes
        super().run_input_thread()


class _Output:
    """A file in which nothing fails; what is written to a terminal that is gone is lost."""

    def __init__(self, file: TextIO) -> None:
        self._file = file

    def fileno(self) -> int:
        return self._file.fileno()

    def isatty(self) -> bool:
        return self._file.isatty()

    def write(self, text: str) -> None:
        with suppress(OSError):
            self._file.write(text)

    def flush(self) -> None:
        with suppress(OSError):
            self._file.flush()
