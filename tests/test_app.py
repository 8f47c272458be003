from __future__ import annotations

import asyncio
import json
import re
import signal
import sqlite3
import sys
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from textual.events import Key
from textual.keys import key_to_character
from textual.message import Message

from agentmon.app import AgentmonApp
from agentmon.domain.errors import ConflictError
from agentmon.domain.ids import ExecutionId
from agentmon.domain.task_status import TaskStatus
from agentmon.logs.error_file import without_environment
from agentmon.screens.bindings import TABLES
from agentmon.screens.board.screen import BoardScreen
from agentmon.screens.failure import FailureScreen
from agentmon.screens.frame import AttachRequested
from agentmon.screens.tasks.task_editor import TaskEditor
from agentmon.widgets.form import LineInput
from tests.app_program import START, environment
from tests.idle_worker import idle_worker
from tests.screens.boards import Place, make_place, open_board, until
from tests.terminals import terminal
from tests.waiting import wait_for

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[1]
HEAVY = {"sqlmodel", "sqlalchemy", "libtmux", "typer", "alembic", "pydantic", "jsonschema", "aiosqlite"}
LATER = {
    *("agentmon.domain.budgets", "agentmon.domain.moments", "agentmon.domain.board_filter", "agentmon.bootstrap"),
    *(
        "agentmon.store.inspection",
        "agentmon.screens.tasks.editing",
        "agentmon.widgets.card_preview",
        "tomllib",
        "zoneinfo",
    ),
}
"""What the first frame does without; each would cost it a millisecond or more."""
LEAVE_SCREEN = b"\x1b[?1049l"
SHOW_CURSOR = b"\x1b[?25h"
MOUSE_OFF = b"\x1b[?1003l"

PLAIN = "App = AgentmonApp"
DRAWING_MUCH = """
class App(AgentmonApp):
    def on_mount(self):
        self.set_interval(0.001, self.draw)

    def draw(self):
        for _ in range(100):
            self._driver.write(" ")
"""
BROKEN_WIDGET = """
from textual.widgets import Static

class Broken(Static):
    def on_mount(self):
        raise RuntimeError("it broke, with " + "s3cr3t-" + "v4lue")

class App(AgentmonApp):
    def on_mount(self):
        self.set_timer(0.5, lambda: self.mount(Broken()))
"""
LENDING = """
import subprocess

class App(AgentmonApp):
    def on_mount(self):
        self.set_timer(0.5, self.lend)

    def lend(self):
        with self.suspend():
            subprocess.run(["sh", "-c", "trap '' INT QUIT; kill -INT 0; kill -QUIT 0; echo ended"])
"""
FAILING_FOR_EVER = """
class App(AgentmonApp):
    def on_mount(self):
        self.set_interval(0.01, self.fail)

    def fail(self):
        raise RuntimeError("it broke, with " + "s3cr3t-" + "v4lue")
"""


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    place = make_place(tmp_path)
    with idle_worker(place.paths):
        yield place


def test_nothing_heavy_is_imported_before_the_first_frame(place: Place, tmp_path: Path) -> None:
    report_file = tmp_path / "modules.json"
    argv = [sys.executable, "-m", "tests.first_frame_probe", str(place.root), str(report_file)]

    with terminal(argv, environment(place)) as probe:
        code = probe.wait()

    assert code == 0, probe.output
    report = json.loads(report_file.read_text())
    assert report["first_frame"]
    assert (HEAVY | LATER) & set(report["first_frame"]) == set()
    assert HEAVY & set(report["later"]) >= {"sqlmodel", "sqlalchemy"}


@pytest.mark.parametrize(
    "number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGUSR1, signal.SIGXCPU]
)
def test_a_signal_ends_the_app_and_gives_the_terminal_back(place: Place, number: signal.Signals) -> None:
    argv = [sys.executable, "-c", START.format(extra=PLAIN), str(place.root)]

    with terminal(argv, environment(place)) as app:
        app.read_until(lambda output: b"No tasks yet." in output, "the board")
        app.process.send_signal(number)
        code = app.wait()

        assert code == 128 + number
        assert app.modes == app.modes_before
    assert LEAVE_SCREEN in app.output
    assert SHOW_CURSOR in app.output
    assert MOUSE_OFF in app.output


def test_what_interrupts_a_program_in_the_lent_terminal_leaves_the_app_open(place: Place) -> None:
    argv = [sys.executable, "-c", START.format(extra=LENDING), str(place.root)]

    with terminal(argv, environment(place)) as app:
        app.read_until(lambda output: b"ended" in output, "the program")
        app.read_until(lambda output: b"No tasks yet." in output.partition(b"ended")[2], "the board again")
        app.send(b"q")

        assert app.wait() == 0


