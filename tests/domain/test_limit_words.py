"""Limits as people write them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentmon.domain.errors import UsageError
from agentmon.domain.limit_words import (
    LARGEST_BYTES,
    LONGEST_S,
    parse_size_limit,
    parse_time_limit,
    size_limit_text,
    time_limit_text,
)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("15m", 900), ("1h30m", 5400), (" 2 h 5 s ", 7205), ("90", 90), ("3D", 259_200), ("none", 0), ("", 0), ("0s", 0)],
)
def test_a_duration_is_read_as_people_write_it(text: str, seconds: int) -> None:
    assert parse_time_limit(text) == seconds


@pytest.mark.parametrize(
    ("text", "size_bytes"),
    [("10 MiB", 10_485_760), ("10mb", 10_000_000), ("512", 512), ("3 kB", 3000), ("NONE", 0), (" 1 GiB ", 1 << 30)],
)
def test_a_size_is_read_as_people_write_it(text: str, size_bytes: int) -> None:
    assert parse_size_limit(text) == size_bytes


@pytest.mark.parametrize("text", ["soon", "5 parsecs", "-3m", "1.5h", "m", "٣m", "1h 20", "999999d"])
def test_what_is_no_duration_is_refused_with_what_to_write(text: str) -> None:
    with pytest.raises(UsageError) as told:
        parse_time_limit(text)

    assert "none" in told.value.hint


@pytest.mark.parametrize("text", ["big", "5 M", "-3 MB", "1.5 MB", "2000 GiB", "٣"])
def test_what_is_no_size_is_refused_with_what_to_write(text: str) -> None:
    with pytest.raises(UsageError) as told:
        parse_size_limit(text)

    assert "none" in told.value.hint


@given(st.integers(0, LONGEST_S), st.integers(0, LARGEST_BYTES))
def test_what_is_shown_is_read_back_to_the_last_second_and_byte(seconds: int, size_bytes: int) -> None:
    assert parse_time_limit(time_limit_text(seconds)) == seconds
    assert parse_size_limit(size_limit_text(size_bytes)) == size_bytes
