"""The page of everything that a scan found on this machine: to look through, and to make agents of."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING, ClassVar, Final

from textual.content import Content
from textual.widgets import Input, Static

from agentmon.domain.clock import SystemClock
from agentmon.screens.agents.agent_actions import AgentChange, agents_text, remove_again, take_back
from agentmon.screens.agents.scanning import LOOK_INTERVAL_S, ScanLine
from agentmon.screens.bindings import PROGRAMS
from agentmon.screens.paced_screen import PacedScreen
from agentmon.screens.row_filter import clear_filter, leave_filter, show_filter
from agentmon.screens.row_moves import RowMoves
from agentmon.widgets.form import LineInput
from agentmon.widgets.key_footer import KeyFooter
from agentmon.widgets.program_rows import PROGRAM_COLUMNS, PROGRAM_SORTER, ProgramNews, found_programs, matching
from agentmon.widgets.row_table import RowTable, Sorting
from agentmon.widgets.status_line import StatusBar

if TYPE_CHECKING:
    from collections.abc import Sequence

    from textual.app import ComposeResult
    from textual.binding import BindingType

    from agentmon.domain.agents import Agent
    from agentmon.domain.clock import Clock
    from agentmon.domain.programs import ScanOutcome
    from agentmon.screens.agents.agent_actions import AgentUndo
    from agentmon.screens.agents.scanning import Scanning
    from agentmon.screens.frame import ServicesGetter, WorkspaceGetter
    from agentmon.widgets.program_rows import FoundProgram

_CLOCK_INTERVAL_S: Final = 20.0
_EMPTY: Final = (
    ("This machine was not looked at yet.\n\n", "bold"),
    ("r", "$primary bold"),
    (" reads the folders of your PATH; it runs nothing.", ""),
)
_NOTHING_FOUND: Final = (
    ("No program found here has this in its line.\n\n", "bold"),
    ("enter", "$primary bold"),
    (" adds the program of this name, or at this path.\n", ""),
    ("esc", "$primary bold"),
    (" shows all again.", ""),
)
_NOTHING_OF_KIND: Final = (
    ("No program is of this kind.\n\n", "bold"),
    ("f", "$primary bold"),
    (" shows the next kind; ", ""),
    ("esc", "$primary bold"),
    (" shows all again.", ""),
)
_KINDS: Final = (None, ProgramNews.NEW, ProgramNews.GONE, ProgramNews.BROKEN, ProgramNews.HIDDEN, ProgramNews.AGENT)
_KIND_WORDS: Final = {
    None: "",
    ProgramNews.NEW: "new or changed",
    ProgramNews.GONE: "gone",
    ProgramNews.BROKEN: "broken",
    ProgramNews.HIDDEN: "hidden by another one of the name",
    ProgramNews.AGENT: "agents",
}


class ProgramsPage(RowMoves, PacedScreen[str | None]):
    """A table of programs; ends with the agent that was made last, or with None."""

    CSS_PATH = "programs.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [*PROGRAMS]
    AUTO_FOCUS = "#programs"

    def __init__(
        self,
        *,
        scanning: Scanning,
        undo: AgentUndo,
        services: ServicesGetter,
        workspace: WorkspaceGetter,
        is_typing: bool = False,
        clock: Clock | None = None,
    ) -> None:
        """Make the page.

        Args:
            scanning: The scan of the application.
            undo: The changes of the list of agents.
            services: Opens the services.
            workspace: Opens the workspace.
            is_typing: Whether one begins with typing what is looked for.
            clock: The time.
        """
        super().__init__(services, workspace)
        self._scanning = scanning
        self._undo = undo
        self._clock = clock or SystemClock()
        self._is_typing = is_typing
        self._found: list[FoundProgram] = []
        self._by_path: dict[str, FoundProgram] = {}
        self._sorting: Sorting | None = None
        self._kind: ProgramNews | None = None
        self._marked: frozenset[str] = frozenset()
        self._made: str | None = None
        self._is_loaded = False
        self._shown_outcome: ScanOutcome | None = None

    def compose(self) -> ComposeResult:
        """Yield summary, scan, table and filter."""
        yield StatusBar(id="status")
        yield Static(id="summary")
        yield ScanLine(id="scan")
        yield RowTable(PROGRAM_COLUMNS, id="programs")
        yield Static(Content.assemble(*_EMPTY), id="empty")
        yield LineInput(placeholder="a name, a package, a folder; or the whole path of a program", id="filter")
        yield KeyFooter()

    def on_mount(self) -> None:
        """Show the time, and how far a scan is."""
        self.set_interval(_CLOCK_INTERVAL_S, self._show_time, name="clock")
        self.set_interval(LOOK_INTERVAL_S, self._show_scan, name="scan")
        self._shown_outcome = self._scanning.outcome
        self._show_time()
        self._show_summary()
        if self._is_typing:
            self.action_filter()

    async def refresh_snapshot(self) -> None:
        """Read what the scans know."""
        services = await self.services()
        workspace = await self.workspace()
        self._scanning.take(services)
        agents = await services.agents.registered(workspace_id=workspace.id)
        programs = await services.discovery.programs(with_missing=True)
        health = await services.discovery.health(agents)
        slugs = {one.found_path: agent.slug for agent in agents if (one := health.get(agent.id)) and one.found_path}
        # Two thousand rows take longer than a frame.
        self._found = await asyncio.to_thread(found_programs, programs, slugs)
        self._by_path = {one.program.path: one for one in self._found}
        self._is_loaded = True
        page = await services.board.page(workspace, ())
        status_bar = self.query_one(StatusBar)
        status_bar.place = page.workspace_name
        status_bar.numbers = page.status_line
        self.is_queue_paused = page.status_line.is_paused
        self._show()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:  # noqa: ARG002 - Textual's
        """Offer what the row under the cursor allows."""
        if action == "stop_scan":
            return self._scanning.can_stop
        if action in {"add", "mark"}:
            return True if self._selected is not None else None
        return True

    def action_add(self) -> None:
        """Make agents of the selected or marked programs."""
        self._table.open_selected()

    def action_mark(self) -> None:
        """Mark the program under the cursor, or take its mark away, and go on to the next."""
        selected = self._selected
        if selected is not None:
            self._mark(self._marked ^ {selected.program.path})
            self._table.move_by(1)

    def action_show_kind(self) -> None:
        """Show only what the scan says one thing of; after the last one all of it."""
        self._kind = _KINDS[(_KINDS.index(self._kind) + 1) % len(_KINDS)]
        self._show()

    def action_scan(self) -> None:
        """Look which programs came, changed and went."""
        self._scanning.begin()
        self.refresh_bindings()

    def action_stop_scan(self) -> None:
        """Stop the scan."""
        self._scanning.stop()

    def action_undo(self) -> None:
        """Take back the last change of an agent."""
        self.start(take_back(self, self._undo), name="undo")

    def action_back(self) -> None:
        """Clear the marks, the filter and what is shown alone; then go back."""
        if clear_filter(self, self.query_one("#filter", Input)):
            self._table.focus()
        elif self._marked:
            self._mark(frozenset())
        elif self._kind is not None:
            self._kind = None
            self._show()
        else:
            self.action_close()

    def action_close(self) -> None:
        """Go back to the agents."""
        self.dismiss(self._made)

    def action_filter(self) -> None:
        """Show the filter and type into it."""
        show_filter(self, self.query_one("#filter", Input))

    def action_sort(self) -> None:
        """Sort by the next shown column; after the last one the names are back."""
        self._sort(PROGRAM_SORTER.after(self._sorting, self._table.shown_columns))

    def action_reverse(self) -> None:
        """Turn the order round."""
        self._sort(PROGRAM_SORTER.reversed(self._sorting, self._table.shown_columns))

    def on_input_changed(self, event: Input.Changed) -> None:
        """Filter as the person types; the best match is under the cursor."""
        event.stop()
        self._show()
        if event.value.strip():
            self._table.move_to(0)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Go to the rows; what no scan has found is taken by its path or its name."""
        event.stop()
        typed = event.value.strip()
        if typed and not self._table.rows and self._is_loaded:
            self.start(self._add([typed]), name="add")
            return
        leave_filter(self, event.input)
        self._table.focus()

    def on_row_table_highlighted(self, message: RowTable.Highlighted) -> None:
        """Offer what fits the row."""
        message.stop()
        self.refresh_bindings()

    def on_row_table_sort_requested(self, message: RowTable.SortRequested) -> None:
        """Sort by the heading that was clicked."""
        message.stop()
        self._sort(PROGRAM_SORTER.clicked(self._sorting, message.column))

    def on_row_table_opened(self, message: RowTable.Opened) -> None:
        """Make agents; one that is an agent already is shown."""
        message.stop()
        chosen = [one for one in self._found if one.program.path in self._marked]
        if chosen:
            self.start(self._add([one.program.path for one in chosen if not one.agent_slug]), name="add")
            return
        selected = self._selected
        if selected is None:
            return
        if selected.agent_slug:
            from agentmon.screens.agents.agent_page import AgentPage  # noqa: PLC0415 - not needed before

            self.app.push_screen(
                AgentPage(
                    selected.agent_slug,
                    undo=self._undo,
                    services=self.services,
                    workspace=self.workspace,
                    clock=self._clock,
                )
            )
        else:
            self.start(self._add([selected.program.path]), name="add")

    async def _add(self, places: Sequence[str]) -> None:
        services = await self.services()
        made: list[Agent] = []
        try:
            async with self._undo.order:
                for place in places:
                    agent = await services.agents.add_program(place, actor=services.actor)
                    made.append(agent)
        finally:
            self._mark(frozenset())
            if made:
                self._tell_made(made)

    def _tell_made(self, made: Sequence[Agent]) -> None:
        self._made = made[-1].slug
        names = agents_text(made)
        inverses = [partial(remove_again, slug=agent.slug) for agent in made]
        self._undo.push(AgentChange(f"the adding of {names}", inverses, self._made))
        can = f" and can do {len(made[0].capabilities)} things" if len(made[0].capabilities) > 1 else ""
        one = f"{names} is an agent now{can}; tab goes to it, ctrl+z takes it back"
        self.notify(one if len(made) == 1 else f"{names} are agents now; ctrl+z takes them back")
        self.request_refresh(at_once=True)

    @property
    def _table(self) -> RowTable:
        return self.query_one("#programs", RowTable)

    @property
    def _selected(self) -> FoundProgram | None:
        table = self.query_one_optional("#programs", RowTable)
        key = None if table is None else table.selected_key
        return None if key is None else self._by_path.get(key)

    def _mark(self, marked: frozenset[str]) -> None:
        self._marked = marked
        self._table.marked = marked
        self._show_summary()

    def _sort(self, sorting: Sorting | None) -> None:
        self._sorting = sorting
        self._show()

    def _show(self) -> None:
        found = matching(self._found, self.query_one("#filter", Input).value)
        if self._kind is ProgramNews.NEW:
            found = [one for one in found if one.news in {ProgramNews.NEW, ProgramNews.CHANGED}]
        elif self._kind is ProgramNews.AGENT:
            found = [one for one in found if one.agent_slug]
        elif self._kind is not None:
            found = [one for one in found if one.news is self._kind]
        if self._sorting is not None:
            found = PROGRAM_SORTER.ordered(found, self._sorting)
        self._marked &= self._by_path.keys()
        with self.app.batch_update():
            self.set_class(self._is_loaded and not found, "-empty")
            self.query_one("#empty", Static).update(self._empty_text(), layout=False)
            self._table.sorting = self._sorting
            self._table.marked = self._marked
            self._table.rows = tuple(one.row for one in found)
            self._show_summary()
        self.refresh_bindings()

    def _empty_text(self) -> Content:
        if not self._found:
            return Content.assemble(*_EMPTY)
        if self.query_one("#filter", Input).value.strip():
            return Content.assemble(*_NOTHING_FOUND)
        return Content.assemble(*_NOTHING_OF_KIND)

    def _show_time(self) -> None:
        self.query_one(StatusBar).time = self._clock.now().astimezone()

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
        parts: list[tuple[str, str]] = [("Agents", "$text-muted"), (" › On this machine", "bold")]
        if not self._is_loaded:
            parts.append(("   reading…", "$text-muted"))
        elif self._found:
            parts.append((f"   {len(self._found):,} programs", ""))
            if self._kind is not None:
                parts.append((f"   only {_KIND_WORDS[self._kind]}", "$primary"))
            shown = len(self._table.rows)
            if self._marked:
                parts.append((f"   {len(self._marked):,} marked", "$warning"))
            if shown < len(self._found):
                parts.append((f"   {shown:,} shown", "$text-muted"))
            if self._sorting is not None:
                way = "falling" if self._sorting.is_descending else "rising"
                name = PROGRAM_COLUMNS[self._sorting.column].heading.lower()
                parts.append((f"   by {name}, {way}", "$text-muted"))
        self.query_one("#summary", Static).update(Content.assemble(*parts), layout=False)
