from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentmon.domain.globs import Glob
from tests.call_counts import calls_of

if TYPE_CHECKING:
    from collections.abc import Callable

_SIGNS = {r"\*\*/": "(?:[^/]+/)*", r"\*\*": ".*", r"\*": "[^/]*", r"\?": "[^/]", r"\\.": None, ".": None}


def _expression(glob: str, *, is_path: bool) -> str:
    """Return the regular expression that says the same."""

    def said(found: re.Match[str]) -> str:
        if found[0] in {"**/", "**", "*", "?"} and not is_path:
            return {"?": "."}.get(found[0], ".*" * found[0].count("*") + "/" * found[0].count("/"))
        known = {"**/": "(?:[^/]+/)*", "**": ".*", "*": "[^/]*", "?": "[^/]"}
        return known.get(found[0]) or re.escape(found[0][-1])

    return re.sub("|".join(_SIGNS), said, glob, flags=re.DOTALL)


@pytest.mark.parametrize("is_path", [True, False])
@given(glob=st.text("ab/*?\\", max_size=12), text=st.text("ab/*", max_size=12))
def test_a_glob_fits_what_the_same_regular_expression_matches(is_path: bool, glob: str, text: str) -> None:
    expected = re.fullmatch(_expression(glob, is_path=is_path), text, re.DOTALL) is not None

    assert Glob(glob, is_path=is_path).fits(text) is expected


@pytest.mark.parametrize("glob", ["/**/a/**/a/**/a/**/b", "/" + "*a" * 20 + "b", "/" + "**a" * 20 + "b"])
def test_no_path_takes_longer_than_its_length(glob: str) -> None:
    def fitting(size: int) -> Callable[[], object]:
        return lambda: Glob(glob, is_path=True).fits("/" + "a/" * size + "a" * size)

    assert calls_of(fitting(2_000)) < 3 * calls_of(fitting(1_000))
