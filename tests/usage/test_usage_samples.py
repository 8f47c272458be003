"""Every row and every sum of the samples is exact."""

from __future__ import annotations

import json
import random
import shutil
from collections import defaultdict
from datetime import datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

import pytest

from agentmon.domain.billing import Confidence
from agentmon.usage.prices.book import PriceBook
from agentmon.usage.sources import find_sources
from tests.usage.histories import SAMPLES, History, environ_of, sums

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from agentmon.domain.billing import BilledAnswer

EXPECTED: dict[str, Any] = json.loads((SAMPLES / "expected.json").read_text("utf-8"))
PRICES = PriceBook()
REST = "claude/projects/-home-dev-webshop/aaaaaaaa-1111-4111-8111-000000000001.jsonl"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    for name in ("claude", "claude-xdg", "codex"):
        shutil.copytree(SAMPLES / name, tmp_path / name)
    shutil.copytree(SAMPLES / "gemini", tmp_path / "gemini-home" / ".gemini")
    return tmp_path


def moment(answer: BilledAnswer, zone: str) -> datetime:
    return datetime.fromtimestamp(answer.at_ms / 1_000, ZoneInfo(zone))


def costs_of(answers: Iterable[BilledAnswer]) -> dict[str, object]:
    costs = [PRICES.price(answer).cost_nano for answer in answers]
    priced = sum(Decimal(cost) for cost in costs if cost is not None)
    return {"cost_usd": priced / 10**9, "unpriced_requests": costs.count(None)}


def all_sums(answers: Iterable[BilledAnswer]) -> dict[str, object]:
    told = list(answers)
    return {**sums(told), **costs_of(told)}


