"""What is read for a report of costs: the smallest tables of sums that tell enough, else the answers."""

from __future__ import annotations

from calendar import monthrange
from datetime import date, timedelta
from operator import add
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from agentmon.domain.costs import CostGroup, CostPart, CostSums
from agentmon.domain.local_days import SLICE_MS
from agentmon.store.usage_sums import SUMMED, SUMS_OF_ANSWERS, SUMS_OF_SUMS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from agentmon.domain.costs import CostFilter
    from agentmon.domain.local_days import LocalDays

_OF_ROWS: Final[Mapping[CostGroup, str]] = {
    CostGroup.TASK: "coalesce(e.task_id, '')",
    CostGroup.SESSION: "u.session_id",
    CostGroup.EXECUTION: "coalesce(u.execution_id, '')",
}
_OF_SUMS: Final[Mapping[CostGroup, str]] = {
    **_OF_ROWS,
    CostGroup.DAY: "u.day_local",
    CostGroup.WEEK: "date(u.day_local, 'weekday 0', '-6 days')",
    CostGroup.MONTH: "u.month_local",
    CostGroup.AGENT: "''",
    CostGroup.MODEL: "u.model",
    CostGroup.PROJECT: "u.project",
}
_OF_ANSWERS: Final[Mapping[CostGroup, str]] = {
    **_OF_ROWS,
    CostGroup.DAY: f"u.at_ms / {SLICE_MS}",
    CostGroup.WEEK: f"u.at_ms / {SLICE_MS}",
    CostGroup.MONTH: f"u.at_ms / {SLICE_MS}",
    CostGroup.AGENT: "''",
    CostGroup.MODEL: "u.model",
    CostGroup.PROJECT: "u.project",
}
OF_TIME: Final = frozenset({CostGroup.DAY, CostGroup.WEEK, CostGroup.MONTH})
"""What is named by days."""
_OF_DAYS: Final = frozenset({CostGroup.DAY, CostGroup.WEEK})
_COLUMNS: Final = ", ".join(f"u.{name}" for name in SUMMED)
SLUGS: Final = "SELECT id, slug FROM agents"
_MONTHS: Final = 12
_FIRST_DAY: Final = date.min.isoformat()
_LAST_DAY: Final = date.max.isoformat()


class CostQuery(NamedTuple):
    """A statement with the values of its marks."""

    statement: str
    parameters: tuple[object, ...]


def cost_query(group: CostGroup, chosen: CostFilter, days: LocalDays, *, are_stored_days: bool) -> CostQuery:
    """Return what reads name, id of the agent, model and what ``SUMMED`` names, in no order.

    The name is that of the group, but empty for agents, and the slice of time for days, weeks and months in another
    zone than that of the sums. The same name, agent and model may come more than once.
    """
    has_days = group in OF_TIME or chosen.since_day is not None or chosen.until_day is not None
    if are_stored_days or not has_days:
        return stored_cost_query(group, chosen)
    conditions = {"u.success": (), **_moments(chosen, days), **_kinds(chosen)}
    return _read(_OF_ANSWERS[group], group, "llm_interactions", SUMS_OF_ANSWERS, conditions)


def stored_cost_query(group: CostGroup, chosen: CostFilter) -> CostQuery:
    """Return the ``cost_query`` in the days of the sums."""
    reads = _of_sums(group, chosen)
    return CostQuery(
        " UNION ALL ".join(read.statement for read in reads),
        tuple(value for read in reads for value in read.parameters),
    )


def cost_parts(
    group: CostGroup,
    rows: Sequence[Sequence[Any]],
    slugs: Mapping[str, str],
    name_of: Callable[[object], str] | None,
) -> tuple[CostPart, ...]:
    """Return what rows of a ``cost_query`` tell, by name, slug and model; those of the same part are added up.

    Args:
        group: By what they are.
        rows: As the query gives them.
        slugs: Those of agents by their ids.
        name_of: Makes the name of a group of what the rows have; None takes it as it is.
    """
    found: dict[tuple[str, str, str], list[int]] = {}
    for name, agent_id, model, *numbers in rows:
        slug = slugs.get(agent_id, "")
        key = (slug if group is CostGroup.AGENT else name if name_of is None else name_of(name), slug, model)
        before = found.get(key)
        found[key] = numbers if before is None else list(map(add, before, numbers))
    return tuple(
        CostPart(group=name, agent_slug=slug, model=model, sums=CostSums(*numbers))
        for (name, slug, model), numbers in sorted(found.items())
    )


