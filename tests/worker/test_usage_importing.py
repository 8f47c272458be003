from __future__ import annotations

import json
import os
import random
import shutil
import sqlite3
from contextlib import closing
from datetime import datetime
from decimal import Decimal
from hashlib import sha256
from typing import TYPE_CHECKING

import pytest

from agentmon.domain.clock import SystemClock
from agentmon.domain.costs import CostFilter, CostGroup, CostSums
from agentmon.domain.errors import StoreError
from agentmon.store.usage_days import UsageDayRepository, days_of_zone
from agentmon.store.workspaces import WorkspaceRepository
from agentmon.worker import refusals, usage_importing
from agentmon.worker.usage_importing import UsageImporter
from tests.seeds import seeds
from tests.store.recounts import counted_anew, kept_counts
from tests.usage.histories import SAMPLES, environ_of
from tests.worker.usage_home import (
    EXPECTED,
    SHOP,
    copy_samples,
    expected_sums,
    expected_words,
    home_paths,
    in_words,
    usage_home,
)

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from agentmon.store.usage_import import UsageImport
    from tests.worker.usage_home import UsageHome


@pytest.fixture
async def home(tmp_path: Path) -> AsyncIterator[UsageHome]:
    copy_samples(tmp_path)
    async with usage_home(tmp_path) as opened:
        yield opened


async def test_every_answer_of_the_samples_is_there_with_its_numbers_and_its_cost(home: UsageHome) -> None:
    await home.read()

    found = home.rows(
        "SELECT a.slug, s.session_ref, i.project, i.model, i.at_ms, 1, prompt_tokens, response_tokens, "
        "cache_read_tokens, cache_write_5m_tokens, cache_write_1h_tokens, reasoning_tokens, web_searches, cost_nano, "
        "i.reported_cost_nano, i.is_subagent, i.speed FROM llm_interactions i "
        "JOIN agents a ON a.id = i.agent_id JOIN sessions s ON s.id = i.session_id"
    )

    assert sorted(found, key=repr) == sorted(map(_ledger_row, EXPECTED["ledger"]), key=repr)


@pytest.mark.parametrize(
    ("column", "name"), [("a.slug", "by_agent"), ("u.model", "by_model"), ("project", "by_project")]
)
async def test_the_sums_are_the_expected_ones(home: UsageHome, column: str, name: str) -> None:
    await home.read()

    assert home.sums(column) == expected_sums(name)
    assert home.sums("'all'")["all"] == expected_words(EXPECTED["total"])


async def test_sessions_have_the_answers_that_they_paid(home: UsageHome) -> None:
    await home.read()

    parts = await home.costs.parts(CostGroup.SESSION, CostFilter(), days_of_zone("UTC"), are_stored_days=True)
    refs = dict(home.rows("SELECT id, session_ref FROM sessions"))
    sums: dict[str, CostSums] = {}
    for part in parts:
        name = f"{part.agent_slug}:{refs[part.group]}"
        sums[name] = sums.get(name, CostSums()) + part.sums

    assert {name: _words(one) for name, one in sums.items()} == expected_sums("by_session")


async def test_what_a_person_called_a_conversation_stays_when_its_agent_calls_it_otherwise(home: UsageHome) -> None:
    refs = [f"cccccccc-1111-4111-8111-00000000010{number}" for number in range(3)]
    files = [home.folder / "claude" / "projects" / "-home-dev-webshop" / f"{ref}.jsonl" for ref in refs]

    def tell(number: int, title: str, at: str) -> None:
        answer = {
            "type": "assistant",
            "sessionId": refs[number],
            "timestamp": at,
            "message": {"id": f"msg_{number}_{at}", "model": "claude-opus-4-8", "usage": {"output_tokens": 5}},
        }
        records = [answer] + ([{"type": "ai-title", "sessionId": refs[number], "aiTitle": title}] if title else [])
        with files[number].open("a") as file:
            file.write("".join(json.dumps(record, separators=(",", ":")) + "\n" for record in records))

    for number, title in enumerate(("first", "first", "")):
        tell(number, title, "2026-11-20T10:00:00.000Z")
    await home.read()
    for number in (1, 2):
        home.change(f"UPDATE sessions SET title = 'mine' WHERE session_ref = '{refs[number]}'")
    for number in range(3):
        tell(number, "second", "2026-11-20T11:00:00.000Z")
    await home.read()

    marks = ", ".join("?" * len(refs))
    titles = home.rows(f"SELECT title FROM sessions WHERE session_ref IN ({marks}) ORDER BY session_ref", *refs)
    assert titles == [("second",), ("mine",), ("mine",)]


