from __future__ import annotations

import json
import os
import shutil
import sqlite3
from contextlib import closing
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agentmon.domain.billing import BilledAnswer, Confidence
from agentmon.usage import opencode, opencode_database
from agentmon.usage.sources import SourceKind, find_sources
from agentmon.usage.unread import read_unread
from tests.usage.histories import History, sums
from tests.usage.opencode_home import (
    BEGUN_MS,
    HOUR_MS,
    REAL_SESSIONS,
    database_path,
    make_database,
    message,
    message_id,
    write_message,
    write_session,
)

if TYPE_CHECKING:
    from collections.abc import Mapping


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    return {"HOME": str(tmp_path)}


@pytest.fixture
def database(tmp_path: Path) -> Path:
    return make_database(database_path(tmp_path), rows=False)


def told(history: History) -> list[BilledAnswer]:
    return list(history.answers.values())


def folder_state(folder: Path) -> dict[str, tuple[int, str]]:
    return {
        path.name: (path.stat().st_mtime_ns, sha256(path.read_bytes()).hexdigest())
        for path in folder.iterdir()
        if path.is_file()
    }


def write_file(home: Path, record: Mapping[str, object], *, session: str, name: str) -> None:
    path = home / ".local/share/opencode/storage/message" / session / f"{name}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"id": name, "sessionID": session, **record}, indent=2))


def test_the_answers_of_real_runs_count_once_and_belong_to_the_session_that_was_forked(
    tmp_path: Path, environ: dict[str, str]
) -> None:
    make_database(database_path(tmp_path))

    history = History().look(environ)

    assert history.problems == []
    assert [answer.session_ref for answer in told(history)] == [
        *[REAL_SESSIONS[0]] * 2,
        *[REAL_SESSIONS[1]] * 3,
        REAL_SESSIONS[2],
    ]
    assert sums(told(history)) == {
        "requests": 6,
        "input": 900,
        "output": 120,
        "cache_read": 6_000,
        "cache_write_5m": 0,
        "cache_write_1h": 0,
        "reasoning": 0,
        "web_search": 0,
        "total_tokens": 7_020,
    }
    first = told(history)[0]
    assert (first.provider, first.model, first.cwd) == ("mock", "mock-model", "/home/dev/shop")
    assert (first.at_ms, first.reported_cost_nano, first.offset) == (1_795_865_559_066, 190_000, 2)
    session = history.sessions["opencode", REAL_SESSIONS[2]]
    assert (session.title, session.cwd) == ("Mock title (fork #1)", "/home/dev/shop")
    assert (session.first_at_ms, session.last_at_ms) == (1_795_865_645_463, 1_795_865_647_700)


def test_reasoning_is_part_of_the_response_and_the_cache_is_apart(database: Path, environ: dict[str, str]) -> None:
    write_message(database, message(BEGUN_MS), row_id=message_id(BEGUN_MS))

    (answer,) = told(History().look(environ))

    assert (answer.prompt_tokens, answer.cache_read_tokens, answer.cache_write_5m_tokens) == (10, 300, 40)
    assert (answer.response_tokens, answer.reasoning_tokens) == (25, 5)
    assert (answer.at_ms, answer.reported_cost_nano) == (BEGUN_MS + 1_000, 250_000_000)
    assert answer.key == message_id(BEGUN_MS)


@pytest.mark.parametrize("cost", [0, None, -1, "1", True, float("nan"), 10**9])
def test_a_cost_that_is_none_is_not_known(cost: object) -> None:
    answer = opencode.answer_in(message(BEGUN_MS, cost=cost), key="m", session_ref="s", is_subagent=False, offset=0)

    assert answer is not None
    assert answer.reported_cost_nano is None


