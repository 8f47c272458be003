"""The writer of ``protocol.jsonl``: what was said in a protocol, both ways, a line each, with its time."""

from __future__ import annotations

from agentmon.runners.host import documents
from agentmon.runners.host.masking import mask, mask_line
from agentmon.runners.host.output_log import OutputLog
from agentmon.runners.protocols.adapter import JsonLines

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

_CAP_BYTES = 256 * 1024 * 1024


class ProtocolLog:
    """Appends lines; above its cap the middle is left out, as in ``output.log``."""

    __slots__ = ("_from_agent", "_log")

    def __init__(self, path: str) -> None:
        """Create the file.

        Raises:
            OSError: It cannot be created.
        """
        self._log = OutputLog(path, _CAP_BYTES)
        self._from_agent = JsonLines()

    @property
    def is_blocked(self) -> bool:
        """Whether lines wait that the disk did not take."""
        return self._log.is_blocked

    def retry(self) -> bool:
        """Write what waits; ``False`` when some of it still has to."""
        return self._log.retry()

    def add_from_agent(self, chunk: bytes, at_ms: int) -> None:
        """Record what the agent wrote, line by line; an unfinished line waits for its end."""
        for line in self._from_agent.feed(chunk):
            self._add({"at_ms": at_ms, "dir": "out", "line": mask_line(line)})

    def add_to_agent(self, sent: bytes, at_ms: int) -> None:
        """Record whole lines that are sent to the agent."""
        for line in sent.split(b"\n"):
            if line:
                self._add({"at_ms": at_ms, "dir": "in", "line": mask_line(line)})

    def add_command(self, command: Mapping[str, object], at_ms: int) -> None:
        """Record a command of a client."""
        self._add({"at_ms": at_ms, "dir": "command", "command": mask(dict(command))})

    def add_mark(self, direction: str, at_ms: int) -> None:
        """Record the ``start`` of the conversation, or the ``end`` of what the agent writes."""
        rest = self._from_agent.flush() if direction == "end" else b""
        if rest:
            self._add({"at_ms": at_ms, "dir": "out", "line": mask_line(rest)})
        self._add({"at_ms": at_ms, "dir": direction})

    def give_up(self) -> None:
        """Count what waits as left out."""
        self._log.give_up()

    def _add(self, entry: dict[str, object]) -> None:
        self._log.append(documents.encode(entry).encode() + b"\n")
