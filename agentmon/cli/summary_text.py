"""Summaries as tables and as documents."""

from collections.abc import Mapping, Sequence

from agentmon.cli.columns import fill, fit
from agentmon.cli.cost_text import cost_cell
from agentmon.domain.amounts import NANO, MoneyFormat, count_text
from agentmon.domain.costs import CostSums
from agentmon.domain.letters import columns_of
from agentmon.domain.plain_text import plain_line
from agentmon.domain.summaries import Activity, ProjectSummary, Spending, SummaryPeriod
from agentmon.services.summaries import DailyReport, ProjectReport, SummaryTime

_LISTS = {SummaryPeriod.DAY: "daily", SummaryPeriod.WEEK: "weekly", SummaryPeriod.MONTH: "monthly"}
_PROJECT_WIDTH = 44
_NARROWEST_LAST = 10


def daily_table(report: DailyReport, money: MoneyFormat) -> list[str]:
    """Return the lines of a table with its sums last; users are named only where there is more than one."""
    has_users = len({one.user_id for one in report.summaries}) > 1
    activity = Activity.of_all(one.activity for one in report.summaries)
    spending = sum((one.spending for one in report.summaries), Spending())
    headings = ("SESSIONS", "TOOL CALLS", "OK", "BLOCKED", "TOKENS", "COST")
    named = [(one.date, plain_line(one.user, max_characters=30)) for one in report.summaries]
    names = [(report.time.period.value.upper(), "USER"), *named, ("total", "")]
    counts = [
        headings,
        *(_daily_cells(one.activity, one.spending, money) for one in report.summaries),
        _daily_cells(activity, spending, money),
    ]
    rows = [(*(name if has_users else name[:1]), *cells) for name, cells in zip(names, counts, strict=True)]
    return _aligned(rows, left={0, 1} if has_users else {0})


def project_table(report: ProjectReport, money: MoneyFormat, width: int) -> list[str]:
    """Return the lines of a table; users are counted only where not all projects have exactly one."""
    has_users = any(one.active_users != 1 for one in report.summaries)
    headings = (report.time.period.value.upper(), "PROJECT", "USERS", "COST", "TOOL CALLS", "MODELS")
    rows = [headings, *(_project_cells(one, money) for one in report.summaries)]
    if not has_users:
        rows = [(*row[:2], *row[3:]) for row in rows]
    return _aligned(rows, left={0, 1, len(rows[0]) - 2, len(rows[0]) - 1}, width=width)


def daily_document(report: DailyReport, money: MoneyFormat) -> dict[str, object]:
    """Return the summaries as JSON; amounts in dollars, whatever the text shows."""
    return {
        _LISTS[report.time.period]: [
            {"date": one.date, "user": one.user, "user_id": one.user_id, **_daily_form(one.activity, one.spending)}
            for one in report.summaries
        ],
        "totals": _daily_form(
            Activity.of_all(one.activity for one in report.summaries),
            sum((one.spending for one in report.summaries), Spending()),
        ),
        **_time_form(report.time, money),
    }


def project_document(report: ProjectReport, money: MoneyFormat) -> dict[str, object]:
    """Return the summaries of projects as JSON; amounts in dollars, whatever the text shows."""
    return {
        "projects": [
            {
                "workspace": one.workspace,
                "period": one.period.value,
                "date": one.date,
                "active_users": one.active_users,
                **_cost_form("total_cost", one.spending.total_cost_nano),
                "unpriced_answers": one.spending.unpriced_answers,
                "top_models": [
                    {"model": model.model, **_cost_form("cost", model.cost_nano)} for model in one.top_models
                ],
                "top_operations": [{"type": kind.type.value, "count": kind.count} for kind in one.top_operations],
            }
            for one in report.summaries
        ],
        **_time_form(report.time, money),
    }


def _daily_cells(activity: Activity, spending: Spending, money: MoneyFormat) -> tuple[str, ...]:
    percent = activity.success_percent
    return (
        f"{activity.session_count:,}",
        f"{activity.operation_count:,}",
        "" if percent is None else f"{percent} %",
        f"{activity.blocked_operations:,}" if activity.blocked_operations else "",
        count_text(spending.total_tokens),
        _cost(spending, money),
    )


def _project_cells(one: ProjectSummary, money: MoneyFormat) -> tuple[str, ...]:
    models = (
        f"{model.model} {'unpriced' if model.cost_nano is None else money.fine_text(model.cost_nano)}"
        for model in one.top_models
    )
    return (
        one.date,
        fit(plain_line(one.workspace, max_characters=300) or "no project known", _PROJECT_WIDTH),
        str(one.active_users),
        _cost(one.spending, money),
        ", ".join(f"{kind.count:,} {kind.type.value}" for kind in one.top_operations),
        plain_line(", ".join(models), max_characters=300),
    )


def _cost(spending: Spending, money: MoneyFormat) -> str:
    if not spending.answers:
        return ""
    return cost_cell(
        CostSums(answers=spending.answers, cost_nano=spending.cost_nano, unpriced_answers=spending.unpriced_answers),
        money,
    )


def _aligned(rows: Sequence[tuple[str, ...]], *, left: set[int], width: int | None = None) -> list[str]:
    """Return lines of columns, numbers to the right; with a width the last column takes what the others leave."""
    last = len(rows[0]) - 1
    widths = [max(columns_of(row[index]) for row in rows) for index in range(last + 1)]
    if width is not None:
        widths[last] = max(_NARROWEST_LAST, width - sum(widths[:last]) - 2 * last)
    return [
        "  ".join(
            fill(cell, widths[index]) if index in left else " " * (widths[index] - columns_of(cell)) + cell
            for index, cell in enumerate(row)
        ).rstrip()
        for row in rows
    ]


def _daily_form(activity: Activity, spending: Spending) -> dict[str, object]:
    return {
        "session_count": activity.session_count,
        "operation_count": activity.operation_count,
        "successful_operations": activity.successful_operations,
        "failed_operations": activity.failed_operations,
        "blocked_operations": activity.blocked_operations,
        "success_rate": activity.success_rate,
        "total_tokens": spending.total_tokens,
        **_cost_form("total_cost", spending.total_cost_nano),
        "unpriced_answers": spending.unpriced_answers,
    }


def _cost_form(name: str, cost_nano: int | None) -> Mapping[str, object]:
    return {name: None if cost_nano is None else cost_nano / NANO, f"{name}_nano": cost_nano}


def _time_form(time: SummaryTime, money: MoneyFormat) -> dict[str, object]:
    return {"timezone": time.zone_name, "since": time.since_day, "until": time.until_day, **money.named}