def test_only_rows_behind_the_last_one_are_read(database: Path, environ: dict[str, str]) -> None:
    write_message(database, message(BEGUN_MS), row_id=message_id(BEGUN_MS))
    history = History().look(environ)
    (source,) = find_sources(environ)
    assert source.kind is SourceKind.DATABASE
    assert list(read_unread(source, history.cursors[str(database)])) == []

    write_message(database, message(BEGUN_MS + 5), row_id=message_id(BEGUN_MS + 5))
    (source,) = find_sources(environ)
    reads = list(read_unread(source, history.cursors[str(database)]))

    assert [answer.offset for read in reads for answer in read.reading.answers] == [2]
    assert reads[-1].cursor is not None
    assert reads[-1].cursor.mtime_ns == source.mtime_ns


def test_an_answer_is_told_once_it_has_ended(database: Path, environ: dict[str, str]) -> None:
    row_id = message_id(BEGUN_MS)
    write_message(database, message(BEGUN_MS, took_ms=None), row_id=row_id)
    history = History().look(environ)
    assert told(history) == []

    with closing(sqlite3.connect(database)) as connection:
        connection.execute("UPDATE message SET data = ? WHERE id = ?", (json.dumps(message(BEGUN_MS)), row_id))
        connection.commit()

    assert [answer.confidence for answer in told(history.look(environ))] == [Confidence.ASSUMED]


def test_an_answer_whose_end_was_cut_off_counts_once_there_are_much_newer_ones(
    database: Path, environ: dict[str, str]
) -> None:
    write_message(database, message(BEGUN_MS, took_ms=None), row_id=message_id(BEGUN_MS))
    history = History().look(environ)
    later_ms = BEGUN_MS + HOUR_MS + 1

    write_message(database, message(later_ms), row_id=message_id(later_ms))
    history.look(environ)

    assert {answer.at_ms: answer.confidence for answer in told(history)} == {
        BEGUN_MS: Confidence.INCOMPLETE,
        later_ms + 1_000: Confidence.ASSUMED,
    }


@pytest.mark.parametrize("is_original_first", [True, False])
def test_a_copy_in_a_fork_is_the_same_answer_and_belongs_to_the_original(
    database: Path, environ: dict[str, str], is_original_first: bool
) -> None:
    rows = [(message_id(BEGUN_MS), "ses_first"), (message_id(BEGUN_MS + 60_000), "ses_fork")]
    for row_id, session in rows if is_original_first else reversed(rows):
        write_message(database, message(BEGUN_MS), row_id=row_id, session=session)

    (answer,) = told(History().look(environ))

    assert (answer.key, answer.session_ref) == (message_id(BEGUN_MS), "ses_first")


@pytest.mark.parametrize("later_ms", [1_001, 60_000, 86_400_000 * 700])
def test_copies_whose_original_was_deleted_count_once_and_only_when_the_database_is_read_first(
    database: Path, environ: dict[str, str], later_ms: int
) -> None:
    for number in (0, 7):
        write_message(database, message(BEGUN_MS), row_id=message_id(BEGUN_MS + later_ms + number), session="ses_fork")
    history = History().look(environ)
    (answer,) = told(history)
    assert (answer.session_ref, answer.prompt_tokens) == ("ses_fork", 10)

    original_ms = BEGUN_MS + 100_000
    write_message(database, message(original_ms), row_id=message_id(original_ms), session="ses_first")
    history.look(environ)
    write_message(database, message(original_ms), row_id=message_id(original_ms + later_ms + 2_000), session="ses_fork")
    with closing(sqlite3.connect(database)) as connection:
        connection.execute("DELETE FROM message WHERE session_id = 'ses_first'")
        connection.commit()
        connection.execute("VACUUM")
    history.look(environ)

    assert len(told(history)) == 2


