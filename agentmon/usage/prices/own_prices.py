"""Writing a price into the person's own file; everything else that stands there stays as it is, comments too."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Final

import tomlkit
from tomlkit.exceptions import TOMLKitError
from tomlkit.items import AoT

from agentmon.domain.errors import AgentmonError, UsageError
from agentmon.domain.written_text import text_of
from agentmon.private_folders import make_private_folder
from agentmon.usage.prices.price_file import read_price_file
from agentmon.usage.prices.rates import KINDS

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import date
    from decimal import Decimal

    from tomlkit import TOMLDocument
    from tomlkit.items import Item, Table

    from agentmon.usage.prices.rates import Kind

_HEADING: Final = (
    "Your own prices, in dollars per million tokens; web_search per thousand searches. They count more than any list.",
    "A kind that is not named keeps the rate of the list. `agentmon prices set` writes here, and you may too.",
)


def write_own_price(
    file: Path,
    *,
    model: str,
    rates: Mapping[Kind, Decimal],
    provider: str = "",
    speed: str = "standard",
    since: date | None = None,
) -> bool:
    """Set rates of a model in the file, which is made when it is missing; return whether the entry is a new one.

    An entry of the same model, provider, speed and day is changed: rates that are not named stay.

    Raises:
        UsageError: The file is not TOML, or the price cannot be used; the file is left as it is.
        AgentmonError: The file cannot be read or written.
    """
    content = _read(file)
    document = _parse(file, content)
    entries = _entries(file, document)
    entry = next((entry for entry in entries if _key(entry) == (model.lower(), provider, speed, since)), None)
    is_new = entry is None
    if entry is None:
        entries.append(_new_entry(model, provider, speed, since))
        entry = entries[-1]
    for kind in KINDS:
        if kind in rates:
            entry[str(kind)] = _number(rates[kind])
    text = tomlkit.dumps(document)
    written = (text.replace("\n", "\r\n") if b"\r\n" in content else text).encode()
    _refuse_unusable(file, content, written)
    _write(file, written)
    return is_new


def _read(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except FileNotFoundError:
        return b""
    except OSError as error:
        raise AgentmonError(f"{file} cannot be read: {error.strerror}", hint="make it readable") from error


def _parse(file: Path, content: bytes) -> TOMLDocument:
    try:
        written = text_of(content)
        document = tomlkit.parse(written if not written or written.endswith("\n") else f"{written}\n")
    except (TOMLKitError, ValueError) as error:
        raise UsageError(f"{file} is not TOML: {error}", hint="mend that place first; nothing was changed") from error
    if not content:
        for line in _HEADING:
            document.add(tomlkit.comment(line))
        document.add(tomlkit.nl())
    return document


def _entries(file: Path, document: TOMLDocument) -> AoT:
    entries = document.get("price")
    if entries is None:
        entries = tomlkit.aot()
        document["price"] = entries
    if not isinstance(entries, AoT):
        raise UsageError(
            f"in {file} price is not written as [[price]] tables", hint="write it so first; nothing was changed"
        )
    return entries


def _key(entry: Table) -> tuple[str, str, str, object]:
    told = entry.unwrap()
    speed = told.get("speed") or "standard"
    return str(told.get("model", "")).lower(), str(told.get("provider", "")).lower(), str(speed), told.get("from")


def _new_entry(model: str, provider: str, speed: str, since: date | None) -> Table:
    entry = tomlkit.table()
    entry["model"] = model
    if provider:
        entry["provider"] = provider
    if speed != "standard":
        entry["speed"] = speed
    if since is not None:
        entry["from"] = since
    return entry


def _number(rate: Decimal) -> Item:
    """Return the very digits of the rate, which a float might not hold."""
    return tomlkit.value(f"{rate:f}")


def _refuse_unusable(file: Path, earlier: bytes, written: bytes) -> None:
    before = {str(problem) for problem in read_price_file(earlier, name=file.name, origin="").problems}
    for problem in read_price_file(written, name=file.name, origin="").problems:
        if str(problem) not in before:
            raise UsageError(f"the price cannot be used: {problem.what}", hint=problem.advice)


def _write(file: Path, content: bytes) -> None:
    target = file.resolve()
    try:
        make_private_folder(target.parent)
        mode = target.stat().st_mode & 0o777 if target.exists() else 0o600
        descriptor, temporary = tempfile.mkstemp(dir=target.parent, prefix=target.name)
        try:
            with os.fdopen(descriptor, "wb") as opened:
                opened.write(content)
            Path(temporary).chmod(mode)
            Path(temporary).replace(target)
        except BaseException:
            Path(temporary).unlink(missing_ok=True)
            raise
    except OSError as error:
        raise AgentmonError(
            f"{file} cannot be written: {error.strerror}", hint="make room, or the folder writable"
        ) from error
