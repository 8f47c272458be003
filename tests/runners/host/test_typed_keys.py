"""What is recorded of what a person types: how many keys, and by setting which."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from agentmon.runners.host.typed_keys import TypedKeys

if TYPE_CHECKING:
    from collections.abc import Sequence


class _Journal:
    def __init__(self) -> None:
        self.entries: list[dict[str, Any]] = []

    def add(self, kind: str, **fields: object) -> None:
        self.entries.append({"type": kind, **fields})


def recorded(*pieces: bytes, keeps_text: bool = False, is_hidden: bool = False) -> Sequence[dict[str, Any]]:
    journal = _Journal()
    typed = TypedKeys(journal, keeps_text=keeps_text)  # type: ignore[arg-type] # it only adds
    for piece in pieces:
        typed.take(piece, 0.0, is_hidden=is_hidden)
    typed.record()
    return journal.entries


@pytest.mark.parametrize(
    ("pieces", "keys"),
    [
        ([b"abc\r"], 4),
        ([b"\x03"], 1),
        (["é界🙂".encode()], 3),
        (["é".encode()[:1], "é".encode()[1:]], 1),
        ([b"\x1b[A", b"\x1bOB", b"\x1b[1;5C", b"\x1b[3~", b"\x1b[15~", b"\x1bOP"], 6),
        ([b"\x1b[1;", b"5C"], 1),
        ([b"\x1b"], 1),
        ([b"\x1b\x1b"], 2),
        ([b"\x1bx"], 1),
        ([b"\x1b[", b"x"], 2),
        ([b"\x1b[1;2R"], 1),
        ([b"\x1b[I"], 0),
    ],
)
def test_each_key_counts_once(pieces: list[bytes], keys: int) -> None:
    assert sum(entry["keys"] for entry in recorded(*pieces)) == keys


@pytest.mark.parametrize(
    "said",
    [
        b"\x1b[<0;10;20M", b"\x1b[<0;10;20m", b"\x1b[M !!", b"\x1b[I", b"\x1b[O", b"\x1b[0n", b"\x1b[12;40R",
        b"\x1b[?62;22c", b"\x1b[>1;2;0c", b"\x1b[?2026;2$y", b"\x1b[?1u", b"\x1b[8;24;80t",
        b"\x1b]11;rgb:0000/0000/0000\x07", b"\x1b]10;rgb:ffff/ffff/ffff\x1b\\", b"\x1bP>|tmux 3.3a\x1b\\",
    ],
)  # fmt: skip
def test_what_a_terminal_says_by_itself_is_no_key(said: bytes) -> None:
    assert recorded(said) == []
    assert [entry["keys"] for entry in recorded(said + b"x")] == [1]
    assert [entry["keys"] for entry in recorded(said[:4], said[4:], b"x")] == [1]


def test_a_paste_is_counted_apart() -> None:
    (entry,) = recorded(b"a\x1b[200~two lines\r", b"more\x1b[201~", b"\r")

    assert (entry["keys"], entry["pasted"], entry["text"]) == (2, 14, None)


def test_the_text_is_kept_only_when_asked_for_and_never_while_it_is_hidden() -> None:
    assert recorded(b"hello\r")[0]["text"] is None
    assert recorded("grüße\r\x7f\x03\x1b[A\x1bx".encode(), keeps_text=True)[0]["text"] == (
        "grüße<enter><backspace><ctrl+c><key><alt>x"
    )
    (hidden,) = recorded(b"my password\r", keeps_text=True, is_hidden=True)
    assert (hidden["keys"], hidden["text"]) == (12, "")


def test_the_text_is_masked() -> None:
    secret = b"ghp_" + b"a1B2" * 9
    (entry,) = recorded(b"export TOKEN=", secret[:10], secret[10:], b"\r", keeps_text=True)

    assert secret.decode() not in entry["text"]


def test_what_is_typed_at_a_stretch_is_one_entry_and_a_flood_is_bounded() -> None:
    journal = _Journal()
    typed = TypedKeys(journal, keeps_text=False)  # type: ignore[arg-type] # it only adds
    typed.take(b"a", 10.0, is_hidden=False)
    typed.take(b"b", 11.0, is_hidden=False)
    typed.advance(11.5)
    assert journal.entries == []
    typed.advance(typed.next_step)
    assert [entry["keys"] for entry in journal.entries] == [2]
    assert typed.next_step == float("inf")

    typed.take(b"x" * 5000, 20.0, is_hidden=False)
    typed.advance(20.0)
    assert [entry["keys"] for entry in journal.entries] == [2, 5000]
