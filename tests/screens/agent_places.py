"""The keys of the agents, of one of them and of the programs of this machine, with what they do."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentmon.screens.agents.agent_editor import AgentEditor
from agentmon.screens.agents.agent_page import AgentPage
from agentmon.screens.agents.capability_editor import CapabilityEditor
from agentmon.screens.agents.capability_proposals import CapabilityProposals
from agentmon.screens.agents.programs import ProgramsPage
from agentmon.screens.agents.screen import AgentsScreen
from agentmon.screens.bindings import TABLES
from agentmon.screens.dialogs.menu_dialog import MenuDialog
from agentmon.widgets.row_table import RowTable
from tests.screens.key_effects import Effect, Place, leaves, opens, row_effects, says, shows, types_into

if TYPE_CHECKING:
    from tests.screens.boards import Board

PRESSED_ELSEWHERE = {
    ("test_agents_screen.py", "test_agents_are_found_filtered_sorted_marked_turned_off_and_all_of_it_is_taken_back"): (
        "agents.turn",
        "agents.remove",
        "agents.undo",
        "agents.clear",
    ),
    ("test_agents_screen.py", "test_the_pane_and_the_page_tell_all_about_an_agent"): (
        "agent.turn-capability",
        "agent.remove-capability",
        "agent.undo",
        "agent.turn",
    ),
    ("test_agents_screen.py", "test_a_scan_tells_what_came_and_programs_become_agents"): (
        "agents.test",
        "programs.scan",
        "programs.add",
        "programs.undo",
    ),
    ("test_agents_screen.py", "test_a_scan_shows_how_far_it_is_and_is_stopped"): (
        "agents.scan",
        "agents.stop-scan",
        "programs.stop-scan",
    ),
    ("test_agents_screen.py", "test_a_parked_agent_is_let_go_and_a_file_of_the_workspace_is_shown"): (
        "agents.release",
        "agent.release",
        "agents.trust",
    ),
}
"""Keys that change what is stored, or need a machine of their own, by the tests that press them."""


def table(board: Board) -> RowTable:
    return board.app.screen.query_one(RowTable)


async def on_agents(board: Board) -> None:
    await board.press("4")
    await board.until(lambda: isinstance(board.app.screen, AgentsScreen) and bool(table(board).rows), "the agents")
    await board.press("escape", "escape", "escape")


async def on_agent(board: Board) -> None:
    """Show the page of git."""
    await on_agents(board)
    await board.press("slash", *"dpkg", "enter")
    await board.until(lambda: len(table(board).rows) == 1, "git alone")
    await board.press("enter")
    await board.until(lambda: isinstance(board.app.screen, AgentPage) and bool(table(board).rows), "the page")


async def on_programs(board: Board) -> None:
    await on_agents(board)
    await board.press("tab")
    await board.until(lambda: isinstance(board.app.screen, ProgramsPage) and bool(table(board).rows), "the programs")


def marks_one() -> Effect:
    return Effect(lambda board: len(table(board).marked) == 1, ("g",))


def is_plain(board: Board) -> bool:
    shown = table(board)
    return not shown.marked and shown.sorting is None and "-filtering" not in board.app.screen.classes


def scrolls_facts(is_down: bool, *first: str) -> Effect:
    return Effect(lambda board: (board.app.screen.query_one("#about").scroll_y > 0) is is_down, first)


AGENTS = Place(
    AgentsScreen,
    on_agents,
    TABLES["Agents"],
    {
        "agents.open": opens(AgentPage, "g"),
        "agents.edit": opens(AgentEditor, "g"),
        "agents.add": opens(ProgramsPage),
        "agents.learn": opens(CapabilityProposals, "g"),
        "agents.programs": opens(ProgramsPage),
        "agents.filter": types_into("filter"),
        "agents.mark": marks_one(),
        "agents.sort": shows("by state, rising"),
        "agents.reverse": shows("by state, rising"),
        "agents.copy": opens(MenuDialog, "g"),
        **row_effects("agents"),
    },
    is_plain,
)
AGENT = Place(
    AgentPage,
    on_agent,
    TABLES["Agent"],
    {
        "agent.close": leaves(AgentPage),
        "agent.change-capability": opens(CapabilityEditor, "g"),
        "agent.new-capability": opens(CapabilityEditor),
        "agent.learn": opens(CapabilityProposals),
        "agent.edit": opens(AgentEditor),
        "agent.test": says("git"),
        "agent.facts-down": scrolls_facts(True, "K", "K", "K"),
        "agent.facts-up": scrolls_facts(False, "K", "K", "K", "J"),
        **row_effects("agent"),
    },
)
PROGRAMS = Place(
    ProgramsPage,
    on_programs,
    TABLES["Programs of this machine"],
    {
        "programs.back": leaves(ProgramsPage),
        "programs.close": leaves(ProgramsPage),
        "programs.filter": types_into("filter"),
        "programs.kind": shows("only new or changed"),
        "programs.mark": marks_one(),
        "programs.sort": shows("by state, rising"),
        "programs.reverse": shows("by state, rising"),
        **row_effects("programs"),
    },
    is_plain,
)
AGENT_PLACES = (AGENTS, AGENT, PROGRAMS)
