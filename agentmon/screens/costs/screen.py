"""The place that shows what the agents cost: now, over time, and by what."""

from __future__ import annotations

from dataclasses import replace
from datetime import date, timedelta
from time import monotonic
from typing import TYPE_CHECKING, ClassVar, Final, NamedTuple

from textual.containers import Horizontal
from textual.content import Content
from textual.widgets import Static

from agentmon.domain.amounts import count_text
from agentmon.domain.clock import SystemClock
from agentmon.domain.costs import CostFilter, CostGroup
from agentmon.domain.ids import TaskId
from agentmon.screens.bindings import COSTS
from agentmon.screens.costs.budget_line import budget_content
from agentmon.screens.costs.cost_chart import Measure, bars_of, dearest_models, legend_content
from agentmon.screens.costs.cost_filter import (
    PROJECT,
    TIME,
    filter_entries,
    filter_words,
    merged,
    read_choices,
    with_entry,
)
from agentmon.screens.costs.cost_periods import FIRST_PERIOD, PERIODS
from agentmon.screens.costs.cost_reading import COMPARED_DAYS, CostReader, CostSnapshot
from agentmon.screens.costs.cost_rows import (
    COST_COLUMN,
    COST_COLUMNS,
    MORE,
    PAGE_ROWS,
    clicked_sorting,
    cost_rows,
    next_sorting,
    tiles_of,
)
from agentmon.screens.costs.import_line import import_content
from agentmon.screens.costs.limit_block import limit_line, limit_lines
from agentmon.screens.frame import ServiceScreen
from agentmon.screens.row_moves import RowMoves
from agentmon.widgets.activity_words import activity_line
from agentmon.widgets.cells import even_line
from agentmon.widgets.key_footer import KeyFooter
from agentmon.widgets.row_table import RowTable, Sorting
from agentmon.widgets.stacked_bars import StackedBars
from agentmon.widgets.status_line import StatusBar
from agentmon.worker.import_progress import RunningImport, find_running_import

if TYPE_CHECKING:
    from textual import events
    from textual.app import ComposeResult
    from textual.binding import BindingType

    from agentmon.domain.clock import Clock
    from agentmon.screens.frame import ServicesGetter, WorkspaceGetter


class _View(NamedTuple):
    """What the table shows: the costs of a choice by something."""

    group: CostGroup
    chosen: CostFilter
    """What the rows that were followed say."""
    title: str
    """What was followed; empty for everything."""
    row: str = ""
    """The name of the row that was followed to here."""


class _Wanted(NamedTuple):
    """What the reports are about."""

    period: int
    group: CostGroup
    chosen: CostFilter


_GROUPS: Final = (CostGroup.MODEL, CostGroup.AGENT, CostGroup.PROJECT, CostGroup.SESSION, CostGroup.TASK)
_GROUP_WORDS: Final = {
    CostGroup.MODEL: "models",
    CostGroup.AGENT: "agents",
    CostGroup.PROJECT: "projects",
    CostGroup.SESSION: "sessions",
    CostGroup.TASK: "tasks",
}
_READ_INTERVAL_S: Final = 1.0
"""Answers of a hundred agents would have the sums read again ten times a second."""
_PAUSES: Final = 5
"""A pause takes so many times as long as the look before it, which may be one at ten thousand sessions."""
_IMPORT_LOOK_S: Final = 1.0
_CLOCK_INTERVAL_S: Final = 20.0
_CHART_FROM_HEIGHT: Final = 30
_ROWS_FOR_A_WINDOW: Final = 10
_LONGEST_TITLE: Final = 200
_EMPTY: Final = (
    ("No usage yet.\n\n", "bold"),
    ("What coding agents wrote down on this machine is read by the worker;\n", ""),
    ("agentmon costs import", "$primary bold"),
    (" reads it now and says which folders it looks into.", ""),
)


