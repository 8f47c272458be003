"""Reads files of danger rules; the comments in ``commands.rules.toml`` say what each entry means."""

from __future__ import annotations

import logging
import re
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Final

from agentmon.domain.agents import DangerLevel
from agentmon.domain.command_reading import ProgramGrammar
from agentmon.domain.danger import DangerRule, DangerRules, VariableRule, WrapperRule, WriteRule
from agentmon.domain.errors import UsageError
from agentmon.domain.written_text import toml_of

if TYPE_CHECKING:
    from collections.abc import Mapping

_log = logging.getLogger(__name__)

RULES_FILE: Final = Path(__file__).with_name("commands.rules.toml")
"""Packed into the wheel as every file of the package is."""

_TABLES: Final = frozenset({"patterns", "sets", "grammar", "wrapper", "write", "variable", "rule"})
_OWN_TABLES: Final = frozenset({"patterns", "rule"})
_SETS: Final = frozenset(
    {"shells", "interpreters", "senders", "printers", "command_variables", "reading_verbs", "free_words"}
)
_GRAMMAR_KEYS: Final = frozenset(
    {"value_options", "exact_options", "command_options", "write_options", "abbreviates", "has_clusters"},
)
_RULE_KEYS: Final = frozenset(
    {
        *("programs", "command", "verbs", "options", "unless_options", "operand", "last_operand", "only_operands"),
        *("text",),
        *("level", "reason", "lowers"),
    },
)
_WRAPPER_KEYS: Final = _GRAMMAR_KEYS | {
    *("programs", "command", "operands", "has_assignments", "is_shared", "is_script", "script_options"),
    *("level", "reason", "most"),
}
_PATTERN_NAME: Final = re.compile(r"@([a-z_]+)")
_HINT: Final = "mend it; README.md, “Danger”, says what an entry may have"


def load_danger_rules(own_file: Path | None = None) -> DangerRules:
    """Return the rules in force; files are read again only when they have changed.

    Args:
        own_file: The person's file of rules; it need not be there.

    Raises:
        UsageError: The person's file cannot be used; the message names the entry.
    """
    rules = _built_in()
    if own_file is None:
        return rules
    try:
        state = own_file.stat()
    except OSError:
        return rules
    return _with_own(own_file, state.st_mtime_ns, state.st_size)


def danger_rules_in_force(own_file: Path) -> DangerRules:
    """Return the rules that count now: without the person's while their file cannot be used, as the doctor tells."""
    try:
        return load_danger_rules(own_file)
    except UsageError as error:
        _log.warning("%s", error)
        return _built_in()


def read_danger_rules(path: Path, *, is_own: bool = False) -> DangerRules:
    """Return the rules of one file.

    Args:
        path: The file.
        is_own: Whether it is a person's: such a one has rules and patterns only, and may use the patterns of ours.

    Raises:
        UsageError: It is not TOML, or an entry is missing, unknown or of the wrong kind; the message names it.
    """
    try:
        return _read(toml_of(path.read_bytes()), is_own=is_own)
    except (OSError, KeyError, TypeError, ValueError, AttributeError) as error:
        missing = f"the entry {error} is missing" if isinstance(error, KeyError) else str(error)
        raise UsageError(f"the danger rules {path} cannot be used: {missing}", hint=_HINT) from error


@cache
def _built_in() -> DangerRules:
    return read_danger_rules(RULES_FILE)


@cache
def _our_patterns() -> Mapping[str, str]:
    return _texts(toml_of(RULES_FILE.read_bytes())["patterns"])


@cache
def _with_own(own_file: Path, modified_ns: int, size: int) -> DangerRules:  # noqa: ARG001 - they tell that it changed
    own = read_danger_rules(own_file, is_own=True)
    return replace(_built_in(), own_rules=own.rules)


def _read(tables: Mapping[str, object], *, is_own: bool) -> DangerRules:
    _require_known(tables, _OWN_TABLES if is_own else _TABLES, "the file")
    patterns = _texts(_table(tables.get("patterns", {}), "patterns"))
    if is_own:
        patterns = {**_our_patterns(), **patterns}
    sets = _table(tables.get("sets", {}), "sets")
    _require_known(sets, _SETS, "sets")

    def names(name: str) -> frozenset[str]:
        return frozenset(_words(sets.get(name, []), name))

    return DangerRules(
        rules=tuple(_rule(one, patterns, place) for place, one in _entries(tables, "rule")),
        wrappers=tuple(_wrapper(one, place) for place, one in _entries(tables, "wrapper")),
        grammars=tuple(
            (_words(one["programs"], place), _grammar(one, place, _GRAMMAR_KEYS | {"programs"}))
            for place, one in _entries(tables, "grammar")
        ),
        writes=tuple(_write(one, patterns, place) for place, one in _entries(tables, "write")),
        variables=tuple(_variable(one, patterns, place) for place, one in _entries(tables, "variable")),
        shells=names("shells"),
        interpreters=names("interpreters"),
        senders=names("senders"),
        printers=names("printers"),
        command_variables=names("command_variables"),
        reading_verbs=names("reading_verbs"),
        free_words=names("free_words"),
    )


