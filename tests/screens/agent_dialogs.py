"""The dialogs over agents, opened over fixed agents, for their pictures and their keys."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import timedelta
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

from agentmon.domain.agent_files import AgentFileState, FileTrust
from agentmon.domain.agents import Capability, CapabilitySource, DangerLevel
from agentmon.domain.capability_proposals import CapabilityProposal, ProposalChange
from agentmon.domain.clock import FakeClock
from agentmon.domain.ids import CapabilityId, new_id
from agentmon.screens.agents.agent_editor import AgentEditor
from agentmon.screens.agents.argument_dialog import ArgumentDialog
from agentmon.screens.agents.capability_editor import CapabilityEditor
from agentmon.screens.agents.capability_proposals import CapabilityProposals
from agentmon.screens.agents.trust_dialog import TrustDialog
from agentmon.services.actors import USER_ACTOR
from agentmon.widgets.arguments_form import argument_specs
from agentmon.widgets.row_table import RowTable
from tests.screen_stage import screen_text
from tests.screens.registered import a_coder, a_tool
from tests.screens.scenes import NOW

if TYPE_CHECKING:
    from textual.screen import Screen

    from agentmon.bootstrap import Services
    from tests.screens.boards import Board

PATH = "/home/ada/acme-api/.agentmon/agents.toml"


async def show(board: Board, dialog: Screen[Any], words: str) -> None:
    await board.app.push_screen(dialog)
    await board.until(lambda: board.app.screen is dialog and words in screen_text(board.app), words)
    await board.pilot.pause()


async def agent_editor(board: Board) -> None:
    coder = replace(
        a_coder(),
        role="reviewer",
        model="opus",
        tools={"Bash(git log:*)": True, "Read": True, "WebFetch": False},
        instructions="Be short.\nAsk [first] before you rename.",
    )
    await show(board, AgentEditor(await board.app.services(), coder), "Be short")


async def agent_editor_unfolded(board: Board) -> None:
    await agent_editor(board)
    await board.press("ctrl+g")
    await board.until(lambda: "ctrl+g folds it" in screen_text(board.app))


async def capability_editor(board: Board) -> None:
    tool = a_tool()
    await show(board, CapabilityEditor(await board.app.services(), tool, tool.capabilities[0]), "$ git")


async def on_arguments(board: Board) -> None:
    await capability_editor(board)
    board.app.screen.query_one(RowTable).focus()
    await board.pilot.pause()


async def new_capability(board: Board) -> None:
    await show(board, CapabilityEditor(await board.app.services(), a_coder(), None), "says")


async def argument(board: Board) -> None:
    schema = a_tool().capabilities[0].args_schema
    await show(board, ArgumentDialog(argument_specs(schema)[0], schema), "whole number")


def proposed() -> tuple[CapabilityProposal, ...]:
    tool = a_tool()
    log = tool.capabilities[0]

    def learned(key: str, label: str, *tokens: str, level: DangerLevel = DangerLevel.SAFE) -> Capability:
        return replace(
            log, id=CapabilityId(new_id()), key=key, label=label, description="", command_tokens=tokens,
            danger_level=level,
        )  # fmt: skip

    help_and_man = (CapabilitySource.SCAN_HELP, CapabilitySource.SCAN_MAN)
    words = {"type": "object", "properties": {"words": {"type": "array", "items": {"type": "string"}}}}
    push = learned("push", "Update [remote] refs", "push", "{{--force args.all}}", level=DangerLevel.DESTRUCTIVE)
    bisect = replace(learned("bisect", "二分探索 by hand", "bisect", "{{args.words}}"), args_schema=words)
    others = tuple(
        CapabilityProposal(
            capability=replace(
                learned(f"do-{number}", f"Do {number}", f"do-{number}", "{{args.words}}"), args_schema=words
            )
        )
        for number in range(1, 30)
    )
    return (
        CapabilityProposal(
            capability=push, sources=help_and_man, danger_reasons=("git push: replaces what others have pushed",)
        ),
        CapabilityProposal(
            capability=log, stored=log, change=ProposalChange.CHANGED, sources=help_and_man,
            changed_fields=("args_schema", "command_tokens"), kept_fields=("label",),
        ),
        CapabilityProposal(capability=replace(log, key="status"), stored=log, change=ProposalChange.SAME),
        CapabilityProposal(capability=bisect, sources=(CapabilitySource.SCAN_COMPLETION,)),
        *others,
    )  # fmt: skip


@dataclass
class FixedScans:
    """Finds always the same, and says that one source told nothing."""

    found: tuple[CapabilityProposal, ...]

    async def scan(self, *_where: object, on_problem: object, subcommand: tuple[str, ...], **_how: object) -> object:
        assert callable(on_problem)
        if subcommand:
            return (replace(self.found[3], capability=replace(self.found[3].capability, description="looked into")),)
        on_problem("fig: there is no specification of git on this machine")
        return self.found


async def proposals(board: Board) -> None:
    agents = (await board.app.services()).agents
    services = SimpleNamespace(actor=USER_ACTOR, capability_scans=FixedScans(proposed()), agents=agents)
    await show(board, CapabilityProposals(cast("Services", services), a_tool()), "found")


def file_state(trust: FileTrust) -> AgentFileState:
    reviewer = replace(a_coder(), slug="reviewer", name="Reviewer [of] 中文", instructions="Read the diff.\nBe kind.")
    return AgentFileState(
        path=PATH,
        trust=trust,
        digest="d1",
        agents=() if trust is FileTrust.BROKEN else (reviewer, a_tool()),
        problem="line 3: unknown entry comand" if trust is FileTrust.BROKEN else "",
        hint="known are command_tokens, key, label" if trust is FileTrust.BROKEN else "",
        trusted_at=NOW - timedelta(days=2) if trust in {FileTrust.TRUSTED, FileTrust.CHANGED} else None,
    )


@dataclass
class FixedFile:
    """A workspace's file of agents that never changes on disk."""

    trust_of_it: FileTrust
    more: str = ""
    """More instructions of its agents."""

    async def state(self, _workspace: object) -> AgentFileState:
        state = file_state(self.trust_of_it)
        agents = tuple(replace(agent, instructions=self.more or agent.instructions) for agent in state.agents)
        return replace(state, agents=agents)

    async def trust(self, _workspace: object, digest: str, *, actor: object) -> None:
        assert (digest, actor is not None) == ("d1", True)

    async def untrust(self, _workspace: object, *, actor: object) -> None:
        assert actor is not None


async def trust(board: Board, stands: FileTrust = FileTrust.CHANGED) -> None:
    services = cast("Services", SimpleNamespace(actor=USER_ACTOR, agent_files=FixedFile(stands)))
    workspace = await board.app.workspace()
    await show(board, TrustDialog(services, workspace, clock=FakeClock(NOW)), PATH)


async def trust_long(board: Board) -> None:
    """Show a file that is longer than the window."""
    file = FixedFile(FileTrust.CHANGED, more="\n".join(f"Rule {number}." for number in range(60)))
    services = cast("Services", SimpleNamespace(actor=USER_ACTOR, agent_files=file))
    await show(board, TrustDialog(services, await board.app.workspace(), clock=FakeClock(NOW)), PATH)


async def trust_broken(board: Board) -> None:
    await trust(board, FileTrust.BROKEN)
