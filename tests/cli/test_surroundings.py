"""Commands and runs in a shell that is not as one wishes: inside another agent, with relative places."""

from __future__ import annotations

import os
import shlex
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from agentmon.domain.errors import RunnerError, UsageError
from agentmon.paths import find_paths
from agentmon.worker import launch
from agentmon.worker.presence import read_presence
from tests.cli.command_lines import CommandLine, Finished

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.forks import Forks

MARKS = {
    "AI_AGENT": "claude-code_2-1-332_agent",
    "CLAUDECODE": "1",
    "CLAUDE_CODE_CHILD_SESSION": "1",
    "CLAUDE_CODE_ENTRYPOINT": "cli",
    "CLAUDE_CODE_SESSION_ID": "5d1c",
    "CLAUDE_CODE_SSE_PORT": "1234",
    "CLAUDE_PID": "77",
    "CODEX_SANDBOX": "seatbelt",
    "CODEX_SANDBOX_NETWORK_DISABLED": "1",
    "CODEX_THREAD_ID": "019a",
    "GEMINI_CLI": "1",
    "OPENCODE": "1",
    "OPENCODE_CALLER": "vscode",
    "OPENCODE_CLIENT": "acp",
    "OPENCODE_PID": "78",
    "QWEN_CODE": "1",
}
CONFIGURATION = {
    "CLAUDE_CODE_MAX_OUTPUT_TOKENS": "9000",
    "CLAUDE_CODE_USE_BEDROCK": "1",
    "CLAUDE_CONFIG_DIR": "/c",
    "CODEX_HOME": "/x",
    "GEMINI_MODEL": "m",
    "OPENCODE_CONFIG": "/o.json",
    "QWEN_MODEL": "q",
}
OF_ANOTHER_RUN = {"AGENTMON_TASK": "41", "AGENTMON_PORT_BASE": "20410", "AGENTMON_CALLS": "/nowhere"}


@pytest.fixture
def away(forks: Forks) -> Iterator[CommandLine]:
    """A home of its own, whose place and database are named relative to the project."""
    with CommandLine(Path(tempfile.mkdtemp(prefix="am-")), forks) as command_line:
        command_line.environ |= {"AGENTMON_HOME": "./here", "AGENTMON_DATABASE_URL": "sqlite:///there.db"}
        command_line.paths = find_paths(
            {
                "AGENTMON_HOME": str(command_line.workspace / "here"),
                "AGENTMON_DATABASE_URL": f"sqlite:///{command_line.workspace}/there.db",
            }
        )
        yield command_line


def variables_of(printed: str) -> dict[str, str]:
    return dict(line.split("=", 1) for line in printed.splitlines() if "=" in line)


def test_the_marks_of_the_agent_around_reach_no_run_and_configuration_does(cli: CommandLine) -> None:
    stub = cli.folder / "stub"
    stub.write_text("#!/bin/sh\nenv\n")
    stub.chmod(0o755)
    assert cli("agents", "add", str(stub), "--as", "stub").code == 0
    prefixes = ["AGENTMON_*", "CLAUDE*", "CODEX_*", "GEMINI_*", "OPENCODE*", "QWEN_*"]
    assert cli("agents", "edit", "stub", *(word for one in prefixes for word in ("--env", one))).code == 0
    number = cli.add("which environment", "--agent", "stub")

    ended = cli("run", number, "--wait", environ=MARKS | CONFIGURATION | {"AGENTMON_PORT_BASE": "20410"})

    assert ended.code == 0, ended.stderr
    told = variables_of(cli("log", number).stdout)
    assert not MARKS.keys() & told.keys()
    assert CONFIGURATION.items() <= told.items()
    assert told["AGENTMON_TASK"] == number
    assert "AGENTMON_PORT_BASE" not in told


def test_a_mark_that_is_named_in_full_is_passed(cli: CommandLine) -> None:
    number = cli.add("asks for one", "--command", "env", "--env", "CODEX_THREAD_ID")

    assert cli("run", number, "--wait", environ=MARKS).code == 0
    assert variables_of(cli("log", number).stdout)["CODEX_THREAD_ID"] == MARKS["CODEX_THREAD_ID"]