def _rule(entry: Mapping[str, object], patterns: Mapping[str, str], place: str) -> DangerRule:
    _require_known(entry, _RULE_KEYS, place)
    programs = _words(entry["programs"], place)
    if not programs:
        raise ValueError(f"{place}: it names no program")
    return DangerRule(
        programs=programs,
        level=_level(entry["level"], place),
        reason=_text(entry.get("reason", ""), place),
        command=_groups(entry.get("command", []), place),
        verbs=frozenset(_words(entry.get("verbs", []), place)),
        options=_groups(entry.get("options", []), place),
        unless_options=frozenset(_words(entry.get("unless_options", []), place)),
        operand=_pattern(entry.get("operand"), patterns, place),
        last_operand=_pattern(entry.get("last_operand"), patterns, place),
        only_operands=_pattern(entry.get("only_operands"), patterns, place),
        text=_pattern(entry.get("text"), patterns, place),
        lowers=_switch(entry.get("lowers", False), place),
    )


def _wrapper(entry: Mapping[str, object], place: str) -> WrapperRule:
    operands = entry.get("operands", 0)
    if not isinstance(operands, int):
        raise TypeError(f"{place}: operands is no number")
    return WrapperRule(
        programs=_words(entry["programs"], place),
        grammar=_grammar(entry, place, _WRAPPER_KEYS),
        command=_groups(entry.get("command", []), place),
        operands=operands,
        has_assignments=_switch(entry.get("has_assignments", False), place),
        is_shared=_switch(entry.get("is_shared", False), place),
        is_script=_switch(entry.get("is_script", False), place),
        script_options=frozenset(_words(entry.get("script_options", []), place)),
        level=_level(entry.get("level", 0), place),
        reason=_text(entry.get("reason", ""), place),
        most=_level(entry.get("most", DangerLevel.DESTRUCTIVE.value), place),
    )


def _grammar(entry: Mapping[str, object], place: str, known: frozenset[str]) -> ProgramGrammar:
    _require_known(entry, known, place)
    return ProgramGrammar(
        value_options=frozenset(_words(entry.get("value_options", []), place)),
        exact_options=frozenset(_words(entry.get("exact_options", []), place)),
        command_options=frozenset(_words(entry.get("command_options", []), place)),
        write_options=frozenset(_words(entry.get("write_options", []), place)),
        abbreviates=_switch(entry.get("abbreviates", False), place),
        has_clusters=_switch(entry.get("has_clusters", True), place),
    )


def _write(entry: Mapping[str, object], patterns: Mapping[str, str], place: str) -> WriteRule:
    target = _pattern(entry["target"], patterns, place)
    if target is None:
        raise ValueError(f"{place}: it names no target")
    return WriteRule(target=target, level=_level(entry["level"], place), reason=_text(entry["reason"], place))


def _variable(entry: Mapping[str, object], patterns: Mapping[str, str], place: str) -> VariableRule:
    return VariableRule(
        names=_words(entry["names"], place),
        text=_pattern(entry.get("text"), patterns, place),
        level=_level(entry["level"], place),
        reason=_text(entry["reason"], place),
    )


def _entries(tables: Mapping[str, object], name: str) -> list[tuple[str, Mapping[str, object]]]:
    entries = tables.get(name, [])
    if not isinstance(entries, list):
        raise TypeError(f"{name} is written [[{name}]]")
    return [(f"{name} {number}", _table(entry, name)) for number, entry in enumerate(entries, 1)]


def _table(table: object, name: str) -> Mapping[str, object]:
    if not isinstance(table, dict):
        raise TypeError(f"{name} is no table")
    return table


def _require_known(entry: Mapping[str, object], known: frozenset[str], place: str) -> None:
    unknown = sorted(set(entry) - known)
    if unknown:
        raise ValueError(f"{place}: unknown entry {unknown[0]}; known are {', '.join(sorted(known))}")


def _texts(table: Mapping[str, object]) -> dict[str, str]:
    return {name: _text(text, name) for name, text in table.items()}


def _text(text: object, place: str) -> str:
    if not isinstance(text, str):
        raise TypeError(f"{place}: {text!r} is no text")
    return text


def _switch(switch: object, place: str) -> bool:
    if not isinstance(switch, bool):
        raise TypeError(f"{place}: {switch!r} is neither true nor false")
    return switch


def _words(words: object, place: str) -> tuple[str, ...]:
    if not isinstance(words, list):
        raise TypeError(f"{place}: {words!r} is no list of texts")
    return tuple(_text(word, place) for word in words)


def _groups(words: object, place: str) -> tuple[frozenset[str], ...]:
    return tuple(frozenset(word.split("|")) for word in _words(words, place))


def _level(level: object, place: str) -> DangerLevel:
    if isinstance(level, bool) or not isinstance(level, int) or level not in set(DangerLevel):
        raise ValueError(f"{place}: level {level!r} is none of 0, 1, 2, 3")
    return DangerLevel(level)


def _pattern(text: object, patterns: Mapping[str, str], place: str) -> re.Pattern[str] | None:
    if text is None:
        return None

    def named(found: re.Match[str]) -> str:
        if found[1] not in patterns:
            raise ValueError(f"{place}: there is no pattern {found[0]}")
        return patterns[found[1]]

    try:
        return re.compile(_PATTERN_NAME.sub(named, _text(text, place)))
    except re.error as error:
        raise ValueError(f"{place}: {text!r} is no pattern: {error}") from error
