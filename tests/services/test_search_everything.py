"""Everything is searched, in one way: whether an index knows it yet or not, and whatever is typed."""

from __future__ import annotations

import asyncio
import json
import os
import sqlite3
import threading
from contextlib import closing
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from agentmon.domain.execution_status import ExecutionStatus
from agentmon.domain.ids import new_id
from agentmon.domain.search import SearchKind
from agentmon.store.search_indexing import SearchIndexing
from agentmon.store.search_reading import SearchReader
from tests.stored_runs import stored

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from agentmon.domain.executions import Execution
    from agentmon.domain.search import FoundOfKind, SearchHit
    from agentmon.domain.tasks import Task
    from tests.stored_runs import Stored

_THEN = "2026-03-01T12:00:00.000Z"
_LOG_BYTES = 20_000_000


@pytest.fixture
async def place(tmp_path: Path) -> AsyncIterator[Stored]:
    async with stored(tmp_path) as opened:
        yield opened


def execute(place: Stored, statement: str, *values: object) -> None:
    with closing(sqlite3.connect(place.services.paths.database_path)) as connection, connection:
        connection.execute("PRAGMA foreign_keys = ON")
        connection.execute(statement, values)


def insert(place: Stored, table: str, **columns: object) -> str:
    key = str(columns.setdefault("id", new_id()))
    names = ", ".join(columns)
    execute(place, f"INSERT INTO {table} ({names}) VALUES ({', '.join('?' * len(columns))})", *columns.values())
    return key


def talk(place: Stored, run: Execution, **texts: str) -> str:
    """Store a conversation of the run's task: a title, a message, a call and a document, where they are named."""
    stamps = {"created_at": _THEN, "updated_at": _THEN}
    with closing(sqlite3.connect(place.services.paths.database_path)) as connection:
        (user_id,) = connection.execute("SELECT id FROM users").fetchone()
    of_agent = {"user_id": user_id, "agent_id": run.agent_id, "task_id": run.task_id}
    session_id = insert(
        place,
        "sessions",
        title=texts.get("title", ""),
        workspace="/w",
        status="running",
        started_at=_THEN,
        **of_agent,
        **stamps,
    )
    if "message" in texts:
        insert(
            place,
            "messages",
            session_id=session_id,
            execution_id=run.id,
            role="assistant",
            content=texts["message"],
            created_at=_THEN,
        )
    if "call" in texts:
        insert(
            place,
            "operations",
            session_id=session_id,
            tool_name="Bash",
            type="execute",
            target="make test",
            output_summary=texts["call"],
            status="success",
            started_at=_THEN,
            **stamps,
        )
    if "document" in texts:
        insert(
            place,
            "documents",
            session_id=session_id,
            title="Manual",
            content=texts["document"],
            content_type="text/plain",
            source_url="https://example.org/manual",
            metadata="{}",
            **stamps,
        )
    return session_id


def change(place: Stored, run: Execution, path: str, old_path: str | None = None) -> None:
    """Store that a run changed a file."""
    kind = "modify" if old_path is None else "rename"
    stamps = {"created_at": _THEN, "updated_at": _THEN}
    insert(place, "changes", execution_id=run.id, path=path, old_path=old_path, change_type=kind, **stamps)


def take_up(place: Stored, log_bytes: int = _LOG_BYTES) -> None:
    with closing(SearchIndexing(place.services.paths.database_path)) as indexing:
        while indexing.take_up_some(most_s=10, log_bytes=log_bytes):
            pass


async def groups(place: Stored, text: str, **options: float) -> dict[SearchKind, FoundOfKind]:
    found = await place.services.search.search(text, workspace=place.workspace, most_s=20, **options)  # type: ignore[arg-type] # a limit is whole
    assert found is not None
    return {group.kind: group for group in found}


async def hits(place: Stored, text: str, kind: SearchKind) -> tuple[SearchHit, ...]:
    return (await groups(place, text))[kind].hits


async def kinds(place: Stored, text: str) -> set[str]:
    return {kind.value for kind, group in (await groups(place, text)).items() if group.hits}


