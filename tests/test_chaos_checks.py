"""The checks of chaos can fail: each promise broken in a small home of plain files, and the violation seen."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from agentmon.runners.protocols.registry import make_adapter
from benchmarks.chaos import hostile, program
from benchmarks.chaos.actions import Actions, Window
from benchmarks.chaos.checks import check
from benchmarks.chaos.evidence import Place, gather
from benchmarks.chaos.ledger import read_ledgers
from benchmarks.chaos.merging import commit_as_person, make_trunk
from benchmarks.chaos.processes import gits_of
from benchmarks.chaos.repository import MADE, SETUP, make_repository
from benchmarks.chaos.sampling import ProcessScan
from benchmarks.chaos.shifted_worker import Shift, set_clock
from benchmarks.chaos.stop_times import Watcher, percentiles_text, read_stop_times
from tests.waiting import wait_for

if TYPE_CHECKING:
    from collections.abc import Iterator

SECRET = "SENTINEL-0123"
OUTPUT = b"m 0 first\nm 1 tick\n"
_TABLES = """
CREATE TABLE agents (id TEXT, slug TEXT);
CREATE TABLE tasks (id TEXT, number INTEGER, status TEXT DEFAULT 'done', input_context TEXT DEFAULT '{}');
CREATE TABLE task_dependencies (task_id TEXT, depends_on_task_id TEXT);
CREATE TABLE executions (id TEXT, task_id TEXT, agent_id TEXT, status TEXT, exit_code INTEGER, error TEXT,
    retry_count INTEGER, max_retries INTEGER, log_byte_size INTEGER, session_id TEXT, activity TEXT,
    is_held INTEGER DEFAULT 0, tokens_used INTEGER, ending TEXT, worktree_id TEXT, prompt TEXT);
CREATE TABLE worktrees (id TEXT, path TEXT, branch TEXT, status TEXT, source TEXT, merged_commit TEXT,
    reverted_by TEXT);
CREATE TABLE verifications (execution_id TEXT, status TEXT);
CREATE TABLE review_comments (text TEXT, sent_at TEXT);
CREATE TABLE execution_commands (id TEXT, execution_id TEXT, attempt INTEGER DEFAULT 0, actor_type TEXT, cause TEXT,
    payload TEXT DEFAULT '{}', type TEXT,
    delivered_at TEXT, created_at TEXT DEFAULT (strftime('%Y-%m-%dT%H:%M:%fZ', 'now')));
CREATE TABLE sessions (id TEXT, status TEXT, ended_at TEXT, total_tokens INTEGER, operation_count INTEGER);
CREATE TABLE messages (execution_id TEXT, message_ref TEXT, content TEXT);
CREATE TABLE operations (id TEXT, session_id TEXT, execution_id TEXT, operation_ref TEXT, status TEXT);
CREATE TABLE approvals (id TEXT, execution_id TEXT, request_ref TEXT, ask_kind TEXT, status TEXT, closed_at TEXT,
    rule_id TEXT);
CREATE TABLE llm_interactions (execution_id TEXT, session_id TEXT, key TEXT, prompt_tokens INTEGER,
    cache_read_tokens INTEGER, cache_write_5m_tokens INTEGER, cache_write_1h_tokens INTEGER, response_tokens INTEGER);
