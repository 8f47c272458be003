"""Items of all threads as events: each text once, each tool call started before it ends, and ended once."""

from __future__ import annotations

from agentmon.domain import codex_items
from agentmon.domain.json_values import MAX_REF_CHARACTERS, object_in, text_in, texts_in
from agentmon.domain.letters import cut
from agentmon.runners.protocols.app_server import items
from agentmon.runners.protocols.diffs import MAX_DIFF_CHARACTERS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from agentmon.runners.protocols.adapter import Event

MAX_OPEN_CALLS = 64
MAX_FINISHED = 4_096
MAX_SUBAGENTS = 256


class ItemLog:
    """Remembers which items are open and which are over; memory stays bounded."""

    __slots__ = ("_finished", "_open", "_parents")

    def __init__(self) -> None:
        self._open: dict[str, dict[str, object]] = {}
        self._finished: dict[str, None] = {}
        self._parents: dict[str, str] = {}

    def open_item(self, item_id: str) -> dict[str, object]:
        """Return the newest state of an open tool call, or an empty object."""
        return self._open.get(_ref(item_id), {})

    def parent_of(self, thread_id: str) -> str | None:
        """Return the call that made the thread of a subagent, when it is known."""
        return self._parents.get(thread_id)

    def start(self, item: dict[str, object], thread_id: str, answer_key: str | None = None) -> list[Event]:
        """Return what an ``item/started`` says; again for an open call when more is known of it."""
        if item.get("type") == "subAgentActivity":
            return self._start_subagent(item, thread_id)
        tool_ref = _ref(text_in(item, "id"))
        if not items.is_tool(item) or not tool_ref or tool_ref in self._finished:
            return []
        self._learn_subagents(item, tool_ref)
        known = self._open.get(tool_ref, {})
        event = items.tool_started(item, tool_ref, self.parent_of(thread_id))
        event["answer_key"] = object_in(known, "event").get("answer_key") or answer_key
        self._open[tool_ref] = {**_kept(item, thread_id), "event": event}
        if known.get("event") == event:
            return []
        return [event, *self._cancel_surplus()]

    def complete(self, item: dict[str, object], thread_id: str) -> list[Event]:
        """Return what an ``item/completed`` says: the message, or the end of the call and what it changed."""
        item_ref = _ref(text_in(item, "id"))
        if not item_ref or item_ref in self._finished:
            return []
        if items.is_text(item):
            self._finish(item_ref)
            return items.messages(item, item_ref, self.parent_of(thread_id))
        if not items.is_tool(item):
            return self.start(item, thread_id)
        events = self.start(item, thread_id) if item_ref not in self._open else []
        if item_ref not in self._open:
            return events
        self._learn_subagents(item, item_ref)
        finished = items.tool_finished(item, item_ref)
        if item.get("type") == "fileChange" and finished["status"] == "success":
            events += items.diffs(item, item_ref)
        self._finish(item_ref)
        return [*events, finished]

    def name_answer(self, thread_id: str, answer_key: str) -> list[Event]:
        """Return the open calls of the thread again that began before the key of their answer was known."""
        events: list[Event] = []
        for known in self._open.values():
            event = object_in(known, "event")
            if event and known.get("thread_id") == thread_id and event.get("answer_key") is None:
                event = {**event, "answer_key": answer_key}
                known["event"] = event
                events.append(event)
        return events

    def change_patch(self, item_id: str, changes: object) -> None:
        """Take note of what an open change of files looks like by now."""
        known = self._open.get(_ref(item_id))
        if known is not None:
            known |= _kept({"type": "fileChange", "changes": changes}, text_in(known, "thread_id"))

    def cancel(self, thread_id: str | None = None) -> list[Event]:
        """Return the ends of all open calls, or of those of one thread: they were cut short."""
        refs = [ref for ref, known in self._open.items() if thread_id in (None, known.get("thread_id"))]
        return [event for ref in refs for event in self._cancel(ref)]

    def end_subagent(self, thread_id: str, status: str) -> list[Event]:
        """Return the end of a call that stands for a whole subagent, when its thread has finished a turn."""
        tool_ref = self._parents.get(thread_id, "")
        if not self._open.get(tool_ref, {}).get("is_subagent"):
            return []
        self._finish(tool_ref)
        return [{"kind": "tool_finished", "tool_ref": tool_ref, "status": codex_items.status_of(status)}]

    def _start_subagent(self, item: dict[str, object], thread_id: str) -> list[Event]:
        """Codex tells some subagents by a mark alone: a call of its own then stands for all that the subagent does."""
        agent_thread_id = cut(text_in(item, "agentThreadId"), MAX_REF_CHARACTERS)
        tool_ref = _ref(f"agent-{agent_thread_id}")
        if not agent_thread_id or agent_thread_id in self._parents or tool_ref in self._finished:
            return []
        self._learn_subagent(agent_thread_id, tool_ref)
        self._open[tool_ref] = {"thread_id": thread_id, "is_subagent": True}
        return [
            {
                "kind": "tool_started",
                "tool_ref": tool_ref,
                "tool_name": "agent",
                "type": "execute",
                "target": cut(text_in(item, "agentPath"), codex_items.MAX_TARGET_CHARACTERS),
                "parent_tool_ref": self.parent_of(thread_id),
            },
            *self._cancel_surplus(),
        ]

    def _learn_subagents(self, item: dict[str, object], tool_ref: str) -> None:
        if item.get("type") == "collabAgentToolCall":
            for thread_id in texts_in(item, "receiverThreadIds", MAX_SUBAGENTS):
                self._learn_subagent(cut(thread_id, MAX_REF_CHARACTERS), tool_ref)

    def _learn_subagent(self, thread_id: str, tool_ref: str) -> None:
        if thread_id:
            self._parents.setdefault(thread_id, tool_ref)
            if len(self._parents) > MAX_SUBAGENTS:
                del self._parents[next(iter(self._parents))]

    def _cancel_surplus(self) -> list[Event]:
        return self._cancel(next(iter(self._open))) if len(self._open) > MAX_OPEN_CALLS else []

    def _cancel(self, tool_ref: str) -> list[Event]:
        self._finish(tool_ref)
        return [{"kind": "tool_finished", "tool_ref": tool_ref, "status": "cancelled"}]

    def _finish(self, item_ref: str) -> None:
        self._open.pop(item_ref, None)
        self._finished[item_ref] = None
        if len(self._finished) > MAX_FINISHED:
            del self._finished[next(iter(self._finished))]


def _ref(item_id: str) -> str:
    return cut(item_id, MAX_REF_CHARACTERS)


def _kept(item: dict[str, object], thread_id: str) -> dict[str, object]:
    """Return what a later request may need of the item, at most 100,000 characters of it."""
    kept: dict[str, object] = {"thread_id": thread_id}
    if item.get("type") == "fileChange" and len(codex_items.patch_text(item)) < MAX_DIFF_CHARACTERS:
        kept["changes"] = item.get("changes")
    elif item.get("type") == "fileChange":
        kept["changes"] = [{"path": codex_items.target_paths(item), "diff": codex_items.patch_text(item)}]
    elif item.get("type") == "commandExecution":
        kept["command"] = cut(text_in(item, "command"), MAX_DIFF_CHARACTERS)
    return kept
