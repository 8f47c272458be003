from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING

from tests.screens.boards import make_place, open_board
from tests.screens.machines import add_program, stub_machine

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


async def test_the_app_looks_for_programs_once_a_day_and_tells_what_is_different(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    programs = stub_machine(tmp_path, monkeypatch, "zz-tool", "cargo")
    monkeypatch.setattr("agentmon.app._SCAN_AFTER_S", 0.01)
    monkeypatch.setenv("AGENTMON_AGENTS_SCAN_HOURS", "24")
    place = make_place(tmp_path)

    async with open_board(place) as board:
        services = await board.app.services()
        await board.until(lambda: services.discovery.outcome is not None, "the first scan")
        await board.settled()
        assert board.toasts == []

    add_program(programs, "zz-new")
    add_program(programs, "go")
    (programs / "cargo").unlink()
    async with open_board(place) as board:
        services = await board.app.services()
        assert not await services.discovery.is_due()
        await board.settled()
        assert services.discovery.outcome is None

    with closing(sqlite3.connect(place.paths.database_path)) as connection, connection:
        connection.execute("UPDATE programs SET last_seen_at = '2020-01-01T00:00:00.000Z'")
    async with open_board(place) as board:
        await board.until(lambda: bool(board.toasts), "the news")
        await board.until(
            lambda: board.toasts == ["Programs: 2 came, 1 went; new here: go; not found any more: cargo"], "it is told"
        )
