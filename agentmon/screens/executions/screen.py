"""The place that shows all that runs, waits and ran, as one live table."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from time import monotonic
from typing import TYPE_CHECKING, ClassVar, Final

from textual.content import Content
from textual.widgets import Input, Static

from agentmon.domain.board import ColumnRequest
from agentmon.domain.clock import SystemClock
from agentmon.domain.execution_columns import ExecutionColumn
from agentmon.domain.execution_status import LIVE_STATUSES, ExecutionStatus
from agentmon.domain.live_state import LiveState
from agentmon.domain.task_status import TaskStatus
from agentmon.screens.bindings import EXECUTIONS
from agentmon.screens.frame import AttachRequested, ServiceScreen
from agentmon.screens.row_filter import clear_filter, leave_filter, show_filter
from agentmon.screens.sessions.talking import change_agent, interrupt, send_message, show_request
from agentmon.screens.tasks.running import ask_kill, ask_stop, stop_run
from agentmon.screens.wait_clock import WaitClock
from agentmon.widgets.execution_table import ExecutionTable, SortOrder
from agentmon.widgets.form import LineInput
from agentmon.widgets.key_footer import KeyFooter
from agentmon.widgets.state_words import WAITING_STATES, Wait
from agentmon.widgets.status_line import StatusBar

if TYPE_CHECKING:
    from collections.abc import Sequence

    from textual.app import ComposeResult
    from textual.binding import BindingType
    from textual.timer import Timer
    from textual.worker import Worker

    from agentmon.bootstrap import Services
    from agentmon.domain.clock import Clock
    from agentmon.domain.executions import ExecutionListing
    from agentmon.domain.ids import ExecutionId
    from agentmon.screens.frame import ServicesGetter, WorkspaceGetter

REFRESH_ROWS: Final = 100
"""Rows that each refresh reads: the open ones come first, then the newest."""
PAGE_ROWS: Final = 500
"""Rows that are read at once when all are."""
MOST_ROWS: Final = 20_000
"""Rows that the table holds at most; older ones are found on their task's page."""

_CLOCK_INTERVAL_S: Final = 20.0
_WAITS_INTERVAL_S: Final = 1.0
_WAITING_CARDS: Final = 1000
"""Cards of each open column that are looked at for what they wait for."""
_EMPTY: Final = (
    ("Nothing has run yet.\n\n", "bold"),
    ("Go to the board with ", ""),
    ("1", "$primary bold"),
    (", choose a task and press ", ""),
    ("r", "$primary bold"),
    (".", ""),
)


