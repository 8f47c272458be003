"""The kept sums, and all that is read from them, are those of the answers, whatever happened to these."""

from __future__ import annotations

import itertools
import random
from contextlib import asynccontextmanager, closing
from datetime import date, timedelta
from typing import TYPE_CHECKING, Final
from zoneinfo import ZoneInfo

import pytest

from agentmon.domain.agents import ToolType
from agentmon.domain.budgets import Budget, BudgetAction, BudgetPeriod, BudgetScope, BudgetSpan, BudgetUnit
from agentmon.domain.clock import FakeClock
from agentmon.domain.costs import CostFilter, CostGroup
from agentmon.domain.ids import BudgetId
from agentmon.domain.local_days import LocalDays
from agentmon.store.budgets import BudgetRepository
from agentmon.store.usage_costs import CostRepository
from agentmon.store.usage_days import UsageDayRepository
from agentmon.store.usage_import import UsageImport
from agentmon.store.usage_sums import RECOUNT, SUMMED
from tests.seeds import seeds
from tests.store.conversation_place import ConversationPlace
from tests.store.queue_place import NOON, an_agent, opened_queue
from tests.store.random_usage import MODELS, ZONES, RandomUsage

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
    from pathlib import Path

Row = dict[str, object]

_TABLES: Final = ("session_usage", "daily_usage", "daily_model_usage", "monthly_usage")
_CHOICES: Final = tuple(
    CostFilter(since_day=since, until_day=until, agent_slug=slug, model=model, project=project)
    for (since, until), slug, model, project in itertools.product(
        [
            (None, None),
            ("2026-01-02", None),
            ("2026-01-15", "2026-03-20"),
            ("2026-02-01", "2026-02-28"),
            (None, "2026-03-31"),
            ("2026-01-03", "2026-01-30"),
            ("2026-03-01", "2026-01-01"),
            ("9999-12-05", "9999-12-31"),
            ("0001-01-01", "0001-01-15"),
        ],
        ["", "claude", "nobody"],
        ["", MODELS[0]],
        ["", "/w", "/w/"],
    )
)


@pytest.fixture
async def place(tmp_path: Path) -> AsyncIterator[ConversationPlace]:
    async with _opened(tmp_path) as opened:
        yield opened


@pytest.fixture
def files(place: ConversationPlace) -> Iterator[UsageImport]:
    with closing(UsageImport(place.database.path, zone_name="UTC", clock=FakeClock(NOON))) as store:
        yield store


@asynccontextmanager
async def _opened(folder: Path) -> AsyncIterator[ConversationPlace]:
    agents = [an_agent(slug, max_concurrent=0, tool_type=ToolType.AI_AGENT) for slug in ("claude", "codex")]
    async with opened_queue(folder / "a.db", agents, {"w": 0, "v": 0}) as queue:
        yield ConversationPlace(queue=queue)


@pytest.mark.parametrize("seed", seeds(8))
async def test_sums_and_totals_are_those_of_the_answers_after_each_change(
    place: ConversationPlace, files: UsageImport, seed: int
) -> None:
    usage = RandomUsage(place, files, random.Random(seed))
    for _ in range(40):
        change = await usage.change()

        assert _kept(place) == _recounted(place), change
        assert _totals(place) == _added_up(place), change


@pytest.mark.parametrize("seed", seeds(3, quick=0))
async def test_reports_by_anything_of_anything_in_any_zone_are_those_of_the_answers(
    place: ConversationPlace, files: UsageImport, seed: int
) -> None:
    chance = random.Random(seed)
    usage = RandomUsage(place, files, chance)
    for _ in range(60):
        await usage.change()
    stored = await UsageDayRepository(place.database).zone() or "UTC"
    answers = place.rows(
        "SELECT u.*, coalesce(a.slug, '') AS slug, coalesce(e.task_id, '') AS task_id FROM llm_interactions u "
        "LEFT JOIN agents a ON a.id = u.agent_id LEFT JOIN executions e ON e.id = u.execution_id"
    )
    assert answers

    for zone_name in (stored, chance.choice(ZONES)):
        days = LocalDays(ZoneInfo(zone_name))
        for group, chosen in itertools.product(CostGroup, chance.sample(_CHOICES, 30)):
            parts = await CostRepository(place.database).parts(group, chosen, days, are_stored_days=zone_name == stored)
            found = [
                (one.group, one.agent_slug, one.model, *(getattr(one.sums, name) for name in SUMMED)) for one in parts
            ]
            assert found == _parts(answers, group, chosen, days), (group, chosen, zone_name)