class CostsScreen(RowMoves, ServiceScreen[None]):
    """Today, this week and this month; bars over time; a table that is followed down to single answers."""

    CSS_PATH = "screen.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [*COSTS]
    AUTO_FOCUS = "#costs"

    def __init__(self, services: ServicesGetter, workspace: WorkspaceGetter, *, clock: Clock | None = None) -> None:
        super().__init__(services, workspace)
        self._clock = clock or SystemClock()
        self._reader = CostReader(self._clock)
        self._period = FIRST_PERIOD
        self._filter = CostFilter()
        self._sorting: Sorting | None = None
        self._measure = Measure()
        self._most_rows = PAGE_ROWS
        self._trail: list[_View] = [_View(CostGroup.MODEL, CostFilter(), "")]
        self._shown: CostSnapshot | None = None
        self._import: RunningImport | None = None
        self._read_for: _Wanted | None = None
        self._opens_when_read = False
        """Whether a row was followed whose table is still that of what was asked for before."""
        self._lands_on: str | None = None
        """The row that the cursor goes to in the table that comes; the first one when there is none of this name."""
        self._read_at = float("-inf")
        self._read_pause_s = _READ_INTERVAL_S
        self._is_read_planned = False
        self._group_cells: list[tuple[int, CostGroup]] = []
        """Where the word of each group ends in its line."""

    def compose(self) -> ComposeResult:
        """Yield summary, tiles, chart and table."""
        yield StatusBar(id="status")
        yield Static(id="summary")
        yield Static(id="import")
        with Horizontal(id="tiles"):
            yield from (Static(id=f"tile-{number}") for number in range(3))
        yield Static(id="limits")
        yield Static(id="budgets")
        yield StackedBars(self._amount_text, id="chart")
        yield Static(id="legend")
        yield Static(id="groups")
        yield RowTable(COST_COLUMNS, id="costs")
        yield Static(Content.assemble(*_EMPTY), id="empty")
        yield KeyFooter()

    def on_mount(self) -> None:
        """Show the time, and look whether an import goes on."""
        self.set_interval(_CLOCK_INTERVAL_S, self._show_time, name="clock")
        self.set_interval(_IMPORT_LOOK_S, self._look_at_import, name="import")
        self.query_one(StackedBars).is_patterned = self.app.no_color
        self._show_time()
        self._show_summary()

    def on_resize(self, event: events.Resize) -> None:
        """Leave the chart out where there is no room for it."""
        self.set_class(event.size.height < _CHART_FROM_HEIGHT, "-low")
        self._show_limits()
        self._show_import()

    async def refresh_snapshot(self) -> None:
        """Read what has changed; with pauses while nothing else is asked for."""
        wanted = self._wanted
        wait_s = self._read_at + self._read_pause_s - monotonic()
        if wanted == self._read_for and wait_s > 0:
            self._plan_read(wait_s)
            return
        begun_at = monotonic()
        services = await self.services()
        workspace = await self.workspace()
        page = await services.board.page(workspace, ())
        status_bar = self.query_one(StatusBar)
        status_bar.place = page.workspace_name
        status_bar.numbers = page.status_line
        self.is_queue_paused = page.status_line.is_paused
        self._measure = self._measure._replace(money=page.status_line.money)
        snapshot = await self._reader.read(services, wanted.group, wanted.chosen, PERIODS[wanted.period])
        self._read_at = monotonic()
        self._read_pause_s = max(_READ_INTERVAL_S, _PAUSES * (self._read_at - begun_at))
        if wanted != self._wanted:
            self.request_refresh()
            return
        self._read_for, self._shown = wanted, snapshot
        self._show()
        self._land()
        is_opening, self._opens_when_read = self._opens_when_read and self.is_current, False
        if is_opening:
            self._table.open_selected()
        else:
            self.release_keys()
        await self._look_at_import()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:  # noqa: ARG002 - Textual's
        """Offer what the row under the cursor allows."""
        if action == "open_row":
            return True if self._selected_key else None
        if action == "back":
            return True if self._can_go_back else None
        return True

    def action_open_row(self) -> None:
        """Follow the row under the cursor."""
        self._table.open_selected()

    def action_back(self) -> None:
        """Take back the last row that was followed, then the filter, then the order."""
        if len(self._trail) > 1:
            self._lands_on = self._trail.pop().row
            self._go_elsewhere()
        elif self._filter != CostFilter():
            self._filter = CostFilter()
            self._go_elsewhere()
        elif self._sorting is not None:
            self._sort(None)

    def action_go_group(self, steps: int) -> None:
        """Sum up by something else."""
        at = (_GROUPS.index(self._view.group) + steps) % len(_GROUPS)
        self._show_by(_GROUPS[at])

    def action_change_period(self) -> None:
        """Show another time."""
        self._period = (self._period + 1) % len(PERIODS)
        self._go_elsewhere()

    def action_toggle_tokens(self) -> None:
        """Compare tokens instead of money, and back."""
        self._measure = self._measure._replace(is_by_tokens=not self._measure.is_by_tokens)
        self._show()

    def action_filter_by(self) -> None:
        """Choose agent, workspace, project, model or time."""
        self.open_dialog(self._choose_filter(), name="filter")

    def action_sort(self) -> None:
        """Sort by the next shown column; after the last one the dearest are first again."""
        self._sort(next_sorting(self._sorting, self._table.shown_columns))

    def action_reverse(self) -> None:
        """Turn the order round."""
        present = self._sorting or Sorting(COST_COLUMN, is_descending=True)
        self._sort(present._replace(is_descending=not present.is_descending))

    def on_click(self, event: events.Click) -> None:
        """Sum up by the word that was clicked, or choose a filter where it is told."""
        name = None if event.widget is None else event.widget.id
        if name == "summary":
            self.action_filter_by()
        elif name == "groups" and event.widget is not None:
            x = event.x - event.widget.styles.padding.left
            group = next((group for end, group in self._group_cells if x < end), None)
            if group is not None:
                self._show_by(group)

    def on_row_table_highlighted(self, message: RowTable.Highlighted) -> None:
        """Offer what fits the row."""
        message.stop()
        self.refresh_bindings()

    def on_row_table_sort_requested(self, message: RowTable.SortRequested) -> None:
        """Sort by the heading that was clicked; a second click turns the order round."""
        message.stop()
        self._sort(clicked_sorting(self._sorting, message.column))

    def on_row_table_opened(self, message: RowTable.Opened) -> None:
        """Follow a model, an agent or a project to its sessions, a session to its answers, a task to its page."""
        message.stop()
        key, view = message.key, self._view
        if not key or self._shown is None:
            return
        if self._read_for != self._wanted:
            self._opens_when_read = True
            self.hold_keys()
            return
        if key == MORE:
            self._most_rows += PAGE_ROWS
            self._show()
            self.release_keys()
        elif view.group is CostGroup.SESSION:
            self.open_dialog(self._show_answers(key), name="answers")
        elif view.group is CostGroup.TASK:
            from agentmon.screens.tasks.task_page import TaskPage  # noqa: PLC0415 - not needed before

            self.app.push_screen(
                TaskPage(task_id=TaskId(key), services=self.services, workspace=self.workspace, clock=self._clock)
            )
            self.release_keys()
        else:
            label = next((bucket.label for bucket in self._shown.table.buckets if bucket.group == key), key)
            title = f"{view.title} › {label}" if view.title else label
            self._trail.append(_View(CostGroup.SESSION, _narrowed(view, key), title, key))
            self._lands_on = ""
            self.hold_keys()
            self._go_elsewhere()

    async def _show_answers(self, session_id: str) -> None:
        from agentmon.screens.costs.answers_dialog import AnswersDialog  # noqa: PLC0415 - not needed before

        services = await self.services()
        answers = await services.costs.explain(session_id)
        await self.ask(AnswersDialog(answers, now=self._clock.now(), money=self._measure.money))

    async def _choose_filter(self) -> None:
        from agentmon.screens.dialogs.menu_dialog import MenuDialog  # noqa: PLC0415 - not needed before

        choices = await read_choices(await self.services())
        entries = filter_entries(choices, self._filter, self._period)
        chosen = await self.ask(MenuDialog("Show only", entries, free_kind=PROJECT))
        if chosen is None:
            return
        if chosen.kind == TIME:
            self._period = next(at for at, one in enumerate(PERIODS) if one.name == chosen.word)
        self._filter = with_entry(self._filter, chosen)
        self._go_elsewhere()

    @property
    def _view(self) -> _View:
        return self._trail[-1]

    @property
    def _wanted(self) -> _Wanted:
        return _Wanted(self._period, self._view.group, merged(self._filter, self._view.chosen))

    @property
    def _can_go_back(self) -> bool:
        return len(self._trail) > 1 or self._filter != CostFilter() or self._sorting is not None

    @property
    def _table(self) -> RowTable:
        return self.query_one("#costs", RowTable)

    @property
    def _selected_key(self) -> str | None:
        table = self.query_one_optional("#costs", RowTable)
        return None if table is None else table.selected_key

    def _show_by(self, group: CostGroup) -> None:
        self._trail[-1] = self._view._replace(group=group)
        self._show_groups()
        self._go_elsewhere()

    def _go_elsewhere(self) -> None:
        """Read what is asked for now; the old figures stay until the new ones are there."""
        self._most_rows = PAGE_ROWS
        self._opens_when_read = False
        self._show_summary()
        self.request_refresh()

    def _sort(self, sorting: Sorting | None) -> None:
        self._sorting = sorting
        self._show()

    def _land(self) -> None:
        if self._lands_on is not None:
            keys = [row.key for row in self._table.rows]
            self._table.move_to(keys.index(self._lands_on) if self._lands_on in keys else 0)
            self._lands_on = None

    def _plan_read(self, wait_s: float) -> None:
        if not self._is_read_planned:
            self._is_read_planned = True
            self.set_timer(wait_s, self._read_planned, name="read")

    def _read_planned(self) -> None:
        self._is_read_planned = False
        self.request_refresh()

    async def _look_at_import(self) -> None:
        """Show how far an import is; its file is told anew without a change of the database."""
        if self._shown is None or not self.is_current:
            return
        self._import = find_running_import((await self.services()).paths.import_progress)
        self.set_class(self._import is not None, "-importing")
        self._show_import()

    def _show_import(self) -> None:
        if self._import is not None:
            line = self.query_one("#import", Static)
            width = self.size.width - line.styles.padding.width
            line.update(import_content(self._import.progress, width), layout=False)

    def _show(self) -> None:
        shown = self._shown
        if shown is None:
            return
        is_everything = len(self._trail) == 1 and self._filter == CostFilter()
        is_empty = is_everything and not shown.chart.totals.answers and not shown.compared.totals.answers
        with self.app.batch_update():
            self.set_class(is_empty, "-empty")
            self.set_class(bool(shown.budgets), "-budgeted")
            self.query_one("#budgets", Static).update(budget_content(shown.budgets))
            self._show_limits()
            today = date.fromisoformat(str(shown.compared.since_day)) + timedelta(days=COMPARED_DAYS - 1)
            self._show_tiles(shown, today)
            self._show_chart(shown, today)
            self._show_groups()
            self._table.sorting = self._sorting
            self._table.rows = cost_rows(
                self._view.group,
                shown.table.buckets,
                is_by_tokens=self._measure.is_by_tokens,
                money=self._measure.money,
                sorting=self._sorting,
                limit=self._most_rows,
            )
            self._show_summary()
        self.refresh_bindings()

    def _show_limits(self) -> None:
        """Show the windows, with the time that is left of each."""
        if self._shown is None:
            return
        overview, now, money = self._shown.limits, self._clock.now(), self._measure.money
        is_filtered = self._wanted.chosen != CostFilter()
        if self.has_class("-low"):
            line = limit_line(overview, now, money, is_filtered=is_filtered)
            lines = [line] if line else []
        else:
            most = max(1, self.size.height // _ROWS_FOR_A_WINDOW)
            lines = limit_lines(overview, now, money, most=most, is_filtered=is_filtered)
        self.set_class(bool(lines), "-limited")
        self.query_one("#limits", Static).update(Content("\n").join(lines))

    def _show_tiles(self, shown: CostSnapshot, today: date) -> None:
        days = {date.fromisoformat(bucket.group): bucket.sums for bucket in shown.compared.buckets}
        for number, tile in enumerate(tiles_of(today)):
            content = tile.content(days, today, is_by_tokens=self._measure.is_by_tokens, money=self._measure.money)
            self.query_one(f"#tile-{number}", Static).update(content, layout=False)

    def _show_chart(self, shown: CostSnapshot, today: date) -> None:
        chart = self.query_one(StackedBars)
        models = dearest_models(shown.chart.buckets, is_by_tokens=self._measure.is_by_tokens)
        chart.bars = bars_of(shown.chart, PERIODS[self._period], today, models, self._measure)
        # The same bars may stand for tokens now.
        chart.refresh()
        legend = legend_content(models, is_patterned=chart.is_patterned)
        self.query_one("#legend", Static).update(legend, layout=False)

    def _amount_text(self, amount: int) -> str:
        return self._measure.text(amount)

    def _show_groups(self) -> None:
        words: list[tuple[str, str]] = []
        end, self._group_cells = 0, []
        for group in _GROUPS:
            is_current = group is self._view.group
            word = f" {_GROUP_WORDS[group]} "
            words.extend(((word, "reverse bold" if is_current else "$text-muted"), (" ", "")))
            end += len(word) + 1
            self._group_cells.append((end, group))
        if self._shown is not None:
            words.append((f"  {activity_line(self._shown.activity)}", "$text-muted"))
        self.query_one("#groups", Static).update(Content.assemble(*words), layout=False)

    def _show_summary(self) -> None:
        parts: list[tuple[str, str]] = [("Costs", "bold")]
        if self._view.title:
            parts.append((f" › {even_line(self._view.title, max_characters=_LONGEST_TITLE)}", "$primary"))
        if self._filter != CostFilter():
            parts.append((f"   {even_line(filter_words(self._filter), max_characters=_LONGEST_TITLE)}", "$primary"))
        parts.append((f"   {PERIODS[self._period].name}", "$text-muted"))
        if self._shown is not None:
            table, measure = self._shown.table, self._measure
            tokens = f"{count_text(table.totals.total_tokens)} tokens"
            cost = measure.money.text(table.totals.known_cost_nano) or "?"
            parts.append((f"   {tokens if measure.is_by_tokens else cost}", ""))
            if not table.buckets and self._can_go_back:
                parts.append(("   nothing of this choice; esc takes it back", "$text-muted"))
            if table.totals.unpriced_answers:
                parts.append((f"   {table.totals.unpriced_answers:,} unpriced · agentmon prices set", "$warning"))
            if table.totals.reported_answers:
                parts.append((f"   {table.totals.reported_answers:,} as reported", "$text-muted"))
            if self._sorting is not None:
                way = "falling" if self._sorting.is_descending else "rising"
                name = COST_COLUMNS[self._sorting.column].heading.lower()
                parts.append((f"   by {name}, {way}", "$text-muted"))
            parts.append((f"   {table.zone_name}", "$text-muted"))
        self.query_one("#summary", Static).update(Content.assemble(*parts), layout=False)

    def _show_time(self) -> None:
        self.query_one(StatusBar).time = self._clock.now().astimezone()
        self._show_limits()


def _narrowed(view: _View, key: str) -> CostFilter:
    if view.group is CostGroup.MODEL:
        return replace(view.chosen, model=key)
    if view.group is CostGroup.AGENT:
        return replace(view.chosen, agent_slug=key)
    return replace(view.chosen, project=key)
