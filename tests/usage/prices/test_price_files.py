from __future__ import annotations

import json
from datetime import UTC, date, datetime
from decimal import Decimal
from importlib.metadata import version
from typing import TYPE_CHECKING

import pytest

from agentmon.domain.errors import AgentmonError, UsageError
from agentmon.usage.prices.book import PriceBook
from agentmon.usage.prices.own_prices import write_own_price
from agentmon.usage.prices.price_file import read_price_file
from agentmon.usage.prices.rates import Kind
from agentmon.usage.prices.sources import OVERLAY_FILE
from tests.usage.prices.billed_answers import a_price_list, answer

if TYPE_CHECKING:
    from pathlib import Path

MILLION = 1_000_000


def own(folder: Path, text: str) -> PriceBook:
    file = folder / "prices.toml"
    file.write_text(text)
    return PriceBook(file)


def test_the_shipped_overlay_has_no_problem() -> None:
    overlay = read_price_file(OVERLAY_FILE.read_bytes(), name="overlay", origin="overlay")

    assert overlay.problems == ()
    assert overlay.entries
    assert overlay.geo_factors
    assert overlay.speed_factors


def test_a_price_of_one_s_own_counts_more_than_the_list_and_leaves_other_kinds_alone(tmp_path: Path) -> None:
    book = own(tmp_path, '[[price]]\nmodel = "claude-opus-5-5"\ninput = 1\n')

    price = book.price(answer("claude-opus-5-5-20260901", fresh=MILLION, read=MILLION))

    assert (price.cost_nano, price.source) == (1_200_000_000, "override")
    origins = [line.origin for line in book.explain(answer("claude-opus-5-5", fresh=1, read=1)).lines]
    assert origins == ["your prices.toml", f"genai-prices {version('genai-prices')}"]


def test_a_price_of_one_s_own_holds_from_its_day_on(tmp_path: Path) -> None:
    book = own(
        tmp_path,
        """
        [[price]]
        model = "acme-*"
        input = 7
        [[price]]
        model = "acme-coder-9"
        input = 2
        [[price]]
        model = "acme-coder-9"
        from = 2026-06-01
        input = 3
        """,
    )

    costs = [
        book.price(answer(model, day=day, fresh=MILLION)).cost_nano
        for model, day in [("acme-coder-9", "2026-05-31"), ("acme-coder-9", "2026-06-01"), ("acme-x", "2026-06-01")]
    ]

    assert costs == [2 * 10**9, 3 * 10**9, 7 * 10**9]


def test_caches_of_a_model_that_no_list_has_cost_what_its_input_does(tmp_path: Path) -> None:
    book = own(tmp_path, '[[price]]\nmodel = "m"\ninput = 2\noutput = 4\ncache_write = 3\n')

    costs = [
        book.price(answer("m", **{kind: MILLION})).cost_nano  # type: ignore[arg-type] # names of keyword arguments
        for kind in ("fresh", "read", "write", "write_1h", "response")
    ]

    assert costs == [2 * 10**9, 2 * 10**9, 3 * 10**9, 3 * 10**9, 4 * 10**9]


def test_long_prompts_and_speeds_can_have_prices_of_one_s_own(tmp_path: Path) -> None:
    book = own(
        tmp_path,
        """
        [[price]]
        model = "m"
        input = 1
        [[price.above]]
        prompt_tokens = 1000
        input = 2
        [[price]]
        model = "m"
        speed = "fast"
        provider = "acme"
        input = 10
        """,
    )

    costs = [
        book.price(answer("m", provider=provider, fresh=fresh, speed=speed)).cost_nano
        for provider, fresh, speed in [
            ("acme", 1000, "standard"),
            ("acme", 1001, "standard"),
            ("acme", 1001, "fast"),
            ("other", 1000, "fast"),
        ]
    ]

    assert costs == [1_000_000, 2_002_000, 10_010_000, None]


