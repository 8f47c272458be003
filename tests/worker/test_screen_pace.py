from __future__ import annotations

from agentmon.worker.screen_pace import RESTING_TICK_S, TICK_S, LookPace

NEVER = float("inf")


def next_look_of(pace: LookPace, *, due_at: float = NEVER, is_resting: bool = True, is_urgent: bool = False) -> float:
    return pace.next_look_at(due_at, is_resting=is_resting, is_urgent=is_urgent)


def rested(byte_counts: list[int]) -> LookPace:
    """Return the pace of an agent that has written so often without telling anything."""
    pace = LookPace()
    pace.note_look(0.0, is_new=True)
    for number, byte_count in enumerate(byte_counts, 1):
        pace.note_growth(byte_count)
        pace.note_look(float(number), is_new=False)
    return pace


def test_the_first_look_is_due_at_once() -> None:
    assert next_look_of(LookPace()) < 0.0


def test_an_agent_that_writes_nothing_is_looked_at_every_few_seconds() -> None:
    pace = rested([])

    assert next_look_of(pace) == 5.0
    assert next_look_of(pace, due_at=0.3) == 0.3


def test_output_that_keeps_telling_nothing_is_looked_at_ever_less_often_down_to_two_seconds() -> None:
    waits = []
    for count in (0, 1, 2, 3, 50, 5000):
        pace = rested([42] * count)
        pace.note_growth(42)
        waits.append(next_look_of(pace) - pace.looked_at)

    assert waits == [0.25, 0.5, 1.0, 2.0, 2.0, 2.0]


def test_more_output_at_once_than_before_is_looked_at_soon() -> None:
    pace = rested([42] * 9)
    pace.note_growth(42)
    pace.note_growth(500)

    assert next_look_of(pace) - pace.looked_at == 0.25


def test_a_look_that_finds_something_new_is_followed_by_others_soon() -> None:
    pace = rested([42] * 9)
    pace.note_growth(42)
    pace.note_look(20.0, is_new=True)
    pace.note_growth(42)

    assert next_look_of(pace) == 20.25


def test_an_agent_that_works_is_looked_at_as_often_as_it_writes() -> None:
    pace = rested([42] * 9)
    pace.note_growth(42)

    assert next_look_of(pace, is_resting=False) - pace.looked_at == 0.25
    assert next_look_of(pace, is_resting=False, is_urgent=True) == 9.1


def test_files_are_looked_at_seldom_only_while_the_agent_rests_and_nothing_was_new_for_a_while() -> None:
    pace = rested([42] * 9)

    assert pace.tick_s(9.0, is_resting=True) == RESTING_TICK_S
    assert pace.tick_s(9.0, is_resting=False) == TICK_S
    assert pace.tick_s(0.5, is_resting=True) == TICK_S
