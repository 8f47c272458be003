from __future__ import annotations

from decimal import ROUND_HALF_EVEN, Context, Decimal

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from agentmon.domain.amounts import DOLLARS, NANO, MoneyFormat, today_text
from agentmon.domain.money_text import parse_money

EUROS = MoneyFormat("EUR", "0.92", 2)
EXACT = Context(prec=80, rounding=ROUND_HALF_EVEN)
amounts = st.integers(-(10**18), 10**18)
formats = st.builds(
    MoneyFormat,
    st.just("XXX"),
    st.decimals("0.000001", "100000", places=6).map(lambda rate: f"{rate:f}"),
    st.integers(0, 9),
)


def exact(amount: int, money: MoneyFormat) -> Decimal:
    return EXACT.divide(EXACT.multiply(Decimal(amount), Decimal(money.exchange_rate)), Decimal(NANO))


def number_of(text: str) -> Decimal:
    return Decimal(text.replace("XXX ", "").replace(",", ""))


@pytest.mark.parametrize(
    ("money", "text"),
    [
        (DOLLARS, "$4.21"),
        (EUROS, "€3.87"),
        (MoneyFormat("CHF", "0.8815", 2), "CHF 3.71"),
        (MoneyFormat("JPY", "155.2", 0), "¥653"),
        (MoneyFormat("cr", "100", 1), "cr 421.0"),
        (MoneyFormat("₿", "0.00001", 8), "₿0.00004210"),
        (MoneyFormat("USD", "7", 4), "$4.2100"),
    ],
)
def test_an_amount_is_told_in_the_currency_and_precision_that_is_set(money: MoneyFormat, text: str) -> None:
    assert money.text(4_210_000_000) == text
    assert money.text(-4_210_000_000) == f"-{text}"
    assert money.text(None) == ""


@given(amount=amounts, money=formats)
def test_an_amount_is_converted_exactly_and_rounded_once_half_to_even(amount: int, money: MoneyFormat) -> None:
    text = money.text(amount)
    assume(not text.startswith("<"))

    unit = Decimal(1).scaleb(-money.decimals)
    assert number_of(text) == exact(amount, money).quantize(unit, context=EXACT)


@given(amount=st.integers(1, 10**8), money=formats)
def test_an_amount_that_is_not_zero_is_never_told_as_zero(amount: int, money: MoneyFormat) -> None:
    text, unit = money.text(amount), Decimal(1).scaleb(-money.decimals)

    assert number_of(text.removeprefix("<")) >= unit
    assert text.startswith("<") == (exact(amount, money) * 2 <= unit)


@given(amount=st.integers(1, 10**15), money=st.sampled_from([DOLLARS, EUROS]))
def test_an_amount_in_a_field_is_read_again(amount: int, money: MoneyFormat) -> None:
    typed = money.usd_nano(amount)
    assume(typed > 0)

    assert parse_money(money.typed_text(typed), money) == pytest.approx(typed, rel=1e-6, abs=0)


@given(cents=st.integers(1, 10**15), rate=st.decimals("0.01", "10000", places=4))
def test_an_amount_that_a_person_writes_is_shown_as_it_was_written(cents: int, rate: Decimal) -> None:
    money = MoneyFormat("XXX", f"{rate:f}", 2)

    assert number_of(money.text(money.usd_nano(cents * 10_000_000))) * 100 == cents


@pytest.mark.parametrize(
    ("nano", "text"),
    [
        (0, "$0.0000"),
        (1, "<$0.0001"),
        (50_000, "<$0.0001"),
        (100_000, "$0.0001"),
        (42_000_000, "$0.0420"),
        (999_999_999, "$1.0000"),
        (NANO, "$1.00"),
        (1_234_567 * NANO, "$1,234,567.00"),
    ],
)
def test_a_small_amount_has_two_digits_more(nano: int, text: str) -> None:
    assert DOLLARS.fine_text(nano) == text


def test_a_day_and_its_budget_are_told_in_the_same_currency() -> None:
    assert today_text(4_210_000_000, budget_nano=EUROS.usd_nano(20 * NANO), money=EUROS) == "€3.87 / €20 today"


def test_what_is_drawn_can_be_counted_in_the_unit_that_is_shown() -> None:
    own = EUROS.own_nano(100 * NANO)

    assert own == 92 * NANO
    assert EUROS.own_text(own) == EUROS.text(100 * NANO) == "€92.00"
