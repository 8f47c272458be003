"""What the agents, one of them and the programs of this machine look like; ``--snapshot-update`` takes new pictures."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from agentmon.domain.programs import ScanOutcome, ScanProgress
from agentmon.screens.agents.agent_page import AgentPage
from agentmon.screens.agents.programs import ProgramsPage
from agentmon.screens.agents.screen import AgentsScreen
from tests.screen_stage import screen_text
from tests.screens.agent_places import on_agent, on_agents, on_programs, table
from tests.screens.machines import fill_machine, fixed_machine, stub_machine
from tests.screens.pictures import SMALL, Picture, compare_pictures
from tests.screens.scenes import scene

if TYPE_CHECKING:
    from pathlib import Path

    from syrupy.assertion import SnapshotAssertion

    from tests.screens.boards import Board


pytestmark = pytest.mark.proof


async def agents(board: Board) -> None:
    await on_agents(board)
    await board.press("g", "j", "j", "space", "j")
    await board.until(lambda: "1 of 2 running" in screen_text(board.app), "how they fare")


async def scanning(board: Board) -> None:
    discovery = (await board.app.services()).discovery
    discovery.progress = ScanProgress(step="reading folders", done=9, total=14)
    await on_agents(board)
    await board.press("slash", *"dpkg", "enter")


def scan_is_told(board: Board) -> bool:
    return "reading folders 9/14" in screen_text(board.app)


async def page(board: Board) -> None:
    await on_agent(board)
    await board.press("G")


async def programs(board: Board) -> None:
    discovery = (await board.app.services()).discovery
    discovery.progress = None
    discovery.outcome = ScanOutcome(
        programs=12, folders=14, came=("/usr/bin/fd",), went=("/usr/bin/nano",), elapsed_s=0.8
    )
    await on_programs(board)
    await board.press("j", "space", "j")
    await board.until(lambda: bool(table(board).marked), "the mark")


def outcome_is_told(board: Board) -> bool:
    return "1 came, 1 went" in screen_text(board.app)


async def nothing_scanned(board: Board) -> None:
    await board.press("4")
    await board.until(lambda: isinstance(board.app.screen, AgentsScreen), "the agents")
    await board.press("tab")


PICTURES = (
    Picture("agents", AgentsScreen, agents, has_large=True),
    Picture("agent", AgentPage, page, has_large=True),
    Picture("scanning", AgentsScreen, scanning, scan_is_told),
    Picture("programs", ProgramsPage, programs, outcome_is_told, has_large=True),
)
EMPTY = (
    Picture("no-programs", ProgramsPage, nothing_scanned, lambda board: "not looked at" in screen_text(board.app)),
)


async def test_agents_look_as_they_did(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, snapshot: SnapshotAssertion
) -> None:
    fixed_machine(tmp_path, monkeypatch)
    async with scene(tmp_path, monkeypatch, size=SMALL, deeds=()) as board:
        await fill_machine(await board.app.services())
        await compare_pictures(board, PICTURES, snapshot)


async def test_a_machine_that_was_not_looked_at_looks_as_it_did(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, snapshot: SnapshotAssertion
) -> None:
    stub_machine(tmp_path, monkeypatch)
    async with scene(tmp_path, monkeypatch, size=SMALL, deeds=()) as board:
        await compare_pictures(board, EMPTY, snapshot)
