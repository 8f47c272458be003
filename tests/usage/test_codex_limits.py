from __future__ import annotations

import json
from typing import Final

import pytest

from agentmon.domain.limit_readings import ContextReading, LimitReading
from agentmon.usage.codex import CodexReader
from agentmon.usage.codex_limits import last_limits
from agentmon.usage.reading import GatheredReadings
from tests.usage.histories import SAMPLES, History, environ_of

CAPTURED: Final = SAMPLES / "captured"
AT: Final = "2026-11-27T21:18:13.000Z"
AT_MS: Final = 1_795_814_293_000
LIMITS: Final = {
    "limit_id": "codex",
    "primary": {"used_percent": 12.5, "window_minutes": 300, "resets_at": 1_795_823_893},
    "secondary": {"used_percent": 40, "window_minutes": 10_080, "resets_at": 1_796_214_893},
}
INFO: Final = {
    "total_token_usage": {"input_tokens": 900, "output_tokens": 100},
    "last_token_usage": {"input_tokens": 90, "output_tokens": 10, "total_tokens": 100},
    "model_context_window": 258_400,
}


def counted(*, at: str = AT, info: object = INFO, limits: object = LIMITS) -> bytes:
    payload = {"type": "token_count", "info": info, "rate_limits": limits}
    return (
        json.dumps({"timestamp": at, "type": "event_msg", "payload": payload}, separators=(",", ":")).encode() + b"\n"
    )


def test_the_last_event_tells_windows_and_context() -> None:
    told = last_limits(counted(limits={**LIMITS, "primary": None}) + counted(), "thread")

    assert told.limits == (
        LimitReading(
            account="codex",
            window="five_hour",
            window_minutes=300,
            used_percent=12.5,
            resets_at_ms=1_795_823_893_000,
            captured_at_ms=AT_MS,
        ),
        LimitReading(
            account="codex",
            window="seven_day",
            window_minutes=10_080,
            used_percent=40.0,
            resets_at_ms=1_796_214_893_000,
            captured_at_ms=AT_MS,
        ),
    )
    assert told.contexts == (ContextReading(session_ref="thread", tokens=100, limit_tokens=258_400, at_ms=AT_MS),)


def test_what_the_last_event_leaves_out_an_earlier_one_tells() -> None:
    told = last_limits(counted() + counted(info=None, limits=None) + counted(info=None), "thread")

    assert len(told.limits) == 2
    assert told.contexts[0].tokens == 100


def test_older_releases_say_in_how_many_seconds_a_window_ends() -> None:
    older = {"primary": {"used_percent": 3.0, "window_minutes": 299, "resets_in_seconds": 60}}

    (limit,) = last_limits(counted(limits=older), "thread").limits

    assert (limit.account, limit.window, limit.resets_at_ms) == ("codex", "five_hour", AT_MS + 60_000)


@pytest.mark.parametrize(
    "limits",
    [
        None,
        [],
        {"primary": {"used_percent": "12"}},
        {"primary": {"used_percent": True}},
        {"primary": {"used_percent": -1}},
        {"primary": {"used_percent": float("inf")}},
        {"primary": {"used_percent": 1e9}},
        {"primary": {"used_percent": 10**400}},
    ],
)
def test_damaged_limits_are_passed_over(limits: object) -> None:
    assert last_limits(counted(limits=limits), "thread").limits == ()


def test_what_a_person_or_a_tool_wrote_tells_nothing() -> None:
    said = json.dumps({"timestamp": AT, "type": "response_item", "payload": {"text": counted().decode()}}).encode()

    assert last_limits(said + b"\n", "thread").limits == ()
    assert last_limits(said.replace(b"\\", b"") + b"\n", "thread").limits == ()


def test_a_copied_history_is_no_news() -> None:
    begin = {"id": "child", "forked_from_id": "parent"}
    first = json.dumps({"timestamp": AT, "type": "session_meta", "payload": begin}).encode() + b"\n"

    copied = CodexReader().read(first + counted(), 0)
    reader = CodexReader(inherited=[(1, 0, 0, 1, 0)])
    own = reader.read(first + counted(), 0)

    assert (copied.limits, copied.contexts) == ((), ())
    assert len(own.limits) == 2
    assert own.contexts[0].session_ref == "child"


def test_the_context_of_a_subagent_is_not_that_of_its_parent() -> None:
    begin = {"id": "child", "parent_thread_id": "parent", "history_mode": "paginated", "source": {"subagent": {}}}
    first = json.dumps({"timestamp": AT, "type": "session_meta", "payload": begin}).encode() + b"\n"

    reading = CodexReader().read(first + counted(), 0)

    assert len(reading.limits) == 2
    assert reading.contexts == ()


def test_of_several_stretches_the_last_word_counts() -> None:
    gathered, reader = GatheredReadings(), CodexReader(thread_id="thread")
    changed = {**LIMITS, "secondary": None, "primary": {**LIMITS["primary"], "used_percent": 55.0}}  # type: ignore[dict-item]
    for chunk in (counted(), counted(limits=changed)):
        gathered.add(reader.read(chunk, 0))

    reading = gathered.take()

    assert [limit.used_percent for limit in reading.limits] == [55.0, 40.0]
    assert len(reading.contexts) == 1
    assert gathered.take().limits == ()


def test_the_captured_rollouts_tell_their_windows() -> None:
    history = History().look(environ_of(CAPTURED))

    assert history.limits[("codex", "codex", "five_hour")].used_percent == 12.5
    assert history.limits[("codex", "codex", "seven_day")].used_percent == 40.0
