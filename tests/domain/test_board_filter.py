from __future__ import annotations

import pytest

from agentmon.domain.board_filter import BoardFilter, CardState, parse_filter, require_known
from agentmon.domain.errors import UsageError


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("", BoardFilter()),
        ("login page", BoardFilter(words=("login", "page"))),
        (
            "login #Auth @claude !1",
            BoardFilter(words=("login",), labels=("auth",), agents=("claude",), priorities=(1,)),
        ),
        ("#38", BoardFilter(words=("#38",))),
        ("# @ ! is:fai", BoardFilter(labels=("",), agents=("",), unfinished=("!", "is:fai"))),
        ("!1-3", BoardFilter(priorities=(1, 2, 3))),
        ("!1,4 !2- !3-2", BoardFilter(priorities=(1, 4, 2, 2, 3))),
        ("!9 is:unknown !1-7 !now", BoardFilter(words=("!now",), unknown=("!9", "is:unknown", "!1-7"))),
        ("is:archived is:failed", BoardFilter(states=(CardState.FAILED,), is_archived=True)),
        ("is:needs-you IS:DUE", BoardFilter(states=(CardState.NEEDS_YOU, CardState.DUE))),
    ],
)
def test_every_word_is_read_by_its_sign(text: str, wanted: BoardFilter) -> None:
    assert parse_filter(text) == wanted


def test_what_is_too_long_for_a_filter_is_passed_over_and_refused_where_somebody_is_told() -> None:
    assert parse_filter("a" * 600 + " #b") == BoardFilter(words=("a" * 500,))
    with pytest.raises(UsageError, match="600 characters; 500 are the most"):
        require_known("a " * 300)
