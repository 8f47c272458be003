"""How the cost of one answer comes about, step by step, for a person who asks."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Context, Decimal, localcontext
from typing import TYPE_CHECKING, Final

from agentmon.usage.prices.rates import KINDS, NANO_PER_DOLLAR, PER, Factor, Kind, ModelRates, amount_of

if TYPE_CHECKING:
    from agentmon.domain.billing import BilledAnswer

# Enough for any product here to be exact: 20 digits of tokens, 30 of a rate, 10 of factors.
_EXACT: Final = Context(prec=120)
_WORDS: Final = {
    Kind.INPUT: "input",
    Kind.CACHE_READ: "read from a cache",
    Kind.CACHE_WRITE: "written to a cache",
    Kind.CACHE_WRITE_1H: "written to a cache for 1 h",
    Kind.OUTPUT: "output",
    Kind.WEB_SEARCH: "web searches",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class PriceLine:
    """One kind of what was billed."""

    kind: Kind
    amount: int
    """Tokens; of ``web_search`` searches."""
    rate: Decimal | None
    """Dollars per million tokens, of searches per thousand, before factors; None when it is not known."""
    rate_nano: Decimal | None
    """The same in nano-dollars."""
    factor: Decimal
    """The product of the factors that count for this kind."""
    cost_nano: Decimal | None
    """Exact, not rounded."""
    origin: str
    """Where the rate is written."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PriceExplanation:
    """Why an answer costs what it does."""

    cost_nano: int | None
    source: str
    version: str
    priced_as: str
    """``provider/model`` in the words of the price list; empty when nothing was found."""
    day: str
    """In UTC, as the price was on it; empty when the record has no time, and the present price counts."""
    prompt_tokens: int
    """The whole prompt, caches and all, which decides the tier."""
    tier: str
    """Which rates count by the length of the prompt; empty when the model has one rate for all."""
    factors: tuple[Factor, ...]
    lines: tuple[PriceLine, ...]
    """The kinds that the answer has some of."""
    notes: tuple[str, ...]
    why_not: str
    """Why no list price is known; empty when one is."""
    formula: tuple[str, ...]
    """All of it as lines for a person."""


def explain_price(
    answer: BilledAnswer, rates: ModelRates, *, cost_nano: int | None, source: str, version: str
) -> PriceExplanation:
    """Return the explanation of a cost that was made with these rates."""
    prompt_tokens = (
        answer.prompt_tokens + answer.cache_read_tokens + answer.cache_write_5m_tokens + answer.cache_write_1h_tokens
    )
    with localcontext(_EXACT):
        lines = tuple(_line(answer, rates, kind, prompt_tokens) for kind in KINDS if amount_of(answer, kind))
        why_not = rates.why_not or "; ".join(
            f"no rate of {_WORDS[line.kind]} is known" for line in lines if line.rate is None
        )
        tier = _tier(rates, prompt_tokens)
        return PriceExplanation(
            cost_nano=cost_nano,
            source=source,
            version=version,
            priced_as=rates.priced_as,
            day=_day(answer.at_ms),
            prompt_tokens=prompt_tokens,
            tier=tier,
            factors=rates.factors,
            lines=lines,
            notes=rates.notes,
            why_not=why_not,
            formula=tuple(_formula(lines, rates, tier, why_not, cost_nano, source)),
        )


def _line(answer: BilledAnswer, rates: ModelRates, kind: Kind, prompt_tokens: int) -> PriceLine:
    amount = amount_of(answer, kind)
    rate = rates.kinds.get(kind)
    factor = rates.factor_of(kind)
    exact_factor = Decimal(factor.numerator) / Decimal(factor.denominator)
    if rate is None:
        return PriceLine(
            kind=kind, amount=amount, rate=None, rate_nano=None, factor=exact_factor, cost_nano=None, origin=""
        )
    price = rate.at(prompt_tokens)
    rate_nano = price * NANO_PER_DOLLAR
    return PriceLine(
        kind=kind,
        amount=amount,
        rate=price,
        rate_nano=rate_nano,
        factor=exact_factor,
        cost_nano=amount * rate_nano * exact_factor / PER[kind],
        origin=rate.origin,
    )


def _tier(rates: ModelRates, prompt_tokens: int) -> str:
    thresholds = rates.thresholds()
    if not thresholds:
        return ""
    crossed = [above for above in thresholds if prompt_tokens > above]
    if crossed:
        return f"a prompt of {prompt_tokens:,} tokens is above {crossed[-1]:,}: the long rate for all of it"
    return f"a prompt of {prompt_tokens:,} tokens is not above {thresholds[0]:,}: the base rate"


def _formula(
    lines: tuple[PriceLine, ...],
    rates: ModelRates,
    tier: str,
    why_not: str,
    cost_nano: int | None,
    source: str,
) -> list[str]:
    words = [*rates.notes, tier, *map(_product, lines)]
    words += [f"× {plain_number(factor.value)} for {factor.name}: {factor.origin}" for factor in rates.factors]
    words.append(why_not)
    dollars = "" if cost_nano is None else plain_number(Decimal(cost_nano) / NANO_PER_DOLLAR)
    if not dollars:
        words.append("the cost is unknown")
    elif source == "reported":
        words.append(f"the agent itself reported ${dollars}")
    else:
        exact = sum((line.cost_nano or Decimal(0) for line in lines), Decimal(0))
        words.append(f"together ${dollars}" + ("" if exact == cost_nano else ", rounded to a billionth of a dollar"))
    return [word for word in words if word]


def _product(line: PriceLine) -> str:
    if line.rate is None or line.cost_nano is None:
        return f"{line.amount:,} {_WORDS[line.kind]}: no rate is known"
    per = "a thousand" if line.kind is Kind.WEB_SEARCH else "a million"
    factor = "" if line.factor == 1 else f" × {plain_number(line.factor)}"
    dollars = plain_number(line.cost_nano / NANO_PER_DOLLAR)
    product = f"${plain_number(line.rate)} for {per}{factor} = ${dollars}"
    return f"{line.amount:,} {_WORDS[line.kind]} × {product}  [{line.origin}]"


def plain_number(number: Decimal) -> str:
    """Return the digits of the number, without an exponent and without zeros that say nothing."""
    text = f"{number:f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def _day(at_ms: int) -> str:
    if at_ms == 0:
        return ""
    try:
        return datetime.fromtimestamp(at_ms / 1000, UTC).date().isoformat()
    except (ValueError, OverflowError, OSError):
        return ""
