"""The end of a program's output as lines that a refusal may stand in, free of escapes, talk and quotations."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from agentmon.domain.plain_text import plain_line

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

TAIL_MAX_BYTES: Final = 16 * 1024
_LINE_MAX_CHARACTERS: Final = 4000
# Terminal programs move the cursor instead of writing blanks.
_CURSOR_FORWARD: Final = re.compile(r"\x1b\[\d*C")
_LINE_BREAK: Final = re.compile(r"\r\n|\n|\r")
_FENCE: Final = re.compile(r"\s{0,3}(?:```|~~~)")
_WORD: Final = re.compile(r"[A-Za-z][A-Za-z_.]{2,50}")
# Records that hold what a model said or a tool printed, whatever else they say.
_TALK_TYPES: Final = frozenset(
    {
        *("user", "message", "text", "tool_use", "tool_result", "step_start", "step_finish", "stream_event"),
        *("item.started", "item.updated", "item.completed", "thinking", "reasoning"),
    },
)
_ERROR_TYPES: Final = frozenset({"error", "turn.failed", "response.failed"})
_STATUS_KEYS: Final = ("api_error_status", "error_status", "status_code", "statusCode", "status", "code")
_WORD_KEYS: Final = ("api_error_type", "type", "code", "status", "name", "reason")
_HTTP_ERRORS: Final = range(400, 600)


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputLine:
    """One line that is not blank, or one line of the message of an error record."""

    number: int
    """Counted from 0 over the lines of the output that are not blank; lines of one record share theirs."""
    text: str
    """What to look at; empty for a record that holds no error, and for quoted lines."""
    is_record: bool
    """Whether the text is a program's own report of an error, taken from a JSON object."""
    facts: str = ""
    """The names and numbers of the reported error, in brackets: ``(HTTP 429, rate_limit_error)``; may be empty."""
    record: str = ""
    """The whole JSON line of such a report."""


def output_lines(output_tail: bytes) -> tuple[OutputLine, ...]:
    """Return the lines of the end of an output, in order; any bytes will do.

    Lines that a carriage return would have overwritten count as lines. What stands between Markdown fences is quoted,
    and so is every JSON object that does not report an error: such lines keep their number and lose their text. So do
    reports that a model's or a tool's answer follows, since the request went through at last.
    """
    text = _CURSOR_FORWARD.sub(" ", output_tail[-TAIL_MAX_BYTES:].decode("utf-8", "replace"))
    plain = [line for line in (plain_line(raw) for raw in _LINE_BREAK.split(text)) if line.strip()]
    # The tail may begin within a fence; the number of fences tells.
    is_quoted = sum(1 for line in plain if _FENCE.match(line)) % 2 == 1
    lines: list[OutputLine] = []
    for number, line in enumerate(plain):
        if _FENCE.match(line):
            is_quoted = not is_quoted
            lines.append(OutputLine(number=number, text="", is_record=False))
            continue
        record = _read_record(line)
        if record is None:
            shown = "" if is_quoted else line[:_LINE_MAX_CHARACTERS]
            lines.append(OutputLine(number=number, text=shown, is_record=False))
            continue
        if _is_progress(record):
            lines = [replace(earlier, text="", facts="") if _is_report(earlier) else earlier for earlier in lines]
        message, facts = _report(record) if not is_quoted else ("", "")
        for part in message.splitlines() or [""]:
            shown = plain_line(part, max_characters=_LINE_MAX_CHARACTERS).strip()
            lines.append(OutputLine(number=number, text=shown, is_record=True, facts=facts, record=line))
    return tuple(lines)


def _is_report(line: OutputLine) -> bool:
    return line.is_record and bool(line.text or line.facts)


def _read_record(line: str) -> Mapping[str, object] | None:
    line = line.strip().removeprefix("data:").strip()
    if not line.startswith(("{", "[{")) or not line.endswith(("}", "]")):
        return None
    try:
        record: object = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if isinstance(record, list):
        record = record[0] if record else None
    return record if isinstance(record, dict) else None


def _is_progress(record: Mapping[str, object]) -> bool:
    kind = record.get("type")
    if kind == "assistant":
        return not _is_told(record)
    item = record.get("item")
    is_warning = isinstance(item, dict) and item.get("type") == "error"
    return kind == "turn.completed" or (isinstance(kind, str) and kind in _TALK_TYPES and not is_warning)


def _is_told(record: Mapping[str, object]) -> bool:
    """Whether an answer is not the model's, but Claude Code's own words for an error."""
    return record.get("is_api_error_message") is True or record.get("isApiErrorMessage") is True


def _report(record: Mapping[str, object]) -> tuple[str, str]:
    """Return the message of a record that reports an error, and the error's facts; both empty for other records."""
    if record.get("type") == "rate_limit_event":
        return _rejected_limit(record.get("rate_limit_info")), ""
    is_told = _is_told(record)
    if _is_progress(record) or (record.get("is_error") is False and not is_told):
        return "", ""
    error = record.get("error")
    is_failed = record.get("is_error") is True or record.get("status") == "error" or record.get("type") in _ERROR_TYPES
    if not (is_told or is_failed or (error and isinstance(error, str | dict))):
        return "", ""
    messages = (text.strip() for text in (*_error_messages(error), *_own_messages(record, is_told=is_told)))
    facts = ", ".join(dict.fromkeys(_facts(record)))
    return next((message for message in messages if message), ""), f"({facts})" if facts else ""


def _error_messages(error: object) -> Iterator[str]:
    """Yield the messages of an error object; the nested one is opencode's."""
    if isinstance(error, dict):
        nested = error.get("data")
        for holder in (error, nested if isinstance(nested, dict) else {}):
            message = holder.get("message")
            if isinstance(message, str):
                yield message


def _own_messages(record: Mapping[str, object], *, is_told: bool) -> Iterator[str]:
    message = record.get("message")
    content = message.get("content") if is_told and isinstance(message, dict) else None
    for part in content if isinstance(content, list) else ():
        if isinstance(part, dict) and isinstance(part.get("text"), str):
            yield part["text"]
    errors = record.get("errors")
    for text in (message, record.get("result"), *(errors if isinstance(errors, list) else ()), record.get("error")):
        if isinstance(text, str):
            yield text


def _facts(record: Mapping[str, object]) -> Iterator[str]:
    error = record.get("error")
    holders: list[Mapping[str, object]] = []
    if isinstance(error, dict):
        nested = error.get("data")
        holders = [error, nested if isinstance(nested, dict) else {}]
    for holder in (record, *holders):
        for key in _STATUS_KEYS:
            status = holder.get(key)
            if isinstance(status, int) and not isinstance(status, bool) and status in _HTTP_ERRORS:
                yield f"HTTP {status}"
    for holder in holders:
        for key in _WORD_KEYS:
            word = holder.get(key)
            if isinstance(word, str) and _WORD.fullmatch(word):
                yield word
    for word in (record.get("api_error_type"), error):
        if isinstance(word, str) and _WORD.fullmatch(word):
            yield word


def _rejected_limit(facts: object) -> str:
    """Return the words for Claude Code's own report of a limit, when it means that requests are refused."""
    if not isinstance(facts, dict) or facts.get("status") != "rejected":
        return ""
    name, reset = facts.get("rateLimitType"), facts.get("resetsAt")
    words = name.replace("_", " ") if isinstance(name, str) else "usage"
    return f"{words} limit reached, resets {reset}" if isinstance(reset, int) else f"{words} limit reached"
