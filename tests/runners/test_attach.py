from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from agentmon.domain.errors import UsageError
from agentmon.runners.attach import AttachPlan, plan_attach
from agentmon.runners.tmux import Tmux
from tests.runners.tmux_servers import RawTmux, short_folder
from tests.terminals import terminal
from tests.waiting import wait_for

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

pytestmark = pytest.mark.timeout(60)

SOCKET = Path("/run/agentmon/s")
USERS_CONFIG = """
set -g base-index 1
set -g pane-base-index 1
set -g prefix C-a
unbind C-b
set -g status-position top
set -g status-left "theirs "
set -g mouse on
set -g default-command ""
set -g default-shell /bin/sh
set -g detach-on-destroy on
"""


def plan(
    environ: Mapping[str, str] | None = None,
    *,
    socket_path: Path = SOCKET,
    session_name: str = "am-1",
    read_only: bool = False,
    has_terminal: bool | None = True,
) -> AttachPlan:
    return plan_attach(
        socket_path=socket_path,
        session_name=session_name,
        environ={"TERM": "xterm-256color"} if environ is None else environ,
        tmux_binary=shutil.which("tmux") or "tmux",
        read_only=read_only,
        has_terminal=has_terminal,
    )


# The plan


def test_a_plain_terminal_gets_an_exact_target_and_never_starts_a_server() -> None:
    attach = plan()

    assert attach.argv[-3:] == ("attach-session", "-t", "=am-1")
    assert {"-N", "-S", str(SOCKET)} <= set(attach.argv)
    assert attach.environ == {"TERM": "xterm-256color"}
    assert "ctrl+q" in attach.note


def test_an_id_is_a_target_as_it_is() -> None:
    assert plan(session_name="$3").argv[-2:] == ("-t", "$3")


def test_watching_cannot_type() -> None:
    assert plan(read_only=True).argv[-4:] == ("attach-session", "-r", "-t", "=am-1")


def test_true_colour_is_used_where_the_terminal_says_it_has_it() -> None:
    assert "RGB" in plan({"TERM": "xterm", "COLORTERM": "truecolor"}).argv
    assert "RGB" not in plan({"TERM": "xterm"}).argv


@pytest.mark.parametrize(
    "value", ["/tmp/tmux-1000/default,123,0", "nonsense", "/gone/socket,999999999,7", f"{SOCKET},x,y"]
)
def test_inside_another_tmux_its_mark_is_dropped_even_when_stale(value: str) -> None:
    attach = plan({"TERM": "screen", "TMUX": value, "TMUX_PANE": "%1", "LANG": "C"})

    assert attach.environ == {"TERM": "screen", "LANG": "C"}
    assert "attach-session" in attach.argv
    assert "your own tmux" in attach.note


def test_an_empty_mark_is_a_plain_terminal() -> None:
    assert "your own" not in plan({"TERM": "xterm", "TMUX": ""}).note


def test_inside_the_own_server_the_client_is_replaced_and_led_back() -> None:
    attach = plan({"TERM": "screen", "TMUX": f"{SOCKET},{os.getpid()},4"})

    assert attach.argv[-3:-1] == ("detach-client", "-E")
    assert attach.argv[-1].endswith("attach-session -t '$4'")
    assert "attach-session -t =am-1;" in attach.argv[-1]


def test_a_session_is_not_shown_within_itself() -> None:
    with pytest.raises(UsageError, match="already"):
        plan({"TERM": "screen", "TMUX": f"{SOCKET},{os.getpid()},4"}, session_name="$4")


def test_a_mark_of_an_own_server_that_is_gone_is_not_believed() -> None:
    process = subprocess.run([sys.executable, "-c", "import os; print(os.getpid())"], capture_output=True, check=True)

    assert "attach-session" in plan({"TERM": "screen", "TMUX": f"{SOCKET},{int(process.stdout)},4"}).argv


def test_no_terminal_is_refused_with_what_to_do_instead() -> None:
    with pytest.raises(UsageError, match="needs a terminal") as caught:
        plan(has_terminal=False)

    assert "log" in caught.value.hint


