"""The place that shows the agents of this machine: how each fares, what it can do, and all that changes them."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Final

from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.content import Content
from textual.widgets import Input, Static

from agentmon.domain.agent_files import FileTrust
from agentmon.domain.agents import ToolType
from agentmon.domain.amounts import DOLLARS
from agentmon.domain.clock import SystemClock
from agentmon.screens.agents.agent_actions import (
    AgentUndo,
    copy,
    edit,
    learn,
    release,
    remove,
    take_back,
    test_run,
    turn,
)
from agentmon.screens.agents.agent_facts import (
    FIRST_FACTS,
    OTHER_FACTS,
    agent_facts,
    capability_content,
    heading_content,
)
from agentmon.screens.agents.scanning import LOOK_INTERVAL_S, ScanLine, Scanning
from agentmon.screens.bindings import AGENTS
from agentmon.screens.paced_screen import PacedScreen
from agentmon.screens.row_filter import clear_filter, leave_filter, show_filter
from agentmon.screens.row_moves import RowMoves
from agentmon.widgets.agent_rows import AGENT_COLUMNS, AGENT_SORTER, KnownAgent, agent_rows, has_words
from agentmon.widgets.cells import even_line
from agentmon.widgets.fact_list import FactList
from agentmon.widgets.form import LineInput
from agentmon.widgets.key_footer import KeyFooter
from agentmon.widgets.row_table import RowTable, Sorting
from agentmon.widgets.status_line import StatusBar

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Mapping

    from textual import events
    from textual.app import ComposeResult
    from textual.binding import BindingType

    from agentmon.domain.agent_files import AgentFileState
    from agentmon.domain.agent_health import AgentHealth
    from agentmon.domain.agents import Agent
    from agentmon.domain.clock import Clock
    from agentmon.domain.ids import AgentId
    from agentmon.domain.programs import ScanOutcome
    from agentmon.screens.frame import ServicesGetter, WorkspaceGetter

_CLOCK_INTERVAL_S: Final = 20.0
_EMPTY: Final = (
    ("No agents yet.\n\n", "bold"),
    ("Press ", ""),
    ("r", "$primary bold"),
    (" to look which programs this machine has, ", ""),
    ("tab", "$primary bold"),
    (" to choose one of them,\nor ", ""),
    ("n", "$primary bold"),
    (" to name one by its path.", ""),
)
_ON_SELECTED: Final = {"open_agent", "turn", "edit", "test", "learn", "copy", "remove", "mark"}


class AgentsScreen(RowMoves, PacedScreen[None]):
    """A table of agents with how they fare, and all about the one under the cursor beside it."""

    CSS_PATH = "screen.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [*AGENTS]
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (100, "-wide")]  # noqa: RUF012 - Textual types it as an instance's
    AUTO_FOCUS = "#agents"

    def __init__(self, services: ServicesGetter, workspace: WorkspaceGetter, *, clock: Clock | None = None) -> None:
        super().__init__(services, workspace)
        self._clock = clock or SystemClock()
        self._known: dict[str, Agent] = {}
        self._health: Mapping[AgentId, AgentHealth] = {}
        self._money = DOLLARS
        self._marked: frozenset[str] = frozenset()
        self._sorting: Sorting | None = None
        self._is_loaded = False
        self._wanted: str | None = None
        """The agent that the cursor goes to as soon as it is there."""
        self._undo = AgentUndo()
        self._file: AgentFileState | None = None
        self._scanning = Scanning(self)
        self._shown_outcome: ScanOutcome | None = None

    def compose(self) -> ComposeResult:
        """Yield summary, scan, table, pane and filter."""
        yield StatusBar(id="status")
        yield Static(id="summary")
        yield Static(id="file")
        yield ScanLine(id="scan")
        with Horizontal(id="body"):
            yield RowTable(AGENT_COLUMNS, id="agents")
            with VerticalScroll(id="pane", can_focus=False):
                yield Static(id="heading")
                yield FactList(FIRST_FACTS, id="facts")
                yield Static(id="capabilities")
                yield FactList(OTHER_FACTS, id="other-facts")
        with Vertical(id="empty"):
            yield Static(Content.assemble(*_EMPTY))
        yield LineInput(placeholder="words of name, kind, role, package or model", id="filter")
        yield KeyFooter()

    def on_mount(self) -> None:
        """Show the time, and how far a scan is."""
        self.set_interval(_CLOCK_INTERVAL_S, self._on_clock, name="clock")
        self.set_interval(LOOK_INTERVAL_S, self._show_scan, name="scan")
        self._on_clock()
        self._show_summary()

    async def refresh_snapshot(self) -> None:
        """Read the agents, and how they fare."""
        services = await self.services()
        workspace = await self.workspace()
        self._scanning.take(services)
        agents = await services.agents.registered(workspace_id=workspace.id)
        self._known = {agent.slug: agent for agent in agents}
        page = await services.board.page(workspace, ())
        status_bar = self.query_one(StatusBar)
        status_bar.place = page.workspace_name
        status_bar.numbers = page.status_line
        self.is_queue_paused = page.status_line.is_paused
        self._money = page.status_line.money
        self._file = await services.agent_files.state(workspace)
        if not self._is_loaded:
            # How they fare takes longer than who they are.
            self._is_loaded = True
            self._show()
        self._health = await services.discovery.health(agents)
        self._show()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:  # noqa: ARG002 - Textual's
        """Offer what the row under the cursor allows."""
        selected = self._selected
        if action == "stop_scan":
            return self._scanning.can_stop
        if action == "release_agent":
            return selected is not None and self._is_parked(selected)
        if action == "trust":
            return self._file is not None and self._file.trust is not FileTrust.NONE
        if action in _ON_SELECTED:
            return True if selected is not None else None
        return True

    def action_open_agent(self) -> None:
        """Show the page of the agent under the cursor."""
        self._table.open_selected()

    def action_turn(self) -> None:
        """Turn the selected or marked agents on or off."""
        chosen = self._chosen
        if chosen:
            self.start(turn(self, chosen, self._undo), name="turn")

    def action_edit(self) -> None:
        """Change the agent under the cursor."""
        self._with_selected(edit, "edit")

    def action_copy(self) -> None:
        """Make a copy of the agent under the cursor."""
        selected = self._selected
        if selected is not None:
            self.open_dialog(self._copy(selected), name="copy")

    def action_test(self) -> None:
        """Ask the program under the cursor for its version and its login."""
        selected = self._selected
        if selected is not None:
            self.start(test_run(self, selected), name="test")

    def action_learn(self) -> None:
        """Learn what the agent under the cursor can be asked to do."""
        selected = self._selected
        if selected is not None:
            self.open_dialog(learn(self, selected), name="learn")

    def action_release_agent(self) -> None:
        """Let the parked agent under the cursor start again."""
        selected = self._selected
        if selected is not None:
            self.start(release(self, selected), name="release")

    def action_remove(self) -> None:
        """Take the selected or marked agents out of the list."""
        chosen = self._chosen
        if chosen:
            self._mark(frozenset())
            self.start(remove(self, chosen, self._undo), name="remove")

    def action_undo(self) -> None:
        """Take back the last change."""
        self.start(self._take_back(), name="undo")

    def action_add(self) -> None:
        """Show the programs of this machine, and type what is looked for."""
        self._show_programs(is_typing=True)

    def action_show_programs(self) -> None:
        """Show the programs of this machine."""
        self._show_programs(is_typing=False)

    def action_scan(self) -> None:
        """Look which programs came, changed and went."""
        self._scanning.begin()
        self.refresh_bindings()

    def action_stop_scan(self) -> None:
        """Stop the scan."""
        self._scanning.stop()

    def action_trust(self) -> None:
        """Show the agents that this workspace's own file names."""
        self.open_dialog(self._trust(), name="trust")

    def action_mark(self) -> None:
        """Mark the agent under the cursor, or take its mark away, and go on to the next."""
        selected = self._selected
        if selected is not None:
            self._mark(self._marked ^ {selected.slug})
            self._table.move_by(1)

    def action_clear(self) -> None:
        """Clear the marks, then the filter, then the order."""
        if clear_filter(self, self.query_one("#filter", Input)):
            self._table.focus()
        elif self._marked:
            self._mark(frozenset())
        elif self._sorting is not None:
            self._sort(None)

    def action_filter(self) -> None:
        """Show the filter and type into it."""
        show_filter(self, self.query_one("#filter", Input))

    def action_sort(self) -> None:
        """Sort by the next shown column; after the last one the usual order is back."""
        self._sort(AGENT_SORTER.after(self._sorting, self._table.shown_columns))

    def action_reverse(self) -> None:
        """Turn the order round."""
        self._sort(AGENT_SORTER.reversed(self._sorting, self._table.shown_columns))

    def on_click(self, event: events.Click) -> None:
        """Show the workspace's own file where it is told."""
        if event.widget is not None and event.widget.id == "file":
            self.action_trust()

    def on_input_changed(self, event: Input.Changed) -> None:
        """Filter as the person types; the best match is under the cursor."""
        event.stop()
        self._show()
        if event.value.strip():
            self._table.move_to(0)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Go back to the rows; an empty filter goes away."""
        event.stop()
        leave_filter(self, event.input)
        self._table.focus()

    def on_row_table_highlighted(self, message: RowTable.Highlighted) -> None:
        """Tell all about the row."""
        message.stop()
        self._show_pane()
        self.refresh_bindings()

    def on_row_table_sort_requested(self, message: RowTable.SortRequested) -> None:
        """Sort by the heading that was clicked."""
        message.stop()
        self._sort(AGENT_SORTER.clicked(self._sorting, message.column))

    def on_row_table_opened(self, message: RowTable.Opened) -> None:
        """Show the page of the agent."""
        message.stop()
        self.show_agent(message.key)

    def show_agent(self, slug: str) -> None:
        """Show the page of an agent."""
        from agentmon.screens.agents.agent_page import AgentPage  # noqa: PLC0415 - not needed before

        self.app.push_screen(
            AgentPage(slug, undo=self._undo, services=self.services, workspace=self.workspace, clock=self._clock)
        )

    def select(self, slug: str) -> None:
        """Put the cursor on an agent, now or when it has been read."""
        self._wanted = slug
        self._go_to_wanted()

    def on_resize(self) -> None:
        """Fit the pane into its width."""
        self.call_after_refresh(self._show_pane)

    async def _copy(self, agent: Agent) -> None:
        made = await copy(self, agent, self._undo)
        if made is not None:
            self.select(made)

    async def _take_back(self) -> None:
        slug = await take_back(self, self._undo)
        if slug is not None:
            self.select(slug)

    async def _trust(self) -> None:
        from agentmon.screens.agents.trust_dialog import TrustDialog  # noqa: PLC0415 - seldom needed

        if await self.ask(TrustDialog(await self.services(), await self.workspace())) is not None:
            self.request_refresh(at_once=True)

    def _show_programs(self, *, is_typing: bool) -> None:
        from agentmon.screens.agents.programs import ProgramsPage  # noqa: PLC0415 - not needed before

        self.app.push_screen(
            ProgramsPage(
                scanning=self._scanning,
                undo=self._undo,
                is_typing=is_typing,
                services=self.services,
                workspace=self.workspace,
                clock=self._clock,
            ),
            self._on_programs_left,
        )

    def _on_programs_left(self, slug: str | None) -> None:
        if slug is not None:
            self.select(slug)

    @property
    def _table(self) -> RowTable:
        return self.query_one("#agents", RowTable)

    @property
    def _selected(self) -> Agent | None:
        table = self.query_one_optional("#agents", RowTable)
        return None if table is None else self._known.get(table.selected_key or "")

    @property
    def _chosen(self) -> list[Agent]:
        """The marked agents that are shown, or the one under the cursor."""
        marked = [self._known[row.key] for row in self._table.rows if row.key in self._marked]
        selected = self._selected
        return marked or ([] if selected is None else [selected])

    def _is_parked(self, agent: Agent) -> bool:
        return agent.parked_until is not None and agent.parked_until > self._clock.now()

    def _with_selected(
        self,
        work: Callable[[AgentsScreen, Agent, AgentUndo], Coroutine[None, None, object]],
        name: str,
    ) -> None:
        selected = self._selected
        if selected is not None:
            self.open_dialog(work(self, selected, self._undo), name=name)

    def _mark(self, marked: frozenset[str]) -> None:
        self._marked = marked
        self._table.marked = marked
        self._show_summary()

    def _sort(self, sorting: Sorting | None) -> None:
        self._sorting = sorting
        self._show()

    def _go_to_wanted(self) -> None:
        place = next((at for at, row in enumerate(self._table.rows) if row.key == self._wanted), None)
        if place is not None:
            self._wanted = None
            self._table.move_to(place)

    def _show(self) -> None:
        words = self.query_one("#filter", Input).value
        found = [self._known_agent(agent) for agent in self._known.values() if has_words(agent, words)]
        self._marked &= self._known.keys()
        with self.app.batch_update():
            self.set_class(self._is_loaded and not self._known, "-empty")
            told = "" if self._file is None else file_text(self._file)
            self.set_class(bool(told), "-told")
            self.query_one("#file", Static).update(Content.styled(told, "$warning"), layout=False)
            table = self._table
            table.sorting = self._sorting
            table.marked = self._marked
            table.rows = agent_rows(found, self._clock.now(), money=self._money, sorting=self._sorting, words=words)
            self._go_to_wanted()
            self._show_summary()
            self._show_pane()
        self.refresh_bindings()

    def _known_agent(self, agent: Agent) -> KnownAgent:
        return KnownAgent(agent, self._health.get(agent.id))

    def _show_pane(self) -> None:
        pane = self.query_one_optional("#pane", VerticalScroll)
        if pane is None or not self.has_class("-wide"):
            return
        selected = self._selected
        pane.set_class(selected is None, "-blank")
        if selected is None:
            return
        self.query_one("#heading", Static).update(heading_content(selected))
        facts = agent_facts(self._known_agent(selected), self._clock.now(), self._money, is_short=True)
        for part in ("#facts", "#other-facts"):
            self.query_one(part, FactList).show(facts)
        width = pane.scrollable_content_region.width
        self.query_one("#capabilities", Static).update(capability_content(selected, width))

    def _on_clock(self) -> None:
        self.query_one(StatusBar).time = self._clock.now().astimezone()
        if self._is_loaded:
            self._show()

    def _show_scan(self) -> None:
        """Show how far a scan is; what one has found is read when it is over."""
        if not self.is_current:
            return
        self.query_one(ScanLine).show(self._scanning)
        outcome = self._scanning.outcome
        if outcome is not self._shown_outcome:
            self._shown_outcome = outcome
            self.request_refresh(at_once=True)

    def _show_summary(self) -> None:
        table = self.query_one_optional("#agents", RowTable)
        if table is None:
            return
        parts: list[tuple[str, str]] = [("Agents", "bold"), ("" if self._is_loaded else "   reading…", "$text-muted")]
        if self._is_loaded:
            agents = self._known.values()
            working = sum(agent.is_active for agent in agents)
            of_them = sum(agent.is_active and agent.tool_type is ToolType.AI_AGENT for agent in agents)
            parts.append((f"   {of_them:,} AI, {working - of_them:,} tools", ""))
            if len(agents) > working:
                parts.append((f"   {len(agents) - working:,} off", "$text-muted"))
            if self._marked:
                parts.append((f"   {len(self._marked):,} marked", "$warning"))
            if self.query_one("#filter", Input).value.strip():
                nothing = "nothing has these words; esc clears the filter"
                parts.append((f"   {f'{len(table.rows):,} shown' if table.rows else nothing}", "$text-muted"))
            if self._sorting is not None:
                way = "falling" if self._sorting.is_descending else "rising"
                name = AGENT_COLUMNS[self._sorting.column].heading.lower()
                parts.append((f"   by {name}, {way}", "$text-muted"))
        self.query_one("#summary", Static).update(Content.assemble(*parts), layout=False)


def file_text(file: AgentFileState) -> str:
    """Return what a person should know of the workspace's own file of agents; empty when there is nothing."""
    count = f"{len(file.agents):,} agent{'' if len(file.agents) == 1 else 's'}"
    if file.trust is FileTrust.UNTRUSTED:
        return f"◆ This workspace's own file names {count} that nobody has trusted yet; T shows what they would run"
    if file.trust is FileTrust.CHANGED:
        return "◆ This workspace's own file of agents has changed since it was trusted; T shows what it would run"
    if file.trust is FileTrust.BROKEN:
        return f"! This workspace's own file of agents cannot be used: {even_line(file.problem, max_characters=200)}"
    return ""
