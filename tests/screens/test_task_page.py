from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING

import pytest
from textual.widgets import ContentSwitcher, Tab

from agentmon.bootstrap import open_services
from agentmon.cli.task_show import _facts
from agentmon.domain.execution_status import ExecutionStatus
from agentmon.domain.task_status import TaskStatus
from agentmon.domain.tasks import Schedule, TaskDraft
from agentmon.domain.verifications import VerificationStatus
from agentmon.screens.dialogs.choice import ChoiceDialog
from agentmon.screens.dialogs.confirm import ConfirmDialog
from agentmon.screens.frame import StoreChanged
from agentmon.screens.tasks.run_dialog import RunDialog
from agentmon.screens.tasks.task_editor import TaskEditor
from agentmon.screens.tasks.task_facts import read_task_facts
from agentmon.screens.tasks.task_page import TaskPage
from agentmon.screens.tasks.task_places import LogSpot
from agentmon.services.actors import USER_ACTOR
from agentmon.store.old_logs import OldLog, OldLogRepository
from agentmon.widgets.form import LineInput, TextBox
from agentmon.widgets.log_pane import LogPane
from tests import waiting
from tests.screen_stage import NASTY_TITLES, Stage, screen_text, shown, until
from tests.stored_runs import Stored, stored

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path

    from textual.pilot import Pilot

    from agentmon.domain.ids import ExecutionId, TaskId
    from tests.live_home import LiveHome

MANY_LINES = b"".join(b"line %d of the log\n" % number for number in range(1, 501))


async def opened(
    stage: Stage,
    pilot: Pilot[None],
    store: Stored,
    task_id: TaskId,
    *,
    execution_id: ExecutionId | None = None,
    tab: str = "details",
    at: LogSpot | None = None,
) -> TaskPage:
    page = TaskPage(
        task_id=task_id,
        services=store.get_services,
        workspace=store.get_workspace,
        execution_id=execution_id,
        tab=tab,
        at=at,
    )
    stage.show(page)  # type: ignore[arg-type] # a screen ends with its own type
    await until(pilot, lambda: stage.screen is page and page._shown is not None)
    await pilot.pause()
    return page


async def sees(stage: Stage, pilot: Pilot[None], *words: str) -> None:
    await until(pilot, lambda: all(word in screen_text(stage) for word in words))


def current_tab(stage: Stage) -> str | None:
    return stage.screen.query_one("#panes", ContentSwitcher).current


async def test_the_details_say_what_runs_where_and_with_which_names(tmp_path: Path) -> None:
    stage = Stage()
    async with stored(tmp_path) as store, stage.run_test(size=(120, 40)) as pilot:
        task = await store.add_task(
            "Build it",
            "make",
            "all of it",
            env_overrides={"API_KEY": "hunter2"},
            env_passed=("TOKEN",),
            max_retries=2,
        )
        first = await store.add_task("Comes first")
        await store.services.tasks.add_dependency(task.id, first.number, actor=USER_ACTOR)

        await opened(stage, pilot, store, task.id)

        await sees(stage, pilot, "#1 Build it", "make 'all of it'", "API_KEY, TOKEN (passed on)", "◌ #2 Comes first")
        assert store.workspace.root_path in screen_text(stage)
        assert "hunter2" not in screen_text(stage)
        assert "Never run. Press r to run it." in screen_text(stage)


async def test_the_heading_tells_state_time_program_and_exit_code(tmp_path: Path) -> None:
    stage = Stage()
    async with stored(tmp_path) as store, stage.run_test(size=(120, 40)) as pilot:
        task = await store.add_task("broken")
        await store.add_run(task.id, ExecutionStatus.FAILED)

        await opened(stage, pilot, store, task.id)

        await sees(stage, pilot, "✗ failed (exit 1)   5s   Any command   P3 normal")


def _is_left(stage: Stage, page: TaskPage) -> bool:
    return stage.screen is not page


