from __future__ import annotations

import errno
import json
import time
from typing import TYPE_CHECKING

import pytest

from agentmon.domain.conversation import AskNews, MessageNews
from agentmon.domain.events import EventLevel, EventType
from agentmon.domain.execution_mode import ExecutionMode
from agentmon.domain.execution_status import EndReason, ExecutionStatus
from agentmon.domain.exit_codes import failure_text
from agentmon.domain.ids import ExecutionId, new_id
from agentmon.worker.journal_reading import read_stretch
from tests.endings import record
from tests.store.conversation_place import NOON_MS, opened_place
from tests.store.queue_place import NOON

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from agentmon.domain.executions import ExecutionProgress

RUN = ExecutionId("run")
SECRET = "sk-ant-" + "a1" * 20
CALL: dict[str, object] = {
    "kind": "tool_started",
    "tool_ref": "t",
    "tool_name": "Bash",
    "type": "execute",
    "target": "pytest -k login",
}
TEXT: dict[str, object] = {
    "kind": "message",
    "message_ref": "m",
    "role": "assistant",
    "text": "\n  All is well.\nReally.",
}


def event(fields: Mapping[str, object]) -> dict[str, object]:
    return {"type": "agent_event", "event": dict(fields)}


def output(line: str) -> dict[str, object]:
    return {"type": "output", "bytes": 1, "lines": 1, "left_out_bytes": 0, "last_line": line}


def ended(**fields: object) -> dict[str, object]:
    counts = dict.fromkeys(("output_bytes", "output_lines", "left_out_bytes", "duration_ms"), 0)
    return {"type": "ended", "outcome": "exited", "exit_code": 0, "error": None, **counts, **fields}


def write(path: Path, *entries: dict[str, object]) -> Path:
    lines = [json.dumps({"n": n, "at_ms": NOON_MS + n, **entry}) for n, entry in enumerate(entries, 1)]
    path.write_text("".join(f"{line}\n" for line in lines))
    return path


def read(path: Path, *entries: dict[str, object], mode: ExecutionMode = ExecutionMode.ACP) -> ExecutionProgress:
    stretch = read_stretch(write(path / "journal.jsonl", *entries), execution_id=RUN, offset=0, mode=mode)
    assert stretch is not None
    return stretch


@pytest.mark.parametrize(
    ("fields", "status", "error", "may_retry"),
    [
        ({}, ExecutionStatus.FAILED, "it ended before its agent had answered", True),
        ({"agent_error": "no login"}, ExecutionStatus.FAILED, "no login", True),
        ({"agent_outcome": "completed"}, ExecutionStatus.SUCCEEDED, None, True),
        ({"exit_code": 1, "agent_outcome": "completed"}, ExecutionStatus.FAILED, None, True),
        ({"exit_code": 1, "agent_error": "no login"}, ExecutionStatus.FAILED, "no login", True),
        ({"agent_outcome": "failed", "agent_error": "overloaded"}, ExecutionStatus.FAILED, "overloaded", True),
        ({"agent_outcome": "failed"}, ExecutionStatus.FAILED, "its agent failed", True),
        ({"agent_outcome": "limit", "agent_error": "5 turns"}, ExecutionStatus.FAILED, "5 turns", False),
        (
            {"exit_code": 137, "agent_outcome": "interrupted"},
            ExecutionStatus.FAILED,
            "interrupted by a person, then it ended",
            False,
        ),
        ({"agent_outcome": "of a later release"}, ExecutionStatus.FAILED, "its agent failed", True),
        (
            {"outcome": "finished", "exit_code": 143, "agent_outcome": "completed"},
            ExecutionStatus.SUCCEEDED,
            None,
            True,
        ),
        (
            {"outcome": "finished", "exit_code": 143, "agent_outcome": "failed"},
            ExecutionStatus.FAILED,
            "its agent failed",
            True,
        ),
        ({"outcome": "finished"}, ExecutionStatus.FAILED, "it ended before its agent had answered", True),
        ({"outcome": "stopped", "agent_outcome": "completed"}, ExecutionStatus.CANCELLED, None, True),
        ({"outcome": "timed_out", "agent_outcome": "completed"}, ExecutionStatus.TIMED_OUT, None, True),
    ],
)
def test_a_run_ends_as_its_agent_and_its_exit_code_say(
    tmp_path: Path, fields: dict[str, object], status: ExecutionStatus, error: str | None, may_retry: bool
) -> None:
    ending = read(tmp_path, ended(**fields)).ending

    assert ending is not None
    assert (ending.status, ending.error, ending.may_retry) == (status, error, may_retry)
    assert ending.reason is EndReason(str(fields.get("outcome", "exited")))


@pytest.mark.parametrize("mode", [ExecutionMode.TEMPLATE, ExecutionMode.TMUX])
@pytest.mark.parametrize(("exit_code", "status"), [(0, ExecutionStatus.SUCCEEDED), (1, ExecutionStatus.FAILED)])
def test_the_exit_code_alone_decides_where_nothing_else_is_told(
    tmp_path: Path, mode: ExecutionMode, exit_code: int, status: ExecutionStatus
) -> None:
    ending = read(tmp_path, ended(exit_code=exit_code), mode=mode).ending

    assert ending is not None
    assert ending.status is status


