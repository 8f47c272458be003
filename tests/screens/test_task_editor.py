from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest
from textual import events
from textual.widgets import Checkbox, Select, TextArea

from agentmon.domain.any_command import ANY_COMMAND_SLUG
from agentmon.domain.ids import TaskId, WorkspaceId
from agentmon.domain.plain_text import plain_line
from agentmon.domain.task_status import Priority
from agentmon.domain.tasks import InputContext, Task, TaskDraft
from agentmon.runners.danger import load_danger_rules
from agentmon.screens.dialogs.confirm import ConfirmDialog
from agentmon.screens.tasks.editor_making import EditorMaking
from agentmon.screens.tasks.run_dialog import RunChoice, RunDialog
from agentmon.screens.tasks.task_editor import EditedTask, TaskEditor
from agentmon.services.actors import USER_ACTOR
from agentmon.services.demo_agent import DEMO_AGENT_SLUG, make_demo_agent
from agentmon.widgets.form import FormField, LineInput
from tests.screen_stage import NASTY_TITLES, Stage, agent, any_command, capability, screen_text, until
from tests.stored_runs import stored

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from textual.pilot import Pilot
    from textual.widget import Widget

    from agentmon.domain.danger import DangerFinding

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
ARGUMENTS = {
    "type": "object",
    "properties": {
        "path": {"type": "string", "description": "Where to look."},
        "count": {"type": "integer", "minimum": 1, "default": 3},
        "quiet": {"type": "boolean"},
        "level": {"type": "string", "enum": ["low", "high"]},
        "names": {"type": "array", "items": {"type": "string"}},
    },
    "required": ["path"],
}
FINDER = agent("finder", capability("look", ARGUMENTS), capability("list"))
AGENTS = (any_command(), FINDER)


def a_task(**changes: object) -> Task:
    task = Task(
        id=TaskId("task"),
        number=12,
        workspace_id=WorkspaceId("workspace"),
        title="Fix it",
        assignee_agent_id=AGENTS[0].id,
        input_context=InputContext(capability_key="run", args={"argv": ["make", "all of it"]}),
        created_at=NOW,
        updated_at=NOW,
    )
    return replace(task, **changes)  # type: ignore[arg-type] # named by the tests


def editor(task: Task | None = None, *, root: str = "/", default: str | None = None) -> TaskEditor:
    return TaskEditor(agents=AGENTS, task=task, workspace_root=root, default_agent_slug=default)


def edited(stage: Stage) -> EditedTask:
    ending = stage.ended[-1]
    assert isinstance(ending, EditedTask)
    return ending


def line(stage: Stage, widget_id: str) -> LineInput:
    return stage.screen.query_one(f"#{widget_id}", LineInput)


def field_of(widget: Widget) -> FormField:
    return next(node for node in widget.ancestors if isinstance(node, FormField))


async def opened(stage: Stage, pilot: Pilot[None], screen: TaskEditor | RunDialog) -> None:
    stage.show(screen)  # type: ignore[arg-type] # a screen ends with its own type
    await until(pilot, lambda: stage.screen is screen and screen.focused is not None)
    await pilot.pause()


async def typed(pilot: Pilot[None], text: str) -> None:
    for character in text:
        await pilot.press("space" if character == " " else character)


def argument(stage: Stage, label: str) -> Widget:
    for one in stage.screen.query("ArgumentsForm FormField").results(FormField):
        if one._label == label:
            return one.control
    raise AssertionError(label)


async def test_a_title_and_a_command_make_a_task() -> None:
    stage = Stage()
    async with stage.run_test(size=(120, 40)) as pilot:
        await opened(stage, pilot, editor())

        await typed(pilot, "Run the tests")
        line(stage, "command").value = "pytest -k 'a b'"
        await pilot.press("ctrl+s")

        draft = edited(stage).draft
        assert draft.title == "Run the tests"
        assert draft.assignee_agent_id == "agent-command"
        assert draft.input_context == InputContext(capability_key="run", args={"argv": ["pytest", "-k", "a b"]})
        assert not edited(stage).should_run