@pytest.mark.parametrize("is_at_once", [True, False])
@pytest.mark.parametrize("order", [(False, True), (True, False)])
async def test_in_one_file_an_answer_counts_before_its_copy_in_a_side_chain(
    home: UsageHome, order: tuple[bool, ...], is_at_once: bool
) -> None:
    ref = "cccccccc-1111-4111-8111-000000000200"
    file = home.folder / "claude" / "projects" / "-home-dev-webshop" / f"{ref}.jsonl"
    for is_copy in order:
        usage = {"input_tokens": 1, "output_tokens": 500 if is_copy else 50}
        message = {"id": "msg_twice", "model": "claude-opus-4-8", "stop_reason": "end_turn", "usage": usage}
        at = "2026-11-20T10:00:00.000Z"
        record = {"type": "assistant", "sessionId": ref, "isSidechain": is_copy, "timestamp": at}
        with file.open("a") as opened:
            opened.write(json.dumps(record | {"message": message}, separators=(",", ":")) + "\n")
        if not is_at_once:
            await home.read()
    await home.read()

    told = home.rows("SELECT response_tokens, is_subagent FROM llm_interactions WHERE key = 'msg_twice'")
    assert told == [(50, 0)]


@pytest.mark.parametrize("zone_name", ["UTC", "America/New_York", "Europe/Berlin", "Asia/Kolkata"])
@pytest.mark.parametrize("are_kept", [True, False])
async def test_days_are_those_of_the_zone_kept_or_not(home: UsageHome, zone_name: str, are_kept: bool) -> None:
    await home.read()
    if are_kept:
        await UsageDayRepository(home.database).move_to(zone_name, at=SystemClock().now())

    parts = await home.costs.parts(CostGroup.DAY, CostFilter(), days_of_zone(zone_name), are_stored_days=are_kept)

    sums: dict[str, CostSums] = {}
    for part in parts:
        name = f"{part.agent_slug}:{part.group}"
        sums[name] = sums.get(name, CostSums()) + part.sums
    assert {name: _words(one) for name, one in sums.items()} == expected_sums(f"by_day_{zone_name}")
    assert home.contents()


async def test_months_are_those_of_the_zone(home: UsageHome) -> None:
    await home.read()

    for are_kept in (True, False):
        parts = await home.costs.parts(CostGroup.MONTH, CostFilter(), days_of_zone("UTC"), are_stored_days=are_kept)
        sums: dict[str, CostSums] = {}
        for part in parts:
            name = f"{part.agent_slug}:{part.group}"
            sums[name] = sums.get(name, CostSums()) + part.sums
        assert {name: _words(one) for name, one in sums.items()} == expected_sums("by_month_UTC")


async def test_a_new_import_goes_on_in_the_zone_to_which_the_days_were_moved(home: UsageHome) -> None:
    await UsageDayRepository(home.database).move_to("Asia/Kolkata", at=SystemClock().now())

    await home.read()

    days = {
        f"{slug}:{day}"
        for slug, day in home.rows("SELECT a.slug, day_local FROM daily_usage JOIN agents a ON a.id = agent_id")
    }
    assert days == set(EXPECTED["by_day_Asia/Kolkata"])


async def test_the_rest_of_a_line_gives_exactly_one_answer_more(home: UsageHome) -> None:
    await home.read()
    with (home.folder / SHOP).open("a") as transcript:
        transcript.write((SAMPLES / "claude_c07_rest.txt").read_text())

    outcome = await home.read()

    assert (outcome.files, outcome.answers) == (1, 1)
    assert home.sums("'all'")["all"] == expected_words(EXPECTED["after_c07"]["total"])


async def test_a_second_look_reads_nothing_and_a_rescan_changes_nothing(home: UsageHome) -> None:
    await home.read()
    before = home.contents()

    second = await home.read()
    home.importer.forget_cursors()
    rescan = await home.read()

    assert (second.files, second.read_bytes) == (0, 0)
    assert rescan.files == rescan.all_files
    assert home.contents() == before


async def test_lost_cursors_change_nothing(home: UsageHome) -> None:
    await home.read()
    before = home.contents()

    home.change("DELETE FROM usage_files")
    home.importer.close()
    async with usage_home(home.folder) as again:
        outcome = await again.read()
        assert outcome.files == outcome.all_files
        assert again.contents() == before


async def test_answers_outlive_the_files_that_told_them(home: UsageHome) -> None:
    await home.read()
    before = home.contents()

    for transcript in (home.folder / "claude").rglob("*.jsonl"):
        transcript.unlink()
    await home.read()

    assert home.contents() == before


