"""``agentmon summary`` over a home with imported history and what a demo agent did."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest

from tests.cli.stored_rows import change_rows
from tests.usage.histories import SAMPLES

if TYPE_CHECKING:
    from tests.cli.command_lines import CommandLine


@pytest.fixture(scope="module")
def worked(cli: CommandLine) -> CommandLine:
    """A command line in whose home there is history, and some tool calls of a session of it."""
    assert "nothing was done yet" in cli("summary").stderr
    assert "nothing was done yet" in cli("summary", "--projects").stderr
    for name in ("claude", "codex"):
        shutil.copytree(SAMPLES / name, cli.folder / f".{name}")
    assert cli("costs", "import").code == 0
    for place, (kind, status) in enumerate([("read", "success"), ("read", "failed"), ("write", "blocked")]):
        change_rows(
            cli,
            "INSERT INTO operations (id, session_id, tool_name, type, target, status, started_at, day_local, "
            "created_at, updated_at) SELECT ?, id, 'Tool', ?, '', ?, started_at, day_local, started_at, started_at "
            "FROM sessions WHERE workspace = '/home/dev/webshop' AND day_local = '2026-11-20' "
            "ORDER BY session_ref LIMIT 1",
            f"call-{place}",
            kind,
            status,
        )
    return cli


def test_the_table_of_days_ends_in_its_sums(worked: CommandLine) -> None:
    lines = worked("summary", "--since", "2026-11-20", "--until", "2026-11-20").stdout.splitlines()

    assert lines[0].split() == ["DAY", "SESSIONS", "TOOL", "CALLS", "OK", "BLOCKED", "TOKENS", "COST"]
    assert lines[1].split()[0] == "2026-11-20"
    assert "50 %" in lines[1]
    assert lines[1].split()[1:] == lines[2].split()[1:]
    assert lines[-1] == "Days of UTC."
    assert len({len(line) for line in lines[:3]}) == 1


def test_the_sums_are_those_of_the_costs(worked: CommandLine) -> None:
    for period, list_name, day_name in (
        ("day", "daily", "date"),
        ("week", "weekly", "week"),
        ("month", "monthly", "month"),
    ):
        summary = worked("summary", "--by", period, "--json").document()
        costs = worked("costs", "--by", period, "--json").document()

        known = {one["date"]: (one["total_tokens"], one["total_cost_nano"]) for one in summary[list_name]}
        assert known == {one[day_name]: (one["totalTokens"], one["costNano"]) for one in costs[list_name]}
        assert summary["totals"]["total_cost_nano"] == costs["totals"]["costNano"]
        assert summary["totals"]["unpriced_answers"] == costs["totals"]["unpricedAnswers"]


def test_json_of_a_day_has_the_fields_of_the_daily_summary(worked: CommandLine) -> None:
    document = worked("summary", "--since", "2026-11-20", "--until", "2026-11-20", "--json").document()

    (day,) = document["daily"]
    assert (day["date"], day["user"], day["operation_count"], day["blocked_operations"]) == (
        "2026-11-20",
        "local",
        3,
        1,
    )
    assert (day["success_rate"], day["session_count"] > 0, day["total_tokens"] > 0) == (0.5, True, True)
    assert day["total_cost"] == day["total_cost_nano"] / 10**9
    assert (document["timezone"], document["since"], document["until"]) == ("UTC", "2026-11-20", "2026-11-20")


def test_json_of_a_project_has_the_fields_of_the_project_summary(worked: CommandLine) -> None:
    words = ("summary", "--by", "month", "--project", "/home/dev/webshop", "--since", "2026-11-01", "--json")

    projects = worked(*words).document()["projects"]

    assert {one["workspace"] for one in projects} == {"/home/dev/webshop"}
    (november,) = [one for one in projects if one["date"] == "2026-11"]
    assert (november["period"], november["active_users"]) == ("month", 1)
    assert november["top_operations"] == [{"type": "read", "count": 2}, {"type": "write", "count": 1}]
    costs = [model["cost_nano"] for model in november["top_models"] if model["cost_nano"] is not None]
    assert costs == sorted(costs, reverse=True) != []
    assert {"model", "cost", "cost_nano"} == set(november["top_models"][0])


def test_every_project_is_in_the_table_of_projects(worked: CommandLine) -> None:
    table = worked("summary", "--by", "month", "--projects", environ={"COLUMNS": "140"}).stdout
    known = worked("costs", "--by", "project", "--json").document()["projects"]

    for project in known:
        assert project["project"] in table
    assert "2 read, 1 write" in table
    assert "USERS" not in table


def test_a_project_without_anything_says_where_to_look(worked: CommandLine) -> None:
    finished = worked("summary", "--project", "/nowhere", "--last", "3")

    assert (finished.code, finished.stdout) == (0, "")
    assert finished.stderr.splitlines() == [
        "nothing is known of the project /nowhere in that time",
        "`agentmon summary --projects` shows those that are known",
    ]


def test_wrong_words_are_refused_with_a_way_out(worked: CommandLine) -> None:
    both = worked("summary", "--project", "/w", "--projects")
    reversed_days = worked("summary", "--since", "2026-11-20", "--until", "2026-11-19")
    no_day = worked("summary", "--since", "monday")

    assert (both.code, reversed_days.code, no_day.code) == (2, 2, 2)
    for finished in (both, reversed_days, no_day):
        assert "hint: " in finished.stderr
        assert finished.stdout == ""


def test_a_time_without_anything_is_no_failure(worked: CommandLine) -> None:
    finished = worked("summary", "--since", "2001-01-01", "--until", "2001-12-31")

    assert (finished.code, finished.stdout) == (0, "")
    assert finished.stderr.startswith("nothing was done in that time\n")
    assert worked("summary", "--since", "2001-01-01", "--until", "2001-12-31", "--json").document()["daily"] == []


def test_amounts_are_shown_in_the_currency_that_is_set(worked: CommandLine) -> None:
    worked("settings", "costs.exchange_rate", "0.5")
    worked("settings", "costs.currency", "EUR")
    try:
        words = ("summary", "--by", "month", "--since", "2026-11-01", "--until", "2026-11-30")
        assert "€" in worked(*words).stdout
        assert worked(*words, "--json").document()["currency"] == "EUR"
    finally:
        worked("settings", "costs.currency", "USD")
