"""Tool calls: what each does to what, which are open, and how each ended."""

from __future__ import annotations

import json

from agentmon.domain.json_values import object_in, objects_in, one_line, ref_in, text_in
from agentmon.domain.letters import cut
from agentmon.domain.tool_kinds import MAX_TARGET_CHARACTERS, TARGET_KEYS, command_of, kind_type, named_target
from agentmon.runners.protocols.acp.diffs import shown_diff
from agentmon.runners.protocols.acp.messages import chunk_text
from agentmon.runners.protocols.conversation import INTERRUPTED

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from agentmon.runners.protocols.adapter import Event

MAX_OPEN_CALLS = 256
MAX_FINISHED_CALLS = 4_096
MAX_SUMMARY_CHARACTERS = 4_000
MAX_INPUT_CHARACTERS = 20_000
MAX_LONG_CHARACTERS = 40_000
MAX_DIFFS = 20
MAX_NAME_CHARACTERS = 60
DENIED = "The user does not allow this."
_INTERRUPTED_WORDS = ("cancelled by user", "aborted the command")
"""What Gemini and opencode write as the output of a command that was stopped, which they call completed."""


class Call:
    """One call, as far as the agent has told of it."""

    __slots__ = (
        "asked_texts", "diffs", "input", "input_text", "is_blocked", "kind", "locations", "name", "output", "started",
        "texts", "title", "tool_ref",
    )  # fmt: skip

    def __init__(self, tool_ref: str) -> None:
        self.tool_ref = tool_ref
        self.name = ""
        self.kind = ""
        self.title = ""
        self.input: dict[str, object] = {}
        self.input_text = ""
        self.locations: list[str] = []
        self.texts = ""
        self.asked_texts = ""
        """What was told to explain a request, and is no output."""
        self.diffs: list[Event] = []
        self.output = ""
        self.is_blocked = False
        self.started: Event = {}

    @property
    def type(self) -> str:
        """What it does; what the agent does not name executes."""
        return kind_type(self.kind)

    @property
    def command(self) -> str:
        """The command that it runs, or an empty text."""
        return command_of(self.input) or (self.title if self.kind == "execute" and not self.input else "")

    @property
    def target(self) -> str:
        """Path, command, URL or query."""
        if self.command:
            return cut(self.command, MAX_TARGET_CHARACTERS)
        if self.diffs:
            paths = dict.fromkeys([str(diff["path"]) for diff in self.diffs] + self._changed_paths())
            return cut(", ".join(paths), MAX_TARGET_CHARACTERS)
        named = named_target(self.input)
        if named:
            return named
        if self.locations and self.type in {"read", "write"}:
            return cut(", ".join(dict.fromkeys(self.locations)), MAX_TARGET_CHARACTERS)
        return one_line(self.title, MAX_TARGET_CHARACTERS)

    @property
    def is_cut(self) -> bool:
        """Whether its output says that it was stopped."""
        return any(words in (self.output or self.texts) for words in _INTERRUPTED_WORDS)

    def _changed_paths(self) -> list[str]:
        return self.locations if self.type == "write" else []

    def learn(self, told: Mapping[str, object]) -> None:
        """Take over what a ``tool_call``, a ``tool_call_update`` or a request tells; what it leaves out stays."""
        self.kind = cut(text_in(told, "kind"), 40) or self.kind
        title = cut(text_in(told, "title"), MAX_INPUT_CHARACTERS)
        if not self.name:
            self.name = _tool_name(told, self.tool_ref, title, self.kind)
        self.title = title or self.title
        given = object_in(told, "rawInput")
        if given:
            written = json.dumps(given, ensure_ascii=False)
            if len(written) <= MAX_INPUT_CHARACTERS:
                self.input, self.input_text = given, written
            else:
                keys = [key for key in ("command", "cmd", *TARGET_KEYS) if text_in(given, key)]
                self.input = {key: cut(text_in(given, key), MAX_LONG_CHARACTERS) for key in keys[:2]}
                self.input_text = cut(written, MAX_SUMMARY_CHARACTERS)
        if objects_in(told, "locations"):
            paths = [text_in(location, "path") for location in objects_in(told, "locations", 10)]
            self.locations = [cut(path, MAX_TARGET_CHARACTERS) for path in paths if path]
        self._learn_content(told)

    def _learn_content(self, told: Mapping[str, object]) -> None:
        blocks = objects_in(told, "content")
        if isinstance(told.get("content"), list):
            shown = (chunk_text(object_in(block, "content")) for block in blocks if block.get("type") == "content")
            self.texts = cut("\n".join(filter(None, shown)), MAX_SUMMARY_CHARACTERS)
        diffs = [shown_diff(block, self.tool_ref) for block in blocks[:MAX_DIFFS] if block.get("type") == "diff"]
        self.diffs = [diff for diff in diffs if diff is not None] or self.diffs
        raw = told.get("rawOutput")
        if isinstance(raw, str):
            self.output = cut(raw, MAX_SUMMARY_CHARACTERS)
        elif isinstance(raw, dict):
            found = text_in(raw, "output") or text_in(raw, "error") or text_in(raw, "formatted_output")
            self.output = cut(found, MAX_SUMMARY_CHARACTERS)

    def started_event(self) -> Event:
        """Return ``tool_started`` as it is known now."""
        return {
            "kind": "tool_started",
            "tool_ref": self.tool_ref,
            "tool_name": self.name or "a tool",
            "type": self.type,
            "target": self.target,
            "input_summary": cut(self.input_text, MAX_SUMMARY_CHARACTERS),
        }

    def finished_event(self, status: str, error: str | None) -> Event:
        """Return ``tool_finished``."""
        return {
            "kind": "tool_finished",
            "tool_ref": self.tool_ref,
            "status": status,
            "output_summary": self.output or (self.texts if self.texts != self.asked_texts else ""),
            "error": error,
        }


