"""An adapter's events into the news of a conversation: checked, bounded, and never an exception.

Field names and kinds are those of ``agentmon.domain.conversation``. Fields that an event lacks have their default;
fields that no kind knows are passed over.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeVar

from agentmon.domain.activity import Activity
from agentmon.domain.billing import Confidence
from agentmon.domain.changes import ChangeType
from agentmon.domain.conversation import (
    ActivityNews,
    AskChoice,
    AskClosedNews,
    AskKind,
    AskNews,
    AskOutcome,
    AskQuestion,
    CommandNews,
    ConversationNews,
    CostNews,
    DiffNews,
    MessageNews,
    NoticeNews,
    PlanNews,
    PlanStatus,
    PlanStep,
    SessionNews,
    ToolFinishedNews,
    ToolStartedNews,
    TurnEndedNews,
    TurnOutcome,
    TurnStartedNews,
    UsageNews,
)
from agentmon.domain.events import EventLevel
from agentmon.domain.json_values import is_deeper
from agentmon.domain.letters import cut
from agentmon.domain.operations import MessageRole, OperationStatus, OperationType
from agentmon.domain.plain_text import storable

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from enum import StrEnum

_MAX_REF: Final = 300
_MAX_WORDS: Final = 1000
_MAX_SUMMARY: Final = 4000
_MAX_DETAIL: Final = 40_000
_MAX_MESSAGE: Final = 1_000_000
_MAX_ENTRIES: Final = 500
_MAX_TOOL_INPUT: Final = 200_000
"""Characters as JSON; a longer or deeper input is left out. That, and one that cannot be stored as it is, cannot be
edited."""
_MAX_COUNT: Final = 10**12
"""Largest number of tokens, lines or milliseconds that is believed; a bigger one counts as this."""
_MAX_COST_NANO: Final = 10**15

_Words = TypeVar("_Words", bound="StrEnum")


def read_news(event: Mapping[str, object]) -> ConversationNews | None:
    """Return the news that an event holds, or None when it has an unknown kind or a field of the wrong form.

    Texts are cut to their bounds, numbers are brought within theirs; a reference that is too long is no reference.
    """
    kind = event.get("kind")
    build = _BUILDERS.get(kind) if isinstance(kind, str) else None
    if build is None:
        return None
    try:
        return build(_Fields(event))
    except ValueError:
        return None


@dataclass(frozen=True, slots=True)
class _Fields:
    """The fields of an event, asked for by their type.

    Raises (every method):
        ValueError: The value is missing or has another type.
    """

    document: Mapping[str, object]

    def ref(self, key: str) -> str:
        value = self.document.get(key)
        if not isinstance(value, str) or not value or len(value) > _MAX_REF:
            raise ValueError(key)
        return storable(value)

    def find_ref(self, key: str) -> str | None:
        return self.ref(key) if self.document.get(key) not in (None, "") else None

    def text(self, key: str, max_characters: int, default: str | None = "") -> str:
        value = self.document.get(key)
        value = default if value is None else value
        if not isinstance(value, str):
            raise ValueError(key)  # noqa: TRY004 - one error for every damage
        return cut(storable(value), max_characters)

    def exact_text(self, key: str, max_characters: int, default: str | None = "") -> str:
        """Return what a person decides about: what cannot be stored stands as its number."""
        value = self.document.get(key)
        if not isinstance(value, str):
            return self.text(key, max_characters, default)
        return cut(storable(value, shows_numbers=True), max_characters)

    def find_text(self, key: str, max_characters: int) -> str | None:
        return None if self.document.get(key) is None else self.text(key, max_characters)

    def flag(self, key: str, default: bool = False) -> bool:
        value = self.document.get(key)
        value = default if value is None else value
        if not isinstance(value, bool):
            raise ValueError(key)  # noqa: TRY004 - one error for every damage
        return value

    def count(self, key: str, maximum: int = _MAX_COUNT) -> int:
        value = self.document.get(key)
        value = 0 if value is None else value
        if isinstance(value, bool) or not isinstance(value, int):
            raise ValueError(key)  # noqa: TRY004 - one error for every damage
        return min(max(0, value), maximum)

    def find_count(self, key: str) -> int | None:
        return None if self.document.get(key) is None else self.count(key)

    def word(self, key: str, words: type[_Words]) -> _Words:
        value = self.document.get(key)
        if not isinstance(value, str):
            raise ValueError(key)  # noqa: TRY004 - one error for every damage
        return words(value)

    def parts(self, key: str) -> list[_Fields]:
        found = self._list(key)
        if not all(isinstance(part, dict) for part in found):
            raise ValueError(key)
        return [_Fields(part) for part in found if isinstance(part, dict)]

    def texts(self, key: str) -> tuple[str, ...]:
        found = self._list(key)
        if not all(isinstance(part, str) for part in found):
            raise ValueError(key)
        return tuple(cut(storable(part), _MAX_REF) for part in found if isinstance(part, str))

    def tool_input(self) -> Mapping[str, object]:
        value = self.document.get("tool_input")
        if value is None:
            return {}
        if not isinstance(value, dict):
            raise ValueError("tool_input")  # noqa: TRY004 - one error for every damage
        try:
            is_fitting = not is_deeper(value) and len(json.dumps(value, allow_nan=False)) <= _MAX_TOOL_INPUT
        except (TypeError, ValueError):
            return {}
        return {storable(name): _storable_part(part) for name, part in value.items()} if is_fitting else {}

    def _list(self, key: str) -> list[object]:
        value = self.document.get(key)
        value = [] if value is None else value
        if not isinstance(value, list | tuple):
            raise ValueError(key)  # noqa: TRY004 - one error for every damage
        return list(value[:_MAX_ENTRIES])


def _storable_part(part: object) -> object:
    """Return a part of a tool's input with every text in it as it can be stored."""
    if isinstance(part, str):
        return storable(part)
    if isinstance(part, list):
        return [_storable_part(one) for one in part]
    if isinstance(part, dict):
        return {storable(name): _storable_part(one) for name, one in part.items()}
    return part


