"""Verifications: the command that has to pass before the work of a run counts as done."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from pathlib import PurePath
from typing import TYPE_CHECKING, Final, NamedTuple

from agentmon.domain.plain_text import plain_line

if TYPE_CHECKING:
    from datetime import datetime

    from agentmon.domain.ids import ExecutionId

NO_COMMAND: Final = "none"
"""What people write to say that nothing is run."""
_NAME_MAX_CHARACTERS: Final = 16
_UNNAMED: Final = "verification"
_ASSIGNMENT: Final = re.compile(r"[A-Za-z_]\w*=")
_TESTS: Final = re.compile(r"(?i)(?:^|[^a-z])(?:py|unit|c|vi|mini)?tests?(?:$|[^a-z])")
_TEST_PROGRAMS: Final = frozenset({"jest", "mocha", "nox", "phpunit", "rspec", "tox"})
_STARTERS: Final = frozenset(
    {
        *("bash", "bun", "bundle", "cargo", "composer", "deno", "dotnet", "env", "exec", "go", "gradle", "gradlew"),
        *("hatch", "just", "make", "mise", "mvn", "mvnw", "nice", "node", "npm", "npx", "pdm", "pnpm", "poetry"),
        *("python", "python3", "rake", "rtk", "run", "sh", "task", "time", "timeout", "uv", "uvx", "yarn"),
    }
)
"""Words before the one that says what is run."""


class VerificationStatus(StrEnum):
    """How a verification stands."""

    RUNNING = "running"
    PASSED = "passed"
    FAILED = "failed"
    TIMED_OUT = "timed_out"
    STOPPED = "stopped"
    """Somebody stopped it, or it was cut off and nobody runs it again."""


_GLYPHS: Final = {
    VerificationStatus.PASSED: "✓",
    VerificationStatus.FAILED: "✗",
    VerificationStatus.TIMED_OUT: "✗",
    VerificationStatus.STOPPED: "⊘",
}


class Verdict(NamedTuple):
    """What is shown of the newest verification of a run, beside the run."""

    status: VerificationStatus
    command: str
    took_ms: int | None = None
    """None while it runs."""

    @property
    def name(self) -> str:
        """What is verified, in a word or two: ``tests``."""
        return verification_name(self.command)

    @property
    def text(self) -> str:
        """What a card shows: ``✓ tests 41s``, ``✗ tests``, ``verifying``."""
        if self.status is VerificationStatus.RUNNING:
            return "verifying"
        words = f"{_GLYPHS[self.status]} {self.name}"
        if self.status is not VerificationStatus.PASSED or self.took_ms is None:
            return words
        from agentmon.domain.amounts import duration_text  # noqa: PLC0415 - most first frames show no verification

        return f"{words} {duration_text(self.took_ms / 1000)}"


def is_running(verdict: Verdict | None) -> bool:
    """Return whether what is shown of a run says that it is being verified."""
    return verdict is not None and verdict.status is VerificationStatus.RUNNING


@dataclass(frozen=True, slots=True, kw_only=True)
class Verification:
    """One run of a verification command, as the database has it."""

    execution_id: ExecutionId
    attempt: int
    """Which of the run's, counted from 1."""
    command: str
    status: VerificationStatus
    exit_code: int | None = None
    """128 + N when signal N ended it; None while it runs, and when it did not come to its end."""
    started_at: datetime
    ended_at: datetime | None = None
    log_path: str
    """Absolute."""

    @property
    def took_ms(self) -> int | None:
        """How long it took; None while it runs."""
        if self.ended_at is None:
            return None
        return max(0, round(1000 * (self.ended_at - self.started_at).total_seconds()))

    @property
    def verdict(self) -> Verdict:
        """What is shown of it beside its run."""
        return Verdict(self.status, self.command, self.took_ms)

    @property
    def failure(self) -> str:
        """Why it did not pass, in a few words: ``tests failed with exit code 2``; empty when it passed, or runs."""
        name = verification_name(self.command)
        match self.status:
            case VerificationStatus.FAILED if self.exit_code is not None:
                return f"{name} failed with exit code {self.exit_code}"
            case VerificationStatus.FAILED:
                return f"{name} could not be run"
            case VerificationStatus.TIMED_OUT:
                return f"{name} took too long"
            case VerificationStatus.STOPPED:
                return f"{name} stopped"
            case _:
                return ""


def chosen_command(*, task: str | None, agent: str | None, workspace: str) -> str:
    """Return the command that counts, the nearest one; empty when nothing is to be run.

    Args:
        task: What the task says; None leaves it to the others, an empty text means none.
        agent: The same of its agent.
        workspace: What the workspace says.
    """
    return next(word for word in (task, agent, workspace) if word is not None)


def read_command(text: str) -> str:
    """Return what a person wrote as a command to verify with; empty for ``none``."""
    command = text.strip()
    return "" if command.lower() == NO_COMMAND else command


def read_optional_command(text: str) -> str | None:
    """As ``read_command``, of a field that may be left empty: None, which leaves it to others."""
    return read_command(text) if text.strip() else None


def command_text(command: str | None) -> str:
    """Return a command as a field shows it, which ``read_command`` reads; empty when nothing is said."""
    return "" if command is None else command or NO_COMMAND


def verification_name(command: str) -> str:
    """Return what a command verifies, in a word, for a card: ``make test`` → ``tests``, ``just lint`` → ``lint``."""
    if _TESTS.search(command):
        return "tests"
    import shlex  # noqa: PLC0415 - most first frames show no verification

    try:
        parts = shlex.split(command)
    except ValueError:
        parts = command.split()
    for part in parts:
        word = PurePath(part).stem or part
        if _ASSIGNMENT.match(part) or part.startswith("-") or word.lower() in _STARTERS or part[:1].isdigit():
            continue
        return "tests" if word.lower() in _TEST_PROGRAMS else _short(word)
    return _short(PurePath(parts[0]).name) if parts else _UNNAMED


def _short(word: str) -> str:
    return plain_line(word, max_characters=_NAME_MAX_CHARACTERS) or _UNNAMED
