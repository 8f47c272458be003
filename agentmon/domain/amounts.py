"""Amounts as people read them: durations, sizes, counts and money."""

from __future__ import annotations

from typing import Final, NamedTuple

NANO: Final = 1_000_000_000
"""Nano-USD in a dollar."""
DOLLAR: Final = "USD"
_SYMBOLS: Final = {
    "AUD": "A$",
    "BRL": "R$",
    "CAD": "CA$",
    "CNY": "CN¥",
    "EUR": "€",
    "GBP": "£",
    "ILS": "₪",
    "INR": "₹",
    "JPY": "¥",
    "KRW": "₩",
    "MXN": "MX$",
    "NZD": "NZ$",
    "UAH": "₴",
    DOLLAR: "$",
    "VND": "₫",
}
"""As the locale en of the Unicode CLDR 46 writes them."""
_FINER_DIGITS: Final = 2
"""How many digits more a single answer of less than one unit needs."""
_MILLION: Final = 1_000_000
_MOST_DIGITS: Final = 9
_STEP: Final = 1000
_ONE_DECIMAL_BELOW: Final = 10


def duration_text(seconds: float) -> str:
    """Return a duration in its two largest units: ``8s``, ``4m12s``, ``2h05m``, ``3d04h``; negative counts as zero."""
    whole = max(0, int(seconds))
    minutes, second = divmod(whole, 60)
    hours, minute = divmod(minutes, 60)
    days, hour = divmod(hours, 24)
    if days:
        return f"{days}d{hour:02d}h"
    if hours:
        return f"{hours}h{minute:02d}m"
    if minutes:
        return f"{minutes}m{second:02d}s"
    return f"{second}s"


def size_text(size_bytes: int) -> str:
    """Return a size in units of 1000 bytes: ``512 B``, ``9.8 MB``."""
    if size_bytes < _STEP:
        return f"{size_bytes} B"
    amount, unit = _scaled(size_bytes, ("KB", "MB", "GB", "TB"))
    return f"{amount:.1f} {unit}"


def count_text(count: int) -> str:
    """Return a count in three digits at most: ``999``, ``1.2 K``, ``34 M``."""
    if count < _STEP:
        return str(count)
    amount, unit = _scaled(count, ("K", "M", "G"))
    return f"{amount:.{1 if amount < _ONE_DECIMAL_BELOW else 0}f} {unit}"


def calls_text(count: int) -> str:
    """Return a number of tool calls: ``1 tool call``, ``1,200 tool calls``; empty for none."""
    return f"{count:,} tool call{'' if count == 1 else 's'}" if count else ""


