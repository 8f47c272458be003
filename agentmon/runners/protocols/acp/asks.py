"""What an agent asks by ``session/request_permission``, and the answers that it takes."""

from __future__ import annotations

import json

from agentmon.domain.json_values import object_in, objects_in, one_line, read_object, text_in
from agentmon.domain.letters import cut
from agentmon.runners.protocols.acp.calls import MAX_INPUT_CHARACTERS
from agentmon.runners.protocols.asks import (
    INPUT_CANNOT_BE_EDITED,
    NO_SESSION_PERMISSION,
    PERMISSION_DECISIONS,
    RefusedAnswerError,
    digest_of,
    require_same_input,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from agentmon.runners.protocols.acp.calls import Call
    from agentmon.runners.protocols.adapter import Event

MAX_DETAIL_CHARACTERS = 40_000
MAX_OPTIONS = 20
_SHOWN_KEYS = ("command", "cmd", "description", "timeout")
_FOLDER_KEYS = ("cwd", "workdir", "dir_path", "directory")
CANCELLED: dict[str, object] = {"outcome": {"outcome": "cancelled"}}


class Ask:
    """One open request: what was asked, and all that an answer needs."""

    __slots__ = ("digest", "event", "options", "request_id", "server_id", "tool_ref")

    withdrawn = CANCELLED
    """The result for the agent when nobody answers any more."""

    def __init__(
        self, request_id: str, server_id: int | str, params: Mapping[str, object], call: Call, working_dir: str
    ) -> None:
        """``request_id`` is the adapter's own, ``server_id`` the agent's; ``call`` has learned what is asked about."""
        self.request_id = request_id
        self.server_id = server_id
        self.tool_ref = call.tool_ref
        self.options: dict[str, str] = _options(params)
        asked = [object_in(params, "toolCall"), call.input_text]
        self.digest = digest_of(json.dumps(asked, ensure_ascii=False))
        is_whole = len(call.input_text) <= MAX_INPUT_CHARACTERS and bool(call.input)
        detail, reason = _detail(call, working_dir)
        shown = one_line(call.target or call.title, 160)
        self.event: Event = {
            "kind": "ask",
            "request_id": request_id,
            "ask_kind": "plan" if call.kind == "switch_mode" else "permission",
            "tool_ref": call.tool_ref,
            "tool_name": call.name or "a tool",
            "type": call.type,
            "target": call.target,
            "title": f"{call.name}: {shown}" if call.name and shown != call.name else shown or "A tool",
            "detail": cut(detail, MAX_DETAIL_CHARACTERS),
            "reason": reason,
            "tool_input": (read_object(call.input_text) or {}) if is_whole else {},
            "input_digest": self.digest,
            "can_allow_for_session": "allow_always" in self.options,
        }

    def answer(self, command: Mapping[str, object]) -> tuple[dict[str, object], str]:
        """Return the result for the agent and the ``AskOutcome``.

        Raises:
            RefusedAnswerError: The answer does not fit the request.
        """
        require_same_input(command, self.digest)
        decision = text_in(command, "decision")
        if decision == "deny":
            option = "" if command.get("interrupts") is True else self.options.get("reject_once", "")
            return _selected(option) if option else CANCELLED, "denied"
        if decision not in {"allow", "allow_for_session"}:
            raise RefusedAnswerError(PERMISSION_DECISIONS)
        edited = command.get("tool_input")
        if edited is not None and edited != self.event["tool_input"]:
            raise RefusedAnswerError(INPUT_CANNOT_BE_EDITED)
        kind = "allow_once" if decision == "allow" else "allow_always"
        if kind not in self.options:
            is_once = decision == "allow"
            raise RefusedAnswerError(
                "The agent does not offer to allow this once." if is_once else NO_SESSION_PERMISSION
            )
        return _selected(self.options[kind]), "allowed"


def _selected(option: str) -> dict[str, object]:
    return {"outcome": {"outcome": "selected", "optionId": option}}


def _options(params: Mapping[str, object]) -> dict[str, str]:
    """Return kind to id; of several that allow always, the one for this session, else the first."""
    options: dict[str, str] = {}
    for option in objects_in(params, "options", MAX_OPTIONS):
        kind, option_id = text_in(option, "kind"), text_in(option, "optionId")
        if not option_id or len(option_id) > MAX_INPUT_CHARACTERS or len(kind) > MAX_OPTIONS:
            continue
        if kind not in options or (kind == "allow_always" and "session" in text_in(option, "name").lower()):
            options[kind] = option_id
    return options


def _detail(call: Call, working_dir: str) -> tuple[str, str]:
    """Return all that is to be decided on, and the words that only explain it."""
    reason = one_line(text_in(call.input, "description"), 500)
    told = call.texts
    if told and (told == text_in(call.input, "description") or _is_at_home(told, working_dir)):
        reason, told = one_line(told, 500), ""
    if call.command:
        others = {key: value for key, value in call.input.items() if not _is_plain(key, value, working_dir)}
        parts = [call.command, json.dumps(others, ensure_ascii=False) if others else ""]
    elif call.diffs:
        parts = ["\n".join(f"{diff['path']}\n{diff['diff']}" for diff in call.diffs)]
    else:
        shown = json.dumps(call.input, ensure_ascii=False, indent=2) if call.input else ""
        parts = [call.title, *([shown] if shown else call.locations)]
    return "\n\n".join(filter(None, [*parts, told])), "".join(letter for letter in reason if letter.isprintable())


def _is_plain(key: str, value: object, working_dir: str) -> bool:
    """Return whether the part of a command's input says no more than the command and its description do."""
    return key in _SHOWN_KEYS or value in (None, False, "") or (key in _FOLDER_KEYS and value == working_dir)


def _is_at_home(told: str, working_dir: str) -> bool:
    """Return whether the words begin as Gemini's do of a command that runs in the working folder itself."""
    return bool(working_dir) and told.startswith(f"[current working directory {working_dir}]")
