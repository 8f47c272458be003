"""What opencode's database tells of conversations; shapes of rows are those of 1.18.33."""

from __future__ import annotations

import json
import random
import sqlite3
import subprocess
import sys
from contextlib import closing
from hashlib import sha256
from typing import TYPE_CHECKING, Any

import pytest

from agentmon.domain.history import MAX_PLACE, HistoryOperation
from agentmon.usage.history.openings import read_history
from agentmon.usage.history.reading import HistoryReading
from agentmon.usage.sources import find_sources_of
from tests.usage.history.conversations_read import in_order, parts_of, read_home, told
from tests.usage.history.test_damaged_histories import changed
from tests.usage.opencode_home import (
    BEGUN_MS,
    HOUR_MS,
    database_path,
    make_database,
    message,
    message_id,
    write_message,
    write_part,
    write_session,
)

if TYPE_CHECKING:
    from pathlib import Path

    from agentmon.usage.following import Cursor

AGENT = """
import sqlite3, sys
connection = sqlite3.connect(sys.argv[1], isolation_level=None)
connection.execute("UPDATE part SET data = json_set(data, '$.text', 'mend that')")
print("written", flush=True)
sys.stdin.readline()
"""
DENIED = "The user rejected permission to use this specific tool call."


@pytest.fixture
def database(tmp_path: Path) -> Path:
    path = make_database(database_path(tmp_path), rows=False)
    write_session(path, "ses_1", at_ms=BEGUN_MS)
    return path


def say(path: Path, text: str, *, at_ms: int, session: str = "ses_1", **more: object) -> None:
    """Let the person say something."""
    ref = message_id(at_ms)
    write_message(path, {"role": "user", "time": {"created": at_ms}}, row_id=ref, session=session, at_ms=at_ms)
    write_part(path, {"type": "text", "text": text, **more}, message=ref, session=session, at_ms=at_ms, number=2)


def begin_answer(path: Path, *, at_ms: int, session: str = "ses_1", took_ms: int | None = None, **more: object) -> str:
    ref = message_id(at_ms)
    write_message(path, message(at_ms, took_ms=took_ms) | more, row_id=ref, session=session, at_ms=at_ms)
    return ref


def text(words: str, at_ms: int, *, kind: str = "text", is_over: bool = True) -> dict[str, object]:
    return {"type": kind, "text": words, "time": {"start": at_ms} | ({"end": at_ms + 10} if is_over else {})}


def call(status: str, *, tool: str = "bash", at_ms: int = BEGUN_MS, **state: object) -> dict[str, object]:
    times = {"start": at_ms} | ({"end": at_ms + 500} if status in {"completed", "error"} else {})
    facts = {"status": status, "input": {"command": "make", "description": "Build"}, "time": times, **state}
    return {"type": "tool", "tool": tool, "callID": "call_1", "state": facts}


class Looks:
    """Reads on with each look."""

    def __init__(self, home: Path) -> None:
        self._environ = {"HOME": str(home)}
        self._cursor: Cursor | None = None
        self.problems: list[str] = []

    def look(self) -> list[tuple[str, str]]:
        parts = []
        for source in find_sources_of("opencode", self._environ):
            for read in read_history(source, self._cursor):
                self.problems += [one.reason for one in read.reading.problems]
                assert isinstance(read.reading, HistoryReading)
                parts += parts_of(read.reading)
                self._cursor = read.cursor
                assert read.cursor is None or json.loads(json.dumps(read.cursor.state)) == read.cursor.state
        return told(in_order({part.ref: part for part in parts}.values()))


def test_what_is_said_and_done_is_told_once_it_is_there_and_again_when_it_is_whole(
    tmp_path: Path, database: Path
) -> None:
    looks = Looks(tmp_path)
    say(database, "mend it", at_ms=BEGUN_MS)
    ref = begin_answer(database, at_ms=BEGUN_MS + 10)
    write_part(database, text("Hm.", BEGUN_MS + 20, kind="reasoning"), message=ref, at_ms=BEGUN_MS + 20)
    write_part(database, text("", BEGUN_MS + 30, is_over=False), message=ref, at_ms=BEGUN_MS + 30)
    write_part(database, call("running", at_ms=BEGUN_MS + 40), message=ref, at_ms=BEGUN_MS + 40)
    assert looks.look() == [("user", "mend it"), ("thought", "Hm."), ("bash", "execute make: cancelled")]

    write_part(database, text("On it.", BEGUN_MS + 30), message=ref, at_ms=BEGUN_MS + 30)
    write_part(database, call("completed", at_ms=BEGUN_MS + 40, output="ok"), message=ref, at_ms=BEGUN_MS + 40)
    assert looks.look() == [("assistant", "On it."), ("bash", "execute make: success")]
    assert looks.look() == []
    assert looks.problems == []


