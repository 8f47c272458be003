"""Delivering a text into an agent's own screen: readiness seen, pasted once, seen there, submitted once, seen at work.

An agent may take the return key for one more line of a text that it has just been given. Only when its box shows that
line, and it says that it is free, the key is pressed once more.

What was done stands in the execution's folder before it is done, and the host obeys each command id once: a worker that
dies in between leaves nothing that is pasted or submitted twice.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from agentmon.runners.execution_folder import read_whole, write_private_json
from agentmon.runners.screens.judging import OUTPUT_SOURCE
from agentmon.runners.screens.reading import box_rows, box_text, read_screen, read_title, shows_new_line

if TYPE_CHECKING:
    from collections.abc import Mapping

    from agentmon.runners.execution_folder import ExecutionFolder
    from agentmon.runners.screens.judging import Verdict
    from agentmon.runners.screens.reading import ScreenText
    from agentmon.runners.screens.rules import ScreenRules

PROMPT_KEY: Final = "prompt"
READY_WITHIN_S: Final = 60.0
_SHOWN_WITHIN_S: Final = 20.0
_TAKEN_WITHIN_S: Final = 20.0
_EMPTY_WITHIN_S: Final = 5.0
_LOOK_EVERY_S: Final = 1.0
_HEAD_CHARACTERS: Final = 24
_FILE: Final = "deliveries.json"


class DeliveryStep(StrEnum):
    """How far a text has come."""

    WAITING = "waiting"
    """The agent has not shown yet that it takes a text."""
    PASTED = "pasted"
    SUBMITTED = "submitted"
    SUBMITTED_AGAIN = "submitted again"
    """The first return key became a line feed in the agent's box."""
    DONE = "done"


_COMMAND_NAMES: Final = {
    DeliveryStep.PASTED: "paste",
    DeliveryStep.SUBMITTED: "submit",
    DeliveryStep.SUBMITTED_AGAIN: "submit-again",
}


@dataclass(slots=True, kw_only=True)
class Delivery:
    """One text on its way into one agent's screen."""

    key: str
    """``prompt``, or the id of the command that brought it."""
    text: str
    step: DeliveryStep = DeliveryStep.WAITING
    seen_before: int = 0
    """How often the screen showed signs of the text before it was pasted."""
    since: float = 0.0
    """When the step began, or when the agent was last held up by something of its own; monotonic."""
    ready_since: float | None = None
    """Since when the agent is ready for it without a break; monotonic."""
    problem: str = ""
    """Why it is not through; empty while nothing is wrong."""
    rows: tuple[str, ...] = ()
    """The agent's input box, and what is below it, when the text was submitted; none when another worker did it."""

    @property
    def is_prompt(self) -> bool:
        """Whether it is the first message."""
        return self.key == PROMPT_KEY

    @property
    def is_inside(self) -> bool:
        """Whether it was typed, and the agent has not been seen to take it."""
        return self.step in {DeliveryStep.PASTED, DeliveryStep.SUBMITTED, DeliveryStep.SUBMITTED_AGAIN}

    def due_at(self, rules: ScreenRules, *, quiet_since: float, at: float) -> float:
        """Return when the next step may be due although the agent writes nothing."""
        later = [at + _LOOK_EVERY_S]
        if self.is_inside:
            later.append(quiet_since + rules.settled_s)
        elif self.ready_since is not None:
            later.append(self.ready_since + (rules.ready_s if self.is_prompt else 0.0))
        return min((one for one in later if one > at), default=at)


class DeliverySteps:
    """The steps of all texts of one try, in the execution's folder."""

    def __init__(self, folder: ExecutionFolder, attempt: int) -> None:
        self._path = folder.path / _FILE
        self._attempt = attempt

    def read(self) -> Mapping[str, tuple[DeliveryStep, int]]:
        """Return by key how far each text had come, and what the screen had shown before; blocks."""
        try:
            return self._read()
        except OSError:
            return {}

    def _read(self) -> Mapping[str, tuple[DeliveryStep, int]]:
        try:
            document = json.loads(read_whole(self._path))
            if document["attempt"] != self._attempt:
                return {}
            return {key: (DeliveryStep(one["step"]), int(one["seen_before"])) for key, one in document["texts"].items()}
        except (FileNotFoundError, ValueError, KeyError, TypeError, AttributeError):
            return {}

    def write(self, delivery: Delivery) -> None:
        """Write how far the text has come; blocks.

        Raises:
            OSError: It cannot be written, or what stands there not be read, so that the step must not be taken.
        """
        texts = {key: {"step": step.value, "seen_before": seen} for key, (step, seen) in self._read().items()}
        texts[delivery.key] = {"step": delivery.step.value, "seen_before": delivery.seen_before}
        write_private_json(self._path, {"attempt": self._attempt, "texts": texts})


def next_step(
    delivery: Delivery, rules: ScreenRules, screen: ScreenText, verdict: Verdict, *, quiet_s: float, at: float
) -> DeliveryStep | None:
    """Return the step that is to be taken now; None when there is none yet, and ``problem`` says what is wrong.

    Args:
        delivery: Changed in place: its ``problem`` and ``since``.
        rules: Of the agent.
        screen: What it shows.
        verdict: What it does.
        quiet_s: For how long neither its screen nor its output has changed.
        at: The time now, monotonic.
    """
    match delivery.step:
        case DeliveryStep.WAITING:
            inside = box_text(rules, screen) if rules.box is not None else ""
            return DeliveryStep.PASTED if _when_ready(delivery, rules, inside, verdict, at=at) else None
        case DeliveryStep.PASTED:
            return _after_paste(delivery, rules, screen, verdict, quiet_s=quiet_s, at=at)
        case DeliveryStep.SUBMITTED | DeliveryStep.SUBMITTED_AGAIN:
            return _after_submission(delivery, rules, screen, verdict, quiet_s=quiet_s, at=at)
        case DeliveryStep.DONE:
            return None


