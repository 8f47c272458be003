from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.cli.command_lines import DEADLINE_S, Finished
from tests.cli.test_status import HEAVY
from tests.waiting import wait_for

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tests.cli.command_lines import CommandLine

RESETS_AT = 4_000_000_000
STATUS: dict[str, Any] = {
    "session_id": "cf50f1a1-c6d7-4a97-8c71-1ef42079a8db",
    "model": {"id": "claude-opus-5-5", "display_name": "Opus 5.5"},
    "cost": {"total_cost_usd": 0.42},
    "context_window": {
        "context_window_size": 1_000_000,
        "current_usage": {"input_tokens": 110, "cache_creation_input_tokens": 1010, "cache_read_input_tokens": 5010},
        "used_percentage": 12,
    },
    "rate_limits": {"five_hour": {"used_percentage": 37.4, "resets_at": RESETS_AT}},
}


def ask(
    cli: CommandLine, written: bytes | Mapping[str, object], *words: str, environ: Mapping[str, str] | None = None
) -> Finished:
    """Run the status line in a process of its own, with this on its standard input."""
    content = written if isinstance(written, bytes) else json.dumps(written).encode()
    ended = subprocess.run(
        [sys.executable, "-P", "-m", "agentmon", "statusline", *words],
        input=content,
        env={**cli.environ, **(environ or {})},
        capture_output=True,
        check=False,
        timeout=DEADLINE_S,
    )
    return Finished(code=ended.returncode, stdout=ended.stdout.decode(), stderr=ended.stderr.decode())


def with_limits(**used: float) -> dict[str, Any]:
    limits = {name: {"used_percentage": percent, "resets_at": RESETS_AT} for name, percent in used.items()}
    return {**STATUS, "rate_limits": limits}


def set_day(cli: CommandLine, cost_nano: int) -> None:
    today = str(datetime.now(UTC).date())
    with closing(sqlite3.connect(cli.paths.database_path)) as connection, connection:
        connection.execute("INSERT OR REPLACE INTO settings VALUES ('usage.zone', '\"UTC\"', '', '')")
        connection.execute(
            "INSERT OR REPLACE INTO daily_usage VALUES (?, 'a', 'm', '/p', 2, 100, 900, 0, 0, 10, 0, 0, ?, 0, 0)",
            (today, cost_nano),
        )


def test_before_the_first_start_the_line_is_there_and_nothing_is_made(cli: CommandLine) -> None:
    ended = ask(cli, STATUS, environ={"AGENTMON_HOME": str(cli.folder / "none")})

    assert ended.stdout == "Opus 5.5  context 12%  $0.42 session  5h 37% until Tue 07:06\n"
    assert (ended.code, ended.stderr) == (0, "")
    assert not (cli.folder / "none").exists()


def test_the_line_tells_what_the_day_costs_of_its_budget(cli: CommandLine) -> None:
    cli("budget", "set", "20")
    set_day(cli, 4_210_000_000)

    line = ask(cli, STATUS).stdout

    assert line == "Opus 5.5  context 12%  $0.42 session  $4.21 / $20 today  5h 37% until Tue 07:06\n"


def test_amounts_are_in_the_currency_of_the_person(cli: CommandLine) -> None:
    environ = {"AGENTMON_COSTS_CURRENCY": "EUR", "AGENTMON_COSTS_EXCHANGE_RATE": "0.5"}

    assert "€0.21 session" in ask(cli, STATUS, environ=environ).stdout


@pytest.mark.parametrize(
    "written",
    [
        b"",
        b"no json",
        b"[]",
        b"null",
        b'{"model":',
        b"\xff\xfe\x00",
        pytest.param(b"[" * 100_000, id="deep"),
        pytest.param(b'{"a":"' + b"x" * 5_000_000 + b'"}', id="huge"),
        pytest.param(b'{"a":1' + b"0" * 10_000 + b"}", id="a long number"),
    ],
)
def test_whatever_comes_in_there_is_a_line(cli: CommandLine, written: bytes) -> None:
    ended = ask(cli, written)

    assert (ended.code, ended.stderr) == (0, "")
    assert ended.stdout.count("\n") == 1
    assert ended.stdout.strip()


@pytest.mark.parametrize(
    "status",
    [
        {"model": None, "cost": [], "context_window": 7, "rate_limits": "x", "session_id": 3},
        {"cost": {"total_cost_usd": 1e300}, "context_window": {"used_percentage": True, "current_usage": None}},
        {"rate_limits": {"five_hour": {"used_percentage": 5, "resets_at": "soon"}, "": 1, "a b": {}}},
        {"rate_limits": {"five_hour": {"used_percentage": 5, "resets_at": 99_999_999_999}}},
    ],
)
def test_damaged_parts_are_left_out(cli: CommandLine, status: dict[str, object]) -> None:
    ended = ask(cli, status)

    assert (ended.code, ended.stderr) == (0, "")
    assert "$1" not in ended.stdout


