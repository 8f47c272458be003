from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import stat
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from agentmon.domain.errors import RunnerError, TmuxUnavailableError
from agentmon.runners.tmux import DEFAULT_CONFIG_PATH, Tmux, find_version
from agentmon.runners.tmux.version import install_hint, order_of
from tests.runners.tmux_servers import RawTmux, short_folder
from tests.waiting import wait_for

if TYPE_CHECKING:
    from collections.abc import Iterator

ENVIRON = {"PATH": os.environ["PATH"], "HOME": "/", "LANG": "C.UTF-8"}
STAY = ("sleep", "600")

pytestmark = pytest.mark.timeout(60)


@pytest.fixture
def folder() -> Iterator[Path]:
    with short_folder() as path:
        yield path


@pytest.fixture
def tmux(folder: Path) -> Iterator[Tmux]:
    server = Tmux(folder / "s", environ=ENVIRON)
    yield server
    server.close()


@pytest.fixture
def raw(folder: Path) -> RawTmux:
    return RawTmux(folder / "s")


def fake_tmux(folder: Path, script: str) -> dict[str, str]:
    programs = folder / "bin"
    programs.mkdir(exist_ok=True)
    program = programs / "tmux"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    return {**ENVIRON, "PATH": f"{programs}:/usr/bin:/bin"}


def environment_of(pid: int) -> str:
    told_by_system = Path(f"/proc/{pid}/environ")
    if told_by_system.exists():
        return told_by_system.read_text()
    return subprocess.run(["ps", "eww", "-p", str(pid)], capture_output=True, text=True, check=True).stdout


# Starting


async def test_a_started_session_has_a_generous_size_and_runs_its_command_without_a_shell(
    tmux: Tmux, raw: RawTmux, folder: Path
) -> None:
    words = ("--help", "a b", "$HOME", "'q\"", "#{pane_id}", "x;", ";", "\\;", "%H", "é🎉")
    program = "import json,sys,time; open(sys.argv[1],'w').write(json.dumps(sys.argv[2:])); time.sleep(600)"

    handle = await tmux.start_session(
        name="am-1",
        command=(sys.executable, "-c", program, str(folder / "seen"), *words),
        working_dir=folder,
        title="t",
    )

    wait_for(lambda: (folder / "seen").exists() and (folder / "seen").stat().st_size > 0, "the program writes")
    assert tuple(json.loads((folder / "seen").read_text())) == words
    size = raw("display-message", "-p", "-t", handle.pane_id, "#{session_name} #{pane_width}x#{pane_height}")
    assert size == "am-1 200x50"


async def test_a_command_of_one_word_is_not_read_by_a_shell(tmux: Tmux, folder: Path) -> None:
    program = folder / "odd name; touch hacked"
    program.write_text(f"#!/bin/sh\ntouch '{folder}/ran'\nexec sleep 600\n")
    program.chmod(0o755)

    await tmux.start_session(name="am-1", command=(str(program),), working_dir=folder, title="t")

    wait_for((folder / "ran").exists, "the program runs")
    assert not (folder / "hacked").exists()


@pytest.mark.parametrize("name", ["plain", "a b", "#{pane_id}", "#[x]", "##[y", "q'\"", "x;", "%H", "é🎉", "a}b,c"])
async def test_the_pane_stands_in_its_folder_whatever_the_path_holds(
    tmux: Tmux, raw: RawTmux, folder: Path, name: str
) -> None:
    work = folder / name
    work.mkdir()

    handle = await tmux.start_session(name="am-1", command=STAY, working_dir=work, title="t")

    wait_for(
        lambda: raw("display-message", "-p", "-t", handle.pane_id, "#{pane_current_path}") == str(work.resolve()),
        "the pane stands in the folder",
    )
    assert "@folder" not in raw("show-options", "-g")


async def test_a_missing_folder_is_refused_before_anything_starts(tmux: Tmux, folder: Path) -> None:
    with pytest.raises(RunnerError, match="does not exist"):
        await tmux.start_session(name="am-1", command=STAY, working_dir=folder / "gone", title="t")

    assert (await tmux.list_sessions()).is_server_running is False


@pytest.mark.parametrize("name", ["fix v1.2", "api: auth", "a b", "$x", "@x", "%x", "=x", "", "a|b", "x" * 300, "🎉"])
async def test_a_name_that_tmux_would_change_is_refused(tmux: Tmux, folder: Path, name: str) -> None:
    with pytest.raises(RunnerError, match="cannot name"):
        await tmux.start_session(name=name, command=STAY, working_dir=folder, title="t")


