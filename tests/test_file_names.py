"""Test files are imported by their base names, so that two of one name hide each other."""

from __future__ import annotations

from collections import Counter
from pathlib import Path


def test_no_two_test_files_have_the_same_name() -> None:
    names = Counter(path.name for path in Path(__file__).parent.rglob("*.py") if path.name != "conftest.py")

    assert [name for name, count in names.items() if count > 1 and not name.startswith("__")] == []
