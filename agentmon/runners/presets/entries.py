"""Tables of a preset file, read with a check on each value."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, TypeVar

from agentmon.domain.agents import DangerLevel, InteractionMode, SessionIdSource, ToolType
from agentmon.domain.errors import UsageError
from agentmon.domain.execution_mode import ExecutionMode

if TYPE_CHECKING:
    from collections.abc import Mapping

_Value = TypeVar("_Value")
_Member = TypeVar("_Member", ToolType, DangerLevel, ExecutionMode, InteractionMode, SessionIdSource)


class Entry:
    """A table of a preset file; the errors name its place in the file."""

    def __init__(self, table: Mapping[str, object], *, place: str, known: frozenset[str]) -> None:
        unknown = sorted(set(table) - known)
        if unknown:
            raise UsageError(f"{place}: unknown entry {unknown[0]}; known are {', '.join(sorted(known))}")
        self._table = table
        self.place = place

    def value(self, key: str, kind: type[_Value], *, default: _Value | None = None) -> _Value:
        """Return a value of this kind.

        Raises:
            UsageError: It is missing and has no default, or is of another kind.
        """
        found = self._table.get(key, default)
        if found is None:
            raise UsageError(f"{self.place}: {key} is missing")
        if not isinstance(found, kind) or (kind is int and isinstance(found, bool)):
            raise UsageError(f"{self.place}: {key} must be a {_TOML_NAMES[kind]}")
        return found

    def text(self, key: str, *, default: str | None = None, pattern: re.Pattern[str] | None = None) -> str:
        """Return a text, which is never empty unless it has a default.

        Raises:
            UsageError: It is missing, empty, no text, or has not the form of a slug where ``pattern`` asks for one.
        """
        found = self.value(key, str, default=default)
        if not found and default is None:
            raise UsageError(f"{self.place}: {key} is empty")
        if pattern is not None and not pattern.fullmatch(found):
            raise UsageError(f"{self.place}: {key} {found!r} may have lower-case letters, digits and dashes only")
        return found

    def count(self, key: str, *, default: int) -> int:
        """Return a whole number that is not negative.

        Raises:
            UsageError: It is none.
        """
        found = self.value(key, int, default=default)
        if found < 0:
            raise UsageError(f"{self.place}: {key} must not be negative")
        return found

    def texts(self, key: str, *, required: bool = False, default: tuple[str, ...] = ()) -> tuple[str, ...]:
        """Return a list of texts.

        Raises:
            UsageError: It is missing though required, or holds something else.
        """
        found: list[object] = self.value(key, list, default=None if required else list(default))
        words = tuple(word for word in found if isinstance(word, str))
        if len(words) < len(found):
            raise UsageError(f"{self.place}: {key} must be a list of strings")
        return words

    def expression(self, key: str, *, groups: int = 0) -> re.Pattern[str] | None:
        """Return a regular expression over lines; None when there is none.

        Raises:
            UsageError: It is not valid, or has fewer groups than it needs.
        """
        text = self.text(key, default="")
        if not text:
            return None
        try:
            found = re.compile(text, re.MULTILINE)
        except (re.error, OverflowError, RecursionError) as error:
            raise UsageError(f"{self.place}: {key} is not a regular expression: {error}") from error
        if found.groups < groups:
            raise UsageError(f"{self.place}: {key} must have a group, in parentheses, around what is looked for")
        return found

    def tables(self, key: str) -> list[Mapping[str, object]]:
        """Return a list of tables with at least one.

        Raises:
            UsageError: It is missing, empty, or holds something else.
        """
        found: list[object] = self.value(key, list)
        tables: list[Mapping[str, object]] = [table for table in found if isinstance(table, dict)]
        if not tables or len(tables) < len(found):
            raise UsageError(f"{self.place}: {key} must be tables, written [[…]]")
        return tables

    def named_tables(self, key: str) -> dict[str, Mapping[str, object]]:
        """Return tables by their names, which may be none.

        Raises:
            UsageError: It holds something else.
        """
        found: dict[str, object] = self.value(key, dict, default={})
        tables: dict[str, Mapping[str, object]] = {
            name: table for name, table in found.items() if isinstance(table, dict)
        }
        if len(tables) < len(found):
            raise UsageError(f"{self.place}: {key} must hold one table for each argument")
        return tables

    def named_texts(self, key: str, *, known: frozenset[str] | None = None) -> dict[str, tuple[str, ...]]:
        """Return lists of texts by their names, which may be none.

        Raises:
            UsageError: A name is not known, or something else is there.
        """
        found: dict[str, object] = self.value(key, dict, default={})
        inner = Entry(found, place=f"{self.place}, {key}", known=frozenset(found) if known is None else known)
        return {name: inner.texts(name) for name in found}


def member(kind: type[_Member], value: str | int, *, place: str) -> _Member:
    """Return the member of an enum that has this value.

    Raises:
        UsageError: None has; the message names those that there are.
    """
    for candidate in kind:
        if candidate.value == value:
            return candidate
    allowed = ", ".join(str(candidate.value) for candidate in kind)
    raise UsageError(f"{place}: {value} is none of {allowed}")


_TOML_NAMES: Final[Mapping[type, str]] = {
    str: "string",
    int: "whole number",
    bool: "boolean",
    list: "list",
    dict: "table",
}
