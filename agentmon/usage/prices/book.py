"""The price book: the cost of billed answers, and how it comes about."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from agentmon.usage.prices.explanation import explain_price
from agentmon.usage.prices.finding import RateFinder
from agentmon.usage.prices.rates import CompiledRates, ModelRates, PriceSource, compile_rates
from agentmon.usage.prices.sources import read_sources

if TYPE_CHECKING:
    from pathlib import Path

    from agentmon.domain.billing import BilledAnswer
    from agentmon.usage.prices.explanation import PriceExplanation
    from agentmon.usage.prices.price_file import PriceProblem
    from agentmon.usage.prices.sources import PriceSources

DAY_MS: Final = 86_400_000
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_DAYS_MAX: Final = (datetime.max.replace(tzinfo=UTC) - _EPOCH).days - 1
_DAYS_MIN: Final = (datetime.min.replace(tzinfo=UTC) - _EPOCH).days + 1

_RateKey: TypeAlias = "tuple[str, str, int, str, str]"
_DayPart: TypeAlias = "tuple[int, CompiledRates]"


class Price(NamedTuple):
    """What an answer costs; a tuple, since one is made for every row of an import."""

    cost_nano: int | None
    """Nano-dollars, rounded once, half to even; None when no price is known, which is not the same as 0."""
    source: PriceSource
    """``list``: the price list with the project's overlay. ``override``: the person's own prices count in it.

    ``reported``: no price is known, and this is what the agent itself wrote down. ``none``: nothing is known.
    """
    version: str
    """Of the prices; a cost with another version may be priced anew."""


class PriceBook:
    """Prices answers; the first price takes some 0.4 s, since the price list is imported, later ones 1 or 2 µs.

    Rates are looked up once per provider, model, UTC day, speed and region. One thread at a time may price; several
    may read what was priced.
    """

    def __init__(self, own_file: Path | None = None, data_file: Path | None = None) -> None:
        """Read the small files; a missing one says nothing.

        Args:
            own_file: The person's ``prices.toml``.
            data_file: The price list that ``newest.fetch_newest`` stored.
        """
        self._own_file = own_file
        self._data_file = data_file
        self._state = self._state_of_files()
        self._load()

    @property
    def version(self) -> str:
        """The version of the prices; the same text for the same prices."""
        return self._sources.version

    @property
    def problems(self) -> tuple[PriceProblem, ...]:
        """What in the files is not used, and why; complete once the first answer is priced."""
        return self._sources.problems

    @property
    def finder(self) -> RateFinder:
        """Finds the rates of a model."""
        return self._finder

    @property
    def sources(self) -> PriceSources:
        """What the files say."""
        return self._sources

    def refresh(self) -> bool:
        """Read the files again when one of them changed; return whether the version did."""
        state = self._state_of_files()
        if state == self._state:
            return False
        self._state = state
        earlier = self.version
        self._load()
        return self.version != earlier

    def price(self, answer: BilledAnswer) -> Price:
        """Return the cost of the answer by the price of its day."""
        key = (answer.provider, answer.model, answer.at_ms // DAY_MS, answer.speed, answer.geo)
        try:
            rates = self._rates[key]
        except KeyError:
            rates = self._rates_of_day(key, answer.at_ms)
        cost_nano = rates.cost_nano(answer)
        if cost_nano is None:
            return self._without_list_price(answer)
        return Price(cost_nano, rates.source, self._version)

    def explain(self, answer: BilledAnswer) -> PriceExplanation:
        """Return how the cost of the answer comes about; its figures add up to that of ``price``."""
        price = self.price(answer)
        rates = self._find(answer.provider, answer.model, self._moment(answer.at_ms), answer.speed, answer.geo)
        return explain_price(answer, rates, cost_nano=price.cost_nano, source=price.source, version=price.version)

    def _load(self) -> None:
        self._sources = read_sources(self._own_file, self._data_file)
        self._finder = RateFinder(self._sources)
        self._version = self._sources.version
        self._today = datetime.now(UTC)
        self._rates: dict[_RateKey, CompiledRates] = {}
        self._parts: dict[_RateKey, tuple[_DayPart, ...]] = {}
        self._shared: dict[CompiledRates, CompiledRates] = {}

    def _state_of_files(self) -> tuple[tuple[int, int, int] | None, ...]:
        return tuple(_file_state(file) for file in (self._own_file, self._data_file))

    def _rates_of_day(self, key: _RateKey, at_ms: int) -> CompiledRates:
        """Return the rates, and keep them when they hold for the whole day."""
        provider, model, _, speed, geo = key
        moment = self._moment(at_ms)
        changes = self._finder.changes_within_a_day(provider=provider, model=model, day=moment.date())
        if changes:
            return self._rates_of_hour(key, moment, changes)
        rates = self._compiled(self._find(provider, model, moment, speed, geo))
        self._rates[key] = rates
        return rates

    def _rates_of_hour(self, key: _RateKey, moment: datetime, changes: tuple[int, ...]) -> CompiledRates:
        provider, model, _, speed, geo = key
        midnight = moment.replace(hour=0, minute=0, second=0, microsecond=0)
        if key not in self._parts:
            self._parts[key] = tuple(
                (
                    begin,
                    self._compiled(self._find(provider, model, midnight + timedelta(milliseconds=begin), speed, geo)),
                )
                for begin in (0, *changes)
            )
        in_day_ms = (moment - midnight) // timedelta(milliseconds=1)
        return next(rates for begin, rates in reversed(self._parts[key]) if in_day_ms >= begin)

    def _compiled(self, rates: ModelRates) -> CompiledRates:
        compiled = compile_rates(rates)
        return self._shared.setdefault(compiled, compiled)

    def _find(self, provider: str, model: str, at: datetime, speed: str, geo: str) -> ModelRates:
        return self._finder.find(provider=provider, model=model, at=at, speed=speed, geo=geo)

    def _moment(self, at_ms: int) -> datetime:
        """Return the time of an answer; the present one when it has none."""
        if at_ms == 0:
            return self._today
        days, in_day_ms = divmod(at_ms, DAY_MS)
        return _EPOCH + timedelta(days=max(_DAYS_MIN, min(days, _DAYS_MAX)), milliseconds=in_day_ms)

    def _without_list_price(self, answer: BilledAnswer) -> Price:
        # An agent that knows no price either writes 0.
        if answer.reported_cost_nano:
            return Price(answer.reported_cost_nano, "reported", self._version)
        return Price(None, "none", self._version)


def _file_state(file: Path | None) -> tuple[int, int, int] | None:
    if file is None:
        return None
    try:
        state = file.stat()
    except OSError:
        return None
    return state.st_mtime_ns, state.st_size, state.st_ino
