from __future__ import annotations

import asyncio
import gc
import os
import sqlite3
import subprocess
import sys
import threading
import time
import traceback
from contextlib import asynccontextmanager, closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest
from sqlalchemy import func, select, text, update

from agentmon.domain.clock import SystemClock
from agentmon.domain.errors import (
    DatabaseBusyError,
    DatabaseDamagedError,
    DatabaseFullError,
    StoreError,
    UsageError,
)
from agentmon.paths import find_database
from agentmon.store import tables
from agentmon.store.connections import connect
from agentmon.store.database import Database, open_database
from agentmon.store.errors import ConstraintError, ConstraintKind
from tests.interrupting import Moment, interrupt
from tests.store.queue_place import opened_queue
from tests.waiting import until

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from sqlalchemy.ext.asyncio import AsyncConnection

pytestmark = pytest.mark.usefixtures("databases_are_made_whole")

NOW: Final = datetime(2026, 3, 1, tzinfo=UTC)


@asynccontextmanager
async def opened(path: Path, *, busy_timeout: timedelta = timedelta(seconds=5)) -> AsyncIterator[Database]:
    found = await open_database(path, backups_dir=path.parent / "backups", release="1", busy_timeout=busy_timeout)
    try:
        yield found.database
    finally:
        await found.database.close()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """An empty folder that nothing else uses."""
    folder = tmp_path / "data"
    folder.mkdir()
    return folder


@pytest.fixture
async def database(folder: Path) -> AsyncIterator[Database]:
    async with opened(folder / "agentmon.db") as database:
        yield database


async def put(connection: AsyncConnection, key: str, value: object = "") -> None:
    await connection.execute(tables.settings.insert().values(key=key, value=value, created_at=NOW, updated_at=NOW))


async def count(database: Database) -> int:
    async with database.reading() as connection:
        return await connection.scalar(select(func.count()).select_from(tables.settings)) or 0


def names_in(folder: Path) -> list[str]:
    return sorted(file.name for file in folder.iterdir())


def replace_with_copy(path: Path) -> None:
    copy = path.with_name("copy")
    copy.write_bytes(path.read_bytes())
    copy.rename(path)