@pytest.mark.proof
async def test_any_title_and_description_is_drawn_letter_for_letter(tmp_path: Path) -> None:
    stage = Stage()
    async with stored(tmp_path) as store, stage.run_test(size=(80, 24)) as pilot:
        for title in NASTY_TITLES:
            task = await store.add_task(title)
            draft = TaskDraft(title=title, description=title)
            await store.services.tasks.edit(task.id, draft, expected_version=task.version, actor=USER_ACTOR)

            page = await opened(stage, pilot, store, task.id)
            for key in ("D", "L", "A"):
                await pilot.press(key)
                await sees(stage, pilot, shown(title))
                assert "\x1b" not in screen_text(stage)
            page.dismiss(None)
            await until(pilot, partial(_is_left, stage, page))

            assert stage.failures == []


async def test_a_run_is_verified_by_one_key_also_when_its_page_is_left(tmp_path: Path) -> None:
    stage = Stage()
    async with stored(tmp_path) as store, stage.run_test(size=(120, 40)) as pilot:
        task = await store.add_task(verify="until test -e go; do sleep 0.05; done; exit 3")
        run = await store.add_run(task.id)
        store.set_columns(run.id, working_dir=str(tmp_path))
        page = await opened(stage, pilot, store, task.id)

        async def verdict() -> VerificationStatus | None:
            found = (await store.services.executions.get(run.id)).verification
            return None if found is None else found.status

        await pilot.press("V")
        await waited(pilot, verdict, VerificationStatus.RUNNING)
        page.dismiss(None)
        await until(pilot, partial(_is_left, stage, page))
        (tmp_path / "go").touch()
        await waited(pilot, verdict, VerificationStatus.FAILED)
        await until(pilot, lambda: any("✗" in one.message for one in stage._notifications))

        assert (await store.services.verifications.newest(task, run)).exit_code == 3
        assert stage.failures == []


async def waited(
    pilot: Pilot[None], read: Callable[[], Awaitable[VerificationStatus | None]], wanted: VerificationStatus
) -> None:
    """Return once what is read is what is wanted."""
    async with asyncio.timeout(waiting.DEADLINE_S):
        while await read() is not wanted:
            await pilot.pause()


@pytest.mark.proof
async def test_the_tabs_are_reached_by_keys_and_by_mouse(tmp_path: Path) -> None:
    stage = Stage()
    async with stored(tmp_path) as store, stage.run_test(size=(120, 40)) as pilot:
        task = await store.add_task()
        await store.add_run(task.id, output=b"hello\n")
        await opened(stage, pilot, store, task.id)

        seen = []
        for key in ("]", "]", "]", "]", "]", "]", "[", "L", "C", "O", "F", "A", "D"):
            await pilot.press({"]": "right_square_bracket", "[": "left_square_bracket"}.get(key, key))
            await pilot.pause()
            seen.append(current_tab(stage))
        await pilot.click("#tab-log")
        await until(pilot, lambda: current_tab(stage) == "log")

        places = ["log", "conversation", "operations", "changes", "audit", "details"]
        assert seen == [*places, "audit", *places]
        assert stage.screen.query_one("#tab-log", Tab).has_class("-active")


async def test_the_log_opens_at_its_end_and_scrolls_and_follows_by_keys(tmp_path: Path) -> None:
    stage = Stage()
    async with stored(tmp_path) as store, stage.run_test(size=(80, 24)) as pilot:
        task = await store.add_task()
        run = await store.add_run(task.id, ExecutionStatus.RUNNING, output=MANY_LINES)
        await opened(stage, pilot, store, task.id, tab="log")
        await sees(stage, pilot, "line 500 of the log")

        await pilot.press("g")
        await sees(stage, pilot, "line 1 of the log", "G to the end")
        await pilot.press("j", "pagedown")
        assert "line 1 of the log" not in screen_text(stage)
        await pilot.press("G")
        with store.services.executions.log_path(run).open("ab") as log:
            log.write(b"something new\n")

        await sees(stage, pilot, "something new", "at the end")


async def test_search_finds_marks_and_goes_on_round_the_end(tmp_path: Path) -> None:
    stage = Stage()
    async with stored(tmp_path) as store, stage.run_test(size=(80, 24)) as pilot:
        task = await store.add_task()
        await store.add_run(task.id, output=MANY_LINES)
        await opened(stage, pilot, store, task.id, tab="log")
        await sees(stage, pilot, "line 500 of the log")

        await pilot.press("slash")
        stage.screen.query_one("#log-prompt", LineInput).value = "line [17]7 of"
        await pilot.press("enter")
        await sees(stage, pilot, "line 77 of the log", "/line [17]7 of  2 lines")
        await pilot.press("N")
        await sees(stage, pilot, "line 17 of the log")
        await pilot.press("N")
        await sees(stage, pilot, "line 77 of the log", "went round the end")
        await pilot.press("escape")

        assert isinstance(stage.screen, TaskPage)
        assert not stage.screen.query_one(LogPane).has_something_open


