from __future__ import annotations

import hashlib
import os
import re
import shutil
import sqlite3
import stat
import subprocess
import sys
import tempfile
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest
from alembic.config import Config
from alembic.script import ScriptDirectory

from agentmon.domain.clock import FakeClock
from agentmon.domain.errors import (
    DatabaseDamagedError,
    DatabaseFullError,
    DatabaseTooNewError,
    StoreError,
    UsageError,
)
from agentmon.store import inspection
from agentmon.store.backup import find_newest_backup
from agentmon.store.migrations import run_migrations
from agentmon.store.revision import HEAD_REVISION, REVISIONS
from agentmon.store.untouched import connect_untouched
from agentmon.store.upgrade import Migrations, PreparedDatabase, prepare_database

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

pytestmark = pytest.mark.usefixtures("databases_are_made_whole")

_NOBODY: Final = 65534

_NEXT_REVISION: Final = '''
"""A later schema."""
import sqlalchemy as sa
from alembic import op

revision = "9001"
down_revision = "{head}"

def upgrade():
    with op.batch_alter_table("tasks", recreate="always") as tasks:
        tasks.add_column(sa.Column("colour", sa.String(), nullable=False, server_default="grey"))
{more}
'''


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "data" / "agentmon.db"


def prepare(path: Path, *, migrations: Migrations | None = None, clock: FakeClock | None = None) -> PreparedDatabase:
    return prepare_database(
        path, backups_dir=path.parent / "backups", release="1.2.3", clock=clock or FakeClock(), migrations=migrations
    )


def later_migrations(folder: Path, *, more: str = "") -> Migrations:
    """The migrations of a later release, which has one revision more."""
    if not folder.exists():
        shutil.copytree(Migrations().folder, folder, ignore=shutil.ignore_patterns("__pycache__"))
    revision = _NEXT_REVISION.format(head=HEAD_REVISION, more=more)
    (folder / "versions" / "9001_later.py").write_text(revision)
    return Migrations(folder=folder, revisions=(*REVISIONS, "9001"))


def fill(path: Path) -> None:
    """Put a task with a dependency and an event into the database."""
    now = "2026-03-01T12:00:00.000Z"
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("PRAGMA foreign_keys = ON")
        connection.execute("INSERT INTO users VALUES ('user', 'Ada', ?, ?)", (now, now))
        connection.execute(
            "INSERT INTO workspaces (id, owner_id, name, root_path, created_at, updated_at)"
            " VALUES ('workspace', 'user', 'w', '/w', ?, ?)",
            (now, now),
        )
        for number in (1, 2):
            connection.execute(
                "INSERT INTO tasks"
                " (id, number, owner_id, workspace_id, title, status, sort_order, created_at, updated_at)"
                " VALUES (?, ?, 'user', 'workspace', 'kept', 'todo', 0, ?, ?)",
                (f"task-{number}", number, now, now),
            )
        connection.execute("INSERT INTO task_dependencies VALUES ('task-1', 'task-2', ?)", (now,))
        connection.execute(
            "INSERT INTO task_events (task_id, actor_type, event_type, created_at)"
            " VALUES ('task-1', 'user', 'task_created', ?)",
            (now,),
        )


def rows(path: Path, query: str) -> list[tuple[object, ...]]:
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute(query).fetchall()


def schema(path: Path) -> list[tuple[object, ...]]:
    found = rows(path, "SELECT type, name, tbl_name, sql FROM sqlite_master ORDER BY type, name")
    return [(*names, re.sub(r"\s+", " ", str(statement))) for *names, statement in found]


def listing(folder: Path) -> dict[str, tuple[int, str]]:
    """Every file of the folder with its mode and the hash of its content."""
    return {
        str(file.relative_to(folder)): (file.stat().st_mode, hashlib.sha256(file.read_bytes()).hexdigest())
        for file in sorted(folder.rglob("*"))
        if file.is_file()
    }


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.fixture
def as_ordinary_user() -> Iterator[Path]:
    """A folder of an ordinary user, who is then the one that runs the test, since nothing stops root."""
    folder = Path(tempfile.mkdtemp(prefix="agentmon-test-"))
    is_root = os.geteuid() == 0
    if is_root:
        os.chown(folder, _NOBODY, _NOBODY)
        os.seteuid(_NOBODY)
    try:
        yield folder
    finally:
        if is_root:
            os.seteuid(0)
        shutil.rmtree(folder)


