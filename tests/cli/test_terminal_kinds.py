"""Terminals as they are: of any size, of a kind that this system has never heard of, in a locale without UTF-8."""

from __future__ import annotations

import fcntl
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import termios
from pathlib import Path
from typing import TYPE_CHECKING

import pyte
import pytest

from tests.cli.command_lines import CommandLine
from tests.terminals import Terminal, terminal, words_of
from tests.waiting import wait_for

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from tests.forks import Forks

pytestmark = [pytest.mark.proof, pytest.mark.timeout(120)]

UNKNOWN = "xterm-never-heard-of"


def opened(cli: CommandLine, *words: str, environ: Mapping[str, str], width: int = 100, height: int = 30) -> Terminal:
    usual = {"AGENTMON_APP_WELCOME": "false", "AGENTMON_AGENTS_SCAN_HOURS": "0"}
    argv = [sys.executable, "-P", "-m", "agentmon", *(words or (str(cli.workspace),))]
    return Terminal(argv, {**cli.environ, **usual, **environ}, width=width, height=height)


def drawn(app: Terminal, *, width: int, height: int) -> list[str]:
    screen = pyte.Screen(width, height)
    pyte.ByteStream(screen).feed(app.output)
    return [line.rstrip() for line in screen.display]


def resize(app: Terminal, *, width: int, height: int) -> None:
    fcntl.ioctl(app._slave, termios.TIOCSWINSZ, struct.pack("HHHH", height, width, 0, 0))
    app.process.send_signal(signal.SIGWINCH)


def test_exported_sizes_do_not_freeze_that_of_the_terminal(cli: CommandLine) -> None:
    app = opened(cli, width=120, height=40, environ={"COLUMNS": "60", "LINES": "20"})
    try:
        app.read_until(lambda _: any(drawn(app, width=120, height=40)[39:]), "the last line of the terminal")
        assert max(map(len, drawn(app, width=120, height=40))) > 100
        app.output = b""
        resize(app, width=140, height=45)
        app.read_until(lambda _: any(drawn(app, width=140, height=45)[44:]), "the last line of the larger terminal")
        assert max(map(len, drawn(app, width=140, height=45))) > 125
        app.send(b"q")
        assert app.wait() == 0
    finally:
        app.close()


def test_a_terminal_that_does_not_say_its_size_is_drawn_once_and_left(cli: CommandLine) -> None:
    cli.add("of some size")
    app = opened(cli, environ={}, width=0, height=0)
    try:
        app.read_until(lambda output: b"of some size" in words_of(output), "the card")
        app.send(b"q")
        assert app.wait() == 0
    finally:
        app.close()


def test_a_command_takes_the_width_of_its_terminal(cli: CommandLine) -> None:
    long = "word " * 30
    number = cli.add(long.strip())
    with terminal(
        [sys.executable, "-P", "-m", "agentmon", "task", "list", "-C", str(cli.workspace)],
        {**cli.environ, "COLUMNS": "50"},
        width=220,
    ) as listed:
        listed_code = listed.wait()
        shown = listed.output
    cli("task", "delete", number)

    assert listed_code == 0
    assert long.strip().encode() in shown


@pytest.fixture
def alone(forks: Forks) -> Iterator[CommandLine]:
    """A board of its own, on which the one card is the selected one."""
    with CommandLine(Path(tempfile.mkdtemp(prefix="am-")), forks) as command_line:
        yield command_line


