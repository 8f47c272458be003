from __future__ import annotations

import stat
from typing import TYPE_CHECKING

import pytest

from agentmon.domain.errors import ConflictError, NotFoundError, UsageError
from agentmon.logs.pattern import LogPattern
from agentmon.logs.saving import save_log

if TYPE_CHECKING:
    from pathlib import Path

LOG = b"\x1b[31mred\x1b[0m one\ntwo\r\n\xffthree one"


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "output.log"
    path.write_bytes(LOG)
    return path


def test_a_log_is_saved_byte_for_byte_for_its_owner_alone(source: Path, tmp_path: Path) -> None:
    target = tmp_path / "saved.log"
    assert save_log(source, target) == len(LOG)
    assert target.read_bytes() == LOG
    assert stat.S_IMODE(target.stat().st_mode) == 0o600


def test_of_a_filtered_log_the_matching_lines_are_saved(source: Path, tmp_path: Path) -> None:
    save_log(source, tmp_path / "saved.log", pattern=LogPattern("red one|three"))
    assert (tmp_path / "saved.log").read_bytes() == b"\x1b[31mred\x1b[0m one\n\xffthree one"


def test_a_file_is_overwritten_only_when_that_is_wanted(source: Path, tmp_path: Path) -> None:
    target = tmp_path / "saved.log"
    target.write_bytes(b"mine")
    with pytest.raises(ConflictError):
        save_log(source, target)
    assert target.read_bytes() == b"mine"

    save_log(source, target, overwrite=True)
    assert target.read_bytes() == LOG
    assert not list(tmp_path.glob(".saved*"))


def test_what_cannot_be_saved_says_why(source: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="the log itself"):
        save_log(source, source, overwrite=True)
    with pytest.raises(UsageError, match="a folder"):
        save_log(source, tmp_path, overwrite=True)
    with pytest.raises(UsageError, match="no such file or directory"):
        save_log(source, tmp_path / "nowhere" / "saved.log")
    with pytest.raises(NotFoundError):
        save_log(tmp_path / "gone.log", tmp_path / "saved.log")
    assert source.read_bytes() == LOG
