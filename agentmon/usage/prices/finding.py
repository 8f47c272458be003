"""Which rates hold for a model at a time, in a speed and a region: the list's, then the overlay's, then own ones."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from agentmon.usage.prices.model_names import is_of_bedrock, names_of
from agentmon.usage.prices.rates import Factor, Kind, KindRate, ModelRates

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import date, datetime

    from agentmon.usage.prices.price_list import ListedModel
    from agentmon.usage.prices.sources import PriceSources

_STANDARD_WORDS: Final = frozenset({"", "standard", "default", "auto"})
_SELLERS_AT_LIST_PRICE: Final = frozenset(
    {"anthropic", "openai", "google", "aws", "azure", "openrouter", "github-copilot"}
)
"""A model that these do not list themselves is looked for in the list of its maker."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Found:
    """Where the price of a model stands."""

    names: tuple[str, ...]
    providers: tuple[str, ...]
    listed: ListedModel | None
    notes: tuple[str, ...]

    @property
    def seller(self) -> str:
        """Whose factors count; empty when it is not known."""
        return self.listed.provider_id if self.listed else next(iter(self.providers[-1:]), "")


class RateFinder:
    """Finds rates in the sources; what a name means is remembered."""

    def __init__(self, sources: PriceSources) -> None:
        self._sources = sources
        self._found: dict[tuple[str, str, str], _Found] = {}

    def find(self, *, provider: str, model: str, at: datetime, speed: str, geo: str) -> ModelRates:
        """Return the rates, or why there are none."""
        day = at.date()
        found = self._where(provider, model, day)
        standard = "standard"
        kinds = dict(found.listed.rates(at)) if found.listed else {}
        is_own = self._lay_over(kinds, found, standard, day)
        factors: list[Factor] = []
        speed = standard if speed.lower() in _STANDARD_WORDS else speed.lower()
        if speed != standard:
            faster = dict(found.listed.speed_rates(at, speed)) if found.listed else {}
            is_own_speed = self._lay_over(faster, found, speed, day)
            factor = None
            if not faster:
                factor, is_own_speed = self._sources.speed_factor(found.seller, speed)
            if factor is not None:
                factors.append(factor)
            elif not faster and kinds:
                return _no_rates(found, f"no price of {found.names[0]} in the speed {speed!r} is known")
            kinds |= faster
            is_own = is_own or is_own_speed
        if Kind.INPUT not in kinds and Kind.OUTPUT not in kinds:
            return _no_rates(found, self._why_not(found, provider, model))
        if geo:
            factor, is_own_geo = self._sources.geo_factor(found.seller, geo.lower())
            factors += [factor] if factor is not None else []
            is_own = is_own or is_own_geo
        return ModelRates(
            priced_as=_priced_as(found),
            kinds=_with_stand_ins(kinds),
            factors=tuple(factors),
            is_override=is_own,
            notes=found.notes,
        )

    def changes_within_a_day(self, *, provider: str, model: str, day: date) -> tuple[int, ...]:
        """Return the milliseconds after midnight UTC at which the rates change on the day; mostly none."""
        listed = self._where(provider, model, day).listed
        return listed.changes_within_a_day() if listed else ()

    def speeds(self, *, provider: str, model: str, at: datetime) -> tuple[str, ...]:
        """Return the speeds besides the standard one that have a price."""
        return tuple(
            speed
            for speed in ("fast", "priority", "flex", "batch")
            if not self.find(provider=provider, model=model, at=at, speed=speed, geo="").why_not
        )

    def _where(self, provider: str, model: str, day: date) -> _Found:
        names = names_of(model)
        alias = self._sources.own.alias_of(names, day) or self._sources.overlay.alias_of(names, day)
        key = (provider, model, alias.means if alias else "")
        if key not in self._found:
            if alias is None:
                self._found[key] = self._looked_up(provider, names, model)
            else:
                meant = self._looked_up(alias.provider, names_of(alias.means), alias.means)
                note = f"{names[0]} is priced as {alias.means}" + (f": {alias.note}" if alias.note else "")
                self._found[key] = replace(meant, names=names + meant.names, notes=(note, *meant.notes))
        return self._found[key]

    def _looked_up(self, provider: str, names: tuple[str, ...], model: str) -> _Found:
        prices = self._sources.price_list
        recorded = provider.strip().lower()
        known = self._sources.provider(recorded)
        own_id = prices.provider_id(known) if known else None
        candidates = [own_id] if own_id else ["aws"] if not known and is_of_bedrock(model) else []
        maker = next(filter(None, map(self._sources.maker, reversed(names))), None)
        if maker and maker not in candidates and (not known or own_id in _SELLERS_AT_LIST_PRICE):
            candidates.append(maker)
        for candidate in candidates:
            for name in names:
                if (listed := prices.find(candidate, name)) is not None:
                    notes = () if candidate == candidates[0] else (f"at the price of its maker, {candidate}",)
                    return _Found(
                        names=tuple(dict.fromkeys((*names, listed.model.id.lower()))),
                        providers=tuple(dict.fromkeys((recorded, known, candidate, listed.provider_id))),
                        listed=listed,
                        notes=notes,
                    )
        providers = tuple(dict.fromkeys(name for name in (recorded, known, *candidates) if name))
        return _Found(names=names or ("",), providers=providers, listed=None, notes=())

    def _lay_over(self, kinds: dict[Kind, KindRate], found: _Found, speed: str, day: date) -> bool:
        is_own_used = False
        for entry, is_own in self._sources.entries():
            if entry.is_for(found.names, found.providers, speed, day):
                kinds |= entry.kinds
                is_own_used = is_own_used or is_own
        return is_own_used

    def _why_not(self, found: _Found, provider: str, model: str) -> str:
        if not found.names[0]:
            return "the record names no model"
        if found.listed:
            return f"{found.listed.label} has {found.listed.name} without a price of tokens"
        return f"no price of {model!r}" + (f" at {provider}" if provider else "") + " is known"


def _priced_as(found: _Found) -> str:
    if found.listed:
        return found.listed.name
    return "/".join(part for part in (next(iter(found.providers), ""), found.names[-1]) if part)


def _with_stand_ins(kinds: Mapping[Kind, KindRate]) -> Mapping[Kind, KindRate]:
    """Return the rates with those of caches that have none: written or read, such tokens are input after all."""
    rates = dict(kinds)
    for kind, stand_in in (
        (Kind.CACHE_READ, Kind.INPUT),
        (Kind.CACHE_WRITE, Kind.INPUT),
        (Kind.CACHE_WRITE_1H, Kind.CACHE_WRITE),
    ):
        if kind not in rates and stand_in in rates:
            rate = rates[stand_in]
            rates[kind] = replace(rate, origin=f"{rate.origin.partition(' (as ')[0]} (as {stand_in})")
    return rates


def _no_rates(found: _Found, why_not: str) -> ModelRates:
    return ModelRates(priced_as=found.listed.name if found.listed else "", kinds={}, notes=found.notes, why_not=why_not)
