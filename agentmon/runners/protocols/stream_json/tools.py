"""Claude's tools: what each does to what, which calls are open, and how each ended."""

from __future__ import annotations

from agentmon.domain.claude_tools import MAX_SUMMARY_CHARACTERS, input_summary, result_text, tool_target, tool_type
from agentmon.domain.json_values import count_in, object_in, objects_in, one_line, ref_in, text_in
from agentmon.domain.letters import cut
from agentmon.runners.protocols.stream_json.diffs import diff_of_input, diff_of_result

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from agentmon.runners.protocols.adapter import Event

MAX_OPEN_CALLS = 256
MAX_FINISHED_CALLS = 4_096
MAX_PLAN_CHARACTERS = 40_000

_BLOCKED_KINDS = ("permission-rule", "automode-blocked", "automode-unavailable", "automode-parsing-error")
_DELETED = "deleted"
_TODO_STATUSES = ("pending", "in_progress", "completed", _DELETED)


class _Call:
    __slots__ = ("is_blocked", "kept_diff", "name", "parent", "plan", "started")

    def __init__(self, name: str, parent: str, started: Event, kept_diff: Event | None) -> None:
        self.name = name
        self.parent = parent
        self.started = started
        self.kept_diff = kept_diff
        self.is_blocked = False
        self.plan = ""


class CallBook:
    """The calls that are open; each is started once, may be told again with more detail, and ends once."""

    __slots__ = ("_finished", "_open", "_tasks")

    def __init__(self) -> None:
        self._open: dict[str, _Call] = {}
        self._finished: dict[str, None] = {}
        self._tasks = TaskList()

    def start(self, tool_ref: str, name: str, tool_input: Mapping[str, object], parent: str, key: str) -> list[Event]:
        """Begin a call, or tell it again when its input became clearer; nothing for one that is over."""
        if not tool_ref or not name or tool_ref in self._finished:
            return []
        present = self._open.get(tool_ref)
        event: Event = {
            "kind": "tool_started",
            "tool_ref": tool_ref,
            "tool_name": cut(name, 200),
            "type": tool_type(name),
            "target": tool_target(name, tool_input),
            "input_summary": input_summary(tool_input),
            "parent_tool_ref": parent or None,
            "answer_key": key or None,
        }
        if present is not None:
            event["parent_tool_ref"] = event["parent_tool_ref"] or present.started["parent_tool_ref"]
            event["answer_key"] = event["answer_key"] or present.started["answer_key"]
            event["tool_name"] = present.started["tool_name"]
            event["type"] = present.started["type"]
            if event == present.started or not tool_input:
                return []
            present.started = event
            return [dict(event)]
        events = []
        if len(self._open) >= MAX_OPEN_CALLS:
            oldest = next(iter(self._open))
            events += self.cancel(oldest, "Too many calls are open at once to follow this one.")
        kept_diff = diff_of_input(name, tool_input, tool_ref) if parent else None
        call = _Call(name, parent, event, kept_diff)
        if name == "ExitPlanMode":
            call.plan = cut(text_in(tool_input, "plan"), MAX_PLAN_CHARACTERS)
        self._open[tool_ref] = call
        if not parent:
            self._tasks.note_call(tool_ref, name, tool_input)
        return [*events, dict(event)]

    def plan(self, tool_ref: str) -> str:
        """Return the plan that an open call shows, or an empty text."""
        call = self._open.get(tool_ref)
        return "" if call is None else call.plan

    def block(self, tool_ref: str) -> None:
        """Remember that the call was not allowed."""
        call = self._open.get(tool_ref)
        if call is not None:
            call.is_blocked = True

    def finish(
        self,
        block: Mapping[str, object],
        told: Mapping[str, object],
        meta: Mapping[str, object],
        *,
        is_interrupted: bool,
    ) -> list[Event]:
        """End a call by its ``tool_result`` block, with what the program tells beside it.

        Args:
            block: The ``tool_result``.
            told: ``tool_use_result`` of the same message, when it is of this call.
            meta: The entry of ``tool_result_meta`` for it.
            is_interrupted: Whether a person has interrupted the turn.
        """
        tool_ref = ref_in(block, "tool_use_id")
        call = self._open.pop(tool_ref, None)
        if call is None:
            return []
        self._remember(tool_ref)
        status = _status(call, block, told, meta, is_interrupted=is_interrupted)
        output = result_text(block.get("content"))
        duration_ms = count_in(told, "durationMs") or count_in(told, "totalDurationMs") or count_in(told, "duration_ms")
        events: list[Event] = [
            {
                "kind": "tool_finished",
                "tool_ref": tool_ref,
                "status": status,
                "output_summary": cut(output, MAX_SUMMARY_CHARACTERS),
                "error": one_line(output, 500) or None if status != "success" else None,
                "duration_ms": duration_ms or None,
            }
        ]
        if status == "success":
            diff = diff_of_result(told, tool_ref) or (None if told else call.kept_diff)
            if diff is not None:
                if not told and output.startswith("File created"):
                    diff["change_type"] = "create"
                events.append(diff)
            if not call.parent:
                events += self._tasks.note_result(tool_ref, told, output)
        return events

    def cancel(self, tool_ref: str, error: str) -> list[Event]:
        """End an open call that nothing more will be heard of."""
        call = self._open.pop(tool_ref, None)
        if call is None:
            return []
        self._remember(tool_ref)
        status = "blocked" if call.is_blocked else "cancelled"
        return [{"kind": "tool_finished", "tool_ref": tool_ref, "status": status, "error": error}]

    def cancel_all(self, error: str, *, with_subagents: bool) -> list[Event]:
        """End the open calls; those of subagents that work on in the background only when asked to."""
        events: list[Event] = []
        gone = {tool_ref for tool_ref, call in self._open.items() if with_subagents or not call.parent}
        for tool_ref, call in list(self._open.items()):
            if tool_ref in gone or call.parent in gone:
                gone.add(tool_ref)
                events += self.cancel(tool_ref, error)
        return events

    def _remember(self, tool_ref: str) -> None:
        self._finished[tool_ref] = None
        if len(self._finished) > MAX_FINISHED_CALLS:
            del self._finished[next(iter(self._finished))]


