"""A home with the samples of agents' files, imported into a database of its own."""

from __future__ import annotations

import json
import shutil
import sqlite3
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final

from agentmon.domain.clock import SystemClock
from agentmon.paths import Paths, find_paths
from agentmon.store.agents import AgentRepository
from agentmon.store.database import Database, open_database
from agentmon.store.usage_costs import CostRepository
from agentmon.worker.usage_importing import UsageImporter, import_usage
from tests.usage.histories import SAMPLES, environ_of

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from agentmon.worker.import_progress import ImportOutcome

EXPECTED: Final[Any] = json.loads((SAMPLES / "expected.json").read_text())
SHOP: Final = "claude/projects/-home-dev-webshop/aaaaaaaa-1111-4111-8111-000000000001.jsonl"
"""The transcript whose last line is cut off."""
_SUMMED: Final = (
    "sum(answers)",
    "sum(prompt_tokens)",
    "sum(response_tokens)",
    "sum(cache_read_tokens)",
    "sum(cache_write_5m_tokens)",
    "sum(cache_write_1h_tokens)",
    "sum(reasoning_tokens)",
    "sum(web_searches)",
    "sum(cost_nano)",
    "sum(unpriced_answers)",
)


@dataclass(kw_only=True)
class UsageHome:
    folder: Path
    database: Database
    importer: UsageImporter

    @property
    def costs(self) -> CostRepository:
        return CostRepository(self.database)

    @property
    def paths(self) -> Paths:
        return home_paths(self.folder)

    async def read(self) -> ImportOutcome:
        """Import what is new."""
        return await import_usage(self.importer, AgentRepository(self.database), SystemClock())

    def rows(self, query: str, *parameters: object) -> list[tuple[Any, ...]]:
        with closing(sqlite3.connect(self.database.path)) as connection:
            return connection.execute(query, parameters).fetchall()

    def change(self, statement: str) -> None:
        with closing(sqlite3.connect(self.database.path)) as connection, connection:
            connection.execute(statement)

    def sums(self, column: str) -> dict[str, dict[str, object]]:
        """The kept sums by a column, in the words of the expected ones."""
        query = (
            f"SELECT {column}, {', '.join(_SUMMED)} FROM daily_usage u JOIN agents a ON a.id = u.agent_id GROUP BY 1"
        )
        return {row[0]: in_words(row[1:]) for row in self.rows(query)}

    def recounted(self) -> list[tuple[object, ...]]:
        return self.rows(
            "SELECT day_local, agent_id, model, project, count(*), sum(prompt_tokens), sum(cache_read_tokens), "
            "sum(cache_write_5m_tokens), sum(cache_write_1h_tokens), sum(response_tokens), sum(reasoning_tokens), "
            "sum(web_searches), coalesce(sum(cost_nano), 0), sum(cost_nano IS NULL), sum(cost_source = 'reported') "
            "FROM llm_interactions GROUP BY 1, 2, 3, 4 ORDER BY 1, 2, 3, 4"
        )

    def contents(self) -> tuple[object, ...]:
        """All that was told, without ids and without what tells of the way it was read."""
        answers = self.rows(
            "SELECT a.slug, i.key, s.session_ref, i.model, i.provider, i.prompt_tokens, i.cache_read_tokens, "
            "i.cache_write_5m_tokens, i.cache_write_1h_tokens, i.response_tokens, i.reasoning_tokens, i.cost_nano, "
            "i.at_ms, i.day_local, i.project, i.web_searches, i.speed, i.geo, i.is_subagent FROM llm_interactions i "
            "JOIN agents a ON a.id = i.agent_id JOIN sessions s ON s.id = i.session_id ORDER BY 1, 2"
        )
        sessions = self.rows(
            "SELECT session_ref, workspace, title, started_at, ended_at, total_tokens, total_cost_nano "
            "FROM sessions ORDER BY 1"
        )
        sums = self.rows("SELECT * FROM daily_usage ORDER BY 1, 2, 3, 4")
        assert sums == self.recounted()
        return answers, sessions


def in_words(row: tuple[Any, ...]) -> dict[str, object]:
    names = ("requests", "input", "output", "cache_read", "cache_write_5m", "cache_write_1h", "reasoning", "web_search")
    words = dict(zip(names, row, strict=False))
    tokens = sum(words[name] for name in ("input", "output", "cache_read", "cache_write_5m", "cache_write_1h"))
    return {**words, "total_tokens": tokens, "cost_nano": row[-2], "unpriced_requests": row[-1]}


def expected_sums(name: str) -> dict[str, dict[str, object]]:
    return {key: expected_words(sums) for key, sums in EXPECTED[name].items()}


def expected_words(sums: dict[str, Any]) -> dict[str, object]:
    """Expected sums, with the money in nano-dollars."""
    words = dict(sums)
    words["cost_nano"] = int(Decimal(words.pop("cost_usd")) * 10**9)
    return words


def home_paths(folder: Path) -> Paths:
    return find_paths({"AGENTMON_HOME": str(folder / "agentmon")})


def copy_samples(folder: Path) -> None:
    for name in ("claude", "claude-xdg", "codex"):
        shutil.copytree(SAMPLES / name, folder / name)
    shutil.copytree(SAMPLES / "gemini", folder / "gemini-home" / ".gemini")


@asynccontextmanager
async def usage_home(folder: Path, *, zone_name: str = "UTC") -> AsyncIterator[UsageHome]:
    """Open a database beside the files that are there; nothing is imported yet."""
    paths = home_paths(folder)
    opened = await open_database(paths.database_path, backups_dir=paths.backups_dir, release="1")
    importer = UsageImporter(paths=paths, environ=environ_of(folder), zone_name=zone_name, clock=SystemClock())
    try:
        yield UsageHome(folder=folder, database=opened.database, importer=importer)
    finally:
        importer.close()
        await opened.database.close()