def test_copies_whose_original_was_deleted_count_also_where_the_first_reading_was_cut_short(
    database: Path, environ: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(opencode_database, "ROWS_AT_ONCE", 2)
    for number in range(5):
        row_id = message_id(BEGUN_MS + 60_000 + number)
        write_message(database, message(BEGUN_MS + number), row_id=row_id, session="ses_fork")
    (source,) = find_sources(environ)

    pieces = list(read_unread(source, None))
    rest = list(read_unread(source, pieces[1].cursor))

    assert [len(read.reading.answers) for read in pieces[:2]] == [0, 2]
    assert sum(len(read.reading.answers) for read in rest) == 3


def test_answers_of_the_same_moment_are_two(database: Path, environ: dict[str, str]) -> None:
    for number in (1, 2):
        write_message(database, message(BEGUN_MS), row_id=message_id(BEGUN_MS, number))

    assert len(told(History().look(environ))) == 2


def test_what_a_subagent_took_is_paid_by_the_conversation_that_asked_for_it(
    database: Path, environ: dict[str, str]
) -> None:
    write_session(database, "ses_1", at_ms=BEGUN_MS)
    write_session(database, "ses_2", parent="ses_1", at_ms=BEGUN_MS)
    write_session(database, "ses_3", parent="ses_2", at_ms=BEGUN_MS)
    write_message(database, message(BEGUN_MS), row_id=message_id(BEGUN_MS), session="ses_3")

    history = History().look(environ)

    assert [(answer.session_ref, answer.is_subagent) for answer in told(history)] == [("ses_1", True)]
    assert list(history.sessions) == [("opencode", "ses_1")]


def test_a_title_that_comes_later_is_told(database: Path, environ: dict[str, str]) -> None:
    write_session(database, "ses_1", title="New session", at_ms=BEGUN_MS)
    history = History().look(environ)

    write_session(database, "ses_1", title="Cart", at_ms=BEGUN_MS + 1)

    assert history.look(environ).sessions["opencode", "ses_1"].title == "Cart"


def test_the_newer_table_is_read_and_what_stands_in_both_counts_once(database: Path, environ: dict[str, str]) -> None:
    record = message(BEGUN_MS)
    newer = {name: value for name, value in record.items() if name not in {"role", "providerID", "modelID"}}
    newer["model"] = {"providerID": "anthropic", "id": "claude-sonnet-4-5"}
    write_message(database, record, row_id=message_id(BEGUN_MS))
    with closing(sqlite3.connect(database)) as connection:
        for number, kind in enumerate(("assistant", "user", "assistant")):
            at_ms = BEGUN_MS + number * 7
            data = json.dumps(newer | {"time": {"created": at_ms, "completed": at_ms + 1_000}})
            connection.execute(
                "INSERT INTO session_message VALUES (?, 'ses_1', ?, ?, 0, 0, ?)",
                (message_id(at_ms), kind, number, data),
            )
        connection.commit()

    answers = told(History().look(environ))

    assert [answer.at_ms - BEGUN_MS for answer in answers] == [1_000, 1_014]
    assert {(answer.provider, answer.model) for answer in answers} == {("anthropic", "claude-sonnet-4-5")}


def test_a_live_database_is_read_while_it_is_written_and_no_byte_beside_it_changes(
    database: Path, environ: dict[str, str]
) -> None:
    history = History()
    with closing(sqlite3.connect(database, isolation_level=None)) as agent:
        agent.execute("PRAGMA wal_autocheckpoint = 0")
        agent.execute(
            "INSERT INTO message VALUES (?, 'ses_1', 0, 0, ?)", (message_id(BEGUN_MS), json.dumps(message(BEGUN_MS)))
        )
        agent.execute("BEGIN IMMEDIATE")
        agent.execute(
            "INSERT INTO message VALUES (?, 'ses_1', 0, 0, ?)",
            (message_id(BEGUN_MS + 9), json.dumps(message(BEGUN_MS + 9))),
        )
        before = folder_state(database.parent)

        assert [answer.at_ms for answer in told(history.look(environ))] == [BEGUN_MS + 1_000]
        assert folder_state(database.parent) == before
        assert {name.removeprefix("opencode.db") for name in before} == {"", "-wal", "-shm"}

        agent.execute("COMMIT")
        assert [answer.at_ms for answer in told(history.look(environ))] == [BEGUN_MS + 1_000, BEGUN_MS + 1_009]
        assert agent.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0] == 0
    assert history.problems == []
    assert len(told(history.look(environ))) == 2