def _session(fields: _Fields) -> ConversationNews:
    return SessionNews(
        session_ref=fields.find_ref("session_ref"),
        title=fields.find_text("title", _MAX_REF),
        model=fields.find_text("model", _MAX_REF),
        permission_mode=fields.find_text("permission_mode", _MAX_REF),
        agent_version=fields.find_text("agent_version", _MAX_REF),
        models=fields.texts("models"),
        permission_modes=fields.texts("permission_modes"),
        transcript_path=fields.find_text("transcript_path", _MAX_SUMMARY),
        cannot_resume=fields.find_text("cannot_resume", _MAX_WORDS),
        cannot_fork=fields.find_text("cannot_fork", _MAX_WORDS),
    )


def _activity(fields: _Fields) -> ConversationNews:
    return ActivityNews(
        activity=fields.word("activity", Activity),
        note=fields.text("note", _MAX_WORDS),
        source=fields.text("source", _MAX_REF),
    )


def _message(fields: _Fields) -> ConversationNews:
    return MessageNews(
        message_ref=fields.ref("message_ref"),
        role=fields.word("role", MessageRole),
        text=fields.text("text", _MAX_MESSAGE, None),
        continues=fields.flag("continues"),
        is_thinking=fields.flag("is_thinking"),
        parent_tool_ref=fields.find_ref("parent_tool_ref"),
    )


def _plan(fields: _Fields) -> ConversationNews:
    return PlanNews(
        steps=tuple(
            PlanStep(text=step.text("text", _MAX_SUMMARY), status=step.word("status", PlanStatus))
            for step in fields.parts("steps")
        )
    )


def _tool_started(fields: _Fields) -> ConversationNews:
    return ToolStartedNews(
        tool_ref=fields.ref("tool_ref"),
        tool_name=fields.text("tool_name", _MAX_REF, None),
        type=fields.word("type", OperationType),
        target=fields.text("target", _MAX_WORDS),
        input_summary=fields.text("input_summary", _MAX_SUMMARY),
        parent_tool_ref=fields.find_ref("parent_tool_ref"),
        answer_key=fields.find_ref("answer_key"),
    )


def _tool_finished(fields: _Fields) -> ConversationNews:
    return ToolFinishedNews(
        tool_ref=fields.ref("tool_ref"),
        status=fields.word("status", OperationStatus),
        output_summary=fields.text("output_summary", _MAX_SUMMARY),
        error=fields.find_text("error", _MAX_WORDS),
        duration_ms=fields.find_count("duration_ms"),
    )


def _diff(fields: _Fields) -> ConversationNews:
    return DiffNews(
        path=fields.text("path", _MAX_SUMMARY, None),
        change_type=fields.word("change_type", ChangeType),
        diff=fields.text("diff", _MAX_DETAIL),
        added_lines=fields.count("added_lines"),
        removed_lines=fields.count("removed_lines"),
        tool_ref=fields.find_ref("tool_ref"),
    )


