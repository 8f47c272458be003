"""The terminal as the app writes to it, also when it is gone."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, TextIO

from textual.drivers.linux_driver import LinuxDriver

if TYPE_CHECKING:
    from textual.app import App


class Terminal(LinuxDriver):
    """Lets the app end when its terminal is gone.

    Textual writes in a thread, which ends with the first write that fails; the app would then wait for ever until that
    thread makes room for more.
    """

    def __init__(
        self, app: App[object], *, debug: bool = False, mouse: bool = True, size: tuple[int, int] | None = None
    ) -> None:
        super().__init__(app, debug=debug, mouse=mouse, size=size)
        if self._file is not None:
            self._file = _Output(self._file)  # type: ignore[assignment] # all that the driver asks of it


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
