from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from agentmon.domain.errors import ConflictError
from agentmon.domain.events import Actor, ActorType
from agentmon.domain.storage import KEEP_AUDIT_KEY, KEEP_EVENTS_KEY, ThinningRule
from agentmon.services.storage import LOGS_RULE
from agentmon.store.table_sizes import TableSizeRepository
from tests.stored_runs import stored

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli.command_lines import CommandLine

OLD = "2020-01-01T00:00:00.000Z"


def _add_keys(cli: CommandLine, count: int) -> None:
    with closing(sqlite3.connect(cli.paths.database_path)) as connection, connection:
        connection.executemany(
            "INSERT INTO idempotency_keys VALUES ('a', ?, 'run', 'd', 'r', ?)",
            [(str(one), OLD) for one in range(count)],
        )


def test_what_takes_room_and_what_is_due_is_shown(cli: CommandLine) -> None:
    cli.add("Take room", "--command", "true")
    _add_keys(cli, 3)

    document = cli("storage", "--json").document()
    text = cli("storage").stdout

    assert document["database"]["size_bytes"] > 0
    assert {table["name"]: table["rows"] for table in document["database"]["tables"]}["idempotency_keys"] == 3
    due = {one["rule"]: one for one in document["next_thinning"]}
    assert set(due) == {*ThinningRule, LOGS_RULE}
    assert (due["request_keys"]["count"], due["audit"]["is_on"]) == (3, False)
    assert "idempotency_keys" in text
    assert "worker.keep_audit_days" in text
    cli("storage", "--thin", "--yes")


def test_thinning_asks_first_and_removes_what_was_listed(cli: CommandLine) -> None:
    _add_keys(cli, 2)

    unasked = cli("storage", "--thin")
    removed = cli("storage", "--thin", "--yes", "--json").document()
    again = cli("storage", "--thin")

    assert unasked.code == 2
    assert "--yes" in unasked.stderr
    assert removed["request_keys"] == 2
    assert (again.code, again.stdout) == (0, "")
    assert cli("storage", "--yes").code == 2


async def test_an_agent_may_not_remove_what_is_kept_of_its_work(tmp_path: Path) -> None:
    async with stored(tmp_path) as place:
        agent = Actor(type=ActorType.AGENT, id="run")
        with pytest.raises(ConflictError):
            await place.services.storage.thin(actor=agent)
        for key in (KEEP_AUDIT_KEY, KEEP_EVENTS_KEY):
            with pytest.raises(ConflictError):
                await place.services.settings.set(key, "1", actor=agent)


async def test_where_sqlite_cannot_tell_sizes_they_are_estimated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agentmon.store.table_sizes._PAGES", "SELECT name, pgsize FROM no_such_table")
    async with stored(tmp_path) as place:
        await place.add_task()

        use = await TableSizeRepository(place.services.database).use()

        assert use.is_estimate
        assert next(table.size_bytes for table in use.tables if table.name == "tasks") > 0
