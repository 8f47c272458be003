"""Commands that a process with all imported carries out: as their own process would, also when one of them dies."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from agentmon.cli.served import SERVER, VARIABLE, may_be_served
from tests.cli.command_lines import CommandLine
from tests.terminals import terminal
from tests.waiting import wait_for

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.forks import Forks

pytestmark = [
    pytest.mark.proof,
    pytest.mark.skipif(sys.platform != "linux", reason="elsewhere each command has its own process"),
]


class Served(CommandLine):
    """Command lines for which a server stands ready; ``pid`` is that server's."""

    def __init__(self, folder: Path, forks: Forks) -> None:
        super().__init__(folder, forks)
        self.environ = {name: value for name, value in self.environ.items() if name != VARIABLE}
        self.place = self.paths.run_dir / "commands.sock"
        self.servers: list[subprocess.Popen[bytes]] = []

    def serve(self) -> int:
        self.paths.run_dir.mkdir(parents=True, exist_ok=True, mode=0o700)
        server = subprocess.Popen(
            [sys.executable, "-P", "-m", "agentmon", SERVER, str(self.place)],
            env=self.environ,
            cwd="/",
            start_new_session=True,
        )
        self.servers.append(server)
        wait_for(self.answers, "the server")
        return server.pid

    def answers(self) -> bool:
        with socket.socket(socket.AF_UNIX) as line:
            return not line.connect_ex(str(self.place))

    def __exit__(self, *_: object) -> None:
        for server in self.servers:
            server.kill()
            server.wait()
        super().__exit__()

    def argv(self, *words: str) -> list[str]:
        return [sys.executable, "-P", "-m", "agentmon", *words]


@pytest.fixture
def served(forks: Forks) -> Iterator[Served]:
    with Served(Path(tempfile.mkdtemp(prefix="am-")), forks) as cli:
        cli.serve()
        yield cli