async def test_enter_in_the_title_saves_and_ctrl_r_runs() -> None:
    stage = Stage()
    async with stage.run_test() as pilot:
        for key, should_run in (("enter", False), ("ctrl+r", True)):
            await opened(stage, pilot, editor(a_task()))

            await pilot.press(key)

            assert edited(stage).should_run is should_run


async def test_saving_five_times_in_a_row_ends_the_dialog_once() -> None:
    stage = Stage()
    async with stage.run_test() as pilot:
        await opened(stage, pilot, editor(a_task()))

        await pilot.press(*["ctrl+s"] * 5)

        assert len(stage.ended) == 1
        assert stage.failures == []


async def test_errors_stand_at_their_fields_and_the_first_has_the_focus(tmp_path: Path) -> None:
    stage = Stage()
    async with stage.run_test(size=(120, 40)) as pilot:
        await opened(stage, pilot, editor(root=str(tmp_path)))
        line(stage, "command").value = "ls | wc -l"
        await pilot.press("ctrl+g")
        line(stage, "retries").value = "many"
        line(stage, "folder").value = "not-there"
        line(stage, "command").focus()

        await pilot.press("ctrl+s")

        assert stage.ended == []
        assert stage.focused is line(stage, "title")
        for widget_id, words in (
            ("title", "a task needs a title"),
            ("command", "only a shell understands"),
            ("retries", "0 to 99"),
            ("folder", str(tmp_path / "not-there")),
        ):
            assert words in field_of(line(stage, widget_id)).error
        assert line(stage, "command").value == "ls | wc -l"


async def test_the_shell_line_that_would_work_is_taken_with_one_key() -> None:
    stage = Stage()
    async with stage.run_test(size=(120, 40)) as pilot:
        await opened(stage, pilot, editor(a_task()))
        line(stage, "command").value = "ls | wc -l"
        await pilot.press("ctrl+s")
        assert "sh -c 'ls | wc -l'" in screen_text(stage)

        await pilot.press("ctrl+t", "ctrl+s")

        assert edited(stage).draft.input_context.args == {"argv": ["sh", "-c", "ls | wc -l"]}


async def test_pasted_lines_become_one_title_and_the_field_says_so() -> None:
    stage = Stage()
    async with stage.run_test(size=(120, 40)) as pilot:
        await opened(stage, pilot, editor(a_task()))
        title = line(stage, "title")
        title.value = ""

        title.post_message(events.Paste("first line\r\nsecond\tline\n\x1b[31mred 🎉\x1b[201~\n"))
        await until(pilot, lambda: title.value != "")

        assert title.value == "first line second line red 🎉"
        assert "3 pasted lines became one" in screen_text(stage)


async def test_a_megabyte_pasted_into_the_title_is_refused_with_its_size() -> None:
    stage = Stage()
    async with stage.run_test(size=(120, 40)) as pilot:
        await opened(stage, pilot, editor(a_task()))

        line(stage, "title").post_message(events.Paste("y" * 1_000_000))
        await until(pilot, lambda: "1,000,000 characters" in screen_text(stage))

        assert line(stage, "title").value == "Fix it"


async def test_a_title_over_its_limit_is_kept_and_told(tmp_path: Path) -> None:
    stage = Stage()
    async with stage.run_test(size=(120, 40)) as pilot:
        await opened(stage, pilot, editor(a_task(), root=str(tmp_path)))
        line(stage, "title").value = "z" * 10_001

        await pilot.press("ctrl+s")

        assert stage.ended == []
        assert "10,001 characters" in field_of(line(stage, "title")).error
        assert len(line(stage, "title").value) == 10_001


