"""Claude's asides that a person may want to know: retries, limits, refusals, hooks that failed."""

from __future__ import annotations

import json
import time

from agentmon.domain.json_values import count_in, object_in, one_line, text_in
from agentmon.runners.protocols.notices import NoticeBook, notice

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from agentmon.runners.protocols.adapter import Event

LAST_RESET_S = 4_102_444_800
"""The year 2100 in Unix time: a later one is in another unit."""

SILENT = {
    "system/" + subtype
    for subtype in (
        "thinking_tokens", "task_started", "task_progress", "task_updated", "task_notification", "task_summary",
        "task_list_statuses", "background_tasks_changed", "per_turn_effort_changed", "hook_started", "hook_progress",
        "files_persisted", "file_snapshot", "turn_duration", "post_turn_summary", "session_metadata",
        "commands_changed", "permission_check_status", "shell_cwd", "vcs_state_changed", "stop_hook_summary",
        "elicitation_complete", "memory_recall", "memory_saved", "control_request_progress", "away_summary",
    )
} | {"tool_progress", "tool_use_summary", "prompt_suggestion", "keep_alive", "transcript_mirror", "active_goal",
     "autocompact_state"}  # fmt: skip
"""Types that are known and say nothing that is kept (Claude Code 2.1.332)."""


class NewsBook(NoticeBook):
    """Makes notices of messages."""

    __slots__ = ("_limit_status",)

    def __init__(self) -> None:
        super().__init__()
        self._limit_status = ""

    def note(self, name: str, message: Mapping[str, object]) -> list[Event]:
        """Return what the message has to say.

        Args:
            name: Its type, with ``/`` and its subtype when it has one.
            message: All of it.
        """
        if name in SILENT:
            return []
        if name == "rate_limit_event":
            return self._limit(object_in(message, "rate_limit_info"))
        make = _MAKERS.get(name)
        if make is not None:
            return make(message)
        return self.unknown(name, json.dumps(message, ensure_ascii=False))

    def _limit(self, info: Mapping[str, object]) -> list[Event]:
        status = text_in(info, "status")
        if status == self._limit_status or not status:
            return []
        is_first = not self._limit_status
        self._limit_status = one_line(status, 40)
        window = one_line(text_in(info, "rateLimitType"), 40).replace("_", " ")
        named = f" ({window})" if window else ""
        if status == "allowed":
            return [] if is_first else [notice("info", f"The usage limit{named} is no longer near.", "rate_limit")]
        if status == "rejected":
            return [notice("error", f"The usage limit{named} is reached{_until(info)}.", "rate_limit")]
        return [notice("warn", f"The usage limit{named} is near.", "rate_limit")]


def _until(info: Mapping[str, object]) -> str:
    resets_at_s = count_in(info, "resetsAt")
    if not 0 < resets_at_s < LAST_RESET_S:
        return ""
    return time.strftime(", until %Y-%m-%d %H:%M UTC", time.gmtime(resets_at_s))


def _retry(message: Mapping[str, object]) -> list[Event]:
    status = count_in(message, "error_status")
    cause = f"The API answered {status}" if status else "The API could not be reached"
    named = one_line(text_in(message, "error"), 100).removeprefix("unknown")
    delay_s = count_in(message, "retry_delay_ms") / 1000
    counted = f"try {count_in(message, 'attempt')} of {count_in(message, 'max_retries')}"
    return [notice("warn", f"{cause}{f' ({named})' if named else ''}; {counted} in {delay_s:.1f} s.", "retry")]


def _denied(message: Mapping[str, object]) -> list[Event]:
    name = one_line(text_in(message, "tool_name"), 60) or "A tool"
    why = one_line(text_in(message, "message"), 500)
    return [
        notice("warn", f"{name} was not allowed: {why}" if why else f"{name} was not allowed.", "permission_denied")
    ]


def _hook(message: Mapping[str, object]) -> list[Event]:
    outcome = text_in(message, "outcome")
    if outcome not in {"error", "cancelled"}:
        return []
    name = one_line(text_in(message, "hook_name"), 100) or "A hook"
    said = one_line(text_in(message, "stderr") or text_in(message, "output"), 500)
    verb = "failed" if outcome == "error" else "was cancelled"
    return [notice("warn", f"{name} {verb}: {said}" if said else f"{name} {verb}.", "hook")]


def _compacted(_message: Mapping[str, object]) -> list[Event]:
    return [notice("info", "The conversation was shortened to fit the model.", "compact")]


def _told(level: str, topic: str, *keys: str) -> _Maker:
    def make(message: Mapping[str, object]) -> list[Event]:
        for key in keys:
            said = text_in(message, key)
            if said:
                return [notice(level, said, topic)]
        return []

    return make


def _informational(message: Mapping[str, object]) -> list[Event]:
    level = "warn" if text_in(message, "level") == "warning" else "info"
    return _told(level, "info", "content")(message)


if TYPE_CHECKING:
    from collections.abc import Callable

    _Maker = Callable[[Mapping[str, object]], list[Event]]

_MAKERS: dict[str, _Maker] = {
    "system/api_retry": _retry,
    "system/permission_denied": _denied,
    "system/hook_response": _hook,
    "system/compact_boundary": _compacted,
    "system/informational": _informational,
    "system/notification": _told("info", "info", "text"),
    "system/api_error": _told("warn", "retry", "message", "content", "error"),
    "system/model_fallback": _told("warn", "model", "content", "message"),
    "system/model_refusal_fallback": _told("warn", "model", "content", "message"),
    "system/model_refusal_no_fallback": _told("warn", "model", "content", "message"),
    "system/session_writes_lost": _told("warn", "storage", "content", "message"),
    "system/instruction_size_warning": _told("warn", "info", "content", "message"),
    "system/local_command_output": _told("info", "command", "content"),
    "auth_status": _told("error", "login", "error"),
}