async def test_the_page_opens_at_a_place_of_a_log_with_words_marked(tmp_path: Path) -> None:
    stage = Stage()
    async with stored(tmp_path) as store, stage.run_test(size=(80, 24)) as pilot:
        task = await store.add_task()
        older = await store.add_run(task.id, output=MANY_LINES)
        await store.add_run(task.id, output=b"another run\n")

        spot = LogSpot(offset=MANY_LINES.index(b"177 of"), words="177 OF".lower())
        page = await opened(stage, pilot, store, task.id, execution_id=older.id, at=spot)

        await sees(stage, pilot, "line 177 of the log", "run 1 of 2", "/177 of  1 line  n next")
        assert 3 < next(at for at, row in enumerate(screen_text(stage).splitlines()) if "line 177 of" in row) < 14
        stage.screen.post_message(StoreChanged())
        await pilot.press("n", "g")
        await sees(stage, pilot, "line 1 of the log", "line 1 of 500")
        page.dismiss(None)
        await until(pilot, partial(_is_left, stage, page))

        await opened(stage, pilot, store, task.id, execution_id=older.id, at=LogSpot(offset=10**9))
        await sees(stage, pilot, "line 500 of the log")


async def test_a_search_for_nothing_that_is_there_says_so(tmp_path: Path) -> None:
    stage = Stage()
    async with stored(tmp_path) as store, stage.run_test(size=(80, 24)) as pilot:
        task = await store.add_task()
        await store.add_run(task.id, output=MANY_LINES)
        await opened(stage, pilot, store, task.id, tab="log")
        box = stage.screen.query_one("#log-prompt", LineInput)

        for pattern, words in (("(", "not a regular expression"), ("nowhere", "not found")):
            await pilot.press("slash")
            box.value = pattern
            await pilot.press("enter")
            await sees(stage, pilot, words)


async def test_capital_w_wraps_long_lines_and_arrows_scroll_them(tmp_path: Path) -> None:
    stage = Stage()
    async with stored(tmp_path) as store, stage.run_test(size=(80, 24)) as pilot:
        task = await store.add_task()
        await store.add_run(task.id, output=b"begin " + b"x" * 100 + b" the far end\n")
        await opened(stage, pilot, store, task.id, tab="log")
        await sees(stage, pilot, "begin")
        assert "the far end" not in screen_text(stage)

        await pilot.press("W")
        await sees(stage, pilot, "the far end", "wrapped")
        await pilot.press("W", *["right"] * 8)

        await until(pilot, lambda: "the far end" in screen_text(stage) and "begin" not in screen_text(stage))
        await pilot.press(*["left"] * 8)
        await until(pilot, lambda: "the far end" not in screen_text(stage) and "begin" in screen_text(stage))


async def test_enter_on_an_older_run_shows_its_log(tmp_path: Path) -> None:
    stage = Stage()
    async with stored(tmp_path) as store, stage.run_test(size=(120, 40)) as pilot:
        task = await store.add_task()
        await store.add_run(task.id, ExecutionStatus.FAILED, output=b"what went wrong\n")
        await store.add_run(task.id, output=b"all is well\n")
        await opened(stage, pilot, store, task.id)
        await sees(stage, pilot, "✗ failed")

        await pilot.press("j", "enter")

        await sees(stage, pilot, "what went wrong", "run 1 of 2")


async def test_the_audit_grows_with_the_newest_at_the_bottom(tmp_path: Path) -> None:
    stage = Stage()
    async with stored(tmp_path) as store, stage.run_test(size=(120, 40)) as pilot:
        task = await store.add_task("old [/] name")
        await opened(stage, pilot, store, task.id, tab="audit")
        await sees(stage, pilot, "made the task")

        draft = TaskDraft(title="new name")
        edited = await store.services.tasks.edit(task.id, draft, expected_version=task.version, actor=USER_ACTOR)
        await store.services.tasks.move(edited.id, TaskStatus.DONE, actor=USER_ACTOR)
        stage.screen.post_message(StoreChanged())

        await sees(
            stage,
            pilot,
            "renamed it from “old [/] name” to “new name”; changed the program",
            "moved it from Todo to Done",
        )
        lines = screen_text(stage).splitlines()
        places = [next(y for y, line in enumerate(lines) if word in line) for word in ("made", "renamed", "moved it")]
        assert places == sorted(places)


