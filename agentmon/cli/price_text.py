"""Prices of models as text and as JSON."""

from collections.abc import Iterator, Sequence
from datetime import date
from decimal import Decimal

from agentmon.cli.columns import table, terminal_width
from agentmon.usage.prices.explanation import plain_number
from agentmon.usage.prices.rates import Kind, ModelRates
from agentmon.usage.prices.showing import ShownPrice

_UNITS = "dollars per million tokens, of web searches per thousand"


def price_form(price: ShownPrice) -> dict[str, object]:
    """Return the price as a JSON document; rates are text, so that no digit is lost."""
    return {
        "model": price.model,
        "priced_as": price.rates.priced_as,
        "is_own": price.rates.is_override,
        "notes": list(price.rates.notes),
        "rates": _rates_form(price.rates),
        "speeds": {speed: _speed_form(rates) for speed, rates in price.speeds.items()},
        "us_factor": _factor(price.us_rates) if price.us_rates is not None else "1",
    }


def model_lines(price: ShownPrice, day: date, version: str) -> list[str]:
    """Return the price of one model, rate by rate, with the place where each is written."""
    rows = list(_rate_rows("", price.rates))
    for speed, rates in price.speeds.items():
        rows += _rate_rows(f"{speed}: ", rates)
    if price.us_rates is not None:
        rows += [("US only: tokens", f"× {factor.value}", "", factor.origin) for factor in price.us_rates.factors]
    return [
        f"{price.model} is priced as {price.rates.priced_as} on {day.isoformat()}",
        *(f"  {note}" for note in price.rates.notes),
        "",
        *table(("WHAT", "RATE", "LONG PROMPT", "FROM"), rows, terminal_width()),
        "",
        f"{_UNITS}; prices {version}",
    ]


def models_lines(prices: Sequence[ShownPrice], day: date, version: str) -> list[str]:
    """Return a table of models."""
    headings = ("MODEL", "INPUT", "OUTPUT", "CACHE READ", "WRITE", "WRITE 1H", "LONG ABOVE", "SPEEDS")
    return [
        *table(headings, [_row(price) for price in prices], terminal_width()),
        "",
        f"{_UNITS} on {day.isoformat()}; prices {version}",
    ]


def _rates_form(rates: ModelRates) -> dict[str, object]:
    return {
        str(kind): {
            "rate": plain_number(rate.base),
            "above": [{"prompt_tokens": above, "rate": plain_number(step)} for above, step in rate.steps],
            "origin": rate.origin,
        }
        for kind, rate in rates.kinds.items()
    }


def _speed_form(rates: ModelRates) -> dict[str, object]:
    return {"factor": _factor(rates), "rates": _rates_form(rates)}


def _factor(rates: ModelRates) -> str:
    product = Decimal(1)
    for factor in rates.factors:
        product *= factor.value
    return plain_number(product)


def _rate_rows(lead: str, rates: ModelRates) -> Iterator[tuple[str, ...]]:
    if rates.factors:
        yield from ((f"{lead}tokens", f"× {factor.value}", "", factor.origin) for factor in rates.factors)
        return
    for kind in Kind:
        if (rate := rates.kinds.get(kind)) is not None:
            steps = ", ".join(f"{plain_number(step)} above {above:,}" for above, step in rate.steps)
            yield lead + kind.replace("_", " "), plain_number(rate.base), steps, rate.origin


def _row(price: ShownPrice) -> tuple[str, ...]:
    kinds = price.rates.kinds
    shown = (Kind.INPUT, Kind.OUTPUT, Kind.CACHE_READ, Kind.CACHE_WRITE, Kind.CACHE_WRITE_1H)
    above = price.rates.thresholds()
    return (
        price.rates.priced_as,
        *(plain_number(kinds[kind].base) if kind in kinds else "?" for kind in shown),
        f"{above[0]:,}" if above else "",
        " ".join(speed for speed, rates in price.speeds.items() if not rates.factors),
    )
