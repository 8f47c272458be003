"""What stands in one line of an editor: it is read back as it was, and what cannot be read says so at its field."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentmon.domain.errors import FieldError
from agentmon.screens.agents.field_words import (
    parse_fraction,
    parse_names,
    parse_tools,
    parse_whole,
    parse_words,
    words_text,
)

WORDS = st.lists(
    st.one_of(
        st.text(st.characters(exclude_categories=("Cs", "Cc")), max_size=12),
        st.sampled_from(["{{args.max}}", "--max={{args.max}}", "{{--all args.all}}", "a 'b' {{x y}}", "{{", "}} {{"]),
    ),
    max_size=6,
)


@given(WORDS)
def test_words_of_a_command_line_are_read_back_as_they_were(words: list[str]) -> None:
    assert parse_words("command_tokens", words_text(words)) == tuple(words)


def test_a_placeholder_stands_without_quotes_and_may_have_blanks() -> None:
    words = ("log", "{{--all args.all}}", "--max={{ args.max }}", "two words")

    assert words_text(words) == "log {{--all args.all}} --max={{ args.max }} 'two words'"
    assert parse_words("command_tokens", words_text(words)) == words


def test_an_open_quote_is_told_at_its_field() -> None:
    with pytest.raises(FieldError, match="a quote is not closed") as told:
        parse_words("base_args", "say 'hello")

    assert told.value.field == "base_args"
    assert told.value.hint


def test_names_and_tools_are_parted_by_blanks_or_commas() -> None:
    assert parse_names("API_KEY, ACME_*  API_KEY") == ("API_KEY", "ACME_*")
    assert parse_tools("allowed_tools", "Read, Bash(git log:*) mcp__a__b Bash(rm,-r)") == (
        "Read",
        "Bash(git log:*)",
        "mcp__a__b",
        "Bash(rm,-r)",
    )
    with pytest.raises(FieldError, match="--yes is not the name of a tool"):
        parse_tools("allowed_tools", "Read --yes")


@pytest.mark.parametrize("text", ["", "-1", "11", "two", "1.5", "٣", "9" * 30])
def test_what_is_no_number_in_the_range_is_refused(text: str) -> None:
    with pytest.raises(FieldError) as told:
        parse_whole("max_concurrent", text, least=0, most=10, hint="0 means no limit")

    assert told.value.hint == "0 means no limit"


@pytest.mark.parametrize("text", ["", "warm", "nan", "inf", "2.1", "-0.1"])
def test_what_is_no_fraction_in_the_range_is_refused(text: str) -> None:
    with pytest.raises(FieldError):
        parse_fraction("temperature", text, least=0, most=2)

    assert parse_fraction("temperature", " 0.7 ", least=0, most=2) == 0.7
