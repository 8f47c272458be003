from __future__ import annotations

from typing import TYPE_CHECKING

from agentmon.logs.log_text import iter_raw_chunks

if TYPE_CHECKING:
    from pathlib import Path


def test_every_byte_comes_as_it_is(tmp_path: Path) -> None:
    log = tmp_path / "output.log"
    content = bytes(range(256)) * 3000
    log.write_bytes(content)

    assert b"".join(iter_raw_chunks(log)) == content
    assert b"".join(iter_raw_chunks(log, first_offset=1000)) == content[1000:]


def test_a_missing_log_has_no_bytes(tmp_path: Path) -> None:
    assert list(iter_raw_chunks(tmp_path / "none")) == []


def test_bytes_that_come_later_are_followed_until_the_caller_has_seen_enough(tmp_path: Path) -> None:
    log = tmp_path / "output.log"
    parts = [b"one\n", b"two", b"\n\xff"]

    def write_next() -> bool:
        if not parts:
            return False
        with log.open("ab") as file:
            file.write(parts.pop(0))
        return True

    assert b"".join(iter_raw_chunks(log, wait_for_more=write_next)) == b"one\ntwo\n\xff"


def test_a_log_that_is_replaced_by_its_capped_form_is_followed_without_a_gap(tmp_path: Path) -> None:
    log = tmp_path / "output.log"
    log.write_bytes(b"a" * 500 + b"b" * 500)
    steps = [True]

    def cap() -> bool:
        if not steps:
            return False
        steps.clear()
        capped = tmp_path / "capped"
        capped.write_bytes(b"a" * 500 + b"\n[agentmon: 250 bytes left out here]\n" + b"b" * 250 + b"more")
        capped.replace(log)
        return True

    assert b"".join(iter_raw_chunks(log, wait_for_more=cap)) == b"a" * 500 + b"b" * 500 + b"more"
