"""The page of one agent: all that is known of it, and what it can be asked to do, row by row."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Final

from textual.containers import Container, Vertical, VerticalScroll
from textual.content import Content
from textual.widgets import Static

from agentmon.domain.clock import SystemClock
from agentmon.domain.errors import NotFoundError
from agentmon.screens.agents.agent_actions import edit, learn, release, take_back, test_run, turn
from agentmon.screens.agents.agent_facts import FIRST_FACTS, OTHER_FACTS, agent_facts, heading_content, told_content
from agentmon.screens.agents.capability_actions import change, remove_capability, turn_capability
from agentmon.screens.bindings import AGENT_PAGE
from agentmon.screens.paced_screen import PacedScreen
from agentmon.screens.row_moves import RowMoves
from agentmon.widgets.agent_rows import KnownAgent
from agentmon.widgets.capability_rows import CAPABILITY_COLUMNS, capability_rows
from agentmon.widgets.fact_list import FactList
from agentmon.widgets.key_footer import KeyFooter
from agentmon.widgets.row_table import RowTable
from agentmon.widgets.status_line import StatusBar

if TYPE_CHECKING:
    from textual.app import ComposeResult
    from textual.binding import BindingType

    from agentmon.domain.agents import Capability
    from agentmon.domain.clock import Clock
    from agentmon.screens.agents.agent_actions import AgentUndo
    from agentmon.screens.frame import ServicesGetter, WorkspaceGetter

_CLOCK_INTERVAL_S: Final = 20.0
_EMPTY: Final = (
    ("It can be asked for nothing yet.\n\n", "bold"),
    ("n", "$primary bold"),
    (" describes what it can do, ", ""),
    ("L", "$primary bold"),
    (" learns it from its help, its manual and its completions.", ""),
)
_ON_CAPABILITY: Final = {"change_capability", "turn_capability", "remove_capability"}


class AgentPage(RowMoves, PacedScreen[None]):
    """Facts of an agent beside or above the table of its capabilities."""

    CSS_PATH = "agent_page.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [*AGENT_PAGE]
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (130, "-wide")]  # noqa: RUF012 - Textual types it as an instance's
    VERTICAL_BREAKPOINTS = [(0, "-low"), (30, "-high")]  # noqa: RUF012 - as above
    AUTO_FOCUS = "#capabilities"

    def __init__(
        self,
        slug: str,
        *,
        undo: AgentUndo,
        services: ServicesGetter,
        workspace: WorkspaceGetter,
        clock: Clock | None = None,
    ) -> None:
        """Make the page.

        Args:
            slug: Of the agent.
            undo: The changes of the list that it was opened from.
            services: Opens the services.
            workspace: Opens the workspace.
            clock: The time.
        """
        super().__init__(services, workspace)
        self._slug = slug
        self._undo = undo
        self._clock = clock or SystemClock()
        self._known: KnownAgent | None = None
        self._wanted: str | None = None
        """The capability that the cursor goes to as soon as it is there."""

    def compose(self) -> ComposeResult:
        """Yield heading, facts and capabilities."""
        yield StatusBar(id="status")
        yield Static(id="heading")
        with Container(id="body"):
            with VerticalScroll(id="about", can_focus=False):
                yield FactList((*FIRST_FACTS, *OTHER_FACTS), id="facts")
            with Vertical(id="abilities"):
                yield RowTable(CAPABILITY_COLUMNS, id="capabilities")
                yield Static(Content.assemble(*_EMPTY), id="empty")
                with VerticalScroll(id="told-box", can_focus=False):
                    yield Static(id="told")
        yield KeyFooter()

    def on_mount(self) -> None:
        """Show the time."""
        self.set_interval(_CLOCK_INTERVAL_S, self._show_time, name="clock")
        self._show_time()

    async def refresh_snapshot(self) -> None:
        """Read the agent and how it fares; one that is gone closes its page."""
        services = await self.services()
        workspace = await self.workspace()
        try:
            agent = await services.agents.by_slug(self._slug)
        except NotFoundError:
            if self.is_current:
                self.notify(f"{self._slug} is no longer registered", severity="warning")
                self.dismiss(None)
            return
        health = await services.discovery.health((agent,))
        page = await services.board.page(workspace, ())
        status_bar = self.query_one(StatusBar)
        status_bar.place = page.workspace_name
        status_bar.numbers = page.status_line
        self.is_queue_paused = page.status_line.is_paused
        self._known = KnownAgent(agent, health.get(agent.id))
        now = self._clock.now()
        with self.app.batch_update():
            self.query_one("#heading", Static).update(heading_content(agent))
            self.query_one(FactList).show(agent_facts(self._known, now, page.status_line.money))
            self.set_class(not agent.capabilities, "-empty")
            self._table.rows = capability_rows(agent.capabilities)
            self._go_to_wanted()
            self._show_told()
        self.refresh_bindings()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:  # noqa: ARG002 - Textual's
        """Offer what the row under the cursor allows."""
        if action in _ON_CAPABILITY:
            return True if self._selected is not None else None
        if action == "release_agent":
            until = None if self._known is None else self._known.agent.parked_until
            return until is not None and until > self._clock.now()
        return True

    def action_close(self) -> None:
        """Go back."""
        self.dismiss(None)

    def action_change_capability(self) -> None:
        """Change the capability under the cursor."""
        self._table.open_selected()

    def action_new_capability(self) -> None:
        """Describe something that the agent can be asked to do."""
        self.open_dialog(self._change(None), name="new capability")

    def action_turn_capability(self) -> None:
        """Turn the capability under the cursor on or off."""
        known, selected = self._known, self._selected
        if known is not None and selected is not None:
            self.start(turn_capability(self, known.agent, selected, self._undo), name="turn capability")

    def action_remove_capability(self) -> None:
        """Take the capability under the cursor away."""
        known, selected = self._known, self._selected
        if known is not None and selected is not None:
            self.start(remove_capability(self, known.agent, selected, self._undo), name="remove capability")

    def action_edit(self) -> None:
        """Change the agent."""
        if self._known is not None:
            self.open_dialog(edit(self, self._known.agent, self._undo), name="edit")

    def action_learn(self) -> None:
        """Learn what the agent can be asked to do."""
        if self._known is not None:
            self.open_dialog(learn(self, self._known.agent), name="learn")

    def action_test(self) -> None:
        """Ask the program for its version and its login."""
        if self._known is not None:
            self.start(test_run(self, self._known.agent), name="test")

    def action_turn(self) -> None:
        """Turn the whole agent on or off."""
        if self._known is not None:
            self.start(turn(self, [self._known.agent], self._undo), name="turn")

    def action_release_agent(self) -> None:
        """Let the parked agent start again."""
        if self._known is not None:
            self.start(release(self, self._known.agent), name="release")

    def action_undo(self) -> None:
        """Take back the last change."""
        self.start(take_back(self, self._undo), name="undo")

    def action_scroll_facts(self, lines: int) -> None:
        """Scroll the facts."""
        self.query_one("#about", VerticalScroll).scroll_relative(y=lines, animate=False)

    def on_row_table_highlighted(self, message: RowTable.Highlighted) -> None:
        """Tell of the row, and offer what fits it."""
        message.stop()
        self._show_told()
        self.refresh_bindings()

    def on_row_table_opened(self, message: RowTable.Opened) -> None:
        """Change the capability."""
        message.stop()
        selected = self._selected
        if selected is not None:
            self.open_dialog(self._change(selected), name="capability")

    async def _change(self, capability: Capability | None) -> None:
        if self._known is not None:
            self._wanted = await change(self, self._known.agent, capability, self._undo)
            self._go_to_wanted()

    @property
    def _table(self) -> RowTable:
        return self.query_one("#capabilities", RowTable)

    @property
    def _selected(self) -> Capability | None:
        table = self.query_one_optional("#capabilities", RowTable)
        key = None if table is None else table.selected_key
        if self._known is None or key is None:
            return None
        return next((one for one in self._known.agent.capabilities if one.key == key), None)

    def _go_to_wanted(self) -> None:
        place = next((at for at, row in enumerate(self._table.rows) if row.key == self._wanted), None)
        if place is not None:
            self._wanted = None
            self._table.move_to(place)

    def _show_told(self) -> None:
        selected = self._selected
        if self._known is not None and selected is not None:
            self.query_one("#told", Static).update(told_content(self._known.agent, selected))

    def _show_time(self) -> None:
        self.query_one(StatusBar).time = self._clock.now().astimezone()
