"""What Claude asks a person by ``can_use_tool``, and the answers that it takes."""

from __future__ import annotations

import json

from agentmon.domain.claude_tools import tool_target, tool_type
from agentmon.domain.json_values import objects_in, one_line, text_in
from agentmon.domain.letters import cut
from agentmon.domain.plain_text import storable
from agentmon.runners.protocols.asks import (
    FOREIGN_ANSWER,
    INPUT_CANNOT_BE_EDITED,
    NO_ANSWER,
    NO_SESSION_PERMISSION,
    PERMISSION_DECISIONS,
    RefusedAnswerError,
    digest_of,
    require_same_input,
)
from agentmon.runners.protocols.stream_json.diffs import input_diff

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from agentmon.runners.protocols.adapter import Event

MAX_DETAIL_CHARACTERS = 40_000
MAX_EDITABLE_CHARACTERS = 20_000
MAX_QUESTIONS = 20
MAX_CHOICES = 50
_WRITE_KEYS = {"file_path", "notebook_path", "content", "new_source", "old_string", "new_string", "edits"}
DENIED = "The user does not allow this."


class Ask:
    """One open request: what was asked, and all that an answer needs."""

    __slots__ = ("digest", "event", "is_of_subagent", "questions", "suggestions", "tool_input", "tool_ref")

    def __init__(self, request_id: str, tool_ref: str, request: Mapping[str, object], plan: str) -> None:
        """``plan`` is the text of the call that asks, for a request that does not repeat it."""
        self.tool_ref = tool_ref
        self.is_of_subagent = bool(text_in(request, "agent_id"))
        tool_input = request.get("input")
        self.tool_input: dict[str, object] = tool_input if isinstance(tool_input, dict) else {}
        name = cut(text_in(request, "tool_name"), 200) or "a tool"
        written = json.dumps(self.tool_input, ensure_ascii=False)
        self.digest = digest_of(written)
        self.suggestions = session_permissions(objects_in(request, "permission_suggestions"))
        self.questions = _questions(self.tool_input) if name == "AskUserQuestion" else []
        kind = "question" if self.questions else "plan" if name == "ExitPlanMode" else "permission"
        can_edit = kind == "permission" and len(written) <= MAX_EDITABLE_CHARACTERS
        self.event: Event = {
            "kind": "ask",
            "request_id": request_id,
            "ask_kind": kind,
            "tool_ref": tool_ref or None,
            "tool_name": name,
            "type": tool_type(name),
            "target": tool_target(name, self.tool_input),
            "title": _title(kind, name, self.tool_input, self.questions),
            "detail": cut(_detail(kind, name, self.tool_input, plan), MAX_DETAIL_CHARACTERS),
            "reason": _reason(request, self.tool_input),
            "tool_input": json.loads(written) if len(written) <= MAX_EDITABLE_CHARACTERS else {},
            "input_digest": self.digest,
            "can_allow_for_session": bool(self.suggestions) and kind == "permission",
            "can_edit_input": can_edit,
            "questions": self.questions,
        }

    def answer(self, command: Mapping[str, object]) -> tuple[dict[str, object], str]:
        """Return the response for Claude and the ``AskOutcome``.

        Raises:
            RefusedAnswerError: The answer does not fit the request.
        """
        require_same_input(command, self.digest)
        decision = text_in(command, "decision")
        if decision == "deny":
            response: dict[str, object] = {"behavior": "deny", "message": text_in(command, "reason") or DENIED}
            if command.get("interrupts") is True:
                response["interrupt"] = True
            return response, "denied"
        if self.questions:
            if decision not in {"answer", "allow"}:
                raise RefusedAnswerError("A question is answered or denied.")
            return {
                "behavior": "allow",
                "updatedInput": {**self.tool_input, "answers": self._answers(command)},
            }, "answered"
        if decision not in {"allow", "allow_for_session"}:
            raise RefusedAnswerError(PERMISSION_DECISIONS)
        response = {"behavior": "allow", "updatedInput": self._edited_input(command)}
        if decision == "allow_for_session":
            if not self.event["can_allow_for_session"]:
                raise RefusedAnswerError(NO_SESSION_PERMISSION)
            response["updatedPermissions"] = self.suggestions
        return response, "allowed"

    def _edited_input(self, command: Mapping[str, object]) -> dict[str, object]:
        edited = command.get("tool_input")
        if edited is None or edited == self.tool_input:
            return self.tool_input
        if not isinstance(edited, dict) or not self.event["can_edit_input"]:
            raise RefusedAnswerError(INPUT_CANNOT_BE_EDITED)
        return edited

    def _answers(self, command: Mapping[str, object]) -> dict[str, str]:
        given = command.get("answers")
        if not isinstance(given, dict) or not given:
            raise RefusedAnswerError(NO_ANSWER)
        # A person answers the question as it can be stored, and Claude knows it as it wrote it.
        asked = {storable(str(question["question"])): str(question["question"]) for question in self.questions}
        answers = {}
        for question, answer in given.items():
            chosen = [answer] if isinstance(answer, str) else answer
            shown = storable(str(question))
            if shown not in asked:
                raise RefusedAnswerError(FOREIGN_ANSWER)
            if not isinstance(chosen, list | tuple) or not chosen or not all(isinstance(one, str) for one in chosen):
                raise RefusedAnswerError("An answer is a text or a list of texts.")
            answers[asked[shown]] = ", ".join(chosen)
        if set(asked.values()) != set(answers):
            raise RefusedAnswerError("Every question needs an answer.")
        return answers