@pytest.mark.proof
async def test_any_title_is_drawn_letter_for_letter_and_kept_unless_changed() -> None:
    stage = Stage()
    async with stage.run_test(size=(80, 24)) as pilot:
        for title in NASTY_TITLES:
            stage.ended.clear()
            await opened(stage, pilot, editor(a_task(title=title, description=title)))
            line(stage, "title").cursor_position = 0
            await pilot.pause()
            drawn = screen_text(stage)
            assert "\x1b" not in drawn
            assert "\x9b" not in drawn
            assert plain_line(title)[:4] in drawn

            await pilot.press("ctrl+s")

            assert edited(stage).draft.title == title
            assert edited(stage).draft.description == title
            assert stage.failures == []


async def test_what_the_form_does_not_show_stays_in_the_task() -> None:
    context = InputContext(
        capability_key="run",
        args={"argv": ["make"]},
        env_overrides={"A": "1"},
        env_passed=("B",),
        prompt_additions="please",
        max_retries=4,
    )
    task = a_task(input_context=context, due_at=NOW, priority=Priority.HIGH)
    stage = Stage()
    async with stage.run_test() as pilot:
        await opened(stage, pilot, editor(task))

        await pilot.press("ctrl+s")

        draft = edited(stage).draft
        assert draft.input_context == context
        assert (draft.due_at, draft.priority) == (NOW, Priority.HIGH)


async def test_a_program_that_is_gone_stays_assigned_until_another_is_chosen() -> None:
    context = InputContext(capability_key="old", args={"x": 1})
    task = a_task(assignee_agent_id="agent-gone", input_context=context)
    stage = Stage()
    async with stage.run_test(size=(120, 40)) as pilot:
        await opened(stage, pilot, editor(task))
        assert "no longer available" in screen_text(stage)

        await pilot.press("ctrl+s")

        assert edited(stage).draft.assignee_agent_id == "agent-gone"
        assert edited(stage).draft.input_context == context


async def test_arguments_become_values_of_the_types_of_their_schema() -> None:
    stage = Stage()
    async with stage.run_test(size=(120, 50)) as pilot:
        await opened(stage, pilot, editor(default="finder"))
        await typed(pilot, "look")
        for label, text in (("path", "/tmp"), ("count", "5"), ("names", "a 'b c' d")):
            one = argument(stage, label)
            assert isinstance(one, LineInput)
            one.value = text
        quiet, level = argument(stage, "quiet"), argument(stage, "level")
        assert isinstance(quiet, Checkbox)
        assert isinstance(level, Select)
        quiet.value = True
        level.value = 1

        await pilot.press("ctrl+s")

        assert edited(stage).draft.input_context.capability_key == "look"
        assert edited(stage).draft.input_context.args == {
            "path": "/tmp",
            "count": 5,
            "quiet": True,
            "level": "high",
            "names": ["a", "b c", "d"],
        }


async def test_wrong_arguments_are_told_at_their_fields_and_empty_ones_left_out() -> None:
    stage = Stage()
    async with stage.run_test(size=(120, 50)) as pilot:
        await opened(stage, pilot, editor(default="finder"))
        await typed(pilot, "look")
        count = argument(stage, "count")
        assert isinstance(count, LineInput)
        count.value = "0"

        await pilot.press("ctrl+s")

        assert field_of(argument(stage, "path")).error == "this is needed"
        assert "at least 1" in field_of(count).error
        assert stage.focused is argument(stage, "path")
        await typed(pilot, "x")
        count.value = ""
        await pilot.press("ctrl+s")
        assert edited(stage).draft.input_context.args == {"path": "x"}


async def test_what_was_typed_for_one_program_is_there_again_when_it_is_chosen_again() -> None:
    stage = Stage()
    async with stage.run_test(size=(120, 50)) as pilot:
        await opened(stage, pilot, editor(default="finder"))
        path = argument(stage, "path")
        assert isinstance(path, LineInput)
        path.value = "/somewhere"
        program = stage.screen.query_one("#program", Select)

        program.value = "command"
        await until(pilot, lambda: field_of(line(stage, "command")).display and not path.region)
        program.value = "finder"
        await until(pilot, lambda: bool(path.region))

        assert argument(stage, "path") is path
        assert path.value == "/somewhere"


