"""Regular expressions mean the same on every Python that is supported."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

import agentmon

# Python 3.11.2, that of Debian 12, gives up where such a group could have matched (source: cpython issue 106052).
_POSSESSIVE_GROUP = re.compile(r"(?<!\\)\)(?:[*+?]|\{[0-9,]+\})\+|\(\?>")


def unsafe_patterns(source: str) -> list[str]:
    """Return the patterns in calls of ``re`` that repeat a group possessively."""
    calls = (node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call) and node.args)
    texts = [
        part.value.decode() if isinstance(part.value, bytes) else part.value
        for call in calls
        if isinstance(call.func, ast.Attribute) and isinstance(call.func.value, ast.Name) and call.func.value.id == "re"
        for part in ast.walk(call.args[0])
        if isinstance(part, ast.Constant) and isinstance(part.value, str | bytes)
    ]
    return [text for text in texts if _POSSESSIVE_GROUP.search(text)]


def test_no_group_is_repeated_possessively() -> None:
    found = {
        path.name: unsafe
        for path in Path(agentmon.__file__).parent.rglob("*.py")
        if (unsafe := unsafe_patterns(path.read_text(encoding="utf-8")))
    }

    assert found == {}


@pytest.mark.parametrize("pattern", ["(?:a|b)*+c", "(a)++", "(?:ab)?+", "(?:ab){2,3}+", "(?>a|b)"])
def test_such_a_group_is_found(pattern: str) -> None:
    assert unsafe_patterns(f"re.compile(rb{pattern!r})") == unsafe_patterns(f"re.search({pattern!r}, x)") == [pattern]


@pytest.mark.parametrize("pattern", ["[^a]*+b", r"\)*+", "(?:a++|b)*", "a{2}+", "(a)+b+"])
def test_possessive_characters_are_none(pattern: str) -> None:
    assert unsafe_patterns(f"re.compile({pattern!r})") == []
