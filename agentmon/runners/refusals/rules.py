"""The rules by which refusals are known, read once from the data files beside this module."""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Final

from agentmon.domain.errors import UsageError
from agentmon.domain.refusals import RefusalKind

if TYPE_CHECKING:
    from collections.abc import Mapping

RULES_FILE: Final = Path(__file__).with_name("vendors.rules.toml")
"""Packed into the wheel as every file of the package is."""

_KEYS: Final = frozenset(
    {
        *("name", "kind", "programs", "exit_codes", "patterns", "patterns_after_lead", "record_patterns"),
        *("last_lines", "reset_words"),
        *("seconds_words", "reset_within_lines", "needs_reset", "advice"),
    },
)
# A sentence that merely begins with the words of a refusal goes on behind them.
_ENDS: Final = {
    "END": r"\s*(?:$|[.·∙•|:,;!(—–\"'\]}-])",
    "STOP": r"\s*(?:$|[.!]\s*$|[·∙|])",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """One way in which a refusal is said; the comment in the data file says what each entry means."""

    name: str
    kind: RefusalKind
    programs: frozenset[str]
    """Empty for all programs."""
    is_for_agents: bool
    """Whether it counts for agents only."""
    exit_codes: frozenset[int]
    patterns: tuple[re.Pattern[str], ...]
    patterns_after_lead: tuple[re.Pattern[str], ...]
    record_patterns: tuple[re.Pattern[str], ...]
    last_lines: int
    reset_words: tuple[re.Pattern[str], ...]
    seconds_words: tuple[re.Pattern[str], ...]
    reset_within_lines: int
    needs_reset: bool
    advice: str


@cache
def load_rules(path: Path = RULES_FILE) -> tuple[Rule, ...]:
    """Return the rules of a file in its order; a file is read once in the life of the process.

    Raises:
        UsageError: The file is not TOML, or an entry is missing, unknown or of the wrong kind.
    """
    try:
        tables = tomllib.loads(path.read_text(encoding="utf-8"))["rule"]
        rules = tuple(_rule(table) for table in tables)
    except (OSError, KeyError, TypeError, ValueError, AttributeError, re.error) as error:
        raise UsageError(f"the rules {path.name} cannot be used: {error!r}") from error
    names = [rule.name for rule in rules]
    if len(set(names)) < len(names):
        raise UsageError(f"the rules {path.name} use a name twice")
    return rules


def _rule(table: Mapping[str, object]) -> Rule:
    unknown = sorted(set(table) - _KEYS)
    if unknown:
        raise ValueError(f"{table.get('name')}: unknown entry {unknown[0]}")
    programs = table["programs"]
    if not isinstance(programs, list) and programs not in {"any", "agents"}:
        raise ValueError(f"{table.get('name')}: programs {programs!r}")
    return Rule(
        name=_text(table["name"]),
        kind=RefusalKind(_text(table["kind"])),
        programs=frozenset(_text(program) for program in programs) if isinstance(programs, list) else frozenset(),
        is_for_agents=programs == "agents",
        exit_codes=frozenset(_number(code) for code in _list(table, "exit_codes")),
        patterns=_patterns(table, "patterns"),
        patterns_after_lead=_patterns(table, "patterns_after_lead"),
        record_patterns=_patterns(table, "record_patterns"),
        last_lines=_number(table["last_lines"]),
        reset_words=_patterns(table, "reset_words"),
        seconds_words=_patterns(table, "seconds_words"),
        reset_within_lines=_number(table.get("reset_within_lines", 0)),
        needs_reset=table.get("needs_reset", False) is True,
        advice=_text(table["advice"]),
    )


def _patterns(table: Mapping[str, object], key: str) -> tuple[re.Pattern[str], ...]:
    sources = [_text(source) for source in _list(table, key)]
    return tuple(re.compile(re.sub(r" ?\b(END|STOP)\b", lambda found: _ENDS[found[1]], source)) for source in sources)


def _list(table: Mapping[str, object], key: str) -> list[object]:
    found = table.get(key, [])
    if not isinstance(found, list):
        raise TypeError(f"{key} must be a list")
    return found


def _text(value: object) -> str:
    if not isinstance(value, str) or not value:
        raise TypeError(f"{value!r} must be a string")
    return value


def _number(value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise TypeError(f"{value!r} must be a whole number")
    return value