# Making


def test_all_migrations_in_order_give_the_schema_of_a_fresh_database(path: Path, tmp_path: Path) -> None:
    migrated = tmp_path / "migrated.db"
    migrated.touch()

    prepare(path)
    run_migrations(migrated, Migrations().folder)

    assert len(schema(path)) > 80
    assert schema(migrated) == schema(path)
    assert rows(migrated, "SELECT * FROM alembic_version") == rows(path, "SELECT * FROM alembic_version")


def test_the_revisions_in_the_code_are_the_ones_in_the_folder() -> None:
    config = Config()
    config.set_main_option("script_location", str(Migrations().folder))
    scripts = ScriptDirectory.from_config(config)

    assert tuple(step.revision for step in reversed(list(scripts.walk_revisions()))) == REVISIONS
    assert scripts.get_current_head() == HEAD_REVISION


def test_a_missing_database_is_made_for_its_owner_alone(path: Path) -> None:
    old_umask = os.umask(0)
    try:
        prepared = prepare(path)
    finally:
        os.umask(old_umask)

    assert prepared == PreparedDatabase(path=path)
    assert mode(path) == 0o600
    assert mode(path.parent) == 0o700
    assert rows(path, "PRAGMA journal_mode") == [("wal",)]
    assert rows(path, "PRAGMA integrity_check") == [("ok",)]


def test_a_database_that_others_could_read_is_closed_to_them(path: Path) -> None:
    prepare(path)
    path.chmod(0o644)

    prepare(path)

    assert mode(path) == 0o600


def test_a_current_database_is_left_as_it_is(path: Path) -> None:
    prepare(path)
    fill(path)
    before = listing(path.parent)

    assert prepare(path).notices == ()
    assert listing(path.parent) == before


def test_what_a_killed_maker_left_does_no_harm(path: Path) -> None:
    path.parent.mkdir()
    unfinished = path.parent / f".{path.name}.new-12345"
    unfinished.write_bytes(b"SQLite format 3\0")

    prepare(path)

    assert not unfinished.exists()
    assert rows(path, "SELECT * FROM alembic_version") == [(HEAD_REVISION,)]


def test_a_symbolic_link_leads_to_the_database(path: Path, tmp_path: Path) -> None:
    link = tmp_path / "link.db"
    link.symlink_to(path)

    assert prepare(link).path == path
    assert link.is_symlink()
    assert path.is_file()


def test_a_full_disk_leaves_no_half_made_database(tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=128k", "tmpfs", str(disk)], check=False, capture_output=True
    )
    if mounted.returncode:
        pytest.skip("mounting a small disk needs root")
    try:
        with pytest.raises(DatabaseFullError):
            prepare_database(disk / "agentmon.db", backups_dir=tmp_path, release="1.2.3")

        assert [file.name for file in disk.iterdir()] == ["agentmon.db.lock"]
    finally:
        subprocess.run(["umount", str(disk)], check=True)


# Upgrading


def test_an_old_database_is_upgraded_after_a_backup_with_every_row_kept(path: Path, tmp_path: Path) -> None:
    prepare(path)
    fill(path)
    later = later_migrations(tmp_path / "later")

    prepared = prepare(path, migrations=later)

    backup = path.parent / "backups" / f"agentmon-{HEAD_REVISION}-20260101T120000Z.db"
    assert prepared.notices == (f"The database was upgraded for agentmon 1.2.3. A copy from before is kept: {backup}",)
    assert rows(path, "SELECT * FROM alembic_version") == [("9001",)]
    assert rows(path, "SELECT number, title, colour FROM tasks ORDER BY number") == [
        (1, "kept", "grey"),
        (2, "kept", "grey"),
    ]
    assert rows(path, "SELECT count(*) FROM task_dependencies") == [(1,)]
    assert rows(path, "SELECT count(*) FROM task_events") == [(1,)]
    assert rows(path, "PRAGMA foreign_key_check") == []
    assert rows(backup, "SELECT * FROM alembic_version") == [(HEAD_REVISION,)]
    assert rows(backup, "SELECT count(*) FROM tasks") == [(2,)]
    assert mode(backup) == 0o600
    assert mode(backup.parent) == 0o700
    assert prepare(path, migrations=later).notices == ()


