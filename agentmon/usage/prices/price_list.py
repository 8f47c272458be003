"""The price list of the package genai-prices, as it was installed or as ``prices update`` fetched it.

The package takes 0.3 s and 40 MB to import, so it is imported when the first price is asked for, never earlier.
"""

from __future__ import annotations

import json
import re
import warnings
from dataclasses import dataclass
from datetime import UTC, datetime, time
from decimal import Decimal
from importlib.metadata import version
from typing import TYPE_CHECKING, Final

from agentmon.domain.errors import AgentmonError
from agentmon.usage.prices.model_names import (
    begins_a_name,
    has_impossible_date,
    with_dashed_date,
    without_release,
)
from agentmon.usage.prices.rates import Kind, KindRate

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from genai_prices.data_snapshot import DataSnapshot
    from genai_prices.types import MatchLogic, ModelInfo, ModelPrice

_KIND_KEYS: Final[Mapping[str, Kind]] = {
    "input_mtok": Kind.INPUT,
    "cache_read_mtok": Kind.CACHE_READ,
    "cache_write_mtok": Kind.CACHE_WRITE,
    "cache_write_1h_mtok": Kind.CACHE_WRITE_1H,
    "output_mtok": Kind.OUTPUT,
    "web_searches_kcount": Kind.WEB_SEARCH,
}
_FEE_PER_REQUEST: Final = "requests_kcount"
_CONTEXTS: Final[Mapping[str, Mapping[str, str]]] = {
    "fast": {"speed": "fast", "service_tier": "fast"},
    "priority": {"service_tier": "priority"},
    "flex": {"service_tier": "flex"},
    "batch": {"processing": "batch"},
}
_NEEDED_PROVIDERS: Final = frozenset({"anthropic", "openai", "google"})
_LIST_KEYS: Final = ("package_version", "fetched_at")


