"""The person's editor over a description, from the task editor and from the board."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest

from agentmon.app import AgentmonApp
from agentmon.domain.ids import TaskId, WorkspaceId
from agentmon.domain.tasks import Task
from agentmon.screens.dialogs.confirm import ConfirmDialog
from agentmon.screens.tasks.task_editor import TaskEditor
from agentmon.widgets.form import TextBox
from tests.idle_worker import idle_worker
from tests.screen_stage import Stage, any_command, screen_text, until
from tests.screens.boards import make_place, open_board

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.screens.boards import Place

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)


@contextmanager
def lent_terminal(_app: object) -> Iterator[None]:
    yield


def set_editor(folder: Path, monkeypatch: pytest.MonkeyPatch, body: str) -> None:
    """Let a Python program be the editor; ``path`` is the file, ``text`` what stands in it."""
    script = folder / "editor.py"
    script.write_text(
        "import sys, os, signal, pathlib\npath = pathlib.Path(sys.argv[1])\n"
        f"text = path.read_text()\nos.chdir({str(folder)!r})\n{body}\n"
    )
    monkeypatch.setenv("VISUAL", f"{sys.executable} -I {script}")


@pytest.fixture(autouse=True)
def own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AGENTMON_HOME", str(tmp_path / "home"))
    for app in (Stage, AgentmonApp):
        monkeypatch.setattr(app, "suspend", lent_terminal)


async def test_the_text_of_the_editor_comes_back_into_the_field_even_when_it_is_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    task = Task(
        id=TaskId("task"),
        number=12,
        workspace_id=WorkspaceId("workspace"),
        title="Fix [/] it",
        description="old",
        created_at=NOW,
        updated_at=NOW,
    )
    stage = Stage()
    async with stage.run_test(size=(80, 24)) as pilot:
        editor = TaskEditor(agents=(any_command(),), task=task, workspace_root="/")
        stage.show(editor)  # type: ignore[arg-type] # a screen ends with its own type
        await until(pilot, lambda: stage.screen is editor and editor.focused is not None)
        box = editor.query_one("#description", TextBox)

        set_editor(tmp_path, monkeypatch, "path.write_text(path.name + text + '\\x1b[31m\\n\\tmore\\n')")
        await pilot.press("ctrl+o")
        await until(pilot, lambda: box.text == "Fix [-] it.mdold\n\tmore")
        assert editor.is_changed
        assert editor.focused is box
        await pilot.press("ctrl+z")
        assert box.text == "old"

        set_editor(tmp_path, monkeypatch, "path.write_text('kept'); os.kill(os.getpid(), signal.SIGKILL)")
        await pilot.press("ctrl+o")
        await until(pilot, lambda: "was ended by SIGKILL; its text is here" in screen_text(stage))
        assert box.text == "kept"

        monkeypatch.setenv("VISUAL", "nowhere --wait")
        await pilot.press("ctrl+o")
        await until(pilot, lambda: "✗ $VISUAL is nowhere" in screen_text(stage))
        assert not list((tmp_path / "home" / "drafts").iterdir())
        assert stage.failures == []


async def test_a_description_is_edited_from_the_board_and_what_cannot_be_stored_stays_in_its_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = make_place(tmp_path)
    (task,) = await place.fill("Mend it")

    with idle_worker(place.paths):
        async with open_board(place) as board:
            set_editor(tmp_path, monkeypatch, "path.write_text('# New')")
            await board.press("E")
            await board.told("Saved the description of #1")
            await board.until(lambda: not list(place.paths.drafts_dir.iterdir()), "the file is gone")
            assert await description(place, task) == "# New"
            await board.press("ctrl+z")
            await board.told("Undid")
            assert await description(place, task) == ""

            set_editor(tmp_path, monkeypatch, "path.write_text('half'); sys.exit(4)")
            await board.press("E")
            await board.until(lambda: isinstance(board.app.screen, ConfirmDialog), "the question")
            assert "ended with exit code 4" in screen_text(board.app)
            await board.press("y")
            await board.until(lambda: not list(place.paths.drafts_dir.iterdir()), "the file is gone")
            assert await description(place, task) == "half"

            set_editor(tmp_path, monkeypatch, CHANGE_MEANWHILE.format(database=str(place.paths.database_path)))
            await board.press("E")
            await board.told("what you wrote is in")
            assert await description(place, task) == "theirs"
            (kept,) = place.paths.drafts_dir.glob("*/*.md")
            assert kept.read_text() == "mine"


CHANGE_MEANWHILE = """
import sqlite3
connection = sqlite3.connect({database!r})
connection.execute("UPDATE tasks SET description = 'theirs', version = version + 1")
connection.commit()
path.write_text('mine')
"""


async def description(place: Place, task: Task) -> str:
    async with place.services() as (services, _):
        return (await services.tasks.get(task.id)).description


async def test_with_several_marked_cards_it_says_which_one_is_edited(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_editor(tmp_path, monkeypatch, "")
    place = make_place(tmp_path)
    await place.fill("a", "b")
    with idle_worker(place.paths):
        async with open_board(place) as board:
            await board.press("space", "space", "E")
            await board.told("#2 alone is edited, not all marked cards")
