"""A conversation with an agent over pipes: its protocol through an adapter, everything recorded before it is shown."""

from __future__ import annotations

import os
import time

from agentmon.runners.host.masking import mask, mask_text
from agentmon.runners.host.pane_typing import PaneTyping
from agentmon.runners.host.protocol_log import ProtocolLog
from agentmon.runners.host.rendering import Rendering, clean
from agentmon.runners.protocols.registry import make_adapter

TYPE_CHECKING = False
if TYPE_CHECKING:
    from agentmon.runners.host.agent import PipedAgent
    from agentmon.runners.host.control import Command
    from agentmon.runners.host.journal import Journal
    from agentmon.runners.host.output_log import OutputLog
    from agentmon.runners.host.pane import Pane
    from agentmon.runners.host.progress import Progress
    from agentmon.runners.host.spec import Spec
    from agentmon.runners.protocols.adapter import Event, Step

_READ_BYTES = 256 * 1024
_MAX_WAITING_BYTES = 4 * 1024 * 1024
_EXIT_GRACE_S = 5.0
"""How long an agent whose work is done and whose input is closed may take to end."""
_MAX_ENTRY_CHARACTERS = 850_000
"""Readers of the journal take lines of at most 1 MiB."""
_HINT = "type a line here to tell the agent something; ctrl+c interrupts it, ctrl+q leaves"


