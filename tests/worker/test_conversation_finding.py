"""Which conversation is that of a run in its own screen: the one that fits, or none."""

from __future__ import annotations

import json
import os
import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING, Any

import pytest

from agentmon.domain.execution_mode import ExecutionMode
from agentmon.domain.execution_status import ExecutionStatus
from agentmon.domain.executions import Execution
from agentmon.domain.ids import AgentId, CapabilityId, ExecutionId, TaskId
from agentmon.store.moments import moment_text
from agentmon.store.told_conversation import moment_of
from agentmon.worker.conversation_finding import ScreenRun, choose_conversations, find_begun_anew, find_fitting
from tests.usage.opencode_home import (
    HOUR_MS,
    database_path,
    make_database,
    message_id,
    write_message,
    write_part,
    write_session,
)

if TYPE_CHECKING:
    from pathlib import Path

BEGUN_MS = 1_795_900_000_000
AT = moment_text(moment_of(BEGUN_MS))
FOLDER = "/home/dev/shop"


def a_run(home: Path, name: str = "e1", **fields: object) -> ScreenRun:
    facts: dict[str, object] = {
        "agent_slug": "codex",
        "environ": {"HOME": str(home)},
        "folder": FOLDER,
        "started_ms": BEGUN_MS - 500,
        "prompt": "mend\n\nthe login",
        "pid": os.getpid(),
    }
    return ScreenRun(execution_id=ExecutionId(name), **facts | fields)  # type: ignore[arg-type]


def rollout(home: Path, number: int = 1, *, said: str = "mend the login", **meta: object) -> tuple[str, Path]:
    """Write the beginning of a conversation of Codex; return its id and its file."""
    ref = f"019a0000-0000-7000-8000-{number:012d}"
    path = home / ".codex" / "sessions" / "2026" / "11" / "29" / f"rollout-2026-11-29T05-06-40-{ref}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    about = {"id": ref, "timestamp": AT, "cwd": FOLDER, **meta}
    records = [{"timestamp": AT, "type": "session_meta", "payload": about}]
    for text in ["<environment_context>here", said] if said else []:
        message = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]}
        records.append({"timestamp": AT, "type": "response_item", "payload": message})
        if text == said:
            records.append({"timestamp": AT, "type": "event_msg", "payload": {"type": "user_message", "message": said}})
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return ref, path


def a_rival(**fields: Any) -> Execution:
    """A run in the same folder whose conversation nobody knows."""
    facts: dict[str, Any] = {
        "id": ExecutionId("e2"),
        "task_id": TaskId("t"),
        "agent_id": AgentId("a"),
        "capability_id": CapabilityId("c"),
        "mode": ExecutionMode.TMUX,
        "status": ExecutionStatus.RUNNING,
        "working_dir": FOLDER,
        "created_at": moment_of(BEGUN_MS - 9_000),
        "started_at": moment_of(BEGUN_MS - 9_000),
    }
    return Execution(**facts | fields)


def found(*runs: ScreenRun, known: tuple[str, ...] = (), rivals: tuple[Execution, ...] = ()) -> dict[str, str]:
    chosen = choose_conversations(runs, find_fitting(runs), known=known, rivals=rivals)
    return {str(execution_id): ref for execution_id, ref in chosen.items()}


def test_the_conversation_with_the_prompt_in_the_folder_since_the_start_is_that_of_the_run(tmp_path: Path) -> None:
    ref, _ = rollout(tmp_path)
    rollout(tmp_path, 2, said="another thing")

    assert found(a_run(tmp_path)) == {"e1": ref}


@pytest.mark.parametrize(
    ("meta", "run"),
    [
        ({"cwd": "/elsewhere"}, {}),
        ({"said": "something else"}, {}),
        ({"said": ""}, {}),
        ({"forked_from_id": "019a0000-0000-7000-8000-000000000009"}, {}),
        ({}, {"started_ms": BEGUN_MS + 60_000}),
        ({}, {"agent_slug": "stranger"}),
    ],
)
def test_what_does_not_fit_is_no_conversation_of_the_run(
    tmp_path: Path, meta: dict[str, Any], run: dict[str, Any]
) -> None:
    said = meta.pop("said", "mend the login")
    rollout(tmp_path, said=str(said), **meta)

    assert found(a_run(tmp_path, **run)) == {}


