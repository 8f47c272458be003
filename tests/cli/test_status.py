from __future__ import annotations

import ast
import json
import os
import sqlite3
import subprocess
import sys
from contextlib import closing
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

import pytest

import agentmon
from agentmon import __version__
from agentmon.cli.app import root
from agentmon.cli.names import COMMAND_NAMES
from agentmon.cli.status import find_database_path, find_run_dir, find_settings_path
from agentmon.cli.tmux_status import _parts
from agentmon.paths import find_paths
from agentmon.store.status_counts import StatusCounts

if TYPE_CHECKING:
    from tests.cli.command_lines import CommandLine

PACKAGE = Path(agentmon.__file__).parent
HEAVY = {"typer", "click", "sqlmodel", "sqlalchemy", "pydantic", "textual", "rich", "asyncio", "dataclasses", "libtmux"}


def test_the_status_is_one_line_even_before_the_first_start(cli: CommandLine) -> None:
    ended = cli.run_alone("status", environ={"AGENTMON_HOME": str(cli.folder / "none")})

    assert ended.stdout == "● 0/4 running  ◌ 0 queued  ◆ 0 need you\n"
    assert (ended.code, ended.stderr) == (0, "")
    assert not (cli.folder / "none").exists()


def test_the_status_has_the_numbers_of_the_board(cli: CommandLine) -> None:
    cli("settings", "worker.max_running", "7")

    status = cli.run_alone("status", "--json").document()

    assert status["running_limit"] == 7
    assert status == cli("board", "--json").document()["status_line"]


def test_the_bar_of_tmux_gets_its_own_format_and_never_an_error(cli: CommandLine, tmp_path: Path) -> None:
    (tmp_path / "agentmon.db").write_bytes(b"no database")

    usual = cli.run_alone("tmux-status", "--plain")
    broken = cli.run_alone("tmux-status", environ={"AGENTMON_HOME": str(tmp_path)})
    wrong = cli.run_alone("tmux-status", "--purple")

    assert (usual.code, usual.stderr) == (0, "")
    assert usual.stdout.startswith("●0/")
    assert (broken.code, broken.stdout) == (0, "agentmon ?\n")
    assert (wrong.code, wrong.stderr) == (
        2,
        "error: tmux-status does not take '--purple'\nhint: agentmon tmux-status [--plain]\n",
    )


def test_a_zone_that_nobody_knows_is_a_database_out_of_order(cli: CommandLine) -> None:
    cli("settings")
    with closing(sqlite3.connect(cli.paths.database_path)) as connection, connection:
        before = connection.execute("SELECT value FROM settings WHERE key = 'usage.zone'").fetchone()
        connection.execute("INSERT OR REPLACE INTO settings VALUES ('usage.zone', '\"Mars/Base\"', '', '')")
    try:
        told = cli.run_alone("tmux-status")
        status = cli.run_alone("status")
    finally:
        with closing(sqlite3.connect(cli.paths.database_path)) as connection, connection:
            connection.execute("DELETE FROM settings WHERE key = 'usage.zone'")
            if before is not None:
                connection.execute("INSERT INTO settings VALUES ('usage.zone', ?, '', '')", before)

    assert (told.code, told.stdout) == (0, "agentmon ?\n")
    assert status.code == 1
    assert "agentmon doctor says why" in status.stderr


def test_what_needs_a_person_stands_out_in_the_bar_of_tmux() -> None:
    counts = StatusCounts(running=2, queued=3, needs_you=1, is_paused=True, cost_today_nano=4_210_000_000)

    assert _parts(counts) == [
        ("●2/4", "fg=green"),
        ("◌3", ""),
        ("‖", "fg=yellow"),
        ("◆1", "fg=yellow,bold"),
        ("$4.21", ""),
    ]


@pytest.mark.parametrize(
    ("stored", "machine"),
    [("UTC", "Asia/Tokyo"), ("Asia/Tokyo", "Asia/Tokyo"), ("Pacific/Kiritimati", "Pacific/Pago_Pago")],
)
def test_the_status_tells_what_the_day_costs_in_the_zone_of_the_days(
    cli: CommandLine, stored: str, machine: str
) -> None:
    cli("budget", "set", "20")
    today = datetime.now(ZoneInfo(stored)).date()
    with closing(sqlite3.connect(cli.paths.database_path)) as connection, connection:
        connection.execute("DELETE FROM daily_usage")
        connection.execute("INSERT OR REPLACE INTO settings VALUES (?, ?, '', '')", ("usage.zone", f'"{stored}"'))
        connection.executemany(
            "INSERT INTO daily_usage VALUES (?, 'a', 'm', '/p', 2, 100, 900, 0, 0, 10, 0, 0, ?, 0, 0)",
            [(str(today), 4_210_000_000), (str(today - timedelta(days=1)), 99), (str(today + timedelta(days=1)), 99)],
        )

    line = cli.run_alone("status", environ={"TZ": machine}).stdout
    document = cli.run_alone("status", "--json", environ={"TZ": machine}).document()
    board = cli("board", "--json", environ={"TZ": machine}).document()

    assert line.endswith("  $4.21 / $20 today\n")
    assert (document["cost_today_nano"], document["tokens_today"]) == (4_210_000_000, 1010)
    assert document["budget_today_nano"] == 20_000_000_000
    assert board["status_line"] == document


