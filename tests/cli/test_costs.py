from __future__ import annotations

import csv
import io
import json
import shutil
import signal
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest

from tests.usage.histories import SAMPLES
from tests.usage.transcripts import answered, usage
from tests.waiting import wait_for

if TYPE_CHECKING:
    import subprocess

    from tests.cli.command_lines import CommandLine

EXPECTED: Final[Any] = json.loads((SAMPLES / "expected.json").read_text())
NAMES: Final = {
    "requests": "answers",
    "input": "inputTokens",
    "output": "outputTokens",
    "cache_read": "cacheReadTokens",
    "cache_write_5m": "cacheWrite5mTokens",
    "cache_write_1h": "cacheWrite1hTokens",
    "reasoning": "reasoningTokens",
    "web_search": "webSearches",
    "total_tokens": "totalTokens",
    "unpriced_requests": "unpricedAnswers",
}


@pytest.fixture(scope="module")
def costs(cli: CommandLine) -> CommandLine:
    """A command line in whose home the samples lie and are imported."""
    assert "no answer is known yet" in cli("costs").stderr
    assert f"opencode {cli.folder}/.local/share/opencode (" in cli("costs", "import").stderr
    copy_samples(cli.folder)
    assert "17 of 17 files" in cli("costs", "import").stdout
    return cli


def copy_samples(home: Path) -> None:
    for name in ("claude", "codex", "gemini"):
        shutil.copytree(SAMPLES / name, home / f".{name}")
    shutil.copytree(SAMPLES / "claude-xdg", home / ".config" / "claude")


def has_written(process: subprocess.Popen[bytes], wal: Path, size_bytes: int) -> bool:
    return process.poll() is not None or (wal.exists() and wal.stat().st_size >= size_bytes)


def in_expected_words(sums: dict[str, Any]) -> dict[str, Any]:
    return {name: sums[own] for name, own in NAMES.items()} | {"cost_nano": sums["costNano"] or 0}


def expected_words(sums: dict[str, Any]) -> dict[str, Any]:
    words = dict(sums)
    cost_nano = int(Decimal(words.pop("cost_usd")) * 10**9)
    return {**words, "cost_nano": cost_nano}


@pytest.mark.parametrize(
    ("group", "list_name", "name", "expected"),
    [
        ("agent", "agents", "agent", "by_agent"),
        ("model", "models", "model", "by_model"),
        ("project", "projects", "project", "by_project"),
    ],
)
def test_json_has_the_sums_of_each_group(
    costs: CommandLine, group: str, list_name: str, name: str, expected: str
) -> None:
    document = costs("costs", "--by", group, "--json").document()

    found = {one[name]: in_expected_words(one) for one in document[list_name]}
    assert found == {key: expected_words(sums) for key, sums in EXPECTED[expected].items()}
    assert in_expected_words(document["totals"]) == expected_words(EXPECTED["total"])
    assert (document["timezone"], document["importing"]) == ("UTC", None)


def test_json_of_days_has_the_names_that_ccusage_has(costs: CommandLine) -> None:
    document = costs("costs", "--json").document()

    day = next(one for one in document["daily"] if one["date"] == "2025-06-01")
    ccusage = {
        *("date", "inputTokens", "outputTokens", "cacheCreationTokens", "cacheReadTokens", "totalTokens"),
        *("totalCost", "modelsUsed", "modelBreakdowns"),
    }
    assert ccusage <= set(day)
    assert (day["totalCost"], day["modelsUsed"]) == (0.018, ["claude-sonnet-4-20250514"])
    assert day["modelBreakdowns"][0]["modelName"] == "claude-sonnet-4-20250514"


def test_what_has_no_price_is_counted_and_never_shown_as_nothing(costs: CommandLine) -> None:
    document = costs("costs", "--by", "model", "--model", "acme-coder-9", "--json").document()
    text = costs("costs", "--by", "model").stdout

    assert (document["models"][0]["totalCost"], document["models"][0]["unpricedAnswers"]) == (None, 1)
    line = next(line for line in text.splitlines() if line.startswith("acme-coder-9"))
    assert "1 unpriced" in line
    assert "$" not in line
    assert "$1.44 + 2 unpriced" in text
    assert "45 answers: 43 by list price; 2 unpriced, in no sum of money. Days of UTC." in text


def test_a_span_of_days_counts_its_first_and_last_day(costs: CommandLine) -> None:
    words = ("costs", "--since", "20260501", "--until", "2026-05-02", "--json")

    dates = [one["date"] for one in costs(*words).document()["daily"]]

    assert dates == ["2026-05-01", "2026-05-02"]


def test_weeks_begin_on_monday_also_in_another_zone(costs: CommandLine) -> None:
    for words in ((), ("--timezone", "Asia/Kolkata")):
        weeks = [one["week"] for one in costs("costs", "--by", "week", *words, "--json").document()["weekly"]]
        assert "2026-03-02" in weeks
        assert weeks == sorted(weeks)