async def test_a_taken_name_is_refused_with_the_words_of_tmux_and_leaves_nothing(
    tmux: Tmux, raw: RawTmux, folder: Path
) -> None:
    await tmux.start_session(name="am-1", command=STAY, working_dir=folder, title="first")

    with pytest.raises(RunnerError, match="duplicate session: am-1") as caught:
        await tmux.start_session(name="am-1", command=STAY, working_dir=folder, title="second")

    assert caught.value.hint
    assert raw("show-options", "-v", "-t", "=am-1:", "@agentmon_title") == "first"
    assert "@folder" not in raw("show-options", "-g")


async def test_no_secret_of_the_user_reaches_tmux(folder: Path, raw: RawTmux, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("API_KEY", "SENTINEL")
    monkeypatch.setenv("TMUX", "/tmp/other,1,0")
    tmux = Tmux(folder / "s")

    handle = await tmux.start_session(name="am-1", command=STAY, working_dir=folder, title="t")
    await tmux.start_session(name="am-2", command=STAY, working_dir=folder, title="t")

    shown = raw("show-environment", "-g") + raw("show-environment", "-t", "=am-1") + raw("show-environment", "-t=am-2")
    shown += environment_of(int(raw("display-message", "-p", "-t", handle.pane_id, "#{pane_pid}")))
    shown += environment_of(int(raw("display-message", "-p", "#{pid}")))
    assert "PATH=" in shown
    assert "SHELL=/bin/sh" in shown
    assert "SENTINEL" not in shown
    assert "/tmp/other" not in shown
    tmux.close()


async def test_a_stale_socket_file_does_not_hinder_a_new_start(tmux: Tmux, raw: RawTmux, folder: Path) -> None:
    await tmux.start_session(name="am-1", command=STAY, working_dir=folder, title="t")
    os.kill(int(raw("display-message", "-p", "#{pid}")), signal.SIGKILL)
    wait_for(lambda: raw("list-sessions", check=False) == "", "the server is gone")
    assert (folder / "s").is_socket()

    await tmux.start_session(name="am-2", command=STAY, working_dir=folder, title="t")

    assert set((await tmux.list_sessions()).sessions) == {"am-2"}


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make what belongs to somebody else")
@pytest.mark.skipif(sys.platform != "linux", reason="the system does not tell who listens")
async def test_a_socket_of_another_user_is_replaced_once_nobody_listens(tmux: Tmux, folder: Path) -> None:
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(tmux.socket_path))
        server.listen()
        os.chown(tmux.socket_path, 54321, 54321)
        with pytest.raises(TmuxUnavailableError):
            await tmux.list_sessions()
        assert tmux.socket_path.lstat().st_uid == 54321

    await tmux.start_session(name="am-1", command=("sleep", "60"), working_dir=folder, title="t")

    assert tmux.socket_path.lstat().st_uid == os.geteuid()


async def test_the_folder_of_the_socket_is_made_for_its_owner_alone(folder: Path) -> None:
    tmux = Tmux(folder / "run" / "deep" / "s", environ=ENVIRON)

    await tmux.start_session(name="am-1", command=STAY, working_dir=folder, title="t")

    assert stat.S_IMODE((folder / "run" / "deep").stat().st_mode) == 0o700
    tmux.close()


async def test_a_socket_path_over_the_limit_is_named_clearly(folder: Path) -> None:
    tmux = Tmux(folder / ("x" * 120), environ=ENVIRON)

    with pytest.raises(TmuxUnavailableError, match="longer than") as caught:
        await tmux.list_sessions()

    assert "AGENTMON_HOME" in caught.value.hint
    tmux.close()


async def test_sessions_that_end_at_once_never_hinder_the_next_start(tmux: Tmux, folder: Path) -> None:
    async def start_many(first: int) -> None:
        for number in range(first, first + 15):
            await tmux.start_session(name=f"am-{number}", command=("true", "-"), working_dir=folder, title="t")

    async with asyncio.TaskGroup() as group:
        for first in (0, 100, 200):
            group.create_task(start_many(first))

    await tmux.start_session(name="am-last", command=STAY, working_dir=folder, title="t")
    assert "am-last" in (await tmux.list_sessions()).sessions


# Listing


