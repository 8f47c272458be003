"""The writer of ``protocol.jsonl``: what was said in a protocol, both ways, a line each, with its time."""

from __future__ import annotations

from agentmon.runners.host import documents
from agentmon.runners.host.masking import mask, mask_lines
from agentmon.runners.host.output_log import OutputLog
from agentmon.runners.protocols.adapter import JsonLines

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

CAP_BYTES = 256 * 1024 * 1024


class ProtocolLog:
    """Appends lines up to a cap; from there on nothing is recorded, so that what there is can be replayed."""

    __slots__ = ("_cap_bytes", "_from_agent", "_log", "_size_bytes", "is_full")

    def __init__(self, path: str, cap_bytes: int = CAP_BYTES) -> None:
        """Create the file.

        Raises:
            OSError: It cannot be created.
        """
        self._log = OutputLog(path, 0)
        self._cap_bytes = cap_bytes
        self._size_bytes = 0
        self._from_agent = JsonLines()
        self.is_full = False

    @property
    def is_blocked(self) -> bool:
        """Whether lines wait that the disk did not take."""
        return self._log.is_blocked

    def retry(self) -> bool:
        """Write what waits; ``False`` when some of it still has to."""
        return self._log.retry()

    def add_from_agent(self, chunk: bytes, at_ms: int) -> None:
        """Record what the agent wrote, line by line; an unfinished line waits for its end."""
        if not self.is_full:
            self._add_lines("out", self._from_agent.feed(chunk), at_ms)

    def add_to_agent(self, sent: bytes, at_ms: int) -> None:
        """Record whole lines that are sent to the agent."""
        self._add_lines("in", sent.rstrip(b"\n").split(b"\n"), at_ms)

    def add_command(self, command: Mapping[str, object], at_ms: int) -> None:
        """Record a command of a client."""
        self._add(documents.encode({"at_ms": at_ms, "dir": "command", "command": mask(dict(command))}) + "\n")

    def add_start(self, at_ms: int) -> None:
        """Record that the conversation begins."""
        self._add(f'{{"at_ms": {at_ms}, "dir": "start", "line": ""}}\n')

    def add_end(self, at_ms: int) -> None:
        """Record that the agent writes nothing any more, and the unfinished last line."""
        rest = self._from_agent.flush()
        if rest:
            self._add_lines("out", [rest], at_ms)
        self._add(f'{{"at_ms": {at_ms}, "dir": "end", "line": ""}}\n')

    def give_up(self) -> None:
        """Leave out what waits, and what still comes, since a gap cannot be replayed."""
        if self._log.is_blocked:
            self._log.give_up()
            self.is_full = True

    def _add_lines(self, direction: str, lines: list[bytes], at_ms: int) -> None:
        if lines:
            start = f'{{"at_ms": {at_ms}, "dir": "{direction}", "line": '
            texts = mask_lines(b"\n".join(lines).decode("utf-8", "replace"))
            self._add("".join([f"{start}{documents.encode(text)}}}\n" for text in texts]))

    def _add(self, entries: str) -> None:
        if self.is_full:
            return
        if self._size_bytes + len(entries) > self._cap_bytes:
            self.is_full = True
            self._from_agent.flush()
            return
        self._size_bytes += len(entries)
        self._log.append(entries.encode())