@pytest.mark.parametrize(
    ("tool", "status", "more", "words"),
    [
        ("bash", "pending", {"input": {}}, "execute : cancelled"),
        ("bash", "error", {"error": DENIED}, "execute make: blocked"),
        ("bash", "error", {"error": "Tool execution aborted"}, "execute make: cancelled"),
        ("webfetch", "error", {"error": "no such host", "input": {"url": "http://a"}}, "query http://a: failed"),
        ("read", "completed", {"input": {"filePath": "/p/a.py"}}, "read /p/a.py: success"),
        ("write", "completed", {"input": {"filePath": "b.py", "content": "x"}}, "write b.py: success"),
        ("own_tool", "completed", {"input": {}, "title": "a\nb"}, "execute a b: success"),
    ],
)
def test_a_call_has_what_it_did_to_what_and_how_it_ended(
    tmp_path: Path, database: Path, tool: str, status: str, more: dict[str, Any], words: str
) -> None:
    ref = begin_answer(database, at_ms=BEGUN_MS)
    write_part(database, call(status, tool=tool, **more), message=ref, at_ms=BEGUN_MS)

    (part,) = read_home({"HOME": str(tmp_path)})["ses_1"]

    assert told([part]) == [(tool, words)]
    assert isinstance(part, HistoryOperation)
    assert part.answer_key == ref
    assert part.duration_ms == (500 if status in {"completed", "error"} else None)
    assert part.error == (more.get("error"))


def test_what_the_program_says_itself_is_of_the_system(tmp_path: Path, database: Path) -> None:
    say(database, "The following tool was executed by the user", at_ms=BEGUN_MS, synthetic=True)
    ref = begin_answer(database, at_ms=BEGUN_MS + 10, took_ms=5, summary=True)
    write_part(database, text("We did much.", BEGUN_MS + 11), message=ref, at_ms=BEGUN_MS + 11)
    error = {"name": "APIError", "data": {"message": "mock bad request"}}
    begin_answer(database, at_ms=BEGUN_MS + 20, took_ms=5, error=error)

    assert told(read_home({"HOME": str(tmp_path)})["ses_1"]) == [
        ("system", "The following tool was executed by the user"),
        ("system", "We did much."),
        ("system", "mock bad request"),
    ]


def test_what_a_subagent_says_belongs_to_the_conversation_for_which_it_works(tmp_path: Path, database: Path) -> None:
    write_session(database, "ses_2", parent="ses_1", at_ms=BEGUN_MS)
    say(database, "look into it", at_ms=BEGUN_MS, session="ses_2")

    ((ref, parts),) = read_home({"HOME": str(tmp_path)}).items()

    assert (ref, [part.parent_ref for part in parts]) == ("ses_1", ["ses_2"])


def fork(path: Path, *, at_ms: int, session: str) -> None:
    """Copy all messages and parts under new ids, as opencode does."""
    with closing(sqlite3.connect(path)) as connection, connection:
        for number, (old, data) in enumerate(connection.execute("SELECT id, data FROM message").fetchall()):
            ref = message_id(at_ms, 10 * number)
            connection.execute("INSERT INTO message VALUES (?, ?, ?, ?, ?)", (ref, session, at_ms, at_ms, data))
            parts = connection.execute("SELECT data FROM part WHERE message_id = ? ORDER BY id", (old,)).fetchall()
            for place, (part,) in enumerate(parts):
                row = (f"prt_{ref[4:]}{place}", ref, session, at_ms, at_ms, part)
                connection.execute("INSERT INTO part VALUES (?, ?, ?, ?, ?, ?)", row)


@pytest.mark.parametrize("is_deleted", [False, True])
def test_what_a_fork_copied_is_told_by_its_original_or_once_when_that_is_gone(
    tmp_path: Path, database: Path, is_deleted: bool
) -> None:
    say(database, "mend it", at_ms=BEGUN_MS)
    ref = begin_answer(database, at_ms=BEGUN_MS + 10, took_ms=100)
    write_part(database, text("On it.", BEGUN_MS + 20), message=ref, at_ms=BEGUN_MS + 20)
    write_session(database, "ses_2", at_ms=BEGUN_MS + HOUR_MS)
    fork(database, at_ms=BEGUN_MS + HOUR_MS, session="ses_2")
    say(database, "go on", at_ms=BEGUN_MS + HOUR_MS + 1_000, session="ses_2")
    if is_deleted:
        with closing(sqlite3.connect(database)) as connection, connection:
            connection.execute("DELETE FROM message WHERE session_id = 'ses_1'")
            connection.execute("DELETE FROM part WHERE session_id = 'ses_1'")

    conversations = {session: told(parts) for session, parts in read_home({"HOME": str(tmp_path)}).items()}

    first = [("user", "mend it"), ("assistant", "On it.")]
    assert conversations == (
        {"ses_2": [*first, ("user", "go on")]} if is_deleted else {"ses_1": first, "ses_2": [("user", "go on")]}
    )