@pytest.mark.parametrize(
    ("entries", "mode", "line"),
    [
        ([output("raw"), event(CALL), output("raw")], ExecutionMode.ACP, "Running pytest -k login"),
        ([event(CALL), event(TEXT)], ExecutionMode.ACP, "All is well."),
        ([event(TEXT | {"role": "user"}), event(TEXT | {"is_thinking": True}), output("raw")], ExecutionMode.ACP, None),
        ([event(CALL | {"target": "a\x1b[31m\nb"})], ExecutionMode.ACP, "Running a b"),
        ([event(TEXT), event(CALL | {"tool_name": "TodoWrite", "target": ""})], ExecutionMode.ACP, "All is well."),
        ([event(TEXT), event(CALL | {"tool_name": "AskUserQuestion"})], ExecutionMode.ACP, "All is well."),
        ([output("raw")], ExecutionMode.TEMPLATE, "raw"),
        ([event({"kind": "activity", "activity": "waiting"}), output("raw")], ExecutionMode.TMUX, None),
        ([output("command not found"), ended(exit_code=127)], ExecutionMode.TMUX, "command not found"),
        ([event(CALL), output("command not found"), ended(exit_code=1)], ExecutionMode.ACP, "command not found"),
        ([event(CALL), output("raw"), ended(agent_outcome="failed")], ExecutionMode.ACP, "Running pytest -k login"),
    ],
)
def test_a_card_shows_what_the_agent_says_and_does(
    tmp_path: Path, entries: list[dict[str, object]], mode: ExecutionMode, line: str | None
) -> None:
    assert read(tmp_path, *entries, mode=mode).last_line == line


def test_no_secret_gets_past_the_journal_and_a_masked_input_cannot_be_edited(tmp_path: Path) -> None:
    ask = {
        "kind": "ask",
        "request_id": "r",
        "ask_kind": "question",
        "title": f"Use {SECRET}?",
        "tool_input": {"env": [{"KEY": SECRET, SECRET: ""}]},
        "can_edit_input": True,
        "questions": [{"question": SECRET, "choices": [{"key": "a", "label": SECRET}]}],
    }

    stretch = read(tmp_path, event(TEXT | {"text": f"token {SECRET}"}), event(ask), event({"kind": SECRET}))

    assert SECRET not in repr(stretch)
    message, request = (one.news for one in stretch.news)
    assert isinstance(message, MessageNews)
    assert isinstance(request, AskNews)
    assert request.tool_input == {"env": [{"KEY": "[secret]", "[secret]": ""}]}
    assert not request.can_edit_input


def test_every_event_is_told_in_its_order_and_one_that_cannot_be_read_is_a_warning(tmp_path: Path) -> None:
    long = TEXT | {"text": "x" * 5000}
    stretch = read(
        tmp_path,
        event(CALL),
        event({"kind": "message", "text": 7}),
        event(long),
        event({"kind": "turn_ended", "outcome": "failed", "error": "no"}),
        event({"kind": "notice", "level": "warn", "text": "slow"}),
    )

    assert [(one.type, one.level) for one in stretch.events] == [
        (EventType.TOOL_STARTED, None),
        (EventType.LOG, EventLevel.WARN),
        (EventType.MESSAGE, None),
        (EventType.ERROR, EventLevel.ERROR),
        (EventType.LOG, EventLevel.WARN),
    ]
    assert stretch.events[0].payload == CALL
    assert stretch.events[1].payload["entry"] == "unread_agent_event"
    assert len(str(stretch.events[2].payload["text"])) == 2000
    assert [type(one.news).__name__ for one in stretch.news] == [
        "ToolStartedNews",
        "MessageNews",
        "TurnEndedNews",
        "NoticeNews",
    ]
    assert [one.at_ms - NOON_MS for one in stretch.news] == [1, 3, 4, 5]