def test_a_gateway_can_be_named_as_the_provider_behind_it(tmp_path: Path) -> None:
    billed = answer("gpt-5", provider="Corp-Gateway", fresh=MILLION)
    assert PriceBook().price(billed).cost_nano is None

    book = own(tmp_path, '[providers]\n"corp-gateway" = "openai"\n')

    assert book.price(billed).cost_nano == 1_250_000_000
    assert book.problems == ()


def test_factors_of_one_s_own_count_more_than_the_overlay_s(tmp_path: Path) -> None:
    book = own(
        tmp_path,
        """
        [[geo]]
        provider = "anthropic"
        geo = "us"
        factor = 1.05
        note = "our contract"
        [[speed]]
        provider = "anthropic"
        speed = "priority"
        factor = 3
        note = "our contract"
        """,
    )

    billed = answer("claude-opus-4-8", fresh=MILLION, geo="us", speed="priority")

    assert book.price(billed)[:2] == (15_750_000_000, "override")
    assert [factor.origin for factor in book.explain(billed).factors] == ["our contract", "our contract"]


@pytest.mark.parametrize(
    ("entry", "what"),
    [
        ('model = "bad"\ninput = -1', "input is below zero"),
        ('model = "bad"\ninput = "3"', "input is no number"),
        ('model = "bad"\ninput = true', "input is no number"),
        ('model = "bad"\ninput = nan', "input is no finite number"),
        ('model = "bad"\ninput = 3000000', "which no model costs"),
        ('model = "bad"', "it names no rate"),
        ("input = 3", "it has no model"),
        ("model = 3\ninput = 3", "model is no text"),
        ('model = "bad"\ninptu = 3', "there is no 'inptu' in it"),
        ('model = "bad"\ninput = 3\nspeed = "warp"', "there is no speed 'warp'"),
        ('model = "bad"\ninput = 3\nfrom = "soon"', "from is no day"),
        ('model = "bad"\ninput = 3\nfrom = "2026-02-30"', "from is no day"),
        ('model = "bad"\ninput = 3\nfrom = 2026-01-01T00:00:00Z', "from is no day"),
        ('model = "bad"\ninput = 3\nabove = 7', "above is no list of tables"),
        ('model = "bad"\ninput = 3\n[[price.above]]\ninput = 4', "above has no prompt_tokens"),
        ('model = "bad"\ninput = 3\n[[price.above]]\nprompt_tokens = 9\noutput = 4', "without one below"),
    ],
)
def test_an_entry_that_cannot_be_used_is_told_and_the_others_stay_in_force(
    tmp_path: Path, entry: str, what: str
) -> None:
    book = own(tmp_path, f'[[price]]\nmodel = "good"\ninput = 5\n\n[[price]]\n{entry}\n')

    (problem,) = book.problems

    assert what in problem.what
    assert problem.advice
    assert str(problem).startswith(f"{tmp_path}/prices.toml, price 2")
    assert book.price(answer("good", fresh=MILLION)).cost_nano == 5 * 10**9
    assert book.price(answer("bad", fresh=MILLION)).cost_nano is None


@pytest.mark.parametrize(
    ("content", "what"),
    [
        (b"[[price]\n", "it is not TOML"),
        (b"\xff\xfe", "it is not TOML"),
        (b"price = 3\n", "'price' is no part"),
        (b"price = [3]\n", "it is no table"),
        (b"[[costs]]\nx = 1\n", "'costs' is no part"),
        (b'[[alias]]\nmodel = "x"\n', "it has no provider"),
        (b'[[geo]]\ngeo = "us"\nfactor = 1\n', "it has no provider"),
        (b'[[geo]]\nprovider = "anthropic"\ngeo = 3\nfactor = 1\n', "geo is no text"),
        (b'[[geo]]\nprovider = "anthropic"\ngeo = "us"\n', "its factor is no number"),
        (b'[[geo]]\nprovider = "anthropic"\ngeo = "us"\nfactor = nan\n', "its factor is no number"),
        (b'[[speed]]\nprovider = "openai"\nspeed = "flex"\nfactor = -2\n', "its factor is no number"),
        (b'[[speed]]\nprovider = "openai"\nspeed = "flex"\nfactor = "2"\n', "its factor is no number"),
        (b"[providers]\nmine = 3\n", "'mine' is no name"),
    ],
)
def test_a_file_that_says_nothing_usable_leaves_the_list_in_force(tmp_path: Path, content: bytes, what: str) -> None:
    file = tmp_path / "prices.toml"
    file.write_bytes(content)

    book = PriceBook(file)

    assert what in book.problems[0].what
    assert book.price(answer("claude-opus-5-5", fresh=MILLION)).cost_nano == 4 * 10**9