@pytest.mark.skipif(shutil.which("infocmp") is None, reason="infocmp says which terminals this system knows")
def test_a_kind_of_terminal_that_this_system_does_not_know_is_attached_from_board_and_command_line(
    alone: CommandLine,
) -> None:
    assert subprocess.run(["infocmp", UNKNOWN], check=False, capture_output=True).returncode != 0
    number = alone.add("attached", "--command", "sh -c 'echo it is me; sleep 600'")
    alone("run", number)
    wait_for(lambda: "it is me" in alone("log", number).stdout)

    command = opened(
        alone, "attach", number, "-C", str(alone.workspace), environ={"TERM": UNKNOWN, "COLORTERM": "truecolor"}
    )
    try:
        command.read_until(lambda output: b"it is me" in words_of(output), "the pane")
        command.send(b"\x11")
        assert command.wait() == 0
        assert UNKNOWN.encode() in command.output
    finally:
        command.close()
    app = opened(alone, environ={"TERM": UNKNOWN, "COLORTERM": "truecolor"})
    try:
        app.read_until(lambda output: b"attached" in words_of(output), "the card")
        app.read_until(lambda output: b"Attach" in words_of(output), "the selected card")
        app.send(b"a")
        app.read_until(lambda output: b"comes back" in output, "the note")
        app.output = b""
        app.read_until(lambda output: b"it is me" in words_of(output), "the pane")
        app.output = b""
        app.send(b"\x11")
        # The line below the pane names the card, too.
        app.read_until(lambda output: b"attached" in words_of(output.partition(b"\x1b[?1049h")[2]), "the board")
        app.send(b"q")
        assert app.wait() == 0
    finally:
        app.close()
    alone("stop", number, "--kill", "--wait")


@pytest.fixture(params=["de_DE.ISO-8859-1", "ja_JP.EUC-JP"])
def other_locale(request: pytest.FixtureRequest, tmp_path: Path) -> dict[str, str]:
    """Return the variables of a locale without UTF-8, which is made here: systems have none of them any more."""
    name = str(request.param)
    language, charset = name.split(".")
    made = tmp_path / "locales"
    made.mkdir()
    command = ["localedef", "-i", language, "-f", charset, str(made / name)]
    if shutil.which("localedef") is None or subprocess.run(command, check=False, capture_output=True).returncode:
        pytest.skip(f"the locale {name} cannot be made here")
    return {"LOCPATH": str(made), "LC_ALL": name}


def test_a_locale_without_unicode_gets_ascii_and_is_told_so(cli: CommandLine, other_locale: dict[str, str]) -> None:
    cli.add("Grüße")
    app = opened(cli, environ=other_locale)
    try:
        app.read_until(lambda output: other_locale["LC_ALL"].encode() in words_of(output), "the notice")
        app.send(b"q")
        assert app.wait() == 0
    finally:
        app.close()
    assert b"Todo" in words_of(app.output)
    assert b"+--" in app.output
    assert app.output.isascii()
    assert b"\\u" not in app.output

    cli("settings", "app.ascii", "true")
    quiet = opened(cli, environ=other_locale)
    try:
        quiet.read_until(lambda output: b"Todo" in words_of(output), "the board")
        quiet.send(b"q")
        assert quiet.wait() == 0
    finally:
        quiet.close()
    cli("settings", "app.ascii", "--reset")
    assert other_locale["LC_ALL"].encode() not in words_of(quiet.output)


def test_commands_in_such_a_locale_say_what_is_like_it(cli: CommandLine, other_locale: dict[str, str]) -> None:
    cli.add("an arrow → here")
    environ = {**cli.environ, **other_locale}
    argv = [sys.executable, "-P", "-m", "agentmon", "task", "list"]
    listed = subprocess.run(argv, cwd=cli.workspace, env=environ, check=True, capture_output=True)

    encoding = other_locale["LC_ALL"].partition(".")[2]
    assert ("→" if encoding == "EUC-JP" else ">") in listed.stdout.decode(encoding)


def test_attaching_there_asks_tmux_for_no_unicode(cli: CommandLine, other_locale: dict[str, str]) -> None:
    number = cli.add("other", "--command", "sh -c 'printf \"\\342\\224\\200arrow\\n\"; sleep 600'")
    cli("run", number)
    wait_for(lambda: "arrow" in cli("log", number).stdout)
    attached = opened(cli, "attach", number, "-C", str(cli.workspace), environ=other_locale)
    try:
        attached.read_until(lambda output: b"arrow" in words_of(output), "the pane")
        attached.send(b"\x11")
        assert attached.wait() == 0
    finally:
        attached.close()
    cli("stop", number, "--kill", "--wait")

    assert "─".encode() not in attached.output