class Conversation:
    """Moves what an agent and its clients say, never waiting for either."""

    __slots__ = (
        "_adapter",
        "_agent",
        "_closed_input_at",
        "_has_ended",
        "_journal",
        "_outgoing",
        "_output",
        "_pane",
        "_pane_messages",
        "_progress",
        "_protocol",
        "_rendering",
        "_stderr_rest",
        "_typing",
        "_waits_since",
        "waited_s",
    )

    def __init__(
        self, spec: Spec, folder: str, agent: PipedAgent, journal: Journal, output: OutputLog, pane: Pane,
        progress: Progress,
    ) -> None:  # fmt: skip
        """Prepare to speak with an agent that has been started.

        Raises:
            OSError: ``protocol.jsonl`` cannot be created.
            ValueError: No adapter speaks the protocol.
        """
        self._agent = agent
        self._journal = journal
        self._output = output
        self._pane = pane
        self._progress = progress
        self._adapter = make_adapter(spec.conversation)
        self._protocol = ProtocolLog(os.path.join(folder, "protocol.jsonl"))
        self._rendering = Rendering(spec.working_dir)
        self._typing = PaneTyping()
        self._outgoing = bytearray()
        self._stderr_rest = b""
        self._closed_input_at = float("inf")
        self._has_ended = False
        self._pane_messages = 0
        self._waits_since: float | None = None
        self.waited_s = 0.0
        """How long it has waited for a person so far; a wait that goes on counts when it is over."""

    # What the supervisor asks of whatever holds the program's line

    @property
    def reads(self) -> list[int]:
        """Files to read from."""
        return [file for file in (self._agent.output, self._agent.errors) if file is not None]

    @property
    def writes(self) -> list[int]:
        """Files that something waits for."""
        return [self._agent.input] if self._agent.input is not None and self._outgoing else []

    @property
    def is_blocked(self) -> bool:
        """Whether the agent has to wait, because the disk does not take what it said."""
        return self._protocol.is_blocked or self._journal.is_behind

    @property
    def takes_keys(self) -> bool:
        """Whether there is room for more typing."""
        return len(self._outgoing) < _MAX_WAITING_BYTES

    @property
    def waits_for_person(self) -> bool:
        """Whether the agent can do nothing until somebody answers."""
        return self._waits_since is not None

    @property
    def next_step(self) -> float:
        """When ``is_overdue`` may change, on the monotonic clock."""
        return self._closed_input_at + _EXIT_GRACE_S

    @property
    def outcome(self) -> str | None:
        """How the newest turn ended; ``None`` before the first did."""
        return self._adapter.outcome or None

    @property
    def error(self) -> str | None:
        """Why it failed, for a person."""
        error = self._adapter.error
        return None if error is None else mask_text(error)

    def begin(self) -> None:
        """Say the first words."""
        at_ms = _now_ms()
        self._protocol.add_mark("start", at_ms)
        self._pane.note(_HINT)
        self._apply(self._adapter.start(at_ms), at_ms)

    def move(self, readable: list[int], writable: list[int], now: float) -> bool:
        """Read and write what can be; return whether anything came from the agent."""
        has_moved = False
        if self._agent.input is not None and self._agent.input in writable:
            self._write()
        if self._agent.output is not None and self._agent.output in readable:
            has_moved |= self._read_output(now)
        if self._agent.errors is not None and self._agent.errors in readable:
            has_moved |= self._read_errors(now)
        return has_moved

    def move_rest(self, now: float) -> bool:
        """Take what is left in the pipes, one batch; ``False`` when there is nothing."""
        has_moved = self._agent.output is not None and self._read_output(now)
        return (self._agent.errors is not None and self._read_errors(now)) or has_moved

    def type(self, keys: bytes) -> None:
        """Take what a person typed into the pane."""
        messages, is_interrupted = self._typing.take(keys)
        for text in messages:
            self._pane_messages += 1
            self._command({"id": f"pane-{self._pane_messages}", "type": "message", "text": text})
        if is_interrupted:
            self._pane_messages += 1
            self._command({"id": f"pane-{self._pane_messages}", "type": "interrupt"})
        self._pane.show(f"\r\x1b[K{self._typing.prompt}".encode(), time.monotonic(), is_line_by_line=True)

    def obey(self, command: Command) -> None:
        """Act on a command of a client."""
        if command.kind == "type":
            error = "this agent is spoken to in its protocol: send it a message"
            self._record({"kind": "command", "command_id": command.command_id, "was_obeyed": False, "error": error})
            return
        self._command(command.document)

    def resize(self, size: tuple[int, int]) -> None:
        """Take note of the pane's size, which no pipe has."""

    def advance(self, now: float) -> None:
        """Close the agent's input once its work is done and it has got everything."""
        if self._agent.input is not None and self._adapter.is_finished and not self._outgoing:
            self._agent.close_input()
            self._closed_input_at = now

    def is_overdue(self, now: float) -> bool:
        """Whether the agent's work is done and it does not end by itself."""
        return now >= self._closed_input_at + _EXIT_GRACE_S

    def finish(self) -> None:
        """Record what is held back; the agent says nothing any more."""
        self._show_errors(self._stderr_rest)
        self._stderr_rest = b""
        self._end_output()
        self._protocol.retry()

    def retry_storage(self) -> bool:
        """Write what the disk did not take; ``False`` when some of it still waits."""
        return self._protocol.retry()

    def throw_away(self) -> None:
        """Count what the disk did not take as left out, and what still comes as never said."""
        self._protocol.give_up()
        while self._agent.output is not None and self._drain(self._agent.output):
            pass

    # The protocol

    def _command(self, document: dict[str, object]) -> None:
        at_ms = _now_ms()
        self._protocol.add_command(document, at_ms)
        if self._agent.input is None:
            error = "the agent has finished: send it again to go on with the conversation"
            self._record({"kind": "command", "command_id": document.get("id"), "was_obeyed": False, "error": error})
            return
        self._apply(self._adapter.command(document, at_ms), at_ms)

    def _apply(self, step: Step, at_ms: int) -> None:
        if step.send:
            self._protocol.add_to_agent(step.send, at_ms)
            if self._agent.input is not None:
                self._outgoing += step.send
                self._write()
        for event in step.events:
            self._take(event)

    def _take(self, event: Event) -> None:
        kind = event.get("kind")
        if kind == "activity":
            is_waiting = event.get("activity") == "waiting"
            if is_waiting and self._adapter.is_finished:
                return  # it waits for nobody: its input is about to be closed
            self._note_waiting(is_waiting=is_waiting)
        if kind != "delta":
            self._record(event)
        self._show(mask_text(self._rendering.render(event)))

    def _note_waiting(self, *, is_waiting: bool) -> None:
        now = time.monotonic()
        if is_waiting and self._waits_since is None:
            self._waits_since = now
        elif not is_waiting and self._waits_since is not None:
            self.waited_s += now - self._waits_since
            self._waits_since = None

    def _record(self, event: Event) -> None:
        self._journal.add("agent_event", event=_bounded(mask(event)))

    def _show(self, text: str) -> None:
        if not text:
            return
        written = text.encode("utf-8", "replace")
        self._progress.add(written)
        self._output.append(written)
        shown = text.replace("\n", "\r\n")
        if self._typing.prompt:
            shown = f"\r\x1b[K{shown}\r\n{self._typing.prompt}"
        self._pane.show(shown.encode("utf-8", "replace"), time.monotonic(), is_line_by_line=True)

    # Pipes

    def _read_output(self, now: float) -> bool:
        del now
        if self._agent.output is None:
            return False
        try:
            chunk = os.read(self._agent.output, _READ_BYTES)
        except BlockingIOError:
            return False
        except OSError:
            chunk = b""
        if not chunk:
            self._end_output()
            self._agent.close_output()
            return False
        at_ms = _now_ms()
        self._protocol.add_from_agent(chunk, at_ms)
        self._apply(self._adapter.receive(chunk, at_ms), at_ms)
        return True

    def _end_output(self) -> None:
        if self._has_ended:
            return
        self._has_ended = True
        at_ms = _now_ms()
        self._protocol.add_mark("end", at_ms)
        self._apply(self._adapter.receive_end(at_ms), at_ms)

    def _read_errors(self, now: float) -> bool:
        del now
        if self._agent.errors is None:
            return False
        try:
            chunk = os.read(self._agent.errors, _READ_BYTES)
        except BlockingIOError:
            return False
        except OSError:
            chunk = b""
        if not chunk:
            self._agent.close_errors()
            return False
        whole, line_feed, rest = (self._stderr_rest + chunk).rpartition(b"\n")
        if len(rest) > _READ_BYTES:
            whole, line_feed, rest = whole + line_feed + rest, b"\n", b""
        self._stderr_rest = rest
        self._show_errors(whole + line_feed)
        return True

    def _show_errors(self, written: bytes) -> None:
        if written:
            text = clean(written.decode("utf-8", "replace"))
            self._show(mask_text(text if text.endswith("\n") else text + "\n"))

    def _write(self) -> None:
        try:
            while self._outgoing and self._agent.input is not None:
                with memoryview(self._outgoing) as waiting:
                    written = os.write(self._agent.input, waiting[:_READ_BYTES])
                del self._outgoing[:written]
        except BlockingIOError:
            pass
        except OSError:  # it listens no more
            self._outgoing.clear()

    def _drain(self, file: int) -> bool:
        try:
            chunk = os.read(file, _READ_BYTES)
        except OSError:
            return False
        self._output.give_up(len(chunk))
        return bool(chunk)


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


def _bounded(event: object) -> object:
    """Return the event with its longest texts cut, so that its entry is no longer than readers take."""
    for limit in (60_000, 10_000, 1_000):
        if _size(event) <= _MAX_ENTRY_CHARACTERS:
            return event
        event = _cut(event, limit)
    return event


def _size(value: object) -> int:
    """Return about how many characters the value has as JSON in ASCII."""
    if isinstance(value, str):
        return len(value) + 2 if value.isascii() and value.isprintable() else 6 * len(value) + 2
    if isinstance(value, dict):
        return sum(_size(name) + _size(part) + 4 for name, part in value.items()) + 2
    if isinstance(value, list | tuple):
        return sum(_size(part) + 2 for part in value) + 2
    return 24


def _cut(value: object, limit: int) -> object:
    if isinstance(value, str):
        return value if len(value) <= limit else value[: limit - 1] + "…"
    if isinstance(value, dict):
        return {name: _cut(part, limit) for name, part in list(value.items())[:1000]}
    if isinstance(value, list | tuple):
        return [_cut(part, limit) for part in value[:1000]]
    return value
