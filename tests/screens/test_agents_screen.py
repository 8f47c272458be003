from __future__ import annotations

import threading
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest
from textual.widgets import Input

from agentmon.domain.clock import FakeClock
from agentmon.runners.discovery import path_scan
from agentmon.screens.agents.agent_page import AgentPage
from agentmon.screens.agents.programs import ProgramsPage
from agentmon.screens.agents.screen import AgentsScreen
from agentmon.screens.agents.trust_dialog import TrustDialog
from agentmon.widgets.fact_list import FactList
from agentmon.widgets.row_table import RowTable
from tests.screen_stage import screen_text
from tests.screens.boards import make_place, open_board
from tests.screens.machines import add_program, fill_machine, fixed_machine, stub_machine
from tests.screens.scenes import NOW, scene

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from tests.screens.boards import Board


def table(board: Board) -> RowTable:
    return board.app.screen.query_one(RowTable)


def rows(board: Board) -> list[str]:
    return [row.key for row in table(board).rows]


def state(board: Board, key: str) -> str:
    return next((row.cells[0].text for row in table(board).rows if row.key == key), "")


async def on_agents(board: Board) -> None:
    await board.press("4")
    await board.until(lambda: isinstance(board.app.screen, AgentsScreen) and bool(rows(board)), "the agents")


_FILE = """
[[agent]]
slug = "checker"
name = "Checker"
binary = "make"

[[agent.capability]]
key = "check"
label = "Check"
command_tokens = ["check"]
"""


async def seen(board: Board, *words: str) -> None:
    try:
        await board.until(lambda: all(word in screen_text(board.app) for word in words))
    except AssertionError as error:
        raise AssertionError(f"not all of {words} came; shown is:\n{screen_text(board.app)}") from error


async def go(board: Board, words: str) -> None:
    await board.press("slash", *words, "enter")
    await board.until(lambda: len(rows(board)) == 1, words)


@pytest.mark.proof
async def test_agents_are_found_filtered_sorted_marked_turned_off_and_all_of_it_is_taken_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fixed_machine(tmp_path, monkeypatch)
    async with scene(tmp_path, monkeypatch, size=(120, 40), deeds=()) as board:
        services = await board.app.services()
        await fill_machine(services)
        await on_agents(board)
        await board.until(lambda: state(board, "codex") == "◆ not logged in", "how they fare")
        assert rows(board)[:3] == ["aider", "coder", "codex"]
        assert state(board, "aider") == "✗ not found"

        await board.press("slash", *"dpkg git")
        await board.until(lambda: rows(board) == ["git"], "the filter")
        await board.press("escape")
        await board.until(lambda: len(rows(board)) > 5, "all of them")
        assert isinstance(board.app.focused, RowTable)

        await board.press("s", "s")
        await board.until(lambda: "by agent, rising" in screen_text(board.app), "the order")
        await board.press("S")
        assert rows(board)[0] == "translate"
        await board.press("escape")

        await go(board, "make")
        await board.press("space", "escape")
        await go(board, "jq")
        await board.press("space", "escape")
        assert "2 marked" in screen_text(board.app)
        await board.press("o")
        await board.until(lambda: (state(board, "make"), state(board, "jq")) == ("○ off", "○ off"), "off")
        await board.press("escape", "D")
        await board.until(lambda: len(board.toasts) > 1, "what was removed")
        await board.press("ctrl+z", "ctrl+z")
        await board.until(lambda: (state(board, "make"), state(board, "jq")) == ("✓ ready", "✓ ready"), "taken back")
        await board.press("ctrl+z")
        await board.told("nothing to undo")


@pytest.mark.proof
async def test_the_pane_and_the_page_tell_all_about_an_agent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fixed_machine(tmp_path, monkeypatch)
    async with scene(tmp_path, monkeypatch, size=(120, 40), deeds=()) as board:
        await fill_machine(await board.app.services())
        await on_agents(board)
        await go(board, "coder")
        told = ("✓ logged in", "npm:@anthropic-ai/claude-", "writes code", "✗ WebFetch", "Keep changes small")
        await seen(board, *told, "● 1 of 2 running")

        await board.press("c")
        await board.until_menu()
        await board.press("enter")
        await board.press("escape")
        await board.until(lambda: table(board).selected_key == "coder-2", "the copy")
        await board.press("enter")
        await board.until(lambda: isinstance(board.app.screen, AgentPage) and rows(board) == ["work"], "the page")
        await board.until(lambda: "coder-2.work" in screen_text(board.app), "what it does")
        await board.press("o")
        await board.until(lambda: table(board).rows[0].cells[3].text == "○ off", "off")
        await board.press("D")
        await board.until(lambda: "can be asked for nothing" in screen_text(board.app), "nothing is left")
        await board.press("ctrl+z", "ctrl+z")
        await board.until(lambda: bool(rows(board)) and table(board).rows[0].cells[3].text == "! changes files", "back")
        await board.press("O")
        await board.until(lambda: "○ off" in screen_text(board.app), "the agent is off")
        await board.pilot.resize_terminal(80, 24)
        await board.until(lambda: board.app.screen.query_one(FactList).region.width > 70, "one above the other")
        await board.press("escape")

        await board.until(lambda: state(board, "coder-2") == "○ off", "the list")