async def test_a_program_and_what_it_does_are_found_in_their_lists_by_typing() -> None:
    stage = Stage()
    async with stage.run_test(size=(120, 50)) as pilot:
        await opened(stage, pilot, editor())
        program = stage.screen.query_one("#program", Select)

        program.focus()
        await pilot.press("enter", *"find", "enter")
        await until(pilot, lambda: program.value == "finder")
        what = stage.screen.query_one("#capability", Select)
        what.focus()
        await pilot.press("enter", *"list", "enter")
        await until(pilot, lambda: what.value == "list")


async def test_a_task_may_have_no_program_yet_but_then_cannot_run() -> None:
    stage = Stage()
    async with stage.run_test(size=(120, 40)) as pilot:
        await opened(stage, pilot, editor())
        await typed(pilot, "note")
        stage.screen.query_one("#program", Select).value = ""
        await pilot.pause()

        await pilot.press("ctrl+r")
        assert "choose the program" in screen_text(stage)
        await pilot.press("ctrl+s")

        assert edited(stage).draft.assignee_agent_id is None


async def test_a_new_card_offers_the_program_of_the_last_one_and_agents_before_tools(tmp_path: Path) -> None:
    async with stored(tmp_path) as place:
        services, workspace = place.services, place.workspace
        await services.agents.add(make_demo_agent())
        elsewhere = await services.workspaces.open(tmp_path)
        before = (await EditorMaking.read(services, workspace)).last_agent_slug
        demo = await services.agents.by_slug(DEMO_AGENT_SLUG)
        draft = TaskDraft(title="an agent's", assignee_agent_id=demo.id)
        await services.tasks.add(workspace, draft, actor=USER_ACTOR)
        await services.tasks.add(workspace, TaskDraft(title="a thought"), actor=USER_ACTOR)

    # As after a new start: nothing of it is kept in this process.
    async with stored(tmp_path) as place:
        making = await EditorMaking.read(place.services, place.workspace)
        other = await EditorMaking.read(place.services, elsewhere)
        stage = Stage()
        async with stage.run_test(size=(100, 40)) as pilot:
            new = making.editor(task=None, draft=None, start=None, parent=None, after=(), budget_nano=None)
            await opened(stage, pilot, new)
            select = new.query_one("#program", Select)
            offered = [str(value) for _, value in select._options]
            chosen = select.value

    assert (before, other.last_agent_slug) == (None, None)
    assert chosen == DEMO_AGENT_SLUG
    assert offered[0] == DEMO_AGENT_SLUG
    assert offered[-2:] == [ANY_COMMAND_SLUG, ""]


async def test_folders_are_taken_from_home_and_from_the_workspace(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "a folder" / "inner").mkdir(parents=True)
    (tmp_path / "a file").touch()
    stage = Stage()
    async with stage.run_test(size=(120, 40)) as pilot:
        for text, expected in (
            ("~/a folder", str(tmp_path / "a folder")),
            ("inner", str(tmp_path / "a folder" / "inner")),
            ("", None),
        ):
            await opened(stage, pilot, editor(a_task(), root=str(tmp_path / "a folder")))
            line(stage, "folder").value = text
            await pilot.press("ctrl+s")
            assert edited(stage).draft.input_context.working_dir == expected

        await opened(stage, pilot, editor(a_task(), root=str(tmp_path)))
        line(stage, "folder").value = "a file"
        await pilot.press("ctrl+s")
        assert "a file, not a folder" in field_of(line(stage, "folder")).error