def test_q_leaves_with_the_terminal_as_it_was(place: Place) -> None:
    argv = [sys.executable, "-c", START.format(extra=PLAIN), str(place.root)]

    with terminal(argv, environment(place)) as app:
        app.read_until(lambda output: b"No tasks yet." in output, "the board")
        app.send(b"q")
        code = app.wait()

        assert code == 0
        assert app.modes == app.modes_before
    assert LEAVE_SCREEN in app.output


@pytest.mark.proof
async def test_a_key_whose_escape_sequence_comes_in_two_pieces_changes_nothing(place: Place) -> None:
    await place.fill("the only card")
    argv = [sys.executable, "-c", START.format(extra=PLAIN), str(place.root)]

    with terminal(argv, environment(place)) as app:
        app.read_until(lambda output: b"the only card" in output, "the board")
        for rest in (b"[D", b"[Z", b"OP", b"[<64;3;3M", b"[200~DZPq\x1b[201~"):
            app.send(b"\x1b")
            # As long as a slow line makes of it: a lone ESC counts as the key before that.
            await asyncio.sleep(0.25)
            app.send(rest)
        app.send(b"jq")
        code = app.wait()

    async with place.services() as (services, workspace):
        (task,) = await services.tasks.list(workspace)
        pause = await services.queue.find_pause()
    assert (code, task.title, task.status, pause) == (0, "the only card", TaskStatus.TODO, None)


@pytest.mark.parametrize(
    "extra", [pytest.param(PLAIN, id="at rest"), pytest.param(DRAWING_MUCH, id="drawing much", marks=pytest.mark.proof)]
)
def test_a_terminal_that_vanishes_takes_the_app_along(place: Place, extra: str) -> None:
    argv = [sys.executable, "-c", START.format(extra=extra), str(place.root)]

    with terminal(argv, environment(place)) as app:
        app.read_until(lambda output: b"No tasks yet." in output, "the board")
        app.vanish()

        assert app.process.wait(timeout=30) == 128 + signal.SIGHUP


@pytest.mark.parametrize(
    "extra",
    [
        pytest.param(BROKEN_WIDGET, id="broken widget"),
        pytest.param(FAILING_FOR_EVER, id="failing for ever", marks=pytest.mark.proof),
    ],
)
def test_a_crash_gives_the_terminal_back_and_leaves_a_report_without_secrets(
    place: Place, tmp_path: Path, extra: str
) -> None:
    program = tmp_path / "crashing.py"
    program.write_text(START.format(extra=extra))
    argv = [sys.executable, str(program), str(place.root)]

    with terminal(argv, environment(place, MY_API_KEY="s3cr3t-v4lue", PYTHONPATH=str(ROOT))) as app:
        code = app.wait()

        assert code == 1
        assert app.modes == app.modes_before
    reports = list(place.paths.logs_dir.glob("crash-*.txt"))
    assert LEAVE_SCREEN in app.output
    assert b"agentmon ended because of an internal error" in app.output
    assert len(reports) == 1
    report = reports[0].read_text()
    assert "it broke" in report
    assert "s3cr3t-v4lue" not in report
    assert b"s3cr3t-v4lue" not in app.output
    assert reports[0].stat().st_mode & 0o777 == 0o600


@pytest.mark.proof
def test_a_database_that_is_too_new_is_told_calmly_and_left_alone(place: Place) -> None:
    place.paths.data_dir.mkdir(parents=True, exist_ok=True)
    with sqlite3.connect(place.paths.database_path) as connection:
        connection.execute("CREATE TABLE alembic_version (version_num VARCHAR(32) NOT NULL)")
        connection.execute("INSERT INTO alembic_version VALUES ('9999_from_the_future')")
    connection.close()
    before = place.paths.database_path.read_bytes()
    argv = [sys.executable, "-c", START.format(extra=PLAIN), str(place.root)]

    with terminal(argv, environment(place)) as app:
        app.read_until(lambda output: b"cannot go on" in output, "the failure")
        app.send(b"q")
        code = app.wait()

    assert code == 0
    assert place.paths.database_path.read_bytes() == before


class Exploding(Message):
    pass


