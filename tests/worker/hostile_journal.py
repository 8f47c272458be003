"""Journals whose agents write whatever they can, to do harm."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from random import Random

_AT_MS: Final = 1_767_268_800_000
_HOSTILE: Final[tuple[object, ...]] = (
    *(None, True, -1, 0, 2**63 - 1, 2**63, -(2**64), 10**400, 1e308, float("nan"), float("inf")),
    *(
        "",
        "\0",
        "a\0b",
        "\ud800",
        "\udfff\udc80",
        "\u202e",
        "\x1b[31m\x07",
        "…",
        "\ufffd",
        "[secret]",
        "sk-" + "a" * 40,
    ),
    *("x" * 70_000, "é" * 9_000, "\n" * 9_000, "token=" * 5_000, "{" * 3_000, "`" * 3_000, '"$(' * 3_000),
    *("find . -exec " * 1_500, "/" + "a/" * 9_000, "/" + "a" * 300_000, "../" * 3_000, "~/\0", "$(echo rm) -rf ~"),
    *([], {}, [None], [[]], [{}], {"": {"": []}}, {"\0": "\ud800"}, ["/a\0b"] * 2_000, [1] * 9_000),
    {str(number): number for number in range(5_000)},
)
_RAW: Final = (
    *(b"[" * 10_000, b'{"a":' * 10_000, b"[" * 60 + b"]" * 60, b"\xff\xfe\x00", b"", b"null", b"{}", b"\0" * 900),
    *(b"9" * 5_000, b"-" * 900, b'{"n":1}', b'{"n":1,"at_ms":1e999,"type":"output"}', "é".encode()[:1] * 900),
    b'{"n":1,"at_ms":1,"type":"agent_event","event":{"kind":"ask","tool_input":' + b'{"a":' * 900 + b"1" + b"}" * 903,
)
_INSIDE: Final[dict[str, list[dict[str, object]]]] = {
    "steps": [{"text": "one", "status": "pending"}],
    "questions": [{"question": "Which?", "header": "h", "choices": [{"key": "a", "label": "A", "description": "d"}]}],
}
_EVENTS: Final[tuple[dict[str, object], ...]] = (
    {"kind": "session", "session_ref": "s", "title": "t", "model": "m", "models": ["m"], "transcript_path": "/t"},
    {"kind": "activity", "activity": "working", "note": "n", "source": "s"},
    {"kind": "message", "message_ref": "m", "role": "assistant", "text": "All *is* well", "continues": False},
    {"kind": "plan", "steps": _INSIDE["steps"]},
    {
        "kind": "tool_started",
        "tool_ref": "t",
        "tool_name": "Bash",
        "type": "execute",
        "target": "ls",
        "answer_key": "k",
    },
    {"kind": "tool_finished", "tool_ref": "t", "status": "success", "output_summary": "o", "duration_ms": 5},
    {"kind": "diff", "path": "/a", "change_type": "modify", "diff": "@@ -1 +1 @@\n-a\n+b\n", "added_lines": 1},
    {
        "kind": "ask",
        "request_id": "r",
        "ask_kind": "permission",
        "tool_name": "Bash",
        "type": "execute",
        "target": "ls",
        "title": "Bash: ls",
        "detail": "ls",
        "reason": "why",
        "input_digest": "d",
        "tool_input": {"command": "ls", "cwd": "/"},
        "can_edit_input": True,
    },
    {
        "kind": "ask",
        "request_id": "w",
        "ask_kind": "permission",
        "tool_name": "Edit",
        "type": "write",
        "target": "/a",
        "title": "Edit: /a",
        "tool_input": {"file_path": "/a", "paths": ["/b"]},
    },
    {"kind": "ask", "request_id": "q", "ask_kind": "question", "title": "Which?", "questions": _INSIDE["questions"]},
    {"kind": "ask_closed", "request_id": "r", "outcome": "allowed", "command_id": "c"},
    {"kind": "usage", "key": "k", "model": "m", "provider": "p", "prompt_tokens": 1, "latency_ms": 1},
    {"kind": "cost", "cost_nano": 5},
    {"kind": "turn_started", "prompt_refs": ["c"]},
    {"kind": "turn_ended", "outcome": "completed", "text": "t", "error": "e"},
    {"kind": "notice", "level": "warn", "text": "t", "topic": "t"},
    {"kind": "command", "command_id": "c", "was_obeyed": True, "error": "e"},
    {"kind": "invented", "field": "f"},
)
_ENTRIES: Final[tuple[dict[str, object], ...]] = (
    {"type": "host_started", "pid": 1, "start_time": "1", "boot_id": "b", "python": "3"},
    {"type": "agent_started", "pid": 1, "argv": ["a", "b"]},
    {"type": "output", "bytes": 1, "lines": 1, "left_out_bytes": 0, "last_line": "l"},
    {"type": "paused", "command_id": "c", "pids": [1], "still_running": [2]},
    {"type": "signal_sent", "signal": "INT", "pids": [1]},
    {"type": "stragglers", "processes": [{"pid": 1, "command": "c"}]},
    {"type": "could_not_stop", "processes": [{"pid": 1, "command": "c"}]},
    {"type": "time_limit_reached", "timeout_s": 1.5},
    {"type": "start_failed", "error": "e", "errno": 2},
    {"type": "exited", "exit_code": 0, "signal": None},
    {"type": "invented", "field": "f"},
)


def hostile_lines(dice: Random, count: int) -> bytes:
    """Return that many lines of a journal; most are entries with something hostile in one to three of their fields."""
    return b"".join(_line(dice, number) + b"\n" for number in range(1, count + 1))


def _line(dice: Random, number: int) -> bytes:
    if dice.random() < 0.1:
        return dice.choice(_RAW)
    entry: dict[str, object] = {"n": number, "at_ms": dice.choice((0, 1, _AT_MS, _AT_MS + number, 253_370_764_799_999))}
    if dice.random() < 0.2:
        entry |= _broken(dice, dice.choice(_ENTRIES))
    else:
        event = dict(dice.choice(_EVENTS))
        if event["kind"] == "ask":
            event["request_id"] = f"{event['request_id']}{dice.randrange(9)}"
            if "tool_input" in event and dice.random() < 0.5:
                event["tool_input"] = {dice.choice(("command", "file_path", "cwd", "any")): dice.choice(_HOSTILE)}
        entry |= {"type": "agent_event", "event": _broken(dice, event)}
    line = json.dumps(entry).encode()
    return line[: dice.randrange(len(line))] if dice.random() < 0.03 else line


def _broken(dice: Random, whole: dict[str, object]) -> dict[str, object]:
    broken = dict(whole)
    for _ in range(dice.randrange(4) if broken else 0):
        name = dice.choice(list(broken))
        inside = broken[name]
        if isinstance(inside, dict) and inside and dice.random() < 0.8:
            broken[name] = _broken(dice, inside)
        elif isinstance(inside, list) and inside and isinstance(inside[0], dict) and dice.random() < 0.8:
            broken[name] = [_broken(dice, inside[0])]
        elif name not in {"type", "kind"} or dice.random() < 0.1:
            broken[name] = dice.choice(_HOSTILE)
    return broken
