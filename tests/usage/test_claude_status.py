from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from agentmon.usage.claude_status import ClaudeStatus, parse_object, read_status
from agentmon.usage.status_reports import leave_report, reports_folder, take_reports
from tests.usage.histories import SAMPLES


def captured() -> list[dict[str, Any]]:
    lines = (SAMPLES / "captured" / "claude_hooks_and_statusline.jsonl").read_text().splitlines()
    return [told["data"] for told in map(json.loads, lines) if told["src"] == "statusline"]


@pytest.fixture
def database_path(tmp_path: Path) -> str:
    path = tmp_path / "agentmon.db"
    path.touch()
    return str(path)


def test_what_claude_code_hands_over_is_understood() -> None:
    statuses = [read_status(json.dumps(told).encode()) for told in captured()]

    last = statuses[-1]
    assert last is not None
    assert (last.session_ref, last.model_name) == ("cf50f1a1-c6d7-4a97-8c71-1ef42079a8db", "Opus 5.5")
    assert (last.context_tokens, last.context_limit_tokens, last.context_percent) == (6130, 1_000_000, 1)
    assert last.cost_nano == 12_522_000
    assert last.windows == ()
    assert any(one is not None and one.context_tokens is None for one in statuses)


def test_the_percentage_is_worked_out_where_it_is_not_told() -> None:
    status = ClaudeStatus({"context_window": {"context_window_size": 200, "current_usage": {"input_tokens": 50}}})

    assert status.context_percent == 25


@pytest.mark.parametrize(
    "written",
    ['{"a": [1, 2.5, true, null, {"b": "\\u00e9\\n"}]}', ' {"a":NaN} \n', '{"a":-Infinity}', "{}", '\ufeff{"a":1}'],
)
def test_json_is_read_as_everywhere(written: str) -> None:
    assert str(parse_object(written.encode())) == str(json.loads(written.removeprefix("\ufeff")))


@pytest.mark.parametrize("written", [b"", b"1", b'"a"', b"{", b'{"a":}', b'{"a":1} x', b"{'a':1}", b'{"a":"' + b"\x00"])
def test_what_is_no_object_is_none(written: bytes) -> None:
    assert parse_object(written) is None


def test_a_report_is_read_back_as_it_was_left(database_path: str) -> None:
    status = ClaudeStatus({**captured()[-1], "rate_limits": {"five_hour": {"used_percentage": 7.5, "resets_at": 99}}})

    leave_report(database_path, status.session_ref, status.report(1234))
    (written,) = take_reports(database_path)

    told = parse_object(written)
    assert told is not None
    assert told["at_ms"] == 1234
    back = ClaudeStatus(told)
    assert (back.session_ref, back.model, back.context_tokens) == (status.session_ref, status.model, 6130)
    assert [(one.name, one.used_percent, one.resets_at_ms) for one in back.windows] == [("five_hour", 7.5, 99_000)]
    assert take_reports(database_path) == []


def test_reports_are_for_the_owner_alone_and_as_many_as_there_is_room_for(database_path: str) -> None:
    for number in range(600):
        leave_report(database_path, f"session {number:05d} {'x' * number}", {"at_ms": number})

    folder = Path(reports_folder(database_path))
    left = list(folder.iterdir())
    assert folder.stat().st_mode & 0o777 == 0o700
    assert {path.stat().st_mode & 0o777 for path in left} == {0o600}
    assert 1 < len(left) <= 256


def test_without_a_database_nothing_is_left(tmp_path: Path) -> None:
    leave_report(str(tmp_path / "none.db"), "s", {"at_ms": 1})

    assert list(tmp_path.glob("none*")) == []


def test_what_a_killed_writer_left_goes_with_time(database_path: str) -> None:
    leave_report(database_path, "s", {"at_ms": 1})
    folder = Path(reports_folder(database_path))
    for name, age_s in (("0a.json.99", 3600), ("0b.json.98", 0)):
        path = folder / name
        path.write_text("{")
        os.utime(path, (path.stat().st_atime - age_s,) * 2)

    assert len(take_reports(database_path)) == 1
    assert [path.name for path in folder.iterdir()] == ["0b.json.98"]