def test_an_upgraded_table_keeps_its_rules_and_indexes(path: Path, tmp_path: Path) -> None:
    prepare(path)
    # Triggers go with the old table: a revision that makes one again writes them anew.
    before = {(kind, name) for kind, name, *_ in schema(path) if kind != "trigger"}

    prepare(path, migrations=later_migrations(tmp_path / "later"))

    assert {(kind, name) for kind, name, *_ in schema(path) if kind != "trigger"} == before
    statement = next(str(sql) for _, name, _, sql in schema(path) if name == "tasks")
    for rule in ("ck_tasks_status", "ck_tasks_priority", "uq_tasks_workspace_id_number", "fk_tasks_workspace_id"):
        assert rule in statement


def test_a_backup_holds_what_is_still_in_the_write_ahead_log(path: Path, tmp_path: Path) -> None:
    prepare(path)
    with closing(sqlite3.connect(path)) as user:
        user.execute("SELECT * FROM tasks").fetchall()
        fill(path)
        assert path.with_name("agentmon.db-wal").stat().st_size > 0

        prepare(path, migrations=later_migrations(tmp_path / "later"))

    (backup,) = (path.parent / "backups").iterdir()
    assert rows(backup, "SELECT count(*) FROM tasks") == [(2,)]


def test_every_backup_is_kept(path: Path, tmp_path: Path) -> None:
    later = later_migrations(tmp_path / "later")
    for _ in range(2):
        path.unlink(missing_ok=True)
        prepare(path)
        prepare(path, migrations=later)

    assert len(list((path.parent / "backups").iterdir())) == 2


@pytest.mark.parametrize(
    "failure",
    [
        "    op.execute('INSERT INTO no_such_table VALUES (1)')",
        "    op.execute(\"INSERT INTO task_dependencies VALUES ('task-1', 'nowhere', '2026-03-01T12:00:00.000Z')\")",
    ],
    ids=["a statement fails", "a reference is left broken"],
)
def test_an_upgrade_that_fails_changes_nothing_and_names_the_backup(path: Path, tmp_path: Path, failure: str) -> None:
    prepare(path)
    fill(path)
    before = schema(path)

    with pytest.raises(StoreError, match="could not be upgraded and is as it was") as caught:
        prepare(path, migrations=later_migrations(tmp_path / "later", more=failure))

    (backup,) = (path.parent / "backups").iterdir()
    assert str(backup) in caught.value.hint
    assert schema(path) == before
    assert rows(path, "SELECT * FROM alembic_version") == [(HEAD_REVISION,)]
    assert rows(path, "SELECT count(*) FROM tasks") == [(2,)]


def test_an_upgrade_that_is_not_yet_folded_into_the_file_is_seen(path: Path, tmp_path: Path) -> None:
    prepare(path)
    later = later_migrations(tmp_path / "later")
    with closing(sqlite3.connect(path)) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT * FROM tasks").fetchall()
        prepare(path, migrations=later)

        assert prepare(path, migrations=later).notices == ()


# Refusing


def test_a_newer_database_is_refused_untouched(path: Path, tmp_path: Path) -> None:
    prepare(path)
    prepare(path, migrations=later_migrations(tmp_path / "later"))
    path.with_name("agentmon.db.lock").unlink()
    before = listing(path.parent)

    with pytest.raises(DatabaseTooNewError, match=r"later release .*revision 9001"):
        prepare(path)

    assert listing(path.parent) == before


