"""What a person sees at the very first start: what was found here, and three things to try."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Final

from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Static

from agentmon.domain.agents import ToolType
from agentmon.screens.bindings import WELCOME
from agentmon.widgets.cells import cut
from agentmon.widgets.guarded import Guarded
from agentmon.widgets.key_footer import KeyFooter

if TYPE_CHECKING:
    from collections.abc import Sequence

    from textual import events
    from textual.app import ComposeResult
    from textual.binding import BindingType

    from agentmon.bootstrap import Services

_LONGEST: Final = 60
_KEYS_OF_THE_BOARD: Final = frozenset({"n", "3", "5", "question_mark", "ctrl+p"})
_TRIES: Final = (
    ("n", "makes a card: write what is to be done, choose who does it, ctrl+s keeps it; r runs it"),
    ("3", "shows what your agents have cost so far, and 5 what was said"),
    ("agentmon demo", "in another terminal shows a board at work; it calls no model and costs nothing"),
)


class WelcomeScreen(Guarded, ModalScreen[None]):
    """A few lines; any of its keys goes on to the board."""

    CSS_PATH = "welcome.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [*WELCOME]

    def __init__(self, found: Sequence[tuple[str, str]]) -> None:
        """Make the screen.

        Args:
            found: What was found here: each a heading and a line.
        """
        super().__init__()
        self._found = tuple(found)

    def compose(self) -> ComposeResult:
        """Yield what was found, and what to try."""
        with Vertical(id="dialog"):
            yield Static(Content.styled("Welcome to agentmon", "bold"), id="heading")
            yield Static(Content("Agents work on cards of a board, in terminals you can enter and leave."), id="words")
            for name, line in self._found:
                yield Static(Content.assemble((f"{name}  ", "$text-muted"), line), classes="found")
            yield Static(Content.styled("Three things to try", "bold"), id="tries")
            for key, words in _TRIES:
                yield Static(Content.assemble((key, "$primary bold"), f"  {words}"), classes="try")
            yield Static(
                Content.assemble(("?", "$primary bold"), "  shows all keys of a screen, ctrl+p finds any action")
            )
        yield KeyFooter()

    def action_close(self) -> None:
        """Go on to the board."""
        self.dismiss(None)

    def on_key(self, event: events.Key) -> None:
        """Go on to the board, where the keys that are named here do what they say."""
        if event.key in _KEYS_OF_THE_BOARD:
            event.stop()
            self.dismiss(None)
            self.app.call_later(self.app.simulate_key, event.key)


async def find_here(services: Services) -> list[tuple[str, str]]:
    """Return what was found on this computer, each as a heading and a line."""
    agents = await services.agents.list()
    names = [agent.name for agent in agents if agent.tool_type is ToolType.AI_AGENT]
    tools = [agent.slug for agent in agents if agent.tool_type is not ToolType.AI_AGENT]
    found = [("Agents", ", ".join(names) if names else "none yet; those in your PATH are found at every start")]
    if tools:
        found.append(("Tools", cut(", ".join(tools), _LONGEST)))
    if await services.costs.has_history_to_read():
        found.append(("History", "what they wrote down is being read, for costs and conversations"))
    return found
