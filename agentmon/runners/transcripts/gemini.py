"""Billed answers out of a chat of Gemini CLI, ``tmp/<project>/chats/session-<time>-<id>.jsonl`` (as of 0.61.0).

Its older releases wrote one JSON document, ``session-<time>-<id>.json``, which is read as well.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from agentmon.runners.protocols.json_values import MAX_COUNT, count_in, object_in, objects_in, ref_in, text_in

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

PROVIDER: Final = "google"
_MARKS: Final = (b'"tokens"', b'"sessionId"')


@dataclass(frozen=True, slots=True, kw_only=True)
class BilledAnswer:
    """One billed answer, with the tokens split as in ``UsageNews``."""

    key: str
    """``id`` of its record."""
    session_id: str
    """Empty when the chat does not say."""
    model: str
    """Empty when the record does not say."""
    provider: str
    prompt_tokens: int
    """With those that tools put in, and without those from a cache."""
    cache_read_tokens: int
    response_tokens: int
    reasoning_tokens: int
    at_ms: int
    """UTC; 0 when the record has no time."""

    @property
    def provisional_prefix(self) -> str:
        """How the keys begin under which a conversation told of this answer, together with others of its turn."""
        return f"{self.session_id}:"


def read_answer_keys(lines: Iterable[bytes]) -> list[BilledAnswer]:
    """Return the billed answers of the chat in the order in which they first came, each once.

    Of an answer that is written again the newest counts. One that was taken back is still billed. Lines that are
    broken, cut off or unknown are passed over.

    Args:
        lines: Of one chat, from its beginning.
    """
    chat = _Chat()
    document: list[bytes] = []
    for line in lines:
        if document or line.strip() == b"{":
            document.append(line)
        elif any(mark in line for mark in _MARKS):
            chat.take(_parse(line))
    if document:
        chat.take(_parse(b"".join(document)))
    return list(chat.answers.values())


class _Chat:
    """What was read of one chat so far."""

    def __init__(self) -> None:
        self.answers: dict[str, BilledAnswer] = {}
        self._session_id = ""

    def take(self, record: Mapping[str, object]) -> None:
        self._session_id = self._session_id or ref_in(record, "sessionId")
        for message in (record, *objects_in(record, "messages"), *objects_in(object_in(record, "$set"), "messages")):
            self._take_message(message)

    def _take_message(self, message: Mapping[str, object]) -> None:
        key, tokens = ref_in(message, "id"), object_in(message, "tokens")
        if not key or text_in(message, "type") != "gemini" or not any(count_in(tokens, name) for name in tokens):
            return
        sent, thought = count_in(tokens, "input"), count_in(tokens, "thoughts")
        cached = min(count_in(tokens, "cached"), sent)
        self.answers[key] = BilledAnswer(
            key=key,
            session_id=self._session_id,
            model=text_in(message, "model"),
            provider=PROVIDER,
            prompt_tokens=min(sent - cached + count_in(tokens, "tool"), MAX_COUNT),
            cache_read_tokens=cached,
            response_tokens=min(count_in(tokens, "output") + thought, MAX_COUNT),
            reasoning_tokens=thought,
            at_ms=_at_ms(message),
        )


def _parse(written: bytes) -> dict[str, object]:
    try:
        record = json.loads(written.decode("utf-8", "replace"))
    except (RecursionError, ValueError):
        return {}
    return record if isinstance(record, dict) else {}


def _at_ms(message: Mapping[str, object]) -> int:
    try:
        at = datetime.fromisoformat(text_in(message, "timestamp"))
    except ValueError:
        return 0
    at = at if at.tzinfo else at.replace(tzinfo=UTC)
    return max(0, round(at.timestamp() * 1_000)) if at.year > 1 else 0