async def test_escape_leaves_at_once_when_nothing_was_typed() -> None:
    stage = Stage()
    async with stage.run_test() as pilot:
        for task in (None, a_task()):
            await opened(stage, pilot, editor(task))

            await pilot.press("escape")

            assert stage.ended.pop() is None


async def test_escape_asks_before_it_throws_typed_text_away() -> None:
    stage = Stage()
    async with stage.run_test() as pilot:
        await opened(stage, pilot, editor())
        await typed(pilot, "half a title")

        await pilot.press("escape")
        assert isinstance(stage.screen, ConfirmDialog)
        await pilot.press("enter")
        await pilot.pause()
        assert line(stage, "title").value == "half a title"
        assert stage.ended == []

        await pilot.press("escape", "y")
        assert stage.ended == [None]


async def test_a_description_keeps_its_lines_and_loses_its_escape_codes() -> None:
    stage = Stage()
    async with stage.run_test() as pilot:
        await opened(stage, pilot, editor(a_task()))
        description = stage.screen.query_one("#description", TextArea)

        description.focus()
        description.post_message(events.Paste("one\n\ttwo \x1b]52;c;AAAA\x07[/]\n"))
        await until(pilot, lambda: description.text != "")
        await pilot.press("ctrl+s")

        assert edited(stage).draft.description == "one\n\ttwo [/]\n"


@pytest.mark.proof
async def test_the_editor_survives_any_size() -> None:
    stage = Stage()
    async with stage.run_test(size=(80, 24)) as pilot:
        await opened(stage, pilot, editor(a_task()))

        for size in ((80, 24), (40, 10), (20, 5), (1, 1), (200, 60)):
            await pilot.resize_terminal(*size)
            await pilot.pause()
            await pilot.resize_terminal(80, 24)
            await pilot.pause()

            assert "Edit #12" in screen_text(stage)
            assert stage.failures == []


async def test_a_description_is_wrapped_anew_when_the_window_shrinks() -> None:
    stage = Stage()
    async with stage.run_test(size=(120, 40)) as pilot:
        description = "alpha bravo charlie delta echo foxtrot golf hotel india juliett kilo lima mike november oscar"
        await opened(stage, pilot, editor(a_task(description=description)))

        await pilot.resize_terminal(80, 24)
        await pilot.pause()

        drawn = screen_text(stage)
        assert [word for word in description.split() if word not in drawn] == []


async def test_at_80_by_24_every_field_is_in_view() -> None:
    stage = Stage()
    async with stage.run_test(size=(80, 24)) as pilot:
        await opened(stage, pilot, editor())

        drawn = screen_text(stage)

        for word in ("Title", "Program", "Command", "Priority", "Folder", "More", "Description", "^s Save"):
            assert word in drawn


async def test_a_run_with_other_arguments_leaves_the_task_as_it_is() -> None:
    stage = Stage()
    async with stage.run_test(size=(120, 40)) as pilot:
        await opened(stage, pilot, RunDialog(agents=AGENTS, task=a_task(title="fix [/] bug")))
        assert "fix [/] bug" in screen_text(stage)

        line(stage, "command").value = "make other"
        await pilot.press(*["ctrl+r"] * 3)

        assert stage.ended == [RunChoice(agent_slug="command", capability_key="run", args={"argv": ["make", "other"]})]


