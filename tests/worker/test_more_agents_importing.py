from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from agentmon.domain.billing import Confidence
from tests.worker.usage_home import usage_home

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from tests.worker.usage_home import UsageHome

FIXTURES = Path(__file__).parents[1] / "usage"
PLACES = {
    "qwen/plain_and_tools.jsonl": ".qwen/projects/-home-dev-shop/chats/99372456-3b32-4902-88b1-cf29b562a5f5.jsonl",
    "copilot/resumed.jsonl": ".copilot/session-state/5d2c7c6e-3a4c-4a53-9f0a-6a3f0c9f1b01/events.jsonl",
    "amp/T-01.json": ".local/share/amp/threads/T-0198a1f2-0000-7000-8000-000000000001.json",
}


def cost(*counts_and_rates: int) -> int:
    """Return the cost in nano-dollars of counts of tokens, each with its rate behind it."""
    return sum(count * rate for count, rate in zip(counts_and_rates[::2], counts_and_rates[1::2], strict=True))


@pytest.fixture
async def home(tmp_path: Path) -> AsyncIterator[UsageHome]:
    for name, place in PLACES.items():
        (tmp_path / place).parent.mkdir(parents=True)
        shutil.copy(FIXTURES / name, tmp_path / place)
    async with usage_home(tmp_path) as opened:
        yield opened


async def test_agents_of_which_only_files_are_there_are_added_with_what_they_took(home: UsageHome) -> None:
    outcome = await home.read()

    assert (outcome.files, outcome.problems) == (3, ())
    assert home.rows("SELECT slug, name, is_active FROM agents ORDER BY slug") == [
        ("amp", "Amp", 0),
        ("copilot", "Copilot CLI", 0),
        ("qwen", "Qwen Code", 0),
    ]
    assert home.rows(
        "SELECT a.slug, i.model, count(*), sum(prompt_tokens + cache_read_tokens + cache_write_5m_tokens), "
        "sum(response_tokens), sum(cost_nano) FROM llm_interactions i "
        "JOIN agents a ON a.id = i.agent_id GROUP BY 1, 2 ORDER BY 1, 2"
    ) == [
        # In thousandths of a dollar for a million tokens: sent, from the cache, into it, answered.
        ("amp", "claude-sonnet-4-5-20250929", 2, 23_019, 308, cost(19, 3_000, 14_000, 300, 9_000, 3_750, 308, 15_000)),
        ("amp", "gemini-2.5-flash", 1, 1_000, 20, cost(900, 300, 100, 30, 0, 0, 20, 2_500)),
        ("amp", "gpt-5.4", 1, 2_500, 60, cost(500, 2_500, 2_000, 250, 0, 0, 60, 15_000)),
        ("copilot", "claude-opus-4.7", 3, 76_282, 301, cost(1_004, 5_000, 39_495, 500, 35_783, 6_250, 301, 25_000)),
        ("copilot", "gpt-5.4", 1, 1_200, 30, cost(1_200, 2_500, 0, 0, 0, 0, 30, 15_000)),
        ("qwen", "qwen3-coder-plus", 5, 5_750, 100, None),
    ]
    assert home.rows(
        "SELECT DISTINCT a.slug, confidence FROM llm_interactions JOIN agents a ON a.id = agent_id ORDER BY 1, 2"
    ) == [
        ("amp", Confidence.ASSUMED.value),
        ("amp", "exact"),
        ("copilot", "derived"),
        ("qwen", "exact"),
    ]
    assert home.rows("SELECT session_ref, title, workspace FROM sessions ORDER BY title DESC, 1") == [
        ("T-0198a1f2-0000-7000-8000-000000000001", "Mend the cart", "/home/dev/shop"),
        ("5d2c7c6e-3a4c-4a53-9f0a-6a3f0c9f1b01", None, "/home/dev/shop"),
        ("99372456-3b32-4902-88b1-cf29b562a5f5", None, "/home/dev/shop"),
    ]


async def test_a_second_look_and_a_rescan_change_nothing(home: UsageHome) -> None:
    await home.read()
    before = home.contents()

    assert (await home.read()).files == 0
    home.importer.forget_cursors()
    assert (await home.read()).files == 3
    assert home.contents() == before
