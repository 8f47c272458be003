"""Conversations of history come in behind their answers, once each, whatever happens in between."""

from __future__ import annotations

import json
import random
import shutil
from contextlib import asynccontextmanager, closing, suppress
from typing import TYPE_CHECKING, Any

import pytest

from agentmon.domain.clock import SystemClock
from agentmon.domain.errors import StoreError
from agentmon.usage import following
from agentmon.worker.history_importing import HistoryImporter
from tests.seeds import seeds
from tests.usage.histories import SAMPLES, environ_of
from tests.worker.usage_home import usage_home

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from agentmon.worker.history_outcome import HistoryOutcome
    from tests.worker.usage_home import UsageHome

TRANSCRIPT = "claude/projects/-home-dev-proj/5fad6088-134d-4d0c-968c-d8ccba4ccb0f.jsonl"


@pytest.fixture
async def home(tmp_path: Path) -> AsyncIterator[UsageHome]:
    async with captured_home(tmp_path) as opened:
        yield opened


@asynccontextmanager
async def captured_home(folder: Path) -> AsyncIterator[UsageHome]:
    for name in ("claude", "codex"):
        shutil.copytree(SAMPLES / "captured" / name, folder / name)
    shutil.copytree(SAMPLES / "captured" / "gemini", folder / "gemini-home" / ".gemini")
    async with usage_home(folder) as opened:
        yield opened


def importer_of(home: UsageHome, *, keeps_messages: bool = True) -> HistoryImporter:
    return HistoryImporter(
        paths=home.paths,
        environ=environ_of(home.folder),
        zone_name="UTC",
        clock=SystemClock(),
        keeps_messages=keeps_messages,
    )


def read(home: UsageHome, *, keeps_messages: bool = True, most_s: float = float("inf")) -> HistoryOutcome:
    with closing(importer_of(home, keeps_messages=keeps_messages)) as importer:
        return importer.read(importer.find_changed(), most_s=most_s)


def contents(home: UsageHome) -> tuple[list[tuple[Any, ...]], ...]:
    messages = home.rows(
        "SELECT m.id, s.session_ref, m.message_ref, m.role, m.content, m.is_thinking, m.parent_ref, m.created_at "
        "FROM messages m JOIN sessions s ON s.id = m.session_id ORDER BY m.id"
    )
    operations = home.rows(
        "SELECT o.id, s.session_ref, o.operation_ref, o.target, o.status, o.output_summary, o.started_at, "
        "o.finished_at, o.day_local FROM operations o JOIN sessions s ON s.id = o.session_id ORDER BY o.id"
    )
    sessions = home.rows(
        "SELECT session_ref, title, initial_prompt, operation_count, started_at, ended_at FROM sessions ORDER BY 1"
    )
    return messages, operations, sessions


async def test_nothing_is_read_before_its_answers_are(home: UsageHome) -> None:
    assert read(home).files == 0

    await home.read()

    assert read(home).files == 10
    assert home.rows("SELECT count(*) FROM messages") == [(46,)]
    assert home.rows("SELECT sum(operation_count) FROM sessions") == [(6,)]


async def test_a_second_look_has_nothing_new(home: UsageHome) -> None:
    await home.read()
    read(home)

    assert read(home).all_files == 0


async def test_an_appended_line_is_one_more_message(home: UsageHome) -> None:
    await home.read()
    read(home)
    line: dict[str, object] = {"type": "user", "uuid": "new", "sessionId": "5fad6088-134d-4d0c-968c-d8ccba4ccb0f"}
    line |= {"timestamp": "2026-11-27T22:00:00.000Z", "message": {"role": "user", "content": "one more"}}
    with (home.folder / TRANSCRIPT).open("a") as transcript:
        transcript.write(json.dumps(line, separators=(",", ":")) + "\n")

    outcome = read(home)

    assert (outcome.files, outcome.messages) == (1, 1)
    assert home.rows("SELECT content FROM messages ORDER BY id DESC LIMIT 1") == [("one more",)]


async def test_messages_can_be_left_out_and_asked_for_later(home: UsageHome) -> None:
    await home.read()
    read(home, keeps_messages=False)
    without = contents(home)

    read(home)

    assert without[0] == []
    assert {prompt for _, _, prompt, *_ in without[2]} == {""}
    assert (len(contents(home)[0]), contents(home)[1]) == (46, without[1])


async def test_a_look_ends_when_its_time_is_over_and_the_next_goes_on(
    home: UsageHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    await home.read()
    monkeypatch.setattr(following, "READ_BYTES", 2_000)

    outcomes = [read(home, most_s=0.0001)]
    while not outcomes[-1].is_finished:
        outcomes.append(read(home, most_s=0.01))

    assert len(outcomes) > 1
    assert home.rows("SELECT count(*) FROM messages") == [(46,)]


async def test_threads_of_codex_get_their_names_unless_a_person_named_them(home: UsageHome) -> None:
    await home.read()
    file = home.folder / "codex" / "session_index.jsonl"
    first, second = "01a21ede-beb1-7032-834a-a20e3bf843ab", "01a21edf-4855-72b0-af67-49c3d5f997a3"
    names = [(first, "one"), (second, "two"), ("unknown", "three"), (first, "newer\nname")]
    lines = [json.dumps({"id": ref, "thread_name": name, "updated_at": ""}) for ref, name in names]

    with closing(importer_of(home)) as importer:
        file.write_text("\n".join([lines[0], "{damaged", *lines[1:3]]))
        importer.take_names()
        early = home.rows("SELECT title FROM sessions WHERE title IS NOT NULL ORDER BY 1")
        home.change(f"UPDATE sessions SET title = 'mine' WHERE session_ref = '{second}'")
        file.write_text("\n".join(lines))
        importer.take_names()

    assert early == [("one",), ("two",)]
    assert home.rows("SELECT title FROM sessions WHERE title IS NOT NULL ORDER BY 1") == [("mine",), ("newer name",)]


@pytest.mark.parametrize("seed", seeds(3))
async def test_kills_lost_cursors_and_rescans_leave_the_same_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    dice = random.Random(seed)
    async with captured_home(tmp_path / "plain") as plain:
        await plain.read()
        read(plain)
        expected = contents(plain)
    async with captured_home(tmp_path / "hit") as hit:
        await hit.read()
        monkeypatch.setattr(following, "READ_BYTES", 3_000)
        for _ in range(12):
            with closing(importer_of(hit)) as importer:
                sources = importer.find_changed()
                dice.shuffle(sources)
                steps = dice.randint(1, 400)

                def count(_: str, store: Any = importer, left: list[int] = [steps]) -> None:  # noqa: B006 - counts down
                    left[0] -= 1
                    if left[0] == 0:
                        store._store._connection.interrupt()

                importer._open()._connection.set_trace_callback(count)
                with suppress(StoreError):
                    importer.read(sources)
            if dice.random() < 0.5:
                hit.change("DELETE FROM history_files" if dice.random() < 0.5 else "UPDATE history_files SET inode = 0")
        while not read(hit).is_finished or read(hit).all_files:
            pass

        assert contents(hit) == expected