@pytest.mark.parametrize("terminal", ["dumb", "", None])
def test_a_terminal_that_cannot_show_a_session_is_refused_by_name(terminal: str | None) -> None:
    with pytest.raises(UsageError, match="TERM is") as caught:
        plan({} if terminal is None else {"TERM": terminal})

    assert "TERM=xterm-256color" in caught.value.hint


# The plan carried out in the tmux of a user


@pytest.fixture
def folder() -> Iterator[Path]:
    with short_folder() as path:
        yield path


@pytest.fixture
def raw(folder: Path) -> RawTmux:
    return RawTmux(folder / "s")


class User:
    """A person at a shell in a tmux of their own, told what to run by the code under test."""

    def __init__(self, folder: Path) -> None:
        (folder / "user.conf").write_text(USERS_CONFIG)
        self.folder = folder
        self.outer = RawTmux(folder / "outer", folder / "user.conf", {"TERM": "xterm-256color", "HOME": str(folder)})
        self.outer(
            *("new-session", "-d", "-s", "work", "-n", "mine", "-x", "90", "-y", "24"),
            *("env", "PS1=outer-shell> ", "COLORTERM=truecolor", "/bin/sh", "-i"),
        )
        wait_for(lambda: "outer-shell>" in self.screen(), "the user's shell is there")

    def screen(self) -> str:
        return self.outer.screen("=work:")

    def keys(self, *keys: str) -> None:
        self.outer("send-keys", "-t", "=work:", *keys)

    def attach(self, session_name: str, *, read_only: bool = False) -> None:
        program = self.folder / f"attach-{session_name.strip('$')}"
        program.write_text(
            f"import os, sys; sys.path.insert(0, {str(Path.cwd())!r})\n"
            "from pathlib import Path\n"
            "from agentmon.runners.attach import plan_attach\n"
            f"plan = plan_attach(socket_path=Path({str(self.folder / 's')!r}), session_name={session_name!r},\n"
            f"    environ=os.environ, tmux_binary={shutil.which('tmux')!r}, read_only={read_only})\n"
            "os.execve(plan.argv[0], plan.argv, dict(plan.environ))\n"
        )
        self.keys(f"{shlex.quote(sys.executable)} {program}", "Enter")


async def start(folder: Path, name: str, title: str) -> str:
    tmux = Tmux(folder / "s", environ={"PATH": os.environ["PATH"], "LANG": "C.UTF-8"})
    prompt = f"PS1={name}-shell> "
    handle = await tmux.start_session(
        name=name, command=("/usr/bin/env", prompt, "/bin/sh", "-i"), working_dir=folder, title=title
    )
    tmux.close()
    return handle.session_id


def is_back(user: User) -> bool:
    screen = user.screen()
    return "back to agentmon" not in screen and screen.rstrip().endswith("outer-shell>")


async def test_keys_reach_the_session_and_one_key_comes_back_to_the_users_own_tmux(folder: Path, raw: RawTmux) -> None:
    await start(folder, "am-1", "first task")
    await start(folder, "am-10", "tenth task")
    user = User(folder)

    user.attach("am-1")
    wait_for(lambda: "first task" in user.screen() and "am-1-shell>" in user.screen(), "the session is shown")
    user.keys("echo $((40+2))-typed", "Enter")
    wait_for(lambda: "42-typed" in raw.screen("=am-1:"), "the keys arrive")
    user.keys("C-q")

    wait_for(lambda: is_back(user), "the outer shell is back")
    user.keys("echo still-$((1+1))-here", "Enter")
    wait_for(lambda: "still-2-here" in user.screen(), "the outer shell works")
    assert raw("list-sessions", "-F", "#{session_name} #{session_attached}").splitlines() == ["am-1 0", "am-10 0"]
    assert user.outer("list-windows", "-t", "=work", "-F", "#{window_index} #{window_name}") == "1 mine"
    assert "42-typed" not in raw.screen("=am-10:")


