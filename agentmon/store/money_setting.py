"""The person's currency, read with the standard library alone, since the status line and the first frame need it."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from agentmon.domain.amounts import MoneyFormat

NAMES = ("currency", "exchange_rate", "decimals")
MONEY_KEYS = tuple(f"costs.{name}" for name in NAMES)
"""The settings that say how money is shown."""
MONEY_ROWS = f"SELECT key, value FROM settings WHERE key IN {MONEY_KEYS}"


def find_money_words(settings_file: str, environ: Mapping[str, str]) -> dict[str, str]:
    """Return what the settings file and over it the environment say, by the names in ``NAMES``.

    Whatever cannot be read is left out: settings are checked, and complained of, where they are loaded in earnest.
    """
    words = words_of_file(settings_file, "costs", NAMES)
    for name in NAMES:
        value = environ.get(f"AGENTMON_COSTS_{name.upper()}")
        if value is not None:
            words[name] = value
    return words


def money_words_of(rows: Iterable[Sequence[object]]) -> dict[str, str]:
    """Return what rows of the table of settings say, by the names in ``NAMES``."""
    values = {str(key): str(value).strip('"') for key, value in rows}
    return {name: values[key] for name, key in zip(NAMES, MONEY_KEYS, strict=True) if key in values}


def money_format(words: Mapping[str, str]) -> MoneyFormat:
    """Return how money is shown by these words; dollars when they do not make sense together."""
    from agentmon.domain.amounts import DOLLAR, DOLLARS, MoneyFormat  # noqa: PLC0415 - most have set nothing

    decimals = words.get("decimals", "").strip()
    digits = int(decimals) if decimals.isdecimal() and len(decimals) == 1 else DOLLARS.decimals
    currency = words.get("currency", DOLLAR).strip()
    code = currency.upper()
    currency = code if len(code) == len(DOLLAR) and code.isascii() and code.isalpha() else currency
    rate = words.get("exchange_rate", "").strip()
    if not currency or currency == DOLLAR or not rate.replace(".", "", 1).isdecimal() or not rate.strip("0."):
        return DOLLARS._replace(decimals=digits)
    return MoneyFormat(currency, rate, digits)


def words_of_file(settings_file: str, table: str, names: Iterable[str]) -> dict[str, str]:
    """Return what a table of the settings file says by these names; nothing when it cannot be read."""
    try:
        with open(settings_file, "rb") as file:  # noqa: PTH123 - pathlib costs more than the rest
            content = file.read()
    except OSError:
        return {}
    if table.encode() not in content:
        return {}
    from agentmon.domain.written_text import toml_of  # noqa: PLC0415 - most settings files say nothing of it

    try:
        told = toml_of(content).get(table, {})
    except ValueError:
        return {}
    return {name: str(told[name]) for name in names if name in told} if isinstance(told, dict) else {}
