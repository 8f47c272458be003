"""Reads the histories of agents the way an import does, and keeps what they tell in memory."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from agentmon.domain.billing import merge_answers, merge_sessions
from agentmon.usage.following import Cursor
from agentmon.usage.sources import find_sources
from agentmon.usage.unread import read_unread

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from agentmon.domain.billing import BilledAnswer, HistorySession
    from agentmon.domain.limit_readings import LimitReading
    from agentmon.usage.reading import Reading
    from agentmon.usage.sources import SourceFile

SAMPLES = Path(__file__).parent / "samples"


def environ_of(home: Path) -> dict[str, str]:
    """Return where the agents of a tree like the samples keep their files."""
    return {
        "HOME": str(home),
        "CLAUDE_CONFIG_DIR": f"{home / 'claude'},{home / 'claude-xdg'}",
        "CODEX_HOME": str(home / "codex"),
        "GEMINI_CLI_HOME": str(home / "gemini-home"),
    }


@dataclass(slots=True)
class History:
    """All that was read, each answer once, with the cursors of the files."""

    answers: dict[tuple[str, str], BilledAnswer] = field(default_factory=dict)
    sessions: dict[tuple[str, str], HistorySession] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)
    cursors: dict[str, Cursor] = field(default_factory=dict)
    pieces: int = 0
    limits: dict[tuple[str, str, str], LimitReading] = field(default_factory=dict)

    def keep(self, agent_slug: str, reading: Reading) -> None:
        for answer in reading.answers:
            place = (agent_slug, answer.key)
            earlier = self.answers.get(place)
            self.answers[place] = answer if earlier is None else merge_answers(earlier, answer)
        for session in reading.sessions:
            place = (agent_slug, session.session_ref)
            known = self.sessions.get(place)
            self.sessions[place] = session if known is None else merge_sessions(known, session)
        self.problems += [problem.reason for problem in reading.problems]
        self.limits.update(((agent_slug, one.account, one.window), one) for one in reading.limits)

    def follow(self, source: SourceFile) -> int:
        """Read what is new in the file and return how many pieces that was."""
        pieces = 0
        for read in read_unread(source, self.cursors.get(source.path)):
            self.keep(source.agent_slug, read.reading)
            pieces += 1
            if read.cursor is not None:
                cursor = Cursor.from_json(read.cursor.as_json())
                assert cursor == read.cursor
                self.cursors[source.path] = cursor
        self.pieces += pieces
        return pieces

    def look(self, environ: Mapping[str, str]) -> History:
        """Read what is new in all files."""
        return self.follow_all(find_sources(environ, known_paths=self.cursors))

    def follow_all(self, sources: Iterable[SourceFile]) -> History:
        for source in sources:
            self.follow(source)
        return self


def sums(answers: Iterable[BilledAnswer]) -> dict[str, int]:
    told = list(answers)
    return {
        "requests": len(told),
        "input": sum(answer.prompt_tokens for answer in told),
        "output": sum(answer.response_tokens for answer in told),
        "cache_read": sum(answer.cache_read_tokens for answer in told),
        "cache_write_5m": sum(answer.cache_write_5m_tokens for answer in told),
        "cache_write_1h": sum(answer.cache_write_1h_tokens for answer in told),
        "reasoning": sum(answer.reasoning_tokens for answer in told),
        "web_search": sum(answer.web_searches for answer in told),
        "total_tokens": sum(answer.total_tokens for answer in told),
    }