async def test_edit_changes_the_task(tmp_path: Path) -> None:
    stage = Stage()
    async with stored(tmp_path) as store, stage.run_test(size=(120, 40)) as pilot:
        task = await store.add_task("before")
        await opened(stage, pilot, store, task.id)

        await pilot.press("e")
        await until(pilot, lambda: isinstance(stage.screen, TaskEditor))
        stage.screen.query_one("#title", LineInput).value = "after"
        await pilot.press("ctrl+s")

        await sees(stage, pilot, "#1 after")


@pytest.mark.proof
async def test_an_edit_that_somebody_overtook_comes_back_with_what_was_typed(tmp_path: Path) -> None:
    stage = Stage()
    async with stored(tmp_path) as store, stage.run_test(size=(120, 40)) as pilot:
        task = await store.add_task("before")
        await opened(stage, pilot, store, task.id)
        await pilot.press("e")
        await until(pilot, lambda: isinstance(stage.screen, TaskEditor))
        first = stage.screen
        first.query_one("#title", LineInput).value = "mine"
        theirs = TaskDraft(title="theirs", description="new")
        await store.services.tasks.edit(task.id, theirs, expected_version=task.version, actor=USER_ACTOR)

        await pilot.press("ctrl+s")
        await until(pilot, lambda: isinstance(stage.screen, ChoiceDialog))
        await sees(stage, pilot, "changed by somebody else", "title: “before” → “theirs”", "· description")
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(stage.screen, TaskEditor) and stage.screen is not first)
        assert stage.screen.query_one("#title", LineInput).value == "mine"
        assert stage.screen.query_one("#description", TextBox).text == "new"
        await pilot.press("ctrl+s")

        await sees(stage, pilot, "#1 mine")


async def test_an_edit_of_a_card_that_only_moved_meanwhile_is_stored(tmp_path: Path) -> None:
    stage = Stage()
    async with stored(tmp_path) as store, stage.run_test(size=(120, 40)) as pilot:
        task = await store.add_task("before")
        await opened(stage, pilot, store, task.id)
        await pilot.press("e")
        await until(pilot, lambda: isinstance(stage.screen, TaskEditor))
        stage.screen.query_one("#title", LineInput).value = "mine"
        await store.services.tasks.move(task.id, TaskStatus.BLOCKED, actor=USER_ACTOR)

        await pilot.press("ctrl+s")

        await sees(stage, pilot, "#1 mine", "Blocked")


async def test_an_edit_keeps_schedule_parent_and_dependencies_and_can_change_them(tmp_path: Path) -> None:
    stage = Stage()
    async with stored(tmp_path) as store, stage.run_test(size=(120, 40)) as pilot:
        parent, other = await store.add_task("whole"), await store.add_task("other")
        draft = TaskDraft(
            title="part", parent_task_id=parent.id, schedule=Schedule(cron="30 7 * * 1-5", zone="Europe/Berlin")
        )
        task = await store.services.tasks.add(store.workspace, draft, actor=USER_ACTOR, after=[parent.number])
        await opened(stage, pilot, store, task.id)
        await sees(stage, pilot, "30 7 * * 1-5 in Europe/Berlin · next", "#1 whole")

        await pilot.press("e")
        await until(pilot, lambda: isinstance(stage.screen, TaskEditor))
        assert stage.screen.query_one("#parent", LineInput).value == "#1"
        stage.screen.query_one("#after", LineInput).value = "2"
        await pilot.press("ctrl+s")

        async def is_stored() -> bool:
            return [one.number for one in await store.services.tasks.dependencies(task.id)] == [other.number]

        await waiting.until(is_stored, "it waits for the other task")
        stored_task = await store.services.tasks.get(task.id)
        assert (stored_task.schedule, stored_task.parent_task_id) == (draft.schedule, parent.id)


