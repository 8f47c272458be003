"""The writer of ``errors.log``: what an agent of a conversation writes to its error output, apart from the rest."""

from __future__ import annotations

from agentmon.runners.host.output_log import OutputLog
from agentmon.runners.host.rendering import clean

CAP_BYTES = 16 * 1024 * 1024
_ERROR = "error"
_MAX_REASON_CHARACTERS = 400


class ErrorStream:
    """A copy beside the output log, which has it all: where the disk takes no more, nobody waits for this one."""

    __slots__ = ("_is_broken", "_log", "_path", "reason")

    def __init__(self, path: str) -> None:
        """Note where the file goes; it comes with the first error."""
        self._path = path
        self._log: OutputLog | None = None
        self._is_broken = False
        self.reason = ""
        """The newest line that speaks of an error, else the newest one; empty before there is any."""

    def append(self, written: bytes) -> None:
        """Append what was written, as far as that can be done at once."""
        self._note_reason(written)
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

    def _note_reason(self, written: bytes) -> None:
        lines = [line for line in clean(written.decode("utf-8", "replace")).split("\n") if line.strip()]
        speaking = [line for line in lines if _ERROR in line.lower()]
        if speaking or (lines and _ERROR not in self.reason.lower()):
            self.reason = (speaking or lines)[-1].strip()[:_MAX_REASON_CHARACTERS]
