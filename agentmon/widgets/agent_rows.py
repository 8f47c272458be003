"""Agents as rows of a table: how each fares, what it runs, what it cost."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from agentmon.domain.agents import ToolType
from agentmon.domain.amounts import DOLLARS, MoneyFormat
from agentmon.domain.live_state import live_state, short_moment
from agentmon.widgets.row_sorting import RowSorter
from agentmon.widgets.row_table import Column, TableRow
from agentmon.widgets.state_words import STATE_STYLES, StateWords
from agentmon.widgets.text_rows import Span

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime, timedelta

    from agentmon.domain.agent_health import AgentHealth
    from agentmon.domain.agents import Agent
    from agentmon.widgets.row_table import Sorting

AGENT_COLUMNS: Final = (
    Column("State", 16),
    Column("Agent"),
    Column("Slug", 14, from_width=92),
    Column("Version", 10, from_width=56),
    Column("Can", 4, from_width=104, is_right=True),
    Column("Last run", 15, from_width=76),
    Column("Week", 8, from_width=64, is_right=True),
)
_STATE, _NAME, _SLUG, _VERSION, _CAN, _LAST, _WEEK = range(len(AGENT_COLUMNS))
_LOGGED_OUT: Final = "not logged in"
_UNITS: Final = (("d", 86_400), ("h", 3_600), ("m", 60), ("s", 1))


class KnownAgent(NamedTuple):
    """An agent and how it fares."""

    agent: Agent
    health: AgentHealth | None
    """None until it was looked at."""


def agent_state(known: KnownAgent, now: datetime) -> StateWords:
    """Return what a person should know of the agent first: gone, off, parked, logged out, running, or ready."""
    agent, health = known
    if _is_gone(known):
        return StateWords(
            "✗", "not found" if agent.is_active else "off, not found", "bad" if agent.is_active else "muted"
        )
    if not agent.is_active:
        return StateWords("○", "off", "muted")
    if agent.parked_until is not None and agent.parked_until > now:
        return StateWords("⏸", f"until {short_moment(agent.parked_until, now)}", "warning")
    if health is not None and health.running:
        limit = f" of {agent.max_concurrent}" if agent.max_concurrent else ""
        return StateWords(
            "●", f"{health.running} running" if not limit else f"{health.running}{limit} running", "running"
        )
    if health is not None and health.is_logged_in is False:
        return StateWords("◆", _LOGGED_OUT, "warning")
    return StateWords("✓", "ready", "good")


def last_run_words(health: AgentHealth | None, now: datetime) -> StateWords | None:
    """Return how its last run ended, and how long ago; None when nothing of it has ended."""
    if health is None or health.last_status is None or health.last_ended_at is None:
        return None
    state = live_state(health.last_status)
    return StateWords(state.glyph, f"{state.value} {age_text(now - health.last_ended_at)}", STATE_STYLES[state])


def age_text(age: timedelta) -> str:
    """Return how long something is ago, in its largest unit: ``now``, ``8s``, ``37m``, ``5h``, ``12d``."""
    whole = int(age.total_seconds())
    for unit, seconds in _UNITS:
        if whole >= seconds:
            return f"{whole // seconds}{unit}"
    return "now"


def week_text(health: AgentHealth | None, money: MoneyFormat) -> str:
    """Return what it cost in the last seven days; a question mark stands for answers without a known price."""
    if health is None:
        return ""
    if not health.cost_week_nano:
        return "" if health.is_cost_known else "?"
    return money.text(health.cost_week_nano) + ("" if health.is_cost_known else "+?")


def agent_rows(
    agents: Iterable[KnownAgent],
    now: datetime,
    *,
    money: MoneyFormat = DOLLARS,
    sorting: Sorting | None = None,
    words: str = "",
) -> tuple[TableRow, ...]:
    """Return a row for each agent.

    Args:
        agents: In any order.
        now: The present.
        money: How amounts are shown.
        sorting: Without it AI agents come first, and what is on before what is off.
        words: What was looked for; unsorted, the agents whose names have the first one come before all others.
    """
    ordered = AGENT_SORTER.ordered(agents, sorting)
    if words.strip() and sorting is None:
        first = words.casefold().split()[0]
        ordered.sort(key=lambda known: name_distance((known.agent.slug, known.agent.name.casefold()), first))
    rows = []
    for known in ordered:
        agent, health = known
        state, last = agent_state(known, now), last_run_words(health, now)
        ground = "text" if agent.is_active else "muted"
        cells = (
            Span(state.text, state.style),
            Span(agent.name, ground),
            Span(agent.slug, "muted"),
            Span(agent.version or "", "muted"),
            Span(str(len(agent.capabilities)) if agent.capabilities else "", "muted"),
            Span(last.text, last.style if agent.is_active else "muted") if last is not None else Span(""),
            Span(week_text(health, money), "muted"),
        )
        rows.append(TableRow(agent.slug, cells))
    return tuple(rows)


def has_words(agent: Agent, words: str) -> bool:
    """Whether each of the words is in the slug, the name, the description, the role, the package or the model."""
    fields = (agent.slug, agent.name, agent.description, agent.role, agent.package_name, agent.model, agent.tool_type)
    text = " ".join(field for field in fields if field).casefold()
    return all(word in text for word in words.casefold().split())


def name_distance(names: Iterable[str], word: str) -> int:
    """Return how far a word is from one of the names, all in lower case: 0 is the name itself, 3 is not in it."""
    return min(_distance(name, word) for name in names)


def _distance(name: str, word: str) -> int:
    if name == word:
        return 0
    if name.startswith(word):
        return 1
    return 2 if word in name else 3


def _is_gone(known: KnownAgent) -> bool:
    """Whether its program is not there; one that is started by its arguments alone has none."""
    agent, health = known
    is_not_found = health is not None and health.found_path is None and bool(agent.binary_path)
    return agent.missing_since is not None or is_not_found


def _usual_order(known: KnownAgent) -> tuple[object, ...]:
    agent = known.agent
    return (not agent.is_active, agent.tool_type is not ToolType.AI_AGENT, agent.name.casefold(), agent.slug)


def _trouble_order(known: KnownAgent) -> float:
    agent, health = known
    if _is_gone(known):
        return 0 if agent.is_active else 4
    if not agent.is_active:
        return 5
    if health is not None and health.is_logged_in is False:
        return 1
    return 2 if health is not None and health.running else 3


def _last_ended(known: KnownAgent) -> float:
    health = known.health
    return 0.0 if health is None or health.last_ended_at is None else health.last_ended_at.timestamp()


AGENT_SORTER: Final = RowSorter[KnownAgent](
    {
        _STATE: _trouble_order,
        _NAME: lambda known: known.agent.name.casefold(),
        _SLUG: lambda known: known.agent.slug,
        _CAN: lambda known: len(known.agent.capabilities),
        _LAST: _last_ended,
        _WEEK: lambda known: 0 if known.health is None else known.health.cost_week_nano or 0,
    },
    rising=(_STATE, _NAME, _SLUG),
    usual=_usual_order,
)
"""By how much each needs a person, by its names, by what it can be asked to do, by its last run, by its costs."""