async def test_a_renamed_session_is_reached_by_its_id(folder: Path, raw: RawTmux) -> None:
    session_id = await start(folder, "am-1", "first task")
    raw("rename-session", "-t", "=am-1", "theirs")
    user = User(folder)

    user.attach(session_id)

    wait_for(lambda: "am-1-shell>" in user.screen(), "the session is shown")


async def test_the_key_comes_back_from_the_middle_of_scrolling(folder: Path) -> None:
    await start(folder, "am-1", "first task")
    user = User(folder)
    user.attach("am-1")
    wait_for(lambda: "am-1-shell>" in user.screen(), "the session is shown")
    user.keys("seq 1 200", "Enter")
    wait_for(lambda: "\n200" in user.screen(), "there is something to scroll")

    user.keys("S-PPage")
    wait_for(lambda: "\n165" in user.screen(), "earlier lines are shown")
    user.keys("C-q")

    wait_for(lambda: is_back(user), "the outer shell is back")


async def test_a_watcher_cannot_type_and_comes_back_by_the_same_key(folder: Path, raw: RawTmux) -> None:
    await start(folder, "am-1", "first task")
    user = User(folder)
    user.attach("am-1", read_only=True)
    wait_for(lambda: "am-1-shell>" in user.screen() and "read only" in user.screen(), "the session is shown")

    user.keys("echo $((40+2))-typed", "Enter", "C-q")

    wait_for(lambda: is_back(user), "the outer shell is back")
    assert "typed" not in raw.screen("=am-1:")


async def test_inside_a_session_of_the_own_server_the_key_comes_back_to_that_session(
    folder: Path, raw: RawTmux
) -> None:
    await start(folder, "am-1", "first task")
    await start(folder, "am-2", "second task")
    await start(folder, "am-3", "third task")
    user = User(folder)
    user.attach("am-1")
    wait_for(lambda: "am-1-shell>" in user.screen(), "the first session is shown")

    user.attach("am-2")
    wait_for(lambda: "second task" in user.screen() and "am-2-shell>" in user.screen(), "the second session is shown")
    user.attach("am-3")
    wait_for(lambda: "third task" in user.screen() and "am-3-shell>" in user.screen(), "the third session is shown")
    user.keys("C-q")
    wait_for(lambda: "second task" in user.screen(), "the second session is back")
    user.keys("C-q")
    wait_for(lambda: "first task" in user.screen(), "the first session is back")
    user.keys("C-q")

    wait_for(lambda: is_back(user), "the outer shell is back")
    names = raw("list-sessions", "-F", "#{session_name} #{session_attached}").splitlines()
    assert names == ["am-1 0", "am-2 0", "am-3 0"]


async def test_the_end_of_the_session_comes_back_too(folder: Path) -> None:
    await start(folder, "am-1", "first task")
    await start(folder, "am-2", "second task")
    user = User(folder)
    user.attach("am-1")
    wait_for(lambda: "am-1-shell>" in user.screen(), "the first session is shown")
    user.attach("am-2")
    wait_for(lambda: "am-2-shell>" in user.screen(), "the second session is shown")

    user.keys("exit", "Enter")
    wait_for(lambda: "first task" in user.screen(), "the first session is back")
    user.keys("exit", "Enter")

    wait_for(lambda: "back to agentmon" not in user.screen(), "the outer shell is back")


def size_of(raw: RawTmux, session: str) -> str:
    return raw("display-message", "-p", "-t", f"={session}:", "#{window_width}x#{window_height}")


async def test_a_small_terminal_looks_through_a_window_and_changes_the_size_of_no_run(
    folder: Path, raw: RawTmux
) -> None:
    await start(folder, "am-1", "first task")
    user = User(folder)
    user.outer("resize-window", "-t", "=work:", "-x", "30", "-y", "6")
    user.attach("am-1")
    wait_for(lambda: "am-1-shell>" in user.screen(), "the session is shown")

    await start(folder, "am-2", "second task")
    shown = [size_of(raw, "am-1"), size_of(raw, "am-2")]
    user.keys("C-q")
    wait_for(lambda: raw("list-clients") == "", "nobody looks")

    assert shown == [size_of(raw, "am-1"), size_of(raw, "am-2")] == ["200x50", "200x50"]