def test_a_log_that_a_killed_agent_left_is_read_as_it_is(tmp_path: Path, environ: dict[str, str]) -> None:
    other = make_database(tmp_path / "opencode.db", rows=False)
    database = database_path(tmp_path)
    with closing(sqlite3.connect(other, isolation_level=None)) as agent:
        agent.execute(
            "INSERT INTO message VALUES (?, 'ses_1', 0, 0, ?)", (message_id(BEGUN_MS), json.dumps(message(BEGUN_MS)))
        )
        for end in ("", "-wal", "-shm"):
            (database.parent / f"opencode.db{end}").write_bytes((tmp_path / f"opencode.db{end}").read_bytes())
    before = folder_state(database.parent)

    history = History().look(environ)

    assert len(told(history)) == 1
    assert folder_state(database.parent) == before

    (database.parent / "opencode.db-shm").unlink()
    assert History().look(environ).problems == ["its log cannot be read before opencode has run again"]
    assert sorted(path.name for path in database.parent.iterdir()) == ["opencode.db", "opencode.db-wal"]


def test_a_database_without_a_log_gets_no_companions(database: Path, environ: dict[str, str]) -> None:
    write_message(database, message(BEGUN_MS), row_id=message_id(BEGUN_MS))
    before = folder_state(database.parent)

    assert len(told(History().look(environ))) == 1
    assert folder_state(database.parent) == before
    assert list(before) == ["opencode.db"]


def test_after_the_newest_session_was_deleted_new_rows_are_not_missed(database: Path, environ: dict[str, str]) -> None:
    for at_ms in (BEGUN_MS, BEGUN_MS + 10):
        write_message(database, message(at_ms), row_id=message_id(at_ms))
    history = History().look(environ)

    with closing(sqlite3.connect(database)) as connection:
        connection.execute("DELETE FROM message WHERE id = ?", (message_id(BEGUN_MS + 10),))
        connection.commit()
    write_message(database, message(BEGUN_MS + 20), row_id=message_id(BEGUN_MS + 20))
    history.look(environ)

    assert [answer.at_ms - BEGUN_MS for answer in told(history)] == [1_000, 1_010, 1_020]


def test_a_database_that_was_replaced_or_packed_is_read_again_and_nothing_is_doubled(
    database: Path, environ: dict[str, str]
) -> None:
    for number in range(5):
        write_message(database, message(BEGUN_MS + number), row_id=message_id(BEGUN_MS + number))
    history = History().look(environ)

    with closing(sqlite3.connect(database)) as connection:
        connection.execute("DELETE FROM message WHERE rowid < 4")
        connection.commit()
        connection.execute("VACUUM")
    assert len(told(history.look(environ))) == 5
    database.unlink()
    make_database(database)

    assert len(told(history.look(environ))) == 11