def test_two_that_fit_are_unknown_unless_the_process_holds_one_open(tmp_path: Path) -> None:
    ref, path = rollout(tmp_path)
    rollout(tmp_path, 2)

    assert found(a_run(tmp_path)) == {}
    with path.open():
        assert found(a_run(tmp_path)) == {"e1": ref}


def test_one_that_began_without_words_to_compare_is_unknown_unless_the_process_holds_it_open(tmp_path: Path) -> None:
    ref, path = rollout(tmp_path)

    assert found(a_run(tmp_path, prompt="")) == {}
    with path.open():
        assert found(a_run(tmp_path, prompt="")) == {"e1": ref}


@pytest.mark.parametrize("damage", ["no JSON", "[" * 10_000, b"\x00\xff"])
def test_a_damaged_row_of_opencode_hides_no_other_conversation(tmp_path: Path, damage: str | bytes) -> None:
    path = make_database(database_path(tmp_path), rows=False)
    for number, said in enumerate(["mend the login", "another thing"]):
        write_session(path, f"ses_{number}", at_ms=BEGUN_MS)
        write_message(path, {"role": "user"}, row_id=f"msg_{number}", session=f"ses_{number}")
        part = {"type": "text", "text": said}
        write_part(path, part, message=f"msg_{number}", session=f"ses_{number}", at_ms=BEGUN_MS, number=number)
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE message SET data = ? WHERE id = 'msg_1'", (damage,))

    assert found(a_run(tmp_path, agent_slug="opencode")) == {"e1": "ses_0"}


def test_one_that_fits_two_runs_is_unknown_unless_one_process_alone_holds_it_open(tmp_path: Path) -> None:
    ref, path = rollout(tmp_path)
    runs = a_run(tmp_path, "e1"), a_run(tmp_path, "e2", pid=1 << 30)

    assert found(*runs) == {}
    with path.open():
        assert found(*runs) == {"e1": ref}


@pytest.mark.parametrize(
    ("facts", "is_found"),
    [
        ({}, False),
        ({"prompt": None}, False),
        ({"ended_at": moment_of(BEGUN_MS + 1)}, False),
        ({"ended_at": moment_of(BEGUN_MS - 60_000)}, True),
        ({"started_at": moment_of(BEGUN_MS + 60_000)}, True),
        ({"prompt": "another thing"}, True),
        ({"working_dir": "/elsewhere"}, True),
    ],
)
def test_one_that_may_be_that_of_another_run_without_one_is_unknown_although_that_is_over(
    tmp_path: Path, facts: dict[str, Any], is_found: bool
) -> None:
    ref, _ = rollout(tmp_path)
    rival = a_rival(**{"prompt": "mend the login", **facts})

    assert found(a_run(tmp_path, pid=0), rivals=(rival,)) == ({"e1": ref} if is_found else {})


@pytest.mark.parametrize(("forked_ref", "is_found"), [("ses_0", True), ("ses_9", False), ("", False)])
def test_a_copy_of_a_conversation_of_opencode_is_that_of_the_run_that_makes_it(
    tmp_path: Path, forked_ref: str, is_found: bool
) -> None:
    path = make_database(database_path(tmp_path), rows=False)
    said = {"role": "user", "time": {"created": BEGUN_MS - HOUR_MS}}
    for session, at_ms in (("ses_0", BEGUN_MS - HOUR_MS), ("ses_1", BEGUN_MS)):
        write_session(path, session, at_ms=at_ms)
        write_message(path, said, row_id=message_id(at_ms), session=session, at_ms=at_ms)
        part = {"type": "text", "text": "mend the login"}
        write_part(path, part, message=message_id(at_ms), session=session, at_ms=at_ms)

    run = a_run(tmp_path, agent_slug="opencode", forked_ref=forked_ref)

    assert found(run) == ({"e1": "ses_1"} if is_found else {})


