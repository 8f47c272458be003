"""The terminal as the app reads and writes it, also when it is slow or gone."""

from __future__ import annotations

import os
import select
from codecs import getincrementaldecoder
from contextlib import suppress
from typing import TYPE_CHECKING, Final, TextIO

from textual import constants
from textual.drivers.linux_driver import LinuxDriver

from agentmon.widgets.kept_columns import keep_columns
from agentmon.widgets.whole_keys import WholeKeyParser, escape_delay_s

if TYPE_CHECKING:
    from textual.app import App

_INPUT_LOOK_S: Final = 0.1
_MOST_READ: Final = 4096
_SAY_WHERE_KEYS_LIE: Final = "\x1b[=4;2u"
"""Alternate keys, beside what Textual asks for. Source: the keyboard protocol of kitty."""


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

    def start_application_mode(self) -> None:
        """Take the terminal over, and ask it where keys lie."""
        super().start_application_mode()  # type: ignore[no-untyped-call] # Textual's own
        if not constants.DISABLE_KITTY_KEY:
            self.write(_SAY_WHERE_KEYS_LIE)
            self.flush()

    def write(self, data: str) -> None:
        """Draw, each column in its place whatever the terminal thinks of a character."""
        super().write(keep_columns(data))

    def run_input_thread(self) -> None:
        """Read what is typed until the app ends or its terminal is gone; whoever ends the app then looks elsewhere."""
        constants.ESCAPE_DELAY = escape_delay_s(os.environ)  # type: ignore[misc] # read anew at each key
        parser = WholeKeyParser()
        decode = getincrementaldecoder("utf-8")("surrogateescape").decode
        while not self.exit_event.is_set():
            if not select.select([self.fileno], [], [], _INPUT_LOOK_S)[0]:
                found = parser.tick()
            elif data := _read(self.fileno):
                found = parser.feed(decode(data))
            else:
                return
            for event in found:
                self.process_message(event)

    def _run_input_thread(self) -> None:
        try:
            self.run_input_thread()
        except Exception as error:  # noqa: BLE001 - ends the app as any other error does, with a report
            self._app.call_later(self._app._handle_exception, error)  # noqa: SLF001 - there is no other way in

    def _get_terminal_size(self) -> tuple[int, int]:
        """Return the size that the app has too: two ideas of an unknown one would be painted in turn for ever."""
        return self._app.console.size

    def _query_in_band_window_resize(self) -> None:
        """Ask for no sizes among the keys: they could say anything. The system says how large the terminal is."""


def _read(terminal: int) -> bytes:
    """Return what is there; nothing when the terminal is gone."""
    try:
        return os.read(terminal, _MOST_READ)
    except OSError:
        return b""


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
