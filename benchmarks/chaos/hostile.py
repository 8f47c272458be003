"""The hostile agent: speaks Claude Code's protocol, and puts into it whatever a program could do harm with.

Run with ``-I -S``. What it is told to do names a seed, ``hostile 4711``, and at times a number of events, ``flood
20000``. It asks for leave and does nothing of what it asked. Before the end of some runs it says so in a file outside
the home, so that somebody can fill the disk at its last words.
"""

from __future__ import annotations

import os
import random
import re
import sys
import time
import uuid

sys.path.append(os.path.abspath(__file__).rsplit(os.sep, 3)[0])  # noqa: PTH100 - no other import before the path is set

from agentmon.runners.demo_agent.wire import Interrupted, Wire

_MARKER = "AGENTMON_EXECUTION_ID"
_LAST_WORDS = 1_500
_PATHS = (
    *(
        "/etc/\0passwd",
        "\0",
        "/" + "a/" * 524_288,
        "a" * 1_048_576,
        "../" * 3_000,
        "~/\0",
        "\ud800/\udfff",
        "/\u202egnp.exe",
    ),
    *("", "/dev/zero", "\x1b[31m\x07", "/" + "é" * 9_000),
)
_COMMANDS = (
    *("find . -exec " * 15_400, "ls \0 -la", "echo \ud800", "$(echo rm) -rf ~", '"$(' * 3_000, "`" * 3_001),
    *("sudo " * 40_000, "bash -c '" * 20_000, "a;" * 100_000, "cat <<X\n" * 20_000, "|" * 200_000, "\\" * 200_001),
    *("x=1 " * 50_000, "{" * 200_000, "\n" * 200_000, "git push --force", "rm -rf /"),
)
_VALUES: tuple[object, ...] = (
    *(10**400, -(2**64), 2**63, float("nan"), float("inf"), 1e308, None, True, [], {}, [[]], [1] * 9_000),
    *("99999-13-45T99:99:99Z", "-4712-01-01", "0000-00-00", "1e999", {"": {"": []}}, {"\0": "\ud800"}, ["\0"] * 2_000),
    {str(number): number for number in range(5_000)},
)
_DEEP_ASK = (
    b'{"type":"control_request","request_id":"deep","request":{"subtype":"can_use_tool","tool_name":"Bash",'
    b'"input":{"command":"ls","a":'
)
_ODD_ANSWER = (
    b'{"type":"assistant","message":{"id":"NAME\\u0000","model":"\\ud800","content":[{"type":"text",'
    b'"text":"\\u0000\\udc80"}],"usage":{"input_tokens":9e99,"output_tokens":-5,"cache_read_input_tokens":NaN}}}'
)
_LIMIT = b'{"type":"rate_limit_event","rate_limit_info":{"status":'
_RAW = (
    *(b"[" * 10_000, b'{"a":' * 10_000, b"[" * 10_000 + b"]" * 10_000, b"\xff\xfe\x00", b"", b"null", b"\0" * 900),
    *(b"9" * 5_000, b'{"type":"assistant","message":' * 3_000, b'{"type":1e999}', b'{"type":"result","usage":[]}'),
    _DEEP_ASK + b"[" * 10_000 + b"]" * 10_000 + b"}}}",
    _DEEP_ASK.replace(b"deep", b"less deep") + b"[" * 900 + b"]" * 900 + b"}}}",
    b'{"type":"control_cancel_request","request_id":"less deep"}',
    _LIMIT + b'"rejected","resetsAt":1e300,"rateLimitType":"\\u0000"}}',
    _LIMIT + b'"allowed","resetsAt":-99999999999999,"utilization":NaN}}',
    _ODD_ANSWER,
    b'{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"\\u0000","content":"\\ud800"}]}}',
)