async def test_the_details_tell_parent_subtasks_and_what_needs_it(tmp_path: Path) -> None:
    stage = Stage()
    async with stored(tmp_path) as store, stage.run_test(size=(120, 40)) as pilot:
        task = await store.add_task("whole")
        for title in ("first part", "second part"):
            draft = TaskDraft(title=title, parent_task_id=task.id)
            part = await store.services.tasks.add(store.workspace, draft, actor=USER_ACTOR)
        await store.services.tasks.move(part.id, TaskStatus.DONE, actor=USER_ACTOR)
        await store.services.tasks.add(store.workspace, TaskDraft(title="later"), actor=USER_ACTOR, after=[task.number])

        await opened(stage, pilot, store, task.id)

        await sees(stage, pilot, "1/2 subtasks closed", "◌ #2 first part  Todo", "✓ #3 second part  Done")
        await sees(stage, pilot, "Needed by", "◌ #4 later  Blocked")


async def test_the_details_say_why_a_run_waits_and_which_try_it_is(tmp_path: Path) -> None:
    stage = Stage()
    async with stored(tmp_path) as store, stage.run_test(size=(120, 40)) as pilot:
        task = await store.add_task("limited")
        run = await store.add_run(task.id, ExecutionStatus.QUEUED, max_retries=3)
        until_moment = datetime.now(UTC) + timedelta(days=300)
        store.set_columns(
            run.id, wait_reason="usage_limit", not_before=until_moment, retry_count=1, error="usage limit reached"
        )
        await store.services.queue.pause(actor=USER_ACTOR)

        await opened(stage, pilot, store, task.id)

        await sees(stage, pilot, f"⏸ parked until {until_moment.astimezone():%Y-%m-%d %H:%M}", "try 2 of 4")
        await sees(stage, pilot, "usage limit reached · r starts it now", "the queue is paused since")


async def test_processes_that_could_not_be_stopped_are_named_with_what_helps(tmp_path: Path) -> None:
    stage = Stage()
    async with stored(tmp_path) as store, stage.run_test(size=(120, 40)) as pilot:
        task = await store.add_task("stuck")
        run = await store.add_run(task.id, ExecutionStatus.CANCELLING)
        store.set_columns(run.id, error="could not stop pid 123 (sleep), 456 (su)")

        await opened(stage, pilot, store, task.id)

        await sees(stage, pilot, "◍ could not stop pid 123, 456", "sudo kill -9 123 456")


async def test_a_removed_log_says_when_and_by_which_setting(tmp_path: Path) -> None:
    stage = Stage()
    async with stored(tmp_path) as store, stage.run_test(size=(120, 40)) as pilot:
        task = await store.add_task("old")
        run = await store.add_run(task.id, output=b"hello\n")
        store.services.executions.log_path(run).unlink()
        old = OldLog(execution_id=run.id, task_id=task.id, log_file_path="", log_byte_size=6, is_too_old=True)
        await OldLogRepository(store.services.database).mark_removed(old, at=datetime.now(UTC))

        await opened(stage, pilot, store, task.id, tab="log")
        await sees(stage, pilot, "The log was removed on", "worker.keep_logs_days")
        await pilot.press("A")

        await sees(stage, pilot, "removed the log of a run, since it was too old")


async def test_x_and_a_are_offered_while_something_is_open_only(tmp_path: Path) -> None:
    stage = Stage()
    async with stored(tmp_path) as store, stage.run_test(size=(120, 40)) as pilot:
        task = await store.add_task()
        run = await store.add_run(task.id, ExecutionStatus.RUNNING)
        page = await opened(stage, pilot, store, task.id)
        assert page.check_action("attach", ()) is True
        await pilot.press("a")
        await until(pilot, lambda: [one.execution_id for one in stage.attach_requests] == [run.id])

        store.set_status(run.id, ExecutionStatus.SUCCEEDED)
        page.post_message(StoreChanged())

        await until(pilot, lambda: page.check_action("attach", ()) is None and page.check_action("stop", ()) is None)


async def test_kill_asks_first(tmp_path: Path) -> None:
    stage = Stage()
    async with stored(tmp_path) as store, stage.run_test(size=(120, 40)) as pilot:
        task = await store.add_task("see [b + x")
        queued = await store.add_run(task.id, ExecutionStatus.QUEUED)
        await opened(stage, pilot, store, task.id)

        await pilot.press("X")
        await until(pilot, lambda: isinstance(stage.screen, ConfirmDialog))
        assert "see [b + x" in screen_text(stage)
        await pilot.press("y")

        await sees(stage, pilot, "⊘ cancelled")
        assert (await store.services.executions.get(queued.id)).status is ExecutionStatus.CANCELLED


