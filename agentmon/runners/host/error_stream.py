"""The writer of ``errors.log``: what an agent of a conversation writes to its error output, apart from the rest."""

from __future__ import annotations

from agentmon.runners.host.output_log import OutputLog

CAP_BYTES = 16 * 1024 * 1024


class ErrorStream:
    """A copy beside the output log, which has it all: where the disk takes no more, nobody waits for this one."""

    __slots__ = ("_is_broken", "_log", "_path")

    def __init__(self, path: str) -> None:
        """Note where the file goes; it comes with the first error."""
        self._path = path
        self._log: OutputLog | None = None
        self._is_broken = False

    def append(self, written: bytes) -> None:
        """Append what was written, as far as that can be done at once."""
        if self._is_broken:
            return
        try:
            if self._log is None:
                self._log = OutputLog(self._path, CAP_BYTES)
        except OSError:
            self._is_broken = True
            return
        if not self._log.append(written):
            self._log.give_up()
