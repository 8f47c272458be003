"""The vendor's windows and the context, as the ``token_count`` events of a rollout of Codex tell them.

Each event repeats both, so that the last ones of a stretch are enough.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from agentmon.domain.limit_readings import ContextReading, LimitReading, window_name
from agentmon.usage.fields import count_in, moment_in, object_in, parse_record, text_in

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_MARK: Final = b'"token_count"'
_LIMIT_MARK: Final = b'"used_percent"'
_CONTEXT_MARK: Final = b'"last_token_usage"'
_MOST_LINES: Final = 4
"""So many events are looked at, from the last one back: some tell only one of both."""
_LIMIT: Final = "codex"
"""What the limit of all models is called; older releases do not name it."""
_MAX_PERCENT: Final = 10_000
_MAX_SECONDS: Final = 10**11


@dataclass(frozen=True, slots=True, kw_only=True)
class CodexLimits:
    """What the last events of a stretch tell."""

    limits: tuple[LimitReading, ...] = ()
    contexts: tuple[ContextReading, ...] = ()
    """At most one."""


def last_limits(chunk: bytes, session_ref: str) -> CodexLimits:
    """Return what whole lines of a rollout tell last.

    Args:
        chunk: Whole lines.
        session_ref: The conversation whose context it is; empty when it is that of a subagent, which is not told.
    """
    limits: tuple[LimitReading, ...] = ()
    context: ContextReading | None = None
    for line in _last_lines(chunk):
        if (limits or _LIMIT_MARK not in line) and (context or not session_ref or _CONTEXT_MARK not in line):
            continue
        record = parse_record(line) or {}
        payload, at_ms = object_in(record, "payload"), moment_in(record, "timestamp")
        if record.get("type") != "event_msg" or payload.get("type") != "token_count" or not at_ms:
            continue
        limits = limits or _limits_in(object_in(payload, "rate_limits"), at_ms)
        context = context or _context_in(object_in(payload, "info"), session_ref, at_ms)
        if limits and (context is not None or not session_ref):
            break
    return CodexLimits(limits=limits, contexts=() if context is None else (context,))


def _last_lines(chunk: bytes) -> Iterator[bytes]:
    end = len(chunk)
    for _ in range(_MOST_LINES):
        at = chunk.rfind(_MARK, 0, end)
        if at < 0:
            return
        begin = chunk.rfind(b"\n", 0, at) + 1
        line_end = chunk.find(b"\n", at)
        yield chunk[begin : line_end if line_end >= 0 else len(chunk)]
        end = begin


def _limits_in(told: Mapping[str, object], at_ms: int) -> tuple[LimitReading, ...]:
    account = text_in(told, "limit_id", 200) or _LIMIT
    found = []
    for name in ("primary", "secondary"):
        window = object_in(told, name)
        used = window.get("used_percent")
        if isinstance(used, bool) or not isinstance(used, (int, float)):
            continue
        if 0 <= used <= _MAX_PERCENT:
            minutes = count_in(window, "window_minutes") or None
            found.append(
                LimitReading(
                    account=account,
                    window=window_name(minutes, name),
                    window_minutes=minutes,
                    used_percent=float(used),
                    resets_at_ms=_reset_in(window, at_ms),
                    captured_at_ms=at_ms,
                )
            )
    return tuple(found)


def _reset_in(window: Mapping[str, object], at_ms: int) -> int | None:
    """Return when a window ends; releases of 2025 say in how many seconds."""
    if resets_at_s := _seconds_in(window, "resets_at"):
        return resets_at_s * 1000
    resets_in_s = _seconds_in(window, "resets_in_seconds")
    return at_ms + resets_in_s * 1000 if resets_in_s else None


def _seconds_in(window: Mapping[str, object], name: str) -> int:
    seconds = window.get(name)
    return seconds if type(seconds) is int and 0 < seconds < _MAX_SECONDS else 0


def _context_in(info: Mapping[str, object], session_ref: str, at_ms: int) -> ContextReading | None:
    tokens = count_in(object_in(info, "last_token_usage"), "total_tokens")
    if not session_ref or not tokens:
        return None
    limit = count_in(info, "model_context_window") or None
    return ContextReading(session_ref=session_ref, tokens=tokens, limit_tokens=limit, at_ms=at_ms)