async def test_a_session_is_found_by_its_own_pane_after_the_user_changed_everything(
    tmux: Tmux, raw: RawTmux, folder: Path
) -> None:
    handle = await tmux.start_session(name="am-1", command=STAY, working_dir=folder, title="t")
    raw("split-window", "-t", "=am-1:", "sleep 600")
    raw("new-window", "-t", "=am-1:", "sleep 600")
    raw("rename-session", "-t", "=am-1", "mine, not yours")
    raw("new-session", "-d", "-s", "stranger", "sleep 600")

    listing = await tmux.list_sessions()

    assert listing.is_server_running
    assert {name: (info.session_id, info.pane_id) for name, info in listing.sessions.items()} == {
        "am-1": (handle.session_id, handle.pane_id)
    }
    assert listing.sessions["am-1"].attached_count == 0
    assert await tmux.kill_session("am-1")
    assert raw("list-sessions", "-F", "#{session_name}") == "stranger"


async def test_no_server_is_a_known_empty_listing_that_says_so(tmux: Tmux, folder: Path, raw: RawTmux) -> None:
    never = await tmux.list_sessions()
    await tmux.start_session(name="am-1", command=STAY, working_dir=folder, title="t")
    raw("kill-server")
    ended = await tmux.list_sessions()

    assert (never.is_server_running, never.is_socket_present, dict(never.sessions)) == (False, False, {})
    assert (ended.is_server_running, ended.is_socket_present, dict(ended.sessions)) == (False, True, {})


@pytest.mark.parametrize(
    ("script", "message"),
    [
        ("exec sleep 600", "did not answer within 0.5 s"),
        ("echo 'something odd' >&2; exit 1", "something odd"),
        ("echo 'error connecting to /x (Permission denied)' >&2; exit 1", "Permission denied"),
        ("echo 'protocol version mismatch (client 8, server 7)' >&2; exit 1", "protocol version"),
        ("echo 'lost server' >&2; exit 1", "lost server"),
        ("exit 1", "no reason"),
        ("echo 'not|a|listing'", "cannot be read"),
        ("kill -9 $$", "signal 9"),
    ],
)
async def test_a_failure_to_ask_is_never_an_empty_listing(folder: Path, script: str, message: str) -> None:
    tmux = Tmux(folder / "s", environ=fake_tmux(folder, script), deadline_s=0.5 if "sleep" in script else 5.0)

    with pytest.raises(TmuxUnavailableError, match=message):
        await tmux.list_sessions()

    tmux.close()


async def test_a_tmux_that_vanished_from_path_is_not_an_empty_listing(folder: Path) -> None:
    environ = fake_tmux(folder, 'PATH=/usr/bin:/bin exec tmux "$@"')
    (folder / "empty").mkdir()
    environ["PATH"] = str(folder / "bin")
    tmux = Tmux(folder / "s", environ=environ)
    await tmux.start_session(name="am-1", command=STAY, working_dir=folder, title="t")
    (folder / "bin" / "tmux").rename(folder / "bin" / "hidden")

    with pytest.raises(TmuxUnavailableError, match="not installed"):
        await tmux.list_sessions()
    with pytest.raises(TmuxUnavailableError, match="not installed"):
        await tmux.kill_session("am-1")

    (folder / "bin" / "hidden").rename(folder / "bin" / "tmux")
    assert set((await tmux.list_sessions()).sessions) == {"am-1"}
    tmux.close()


async def test_hung_calls_are_ended_so_that_later_ones_get_a_thread(folder: Path) -> None:
    environ = fake_tmux(
        folder, f"[ -e {folder}/ok ] && {{ echo 'no server running on x' >&2; exit 1; }}; exec sleep 600"
    )
    tmux = Tmux(folder / "s", environ=environ, deadline_s=0.5)

    answers = await asyncio.gather(*(tmux.list_sessions() for _ in range(9)), return_exceptions=True)
    (folder / "ok").touch()

    assert all(isinstance(answer, TmuxUnavailableError) for answer in answers)
    assert (await tmux.list_sessions()).is_server_running is False
    tmux.close()


async def test_a_cancelled_call_ends_its_tmux_client(folder: Path) -> None:
    tmux = Tmux(
        folder / "s",
        environ=fake_tmux(folder, f"echo $$ > {folder}/pid.new; mv {folder}/pid.new {folder}/pid; exec sleep 600"),
    )
    task = asyncio.create_task(tmux.list_sessions())
    while not (folder / "pid").exists():  # noqa: ASYNC110 - the condition is in another process
        await asyncio.sleep(0.01)

    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task

    pid = int((folder / "pid").read_text())
    wait_for(lambda: not Path(f"/proc/{pid}").exists() or sys.platform != "linux", "the client is gone")
    tmux.close()