def test_csv_has_a_line_for_each_group_with_exact_dollars(costs: CommandLine) -> None:
    rows = list(csv.DictReader(io.StringIO(costs("costs", "--by", "agent", "--csv").stdout)))

    assert {row["agent"]: row["cost_usd"] for row in rows} == {
        agent: sums["cost_usd"] for agent, sums in EXPECTED["by_agent"].items()
    }


def test_an_answer_is_explained_by_its_file_its_rates_and_the_formula(costs: CommandLine) -> None:
    (answer,) = costs("costs", "explain", "msg_c16", "--json").document()["answers"]
    text = costs("costs", "explain", "aaaaaaaa-1111").stdout

    assert (answer["costUsd"], answer["costSource"], answer["model"]) == ("0.0145", "list", "claude-haiku-5-5")
    with Path(answer["file"]).open("rb") as transcript:
        transcript.seek(answer["offset"])
        assert b"msg_c16" in transcript.readline()
    assert answer["formula"][-1].endswith("$0.0145")
    assert text.count("cost $") + text.count("cost unpriced") == 10
    assert f"{answer['file']}:{answer['offset']}" in text


def test_prices_of_ones_own_count_after_the_answers_are_priced_anew(costs: CommandLine) -> None:
    set_price = costs("prices", "set", "acme-coder-9", "--input", "1", "--output", "2")
    assert set_price.code == 0, set_price.stderr

    repriced = costs("costs", "reprice", "--json").document()
    document = costs("costs", "--by", "model", "--model", "acme-coder-9", "--json").document()
    (costs.home / "prices.toml").unlink()
    back = costs("costs", "reprice", "--json").document()

    assert repriced == {"answers": 45, "changed": 1}
    assert document["models"][0]["costNano"] == 5_000_000
    assert back == {"answers": 45, "changed": 1}
    total = costs("costs", "--by", "agent", "--json").document()["totals"]
    assert in_expected_words(total) == expected_words(EXPECTED["total"])


@pytest.mark.proof
def test_an_import_killed_at_any_time_goes_on_to_the_same(costs: CommandLine, tmp_path: Path) -> None:
    before = costs("costs", "--by", "session", "--json").document()
    environ = {"AGENTMON_HOME": str(tmp_path / "agentmon")}
    wal = tmp_path / "agentmon" / "agentmon.db-wal"
    process = costs.start_alone("costs", "import", environ=environ)
    wait_for(partial(has_written, process, wal, 30_000))
    process.send_signal(signal.SIGKILL)
    process.communicate()

    assert costs("costs", "import", environ=environ).code == 0
    after = costs("costs", "--by", "session", "--json", environ=environ).document()

    def without_ids(document: dict[str, Any]) -> list[dict[str, Any]]:
        return [{name: one[name] for name in one if name != "sessionId"} for one in document["sessions"]]

    assert without_ids(after) == without_ids(before)


@pytest.mark.parametrize("order", [("first", "second"), ("second", "first")])
def test_a_copy_that_was_stamped_anew_costs_what_the_answer_did(
    costs: CommandLine, tmp_path: Path, order: tuple[str, str]
) -> None:
    folder = tmp_path / "claude" / "projects" / "-p"
    folder.mkdir(parents=True)
    environ = {"AGENTMON_HOME": str(tmp_path / "agentmon"), "CLAUDE_CONFIG_DIR": str(tmp_path / "claude")}
    days = {"first": "2026-03-10T10:00:00Z", "second": "2026-04-10T10:00:00Z"}
    for name in order:
        counts = usage(input_tokens=300_000, cache_read_input_tokens=0, output_tokens=10)
        told = answered("m1", session=name, model="claude-opus-4-6", at=days[name], counts=counts)
        (folder / f"{name}.jsonl").write_bytes(told)
        assert costs("costs", "import", environ=environ).code == 0

    totals = costs("costs", "--model", "claude-opus-4-6", "--json", environ=environ).document()["totals"]

    assert (totals["answers"], totals["costNano"]) == (1, 3_000_375_000)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--since", "yesterday"), "'yesterday' is no day"),
        (("--timezone", "Mars/Olympus"), "there is no time zone"),
        (("--json", "--csv"), "exclude each other"),
        (("--since", "2026-01-01", "--last", "3"), "exclude each other"),
        (("--since", "2026-03-02", "--until", "2026-03-01"), "comes after the last"),
        (("explain", "zzz"), "there is no session and no answer 'zzz'"),
        (("--agent", "nosuch"), "agents are: "),
    ],
)
def test_what_cannot_be_meant_is_refused_with_the_next_step(
    costs: CommandLine, words: tuple[str, ...], message: str
) -> None:
    refused = costs("costs", *words)

    assert refused.code in {1, 2}
    assert message in refused.stderr
    assert not refused.stdout
