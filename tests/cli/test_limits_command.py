from __future__ import annotations

import json
import shutil
import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest

from tests.usage.histories import SAMPLES

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli.command_lines import CommandLine

THREAD = "019a0000-0000-7000-8000-00000000abcd"


@pytest.fixture(scope="module")
def told(cli: CommandLine) -> CommandLine:
    """A command line in whose home a rollout of Codex of this hour is imported."""
    assert "no answer of this month" in cli("limits").stderr
    assert "no agent has said anything" in cli("limits", "--history", "3").stderr
    write_rollout(cli.folder / ".codex")
    shutil.copytree(SAMPLES / "claude", cli.folder / ".claude")
    assert "answers told" in cli("costs", "import").stdout
    return cli


def write_rollout(codex_home: Path) -> None:
    now = time.time()
    usage = {"input_tokens": 90_000, "cached_input_tokens": 0, "output_tokens": 10_000, "total_tokens": 100_000}
    info = {"total_token_usage": usage, "last_token_usage": usage, "model_context_window": 258_400}
    limits = {
        "limit_id": "codex",
        "primary": {"used_percent": 12.5, "window_minutes": 300, "resets_at": int(now) + 3600},
        "secondary": {"used_percent": 40.0, "window_minutes": 10_080, "resets_at": int(now) + 86_400},
    }
    records = [
        ("session_meta", {"id": THREAD, "cwd": "/w", "model_provider": "openai"}),
        ("turn_context", {"model": "gpt-5", "cwd": "/w"}),
        ("event_msg", {"type": "token_count", "info": info, "rate_limits": limits}),
    ]
    at = datetime.fromtimestamp(now - 60, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    folder = codex_home / "sessions" / "2026" / "01" / "01"
    folder.mkdir(parents=True)
    lines = [json.dumps({"timestamp": at, "type": kind, "payload": payload}) for kind, payload in records]
    (folder / f"rollout-2026-01-01T00-00-00-{THREAD}.jsonl").write_text("\n".join(lines) + "\n")


def test_the_windows_of_a_rollout_are_told(told: CommandLine) -> None:
    document = told("limits", "--json").document()

    windows = {one["window"]: one for one in document["windows"] if one["agent"] == "codex"}
    assert {name: one["used_percent"] for name, one in windows.items()} == {"five_hour": 12.5, "seven_day": 40.0}
    assert {one["origin"] for one in windows.values()} == {"official"}
    assert windows["five_hour"]["tokens"] == 100_000
    assert document["burn"]["hour_by_agent"]["codex"]["tokens_per_minute"] > 0
    (projected,) = [one for one in document["projection"]["windows"] if one["agent"] == "codex"]
    assert projected["used_percent"] > 12.5
    assert document["projection"]["month"]["spent_nano"] > 0


def test_people_read_them_in_a_table(told: CommandLine) -> None:
    lines = told("limits").stdout.splitlines()

    assert lines[0].split() == ["AGENT", "WINDOW", "USED", "UNTIL", "COST", "TOKENS", "FROM"]
    assert any(line.startswith("codex") and "12 %" in line and "official, as of" in line for line in lines)
    assert any(line.startswith("burn rate: ") and "tokens/min" in line for line in lines)
    assert any(f"{datetime.now(UTC):%B}: $" in line for line in lines)


def test_what_was_said_is_a_history(told: CommandLine) -> None:
    document = told("limits", "--history", "1", "--json").document()

    assert [(one["agent"], one["window"], one["used_percent"]) for one in document["history"]] == [
        ("codex", "five_hour", 12.5),
        ("codex", "seven_day", 40.0),
    ]
    assert {one["source"] for one in document["history"]} == {"transcript"}
    lines = told("limits", "--history", "1").stdout.splitlines()
    assert lines[0].split() == ["SINCE", "SEEN", "TILL", "AGENT", "WINDOW", "USED", "UNTIL"]
    assert "week" in lines[2]


def test_a_session_knows_how_full_its_context_is(told: CommandLine) -> None:
    session = told("sessions", "show", THREAD, "--json").document()["session"]

    assert (session["context_tokens"], session["context_limit_tokens"]) == (100_000, 258_400)
    assert "100,000 of 258,400 tokens (39 %)" in told("sessions", "show", THREAD).stdout
