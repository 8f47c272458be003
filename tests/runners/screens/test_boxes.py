"""The boxes of the real agents after a paste, after a line feed behind it, and after it was submitted."""

from __future__ import annotations

from pathlib import Path

import pytest

from agentmon.runners.screens.reading import ScreenText, box_rows, box_text, shows_new_line
from agentmon.runners.screens.rules import NO_RULES, find_rules

BOXES = Path(__file__).parent / "boxes"
AGENTS = ("claude", "codex", "gemini", "opencode")


def screen_of(agent: str, name: str) -> ScreenText:
    return ScreenText.of("", (BOXES / f"{agent}-{name}.txt").read_text().split("\n"))


@pytest.mark.parametrize("text", ["short", "long"])
@pytest.mark.parametrize("agent", AGENTS)
def test_a_line_feed_behind_what_was_pasted_is_seen(agent: str, text: str) -> None:
    rules = find_rules(agent)
    typed, later = screen_of(agent, f"{text}-typed"), screen_of(agent, f"{text}-new-line")

    assert box_text(rules, later)
    assert shows_new_line(box_rows(rules, typed), box_rows(rules, later))
    assert not shows_new_line(box_rows(rules, typed), box_rows(rules, typed))
    assert not shows_new_line(box_rows(rules, later), box_rows(rules, typed))


@pytest.mark.parametrize("agent", AGENTS)
def test_a_text_that_was_taken_leaves_no_line_feed(agent: str) -> None:
    rules = find_rules(agent)
    typed, later = screen_of(agent, "short-typed"), screen_of(agent, "short-submitted")

    assert box_text(rules, later) == ""
    assert not shows_new_line(box_rows(rules, typed), box_rows(rules, later))


def test_a_message_above_the_box_of_opencode_does_not_stand_in_it() -> None:
    box = ["  ┃", "  ┃", "  ┃  Build · mock-model mock", f"  ╹{'▀' * 40}"]
    screen = ScreenText.of("", ["  ┃", "  ┃  go #mock:slow", "  ┃", "", "", *box])

    assert box_text(find_rules("opencode"), screen) == ""
    assert box_rows(find_rules("opencode"), screen) == tuple(box)


def test_something_else_that_changes_below_the_box_is_no_line_feed() -> None:
    before = ("> text", "====", "  ? for help, 1", "", "  end")

    assert not shows_new_line(before, ("> text", "====", "  ? for help, 2", "", "  end"))
    assert not shows_new_line(before, ("> text", "====", "", "", "  end"))
    assert not shows_new_line(before, ("> text",))
    assert not shows_new_line((), ("> text", "", "===="))


def test_an_agent_without_a_box_has_no_rows() -> None:
    assert box_rows(NO_RULES, ScreenText.of("", ["> text"])) == ()