async def test_a_journal_that_is_read_again_from_its_start_gives_the_same_rows(tmp_path: Path) -> None:
    async with opened_place(tmp_path) as place:
        execution = await place.begin()
        journal = write(
            tmp_path / "journal.jsonl",
            event({"kind": "session", "session_ref": "s"}),
            *(event(TEXT | {"message_ref": f"m{n}"}) for n in range(3)),
            event(TEXT | {"message_ref": "m2", "continues": True}),
            event(CALL),
            event({"kind": "tool_finished", "tool_ref": "t", "status": "success"}),
            event({"kind": "usage", "key": "k", "model": "m", "provider": "p", "prompt_tokens": 5}),
        )

        async def ingest(offset: int) -> None:
            stretch = read_stretch(journal, execution_id=execution.id, offset=offset, mode=ExecutionMode.ACP)
            assert stretch is not None
            await record(place.queue.database, [stretch, stretch], park_after=0, at=NOON)
            await record(place.queue.database, [stretch], park_after=0, at=NOON)

        def contents() -> list[object]:
            return [
                [{name: value for name, value in row.items() if name != "id"} for row in place.rows(query)]
                for query in (
                    "SELECT * FROM messages ORDER BY id",
                    "SELECT * FROM operations ORDER BY id",
                    "SELECT * FROM llm_interactions ORDER BY id",
                    "SELECT * FROM events ORDER BY id",
                    "SELECT total_tokens, operation_count, session_ref, status FROM sessions",
                    "SELECT tokens_used, journal_offset, last_line, activity FROM executions",
                )
            ]

        await ingest(0)
        first = contents()
        async with place.database.writing() as connection:
            sums = ("session_usage", "daily_usage", "daily_model_usage", "monthly_usage")
            for table in ("messages", "operations", "llm_interactions", *sums, "events"):
                await connection.exec_driver_sql(f"DELETE FROM {table}")
            await connection.exec_driver_sql("UPDATE executions SET journal_offset = 0, tokens_used = 0")
            await connection.exec_driver_sql("UPDATE sessions SET total_tokens = 0, operation_count = 0")
        await ingest(0)

        assert contents() == first
        assert [len(rows) for rows in first] == [3, 1, 1, 8, 1, 1]  # type: ignore[arg-type]


@pytest.mark.parametrize("mode", [ExecutionMode.ACP, ExecutionMode.TEMPLATE])
def test_a_card_says_that_the_disk_is_full_until_something_else_is_told(tmp_path: Path, mode: ExecutionMode) -> None:
    full: dict[str, object] = {"type": "storage_full"}
    has_space: dict[str, object] = {"type": "storage_ok"}

    waits = read(tmp_path, event(TEXT), output("a line"), full, mode=mode).last_line
    goes_on = read(tmp_path, full, has_space, mode=mode).last_line
    again = read(tmp_path, full, has_space, event(TEXT), output("All is well."), mode=mode).last_line
    over = read(tmp_path, output("a line"), event(TEXT), full, ended(), mode=mode).last_line

    assert waits is not None
    assert "disk is full" in waits
    assert goes_on is not None
    assert "space" in goes_on
    assert again == "All is well."
    assert over == "All is well."


def test_a_damaged_line_has_the_time_of_the_entry_before_it_or_else_after_it(tmp_path: Path) -> None:
    journal = write(tmp_path / "journal.jsonl", {"type": "storage_full"}, {"type": "storage_ok"})
    first, second = journal.read_bytes().splitlines(keepends=True)
    journal.write_bytes(b"rubbish\n" + first + b"rubbish\n" + second)
    behind = len(b"rubbish\n" + first)

    whole = read_stretch(journal, execution_id=RUN, offset=0)
    rest = read_stretch(journal, execution_id=RUN, offset=behind)

    assert whole is not None
    assert [one.timestamp_ms - NOON_MS for one in whole.events] == [1, 1, 1, 2]
    assert rest is not None
    assert rest.events == whole.events[2:]


def test_a_journal_that_is_nothing_but_damage_begins_when_its_execution_was_queued(tmp_path: Path) -> None:
    (tmp_path / "journal.jsonl").write_bytes(b"rubbish\n" * 3)
    queued_ms = time.time_ns() // 1_000_000

    stretch = read_stretch(tmp_path / "journal.jsonl", execution_id=ExecutionId(new_id()), offset=0)

    assert stretch is not None
    assert len(stretch.events) == 3
    assert all(one.timestamp_ms >= queued_ms for one in stretch.events)


@pytest.mark.parametrize(("fields", "expected"), [({"signal": 9}, "ended by SIGKILL: oh"), ({}, "exit 137: oh")])
def test_only_a_signal_is_a_signal(tmp_path: Path, fields: dict[str, object], expected: str) -> None:
    ending = read(tmp_path, ended(exit_code=137, **fields), mode=ExecutionMode.TEMPLATE).ending

    assert ending is not None
    assert failure_text(ending.exit_code, ending.output_data.get("signal"), "oh") == expected


@pytest.mark.parametrize("number", [9, 15, None])
def test_a_run_that_was_killed_when_it_was_stopped_says_so(tmp_path: Path, number: int | None) -> None:
    entry = ended(outcome="stopped", exit_code=None, signal=number)
    ending = read(tmp_path, entry, mode=ExecutionMode.TEMPLATE).ending

    assert ending is not None
    assert ending.status is ExecutionStatus.CANCELLED
    assert bool(ending.error) is (number == 9)


@pytest.mark.parametrize(
    ("number", "is_not_started"), [(errno.EAGAIN, True), (errno.ENOMEM, True), (errno.ENOENT, False), (None, False)]
)
def test_a_machine_that_can_start_nothing_is_not_the_fault_of_the_program(
    tmp_path: Path, number: int | None, *, is_not_started: bool
) -> None:
    failed: dict[str, object] = {"type": "start_failed", "error": "it cannot be started", "errno": number}
    journal = write(tmp_path / "journal.jsonl", failed, ended(outcome="start_failed", exit_code=None))

    stretch = read_stretch(journal, execution_id=RUN, offset=0)

    assert stretch is not None
    assert stretch.ending is not None
    assert stretch.ending.is_not_started is is_not_started
