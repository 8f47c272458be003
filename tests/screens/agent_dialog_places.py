"""The keys of the dialogs over agents, with what each does; those that store are pressed in tests of their own."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentmon.screens.agents.argument_dialog import ArgumentDialog
from agentmon.screens.agents.capability_proposals import CapabilityProposals
from agentmon.screens.agents.trust_dialog import TrustDialog
from agentmon.screens.bindings import TABLES
from tests.screens import agent_dialogs as ways
from tests.screens.key_effects import Effect, Place, leaves, row_effects, shows

if TYPE_CHECKING:
    from tests.screens.boards import Board


def scrolled(is_down: bool, *first: str) -> Effect:
    def holds(board: Board) -> bool:
        return (board.app.screen.query_one("#file").scroll_y > 0) is is_down

    return Effect(holds, first)


_TO_TOP = ("ctrl+u", "ctrl+u", "ctrl+u", "ctrl+u")

AGENT_DIALOGS = (
    Place(ArgumentDialog, ways.argument, TABLES["Argument"], {"argument.cancel": leaves(ArgumentDialog)}),
    Place(
        CapabilityProposals,
        ways.proposals,
        TABLES["What a program can do"],
        {
            **row_effects("proposals"),
            "proposals.learn-deeper": shows("looked into", "g", "j", "j", "j"),
            "proposals.cancel": leaves(CapabilityProposals),
        },
        base=lambda board: "looked into" not in "".join(str(row) for row in _rows(board)),
    ),
    Place(
        TrustDialog,
        ways.trust_long,
        TABLES["Agents of a workspace"],
        {
            "trust.trust": leaves(TrustDialog),
            "trust.untrust": leaves(TrustDialog),
            "trust.close": leaves(TrustDialog),
            "trust.down": scrolled(True, *_TO_TOP),
            "trust.up": scrolled(False, *_TO_TOP, "j"),
            "trust.page-down": scrolled(True, *_TO_TOP),
            "trust.page-up": scrolled(False, *_TO_TOP, "j"),
        },
    ),
)


def _rows(board: Board) -> tuple[object, ...]:
    shown = board.app.screen
    return shown._proposals if isinstance(shown, CapabilityProposals) else ()