def _status(
    call: _Call,
    block: Mapping[str, object],
    told: Mapping[str, object],
    meta: Mapping[str, object],
    *,
    is_interrupted: bool,
) -> str:
    kind = text_in(meta, "non_execution_kind")
    decision = text_in(object_in(meta, "permission_decision"), "decision")
    if call.is_blocked or decision == "reject" or kind in _BLOCKED_KINDS:
        return "blocked"
    if kind or decision == "cancelled" or told.get("interrupted") is True:
        return "cancelled"
    if block.get("is_error") is True:
        return "cancelled" if is_interrupted else "failed"
    return "success"


class TaskList:
    """The agent's plan, from ``TodoWrite`` as a whole or from ``TaskCreate`` and ``TaskUpdate`` step by step."""

    __slots__ = ("_steps", "_waiting")

    MAX_STEPS = 200
    MAX_WAITING = 64

    def __init__(self) -> None:
        self._steps: dict[str, tuple[str, str]] = {}
        self._waiting: dict[str, tuple[str, dict[str, tuple[str, str]]]] = {}
        """Call to its tool and the steps that it names; an empty text is a subject or status that it leaves alone."""

    def note_call(self, tool_ref: str, name: str, tool_input: Mapping[str, object]) -> None:
        """Take a call that changes the plan when it succeeds."""
        if len(self._waiting) >= self.MAX_WAITING:
            del self._waiting[next(iter(self._waiting))]
        if name == "TodoWrite":
            todos = objects_in(tool_input, "todos")[: self.MAX_STEPS]
            named = {str(place): _step(todo, "content") for place, todo in enumerate(todos, 1)}
        elif name == "TaskCreate":
            named = {"": _step(tool_input, "subject")}
        elif name == "TaskUpdate":
            named = {ref_in(tool_input, "taskId"): _step(tool_input, "subject")}
        else:
            return
        self._waiting[tool_ref] = (name, named)

    def note_result(self, tool_ref: str, told: Mapping[str, object], output: str) -> list[Event]:
        """Return the plan when the call changed it."""
        name, named = self._waiting.pop(tool_ref, ("", {}))
        if name == "TodoWrite":
            self._steps = {
                step_id: (text, "pending" if status in {"", _DELETED} else status)
                for step_id, (text, status) in named.items()
            }
        elif name == "TaskCreate":
            step_id = ref_in(object_in(told, "task"), "id") or _created_id(output)
            if not step_id or len(self._steps) >= self.MAX_STEPS:
                return []
            self._steps[step_id] = (named[""][0], "pending")
        elif name == "TaskUpdate":
            ((step_id, (text, status)),) = named.items()
            if step_id not in self._steps:
                return []
            before = self._steps[step_id]
            self._steps[step_id] = (text or before[0], status or before[1])
            if status == _DELETED:
                del self._steps[step_id]
        else:
            return []
        return [{"kind": "plan", "steps": [{"text": text, "status": status} for text, status in self._steps.values()]}]


def _created_id(output: str) -> str:
    words = output[:100].split()
    return words[1].removeprefix("#") if words[:1] == ["Task"] and len(words) > 1 else ""


def _step(told: Mapping[str, object], key: str) -> tuple[str, str]:
    status = text_in(told, "status")
    return one_line(text_in(told, key), 500), status if status in _TODO_STATUSES else ""
