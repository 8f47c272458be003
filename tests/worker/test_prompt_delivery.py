from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from agentmon.runners.execution_folder import ExecutionFolder
from agentmon.runners.screens.judging import OUTPUT_SOURCE, Verdict
from agentmon.runners.screens.reading import ScreenText, box_rows
from agentmon.runners.screens.rules import find_rules
from agentmon.runners.screens.states import Finding, ScreenState
from agentmon.worker.prompt_delivery import (
    PROMPT_KEY,
    READY_WITHIN_S,
    Delivery,
    DeliveryStep,
    DeliverySteps,
    command_id,
    is_still_due,
    next_step,
    signs_of,
)

if TYPE_CHECKING:
    from pathlib import Path

RULES = find_rules("claude")
EMPTY_BOX = ["─" * 40, "❯ ", "─" * 40, "  ? for shortcuts"]


def screen_with(inside: str = "", *above: str) -> ScreenText:
    return ScreenText.of("", [*above, "─" * 40, f"❯ {inside}", "─" * 40, "  ? for shortcuts"])


def verdict_of(state: ScreenState | None, source: str = "rule claude/x") -> Verdict:
    return Verdict(finding=None if state is None else Finding(state=state, source=source))


def step_of(
    delivery: Delivery,
    screen: ScreenText,
    state: ScreenState | None,
    *,
    at: float,
    quiet_s: float = 1.0,
    source: str = "rule claude/x",
) -> DeliveryStep | None:
    return next_step(delivery, RULES, screen, verdict_of(state, source), quiet_s=quiet_s, at=at)


def test_a_prompt_is_pasted_when_the_agent_has_been_ready_for_a_while() -> None:
    delivery = Delivery(key=PROMPT_KEY, text="hi")

    steps = [step_of(delivery, screen_with(), ScreenState.READY, at=at) for at in (1.0, 1.5, 2.0)]

    assert steps == [None, None, DeliveryStep.PASTED]


def test_readiness_that_breaks_off_begins_anew() -> None:
    delivery = Delivery(key=PROMPT_KEY, text="hi")
    step_of(delivery, screen_with(), ScreenState.READY, at=1.0)
    step_of(delivery, screen_with(), ScreenState.DIALOG, at=1.5)

    assert step_of(delivery, screen_with(), ScreenState.READY, at=2.4) is None


def test_nothing_is_pasted_behind_what_a_person_has_begun_to_type() -> None:
    delivery = Delivery(key=PROMPT_KEY, text="hi")

    steps = [step_of(delivery, screen_with("my own"), ScreenState.READY, at=at) for at in (1.0, 9.0)]

    assert steps == [None, None]
    assert delivery.problem == "something else stands in its input box"


def test_an_agent_that_is_not_ready_in_time_is_told_of_and_still_waited_for() -> None:
    delivery = Delivery(key=PROMPT_KEY, text="hi")

    assert step_of(delivery, screen_with(), None, at=READY_WITHIN_S + 1) is None
    assert "not ready" in delivery.problem
    step_of(delivery, screen_with(), ScreenState.READY, at=100.0)
    assert step_of(delivery, screen_with(), ScreenState.READY, at=101.0) is DeliveryStep.PASTED


def test_a_dialog_may_stand_for_as_long_as_it_likes() -> None:
    delivery = Delivery(key=PROMPT_KEY, text="hi")

    step_of(delivery, screen_with(), ScreenState.DIALOG, at=10 * READY_WITHIN_S)
    step_of(delivery, screen_with(), None, at=10 * READY_WITHIN_S + 5)

    assert delivery.problem == ""


@pytest.mark.parametrize(
    "shown",
    [screen_with("hi th"), screen_with("[Pasted text #1 +20 lines]"), ScreenText.of("", ["hi there", *EMPTY_BOX])],
)
def test_a_pasted_text_is_submitted_once_it_is_seen_and_the_screen_is_quiet(shown: ScreenText) -> None:
    delivery = Delivery(key=PROMPT_KEY, text="hi there", step=DeliveryStep.PASTED, since=1.0)
    if "hi th" in "".join(shown.lines) and "hi there" not in "".join(shown.lines):
        delivery.text = "hi th"

    assert step_of(delivery, screen_with(), ScreenState.READY, at=2.0) is None
    assert step_of(delivery, shown, ScreenState.READY, at=2.0, quiet_s=0.1) is None
    assert step_of(delivery, shown, ScreenState.READY, at=2.5) is DeliveryStep.SUBMITTED