def test_a_newer_database_that_was_not_closed_is_refused_untouched(path: Path, tmp_path: Path) -> None:
    prepare(path)
    prepare(path, migrations=later_migrations(tmp_path / "later"))
    script = (
        "import os, sqlite3, sys\n"
        "connection = sqlite3.connect(sys.argv[1])\n"
        "connection.execute(\"INSERT INTO users VALUES ('u', 'n', '', '')\")\n"
        "connection.commit()\n"
        "os.kill(os.getpid(), 9)\n"
    )
    subprocess.run([sys.executable, "-c", script, str(path)], check=False, timeout=30)
    log = path.with_name("agentmon.db-wal")
    before = (path.read_bytes(), log.read_bytes())
    assert before[1]

    with pytest.raises(DatabaseTooNewError):
        prepare(path)

    assert (path.read_bytes(), log.read_bytes()) == before


def test_the_database_of_another_program_is_refused_untouched(path: Path) -> None:
    path.parent.mkdir()
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("CREATE TABLE bookmarks (url TEXT)")
    before = listing(path.parent)

    with pytest.raises(UsageError, match="some other program"):
        prepare(path)

    assert listing(path.parent) == before


def test_a_folder_is_refused(path: Path) -> None:
    path.mkdir(parents=True)

    with pytest.raises(UsageError, match="is a folder"):
        prepare(path)

    assert list(path.iterdir()) == []


def test_a_path_through_a_file_is_refused(path: Path) -> None:
    path.parent.write_text("notes")

    with pytest.raises(UsageError, match="no folder"):
        prepare(path)


@pytest.mark.parametrize(
    ("forbid", "allow", "message"),
    [
        (lambda path: path.chmod(0o400), lambda path: path.chmod(0o600), "cannot be written"),
        (lambda path: path.chmod(0o200), lambda path: path.chmod(0o600), "cannot be read"),
        (lambda path: path.parent.chmod(0o500), lambda path: path.parent.chmod(0o700), "folder .* cannot be written"),
        (lambda path: path.parent.chmod(0o000), lambda path: path.parent.chmod(0o700), "cannot be looked at"),
    ],
    ids=["read-only file", "unreadable file", "read-only folder", "unreadable folder"],
)
def test_a_database_that_may_not_be_used_is_refused_untouched(
    as_ordinary_user: Path, forbid: Callable[[Path], None], allow: Callable[[Path], None], message: str
) -> None:
    path = as_ordinary_user / "data" / "agentmon.db"
    prepare(path)
    before = listing(path.parent)
    forbid(path)

    with pytest.raises(StoreError, match=message):
        prepare(path)

    allow(path)
    after = listing(path.parent)
    assert {name: digest for name, (_, digest) in after.items()} == {
        name: digest for name, (_, digest) in before.items()
    }


def test_no_database_is_made_in_a_read_only_folder(as_ordinary_user: Path) -> None:
    as_ordinary_user.chmod(0o500)

    with pytest.raises(StoreError, match="cannot be written"):
        prepare(as_ordinary_user / "agentmon.db")

    as_ordinary_user.chmod(0o700)
    assert list(as_ordinary_user.iterdir()) == []


# Damage


def _random(path: Path) -> None:
    path.write_bytes(os.urandom(path.stat().st_size))


