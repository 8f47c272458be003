"""The capability editor: the command line is shown while it is typed, arguments are a table, errors stand at fields."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, NamedTuple

import pytest
from textual.widgets import Checkbox, Select

from agentmon.domain.agents import Agent, Capability, CapabilitySource, DangerLevel, InteractionMode
from agentmon.domain.argument_order import argument_names
from agentmon.screens.agents.argument_dialog import ArgumentDialog
from agentmon.screens.agents.capability_editor import CapabilityEditor
from agentmon.screens.dialogs.confirm import ConfirmDialog
from agentmon.widgets.form import LineInput
from agentmon.widgets.row_table import RowTable
from tests.screen_stage import Stage, screen_text, until
from tests.screens.boards import make_place
from tests.screens.registered import a_coder, a_tool
from tests.screens.test_external_editor import lent_terminal, set_editor

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from textual.pilot import Pilot

    from agentmon.bootstrap import Services


class Editing(NamedTuple):
    """An open editor over a capability of a stored agent."""

    stage: Stage
    pilot: Pilot[None]
    services: Services
    editor: CapabilityEditor

    def box(self, name: str) -> LineInput:
        return self.stage.screen.query_one(f"#{name}", LineInput)

    async def sees(self, words: str) -> None:
        await until(self.pilot, lambda: words in screen_text(self.stage))

    async def until_open(self, kind: type[object]) -> None:
        await until(self.pilot, lambda: isinstance(self.stage.screen, kind) and self.stage.focused is not None)
        await self.pilot.pause()

    async def saved(self, key: str) -> Capability:
        await self.pilot.press("ctrl+s")
        await until(self.pilot, lambda: bool(self.stage.ended))
        agent = self.stage.ended[-1]
        assert isinstance(agent, Agent)
        assert await self.services.agents.get(agent.id) == agent
        return agent.choose_capability(key)


@asynccontextmanager
async def editing(
    folder: Path, agent: Agent, key: str | None, *, size: tuple[int, int] = (100, 44)
) -> AsyncIterator[Editing]:
    async with make_place(folder).services() as (services, _workspace):
        stored = await services.agents.add(agent)
        stage = Stage()
        async with stage.run_test(size=size) as pilot:
            capability = None if key is None else stored.choose_capability(key)
            editor = CapabilityEditor(services, stored, capability)
            stage.show(editor)  # type: ignore[arg-type] # a screen ends with its own type
            await until(pilot, lambda: stage.screen is editor and editor.focused is not None)
            await pilot.pause()
            yield Editing(stage, pilot, services, editor)
            assert stage.failures == []


@pytest.mark.proof
async def test_a_capability_is_made_by_keys_alone_with_its_command_line_in_view(tmp_path: Path) -> None:
    async with editing(tmp_path, a_tool(), None, size=(80, 24)) as edit:
        await edit.sees("none yet; ctrl+n adds one")
        await edit.pilot.press(*"Push it!")
        assert edit.box("key").value == "push-it"
        edit.box("command").value = "push origin"
        await edit.sees("$ git --no-pager push origin")

        await edit.pilot.press("ctrl+n")
        await edit.until_open(ArgumentDialog)
        await edit.pilot.press(*"force")
        edit.stage.screen.query_one("#argument-kind", Select).value = "boolean"
        await edit.pilot.press("ctrl+s")
        await edit.until_open(CapabilityEditor)
        assert edit.box("command").value == "push origin {{--force args.force}}"
        await edit.sees("$ git --no-pager push origin --force")
        await edit.sees("at least  git --no-pager push origin")

        await edit.pilot.press("ctrl+n")
        await edit.until_open(ArgumentDialog)
        await edit.pilot.press(*"branch")
        edit.stage.screen.query_one("#argument-required", Checkbox).value = True
        await edit.pilot.press("ctrl+s")
        await edit.until_open(CapabilityEditor)
        edit.box("timeout").value = "15m"
        edit.box("output").value = "none"

        made = await edit.saved("push-it")

        assert (made.label, made.source) == ("Push it!", CapabilitySource.MANUAL)
        assert made.command_tokens == ("push", "origin", "{{--force args.force}}", "{{args.branch}}")
        assert (made.timeout_s, made.max_output_bytes) == (900, 0)
        assert (made.danger_level, made.edited_fields) == (DangerLevel.DESTRUCTIVE, ())
        assert made.args_schema["properties"] == {"force": {"type": "boolean"}, "branch": {"type": "string"}}
        assert made.args_schema["required"] == ["branch"]


async def test_arguments_are_changed_moved_and_removed_in_the_table_and_the_command_follows(tmp_path: Path) -> None:
    async with editing(tmp_path, a_tool(), "log") as edit:
        assert not edit.editor.is_changed
        edit.editor.query_one(RowTable).focus()
        await edit.pilot.press("j", "J", "K", "enter")
        await edit.until_open(ArgumentDialog)
        edit.box("argument-name").value = "all"
        edit.box("argument-default").value = "400"
        await edit.pilot.press("ctrl+s")
        await edit.sees("there is an argument all already")
        edit.box("argument-name").value = "most"
        await edit.pilot.press("ctrl+s")
        await edit.sees("must be at most 100")
        edit.box("argument-default").value = "40"
        await edit.pilot.press("ctrl+s")
        await edit.until_open(CapabilityEditor)
        await edit.sees("$ git --no-pager log --oneline -n 40 --all PATHS")

        edit.editor.query_one(RowTable).focus()
        await edit.pilot.press("k", "d")
        await edit.sees("$ git --no-pager log --oneline -n 40 PATHS")
        await edit.pilot.press("J")

        log = await edit.saved("log")

        assert log.command_tokens == ("log", "--oneline", "-n", "{{args.most}}", "{{args.paths}}")
        assert argument_names(log.args_schema) == ("paths", "most")
        assert log.args_schema["required"] == ["most"]
        assert set(log.edited_fields) == {"args_schema", "command_tokens"}


async def test_what_is_wrong_stands_at_its_field_and_leaving_asks(tmp_path: Path) -> None:
    async with editing(tmp_path, a_tool(), None, size=(80, 24)) as edit:
        await edit.pilot.press("ctrl+s")
        await edit.sees("✗ a capability needs")
        await edit.pilot.press(*"Log")
        edit.box("timeout").value = "soon"
        edit.box("output").value = "much"
        await edit.pilot.press("ctrl+s")
        await edit.sees("'soon' is no")
        await edit.sees("'much' is no")
        edit.box("timeout").value, edit.box("output").value = "", "1 MB"
        await edit.pilot.press("ctrl+s")
        await edit.sees("✗ vcs has a")
        edit.box("key").value = "log-2"
        edit.box("command").value = "log {{args.gone}}"
        await edit.sees("✗ the placeholder {{args.gone}} is unknown")
        await edit.sees("ctrl+n describes gone")
        await edit.pilot.press("ctrl+n")
        await edit.until_open(ArgumentDialog)
        assert edit.box("argument-name").value == "gone"
        await edit.pilot.press("escape")
        await edit.until_open(CapabilityEditor)
        await edit.pilot.press("ctrl+s")
        await until(edit.pilot, lambda: edit.editor.focused is edit.box("command"))

        await edit.pilot.press("escape")
        await edit.until_open(ConfirmDialog)
        await edit.pilot.press("y")
        await until(edit.pilot, lambda: edit.stage.ended == [None])


async def test_the_rules_say_how_dangerous_the_command_is_and_a_lower_level_is_told(tmp_path: Path) -> None:
    async with editing(tmp_path, a_tool(), "log") as edit:
        edit.box("command").value = "push --force"
        await edit.sees("git push: replaces what others have pushed")
        await edit.sees("rules say 3; that")
        edit.editor.query_one("#danger", Select).value = 1
        await edit.sees("rules say 3; yours counts")
        edit.editor.query_one("#danger", Select).value = 3
        await until(edit.pilot, lambda: "rules say" not in screen_text(edit.stage))

        assert (await edit.saved("log")).danger_level is DangerLevel.DESTRUCTIVE


async def test_a_message_to_an_agent_is_shown_as_it_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AGENTMON_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(Stage, "suspend", lent_terminal)
    async with editing(tmp_path, a_coder(), None) as edit:
        assert not edit.editor.is_changed
        await edit.pilot.press(*"Review")
        await edit.sees("says  TITLE DESCRIPTION")
        set_editor(tmp_path, monkeypatch, "path.write_text('Review {{task_title}} [/] now')")
        await edit.pilot.press("ctrl+o")
        await edit.sees("says  Review TITLE [/] now")
        edit.editor.query_one("#mode", Select).value = "tmux"
        edit.editor.query_one("#danger", Select).value = 2
        await until(edit.pilot, lambda: "stream-json" not in screen_text(edit.stage))

        made = await edit.saved("review")

        assert made.interaction_mode is InteractionMode.PROMPT
        assert made.edited_fields == ("danger_level",)
        assert (made.prompt_template, made.mode) == ("Review {{task_title}} [/] now", "tmux")