def log_lines(home: Path, *lines: tuple[int, str, str]) -> None:
    """Write lines of opencode's log: when, which process, and what it says."""
    path = database_path(home).parent / "log" / "opencode.log"
    path.parent.mkdir(exist_ok=True)
    path.write_text(
        "".join(
            f"timestamp={moment_of(at_ms).isoformat().replace('+00:00', 'Z')} level=INFO run={run} {said}\n"
            for at_ms, run, said in lines
        )
    )


CREATED = (BEGUN_MS + 5, "aaaa0001", "message=created id=ses_1 slug=s directory=/home/dev/shop parentID=undefined")
AT_WORK = (BEGUN_MS + 1, "aaaa0001", "message=loop session.id=ses_0 step=0")


@pytest.mark.parametrize(
    ("lines", "anew"),
    [
        ([AT_WORK, CREATED], ["ses_1"]),
        ([], []),
        ([AT_WORK, (BEGUN_MS + 5, "bbbb0002", CREATED[2])], []),
        ([AT_WORK, CREATED, (BEGUN_MS + 9, "bbbb0002", AT_WORK[2])], []),
        ([(BEGUN_MS - 60_000, *AT_WORK[1:]), CREATED], []),
        ([AT_WORK, (BEGUN_MS + 5, "aaaa0001", 'message=evaluated pattern="message=created id=ses_1"')], []),
        ([AT_WORK, (BEGUN_MS + 5, "bbbb0002", 'message=error text="run=aaaa0001 message=created id=ses_1"')], []),
        # Read in one go, however it is written.
        ([AT_WORK, (BEGUN_MS + 5, "bbbb0002", "run=aaaa0001 " * 100_000), CREATED], ["ses_1"]),
        ([AT_WORK, (BEGUN_MS + 5, "bbbb0002", 'text="' + "\\" * 1_000_000), CREATED], ["ses_1"]),
    ],
)
def test_a_session_of_opencode_is_begun_anew_where_its_log_says_that_one_process_made_it(
    tmp_path: Path, lines: list[tuple[int, str, str]], anew: list[str]
) -> None:
    path = make_database(database_path(tmp_path), rows=False)
    for number, said in enumerate(["mend the login", "another thing"]):
        ref = f"ses_{number}"
        write_session(path, ref, at_ms=BEGUN_MS + number)
        write_message(path, {"role": "user"}, row_id=f"msg_{number}", session=ref)
        part = {"type": "text", "text": said}
        write_part(path, part, message=f"msg_{number}", session=ref, at_ms=BEGUN_MS, number=number)
    log_lines(tmp_path, *lines)

    assert find_begun_anew(a_run(tmp_path, agent_slug="opencode", session_ref="ses_0")) == anew


def gemini_home(home: Path, chats: dict[str, tuple[int, str]], typed: list[tuple[str, int, str]]) -> None:
    """Write conversations by their ids, as when they began and what was said first, and what processes were told."""
    project = home / ".gemini" / "tmp" / "shop"
    (project / "chats").mkdir(parents=True)
    (project / ".project_root").write_text(FOLDER)
    for ref, (at_ms, said) in chats.items():
        at = moment_text(moment_of(at_ms))
        about = {"sessionId": ref, "startTime": at, "kind": "main"}
        message = {"id": f"m-{ref}", "timestamp": at, "type": "user", "content": [{"text": said}]}
        chat = project / "chats" / f"session-2026-11-30T02-55-{ref[:8]}.jsonl"
        chat.write_text(f"{json.dumps(about)}\n{json.dumps(message)}\n")
    entries = [
        {"sessionId": ref, "type": "user", "message": said, "timestamp": moment_text(moment_of(at_ms))}
        for ref, at_ms, said in typed
    ]
    (project / "logs.json").write_text(json.dumps(entries))


