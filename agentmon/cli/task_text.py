"""Tasks, executions and their events as lines for a person."""

import json
from collections.abc import Sequence
from datetime import datetime

from agentmon.domain.agents import Agent
from agentmon.domain.amounts import MoneyFormat, size_text
from agentmon.domain.any_command import ANY_COMMAND_SLUG
from agentmon.domain.audit import actor_name, event_sentence
from agentmon.domain.clock import in_zone
from agentmon.domain.events import TaskEvent
from agentmon.domain.executions import Execution
from agentmon.domain.plain_text import plain_line
from agentmon.domain.spending import spent_by
from agentmon.domain.tasks import Task

_VALUE_CHARACTERS = 120


def state_text(execution: Execution, now: datetime) -> str:
    """Return glyph and words of the execution's state."""
    state, words = execution.state_label(now)
    return f"{state.glyph} {words}"


def execution_line(execution: Execution, money: MoneyFormat, now: datetime, state: str = "") -> str:
    """Return an execution as one line, with its id at the end; ``state`` replaces the words for its state."""
    parts = [
        f"{state or state_text(execution, now):<18}",
        local_time(execution.started_at or execution.created_at),
        execution.elapsed_text(now),
        size_text(execution.log_byte_size),
        spent_by(execution).text(money),
        "" if execution.verification is None else execution.verification.text,
        f"log removed {local_time(execution.log_removed_at)}" if execution.log_removed_at is not None else "",
        execution.error or "",
        execution.id,
    ]
    return "  ".join(plain_line(part) for part in parts if part)


def event_line(event: TaskEvent, subject: str = "") -> str:
    """Return an event of the audit trail as one line: when, about what, who and what."""
    return f"{local_time(event.created_at)}  {subject}{actor_name(event.actor):<9} {event_sentence(event)}"


def local_time(moment: datetime) -> str:
    """Return the time of the person's own zone to the second."""
    return in_zone(moment).strftime("%Y-%m-%d %H:%M:%S")


def program_text(task: Task, agent: Agent | None) -> str:
    """Return what a task runs, as a person would write it; empty when it has no program."""
    if agent is None:
        return ""
    arguments = task.input_context.args
    words = arguments.get("argv")
    if agent.slug == ANY_COMMAND_SLUG and isinstance(words, Sequence) and not isinstance(words, str):
        return " ".join(json.dumps(str(word), ensure_ascii=False) if " " in str(word) else str(word) for word in words)
    shown = " ".join(f"{key}={_value_text(value)}" for key, value in arguments.items())
    return " ".join(part for part in (agent.slug, task.input_context.capability_key or "", shown) if part)


def _value_text(value: object) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return plain_line(text, max_characters=_VALUE_CHARACTERS)
