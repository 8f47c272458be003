"""Billed answers out of messages of opencode: alike in its database and in the files of older releases (to 1.18.33).

A fork copies messages under new ids. An id begins with its time: that of a copy was made after the end of the answer.
"""

from __future__ import annotations

import re
from dataclasses import replace
from decimal import Decimal
from hashlib import blake2b
from typing import TYPE_CHECKING, Final

from agentmon.domain.billing import BilledAnswer, Confidence, FailedCall
from agentmon.usage.fields import confidence_of_writes, count_in, milliseconds_in, object_in, text_in

if TYPE_CHECKING:
    from collections.abc import Mapping

PARSER_VERSION: Final = 2
_MESSAGE_ID: Final = re.compile(r"msg_([0-9a-f]{12})")
_COUNTER_BITS: Final = 12
_TIME_SPAN_MS: Final = 1 << 36
"""An id has the last bits of the milliseconds of its time, and a counter."""
_LONGEST_ANSWER_MS: Final = 86_400_000
_UNENDED_MS: Final = 60_000
"""A copy of an answer without an end is taken for one when it is so much later."""
_NEAR_MS: Final = 1_000
"""How far the time in the id of an answer is from that in its record, at most."""
_MAX_DOLLARS: Final = 1_000_000
_MAX_ERROR: Final = 500


def is_answer(record: Mapping[str, object]) -> bool:
    """Return whether a model gave the message; newer tables say so beside the record."""
    return record.get("role", "assistant") == "assistant"


def created_ms(record: Mapping[str, object]) -> int:
    """Return when the message was begun, in UTC milliseconds; 0 when it does not say."""
    return milliseconds_in(object_in(record, "time"), "created")


def has_ended(record: Mapping[str, object]) -> bool:
    """Return whether nothing of the message changes any more."""
    return _completed_ms(record) > 0


def is_copy(message_id: str, record: Mapping[str, object]) -> bool:
    """Return whether a fork copied the message: its id is then younger than its end."""
    found = _MESSAGE_ID.match(message_id)
    # What a person said is whole at once.
    ended_ms = _completed_ms(record) or created_ms(record) + (_UNENDED_MS if is_answer(record) else _NEAR_MS)
    if found is None or not created_ms(record):
        return False
    later_ms = ((int(found[1], 16) >> _COUNTER_BITS) - ended_ms) % _TIME_SPAN_MS
    return 0 < later_ms < _TIME_SPAN_MS - _LONGEST_ANSWER_MS


def ids_of_original(record: Mapping[str, object]) -> tuple[str, str]:
    """Return between which ids that of the message lies of which this one is a copy."""
    low, high = (
        ((created_ms(record) + distance_ms) % _TIME_SPAN_MS) << _COUNTER_BITS for distance_ms in (-_NEAR_MS, _NEAR_MS)
    )
    return f"msg_{low:012x}", f"msg_{high:012x}"


def key_of_copy(record: Mapping[str, object]) -> str:
    """Return by what all copies of one message are known: its times, its model and its numbers."""
    facts = [record.get(name) for name in ("time", "tokens", "providerID", "modelID", "model", "cost")]
    return f"copy-{created_ms(record)}-{blake2b(repr(facts).encode('utf-8', 'replace'), digest_size=12).hexdigest()}"


def answer_in(
    record: Mapping[str, object], *, key: str, session_ref: str, is_subagent: bool, offset: int
) -> BilledAnswer | None:
    """Return what the message says was billed; None when that is nothing.

    Args:
        record: The message of a model.
        key: Its id, or what stands for that of an original that is gone.
        session_ref: The conversation that paid.
        is_subagent: Whether a subagent of that conversation asked for it.
        offset: Where it stands: the number of its row in a database, 0 in a file of its own.
    """
    tokens = object_in(record, "tokens")
    cache, model = object_in(tokens, "cache"), object_in(record, "model")
    thought = count_in(tokens, "reasoning")
    answer = BilledAnswer(
        key=key,
        session_ref=session_ref,
        cwd=text_in(object_in(record, "path"), "cwd"),
        provider=text_in(record, "providerID", 200) or text_in(model, "providerID", 200),
        model=text_in(record, "modelID", 200) or text_in(model, "id", 200),
        at_ms=_completed_ms(record) or created_ms(record),
        prompt_tokens=count_in(tokens, "input"),
        cache_read_tokens=count_in(cache, "read"),
        cache_write_5m_tokens=count_in(cache, "write"),
        cache_write_1h_tokens=0,
        response_tokens=count_in(tokens, "output") + thought,
        reasoning_tokens=thought,
        is_subagent=is_subagent,
        reported_cost_nano=_nano(record.get("cost")),
        offset=offset,
    )
    writes = confidence_of_writes(answer.model, answer.cache_write_5m_tokens)
    answer = replace(answer, confidence=writes if has_ended(record) else Confidence.INCOMPLETE)
    return answer if answer.key and answer.total_tokens else None


def failure_in(
    record: Mapping[str, object], *, key: str, session_ref: str, is_subagent: bool, offset: int
) -> FailedCall | None:
    """Return the call that brought no answer as the message says; None when it tells of none.

    The arguments are those of ``answer_in``.
    """
    told = object_in(record, "error")
    facts, model = object_in(told, "data"), object_in(record, "model")
    status = count_in(facts, "statusCode")
    if not key or not told or (not status and told.get("name") != "APIError"):
        return None
    return FailedCall(
        key=key,
        session_ref=session_ref,
        provider=text_in(record, "providerID", 200) or text_in(model, "providerID", 200),
        model=text_in(record, "modelID", 200) or text_in(model, "id", 200),
        at_ms=_completed_ms(record) or created_ms(record),
        error=text_in(facts, "message", _MAX_ERROR) or text_in(told, "name", _MAX_ERROR) or "failed",
        status=status or None,
        is_subagent=is_subagent,
        offset=offset,
    )


def _completed_ms(record: Mapping[str, object]) -> int:
    return milliseconds_in(object_in(record, "time"), "completed")


def _nano(dollars: object) -> int | None:
    """Return the dollars, as JSON has them, in nano-dollars; None when it knows none, which it writes as 0."""
    if isinstance(dollars, bool) or not isinstance(dollars, (int, float)) or not 0 < dollars < _MAX_DOLLARS:
        return None
    return round(Decimal(repr(dollars)) * 10**9)
