from __future__ import annotations

import threading
import time
import uuid

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentmon.domain.amounts import DOLLARS, calls_text, count_text, duration_text, size_text, today_text
from agentmon.domain.execution_status import ExecutionStatus
from agentmon.domain.ids import new_id
from agentmon.domain.live_state import LiveState, live_state
from agentmon.domain.redaction import MASK, has_secret, redact
from agentmon.domain.spending import Spent
from tests.sentinels import secrets


def test_ids_are_uuids_of_version_7_that_sort_in_the_order_of_making() -> None:
    made = [new_id() for _ in range(10_000)]

    assert made == sorted(made)
    assert len(set(made)) == len(made)
    assert {uuid.UUID(text).version for text in made[:100]} == {7}


def test_ids_of_many_threads_are_all_different() -> None:
    made: list[str] = []
    threads = [threading.Thread(target=lambda: made.extend(new_id() for _ in range(2000))) for _ in range(8)]

    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len(set(made)) == 16_000


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(-5, "0s"), (0, "0s"), (59.9, "59s"), (252, "4m12s"), (7500, "2h05m"), (273_600, "3d04h")],
)
def test_a_duration_is_told_in_its_two_largest_units(seconds: float, text: str) -> None:
    assert duration_text(seconds) == text


@pytest.mark.parametrize(
    ("size", "text"), [(0, "0 B"), (999, "999 B"), (1000, "1.0 KB"), (98_000_000, "98.0 MB"), (5 * 10**15, "5000.0 TB")]
)
def test_a_size_is_told_in_units_of_a_thousand(size: int, text: str) -> None:
    assert size_text(size) == text


@pytest.mark.parametrize(("count", "text"), [(7, "7"), (1234, "1.2 K"), (34_000, "34 K"), (1_200_000, "1.2 M")])
def test_a_count_is_told_in_three_digits(count: int, text: str) -> None:
    assert count_text(count) == text


def test_an_unknown_cost_is_not_a_cost_of_nothing() -> None:
    assert DOLLARS.text(None) == ""
    assert DOLLARS.text(0) == "$0.00"
    assert DOLLARS.text(1) == "<$0.01"


@pytest.mark.parametrize(
    ("spent", "short_text", "text"),
    [
        (Spent(), "", ""),
        (Spent(cost_nano=0), "", ""),
        (Spent(cost_nano=0, tokens=40), "$0.00", "$0.00, 40 tokens"),
        (Spent(tokens=12_000, unpriced_runs=1), "12 K tokens", "12 K tokens"),
        (Spent(1_800_000_000, 12_000), "$1.80", "$1.80, 12 K tokens"),
        (Spent(4_000, 900, unpriced_runs=1), "<$0.01 + ?", "<$0.01 + ?, 900 tokens"),
    ],
)
def test_what_was_spent_is_told_as_money_and_as_tokens_where_no_price_is_known(
    spent: Spent, short_text: str, text: str
) -> None:
    assert spent.short_text(DOLLARS) == short_text
    assert spent.text(DOLLARS) == text
    assert DOLLARS.text(4_210_000_000) == "$4.21"


@given(status=st.sampled_from(ExecutionStatus))
def test_every_status_has_a_glyph_and_a_word(status: ExecutionStatus) -> None:
    state = live_state(status)

    assert len(state.glyph) == 1
    assert state.value


def test_a_failed_state_names_its_exit_code() -> None:
    assert LiveState.FAILED.with_cause(exit_code=3) == "failed (exit 3)"
    assert LiveState.FAILED.with_cause() == "failed"
    assert LiveState.DONE.with_cause(exit_code=0) == "done"


@pytest.mark.parametrize(
    "text",
    [
        "key sk-" + "ant-api03-" + "x" * 24,
        "ghp_0123456789abcdefghijABCDEFGHIJ012345",
        "Authorization: Bearer abcdef0123456789",
        "export OPENAI_API_KEY=abcdef0123456789",
        '"password": "hunter2hunter2"',
        "postgres://user:s3cret-word@db/x",
        "AKIAABCDEFGHIJKLMNOP",
        "-----BEGIN RSA PRIVATE KEY-----\nabc\n-----END RSA PRIVATE KEY-----",
    ],
)
def test_secrets_are_masked_by_their_shape(text: str) -> None:
    assert has_secret(text)
    assert MASK in redact(text)
    assert redact(redact(text)) == redact(text)


@pytest.mark.parametrize("seed", range(3))
def test_no_secret_of_any_shape_is_left_however_it_is_written(seed: int) -> None:
    made = secrets(seed)

    assert len({core for _, core in made.values()}) == len(made) == 40 * 10
    assert [name for name, (written, core) in made.items() if core in redact(written)] == []
    assert [name for name, (written, core) in made.items() if core in redact(f"of it {written}, then\nmore")] == []


