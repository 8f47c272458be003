"""The agent editor: what is typed is stored, what is wrong stands at its field, and nothing typed is lost."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, NamedTuple

import pytest
from textual.widgets import Select

from agentmon.domain.agents import Agent
from agentmon.domain.worktrees import Isolation
from agentmon.screens.agents.agent_editor import AgentEditor
from agentmon.screens.dialogs.confirm import ConfirmDialog
from agentmon.widgets.fold_line import FoldLine
from agentmon.widgets.form import LineInput, TextBox
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
    """An open editor over a stored agent."""

    stage: Stage
    pilot: Pilot[None]
    services: Services
    editor: AgentEditor

    def set(self, **texts: str) -> None:
        for name, text in texts.items():
            self.editor.query_one(f"#{name.replace('_', '-')}", LineInput).value = text

    async def sees(self, words: str) -> None:
        await until(self.pilot, lambda: words in screen_text(self.stage))

    async def saved(self) -> Agent:
        await self.pilot.press("ctrl+s")
        await until(self.pilot, lambda: bool(self.stage.ended))
        agent = self.stage.ended[-1]
        assert isinstance(agent, Agent)
        return agent


@asynccontextmanager
async def editing(folder: Path, agent: Agent, *, size: tuple[int, int] = (100, 44)) -> AsyncIterator[Editing]:
    async with make_place(folder).services() as (services, _workspace):
        agent = await services.agents.add(agent)
        stage = Stage()
        async with stage.run_test(size=size) as pilot:
            editor = AgentEditor(services, agent)
            stage.show(editor)  # type: ignore[arg-type] # a screen ends with its own type
            await until(pilot, lambda: stage.screen is editor and editor.focused is not None)
            await pilot.pause()
            yield Editing(stage, pilot, services, editor)
            assert stage.failures == []


async def test_what_is_changed_of_an_agent_is_stored_and_nothing_else_becomes_the_persons(tmp_path: Path) -> None:
    async with editing(tmp_path, a_coder()) as edit:
        assert not edit.editor.is_changed
        await edit.pilot.press("end", *" 2")
        edit.set(role="reviewer", max_concurrent="3", allowed_tools="Read, Bash(git log:*)", denied_tools="WebFetch")
        edit.set(env_allowlist="NO_SUCH_KEY ACME_*", base_args="--add-dir 'two words'")
        edit.editor.query_one("#permission-modes", Select).value = "plan"
        edit.editor.query_one("#instructions", TextBox).text = "Be short.\nAsk first."
        await edit.sees("not set here: NO_SUCH_KEY")

        agent = await edit.saved()

        assert (agent.name, agent.role, agent.max_concurrent) == ("Claude Code 2", "reviewer", 3)
        assert agent.tools == {"Read": True, "Bash(git log:*)": True, "WebFetch": False}
        assert (agent.env_allowlist, agent.base_args) == (("NO_SUCH_KEY", "ACME_*"), ("--add-dir", "two words"))
        assert agent.session_config is not None
        assert agent.session_config.permission_modes[0] == "plan"
        assert agent.instructions == "Be short.\nAsk first."
        assert set(agent.edited_fields) >= {"name", "role", "max_concurrent", "env_allowlist", "instructions"}
        assert not set(agent.edited_fields) & {"description", "binary_path", "is_active", "icon", "model"}
        assert await edit.services.agents.by_slug("coder") == agent


@pytest.mark.proof
async def test_every_wrong_field_says_so_and_the_first_has_the_focus_even_below_the_fold(tmp_path: Path) -> None:
    async with editing(tmp_path, a_coder(), size=(80, 24)) as edit:
        edit.set(max_concurrent="lots", base_args="say 'hello", allowed_tools="Read", denied_tools="--all")

        await edit.pilot.press("ctrl+s")
        await edit.sees("✗ a quote is not")
        await edit.sees("✗ 'lots' is not")
        await edit.sees("✗ --all is not the name of a tool")
        await until(edit.pilot, lambda: edit.editor.focused is edit.editor.query_one("#base-args"))
        edit.set(max_concurrent="0", base_args="", denied_tools="Read", name="")
        await edit.pilot.press("ctrl+s")
        await edit.sees("✗ an agent needs a")
        edit.set(name="Claude")
        await edit.pilot.press("ctrl+s")
        await edit.sees("Read cannot be allowed and denied")
        edit.set(denied_tools="", binary_path="bin/claude", working_dir=str(tmp_path / "nowhere"))
        await edit.pilot.press("ctrl+s")
        await edit.sees("does not exist")
        edit.set(working_dir="")
        await edit.pilot.press("ctrl+s")
        await edit.sees("✗ bin/claude is")
        edit.set(binary_path="claude")

        await edit.pilot.press("ctrl+g")
        await edit.sees("ctrl+g folds it")
        edit.set(model_tier="9", color="shiny!")
        await edit.pilot.press("ctrl+g")
        await edit.sees("tier 9")
        await edit.pilot.press("ctrl+s")
        await until(edit.pilot, lambda: edit.editor.focused is edit.editor.query_one("#model-tier"))
        edit.set(model_tier="2")
        await edit.pilot.press("ctrl+s")
        await until(edit.pilot, lambda: edit.editor.focused is edit.editor.query_one("#color"))
        edit.set(color="#d97757")

        agent = await edit.saved()

        assert (agent.model_tier, agent.color, agent.name) == (2, "#d97757", "Claude")


async def test_whether_an_agent_gets_worktrees_is_chosen_and_left_to_the_workspace_again(tmp_path: Path) -> None:
    async with editing(tmp_path, a_coder()) as edit:
        edit.editor.query_one("#isolation", Select).value = Isolation.WORKTREE.value
        assert (await edit.saved()).isolation is Isolation.WORKTREE
        stored = await edit.services.agents.by_slug(a_coder().slug)
        again = AgentEditor(edit.services, stored)
        edit.stage.show(again)  # type: ignore[arg-type] # as above
        await until(edit.pilot, lambda: edit.stage.screen is again and again.focused is not None)
        assert not again.is_changed
        again.query_one("#isolation", Select).value = ""
        await edit.pilot.press("ctrl+s")
        await until(edit.pilot, lambda: len(edit.stage.ended) > 1)

        assert (await edit.services.agents.by_slug(stored.slug)).isolation is None


async def test_leaving_asks_only_when_something_was_typed(tmp_path: Path) -> None:
    async with editing(tmp_path, a_tool(), size=(80, 24)) as edit:
        await edit.pilot.press("x", "escape")
        await until(edit.pilot, lambda: isinstance(edit.stage.screen, ConfirmDialog))
        await edit.pilot.press("n")
        await until(edit.pilot, lambda: edit.stage.screen is edit.editor)
        assert edit.editor.query_one("#name", LineInput).value == "Gitx"
        await edit.pilot.click(FoldLine)
        await edit.sees("Looks at the repository")
        edit.set(name="Git")

        await edit.pilot.press("escape")
        await until(edit.pilot, lambda: bool(edit.stage.ended))

        assert edit.stage.ended == [None]
        assert (await edit.services.agents.by_slug("vcs")).edited_fields == ()


async def test_instructions_are_written_in_the_persons_own_editor(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AGENTMON_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(Stage, "suspend", lent_terminal)
    async with editing(tmp_path, a_coder()) as edit:
        box = edit.editor.query_one("#instructions", TextBox)
        set_editor(tmp_path, monkeypatch, "path.write_text('Be [b]short[/b].')")
        await edit.pilot.press("ctrl+o")
        await until(edit.pilot, lambda: box.text == "Be [b]short[/b].")
        assert edit.editor.focused is box
        monkeypatch.setenv("VISUAL", "nowhere --wait")
        await edit.pilot.press("ctrl+o")
        await edit.sees("✗ $VISUAL is nowhere")

        assert (await edit.saved()).instructions == "Be [b]short[/b]."
