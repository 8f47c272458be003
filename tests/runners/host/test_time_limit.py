"""The clock of the time limit: whatever holds the program up, and however much of it at a time, counts once."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

from hypothesis import given
from hypothesis import strategies as st

from agentmon.runners.host import pausing
from agentmon.runners.host.pausing import Pause
from agentmon.runners.host.time_limit import PERSON, TimeLimit

TIMEOUT_S = 100
STEPS = st.lists(
    st.tuples(st.sampled_from(["ask", "answer", "pause", "resume", "forget"]), st.integers(0, 50)), max_size=30
)


def pause_of(time_limit: TimeLimit) -> Pause:
    family: Any = SimpleNamespace(agent_pid=1, find_members=list, send=lambda *_: None)
    journal: Any = SimpleNamespace(add=lambda *_, **__: None)
    return Pause(family, journal, time_limit)


def reference(begun_at: int, steps: list[tuple[str, int]], now: int) -> float:
    """Return when the limit is reached, by going through the time second by second."""
    held: set[str] = set()
    steps_at: dict[int, list[str]] = {}
    for step, at in steps:
        steps_at.setdefault(at, []).append(step)
    ran = 0
    for second in range(begun_at, now + 1):
        for step in steps_at.get(second, []):
            cause = "person" if step in {"ask", "answer"} else "pause"
            (held.add if step in {"ask", "pause"} else held.discard)(cause)
        if second < now:
            ran += not held
    return float("inf") if held else now + TIMEOUT_S - ran


@given(STEPS, st.integers(0, 1000))
def test_time_in_which_it_is_paused_or_waits_for_a_person_counts_once(
    pauses: list[tuple[str, int]], begun_at: int
) -> None:
    time_limit = TimeLimit(TIMEOUT_S)
    pause = pause_of(time_limit)
    time_limit.begin(begun_at)
    now, steps = begun_at, []

    for step, later in pauses:
        now += later
        steps.append((step, now))
        with patch.object(pausing, "time", SimpleNamespace(monotonic=lambda at=now: at)):
            match step:
                case "ask":
                    time_limit.hold(PERSON, now)
                case "answer":
                    time_limit.let_go(PERSON, now)
                case "pause":
                    pause.begin(now, "p")
                case "resume":
                    pause.end("r")
                case _:
                    pause.forget(now)

        assert time_limit.reached_at == reference(begun_at, steps, now)


def test_time_in_which_the_host_was_halted_is_left_out_once() -> None:
    time_limit = TimeLimit(TIMEOUT_S)
    time_limit.begin(0.0)

    time_limit.note_wait(1.0, 2.0)
    assert time_limit.reached_at == TIMEOUT_S
    time_limit.note_wait(3.0, 7203.0)
    assert time_limit.reached_at == TIMEOUT_S + 7200
    time_limit.hold(PERSON, 7203.0)
    time_limit.note_wait(7204.0, 8203.0)
    time_limit.let_go(PERSON, 8203.0)
    assert time_limit.reached_at == TIMEOUT_S + 7200 + 1000


def test_a_pause_before_the_start_is_no_time_of_the_program() -> None:
    time_limit = TimeLimit(TIMEOUT_S)
    pause = pause_of(time_limit)

    pause.begin(5.0, "p")
    pause.forget(905.0)
    time_limit.begin(910.0)

    assert time_limit.reached_at == 1010.0


def test_what_has_no_limit_never_reaches_it() -> None:
    time_limit = TimeLimit(0)
    time_limit.begin(1.0)
    time_limit.hold(PERSON, 2.0)
    time_limit.let_go(PERSON, 3.0)

    assert time_limit.reached_at == float("inf")