def test_nothing_that_a_terminal_obeys_gets_into_the_line(cli: CommandLine) -> None:
    status = {"model": {"display_name": "Op\x1b]52;c;eHg=\x07us\n\u202e"}}

    line = ask(cli, status).stdout

    assert line.startswith("Op]52;c;eHg=us")
    assert line.count("\n") == 1


@pytest.mark.parametrize(("percent", "colour"), [(79.0, ""), (80.0, "\x1b[33m"), (95.0, "\x1b[31m")])
def test_colours_are_for_what_to_look_out_for(cli: CommandLine, percent: float, colour: str) -> None:
    status = with_limits(five_hour=percent)

    assert f"{colour}5h {percent:.0f}%" in ask(cli, status).stdout
    assert "\x1b" not in ask(cli, status, environ={"NO_COLOR": "1"}).stdout


def test_other_windows_are_told_when_they_run_out(cli: CommandLine) -> None:
    line = ask(cli, with_limits(five_hour=1, seven_day=81, seven_day_opus=10), environ={"NO_COLOR": "1"}).stdout

    assert "5h 1%" in line
    assert "week 81%" in line
    assert "opus" not in line


@pytest.mark.parametrize(
    ("columns", "line"),
    [
        ("200", "Opus 5.5  context 12%  $0.42 session  5h 37% until Tue 07:06"),
        ("50", "Opus 5.5  context 12%  5h 37% until Tue 07:06"),
        ("40", "context 12%  5h 37% until Tue 07:06"),
        ("12", "context 12%"),
        ("8", "context…"),
        ("none", "Opus 5.5  context 12%  $0.42 session  5h 37% until Tue 07:06"),
    ],
)
def test_what_has_no_room_is_left_out_the_least_first(cli: CommandLine, columns: str, line: str) -> None:
    environ = {"AGENTMON_HOME": str(cli.folder / "none"), "COLUMNS": columns}

    assert ask(cli, STATUS, environ=environ).stdout == line + "\n"


def test_json_says_what_was_understood(cli: CommandLine) -> None:
    document = ask(cli, STATUS, "--json").document()

    assert document["is_understood"]
    assert document["context"] == {"tokens": 6130, "limit_tokens": 1_000_000, "used_percent": 12}
    assert document["session_cost_nano"] == 420_000_000
    assert document["windows"] == [{"name": "five_hour", "used_percent": 37.4, "resets_at_ms": RESETS_AT * 1000}]
    assert ask(cli, b"?", "--json").document()["is_understood"] is False


def test_the_line_of_another_command_comes_first(cli: CommandLine) -> None:
    command = "printf '\\033[32mmine\\033[0m '; sed 's/.*Opus/Opus/' | cut -c1-8"

    lines = ask(cli, STATUS, "--then", command).stdout.splitlines()

    assert lines[0] == "\x1b[32mmine\x1b[0m Opus 5.5"
    assert lines[1].startswith("Opus 5.5  context 12%")


@pytest.mark.parametrize("command", ["exit 3", "kill -9 $$", "no-such-command", "exec <&-; exit 0", "true"])
def test_a_command_that_fails_leaves_the_line_alone(cli: CommandLine, command: str) -> None:
    ended = ask(cli, {**STATUS, "pad": "x" * 1_000_000}, f"--then={command}")

    assert (ended.code, ended.stderr) == (0, "")
    assert ended.stdout.startswith("Opus 5.5")


@pytest.mark.proof
def test_a_command_that_hangs_is_ended(cli: CommandLine) -> None:
    begun_at = time.monotonic()

    ended = ask(cli, STATUS, "--then", "echo before; sleep 60 & sleep 60")

    assert ended.stdout.splitlines()[0] == "before"
    assert ended.stdout.splitlines()[1].startswith("Opus 5.5")
    assert time.monotonic() - begun_at < 60


def test_a_line_that_is_ended_takes_the_command_along(cli: CommandLine, tmp_path: Path) -> None:
    pid_file = tmp_path / "pid"
    process = subprocess.Popen(
        [sys.executable, "-P", "-m", "agentmon", "statusline", "--then", f"echo $$ > {pid_file}; sleep 60"],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        env=cli.environ,
    )
    wait_for(lambda: pid_file.exists() and pid_file.read_text().endswith("\n"))

    process.terminate()

    assert process.wait(DEADLINE_S) == 128 + signal.SIGTERM
    wait_for(lambda: not is_alive(int(pid_file.read_text())))


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return "Z" not in Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2] if Path("/proc/self").exists() else True


@pytest.mark.parametrize("environ", [{"AGENTMON_DATABASE_URL": "nonsense"}, {"COLUMNS": "9" * 5000}, {"COLUMNS": "-1"}])
def test_an_odd_environment_does_not_break_the_line(cli: CommandLine, environ: dict[str, str]) -> None:
    ended = ask(cli, STATUS, environ=environ)

    assert (ended.code, ended.stderr) == (0, "")
    assert ended.stdout.startswith("Opus 5.5")