@pytest.mark.parametrize("is_indexed", [False, True])
async def test_every_kind_is_found_before_and_after_the_index_knows_it(place: Stored, is_indexed: bool) -> None:
    task = await place.add_task("Mend the Zebra crossing")
    run = await place.add_run(task.id, output=b"one\n\x1b[31mthe ze\x1b[0mbra fell over\ntwo zebras\n")
    talk(place, run, title="zebra talk", message="No zebra was hurt", call="1 zebra failed", document="On zebra care")
    change(place, run, "animals/Zebra.py")
    if is_indexed:
        take_up(place)

    found = await groups(place, "zebra")

    assert {kind: len(group.hits) for kind, group in found.items()} == {
        SearchKind.TASKS: 1,
        SearchKind.SESSIONS: 1,
        SearchKind.MESSAGES: 1,
        SearchKind.OPERATIONS: 1,
        SearchKind.CHANGES: 1,
        SearchKind.LOGS: 2,
        SearchKind.DOCUMENTS: 1,
    }
    line = found[SearchKind.LOGS].hits[0]
    assert (line.snippet.text, line.line, line.offset) == ("the zebra fell over", 2, 4)
    assert [line.snippet.text[start:end] for start, end in line.snippet.marks] == ["zebra"]
    assert line.execution_id == run.id
    assert all(hit.task_number == task.number for group in found.values() for hit in group.hits)
    assert all(group.unindexed == 0 for group in found.values())


async def test_words_phrases_exclusions_and_kinds_are_understood(place: Stored) -> None:
    task = await place.add_task("Round the discount")
    run = await place.add_run(task.id, output=b"discount of ten\nten percent discount\nsnake_case src/cart.py\n")
    talk(place, run, message="The café rounds discounts of ten percent, 割引について", call="discount")
    take_up(place)
    lines = SearchKind.LOGS

    assert await kinds(place, "discount") == {"tasks", "messages", "operations", "logs"}
    assert await kinds(place, "discount ") == {"tasks", "operations", "logs"}
    assert await kinds(place, '"discounts of ten"') == {"messages"}
    assert await kinds(place, "in:tasks,oper discount") == {"tasks", "operations"}
    assert await kinds(place, "CAFE") == {"messages"}
    assert await kinds(place, "割引") == {"messages"}
    assert await kinds(place, "いて") == {"messages"}
    assert [hit.line for hit in await hits(place, "discount ten -percent", lines)] == [1]
    assert [hit.line for hit in await hits(place, '"ten percent" disc', lines)] == [2]
    assert [hit.line for hit in await hits(place, "snake_case cart.py", lines)] == [3]
    assert await kinds(place, "snake case") == {"logs"}
    assert await kinds(place, "count") == set()


async def test_runs_are_found_by_the_paths_that_they_changed(place: Stored) -> None:
    task = await place.add_task("a task")
    first, second = [await place.add_run(task.id) for _ in range(2)]
    change(place, first, "src/cart_item.py")
    change(place, second, "src/basket/Café.py", old_path="src/cart_item.py")
    change(place, second, "docs/notes.md")

    async def found(text: str) -> list[tuple[str | None, str]]:
        return [(hit.execution_id, hit.snippet.text) for hit in await hits(place, text, SearchKind.CHANGES)]

    assert [one for one, _ in await found("in:changes cart item")] == [second.id, first.id]
    assert await found("in:changes src/cart_item.py -basket") == [(first.id, "src/cart_item.py")]
    assert [one for one, _ in await found("cafe.py")] == [second.id]
    assert await found("notes.md") == [(second.id, "docs/notes.md")]
    assert await kinds(place, "in:logs notes.md") == set()


@pytest.mark.parametrize("is_indexed", [False, True])
async def test_any_text_may_be_typed(place: Stored, is_indexed: bool) -> None:
    task = await place.add_task("It's 100% -> done 🎉 {NEAR}")
    await place.add_run(task.id, output="c'est 100% -> 🎉 fini\n".encode())
    if is_indexed:
        take_up(place)
    typed = ['"', "*", "'", "NEAR(a b)", "title:x", "a AND OR", "(((", "^ + - :", "\0", "x" * 10_000, "-", "in:", '-"a']
    typed += ["\ud800", "%", "_", "a " * 5_000, "#" * 40, "1" * 40, "\u0301", "ｆｕｌｌ"]

    for text in typed:
        await groups(place, text)

    assert await kinds(place, "🎉") == {"tasks", "logs"}
    assert await kinds(place, "-> 100%") == {"tasks", "logs"}
    assert await kinds(place, "{near}") == {"tasks"}
    assert await groups(place, "   ") == {}


async def test_tasks_come_by_number_and_label_and_those_named_so_come_first(place: Stored) -> None:
    named = await place.add_task("login page")
    (mentioned, other) = [await place.add_task(title) for title in ("other", "third")]
    execute(place, "UPDATE tasks SET description = 'breaks the login' WHERE id = ?", mentioned.id)
    execute(place, "INSERT INTO task_labels (task_id, label) VALUES (?, 'auth')", other.id)
    take_up(place)

    async def numbers(text: str) -> list[int | None]:
        return [hit.task_number for hit in await hits(place, text, SearchKind.TASKS)]

    assert await numbers("login") == [named.number, mentioned.number]
    assert await numbers("#auth") == await numbers("aut") == await numbers("third auth") == [other.number]
    assert await numbers(f"#{other.number}") == [other.number]


