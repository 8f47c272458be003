"""Billed answers out of a rollout of Codex, ``sessions/Y/M/D/rollout-<time>-<thread>.jsonl`` (0.30 to 0.171.0)."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

ASSUMED_MODEL: Final = "gpt-5"
"""What Codex used in September 2025, when its rollouts did not name the model."""

_FIELDS: Final = (
    "input_tokens",
    "cached_input_tokens",
    "cache_write_input_tokens",
    "output_tokens",
    "reasoning_output_tokens",
)
_MARKS: Final = (b'"token_usage_record"', b'"token_count"', b'"turn_context"', b'"session_meta"')
_MAX_COUNT: Final = 2**63 - 1

Totals = tuple[int, int, int, int, int]
"""Tokens of input with those from and for a cache, cached, written to a cache, output, and reasoning in it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BilledAnswer:
    """One billed answer, with the tokens split as in ``UsageNews``."""

    key: str
    """``response_id``; for older rollouts ``<thread>:<number of the answer, from 1>:<running total>``."""
    thread_id: str
    model: str
    is_model_assumed: bool
    provider: str
    """Empty when the rollout does not say."""
    prompt_tokens: int
    cache_read_tokens: int
    cache_write_5m_tokens: int
    response_tokens: int
    reasoning_tokens: int
    at_ms: int
    """UTC; 0 when the record has no time."""
    running_total: Totals
    """Of the thread after this answer; a fork goes on from the total of its parent."""

    @property
    def provisional_key(self) -> str:
        """The key under which a conversation told of this answer when the protocol did not name it."""
        return ":".join((self.thread_id, *map(str, self.running_total)))


def read_answer_keys(lines: Iterable[bytes], parent: Sequence[BilledAnswer] = ()) -> list[BilledAnswer]:
    """Return the billed answers that belong to the thread of the rollout, oldest first, each once.

    Lines that are broken, cut off or unknown are passed over.

    Args:
        lines: Of one rollout, from its beginning.
        parent: The answers of the thread that this one was forked from. Rollouts older than ``token_usage_record``
            copy them without a mark, so that they count for both threads when this is left out; newer ones need it not.
    """
    rollout = _Rollout(parent)
    for line in lines:
        if any(mark in line for mark in _MARKS):
            rollout.take(line)
    return rollout.answers


def find_parent_thread(lines: Iterable[bytes]) -> str | None:
    """Return the id of the thread that the rollout was forked from, or None."""
    for line in lines:
        if b'"session_meta"' in line:
            record = _parse(line)
            if record.get("type") == "session_meta":
                return _text(_object(record.get("payload")), "forked_from_id") or None
    return None


class _Rollout:
    """What was read of one rollout so far."""

    def __init__(self, parent: Sequence[BilledAnswer]) -> None:
        self.answers: list[BilledAnswer] = []
        self._inherited = {answer.running_total for answer in parent}
        self._thread_id = ""
        self._provider = ""
        self._model = ""
        self._keys: set[str] = set()
        self._total: Totals | None = None

    def take(self, line: bytes) -> None:
        record = _parse(line)
        payload = _object(record.get("payload"))
        match record.get("type"):
            case "session_meta" if not self._thread_id:
                self._thread_id = _text(payload, "id")
                self._provider = _text(payload, "model_provider")
            case "turn_context":
                self._model = _text(payload, "model") or self._model
            case "token_usage_record":
                self._take_record(payload, _at_ms(record))
            case "event_msg" if payload.get("type") == "token_count":
                self._take_count(_object(payload.get("info")), _at_ms(record))

    def _take_record(self, payload: dict[str, object], at_ms: int) -> None:
        key = _text(payload, "response_id")
        usage = payload.get("usage")
        owner = _text(payload, "thread_id") or self._thread_id
        total = _totals(payload.get("thread_token_usage"))
        if total is not None:
            self._total = total
        if owner == self._thread_id and key and isinstance(usage, dict):
            spent = _totals(usage)
            if spent is not None:
                self._add(key, spent, total or spent, at_ms)

    def _take_count(self, info: dict[str, object], at_ms: int) -> None:
        total = _totals(info.get("total_token_usage"))
        before = self._total
        if total is None or total == before:
            return
        self._total = total
        if total in self._inherited and not self.answers:
            return
        spent = _totals(info.get("last_token_usage"))
        if spent is None:
            is_falling = before is None or any(now < then for now, then in zip(total, before, strict=True))
            spent = total if is_falling or before is None else _difference(total, before)
        key = ":".join((self._thread_id, str(len(self.answers) + 1), *map(str, total)))
        self._add(key, spent, total, at_ms)

    def _add(self, key: str, spent: Totals, total: Totals, at_ms: int) -> None:
        if key in self._keys:
            return
        self._keys.add(key)
        input_tokens, cached, written, output, reasoning = spent
        cache_read = min(cached, input_tokens)
        cache_write = min(written, input_tokens - cache_read)
        self.answers.append(
            BilledAnswer(
                key=key,
                thread_id=self._thread_id,
                model=self._model or ASSUMED_MODEL,
                is_model_assumed=not self._model,
                provider=self._provider,
                prompt_tokens=input_tokens - cache_read - cache_write,
                cache_read_tokens=cache_read,
                cache_write_5m_tokens=cache_write,
                response_tokens=output,
                reasoning_tokens=min(reasoning, output),
                at_ms=at_ms,
                running_total=total,
            )
        )


def _parse(line: bytes) -> dict[str, object]:
    try:
        return _object(json.loads(line.decode("utf-8", "replace")))
    except (RecursionError, ValueError):
        return {}


def _object(value: object) -> dict[str, object]:
    return value if isinstance(value, dict) else {}


def _text(holder: dict[str, object], name: str) -> str:
    value = holder.get(name)
    return value if isinstance(value, str) else ""


def _totals(value: object) -> Totals | None:
    if not isinstance(value, dict) or not any(name in value for name in _FIELDS):
        return None
    counts = [value.get(name) for name in _FIELDS]
    first, second, third, fourth, fifth = (
        count if type(count) is int and 0 <= count <= _MAX_COUNT else 0 for count in counts
    )
    return first, second, third, fourth, fifth


def _difference(total: Totals, before: Totals) -> Totals:
    first, second, third, fourth, fifth = (now - then for now, then in zip(total, before, strict=True))
    return first, second, third, fourth, fifth


def _at_ms(record: dict[str, object]) -> int:
    try:
        at = datetime.fromisoformat(_text(record, "timestamp"))
    except ValueError:
        return 0
    at = at if at.tzinfo else at.replace(tzinfo=UTC)
    return max(0, round(at.timestamp() * 1_000)) if at.year > 1 else 0
