"""A conversation with an agent over pipes: its protocol through an adapter, everything recorded before it is shown."""

from __future__ import annotations

import os
import time

from agentmon.runners.host import agent as agents
from agentmon.runners.host.draft_log import DraftLog
from agentmon.runners.host.error_stream import ErrorStream
from agentmon.runners.host.masking import mask, mask_text
from agentmon.runners.host.pane_typing import PaneTyping
from agentmon.runners.host.protocol_log import ProtocolLog
from agentmon.runners.host.rendering import Rendering, clean
from agentmon.runners.host.time_limit import PERSON
from agentmon.runners.protocols.registry import make_adapter

TYPE_CHECKING = False
if TYPE_CHECKING:
    from agentmon.runners.host.control import Command
    from agentmon.runners.host.journal import Journal
    from agentmon.runners.host.output_log import OutputLog
    from agentmon.runners.host.pane import Pane
    from agentmon.runners.host.progress import Progress
    from agentmon.runners.host.spec import Spec
    from agentmon.runners.host.time_limit import TimeLimit
    from agentmon.runners.protocols.adapter import Event, Step

_READ_BYTES = 256 * 1024
_MAX_WAITING_BYTES = 4 * 1024 * 1024
"""An agent that does not take more than this is not listened to until it does: both sides stay bounded."""
_MAX_HELD_CHARACTERS = 64 * 1024
_MAX_LAST_READS = 16
"""More than pipes hold; what cannot be ended may write for ever."""
_QUIET_KINDS = frozenset({"activity", "command", "cost", "session", "turn_started", "usage"})
"""Kinds of which nothing is shown, so that they may come in the midst of a message."""
_MAX_ENTRY_CHARACTERS = 850_000
"""Readers of the journal take lines of at most 1 MiB."""
_PANE_COMMAND = "pane-"
"""How the ids of commands begin that nobody but the pane knows."""
_HINT = "type a line here to tell the agent something; ctrl+c interrupts it, ctrl+q leaves"


