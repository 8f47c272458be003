"""Billed answers and price books for the tests of prices."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from agentmon.domain.billing import BilledAnswer

LEDGER_FILE = Path(__file__).parents[1] / "samples" / "expected.json"
PROVIDERS = {"claude": "anthropic", "codex": "openai", "gemini": "google"}


def at(text: str) -> int:
    """Return the milliseconds of a moment in ISO 8601; without an offset it is UTC."""
    moment = datetime.fromisoformat(text)
    return round((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() * 1000)


def answer(
    model: str,
    *,
    provider: str = "anthropic",
    day: str = "2026-11-10",
    fresh: int = 0,
    read: int = 0,
    write: int = 0,
    write_1h: int = 0,
    response: int = 0,
    searches: int = 0,
    speed: str = "standard",
    geo: str = "",
    reported: int | None = None,
) -> BilledAnswer:
    """Return an answer of a model."""
    return BilledAnswer(
        key="key",
        session_ref="session",
        provider=provider,
        model=model,
        at_ms=at(day),
        prompt_tokens=fresh,
        cache_read_tokens=read,
        cache_write_5m_tokens=write,
        cache_write_1h_tokens=write_1h,
        response_tokens=response,
        reasoning_tokens=0,
        web_searches=searches,
        speed=speed,
        geo=geo,
        reported_cost_nano=reported,
        offset=0,
    )


def ledger_rows() -> list[dict[str, Any]]:
    """Return the rows of the samples with their right costs."""
    rows: list[dict[str, Any]] = json.loads(LEDGER_FILE.read_text("utf-8"))["ledger"]
    return rows


def ledger_answer(row: dict[str, Any]) -> BilledAnswer:
    """Return the answer that a row of the samples describes."""
    return answer(
        row["model"],
        provider=PROVIDERS[row["agent"]],
        day=row["ts"],
        fresh=row["input"],
        read=row["cache_read"],
        write=row["cache_write_5m"],
        write_1h=row["cache_write_1h"],
        response=row["output"],
        searches=row["web_search"],
        speed=row["speed"],
        # The ledger has no column for it: the case itself is the region.
        geo="us" if row["case"] == "C10" else "",
    )


def a_price_list(input_rate: float) -> bytes:
    """A price list in the form of the package's own data, with one model a vendor."""
    return json.dumps(
        [
            {
                "id": vendor,
                "name": vendor,
                "api_pattern": vendor,
                "models": [
                    {
                        "id": model,
                        "match": {"equals": model},
                        "prices": {"input_mtok": input_rate, "new_unit_of_tomorrow": 3},
                    }
                ],
            }
            for vendor, model in (("anthropic", "claude-next"), ("openai", "gpt-next"), ("google", "gemini-next"))
        ]
    ).encode()
