from __future__ import annotations

import pytest

from agentmon.domain.near_paths import near_text


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("Edit: /w/shop/src/cart.py", "Edit: src/cart.py"),
        ("/w/shop/a and '/w/shop/b'", "a and 'b'"),
        ("/w/shop", "/w/shop"),
        ("/w/shop/", "/w/shop/"),
        ("/w/shop2/a", "/w/shop2/a"),
        ("/x/w/shop/a", "/x/w/shop/a"),
        ("nothing at all", "nothing at all"),
    ],
)
def test_paths_below_the_folder_are_told_from_there(text: str, shown: str) -> None:
    assert near_text(text, "/w/shop") == shown
    assert near_text(text, "/w/shop/") == shown


def test_without_a_folder_a_text_stays() -> None:
    assert near_text("/etc/passwd", "") == near_text("/etc/passwd", "/") == "/etc/passwd"
