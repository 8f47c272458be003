"""Amounts of money as people type them: ``20``, ``2.50``, ``$5``, in the currency that they chose."""

from __future__ import annotations

import re
from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING, Final

from agentmon.domain.amounts import NANO
from agentmon.domain.errors import UsageError

if TYPE_CHECKING:
    from agentmon.domain.amounts import MoneyFormat

LARGEST: Final = 10**18
"""The largest amount in nano-USD, and the largest number of tokens, of a budget."""
_TOKEN_UNITS: Final = {"K": 1_000, "M": 1_000_000, "G": 1_000_000_000}
_THOUSANDS: Final = re.compile(r"\d{1,3}(?:,\d{3})+(?:\.\d+)?", re.ASCII)


def parse_money(text: str, money: MoneyFormat) -> int:
    """Return an amount of the person's currency in nano-USD.

    Raises:
        UsageError: It is no amount, or not above nothing.
    """
    written = text.strip()
    for mark in (money.currency, money.symbol):
        written = written.removeprefix(mark).strip()
    if _THOUSANDS.fullmatch(written):
        written = written.replace(",", "")
    what = money.currency if money.is_converted else "dollars"
    hint = f"write {what}, such as 20 or 2.50"
    own_nano = bounded_amount(plain_number(written) * NANO, text, hint=hint)
    return bounded_amount(Decimal(money.usd_nano(own_nano)), text, hint=hint)


def parse_tokens(text: str) -> int:
    """Return a number of tokens: ``500000``, ``500k``, ``5M``.

    Raises:
        UsageError: It is no number, or not above nothing.
    """
    written = text.strip().upper()
    factor = _TOKEN_UNITS.get(written[-1:], 1)
    return bounded_amount(
        plain_number(written.rstrip("KMG")) * factor, text, hint="write tokens, such as 500000, 500k or 5M"
    )


def plain_number(text: str) -> Decimal:
    """Return the number, or -1 when the text is none or is not finite."""
    try:
        number = Decimal(text)
    except InvalidOperation:
        return Decimal(-1)
    return number if number.is_finite() else Decimal(-1)


def bounded_amount(amount: Decimal, text: str, *, hint: str) -> int:
    """Return the amount in whole units.

    Raises:
        UsageError: It is below one or above ``LARGEST``; the message has the text.
    """
    if not 1 <= amount <= LARGEST:
        raise UsageError(f"{text!r} is no budget", hint=hint)
    return int(amount)