def test_a_call_of_an_agent_that_was_killed_is_given_up_when_there_is_much_newer(
    tmp_path: Path, database: Path
) -> None:
    looks = Looks(tmp_path)
    ref = begin_answer(database, at_ms=BEGUN_MS)
    write_part(database, call("running"), message=ref, at_ms=BEGUN_MS)
    assert looks.look() == [("bash", "execute make: cancelled")]
    assert looks.look() == [("bash", "execute make: cancelled")]

    say(database, "again", at_ms=BEGUN_MS + 2 * HOUR_MS)
    assert looks.look() == [("bash", "execute make: cancelled"), ("user", "again")]
    assert looks.look() == []


def test_a_read_changes_no_byte_and_leaves_nothing_beside_the_database(tmp_path: Path, database: Path) -> None:
    say(database, "mend it", at_ms=BEGUN_MS)

    def state() -> dict[str, tuple[int, str]]:
        return {
            path.name: (path.stat().st_mtime_ns, sha256(path.read_bytes()).hexdigest())
            for path in database.parent.iterdir()
        }

    before = state()
    assert Looks(tmp_path).look() == [("user", "mend it")]
    assert state() == before

    # Connections of one process share the index of the log.
    argv = [sys.executable, "-c", AGENT, str(database)]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as agent:
        assert agent.stdout is not None
        assert agent.stdout.readline() == "written\n"
        before = state()
        assert {name.removeprefix("opencode.db") for name in before} == {"", "-wal", "-shm"}
        assert Looks(tmp_path).look() == [("user", "mend that")]
        assert state() == before
        agent.communicate("end\n", timeout=60)


@pytest.mark.parametrize(("row_id", "count"), [("prt_" + "c" * 5_000, 1), ("prt_\0", 2)])
def test_a_row_with_an_odd_id_is_read_at_most_once(tmp_path: Path, database: Path, row_id: str, count: int) -> None:
    say(database, "hello", at_ms=BEGUN_MS)
    with closing(sqlite3.connect(database)) as connection, connection:
        connection.execute(
            "INSERT INTO part (id, message_id, session_id, time_created, time_updated, data) "
            "SELECT ?, message_id, session_id, time_created, time_updated, data FROM part",
            (row_id,),
        )
    looks = Looks(tmp_path)

    assert [looks.look(), looks.look()] == [[("user", "hello")] * count, []]


@pytest.mark.parametrize("seed", range(12))
def test_damaged_rows_are_read_as_far_as_they_go(tmp_path: Path, database: Path, seed: int) -> None:
    dice = random.Random(seed)
    parts = [text("a", BEGUN_MS), text("b", BEGUN_MS, kind="reasoning"), call("completed", output="c"), call("running")]
    for number in range(40):
        at_ms = BEGUN_MS + 10 * number
        record: Any = changed(dice, message(at_ms, error={"name": "E", "data": {"message": "m"}}))
        write_message(database, record, row_id=message_id(at_ms), at_ms=at_ms)
        part = json.dumps(changed(dice, dice.choice(parts)))
        written = part[: dice.randint(0, len(part))] if dice.random() < 0.1 else part
        write_part(database, written, message=message_id(at_ms), at_ms=at_ms)

    for told_part in read_home({"HOME": str(tmp_path)}).get("ses_1", []):
        assert 0 <= told_part.place <= MAX_PLACE
        assert told_part.begin_ms >= 0
        told_part.ref.encode()


def test_a_call_that_went_well_has_how_it_changed_a_file(tmp_path: Path, database: Path) -> None:
    ref = begin_answer(database, at_ms=BEGUN_MS)
    diff = "Index: /p/a\n====\n--- /p/a\n+++ /p/a\n@@ -1,1 +1,1 @@\n-x\n+y\n"
    calls = [
        call("completed", tool="edit", input={"filePath": "a"}, metadata={"diff": diff, "filediff": {"file": "/p/a"}}),
        call("completed", tool="write", input={"filePath": "b", "content": "x\n"}, metadata={"exists": False}),
        call("error", tool="edit", input={"filePath": "a"}, metadata={"diff": diff}, error="no"),
    ]
    for number, part in enumerate(calls):
        write_part(database, part, message=ref, at_ms=BEGUN_MS + number)

    found = read_home({"HOME": str(tmp_path)})["ses_1"]
    assert [one.differences for one in found if isinstance(one, HistoryOperation)] == [
        (("/p/a", "@@ -1,1 +1,1 @@\n-x\n+y\n"),),
        (("b", "@@ -0,0 +1,1 @@\n+x\n"),),
        (),
    ]
