"""What every protocol has in common: bytes in, events and bytes out, and nothing else.

Standard library only, and no import from outside this folder: the host runs it without site packages.
"""

from __future__ import annotations

import json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    Event = dict[str, object]
    """One value of ``agentmon.domain.conversation`` as a JSON object: ``kind`` and the fields under their names.

    ``kind`` is the class name without ``News`` in lower case with underscores: ``tool_started``, ``ask_closed``.
    Fields that have their default may be left out. The kind ``delta`` (``message_ref``, ``text``, ``is_thinking``,
    ``parent_tool_ref``) is a piece of the message of that name, which is still being written: it is shown and never
    recorded.
    """

MAX_LINE_BYTES = 32 * 1024 * 1024
"""A longer line is passed over, with a notice."""


class Step:
    """What one input led to: events in their order, and bytes for the agent's standard input."""

    __slots__ = ("events", "send")

    def __init__(self, events: list[Event] | None = None, send: bytes = b"") -> None:
        self.events = [] if events is None else events
        self.send = send


class Adapter:
    """One conversation with one agent, from its launch to its last word.

    No method raises, whatever comes in; none reads a clock, a file or a socket. ``at_ms`` is UTC in milliseconds and
    never goes back. The same inputs at the same times give the same steps.
    """

    __slots__ = ()

    def __init__(self, launch: Mapping[str, object]) -> None:
        """``launch`` is the object ``conversation`` of ``spec.json``; see ``runners/protocols/__init__.py``."""

    @property
    def is_finished(self) -> bool:
        """Whether all that was asked is done and nothing waits, so that the agent's input may be closed.

        True after the last turn has ended by itself and no message is queued. False after an interrupt that a person
        asked for, until the next message or the command ``finish``: the person has the word.
        """
        raise NotImplementedError

    @property
    def outcome(self) -> str:
        """The ``TurnOutcome`` of the newest turn that ended, or an empty text before the first did."""
        raise NotImplementedError

    @property
    def error(self) -> str | None:
        """One line for a person, when the newest turn failed or nothing could be begun."""
        raise NotImplementedError

    @property
    def has_broken_off(self) -> bool:
        """Whether the agent ended without a word on how its work went, so that its last plain text has to say it."""
        raise NotImplementedError

    @property
    def stray_text(self) -> str:
        """The newest line of its output that was no message; empty without one."""
        raise NotImplementedError

    def start(self, at_ms: int) -> Step:
        """Begin the conversation and give the agent its first message; called once, before anything else."""
        raise NotImplementedError

    def receive(self, chunk: bytes, at_ms: int) -> Step:
        """Take what the agent wrote to its standard output, cut anywhere."""
        raise NotImplementedError

    def receive_end(self, at_ms: int) -> Step:
        """Take note that the agent writes nothing any more: open requests are withdrawn, open calls cancelled."""
        raise NotImplementedError

    def command(self, command: Mapping[str, object], at_ms: int) -> Step:
        """Act on a command of a client; each is followed by one ``command`` event, at once or when the agent answers.

        ``{"id", "type": "message", "text"}`` – at once, or queued when the agent is busy and takes nothing meanwhile.
        ``{"id", "type": "answer", "request_id", "input_digest", "decision": "allow" | "allow_for_session" | "deny" |
        "answer", "reason"?, "tool_input"?, "answers"?: {question: text or list of texts}, "interrupts"?: bool}``.
        ``{"id", "type": "interrupt"}``, ``{"id", "type": "finish"}``,
        ``{"id", "type": "set_model", "model"}``, ``{"id", "type": "set_permission_mode", "permission_mode"}``.
        """
        raise NotImplementedError


class JsonLines:
    """Cuts what an agent writes into lines, and parses each that holds a JSON object; memory stays bounded."""

    __slots__ = ("_is_passing_over", "_pieces", "_size_bytes")

    def __init__(self) -> None:
        self._pieces: list[bytes] = []
        self._size_bytes = 0
        self._is_passing_over = False

    def feed(self, chunk: bytes) -> list[bytes]:
        """Return the lines that are complete now, without their line feeds; one too long comes as ``b""`` once."""
        if b"\n" not in chunk:
            self._keep(chunk)
            return []
        first, *rest = chunk.split(b"\n")
        self._keep(first)
        lines = [self._take()]
        tail = rest.pop()
        lines += rest
        self._keep(tail)
        return lines

    def flush(self) -> bytes:
        """Return the unfinished last line."""
        return self._take()

    def _keep(self, piece: bytes) -> None:
        if self._is_passing_over or not piece:
            return
        self._size_bytes += len(piece)
        if self._size_bytes > MAX_LINE_BYTES:
            self._is_passing_over = True
            self._pieces.clear()
        else:
            self._pieces.append(piece)

    def _take(self) -> bytes:
        line = b"" if self._is_passing_over else b"".join(self._pieces)
        self._pieces.clear()
        self._size_bytes = 0
        self._is_passing_over = False
        return line


def encode_line(message: Mapping[str, object]) -> bytes:
    """Return the message as one line of JSON with its line feed; lone surrogates are replaced."""
    return json.dumps(message, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace") + b"\n"
