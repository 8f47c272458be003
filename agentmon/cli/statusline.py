"""``agentmon statusline``: one line below the prompt of Claude Code, which asks for it with every message.

It has to be there at once, so that this imports the standard library alone, and little of it.
"""

import os
import sys
import time

from agentmon.cli.calling import call
from agentmon.cli.output import say_clean_line, say_document
from agentmon.cli.status import find_database_path
from agentmon.cli.statusline_text import status_text
from agentmon.store.status_counts import StatusCounts, find_day_counts
from agentmon.usage.claude_status import MAX_BYTES, ClaudeStatus, read_status
from agentmon.usage.status_reports import leave_report

THEN_TIMEOUT_S = 5.0
"""How long the person's own command may take; Claude Code asks again with the next message."""
_MAX_THEN_BYTES = 65_536
_HINT = "agentmon statusline [--json] [--then COMMAND], with the JSON of Claude Code on standard input"


def print_statusline(words: list[str]) -> int:
    """Print the line for what is on standard input; what cannot be understood there is left out of the line.

    Args:
        words: What follows ``statusline`` on the command line.
    """
    command, as_json = "", False
    rest = list(words)
    while rest:
        word = rest.pop(0)
        if word == "--json":
            as_json = True
        elif word == "--then" and rest:
            command = rest.pop(0)
        elif word.startswith("--then="):
            command = word.partition("=")[2]
        else:
            return _refuse(word)
    written = _read_input()
    calls = os.environ.get("AGENTMON_CALLS")
    if calls:
        # In a sandbox the person's own command stays there, and only what it is told of goes out.
        if command and not as_json:
            _print_other(command, written)
        return call(calls, ["statusline", *(["--json"] if as_json else [])], written=written)
    status = read_status(written)
    now_ms = time.time_ns() // 1_000_000
    database_path = _find_database()
    if as_json:
        say_document(_document(status, find_day_counts(database_path)))
    else:
        if command:
            _print_other(command, written)
        say_clean_line(status_text(status, find_day_counts(database_path)))
    if status is not None and (status.windows or (status.session_ref and status.context_tokens is not None)):
        leave_report(database_path, status.session_ref, status.report(now_ms))
    return 0


def _refuse(word: str) -> int:
    from agentmon.cli.output import tell_error  # noqa: PLC0415 - only a wrong command line needs it

    tell_error(f"statusline does not take {word!r}" if word != "--then" else "--then needs a command", hint=_HINT)
    return 2


def _find_database() -> str:
    """Return where the database is; empty where that is not settled, which other commands complain of."""
    try:
        return find_database_path()
    except Exception:  # noqa: BLE001 - whatever is wrong there, the line tells what Claude Code said
        return ""


def _read_input() -> bytes:
    if sys.stdin is None or sys.stdin.isatty():
        return b""
    try:
        return sys.stdin.buffer.read(MAX_BYTES)
    except OSError:
        return b""


def _print_other(command: str, written: bytes) -> None:
    """Print what the person's own status line says about the same input; whatever goes wrong there ends with it."""
    import contextlib  # noqa: PLC0415 - only a chained command needs them
    import signal  # noqa: PLC0415
    import subprocess  # noqa: PLC0415

    started: list[int] = []
    asked: list[int] = []
    is_starting = True

    def end() -> None:
        for pid in started:
            with contextlib.suppress(OSError):
                os.killpg(pid, signal.SIGKILL)

    def end_with_this(number: int, _: object) -> None:
        # Claude Code ends a line that takes too long, and knows nothing of what that has started. While it is being
        # started its number is not known yet.
        if is_starting:
            asked.append(number)
            return
        end()
        os._exit(128 + number)

    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, end_with_this)
    try:
        process = subprocess.Popen(
            ["/bin/sh", "-c", command],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
    except (OSError, ValueError):
        is_starting = False
        return
    started.append(process.pid)
    is_starting = False
    if asked:
        end_with_this(asked[0], None)
    try:
        said, _ = process.communicate(written, timeout=THEN_TIMEOUT_S)
    except subprocess.TimeoutExpired as late:
        said = late.output or b""
        end()
    lines = said[:_MAX_THEN_BYTES].strip(b"\r\n")
    if lines:
        sys.stdout.flush()
        sys.stdout.buffer.write(lines + b"\n")
        sys.stdout.buffer.flush()


def _document(status: ClaudeStatus | None, day: StatusCounts | None) -> dict[str, object]:
    document: dict[str, object] = {"is_understood": status is not None}
    if status is not None:
        document |= {
            "session_id": status.session_ref,
            "model": status.model,
            "context": {
                "tokens": status.context_tokens,
                "limit_tokens": status.context_limit_tokens,
                "used_percent": status.context_percent,
            },
            "session_cost_nano": status.cost_nano,
            "windows": [
                {"name": one.name, "used_percent": one.used_percent, "resets_at_ms": one.resets_at_ms}
                for one in status.windows
            ],
        }
    names = ("cost_today_nano", "unpriced_today", "budget_today_nano")
    return {**document, **{name: None if day is None else getattr(day, name) for name in names}}