def test_the_status_tells_the_day_in_the_currency_that_is_set(cli: CommandLine) -> None:
    euros = {"AGENTMON_COSTS_CURRENCY": "EUR", "AGENTMON_COSTS_EXCHANGE_RATE": "0.5"}
    today = datetime.now(ZoneInfo("UTC")).date()
    with closing(sqlite3.connect(cli.paths.database_path)) as connection, connection:
        connection.execute("DELETE FROM daily_usage")
        connection.execute("DELETE FROM budgets")
        connection.execute("INSERT OR REPLACE INTO settings VALUES ('usage.zone', '\"UTC\"', '', '')")
        connection.execute(
            "INSERT INTO daily_usage VALUES (?, 'a', 'm', '/p', 2, 100, 900, 0, 0, 10, 0, 0, ?, 0, 0)",
            (str(today), 4_210_000_000),
        )

    dollars = cli.run_alone("status", "--json").document()
    line = cli.run_alone("status", environ=euros).stdout
    document = cli.run_alone("status", "--json", environ=euros).document()
    board = cli("board", "--json", environ=euros).document()

    assert line.endswith("  €2.10 today\n")
    assert document == {**dollars, "currency": "EUR", "exchange_rate": "0.5"}
    assert board["status_line"] == document


@pytest.mark.parametrize("content", [b"", b"no database", b"SQLite format 3\0"])
def test_a_database_that_cannot_be_read_is_not_taken_for_an_idle_one(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "agentmon.db").write_bytes(content)

    ended = subprocess.run(
        [sys.executable, "-P", "-m", "agentmon", "status"],
        env=dict(os.environ) | {"AGENTMON_HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )

    assert (ended.returncode, ended.stdout) == (1, "")
    assert "agentmon doctor" in ended.stderr
    assert (tmp_path / "agentmon.db").read_bytes() == content


def test_the_status_works_where_the_terminal_has_no_unicode(cli: CommandLine) -> None:
    ended = cli.run_alone("status", environ={"PYTHONIOENCODING": "ascii"})

    assert ended.stdout.startswith("* 0/")


@pytest.mark.parametrize("words", [["status"], ["status", "--json"], ["--version"]])
def test_what_hooks_ask_for_imports_nothing_heavy(cli: CommandLine, words: list[str]) -> None:
    cli("task", "list")
    script = (
        "import json, sys\n"
        "from agentmon.__main__ import run\n"
        f"code = run({words!r})\n"
        "sys.stderr.write(json.dumps([code, sorted(sys.modules)]))\n"
    )

    ended = subprocess.run(
        [sys.executable, "-P", "-c", script], env=cli.environ, capture_output=True, check=True, timeout=30
    )

    code, modules = json.loads(ended.stderr)
    assert code == 0
    assert not HEAVY & set(modules)


def test_the_way_to_the_app_does_not_import_the_commands() -> None:
    script = "import sys, agentmon.__main__, agentmon.cli.open_app; print(sorted(sys.modules))"

    ended = subprocess.run([sys.executable, "-P", "-c", script], capture_output=True, text=True, check=True, timeout=30)

    assert not {"typer", "sqlmodel", "sqlalchemy", "textual", "agentmon.bootstrap"} & set(
        ast.literal_eval(ended.stdout)
    )


@pytest.mark.parametrize(
    "environ",
    [
        {"AGENTMON_HOME": "/srv/agentmon"},
        {"AGENTMON_HOME": "relative"},
        {"AGENTMON_HOME": "~/mon"},
        {"AGENTMON_HOME": "/srv/agentmon/"},
        {"HOME": "/home/ada"},
        {"HOME": "/home/ada", "XDG_DATA_HOME": "/data"},
        {"HOME": "/home/ada", "XDG_DATA_HOME": "relative"},
        {},
        {"HOME": ""},
        {"HOME": "relative"},
        {"AGENTMON_HOME": "/srv/agentmon", "AGENTMON_DATABASE_URL": "sqlite+aiosqlite:////other/place.db"},
    ],
)
def test_the_status_looks_where_the_database_lies(monkeypatch: pytest.MonkeyPatch, environ: dict[str, str]) -> None:
    for name in ("AGENTMON_HOME", "AGENTMON_DATABASE_URL", "XDG_DATA_HOME", "HOME"):
        monkeypatch.delenv(name, raising=False)
    for name, text in environ.items():
        monkeypatch.setenv(name, text)

    assert Path(find_database_path()) == find_paths().database_path


@pytest.mark.parametrize(
    "environ",
    [
        {"AGENTMON_HOME": "/srv/agentmon"},
        {"AGENTMON_HOME": "relative"},
        {"HOME": "/home/ada"},
        {"HOME": "/home/ada", "XDG_CONFIG_HOME": "/config"},
        {"HOME": "/home/ada", "XDG_CONFIG_HOME": "relative"},
        {},
        {"HOME": ""},
        {"HOME": "relative"},
    ],
)
def test_the_status_looks_where_the_settings_lie(monkeypatch: pytest.MonkeyPatch, environ: dict[str, str]) -> None:
    for name in ("AGENTMON_HOME", "AGENTMON_DATABASE_URL", "XDG_CONFIG_HOME", "HOME"):
        monkeypatch.delenv(name, raising=False)
    for name, text in environ.items():
        monkeypatch.setenv(name, text)

    assert Path(find_settings_path()) == find_paths().settings_file


@pytest.mark.parametrize(
    "environ",
    [
        {"AGENTMON_HOME": "/srv/agentmon"},
        {"AGENTMON_HOME": "/srv/agentmon/"},
        {"AGENTMON_HOME": "relative"},
        {"AGENTMON_HOME": f"/srv/{'long' * 30}"},
        {"HOME": "/home/ada"},
        {"HOME": "/home/ada", "XDG_STATE_HOME": "/state"},
        {"HOME": "/home/ada", "XDG_STATE_HOME": "relative"},
        {},
        {"HOME": ""},
        {"HOME": "relative"},
        {"AGENTMON_HOME": "/srv/agentmon", "AGENTMON_DATABASE_URL": "sqlite:////other/place.db"},
    ],
)
def test_the_status_looks_where_the_worker_lives(monkeypatch: pytest.MonkeyPatch, environ: dict[str, str]) -> None:
    for name in ("AGENTMON_HOME", "AGENTMON_DATABASE_URL", "XDG_STATE_HOME", "HOME"):
        monkeypatch.delenv(name, raising=False)
    for name, text in environ.items():
        monkeypatch.setenv(name, text)

    assert Path(find_run_dir()) == find_paths().run_dir


def test_who_reads_of_a_run_without_a_worker_imports_nothing_heavy(cli: CommandLine) -> None:
    script = (
        "import json, sys\n"
        "from agentmon.cli.status import find_worker_seen_at\n"
        "from agentmon.store.status_counts import StatusCounts\n"
        "seen_at = find_worker_seen_at(StatusCounts(running=1), '/nowhere')\n"
        "print(json.dumps([seen_at, sorted(sys.modules)]))\n"
    )

    ended = subprocess.run(
        [sys.executable, "-P", "-c", script],
        env=cli.environ | {"AGENTMON_HOME": "/nowhere"},
        capture_output=True,
        check=True,
        timeout=30,
    )

    seen_at, modules = json.loads(ended.stdout)
    assert seen_at == 0
    assert not HEAVY & set(modules)


def test_the_version_is_told(cli: CommandLine) -> None:
    assert cli.run_alone("--version").stdout == f"agentmon {__version__}\n"


def test_an_older_python_gets_a_sentence() -> None:
    script = "import sys\nsys.version_info = (3, 10, 9, 'final', 0)\nfrom agentmon.__main__ import main\nmain()\n"

    ended = subprocess.run(
        [sys.executable, "-P", "-c", script], capture_output=True, text=True, check=False, timeout=30
    )

    assert ended.returncode == 2
    assert ended.stderr.startswith("error: agentmon needs Python 3.11 or newer, this is Python 3.10.9\n")


@pytest.mark.parametrize("name", ["__init__.py", "__main__.py"])
def test_what_an_older_python_sees_first_is_no_syntax_error_there(name: str) -> None:
    source = (PACKAGE / name).read_text()

    tree = ast.parse(source, feature_version=(3, 7))

    assert tree.body


def test_every_command_has_a_help_with_examples(cli: CommandLine) -> None:
    helps = {name: cli(name, "--help") for name in COMMAND_NAMES if name != "task"}

    assert all(ended.code == 0 and f"  agentmon {name}" in ended.stdout for name, ended in helps.items())


def test_every_command_is_told_from_a_folder() -> None:
    registered = {command.name for command in root.registered_commands} | {
        group.name for group in root.registered_groups
    }

    assert registered == COMMAND_NAMES


def test_the_shell_completion_can_be_shown(cli: CommandLine) -> None:
    completed = cli("", environ={"_AGENTMON_COMPLETE": "complete_bash", "COMP_WORDS": "agentmon ta", "COMP_CWORD": "1"})

    assert completed.stdout.split() == ["task"]