class CallBook:
    """The calls that are open; each is started once, may be told again with more detail, and ends once."""

    __slots__ = ("_finished", "_open")

    def __init__(self) -> None:
        self._open: dict[str, Call] = {}
        self._finished: dict[str, None] = {}

    def note_asked(self, told: Mapping[str, object]) -> tuple[list[Event], Call | None]:
        """Return as ``note`` does for a request: what it leaves out of the input is as it was told before."""
        call = self._open.get(ref_in(told, "toolCallId"))
        known = call.input if call is not None else {}
        asked = {**told, "rawInput": {**known, **object_in(told, "rawInput")}, "status": "pending"}
        events, call = self.note(asked, is_interrupting=False)
        if call is not None:
            call.asked_texts = call.texts
        return events, call

    def note(self, told: Mapping[str, object], *, is_interrupting: bool) -> tuple[list[Event], Call | None]:
        """Return what is new about the call, and the call as long as it is open."""
        tool_ref = ref_in(told, "toolCallId")
        if not tool_ref or tool_ref in self._finished:
            return [], None
        events: list[Event] = []
        call = self._open.get(tool_ref)
        if call is None:
            if len(self._open) >= MAX_OPEN_CALLS:
                events += self._finish(next(iter(self._open.values())), "cancelled", "Too many calls are open.")
            call = self._open[tool_ref] = Call(tool_ref)
        call.learn(told)
        started = call.started_event()
        if started != call.started:
            call.started = started
            events.append(started)
        status = text_in(told, "status")
        if is_interrupting and not call.is_blocked and (status == "failed" or (status == "completed" and call.is_cut)):
            events += self._finish(call, "cancelled", INTERRUPTED)
        elif status == "completed":
            events += call.diffs
            events += self._finish(call, "success", None)
        elif status == "failed":
            said = one_line(call.output or call.texts, 1_000) or "The call failed."
            events += self._finish(call, "blocked" if call.is_blocked else "failed", said)
        else:
            return events, call
        return events, None

    def find_open(self, tool_ref: str) -> Call | None:
        """Return the call when it is open."""
        return self._open.get(tool_ref)

    def block(self, tool_ref: str) -> None:
        """Take note that a person does not allow the call."""
        if tool_ref in self._open:
            self._open[tool_ref].is_blocked = True

    def end_all(self, reason: str) -> list[Event]:
        """Return the ends of all open calls: those that were denied are blocked, the others cancelled."""
        events: list[Event] = []
        for call in list(self._open.values()):
            is_blocked = call.is_blocked
            events += self._finish(call, "blocked" if is_blocked else "cancelled", DENIED if is_blocked else reason)
        return events

    def _finish(self, call: Call, status: str, error: str | None) -> list[Event]:
        del self._open[call.tool_ref]
        self._finished[call.tool_ref] = None
        if len(self._finished) > MAX_FINISHED_CALLS:
            del self._finished[next(iter(self._finished))]
        return [call.finished_event(status, error)]


def _tool_name(told: Mapping[str, object], tool_ref: str, title: str, kind: str) -> str:
    """Return the tool's name where the agent says it somewhere: the protocol itself has titles only."""
    meta = object_in(told, "_meta")
    for value in meta.values():
        name = text_in(value, "toolName") if isinstance(value, dict) else ""
        if name:
            return one_line(name, MAX_NAME_CHARACTERS)
    begin, mark, _ = tool_ref.partition("__")
    if mark and begin.isidentifier():
        return one_line(begin, MAX_NAME_CHARACTERS)
    if title and title.replace("-", "_").isidentifier():
        return one_line(title, MAX_NAME_CHARACTERS)
    return one_line(kind, MAX_NAME_CHARACTERS)