@pytest.mark.parametrize("seed", seeds(4))
async def test_what_was_spent_of_any_budget_is_what_its_answers_say(
    place: ConversationPlace, files: UsageImport, seed: int
) -> None:
    usage = RandomUsage(place, files, random.Random(seed))
    for _ in range(60):
        await usage.change()
    spans = [
        None,
        BudgetSpan(first_day="2026-01-01", last_day="2026-01-01"),
        BudgetSpan(first_day="2026-01-01", last_day="2026-01-31"),
        BudgetSpan(first_day="2026-01-12", last_day="2026-02-11"),
    ]
    wanted = [
        (budget, span)
        for budget in _budgets(place)
        for span in spans
        if span is not None or budget.period is BudgetPeriod.TOTAL
    ]

    uses = await BudgetRepository(place.database).uses(wanted)

    answers = place.rows(
        "SELECT u.*, e.task_id FROM llm_interactions u LEFT JOIN executions e ON e.id = u.execution_id"
    )
    roots = {str(row["id"]): str(row["root_path"]) for row in place.rows("SELECT id, root_path FROM workspaces")}
    assert [(use.spent, use.unpriced_answers) for use in uses] == [
        _spent(answers, budget, span, roots) for budget, span in wanted
    ]


def _kept(place: ConversationPlace) -> dict[str, list[Row]]:
    return {
        table: sorted(place.rows(f"SELECT * FROM {table}"), key=lambda row: [str(value) for value in row.values()])
        for table in _TABLES
    }


def _recounted(place: ConversationPlace) -> dict[str, list[Row]]:
    """Return the sums as plain Python adds up the answers."""
    answers = place.rows("SELECT * FROM llm_interactions")
    keys: Mapping[str, Callable[[Row], Row]] = {
        "session_usage": lambda one: {
            "day_local": one["day_local"],
            "session_id": one["session_id"],
            "execution_id": one["execution_id"] or "",
            "agent_id": one["agent_id"],
            "model": one["model"],
            "project": one["project"],
        },
        "daily_usage": lambda one: {name: one[name] for name in ("day_local", "agent_id", "model", "project")},
        "daily_model_usage": lambda one: {name: one[name] for name in ("day_local", "agent_id", "model")},
        "monthly_usage": lambda one: {
            "month_local": str(one["day_local"])[:7],
            **{name: one[name] for name in ("agent_id", "model", "project")},
        },
    }
    return {table: _summed(answers, keys[table]) for table in _TABLES}


def _summed(answers: Sequence[Row], key_of: Callable[[Row], Row]) -> list[Row]:
    found: dict[tuple[str, ...], list[Row]] = {}
    for one in answers:
        found.setdefault(tuple(map(str, key_of(one).values())), []).append(one)
    rows = [{**key_of(own[0]), **_sums(own)} for own in found.values()]
    return sorted(rows, key=lambda row: [str(value) for value in row.values()])


def _sums(answers: Sequence[Row]) -> dict[str, int]:
    counts = {name: sum(int(str(one.get(name) or 0)) for one in answers) for name in SUMMED}
    return counts | {
        "answers": len(answers),
        "unpriced_answers": sum(one["cost_nano"] is None for one in answers),
        "reported_answers": sum(one["cost_source"] == "reported" for one in answers),
    }


def _totals(place: ConversationPlace) -> tuple[list[Row], list[Row]]:
    return (
        place.rows("SELECT id, total_tokens AS tokens, total_cost_nano AS cost FROM sessions ORDER BY id"),
        place.rows("SELECT id, tokens_used AS tokens, cost_nano AS cost FROM executions ORDER BY id"),
    )


def _added_up(place: ConversationPlace) -> tuple[list[Row], list[Row]]:
    """Return the totals: answers with a price, else what the agent said of the execution."""
    tokens = "prompt_tokens + cache_read_tokens + cache_write_5m_tokens + cache_write_1h_tokens + response_tokens"
    said = "json_extract(s.metadata, '$.cost_said_of.\"' || e.id || '\"')"
    executions = place.rows(
        f"SELECT e.id, coalesce(sum({tokens}), 0) AS tokens, coalesce(sum(u.cost_nano), {said}) AS cost "
        "FROM executions e LEFT JOIN llm_interactions u ON u.execution_id = e.id "
        "LEFT JOIN sessions s ON s.id = e.session_id GROUP BY e.id ORDER BY e.id"
    )
    sessions = place.rows(
        f"SELECT s.id, coalesce(sum({tokens}), 0) AS tokens, coalesce(sum(u.cost_nano), 0) + ("
        f"SELECT coalesce(sum({said}), 0) FROM executions e WHERE e.session_id = s.id AND NOT EXISTS "
        "(SELECT 1 FROM llm_interactions o WHERE o.execution_id = e.id AND o.cost_nano IS NOT NULL)) AS cost "
        "FROM sessions s LEFT JOIN llm_interactions u ON u.session_id = s.id GROUP BY s.id ORDER BY s.id"
    )
    return sessions, executions