async def test_archived_tasks_are_marked_and_deleted_ones_and_other_workspaces_are_left_out(
    place: Stored, tmp_path: Path
) -> None:
    archived, deleted = [await place.add_task(f"quagga {name}") for name in ("old", "gone")]
    await place.add_run(deleted.id, output=b"quagga\n")
    execute(place, "UPDATE tasks SET archived_at = ? WHERE id = ?", _THEN, archived.id)
    execute(place, "UPDATE tasks SET deleted_at = ? WHERE id = ?", _THEN, deleted.id)
    take_up(place)

    found = await groups(place, "quagga")

    assert [(hit.key, hit.is_archived) for group in found.values() for hit in group.hits] == [(archived.id, True)]
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    other = await place.services.workspaces.open(elsewhere)
    assert not any(
        group.hits for group in await place.services.search.search("quagga", workspace=other, most_s=20) or ()
    )
    everywhere = await place.services.search.search("quagga", workspace=None, most_s=20)
    assert [hit.key for group in everywhere or () for hit in group.hits] == [archived.id]


async def test_what_changed_is_found_as_it_is_now(place: Stored) -> None:
    task = await place.add_task("walrus")
    take_up(place)

    execute(place, "UPDATE tasks SET title = 'octopus' WHERE id = ?", task.id)
    before = (await kinds(place, "walrus"), await kinds(place, "octopus"))
    take_up(place)

    assert before == (set(), {"tasks"})
    assert (await kinds(place, "walrus"), await kinds(place, "octopus")) == (set(), {"tasks"})


async def test_a_log_is_found_as_it_grows_and_is_replaced_and_not_when_it_is_gone(place: Stored) -> None:
    task: Task = await place.add_task("a task")
    run = await place.add_run(task.id, ExecutionStatus.RUNNING, output=b"alpha\n" * 8_000)
    log = place.services.paths.execution_dir(run.id) / "output.log"
    place.set_columns(run.id, log_byte_size=log.stat().st_size)
    take_up(place)

    with log.open("ab") as file:
        file.write(b"beta\n")
    place.set_columns(run.id, log_byte_size=log.stat().st_size)
    (grown,) = await hits(place, "in:logs beta", SearchKind.LOGS)
    replacement = log.with_name("new")
    replacement.write_bytes(b"gamma\nbeta\n")
    replacement.replace(log)
    (moved,) = await hits(place, "in:logs beta", SearchKind.LOGS)
    stale = await hits(place, "in:logs alpha", SearchKind.LOGS)
    place.set_status(run.id, ExecutionStatus.SUCCEEDED)
    take_up(place)
    (indexed,) = await hits(place, "in:logs beta", SearchKind.LOGS)
    log.unlink()
    place.set_columns(run.id, log_removed_at=_THEN)
    gone = await hits(place, "in:logs beta", SearchKind.LOGS)
    take_up(place)

    assert (grown.line, grown.offset) == (8_001, 48_000)
    assert moved.offset == 6
    assert stale == gone == ()
    assert (indexed.line, indexed.offset) == (2, 6)
    with closing(sqlite3.connect(place.services.paths.database_path)) as connection:
        for table in ("log_pieces", "log_indexes", "unindexed_logs"):
            assert connection.execute(f"SELECT count(*) FROM {table}").fetchone() == (0,), table
        words = connection.execute("SELECT rowid FROM log_words WHERE log_words MATCH 'beta OR gamma OR alpha'")
        assert words.fetchall() == []


async def test_of_a_long_log_the_beginning_and_the_end_are_searched(place: Stored) -> None:
    task = await place.add_task("a task")
    lines = [b"%06d needle\n" % number if number % 10_000 == 0 else b"%06d hay\n" % number for number in range(60_001)]
    await place.add_run(task.id, output=b"".join(lines), age=timedelta(minutes=2))
    take_up(place, log_bytes=300_000)

    found = await hits(place, "in:logs needle", SearchKind.LOGS)

    assert sorted(hit.line or 0 for hit in found) == [1, 10_001, 50_001, 60_001]
    assert all(hit.is_partial for hit in found)


