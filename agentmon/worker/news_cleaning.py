"""The news of a conversation without secrets, and what the stream and the cards keep of it."""

from __future__ import annotations

import json
from dataclasses import MISSING, fields, is_dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Final, TypeVar

from agentmon.domain.conversation import (
    AskClosedNews,
    AskNews,
    CommandNews,
    CostNews,
    DiffNews,
    MessageNews,
    NoticeNews,
    PlanNews,
    ToolFinishedNews,
    ToolStartedNews,
    TurnEndedNews,
    TurnOutcome,
    UsageNews,
)
from agentmon.domain.events import EventLevel, EventType
from agentmon.domain.letters import cut
from agentmon.domain.operations import MessageRole, OperationType
from agentmon.domain.plain_text import plain_line
from agentmon.domain.redaction import MASK, redact

if TYPE_CHECKING:
    from collections.abc import Mapping

    from agentmon.domain.conversation import ConversationNews

_NAMES_ONLY: Final = frozenset(
    {
        "session_ref",
        "message_ref",
        "parent_tool_ref",
        "tool_ref",
        "answer_key",
        "request_id",
        "input_digest",
        "command_id",
        "key",
        "prompt_refs",
    }
)
"""Fields that name something: an answer has to give them back as they are."""
_TOLD_CHARACTERS: Final = 2000
"""Most of a message that the stream keeps; the rest stands in ``messages``."""
_NOT_TOLD: Final = frozenset({"tool_input", "detail"})
"""Fields that the stream leaves to ``approvals``."""
_DOING: Final = {
    OperationType.READ: "Reading",
    OperationType.WRITE: "Writing",
    OperationType.EXECUTE: "Running",
    OperationType.QUERY: "Looking for",
}
_TOLD_IN_INBOX: Final = frozenset({"AskUserQuestion", "ExitPlanMode"})
"""Calls that ask a person, and do nothing else."""
_TYPES: Final[Mapping[type, EventType]] = {
    MessageNews: EventType.MESSAGE,
    PlanNews: EventType.PLAN_UPDATE,
    ToolStartedNews: EventType.TOOL_STARTED,
    ToolFinishedNews: EventType.TOOL_FINISHED,
    DiffNews: EventType.DIFF,
    AskNews: EventType.APPROVAL,
    AskClosedNews: EventType.APPROVAL,
    UsageNews: EventType.USAGE,
    CostNews: EventType.USAGE,
    NoticeNews: EventType.LOG,
}

_Value = TypeVar("_Value")

_known_defaults: Final[dict[type, tuple[tuple[str, object], ...]]] = {}


def clean_news(news: ConversationNews) -> ConversationNews:
    """Return the news with every secret masked; an input that was masked cannot be edited and sent back."""
    cleaned = _clean_fields(news)
    if isinstance(cleaned, AskNews) and cleaned.can_edit_input and MASK in json.dumps(dict(cleaned.tool_input)):
        return replace(cleaned, can_edit_input=False)
    return cleaned


def event_type_of(news: ConversationNews) -> EventType:
    """Return as what the stream shows the news."""
    if isinstance(news, TurnEndedNews) and news.outcome is TurnOutcome.FAILED:
        return EventType.ERROR
    return _TYPES.get(type(news), EventType.STATUS_CHANGE)


def event_level_of(news: ConversationNews) -> EventLevel | None:
    """Return how loud the news is."""
    match news:
        case NoticeNews():
            return news.level
        case TurnEndedNews(outcome=TurnOutcome.FAILED):
            return EventLevel.ERROR
        case TurnEndedNews(outcome=TurnOutcome.LIMIT):
            return EventLevel.WARN
        case CommandNews(was_obeyed=False, is_queued=False):
            return EventLevel.WARN
        case _:
            return None


def payload_of(kind: str, news: ConversationNews) -> dict[str, object]:
    """Return what the stream keeps of the news: its kind, and the fields that do not have their default."""
    payload: dict[str, object] = {"kind": kind}
    for name, default in _defaults(type(news)):
        content = getattr(news, name)
        if content != default and name not in _NOT_TOLD:
            payload[name] = _plain(content)
    if isinstance(news, MessageNews) and len(news.text) > _TOLD_CHARACTERS:
        payload["text"] = cut(news.text, _TOLD_CHARACTERS)
    return payload


def card_line(news: ConversationNews, *, max_characters: int) -> str | None:
    """Return the line by which a card shows the news; None for news that no card shows.

    A call that is aimed at nothing, such as one that writes down a plan, says less than the words before it.
    """
    match news:
        case ToolStartedNews() if news.target and news.tool_name not in _TOLD_IN_INBOX:
            return plain_line(f"{_DOING[news.type]} {news.target}".rstrip(), max_characters=max_characters)
        case MessageNews(role=MessageRole.ASSISTANT, is_thinking=False, continues=False, parent_tool_ref=None):
            first = next((line for line in news.text[:_TOLD_CHARACTERS].splitlines() if line.strip()), None)
            return None if first is None else plain_line(first.strip(), max_characters=max_characters)
        case _:
            return None


def _defaults(kind: type) -> tuple[tuple[str, object], ...]:
    """Return the fields of a dataclass with their defaults."""
    found = _known_defaults.get(kind)
    if found is None:
        found = tuple(
            (one.name, one.default if one.default_factory is MISSING else one.default_factory()) for one in fields(kind)
        )
        _known_defaults[kind] = found
    return found


def _clean_fields(value: _Value) -> _Value:
    changes = {}
    for name, _ in _defaults(type(value)):
        if name not in _NAMES_ONLY:
            content = getattr(value, name)
            cleaned = _clean(content)
            if cleaned is not content:
                changes[name] = cleaned
    return replace(value, **changes) if changes else value  # type: ignore[type-var] # a dataclass stays one


def _clean(content: object) -> object:
    if content is None or isinstance(content, StrEnum | int | float):
        return content
    if isinstance(content, str):
        cleaned = redact(content)
        return content if cleaned == content else cleaned
    if isinstance(content, list):
        return [_clean(part) for part in content]
    if isinstance(content, tuple):
        parts = tuple(_clean(part) for part in content)
        return content if all(one is other for one, other in zip(parts, content, strict=True)) else parts
    if isinstance(content, dict):
        return {redact(str(name)): _clean(part) for name, part in content.items()}
    return _clean_fields(content)


def _plain(content: object) -> object:
    if isinstance(content, StrEnum):
        return content.value
    if isinstance(content, tuple | list):
        return [_plain(part) for part in content]
    if is_dataclass(content):
        return {name: _plain(getattr(content, name)) for name, _ in _defaults(type(content))}
    return content