def with_exact_costs(expected: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    return {key: {**row, "cost_usd": Decimal(row["cost_usd"])} for key, row in expected.items()}


def grouped(history: History, name: Callable[[str, BilledAnswer], str]) -> dict[str, dict[str, object]]:
    groups: dict[str, list[BilledAnswer]] = defaultdict(list)
    for (agent, _), answer in history.answers.items():
        groups[name(agent, answer)].append(answer)
    return {key: all_sums(answers) for key, answers in groups.items()}


def total_of(history: History) -> dict[str, dict[str, object]]:
    return {"total": all_sums(history.answers.values())}


def row_of(agent: str, answer: BilledAnswer) -> dict[str, Any]:
    return {
        "agent": agent,
        "session": answer.session_ref,
        "project": answer.cwd,
        "model": answer.model,
        "ts": answer.at_ms,
        "input": answer.prompt_tokens,
        "output": answer.response_tokens,
        "cache_read": answer.cache_read_tokens,
        "cache_write_5m": answer.cache_write_5m_tokens,
        "cache_write_1h": answer.cache_write_1h_tokens,
        "reasoning": answer.reasoning_tokens,
        "web_search": answer.web_searches,
        "speed": answer.speed,
        "reported_cost_usd": answer.reported_cost_nano,
        "subagent": answer.is_subagent,
        "cost_usd": PRICES.price(answer).cost_nano,
    }


def expected_row(row: dict[str, Any]) -> dict[str, Any]:
    told = {name: value for name, value in row.items() if name != "case"}
    costs = {
        name: None if row[name] is None else Decimal(row[name]) * 10**9 for name in ("cost_usd", "reported_cost_usd")
    }
    return {
        **told,
        **costs,
        "ts": round(datetime.fromisoformat(row["ts"]).timestamp() * 1_000),
        "subagent": row["subagent"] is not None,
    }


def by_time(row: dict[str, Any]) -> tuple[Any, ...]:
    return row["agent"], row["session"], row["ts"], row["input"]


def test_every_row_of_the_samples_is_exact(home: Path) -> None:
    history = History().look(environ_of(home))

    rows = sorted((row_of(agent, answer) for (agent, _), answer in history.answers.items()), key=by_time)
    assert rows == sorted(map(expected_row, EXPECTED["ledger"]), key=by_time)


def test_every_sum_of_the_samples_is_exact(home: Path) -> None:
    history = History().look(environ_of(home))

    assert total_of(history) == with_exact_costs({"total": EXPECTED["total"]})
    assert grouped(history, lambda agent, _: agent) == with_exact_costs(EXPECTED["by_agent"])
    assert grouped(history, lambda _, answer: answer.model) == with_exact_costs(EXPECTED["by_model"])
    assert grouped(history, lambda agent, answer: f"{agent}:{answer.session_ref}") == with_exact_costs(
        EXPECTED["by_session"]
    )
    assert grouped(history, lambda agent, answer: f"{agent}:{moment(answer, 'UTC'):%Y-%m}") == with_exact_costs(
        EXPECTED["by_month_UTC"]
    )


def test_projects_are_those_of_the_sessions_and_of_the_answers(home: Path) -> None:
    history = History().look(environ_of(home))

    expected = with_exact_costs(EXPECTED["by_project"])
    assert grouped(history, lambda _, answer: answer.cwd) == expected
    assert grouped(history, lambda agent, answer: history.sessions[agent, answer.session_ref].cwd or "") == expected


@pytest.mark.parametrize("zone", ["UTC", "America/New_York", "Europe/Berlin", "Asia/Kolkata"])
def test_days_are_exact_in_every_zone(home: Path, zone: str) -> None:
    history = History().look(environ_of(home))

    assert grouped(history, lambda agent, answer: f"{agent}:{moment(answer, zone):%Y-%m-%d}") == with_exact_costs(
        EXPECTED[f"by_day_{zone}"]
    )


def test_a_second_look_finds_nothing_new(home: Path) -> None:
    history = History().look(environ_of(home))
    pieces = history.pieces

    history.look(environ_of(home))

    assert history.pieces == pieces


def test_the_rest_of_a_cut_line_adds_one_answer(home: Path) -> None:
    history = History().look(environ_of(home))
    pieces = history.pieces

    with (home / REST).open("ab") as appended:
        appended.write((SAMPLES / "claude_c07_rest.txt").read_bytes())
    history.look(environ_of(home))

    assert total_of(history) == with_exact_costs({"total": EXPECTED["after_c07"]["total"]})
    assert history.pieces == pieces + 1


def test_reading_all_again_changes_nothing(home: Path) -> None:
    history = History().look(environ_of(home))
    before = dict(history.answers)

    history.cursors.clear()
    history.look(environ_of(home))

    assert history.answers == before


@pytest.mark.parametrize("seed", range(5))
def test_any_order_of_the_files_gives_the_same_totals(home: Path, seed: int) -> None:
    sources = find_sources(environ_of(home))
    random.Random(seed).shuffle(sources)

    history = History().follow_all(sources)

    assert total_of(history) == with_exact_costs({"total": EXPECTED["total"]})
    assert grouped(history, lambda _, answer: answer.model) == with_exact_costs(EXPECTED["by_model"])


def test_models_that_are_assumed_are_marked_and_so_are_differences(home: Path) -> None:
    history = History().look(environ_of(home))

    marked = {key: answer.confidence for (_, key), answer in history.answers.items()}
    assert [key for key, sure in marked.items() if sure is Confidence.ASSUMED and not key.startswith("msg_")] == [
        "019a0000-0000-7000-8000-000000000003:1:1000:100:0:50:10",
        "019a0000-0000-7000-8000-000000000003:2:2500:600:0:90:20",
    ]
    assert Confidence.INCOMPLETE not in marked.values()


def test_damaged_lines_of_the_samples_are_counted(home: Path) -> None:
    assert History().look(environ_of(home)).problems == ["a damaged line"] * 3


def test_all_that_the_real_programs_wrote_is_read_without_a_problem(tmp_path: Path) -> None:
    captured = SAMPLES / "captured"
    for name in ("claude", "codex"):
        shutil.copytree(captured / name, tmp_path / name)
    shutil.copytree(captured / "gemini", tmp_path / "gemini-home" / ".gemini")

    history = History().look(environ_of(tmp_path))

    assert history.problems == []
    assert {agent: requests["requests"] for agent, requests in grouped(history, lambda agent, _: agent).items()} == {
        "claude": 11,
        "codex": 6,
        "gemini": 2,
    }
    assert all(answer.at_ms and answer.model and answer.session_ref for answer in history.answers.values())