class ExecutionsScreen(ServiceScreen[None]):
    """A live table of executions: open ones first, then the newest; filtered, sorted, opened, stopped from here."""

    CSS_PATH = "screen.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [*EXECUTIONS]
    AUTO_FOCUS = "#executions"

    def __init__(self, services: ServicesGetter, workspace: WorkspaceGetter, *, clock: Clock | None = None) -> None:
        super().__init__(services, workspace)
        self._clock = clock or SystemClock()
        self._known: dict[ExecutionId, ExecutionListing] = {}
        self._seconds: Timer | None = None
        self._is_loaded = False
        self._older_reading: Worker[None] | None = None
        self._waits = WaitClock(self, self._on_wait_end)
        self._waits_of: tuple[ExecutionListing, ...] = ()
        self._waits_read_at = 0.0
        self._column_choices = 0
        """Counts twice each time that other columns are chosen: when they are shown, and when they are stored."""

    def compose(self) -> ComposeResult:
        """Yield summary, table and filter."""
        yield StatusBar(id="status")
        yield Static(id="summary")
        yield ExecutionTable(clock=self._clock, id="executions")
        yield Static(Content.assemble(*_EMPTY), id="empty")
        yield LineInput(placeholder="words of title, program, state or last line", id="filter")
        yield KeyFooter()

    def on_mount(self) -> None:
        """Start the seconds, which stand still while nothing runs."""
        self._seconds = self.set_interval(1.0, self._tick, name="seconds", pause=True)
        self.set_interval(_CLOCK_INTERVAL_S, self._show_time, name="clock")
        self._show_time()
        self._show_summary()

    def on_screen_resume(self) -> None:
        """Read the older rows anew: a task of theirs may be gone or renamed."""
        if self._older_reading is None or self._older_reading.is_finished:
            self._older_reading = self.run_worker(
                self._read_older, name="older executions", group="older", exit_on_error=False
            )

    async def refresh_snapshot(self) -> None:
        """Read the newest rows and show them together with the older ones that are known."""
        services = await self.services()
        workspace = await self.workspace()
        newest = await services.executions.list(workspace, limit=REFRESH_ROWS)
        page = await services.board.page(workspace, ())
        status_bar = self.query_one(StatusBar)
        status_bar.place = page.workspace_name
        status_bar.numbers = page.status_line
        pause = await services.queue.find_pause() if page.status_line.is_paused else None
        status_bar.paused_since = None if pause is None else pause.since
        self.is_queue_paused = page.status_line.is_paused
        if self._table is not None:
            self._table.folder = workspace.root_path
            self._table.money = page.status_line.money
            choices = self._column_choices
            columns = await services.settings.execution_columns()
            if choices == self._column_choices:
                self._table.columns = columns
        await self._read_waits(services, newest)
        is_all = len(newest) < REFRESH_ROWS
        self._show(newest if is_all else (*newest, *await self._older(services, newest)))

    async def _read_waits(self, services: Services, newest: Sequence[ExecutionListing]) -> None:
        """Read what queued executions wait for, as the board tells it; at most once a second while the queue stays."""
        queued = tuple(one for one in newest if one.execution.status is ExecutionStatus.QUEUED)
        table = self._table
        if table is None or (queued == self._waits_of and monotonic() - self._waits_read_at < _WAITS_INTERVAL_S):
            return
        self._waits_of, self._waits_read_at = queued, monotonic()
        waits: dict[ExecutionId, Wait] = {}
        if queued:
            requests = [ColumnRequest(status=status, limit=_WAITING_CARDS) for status in TaskStatus if status.is_open]
            page = await services.board.page(await self.workspace(), requests)
            for card in (card for column in page.columns.values() for card in column.cards):
                if card.execution_id is not None and card.state in WAITING_STATES:
                    is_parked = card.state is LiveState.PARKED
                    waits[card.execution_id] = Wait(
                        waits_for=card.awaited_text,
                        parked_until=card.waits_until if is_parked else None,
                        park_note=card.error if is_parked else None,
                    )
        if waits != table.waits:
            table.waits = waits
        self._plan_waits()

    def _plan_waits(self) -> None:
        table = self._table
        parked = [] if table is None else [wait.parked_until for wait in table.waits.values()]
        self._waits.plan([*(one.execution.not_before for one in self._waits_of), *parked], self._clock.now())

    def _on_wait_end(self) -> None:
        self._tick()
        self._plan_waits()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:  # noqa: ARG002 - Textual's
        """Offer what the row under the cursor allows; text fields get their letters."""
        table = self._table
        if table is None:
            return None
        selected = table.selected
        if action == "open_task":
            return True if selected is not None else None
        if action == "attach":
            return True if selected is not None and selected.execution.status.is_live else None
        if action in {"stop", "kill"}:
            return True if selected is not None and selected.execution.status.is_open else None
        if action == "show_request":
            return True if selected is not None and selected.execution.live_state is LiveState.NEEDS_YOU else None
        if action == "send_message":
            return True if selected is not None and selected.execution.mode.is_conversation else None
        if action == "interrupt":
            is_talking = selected is not None and selected.execution.status.is_live
            return True if is_talking and selected is not None and selected.execution.mode.is_conversation else None
        if action == "change_agent":
            is_talking = selected is not None and selected.execution.status.is_live
            return True if is_talking and selected is not None and selected.execution.mode.is_protocol else None
        return True

    def action_show_request(self) -> None:
        """Show what the agent under the cursor asks, with the keys to decide."""
        selected = self._selected
        if selected is not None:
            self.open_dialog(show_request(self, selected.execution.task_id, self._clock), name="request")

    def action_send_message(self) -> None:
        """Write to the agent under the cursor."""
        selected = self._selected
        if selected is not None:
            self.open_dialog(send_message(self, selected.execution.task_id), name="message")

    def action_interrupt(self) -> None:
        """Let the agent under the cursor stop and listen."""
        selected = self._selected
        if selected is not None:
            self.start(interrupt(self, selected.execution.task_id), name="interrupt")

    def action_change_agent(self) -> None:
        """Change model or permission mode of the agent under the cursor."""
        selected = self._selected
        if selected is not None:
            self.open_dialog(change_agent(self, selected.execution.task_id), name="model")

    def action_open_task(self) -> None:
        """Show the page of the task under the cursor."""
        if self._table is not None:
            self._table.open_selected()

    def action_show_changes(self) -> None:
        """Show what the run under the cursor changed."""
        selected = self._selected
        if selected is not None:
            self.show_changes_of(selected.execution.task_id, selected.execution.id)

    def action_attach(self) -> None:
        """Enter the terminal of the execution under the cursor."""
        selected = self._selected
        if selected is not None:
            self.post_message(AttachRequested(selected.execution.id))

    def action_stop(self) -> None:
        """Ask the program under the cursor to end; an agent at work whose row nobody chose is asked about."""
        table, selected = self._table, self._selected
        if table is None or selected is None:
            return
        execution = selected.execution
        if execution.mode.is_conversation and execution.status.is_live and not table.is_chosen:
            self.open_dialog(self._stop_asked(table, selected), name="stop")
        else:
            self.start(stop_run(self, selected.execution.task_id), name="stop")

    def action_kill(self) -> None:
        """End the program under the cursor by force, after a question."""
        selected = self._selected
        if selected is not None:
            self.open_dialog(self._kill(selected), name="kill")

    def action_go_row(self, rows: int) -> None:
        """Move the cursor by rows."""
        if self._table is not None:
            self._table.move_by(rows)

    def action_go_end(self, direction: int) -> None:
        """Move the cursor to the first or the last row."""
        if self._table is not None:
            self._table.move_to(0 if direction < 0 else len(self._table.rows) - 1)

    def action_go_page(self, direction: int) -> None:
        """Move the cursor by half a screenful."""
        if self._table is not None:
            self._table.move_by(direction * max(1, self._table.size.height // 2))

    def action_filter(self) -> None:
        """Show the filter and type into it."""
        show_filter(self, self.query_one("#filter", Input))

    def action_clear(self) -> None:
        """Clear the filter; without one, the order."""
        table = self._table
        if table is None:
            return
        if clear_filter(self, self.query_one("#filter", Input)):
            table.focus()
        else:
            self._sort(None)

    def action_sort(self) -> None:
        """Sort by the next shown column; after the last one the order of time is back."""
        table = self._table
        if table is None:
            return
        columns = table.shown_columns
        present = table.sorting
        place = columns.index(present.column) + 1 if present is not None and present.column in columns else 0
        self._sort(SortOrder(column=columns[place]) if place < len(columns) else None)

    def action_reverse(self) -> None:
        """Turn the order round."""
        table = self._table
        if table is not None:
            present = table.sorting or SortOrder(column=ExecutionColumn.STARTED, is_descending=True)
            self._sort(SortOrder(column=present.column, is_descending=not present.is_descending))

    def action_choose_columns(self) -> None:
        """Choose what is shown of each execution."""
        if self._table is not None:
            self.open_dialog(self._choose_columns(self._table), name="columns")

    def on_input_changed(self, event: Input.Changed) -> None:
        """Filter as the person types."""
        event.stop()
        if self._table is not None:
            self._table.text_filter = event.value
            self._show_summary()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Go back to the rows; an empty filter goes away."""
        event.stop()
        leave_filter(self, event.input)
        if self._table is not None:
            self._table.focus()

    def on_execution_table_highlighted(self, message: ExecutionTable.Highlighted) -> None:
        """Offer what fits the row."""
        message.stop()
        self.refresh_bindings()

    def on_execution_table_sort_requested(self, message: ExecutionTable.SortRequested) -> None:
        """Sort by the heading that was clicked; a second click turns the order round."""
        message.stop()
        present = None if self._table is None else self._table.sorting
        is_second = present is not None and present.column is message.column and not present.is_descending
        self._sort(SortOrder(column=message.column, is_descending=is_second))

    def on_execution_table_opened(self, message: ExecutionTable.Opened) -> None:
        """Show the page of the task with the log of this execution."""
        message.stop()
        from agentmon.screens.tasks.task_page import TaskPage  # noqa: PLC0415 - not needed before

        execution = message.listing.execution
        self.app.push_screen(
            TaskPage(
                task_id=execution.task_id,
                execution_id=execution.id,
                services=self.services,
                workspace=self.workspace,
                clock=self._clock,
            ),
        )

    @property
    def _table(self) -> ExecutionTable | None:
        return self.query_one_optional(ExecutionTable)

    @property
    def _selected(self) -> ExecutionListing | None:
        return None if self._table is None else self._table.selected

    def _sort(self, order: SortOrder | None) -> None:
        if self._table is not None:
            self._table.sorting = order
            self._show_summary()

    def _show_time(self) -> None:
        self.query_one(StatusBar).time = self._clock.now().astimezone()

    def _tick(self) -> None:
        if self._table is not None:
            self._table.tick()

    async def _choose_columns(self, table: ExecutionTable) -> None:
        from agentmon.screens.executions.columns_dialog import ColumnsDialog  # noqa: PLC0415 - seldom needed

        chosen = await self.ask(ColumnsDialog(table.columns, table.fitting))
        if chosen is None or chosen == table.columns:
            return
        self._column_choices += 1
        table.columns = chosen
        if table.sorting is not None and table.sorting.column not in chosen:
            self._sort(None)
        services = await self.services()
        await services.settings.keep_execution_columns(chosen, actor=services.actor)
        # What was read while they were not stored yet is as old as what was read before they were chosen.
        self._column_choices += 1
        self.request_refresh()

    async def _stop_asked(self, table: ExecutionTable, listing: ExecutionListing) -> None:
        table.select(listing.execution.id)
        if await ask_stop(self, f"#{listing.task_number}", listing.task_title):
            await stop_run(self, listing.execution.task_id)

    async def _kill(self, listing: ExecutionListing) -> None:
        if await ask_kill(self, [(listing.task_number, listing.task_title)]):
            await stop_run(self, listing.execution.task_id, kill=True)

    async def _read_older(self) -> None:
        services = await self.services()
        workspace = await self.workspace()
        rows: list[ExecutionListing] = []
        while len(rows) < MOST_ROWS:
            page = await services.executions.list(workspace, limit=PAGE_ROWS, offset=len(rows))
            rows.extend(page)
            if len(page) < PAGE_ROWS:
                break
        self._show(rows)

    async def _older(self, services: Services, newest: Sequence[ExecutionListing]) -> list[ExecutionListing]:
        """Return the known rows that belong below the ones just read, with those that ended meanwhile read anew."""
        read = {listing.execution.id for listing in newest}
        ended_at = [one.execution.created_at for one in newest if not one.execution.status.is_open]
        is_open_cut_off = not ended_at
        since = min(ended_at, default=self._clock.now())
        older = []
        for execution_id, listing in self._known.items():
            is_open = listing.execution.status.is_open
            if execution_id in read or (not is_open and listing.execution.created_at > since):
                # What sorts among the ones just read and is not there is gone.
                continue
            if is_open and not is_open_cut_off:
                # It was open, and is not among the open ones any more.
                listing = replace(listing, execution=await services.executions.get(execution_id))  # noqa: PLW2901
            older.append(listing)
        return sorted(older, key=_age_order)

    def _show(self, rows: Sequence[ExecutionListing]) -> None:
        """Show these rows and nothing else."""
        shown = {listing.execution.id: listing for listing in rows}
        self._known = shown
        self._is_loaded = True
        table = self._table
        if table is None or self._seconds is None:
            return
        with self.app.batch_update():
            table.listings = tuple(shown.values())
            self.set_class(not shown, "-empty")
            self._show_summary()
        if table.has_running:
            self._seconds.resume()
        else:
            self._seconds.pause()
        self.refresh_bindings()

    def _show_summary(self) -> None:
        table = self._table
        if table is None:
            return
        counts = Counter(listing.execution.status for listing in self._known.values())
        running = sum(counts[status] for status in LIVE_STATUSES)
        parts: list[str | tuple[str, str]] = [("Executions", "bold")]
        if running:
            parts.append((f"   ● {running:,} running", "$secondary"))
        if counts[ExecutionStatus.QUEUED]:
            parts.append((f"   ◌ {counts[ExecutionStatus.QUEUED]:,} queued", "$text-muted"))
        if self._is_loaded:
            parts.append((f"   {len(self._known):,} in all", "$text-muted"))
        if table.text_filter.strip():
            parts.append((f"   {len(table.rows):,} shown", "$text-muted"))
        if table.sorting is not None:
            way = "falling" if table.sorting.is_descending else "rising"
            parts.append((f"   by {table.sorting.column.heading.lower()}, {way}", "$text-muted"))
        self.query_one("#summary", Static).update(Content.assemble(*parts), layout=False)


def _age_order(listing: ExecutionListing) -> tuple[bool, float]:
    execution = listing.execution
    return not execution.status.is_open, -execution.created_at.timestamp()
