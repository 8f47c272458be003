from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from agentmon.domain.clock import SystemClock
from agentmon.worker.history_importing import HistoryImporter
from tests.usage.histories import environ_of
from tests.usage.opencode_home import (
    BEGUN_MS,
    REAL_SESSIONS,
    database_path,
    make_database,
    message,
    message_id,
    write_message,
    write_part,
)
from tests.worker.usage_home import usage_home

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from tests.worker.usage_home import UsageHome

_ANSWERS = (
    "SELECT s.session_ref, i.cost_nano, i.cost_source FROM llm_interactions i "
    "JOIN sessions s ON s.id = i.session_id ORDER BY i.at_ms"
)


@pytest.fixture
async def home(tmp_path: Path) -> AsyncIterator[UsageHome]:
    make_database(database_path(tmp_path))
    async with usage_home(tmp_path) as opened:
        yield opened


async def test_real_runs_are_imported_once_with_the_cost_that_opencode_reported(home: UsageHome) -> None:
    first = await home.read()
    again = await home.read()

    assert (first.answers, again.files, again.answers) == (6, 0, 0)
    assert home.rows(_ANSWERS) == [
        *[(REAL_SESSIONS[0], 190_000, "reported")] * 2,
        *[(REAL_SESSIONS[1], 190_000, "reported")] * 3,
        (REAL_SESSIONS[2], 190_000, "reported"),
    ]
    assert home.rows("SELECT sum(answers), sum(prompt_tokens), sum(cost_nano) FROM daily_usage") == [
        (6, 900, 1_140_000)
    ]
    assert home.contents()


async def test_a_known_model_has_the_price_of_the_list_and_an_unknown_one_none(home: UsageHome) -> None:
    write_message(database_path(home.folder), message(BEGUN_MS), row_id=message_id(BEGUN_MS))
    unknown = message(BEGUN_MS + 1, providerID="opencode", modelID="grok-code", cost=0)
    write_message(database_path(home.folder), unknown, row_id=message_id(BEGUN_MS + 1))

    await home.read()

    # 10 tokens at 3, 300 of the cache at 0.3, 40 into it at 3.75 and 25 at 15 dollars a million.
    assert home.rows(_ANSWERS)[-2:] == [("ses_1", 645_000, "list"), ("ses_1", None, "none")]


async def test_what_was_said_and_done_comes_in_behind_the_answers_and_is_told_once(home: UsageHome) -> None:
    path = database_path(home.folder)
    write_message(path, {"role": "user", "time": {"created": BEGUN_MS}}, row_id="msg_1", session=REAL_SESSIONS[0])
    for number, part in enumerate([{"type": "text", "text": "mend it"}, {"type": "text", "text": "please"}]):
        write_part(path, part, message="msg_1", session=REAL_SESSIONS[0], at_ms=BEGUN_MS, number=number)
    await home.read()
    said = "SELECT s.session_ref, s.initial_prompt, m.content FROM messages m JOIN sessions s ON s.id = m.session_id"

    for _ in range(2):
        importer = HistoryImporter(
            paths=home.paths,
            environ=environ_of(home.folder),
            zone_name="UTC",
            clock=SystemClock(),
            keeps_messages=True,
        )
        with closing(importer):
            importer.forget_cursors()
            assert not importer.read(importer.find_changed()).problems

        assert home.rows(f"{said} ORDER BY m.id") == [
            (REAL_SESSIONS[0], "mend it", "mend it"),
            (REAL_SESSIONS[0], "mend it", "please"),
        ]


async def test_a_session_that_was_deleted_and_a_database_that_is_gone_take_no_rows_along(home: UsageHome) -> None:
    await home.read()
    path = database_path(home.folder)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("DELETE FROM message")
        connection.commit()

    await home.read()
    path.unlink()
    await home.read()

    assert len(home.rows(_ANSWERS)) == 6


async def test_everything_is_read_again_when_the_cursors_are_forgotten(home: UsageHome) -> None:
    await home.read()
    before = home.contents()

    home.importer.forget_cursors()
    outcome = await home.read()

    assert (outcome.files, outcome.answers) == (1, 6)
    assert home.contents() == before


async def test_what_is_written_between_two_looks_is_told_by_the_second(home: UsageHome) -> None:
    with closing(sqlite3.connect(database_path(home.folder), isolation_level=None)) as agent:
        for number in range(3):
            data = json.dumps(message(BEGUN_MS + number))
            agent.execute("INSERT INTO message VALUES (?, 'ses_1', 0, 0, ?)", (message_id(BEGUN_MS + number), data))
            await home.read()
            assert len(home.rows(_ANSWERS)) == 7 + number

    assert home.contents()


async def test_what_the_log_of_a_database_tells_is_found_without_a_look_at_all_files(home: UsageHome) -> None:
    await home.read()
    path = database_path(home.folder)
    with closing(sqlite3.connect(path, isolation_level=None)) as agent:
        agent.execute(
            "INSERT INTO message VALUES (?, 'ses_1', 0, 0, ?)", (message_id(BEGUN_MS), json.dumps(message(BEGUN_MS)))
        )
        others = path.parent / "snapshot" / "objects"
        others.mkdir(parents=True)
        (others / "0f").write_text("x")

        found, unknown = home.importer.find_changed_among([f"{path}-wal", str(others), str(others / "0f")])

        assert ([source.path for source in found], unknown) == ([str(path)], [str(others)])
        home.importer.pass_over(unknown)
        assert home.importer.find_changed_among([str(others)]) == ([], [])
        home.importer.read(found, all_files=1)

    assert len(home.rows(_ANSWERS)) == 7
    (source,), _ = home.importer.find_changed()
    assert source.size == path.stat().st_size
    assert home.importer.unread_bytes() == 0