@pytest.mark.parametrize(
    "hidden",
    [
        *(
            "\x1b[32m{}\x1b[0m",
            "\x1b[1;38;5;9m{}",
            "\x1b]8;;http://x\x07{}",
            "\x07{}",
            "\u200b{}",
            "\\u0007{}",
            "\\u001b[32m{}\\u001b[0m",
        ),
        *("\\x1b[32m{}", "\\033[1m{}", "\\e[1m{}", "\x00{}", "\ufeff{}"),
    ],
    ids=ascii,
)
@pytest.mark.parametrize("secret", ["ghp_" + "a1B2" * 9, "password=hunter22", "Bearer abcdefghijklmnop1234"])
def test_no_code_that_a_terminal_does_not_show_hides_a_secret(hidden: str, secret: str) -> None:
    parted = f"{secret[:3]}\x1b[31m{secret[3:]}"

    for text in (hidden.format(secret), parted, hidden.format(parted)):
        masked = redact(text)
        assert MASK in masked
        assert secret[-6:] not in masked
        assert redact(masked) == masked


@pytest.mark.parametrize(
    "text",
    [
        *("hf_" + "x1" * 16, "gsk_" + "x1" * 26, "AccountKey=abcd1234==", "Authorization: Bearer {}", "Bearer {}"),
        *(
            "password=a1b2\\hunter22",
            'password="h\\hunter22"',
            "PGPASSWORD=a\\never hunter",
            "Authorization: Basic '{}'",
        ),
        *("run\n--password hunter22", "a\t-token hunter22", "xapp-1-{}", "dckr_pat_{}", "sk_live_{}", "lin_api_{}abcd"),
        *("--password hunter22", "mysql --password=hunter22", "curl --api-key '{}'", "--Token {}", "x --secret {} y"),
        *('{{\\"password\\": \\"{}\\"}}', '{{"text": "{{\\"api_key\\": \\"{}\\"}}"}}', "SharedAccessSignature={}"),
    ],
)
def test_a_secret_is_known_by_what_stands_before_it(text: str) -> None:
    secret = "a1b2c3d4e5f6a7b8c9d0"
    masked = redact(text.format(secret) if "{" in text else text)

    assert MASK in masked
    assert secret not in masked
    assert "hunter22" not in masked


@pytest.mark.parametrize(
    "text",
    [
        *(
            "the --password option",
            "a bearer of authentication-required",
            "--max-tokens 100000",
            "--token <your token>",
        ),
        *("C:\\example\\token", "--password-stdin below", "\x1b[1mbold\x1b[0m token"),
    ],
)
def test_what_only_speaks_of_secrets_is_none(text: str) -> None:
    assert redact(text) == text


def test_of_an_assignment_the_value_alone_is_masked() -> None:
    text = "MY_API_KEY_2 = abcdef0123; x-token: 'abc def' İ SECRET_TOKEN=one-long-word&b=1"

    assert redact(text) == f"MY_API_KEY_2 = {MASK}; x-token: 'abc def' İ SECRET_TOKEN={MASK}&b=1"


@pytest.mark.parametrize(
    "piece",
    [
        ".1",
        "a.b-",
        "token",
        "token=",
        "-eyJabcdefghijk",
        "QUJD+/",
        "-----BEGIN ",
        "a",
        "token ",
        "authorization: ",
        "x://a:",
    ],
)
def test_no_text_takes_long_to_be_looked_through(piece: str) -> None:
    text = piece * (200_000 // len(piece)) + "token" + " " * 20_000 + "authorization:" + " " * 20_000
    began = time.process_time()

    redact(text)

    # What grows with the square of the length takes hours.
    assert time.process_time() - began < 5


@pytest.mark.parametrize(
    "text", ["fix the login token bug", "sort key = name", "commit 0123abcd", "http://localhost:8080/x", "a: b"]
)
def test_ordinary_text_holds_no_secret(text: str) -> None:
    assert redact(text) == text


@pytest.mark.parametrize(("count", "text"), [(0, ""), (1, "1 tool call"), (1200, "1,200 tool calls")])
def test_tool_calls_are_counted_in_words(count: int, text: str) -> None:
    assert calls_text(count) == text


@pytest.mark.parametrize(
    ("cost", "unpriced", "budget", "text"),
    [
        (0, 0, None, ""),
        (4_210_000_000, 0, None, "$4.21 today"),
        (4_210_000_000, 0, 20_000_000_000, "$4.21 / $20 today"),
        (0, 0, 2_500_000_000, "$0.00 / $2.50 today"),
        (4_210_000_000, 3, 20_000_000_000, "$4.21 + ? / $20 today"),
        (0, 3, None, "? today"),
    ],
)
def test_a_day_is_told_with_its_budget_and_with_what_is_unknown(
    cost: int, unpriced: int, budget: int | None, text: str
) -> None:
    assert today_text(cost, unpriced=unpriced, budget_nano=budget) == text