def test_many_rows_are_told_in_pieces_and_each_goes_on_where_the_one_before_ended(
    database: Path, environ: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(opencode_database, "ROWS_AT_ONCE", 3)
    for number in range(10):
        took_ms = None if number == 1 else 1_000
        write_message(database, message(BEGUN_MS + number, took_ms=took_ms), row_id=message_id(BEGUN_MS + number))
    (source,) = find_sources(environ)
    cursor, answers = None, 0

    for kept in (1, 2, 3, 10):
        for read in list(read_unread(source, cursor))[:kept]:
            answers, cursor = answers + len(read.reading.answers), read.cursor

    assert answers == 9
    assert cursor is not None
    assert (cursor.mtime_ns, cursor.offset) == (source.mtime_ns, source.size)


@pytest.mark.parametrize(
    "damaged",
    [
        b"",
        7,
        "{",
        '{"tokens":' * 5_000,
        b'\xff\xfe{"tokens":1}',
        '["tokens"]',
        {"role": "assistant", "tokens": [1], "time": 7},
        {"role": "assistant", "tokens": {"input": -5, "output": "9", "cache": []}, "time": {"completed": 1}},
        {"role": "user", "tokens": {"input": 7}, "time": {"created": 1, "completed": 2}},
        {"role": "assistant", "tokens": {"input": 0}, "time": {"created": BEGUN_MS, "completed": BEGUN_MS}},
    ],
)
def test_a_damaged_row_is_passed_over(database: Path, environ: dict[str, str], damaged: object) -> None:
    write_message(database, damaged, row_id="msg_1")
    write_message(database, message(BEGUN_MS), row_id=message_id(BEGUN_MS))

    history = History().look(environ)

    assert [answer.at_ms for answer in told(history)] == [BEGUN_MS + 1_000]
    assert set(history.problems) <= {"a damaged message"}


def test_a_row_that_is_too_long_is_counted_and_passed_over(
    database: Path, environ: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(opencode_database, "MAX_MESSAGE_CHARACTERS", 1_000)
    write_message(database, message(BEGUN_MS, text="x" * 1_000), row_id="msg_1")
    write_message(database, message(BEGUN_MS + 1), row_id=message_id(BEGUN_MS + 1))

    history = History().look(environ)

    assert len(told(history)) == 1
    assert history.problems == ["a message that is too long"]


@pytest.mark.parametrize(
    "written", [b"", b"no database at all", b"SQLite format 3\0" + b"\xff" * 4_096, "empty", "half", "other tables"]
)
def test_a_file_that_is_no_such_database_is_at_most_a_problem(
    tmp_path: Path, environ: dict[str, str], written: bytes | str
) -> None:
    database = database_path(tmp_path)
    if isinstance(written, bytes):
        database.write_bytes(written)
    elif written == "half":
        make_database(database)
        os.truncate(database, 8_192)
    else:
        with closing(sqlite3.connect(database)) as connection:
            if written == "other tables":
                connection.executescript("CREATE TABLE message (a); CREATE TABLE session (id, b)")

    history = History().look(environ)

    assert told(history) == []
    assert all(problem.startswith("its database cannot be read") for problem in history.problems)


def test_files_of_older_releases_are_read_and_what_the_database_took_over_counts_once(
    tmp_path: Path, database: Path, environ: dict[str, str]
) -> None:
    for number in range(3):
        record = message(BEGUN_MS + number)
        write_file(tmp_path, record, session="ses_1", name=message_id(BEGUN_MS + number))
        if number:
            write_message(database, record, row_id=message_id(BEGUN_MS + number))
    write_file(tmp_path, {"role": "user", "time": {"created": BEGUN_MS}}, session="ses_1", name="msg_user")
    write_file(tmp_path, message(BEGUN_MS + 9, took_ms=None), session="ses_1", name="msg_unended")
    write_file(tmp_path, message(BEGUN_MS + 50), session="ses_2", name=message_id(BEGUN_MS + 50))
    facts = {"ses_1": {"title": "Cart", "directory": "/p"}, "ses_2": {"parentID": "ses_1"}}
    for name, told_facts in facts.items():
        path = tmp_path / ".local/share/opencode/storage/session/global" / f"{name}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps({"id": name, "time": {"created": BEGUN_MS, "updated": BEGUN_MS + 9}, **told_facts}))

    history = History().look(environ)

    assert sorted((answer.at_ms - BEGUN_MS - 1_000, answer.is_subagent) for answer in told(history)) == [
        (0, False),
        (1, False),
        (2, False),
        (50, True),
    ]
    assert {answer.session_ref for answer in told(history)} == {"ses_1"}
    assert history.sessions["opencode", "ses_1"].title == "Cart"
    pieces = history.pieces
    assert history.look(environ).pieces == pieces


def test_the_files_that_an_older_release_wrote_are_read(tmp_path: Path, environ: dict[str, str]) -> None:
    shutil.copytree(Path(__file__).parent / "opencode" / "1.1.65", tmp_path / ".local/share/opencode")

    history = History().look(environ)

    assert [answer.key for answer in told(history)] == [
        "msg_222126f6900164x1JbetUA6RcD",
        "msg_22212754c001f6yTNkTAyXnJKA",
    ]
    assert [(answer.total_tokens, answer.reported_cost_nano) for answer in told(history)] == [(1_170, 190_000)] * 2
    (session,) = history.sessions.values()
    assert (session.title, session.cwd) == ("Mock title", "/home/dev/shop")
    assert history.problems == []


def test_a_damaged_file_is_counted_and_the_folder_is_read_again_when_one_changes(
    tmp_path: Path, environ: dict[str, str]
) -> None:
    write_file(tmp_path, message(BEGUN_MS), session="ses_1", name=message_id(BEGUN_MS))
    folder = tmp_path / ".local/share/opencode/storage/message/ses_1"
    (folder / "msg_damaged.json").write_bytes(b'{"role":')
    history = History().look(environ)
    assert history.problems == ["the damaged message msg_damaged.json"]

    write_file(tmp_path, message(BEGUN_MS + 1), session="ses_1", name="msg_damaged")

    assert len(told(history.look(environ))) == 2


def test_the_folder_that_a_variable_names_is_the_only_one(tmp_path: Path) -> None:
    make_database(database_path(tmp_path))
    (tmp_path / "data" / "opencode").mkdir(parents=True)
    make_database(tmp_path / "data" / "opencode" / "opencode-dev.db")
    (tmp_path / "data" / "opencode" / "other.db").write_bytes(b"x")

    found = find_sources({"HOME": str(tmp_path), "XDG_DATA_HOME": str(tmp_path / "data")})

    assert [Path(source.path).name for source in found] == ["opencode-dev.db"]


_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["created", "completed", "input", "cache", "read", "id"]), inner, max_size=3)
    ),
    max_leaves=10,
)


