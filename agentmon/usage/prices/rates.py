"""Rates as price lists tell them, and as plain whole numbers that price an answer in about a microsecond."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from math import lcm
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Mapping
    from decimal import Decimal

    from agentmon.domain.billing import BilledAnswer

NANO_PER_DOLLAR: Final = 1_000_000_000
PriceSource: TypeAlias = Literal["list", "override", "reported", "none"]


class Kind(StrEnum):
    """What of an answer is billed at a rate of its own."""

    INPUT = "input"
    CACHE_READ = "cache_read"
    CACHE_WRITE = "cache_write"
    """Kept for five minutes, or for a time that was not told."""
    CACHE_WRITE_1H = "cache_write_1h"
    OUTPUT = "output"
    WEB_SEARCH = "web_search"


KINDS: Final = tuple(Kind)
PER: Final[Mapping[Kind, int]] = {kind: 1000 if kind is Kind.WEB_SEARCH else 1_000_000 for kind in KINDS}
"""How many tokens, or searches, a rate is for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KindRate:
    """The rate of one kind, in dollars per million tokens; of web searches per thousand."""

    base: Decimal
    steps: tuple[tuple[int, Decimal], ...] = ()
    """Other rates for long prompts: a prompt of more tokens than the first number pays the second for all of them."""
    origin: str
    """Where the rate is written."""

    def at(self, prompt_tokens: int) -> Decimal:
        """Return the rate of an answer whose whole prompt, caches and all, has so many tokens."""
        rate = self.base
        for above, step in self.steps:
            if prompt_tokens > above:
                rate = step
        return rate


@dataclass(frozen=True, slots=True, kw_only=True)
class Factor:
    """What the rates of tokens are multiplied by; fees per request, such as those of searches, are not."""

    name: str
    value: Decimal
    origin: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelRates:
    """The price of a model at one time and in one speed, with the way it was found."""

    priced_as: str
    """``provider/model`` in the words of the price list; empty when nothing was found."""
    kinds: Mapping[Kind, KindRate]
    """A kind that is missing has no known rate."""
    factors: tuple[Factor, ...] = ()
    is_override: bool = False
    """Whether the person's own prices count in it."""
    notes: tuple[str, ...] = ()
    why_not: str = ""
    """Why there is no price; empty when there is one."""

    def thresholds(self) -> tuple[int, ...]:
        """Return the prompt lengths above which another rate holds, ascending."""
        return tuple(sorted({above for rate in self.kinds.values() for above, _ in rate.steps}))

    def factor_of(self, kind: Kind) -> Fraction:
        """Return the product of the factors that count for the kind."""
        product = Fraction(1)
        if kind is not Kind.WEB_SEARCH:
            for factor in self.factors:
                product *= Fraction(factor.value)
        return product


_Level = tuple[int, int, int, int, int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class CompiledRates:
    """Whole numbers, in the order of ``Kind``: nano-dollars for ``divisor`` tokens or searches."""

    base: _Level
    steps: tuple[tuple[int, _Level], ...]
    """Longest prompt first."""
    divisor: int
    unknown: tuple[Kind, ...]
    """Kinds whose number is a placeholder: an answer that has some of them has no price."""
    source: PriceSource

    def cost_nano(self, answer: BilledAnswer) -> int | None:
        """Return what the answer costs, rounded half to even; None when the rate of something in it is unknown."""
        if self.unknown and (self.source == "none" or any(amount_of(answer, kind) for kind in self.unknown)):
            return None
        fresh, read = answer.prompt_tokens, answer.cache_read_tokens
        write, write_1h = answer.cache_write_5m_tokens, answer.cache_write_1h_tokens
        per_fresh, per_read, per_write, per_write_1h, per_response, per_search = self.base
        if self.steps:
            prompt_tokens = fresh + read + write + write_1h
            for above, level in self.steps:
                if prompt_tokens > above:
                    per_fresh, per_read, per_write, per_write_1h, per_response, per_search = level
                    break
        total = (
            fresh * per_fresh
            + read * per_read
            + write * per_write
            + write_1h * per_write_1h
            + answer.response_tokens * per_response
            + answer.web_searches * per_search
        )
        return total if self.divisor == 1 else round_half_even(total, self.divisor)


def compile_rates(rates: ModelRates) -> CompiledRates:
    """Return the same rates as whole numbers; nothing is lost."""
    if rates.why_not:
        return CompiledRates(base=(0,) * 6, steps=(), divisor=1, unknown=KINDS, source="none")
    levels = [_level(rates, above + 1) for above in (-1, *rates.thresholds())]
    divisor = lcm(*(nano.denominator for level in levels for nano in level))
    whole = [tuple(int(nano * divisor) for nano in level) for level in levels]
    steps = sorted(zip(rates.thresholds(), whole[1:], strict=True), reverse=True)
    return CompiledRates(
        base=_as_level(whole[0]),
        steps=tuple((above, _as_level(level)) for above, level in steps),
        divisor=divisor,
        unknown=tuple(kind for kind in KINDS if kind not in rates.kinds),
        source="override" if rates.is_override else "list",
    )


def round_half_even(numerator: int, divisor: int) -> int:
    """Return the quotient rounded to the nearest whole number, and from the middle to the even one."""
    quotient, rest = divmod(numerator, divisor)
    doubled = rest * 2
    return quotient + (doubled > divisor or (doubled == divisor and quotient & 1))


def amount_of(answer: BilledAnswer, kind: Kind) -> int:
    """Return how many tokens, or searches, of the kind the answer has."""
    match kind:
        case Kind.INPUT:
            return answer.prompt_tokens
        case Kind.CACHE_READ:
            return answer.cache_read_tokens
        case Kind.CACHE_WRITE:
            return answer.cache_write_5m_tokens
        case Kind.CACHE_WRITE_1H:
            return answer.cache_write_1h_tokens
        case Kind.OUTPUT:
            return answer.response_tokens
        case Kind.WEB_SEARCH:
            return answer.web_searches


def _level(rates: ModelRates, prompt_tokens: int) -> list[Fraction]:
    """Return nano-dollars per single token or search, in the order of ``Kind``."""
    return [
        Fraction(rates.kinds[kind].at(prompt_tokens)) * rates.factor_of(kind) * NANO_PER_DOLLAR / PER[kind]
        if kind in rates.kinds
        else Fraction(0)
        for kind in KINDS
    ]


def _as_level(numbers: tuple[int, ...]) -> _Level:
    fresh, read, write, write_1h, response, searches = numbers
    return fresh, read, write, write_1h, response, searches
