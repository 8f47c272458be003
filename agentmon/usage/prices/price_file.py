"""A file of prices, shipped or a person's own: what stands in it, and what in it cannot be used and why.

An entry that cannot be used is left out and told; the others stay in force.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from datetime import date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Final

from agentmon.domain.written_text import toml_of
from agentmon.usage.prices.rates import KINDS, Factor, Kind, KindRate

if TYPE_CHECKING:
    from collections.abc import Mapping

SPEEDS: Final = ("standard", "fast", "priority", "flex", "batch")
HIGHEST_RATE: Final = 1_000_000
"""Dollars for a million tokens; whoever writes more has mistaken the unit."""
HIGHEST_FACTOR: Final = 1_000

_ENTRY_KEYS: Final = frozenset({"provider", "model", "speed", "from", "above", "note", *KINDS})
_ALIAS_KEYS: Final = frozenset({"model", "from", "provider", "means", "note"})
_FORM: Final = "write each price as a table that begins with a line [[price]]"


@dataclass(frozen=True, slots=True, kw_only=True)
class PriceProblem:
    """Something in a file of prices that is not used."""

    where: str
    what: str
    advice: str

    def __str__(self) -> str:
        return f"{self.where}: {self.what}; {self.advice}"


@dataclass(frozen=True, slots=True, kw_only=True)
class PriceEntry:
    """Rates of one model from one day on; a kind that is missing keeps the rate that it has without this entry."""

    model: str
    """In small letters; ``*`` stands for any letters."""
    provider: str = ""
    """Empty for any."""
    speed: str = "standard"
    since: date = date.min
    """The first day, in UTC."""
    kinds: Mapping[Kind, KindRate] = field(default_factory=dict)

    def is_for(self, names: tuple[str, ...], providers: tuple[str, ...], speed: str, day: date) -> bool:
        """Return whether the entry counts for a model with these names, at one of these providers, on this day."""
        return (
            self.speed == speed
            and self.since <= day
            and (not self.provider or self.provider in providers)
            and any(_fits(self.model, name) for name in names)
        )

    @property
    def rank(self) -> tuple[bool, date]:
        """What comes later in this order counts: a whole name over a pattern, a later day over an earlier one."""
        return "*" not in self.model, self.since


@dataclass(frozen=True, slots=True, kw_only=True)
class Alias:
    """A name that stands for a model from one day on."""

    model: str
    since: date = date.min
    provider: str
    means: str
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class PriceFile:
    """What a file of prices says."""

    entries: tuple[PriceEntry, ...] = ()
    aliases: tuple[Alias, ...] = ()
    speed_factors: Mapping[tuple[str, str], Factor] = field(default_factory=dict)
    """By provider and speed."""
    geo_factors: Mapping[tuple[str, str], Factor] = field(default_factory=dict)
    """By provider and geo."""
    providers: Mapping[str, str] = field(default_factory=dict)
    makers: Mapping[str, str] = field(default_factory=dict)
    problems: tuple[PriceProblem, ...] = ()

    def alias_of(self, names: tuple[str, ...], day: date) -> Alias | None:
        """Return what one of the names stands for on the day, the latest word on it."""
        fitting = [alias for alias in self.aliases if alias.since <= day and any(_fits(alias.model, n) for n in names)]
        return max(fitting, key=lambda alias: alias.since, default=None)


class _UnusableError(Exception):
    """An entry cannot be used."""

    def __init__(self, what: str, advice: str) -> None:
        super().__init__(what)
        self.what = what
        self.advice = advice


def read_price_file(content: bytes, *, name: str, origin: str) -> PriceFile:
    """Return what the content says; nothing raises, what cannot be used is in ``problems``.

    Args:
        content: TOML in UTF-8.
        name: How the file is called in problems.
        origin: How the file is called as the place where a rate is written.
    """
    try:
        document = toml_of(content, parse_float=Decimal)
    except ValueError as error:
        advice = "mend that place; until then none of the file's prices count"
        return PriceFile(problems=(PriceProblem(where=name, what=f"it is not TOML: {error}", advice=advice),))
    reading = _Reading(name, origin)
    for key, value in document.items():
        reading.take(key, value)
    return reading.finished()


class _Reading:
    """Collects what a document says."""

    def __init__(self, name: str, origin: str) -> None:
        self._name = name
        self._origin = origin
        self._entries: list[PriceEntry] = []
        self._aliases: list[Alias] = []
        self._factors: dict[str, dict[tuple[str, str], Factor]] = {"speed": {}, "geo": {}}
        self._names: dict[str, dict[str, str]] = {"providers": {}, "makers": {}}
        self._problems: list[PriceProblem] = []

    def take(self, key: str, value: object) -> None:
        """Take one top-level key."""
        if key in {"price", "alias", "speed", "geo"} and isinstance(value, list):
            for number, table in enumerate(value, 1):
                self._take_table(key, number, table)
        elif key in self._names and isinstance(value, dict):
            self._take_names(key, value)
        else:
            self._problem(self._name, f"{key!r} is no part of a file of prices", _FORM)

    def finished(self) -> PriceFile:
        """Return what was collected."""
        return PriceFile(
            entries=tuple(sorted(self._entries, key=lambda entry: entry.rank)),
            aliases=tuple(self._aliases),
            speed_factors=self._factors["speed"],
            geo_factors=self._factors["geo"],
            providers=self._names["providers"],
            makers=self._names["makers"],
            problems=tuple(self._problems),
        )

    def _take_table(self, key: str, number: int, table: object) -> None:
        model = table.get("model") if isinstance(table, dict) else None
        where = f"{self._name}, {key} {number}" + (f" ({model})" if isinstance(model, str) else "")
        if not isinstance(table, dict):
            self._problem(where, "it is no table", _FORM)
            return
        try:
            match key:
                case "price":
                    self._entries.append(_entry(table, self._origin))
                case "alias":
                    self._aliases.append(_alias(table))
                case _:
                    factor = _factor(table, key, self._origin)
                    self._factors[key][
                        _required_text(table, "provider").lower(), _required_text(table, key).lower()
                    ] = factor
        except _UnusableError as error:
            self._problem(where, error.what, error.advice)

    def _take_names(self, key: str, table: Mapping[str, object]) -> None:
        for name, meant in table.items():
            if name and isinstance(meant, str) and meant:
                self._names[key][name.lower()] = meant
            else:
                self._problem(
                    f"{self._name}, {key}", f"{name!r} is no name that means a provider", 'write "name" = "provider"'
                )

    def _problem(self, where: str, what: str, advice: str) -> None:
        self._problems.append(PriceProblem(where=where, what=what, advice=advice))


def _entry(table: Mapping[str, object], origin: str) -> PriceEntry:
    _refuse_unknown_keys(table, _ENTRY_KEYS)
    speed = _text(table, "speed") or "standard"
    if speed not in SPEEDS:
        raise _UnusableError(f"there is no speed {speed!r}", "it is one of " + ", ".join(SPEEDS))
    steps = _steps(table.get("above", []))
    kinds = {
        kind: KindRate(
            base=_rate(table[kind], kind),
            steps=tuple((above, rates[kind]) for above, rates in steps if kind in rates),
            origin=origin,
        )
        for kind in KINDS
        if kind in table
    }
    if not kinds:
        raise _UnusableError("it names no rate", "give at least one of " + ", ".join(KINDS))
    for above, rates in steps:
        if lost := sorted(rates.keys() - kinds.keys()):
            raise _UnusableError(
                f"above {above} tokens it has {lost[0]}, without one below", f"give {lost[0]} in the entry itself too"
            )
    return PriceEntry(
        model=_required_text(table, "model").lower(),
        provider=_text(table, "provider").lower(),
        speed=speed,
        since=_day(table),
        kinds=kinds,
    )


def _alias(table: Mapping[str, object]) -> Alias:
    _refuse_unknown_keys(table, _ALIAS_KEYS)
    return Alias(
        model=_required_text(table, "model").lower(),
        since=_day(table),
        provider=_required_text(table, "provider").lower(),
        means=_required_text(table, "means").lower(),
        note=_text(table, "note"),
    )


def _factor(table: Mapping[str, object], key: str, origin: str) -> Factor:
    _refuse_unknown_keys(table, frozenset({"provider", key, "factor", "note"}))
    value = table.get("factor")
    number = Decimal(value) if isinstance(value, int | Decimal) and not isinstance(value, bool) else Decimal("nan")
    if not number.is_finite() or not 0 <= number <= HIGHEST_FACTOR:
        raise _UnusableError(
            f"its factor is no number from 0 to {HIGHEST_FACTOR}", "write what rates are multiplied by, such as 0.5"
        )
    return Factor(name=f"{key} {_required_text(table, key)}", value=number, origin=_text(table, "note") or origin)


def _refuse_unknown_keys(table: Mapping[str, object], known: frozenset[str]) -> None:
    if strange := sorted(table.keys() - known):
        raise _UnusableError(f"there is no {strange[0]!r} in it", "it may have " + ", ".join(sorted(known)))


def _steps(value: object) -> list[tuple[int, dict[Kind, Decimal]]]:
    if not isinstance(value, list) or not all(isinstance(table, dict) for table in value):
        raise _UnusableError("above is no list of tables", "write [[price.above]] with prompt_tokens and rates")
    steps = []
    for table in value:
        _refuse_unknown_keys(table, frozenset({"prompt_tokens", *KINDS}))
        above = table.get("prompt_tokens")
        if not isinstance(above, int) or isinstance(above, bool) or above < 1:
            raise _UnusableError(
                "above has no prompt_tokens", "say above how many tokens of the whole prompt it holds, as 200000"
            )
        steps.append((above, {kind: _rate(table[kind], kind) for kind in KINDS if kind in table}))
    return sorted(steps, key=lambda step: step[0])


def _rate(value: object, kind: Kind) -> Decimal:
    per = "a thousand searches" if kind is Kind.WEB_SEARCH else "a million tokens"
    advice = f"write dollars for {per} as a number without quotes, such as 2.5"
    if isinstance(value, bool) or not isinstance(value, int | Decimal):
        raise _UnusableError(f"{kind} is no number", advice)
    rate = Decimal(value)
    if not rate.is_finite():
        raise _UnusableError(f"{kind} is no finite number", advice)
    if rate < 0:
        raise _UnusableError(f"{kind} is below zero", advice)
    if rate > HIGHEST_RATE:
        raise _UnusableError(f"{kind} is {rate} dollars for {per}, which no model costs", advice)
    return rate


def _day(table: Mapping[str, object]) -> date:
    value = table.get("from", date.min)
    if isinstance(value, str) and re.fullmatch(r"\d{4}-\d{2}-\d{2}", value):
        try:
            return date.fromisoformat(value)
        except ValueError as error:
            raise _UnusableError(f"from is no day: {error}", "write it as 2026-01-31") from None
    if isinstance(value, datetime) or not isinstance(value, date):
        raise _UnusableError("from is no day", "write it as 2026-01-31, the first day in UTC")
    return value


def _text(table: Mapping[str, object], key: str) -> str:
    value = table.get(key, "")
    if not isinstance(value, str):
        raise _UnusableError(f"{key} is no text", "write it in quotes")
    return value.strip()


def _required_text(table: Mapping[str, object], key: str) -> str:
    if not (text := _text(table, key)):
        raise _UnusableError(f"it has no {key}", f'add a line such as {key} = "…"')
    return text


def _fits(pattern: str, name: str) -> bool:
    first, *others = pattern.split("*")
    if not others:
        return pattern == name
    *middle, last = others
    if len(name) < len(first) + len(last) or not name.startswith(first) or not name.endswith(last):
        return False
    at, end = len(first), len(name) - len(last)
    for part in middle:
        at = name.find(part, at, end)
        if at < 0:
            return False
        at += len(part)
    return True
