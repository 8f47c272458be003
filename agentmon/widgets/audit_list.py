"""The audit trail of a task as sentences: who did what, and when."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from textual.containers import VerticalScroll
from textual.content import Content
from textual.reactive import reactive
from textual.widgets import Static

from agentmon.domain.clock import SystemClock
from agentmon.domain.events import Actor, ActorType, TaskEvent, TaskEventType
from agentmon.domain.executions import ExecutionStatus
from agentmon.domain.ids import LOCAL_USER_ID
from agentmon.domain.live_state import live_state
from agentmon.domain.tasks import TaskStatus
from agentmon.widgets.cells import even_line
from agentmon.widgets.guarded import Guarded
from agentmon.widgets.local_time import local_time_text

if TYPE_CHECKING:
    from textual.app import ComposeResult

    from agentmon.domain.clock import Clock

_LONGEST_PART: Final = 120
_TIME_CELLS: Final = 12
_ACTOR_CELLS: Final = 9
_FIELD_WORDS: Final = {
    "assignee_agent_id": "the program",
    "input_context": "what the program is given",
    "due_at": "the due date",
    "parent_task_id": "the parent",
}


def actor_name(actor: Actor) -> str:
    """Return who an actor is for the person at this machine."""
    match actor.type:
        case ActorType.USER:
            return "You" if actor.id in {None, LOCAL_USER_ID} else "A user"
        case ActorType.AGENT:
            return "An agent"
        case ActorType.SYSTEM:
            return "agentmon"


def event_sentence(event: TaskEvent) -> str:
    """Return what happened, without who did it: ``moved it from Todo to In progress (its run started)``."""
    sentence = _SENTENCES[event.event_type]
    return sentence if isinstance(sentence, str) else sentence(event.payload)


class AuditList(Guarded, VerticalScroll, can_focus=True):
    """Sentences, the newest at the bottom; stays at the bottom while it stands there."""

    DEFAULT_CSS = """
    AuditList {
        height: 1fr;
        & > Static { width: 1fr; height: auto; }
    }
    """

    history: reactive[tuple[TaskEvent, ...]] = reactive((), layout=False, repaint=False, init=False)
    """The newest last."""

    def __init__(self, *, clock: Clock | None = None, id: str | None = None) -> None:  # noqa: A002 - Textual's own name
        super().__init__(id=id)
        self._clock = clock or SystemClock()

    def compose(self) -> ComposeResult:
        """Yield the one text."""
        yield Static(self._content())

    def watch_history(self, before: tuple[TaskEvent, ...], history: tuple[TaskEvent, ...]) -> None:
        """Show the sentences, and follow them when the end was in view."""
        if before == history or not self.is_mounted:
            return
        is_at_end = self.scroll_offset.y >= self.max_scroll_y
        self.query_one(Static).update(self._content())
        if is_at_end:
            self.scroll_end(animate=False)

    def _content(self) -> Content:
        if not self.history:
            return Content.styled("Nothing happened yet.", "$text-muted")
        now = self._clock.now()
        lines = []
        for event in self.history:
            moment = local_time_text(event.created_at, now)
            actor = actor_name(event.actor)
            lines.append(
                Content.assemble(
                    (f"{moment:>{_TIME_CELLS}}  ", "$text-muted"),
                    (f"{actor:<{_ACTOR_CELLS}}", "bold" if event.actor.type is ActorType.USER else "$text-muted"),
                    even_line(event_sentence(event)),
                ),
            )
        return Content("\n").join(lines)


def _edited(payload: Mapping[str, object]) -> str:
    changed = payload.get("changed")
    names = [str(name) for name in changed] if isinstance(changed, Sequence) and not isinstance(changed, str) else []
    parts = []
    for name in ("title", "priority"):
        change = payload.get(name)
        if name not in names or not isinstance(change, Mapping):
            continue
        before, after = _part(change.get("from")), _part(change.get("to"))
        told = f"renamed it from “{before}” to “{after}”"
        parts.append(told if name == "title" else f"changed the priority from P{before} to P{after}")
        names.remove(name)
    if names:
        parts.append("changed " + ", ".join(_FIELD_WORDS.get(name, f"the {_part(name)}") for name in names))
    return "; ".join(parts) or "changed the task"


def _ended(payload: Mapping[str, object]) -> str:
    try:
        state = live_state(ExecutionStatus(str(payload.get("status"))))
    except ValueError:
        return "recorded the end of the run"
    exit_code = payload.get("exit_code")
    words = (
        f"recorded the end of the run: {state.with_cause(exit_code=exit_code if isinstance(exit_code, int) else None)}"
    )
    error = payload.get("error")
    return f"{words}, {_part(error)}" if error else words


def _with_cause(words: str, payload: Mapping[str, object]) -> str:
    cause = payload.get("cause")
    return f"{words} ({_part(cause)})" if cause else words


def _column(value: object) -> str:
    try:
        return TaskStatus(str(value)).label
    except ValueError:
        return _part(value)


def _part(value: object) -> str:
    return even_line(str(value), max_characters=_LONGEST_PART)


def _moved(payload: Mapping[str, object]) -> str:
    return _with_cause(f"moved it from {_column(payload.get('from'))} to {_column(payload.get('to'))}", payload)


def _dependency_added(payload: Mapping[str, object]) -> str:
    return f"made it wait for #{_part(payload.get('on'))}"


def _dependency_removed(payload: Mapping[str, object]) -> str:
    return f"took away that it waits for #{_part(payload.get('on'))}"


def _started(payload: Mapping[str, object]) -> str:
    retry_count = payload.get("retry_count")
    return f"started a run, retry {_part(retry_count)}" if retry_count else "started a run"


def _stop_requested(payload: Mapping[str, object]) -> str:
    return "asked to kill the run" if payload.get("type") == "kill" else "asked the run to stop"


def _requeued(payload: Mapping[str, object]) -> str:
    retry = f"retry {_part(payload.get('retry_count'))} of {_part(payload.get('max_retries'))}"
    return f"queued the run again, {retry}"


_SENTENCES: Final[Mapping[TaskEventType, str | Callable[[Mapping[str, object]], str]]] = {
    TaskEventType.TASK_CREATED: "made the task",
    TaskEventType.TASK_EDITED: _edited,
    TaskEventType.TASK_MOVED: _moved,
    TaskEventType.TASK_DELETED: "deleted the task",
    TaskEventType.TASK_RESTORED: "brought the task back",
    TaskEventType.DEPENDENCY_ADDED: _dependency_added,
    TaskEventType.DEPENDENCY_REMOVED: _dependency_removed,
    TaskEventType.EXECUTION_QUEUED: "queued a run",
    TaskEventType.EXECUTION_STARTED: _started,
    TaskEventType.EXECUTION_STOP_REQUESTED: _stop_requested,
    TaskEventType.EXECUTION_ENDED: _ended,
    TaskEventType.EXECUTION_REQUEUED: _requeued,
}