class Conversation:
    """Moves what an agent and its clients say, never waiting for either."""

    __slots__ = (
        "_adapter",
        "_agent",
        "_at_ms",
        "_closed_input_at",
        "_drafts",
        "_errors",
        "_has_ended",
        "_has_noted_full",
        "_held",
        "_journal",
        "_outgoing",
        "_output",
        "_pane",
        "_pane_messages",
        "_progress",
        "_protocol",
        "_rendering",
        "_spec",
        "_stderr_rest",
        "_time_limit",
        "_typing",
    )

    def __init__(
        self,
        spec: Spec,
        folder: str,
        journal: Journal,
        output: OutputLog,
        pane: Pane,
        progress: Progress,
        time_limit: TimeLimit,
    ) -> None:
        """Prepare to speak with the agent of the specification.

        Raises:
            OSError: ``protocol.jsonl`` cannot be created.
            ValueError: No adapter speaks the protocol.
        """
        self._spec = spec
        self._journal = journal
        self._output = output
        self._pane = pane
        self._progress = progress
        self._time_limit = time_limit
        self._agent = agents.PipedAgent(0, None, None, None)
        self._adapter = make_adapter(spec.conversation)
        self._errors = ErrorStream(os.path.join(folder, "errors.log"))
        self._protocol = ProtocolLog(os.path.join(folder, "protocol.jsonl"))
        self._drafts = DraftLog(os.path.join(folder, "drafts.jsonl"), spec.attempt)
        self._rendering = Rendering(spec.working_dir)
        self._typing = PaneTyping()
        self._outgoing = bytearray()
        self._at_ms = 0
        self._held = ""
        """What is not shown while somebody types a line."""
        self._has_noted_full = False
        self._stderr_rest = b""
        self._closed_input_at = float("inf")
        self._has_ended = False
        self._pane_messages = 0

    # What the supervisor asks of whatever holds the program's line

    @property
    def reads(self) -> list[int]:
        """Files to read from."""
        if len(self._outgoing) > _MAX_WAITING_BYTES:
            return []
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
    def hides_typing(self) -> bool:
        """Whether what is typed is not shown; it always is."""
        return False

    @property
    def takes_keys(self) -> bool:
        """Whether there is room for more typing."""
        return len(self._outgoing) < _MAX_WAITING_BYTES

    @property
    def next_step(self) -> float:
        """When ``advance`` has something to do or ``is_overdue`` changes, on the monotonic clock."""
        if self._is_done:
            return float("-inf")
        return min(self._drafts.next_write, self._closed_input_at + self._spec.exit_grace_s)

    @property
    def _is_done(self) -> bool:
        """Whether the agent's input can be closed: its work is done, or nobody hears it any more."""
        is_over = self._adapter.is_finished or self._has_ended
        return is_over and self._agent.input is not None and not self._outgoing

    @property
    def outcome(self) -> str | None:
        """How the newest turn ended; ``None`` when the agent ended without a word on that."""
        return None if self._adapter.has_broken_off else self._adapter.outcome or None

    @property
    def error(self) -> str | None:
        """Why it failed, for a person."""
        error = self._adapter.error
        if error is not None and self._adapter.has_broken_off:
            said = self._errors.reason or clean(self._adapter.stray_text).strip()
            error = f"{error.removesuffix('.')}: {said}" if said else error
        return None if error is None else mask_text(error)

    def start(self, environment: dict[str, str]) -> int:
        """Start the agent and return its pid once it runs.

        Raises:
            StartError: It cannot be started.
        """
        self._agent = agents.start_piped(self._spec, environment)
        return self._agent.pid

    def begin(self) -> None:
        """Say the first words."""
        at_ms = self._now_ms()
        self._protocol.add_start(at_ms)
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
        was_typing = bool(self._typing.prompt)
        messages, is_interrupted = self._typing.take(keys)
        start = "\r\n" if not was_typing and self._typing.prompt and self._rendering.is_mid_line else "\r\x1b[K"
        if was_typing or self._typing.prompt:
            self._draw(f"{start}{self._typing.prompt}")
        if not self._typing.prompt:
            self._draw(self._held)
            self._held = ""
        for text in messages:
            self._command(self._pane_command("message", text=text))
        if is_interrupted:
            self._command(self._pane_command("interrupt"))

    def _pane_command(self, kind: str, **payload: object) -> dict[str, object]:
        self._pane_messages += 1
        return {"id": f"{_PANE_COMMAND}{self._pane_messages}", "type": kind, **payload}

    def obey(self, command: Command) -> None:
        """Act on a command of a client."""
        if command.kind == "type":
            error = "this agent is spoken to in its protocol: send it a message"
            self._take({"kind": "command", "command_id": command.command_id, "was_obeyed": False, "error": error})
            return
        self._command(command.document)

    def resize(self, size: tuple[int, int]) -> None:
        """Take note of the pane's size, which no pipe has."""

    def advance(self, now: float) -> None:
        """Write what is due of messages that are not whole; close the agent's input once its work is done."""
        self._drafts.write(now)
        if self._is_done:
            self._agent.close_input()
            self._closed_input_at = now

    def renew_patience(self, now: float) -> None:
        """Count the grace anew: the agent was halted meanwhile."""
        if self._closed_input_at != float("inf"):
            self._closed_input_at = now

    def is_overdue(self, now: float) -> bool:
        """Whether the agent's work is done and it does not end by itself."""
        return now >= self._closed_input_at + self._spec.exit_grace_s

    def finish(self) -> None:
        """Record what is held back; the agent says nothing any more."""
        self._show_errors(self._stderr_rest)
        self._stderr_rest = b""
        self._end_output()
        self._end_drafts()
        self._drafts.remove()

    def retry_storage(self) -> bool:
        """Write what the disk did not take; ``False`` when some of it still waits."""
        return self._protocol.retry()

    def throw_away(self) -> None:
        """Leave out what the disk did not take, and hear what the agent said last, which tells how its work ended."""
        for _ in range(_MAX_LAST_READS):
            self._protocol.give_up()
            if not self.move_rest(time.monotonic()):
                break
            self._output.give_up()

    # The protocol

    def _command(self, document: dict[str, object]) -> None:
        if self._agent.input is None:
            error = "the agent has finished: send it again to go on with the conversation"
            self._take({"kind": "command", "command_id": document["id"], "was_obeyed": False, "error": error})
            return
        at_ms = self._now_ms()
        self._protocol.add_command(document, at_ms)
        self._apply(self._adapter.command(document, at_ms), at_ms)

    def _apply(self, step: Step, at_ms: int) -> None:
        if step.send:
            self._protocol.add_to_agent(step.send, at_ms)
            if self._agent.input is not None:
                self._outgoing += step.send
                self._write()
        for event in _merged(step.events):
            self._take(event)
        if self._protocol.is_full and not self._has_noted_full:
            self._has_noted_full = True
            self._journal.add("protocol_log_full")

    def _take(self, event: Event) -> None:
        kind = event.get("kind")
        if kind == "delta":
            self._take_piece(event)
            return
        if kind == "activity":
            is_waiting = event.get("activity") == "waiting"
            if is_waiting and self._adapter.is_finished:
                return  # it waits for nobody: its input is about to be closed
            self._note_waiting(is_waiting=is_waiting)
        masked = _bounded(mask(event))
        if kind == "command" and str(event.get("command_id")).startswith(_PANE_COMMAND):
            if not event.get("was_obeyed"):
                self._pane.note(str(masked.get("error") or "that cannot be sent now"))
        else:
            self._journal.add("agent_event", event=masked)
        if kind == "message" and not event.get("goes_on"):
            self._end_drafts(str(event.get("message_ref")))
        elif kind == "turn_ended":
            self._end_drafts()
        if kind not in _QUIET_KINDS:
            self._show(self._rendering.render(masked))

    def _take_piece(self, event: Event) -> None:
        text = self._drafts.add(event)
        if text:
            self._show(self._rendering.render({**event, "text": text}))

    def _end_drafts(self, message_ref: str | None = None) -> None:
        for rest in self._drafts.settle(self._journal.size_bytes, message_ref):
            self._show(self._rendering.render(rest))

    def _note_waiting(self, *, is_waiting: bool) -> None:
        note = self._time_limit.hold if is_waiting else self._time_limit.let_go
        note(PERSON, time.monotonic())

    def _show(self, text: str) -> None:
        if not text:
            return
        written = text.encode("utf-8", "replace")
        self._progress.add(written)
        self._output.append(written)
        if not self._typing.prompt:
            self._draw(text)
            return
        whole, line_feed, rest = (self._held + text).rpartition("\n")
        if len(rest) > _MAX_HELD_CHARACTERS:
            whole, line_feed, rest = whole + line_feed + rest, "\n", ""
        self._held = rest
        if line_feed:
            self._draw(f"\r\x1b[K{whole}\n{self._typing.prompt}")

    def _draw(self, text: str) -> None:
        if text:
            shown = text.replace("\n", "\r\n").encode("utf-8", "replace")
            self._pane.show(shown, time.monotonic(), is_line_by_line=True)

    def _now_ms(self) -> int:
        """Return the time for the adapter, UTC in milliseconds; it never goes back."""
        self._at_ms = max(self._at_ms, time.time_ns() // 1_000_000)
        return self._at_ms

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
        at_ms = self._now_ms()
        self._protocol.add_from_agent(chunk, at_ms)
        self._apply(self._adapter.receive(chunk, at_ms), at_ms)
        return True

    def _end_output(self) -> None:
        if self._has_ended:
            return
        self._has_ended = True
        at_ms = self._now_ms()
        self._protocol.add_end(at_ms)
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
            text = mask_text(written.decode("utf-8", "replace"))
            self._errors.append(text.encode("utf-8", "replace"))
            self._show(self._rendering.render_errors(text))

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


def _merged(events: list[Event]) -> list[Event]:
    """Return the events with pieces of one message that follow each other as one piece."""
    merged: list[Event] = []
    pieces: list[str] = []
    for event in events:
        newest = merged[-1] if merged else {}
        is_piece = event.get("kind") == "delta"
        if is_piece and newest.get("kind") == "delta" and newest.get("message_ref") == event.get("message_ref"):
            pieces.append(str(event.get("text") or ""))
            continue
        if pieces:
            newest["text"] = str(newest.get("text") or "") + "".join(pieces)
            pieces.clear()
        merged.append(dict(event) if is_piece else event)
    if pieces:
        merged[-1]["text"] = str(merged[-1].get("text") or "") + "".join(pieces)
    return merged


def _bounded(masked: object) -> Event:
    """Return the event with its longest texts cut, so that its entry is no longer than readers take."""
    event: Event = masked if isinstance(masked, dict) else {}
    for limit in (60_000, 10_000, 1_000):
        if _size(event) <= _MAX_ENTRY_CHARACTERS:
            break
        event = {name: _cut(part, limit) for name, part in event.items()}
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
