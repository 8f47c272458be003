"""The rules by which screens are read: those of the package, with a person's own files on top.

A person's ``<config>/screens/NAME.toml`` for the same agent is asked first; what it does not say stays as it is.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Final

from agentmon.domain.conversation import AskDecision
from agentmon.domain.errors import UsageError
from agentmon.domain.operations import OperationType
from agentmon.domain.written_text import text_of, toml_of_text
from agentmon.runners.screens.states import ScreenState

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

PACKAGE_FOLDER: Final = Path(__file__).parent
_SUFFIX: Final = ".screen.toml"
_RULE_KEYS: Final = frozenset(
    {"name", "state", "in", "pattern", "unless", "last_lines", "above_box", "note", "tool", "type", "answer"}
)
_ANSWER_KEYS: Final = frozenset({"decision", "pattern", "moves", "keys", "marked"})
_FILE_KEYS: Final = frozenset(
    {"agent", "programs", "signal", "box", "box_hints", "paste_marks", "rule"}
    | {"interrupt_keys", "ready_s", "settled_s", "guarded", "guard", "allowed", "denied", "right_edge"}
)
_DEFAULT_LAST_LINES: Final = 15


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerRule:
    """One way to answer a dialog by keys; the comment in the data files says what each entry means."""

    decision: AskDecision
    pattern: re.Pattern[str]
    moves: str
    """Typed before the keys, to bring the mark of choice to this option; empty where it needs none."""
    keys: str
    marked: re.Pattern[str] | None
    """What the lines with their colours show while the keys mean this answer; None where the pattern tells it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScreenRule:
    """One way in which a state shows; the comment in the data files says what each entry means."""

    name: str
    state: ScreenState
    is_for_title: bool
    pattern: re.Pattern[str]
    unless: re.Pattern[str] | None
    last_lines: int
    is_above_box: bool
    """Whether what is asked may stand above the input box of an agent that draws it meanwhile."""
    note: str
    where: str
    """File and line of the rule."""
    tool: str = ""
    """The tool that asks, as the agent's protocol names it; empty when the dialog is about no single tool."""
    type: OperationType | None = None
    answers: tuple[AnswerRule, ...] = ()
    """None when only attaching answers it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScreenRules:
    """All that is known of one agent's screen."""

    agent: str
    programs: frozenset[str]
    signal: str = ""
    """Name of the signal that the agent gives beside its screen; empty when it gives none."""
    box: re.Pattern[str] | None = None
    """The line of the input box; its group is what stands in it. The last one on the screen counts."""
    box_hints: tuple[re.Pattern[str], ...] = ()
    """What the box shows while it is empty."""
    paste_marks: tuple[re.Pattern[str], ...] = ()
    """What the agent shows in the place of a long paste."""
    interrupt_keys: str = "\x1b"
    guarded: re.Pattern[str] | None = None
    """Beginnings of texts that the agent would run as a command: the guard goes in front of them."""
    guard: str = " "
    """What makes a text of it again."""
    ready_s: float = 1.0
    """For how long it has to be ready before it is given its first prompt."""
    settled_s: float = 0.3
    """For how long its screen has to say the same before it counts as free or asking, or a text as drawn."""
    allowed: re.Pattern[str] | None = None
    """What the agent writes for something that was allowed in its screen; None when it writes nothing that is sure."""
    denied: re.Pattern[str] | None = None
    right_edge: re.Pattern[str] | None = None
    """Ends where a dialog ends on the right, beyond which something else is shown; None when nothing is."""
    rules: tuple[ScreenRule, ...] = ()

    def typed(self, text: str) -> str:
        """Return the text as it is typed: unchanged, but for the guard before what would be run as a command."""
        return f"{self.guard}{text}" if self.guarded is not None and self.guarded.match(text) else text


NO_RULES: Final = ScreenRules(agent="", programs=frozenset())


def find_rules(program: str, *, own_folder: Path | None = None) -> ScreenRules:
    """Return the rules for a program, by the last part of its path; those of no agent when nobody wrote any.

    Args:
        program: The path or name of the program, or the agent's slug.
        own_folder: Where a person's own files lie; a missing folder holds none.

    Raises:
        UsageError: A file is not TOML, or an entry is missing, unknown or of the wrong kind.
    """
    name = PurePath(program).name
    own = _load(own_folder) if own_folder is not None else ()
    found = [rules for rules in (*own, *_load(PACKAGE_FOLDER)) if name == rules.agent or name in rules.programs]
    return _merged(found) if found else NO_RULES


def find_agent_rules(slug: str, binary_path: str, *, own_folder: Path | None = None) -> ScreenRules:
    """Return the rules of an agent, by its slug or else by its program; those of no agent when nobody wrote any.

    Raises:
        UsageError: As ``find_rules``.
    """
    rules = find_rules(slug, own_folder=own_folder)
    return rules if rules is not NO_RULES else find_rules(binary_path, own_folder=own_folder)


def _merged(found: Sequence[ScreenRules]) -> ScreenRules:
    """Return one agent's rules: all in their order, and each setting as the last file, the package's, or the first."""
    base = found[-1]
    for rules in reversed(found[:-1]):
        own = {name: getattr(rules, name) for name in _SETTINGS if getattr(rules, name) != getattr(NO_RULES, name)}
        base = replace(base, **own, rules=rules.rules + base.rules)
    return base


_SETTINGS: Final = (
    *(
        "signal",
        "box",
        "box_hints",
        "paste_marks",
        "interrupt_keys",
        "ready_s",
        "settled_s",
        "guarded",
        "guard",
        "allowed",
        "denied",
        "right_edge",
    ),
)


