"""What a script asks often comes without the services, byte for byte as with them."""

from __future__ import annotations

import json
import os
import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from tests.cli.test_costs import copy_samples

if TYPE_CHECKING:
    from tests.cli.command_lines import CommandLine

LONG_WAY = {"AGENTMON_COSTS_IMPORT_HISTORY": "true"}
"""A setting that says what holds anyway; the quick way leaves the environment to the long one."""
GROUPS = ("day", "week", "month", "agent", "model", "project")


@pytest.fixture(scope="module")
def costs(cli: CommandLine) -> CommandLine:
    copy_samples(cli.folder)
    assert cli("costs", "import").code == 0
    return cli


def both(costs: CommandLine, *words: str) -> str:
    """Return what both ways print."""
    quick, long = costs("costs", *words), costs("costs", *words, environ=LONG_WAY)
    assert (quick.code, quick.stdout, quick.stderr) == (long.code, long.stdout, long.stderr)
    return quick.stdout


@pytest.mark.parametrize("group", GROUPS)
def test_both_ways_print_the_same(costs: CommandLine, group: str) -> None:
    printed = both(costs, "--by", group, "--json")

    assert json.loads(printed)["totals"]["answers"] > 0
    assert costs("costs", f"--by={group}", "--json").stdout == printed
    assert costs("costs", "--json", "--by", group).stdout == printed


def test_what_else_is_asked_for_goes_the_long_way(costs: CommandLine) -> None:
    assert both(costs, "--json") == both(costs, "--by", "day", "--json")
    assert '"sessions"' in both(costs, "--by", "session", "--json")
    assert both(costs, "--by", "day", "--json", "--model", "nothing").startswith('{\n  "daily": []')
    assert costs("costs", "--by", "nothing", "--json").code == 2
    assert costs("costs", "--json", "--csv").code == 2


def test_zone_and_currency_that_are_set_hold(costs: CommandLine) -> None:
    for key, value in (
        ("costs.exchange_rate", "0.92"),
        ("costs.currency", "eur"),
        ("costs.timezone", "Asia/Tokyo"),
    ):
        assert costs("settings", key, value).code == 0

    first = both(costs, "--by", "day", "--json")
    document = json.loads(both(costs, "--by", "day", "--json"))

    assert (document["timezone"], document["currency"], document["exchangeRate"]) == ("Asia/Tokyo", "EUR", "0.92")
    assert json.loads(first) == document


def test_an_import_that_goes_on_is_told(costs: CommandLine) -> None:
    progress = {"files": 1, "all_files": 4, "read_bytes": 10, "all_bytes": 40, "elapsed_s": 2.0}
    costs.paths.run_dir.mkdir(parents=True, exist_ok=True)
    costs.paths.import_progress.write_text(json.dumps({"pid": os.getpid(), **progress}))
    try:
        printed = both(costs, "--by", "model", "--json")
    finally:
        costs.paths.import_progress.unlink()

    assert json.loads(printed)["importing"]["allFiles"] == 4


def test_the_quick_way_imports_no_services(costs: CommandLine) -> None:
    names = costs.run_alone("costs", "--by", "model", "--json", environ={"PYTHONPROFILEIMPORTTIME": "1"}).stderr

    assert "agentmon.store.quick_costs" in names
    assert not [name for name in ("sqlalchemy", "pydantic", "typer", "agentmon.bootstrap") if f" {name}\n" in names]


def test_a_database_of_another_release_is_left_to_the_long_way(costs: CommandLine) -> None:
    def put(revision: str) -> None:
        with closing(sqlite3.connect(costs.paths.database_path)) as connection, connection:
            connection.execute("UPDATE alembic_version SET version_num = ?", [revision])

    with closing(sqlite3.connect(costs.paths.database_path)) as connection:
        (present,) = connection.execute("SELECT version_num FROM alembic_version").fetchone()
    put("9999")
    try:
        assert costs("costs", "--by", "day", "--json").code == 1
    finally:
        put(present)
