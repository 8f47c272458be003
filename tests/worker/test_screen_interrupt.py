from __future__ import annotations

import pytest

from agentmon.runners.screens.judging import OUTPUT_SOURCE, Verdict
from agentmon.runners.screens.states import Finding, ScreenState
from agentmon.worker.screen_interrupt import Interrupt

PRESSED = Interrupt(command_id="c1", pressed_at=10.0)


def verdict_of(state: ScreenState, source: str = "rule claude/x") -> Verdict:
    return Verdict(finding=Finding(state=state, source=source))


@pytest.mark.parametrize("state", [ScreenState.WORKING, ScreenState.PERMISSION, ScreenState.DIALOG])
def test_keys_after_which_all_is_as_before_had_no_effect(state: ScreenState) -> None:
    assert PRESSED.had_no_effect(verdict_of(state), same_since=4.0)


@pytest.mark.parametrize("state", [ScreenState.WORKING, ScreenState.PERMISSION])
def test_what_began_after_the_keys_is_not_interrupted(state: ScreenState) -> None:
    assert not PRESSED.had_no_effect(verdict_of(state), same_since=10.4)


def test_an_agent_that_is_free_or_unknown_or_only_writes_is_given_no_keys_again() -> None:
    assert not PRESSED.had_no_effect(verdict_of(ScreenState.READY), same_since=4.0)
    assert not PRESSED.had_no_effect(verdict_of(ScreenState.WORKING, OUTPUT_SOURCE), same_since=4.0)
    assert not PRESSED.had_no_effect(Verdict(finding=None), same_since=4.0)


def test_the_keys_of_the_second_time_have_an_id_of_their_own() -> None:
    assert (PRESSED.second_id, PRESSED.due_at) == ("c1-again", 11.5)