def children_of(pid: int) -> list[int]:
    return [int(one) for one in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def test_what_is_served_is_answered_as_by_its_own_process(served: Served) -> None:
    own = {VARIABLE: "0"}
    served.run_alone("task", "add", "one")
    for words in (
        ("task", "list"),
        ("task", "list", "--json"),
        ("task", "show", "1"),
        ("task", "show", "99"),
        ("task", "bogus"),
        ("inbox", "--help"),
        ("executions",),
        ("costs",),
        ("agents", "list", "--json"),
        ("log", "1"),
    ):
        assert served.run_alone(*words) == served.run_alone(*words, environ=own), words
    last = served.run_alone("task", "list", environ={"TZ": "Asia/Tokyo", "NO_COLOR": "1", "LANG": "C"})
    assert last == served.run_alone("task", "list", environ={"TZ": "Asia/Tokyo", "NO_COLOR": "1", "LANG": "C", **own})


def test_folder_environment_umask_and_standard_input_are_the_asker_s(served: Served) -> None:
    other = served.folder / "other"
    other.mkdir()
    added = subprocess.run(
        served.argv("add", "-"), cwd=other, env=served.environ, input=b"from a pipe\n", capture_output=True, check=True
    )
    here = served.run_alone("task", "list", "--json", "-C", str(other)).document()
    away = served.run_alone("task", "list", "--json").document()
    strange = served.run_alone("task", "add", "w", environ={"LC_ALL": "C", "SOME": "\udcff"})

    assert b"from a pipe" in added.stdout
    assert [one["title"] for one in here] == ["from a pipe"]
    assert away == []
    assert strange.code == 0


def test_a_reader_that_goes_away_and_a_terminal_are_met_as_usual(served: Served) -> None:
    for number in range(3):
        served.run_alone("task", "add", f"number {number}")
    command = " ".join(served.argv("task", "list"))
    piped = subprocess.run(
        ["bash", "-c", f"set -o pipefail; {command} | head -1"],
        env=served.environ,
        cwd=served.workspace,
        capture_output=True,
        check=False,
    )
    with terminal(served.argv("task", "list", "-C", str(served.workspace)), served.environ, width=60) as shown:
        code = shown.wait()

    assert (piped.returncode, piped.stderr) == (0, b"")
    assert code == 0
    assert b"number 2" in shown.output


def test_signals_reach_the_command_and_end_both(served: Served) -> None:
    (server,) = served.servers
    served.run_alone("task", "add", "long", "--command", "sleep 600")
    served.run_alone("run", "1")
    for sent, expected in ((signal.SIGINT, 130), (signal.SIGTERM, None), (signal.SIGKILL, -signal.SIGKILL)):
        waiting = served.start_alone("log", "1", "-f")
        (command,) = wait_for(lambda: children_of(server.pid), "the command")
        time.sleep(0.1)
        waiting.send_signal(sent)
        code = waiting.wait(60)
        wait_for(lambda: not children_of(server.pid), "the end of the command")
        with pytest.raises(ProcessLookupError):
            os.kill(command, 0)
        assert code == expected or (expected is None and code in {-signal.SIGTERM, 128 + signal.SIGTERM})
        for stream in (waiting.stdout, waiting.stderr):
            if stream is not None:
                stream.close()
    served.run_alone("stop", "1", "--kill", "--wait")


def test_a_server_that_dies_in_between_is_told_and_the_next_command_does_without(served: Served) -> None:
    (server,) = served.servers
    served.run_alone("task", "add", "long", "--command", "sleep 600")
    served.run_alone("run", "1")
    waiting = served.start_alone("log", "1", "-f")
    (command,) = wait_for(lambda: children_of(server.pid), "the command")
    server.kill()
    server.wait()
    _, errors = waiting.communicate(timeout=60)
    wait_for(lambda: not Path(f"/proc/{command}").exists(), "the end of the command")
    after = served.run_alone("task", "list", "--json")
    served.run_alone("stop", "1", "--kill", "--wait")

    assert waiting.returncode == 1
    assert errors.startswith(b"error: ")
    assert [one["title"] for one in after.document()] == ["long"]


def test_what_the_asker_ignores_is_ignored(served: Served) -> None:
    (server,) = served.servers
    served.run_alone("task", "add", "long", "--command", "sleep 600")
    served.run_alone("run", "1")
    ignoring = (
        "import os, signal, sys; signal.signal(signal.SIGHUP, signal.SIG_IGN); os.execv(sys.executable, sys.argv[1:])"
    )
    waiting = subprocess.Popen(
        [sys.executable, "-c", ignoring, *served.argv("log", "1", "-f")],
        cwd=served.workspace,
        env=served.environ,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    (command,) = wait_for(lambda: children_of(server.pid), "the command")
    ignored = wait_for(lambda: ignored_by(command) & 1 << (signal.SIGHUP - 1), "what it ignores")
    waiting.terminate()
    code = waiting.wait(60)
    wait_for(lambda: not children_of(server.pid), "the end of the command")
    served.run_alone("stop", "1", "--kill", "--wait")

    assert ignored
    assert code in {-signal.SIGTERM, 128 + signal.SIGTERM}


def ignored_by(pid: int) -> int:
    (line,) = (one for one in Path(f"/proc/{pid}/status").read_text().splitlines() if one.startswith("SigIgn:"))
    return int(line.split()[1], 16)


def test_a_server_that_is_halted_does_nothing_for_nobody_later(served: Served) -> None:
    (server,) = served.servers
    server.send_signal(signal.SIGSTOP)
    alone = served.run_alone("task", "add", "once", "--json")
    server.send_signal(signal.SIGCONT)
    wait_for(lambda: served.run_alone("task", "list").code == 0)
    wait_for(lambda: not children_of(server.pid), "the end of all that was asked")
    titles = [one["title"] for one in served.run_alone("task", "list", "--json").document()]

    assert alone.code == 0
    assert titles == ["once"]


def test_who_asks_is_who_asked_the_server(served: Served) -> None:
    """A run that asks stays an agent, though the server belongs to a person."""
    asks = f"env -u {VARIABLE} {' '.join(served.argv('settings', 'worker.max_running', '9'))}"
    served.run_alone("task", "add", "asks", "--command", f"sh -c '{asks}; echo ended $?'")
    served.run_alone("run", "1", "--wait")
    log = served.run_alone("log", "1").stdout
    person = served.run_alone("settings", "worker.max_running", "7")
    kept = served.run_alone("settings", "worker.max_running", "--json").stdout

    assert "an agent may not" in log
    assert person.code == 0
    assert '"value": 7' in kept


def test_many_at_once_are_carried_out_each_once(served: Served) -> None:
    asking = [served.start_alone("task", "add", f"number {number}", "--json") for number in range(12)]
    codes = [(one.communicate(timeout=60), one.returncode)[1] for one in asking]
    titles = {one["title"] for one in served.run_alone("task", "list", "--json").document()}

    assert codes == [0] * 12
    assert titles == {f"number {number}" for number in range(12)}


def test_commands_that_follow_each_other_get_a_server_and_one_alone_gets_none(forks: Forks) -> None:
    with Served(Path(tempfile.mkdtemp(prefix="am-")), forks) as cli:
        cli.run_alone("task", "list")
        alone = cli.place.exists()
        cli.run_alone("task", "list")
        wait_for(cli.answers, "the server")
        cli.place.unlink()
        # What cannot be reached ends, and another one takes its place.
        wait_for(lambda: cli.run_alone("task", "list").code == 0 and cli.place.exists(), "the next one")

    assert not alone


def test_a_server_of_another_release_refuses_and_the_command_does_without(served: Served) -> None:
    other = served.run_alone("task", "list", environ={"PYTHONUNBUFFERED": "1"})

    assert other.code == 0


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["task", "list"], True),
        (["task", "add", "-e"], False),
        (["attach", "1"], False),
        (["agents"], True),
        (["agents", "scan"], False),
        (["costs", "import"], False),
        (["some/folder"], False),
        ([], False),
    ],
)
def test_what_takes_a_terminal_over_has_its_own_process(
    monkeypatch: pytest.MonkeyPatch, words: list[str], *, expected: bool
) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)

    assert may_be_served(words) is expected