async def test_a_click_on_the_title_fits_the_run_until_the_terminal_leaves(folder: Path, raw: RawTmux) -> None:
    await start(folder, "am-1", "first task")
    user = User(folder)
    user.outer("resize-window", "-t", "=work:", "-x", "100", "-y", "30")
    user.attach("am-1")
    wait_for(lambda: "click to fit" in user.screen(), "the session is shown in part")

    user.keys("-l", "\x1b[<0;5;30M\x1b[<0;5;30m")
    wait_for(lambda: size_of(raw, "am-1") == "100x29", "the run has the size of the terminal")
    user.keys("C-q")

    wait_for(lambda: size_of(raw, "am-1") == "200x50", "the run has its own size back")


def require_terminal(known_as: str) -> None:
    if subprocess.run(["infocmp", known_as], capture_output=True, check=False).returncode != 0:
        pytest.skip(f"this machine knows no terminal {known_as}")


@pytest.mark.parametrize(
    ("known_as", "bar"),
    [
        ("xterm-256color", b"\x1b[48;5;236m"),
        ("screen-256color", b"\x1b[48;5;236m"),
        ("tmux-256color", b"\x1b[48;5;236m"),
        ("xterm", b"\x1b[47m"),
        ("linux", b"\x1b[47m"),
        ("screen", b"\x1b[47m"),
        ("vt100", b"\x1b[7m"),
    ],
)
async def test_terminals_of_any_colours_show_the_way_back_and_take_it(folder: Path, known_as: str, bar: bytes) -> None:
    require_terminal(known_as)
    await start(folder, "am-1", "first task")
    environ = {"TERM": known_as, "PATH": os.environ["PATH"], "SSH_TTY": "/dev/pts/0", "SSH_CONNECTION": "::1 1 ::1 22"}
    attach = plan_attach(
        socket_path=folder / "s",
        session_name="am-1",
        environ=environ,
        tmux_binary=shutil.which("tmux") or "tmux",
        has_terminal=True,
    )

    with terminal(attach.argv, attach.environ) as shown:
        shown.read_until(lambda output: b"back to agentmon" in output, "the session")
        shown.send("é".encode())
        shown.read_until(lambda output: "é".encode() in output, "what was typed")
        shown.send(b"\x11")
        code = shown.wait()
        modes = shown.modes

    assert code == 0
    assert bar in shown.output
    assert modes == shown.modes_before


async def test_a_missing_session_is_an_error_and_starts_no_server(folder: Path) -> None:
    user = User(folder)

    user.attach("am-1")

    wait_for(lambda: "No such file or directory" in user.screen(), "tmux says why")
    assert not (folder / "s").exists()


async def test_a_program_in_the_pane_cannot_write_the_clipboard_or_the_title_of_the_terminal(
    folder: Path, raw: RawTmux
) -> None:
    await start(folder, "am-1", "first task")
    user = User(folder)
    user.outer("set-option", "-s", "set-clipboard", "on")
    user.outer("set-option", "-p", "-t", "=work:", "allow-rename", "on")
    user.attach("am-1")
    wait_for(lambda: "am-1-shell>" in user.screen(), "the session is shown")
    before = user.outer("display-message", "-p", "-t", "=work:", "#{pane_title}")

    user.keys(
        r"printf '\033]52;c;SEFDS0VE\007\033]2;HACKED\007\033Ptmux;\033\033]2;HACKED\007\033\\'; echo do''ne", "Enter"
    )
    wait_for(lambda: "\ndone" in user.screen(), "the program has spoken")

    assert user.outer("list-buffers") == ""
    assert user.outer("display-message", "-p", "-t", "=work:", "#{pane_title}") == before
    assert raw("display-message", "-p", "-t", "=am-1:", "#{pane_title}") == "HACKED"
