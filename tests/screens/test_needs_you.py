from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest
from textual.widgets import Input, Select

from agentmon.domain.conversation import SessionNews
from agentmon.domain.execution_status import ExecutionStatus
from agentmon.domain.executions import ConversationStart
from agentmon.runners.presets import agents_of, load_presets
from agentmon.screens.inbox.needs import NeedsWatch, NewNeeds
from agentmon.screens.inbox.request_dialog import RequestDialog
from agentmon.screens.inbox.screen import InboxScreen
from agentmon.screens.tasks.conversation_form import ConversationForm
from agentmon.screens.tasks.run_dialog import RunChoice, RunDialog
from agentmon.widgets.form import FormField
from tests.live_home import add_command
from tests.screen_stage import any_command, screen_text, until
from tests.screens.boards import Place, open_board
from tests.screens.boards import until as until_true
from tests.screens.scenes import scene
from tests.screens.talks import a_talk, make_talks, talks, wants_command

if TYPE_CHECKING:
    from pathlib import Path

    from tests.live_home import LiveHome


async def test_a_card_shows_what_its_agent_wants_and_y_shows_it_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with scene(tmp_path, monkeypatch, size=(120, 40), deeds=()) as board:
        rings: list[None] = []
        monkeypatch.setattr(board.app, "bell", lambda: rings.append(None))
        place = await make_talks(await board.app.services(), await board.app.workspace())
        await place.ask("Mend the login")
        await until_true(lambda: "1 needs you" in screen_text(board.app), "the status line")
        await until_true(lambda: len(rings) == 1, "the bell")

        await board.press("w")
        await until_true(lambda: board.selected == "Mend the login", "the card")
        assert "◆ " in screen_text(board.app)
        assert "m Message" in screen_text(board.app)
        await board.press("y")
        await until_true(lambda: isinstance(board.app.screen, RequestDialog), "the request")
        await until_true(lambda: "$ rm -r build" in screen_text(board.app), "the command")
        await board.press("escape", "6", "w")

        await until_true(lambda: isinstance(board.app.screen, InboxScreen), "the inbox")
        assert len(await place.waiting()) == 1


async def test_a_plain_command_is_offered_no_message_and_the_keys_of_agents_do_nothing_to_it(
    live_home: LiveHome,
) -> None:
    place = Place(paths=live_home.paths, root=live_home.project)
    async with place.services() as (services, workspace):
        await add_command(services, workspace, "sleep", "600", title="a command")
    async with open_board(place) as board:
        await board.press("r")
        await until_true(lambda: "x Stop" in screen_text(board.app), "the command runs")
        assert "m Message" not in screen_text(board.app)

        await board.press("m", "i", "M")
        await board.settled()

        assert board.app.screen is board.screen
        assert board.toasts == []


async def test_what_is_new_is_told_once_and_the_bell_rings_at_most_once_in_five_seconds(tmp_path: Path) -> None:
    async with talks(tmp_path) as (place, _stage):
        watch = NeedsWatch()
        await place.ask("first")
        assert await watch.find_news(place.services, place.workspace, datetime.now(UTC)) == NewNeeds()

        await place.ask("second", ask=wants_command("make deploy"))
        news = await watch.find_news(place.services, place.workspace, datetime.now(UTC))
        again = await watch.find_news(place.services, place.workspace, datetime.now(UTC))

        assert news.toast.startswith("◆ #2 wants Bash: make deploy")
        assert news.rings
        assert again == NewNeeds()
        assert [watch.may_ring(at) for at in (0.0, 4.9, 5.1)] == [True, False, True]


@pytest.mark.proof
@pytest.mark.parametrize("key", ["work", "screen"])
@pytest.mark.parametrize("slug", ["claude", "codex", "gemini", "opencode"])
async def test_the_run_dialog_asks_each_thing_once(tmp_path: Path, slug: str, key: str) -> None:
    (agent,) = agents_of([preset for preset in load_presets() if preset.slug == slug])
    async with talks(tmp_path) as (place, stage), stage.run_test(size=(120, 60)) as pilot:
        task = await place.services.tasks.get((await place.begin()).task_id)
        context = replace(task.input_context, capability_key=key)
        task = replace(task, assignee_agent_id=agent.id, input_context=context)
        dialog = RunDialog(agents=(any_command(), agent), task=task)
        stage.show(dialog)  # type: ignore[arg-type] # a screen ends with its own type
        await until(pilot, lambda: dialog.is_mounted and dialog.query_one(ConversationForm).region.height > 0)
        shown = [field for field in dialog.query(FormField) if field.display and field.region.height]
        names = ["Permissions" if "ermission" in one._label else one._label for one in shown]

    assert sorted(names) == sorted(set(names))
    assert {"Model", "Permissions"} & set(names)
    assert ("Screen" in names) == (key == "work")


async def test_the_run_dialog_asks_an_ai_agent_for_its_conversation(tmp_path: Path) -> None:
    async with talks(tmp_path) as (place, stage), stage.run_test(size=(120, 40)) as pilot:
        execution = await place.begin()
        await place.tell(execution, *a_talk(), ending=ExecutionStatus.SUCCEEDED)
        task = await place.services.tasks.get(execution.task_id)
        executions = tuple(await place.services.executions.of_task(task.id))
        sessions = tuple(await place.services.sessions.of_task(task.id))
        dialog = RunDialog(agents=(any_command(), place.agent), task=task, executions=executions, sessions=sessions)
        stage.show(dialog)  # type: ignore[arg-type] # a screen ends with its own type
        await until(pilot, lambda: "Permissions" in screen_text(stage))
        assert "opus, sonnet" in screen_text(stage)

        dialog.query_one("#conversation-start", Select).value = "resume"
        dialog.query_one("#conversation-model", Input).value = "sonnet"
        await pilot.press("ctrl+r")
        await until(pilot, lambda: "write what the agent is to do next" in screen_text(stage))
        dialog.query_one("#conversation-message", Input).value = "and the docs"
        await pilot.press("ctrl+r")
        await until(pilot, lambda: bool(stage.ended))

        choice = stage.ended[0]
        assert isinstance(choice, RunChoice)
        begun = choice.conversation
        assert (begun.start, begun.message, begun.model) == (ConversationStart.RESUME, "and the docs", "sonnet")
        assert begun.parent_execution_id == execution.id


@pytest.mark.parametrize(
    ("news", "offered"),
    [
        (SessionNews(), ["fresh", "resume", "fork"]),
        (SessionNews(cannot_fork="It has no copies."), ["fresh", "resume"]),
        (SessionNews(cannot_resume="It is gone."), ["fresh"]),
    ],
)
async def test_the_run_dialog_offers_what_the_agent_can_do(
    tmp_path: Path, news: SessionNews, offered: list[str]
) -> None:
    async with talks(tmp_path) as (place, stage), stage.run_test(size=(120, 40)) as pilot:
        execution = await place.begin()
        await place.tell(execution, *a_talk(), news, ending=ExecutionStatus.SUCCEEDED)
        task = await place.services.tasks.get(execution.task_id)
        dialog = RunDialog(
            agents=(any_command(), place.agent),
            task=task,
            executions=await place.services.executions.of_task(task.id),
            sessions=await place.services.sessions.of_task(task.id),
        )
        stage.show(dialog)  # type: ignore[arg-type] # a screen ends with its own type
        await until(pilot, lambda: "Permissions" in screen_text(stage))

        assert [value for _, value in dialog.query_one("#conversation-start", Select)._options] == offered