def _ask(fields: _Fields) -> ConversationNews:
    tool_input = fields.tool_input()
    is_as_sent = tool_input == fields.document.get("tool_input")
    return AskNews(
        request_id=fields.ref("request_id"),
        ask_kind=fields.word("ask_kind", AskKind),
        tool_ref=fields.find_ref("tool_ref"),
        tool_name=fields.text("tool_name", _MAX_REF),
        type=None if fields.document.get("type") is None else fields.word("type", OperationType),
        target=fields.exact_text("target", _MAX_WORDS),
        title=fields.exact_text("title", _MAX_WORDS, None),
        detail=fields.exact_text("detail", _MAX_DETAIL),
        reason=fields.text("reason", _MAX_SUMMARY),
        tool_input=tool_input,
        input_digest=fields.text("input_digest", _MAX_REF),
        can_allow_for_session=fields.flag("can_allow_for_session"),
        can_edit_input=fields.flag("can_edit_input") and bool(tool_input) and is_as_sent,
        questions=tuple(_question(part) for part in fields.parts("questions")),
    )


def _question(fields: _Fields) -> AskQuestion:
    return AskQuestion(
        question=fields.text("question", _MAX_SUMMARY, None),
        header=fields.text("header", _MAX_REF),
        choices=tuple(
            AskChoice(
                key=choice.text("key", _MAX_WORDS, None),
                label=choice.text("label", _MAX_WORDS, None),
                description=choice.text("description", _MAX_SUMMARY),
            )
            for choice in fields.parts("choices")
        ),
        is_multiple=fields.flag("is_multiple"),
    )


def _ask_closed(fields: _Fields) -> ConversationNews:
    return AskClosedNews(
        request_id=fields.ref("request_id"),
        outcome=fields.word("outcome", AskOutcome),
        command_id=fields.find_ref("command_id"),
    )


def _usage(fields: _Fields) -> ConversationNews:
    return UsageNews(
        key=fields.ref("key"),
        model=fields.text("model", _MAX_REF),
        provider=fields.text("provider", _MAX_REF),
        prompt_tokens=fields.count("prompt_tokens"),
        cache_read_tokens=fields.count("cache_read_tokens"),
        cache_write_5m_tokens=fields.count("cache_write_5m_tokens"),
        cache_write_1h_tokens=fields.count("cache_write_1h_tokens"),
        response_tokens=fields.count("response_tokens"),
        reasoning_tokens=fields.count("reasoning_tokens"),
        latency_ms=fields.find_count("latency_ms"),
        error=fields.text("error", _MAX_WORDS),
        error_status=fields.find_count("error_status"),
        is_final=fields.flag("is_final", default=True),
        is_key_provisional=fields.flag("is_key_provisional"),
        confidence=fields.word("confidence", Confidence) if "confidence" in fields.document else Confidence.EXACT,
    )


def _cost(fields: _Fields) -> ConversationNews:
    return CostNews(cost_nano=fields.count("cost_nano", _MAX_COST_NANO))


def _turn_started(fields: _Fields) -> ConversationNews:
    return TurnStartedNews(prompt_refs=fields.texts("prompt_refs"))


def _turn_ended(fields: _Fields) -> ConversationNews:
    return TurnEndedNews(
        outcome=fields.word("outcome", TurnOutcome),
        text=fields.text("text", _MAX_SUMMARY),
        error=fields.find_text("error", _MAX_WORDS),
    )


def _notice(fields: _Fields) -> ConversationNews:
    return NoticeNews(
        level=fields.word("level", EventLevel),
        text=fields.text("text", _MAX_SUMMARY),
        topic=fields.text("topic", _MAX_REF),
    )


def _command(fields: _Fields) -> ConversationNews:
    return CommandNews(
        command_id=fields.ref("command_id"),
        was_obeyed=fields.flag("was_obeyed"),
        is_queued=fields.flag("is_queued"),
        error=fields.find_text("error", _MAX_WORDS),
    )


_BUILDERS: Final[Mapping[str, Callable[[_Fields], ConversationNews]]] = {
    "session": _session,
    "activity": _activity,
    "message": _message,
    "plan": _plan,
    "tool_started": _tool_started,
    "tool_finished": _tool_finished,
    "diff": _diff,
    "ask": _ask,
    "ask_closed": _ask_closed,
    "usage": _usage,
    "cost": _cost,
    "turn_started": _turn_started,
    "turn_ended": _turn_ended,
    "notice": _notice,
    "command": _command,
}
