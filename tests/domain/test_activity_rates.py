from __future__ import annotations

import pytest

from agentmon.domain.summaries import Activity, Spending


@pytest.mark.parametrize(
    ("successes", "failures", "rate", "percent"),
    [
        (0, 0, None, None),
        (3, 1, 0.75, 75),
        (0, 5, 0.0, 0),
        (5, 0, 1.0, 100),
        (1999, 1, 0.9995, 99),
        (1, 1999, 0.0005, 1),
    ],
)
def test_a_percent_never_hides_a_failure_or_a_success(
    successes: int, failures: int, rate: float | None, percent: int | None
) -> None:
    activity = Activity(operation_count=4000, successful_operations=successes, failed_operations=failures)

    assert (activity.success_rate, activity.success_percent) == (rate, percent)


def test_a_sum_of_activities_has_the_rate_of_all_calls() -> None:
    one = Activity(session_count=1, operation_count=3, successful_operations=3)
    other = Activity(session_count=2, operation_count=2, failed_operations=1, blocked_operations=1)

    total = Activity.of_all([one, other])

    assert (total.session_count, total.operation_count, total.blocked_operations) == (3, 5, 1)
    assert total.success_rate == 0.75
    assert Activity.of_all([]) == Activity()


def test_a_cost_is_unknown_only_when_no_answer_has_one() -> None:
    unknown = Spending(answers=2, unpriced_answers=2)

    assert unknown.total_cost_nano is None
    assert (unknown + Spending(answers=1, cost_nano=7)).total_cost_nano == 7
    assert Spending().total_cost_nano == 0