def main(arguments: list[str]) -> int:
    """Play until the input is closed; return the exit code."""
    options = dict(zip(arguments[::2], arguments[1::2], strict=False))
    session_id = options.get("--session-id") or options.get("--resume") or "hostile"
    wire = Wire(pace_s=0.01, session_id=session_id)
    code = 0
    while (said := wire.next_prompt()) is not None:
        code = 0
        try:
            wire.begin_turn()
            _play(wire, said, options["--ledgers"])
            wire.end_turn("all of it was said")
        except Interrupted:
            code = 1
            wire.end_turn("", is_interrupted=True)
    return code


def _play(wire: Wire, said: str, ledgers: str) -> None:
    seed, flood = (re.search(rf"{word} (\d+)", said) for word in ("hostile", "flood"))
    chance = random.Random(seed.group(1) if seed else said)
    for _ in range(chance.randrange(2, 5)):
        what = chance.random()
        if what < 0.3:
            # An answer that has the name of another one is that one.
            _say_raw(chance.choice(_RAW).replace(b"NAME", uuid.uuid4().hex.encode()))
        elif what < 0.4:
            wire.say(chance.choice(("a\0b", "\ud800 \udfff", "\x1b[2J\x07", "*" * 3_000, "[" * 3_000, "`" * 9_001)))
        else:
            _ask(wire, *_request(chance))
    if flood:
        _flood(wire, int(flood.group(1)))
    if chance.random() < 0.5:
        _say_the_last_words(wire, ledgers)


def _request(chance: random.Random) -> tuple[str, dict[str, object]]:
    """Return a tool and what is put into it."""
    kind = chance.random()
    if kind < 0.35:
        return chance.choice(("Read", "Edit", "Write", "NotebookEdit")), {
            "file_path": chance.choice(_PATHS),
            "old_string": "\0",
            "new_string": chance.choice(_PATHS[:4]),
        }
    if kind < 0.75:
        return "Bash", {"command": chance.choice(_COMMANDS), "timeout": chance.choice(_VALUES)}
    if kind < 0.9:
        name = chance.choice(("WebFetch", "\0", "mcp__\ud800", "T" * 70_000, "TodoWrite", "ExitPlanMode"))
        return name, {"url": chance.choice(_PATHS), "plan": chance.choice(_COMMANDS), "x": chance.choice(_VALUES)}
    question = {"question": "\0which?", "header": "\ud800", "options": [{"label": "\0"}] * chance.choice((1, 400))}
    return "AskUserQuestion", {"questions": [question] * chance.choice((1, 60))}


def _ask(wire: Wire, name: str, tool_input: dict[str, object]) -> None:
    call_id = wire.call(name, tool_input)
    answer = wire.ask(call_id, name, tool_input)
    wire.result(call_id, str(answer.get("behavior")), is_error=answer.get("behavior") != "allow")


def _flood(wire: Wire, events: int) -> None:
    """Start and end calls as fast as anybody takes it."""
    for number in range(events // 2):
        call = f'{{"type":"tool_use","id":"flood-{number}","name":"Read","input":{{"file_path":"/{number}"}}}}'
        done = f'{{"type":"tool_result","tool_use_id":"flood-{number}","content":"{number}"}}'
        _say_raw(
            f'{{"type":"assistant","message":{{"content":[{call}]}}}}\n'
            f'{{"type":"user","message":{{"content":[{done}]}}}}'.encode()
        )
        if number % 500 == 0:
            # Hears whether somebody interrupts.
            wire.result(f"flood-{number}", "so far")


def _say_the_last_words(wire: Wire, ledgers: str) -> None:
    path = os.path.join(ledgers, f"{os.environ.get(_MARKER, 'none')}.brink")  # noqa: PTH118 - lean
    with open(path, "wb"):  # noqa: PTH123 - lean
        time.sleep(0.3)
    _flood(wire, _LAST_WORDS)


def _say_raw(line: bytes) -> None:
    sys.stdout.flush()
    sys.stdout.buffer.write(line + b"\n")
    sys.stdout.buffer.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