class MoneyFormat(NamedTuple):
    """The currency and precision in which a person reads amounts of nano-USD.

    Amounts are kept, added and compared as whole nano-USD; only showing converts, in whole numbers, rounded once, half
    to even.
    """

    currency: str = DOLLAR
    """An ISO code, or what stands before the amount."""
    exchange_rate: str = "1"
    """Units for a US dollar, as digits with at most one point; of no meaning for dollars."""
    decimals: int = 2

    @property
    def is_converted(self) -> bool:
        """Whether amounts are shown in something else than dollars."""
        return self.currency != DOLLAR

    @property
    def named(self) -> dict[str, str]:
        """What documents, whose amounts are dollars, say of how people see these; empty for dollars."""
        return {"currency": self.currency, "exchange_rate": self.exchange_rate} if self.is_converted else {}

    @property
    def symbol(self) -> str:
        """What stands before amounts."""
        return _SYMBOLS.get(self.currency, self.currency)

    @property
    def ratio(self) -> tuple[int, int]:
        """Units for a US dollar, as numerator and denominator."""
        if not self.is_converted:
            return 1, 1
        whole, _, part = self.exchange_rate.partition(".")
        return int(whole + part), 10 ** len(part)

    def text(self, cost_nano: int | None) -> str:
        """Return an amount of nano-USD: ``$4.21``, ``CHF 3.87``; ``<$0.01`` for what rounds to 0; unknown is empty."""
        return "" if cost_nano is None else self._written(cost_nano, self.decimals)

    def short_text(self, cost_nano: int) -> str:
        """Return an amount without decimals when these are all zero: ``$20``."""
        text = self.text(cost_nano)
        return text.removesuffix("." + "0" * self.decimals) if self.decimals else text

    def fine_text(self, cost_nano: int) -> str:
        """Return an amount with the digits that a single answer needs: ``$0.0042``; ``<$0.0001`` for less."""
        numerator, denominator = self.ratio
        if abs(cost_nano) * numerator >= denominator * NANO:
            return self.text(cost_nano)
        return self._written(cost_nano, self.decimals + _FINER_DIGITS)

    def typed_text(self, cost_nano: int) -> str:
        """Return an amount as a person types it: with the digits from which it is read again, to a millionth."""
        numerator, denominator = self.ratio
        for digits in range(self.decimals, _MOST_DIGITS + 1):
            amount = _rounded(cost_nano * numerator * 10**digits, denominator * NANO)
            if abs(self.usd_nano(amount * 10 ** (_MOST_DIGITS - digits)) - cost_nano) * _MILLION <= cost_nano:
                return self._signed(amount, digits)
        return self.text(cost_nano)

    def own_nano(self, cost_nano: int) -> int:
        """Return an amount of nano-USD in billionths of the unit that is shown."""
        numerator, denominator = self.ratio
        return _rounded(cost_nano * numerator, denominator)

    def usd_nano(self, own_nano: int) -> int:
        """Return an amount in billionths of the unit that is shown as nano-USD."""
        numerator, denominator = self.ratio
        return _rounded(own_nano * denominator, numerator)

    def own_text(self, own_nano: int) -> str:
        """Return an amount in billionths of the unit that is shown, like ``text``."""
        return self._signed(_rounded(own_nano * 10**self.decimals, NANO), self.decimals)

    def _written(self, cost_nano: int, digits: int) -> str:
        numerator, denominator = self.ratio
        amount = _rounded(cost_nano * numerator * 10**digits, denominator * NANO)
        return self._signed(amount, digits) if amount or cost_nano <= 0 else f"<{self._signed(1, digits)}"

    def _signed(self, amount: int, digits: int) -> str:
        """Return an amount in units of the last digit."""
        whole, part = divmod(abs(amount), 10**digits)
        gap = " " if self.symbol[-1:].isalpha() else ""
        decimals = f".{part:0{digits}}" if digits else ""
        return f"{'-' if amount < 0 else ''}{self.symbol}{gap}{whole:,}{decimals}"


DOLLARS: Final = MoneyFormat()
"""What holds where a person has set nothing."""


def today_text(
    cost_nano: int, *, unpriced: int = 0, budget_nano: int | None = None, money: MoneyFormat = DOLLARS
) -> str:
    """Return what a day has cost: ``$4.21 today``, ``$4.21 / $20 today``; empty for nothing of nothing.

    A question mark stands for answers without a known price.
    """
    if not cost_nano and not unpriced and budget_nano is None:
        return ""
    parts = [money.text(cost_nano)] if cost_nano or not unpriced else []
    cost = " + ".join([*parts, *(["?"] if unpriced else [])])
    return f"{cost} today" if budget_nano is None else f"{cost} / {money.short_text(budget_nano)} today"


def _rounded(numerator: int, denominator: int) -> int:
    """Return the nearest whole number, of two the even one."""
    whole, rest = divmod(numerator, denominator)
    return whole + (2 * rest > denominator or (2 * rest == denominator and whole % 2))


def _scaled(amount: float, units: tuple[str, ...]) -> tuple[float, str]:
    unit = ""
    for unit in units:  # noqa: B007 - the last unit takes whatever is left
        amount /= _STEP
        if amount < _STEP:
            break
    return amount, unit