def test_the_line_is_put_into_the_settings_and_taken_out_again(cli: CommandLine, tmp_path: Path) -> None:
    environ = {"CLAUDE_CONFIG_DIR": str(tmp_path)}
    settings_file = tmp_path / "settings.json"
    settings_file.write_text('{"statusLine": {"type": "command", "command": "echo mine"}}')

    installed = cli("statusline", "--install", "--json", environ=environ).document()
    command = json.loads(settings_file.read_text())["statusLine"]["command"]
    line = subprocess.run(
        ["/bin/sh", "-c", command],
        input=json.dumps(STATUS).encode(),
        env={name: text for name, text in cli.environ.items() if name != "AGENTMON_HOME"},
        capture_output=True,
        check=True,
    ).stdout.decode()
    again = cli("statusline", "--install", environ=environ).stdout
    removed = cli("statusline", "--remove", environ=environ).stdout

    assert (installed["change"], installed["chained_command"]) == ("installed", "echo mine")
    assert line.splitlines()[0] == "mine"
    assert line.splitlines()[1].startswith("Opus 5.5")
    assert f"AGENTMON_HOME={cli.home} " in command
    assert "already" in again
    assert "Claude Code runs again: echo mine" in removed
    assert settings_file.read_text() == '{"statusLine": {"type": "command", "command": "echo mine"}}'


def test_damaged_settings_are_refused_with_what_to_do(cli: CommandLine, tmp_path: Path) -> None:
    (tmp_path / "settings.json").write_text("{")

    ended = cli("statusline", "--install", environ={"CLAUDE_CONFIG_DIR": str(tmp_path)})

    assert ended.code == 2
    assert "is no JSON" in ended.stderr
    assert "mend it first" in ended.stderr
    assert cli("statusline", "--install", "--remove").code == 2


def test_a_database_that_is_kept_by_somebody_does_not_hold_the_line_up(cli: CommandLine, tmp_path: Path) -> None:
    path = tmp_path / "agentmon.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE alembic_version (version_num)")
        connection.commit()
        connection.execute("BEGIN EXCLUSIVE")

        ended = ask(cli, STATUS, environ={"AGENTMON_HOME": str(tmp_path)})

    assert (ended.code, ended.stderr) == (0, "")
    assert "today" not in ended.stdout


def test_a_folder_that_cannot_be_written_costs_only_the_record(cli: CommandLine, tmp_path: Path) -> None:
    (tmp_path / "agentmon.db").write_bytes(b"")
    (tmp_path / "agentmon.db-status").write_bytes(b"in the way")

    ended = ask(cli, STATUS, environ={"AGENTMON_HOME": str(tmp_path)})

    assert (ended.code, ended.stderr) == (0, "")
    assert ended.stdout.startswith("Opus 5.5")


def test_what_was_told_is_kept_for_the_limits(cli: CommandLine) -> None:
    cli("agents", "list")
    with closing(sqlite3.connect(cli.paths.database_path)) as connection, connection:
        connection.execute(
            "INSERT OR IGNORE INTO agents (id, owner_id, name, slug, kind, tool_type, binary_path, discovery_method, "
            "created_at, updated_at) SELECT 'c', owner_id, 'Claude', 'claude', kind, 'ai-agent', 'claude', "
            "discovery_method, created_at, updated_at FROM agents LIMIT 1"
        )
    ends = int(time.time()) + 3600
    ask(cli, {**STATUS, "rate_limits": {"five_hour": {"used_percentage": 37.4, "resets_at": ends}}})

    document = cli("limits", "--json").document()

    (window,) = [one for one in document["windows"] if one["window"] == "five_hour"]
    assert (window["agent"], window["origin"], window["used_percent"]) == ("claude", "official", 37.4)
    assert "37 %" in cli("limits").stdout


def test_wrong_words_are_refused(cli: CommandLine) -> None:
    ended = ask(cli, STATUS, "--width", "3")

    assert ended.code == 2
    assert "--width" in ended.stderr
    assert ask(cli, STATUS, "--then").code == 2


def test_the_line_imports_nothing_heavy(cli: CommandLine) -> None:
    script = (
        "import json, sys\n"
        "from agentmon.__main__ import run\n"
        "code = run(['statusline'])\n"
        "sys.stderr.write(json.dumps([code, sorted(sys.modules)]))\n"
    )

    ended = subprocess.run(
        [sys.executable, "-P", "-c", script],
        input=json.dumps(STATUS).encode(),
        env=cli.environ,
        capture_output=True,
        check=True,
        timeout=DEADLINE_S,
    )

    code, modules = json.loads(ended.stderr.decode())
    assert code == 0
    assert not (HEAVY | {"json.decoder", "pathlib", "agentmon.paths"}) & (set(modules) - _of_the_script())


def _of_the_script() -> set[str]:
    """What the script itself imports."""
    ended = subprocess.run(
        [sys.executable, "-P", "-c", "import json, sys; print(json.dumps(sorted(sys.modules)))"],
        env=dict(os.environ),
        capture_output=True,
        check=True,
        timeout=DEADLINE_S,
    )
    return set(json.loads(ended.stdout))