class PriceDataError(AgentmonError):
    """Data of prices cannot be used."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchedList:
    """A price list that was fetched, as it is stored: a line that says what it is, then the list itself."""

    package_version: str
    """The package that was installed then; a newer one brings a newer list, and this one counts no more."""
    fetched_at: str
    """UTC, in ISO 8601."""
    payload: bytes

    @classmethod
    def parse(cls, content: bytes) -> FetchedList:
        """Return what was stored; the list itself is not looked at.

        Raises:
            PriceDataError: The content does not begin as such a file does.
        """
        first_line, _, payload = content.partition(b"\n")
        try:
            told = json.loads(first_line)
            package_version, fetched_at = (str(told[key]) for key in _LIST_KEYS)
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise PriceDataError("it does not begin as a fetched price list does") from error
        return cls(package_version=package_version, fetched_at=fetched_at, payload=payload)

    def content(self) -> bytes:
        """Return what ``parse`` reads."""
        first_line = json.dumps({"package_version": self.package_version, "fetched_at": self.fetched_at})
        return first_line.encode() + b"\n" + self.payload


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedModel:
    """A model of the price list."""

    provider_id: str
    model: ModelInfo
    is_own: bool
    """Whether the provider lists it itself, and not another one whose models it sells."""
    label: str

    @property
    def name(self) -> str:
        """``provider/model`` in the words of the price list."""
        return f"{self.provider_id}/{self.model.id}"

    def rates(self, at: datetime) -> Mapping[Kind, KindRate]:
        """Return the standard rates at the time; empty when the list has none of tokens."""
        price = self.model.get_prices(at)
        if price.__dict__.get(_FEE_PER_REQUEST):
            return {}
        return dict(_kind_rates(price, self.label)) or self._free_rates()

    def speed_rates(self, at: datetime, speed: str) -> Mapping[Kind, KindRate]:
        """Return the rates that differ in the speed at the time; empty when the list does not have the speed."""
        context = _CONTEXTS.get(speed, {})
        rates: dict[Kind, KindRate] = {}
        for variant in (self.model.price_variants or ()) if self.is_own else ():
            is_active = variant.constraint is None or variant.constraint.active(at)
            if is_active and all(context.get(key) == value for key, value in variant.when.items()):
                rates = {**dict(_kind_rates(variant.prices, f"{self.label}, {speed}")), **rates}
        return rates

    def changes_within_a_day(self) -> tuple[int, ...]:
        """Return the milliseconds after midnight UTC at which the price changes every day, ascending; mostly none."""
        from genai_prices.types import TimeOfDateConstraint  # noqa: PLC0415 - see the module

        prices = self.model.prices if isinstance(self.model.prices, list) else []
        found = {
            _milliseconds(moment)
            for price in prices
            if isinstance(price.constraint, TimeOfDateConstraint)
            for moment in (price.constraint.start_time, price.constraint.end_time)
        }
        return tuple(sorted(found - {0}))

    def speeds(self, at: datetime) -> tuple[str, ...]:
        """Return the speeds for which the list has rates at the time."""
        return tuple(speed for speed in _CONTEXTS if self.speed_rates(at, speed))

    def _free_rates(self) -> Mapping[Kind, KindRate]:
        if not self.model.id.endswith(":free"):
            return {}
        return {kind: KindRate(base=Decimal(0), origin=self.label) for kind in _KIND_KEYS.values()}


class PriceList:
    """The list in force: the fetched one when there is one that can be used, else the installed one."""

    def __init__(self, fetched: FetchedList | None) -> None:
        """Import the package and take the list up.

        Raises:
            PriceDataError: The fetched list cannot be used.
        """
        if fetched is None:
            from genai_prices.data_snapshot import get_snapshot  # noqa: PLC0415 - see the module

            self._snapshot = get_snapshot()
            self.label = f"genai-prices {installed_version()}"
        else:
            self._snapshot = _snapshot_of(fetched.payload)
            self.label = f"genai-prices, fetched {fetched.fetched_at[:10]}"

    def provider_id(self, provider: str) -> str | None:
        """Return how the list calls the provider, or None when it has none of the very name.

        The list's own search takes a provider whose name is only part of it: ``my-openai-proxy`` would be OpenAI.
        """
        for one in self._snapshot.providers:
            if provider == one.id or _is_named(one.provider_match, provider):
                return one.id
        return None

    def find(self, provider_id: str, model: str) -> ListedModel | None:
        """Return the model of this provider that the list knows by this name; another provider is never guessed.

        The list's own search takes the first model whose name begins alike, which may be another one.
        """
        try:
            provider = self._snapshot.find_provider(None, provider_id, None)
        except LookupError:
            return None
        fallbacks = [one for one in self._snapshot.providers if one.id in (provider.fallback_model_providers or ())]
        for name in dict.fromkeys((model.lower(), with_dashed_date(model.lower()))):
            for owner in (provider, *fallbacks):
                for found in owner.models:
                    if name == found.id.lower() or (found.is_match(name) and _is_release(found, name)):
                        is_own = owner is provider
                        return ListedModel(provider_id=provider.id, model=found, is_own=is_own, label=self.label)
        return None

    def models(self, provider_id: str) -> tuple[ListedModel, ...]:
        """Return the models of a provider."""
        provider = self._snapshot.find_provider(None, provider_id, None)
        return tuple(
            ListedModel(provider_id=provider.id, model=model, is_own=True, label=self.label)
            for model in provider.models
        )

    def size(self) -> tuple[int, int]:
        """Return how many providers and how many models the list has."""
        return len(self._snapshot.providers), sum(len(provider.models) for provider in self._snapshot.providers)


def installed_version() -> str:
    """Return the version of the installed package, without importing it."""
    return version("genai-prices")


def _snapshot_of(fetched: bytes) -> DataSnapshot:
    try:
        raw = json.loads(fetched)
    except (ValueError, RecursionError) as error:
        raise PriceDataError(f"it is not JSON: {error}") from error
    if not isinstance(raw, list):
        raise PriceDataError("it is not a list of providers")
    from genai_prices import data_snapshot, types  # noqa: PLC0415 - see the module

    try:
        with warnings.catch_warnings():
            # A later list may have units that this release of the package does not know; they are passed over.
            warnings.simplefilter("ignore")
            providers = types._providers_from_raw(raw)  # noqa: SLF001 # the package's own reading has no public door
    except (ValueError, TypeError, AttributeError, RecursionError) as error:
        raise PriceDataError(f"the installed genai-prices cannot read it: {str(error).splitlines()[0]}") from error
    missing = _NEEDED_PROVIDERS - {provider.id for provider in providers if provider.models}
    if missing:
        raise PriceDataError(f"it has no prices of {sorted(missing)[0]}")
    return data_snapshot.DataSnapshot(providers, from_auto_update=True)


def _kind_rates(price: ModelPrice, origin: str) -> Iterator[tuple[Kind, KindRate]]:
    from genai_prices.types import TieredPrices  # noqa: PLC0415 - see the module

    for key, kind in _KIND_KEYS.items():
        value = price.__dict__.get(key)
        if isinstance(value, TieredPrices):
            steps = tuple((tier.start, tier.price) for tier in value.tiers)
            yield kind, KindRate(base=value.base, steps=steps, origin=origin)
        elif value is not None:
            yield kind, KindRate(base=value, origin=origin)


def _milliseconds(moment: time) -> int:
    at = datetime.combine(datetime(2000, 1, 2, tzinfo=UTC), moment)
    at = at.replace(tzinfo=UTC) if at.tzinfo is None else at.astimezone(UTC)
    return (at.hour * 3600 + at.minute * 60 + at.second) * 1000 + at.microsecond // 1000


def _is_named(clause: MatchLogic | None, name: str) -> bool:
    """Return whether the clause has the very name of a provider."""
    from genai_prices import types  # noqa: PLC0415 - see the module

    match clause:
        case types.ClauseOr():
            return any(_is_named(part, name) for part in clause.or_)
        case types.ClauseEquals():
            return clause.is_match(name)
        case _:
            return False


def _is_release(model: ModelInfo, name: str) -> bool:
    return without_release(name) == model.id.lower() or _means(model.match, name)


def _means(clause: MatchLogic, name: str) -> bool:
    """Return whether the clause, which matches, is about this very model: it reaches to what only tells a release.

    So ``claude-opus-4-8`` is ``claude-opus-4-8-20260101``, and not ``claude-opus-4-81`` or ``claude-opus-4-8-mini``.
    """
    from genai_prices import types  # noqa: PLC0415 - see the module

    match clause:
        case types.ClauseOr():
            return any(part.is_match(name) and _means(part, name) for part in clause.or_)
        case types.ClauseAnd():
            return any(_means(part, name) for part in clause.and_)
        case types.ClauseStartsWith():
            return len(clause.starts_with) >= len(without_release(name))
        case types.ClauseContains():
            begin = name.index(clause.contains.lower())
            return begins_a_name(name[:begin]) and begin + len(clause.contains) >= len(without_release(name))
        case types.ClauseEndsWith():
            return clause.ends_with.startswith("/") or begins_a_name(name[: -len(clause.ends_with)])
        case types.ClauseRegex():
            found = re.search(clause.regex, name)
            if found is None or not begins_a_name(name[: found.start()]) or has_impossible_date(name):
                return False
            return clause.regex.endswith("$") or found.end() > len(without_release(name))
        case _:
            return True