@pytest.mark.parametrize(
    ("pattern", "fits"),
    [
        ("*", True),
        ("my-*", True),
        ("*-7", True),
        ("m*-*7", True),
        ("my-model-7*", True),
        ("*o*o*", False),
        ("my", False),
    ],
)
def test_a_star_stands_for_any_letters(tmp_path: Path, *, pattern: str, fits: bool) -> None:
    book = own(tmp_path, f'[[price]]\nmodel = "{pattern}"\ninput = 1\n')

    assert (book.price(answer("my-model-7", fresh=1)).cost_nano is not None) == fits


def test_a_pattern_of_many_stars_takes_no_time(tmp_path: Path) -> None:
    stars = "*a" * 40

    assert own(tmp_path, f'[[price]]\nmodel = "{stars}x"\ninput = 1\n').price(answer("a" * 200)).cost_nano is None


def test_a_file_that_begins_with_a_byte_order_mark_is_read(tmp_path: Path) -> None:
    (tmp_path / "prices.toml").write_bytes(b'\xef\xbb\xbf[[price]]\r\nmodel = "m"\r\ninput = 1\r\n')

    book = PriceBook(tmp_path / "prices.toml")

    assert (book.price(answer("m", fresh=7)).cost_nano, book.problems) == (7000, ())


def test_the_version_changes_with_each_file_and_comes_back_with_it(tmp_path: Path) -> None:
    file = tmp_path / "prices.toml"
    book = PriceBook(file)
    without = book.version
    assert book.refresh() is False

    file.write_text('[[price]]\nmodel = "m"\ninput = 1\n')
    assert book.refresh() is True
    assert book.version != without
    assert book.price(answer("m", fresh=MILLION)) == (10**9, "override", book.version)

    file.unlink()
    assert book.refresh() is True
    assert book.version == without == PriceBook().version
    assert book.price(answer("m", fresh=MILLION)).cost_nano is None


def test_setting_a_price_keeps_what_a_person_wrote(tmp_path: Path) -> None:
    file = tmp_path / "prices.toml"
    file.write_text('# mine\n\n[[price]]  # why\nmodel = "a"\ninput = 1  # one\n\n# the end\n')

    assert write_own_price(file, model="b", rates={Kind.INPUT: Decimal(3)}, since=date(2026, 5, 1)) is True
    assert write_own_price(file, model="A", rates={Kind.INPUT: Decimal("1.50"), Kind.OUTPUT: Decimal(2)}) is False

    text = file.read_text()
    for kept in ("# mine", "[[price]]  # why", "input = 1.50  # one", "output = 2", "# the end", "from = 2026-05-01"):
        assert kept in text
    assert read_price_file(text.encode(), name="f", origin="o").problems == ()
    assert text.count("[[price]]") == 2


def test_a_price_can_be_set_behind_a_last_line_without_an_end(tmp_path: Path) -> None:
    file = tmp_path / "prices.toml"
    file.write_bytes(b'\xef\xbb\xbf[[price]]\nmodel = "a"\ninput = 1')

    assert write_own_price(file, model="b", rates={Kind.INPUT: Decimal(2)})

    book = PriceBook(file)
    assert [book.price(answer(model, fresh=MILLION)).cost_nano for model in ("a", "b")] == [10**9, 2 * 10**9]