@pytest.fixture
def small_disk(folder: Path) -> Iterator[Path]:
    """A folder on a disk of 2 MB."""
    disk = folder / "disk"
    disk.mkdir()
    mounting = ["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(disk)]
    if subprocess.run(mounting, check=False, capture_output=True).returncode:
        pytest.skip("mounting a small disk needs root")
    yield disk
    subprocess.run(["umount", str(disk)], check=True)


def fill_up(ballast: Path) -> None:
    with ballast.open("wb", buffering=0) as file:
        while True:
            file.write(bytes(4096))


async def test_a_write_is_there_after_its_block(database: Database) -> None:
    async with database.writing() as connection:
        await put(connection, "theme", {"name": "dark"})

    async with database.reading() as connection:
        assert await connection.scalar(select(tables.settings.c.value)) == {"name": "dark"}


async def test_a_block_that_raises_writes_nothing(database: Database) -> None:
    async def write() -> None:
        async with database.writing() as connection:
            await put(connection, "theme")
            raise LookupError

    with pytest.raises(LookupError):
        await write()

    assert await count(database) == 0


async def test_a_block_that_is_cancelled_writes_nothing_and_frees_the_database(database: Database) -> None:
    has_written = asyncio.Event()

    async def write() -> None:
        async with database.writing() as connection:
            await put(connection, "theme")
            has_written.set()
            await asyncio.Event().wait()

    writer = asyncio.create_task(write())
    await has_written.wait()
    writer.cancel()
    with pytest.raises(asyncio.CancelledError):
        await writer

    async with database.writing() as connection:
        await put(connection, "other")
    assert await count(database) == 1


async def test_a_write_inside_a_write_is_refused_at_once(database: Database) -> None:
    async with database.writing() as connection:
        await put(connection, "outer")
        with pytest.raises(StoreError, match="inside another write"):
            async with database.writing():
                pass

    assert await count(database) == 1


async def test_writers_of_one_process_take_turns(database: Database) -> None:
    async def add_one() -> None:
        async with database.writing() as connection:
            seen = await connection.scalar(select(func.count()).select_from(tables.settings))
            await put(connection, f"key {seen}")

    async with asyncio.TaskGroup() as group:
        for _ in range(20):
            group.create_task(add_one())

    assert await count(database) == 20


async def test_a_reading_block_cannot_write(database: Database) -> None:
    with pytest.raises(StoreError, match="cannot be written"):
        async with database.reading() as connection:
            await put(connection, "theme")

    assert await count(database) == 0


async def test_what_people_wrote_is_in_no_error(database: Database) -> None:
    statement = text("INSERT INTO nowhere (title) VALUES (:title)")
    # A traceback shows the lines of this test.
    written = "-".join(("private", "words"))

    with pytest.raises(StoreError) as refused:
        async with database.writing() as connection:
            await connection.execute(statement, {"title": written})

    told = "".join(traceback.format_exception(refused.value))
    assert "INSERT INTO nowhere" in told
    assert written not in told


async def test_a_reading_block_keeps_one_view_while_others_write(database: Database) -> None:
    query = select(func.count()).select_from(tables.settings)
    async with database.reading() as connection:
        assert await connection.scalar(query) == 0
        async with database.writing() as writer:
            await put(writer, "theme")

        assert await connection.scalar(query) == 0

    assert await count(database) == 1


async def test_more_readers_than_connections_wait_for_each_other(database: Database) -> None:
    assert await asyncio.gather(*(count(database) for _ in range(30))) == [0] * 30


@pytest.mark.parametrize("is_writing", [True, False])
async def test_every_connection_has_the_settings_that_keep_the_data_whole(database: Database, is_writing: bool) -> None:
    async with database.writing() if is_writing else database.reading() as connection:
        found = {
            name: (await connection.exec_driver_sql(f"PRAGMA {name}")).scalar()
            for name in ("journal_mode", "foreign_keys", "busy_timeout", "synchronous", "trusted_schema", "query_only")
        }

    assert found == {
        "journal_mode": "wal",
        "foreign_keys": 1,
        "busy_timeout": 250 if is_writing else 5000,
        "synchronous": 1,
        "trusted_schema": 0,
        "query_only": int(not is_writing),
    }


async def test_the_data_version_moves_with_every_commit_and_only_then(database: Database) -> None:
    first = database.data_version()
    assert database.data_version() == first

    async with database.writing() as connection:
        await put(connection, "own")
    after_own = database.data_version()
    with closing(sqlite3.connect(database.path)) as other, other:
        other.execute("INSERT INTO settings VALUES ('other', '1', '', '')")
    after_other = database.data_version()

    assert len({first, after_own, after_other}) == 3
    assert database.data_version() == after_other


async def test_closing_leaves_the_file_alone_and_may_be_repeated(folder: Path) -> None:
    async with opened(folder / "agentmon.db") as database:
        database.data_version()
        async with database.writing() as connection:
            await put(connection, "theme")
        assert await count(database) == 1

    await database.close()
    assert names_in(folder) == ["agentmon.db", "agentmon.db.lock"]


async def test_the_files_beside_the_database_are_private_too(database: Database) -> None:
    async with database.writing() as connection:
        await put(connection, "theme")

    for file in database.path.parent.iterdir():
        assert file.stat().st_mode & 0o077 == 0, file.name


async def test_a_name_with_odd_characters_is_no_hindrance(folder: Path) -> None:
    async with opened(folder / "what? #1 100%41 ' \" é\n" / "a b.db") as database:
        async with database.writing() as connection:
            await put(connection, "theme")

        assert database.data_version() > 0
        assert database.path.is_file()


async def test_a_database_that_is_missing_is_not_made_anew(folder: Path) -> None:
    database = Database(folder / "agentmon.db")

    with pytest.raises(StoreError, match="is missing"):
        await count(database)
    with pytest.raises(StoreError, match="is missing"):
        database.data_version()

    await database.close()
    assert names_in(folder) == []


async def test_nothing_is_written_to_a_database_that_was_replaced_while_in_use(database: Database) -> None:
    async with database.writing() as connection:
        await put(connection, "theme")
    replace_with_copy(database.path)

    with pytest.raises(StoreError, match="no longer the file that was opened"):
        async with database.writing() as connection:
            await put(connection, "lost")
    with pytest.raises(StoreError, match="no longer the file that was opened"):
        await count(database)


# Errors


@pytest.mark.parametrize(
    ("statement", "kind", "constraint"),
    [
        ("INSERT INTO users VALUES ('u', 'n', '', '')", ConstraintKind.UNIQUE, "pk_users"),
        (
            "INSERT INTO workspaces SELECT 'x', owner_id, name, root_path, settings, '', '', '', '' FROM workspaces",
            ConstraintKind.UNIQUE,
            "uq_workspaces_root_path",
        ),
        ("UPDATE workspaces SET owner_id = 'nobody'", ConstraintKind.FOREIGN_KEY, ""),
        ("UPDATE workspaces SET name = NULL", ConstraintKind.NOT_NULL, "workspaces.name"),
        (
            "INSERT INTO task_dependencies VALUES ('a', 'a', '')",
            ConstraintKind.CHECK,
            "ck_task_dependencies_not_on_itself",
        ),
    ],
)
async def test_a_broken_rule_is_named(
    database: Database, statement: str, kind: ConstraintKind, constraint: str
) -> None:
    async with database.writing() as connection:
        await connection.exec_driver_sql("INSERT INTO users VALUES ('u', 'n', '', '')")
        await connection.exec_driver_sql(
            "INSERT INTO workspaces (id, owner_id, name, root_path, created_at, updated_at)"
            " VALUES ('w', 'u', 'n', '/', '', '')"
        )

    with pytest.raises(ConstraintError) as caught:
        async with database.writing() as connection:
            await connection.exec_driver_sql(statement)

    assert (caught.value.kind, caught.value.constraint) == (kind, constraint)


async def test_the_rule_of_one_open_execution_has_its_name(database: Database) -> None:
    async def queue_twice() -> None:
        async with database.writing() as connection:
            # Only the unique rule is looked at here, so the rows that an execution points to may be missing.
            await connection.exec_driver_sql("PRAGMA defer_foreign_keys = ON")
            for execution_id in ("a", "b"):
                await connection.exec_driver_sql(
                    "INSERT INTO executions (id, task_id, agent_id, capability_id, requested_by, status, mode,"
                    " queued_at, created_at, updated_at)"
                    " VALUES (?, 't', 'a', 'c', 'u', 'queued', 'template', '', '', '')",
                    (execution_id,),
                )

    with pytest.raises(ConstraintError) as caught:
        await queue_twice()

    assert caught.value.constraint == "uq_executions_open_task_id"


async def test_a_wrong_statement_is_an_error_of_the_store(database: Database) -> None:
    with pytest.raises(StoreError, match="no such table"):
        async with database.writing() as connection:
            await connection.exec_driver_sql("SELECT * FROM missing")


async def test_a_lock_that_outlasts_the_wait_is_reported_and_harms_nothing(folder: Path) -> None:
    async with opened(folder / "agentmon.db", busy_timeout=timedelta(milliseconds=30)) as database:
        with closing(sqlite3.connect(database.path, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")

            with pytest.raises(DatabaseBusyError, match="held by another process"):
                async with database.writing():
                    pass

            assert await count(database) == 0
            other.execute("COMMIT")
        async with database.writing() as connection:
            await put(connection, "theme")
        assert await count(database) == 1


async def test_a_short_lock_is_waited_for(database: Database) -> None:
    other = sqlite3.connect(database.path, isolation_level=None, check_same_thread=False)
    other.execute("BEGIN IMMEDIATE")
    release = threading.Timer(0.2, other.execute, ("COMMIT",))
    release.start()

    async with database.writing() as connection:
        await put(connection, "theme")

    release.join()
    other.close()
    assert await count(database) == 1


async def test_a_lock_longer_than_one_wait_is_tried_again(folder: Path) -> None:
    async with opened(folder / "agentmon.db", busy_timeout=timedelta(milliseconds=400)) as database:
        other = sqlite3.connect(database.path, isolation_level=None, check_same_thread=False)
        other.execute("BEGIN IMMEDIATE")
        began = time.monotonic()
        release = threading.Timer(0.6, other.execute, ("COMMIT",))
        release.start()

        async with database.writing() as connection:
            await put(connection, "theme")

        assert time.monotonic() - began > 0.4
        release.join()
        other.close()
        assert await count(database) == 1


async def test_a_write_that_waits_for_another_process_can_be_cancelled(folder: Path) -> None:
    async with opened(folder / "agentmon.db", busy_timeout=timedelta(minutes=5)) as database:
        with closing(sqlite3.connect(database.path, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")

            async def wait_and_put() -> None:
                async with database.writing() as connection:
                    await put(connection, "theme")

            async def is_waiting() -> bool:
                return database._writing_task is write and len(database._connections) > 0

            write = asyncio.create_task(wait_and_put())
            await until(is_waiting)
            write.cancel()
            await asyncio.wait([write])
            await database.close()
            alive = [one for one in database._connections if one.is_alive]

    assert alive == []
    assert write.cancelled()


async def test_a_full_database_says_so_and_is_whole_afterwards(database: Database) -> None:
    async with database.writing() as connection:
        await put(connection, "kept")
    async with database.writing() as connection:
        pages = (await connection.exec_driver_sql("PRAGMA page_count")).scalar()
        await connection.exec_driver_sql(f"PRAGMA max_page_count = {pages}")

    async def write_too_much() -> None:
        async with database.writing() as connection:
            await put(connection, "small")
            await put(connection, "large", "x" * 100_000)

    with pytest.raises(DatabaseFullError, match="nothing of this change was written"):
        await write_too_much()

    async with database.reading() as connection:
        assert (await connection.execute(select(tables.settings.c.key))).scalars().all() == ["kept"]
        assert (await connection.exec_driver_sql("PRAGMA integrity_check")).scalar() == "ok"
    async with database.writing() as connection:
        await connection.exec_driver_sql("PRAGMA max_page_count = 100000")
        await put(connection, "large", "x" * 100_000)
    assert await count(database) == 2


async def test_a_full_disk_says_so_and_the_database_goes_on_when_there_is_room(small_disk: Path) -> None:
    async with opened(small_disk / "agentmon.db") as database:
        with pytest.raises(OSError, match="No space left"):
            fill_up(small_disk / "ballast")

        with pytest.raises(DatabaseFullError):
            async with database.writing() as connection:
                await put(connection, "large", "x" * 200_000)

        (small_disk / "ballast").unlink()
        async with database.writing() as connection:
            await put(connection, "large", "x" * 200_000)
        assert await count(database) == 1
        async with database.reading() as connection:
            assert (await connection.exec_driver_sql("PRAGMA integrity_check")).scalar() == "ok"


async def test_a_page_that_is_torn_while_in_use_is_reported_as_damage(folder: Path) -> None:
    path = folder / "agentmon.db"
    async with opened(path) as database, database.writing() as connection:
        for number in range(400):
            await put(connection, f"{number:04}", "x" * 20_000)
    with path.open("r+b") as file:
        for page in range(500, 1500):
            file.seek(page * 4096)
            file.write(os.urandom(4096))

    async with opened(path) as database:
        with pytest.raises(DatabaseDamagedError, match="it was left as it is"):
            async with database.reading() as connection:
                await connection.scalar(select(func.sum(func.length(tables.settings.c.value))))

    assert path.stat().st_size > 1500 * 4096


# Several processes

_WRITERS: Final = """
import asyncio, os, sys
from datetime import UTC, datetime
from pathlib import Path
from agentmon.store import tables
from agentmon.store.database import open_database
path, processes, writes = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
now = datetime.now(UTC)

async def write(writer):
    found = await open_database(path, backups_dir=path.parent, release="1")
    for number in range(writes):
        async with found.database.writing() as connection:
            total = (await connection.execute(tables.settings.select().where(tables.settings.c.key == "total"))).one()
            await connection.execute(
                tables.settings.update().where(tables.settings.c.key == "total").values(value=total.value + 1)
            )
            await connection.execute(
                tables.settings.insert().values(key=f"{writer}-{number}", value=1, created_at=now, updated_at=now)
            )
    await found.database.close()

gate, opened = os.pipe()
for writer in range(processes):
    if os.fork() == 0:
        os.close(opened)
        os.read(gate, 1)
        asyncio.run(write(writer))
        os._exit(0)
os.close(opened)
sys.exit(max(os.waitstatus_to_exitcode(os.wait()[1]) for _ in range(processes)))
"""


@pytest.mark.proof
async def test_several_processes_that_write_at_once_lose_nothing_and_meet_no_lock_error(database: Database) -> None:
    async with database.writing() as connection:
        await put(connection, "total", 0)

    writers = await asyncio.create_subprocess_exec(
        sys.executable, "-c", _WRITERS, str(database.path), "4", "200", stderr=subprocess.PIPE
    )
    ended = asyncio.create_task(writers.communicate())
    while not ended.done():
        # A reader that comes again and again meets no lock either.
        await count(database)
        await asyncio.wait([ended], timeout=0.05)
    _, errors = ended.result()

    assert (writers.returncode, errors) == (0, b"")
    assert await count(database) == 801
    async with database.reading() as connection:
        query = select(tables.settings.c.value).where(tables.settings.c.key == "total")
        assert await connection.scalar(query) == 800


# Places


@pytest.mark.parametrize(
    ("location", "path"),
    [
        ("sqlite:////var/lib/a.db", "/var/lib/a.db"),
        ("sqlite+aiosqlite:////var/lib/a b.db", "/var/lib/a b.db"),
    ],
)
def test_a_location_names_a_file(location: str, path: str) -> None:
    assert find_database(location) == Path(path)


def test_three_slashes_are_relative_to_the_present_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)

    assert find_database("sqlite:///sub/a.db") == tmp_path / "sub" / "a.db"


@pytest.mark.parametrize(
    ("location", "message"),
    [
        ("/var/lib/a.db", "does not start with sqlite"),
        ("sqlite://", "too few slashes"),
        ("sqlite://a.db", "too few slashes"),
        ("sqlite:///", "names no file"),
        ("sqlite:///:memory:", "names no file"),
        ("sqlite:///a.db?mode=ro", "options"),
        ("postgresql://ada:hunter22@db/agentmon", "SQLite only"),
        ("mysql+asyncmy://ada:hunter22@db/agentmon", "SQLite only"),
    ],
)
def test_a_location_that_cannot_be_used_is_refused_with_the_way_out(location: str, message: str) -> None:
    with pytest.raises(UsageError, match=message) as caught:
        find_database(location)

    assert "sqlite:////" in caught.value.hint
    assert "hunter22" not in str(caught.value)


@pytest.mark.parametrize("ticks", range(8))
def test_a_loop_that_ends_in_the_midst_of_reading_ends(tmp_path: Path, ticks: int) -> None:
    async def read(database: Database) -> None:
        while True:
            async with database.reading() as connection:
                await connection.execute(text("SELECT count(*) FROM tasks"))

    async def close_while_reading() -> None:
        opened = await open_database(tmp_path / "agentmon.db", backups_dir=tmp_path / "backups", release="1")
        readers = [asyncio.create_task(read(opened.database)) for _ in range(6)]
        await asyncio.sleep(0.002 * ticks)
        for reader in readers:
            reader.cancel()
        for _ in range(ticks):
            await asyncio.sleep(0)
        await opened.database.close()

    ended = threading.Thread(target=asyncio.run, args=(close_while_reading(),), daemon=True)
    ended.start()
    ended.join(30)

    assert not ended.is_alive()
    assert not [thread for thread in threading.enumerate() if "_connection_worker_thread" in thread.name]


async def test_a_connection_that_nobody_waits_for_any_more_is_closed(tmp_path: Path) -> None:
    is_closed = threading.Event()

    class Watched(sqlite3.Connection):
        def close(self) -> None:
            super().close()
            is_closed.set()

    async def opened() -> None:
        await connect(str(tmp_path / "a.db"), factory=Watched)

    opening = asyncio.create_task(opened())
    await asyncio.sleep(0)
    opening.cancel()
    await asyncio.wait([opening])

    assert opening.cancelled()
    assert await asyncio.to_thread(is_closed.wait, 10)


async def test_a_closed_database_opens_no_connection_any_more(tmp_path: Path) -> None:
    opened = await open_database(tmp_path / "a.db", backups_dir=tmp_path, release="1", clock=SystemClock())
    async with opened.database.reading():
        pass
    await opened.database.close()

    with pytest.raises(StoreError, match="closed"):
        async with opened.database.reading():
            pass
    with pytest.raises(StoreError, match="closed"):
        async with opened.database.writing():
            pass


@pytest.mark.parametrize("moment", Moment)
async def test_a_write_that_is_cancelled_leaves_the_database_to_others_before_garbage_is_collected(
    tmp_path: Path, moment: Moment
) -> None:
    path = tmp_path / "a.db"
    is_over, at = False, 0
    async with opened_queue(path, [], {"w": 0, "v": 0}) as place:

        async def write() -> None:
            async with place.database.writing() as connection:
                await connection.execute(update(tables.workspaces).values(name="other"))
                await connection.execute(select(tables.workspaces))

        async def is_free() -> bool:
            with closing(sqlite3.connect(path, timeout=0, isolation_level=None)) as connection:
                try:
                    connection.execute("BEGIN IMMEDIATE")
                except sqlite3.OperationalError:
                    return False
                return True

        gc.disable()
        try:
            while not is_over:
                is_over = await interrupt(write(), at, moment)
                await until(is_free, f"the database is free after the await {at}")
                at += 1
        finally:
            gc.enable()