@pytest.mark.proof
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=40)
@given(
    records=st.lists(
        st.binary(max_size=30)
        | st.dictionaries(
            st.sampled_from(["role", "time", "tokens", "model", "modelID", "cost", "path"]), _VALUES, max_size=5
        ),
        max_size=4,
    )
)
def test_no_rows_make_the_reader_fail(tmp_path: Path, environ: dict[str, str], records: list[object]) -> None:
    path = database_path(tmp_path)
    path.unlink(missing_ok=True)
    make_database(path, rows=False)
    for number, record in enumerate(records):
        write_message(path, record, row_id=f"msg_{number}")

    history = History().look(environ)

    assert all(answer.total_tokens > 0 and answer.key for answer in told(history))
    assert not any("cannot be read" in problem for problem in history.problems)


@pytest.mark.parametrize("named", ["elsewhere/agents.sqlite", "mine.db"])
def test_a_database_that_is_named_is_read_beside_the_others_and_its_neighbours_are_not(
    tmp_path: Path, named: str
) -> None:
    usual = make_database(database_path(tmp_path))
    elsewhere = tmp_path / named if "/" in named else usual.parent / named
    elsewhere.parent.mkdir(exist_ok=True)
    make_database(elsewhere)
    if elsewhere.parent != usual.parent:
        make_database(elsewhere.parent / "opencode.db")

    found = find_sources({"HOME": str(tmp_path), "OPENCODE_DB": str(elsewhere) if "/" in named else named})
    without = find_sources({"HOME": str(tmp_path), "OPENCODE_DB": ":memory:"})

    assert {source.path for source in found} == {str(usual), str(elsewhere)}
    assert [source.path for source in without] == [str(usual)]
