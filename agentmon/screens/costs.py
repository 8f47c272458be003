"""The place that shows what the agents cost: now, over time, and by what."""

from __future__ import annotations

from dataclasses import replace
from datetime import date, timedelta
from time import monotonic
from typing import TYPE_CHECKING, ClassVar, Final, NamedTuple

from textual.containers import Horizontal
from textual.content import Content
from textual.widgets import Static

from agentmon.domain.amounts import DOLLARS, count_text, duration_text, size_text
from agentmon.domain.clock import SystemClock
from agentmon.domain.costs import CostFilter, CostGroup, CostSums
from agentmon.domain.ids import TaskId
from agentmon.screens.bindings import COSTS
from agentmon.screens.budget_line import budget_content
from agentmon.screens.cost_rows import COST_COLUMNS, amount_of, cost_rows, tiles_of
from agentmon.screens.frame import ServiceScreen
from agentmon.widgets.key_footer import KeyFooter
from agentmon.widgets.row_table import RowTable
from agentmon.widgets.stacked_bars import SERIES, Bar, StackedBars
from agentmon.widgets.status_line import StatusBar

if TYPE_CHECKING:
    from collections.abc import Sequence

    from textual import events
    from textual.app import ComposeResult
    from textual.binding import BindingType

    from agentmon.domain.budgets import BudgetState
    from agentmon.domain.clock import Clock
    from agentmon.screens.frame import ServicesGetter, WorkspaceGetter
    from agentmon.services.costs import CostBucket, CostReport
    from agentmon.worker.import_progress import RunningImport


class _Period(NamedTuple):
    """What the chart and the table cover."""

    name: str
    group: CostGroup
    last: int


class _View(NamedTuple):
    """What the table shows: the costs of a choice by something."""

    group: CostGroup
    chosen: CostFilter
    title: str
    """What was chosen; empty for everything."""


_PERIODS: Final = (
    _Period("30 days", CostGroup.DAY, 30),
    _Period("26 weeks", CostGroup.WEEK, 26),
    _Period("12 months", CostGroup.MONTH, 12),
)
_GROUPS: Final = (CostGroup.MODEL, CostGroup.AGENT, CostGroup.PROJECT, CostGroup.SESSION, CostGroup.TASK)
_GROUP_WORDS: Final = {
    CostGroup.MODEL: "models",
    CostGroup.AGENT: "agents",
    CostGroup.PROJECT: "projects",
    CostGroup.SESSION: "sessions",
    CostGroup.TASK: "tasks",
}
_COMPARED_DAYS: Final = 62
"""This month and the one before it."""
_READ_INTERVAL_S: Final = 1.0
"""Answers of a hundred agents would have the sums read again ten times a second."""
_IMPORT_LOOK_S: Final = 1.0
_CLOCK_INTERVAL_S: Final = 20.0
_CHART_FROM_HEIGHT: Final = 30
_OTHERS: Final = SERIES - 1
_EMPTY: Final = (
    ("No usage yet.\n\n", "bold"),
    ("What Claude Code, Codex and Gemini CLI wrote down on this machine is read by the worker;\n", ""),
    ("agentmon costs import", "$primary bold"),
    (" reads it now and says which folders it looks into.", ""),
)