async def test_what_harm_a_start_does_is_told_while_it_is_typed() -> None:
    async def find_judge() -> Callable[[Sequence[str]], DangerFinding]:
        return load_danger_rules().judge

    wiper = agent("rm", capability("run", {"type": "object", "properties": {"path": {"type": "string"}}}))
    wiper = replace(
        wiper,
        binary_path="rm",
        capabilities=tuple(replace(one, command_tokens=("-r", "{{args.path}}")) for one in wiper.capabilities),
    )
    stage = Stage()
    async with stage.run_test(size=(120, 40)) as pilot:
        dialog = RunDialog(agents=(any_command(), wiper), task=a_task(), find_judge=find_judge)
        await opened(stage, pilot, dialog)
        line(stage, "command").value = "git push --force"
        await until(pilot, lambda: "▲ level 3, destroys things: git push: replaces" in screen_text(stage))
        assert "waits for your leave" not in screen_text(stage)
        line(stage, "command").value = "git push --force-with-lease"
        await until(pilot, lambda: "▲ level 2, dangerous: git push: replaces" in screen_text(stage))
        line(stage, "command").value = "git push"
        await until(pilot, lambda: "▲" not in screen_text(stage))

        stage.screen.query_one("#program", Select).value = "rm"
        await until(pilot, lambda: bool(stage.screen.query("ArgumentsForm LineInput")))
        stage.screen.query_one("ArgumentsForm LineInput", LineInput).value = "src"
        await until(pilot, lambda: "dangerous: rm: deletes folders" in " ".join(screen_text(stage).split()))
        assert "it waits for your leave" in " ".join(screen_text(stage).split())


async def test_the_run_dialog_tells_what_is_wrong_and_leaves_on_escape() -> None:
    stage = Stage()
    async with stage.run_test(size=(120, 40)) as pilot:
        await opened(stage, pilot, RunDialog(agents=AGENTS, task=a_task()))
        line(stage, "command").value = "echo 'open"

        await pilot.press("ctrl+r")
        assert "is not closed" in field_of(line(stage, "command")).error
        assert stage.focused is line(stage, "command")
        line(stage, "command").value = "ls | wc -l"
        await pilot.press("ctrl+r", "ctrl+t")
        assert line(stage, "command").value == "sh -c 'ls | wc -l'"
        await pilot.press("escape")

        assert stage.ended == [None]


async def test_a_program_without_anything_to_run_says_so_at_its_field() -> None:
    stage = Stage()
    async with stage.run_test(size=(120, 40)) as pilot:
        screen = TaskEditor(agents=(any_command(), agent("bare"), FINDER), task=a_task(), workspace_root="/")
        await opened(stage, pilot, screen)
        program = stage.screen.query_one("#program", Select)
        for slug in ("finder", "bare", "finder", "bare"):
            program.value = slug
            await pilot.pause()

        await pilot.press("ctrl+s")

        capability_select = stage.screen.query_one("#capability", Select)
        assert "nothing to run" in field_of(capability_select).error
        assert stage.ended == []


async def test_labels_are_completed_with_known_ones_and_saved_in_order() -> None:
    stage = Stage()
    async with stage.run_test(size=(120, 40)) as pilot:
        known = TaskEditor(agents=AGENTS, task=a_task(), workspace_root="/", known_labels=["web", "auth"])
        await opened(stage, pilot, known)
        box = line(stage, "labels")
        box.focus()
        await pilot.press("#", "w")
        await until(pilot, lambda: box._suggestion == "#web")
        await pilot.press("right", "space", *"AUTH")
        await pilot.press("ctrl+s")
        await until(pilot, lambda: bool(stage.ended))

    assert edited(stage).draft.labels == ("auth", "web")


async def test_a_wrong_label_and_a_wrong_due_date_are_told_at_their_fields() -> None:
    stage = Stage()
    async with stage.run_test(size=(120, 40)) as pilot:
        await opened(stage, pilot, editor(a_task()))
        line(stage, "labels").value = "a+b"
        line(stage, "due").value = "soon"
        await pilot.press("ctrl+s")
        await until(pilot, lambda: "a label cannot have '+'" in screen_text(stage))
        assert "no due date" in screen_text(stage)

        line(stage, "labels").value = "a"
        line(stage, "due").value = "2090-01-01"
        await pilot.press("ctrl+s")
        await pilot.pause()
        assert stage.ended == []
        line(stage, "due").value = "in 2 days"
        await pilot.press("ctrl+s")
        await until(pilot, lambda: bool(stage.ended))

    assert edited(stage).draft.due_at is not None
