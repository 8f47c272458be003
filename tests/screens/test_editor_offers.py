"""What the fields of the task editor offer while something is typed: tasks and folders."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from textual.widgets import OptionList

from agentmon.domain.task_picks import TaskPick
from agentmon.domain.task_status import TaskStatus
from agentmon.screens.tasks.task_editor import EditedTask, TaskEditor
from agentmon.widgets.completed_field import CompletedField
from agentmon.widgets.form import LineInput
from tests.screen_stage import Stage, any_command, screen_text, until

if TYPE_CHECKING:
    from pathlib import Path

    from textual.pilot import Pilot

PICKS = (
    TaskPick(38, "Fix the [/] login", TaskStatus.TODO),
    TaskPick(39, "Mend the gate", TaskStatus.TODO),
    TaskPick(380, "Log in", TaskStatus.BLOCKED),
)


async def find_picks(typed: str) -> list[TaskPick]:
    return [one for one in PICKS if typed in f"#{one.number}" or typed in one.title.lower()]


async def opened(stage: Stage, pilot: Pilot[None], root: Path) -> TaskEditor:
    editor = TaskEditor(agents=(any_command(),), task=None, workspace_root=str(root), find_picks=find_picks)
    stage.show(editor)  # type: ignore[arg-type] # a screen ends with its own type
    await until(pilot, lambda: stage.screen is editor and editor.focused is not None)
    return editor


async def offered(pilot: Pilot[None], editor: TaskEditor, name: str, words: list[str]) -> None:
    def shown() -> list[str]:
        field = editor.query_one(f"#{name}", LineInput).parent
        assert isinstance(field, CompletedField)
        return [way.words for way in field.ways]

    await until(pilot, lambda: shown() == words)
    await pilot.pause()


@pytest.mark.proof
async def test_tasks_are_picked_by_letters_by_number_and_with_the_mouse(tmp_path: Path) -> None:
    stage = Stage()
    async with stage.run_test(size=(80, 24)) as pilot:
        editor = await opened(stage, pilot, tmp_path)
        after, parent = (editor.query_one(f"#{name}", LineInput) for name in ("after", "parent"))

        while editor.focused is not after:
            await pilot.press("tab")
        await pilot.press(*"log")
        await offered(pilot, editor, "after", ["Fix the [/] login", "Log in"])
        assert "#38 Fix the [/] login" in screen_text(stage)
        await pilot.press("down", "enter")
        assert after.value == "#380, "
        await pilot.press(*"38")
        await offered(pilot, editor, "after", ["Fix the [/] login"])
        await pilot.press("escape")
        await offered(pilot, editor, "after", [])
        await pilot.press("backspace")
        await offered(pilot, editor, "after", ["Fix the [/] login", "Mend the gate"])
        await pilot.press("up", "up", "tab")
        assert after.value == "#380, #38, "
        assert editor.focused is after

        # Faster than the offers come.
        await pilot.press("m")
        await offered(pilot, editor, "after", ["Mend the gate"])
        after.value = "#380, #38, 77"
        await editor.action_take_way()
        assert after.value == "#380, #38, 77"
        assert editor.focused is not after
        after.value = "#380, #38, "

        parent.focus()
        await pilot.press(*"gate")
        await offered(pilot, editor, "parent", ["Mend the gate"])
        await pilot.click(editor.query(OptionList).last(), offset=(3, 0))
        await until(pilot, lambda: parent.value == "#39")
        assert editor.focused is parent

        await pilot.press("x")
        await pilot.press("ctrl+s")
        await until(pilot, lambda: "a task needs a title" in screen_text(stage))
        editor.query_one("#title", LineInput).value = "new"
        parent.value = "39"
        await pilot.press("ctrl+s")
        ending = stage.ended[-1]
        assert isinstance(ending, EditedTask)
        assert (ending.after, ending.parent) == ((380, 38), 39)
        assert stage.failures == []


async def test_folders_are_completed_with_tab_as_in_a_shell(tmp_path: Path) -> None:
    for name in ("service-a/deep", "service-b", "it [x]", ".hidden"):
        (tmp_path / name).mkdir(parents=True)
    stage = Stage()
    async with stage.run_test(size=(40, 10)) as pilot:
        editor = await opened(stage, pilot, tmp_path)
        folder = editor.query_one("#folder", LineInput)

        folder.focus()
        await pilot.press("s")
        await offered(pilot, editor, "folder", ["service-a/", "service-b/"])
        await pilot.press("tab")
        assert folder.value == "service-"
        await offered(pilot, editor, "folder", ["service-a/", "service-b/"])
        await pilot.press("a")
        await offered(pilot, editor, "folder", ["service-a/"])
        await pilot.press("tab")
        await offered(pilot, editor, "folder", ["service-a/deep/"])
        assert folder.value == "service-a/"
        # Nothing is marked: the folder that is typed is meant.
        await pilot.press("enter")
        assert editor.focused is not folder
        await offered(pilot, editor, "folder", [])
        folder.focus()
        folder.value = ""
        await pilot.press(*"it")
        await offered(pilot, editor, "folder", ["it [x]/"])
        await pilot.press("down", "enter")
        assert folder.value == "it [x]/"
        editor.query_one("#title", LineInput).value = "new"
        await pilot.press("ctrl+s")
        ending = stage.ended[-1]
        assert isinstance(ending, EditedTask)
        assert ending.draft.input_context.working_dir == f"{tmp_path}/it [x]"
