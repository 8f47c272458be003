"""Whether the rows of conversations are those of their journals, and whether all that was allowed had been asked."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, Any

from agentmon.runners.protocols.registry import make_adapter

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

    from benchmarks.chaos.evidence import Evidence, Row, Try

HOSTILE_AGENT = "chaos-hostile"
TALKING_AGENTS = frozenset({"demo-agent", HOSTILE_AGENT})
"""Slugs of the agents that are spoken to in a protocol; they keep no ledger."""
_OVER = {"succeeded": "completed", "failed": "failed", "timed_out": "failed", "cancelled": "cancelled"}
_PARTS = (
    "prompt_tokens",
    "cache_read_tokens",
    "cache_write_5m_tokens",
    "cache_write_1h_tokens",
    "response_tokens",
)

Event = dict[str, Any]


def replay_faults(evidence: Evidence) -> Iterator[str]:
    """Yield each try whose protocol does not lead to the events of its journal."""
    for row, attempt, folder in _tries(evidence):
        protocol = folder / "protocol.jsonl"
        if not protocol.exists():
            continue
        told = _comparable(_events(attempt))
        replayed = _comparable(_replay(folder))
        if not _agree(attempt, told, replayed, killed_full=evidence.actions.killed_on_full_disk(row.id)):
            place = next((i for i, (a, b) in enumerate(zip(told, replayed, strict=False)) if a != b), "the end")
            yield (
                f"{row.id} try {attempt.number}: {len(told)} events, {len(replayed)} in the replay, the first other at "
                f"{place}"
            )


def _agree(attempt: Try, told: list[Event], replayed: list[Event], *, killed_full: bool) -> bool:
    """Return whether journal and protocol tell the same, but for what a kill or a full disk kept out of one of them."""
    ended = attempt.find("ended")
    storage = [entry["type"] for entry in attempt.entries if entry.get("type") in {"storage_full", "storage_ok"}]
    is_waiting = ended is None and (killed_full or storage[-1:] == ["storage_full"])
    if attempt.find("protocol_log_full") or is_waiting:
        # The journal has a reserve on the disk; the protocol was given up, or still waited when its host was killed.
        shared = min(len(told), len(replayed))
        return told[:shared] == replayed[:shared]
    # What is written here in two steps may have been cut between them.
    is_cut = ended is None or bool(ended.get("left_out_bytes"))
    return told == (replayed[: len(told)] if is_cut else replayed)


def row_faults(evidence: Evidence) -> Iterator[str]:
    """Yield each row of a conversation that its journal does not tell of, and each that is missing or other."""
    with _reading(evidence) as connection:
        for row in _talking(evidence):
            yield from _row_faults(connection, row, evidence.tries[row.id])


def _row_faults(connection: sqlite3.Connection, row: Row, tries: tuple[Try, ...]) -> Iterator[str]:
    told = [(number, event) for number, attempt in enumerate(tries) for event in _events(attempt)]
    messages = _messages(told)
    asks = {f"{number}:{event['request_id']}" for number, event in told if event["kind"] == "ask"}
    calls = {
        f"{number}:{event['tool_ref']}"
        for number, event in told
        if event["kind"] == "tool_started" or (event["kind"] == "ask" and event.get("tool_ref") and event.get("type"))
    }
    answers = {
        event["key"]: sum(event.get(part) or 0 for part in _PARTS) for _, event in told if event["kind"] == "usage"
    }
    # What agentmon itself says and asks stands in no journal.
    own = (":end-of-try",)
    found = {
        "messages": [ref for ref in _column(connection, "messages", "message_ref", row.id) if not ref.endswith(own)],
        "operations": _column(connection, "operations", "operation_ref", row.id),
        "approvals": [
            ref
            for ref in _column(connection, "approvals", "request_ref", row.id)
            if not ref.startswith(("start:", "budget:"))
        ],
        "llm_interactions": _column(connection, "llm_interactions", "key", row.id),
    }
    expected = {"messages": messages, "operations": calls, "approvals": asks, "llm_interactions": answers}
    # The database takes no NUL and no half of a surrogate pair, neither in a name nor in a text.
    plain = _ascii if row.agent_slug == HOSTILE_AGENT else str
    for table, refs in found.items():
        shown, wanted = sorted(map(plain, refs)), sorted(map(plain, expected[table]))
        if shown != wanted:
            yield f"{row.id}: {table} has {shown}, the journals {wanted}"
    texts = dict(connection.execute("SELECT message_ref, content FROM messages WHERE execution_id = ?", (row.id,)))
    texts = {ref: said for ref, said in texts.items() if not ref.endswith(own)}
    if _plainly(texts, plain) != _plainly(messages, plain):
        yield f"{row.id}: the texts of its messages are not those of the journals"
    total = connection.execute("SELECT tokens_used FROM executions WHERE id = ?", (row.id,)).fetchone()[0]
    if (total or 0) != sum(answers.values()):
        yield f"{row.id}: it counts {total} tokens, its journals {sum(answers.values())}"


def _plainly(texts: Mapping[str, str], plain: Callable[[str], str]) -> dict[str, str]:
    return {plain(ref): plain(said) for ref, said in texts.items()}


def _ascii(text: str) -> str:
    """Return what is left of a text that no database takes as it is."""
    return "".join(character for character in text if " " <= character <= "~")


def _messages(told: list[tuple[int, Event]]) -> dict[str, str]:
    messages: dict[str, str] = {}
    for number, event in told:
        if event["kind"] == "message":
            ref = f"{number}:{event['message_ref']}"
            messages[ref] = (messages.get(ref, "") if event.get("continues") else "") + event["text"]
    return messages


def standing_faults(evidence: Evidence) -> Iterator[str]:
    """Yield what is left open of a conversation that is over, and totals that are no sums."""
    with _reading(evidence) as connection:
        yield from _open_faults(connection)
        yield from _session_faults(connection)


def _open_faults(connection: sqlite3.Connection) -> Iterator[str]:
    for execution_id, status, ask_kind, execution in connection.execute(
        "SELECT a.execution_id, a.status, a.ask_kind, e.status FROM approvals a "
        "JOIN executions e ON e.id = a.execution_id WHERE a.status = 'pending' OR a.closed_at IS NULL"
    ):
        if execution in _OVER:
            yield f"{execution_id} is {execution}, and a request ({ask_kind}) of it is {status} and not closed"
    for execution_id, status in connection.execute(
        "SELECT id, status FROM executions e WHERE is_held AND NOT EXISTS (SELECT 1 FROM approvals a WHERE "
        "a.execution_id = e.id AND a.status = 'pending' AND a.ask_kind = 'start')"
    ):
        yield f"{execution_id} ({status}) is held, and nobody can let it start"
    for execution_id, activity in connection.execute(
        "SELECT id, activity FROM executions WHERE activity IS NOT NULL AND status <> 'running'"
    ):
        yield f"{execution_id} is over and {activity}"
    for operation_id, execution_id in connection.execute(
        "SELECT o.id, o.execution_id FROM operations o JOIN executions e ON e.id = o.execution_id "
        "WHERE o.status = 'pending' AND e.status IN ('succeeded', 'failed', 'cancelled', 'timed_out')"
    ):
        yield f"{execution_id} is over, and its call {operation_id} goes on"


def _session_faults(connection: sqlite3.Connection) -> Iterator[str]:
    for session_id, status, ended_at, execution in connection.execute(
        "SELECT s.id, s.status, s.ended_at, (SELECT e.status FROM executions e WHERE e.session_id = s.id "
        "ORDER BY e.id DESC LIMIT 1) FROM sessions s"
    ):
        if execution in _OVER and (status != _OVER[execution] or ended_at is None):
            yield f"session {session_id} is {status} (ended {ended_at}), its newest run {execution}"
    for session_id, tokens, summed, calls, counted in connection.execute(
        "SELECT s.id, s.total_tokens, "
        f"(SELECT coalesce(sum({' + '.join(_PARTS)}), 0) FROM llm_interactions l WHERE l.session_id = s.id), "
        "s.operation_count, (SELECT count(*) FROM operations o WHERE o.session_id = s.id) FROM sessions s"
    ):
        if (tokens or 0) != summed:
            yield f"session {session_id} counts {tokens} tokens, its answers have {summed}"
        if calls != counted:
            yield f"session {session_id} counts {calls} calls, there are {counted}"


def comment_faults(evidence: Evidence) -> Iterator[str]:
    """Yield each comment that is noted as sent, and no agent was told, or the other way round."""
    said = (
        "SELECT prompt FROM executions WHERE prompt IS NOT NULL "
        "UNION ALL SELECT json_extract(payload, '$.text') FROM execution_commands WHERE type = 'message'"
    )
    with _reading(evidence) as connection:
        told = "\n".join(text or "" for (text,) in connection.execute(said))
        for text, sent_at in connection.execute("SELECT text, sent_at FROM review_comments"):
            if (text in told) != (sent_at is not None):
                yield f"{text!r} is {'not ' if sent_at is None else ''}noted as sent, and the messages say otherwise"


def approval_faults(evidence: Evidence) -> Iterator[str]:
    """Yield what an agent took as allowed though nobody had decided so, and what was decided twice."""
    with _reading(evidence) as connection:
        decided: dict[str, list[Event]] = {}
        for (payload,) in connection.execute("SELECT payload FROM task_events WHERE event_type = 'approval_decided'"):
            said = json.loads(payload)
            decided.setdefault(said["approval_id"], []).append(said)
        rows = {
            (execution_id, ref): (approval_id, status)
            for approval_id, execution_id, ref, status in connection.execute(
                "SELECT id, execution_id, request_ref, status FROM approvals"
            )
        }
    for row in _talking(evidence):
        for number, attempt in enumerate(evidence.tries[row.id]):
            for event in _events(attempt):
                if event["kind"] != "ask_closed" or event["outcome"] not in {"allowed", "answered"}:
                    continue
                approval_id, status = rows.get((row.id, f"{number}:{event['request_id']}"), ("none", "missing"))
                words = [said["status"] for said in decided.get(approval_id, ())]
                if status != event["outcome"] or status not in words:
                    yield (
                        f"{row.id}: {event['request_id']} was {event['outcome']} for the agent, "
                        f"is {status}, and the trail says {words}"
                    )


def _tries(evidence: Evidence) -> Iterator[tuple[Row, Try, Path]]:
    for row in _talking(evidence):
        folder = evidence.place.executions_dir / row.id
        for attempt in evidence.tries[row.id]:
            aside = folder / f"try-{attempt.number}"
            yield row, attempt, aside if aside.exists() else folder


def _talking(evidence: Evidence) -> Iterator[Row]:
    yield from (row for row in evidence.rows if row.agent_slug in TALKING_AGENTS)


def _events(attempt: Try) -> list[Event]:
    events: list[Event] = []
    for entry in attempt.entries:
        event = entry.get("event")
        if entry.get("type") == "agent_event" and isinstance(event, dict):
            events.append(event)
    return events


def _replay(folder: Path) -> list[Event]:
    spec = json.loads((folder / "spec.json").read_text("utf-8"))
    adapter = make_adapter(spec["conversation"])
    events: list[Event] = []
    for line in (folder / "protocol.jsonl").read_text("utf-8").splitlines():
        try:
            entry = json.loads(line)
        except ValueError:  # the host was killed while it wrote
            break
        at_ms = entry["at_ms"]
        match entry["dir"]:
            case "start":
                step = adapter.start(at_ms)
            case "out":
                # Half a surrogate pair stands there as it is, and came as an escape.
                step = adapter.receive(entry["line"].encode("utf-8", "backslashreplace") + b"\n", at_ms)
            case "command":
                step = adapter.command(entry["command"], at_ms)
            case "end":
                step = adapter.receive_end(at_ms)
            case _:
                continue
        # No journal has a number that is none.
        events += [json.loads(json.dumps(event), parse_constant=lambda _: None) for event in step.events]
    return events


def _comparable(events: list[Event]) -> list[Event]:
    """Return what is journaled of events, whoever tells them."""
    # A command that comes when the agent has finished is refused by the host, which the adapter never hears of.
    told = [event for event in events if event["kind"] not in {"delta", "activity"}]
    return [event for event in told if not str(event.get("error")).startswith("the agent has finished")]


def _column(connection: sqlite3.Connection, table: str, name: str, execution_id: str) -> list[str]:
    statement = f"SELECT {name} FROM {table} WHERE execution_id = ?"
    return [found for (found,) in connection.execute(statement, (execution_id,))]


@contextmanager
def _reading(evidence: Evidence) -> Iterator[sqlite3.Connection]:
    """Open the database for as long as a check reads it."""
    with closing(sqlite3.connect(evidence.place.database, timeout=10)) as connection:
        yield connection