class CostsScreen(ServiceScreen[None]):
    """Today, this week and this month; bars over time; a table that is followed down to single answers."""

    CSS_PATH = "costs.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [*COSTS]
    AUTO_FOCUS = "#costs"

    def __init__(self, services: ServicesGetter, workspace: WorkspaceGetter, *, clock: Clock | None = None) -> None:
        super().__init__(services, workspace)
        self._clock = clock or SystemClock()
        self._period = 0
        self._is_by_tokens = False
        self._money = DOLLARS
        self._trail: list[_View] = [_View(CostGroup.MODEL, CostFilter(), "")]
        self._shown: tuple[CostReport, CostReport, CostReport] | None = None
        """Of the days that are compared, of the chart, and of the table."""
        self._read_for: tuple[int, _View] | None = None
        self._read_at = float("-inf")
        self._is_read_planned = False

    def compose(self) -> ComposeResult:
        """Yield summary, tiles, chart and table."""
        yield StatusBar(id="status")
        yield Static(id="summary")
        with Horizontal(id="tiles"):
            yield from (Static(id=f"tile-{number}") for number in range(3))
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
        self._show_time()
        self._show_summary()

    def on_resize(self, event: events.Resize) -> None:
        """Leave the chart out where there is no room for it."""
        self.set_class(event.size.height < _CHART_FROM_HEIGHT, "-low")

    async def refresh_snapshot(self) -> None:
        """Read the sums; at most once a second while nothing else is asked for."""
        wanted = (self._period, self._view)
        if wanted == self._read_for and monotonic() - self._read_at < _READ_INTERVAL_S:
            self._plan_read()
            return
        services = await self.services()
        workspace = await self.workspace()
        page = await services.board.page(workspace, ())
        status_bar = self.query_one(StatusBar)
        status_bar.place = page.workspace_name
        status_bar.numbers = page.status_line
        self.is_queue_paused = page.status_line.is_paused
        self._money = page.status_line.money
        period, chosen = _PERIODS[self._period], self._view.chosen
        compared = await services.costs.report(CostGroup.DAY, chosen, last=_COMPARED_DAYS)
        chart = await services.costs.report(period.group, chosen, last=period.last)
        table = await services.costs.report(self._view.group, replace(chosen, since_day=chart.since_day))
        self._show_budgets(await services.budgets.states())
        self._read_for, self._read_at = wanted, monotonic()
        if wanted != (self._period, self._view):
            self.request_refresh()
            return
        self._shown = (compared, chart, table)
        self._show()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:  # noqa: ARG002 - Textual's
        """Offer what the row under the cursor allows."""
        if action == "open_row":
            return True if self._selected_key else None
        if action == "back":
            return True if len(self._trail) > 1 else None
        return True

    def action_open_row(self) -> None:
        """Follow the row under the cursor."""
        self._table.open_selected()

    def action_back(self) -> None:
        """Show what was shown before a row was followed."""
        if len(self._trail) > 1:
            self._trail.pop()
            self.request_refresh()

    def action_go_group(self, steps: int) -> None:
        """Sum up by something else."""
        view = self._view
        at = (_GROUPS.index(view.group) + steps) % len(_GROUPS)
        self._trail[-1] = view._replace(group=_GROUPS[at])
        self._show_groups()
        self.request_refresh()

    def action_change_period(self) -> None:
        """Show days, weeks or months."""
        self._period = (self._period + 1) % len(_PERIODS)
        self._show_summary()
        self.request_refresh()

    def action_toggle_tokens(self) -> None:
        """Compare tokens instead of money, and back."""
        self._is_by_tokens = not self._is_by_tokens
        self._show()

    def action_go_row(self, rows: int) -> None:
        """Move the cursor by rows."""
        self._table.move_by(rows)

    def action_go_end(self, direction: int) -> None:
        """Move the cursor to the first or the last row."""
        self._table.go_end(direction)

    def action_go_page(self, direction: int) -> None:
        """Move the cursor by half a screenful."""
        self._table.go_page(direction)

    def on_row_table_highlighted(self, message: RowTable.Highlighted) -> None:
        """Offer what fits the row."""
        message.stop()
        self.refresh_bindings()

    def on_row_table_opened(self, message: RowTable.Opened) -> None:
        """Follow a model, an agent or a project to its sessions, a session to its answers, a task to its page."""
        message.stop()
        key, view = message.key, self._view
        if not key or self._shown is None:
            return
        if view.group is CostGroup.SESSION:
            self.open_dialog(self._show_answers(key), name="answers")
        elif view.group is CostGroup.TASK:
            from agentmon.screens.task_page import TaskPage  # noqa: PLC0415 - not needed before

            self.app.push_screen(
                TaskPage(task_id=TaskId(key), services=self.services, workspace=self.workspace, clock=self._clock)
            )
        else:
            label = next((bucket.label for bucket in self._shown[2].buckets if bucket.group == key), key)
            title = f"{view.title} › {label}" if view.title else label
            self._trail.append(_View(CostGroup.SESSION, _narrowed(view, key), title))
            self.request_refresh()

    async def _show_answers(self, session_id: str) -> None:
        from agentmon.screens.answers_dialog import AnswersDialog  # noqa: PLC0415 - not needed before

        services = await self.services()
        answers = await services.costs.explain(session_id)
        await self.ask(AnswersDialog(answers, now=self._clock.now(), money=self._money))

    @property
    def _view(self) -> _View:
        return self._trail[-1]

    @property
    def _table(self) -> RowTable:
        return self.query_one("#costs", RowTable)

    @property
    def _selected_key(self) -> str | None:
        table = self.query_one_optional("#costs", RowTable)
        return None if table is None else table.selected_key

    def _plan_read(self) -> None:
        if not self._is_read_planned:
            self._is_read_planned = True
            self.set_timer(_READ_INTERVAL_S, self._read_planned, name="read")

    def _read_planned(self) -> None:
        self._is_read_planned = False
        self.request_refresh()

    def _look_at_import(self) -> None:
        if self._shown is not None and self._shown[0].running_import is not None and self.is_current:
            self._read_at = float("-inf")
            self.request_refresh()

    def _show(self) -> None:
        if self._shown is None:
            return
        compared, chart, table = self._shown
        is_empty = not chart.totals.answers and not compared.totals.answers and len(self._trail) == 1
        with self.app.batch_update():
            self.set_class(is_empty, "-empty")
            self._show_tiles(compared)
            self._show_chart(chart)
            self._show_groups()
            self._table.rows = cost_rows(
                self._view.group, table.buckets, is_by_tokens=self._is_by_tokens, money=self._money
            )
            self._show_summary()
        self.refresh_bindings()

    def _show_budgets(self, states: Sequence[BudgetState]) -> None:
        self.set_class(bool(states), "-budgeted")
        self.query_one("#budgets", Static).update(budget_content(states), layout=False)

    def _show_tiles(self, compared: CostReport) -> None:
        days = {date.fromisoformat(bucket.group): bucket.sums for bucket in compared.buckets}
        today = date.fromisoformat(str(compared.since_day)) + timedelta(days=_COMPARED_DAYS - 1)
        for number, tile in enumerate(tiles_of(today)):
            content = tile.content(days, today, is_by_tokens=self._is_by_tokens, money=self._money)
            self.query_one(f"#tile-{number}", Static).update(content, layout=False)

    def _show_chart(self, chart: CostReport) -> None:
        models = _dearest_models(chart.buckets, is_by_tokens=self._is_by_tokens)
        series = {model: number for number, model in enumerate(models[:_OTHERS])}
        known = {bucket.group: bucket for bucket in chart.buckets}
        period = _PERIODS[self._period]
        bars = []
        for begin in _begins(period, str(chart.since_day)):
            bucket = known.get(_name_of(period.group, begin))
            bars.append(Bar(_label(period.group, begin), self._parts(bucket, series)))
        # Setting it draws it anew, also when the same bars stand for tokens now.
        self.query_one(StackedBars).bars = tuple(bars)
        self.query_one(StackedBars).refresh()
        words: list[tuple[str, str]] = []
        for number, model in enumerate(models[: _OTHERS + 1]):
            name = (model or "no model told") if number < _OTHERS else f"{len(models) - _OTHERS} others"
            words.extend((("■ ", _SERIES_COLOURS[number]), (f"{name}   ", "$text-muted")))
        self.query_one("#legend", Static).update(Content.assemble(*words), layout=False)

    def _parts(self, bucket: CostBucket | None, series: dict[str, int]) -> tuple[tuple[int, int], ...]:
        amounts: dict[int, int] = {}
        for model, sums in () if bucket is None else bucket.models:
            number = series.get(model, _OTHERS)
            amount = sums.total_tokens if self._is_by_tokens else self._money.own_nano(sums.cost_nano)
            amounts[number] = amounts.get(number, 0) + amount
        return tuple(sorted(amounts.items()))

    def _amount_text(self, amount: int) -> str:
        return count_text(amount) if self._is_by_tokens else self._money.own_text(amount)

    def _show_groups(self) -> None:
        words: list[tuple[str, str]] = []
        for group in _GROUPS:
            is_current = group is self._view.group
            words.extend(((f" {_GROUP_WORDS[group]} ", "reverse bold" if is_current else "$text-muted"), (" ", "")))
        self.query_one("#groups", Static).update(Content.assemble(*words), layout=False)

    def _show_summary(self) -> None:
        parts: list[tuple[str, str]] = [("Costs", "bold")]
        if self._view.title:
            parts.append((f" › {self._view.title}", "$primary"))
        parts.append((f"   {_PERIODS[self._period].name}", "$text-muted"))
        if self._shown is not None:
            totals = self._shown[2].totals
            amount = (
                f"{count_text(totals.total_tokens)} tokens"
                if self._is_by_tokens
                else self._money.text(totals.cost_nano)
            )
            parts.append((f"   {amount}", ""))
            if totals.unpriced_answers:
                parts.append((f"   {totals.unpriced_answers:,} unpriced · agentmon prices set", "$warning"))
            if totals.reported_answers:
                parts.append((f"   {totals.reported_answers:,} as reported", "$text-muted"))
            parts.append((f"   {self._shown[2].zone_name}", "$text-muted"))
            if self._shown[0].running_import is not None:
                parts.append((f"   {_import_words(self._shown[0].running_import)}", "$secondary"))
        self.query_one("#summary", Static).update(Content.assemble(*parts), layout=False)

    def _show_time(self) -> None:
        self.query_one(StatusBar).time = self._clock.now().astimezone()