async def test_a_closed_connection_says_so(tmux: Tmux) -> None:
    tmux.close()
    tmux.close()

    with pytest.raises(TmuxUnavailableError, match="closed"):
        await tmux.list_sessions()


# Ending


async def test_only_the_exact_session_is_ever_ended(tmux: Tmux, raw: RawTmux, folder: Path) -> None:
    for name in ("am-1", "am-10"):
        await tmux.start_session(name=name, command=STAY, working_dir=folder, title="t")

    first = await tmux.kill_session("am-1")
    again = await tmux.kill_session("am-1")

    assert (first, again) == (True, False)
    assert await tmux.kill_session("am-") is False
    assert raw("list-sessions", "-F", "#{session_name}") == "am-10"


async def test_a_session_is_ended_by_id_and_a_missing_one_is_fine(tmux: Tmux, folder: Path) -> None:
    handle = await tmux.start_session(name="am-1", command=STAY, working_dir=folder, title="t")
    await tmux.start_session(name="am-2", command=STAY, working_dir=folder, title="t")

    assert await tmux.kill_session(handle.session_id) is True
    assert await tmux.kill_session(handle.session_id) is False
    assert await tmux.kill_session("$99") is False
    assert await tmux.kill_session("am-2") is True
    assert await tmux.kill_session("$0") is False


# Titles and screens

TITLES = {
    "#{pane_pid}": "#{pane_pid}",
    "#(touch HACKED)": "#(touch HACKED)",
    "#[fg=red]red": "#[fg=red]red",
    "##[bold] ###[x] ## #": "##[bold] ###[x] ## #",
    "###": "###",
    "ends with #": "ends with #",
    "%H:%M": "%H:%M",
    "#S #{E:@agentmon_title}": "#S #{E:@agentmon_title}",
    "deploy 🎉 é": "deploy 🎉 é",
    "two\nlines": "two lines",
    "- [ ] do it": "- [ ] do it",
    "do x;": "do x;",
    ";": ";",
    "x\\;": "x\\;",
    "Enter": "Enter",
    "a\x1b]52;c;eA==\x07b\x9bc": "ab",
}


@pytest.mark.parametrize("title", TITLES)
async def test_a_title_is_drawn_letter_for_letter_beside_the_way_back(
    tmux: Tmux, raw: RawTmux, folder: Path, title: str
) -> None:
    outer = RawTmux(folder / "outer", environ={"TERM": "xterm-256color"})
    title = title.replace("HACKED", str(folder / "hacked"))
    shown = TITLES.get(title, title)
    await tmux.start_session(name="am-1", command=STAY, working_dir=folder, title=title)

    outer("new-session", "-d", "-x", "80", "-y", "10", f"env -u TMUX tmux -u -S {folder}/s attach -t =am-1")

    wait_for(lambda: "back to agentmon" in outer.screen(":"), "the status line is drawn")
    status = outer.screen(":").rstrip().splitlines()[-1]
    assert status.startswith(f" {shown} ")
    assert status.endswith("ctrl+q back to agentmon")
    assert not (folder / "hacked").exists()
    told = raw("show-messages", "-t", "=am-1", check=False).splitlines()
    assert [line for line in told if " command: " not in line] == []  # tmux 3.8 keeps every command among its messages


async def test_a_long_title_is_cut_before_the_way_back(tmux: Tmux, folder: Path) -> None:
    outer = RawTmux(folder / "outer", environ={"TERM": "xterm-256color"})
    await tmux.start_session(name="am-1", command=STAY, working_dir=folder, title="é" * 300)
    outer("new-session", "-d", "-x", "80", "-y", "10", f"env -u TMUX tmux -u -S {folder}/s attach -t =am-1")
    wait_for(lambda: "back to agentmon" in outer.screen(":"), "the status line is drawn")

    status = outer.screen(":").rstrip().splitlines()[-1]

    assert "é…" in status
    assert status.endswith(" ctrl+q back to agentmon")


