"""Seeds of random sequences: ``make test`` plays the first ones, ``make proofs`` the others."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from _pytest.mark.structures import ParameterSet


def seeds(count: int, *, quick: int = 1) -> list[int | ParameterSet]:
    """Return so many seeds, of which all but the ``quick`` ones are proofs."""
    return [seed if seed < quick else pytest.param(seed, marks=pytest.mark.proof) for seed in range(count)]
