"""What an agent's own screen asks, as the request that stands for it."""

from __future__ import annotations

import pytest

from agentmon.domain.activity import Activity
from agentmon.domain.conversation import ActivityNews
from agentmon.domain.danger import DangerRules
from agentmon.runners.screens.reading import ScreenText
from agentmon.worker.screen_news import ask_of


@pytest.mark.parametrize(
    ("drawn", "shown"),
    [
        ("╌" * 200, "╌" * 16),
        (" │ ╭" + "─" * 190 + "╮ │", " │ ╭" + "─" * 16 + "╮ │"),
        ("─" * 12, "─" * 12),
        ("print('" + "─" * 60 + "')", "print('" + "─" * 60 + "')"),
    ],
)
def test_what_is_drawn_across_the_whole_screen_is_shown_in_any_width(drawn: str, shown: str) -> None:
    news = ActivityNews(activity=Activity.WAITING, note="asks", source="rule")

    ask = ask_of(news, ScreenText.of("", ["before", drawn, "after"]), None, DangerRules(), at_ms=1)

    assert ask.detail.split("\n") == ["before", shown, "after"]