def _of_sums(group: CostGroup, chosen: CostFilter) -> list[CostQuery]:
    """Return what is to be read from the smallest tables that tell enough."""
    kinds, days = _kinds(chosen), (chosen.since_day, chosen.until_day)
    has_projects = bool(chosen.project) or group is CostGroup.PROJECT
    if group in _OF_ROWS:
        spans = [("session_usage", _days(*days))]
    elif group in _OF_DAYS or (not has_projects and group is not CostGroup.MONTH):
        spans = [("daily_usage" if has_projects else "daily_model_usage", _days(*days))]
    else:
        months, ends = _whole_months(*days)
        spans = [] if months is None else [("monthly_usage", {"u.month_local BETWEEN ? AND ?": months})]
        spans += [("daily_usage" if has_projects else "daily_model_usage", _days(*end)) for end in ends]
    return [
        _read(
            "substr(u.day_local, 1, 7)" if group is CostGroup.MONTH and table != "monthly_usage" else _OF_SUMS[group],
            *(group, table, SUMS_OF_SUMS, {**span, **kinds}),
        )
        for table, span in spans
    ]


def _read(
    name: str, group: CostGroup, table: str, sums: str, conditions: Mapping[str, tuple[object, ...]]
) -> CostQuery:
    joined = " LEFT JOIN executions e ON e.id = u.execution_id" if group is CostGroup.TASK else ""
    is_summed = table == "daily_model_usage" and group is CostGroup.DAY
    return CostQuery(
        f"SELECT {name}, u.agent_id, u.model, {_COLUMNS if is_summed else sums} FROM {table} u{joined} "
        f"WHERE {' AND '.join(conditions) or 'true'}{'' if is_summed else ' GROUP BY 1, 2, 3'}",
        tuple(value for values in conditions.values() for value in values),
    )


def _whole_months(
    since_day: str | None, until_day: str | None
) -> tuple[tuple[str, str] | None, list[tuple[str | None, str | None]]]:
    """Return the first and the last whole month of a time, None when there is none, and the days around them."""
    first, last = date.fromisoformat(since_day or _FIRST_DAY), date.fromisoformat(until_day or _LAST_DAY)
    first_month, last_month = _number(first) + (first.day > 1), _number(last) - (last.day < _length(last))
    if first_month > last_month:
        return None, [(since_day, until_day)]
    ends: list[tuple[str | None, str | None]] = []
    if first.day > 1:
        ends.append((first.isoformat(), first.replace(day=_length(first)).isoformat()))
    if last.day < _length(last):
        ends.append((last.replace(day=1).isoformat(), last.isoformat()))
    return (_month(first_month), _month(last_month)), ends


def _number(day: date) -> int:
    return day.year * _MONTHS + day.month - 1


def _month(number: int) -> str:
    return f"{number // _MONTHS:04}-{number % _MONTHS + 1:02}"


def _length(day: date) -> int:
    return monthrange(day.year, day.month)[1]


def _days(since_day: str | None, until_day: str | None) -> dict[str, tuple[object, ...]]:
    spans: dict[str, tuple[object, ...]] = {}
    if since_day is not None:
        spans["u.day_local >= ?"] = (since_day,)
    if until_day is not None:
        spans["u.day_local <= ?"] = (until_day,)
    return spans


def _moments(chosen: CostFilter, days: LocalDays) -> dict[str, tuple[object, ...]]:
    spans: dict[str, tuple[object, ...]] = {}
    if chosen.since_day is not None:
        spans["u.at_ms >= ?"] = (days.begin_ms(chosen.since_day),)
    if chosen.until_day is not None and chosen.until_day != _LAST_DAY:
        day_after = date.fromisoformat(chosen.until_day) + timedelta(days=1)
        spans["u.at_ms < ?"] = (days.begin_ms(day_after.isoformat()),)
    return spans


def _kinds(chosen: CostFilter) -> dict[str, tuple[object, ...]]:
    kinds: dict[str, tuple[object, ...]] = {}
    if chosen.agent_slug:
        kinds["u.agent_id IN (SELECT id FROM agents WHERE slug = ?)"] = (chosen.agent_slug,)
    if chosen.model:
        kinds["u.model = ?"] = (chosen.model,)
    if chosen.project:
        below = chosen.project.rstrip("/") + "/"
        kinds["(u.project = ? OR substr(u.project, 1, ?) = ?)"] = (chosen.project, len(below), below)
    return kinds