def test_a_paste_that_is_never_seen_is_not_submitted() -> None:
    delivery = Delivery(key=PROMPT_KEY, text="hi", step=DeliveryStep.PASTED, since=1.0)

    assert step_of(delivery, screen_with(), ScreenState.READY, at=60.0) is None
    assert "was not submitted" in delivery.problem


def test_what_the_screen_showed_before_is_no_sign_of_the_text() -> None:
    before = screen_with("", "❯ hi", "● hi")
    delivery = Delivery(key="1", text="hi", step=DeliveryStep.PASTED, seen_before=signs_of("hi", RULES, before))

    assert step_of(delivery, before, ScreenState.READY, at=2.0) is None
    assert step_of(delivery, screen_with("hi", "❯ hi", "● hi"), ScreenState.READY, at=2.0) is DeliveryStep.SUBMITTED


def test_an_agent_that_works_has_taken_the_text_and_mere_output_is_no_proof() -> None:
    delivery = Delivery(key=PROMPT_KEY, text="hi", step=DeliveryStep.SUBMITTED, since=1.0)
    bare = ScreenText.of("", ["✻ Thinking"])

    grows = step_of(delivery, bare, ScreenState.WORKING, at=1.5, source=OUTPUT_SOURCE)
    works = step_of(delivery, bare, ScreenState.WORKING, at=1.5)

    assert (grows, works) == (None, DeliveryStep.DONE)


@pytest.mark.parametrize("step", [DeliveryStep.PASTED, DeliveryStep.SUBMITTED])
@pytest.mark.parametrize("inside", ["hi", "[Pasted text #1 +20 lines]"])
def test_an_agent_that_works_while_its_box_shows_the_text_works_on_something_else(
    step: DeliveryStep, inside: str
) -> None:
    delivery = Delivery(key="c1", text="hi", step=step, since=1.0)

    assert step_of(delivery, screen_with(inside), ScreenState.WORKING, at=60.0) is None
    assert delivery.problem == ""


def test_a_box_that_was_emptied_since_has_given_the_text_away() -> None:
    delivery = submitted()

    assert step_of(delivery, screen_with(), ScreenState.READY, at=1.2, quiet_s=5.0) is None
    assert step_of(delivery, screen_with(), ScreenState.READY, at=1.5, quiet_s=0.1) is DeliveryStep.DONE


def test_a_text_that_another_worker_submitted_and_that_is_gone_from_the_box_was_taken() -> None:
    delivery = Delivery(key=PROMPT_KEY, text="hi", step=DeliveryStep.SUBMITTED, since=1.0)

    assert step_of(delivery, screen_with(), ScreenState.READY, at=1.0, quiet_s=0.0) is None
    assert step_of(delivery, screen_with("hi"), ScreenState.READY, at=1.5) is None
    assert step_of(delivery, screen_with(), ScreenState.READY, at=2.0) is DeliveryStep.DONE


NEW_LINE_SCREEN = ScreenText.of("", ["─" * 40, "❯ hi", "", "─" * 40, "  ? for shortcuts"])


def submitted(step: DeliveryStep = DeliveryStep.SUBMITTED) -> Delivery:
    return Delivery(key=PROMPT_KEY, text="hi", step=step, since=1.0, rows=box_rows(RULES, screen_with("hi")))


def test_a_return_key_that_became_a_line_feed_is_pressed_once_more_and_never_twice() -> None:
    delivery = submitted()

    assert step_of(delivery, NEW_LINE_SCREEN, ScreenState.READY, at=1.2, quiet_s=0.1) is None
    assert step_of(delivery, NEW_LINE_SCREEN, ScreenState.READY, at=1.5, quiet_s=0.4) is DeliveryStep.SUBMITTED_AGAIN
    again = submitted(DeliveryStep.SUBMITTED_AGAIN)
    assert step_of(again, NEW_LINE_SCREEN, ScreenState.READY, at=9.0) is None
    assert step_of(again, screen_with(), ScreenState.READY, at=9.0) is DeliveryStep.DONE