def session_permissions(suggestions: list[dict[str, object]]) -> list[dict[str, object]]:
    """Return the suggestions as they apply to this session alone; a change of mode only when nothing narrower is there.

    Claude suggests, for one command, a rule for all sessions together with a mode that allows every edit.
    """
    narrow = [suggestion for suggestion in suggestions if text_in(suggestion, "type") in {"addRules", "addDirectories"}]
    has_rule = any(suggestion["type"] == "addRules" for suggestion in narrow)
    chosen = narrow if has_rule else suggestions
    return [{**suggestion, "destination": "session"} for suggestion in chosen]


def _questions(tool_input: Mapping[str, object]) -> list[dict[str, object]]:
    questions: list[dict[str, object]] = []
    for asked in objects_in(tool_input, "questions", MAX_QUESTIONS):
        text = text_in(asked, "question")
        if not text or len(text) > MAX_DETAIL_CHARACTERS or any(text == known["question"] for known in questions):
            continue
        choices: dict[str, dict[str, str]] = {}
        for option in objects_in(asked, "options", MAX_CHOICES):
            label = text_in(option, "label")
            if label and len(label) <= 1_000:  # noqa: PLR2004 - a longer label is no choice
                description = cut(text_in(option, "description"), 2_000)
                choices.setdefault(label, {"key": label, "label": label, "description": description})
        questions.append(
            {
                "question": text,
                "header": one_line(text_in(asked, "header"), 100),
                "choices": list(choices.values()),
                "is_multiple": asked.get("multiSelect") is True,
            }
        )
    return questions


def _title(kind: str, name: str, tool_input: Mapping[str, object], questions: list[dict[str, object]]) -> str:
    if kind == "question":
        return one_line(str(questions[0]["question"]), 200)
    if kind == "plan":
        return "Carry out this plan?"
    target = one_line(tool_target(name, tool_input), 160)
    return f"{one_line(name, 60)}: {target}" if target else one_line(name, 60)


def _detail(kind: str, name: str, tool_input: Mapping[str, object], plan: str) -> str:
    if kind == "plan":
        return text_in(tool_input, "plan") or plan
    if kind == "question":
        return ""
    shown, told = "", set()
    if name == "Bash":
        shown, told = text_in(tool_input, "command"), {"command", "description", "timeout"}
    elif tool_type(name) == "write":
        shown, told = input_diff(name, tool_input)[0], _WRITE_KEYS
    if not shown:
        return json.dumps(tool_input, ensure_ascii=False, indent=2) if tool_input else ""
    others = {key: value for key, value in tool_input.items() if key not in told and value not in (None, False)}
    return f"{shown}\n\n{json.dumps(others, ensure_ascii=False)}" if others else shown


def _reason(request: Mapping[str, object], tool_input: Mapping[str, object]) -> str:
    told = (text_in(tool_input, "description"), text_in(request, "decision_reason"))
    reasons = "; ".join(one_line(reason, 500) for reason in told if reason)
    return "".join(letter for letter in reasons if letter.isprintable())
