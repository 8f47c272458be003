"""The cap of the log: head and tail stay, the middle is left out and counted."""

from __future__ import annotations

import errno
import os
import random
import re
import resource
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from agentmon.runners.host import output_log
from agentmon.runners.host.output_log import OutputLog

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.runners.host.conftest import PrepareRun

_MARKER = re.compile(rb"\n\[agentmon: ([0-9,]+) bytes left out here\]\n")


def _check(content: bytes, written: bytes, cap_bytes: int, left_out_bytes: int) -> None:
    """Assert that the log is the head, one marker line with the total, and an unbroken tail of what was written."""
    head, tail = content[: cap_bytes // 2], content[cap_bytes // 2 :]
    assert head == written[: cap_bytes // 2]
    marker = f"\n[agentmon: {left_out_bytes:,} bytes left out here]\n".encode()
    assert tail.startswith(marker)
    tail = tail[len(marker) :]
    assert written.endswith(tail)
    assert len(tail) >= cap_bytes // 4
    assert len(head) + len(tail) + left_out_bytes == len(written)


def test_a_log_below_its_cap_is_whole(tmp_path: Path) -> None:
    log = OutputLog(str(tmp_path / "log"), 1000)

    log.append(b"x" * 999)

    assert (tmp_path / "log").read_bytes() == b"x" * 999
    assert log.left_out_bytes == 0


def test_the_first_cut_keeps_half_and_quarter(tmp_path: Path) -> None:
    log = OutputLog(str(tmp_path / "log"), 1000)
    written = bytes(random.Random(1).choices(b"abcdefgh\n", k=1000))
    inode = (tmp_path / "log").stat().st_ino

    log.append(written)

    assert log.left_out_bytes == 250
    expected = written[:500] + b"\n[agentmon: 250 bytes left out here]\n" + written[-250:]
    assert (tmp_path / "log").read_bytes() == expected
    assert (tmp_path / "log").stat().st_ino != inode
    assert not (tmp_path / "log.new").exists()


@pytest.mark.parametrize("cap_bytes", [100, 1000, 4096, 99_999])
def test_the_sum_holds_after_every_write_and_the_file_stays_small(tmp_path: Path, cap_bytes: int) -> None:
    generator = random.Random(cap_bytes)
    log = OutputLog(str(tmp_path / "log"), cap_bytes)
    written = b""

    for _ in range(50):
        chunk = generator.randbytes(generator.randrange(1, cap_bytes))
        log.append(chunk)
        written += chunk
        content = (tmp_path / "log").read_bytes()
        assert len(content) <= cap_bytes + 60
        if log.left_out_bytes:
            _check(content, written, cap_bytes, log.left_out_bytes)
        else:
            assert content == written

    assert log.left_out_bytes > 0


class Refusals:
    """Stands for the system's calls that change a file, and lets some of them in a row fail as on a full disk."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.left_until = self.left = 0
        names = ("pwrite", "copy_file_range", "ftruncate", "rename")
        refusing = {name: self._refusing(getattr(os, name)) for name in names}
        monkeypatch.setattr(output_log, "os", SimpleNamespace(**{**vars(os), **refusing}))

    def _refusing(self, call: Callable[..., int]) -> Callable[..., int]:
        def made(*arguments: Any) -> int:
            self.left_until -= 1
            if self.left_until < 0 < self.left:
                self.left -= 1
                raise OSError(errno.ENOSPC, "no space")
            if call.__name__ == "pwrite" and self.left:  # before it is full, a disk takes a part
                file, chunk, position = arguments
                return call(file, chunk[: max(1, len(chunk) // 2)], position)
            return call(*arguments)

        return made


@pytest.mark.parametrize("failures", [1, 2, 3, 100])
@pytest.mark.parametrize("step_bytes", [30, 700])
def test_a_cut_that_fails_at_any_write_is_repeated_and_loses_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failures: int, step_bytes: int
) -> None:
    cap_bytes = 1000
    refusals = Refusals(monkeypatch)
    for first in range(40):
        log = OutputLog(str(tmp_path / f"log{first}"), cap_bytes)
        generator = random.Random(first)
        written = generator.randbytes(cap_bytes - step_bytes // 2)
        assert log.append(written)

        refusals.left_until, refusals.left = first, failures
        while refusals.left:
            chunk = generator.randbytes(step_bytes)
            log.append(chunk)
            written += chunk
            content = (tmp_path / f"log{first}").read_bytes()
            assert content.startswith(written[: cap_bytes // 2])
            if not log.is_blocked:
                assert content.endswith(written[-cap_bytes // 4 :])
            assert not (tmp_path / f"log{first}.new").exists()
        assert log.append(b"x" * 100)

        _check((tmp_path / f"log{first}").read_bytes(), written + b"x" * 100, cap_bytes, log.left_out_bytes)


def test_without_room_for_a_second_file_the_log_is_cut_in_place(tmp_path: Path) -> None:
    (tmp_path / "log.new").mkdir()
    log = OutputLog(str(tmp_path / "log"), 10_000)
    inode = (tmp_path / "log").stat().st_ino
    written = b""

    for number in range(100):
        chunk = random.Random(number).randbytes(700)
        log.append(chunk)
        written += chunk
        if log.left_out_bytes:
            _check((tmp_path / "log").read_bytes(), written, 10_000, log.left_out_bytes)

    assert log.left_out_bytes > 0
    assert (tmp_path / "log").stat().st_ino == inode


@pytest.mark.proof
def test_a_run_that_writes_a_lot_keeps_its_first_and_last_lines(prepare_run: PrepareRun) -> None:
    run = prepare_run("seq", "1000000", max_output_bytes=100_000).start()

    ended = run.wait_for_end()

    written = b"".join(b"%d\n" % number for number in range(1, 1_000_001))
    assert (ended["output_bytes"], ended["output_lines"]) == (len(written), 1_000_000)
    _check(run.output, written, 100_000, ended["left_out_bytes"])
    (marker,) = _MARKER.findall(run.output)
    assert int(marker.replace(b",", b"")) == ended["left_out_bytes"]
    assert len(run.output) <= 100_000 + 60


def test_a_capped_log_never_needs_more_disk_than_twice_its_cap(prepare_run: PrepareRun) -> None:
    run = prepare_run("head", "-c", "20000000", "/dev/zero", max_output_bytes=1_000_000)
    # The kernel refuses every file above this size, so a larger one would show as a full disk.
    limit = 1_000_000 + 300_000

    run.start(preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)))

    assert run.wait_for_end()["output_bytes"] == 20_000_000
    assert "storage_full" not in run.types()
