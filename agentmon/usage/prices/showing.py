"""What models cost, to be shown: one by its name, or all that the agents here may use."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from agentmon.usage.prices.rates import Kind

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from agentmon.usage.prices.book import PriceBook
    from agentmon.usage.prices.rates import ModelRates

SHOWN_PROVIDERS: Final = ("anthropic", "openai", "google")


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownPrice:
    """The price of one model at one time."""

    model: str
    rates: ModelRates
    speeds: Mapping[str, ModelRates]
    """The other speeds that have a price."""
    us_rates: ModelRates | None
    """The price of answers computed in the United States only, where that differs."""


def show_model(book: PriceBook, model: str, *, provider: str, at: datetime) -> ShownPrice | None:
    """Return the price of a model by any of its names, or None when it has none then."""
    rates = book.finder.find(provider=provider, model=model, at=at, speed="", geo="")
    if rates.why_not:
        return None
    us_rates = book.finder.find(provider=provider, model=model, at=at, speed="", geo="us")
    return ShownPrice(
        model=model,
        rates=rates,
        speeds={
            speed: book.finder.find(provider=provider, model=model, at=at, speed=speed, geo="")
            for speed in book.finder.speeds(provider=provider, model=model, at=at)
        },
        us_rates=us_rates if us_rates.factors else None,
    )


def show_models(book: PriceBook, text: str, *, at: datetime) -> tuple[ShownPrice, ...]:
    """Return the models whose name contains the text, by name: those of the agents' vendors and the person's own."""
    prices = book.sources.price_list
    listed = [(listed.provider_id, listed.model.id) for name in SHOWN_PROVIDERS for listed in prices.models(name)]
    named = [(entry.provider, entry.model) for entry, _ in book.sources.entries() if "*" not in entry.model]
    known = {model for _, model in listed}
    candidates = [*listed, *(pair for pair in dict.fromkeys(named) if pair[1] not in known)]
    found = (
        show_model(book, model, provider=provider, at=at)
        for provider, model in sorted(candidates)
        if text.lower() in model.lower()
    )
    return tuple(price for price in found if price is not None and Kind.OUTPUT in price.rates.kinds)