def _parts(
    answers: Sequence[Row], group: CostGroup, chosen: CostFilter, days: LocalDays
) -> list[tuple[str | int, ...]]:
    found: dict[tuple[str, str, str], list[Row]] = {}
    for one in answers:
        day, project = days.day_of(int(str(one["at_ms"]))), str(one["project"])
        below = chosen.project.rstrip("/") + "/"
        if (
            (chosen.since_day or "") <= day <= (chosen.until_day or "9")
            and chosen.agent_slug in {"", one["slug"]}
            and chosen.model in {"", one["model"]}
            and (not chosen.project or project == chosen.project or project.startswith(below))
        ):
            key = (_name(group, one, day), str(one["slug"]), str(one["model"]))
            found.setdefault(key, []).append(one)
    return [(*key, *(_sums(own)[name] for name in SUMMED)) for key, own in sorted(found.items())]


def _name(group: CostGroup, answer: Row, day: str) -> str:
    monday = date.fromisoformat(day) - timedelta(days=date.fromisoformat(day).weekday())
    names = {
        CostGroup.DAY: day,
        CostGroup.WEEK: monday.isoformat(),
        CostGroup.MONTH: day[:7],
        CostGroup.AGENT: answer["slug"],
        CostGroup.MODEL: answer["model"],
        CostGroup.PROJECT: answer["project"],
        CostGroup.TASK: answer["task_id"],
        CostGroup.SESSION: answer["session_id"],
        CostGroup.EXECUTION: answer["execution_id"] or "",
    }
    return str(names[group])


def _budgets(place: ConversationPlace) -> list[Budget]:
    scopes = [(BudgetScope.ALL, "")]
    scopes += [(BudgetScope.AGENT, agent.id) for agent in place.queue.agents.values()]
    scopes += [(BudgetScope.WORKSPACE, workspace_id) for workspace_id in place.queue.workspaces.values()]
    scopes += [(BudgetScope.TASK, str(row["id"])) for row in place.rows("SELECT id FROM tasks")]
    scopes += [(BudgetScope.EXECUTION, str(row["id"])) for row in place.rows("SELECT id FROM executions")]
    return [
        Budget(
            id=BudgetId(f"{scope}{scope_id}{period}{unit}{counts_cached}"),
            scope=scope,
            scope_id=scope_id,
            period=period,
            unit=unit,
            limit=1,
            counts_cached=counts_cached,
            action=BudgetAction.WARN,
            created_at=NOON,
        )
        for scope, scope_id in scopes
        for period in (BudgetPeriod.DAY, BudgetPeriod.TOTAL)
        for unit, counts_cached in (
            (BudgetUnit.MONEY, False),
            (BudgetUnit.TOKENS, False),
            (BudgetUnit.TOKENS, True),
        )
    ]


def _spent(
    answers: Sequence[Row], budget: Budget, span: BudgetSpan | None, roots: Mapping[str, str]
) -> tuple[int, int]:
    root = roots.get(budget.scope_id, "")
    own = [
        one
        for one in answers
        if (span is None or span.first_day <= str(one["day_local"]) <= span.last_day)
        and {
            BudgetScope.ALL: True,
            BudgetScope.AGENT: one["agent_id"] == budget.scope_id,
            BudgetScope.WORKSPACE: one["project"] == root or str(one["project"]).startswith(f"{root}/"),
            BudgetScope.TASK: one["task_id"] == budget.scope_id,
            BudgetScope.EXECUTION: one["execution_id"] == budget.scope_id,
        }[budget.scope]
    ]
    sums = _sums(own)
    if budget.unit is BudgetUnit.MONEY:
        return sums["cost_nano"], sums["unpriced_answers"]
    kinds = ["prompt_tokens", "cache_write_5m_tokens", "cache_write_1h_tokens", "response_tokens"]
    kinds += ["cache_read_tokens"] if budget.counts_cached else []
    return sum(sums[name] for name in kinds), 0


async def test_a_recount_of_right_sums_changes_nothing(place: ConversationPlace, files: UsageImport) -> None:
    usage = RandomUsage(place, files, random.Random(99))
    for _ in range(40):
        await usage.change()
    kept = _kept(place)
    assert all(kept.values())

    async with place.database.writing() as connection:
        for statement in RECOUNT:
            await connection.exec_driver_sql(statement)

    assert _kept(place) == kept