async def test_the_page_of_a_deleted_task_closes_and_says_why(tmp_path: Path) -> None:
    stage = Stage()
    async with stored(tmp_path) as store, stage.run_test(size=(120, 40)) as pilot:
        task = await store.add_task()
        page = await opened(stage, pilot, store, task.id)

        await store.services.tasks.delete(task.id, actor=USER_ACTOR)
        page.post_message(StoreChanged())

        await until(pilot, lambda: stage.screen is not page)
        await until(pilot, lambda: "The task was deleted" in [note.message for note in stage._notifications])


@pytest.mark.proof
async def test_any_size_is_survived(tmp_path: Path) -> None:
    stage = Stage()
    async with stored(tmp_path) as store, stage.run_test(size=(80, 24)) as pilot:
        task = await store.add_task("small")
        await store.add_run(task.id, output=MANY_LINES)
        await opened(stage, pilot, store, task.id)

        for size in ((80, 24), (40, 10), (20, 5), (1, 1), (300, 80)):
            await pilot.resize_terminal(*size)
            for key in ("j", "L", "g", "A", "D"):
                await pilot.press(key)
            await pilot.resize_terminal(80, 24)

            await sees(stage, pilot, "#1 small")
            assert stage.failures == []


async def test_r_runs_the_task_and_its_log_comes_in_live(live_home: LiveHome) -> None:
    stage = Stage()
    async with open_services(live_home.paths) as services, stage.run_test(size=(100, 30)) as pilot:
        store = Stored(services, await services.workspaces.open(live_home.project))
        script = "echo first; while [ ! -e go ]; do sleep 0.05; done; echo last; exit 3"
        task = await store.add_task("live", "sh", "-c", script)
        page = await opened(stage, pilot, store, task.id)

        await pilot.press(*["r"] * 3)
        await sees(stage, pilot, "first", "newest run")
        assert current_tab(stage) == "log"
        assert len(await services.executions.of_task(task.id)) == 1
        (live_home.project / "go").touch()
        await sees(stage, pilot, "last")
        await services.queue.wait((await services.executions.of_task(task.id))[0].id)
        page.post_message(StoreChanged())

        await sees(stage, pilot, "✗ failed (exit 3)")


async def test_a_run_with_another_command_leaves_the_task_as_it_is(live_home: LiveHome) -> None:
    stage = Stage()
    async with open_services(live_home.paths) as services, stage.run_test(size=(100, 30)) as pilot:
        store = Stored(services, await services.workspaces.open(live_home.project))
        task = await store.add_task("live", "echo", "own")
        await opened(stage, pilot, store, task.id)

        await pilot.press("R")
        await until(pilot, lambda: isinstance(stage.screen, RunDialog))
        stage.screen.query_one("#command", LineInput).value = "echo other"
        await pilot.press("ctrl+r")

        await sees(stage, pilot, "other")
        assert (await services.tasks.get(task.id)).input_context == replace(task.input_context)


async def typed(pilot: Pilot[None], stage: Stage, key: str, text: str) -> None:
    await pilot.press(key)
    stage.screen.query_one("#log-prompt", LineInput).value = text
    await pilot.press("enter")


@pytest.mark.proof
async def test_colon_goes_to_a_line_and_to_a_share_of_the_log(tmp_path: Path) -> None:
    stage = Stage()
    async with stored(tmp_path) as store, stage.run_test(size=(80, 24)) as pilot:
        task = await store.add_task()
        await store.add_run(task.id, output=MANY_LINES)
        await opened(stage, pilot, store, task.id, tab="log")
        await sees(stage, pilot, "line 500 of the log")

        await typed(pilot, stage, "colon", "120")
        await sees(stage, pilot, "line 120 of the log", "of 500")
        await typed(pilot, stage, "colon", "50%")
        await sees(stage, pilot, "line 26")
        await typed(pilot, stage, "colon", "100%")
        await sees(stage, pilot, "line 500 of the log", "at the end")
        await typed(pilot, stage, "colon", "somewhere")
        await sees(stage, pilot, "not a place in a log")
        await pilot.press("escape")
        await typed(pilot, stage, "colon", "-5m")
        await sees(stage, pilot, "nobody noted when this log was written")