@pytest.mark.parametrize("seed", seeds(6, quick=2))
async def test_files_in_any_order_give_the_same(
    home: UsageHome, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    await home.read()
    expected = home.contents()
    shuffled = random.Random(seed)

    def any_order(importer: UsageImporter, *arguments: object) -> tuple[list[object], int]:
        sources, count = find_changed(importer, *arguments)  # type: ignore[arg-type]
        shuffled.shuffle(sources)
        return list(sources), count

    find_changed = UsageImporter.find_changed
    monkeypatch.setattr(UsageImporter, "find_changed", any_order)
    (tmp_path / "agentmon").rename(tmp_path / "first")
    async with usage_home(tmp_path) as again:
        await again.read()
        assert again.contents() == expected


@pytest.mark.proof
async def test_an_import_killed_behind_any_statement_goes_on_to_the_same(home: UsageHome, tmp_path: Path) -> None:
    await home.read()
    expected = home.contents()
    paths = home_paths(tmp_path)
    kill_after = 1
    while True:
        home_folder = paths.data_dir
        home_folder.rename(tmp_path / f"gone-{kill_after}")
        async with usage_home(tmp_path) as again:
            was_killed = await _read_killed(again, kill_after)
            again.importer.close()
        async with usage_home(tmp_path) as again:
            await again.read()
            assert again.contents() == expected, kill_after
        if not was_killed:
            break
        kill_after = kill_after * 3 // 2 + 1
    assert kill_after > 300


async def test_two_importers_at_once_count_each_answer_once(home: UsageHome) -> None:
    await home.read()
    expected = home.contents()
    home.change("DELETE FROM usage_files")
    other = UsageImporter(paths=home.paths, environ=environ_of(home.folder), zone_name="UTC", clock=SystemClock())
    first = UsageImporter(paths=home.paths, environ=environ_of(home.folder), zone_name="UTC", clock=SystemClock())
    mine, count = first.find_changed()
    theirs, _ = other.find_changed()

    outcomes = [first.read(mine, all_files=count), other.read(theirs, all_files=count)]

    assert [outcome.answers for outcome in outcomes] == [62, 0]
    assert home.contents() == expected
    first.close()
    other.close()


async def test_a_file_that_the_database_refuses_keeps_no_other_away(home: UsageHome) -> None:
    home.change(
        "CREATE TRIGGER no BEFORE INSERT ON llm_interactions WHEN new.key = 'msg_c13' "
        "BEGIN SELECT RAISE(ABORT, 'no'); END"
    )

    refused = await home.read()
    again = await home.read()
    home.change("DROP TRIGGER no")
    (home.folder / "claude/projects/-home-dev-my-api-v2/eeeeeeee-5555-4555-8555-000000000005.jsonl").touch()
    await home.read()

    assert [problem.reason for problem in refused.problems if "eeeeeeee" in problem.path] == [
        "the database refused a row: foreign key"
    ]
    assert (again.files, refused.files) == (0, refused.all_files)
    assert home.sums("a.slug") == expected_sums("by_agent")


async def test_a_file_that_cannot_be_read_is_told_once_and_tried_again_later(
    home: UsageHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = (
        home.folder
        / "codex"
        / "sessions"
        / "rollout-2026-01-01T00-00-00-019a0000-0000-7000-8000-0000000000ff.jsonl.zst"
    )
    broken.write_bytes(b"no compressed file at all")

    first = await home.read()
    second = await home.read()
    monkeypatch.setattr(refusals, "TRY_AGAIN_AFTER_S", 0.0)
    third = await home.read()

    assert [problem for problem in first.problems if problem.path == str(broken)]
    assert (second.files, second.problems) == (0, ())
    assert third.files <= 1
    assert home.sums("a.slug") == expected_sums("by_agent")


async def test_odd_names_and_times_are_read_like_others(home: UsageHome) -> None:
    odd = home.folder / "claude" / "projects" / os.fsdecode(b"\xff\xfe")
    odd.mkdir()
    record = {
        "type": "assistant",
        "timestamp": "9999-12-31T23:59:59.999Z",
        "cwd": "/w/\ud800",
        "sessionId": "odd",
        "message": {"id": "odd", "model": "m\ud800", "usage": {"input_tokens": 5, "output_tokens": 10**30}},
    }
    (odd / "odd.jsonl").write_text(json.dumps(record) + "\n")
    await UsageDayRepository(home.database).move_to("Asia/Kolkata", at=SystemClock().now())

    await home.read()
    second = await home.read()

    assert home.rows(
        "SELECT day_local, prompt_tokens, response_tokens, model FROM llm_interactions WHERE key = 'odd'"
    ) == [("9999-12-31", 5, 0, "m?")]
    assert second.files == 0
    assert home.contents()


async def test_the_captured_files_of_the_real_programs_are_read(tmp_path: Path) -> None:
    for name in ("claude", "codex"):
        shutil.copytree(SAMPLES / "captured" / name, tmp_path / name)
    shutil.copytree(SAMPLES / "captured" / "gemini", tmp_path / "gemini-home" / ".gemini")
    async with usage_home(tmp_path) as home:
        outcome = await home.read()

        assert outcome.files == outcome.all_files > 5
        assert outcome.problems == ()
        assert home.contents()


async def test_chats_below_the_hash_of_a_workspace_are_of_its_project(tmp_path: Path) -> None:
    place = tmp_path / "gemini-home/.gemini/tmp" / sha256(b"/home/dev/shop").hexdigest() / "chats"
    place.mkdir(parents=True)
    chat = {"id": "g1", "timestamp": "2026-05-02T09:00:00Z", "type": "gemini", "model": "m", "tokens": {"input": 7}}
    (place / "session-1.jsonl").write_text('{"sessionId":"s1"}\n' + json.dumps(chat) + "\n")
    async with usage_home(tmp_path) as home:
        await WorkspaceRepository(home.database).register(
            root_path="/home/dev/shop", name="shop", at=SystemClock().now()
        )
        await home.read()

        assert home.rows("SELECT u.project, s.workspace FROM daily_usage u, sessions s") == [("/home/dev/shop",) * 2]


@pytest.mark.parametrize("suffix", ["jsonl", "json"])
@pytest.mark.parametrize("goes_on", [True, False])
async def test_a_chat_that_was_read_before_its_folder_was_known_is_of_that_project_too(
    tmp_path: Path, suffix: str, goes_on: bool
) -> None:
    place = tmp_path / "gemini-home/.gemini/tmp" / sha256(b"/home/dev/shop").hexdigest() / "chats"
    place.mkdir(parents=True)
    file = place / f"session-1.{suffix}"

    def write(answers: int) -> None:
        chats = [
            {"id": f"g{at}", "timestamp": f"2026-05-02T09:00:0{at}Z", "type": "gemini", "tokens": {"input": 7}}
            for at in range(answers)
        ]
        lines = [{"sessionId": "s1"}, *chats] if suffix == "jsonl" else [{"sessionId": "s1", "messages": chats}]
        file.write_text("".join(json.dumps(line) + "\n" for line in lines))

    async with usage_home(tmp_path) as home:
        write(1)
        await home.read()
        assert home.rows("SELECT project, answers FROM daily_usage") == [("", 1)]

        await WorkspaceRepository(home.database).register(
            root_path="/home/dev/shop", name="shop", at=SystemClock().now()
        )
        if goes_on:
            write(2)
        assert (await home.read()).files == 1
        assert (await home.read()).files == 0

        assert home.rows("SELECT project, answers FROM daily_usage") == [("/home/dev/shop", 1 + goes_on)]
        assert home.rows("SELECT workspace, project FROM sessions") == [("/home/dev/shop",) * 2]
        home.contents()
        with closing(sqlite3.connect(home.database.path)) as connection:
            assert kept_counts(connection) == counted_anew(connection)


async def _read_killed(home: UsageHome, kill_after: int) -> bool:
    """Import, and end as a kill would after so many statements; return whether it came to that."""
    store: UsageImport = home.importer._open()
    seen = 0

    def count(_statement: str) -> None:
        nonlocal seen
        seen += 1
        if seen == kill_after:
            store._connection.interrupt()

    store._connection.set_trace_callback(count)
    try:
        await home.read()
    except StoreError:
        return True
    return seen >= kill_after


def _words(sums: CostSums) -> dict[str, object]:
    return in_words(
        (
            *(sums.answers, sums.prompt_tokens, sums.response_tokens, sums.cache_read_tokens),
            *(sums.cache_write_5m_tokens, sums.cache_write_1h_tokens, sums.reasoning_tokens, sums.web_searches),
            *(sums.cost_nano, sums.unpriced_answers),
        )
    )


def _ledger_row(entry: dict[str, object]) -> tuple[object, ...]:
    def nano(name: str) -> int | None:
        return None if entry[name] is None else int(Decimal(str(entry[name])) * 10**9)

    at = datetime.fromisoformat(str(entry["ts"]))
    return (
        *(entry["agent"], entry["session"], entry["project"], entry["model"], round(at.timestamp() * 1000), 1),
        *(entry["input"], entry["output"], entry["cache_read"], entry["cache_write_5m"], entry["cache_write_1h"]),
        *(entry["reasoning"], entry["web_search"], nano("cost_usd"), nano("reported_cost_usd")),
        *(int(entry["subagent"] is not None), entry["speed"]),
    )


async def test_a_long_history_is_read_by_other_processes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    copy_samples(tmp_path / "here")
    copy_samples(tmp_path / "apart")
    async with usage_home(tmp_path / "here") as home:
        await home.read()
        contents = home.contents()
    monkeypatch.setattr(usage_importing, "_APART_FROM_BYTES", 1)

    async with usage_home(tmp_path / "apart") as home:
        await home.read()

        assert home.contents() == contents