@pytest.mark.parametrize("is_indexed", [False, True])
async def test_what_was_painted_over_is_not_found_wherever_a_piece_of_the_log_ends(
    place: Stored, is_indexed: bool
) -> None:
    painted = b"".join(b"\x1b[2A\x1b[2Kspinner %d\n\x1b[2Kof 3000\n" % number for number in range(3000))
    await place.add_run((await place.add_task("task")).id, output=b"begin\n\n\n" + painted + b"plain line\n" * 3)
    if is_indexed:
        take_up(place)

    assert [hit.snippet.text for hit in await hits(place, "spinner", SearchKind.LOGS)] == ["spinner 2999"]


async def test_how_much_of_a_log_is_searched_can_be_set_at_any_time(place: Stored) -> None:
    task = await place.add_task("a task")
    lines = [b"%06d needle\n" % number if number % 10_000 == 0 else b"%06d hay\n" % number for number in range(60_001)]
    await place.add_run(task.id, output=b"".join(lines))
    found = []

    with closing(SearchIndexing(place.services.paths.database_path)) as indexing:
        for log_bytes in (300_000, 0, 300_000, _LOG_BYTES, 300_000):
            while indexing.take_up_some(most_s=10, log_bytes=log_bytes):
                pass
            found.append(len(await hits(place, "in:logs needle", SearchKind.LOGS)))

    assert found == [4, 0, 4, 7, 7]


async def test_a_run_without_a_log_file_is_passed_over(place: Stored) -> None:
    task = await place.add_task("a task")
    for words in ("quiet", "loud"):
        run = await place.add_run(task.id, output=f"the {words} needle\n".encode())
        if words == "quiet":
            place.set_columns(run.id, log_file_path=None)

    assert [hit.snippet.text for hit in await hits(place, "in:logs needle", SearchKind.LOGS)] == ["the loud needle"]
    take_up(place)
    assert [hit.snippet.text for hit in await hits(place, "in:logs needle", SearchKind.LOGS)] == ["the loud needle"]


@pytest.mark.proof
async def test_logs_of_many_runs_are_searched_with_few_files_open(
    place: Stored, monkeypatch: pytest.MonkeyPatch
) -> None:
    task = await place.add_task("a task")
    for number in range(100):
        await place.add_run(task.id, output=b"only here \xc2\xbb\n" if number == 0 else b"hay\n")
    take_up(place)
    most_open = 0

    def counted(*arguments: int) -> bytes:
        nonlocal most_open
        most_open = max(most_open, len(list(Path("/dev/fd").iterdir())))
        return pread(*arguments)

    pread = os.pread
    open_before = len(list(Path("/dev/fd").iterdir()))
    monkeypatch.setattr(os, "pread", counted)

    found = await hits(place, "in:logs »", SearchKind.LOGS)

    assert len(found) == 1
    assert 0 < most_open - open_before < 50


async def test_a_line_has_the_time_at_which_it_came(place: Stored) -> None:
    task = await place.add_task("a task")
    run = await place.add_run(task.id, output=b"walrus one\nwalrus two\n")
    reports = [(11, "2026-03-01T10:00:00Z"), (22, "2026-03-01T11:00:00Z")]
    entries = [
        {"n": seq, "at_ms": int(datetime.fromisoformat(at).timestamp() * 1000), "type": "output"}
        | {"bytes": size, "lines": seq, "left_out_bytes": 0, "last_line": ""}
        for seq, (size, at) in enumerate(reports, start=1)
    ]
    journal = place.services.paths.execution_dir(run.id) / "journal.jsonl"
    journal.write_text("".join(json.dumps(entry) + "\n" for entry in entries))

    found = await hits(place, "in:logs walrus", SearchKind.LOGS)

    assert [(hit.line, hit.at.hour if hit.at else None) for hit in found] == [(2, 11), (1, 10)]


async def test_a_search_that_is_cancelled_while_its_connection_opens_leaves_none_open(
    place: Stored, monkeypatch: pytest.MonkeyPatch
) -> None:
    service = place.services.search
    is_opening, goes_on = threading.Event(), threading.Event()

    class Slow(SearchReader):
        def __init__(self, path: Path) -> None:
            is_opening.set()
            goes_on.wait(30)
            super().__init__(path)

    monkeypatch.setattr("agentmon.services.search.SearchReader", Slow)
    searching = asyncio.create_task(service.search("words", workspace=None))
    await asyncio.to_thread(is_opening.wait, 30)
    searching.cancel()
    await asyncio.sleep(0)
    goes_on.set()
    await asyncio.wait([searching])
    assert searching.cancelled()
    opened = service._reader
    await service.close()

    assert isinstance(opened, Slow)
    with pytest.raises(sqlite3.ProgrammingError):
        opened._connection.execute("SELECT 1")
