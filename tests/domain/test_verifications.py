from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentmon.domain.plain_text import plain_line
from agentmon.domain.verifications import (
    Verdict,
    VerificationStatus,
    chosen_command,
    command_text,
    read_command,
    read_optional_command,
    verification_name,
)


@pytest.mark.parametrize(
    ("command", "name"),
    [
        ("make test", "tests"),
        ("CI=1 npm run test -- --watch=false", "tests"),
        ("uv run pytest -q", "tests"),
        ("./gradlew unitTest", "tests"),
        ("tox", "tests"),
        ("just lint", "lint"),
        ("make check", "check"),
        ("ruff check .", "ruff"),
        ("./scripts/verify.sh --all", "verify"),
        ("timeout 60 cargo clippy", "clippy"),
        ("make", "make"),
        ("echo 'half a quote", "echo"),
        ("", "verification"),
    ],
)
def test_a_command_has_a_short_name(command: str, name: str) -> None:
    assert verification_name(command) == name


@given(command=st.text())
def test_a_name_is_short_and_safe_to_draw_whatever_the_command(command: str) -> None:
    name = verification_name(command)

    assert 0 < len(name) <= 16
    assert name == plain_line(name)


def test_a_card_says_how_it_ended_in_a_few_words() -> None:
    passed = Verdict(VerificationStatus.PASSED, "make test", 41_900)

    assert passed.text == "✓ tests 41s"
    assert passed._replace(status=VerificationStatus.FAILED).text == "✗ tests"
    assert passed._replace(status=VerificationStatus.TIMED_OUT).text == "✗ tests"
    assert passed._replace(status=VerificationStatus.STOPPED).text == "⊘ tests"
    assert passed._replace(status=VerificationStatus.RUNNING, took_ms=None).text == "verifying"


@given(
    task=st.sampled_from([None, "", "t"]), agent=st.sampled_from([None, "", "a"]), workspace=st.sampled_from(["", "w"])
)
def test_the_nearest_word_counts(task: str | None, agent: str | None, workspace: str) -> None:
    chosen = chosen_command(task=task, agent=agent, workspace=workspace)

    assert chosen == (task if task is not None else agent if agent is not None else workspace)


@given(command=st.text())
def test_what_a_field_shows_is_read_as_the_same(command: str) -> None:
    for kept in (None, read_command(command)):
        assert read_optional_command(command_text(kept)) == kept