@pytest.mark.proof
async def test_a_scan_tells_what_came_and_programs_become_agents(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    programs = stub_machine(tmp_path, monkeypatch, "hello", "there", "world")
    async with scene(tmp_path, monkeypatch, size=(120, 40), deeds=()) as board:
        clock = board.app._clock
        assert isinstance(clock, FakeClock)
        await on_agents(board)
        await board.press("tab")
        await board.until(lambda: "was not looked at yet" in screen_text(board.app), "nothing")

        await board.press("r")
        await board.until(lambda: "3 programs in 1 folder" in screen_text(board.app), "what the scan found")
        await board.until(lambda: len(rows(board)) == 3, "the programs")
        await board.press("f", "f")
        await seen(board, "0 shown", "No program is of this kind", "esc shows all again")
        await board.press("escape")
        add_program(programs, "jq")
        clock.move(timedelta(hours=1))
        await board.press("r")
        await board.until(lambda: "1 came" in screen_text(board.app), "what came")
        await board.press("f")
        await board.until(lambda: rows(board) == [str(programs / "jq")], "only what is new")
        await board.press("escape", "g", "space", "j", "space")
        (programs / "there").unlink()
        await board.press("enter")
        await board.until(lambda: state(board, str(programs / "hello")) == "● agent", "one of the marked")
        await board.told("there")
        await board.press("ctrl+z")
        await board.until(lambda: state(board, str(programs / "hello")) == "", "taken back")
        await board.press("slash", *"wor", "enter", "enter")
        await board.until(lambda: state(board, str(programs / "world")) == "● agent", "an agent")
        await board.press("escape", "slash")
        board.app.screen.query_one(Input).value = str(programs / "missing")
        await seen(board, "enter adds the program of this name, or at this path")
        await board.press("enter")
        await board.told("missing")
        await board.press("escape", "tab")

        await board.until(lambda: isinstance(board.app.screen, AgentsScreen), "the agents")
        await board.until(lambda: table(board).selected_key == "world", "the new one")
        await board.press("t")
        await board.until(lambda: any(toast.startswith("world · 1.2.3") for toast in board.toasts), "its version")
        await board.press("ctrl+z")
        await board.until(lambda: "world" not in rows(board), "taken back")
        await board.press("n")
        await board.until(lambda: isinstance(board.app.focused, Input), "a name is typed")
        assert isinstance(board.app.screen, ProgramsPage)


async def test_a_scan_shows_how_far_it_is_and_is_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stub_machine(tmp_path, monkeypatch, "make")
    scan_path, is_over = path_scan.scan_path, threading.Event()

    def slow_scan(
        folders: Sequence[Path],
        *,
        on_folder: Callable[[int, int], None],
        is_left: Callable[[], bool],
        known: Sequence[str],
    ) -> path_scan.PathScan:
        on_folder(7, 14)
        while not (is_left() or is_over.wait(0.01)):
            pass
        return scan_path(folders, on_folder=on_folder, is_left=is_left, known=known)

    monkeypatch.setattr(path_scan, "scan_path", slow_scan)
    async with scene(tmp_path, monkeypatch, size=(80, 24), deeds=()) as board:
        await on_agents(board)
        await board.press("r")
        await seen(board, "reading folders 7/14", "x stops it")
        await board.press("j", "x")
        await board.until(lambda: "reading folders" not in screen_text(board.app), "the end of the scan")
        await board.press("r")
        await seen(board, "reading folders 7/14")
        await board.press("tab")
        await seen(board, "On this machine", "reading folders 7/14", "x stops it")
        await board.press("x")
        await board.until(lambda: "reading folders" not in screen_text(board.app), "the end of this one too")
        is_over.set()

        assert not await (await board.app.services()).discovery.programs()


@pytest.mark.proof
async def test_a_parked_agent_is_let_go_and_a_file_of_the_workspace_is_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fixed_machine(tmp_path, monkeypatch)
    place = make_place(tmp_path)
    (place.root / ".agentmon").mkdir()
    (place.root / ".agentmon" / "agents.toml").write_text(_FILE)
    clock = FakeClock(NOW)
    monkeypatch.setattr("agentmon.bootstrap.SystemClock", lambda: clock)
    async with open_board(place, size=(100, 30), clock=clock) as board:
        services = await board.app.services()
        await fill_machine(services)
        await on_agents(board)
        await seen(board, "names 1 agent that nobody has trusted yet; T shows what they would run")
        await board.press("T")
        await board.until(lambda: isinstance(board.app.screen, TrustDialog), "the file")
        await board.press("escape")
        await board.pilot.click("#file")
        await board.until(lambda: isinstance(board.app.screen, TrustDialog), "the file again")
        await board.press("escape")

        await go(board, "qwen")
        await board.until(lambda: state(board, "qwen") == "⏸ until 15:00", "that it is parked")
        await board.press("enter")
        await seen(board, "resets 3 pm; U lets it start now")
        await board.press("U")
        await board.told("qwen may start again")
        await board.press("escape")
        await board.until(lambda: state(board, "qwen") == "✓ ready", "the list")