def _after_paste(
    delivery: Delivery, rules: ScreenRules, screen: ScreenText, verdict: Verdict, *, quiet_s: float, at: float
) -> DeliveryStep | None:
    if _works_by_its_own_words(verdict) and not _is_inside(delivery, rules, screen):
        return DeliveryStep.DONE
    if _works_by_its_own_words(verdict) or _asks(rules, screen, verdict):
        # It works on something else; a key would go into that.
        delivery.since = at
    elif signs_of(delivery.text, rules, screen) > delivery.seen_before and quiet_s >= rules.settled_s:
        return DeliveryStep.SUBMITTED
    elif at - delivery.since > _SHOWN_WITHIN_S:
        delivery.problem = "it was typed, and the screen does not show it; it was not submitted"
    return None


def _after_submission(
    delivery: Delivery, rules: ScreenRules, screen: ScreenText, verdict: Verdict, *, quiet_s: float, at: float
) -> DeliveryStep | None:
    inside = box_text(rules, screen)
    if _works_by_its_own_words(verdict) and _is_inside(delivery, rules, screen):
        delivery.since = at
        return None
    if _works_by_its_own_words(verdict) or (verdict.state is not None and verdict.state.is_asking):
        return DeliveryStep.DONE
    # Where another worker submitted it, nobody saw what came of that; it is not in the box any more.
    is_past = not delivery.rows and quiet_s >= rules.settled_s
    if inside == "" and (is_past or quiet_s < at - delivery.since):
        return DeliveryStep.DONE
    is_left = inside and shows_new_line(delivery.rows, box_rows(rules, screen)) and quiet_s >= rules.settled_s
    if is_left and delivery.step is DeliveryStep.SUBMITTED and is_waiting_for_text(rules, screen, verdict):
        return DeliveryStep.SUBMITTED_AGAIN
    if at - delivery.since > _TAKEN_WITHIN_S:
        delivery.problem = "it was typed and submitted, and nothing shows that the agent took it"
    return None


def is_still_due(delivery: Delivery, rules: ScreenRules, screen: ScreenText, verdict: Verdict) -> bool:
    """Return whether what belongs to a step may be typed by a worker that did not take the step itself."""
    is_seen = delivery.step is DeliveryStep.PASTED or signs_of(delivery.text, rules, screen) > delivery.seen_before
    return is_seen and is_waiting_for_text(rules, screen, verdict)


def is_waiting_for_text(rules: ScreenRules, screen: ScreenText, verdict: Verdict) -> bool:
    """Return whether the agent does nothing and asks nothing, by any source."""
    return verdict.state is not None and verdict.state.is_free and not _asks(rules, screen, verdict)


def _asks(rules: ScreenRules, screen: ScreenText, verdict: Verdict) -> bool:
    """Return whether any source says that a key would be an answer, however new that is."""
    said = (verdict.finding, read_title(rules, screen), read_screen(rules, screen))
    return any(one is not None and one.state.is_asking for one in said)


def _when_ready(delivery: Delivery, rules: ScreenRules, inside: str | None, verdict: Verdict, *, at: float) -> bool:
    state = verdict.state
    if state is None or not state.is_free or inside is None:
        delivery.ready_since = None
        if not delivery.is_prompt or (state is not None and state.is_asking):
            # A person's answer, or the end of what it does now, takes as long as it takes.
            delivery.since = at
        elif at - delivery.since > READY_WITHIN_S:
            delivery.problem = f"it was not ready for it within {READY_WITHIN_S:g} s"
        return False
    if delivery.ready_since is None:
        delivery.ready_since = at
    age_s = at - delivery.ready_since
    if inside and age_s > _EMPTY_WITHIN_S:
        delivery.problem = "something else stands in its input box"
    return not inside and age_s >= (rules.ready_s if delivery.is_prompt else 0.0)


def _is_inside(delivery: Delivery, rules: ScreenRules, screen: ScreenText) -> bool:
    """Return whether the agent's input box shows the text, or what stands for it."""
    inside = box_text(rules, screen)
    head = _head_of(delivery.text)
    if not inside:
        return False
    return (bool(head) and head in inside) or any(mark.search(inside) for mark in rules.paste_marks)


def _head_of(text: str) -> str:
    return next((line.strip() for line in text.splitlines() if line.strip()), "")[:_HEAD_CHARACTERS]


def signs_of(text: str, rules: ScreenRules, screen: ScreenText) -> int:
    """Return how much of what the screen shows speaks for the text standing in the agent's input box."""
    shown = "\n".join(screen.lines)
    marks = sum(len(mark.findall(shown)) for mark in rules.paste_marks)
    inside = 1 if box_text(rules, screen) else 0
    head = _head_of(text)
    return marks + inside + (shown.count(head) if head else 0)


def command_id(execution_id: str, attempt: int, delivery: Delivery) -> str:
    """Return the id of the command that types what belongs to the step; the same from whichever worker."""
    return f"{execution_id}-{attempt}-{delivery.key}-{_COMMAND_NAMES[delivery.step]}"


def _works_by_its_own_words(verdict: Verdict) -> bool:
    finding = verdict.finding
    return finding is not None and finding.state.is_busy and finding.source != OUTPUT_SOURCE