async def test_an_unexpected_error_is_logged_and_told_and_the_app_lives(place: Place) -> None:
    await place.fill("a")

    async with open_board(place) as board:

        async def explode() -> None:
            raise RuntimeError("[/] broken, password=hunter2hunter2")

        board.screen.start(explode(), name="explode")
        await board.until(lambda: len(board.toasts) == 1)
        await board.press("L")
        await board.settled()
        log_text = (place.paths.logs_dir / "app.log").read_text()

        assert board.shown(TaskStatus.IN_PROGRESS) == ["a"]
        assert board.toasts == [f"Internal error (RuntimeError): details in {place.paths.logs_dir / 'app.log'}"]
        assert "[/] broken" in log_text
        assert "hunter2" not in log_text
        assert len(board.app.failures) == 1
        board.app.failures.clear()


async def test_an_error_in_a_handler_does_not_end_its_screen(place: Place) -> None:
    await place.fill("a", "b")

    async with open_board(place) as board:

        def explode() -> None:
            raise RuntimeError("in a handler")

        board.screen.call_later(explode)
        await board.until(lambda: len(board.app.failures) == 1)
        await board.press("j")

        assert board.selected == "b"
        board.app.failures.clear()


async def test_a_meant_error_is_a_toast_letter_for_letter_and_told_once(place: Place) -> None:
    async with open_board(place) as board:

        async def fail() -> None:
            raise ConflictError("see [b + x", hint="press [/]")

        for _ in range(3):
            board.screen.start(fail(), name="fail")
        await board.pilot.pause()
        await board.until(lambda: len(board.toasts) > 0)

        assert board.toasts == ["see [b + x\npress [/]"]


async def test_the_newest_three_toasts_are_shown_and_errors_stay(place: Place) -> None:
    async with open_board(place) as board:
        board.app.notify("an error", severity="error")
        for number in range(1, 6):
            board.app.notify(f"news {number}", severity="warning" if number == 1 else "information")
        await board.until(lambda: "news 5" in board.toasts)

        assert board.toasts == ["an error", "news 1", "news 5"]
        board.app.notify("more", severity="warning")
        board.app.notify("most", severity="warning")
        await board.until(lambda: "most" in board.toasts)
        assert board.toasts == ["an error", "more", "most"]


async def test_attaching_where_the_terminal_cannot_be_lent_is_an_error_and_no_crash(place: Place) -> None:
    async with open_board(place) as board:
        board.app.post_message(AttachRequested(ExecutionId("no such execution")))

        await board.until(lambda: len(board.toasts) == 1)


async def test_an_action_before_the_services_are_open_waits_for_them(place: Place) -> None:
    await place.fill("a")
    app = AgentmonApp(place.paths, place.root)

    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.press("L")
        await until(lambda: app._is_opened, "open")
        await until(lambda: isinstance(app.screen, BoardScreen) and not app.screen.is_writing, "written")

    assert await place.titles(TaskStatus.IN_PROGRESS) == ["a"]


async def test_keys_that_come_before_the_editor_are_typed_into_it(place: Place) -> None:
    async with open_board(place) as board:
        for key in ("n", "N", "e", "w", "space", "q"):
            board.app.post_message(Key(key, " " if key == "space" else key))
        await board.until(lambda: isinstance(board.app.screen, TaskEditor), "the editor")
        await board.until(
            lambda: [box.value for box in board.app.screen.query("#title").results(LineInput)] == ["New q"], "the title"
        )
        await board.press("ctrl+s")
        await board.until(lambda: board.shown(TaskStatus.TODO) == ["New q"], "the card")


@pytest.mark.proof
@pytest.mark.parametrize(
    ("pieces", "later_s", "is_done"),
    [
        (("escape", "left_square_bracket", "D"), 0.35, False),
        (("escape", "left_square_bracket", "1", "semicolon", "1", "D"), 0.35, False),
        (("escape", "O", "P"), 0.35, False),
        (("escape", "left_square_bracket", "D"), 3.5, True),
        (("escape", "j", "k", "D"), 0.35, True),
    ],
)
async def test_a_sequence_in_three_pieces_does_nothing_harmful(
    place: Place, pieces: tuple[str, ...], later_s: float, is_done: bool
) -> None:
    await place.fill("a", "b")

    async with open_board(place) as board:
        board.app.split_sequence.within_s = 3.0
        at = 0.0
        for name in pieces:
            key = Key(name, key_to_character(name) if name != "escape" else "\x1b")
            at = key.time = (at or key.time) + later_s
            board.app.post_message(key)
        await board.until(lambda: bool(board.toasts), "what became of it")
        await board.settled()

        assert any("ignored" in toast for toast in board.toasts) is not is_done
        assert (len(board.shown(TaskStatus.TODO)) == 1) is is_done
        async with place.services() as (services, _):
            assert await services.queue.find_pause() is None


