from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from agentmon.domain.agent_health import AgentHealth
from agentmon.domain.agents import Agent, ToolType
from agentmon.domain.amounts import DOLLARS
from agentmon.domain.execution_status import ExecutionStatus
from agentmon.domain.programs import Program, ProgramKind
from agentmon.widgets.agent_rows import (
    KnownAgent,
    age_text,
    agent_rows,
    agent_state,
    has_words,
    last_run_words,
    week_text,
)
from agentmon.widgets.program_rows import found_programs, matching
from agentmon.widgets.row_table import Sorting
from tests.screen_stage import agent

NOW = datetime(2026, 3, 4, 14, 2, tzinfo=UTC)
FINE = AgentHealth(found_path="/usr/bin/git")


@pytest.mark.parametrize(
    ("one", "health", "words"),
    [
        (agent("git"), None, "✓ ready"),
        (agent("git"), FINE, "✓ ready"),
        (agent("git"), AgentHealth(), "✗ not found"),
        (replace(agent("git"), missing_since=NOW), FINE, "✗ not found"),
        (replace(agent("git"), is_active=False), AgentHealth(), "✗ off, not found"),
        (replace(agent("git"), is_active=False), FINE, "○ off"),
        (replace(agent("git"), parked_until=NOW + timedelta(hours=1)), FINE, "⏸ until 15:02"),
        (replace(agent("git"), parked_until=NOW - timedelta(hours=1)), FINE, "✓ ready"),
        (agent("git"), replace(FINE, running=1), "● 1 of 1 running"),
        (replace(agent("git"), max_concurrent=0), replace(FINE, running=3), "● 3 running"),
        (agent("git"), replace(FINE, is_logged_in=False), "◆ not logged in"),
        (replace(agent("command"), binary_path=""), AgentHealth(), "✓ ready"),
    ],
)
def test_the_state_of_an_agent_is_what_needs_a_person_most(one: Agent, health: AgentHealth | None, words: str) -> None:
    assert agent_state(KnownAgent(one, health), NOW).text == words


def test_agents_that_are_off_come_last_and_ai_agents_first() -> None:
    ai = replace(agent("zed"), tool_type=ToolType.AI_AGENT)
    off = replace(agent("able"), is_active=False)
    known = [KnownAgent(one, FINE) for one in (off, agent("make"), agent("git"), ai)]

    assert [row.key for row in agent_rows(known, NOW)] == ["zed", "git", "make", "able"]
    assert [row.key for row in agent_rows(known, NOW, sorting=Sorting(1))] == ["able", "git", "make", "zed"]
    assert [row.key for row in agent_rows(known, NOW, words="mak")] == ["make", "zed", "git", "able"]


def test_the_last_run_and_the_week_are_told_in_few_cells() -> None:
    ended = replace(FINE, last_status=ExecutionStatus.TIMED_OUT, last_ended_at=NOW - timedelta(hours=3, minutes=9))
    last = last_run_words(ended, NOW)

    assert last is not None
    assert last.text == "✗ timed out 3h"
    assert last_run_words(FINE, NOW) is None
    assert [age_text(timedelta(seconds=age)) for age in (0, 8, 61, 90_000)] == ["now", "8s", "1m", "1d"]
    costs = (None, 0, 4_210_000_000)
    assert [week_text(replace(FINE, cost_week_nano=cost), DOLLARS) for cost in costs] == ["", "", "$4.21"]
    assert week_text(replace(FINE, cost_week_nano=4_210_000_000, is_cost_known=False), DOLLARS) == "$4.21+?"
    assert week_text(replace(FINE, is_cost_known=False), DOLLARS) == "?"


def test_a_filter_looks_at_everything_one_may_remember_of_an_agent() -> None:
    one = replace(agent("git"), role="reviewer", package_name="dpkg:git", description="Looks at the repository")

    assert all(has_words(one, words) for words in ("", "GIT", "review dpkg", "repository"))
    assert not has_words(one, "git docker")


def program(name: str, *, seen: int = 0, **facts: object) -> Program:
    path = f"/usr/bin/{name}"
    first = NOW - timedelta(days=seen)
    fields: dict[str, object] = {"first_seen_at": first, "changed_at": first, "last_seen_at": NOW, "real_path": path}
    fields["kind"] = ProgramKind.BINARY
    return Program(path=path, name=name, **{**fields, **facts})  # type: ignore[arg-type] # named by tests


def test_what_is_new_is_told_beside_the_scan_before() -> None:
    before = NOW - timedelta(days=3)
    programs = [
        program("jq"),
        program("git", seen=3),
        program("make", seen=3, changed_at=NOW),
        program("nano", seen=3, last_seen_at=before, missing_since=NOW),
        program("awk", seen=3, shadowed_by="/opt/awk"),
        program("vi", seen=3, kind=ProgramKind.BROKEN),
        program("tar", seen=3),
    ]

    found = found_programs(programs, {"/usr/bin/git": "git"})

    assert {one.program.name: one.news.value for one in found} == {
        "jq": "new",
        "git": "agent",
        "make": "changed",
        "nano": "gone",
        "awk": "hidden",
        "vi": "broken",
        "tar": "",
    }
    assert {one.news.value for one in found_programs([program("jq"), program("git")], {})} == {""}


def test_the_program_of_the_very_name_comes_first() -> None:
    names = ("digit", "git", "git-lfs", "legit")
    found = found_programs([program(name, package_name=f"x{name}") for name in names], {})

    assert [one.program.name for one in matching(found, "git")] == ["git", "git-lfs", "digit", "legit"]
    assert [one.program.name for one in matching(found, "git lfs")] == ["git-lfs"]
    assert [one.program.name for one in matching(found, "xlegit")] == ["legit"]