G0, G1, G2, G9 = (f"{number}0000000-0000-4000-8000-000000000000" for number in (1, 2, 3, 9))
GEMINI_CHATS = {
    G0: (BEGUN_MS, "mend the login"),
    G1: (BEGUN_MS + 10_100, "another\nthing"),
    G2: (BEGUN_MS + 30_100, "a third"),
}
GEMINI_TYPED = [
    (G0, BEGUN_MS + 1, "mend the login"),
    (G0, BEGUN_MS + 10_000, "/clear"),
    (G0, BEGUN_MS + 12_000, "/model"),
    (G0, BEGUN_MS + 15_000, "another\nthing"),
    (G0, BEGUN_MS + 30_000, "/new"),
    (G0, BEGUN_MS + 31_000, "a third"),
]


@pytest.mark.parametrize(
    ("has", "typed", "anew"),
    [
        (G0, GEMINI_TYPED, [G1, G2]),
        (G1, GEMINI_TYPED, [G2]),
        (G2, GEMINI_TYPED, [G1]),
        (G9, GEMINI_TYPED, []),
        (G0, [], []),
        (G0, [one for one in GEMINI_TYPED if one[2] not in {"/clear", "/new"}], []),
        # Begun at another time, or with other words.
        (G0, [(G0, at_ms - 5_000, said) for _, at_ms, said in GEMINI_TYPED], []),
        (G0, [(ref, at_ms, said.replace("third", "fourth")) for ref, at_ms, said in GEMINI_TYPED], [G1]),
        # Another process was told the same at the same time.
        (G0, [*GEMINI_TYPED, (G9, BEGUN_MS + 10_000, "/clear"), (G9, BEGUN_MS + 11_000, "another\nthing")], [G2]),
        # A process that began with it is its own.
        (G0, [*GEMINI_TYPED, (G1, BEGUN_MS + 15_000, "another\nthing")], [G2]),
    ],
)
def test_a_conversation_of_gemini_is_begun_anew_where_its_log_says_that_the_process_was_told_to(
    tmp_path: Path, has: str, typed: list[tuple[str, int, str]], anew: list[str]
) -> None:
    gemini_home(tmp_path, GEMINI_CHATS, typed)

    assert find_begun_anew(a_run(tmp_path, agent_slug="gemini", session_ref=has)) == anew


@pytest.mark.parametrize("written", [b"", b"[", b"{}", b'[1, {"sessionId": 1}, {"message": "/clear"}]', b"\xff"])
def test_a_log_of_gemini_that_is_damaged_proves_nothing(tmp_path: Path, written: bytes) -> None:
    gemini_home(tmp_path, GEMINI_CHATS, [])
    (tmp_path / ".gemini" / "tmp" / "shop" / "logs.json").write_bytes(written)

    assert find_begun_anew(a_run(tmp_path, agent_slug="gemini", session_ref=G0)) == []


def test_a_conversation_of_codex_is_begun_anew_where_its_process_holds_the_file_open(tmp_path: Path) -> None:
    ref, _ = rollout(tmp_path)
    later, path = rollout(tmp_path, 2, said="another thing")
    run = a_run(tmp_path, session_ref=ref)

    assert find_begun_anew(run) == []
    with path.open():
        assert find_begun_anew(run) == [later]


def test_one_that_is_another_run_s_is_passed_over(tmp_path: Path) -> None:
    ref, _ = rollout(tmp_path)
    other, _ = rollout(tmp_path, 2)

    assert found(a_run(tmp_path), known=(ref,)) == {"e1": other}


def test_a_session_of_opencode_is_found_in_its_database(tmp_path: Path) -> None:
    path = make_database(database_path(tmp_path), rows=False)
    for number, said in enumerate(["mend the login", "another thing"]):
        write_session(path, f"ses_{number}", at_ms=BEGUN_MS)
        write_message(path, {"role": "user"}, row_id=f"msg_{number}", session=f"ses_{number}")
        part = {"type": "text", "text": said}
        write_part(path, part, message=f"msg_{number}", session=f"ses_{number}", at_ms=BEGUN_MS, number=number)

    assert found(a_run(tmp_path, agent_slug="opencode")) == {"e1": "ses_0"}


def test_a_database_with_other_tables_tells_nothing(tmp_path: Path) -> None:
    write_session(make_database(database_path(tmp_path), rows=False), "ses_0", at_ms=BEGUN_MS)

    assert found(a_run(tmp_path, agent_slug="opencode")) == {}