@pytest.mark.parametrize(("later_s", "is_done"), [(0.2, False), (0.4, True)])
async def test_a_harmful_letter_right_behind_esc_does_nothing(place: Place, later_s: float, is_done: bool) -> None:
    await place.fill("a", "b")

    async with open_board(place) as board:
        board.app.esc_doubt_s = 0.3
        escape, letter = Key("escape", "\x1b"), Key("D", "D")
        letter.time = escape.time + later_s
        board.app.post_message(escape)
        board.app.post_message(letter)
        await board.until(lambda: bool(board.toasts), "what became of it")
        await board.settled()

        assert board.shown(TaskStatus.TODO) == (["b"] if is_done else ["a", "b"])
        await board.press("j")
        assert board.selected == "b"


async def test_a_second_press_of_a_dialog_key_opens_one_dialog(place: Place) -> None:
    await place.fill("a")

    async with open_board(place) as board:
        board.screen.action_new_task()
        board.screen.action_edit_task()
        await board.until(lambda: isinstance(board.app.screen, TaskEditor), "the editor")
        await board.press("escape")
        await board.until(lambda: board.app.screen is board.screen, "the board")
        await board.press("j")

        assert board.selected == "a"


async def test_what_became_of_a_damaged_database_is_told_once_and_again_at_the_new_start(place: Place) -> None:
    place.paths.database_path.parent.mkdir(parents=True, exist_ok=True)
    place.paths.database_path.write_bytes(b"no database at all" * 500)

    app = AgentmonApp(place.paths, place.root)
    async with app.run_test() as pilot:
        await until(lambda: isinstance(app.screen, FailureScreen), "failure")
        await pilot.press("q")
    async with open_board(place) as board:
        await board.until(lambda: len(board.toasts) > 0, "the notice")
        told = board.toasts
    async with open_board(place) as board:
        told_later = board.toasts

    assert len(told) == 1
    assert "damaged" in told[0]
    assert told_later == []


async def test_q_waits_for_what_is_still_being_written(place: Place) -> None:
    await place.fill("a")

    async with open_board(place) as board:
        await board.press("L", "q")

    assert await place.titles(TaskStatus.IN_PROGRESS) == ["a"]


async def test_a_failure_to_open_is_shown_with_its_hint(place: Place) -> None:
    place.paths.database_path.mkdir(parents=True)
    app = AgentmonApp(place.paths, place.root)

    async with app.run_test() as pilot:
        await until(lambda: isinstance(app.screen, FailureScreen), "failure")
        await pilot.press("q")


def test_every_key_has_an_id_of_its_own_and_says_what_it_does() -> None:
    bindings = [binding for table in TABLES.values() for binding in table]
    ids = [binding.id for binding in bindings]

    assert None not in ids
    assert len(ids) == len(set(ids))
    assert [binding.id for binding in bindings if not binding.tooltip and not binding.system] == []


@pytest.mark.parametrize("name", TABLES)
def test_no_key_means_two_things_on_one_screen(name: str) -> None:
    keys = [key.strip() for binding in TABLES[name] for key in binding.key.split(",")]

    assert len(keys) == len(set(keys))


def test_secrets_of_the_environment_are_masked() -> None:
    text = without_environment("value s3cr3t-value and /home/me", {"A_TOKEN": "s3cr3t-value", "HOME": "/home/me"})

    assert text == "value [secret] and /home/me"


@pytest.mark.proof
async def test_q_leaves_soon_while_another_program_holds_the_database(place: Place) -> None:
    await place.fill("a")
    argv = [sys.executable, "-c", START.format(extra=PLAIN), str(place.root)]

    with terminal(argv, environment(place)) as app:
        app.read_until(lambda output: b"#1" in output, "the card")
        wait_for(lambda: list(place.paths.run_dir.glob("app-*.mark")), "the open services")
        with closing(sqlite3.connect(place.paths.database_path, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            app.send(b"P")
            app.send(b"q")
            # It waited for 15 s and more.
            code = app.wait(deadline_s=10)
            other.execute("ROLLBACK")

    assert code == 0
    assert b"may not be saved" in app.output


@pytest.mark.proof
async def test_among_16_colours_the_selected_card_has_another_ground_than_the_grey_of_its_text(place: Place) -> None:
    await place.fill("a")
    argv = [sys.executable, "-c", START.format(extra=PLAIN), str(place.root)]

    with terminal(argv, environment(place, TERM="xterm-16color", COLORTERM="")) as app:
        app.read_until(lambda output: re.search(rb"\x1b\[[0-9;]*;44m#1", output) is not None, "the card")
        app.send(b"q")
        code = app.wait()

    assert code == 0