_SERIES_COLOURS: Final = ("$primary", "$secondary", "$warning", "$success", "$error", "$text-muted")


def _narrowed(view: _View, key: str) -> CostFilter:
    if view.group is CostGroup.MODEL:
        return replace(view.chosen, model=key)
    if view.group is CostGroup.AGENT:
        return replace(view.chosen, agent_slug=key)
    return replace(view.chosen, project=key)


def _dearest_models(buckets: Sequence[CostBucket], *, is_by_tokens: bool) -> list[str]:
    models: dict[str, CostSums] = {}
    for bucket in buckets:
        for model, sums in bucket.models:
            models[model] = models.get(model, CostSums()) + sums
    return sorted(models, key=lambda model: (-amount_of(models[model], is_by_tokens=is_by_tokens), model))


def _begins(period: _Period, since_day: str) -> list[date]:
    """Return the first days of all spans of the period."""
    first = date.fromisoformat(since_day)
    if period.group is CostGroup.DAY:
        return [first + timedelta(days=number) for number in range(period.last)]
    if period.group is CostGroup.WEEK:
        return [first + timedelta(weeks=number) for number in range(period.last)]
    months = first.year * 12 + first.month - 1
    return [date((months + number) // 12, (months + number) % 12 + 1, 1) for number in range(period.last)]


def _name_of(group: CostGroup, begin: date) -> str:
    return f"{begin:%Y-%m}" if group is CostGroup.MONTH else begin.isoformat()


def _label(group: CostGroup, begin: date) -> str:
    if group is CostGroup.MONTH:
        return f"{begin:%b}"
    return f"{begin:%b} {begin.day}" if begin.day == 1 or group is CostGroup.WEEK else str(begin.day)


def _import_words(running: RunningImport) -> str:
    progress = running.progress
    words = f"importing {progress.files:,}/{progress.all_files:,} files"
    if progress.all_bytes:
        words += f", {size_text(progress.read_bytes)} of {size_text(progress.all_bytes)}"
    if progress.seconds_left:
        words += f", {duration_text(progress.seconds_left)} left"
    return words
