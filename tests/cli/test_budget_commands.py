from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.cli.command_lines import CommandLine


@pytest.fixture(autouse=True)
def _without_budgets_afterwards(cli: CommandLine) -> Iterator[None]:
    yield
    with closing(sqlite3.connect(cli.paths.database_path)) as connection, connection:
        connection.execute("DELETE FROM budgets")
        connection.execute("DELETE FROM daily_model_usage")


def spend(cli: CommandLine, cents: int, *, unpriced: int = 0) -> None:
    """Write down what an agent spent, on a day of long ago."""
    with closing(sqlite3.connect(cli.paths.database_path)) as connection, connection:
        connection.execute(
            "INSERT INTO daily_model_usage VALUES ('2026-01-01', 'a', 'm', 1, 100, 900, 0, 0, 0, 0, 0, ?, ?, 0)",
            (cents * 10_000_000, unpriced),
        )


def test_a_budget_is_set_listed_replaced_and_removed(cli: CommandLine) -> None:
    none = cli("budget")
    first = cli("budget", "set", "20").stdout
    replaced = cli("budget", "set", "$25.50", "--then", "block", "--json").document()
    listed = cli("budget", "list")
    removed = cli("budget", "rm", replaced["id"][-8:])

    assert none.stdout == ""
    assert "agentmon budget set 20" in none.stderr
    assert first.startswith("set: the budget of everything, $20.00 a day: $0.00 of $20.00 (0 %)")
    assert replaced["id"] in first
    assert (replaced["limit_nano"], replaced["limit_usd"], replaced["action"]) == (25_500_000_000, 25.5, "block")
    assert (replaced["period"], replaced["since_day"]) == ("day", replaced["until_day"])
    heading, row = listed.stdout.splitlines()
    assert heading.split() == ["ABOUT", "PER", "SPENT", "OF", "USED", "LEFT", "THEN", "ID", "NOTE"]
    assert row.split()[:5] == ["●", "everything", "day", "$0.00", "$25.50"]
    assert removed.stdout == "removed: the budget of everything, $25.50 a day\n"
    assert cli("budget", "list", "--json").document() == []


def test_a_check_tells_by_its_exit_code_how_far_a_budget_is_used(cli: CommandLine) -> None:
    cli("budget", "set", "10", "--per", "total")
    fine = cli("budget", "check")
    spend(cli, 500, unpriced=2)
    warned = cli("budget", "check", "--json")
    cli("budget", "set", "5", "--per", "total")
    spent = cli("budget", "check")
    other = cli("budget", "check", "--agent", "command")

    document = json.loads(warned.stdout)
    assert (fine.code, warned.code, spent.code, other.code) == (0, 10, 11, 0)
    assert (document["level"], document["budgets"][0]["percent"]) == ("warned", 50)
    assert document["budgets"][0]["unpriced_answers"] == 2
    assert spent.stdout.startswith(
        "spent: the budget of everything, $5.00 in all: $5.00 of $5.00 (100 %), "
        "2 answers without a known price not counted"
    )


@pytest.mark.proof
def test_budgets_of_a_task_an_agent_a_workspace_and_a_run_are_told_apart(cli: CommandLine) -> None:
    number = cli.add("costs something", "--command", "true")
    cli("run", number, "--wait")
    run_id = cli("executions", "--json").document()[0]["id"]

    set_ones = [
        cli("budget", "set", amount, "--json", *words).document()
        for amount, *words in (
            ("5", "--task", number),
            ("5", "--execution", run_id),
            ("50", "--agent", "command", "--per", "week"),
            ("200", "-C", str(cli.workspace), "--per", "month"),
            ("1.5M", "--tokens", "--without-cached"),
        )
    ]

    told = [(one["scope"], one["period"], one["unit"]) for one in set_ones]
    assert told == [
        ("task", "total", "money"),
        ("execution", "total", "money"),
        ("agent", "week", "money"),
        ("workspace", "month", "money"),
        ("all", "day", "tokens"),
    ]
    assert [one["about"] for one in set_ones[:3]] == [f"task #{number}", f"a run of #{number}", "command"]
    assert set_ones[4]["limit_tokens"] == 1_500_000
    assert not set_ones[4]["counts_cached"]
    assert len(cli("budget").stdout.splitlines()) == 6
    assert "agentmon set the budget" not in cli("audit").stdout
    assert f"set the budget of task #{number}, $5.00 in all, to stop what runs" in cli("audit").stdout


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["0"], "is no budget"),
        (["abc"], "is no budget"),
        (["-3"], "No such option"),
        (["nan"], "is no budget"),
        (["5", "--without-cached"], "add --tokens"),
        (["5", "--agent", "command", "--task", "1"], "exclude each other"),
        (["5", "--agent", "nobody"], "nobody"),
        (["5", "--task", "9999"], "there is no task #9999"),
        (["5", "--execution", "zzz"], "there is no run"),
    ],
)
def test_a_budget_that_cannot_be_is_refused_with_what_to_do(cli: CommandLine, words: list[str], told: str) -> None:
    refused = cli("budget", "set", *words)

    assert refused.code in {1, 2}
    assert told in refused.stderr
    assert cli("budget", "list", "--json").document() == []


def test_a_run_has_no_days_and_an_unknown_budget_is_said(cli: CommandLine) -> None:
    number = cli.add("runs once", "--command", "true")
    cli("run", number, "--wait")
    run_id = cli("executions", "--json").document()[0]["id"]

    refused = cli("budget", "set", "5", "--execution", run_id, "--per", "day")
    unknown = cli("budget", "rm", "zzz")

    assert "one in all" in refused.stderr
    assert "there is no budget" in unknown.stderr


def test_a_budget_in_another_currency_is_kept_in_dollars_and_both_are_told(cli: CommandLine) -> None:
    euros = {"AGENTMON_COSTS_CURRENCY": "EUR", "AGENTMON_COSTS_EXCHANGE_RATE": "0.92"}
    said = cli("budget", "set", "20", environ=euros).stdout
    written = cli("budget", "set", "€20", "--json", environ=euros).document()
    in_dollars = cli("budget", "set", "20", "--json").document()
    refused = cli("budget", "set", "$20", environ=euros)

    assert said.startswith("set: the budget of everything, €20.00 ($21.74) a day: €0.00 of €20.00 (0 %)")
    assert written["limit_nano"] == 21_739_130_435
    assert (written["currency"], written["exchange_rate"]) == ("EUR", "0.92")
    assert "currency" not in in_dollars
    assert refused.code == 2
    assert "write EUR" in refused.stderr
