"""Fetching the newest price list; the only place of the price book that uses the network, and only when asked."""

from __future__ import annotations

import os
import tempfile
from dataclasses import dataclass
from http.client import HTTPException
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.error import URLError
from urllib.parse import urlsplit
from urllib.request import Request, urlopen

from agentmon.domain.errors import AgentmonError, UsageError
from agentmon.private_folders import make_private_folder
from agentmon.usage.prices.price_list import FetchedList, PriceDataError, PriceList, installed_version

if TYPE_CHECKING:
    from datetime import datetime

TIMEOUT_S: Final = 20
SIZE_MAX: Final = 64_000_000
"""Bytes; the list of November 2026 has 3 million."""
_LOOPBACK: Final = frozenset({"127.0.0.1", "::1", "localhost"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Fetched:
    """What was fetched and stored."""

    url: str
    file: Path
    providers: int
    models: int
    is_new: bool
    """Whether it differs from what was stored before."""


def fetch_newest(data_file: Path, *, now: datetime, url: str | None = None) -> Fetched:
    """Fetch the newest list and store it for the price book; what was stored before stays when anything fails.

    Args:
        data_file: Where the book looks for it.
        now: The present time.
        url: Where it is fetched from; genai-prices' own place by default. Only https, or http of this machine.

    Raises:
        UsageError: The address cannot be used.
        PriceDataError: There is no network, no answer, or an answer that is no price list.
        AgentmonError: It could not be stored.
    """
    address = url or _default_url()
    payload = _download(address)
    try:
        providers, models = PriceList(_stamped(payload, now)).size()
    except PriceDataError as error:
        raise PriceDataError(f"what {address} sent cannot be used: {error}", hint=_STAYS) from error
    return Fetched(
        url=address,
        file=data_file,
        providers=providers,
        models=models,
        is_new=_store(data_file, _stamped(payload, now)),
    )


_STAYS: Final = "the prices that are here stay in force; try again later"


def _default_url() -> str:
    from genai_prices.update_prices import DEFAULT_UPDATE_URL  # noqa: PLC0415 - imports an HTTP client

    return DEFAULT_UPDATE_URL


def _stamped(payload: bytes, now: datetime) -> FetchedList:
    return FetchedList(
        package_version=installed_version(), fetched_at=now.isoformat(timespec="seconds"), payload=payload
    )


def _download(address: str) -> bytes:
    parts = urlsplit(address)
    if parts.scheme != "https" and not (parts.scheme == "http" and parts.hostname in _LOOPBACK):
        raise UsageError(f"{address!r} is no address to fetch prices from", hint="it begins with https://")
    try:
        with urlopen(Request(address, headers={"User-Agent": "agentmon"}), timeout=TIMEOUT_S) as answer:
            payload: bytes = answer.read(SIZE_MAX + 1)
    except (URLError, HTTPException, OSError, ValueError) as error:
        reason = getattr(error, "reason", None) or error
        raise PriceDataError(f"the newest prices could not be fetched from {address}: {reason}", hint=_STAYS) from error
    if len(payload) > SIZE_MAX:
        raise PriceDataError(f"{address} sent more than {SIZE_MAX:,} bytes, which is no price list", hint=_STAYS)
    return payload


def _store(data_file: Path, fetched: FetchedList) -> bool:
    try:
        earlier = data_file.read_bytes().partition(b"\n")[2] if data_file.exists() else b""
        make_private_folder(data_file.parent)
        descriptor, temporary = tempfile.mkstemp(dir=data_file.parent, prefix=data_file.name)
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(fetched.content())
            Path(temporary).replace(data_file)
        except BaseException:
            Path(temporary).unlink(missing_ok=True)
            raise
    except OSError as error:
        raise AgentmonError(
            f"the prices could not be stored in {data_file}: {error.strerror}", hint="make room, or the folder writable"
        ) from error
    return earlier != fetched.payload
