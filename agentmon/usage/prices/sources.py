"""The files that a price book is made of, as one version: the price list, the project's overlay, a person's prices."""

from __future__ import annotations

from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Final

from agentmon.usage.prices.price_file import PriceFile, PriceProblem, read_price_file
from agentmon.usage.prices.price_list import FetchedList, PriceDataError, PriceList, installed_version

if TYPE_CHECKING:
    from collections.abc import Iterator

    from agentmon.usage.prices.price_file import PriceEntry
    from agentmon.usage.prices.rates import Factor

OVERLAY_FILE: Final = Path(__file__).with_name("overlay.prices.toml")
OVERLAY_ORIGIN: Final = "agentmon's overlay"
_INSTALLED_COUNTS: Final = "the installed prices count; `agentmon prices update` fetches the newest"


@dataclass(slots=True)
class PriceSources:
    """What was read from the files; the price list itself is taken up when it is first asked for."""

    overlay: PriceFile
    own: PriceFile
    version: str
    """The same text for the same prices."""
    _fetched: FetchedList | None
    _data_name: str
    _problems: list[PriceProblem] = field(default_factory=list)
    _list: PriceList | None = None

    @property
    def price_list(self) -> PriceList:
        """The price list; the first look imports the package."""
        if self._list is None:
            self._list = self._take_up()
        return self._list

    @property
    def problems(self) -> tuple[PriceProblem, ...]:
        """What of the files is not used and why."""
        return (*self.own.problems, *self._problems)

    def entries(self) -> Iterator[tuple[PriceEntry, bool]]:
        """Yield every entry, weakest first, with whether it is the person's own."""
        for entry in self.overlay.entries:
            yield entry, False
        for entry in self.own.entries:
            yield entry, True

    def provider(self, name: str) -> str:
        """Return the price list's name of a provider that agents call otherwise; an unknown name as it is."""
        return self.own.providers.get(name) or self.overlay.providers.get(name, name)

    def maker(self, name: str) -> str | None:
        """Return whose model it is by the first letters of its name, the longest that fit, or None."""
        makers = {**self.overlay.makers, **self.own.makers}
        fitting = [prefix for prefix in makers if name.startswith(prefix)]
        return makers[max(fitting, key=len)] if fitting else None

    def speed_factor(self, provider: str, speed: str) -> tuple[Factor | None, bool]:
        """Return what the provider's rates are multiplied by in the speed, and whether it is the person's own word."""
        key = provider, speed
        return self.own.speed_factors.get(key) or self.overlay.speed_factors.get(key), key in self.own.speed_factors

    def geo_factor(self, provider: str, geo: str) -> tuple[Factor | None, bool]:
        """Return what the provider's rates are multiplied by in the region, like ``speed_factor``."""
        key = provider, geo
        return self.own.geo_factors.get(key) or self.overlay.geo_factors.get(key), key in self.own.geo_factors

    def _take_up(self) -> PriceList:
        try:
            return PriceList(self._fetched)
        except PriceDataError as error:
            self._problems.append(PriceProblem(where=self._data_name, what=str(error), advice=_INSTALLED_COUNTS))
            return PriceList(None)


def read_sources(own_file: Path | None, data_file: Path | None) -> PriceSources:
    """Return what the files say; a missing one says nothing, and one that cannot be read is a problem."""
    problems: list[PriceProblem] = []
    overlay_content = OVERLAY_FILE.read_bytes()
    own_content = _read(own_file, problems)
    fetched = _fetched_list(data_file, problems)
    list_version = "fetched-" + _short_hash(fetched.payload) if fetched is not None else installed_version()
    version = f"{list_version}+overlay-{_short_hash(overlay_content)}"
    if own_content is not None:
        version += f"+own-{_short_hash(own_content)}"
    own_name = str(own_file) if own_file is not None else "prices.toml"
    return PriceSources(
        overlay=read_price_file(overlay_content, name=OVERLAY_FILE.name, origin=OVERLAY_ORIGIN),
        own=read_price_file(own_content or b"", name=own_name, origin="your prices.toml"),
        version=version,
        _fetched=fetched,
        _data_name=str(data_file),
        _problems=problems,
    )


def _fetched_list(file: Path | None, problems: list[PriceProblem]) -> FetchedList | None:
    """Return the stored list when it counts; a list that is older than the installed package does not."""
    content = _read(file, problems)
    if content is None:
        return None
    fetched = None
    try:
        fetched = FetchedList.parse(content)
        what = f"it was fetched for genai-prices {fetched.package_version}, which was replaced since"
    except PriceDataError as error:
        what = str(error)
    if fetched is not None and fetched.package_version == installed_version():
        return fetched
    problems.append(PriceProblem(where=str(file), what=what, advice=_INSTALLED_COUNTS))
    return None


def _read(file: Path | None, problems: list[PriceProblem]) -> bytes | None:
    if file is None:
        return None
    try:
        return file.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        what = f"it cannot be read: {error.strerror}"
        problems.append(
            PriceProblem(where=str(file), what=what, advice="make it readable; until then it does not count")
        )
        return None


def _short_hash(content: bytes) -> str:
    return sha256(content).hexdigest()[:8]