async def test_colon_goes_to_what_was_written_at_a_time(tmp_path: Path) -> None:
    stage = Stage()
    async with stored(tmp_path) as store, stage.run_test(size=(80, 24)) as pilot:
        task = await store.add_task()
        run = await store.add_run(task.id, output=MANY_LINES)
        path = store.services.executions.log_path(run)
        half = MANY_LINES.index(b"line 300 ")
        path.with_name("journal.jsonl").write_text(
            "".join(
                f'{{"n":{number},"at_ms":{at_ms},"type":"output","bytes":{count},"lines":1,'
                '"left_out_bytes":0,"last_line":""}\n'
                for number, (at_ms, count) in enumerate([(10**12, half), (10**12 + 60_000, len(MANY_LINES))], 1)
            )
        )
        await opened(stage, pilot, store, task.id, tab="log")
        await sees(stage, pilot, "line 500 of the log")

        await typed(pilot, stage, "colon", "-30s")
        await sees(stage, pilot, "line 300 of the log")
        await typed(pilot, stage, "colon", "+2m")
        await sees(stage, pilot, "the newest output came at")


async def test_ampersand_shows_only_lines_that_match_and_escape_shows_all(tmp_path: Path) -> None:
    stage = Stage()
    async with stored(tmp_path) as store, stage.run_test(size=(80, 24)) as pilot:
        task = await store.add_task()
        run = await store.add_run(task.id, output=MANY_LINES)
        page = await opened(stage, pilot, store, task.id, tab="log")
        await sees(stage, pilot, "line 500 of the log")

        await typed(pilot, stage, "ampersand", "line 4[0-9]9")
        await sees(stage, pilot, "line 409 of the log", "line 499 of the log", "10 lines")
        assert "line 498 of" not in screen_text(stage)
        with store.services.executions.log_path(run).open("ab") as log:
            log.write(b"line 499 again\nline 500 again\n")
        await sees(stage, pilot, "line 499 again", "11 lines")
        await typed(pilot, stage, "slash", "^line ..9 of")
        await sees(stage, pilot, "line 499 of the log")
        await pilot.press("escape")
        await typed(pilot, stage, "ampersand", "nowhere")
        await sees(stage, pilot, "No line matches.", "0 lines")

        await pilot.press("escape", "G")
        await sees(stage, pilot, "line 500 again", "line 498 of the log")
        assert stage.screen is page


async def test_c_copies_the_lines_in_view_and_from_a_mark_on(tmp_path: Path) -> None:
    stage = Stage()
    async with stored(tmp_path) as store, stage.run_test(size=(80, 24)) as pilot:
        task = await store.add_task()
        await store.add_run(task.id, output=MANY_LINES)
        await opened(stage, pilot, store, task.id, tab="log")
        await sees(stage, pilot, "line 500 of the log")

        await pilot.press("c")
        await sees(stage, pilot, "copied")
        assert stage.clipboard.endswith("line 499 of the log\nline 500 of the log")
        await typed(pilot, stage, "colon", "1")
        await sees(stage, pilot, "line 1 of the log")
        await pilot.press("v", "G")
        await sees(stage, pilot, "marked  c copy", "line 500 of the log")
        await pilot.press("c")
        await sees(stage, pilot, "copied 500 lines")
        assert stage.clipboard == MANY_LINES.decode().rstrip("\n")
        await pilot.press("escape")
        await until(pilot, lambda: "marked  c copy" not in screen_text(stage))


async def test_capital_s_saves_the_log_and_asks_before_it_overwrites(tmp_path: Path) -> None:
    stage = Stage()
    target = tmp_path / "saved.log"
    async with stored(tmp_path) as store, stage.run_test(size=(80, 24)) as pilot:
        task = await store.add_task()
        await store.add_run(task.id, output=MANY_LINES)
        page = await opened(stage, pilot, store, task.id, tab="log")

        await typed(pilot, stage, "S", str(target))
        await until(pilot, lambda: target.exists() and target.read_bytes() == MANY_LINES)
        await typed(pilot, stage, "ampersand", "line 7 ")
        await typed(pilot, stage, "S", str(target))
        await until(pilot, lambda: isinstance(stage.screen, ConfirmDialog))
        await pilot.press("n")
        await until(pilot, lambda: stage.screen is page)
        assert target.read_bytes() == MANY_LINES
        await typed(pilot, stage, "S", str(target))
        await until(pilot, lambda: isinstance(stage.screen, ConfirmDialog))
        await pilot.press("y")
        await until(pilot, lambda: target.read_bytes() == b"line 7 of the log\n")