def _load(folder: Path) -> tuple[ScreenRules, ...]:
    suffix = _SUFFIX if folder == PACKAGE_FOLDER else ".toml"
    try:
        stamps = tuple(sorted((path, path.stat().st_mtime_ns) for path in folder.glob(f"*{suffix}")))
    except OSError:
        return ()
    return tuple(_read(path, stamp) for path, stamp in stamps)


@lru_cache(maxsize=64)
def _read(path: Path, _stamp: int) -> ScreenRules:
    try:
        text = text_of(path.read_bytes())
        return _rules_of(toml_of_text(text), path, _rule_lines(text))
    except (OSError, KeyError, TypeError, ValueError, re.error) as error:
        raise UsageError(f"the screen rules {path} cannot be used: {error}") from error


def _rule_lines(text: str) -> list[int]:
    return [number for number, line in enumerate(text.splitlines(), 1) if line.strip() == "[[rule]]"]


def _rules_of(document: Mapping[str, object], path: Path, lines: Sequence[int]) -> ScreenRules:
    _require_known(document, _FILE_KEYS, path.name)
    tables = document.get("rule", [])
    if not isinstance(tables, list) or len(tables) != len(lines):
        raise TypeError("rule must be a list of tables, each under its own [[rule]]")
    box = document.get("box")
    return ScreenRules(
        agent=_text(document["agent"]),
        programs=frozenset(_texts(document, "programs")),
        signal=_text(document.get("signal", ""), may_be_empty=True),
        box=re.compile(_text(box), re.MULTILINE) if box is not None else None,
        box_hints=tuple(re.compile(hint) for hint in _texts(document, "box_hints")),
        paste_marks=tuple(re.compile(mark) for mark in _texts(document, "paste_marks")),
        interrupt_keys=_text(document.get("interrupt_keys", "\x1b")),
        guarded=re.compile(_text(document["guarded"])) if "guarded" in document else None,
        guard=_text(document.get("guard", NO_RULES.guard)),
        ready_s=_seconds(document.get("ready_s", NO_RULES.ready_s)),
        settled_s=_seconds(document.get("settled_s", NO_RULES.settled_s)),
        allowed=_optional_pattern(document, "allowed"),
        denied=_optional_pattern(document, "denied"),
        right_edge=_optional_pattern(document, "right_edge"),
        rules=tuple(_rule(table, f"{path}:{line}") for table, line in zip(tables, lines, strict=True)),
    )


def _rule(table: object, where: str) -> ScreenRule:
    if not isinstance(table, dict):
        raise TypeError("rule must be a table")
    _require_known(table, _RULE_KEYS, where)
    place = _text(table.get("in", "screen"))
    if place not in {"screen", "title"}:
        raise ValueError(f"in is screen or title, not {place!r}")
    last_lines = table.get("last_lines", _DEFAULT_LAST_LINES)
    if not isinstance(last_lines, int) or isinstance(last_lines, bool) or last_lines < 1:
        raise TypeError("last_lines must be a number from 1 up")
    answers = table.get("answer", [])
    if not isinstance(answers, list):
        raise TypeError("answer must be a list of tables")
    return ScreenRule(
        name=_text(table["name"]),
        state=ScreenState(_text(table["state"])),
        is_for_title=place == "title",
        pattern=re.compile(_text(table["pattern"]), re.MULTILINE),
        unless=_optional_pattern(table, "unless"),
        last_lines=last_lines,
        is_above_box=_yes_or_no(table.get("above_box", False)),
        note=_text(table.get("note", ""), may_be_empty=True),
        where=where,
        tool=_text(table.get("tool", ""), may_be_empty=True),
        type=OperationType(_text(table["type"])) if "type" in table else None,
        answers=tuple(_answer(one, where) for one in answers),
    )


def _answer(table: object, where: str) -> AnswerRule:
    if not isinstance(table, dict):
        raise TypeError("answer must be a table")
    _require_known(table, _ANSWER_KEYS, where)
    return AnswerRule(
        decision=AskDecision(_text(table["decision"])),
        pattern=re.compile(_text(table["pattern"]), re.MULTILINE),
        moves=_text(table.get("moves", ""), may_be_empty=True),
        keys=_text(table.get("keys", "{key}")),
        marked=_optional_pattern(table, "marked"),
    )


def _optional_pattern(table: Mapping[str, object], key: str) -> re.Pattern[str] | None:
    return re.compile(_text(table[key]), re.MULTILINE) if key in table else None


def _require_known(table: Mapping[str, object], known: frozenset[str], place: str) -> None:
    unknown = sorted(set(table) - known)
    if unknown:
        raise ValueError(f"{place}: unknown entry {unknown[0]}")


def _texts(table: Mapping[str, object], key: str) -> tuple[str, ...]:
    found = table.get(key, [])
    if not isinstance(found, list):
        raise TypeError(f"{key} must be a list of texts")
    return tuple(_text(one) for one in found)


def _seconds(value: object) -> float:
    if not isinstance(value, int | float) or isinstance(value, bool) or not 0 <= value < 60:  # noqa: PLR2004 - a minute
        raise TypeError(f"{value!r} must be a number of seconds below 60")
    return float(value)


def _yes_or_no(value: object) -> bool:
    if not isinstance(value, bool):
        raise TypeError(f"{value!r} must be true or false")
    return value


def _text(value: object, *, may_be_empty: bool = False) -> str:
    if not isinstance(value, str) or not (value or may_be_empty):
        raise TypeError(f"{value!r} must be a text")
    return value