def test_a_box_that_only_stays_as_it_was_is_given_no_second_return_key_however_long_it_takes() -> None:
    delivery = submitted()

    assert step_of(delivery, screen_with("hi"), ScreenState.READY, at=60.0, quiet_s=59.0) is None
    assert "nothing shows that the agent took it" in delivery.problem


@pytest.mark.parametrize(
    ("state", "source"),
    [
        (ScreenState.WORKING, "rule claude/x"),
        (ScreenState.WORKING, OUTPUT_SOURCE),
        (ScreenState.PERMISSION, "rule claude/x"),
        (None, "rule claude/x"),
    ],
)
def test_an_agent_that_does_not_say_that_it_is_free_is_given_no_second_return_key(
    state: ScreenState | None, source: str
) -> None:
    step = step_of(submitted(), NEW_LINE_SCREEN, state, at=2.0, source=source)

    assert step is not DeliveryStep.SUBMITTED_AGAIN


def dialog_over(screen: ScreenText) -> ScreenText:
    return ScreenText.of("", [*screen.lines, "Do you want to proceed?", " ❯ 1. Yes"])


def test_no_key_goes_into_a_dialog_that_has_just_appeared() -> None:
    pasted = Delivery(key=PROMPT_KEY, text="hi", step=DeliveryStep.PASTED, since=1.0)

    assert step_of(pasted, dialog_over(screen_with("hi")), ScreenState.READY, at=2.0) is None
    assert step_of(submitted(), dialog_over(NEW_LINE_SCREEN), ScreenState.READY, at=2.0) is None


def test_a_worker_that_did_not_take_the_step_types_only_what_the_screen_still_calls_for() -> None:
    ready, asking = verdict_of(ScreenState.READY), verdict_of(ScreenState.PERMISSION)

    assert is_still_due(submitted(), RULES, screen_with("hi"), ready)
    assert not is_still_due(submitted(), RULES, screen_with(), ready)
    assert not is_still_due(submitted(), RULES, screen_with("hi"), asking)
    assert not is_still_due(submitted(), RULES, dialog_over(screen_with("hi")), ready)
    assert is_still_due(submitted(DeliveryStep.PASTED), RULES, screen_with(), ready)


def test_the_next_look_is_due_when_the_screen_has_been_quiet_for_long_enough() -> None:
    waiting = Delivery(key=PROMPT_KEY, text="hi", ready_since=10.0)

    assert waiting.due_at(RULES, quiet_since=10.0, at=10.2) == 10.0 + RULES.ready_s
    assert submitted().due_at(RULES, quiet_since=10.0, at=10.2) == pytest.approx(10.0 + RULES.settled_s)
    assert submitted().due_at(RULES, quiet_since=10.0, at=20.0) > 20.0


def test_steps_outlive_a_worker_and_not_a_try(tmp_path: Path) -> None:
    folder = ExecutionFolder(tmp_path)
    delivery = Delivery(key=PROMPT_KEY, text="hi", step=DeliveryStep.PASTED, seen_before=2)

    DeliverySteps(folder, 0).write(delivery)
    DeliverySteps(folder, 0).write(Delivery(key="c1", text="ho", step=DeliveryStep.DONE))

    assert DeliverySteps(folder, 0).read() == {
        PROMPT_KEY: (DeliveryStep.PASTED, 2),
        "c1": (DeliveryStep.DONE, 0),
    }
    assert DeliverySteps(folder, 1).read() == {}


@pytest.mark.parametrize("content", ["", "{", "[]", '{"attempt": 0}', '{"attempt": 0, "texts": {"a": 1}}'])
def test_damaged_steps_count_as_none(tmp_path: Path, content: str) -> None:
    (tmp_path / "deliveries.json").write_text(content)

    assert DeliverySteps(ExecutionFolder(tmp_path), 0).read() == {}


def test_each_step_has_a_command_of_its_own_whichever_worker_gives_it() -> None:
    steps = (DeliveryStep.PASTED, DeliveryStep.SUBMITTED, DeliveryStep.SUBMITTED_AGAIN)
    ids = [command_id("e1", 0, Delivery(key=PROMPT_KEY, text="hi", step=step)) for step in steps]

    assert ids == ["e1-0-prompt-paste", "e1-0-prompt-submit", "e1-0-prompt-submit-again"]
    assert command_id("e1", 1, Delivery(key=PROMPT_KEY, text="hi", step=steps[0])) not in ids