PAINTED = b"Trust this?\r\n> 1. Yes\r\n  2. No" + b"\x1b[2K\x1b[1A\x1b[2K\x1b[1A\x1b[2K\x1b[Gready\r\n> here"


async def test_the_log_of_a_program_that_repaints_is_its_last_screen_and_s_shows_what_came(tmp_path: Path) -> None:
    stage = Stage()
    async with stored(tmp_path) as store, stage.run_test(size=(100, 30)) as pilot:
        task = await store.add_task()
        await store.add_run(task.id, output=PAINTED)
        page = await opened(stage, pilot, store, task.id, tab="log")
        await sees(stage, pilot, "ready", "> here", "last screen")
        assert "2. No" not in screen_text(stage)

        await pilot.press("S")
        page.query_one("#log-prompt", LineInput).value = str(tmp_path / "saved")
        await pilot.press("enter")
        await until(pilot, (tmp_path / "saved").exists)
        assert (tmp_path / "saved").read_text() == "ready\n> here\n"

        await pilot.press("s")
        await sees(stage, pilot, "Trust this?")
        page.post_message(StoreChanged())
        await pilot.pause()
        assert "Trust this?" in screen_text(stage)
        await pilot.press("s")
        await sees(stage, pilot, "> here", "last screen")


async def test_a_place_in_the_output_shows_the_output_of_a_program_that_repaints(tmp_path: Path) -> None:
    stage = Stage()
    async with stored(tmp_path) as store, stage.run_test(size=(100, 30)) as pilot:
        task = await store.add_task()
        run = await store.add_run(task.id, output=PAINTED)
        await opened(stage, pilot, store, task.id, execution_id=run.id, at=LogSpot(offset=3, words="Trust"))

        await sees(stage, pilot, "Trust this?", "/Trust")


async def test_a_screen_is_shown_live_and_follows_what_its_program_paints(live_home: LiveHome) -> None:
    stage = Stage()
    async with open_services(live_home.paths) as services, stage.run_test(size=(100, 30)) as pilot:
        store = Stored(services, await services.workspaces.open(live_home.project))
        script = (
            "printf 'asks\\n> no'; printf '\\033[1A\\033[2K\\033[Gat work'; while [ ! -e go ]; do sleep 0.05; done; "
            "printf '\\033[H\\033[2Jdone soon'; while [ ! -e end ]; do sleep 0.05; done"
        )
        task = await store.add_task("live", "sh", "-c", script)
        await opened(stage, pilot, store, task.id, tab="log")

        await pilot.press("r")
        await sees(stage, pilot, "at work", "> no")
        await until(pilot, lambda: "asks" not in screen_text(stage))
        (live_home.project / "go").touch()
        await sees(stage, pilot, "done soon")
        await until(pilot, lambda: "> no" not in screen_text(stage))
        (live_home.project / "end").touch()
        await services.queue.wait((await services.executions.of_task(task.id))[0].id)


async def test_a_task_says_what_all_of_its_runs_cost_however_many(tmp_path: Path) -> None:
    stage = Stage()
    async with stored(tmp_path) as store, stage.run_test(size=(120, 40)) as pilot:
        task = await store.add_task("often")
        await store.add_run(task.id)
        with closing(sqlite3.connect(store.services.paths.database_path)) as connection, connection:
            connection.execute("UPDATE executions SET cost_nano = 10000000, tokens_used = 100")
        store.copy_runs(204)
        await opened(stage, pilot, store, task.id)
        on_page = await read_task_facts(store.services, store.workspace, task.id)
        on_command_line = await _facts(store.services, store.workspace, str(task.number))
        on_board = (await store.services.board.spent([task.id]))[task.id]

        assert on_page.spent == on_command_line.spent == on_board == (2_050_000_000, 20_500, 0, 205)
        await sees(stage, pilot, "$2.05", "205 runs")
