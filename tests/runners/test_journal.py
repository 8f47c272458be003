"""The reader's side of the journal."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from agentmon.runners.journal import (
    AgentEventEntry,
    AgentStartedEntry,
    CouldNotStopEntry,
    DamagedEntry,
    EndedEntry,
    Entry,
    ExitedEntry,
    HostOutcome,
    HostStartedEntry,
    LeftOutEntry,
    OutputEntry,
    PausedEntry,
    ProcessNote,
    ResumedEntry,
    SignalSentEntry,
    StartFailedEntry,
    StopKind,
    StopRequestedEntry,
    StorageFullEntry,
    StorageOkEntry,
    StragglersEntry,
    TimeLimitReachedEntry,
    UnknownEntry,
    parse_entry,
    read_entries,
)

if TYPE_CHECKING:
    from pathlib import Path

_FULL = b'{"n": 1, "at_ms": 5, "type": "storage_full"}\n'
_OK = b'{"n": 2, "at_ms": 6, "type": "storage_ok"}\n'


@pytest.mark.parametrize(
    ("fields", "entry"),
    [
        (
            {"type": "host_started", "pid": 7, "start_time": "88", "boot_id": "", "python": "3.11.7"},
            HostStartedEntry(number=1, at_ms=2, pid=7, start_time="88", boot_id="", python="3.11.7"),
        ),
        (
            {"type": "agent_started", "pid": 8, "argv": ["ls", "-l"]},
            AgentStartedEntry(number=1, at_ms=2, pid=8, argv=("ls", "-l")),
        ),
        (
            {"type": "start_failed", "error": "not found", "errno": None},
            StartFailedEntry(number=1, at_ms=2, error="not found", errno=None),
        ),
        (
            {"type": "output", "bytes": 10, "lines": 2, "left_out_bytes": 3, "last_line": "ü"},
            OutputEntry(number=1, at_ms=2, output_bytes=10, output_lines=2, left_out_bytes=3, last_line="ü"),
        ),
        (
            {"type": "stop_requested", "command_id": "c", "kind": "kill"},
            StopRequestedEntry(number=1, at_ms=2, command_id="c", kind=StopKind.KILL),
        ),
        (
            {"type": "paused", "command_id": "c", "pids": [4, 5], "still_running": [6]},
            PausedEntry(number=1, at_ms=2, command_id="c", pids=(4, 5), still_running=(6,)),
        ),
        (
            {"type": "paused", "command_id": "c", "pids": []},
            PausedEntry(number=1, at_ms=2, command_id="c", pids=()),
        ),
        ({"type": "resumed", "command_id": "c"}, ResumedEntry(number=1, at_ms=2, command_id="c")),
        (
            {"type": "time_limit_reached", "timeout_s": 3},
            TimeLimitReachedEntry(number=1, at_ms=2, timeout_s=3.0),
        ),
        (
            {"type": "signal_sent", "signal": "TERM", "pids": [4, 5]},
            SignalSentEntry(number=1, at_ms=2, signal="TERM", pids=(4, 5)),
        ),
        (
            {"type": "stragglers", "processes": [{"pid": 4, "command": "sleep 9"}]},
            StragglersEntry(number=1, at_ms=2, processes=(ProcessNote(pid=4, command="sleep 9"),)),
        ),
        ({"type": "could_not_stop", "processes": []}, CouldNotStopEntry(number=1, at_ms=2, processes=())),
        ({"type": "storage_full"}, StorageFullEntry(number=1, at_ms=2)),
        ({"type": "left_out", "entries": 3}, LeftOutEntry(number=1, at_ms=2, entries=3)),
        ({"type": "storage_ok"}, StorageOkEntry(number=1, at_ms=2)),
        ({"type": "exited", "exit_code": None, "signal": 9}, ExitedEntry(number=1, at_ms=2, exit_code=None, signal=9)),
        (
            {
                "type": "ended",
                "outcome": "timed_out",
                "exit_code": 143,
                "output_bytes": 1,
                "output_lines": 1,
                "left_out_bytes": 0,
                "duration_ms": 12,
                "error": None,
            },
            EndedEntry(
                number=1,
                at_ms=2,
                outcome=HostOutcome.TIMED_OUT,
                exit_code=143,
                output_bytes=1,
                output_lines=1,
                left_out_bytes=0,
                duration_ms=12,
                error=None,
            ),
        ),
        (
            {
                "type": "ended",
                "outcome": "finished",
                "exit_code": 143,
                "output_bytes": 1,
                "output_lines": 1,
                "left_out_bytes": 0,
                "duration_ms": 12,
                "error": None,
                "agent_outcome": "limit",
                "agent_error": "no money left",
            },
            EndedEntry(
                number=1,
                at_ms=2,
                outcome=HostOutcome.FINISHED,
                exit_code=143,
                output_bytes=1,
                output_lines=1,
                left_out_bytes=0,
                duration_ms=12,
                error=None,
                agent_outcome="limit",
                agent_error="no money left",
            ),
        ),
        (
            {"type": "agent_event", "event": {"kind": "cost", "cost_nano": 1}},
            AgentEventEntry(number=1, at_ms=2, event={"kind": "cost", "cost_nano": 1}),
        ),
    ],
)
def test_every_type_of_entry_is_read_with_its_fields(fields: dict[str, object], entry: Entry) -> None:
    line = json.dumps({"n": 1, "at_ms": 2, **fields}).encode()

    assert parse_entry(line) == entry


def test_an_entry_of_a_later_release_is_kept_as_it_stands() -> None:
    line = b'{"n": 3, "at_ms": 4, "type": "approval_asked", "what": [1]}'

    entry = parse_entry(line)

    assert entry == UnknownEntry(number=3, at_ms=4, entry_type="approval_asked", line=line.decode())


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"\x00\x00",
        b"\xff{",
        b"[]",
        b"{}",
        b"[" * 100_000,
        b'{"n": 1, "type": "storage_full"}',
        b'{"n": true, "at_ms": 1, "type": "storage_full"}',
        b'{"n": 1, "at_ms": 1, "type": "exited", "exit_code": "0", "signal": null}',
        b'{"n": 1, "at_ms": 1, "type": "ended", "outcome": "vanished"}',
        b'{"n": 1, "at_ms": 1, "type": "agent_started", "pid": 1, "argv": [1]}',
        b'{"n": 1, "at_ms": 1, "type": "stragglers", "processes": [1]}',
        b'{"n": 1, "at_ms": 1, "type": "paused", "command_id": "c", "pids": ["4"]}',
        b'{"n": 1, "at_ms": 1, "type": "resumed"}',
    ],
)
def test_a_damaged_line_is_an_entry_that_says_so(line: bytes) -> None:
    entry = parse_entry(line, 17)

    assert isinstance(entry, DamagedEntry)
    assert entry.offset == 17
    assert entry.text == line.decode("utf-8", "replace")[:1000]


@pytest.mark.parametrize(
    "line",
    [
        b'{"n": 1, "at_ms": 253402300800000, "type": "storage_full"}',
        b'{"n": 1, "at_ms": -1, "type": "storage_full"}',
        b'{"n": 9223372036854775808, "at_ms": 1, "type": "storage_full"}',
        b'{"n": 1, "at_ms": 1, "type": "time_limit_reached", "timeout_s": NaN}',
        b'{"n": 1, "at_ms": 1, "type": "time_limit_reached", "timeout_s": 1e999}',
        b'{"n": 1, "at_ms": 1, "type": "output", "bytes": -1, "lines": 0, "left_out_bytes": 0, "last_line": ""}',
    ],
)
def test_a_number_that_no_database_row_can_hold_is_damage(line: bytes) -> None:
    assert isinstance(parse_entry(line), DamagedEntry)


def test_reading_goes_on_behind_a_damaged_line(tmp_path: Path) -> None:
    journal = tmp_path / "journal.jsonl"
    journal.write_bytes(_FULL + b"rubbish\n" + _OK)

    entries, offset = read_entries(journal, 0)

    assert [type(entry) for entry in entries] == [StorageFullEntry, DamagedEntry, StorageOkEntry]
    assert entries[1] == DamagedEntry(offset=len(_FULL), text="rubbish")
    assert offset == journal.stat().st_size


def test_an_unfinished_line_is_read_once_it_is_complete(tmp_path: Path) -> None:
    journal = tmp_path / "journal.jsonl"
    journal.write_bytes(_FULL + _OK[:10])

    first, offset = read_entries(journal, 0)
    journal.write_bytes(_FULL + _OK)
    second, end = read_entries(journal, offset)

    assert first == [StorageFullEntry(number=1, at_ms=5)]
    assert offset == len(_FULL)
    assert second == [StorageOkEntry(number=2, at_ms=6)]
    assert end == len(_FULL + _OK)


def test_a_missing_journal_has_no_entries(tmp_path: Path) -> None:
    assert read_entries(tmp_path / "none", 3) == ([], 3)


def test_one_call_reads_no_more_than_its_bound(tmp_path: Path) -> None:
    journal = tmp_path / "journal.jsonl"
    journal.write_bytes(_FULL + _OK)

    first, offset = read_entries(journal, 0, max_bytes=len(_FULL) + 5)
    second, end = read_entries(journal, offset, max_bytes=len(_FULL) + 5)

    assert (len(first), offset) == (1, len(_FULL))
    assert (len(second), end) == (1, len(_FULL + _OK))


def test_a_line_longer_than_the_bound_does_not_stop_the_reading(tmp_path: Path) -> None:
    journal = tmp_path / "journal.jsonl"
    journal.write_bytes(b"x" * 250 + b"\n" + _OK)
    entries: list[Entry] = []
    offset = 0

    while True:
        more, new_offset = read_entries(journal, offset, max_bytes=100)
        if new_offset == offset:
            break
        entries += more
        offset = new_offset

    assert offset == journal.stat().st_size
    assert [type(entry) for entry in entries[:-1]] == [DamagedEntry] * (len(entries) - 1)
    assert entries[-1] == StorageOkEntry(number=2, at_ms=6)