def _halve(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


def _halve_large(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("INSERT INTO settings VALUES ('large', ?, '', '')", ("x" * 6_000_000,))
    os.truncate(path, path.stat().st_size // 2)


def _empty(path: Path) -> None:
    os.truncate(path, 0)


def _header_only(path: Path) -> None:
    os.truncate(path, 100)


def _first_page_only(path: Path) -> None:
    os.truncate(path, 4096)


def _without_tables(path: Path) -> None:
    path.unlink()
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("VACUUM")


def _torn_page(path: Path) -> None:
    with path.open("r+b") as file:
        file.seek(4096 * 3)
        file.write(os.urandom(4096))


_DAMAGES: Final = [_random, _halve, _halve_large, _empty, _header_only, _first_page_only, _without_tables, _torn_page]


@pytest.mark.parametrize("damage", _DAMAGES)
def test_a_damaged_database_is_set_aside_and_never_replaced_without_a_word(
    path: Path, damage: Callable[[Path], None]
) -> None:
    prepare(path)
    fill(path)
    damage(path)
    content = path.read_bytes()
    aside = path.with_name("agentmon.db.damaged-20260101T120000Z")

    with pytest.raises(DatabaseDamagedError, match=re.escape(f"it was moved to {aside} and nothing was deleted")):
        prepare(path)

    assert not path.exists()
    assert aside.read_bytes() == content
    assert prepare(path).notices == (f"A new, empty database was made. The damaged one from before is kept: {aside}",)
    assert prepare(path).notices == ()
    assert aside.read_bytes() == content


def test_an_empty_file_is_called_empty(path: Path) -> None:
    path.parent.mkdir()
    path.touch()

    with pytest.raises(DatabaseDamagedError, match="the file is empty"):
        prepare(path)


def test_the_write_ahead_log_of_a_damaged_database_goes_with_it(path: Path) -> None:
    prepare(path)
    _random(path)
    path.with_name("agentmon.db-wal").write_bytes(b"log")

    with pytest.raises(DatabaseDamagedError):
        prepare(path)

    assert path.with_name("agentmon.db.damaged-20260101T120000Z-wal").read_bytes() == b"log"
    assert not path.with_name("agentmon.db-wal").exists()


def test_two_damaged_databases_in_one_second_are_both_kept(path: Path) -> None:
    for _ in range(2):
        prepare(path)
        _random(path)
        with pytest.raises(DatabaseDamagedError):
            prepare(path)

    assert len(list(path.parent.glob("agentmon.db.damaged-*"))) == 2


def test_the_way_back_from_damage_restores_the_newest_backup(path: Path, tmp_path: Path) -> None:
    clock = FakeClock()
    prepare(path)
    prepare(path, migrations=later_migrations(tmp_path / "later"), clock=clock)
    path.unlink()
    prepare(path)
    fill(path)
    clock.move(timedelta(days=1))
    later = later_migrations(tmp_path / "later")
    prepare(path, migrations=later, clock=clock)
    _random(path)

    with pytest.raises(DatabaseDamagedError) as caught:
        prepare(path, migrations=later, clock=clock)
    restore = next(line for line in caught.value.hint.splitlines() if "cp " in line)
    subprocess.run(restore[restore.index("cp ") :], shell=True, check=True)

    prepare(path, migrations=later, clock=clock)
    assert rows(path, "SELECT title, colour FROM tasks") == [("kept", "grey"), ("kept", "grey")]


@pytest.mark.parametrize(
    "other", ["agentmon-test-0007-20270101T120000Z.db", "agentmon-2-0007-20270101T120000Z.db", "agentmon-notes.db"]
)
def test_the_way_back_never_names_the_backup_of_another_database(path: Path, other: str) -> None:
    prepare(path)
    (path.parent / "backups").mkdir()
    (path.parent / "backups" / other).touch()
    _halve(path)

    with pytest.raises(DatabaseDamagedError) as caught:
        prepare(path)

    assert other not in caught.value.hint
    assert ".recover" in caught.value.hint


def test_of_backups_of_one_second_the_last_is_the_newest(tmp_path: Path) -> None:
    for name in (
        "agentmon-0007-20260101T120000Z",
        *(f"agentmon-0007-20260101T120000Z.{count}" for count in (2, 9, 10)),
    ):
        (tmp_path / f"{name}.db").touch()

    newest = find_newest_backup(Path("/data/agentmon.db"), tmp_path)

    assert newest == tmp_path / "agentmon-0007-20260101T120000Z.10.db"


def test_only_the_damaged_file_of_this_very_database_is_told_after_a_fresh_start(path: Path) -> None:
    path.parent.mkdir()
    for name in (
        "agentmon.db.damaged-by-me",
        "agentmon.db.damaged-20260101T120000Z-wal",
        "agentmon.db.damaged-20260101T120000Z.sql",
    ):
        (path.parent / name).touch()

    assert prepare(path).notices == ()


def test_a_fresh_start_takes_away_no_unfinished_file_of_another_database(tmp_path: Path) -> None:
    path = tmp_path / "[a].db"
    own = tmp_path / ".[a].db.new-4194304"
    others = [tmp_path / ".a.db.new-1", tmp_path / ".[a].db.new-notes"]
    for file in (own, *others):
        file.touch()

    prepare(path)

    assert not own.exists()
    assert all(file.exists() for file in others)


def test_without_a_backup_the_way_back_is_to_save_what_can_be_read(path: Path) -> None:
    prepare(path)
    _halve(path)

    with pytest.raises(DatabaseDamagedError) as caught:
        prepare(path)

    assert ".recover" in caught.value.hint


def test_a_damaged_database_in_a_read_only_folder_stays_where_it_is(as_ordinary_user: Path) -> None:
    path = as_ordinary_user / "agentmon.db"
    prepare(path)
    _random(path)
    content = path.read_bytes()
    as_ordinary_user.chmod(0o500)

    with pytest.raises(DatabaseDamagedError, match="could not be moved aside"):
        prepare(path)

    as_ordinary_user.chmod(0o700)
    assert path.read_bytes() == content


def test_a_database_in_use_is_never_taken_for_damaged(path: Path) -> None:
    prepare(path)
    with closing(sqlite3.connect(path, isolation_level=None)) as user:
        user.execute("BEGIN IMMEDIATE")
        user.execute("INSERT INTO users VALUES ('u', 'n', '', '')")

        assert prepare(path).notices == ()

        user.execute("COMMIT")
        assert prepare(path).notices == ()


def test_a_look_that_fell_into_the_middle_of_a_write_is_taken_again(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    prepare(path)
    torn = tmp_path / "torn.db"
    torn.write_bytes(path.read_bytes())
    _halve(torn)
    monkeypatch.setattr(inspection, "connect_untouched", lambda _: connect_untouched(torn))

    assert prepare(path).notices == ()


# Several at once

# The modules are imported once and the process then forks, so that no opener waits for its imports.
_OPENERS: Final = """
import os, sys
from pathlib import Path
from agentmon.store import schema, migrations
from agentmon.store.revision import REVISIONS
from agentmon.store.upgrade import Migrations, prepare_database
path, folder, count = Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3])
steps = Migrations(folder=folder, revisions=(*REVISIONS, "9001")) if folder.name else None
gate, opened = os.pipe()
for _ in range(count):
    if os.fork() == 0:
        os.close(opened)
        os.read(gate, 1)
        prepared = prepare_database(path, backups_dir=path.parent / "backups", release="1", migrations=steps)
        os.write(1, b"%d notices\\n" % len(prepared.notices))
        os._exit(0)
os.close(opened)
sys.exit(max(os.waitstatus_to_exitcode(os.wait()[1]) for _ in range(count)))
"""


def open_at_once(path: Path, *, count: int, migrations: Path | None = None) -> list[str]:
    """Prepare the database in several processes at the same moment; returns what they printed, sorted."""
    arguments = [str(path), "" if migrations is None else str(migrations), str(count)]
    openers = subprocess.run(
        [sys.executable, "-c", _OPENERS, *arguments], capture_output=True, text=True, check=False, timeout=60
    )
    assert (openers.returncode, openers.stderr) == (0, "")
    return sorted(openers.stdout.splitlines())


@pytest.mark.proof
def test_processes_that_open_a_missing_database_at_once_share_one(path: Path) -> None:
    assert open_at_once(path, count=6) == ["0 notices"] * 6

    assert rows(path, "SELECT * FROM alembic_version") == [(HEAD_REVISION,)]
    assert sorted(file.name for file in path.parent.iterdir()) == ["agentmon.db", "agentmon.db.lock"]


@pytest.mark.proof
def test_processes_that_open_an_old_database_at_once_upgrade_it_once(path: Path, tmp_path: Path) -> None:
    prepare(path)
    fill(path)
    later = later_migrations(tmp_path / "later")

    assert open_at_once(path, count=4, migrations=later.folder) == [*["0 notices"] * 3, "1 notices"]

    assert rows(path, "SELECT count(*), min(colour) FROM tasks") == [(2, "grey")]
    assert len(list((path.parent / "backups").iterdir())) == 1