CREATE TABLE events (id INTEGER PRIMARY KEY, execution_id TEXT, payload TEXT, timestamp_ms INTEGER);
CREATE TABLE task_events (id INTEGER PRIMARY KEY, event_type TEXT, payload TEXT, task_id TEXT);
INSERT INTO agents VALUES ('wide', 'wide'), ('narrow', 'narrow'), ('demo-agent', 'demo-agent');
"""
_ENTRIES = ("host_started", "agent_started", "exited", "ended")


class Scene:
    """A home with runs that went as they should, each of which a test can change."""

    def __init__(self, folder: Path) -> None:
        self.place = Place(home=folder / "home", ledgers=folder / "ledgers", samples=folder / "samples.jsonl")
        for made in (folder, self.place.home, self.place.ledgers, self.place.executions_dir):
            made.mkdir(mode=0o700)
        make_repository(self.place)
        make_trunk(self.place)
        self.actions = Actions()
        self.remaining: dict[str, frozenset[int]] = {}
        self._samples: list[dict[str, object]] = []
        with closing(sqlite3.connect(self.place.database)) as connection:
            connection.executescript(_TABLES)
        self.place.database.chmod(0o600)

    def sql(self, statement: str, *values: object) -> None:
        with closing(sqlite3.connect(self.place.database)) as connection, connection:
            connection.execute(statement, values)

    def add_run(
        self,
        name: str,
        number: int,
        *,
        status: str = "succeeded",
        code: int | None = 0,
        row_code: int | None = 0,
        agent: str = "wide",
    ) -> None:
        """Add a run of the task of this number: from second ``10 * number`` on, for a second, by pid ``number``."""
        self.sql("INSERT INTO tasks (id, number) VALUES (?, ?)", f"task-{name}", number)
        self.sql(
            "INSERT INTO executions (id, task_id, agent_id, status, exit_code, retry_count, max_retries, "
            "log_byte_size) VALUES (?, ?, ?, ?, ?, 0, 0, ?)",
            *(name, f"task-{name}", agent, status, row_code, len(OUTPUT)),
        )
        for step in ("queued", "started", "ended"):
            self.add_audit(name, step, retry_count=0 if step == "started" else None)
        self.folder(name).mkdir(mode=0o700)
        self.write_output(name, OUTPUT)
        self.write_journal(name, number)
        for at_ms, entry in enumerate(_ENTRIES):
            self.add_event(name, entry, at_ms)
        self.write_ledger(name, number, code=code)
        self.see(10.0 * number + 0.5, marked={name: number})
        self.see_over(10.0 * number + 2, name, status)

    def folder(self, name: str) -> Path:
        return self.place.executions_dir / name

    def write_output(self, name: str, output: bytes) -> None:
        path = self.folder(name) / "output.log"
        path.write_bytes(output)
        path.chmod(0o600)

    def write_journal(self, name: str, number: int, *, numbers: tuple[int, ...] = (1, 2, 3, 4)) -> None:
        more: dict[str, dict[str, object]] = {
            "host_started": {"pid": 1000 + number},
            "ended": {"output_bytes": len(OUTPUT), "left_out_bytes": 0},
        }
        lines = [
            json.dumps({"n": n, "at_ms": at_ms, "type": entry} | more.get(entry, {}))
            for at_ms, (n, entry) in enumerate(zip(numbers, _ENTRIES, strict=True))
        ]
        path = self.folder(name) / "journal.jsonl"
        path.write_text("\n".join(lines) + "\n")
        path.chmod(0o600)

    def write_ledger(
        self,
        name: str,
        pid: int,
        *,
        code: int | None = 0,
        host: int | None = None,
        began: float | None = None,
        written: bytes = OUTPUT,
        announced: bytes = OUTPUT,
    ) -> None:
        at = 10.0 * pid if began is None else began
        start = {
            "type": "start",
            "at": at,
            "execution": name,
            "writer": "m",
            "pid": pid,
            "born": str(int(at * 100)),
            "parent": 1000 + pid if host is None else host,
            "main": pid,
            "kind": "short",
            "secret": hashlib.sha256(SECRET.encode()).hexdigest(),
        }
        entries = [start, _mark("wrote", at, written), _mark("will", at, announced)]
        if code is not None:
            entries.append(_mark("end", at + 1, announced) | {"code": code})
        (self.place.ledgers / f"{name}.{pid}.jsonl").write_text("".join(json.dumps(entry) + "\n" for entry in entries))

    def add_event(self, name: str, entry: str, at_ms: int) -> None:
        self.sql(
            "INSERT INTO events (execution_id, payload, timestamp_ms) VALUES (?, ?, ?)",
            *(name, json.dumps({"entry": entry}), at_ms),
        )

    def add_audit(self, name: str, step: str, *, retry_count: int | None = None, reason: str | None = None) -> None:
        payload = {"execution_id": name} | ({} if retry_count is None else {"retry_count": retry_count})
        payload |= {} if reason is None else {"reason": reason}
        self.sql(
            "INSERT INTO task_events (event_type, payload) VALUES (?, ?)", f"execution_{step}", json.dumps(payload)
        )

    def add_command(
        self,
        name: str,
        type_: str,
        *,
        actor: str = "user",
        cause: str | None = "person",
        attempt: int = 0,
        delivered: str | None = "now",
        command_id: str = "c",
    ) -> None:
        self.sql(
            "INSERT INTO execution_commands (id, execution_id, attempt, actor_type, cause, type, delivered_at) "
            "VALUES (?, ?, ?, ?, ?, ?, ?)",
            *(command_id, name, attempt, actor, cause, type_, delivered),
        )

    def see_stop(
        self,
        *,
        took_s: float,
        type: str = "stop",  # noqa: A002 - the name in the file
        worker: int | None = 7,
        waited_s: float = 0.0,
        recorded_s: float = 0.0,
    ) -> None:
        times = {"waited_s": waited_s, "recorded_s": recorded_s}
        seen = {"execution_id": "one", "type": type, "cause": "person", "asked_at": 100.0, "done_at": 100.0 + took_s}
        with self.place.stop_times.open("a") as file:
            file.write(json.dumps(seen | {"is_written": True, "worker_pid": worker} | times) + "\n")

    def see(self, at: float, *, marked: dict[str, int] | None = None, hosts: dict[str, int] | None = None) -> None:
        seen = {
            part: {name: [[pid, str(1000 * pid)]] for name, pid in (found or {}).items()}
            for part, found in (("marked", marked), ("hosts", hosts))
        }
        self._samples.append({"type": "live", "at": at} | seen)

    def see_over(self, at: float, name: str, status: str) -> None:
        self._samples.append({"type": "over", "at": at, "execution": name, "status": status})

    def see_command(self, command: str) -> None:
        self._samples.append({"type": "secret", "at": 1.0, "pid": 1, "command": command})

    def violations(self) -> dict[str, str]:
        """Return what was found, promise by promise."""
        self.place.samples.write_text("".join(json.dumps(sample) + "\n" for sample in self._samples))
        evidence = gather(
            self.place,
            self.actions,
            running_limit=2,
            agent_limits={"narrow": 1},
            secret=SECRET,
            remaining=self.remaining,
        )
        found: dict[str, str] = {}
        for violation in check(evidence):
            found[violation.promise] = found.get(violation.promise, "") + violation.what + "\n"
        return found


def _mark(what: str, at: float, stream: bytes) -> dict[str, object]:
    return {
        "type": what,
        "at": at,
        "bytes": len(stream),
        "lines": stream.count(b"\n"),
        "sha256": hashlib.sha256(stream).hexdigest(),
    }


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    made = Scene(tmp_path / "chaos")
    made.add_run("one", 1)
    made.add_run("two", 2, status="failed", code=3, row_code=3)
    return made


def test_a_home_in_which_all_went_well_has_no_violation(scene: Scene) -> None:
    assert scene.violations() == {}


@pytest.mark.parametrize(
    "output", [OUTPUT[:-1], OUTPUT + b"m 1 tick\n", OUTPUT.replace(b"tick", b"tock"), b"", OUTPUT + b"x 0 who\n"]
)
def test_a_log_that_is_not_what_the_program_wrote_is_seen(scene: Scene, output: bytes) -> None:
    scene.write_output("one", output)

    assert "one try 1" in scene.violations()["no output byte lost"]


@pytest.mark.parametrize(("lost", "is_seen"), [(b"", False), (b"m 0", True)])
def test_the_line_in_the_place_of_what_a_cap_took_is_no_output(talk: Scene, *, lost: bytes, is_seen: bool) -> None:
    marker = b"\n[agentmon: 9,000 bytes left out here]\n"
    talk.write_output("talk", OUTPUT[len(lost) : 8] + marker + OUTPUT[8:])
    journal = talk.folder("talk") / "journal.jsonl"
    journal.write_text(
        journal.read_text().replace(
            f'"output_bytes": {len(OUTPUT)}, "left_out_bytes": 0',
            f'"output_bytes": {len(OUTPUT) + 9000}, "left_out_bytes": 9000',
        )
    )

    assert ("no output byte lost" in talk.violations()) == is_seen


def test_a_killed_program_may_have_more_in_its_log_than_it_is_sure_of(scene: Scene) -> None:
    scene.write_ledger("one", 1, code=None, written=OUTPUT[:10])
    scene.actions.stopped_tasks.add(1)
    scene.sql("UPDATE executions SET status = 'cancelled', exit_code = 143 WHERE id = 'one'")

    assert scene.violations() == {}


def test_a_killed_program_may_not_have_less_in_its_log_than_it_is_sure_of(scene: Scene) -> None:
    scene.write_ledger("one", 1, code=None)
    scene.write_output("one", OUTPUT[:10])

    assert f"m wrote {len(OUTPUT)} bytes, the log has 10" in scene.violations()["no output byte lost"]


def test_a_program_that_no_journal_tells_of_is_seen(scene: Scene) -> None:
    scene.write_ledger("one", 77, host=4711, began=12.5)

    assert "no journal tells of it" in scene.violations()["no output byte lost"]


@pytest.mark.parametrize(
    ("is_killed", "further", "words"),
    [
        (True, 0, ""),
        (False, 0, "no journal tells of it"),
        (True, 1, "its host started [1, 77]"),
    ],
)
def test_a_program_whose_host_was_killed_before_it_looked_belongs_to_that_host_and_no_second_one(
    scene: Scene, *, is_killed: bool, further: int, words: str
) -> None:
    for ledger in scene.place.ledgers.glob("one*"):
        ledger.unlink()
    scene.write_ledger("one", 1, host=1)
    for _ in range(further):
        scene.write_ledger("one", 77, host=1, began=15.0)
    if is_killed:
        scene.actions.note_kill("host", 1001, "one")

    found = scene.violations().get("no output byte lost", "")

    assert (words in found) if words else not found


def test_a_program_without_a_row_is_seen(scene: Scene) -> None:
    scene.write_ledger("nobody", 7)

    assert "there is no row" in scene.violations()["no output byte lost"]


def test_an_event_that_stands_twice_is_seen(scene: Scene) -> None:
    scene.add_event("one", "ended", 3)

    assert "one (succeeded)" in scene.violations()["no event twice, none lost"]


def test_an_event_that_is_missing_is_seen(scene: Scene) -> None:
    scene.sql("DELETE FROM events WHERE execution_id = 'two' AND timestamp_ms = 2")

    assert "two (failed)" in scene.violations()["no event twice, none lost"]


def test_a_journal_whose_numbers_do_not_follow_is_seen(scene: Scene) -> None:
    scene.write_journal("one", 1, numbers=(1, 2, 2, 3))

    assert "[1, 2, 2, 3]" in scene.violations()["no event twice, none lost"]


def test_two_programs_of_one_row_at_one_time_are_seen_in_their_ledgers(scene: Scene) -> None:
    scene.write_ledger("one", 77, began=10.5)

    assert (
        "pid 1 lived until 11.000, pid 77 started at 10.500" in scene.violations()["no two live processes of one row"]
    )


def test_a_process_of_an_earlier_try_beside_a_later_one_is_seen_in_the_samples(scene: Scene) -> None:
    scene.write_ledger("one", 5, began=50.0)
    scene._samples.append({"type": "live", "at": 50.5, "marked": {"one": [[1, "1000"], [5, "5000"]]}, "hosts": {}})

    assert "[1] of an earlier try" in scene.violations()["no two live processes of one row"]


def test_more_live_runs_than_the_limit_are_seen(scene: Scene) -> None:
    scene.see(90.0, marked={"three": 3, "four": 4, "five": 5})

    assert "3 live of all agents" in scene.violations()["never more live than the limit"]


def test_a_host_that_is_about_to_start_its_program_counts_against_the_limit(scene: Scene) -> None:
    scene.add_run("nine", 9)
    scene.see(89.9, marked={"three": 3, "four": 4}, hosts={"nine": 1009})

    assert "3 live of all agents" in scene.violations()["never more live than the limit"]


def test_a_host_that_only_shows_the_end_of_the_output_counts_no_more(scene: Scene) -> None:
    scene.add_run("nine", 9)
    scene.see(95.0, marked={"three": 3, "four": 4}, hosts={"nine": 1009})

    assert scene.violations() == {}


def test_more_live_runs_than_one_agent_may_have_are_seen(scene: Scene) -> None:
    scene.add_run("three", 3, agent="narrow")
    scene.add_run("four", 4, agent="narrow")
    scene._samples.insert(
        0, {"type": "live", "at": 5.0, "marked": {"three": [[3, "1"]], "four": [[4, "1"]]}, "hosts": {}}
    )

    assert "2 live of narrow" in scene.violations()["never more live than the limit"]


def test_a_process_that_outlives_its_cancelled_row_is_seen(scene: Scene) -> None:
    scene.see(12.5, marked={"one": 1})

    assert "pids [1] of it lived" in scene.violations()["nothing lives of what is over"]


def test_a_process_that_outlives_the_end_of_its_try_is_seen_and_one_of_the_next_try_is_not(scene: Scene) -> None:
    scene.add_run("three", 3)
    scene.see_over(42.0, "three", "finalizing")
    scene.see(43.0, marked={"three": 44})

    assert scene.violations() == {}
    scene.see(43.5, marked={"three": 3})
    assert "pids [3] of it lived" in scene.violations()["nothing lives of what is over"]


@pytest.mark.parametrize(
    ("actor", "cause", "delivered", "words"),
    [
        ("system", "person", "now", "of system has the cause person"),
        ("user", "budget", "now", "of user has the cause budget"),
        ("system", None, "now", "has the cause None"),
        ("user", "person", None, "is not delivered"),
    ],
)
def test_a_command_without_a_cause_or_an_end_is_seen(
    scene: Scene, actor: str, cause: str | None, delivered: str | None, words: str
) -> None:
    scene.add_command("one", "interrupt", actor=actor, cause=cause, delivered=delivered)

    assert words in scene.violations()["each command has a cause and an end"]


def test_a_budget_ends_each_try_once_at_most_whatever_a_person_wrote(scene: Scene) -> None:
    scene.add_command("one", "interrupt")
    for attempt in (0, 1):
        for type_ in ("interrupt", "message", "interrupt", "stop"):
            scene.add_command("one", type_, actor="system", cause="budget", attempt=attempt)

    assert scene.violations() == {}
    scene.add_command("one", "stop", actor="system", cause="budget", attempt=1)
    assert "one attempt 1: 2 commands stop" in scene.violations()["each command has a cause and an end"]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ("UPDATE executions SET ending = '{}' WHERE id = 'one'", "one is succeeded, and its end is noted"),
        ("UPDATE executions SET status = 'finalizing' WHERE id = 'one'", "one is finalizing"),
        ("UPDATE tasks SET status = 'in_progress' WHERE number = 2", "#2 is in progress"),
    ],
)
def test_an_end_that_stays_half_done_is_seen(scene: Scene, change: str, words: str) -> None:
    scene.sql(change)

    assert words in scene.violations()["no end stays half done"]


def test_an_error_of_the_worker_s_own_is_seen_in_its_log(scene: Scene) -> None:
    scene.place.worker_log.parent.mkdir(mode=0o700)
    scene.place.worker_log.write_text(
        "12:00 WARNING queue goes on after an error of the worker's own\n"
        "Traceback (most recent call last):\n  File 'a.py'\nValueError: embedded null byte\n"
    )
    scene.place.worker_log.chmod(0o600)

    assert "ValueError: embedded null byte" in scene.violations()["no worker meets an error of its own"]


def test_a_promise_that_cannot_be_checked_counts_as_broken(scene: Scene) -> None:
    scene.sql("DROP TABLE sessions")

    assert "no such table: sessions" in scene.violations()["nothing is left open of what is over"]


def test_a_replay_bears_what_no_journal_and_no_text_can_hold(talk: Scene) -> None:
    conversation = {"protocol": "stream-json", "prompt": "go", "working_dir": "/", "session_id": "s", "start": "fresh"}
    asks = {"subtype": "can_use_tool", "tool_name": "Bash", "input": {"command": "ls", "timeout": float("inf")}}
    ask = json.dumps({"type": "control_request", "request_id": "r", "request": asks})
    line = json.dumps({"type": "system", "subtype": "init", "session_id": "s", "model": "\ud800"}, ensure_ascii=False)
    adapter = make_adapter(conversation)
    told = [*adapter.start(1).events]
    for received in (line.encode("utf-8", "backslashreplace"), ask.encode()):
        told += adapter.receive(received + b"\n", 1).events
    folder = talk.folder("talk")
    (folder / "spec.json").write_text(json.dumps({"conversation": conversation}))
    said = [{"at_ms": 1, "dir": "start", "line": ""}, *({"at_ms": 1, "dir": "out", "line": one} for one in (line, ask))]
    (folder / "protocol.jsonl").write_text("".join(json.dumps(entry) + "\n" for entry in said))
    entries = [{"n": n, "at_ms": n, "type": "agent_event", "event": event} for n, event in enumerate(told, 1)]
    lines = "".join(json.dumps(entry) + "\n" for entry in entries).replace("Infinity", "null")
    (folder / "journal.jsonl").write_text(lines)

    assert "a protocol replays to its journal" not in talk.violations()


def test_a_stop_that_took_longer_than_a_second_is_seen(scene: Scene) -> None:
    scene.see_stop(took_s=0.9)
    scene.see_stop(took_s=5.0, type="interrupt")

    assert scene.violations() == {}
    scene.see_stop(took_s=1.2)
    assert "one: a stop of 100.000 took 1.20 s" in scene.violations()["no stop takes longer than a second"]


def test_a_client_that_waited_for_the_row_of_its_stop_is_seen(scene: Scene) -> None:
    scene.see_stop(took_s=0.9, recorded_s=4.0)

    assert scene.violations() == {}
    assert read_stop_times(scene.place.stop_times)[0].seconds == pytest.approx(4.9)
    scene.see_stop(took_s=0.1, recorded_s=15.4)
    assert "waited 15.40 s for the row" in scene.violations()["no stop takes longer than a second"]


def test_a_stop_is_excused_by_a_worker_that_died_a_full_disk_and_the_wait_for_a_core_alone(scene: Scene) -> None:
    scene.see_stop(took_s=5.0, worker=None)
    scene.see_stop(took_s=1.5, waited_s=0.6)
    scene.actions.full_disk.append(Window(begin=103.0, end=104.0))
    scene.see_stop(took_s=5.0)

    assert scene.violations() == {}
    scene.see_stop(took_s=2.0)
    assert "took 2.00 s" in scene.violations()["no stop takes longer than a second"]


def test_the_times_of_stops_are_told_from_the_middle_to_the_longest(scene: Scene) -> None:
    for number in range(100):
        scene.see_stop(took_s=number / 100)

    times = read_stop_times(scene.place.stop_times)

    assert [word for word in percentiles_text(times).split() if word[0] == "0"] == ["0.50", "0.95", "0.99", "0.99"]


def test_a_command_is_timed_until_its_line_is_there_or_its_run_has_no_process(scene: Scene) -> None:
    scene.sql("UPDATE executions SET status = 'cancelling'")
    watcher = Watcher(scene.place.database, scene.place.executions_dir, scene.place.home / "worker.lock")
    scene.add_command("one", "stop", command_id="first")
    scene.add_command("two", "kill", command_id="second")
    asked_at = "strftime('%Y-%m-%dT%H:%M:%fZ', 'now', '-9 seconds')"
    scene.sql(f"UPDATE execution_commands SET created_at = {asked_at} WHERE id = 'second'")

    assert list(watcher.look()) == []
    (scene.folder("one") / "control.jsonl").write_text('{"id": "first", "type": "stop"}\n')
    (written,) = watcher.look()
    scene.sql("UPDATE executions SET status = 'finalizing' WHERE id = 'two'")
    (ended,) = watcher.look()

    assert (written.execution_id, written.type, written.is_written) == ("one", "stop", True)
    assert (ended.execution_id, ended.type, ended.is_written) == ("two", "kill", False)
    assert written.recorded_s < 9.0 <= ended.recorded_s
    assert list(watcher.rest()) == []
    watcher.close()


def test_the_clock_of_a_worker_jumps_with_its_file(tmp_path: Path) -> None:
    shift = Shift(tmp_path / "clock")
    set_clock(tmp_path / "clock", -3600.0)

    assert shift.seconds == -3600.0
    set_clock(tmp_path / "clock", 5.0)
    wait_for(lambda: shift.seconds == 5.0)


@pytest.mark.parametrize("seed", range(1, 7))
def test_the_hostile_agent_speaks_the_protocol_and_ends_with_its_input(tmp_path: Path, seed: int) -> None:
    said = {"type": "user", "message": {"role": "user", "content": f"be hostile {seed} and flood 1000"}}
    command = [sys.executable, "-I", "-S", str(Path(hostile.__file__)), "--ledgers", str(tmp_path)]

    finished = subprocess.run(
        command, input=json.dumps(said).encode() + b"\n", capture_output=True, check=False, timeout=60
    )

    conversation = {"protocol": "stream-json", "prompt": "go", "working_dir": "/", "session_id": "s", "start": "fresh"}
    adapter = make_adapter(conversation)
    adapter.start(1)
    kinds = {event["kind"] for event in adapter.receive(finished.stdout, 1).events}
    assert (finished.returncode, finished.stderr) in {(0, b""), (1, b"")}
    assert kinds >= {"turn_started", "turn_ended"}


def test_a_process_that_lives_at_the_end_of_all_is_seen(scene: Scene) -> None:
    scene.remaining = {"one": frozenset({4711})}

    assert "[4711]" in scene.violations()["nothing lives of what is over"]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ("status = 'queued', exit_code = NULL", "it is still queued"),
        ("status = 'running', exit_code = NULL", "it is still running"),
        ("exit_code = 1", "succeeded with 1"),
        ("status = 'failed', exit_code = 3", "failed with 3"),
        ("status = 'cancelled'", "nobody asked"),
        ("status = 'timed_out'", "it timed out"),
        ("status = 'failed', exit_code = NULL, error = 'lost: its host'", "nobody killed its host 1001"),
        ("status = 'failed', exit_code = NULL, error = 'odd'", "failed without an exit code"),
    ],
)
def test_an_end_that_the_ledger_does_not_explain_is_seen(scene: Scene, change: str, words: str) -> None:
    scene.sql(f"UPDATE executions SET {change} WHERE id = 'one'")

    assert words in scene.violations()["each row's end is what its program did"]


def test_a_start_that_failed_is_explained_by_a_missing_tmux_alone(scene: Scene) -> None:
    (scene.place.ledgers / "two.2.jsonl").unlink()
    scene.write_output("two", b"")
    scene.sql("UPDATE executions SET exit_code = NULL, error = 'tmux is not there' WHERE id = 'two'")
    promise = "each row's end is what its program did"

    assert "nothing explains it" in scene.violations()[promise]
    scene.actions.without_tmux.append(Window(begin=20.0, end=21.0))
    assert promise not in scene.violations()


def test_a_host_that_was_killed_explains_a_lost_run(scene: Scene) -> None:
    scene.actions.note_kill("host", 1001, "one")
    scene.write_ledger("one", 1, code=None)
    scene.sql("UPDATE executions SET status = 'failed', exit_code = NULL, error = 'lost: its host' WHERE id = 'one'")

    assert scene.violations() == {}


def test_a_failure_that_was_not_tried_again_is_seen(scene: Scene) -> None:
    scene.sql("UPDATE executions SET max_retries = 2 WHERE id = 'two'")

    assert "at try 1 of 3" in scene.violations()["each row's end is what its program did"]


def test_a_program_that_did_not_get_its_secret_is_seen(scene: Scene) -> None:
    path = scene.place.ledgers / "one.1.jsonl"
    path.write_text(path.read_text().replace(hashlib.sha256(SECRET.encode()).hexdigest(), "0"))

    assert "did not get the secret" in scene.violations()["each row's end is what its program did"]


def test_a_run_that_started_before_what_it_waits_for_was_done_is_seen(scene: Scene) -> None:
    scene.sql("INSERT INTO task_dependencies VALUES ('task-one', 'task-two')")

    assert "#1 started" in scene.violations()["nothing starts before what it waits for"]


def test_a_run_that_started_after_what_it_waits_for_was_done_is_in_order(scene: Scene) -> None:
    scene.sql("INSERT INTO task_dependencies VALUES ('task-two', 'task-one')")

    assert scene.violations() == {}


@pytest.mark.parametrize("step", ["queued", "started", "ended", "requeued"])
def test_a_step_that_the_audit_trail_has_twice_is_seen(scene: Scene, step: str) -> None:
    scene.add_audit("one", step, retry_count=0)

    assert "one (succeeded" in scene.violations()["the audit trail has each step once"]


def test_a_run_that_could_not_be_started_starts_and_ends_once_more(scene: Scene) -> None:
    scene.add_audit("one", "started", retry_count=0)
    scene.add_audit("one", "ended")
    assert "one (succeeded" in scene.violations()["the audit trail has each step once"]

    scene.add_audit("one", "parked", reason="not_started")
    assert scene.violations() == {}


@pytest.mark.parametrize("step", ["queued", "started", "ended"])
def test_a_step_that_the_audit_trail_lacks_is_seen(scene: Scene, step: str) -> None:
    scene.sql("DELETE FROM task_events WHERE event_type = ? AND payload LIKE '%one%'", f"execution_{step}")

    assert "one (succeeded" in scene.violations()["the audit trail has each step once"]


def test_a_run_that_a_client_was_promised_and_is_not_there_is_seen(scene: Scene) -> None:
    scene.actions.accepted_runs.update({1: 2})

    assert "#1: clients said 2 times" in scene.violations()["what a client was told is true"]


def test_a_retry_that_a_client_hastened_is_no_second_run(scene: Scene) -> None:
    scene.actions.accepted_runs.update({1: 2})
    scene.add_audit("one", "hastened")

    assert scene.violations() == {}


def test_a_damaged_database_is_seen(scene: Scene) -> None:
    scene.sql("CREATE TABLE spare (word TEXT)")
    scene.sql("CREATE INDEX of_spare ON spare (word)")
    scene.sql(
        "INSERT INTO spare WITH RECURSIVE n(i) AS (SELECT 1 UNION SELECT i + 1 FROM n WHERE i < 500) SELECT i FROM n"
    )
    with scene.place.database.open("r+b") as file:
        file.seek(-2000, os.SEEK_END)
        file.write(b"\xff" * 1500)

    assert "the database is whole" in scene.violations()


def test_a_secret_in_a_command_line_is_seen(scene: Scene) -> None:
    scene.see_command(f"tmux -e API_KEY={SECRET}")

    assert "tmux -e" in scene.violations()["no secret, no open file"]


def test_a_secret_in_the_database_is_seen(scene: Scene) -> None:
    scene.sql("UPDATE executions SET error = ? WHERE id = 'one'", SECRET)

    assert "agentmon.db" in scene.violations()["no secret, no open file"]


def test_a_secret_in_the_log_of_the_worker_is_seen(scene: Scene) -> None:
    scene.place.worker_log.parent.mkdir(mode=0o700)
    scene.place.worker_log.write_text(f"started with {SECRET}")
    scene.place.worker_log.chmod(0o600)

    assert "worker.log" in scene.violations()["no secret, no open file"]


def test_a_file_that_others_may_read_is_seen(scene: Scene) -> None:
    (scene.folder("one") / "output.log").chmod(0o644)

    assert "-rw-r--r--" in scene.violations()["no secret, no open file"]


@pytest.fixture
def marked_process(tmp_path: Path) -> Iterator[subprocess.Popen[bytes]]:
    (tmp_path / "executions" / "seen").mkdir(parents=True)
    process = subprocess.Popen(
        ["sh", "-c", f"read line # {SECRET}"],
        stdin=subprocess.PIPE,
        env=os.environ | {program.MARKER: "seen"},
        start_new_session=True,
    )
    try:
        yield process
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


def test_the_scan_finds_what_carries_a_marker_of_the_home_and_no_other(
    tmp_path: Path, marked_process: subprocess.Popen[bytes]
) -> None:
    own = ProcessScan(tmp_path / "executions", SECRET)
    other = ProcessScan(tmp_path / "elsewhere", "")

    def is_told() -> bool:
        own.look()
        return any(pid == marked_process.pid for pid, _ in own.tellers)

    # Before its exec the process has neither.
    wait_for(is_told)
    found = own.look()[0]

    assert marked_process.pid in {pid for pid, _ in found["seen"]}
    assert other.look() == ({}, {})


@pytest.mark.parametrize(("kind", "code"), [("failing", 3), ("forking", 0), ("noisy", 0)])
def test_a_program_s_ledger_says_what_it_wrote(tmp_path: Path, kind: str, code: int) -> None:
    command = [sys.executable, "-I", "-S", str(Path(program.__file__)), kind, str(tmp_path), "1"]

    finished = subprocess.run(command, env={program.MARKER: "own"}, capture_output=True, check=False, timeout=30)

    ledgers = read_ledgers(tmp_path)
    assert finished.returncode == code
    assert [ledger.exit_code for ledger in ledgers if ledger.is_main] == [code]
    assert sum(ledger.written.bytes for ledger in ledgers) == len(finished.stdout)
    for ledger in ledgers:
        lines = [line for line in finished.stdout.splitlines(True) if line.startswith(f"{ledger.writer} ".encode())]
        assert hashlib.sha256(b"".join(lines)).hexdigest() == ledger.written.sha256


@pytest.fixture
def talk(scene: Scene) -> Scene:
    """A conversation in which one command was allowed and run."""
    scene.add_run("talk", 9, agent="demo-agent")
    for ledger in scene.place.ledgers.glob("talk*"):
        ledger.unlink()
    news: list[dict[str, object]] = [
        {"kind": "message", "message_ref": "m", "text": "I run it"},
        {"kind": "ask", "request_id": "r", "tool_ref": "t", "type": "execute"},
        {"kind": "ask_closed", "request_id": "r", "outcome": "allowed"},
        {"kind": "usage", "key": "k", "prompt_tokens": 3, "response_tokens": 4},
    ]
    entries: list[dict[str, object]] = [{"type": "host_started", "pid": 1009}]
    entries += [{"type": "agent_event", "event": one} for one in news]
    entries += [{"type": "ended", "output_bytes": len(OUTPUT), "left_out_bytes": 0, "agent_outcome": "completed"}]
    lines = [json.dumps({"n": n, "at_ms": n, **entry}) for n, entry in enumerate(entries, 1)]
    (scene.folder("talk") / "journal.jsonl").write_text("\n".join(lines) + "\n")
    scene.sql("DELETE FROM events WHERE execution_id = 'talk'")
    for n, entry in enumerate(entries, 1):
        event = entry.get("event")
        said = {"kind": event["kind"]} if isinstance(event, dict) else {"entry": entry["type"]}
        scene.sql("INSERT INTO events (execution_id, payload, timestamp_ms) VALUES ('talk', ?, ?)", json.dumps(said), n)
    scene.sql("UPDATE executions SET session_id = 's', tokens_used = 7 WHERE id = 'talk'")
    scene.sql("INSERT INTO sessions VALUES ('s', 'completed', 'now', 7, 1)")
    scene.sql("INSERT INTO messages VALUES ('talk', '0:m', 'I run it')")
    scene.sql("INSERT INTO operations VALUES ('o', 's', 'talk', '0:t', 'success')")
    scene.sql("INSERT INTO approvals VALUES ('a', 'talk', '0:r', 'permission', 'allowed', 'now', NULL)")
    scene.sql("INSERT INTO llm_interactions VALUES ('talk', 's', 'k', 3, 0, 0, 0, 4)")
    scene.sql(
        "INSERT INTO task_events (event_type, payload) VALUES ('approval_decided', ?)",
        json.dumps({"approval_id": "a", "status": "allowed"}),
    )
    return scene


def test_a_conversation_that_went_as_it_should_breaks_nothing(talk: Scene) -> None:
    assert talk.violations() == {}


@pytest.mark.parametrize(
    ("change", "promise"),
    [
        ("DELETE FROM messages", "each conversation has the rows of its journal"),
        ("UPDATE messages SET content = 'I run'", "each conversation has the rows of its journal"),
        ("INSERT INTO operations VALUES ('p', 's', 'talk', '0:t', 'success')", "each conversation has the rows"),
        ("DELETE FROM llm_interactions", "each conversation has the rows of its journal"),
        ("UPDATE executions SET tokens_used = 14", "each conversation has the rows of its journal"),
        ("UPDATE approvals SET closed_at = NULL", "nothing is left open of what is over"),
        ("UPDATE executions SET is_held = 1", "nothing is left open of what is over"),
        ("UPDATE sessions SET status = 'running'", "nothing is left open of what is over"),
        ("UPDATE sessions SET total_tokens = 8", "nothing is left open of what is over"),
        ("DELETE FROM task_events WHERE event_type = 'approval_decided'", "nothing is allowed that nobody allowed"),
        ("UPDATE approvals SET status = 'denied'", "nothing is allowed that nobody allowed"),
    ],
)
def test_a_conversation_whose_rows_are_not_what_happened_is_seen(talk: Scene, change: str, promise: str) -> None:
    talk.sql(change)

    assert any(name.startswith(promise) for name in talk.violations())


@pytest.mark.parametrize(
    ("after", "is_seen"),
    [
        (["ended"], True),
        ([], True),
        (["killed on a full disk"], False),
        (["killed on a full disk", "ended"], True),
        (["killed"], True),
        (["storage_full"], False),
        (["storage_full", "ended"], True),
        (["storage_full", "storage_ok"], True),
        (["storage_full", "storage_ok", "storage_full"], False),
        (["storage_full", "protocol_log_full", "ended"], False),
    ],
)
def test_a_protocol_that_lacks_what_the_journal_tells_is_seen_unless_a_full_disk_kept_it_out(
    talk: Scene, after: list[str], is_seen: bool
) -> None:
    conversation = {"protocol": "stream-json", "prompt": "go", "working_dir": "/", "session_id": "s", "start": "fresh"}
    adapter = make_adapter(conversation)
    told = [*adapter.start(1).events]
    said = json.dumps({"type": "system", "subtype": "init", "session_id": "s", "model": "m", "permissionMode": "plan"})
    told += adapter.receive(said.encode() + b"\n", 1).events
    folder = talk.folder("talk")
    (folder / "spec.json").write_text(json.dumps({"conversation": conversation}))
    (folder / "protocol.jsonl").write_text(json.dumps({"at_ms": 1, "dir": "start", "line": ""}) + "\n")
    entries: list[dict[str, object]] = [{"type": "host_started", "pid": 1009}]
    entries += [{"type": "agent_event", "event": event} for event in told]
    for word in after:
        if word.startswith("killed"):
            talk.actions.note_kill("host", 1009, "talk")
            at = talk.actions.kills[-1].at
            talk.actions.full_disk.append(Window(at - 1, at + 1) if "full" in word else Window(at - 2, at - 1))
        else:
            entries.append({"type": word, "output_bytes": 0, "left_out_bytes": 0})
    lines = [json.dumps({"n": n, "at_ms": n, **entry}) for n, entry in enumerate(entries, 1)]
    (folder / "journal.jsonl").write_text("\n".join(lines) + "\n")

    assert ("a protocol replays to its journal" in talk.violations()) == is_seen


# The repository, its worktrees, and undos


def add_worktree(scene: Scene) -> Path:
    """Let the first run have worked in a worktree of its own."""
    (scene.place.home / "worktrees").mkdir(mode=0o700)
    tree = scene.place.home / "worktrees/project/1-be-changing"
    git(scene.place.project, "worktree", "add", "-q", "-b", "agentmon/1-be-changing", str(tree))
    make_files(tree, "one")
    (tree / SETUP).write_text("whole\n")
    scene.sql(
        "INSERT INTO worktrees VALUES ('tree', ?, 'agentmon/1-be-changing', 'ready', ?, NULL, NULL)",
        *(str(tree), str(scene.place.project)),
    )
    scene.sql("UPDATE executions SET worktree_id = 'tree' WHERE id = 'one'")
    return tree


def make_files(folder: Path, name: str, *, count: int = MADE) -> None:
    """Make the files of a run."""
    for number in range(count):
        path = folder / "made" / name / str(number)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()


def git(folder: Path, *words: str) -> str:
    command = ["git", "-c", "user.name=Ann", "-c", "user.email=ann@example.org", *words]
    return subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True).stdout.strip()


def test_a_worktree_that_is_whole_breaks_no_promise(scene: Scene) -> None:
    add_worktree(scene)

    assert scene.violations() == {}


@pytest.mark.parametrize(
    "words", [("add", "part3"), ("tag", "v2"), ("stash", "drop", "-q"), ("config", "user.name", "x"), ("gc", "-q")]
)
def test_what_changes_in_the_repository_of_the_person_is_seen(scene: Scene, words: tuple[str, ...]) -> None:
    (scene.place.project / "part3/fresh").touch()
    git(scene.place.project, *words)

    assert scene.violations().keys() == {"the repository is as its person left it"}


@pytest.mark.parametrize("what", ["journal", "beside", "files", "audit"])
def test_an_undo_that_is_done_in_part_is_seen(scene: Scene, what: str) -> None:
    tree = add_worktree(scene)
    if what == "journal":
        (scene.place.home / "snapshots/roots/ab/undo").mkdir(parents=True, mode=0o700)
        (scene.place.home / "snapshots").chmod(0o700)
        for folder in (scene.place.home / "snapshots").rglob("*"):
            folder.chmod(0o700)
    elif what == "beside":
        (tree / ".agentmon-undo-3").touch()
    elif what == "files":
        (tree / "made/one/7").unlink()
    else:
        scene.sql("INSERT INTO task_events (event_type, payload, task_id) VALUES ('changes_undone', '{}', 'task-one')")

    assert scene.violations().keys() == {"no undo stays half done"}


@pytest.mark.parametrize("what", ["setup", "folder", "record", "branch", "foreign", "removed", "making", "half"])
def test_a_worktree_that_is_there_in_part_is_seen(scene: Scene, what: str) -> None:
    tree = add_worktree(scene)
    scene.sql("UPDATE executions SET worktree_id = NULL")
    if what == "setup":
        (tree / SETUP).write_text("half")
    elif what == "folder":
        tree.rename(scene.place.home.with_name("elsewhere"))
    elif what == "record":
        git(scene.place.project, "worktree", "remove", "--force", str(tree))
        tree.mkdir()
    elif what == "branch":
        git(scene.place.project, "update-ref", "-d", "refs/heads/agentmon/1-be-changing")
    elif what == "foreign":
        (tree.parent / "2-other").mkdir()
    elif what == "half":
        (tree.parents[1] / ".removing/id").mkdir(parents=True)
    else:
        scene.sql("UPDATE worktrees SET status = ?", what)

    assert "a worktree is there whole or is gone" in scene.violations()


def merge(scene: Scene, *, files: int = MADE, name: str = "one", is_told: bool = True) -> str:
    """Let the branch of the first task have been merged, with the files of a run."""
    trunk = scene.place.trunk
    before = git(trunk, "rev-parse", "HEAD")
    make_files(trunk, name, count=files)
    git(trunk, "add", "made")
    git(trunk, "commit", "-q", "--only", "-m", "merged", "--", "made")
    commit = git(trunk, "rev-parse", "HEAD")
    if is_told:
        said = {"how": "squash", "into": "main", "from": before, "commit": commit}
        statement = "INSERT INTO task_events (event_type, payload, task_id) VALUES ('branch_merged', ?, 'task-one')"
        scene.sql(statement, json.dumps(said))
    return commit


def take_back(scene: Scene) -> None:
    """Let the newest merge have been taken back."""
    git(scene.place.trunk, "revert", "--no-edit", "HEAD")
    statement = "INSERT INTO task_events (event_type, payload, task_id) VALUES ('merge_undone', ?, 'task-one')"
    scene.sql(statement, json.dumps({"commit": git(scene.place.trunk, "rev-parse", "HEAD")}))


def test_merges_between_commits_of_the_person_break_no_promise(scene: Scene) -> None:
    for day in (1, 2):
        commit = commit_as_person(scene.place.trunk, day)
        assert commit is not None
        scene.actions.person_commits.add(commit)
        if day == 1:
            merge(scene)
    scene.actions.accepted_merges["branch_merged", 1] = 1

    assert scene.violations() == {}


@pytest.mark.parametrize(
    "what", ["untold", "half", "of another", "journal", "row", "claimed", "elsewhere", "taken back untold"]
)
def test_a_merge_that_is_not_as_the_trail_has_it_is_seen(scene: Scene, what: str) -> None:
    if what == "journal":
        (scene.place.home / "merges/one").mkdir(parents=True, mode=0o700)
        (scene.place.home / "merges").chmod(0o700)
    elif what == "row":
        scene.sql("INSERT INTO worktrees (path, status, merged_commit) VALUES ('/gone', 'removed', 'abc')")
    elif what == "claimed":
        scene.actions.accepted_merges["branch_merged", 1] = 1
    elif what == "elsewhere":
        merge(scene)
        git(scene.place.trunk, "branch", "-f", "release", "main")
    else:
        name = "two" if what == "of another" else "one"
        merge(scene, files=MADE - (what == "half"), name=name, is_told=what != "untold")
    if what == "taken back untold":
        git(scene.place.trunk, "commit", "-q", "--allow-empty", "--only", "-m", "back")

    assert scene.violations().keys() == {"each merge is done or not, as the trail has it"}


@pytest.mark.parametrize("what", ["staged", "changed", "untracked", "branch", "lock", "damage"])
def test_what_a_merge_does_to_the_local_work_of_the_person_is_seen(scene: Scene, what: str) -> None:
    trunk = scene.place.trunk
    if what == "staged":
        git(trunk, "reset", "-q")
    elif what == "changed":
        git(trunk, "checkout", "-q", "--", "mine/changed.txt")
    elif what == "untracked":
        (trunk / "mine/untracked.txt").unlink()
    elif what == "branch":
        git(trunk, "branch", "-f", "aside", git(trunk, "commit-tree", "-m", "x", "HEAD^{tree}"))
    elif what == "lock":
        (trunk / ".git/refs/heads/main.lock").touch()
    else:
        commit = git(trunk, "commit-tree", "-m", "x", "-p", "HEAD", "HEAD^{tree}")
        (trunk / ".git/objects" / commit[:2] / commit[2:]).chmod(0o600)
        (trunk / ".git/objects" / commit[:2] / commit[2:]).write_bytes(b"")

    assert "a merge leaves local changes alone" in scene.violations()


def test_a_merge_that_was_taken_back_breaks_no_promise(scene: Scene) -> None:
    trunk = scene.place.trunk
    git(trunk, "stash", "-q", "--include-untracked")
    merge(scene)
    take_back(scene)
    git(trunk, "stash", "pop", "-q", "--index")

    assert scene.violations() == {}


@pytest.mark.parametrize("status", ["failed", "running"])
def test_a_run_that_counts_without_a_pass_is_seen(scene: Scene, status: str) -> None:
    scene.sql("UPDATE tasks SET input_context = ? WHERE number = 1", json.dumps({"verify": "make test"}))
    scene.sql("INSERT INTO verifications VALUES ('one', ?)", status)
    found = scene.violations()
    scene.sql("DELETE FROM verifications")
    scene.sql("INSERT INTO verifications VALUES ('one', 'passed')")

    assert found.keys() == {"no run counts without its pass"}
    assert scene.violations() == {}


@pytest.mark.parametrize(("is_sent", "is_told"), [(True, False), (False, True)])
def test_a_comment_that_is_not_as_it_says_is_seen(scene: Scene, is_sent: bool, is_told: bool) -> None:
    scene.sql("INSERT INTO review_comments VALUES ('why so', ?)", "now" if is_sent else None)
    if is_told:
        scene.sql("UPDATE executions SET prompt = 'a.py:1 why so' WHERE id = 'one'")

    assert scene.violations().keys() == {"a comment is sent once it says so"}


def test_a_task_that_nobody_managed_to_run_is_seen(scene: Scene) -> None:
    scene.sql("INSERT INTO tasks (id, number, status) VALUES ('three', 3, 'todo')")

    assert scene.violations().keys() == {"no end stays half done"}


def test_gits_are_found_while_their_parent_lives_and_none_of_one_that_is_gone(tmp_path: Path) -> None:
    waits = ("git", "-C", str(tmp_path), "hash-object", "--stdin")
    code = "import subprocess, sys; subprocess.run(sys.argv[1:])"
    with subprocess.Popen((sys.executable, "-c", code, *waits), stdin=subprocess.PIPE) as parent:
        (git,) = wait_for(lambda: gits_of(parent.pid), "git of the parent")
        assert git != parent.pid
        assert parent.stdin is not None
        parent.stdin.close()
    assert gits_of(parent.pid) == []
