"""The app in a real terminal that sends what no person types; ``benchmarks.keyboard_fuzz`` sends more of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from benchmarks.keyboard_fuzz import check
from tests.widgets.terminal_inputs import anything, no_key

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.proof
SEED = 1_000_000
"""Others than those of the tests of the parser."""


def test_what_is_no_key_does_nothing(tmp_path: Path) -> None:
    _longest_s, keys = check(tmp_path, no_key, 20_000, SEED, is_sunk=False)

    assert keys == 0


def test_nothing_that_a_terminal_sends_ends_the_app(tmp_path: Path) -> None:
    _longest_s, keys = check(tmp_path, anything, 5_000, SEED, is_sunk=True)

    assert keys > 0