async def test_the_screen_of_a_pane_is_read_as_text_with_wrapped_lines_joined(tmux: Tmux, folder: Path) -> None:
    program = "print('x' * 500); print('last'); import time; time.sleep(600)"
    handle = await tmux.start_session(
        name="am-1", command=(sys.executable, "-c", program), working_dir=folder, title="t", columns=100, rows=20
    )

    text = ""
    while "last" not in text:
        text = await tmux.capture(handle.pane_id, lines=50)

    assert text == "x" * 500 + "\nlast"
    assert await tmux.capture(handle.pane_id, lines=1) == "last"
    with pytest.raises(RunnerError, match="can't find pane"):
        await tmux.capture("%99", lines=5)


# Version and configuration


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ("2.6", "3.2a"),
        ("3.2", "3.2a"),
        ("3.2-rc4", "3.2"),
        ("3.2a", "3.3"),
        ("3.3", "3.3a"),
        ("next-3.5", "3.5"),
        ("3.5-rc2", "3.5"),
        ("3.4", "next-3.5"),
        ("3.9", "3.10"),
        ("3.5a", "master"),
        ("openbsd-6.8", "3.2a"),
        ("3.5a", "openbsd-7.4"),
    ],
)
def test_versions_are_ordered(older: str, newer: str) -> None:
    assert order_of(older) < order_of(newer)


@pytest.mark.parametrize("text", ["3.2a", "3.3a", "3.5-rc2", "next-3.5", "master", "openbsd-7.4", "weird"])
async def test_a_version_that_will_do_is_accepted(folder: Path, text: str) -> None:
    tmux = Tmux(folder / "s", environ=fake_tmux(folder, f"echo 'tmux {text}'"))

    assert (await tmux.check()).text == text
    tmux.close()


@pytest.mark.parametrize("text", ["2.6", "3.0", "3.2", "3.1c", "openbsd-6.8"])
def test_an_old_version_is_refused_with_both_versions_named(folder: Path, text: str) -> None:
    with pytest.raises(TmuxUnavailableError, match=f"tmux {text} is too old: agentmon needs 3.2a"):
        find_version(fake_tmux(folder, f"echo 'tmux {text}'"))


@pytest.mark.parametrize(
    ("script", "message"),
    [("exec sleep 600", "did not answer"), ("echo oops >&2; exit 1", "oops"), ("exit 0", "said nothing")],
)
def test_a_tmux_that_gives_no_version_is_refused(folder: Path, script: str, message: str) -> None:
    with pytest.raises(TmuxUnavailableError, match=message):
        find_version(fake_tmux(folder, script), time_limit_s=0.5)


def test_a_missing_tmux_is_refused_with_the_line_that_installs_it(folder: Path) -> None:
    with pytest.raises(TmuxUnavailableError, match="not installed") as caught:
        find_version({"PATH": str(folder)})

    assert "install" in caught.value.hint


@pytest.mark.parametrize(
    ("platform", "program", "line"),
    [
        ("darwin", "none", "brew install tmux"),
        ("linux", "apt-get", "sudo apt install tmux"),
        ("linux", "dnf", "sudo dnf install tmux"),
        ("linux", "pacman", "sudo pacman -S tmux"),
        ("linux", "none", "package manager"),
    ],
)
def test_the_hint_fits_the_machine(platform: str, program: str, line: str) -> None:
    def find_program(name: str, *, path: str) -> str | None:
        return name if path and name == program else None

    assert line in install_hint({}, platform=platform, find_program=find_program)


async def test_the_configuration_loads_without_a_message_and_ignores_the_users(folder: Path) -> None:
    (folder / ".tmux.conf").write_text("set -g status-right HACKED\nset -g prefix C-a\nset -g base-index 1\n")
    tmux = Tmux(folder / "s", environ={**ENVIRON, "HOME": str(folder)})
    raw = RawTmux(folder / "s")
    await tmux.start_session(name="am-1", command=STAY, working_dir=folder, title="t")

    said = raw("source-file", str(DEFAULT_CONFIG_PATH))

    assert said == ""
    assert raw("show-options", "-gv", "prefix") == "None"
    assert raw("show-options", "-gv", "base-index") == "0"
    assert raw("show-options", "-gv", "allow-passthrough") == "off"
    assert raw("show-options", "-sv", "default-terminal") in {"tmux-256color", "screen-256color"}
    assert raw("list-keys", "-T", "root", "C-q").split()[-1] == "detach-client"
    tmux.close()


def test_importing_the_room_does_not_import_libtmux() -> None:
    program = "import sys, agentmon.runners.tmux, agentmon.runners.attach; sys.exit('libtmux' in sys.modules)"

    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
