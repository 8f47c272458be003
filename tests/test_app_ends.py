"""However the app ends, its terminal is as it was, and what happened is told."""

from __future__ import annotations

import asyncio
import re
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from agentmon.logs.crash_reports import MOST_REPORTS, crash_reports, write_crash_report
from agentmon.services.app_marks import AppMark, take_unclean_ends
from agentmon.services.findings import FindingLevel
from tests.app_program import START, environment
from tests.idle_worker import idle_worker
from tests.screens.boards import Place, make_place
from tests.terminals import terminal, words_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from agentmon.services.findings import Finding
    from tests.terminals import Terminal

ROOT = Path(__file__).parents[1]
MODES = {
    "the other screen": (b"\x1b[?1049h", b"\x1b[?1049l"),
    "a hidden cursor": (b"\x1b[?25l", b"\x1b[?25h"),
    "clicks": (b"\x1b[?1000h", b"\x1b[?1000l"),
    "moves of the mouse": (b"\x1b[?1003h", b"\x1b[?1003l"),
    "long coordinates": (b"\x1b[?1006h", b"\x1b[?1006l"),
    "marked pastes": (b"\x1b[?2004h", b"\x1b[?2004l"),
    "focus": (b"\x1b[?1004h", b"\x1b[?1004l"),
    "more of the keys": (b"\x1b[>1u", b"\x1b[<u"),
}
FAULT = "raise RuntimeError('it broke, with ' + 's3cr3t-' + 'v4lue')"
SCREENS = "from textual.screen import Screen\nfrom textual.widgets import Static\n"
FAULTS = {
    "compose of a screen": f"""
class Broken(Screen):
    def compose(self):
        {FAULT}

class App(AgentmonApp):
    def on_mount(self):
        self.set_timer(0.5, lambda: self.push_screen(Broken()))
""",
    "style sheet of a screen": """
class Broken(Screen):
    CSS = "Broken { color: no-such-colour-s3cr3t; "

class App(AgentmonApp):
    def on_mount(self):
        self.set_timer(0.5, lambda: self.push_screen(Broken()))
""",
    "drawing of a widget": f"""
class Broken(Static):
    def render_line(self, y):
        {FAULT}

class App(AgentmonApp):
    def on_mount(self):
        self.set_timer(0.5, lambda: self.mount(Broken("x")))
""",
    "message loop of the app": """
class App(AgentmonApp):
    def on_mount(self):
        self.set_timer(0.5, self.break_loop)

    def break_loop(self):
        self._handle_exception(RuntimeError("it broke, with " + "s3cr3t-" + "v4lue"))
""",
    "reading of keys": f"""
from agentmon.widgets.terminal import Terminal

class Broken(Terminal):
    def process_message(self, message):
        {FAULT}

class App(AgentmonApp):
    def get_driver_class(self):
        return Broken
""",
}

_QUICK = "compose of a screen"


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    place = make_place(tmp_path)
    with idle_worker(place.paths):
        yield place


def with_secret(place: Place) -> dict[str, str]:
    return environment(place, PYTHONPATH=str(ROOT), MY_API_KEY="s3cr3t-v4lue")


def modes_left_on(output: bytes) -> list[str]:
    return [name for name, (on, off) in MODES.items() if output.rfind(on) > output.rfind(off)]


async def crashes_that_doctor_finds(place: Place) -> Finding:
    async with place.services() as (services, _workspace):
        return next(finding for finding in await services.doctor.check() if finding.name == "crashes")


def started(place: Place, folder: Path, extra: str) -> list[str]:
    program = folder / "starting.py"
    program.write_text(START.format(extra=SCREENS + extra))
    return [sys.executable, str(program), str(place.root)]


@pytest.mark.parametrize(
    "fault", [name if name == _QUICK else pytest.param(name, marks=pytest.mark.proof) for name in FAULTS]
)
def test_a_crash_leaves_the_terminal_clean_and_a_report_that_says_what_helps(
    place: Place, tmp_path: Path, fault: str
) -> None:
    with terminal(started(place, tmp_path, FAULTS[fault]), with_secret(place)) as app:
        app.read_until(lambda output: b"\x1b[?2004h" in output, "the app")
        app.send(b"j")
        code = app.wait()

        assert app.modes == app.modes_before
    shown = re.sub(rb"\x1b\[[0-9;?]*[A-Za-z]", b"", app.output)
    assert code == 1, shown[-2000:]
    assert modes_left_on(app.output) == []
    assert b"What was running goes on; start agentmon again" in shown
    reports = crash_reports(place.paths.logs_dir)
    assert len(reports) == 1
    assert asyncio.run(crashes_that_doctor_finds(place)).level is FindingLevel.WARN
    assert reports[0].file.name.encode() in shown.replace(b"\r\n", b"").replace(b"\n", b"")
    text = reports[0].file.read_text()
    assert reports[0].summary
    assert re.search(r"^Textual: \d", text, re.MULTILINE)
    assert "terminal: xterm-256color, 100x30" in text
    assert "s3cr3t-v4lue" not in text
    assert b"s3cr3t-v4lue" not in app.output
    assert take_unclean_ends(place.paths.run_dir) == 0


@pytest.mark.proof
def test_an_app_that_was_killed_is_told_of_at_the_next_start(place: Place, tmp_path: Path) -> None:
    words = started(place, tmp_path, "App = AgentmonApp")

    def marks(_output: bytes) -> bool:
        return any(file.stat().st_size for file in place.paths.run_dir.glob("app-*.mark"))

    with terminal(words, with_secret(place)) as app:
        app.read_until(marks, "the mark")
        app.process.send_signal(signal.SIGKILL)
        app.wait()
    with terminal(words, with_secret(place)) as again:
        again.read_until(lambda output: b"ended without a word" in words_of(output), "what happened")
        leave(again)
    with terminal(words, with_secret(place)) as third:
        third.read_until(marks, "the mark")
        leave(third)

    assert b"ended without a word" not in words_of(third.output)
    assert modes_left_on(third.output) == []


def leave(app: Terminal) -> None:
    app.send(b"q")
    assert app.wait() == 0


def test_an_open_app_is_no_unclean_end(tmp_path: Path) -> None:
    mark = AppMark.leave(tmp_path / "run")
    assert mark is not None

    while_open = take_unclean_ends(tmp_path / "run")
    mark.remove()

    assert while_open == take_unclean_ends(tmp_path / "run") == 0
    assert AppMark.leave(tmp_path / "run" / "file" / "below") is not None


def test_the_newest_reports_are_kept(tmp_path: Path) -> None:
    for number in range(MOST_REPORTS + 3):
        (tmp_path / f"crash-20260101T0000{number:02d}-7.txt").write_text(f"error: Error{number}\n")

    newest = write_crash_report(tmp_path, ValueError("token=hunter2hunter2"), {"last keys": "j k (text)"})
    kept = crash_reports(tmp_path)

    assert len(kept) == MOST_REPORTS
    assert kept[-1].file == newest
    assert kept[-1].summary == "ValueError"
    assert kept[0].summary == "Error4"
    assert "hunter2" not in kept[-1].file.read_text()
    assert "last keys: j k (text)" in kept[-1].file.read_text()
