"""How often the progress of the output is reported."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import pytest

from agentmon.runners.host.report_pace import ReportPace

if TYPE_CHECKING:
    from collections.abc import Iterable


def _reports(lines_at: Iterable[float], until: float) -> list[float]:
    """Return when a host that looks every 10 ms reports lines that come at these times."""
    pace = ReportPace(0.0)
    pending = sorted(lines_at)
    reports = []
    has_news = False
    for step in range(round(until * 100)):
        now = step / 100
        while pending and pending[0] <= now:
            pace.note_output(now)
            del pending[0]
            has_news = True
        if has_news and now >= pace.next_report:
            pace.note_report(now)
            reports.append(now)
            has_news = False
    return reports


@pytest.mark.parametrize("interval_s", [0.01, 0.1, 0.5, 0.9])
def test_steady_output_is_reported_ever_more_seldom_down_to_every_two_seconds(interval_s: float) -> None:
    reports = _reports([number * interval_s for number in range(round(60 / interval_s))], until=60)

    gaps = [later - earlier for earlier, later in itertools.pairwise(reports)]
    assert reports[0] == 0.0
    assert gaps[0] <= 0.5 + interval_s
    assert all(1.99 <= gap <= 2.01 + interval_s for gap in gaps[4:-1])


def test_the_first_line_after_a_silence_is_reported_within_half_a_second() -> None:
    steady = [number / 10 for number in range(100)]

    reports = _reports([*steady, 11.2, 14.0], until=20)

    assert any(11.2 <= report <= 11.7 for report in reports)
    assert 14.0 in reports


def test_the_last_line_before_a_silence_is_reported_within_a_second() -> None:
    steady = [number / 10 for number in range(100)]

    reports = _reports(steady, until=20)

    assert steady[-1] <= reports[-1] <= steady[-1] + 1.01


def test_lines_that_come_seldom_are_reported_as_they_come() -> None:
    seldom = [0.0, 1.5, 3.0, 4.5, 6.0]

    assert _reports(seldom, until=8) == seldom
