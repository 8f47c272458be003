from __future__ import annotations

from dataclasses import replace

import pytest

from agentmon.domain.costs import CostSums
from agentmon.domain.limit_readings import (
    FIVE_HOUR,
    SEVEN_DAY,
    LimitSnapshot,
    LimitSource,
    window_minutes,
    window_name,
)
from agentmon.domain.usage_windows import (
    HOUR_MS,
    MINUTE_MS,
    SLICE_MS,
    UsageSlice,
    WindowOrigin,
    estimated_window,
    find_block,
    official_window,
)

MORNING_MS = 1_795_802_400_000
"""08:00 on 2026-11-27, UTC."""
SAID = LimitSnapshot(
    agent_slug="codex",
    account="codex",
    window=FIVE_HOUR,
    window_minutes=300,
    used_percent=37.5,
    resets_at_ms=MORNING_MS + 3 * HOUR_MS,
    captured_at_ms=MORNING_MS,
    seen_at_ms=MORNING_MS,
    source=LimitSource.TRANSCRIPT,
)
SOME = CostSums(answers=2, prompt_tokens=100, cost_nano=5)


def answers_at(*minutes: int) -> list[UsageSlice]:
    """One answer of a token at each of these minutes after the morning."""
    slices: list[UsageSlice] = []
    for minute in minutes:
        at_ms = MORNING_MS + minute * MINUTE_MS
        begun_ms = at_ms // SLICE_MS * SLICE_MS
        one = UsageSlice(
            begun_at_ms=begun_ms,
            first_at_ms=at_ms,
            last_at_ms=at_ms,
            sums=CostSums(answers=1, prompt_tokens=1),
        )
        if slices and slices[-1].begun_at_ms == begun_ms:
            one = replace(slices.pop(), last_at_ms=at_ms, sums=CostSums(answers=2, prompt_tokens=2))
        slices.append(one)
    return slices


@pytest.mark.parametrize(
    ("minutes", "now", "begun", "answers"),
    [
        ((10,), 11, 0, 1),
        ((59,), 299, 0, 1),
        ((59,), 300, None, 0),
        ((10, 20, 290), 295, 0, 3),
        ((10, 20, 310), 311, 300, 1),
        ((10, 20, 615), 616, 600, 1),
        ((10, 299, 301, 599, 601), 602, 600, 1),
        ((10, 200), 299, 0, 2),
    ],
)
def test_a_block_is_five_hours_from_the_full_hour_of_the_first_answer_after_a_pause(
    minutes: tuple[int, ...], now: int, begun: int | None, answers: int
) -> None:
    block = find_block(answers_at(*minutes), MORNING_MS + now * MINUTE_MS)

    if begun is None:
        assert block is None
    else:
        assert block is not None
        assert block.begun_at_ms == MORNING_MS + begun * MINUTE_MS
        assert block.ends_at_ms == block.begun_at_ms + 5 * HOUR_MS
        assert block.spent.answers == answers


def test_an_estimate_names_no_percentage() -> None:
    block = find_block(answers_at(10), MORNING_MS + HOUR_MS)

    window = estimated_window("claude", block)

    assert (window.origin, window.used_percent) == (WindowOrigin.ESTIMATE, None)
    assert window.resets_at_ms == MORNING_MS + 5 * HOUR_MS
    assert window.label == "5 hours"


def test_without_a_block_nothing_runs() -> None:
    window = estimated_window("claude", None)

    assert (window.begun_at_ms, window.resets_at_ms, window.spent) == (None, None, CostSums())


def test_what_the_vendor_said_holds_until_its_reset() -> None:
    window = official_window(SAID, SOME, MORNING_MS + HOUR_MS)

    assert window is not None
    assert (window.origin, window.used_percent) == (WindowOrigin.OFFICIAL, 37.5)
    assert window.begun_at_ms == MORNING_MS - 2 * HOUR_MS
    assert window.captured_at_ms == MORNING_MS
    assert (window.spent, window.is_stale, window.is_over) == (SOME, False, False)


def test_a_window_that_was_reset_is_over_and_unused() -> None:
    window = official_window(SAID, CostSums(), MORNING_MS + 3 * HOUR_MS)

    assert window is not None
    assert (window.is_over, window.used_percent, window.resets_at_ms) == (True, 0.0, None)
    assert not window.is_stale


def test_answers_after_the_reset_begin_a_window_of_which_nothing_was_said() -> None:
    assert official_window(SAID, SOME, MORNING_MS + 4 * HOUR_MS) is None


@pytest.mark.parametrize(
    ("said", "hours", "stale"),
    [
        (replace(SAID, resets_at_ms=None), 5, False),
        (replace(SAID, resets_at_ms=None), 6, True),
        (replace(SAID, window="spend_limit", window_minutes=None, resets_at_ms=None), 700, False),
        (replace(SAID, window="spend_limit", window_minutes=None, resets_at_ms=None), 800, True),
        (replace(SAID, resets_at_ms=MORNING_MS + 9 * HOUR_MS), 1, True),
        (replace(SAID, seen_at_ms=MORNING_MS + 4 * HOUR_MS, resets_at_ms=None), 6, False),
    ],
)
def test_what_is_older_than_its_window_says_so(said: LimitSnapshot, hours: int, stale: bool) -> None:
    window = official_window(said, CostSums(), MORNING_MS + hours * HOUR_MS)

    assert window is not None
    assert window.is_stale == stale


@pytest.mark.parametrize(
    ("minutes", "name"),
    [(300, FIVE_HOUR), (299, FIVE_HOUR), (10_080, SEVEN_DAY), (10_079, SEVEN_DAY), (60, "primary"), (None, "primary")],
)
def test_windows_are_named_by_their_length(minutes: int | None, name: str) -> None:
    assert window_name(minutes, "primary") == name


def test_the_length_is_known_of_windows_with_a_usual_name() -> None:
    assert window_minutes("five_hour") == 300
    assert window_minutes("seven_day_opus") == 10_080
    assert window_minutes("spend_limit") is None
