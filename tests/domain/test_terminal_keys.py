from __future__ import annotations

import pytest

from agentmon.domain.errors import UsageError
from agentmon.domain.terminal_keys import key_sequence


@pytest.mark.parametrize(
    ("name", "sequence"),
    [
        ("enter", "\r"), ("Escape", "\x1b"), ("ctrl+c", "\x03"), ("CTRL+C", "\x03"), ("ctrl+[", "\x1b"),
        ("ctrl+space", "\0"), ("y", "y"), ("Y", "Y"), ("é", "é"), ("+", "+"), ("alt+x", "\x1bx"), ("alt+X", "\x1bX"),
        ("up", "\x1b[A"), ("ctrl+left", "\x1b[1;5D"), ("shift+alt+up", "\x1b[1;4A"), ("pagedown", "\x1b[6~"),
        ("ctrl+delete", "\x1b[3;5~"), ("f1", "\x1bOP"), ("f12", "\x1b[24~"), ("shift+tab", "\x1b[Z"),
        ("backspace", "\x7f"),
    ],
)  # fmt: skip
def test_a_key_is_what_a_terminal_sends(name: str, sequence: str) -> None:
    assert key_sequence(name) == sequence


@pytest.mark.parametrize("name", ["", "foo", "ctrl+", "ctrl+ctrl+up", "hyper+x", "ctrl+1", "f13", "\x1b", "enter+x"])
def test_a_key_that_there_is_not_is_refused(name: str) -> None:
    with pytest.raises(UsageError):
        key_sequence(name)