def test_a_worker_is_no_part_of_the_agent_or_the_run_that_starts_it_and_knows_absolute_places(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    places = {"AGENTMON_HOME": "./here", "AGENTMON_DATABASE_URL": "sqlite:///there.db"}
    given: dict[str, str] = {}

    def start(environ: Any, _log: object) -> int:
        given.update(environ)
        return 1

    monkeypatch.setattr(launch, "_launch", start)
    with pytest.raises(RunnerError):
        launch.ensure_worker(find_paths(places), environ=MARKS | CONFIGURATION | OF_ANOTHER_RUN | places)

    assert given == CONFIGURATION | {
        "AGENTMON_HOME": str(tmp_path / "here"),
        "AGENTMON_DATABASE_URL": f"sqlite:///{tmp_path}/there.db",
    }


@pytest.mark.parametrize(
    "environ",
    [
        {"AGENTMON_HOME": "~nobody-has-this-name/x"},
        {"AGENTMON_DATABASE_URL": "sqlite:///~nobody-has-this-name/x.db"},
        {"AGENTMON_HOME": "/tmp/am-\udcff"},
        {"AGENTMON_DATABASE_URL": "sqlite:////tmp/am-\udcff.db"},
    ],
)
def test_a_place_that_cannot_be_is_said_and_nothing_is_made_there(cli: CommandLine, environ: dict[str, str]) -> None:
    refused = cli("task", "add", "x", environ=environ)

    assert refused.code == 2
    assert refused.stderr.startswith("error: ")
    assert "hint: " in refused.stderr
    assert not list(cli.workspace.iterdir())


def test_a_home_that_nobody_knows_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HOME", "AGENTMON_HOME", "AGENTMON_DATABASE_URL", "XDG_DATA_HOME", "XDG_CONFIG_HOME"):
        monkeypatch.delenv(name, raising=False)

    def unknown(_number: int) -> None:
        raise KeyError

    monkeypatch.setattr("pwd.getpwuid", unknown)
    with pytest.raises(UsageError) as refused:
        find_paths()
    assert "HOME" in str(refused.value.hint)


def test_variables_that_are_not_utf8_reach_a_run_as_they_are(cli: CommandLine) -> None:
    number = cli.add("prints", "--command", """sh -c 'printf %s "$ODD" | od -An -tx1'""", "--env", "ODD")

    ended = cli("run", number, "--wait", environ={"ODD": "a\udcffb", "PATH": f"{os.environ['PATH']}:/tmp/\udcff"})

    assert ended.code == 0, ended.stdout
    assert cli("log", number).stdout.split() == ["61", "ff", "62"]


def test_a_word_of_a_command_that_is_not_utf8_is_said(cli: CommandLine) -> None:
    refused = cli("costs", "--model", "odd\udcff")

    assert refused.code == 2
    assert "UTF-8" in refused.stderr


@pytest.mark.parametrize("words", [("agents", "add"), ("agents", "import")])
def test_a_path_in_the_home_of_nobody_is_not_there(cli: CommandLine, words: tuple[str, ...]) -> None:
    refused = cli(*words, "~nobody-has-this-name/x")

    assert refused.code == 2
    assert "~nobody-has-this-name/x" in refused.stderr


@pytest.mark.proof
@pytest.mark.parametrize("sandbox", ["off", "agentmon"])
def test_places_that_are_relative_lead_worker_and_runs_to_one_board(away: CommandLine, sandbox: str) -> None:
    call = f"{shlex.quote(sys.executable)} -P -m agentmon"
    script = f"cd / && {call} task add -C {shlex.quote(str(away.workspace))} within && env"
    added = away.run_alone("task", "add", "calls", "--command", shlex.join(["sh", "-c", script]), "--json").document()
    number = str(added["number"])

    ended = away.run_alone("run", number, "--wait", "--sandbox", sandbox)

    assert ended.code == 0, ended.stderr + away.run_alone("log", number).stdout
    titles = [one["title"] for one in away.run_alone("task", "list", "--json").document()]
    assert sorted(titles) == ["calls", "within"]
    told = variables_of(away.run_alone("log", number).stdout)
    assert told["AGENTMON_HOME"] == str(away.workspace / "here")
    assert told["AGENTMON_DATABASE_URL"] == f"sqlite:///{away.workspace}/there.db"
    assert told["AGENTMON_TASK"] == number
    databases = [Path(place) / name for place, _, names in os.walk(away.folder) for name in names if name[-3:] == ".db"]
    assert databases == [away.workspace / "there.db"]
    assert not Path("/there.db").exists()


@pytest.mark.proof
def test_a_run_in_a_home_of_its_own_knows_its_board(cli: CommandLine) -> None:
    usual = {"AGENTMON_HOME": ""}
    call = f"{shlex.quote(sys.executable)} -P -m agentmon task add -C {shlex.quote(str(cli.workspace))} within"
    own = cli.folder / "own"
    own.mkdir()
    words = ("task", "add", "calls", "--env", f"HOME={own}", "--command", shlex.join(["sh", "-c", call]), "--json")
    number = str(cli.run_alone(*words, environ=usual).document()["number"])
    try:
        ended = cli.run_alone("run", number, "--wait", environ=usual)

        assert ended.code == 0, ended.stderr + cli.run_alone("log", number, environ=usual).stdout
        titles = [one["title"] for one in cli.run_alone("task", "list", "--json", environ=usual).document()]
        assert sorted(titles) == ["calls", "within"]
    finally:
        cli.run_alone("worker", "--stop", environ=usual)


def test_one_database_has_one_worker_by_whichever_name(tmp_path: Path) -> None:
    home = {"AGENTMON_HOME": str(tmp_path / "home")}
    real = tmp_path / "real"
    real.mkdir()
    (tmp_path / "link").symlink_to(real)

    def lock_of(database: Path) -> Path:
        return find_paths(home | {"AGENTMON_DATABASE_URL": f"sqlite:///{database}"}).worker_lock

    assert lock_of(tmp_path / "home" / "agentmon.db") == find_paths(home).worker_lock
    assert lock_of(tmp_path / "link" / "a.db") == lock_of(real / "a.db")
    assert lock_of(real / "b.db") != lock_of(real / "a.db")


@pytest.mark.parametrize("words", [("task", "list"), ("status",), ("costs", "--json")])
def test_a_relative_place_in_a_folder_that_is_gone_is_said(cli: CommandLine, words: tuple[str, ...]) -> None:
    gone = cli.folder / "gone"
    gone.mkdir()
    script = 'rmdir "$PWD" && exec "$@"'
    found = cli.run_elsewhere(
        gone, "sh", "-c", script, "sh", sys.executable, "-P", "-m", "agentmon", *words, environ={"AGENTMON_HOME": "./x"}
    )

    assert found.code == 2
    assert "Traceback" not in found.stderr
    assert "AGENTMON_HOME" in found.stderr


@pytest.mark.proof
def test_nothing_of_a_fresh_home_is_open_to_others_whatever_the_umask(cli: CommandLine) -> None:
    home = cli.folder / "fresh"
    home.mkdir()
    environ = {"AGENTMON_HOME": "", "HOME": str(home)}

    def loose(*words: str) -> Finished:
        command = (sys.executable, "-P", "-m", "agentmon", *words)
        return cli.run_elsewhere(cli.workspace, "sh", "-c", 'umask 000; exec "$@"', "sh", *command, environ=environ)

    try:
        assert loose("task", "add", "t", "--command", "sh -c 'umask'", "--verify", "true").code == 0
        assert loose("run", "1", "--wait").code == 0
        assert loose("settings", "worker.max_running", "3").code == 0
        assert loose("log", "1").stdout.strip() == "0000"
    finally:
        loose("worker", "--stop")
    everything = [Path(place) / name for place, folders, files in os.walk(home) for name in folders + files]
    assert len(everything) > 20
    assert [str(one) for one in everything if one.lstat().st_mode & 0o077] == []


DEAF = """
import os, signal, sys
signals = [getattr(signal, f"SIG{name}") for name in ("HUP", "INT", "QUIT", "TERM", "CHLD", "USR1", "TSTP")]
if sys.argv[1] == "block":
    signal.pthread_sigmask(signal.SIG_BLOCK, signals)
else:
    for number in signals:
        signal.signal(number, signal.SIG_IGN)
os.execv(sys.executable, [sys.executable, "-P", "-m", "agentmon", *sys.argv[2:]])
"""
"""Becomes agentmon with signals blocked or ignored."""

PRINTS_SIGNALS = """
import signal
ignored = [number for number in signal.valid_signals() if signal.getsignal(number) is signal.SIG_IGN]
print("ignored", [int(one) for one in ignored if one not in {signal.SIGPIPE, signal.SIGXFSZ}])
print("blocked", [int(one) for one in signal.pthread_sigmask(signal.SIG_BLOCK, ())])
"""


@pytest.mark.proof
@pytest.mark.parametrize("how", ["block", "ignore"])
def test_what_a_deaf_process_starts_hears_every_signal(away: CommandLine, how: str) -> None:
    def deaf(*words: str) -> Finished:
        command = (sys.executable, "-P", "-c", DEAF, how, *words)
        return away.run_elsewhere(away.workspace, *command, environ={})

    program = shlex.join([sys.executable, "-c", PRINTS_SIGNALS])
    number = str(deaf("task", "add", "t", "--command", program, "--verify", program, "--json").document()["number"])

    ended = deaf("run", number, "--wait")

    assert ended.code == 0, ended.stderr
    hears_all = "ignored []\nblocked []\n"
    assert away.run_alone("log", number).stdout.endswith(hears_all)
    [folder] = away.paths.executions_dir.iterdir()
    assert (folder / "verification-1.log").read_text().endswith(hears_all)
    assert away.run_alone("worker", "--stop").code == 0
    assert not read_presence(away.paths.worker_lock).is_running