def test_a_price_has_every_digit_that_was_given(tmp_path: Path) -> None:
    file = tmp_path / "new" / "prices.toml"
    rate = Decimal("0.00000000001234567890123456789")

    write_own_price(file, model="m", rates={Kind.INPUT: rate})

    (entry,) = read_price_file(file.read_bytes(), name="f", origin="o").entries
    assert entry.kinds[Kind.INPUT].base == rate
    assert file.stat().st_mode & 0o777 == 0o600


def test_a_file_that_is_not_toml_or_a_price_that_cannot_be_used_changes_nothing(tmp_path: Path) -> None:
    file = tmp_path / "prices.toml"
    file.write_text("[[price]\n")
    with pytest.raises(UsageError, match="is not TOML"):
        write_own_price(file, model="m", rates={Kind.INPUT: Decimal(1)})
    assert file.read_text() == "[[price]\n"

    file.write_text('price = [{model = "a", input = 1}]\n')
    with pytest.raises(UsageError, match=r"not written as \[\[price\]\]"):
        write_own_price(file, model="m", rates={Kind.INPUT: Decimal(1)})

    file.write_text('[[price]]\nmodel = "a"\ninput = "x"\n')
    with pytest.raises(UsageError, match="no speed 'warp'"):
        write_own_price(file, model="m", rates={Kind.INPUT: Decimal(1)}, speed="warp")
    write_own_price(file, model="m", rates={Kind.INPUT: Decimal(1)})
    assert [entry.model for entry in read_price_file(file.read_bytes(), name="f", origin="o").entries] == ["m"]


def test_a_file_that_cannot_be_written_is_an_error_with_its_name(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")

    with pytest.raises(AgentmonError, match=r"prices\.toml cannot be"):
        write_own_price(tmp_path / "file" / "prices.toml", model="m", rates={Kind.INPUT: Decimal(1)})


@pytest.mark.parametrize(
    ("content", "what"),
    [
        (b"nonsense", "it does not begin as a fetched price list does"),
        (b'{"package_version": "0.0.1", "fetched_at": "x"}\n[]', "it was fetched for genai-prices 0.0.1"),
        (b'{"package_version": "%s", "fetched_at": "x"}\n[' % version("genai-prices").encode(), "it is not JSON"),
        (b'{"package_version": "%s", "fetched_at": "x"}\n{}' % version("genai-prices").encode(), "not a list"),
        (b'{"package_version": "%s", "fetched_at": "x"}\n[3]' % version("genai-prices").encode(), "cannot read it"),
        (b'{"package_version": "%s", "fetched_at": "x"}\n[]' % version("genai-prices").encode(), "no prices of"),
    ],
)
def test_a_fetched_list_that_cannot_be_used_leaves_the_installed_one_in_force(
    tmp_path: Path, content: bytes, what: str
) -> None:
    data_file = tmp_path / "genai-prices.jsonl"
    data_file.write_bytes(content)
    book = PriceBook(None, data_file)

    assert book.price(answer("claude-opus-5-5", fresh=MILLION)).cost_nano == 4 * 10**9

    assert what in book.problems[0].what
    assert "installed prices count" in book.problems[0].advice


def test_a_fetched_list_counts_and_names_itself(tmp_path: Path) -> None:
    data_file = tmp_path / "genai-prices.jsonl"
    told = {"package_version": version("genai-prices"), "fetched_at": datetime(2026, 11, 28, tzinfo=UTC).isoformat()}
    data_file.write_bytes(json.dumps(told).encode() + b"\n" + a_price_list(0.1))
    book = PriceBook(None, data_file)

    assert book.price(answer("claude-next", fresh=MILLION)).cost_nano == 100_000_000
    assert book.explain(answer("claude-next", fresh=1)).lines[0].origin == "genai-prices, fetched 2026-11-28"
    assert book.version.startswith("fetched-")
    assert book.problems == ()
