"""Terminals: what the inner one did to line ends, raw mode for the pane, and window sizes."""

from __future__ import annotations

import termios

TYPE_CHECKING = False
if TYPE_CHECKING:
    Attributes = list[int | list[bytes | int]]

_IFLAG, _OFLAG, _CFLAG, _LFLAG, _CC = 0, 1, 2, 3, 6


class NewlineUndo:
    r"""Turns the terminal's ``\r\n`` back into the ``\n`` that the program wrote.

    The terminal puts one ``\r`` before every ``\n``, so taking one away before every ``\n`` is the exact reverse,
    also for a program that writes ``\r\n`` itself. A ``\r`` at the end of a chunk is held back until the next.
    """

    __slots__ = ("_held",)

    def __init__(self) -> None:
        self._held = b""

    def undo(self, chunk: bytes, *, is_mapped: bool) -> bytes:
        """Return what the program wrote; ``is_mapped`` says whether the terminal maps line ends at present."""
        if self._held:
            chunk = self._held + chunk
            self._held = b""
        if not is_mapped:
            return chunk
        if chunk.endswith(b"\r"):
            self._held = b"\r"
            chunk = chunk[:-1]
        return chunk.replace(b"\r\n", b"\n")

    def flush(self) -> bytes:
        """Return what is held back; nothing follows it any more."""
        held, self._held = self._held, b""
        return held


class Modes:
    """The modes of a terminal that decide how its output is treated."""

    __slots__ = ("is_hidden", "is_line_by_line", "maps_newlines")

    def __init__(self, terminal: int) -> None:
        """Read them from the open terminal; one that does not answer counts as an ordinary one."""
        try:
            attributes = termios.tcgetattr(terminal)
        except termios.error:
            self.maps_newlines = self.is_line_by_line = True
            self.is_hidden = False
            return
        mapping = termios.OPOST | termios.ONLCR
        self.maps_newlines = attributes[_OFLAG] & mapping == mapping
        self.is_line_by_line = bool(attributes[_LFLAG] & termios.ICANON)
        self.is_hidden = self.is_line_by_line and not attributes[_LFLAG] & termios.ECHO


def make_raw(terminal: int) -> Attributes | None:
    """Let every key and every byte through unchanged; return the earlier attributes, ``None`` without a terminal."""
    try:
        earlier = termios.tcgetattr(terminal)
        raw = termios.tcgetattr(terminal)
        raw[_IFLAG] &= ~(
            termios.IGNBRK | termios.BRKINT | termios.PARMRK | termios.ISTRIP | termios.INLCR | termios.IGNCR
            | termios.ICRNL | termios.IXON
        )  # fmt: skip
        raw[_OFLAG] &= ~termios.OPOST
        raw[_CFLAG] = raw[_CFLAG] & ~(termios.CSIZE | termios.PARENB) | termios.CS8
        raw[_LFLAG] &= ~(termios.ECHO | termios.ECHONL | termios.ICANON | termios.ISIG | termios.IEXTEN)
        raw[_CC][termios.VMIN] = 1
        raw[_CC][termios.VTIME] = 0
        termios.tcsetattr(terminal, termios.TCSANOW, raw)
    except termios.error:
        return None
    return earlier


def restore(terminal: int, attributes: Attributes) -> None:
    """Give the terminal its earlier attributes back; one that is gone is left alone."""
    try:
        termios.tcsetattr(terminal, termios.TCSANOW, attributes)
    except termios.error:
        pass


def find_window_size(terminal: int) -> tuple[int, int] | None:
    """Return rows and columns; ``None`` without a terminal or when it does not know."""
    try:
        rows, columns = termios.tcgetwinsize(terminal)
    except termios.error:
        return None
    return (rows, columns) if rows and columns else None


def set_window_size(terminal: int, size: tuple[int, int]) -> None:
    """Set rows and columns, of which the programs in the terminal are told."""
    try:
        termios.tcsetwinsize(terminal, size)
    except termios.error:
        pass
