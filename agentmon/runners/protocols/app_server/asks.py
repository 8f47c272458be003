"""What Codex asks of a person, and how an answer is put into its words; each answer is bound to what was asked."""

from __future__ import annotations

from agentmon.domain import codex_items
from agentmon.domain.json_values import (
    MAX_REF_CHARACTERS,
    as_json,
    object_in,
    objects_in,
    one_line,
    text_in,
    texts_in,
)
from agentmon.domain.letters import cut
from agentmon.domain.plain_text import storable
from agentmon.runners.protocols.app_server import items
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
from agentmon.runners.protocols.diffs import MAX_DIFF_CHARACTERS
from agentmon.runners.protocols.forms import form_content, form_questions

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from agentmon.runners.protocols.adapter import Event

COMMAND = "item/commandExecution/requestApproval"
FILE_CHANGE = "item/fileChange/requestApproval"
PERMISSIONS = "item/permissions/requestApproval"
USER_INPUT = "item/tool/requestUserInput"
ELICITATION = "mcpServer/elicitation/request"
METHODS = frozenset({COMMAND, FILE_CHANGE, PERMISSIONS, USER_INPUT, ELICITATION})

MAX_QUESTIONS = 20
MAX_CHOICES = 50
MAX_LABEL_CHARACTERS = 500
MAX_QUESTION_CHARACTERS = 2_000
MAX_EDITABLE_CHARACTERS = 10_000


class Ask:
    """One open request of the agent."""

    __slots__ = ("digest", "event", "method", "params", "question_ids", "server_id", "thread_id", "turn_id")

    def __init__(self, request_id: str, server_id: int | str, method: str, params: dict[str, object]) -> None:
        self.server_id = server_id
        self.method = method
        self.params = params
        self.thread_id = text_in(params, "threadId")
        self.turn_id = text_in(params, "turnId")
        self.question_ids: dict[str, str] = {}
        self.event: Event = {"kind": "ask", "request_id": request_id}
        self.digest = ""

    @property
    def request_id(self) -> str:
        """The id under which the request is known outside."""
        return str(self.event["request_id"])


def make_ask(
    request_id: str, server_id: int | str, method: str, params: dict[str, object], item: dict[str, object]
) -> Ask:
    """Return the request with its event.

    Args:
        request_id: Unique in the conversation.
        server_id: Codex's own id of the request.
        method: One of ``METHODS``.
        params: Of the request.
        item: The item that the request is about, or empty; a request to change files does not repeat the changes.

    Raises:
        ValueError: The request is nested too deeply to be told.
    """
    ask = Ask(request_id, server_id, method, params)
    described = _DESCRIBE[method](ask, item)
    shown = as_json([method, params, item.get("changes")])
    ask.digest = digest_of(shown)
    ask.event |= described
    ask.event["title"] = one_line(str(described["title"]), MAX_LABEL_CHARACTERS)
    ask.event["reason"] = cut(text_in(params, "reason"), items.MAX_SUMMARY_CHARACTERS)
    ask.event["input_digest"] = ask.digest
    if "tool_ref" not in ask.event:
        ask.event["tool_ref"] = cut(text_in(params, "itemId"), MAX_REF_CHARACTERS) or None
    if not shown:
        raise ValueError("The request is nested too deeply.")
    return ask


def make_answer(ask: Ask, answer: Mapping[str, object]) -> tuple[dict[str, object], str, bool]:
    """Return the result for Codex, the ``AskOutcome``, and whether the turn is to be interrupted as well.

    Raises:
        RefusedAnswerError: The answer does not fit what was asked; nothing may be sent.
    """
    require_same_input(answer, ask.digest)
    given_input = answer.get("tool_input")
    if given_input is not None and given_input != ask.event.get("tool_input"):
        raise RefusedAnswerError(INPUT_CANNOT_BE_EDITED)
    decision = answer.get("decision")
    if decision not in ("allow", "allow_for_session", "deny", "answer"):
        raise RefusedAnswerError(PERMISSION_DECISIONS)
    if decision == "allow_for_session" and not ask.event.get("can_allow_for_session"):
        raise RefusedAnswerError(NO_SESSION_PERMISSION)
    return _ANSWER[ask.method](ask, str(decision), answer)


def _describe_command(ask: Ask, item: dict[str, object]) -> Event:
    params = ask.params
    command = text_in(params, "command") or text_in(item, "command")
    shown = codex_items.plain_command(params) or command
    network = object_in(params, "networkApprovalContext")
    host = text_in(network, "host")
    details = [command] if command else []
    if host:
        details.append(f"Network: {text_in(network, 'protocol')} {host}")
    if params.get("cwd"):
        details.append(f"In {text_in(params, 'cwd')}")
    if params.get("additionalPermissions"):
        details.append(f"With more permissions: {as_json(params.get('additionalPermissions'))}")
    kind = text_in(params, "kind")
    verb = "Type into a running command:" if kind == "writeStdin" else "Run"
    given: Event = {"command": command, "cwd": text_in(params, "cwd")}
    if kind == "writeStdin":
        given["kind"] = kind
    return {
        "ask_kind": "permission",
        "tool_name": "shell",
        "type": codex_items.command_operation(params) if not host else "query",
        "target": cut(host or shown, codex_items.MAX_TARGET_CHARACTERS),
        "title": f"Reach {host}" if host and not command else f"{verb} {shown or 'a command'}",
        "detail": cut("\n".join(details), MAX_DIFF_CHARACTERS),
        "tool_input": given if len(command) <= MAX_EDITABLE_CHARACTERS else {},
        "can_allow_for_session": kind != "humanCommand",
    }


def _describe_file_change(ask: Ask, item: dict[str, object]) -> Event:
    paths = codex_items.target_paths(item)
    root = text_in(ask.params, "grantRoot")
    return {
        "ask_kind": "permission",
        "tool_name": "apply_patch",
        "type": "write",
        "target": paths or cut(root, codex_items.MAX_TARGET_CHARACTERS),
        "title": f"Write below {root}" if root else f"Change {paths}" if paths else "Change files",
        "detail": cut((f"Write below {root}\n" if root else "") + codex_items.patch_text(item), MAX_DIFF_CHARACTERS),
        "can_allow_for_session": True,
    }


def _describe_permissions(ask: Ask, _item: dict[str, object]) -> Event:
    wanted = as_json(object_in(ask.params, "permissions"))
    return {
        "ask_kind": "permission",
        "tool_name": "request_permissions",
        "type": "execute",
        "target": cut(wanted, codex_items.MAX_TARGET_CHARACTERS),
        "title": "Give more permissions",
        "detail": cut(wanted, MAX_DIFF_CHARACTERS),
        "can_allow_for_session": True,
    }


def _describe_user_input(ask: Ask, _item: dict[str, object]) -> Event:
    questions: list[Event] = []
    for number, asked in enumerate(objects_in(ask.params, "questions", MAX_QUESTIONS), 1):
        text = cut(storable(text_in(asked, "question")), MAX_QUESTION_CHARACTERS) or f"Question {number}"
        if text in ask.question_ids:
            text = cut(text, MAX_QUESTION_CHARACTERS - 10) + f" ({number})"
        ask.question_ids[text] = text_in(asked, "id")
        choices: dict[str, Event] = {}
        for option in objects_in(asked, "options", MAX_CHOICES):
            label = cut(text_in(option, "label"), MAX_LABEL_CHARACTERS)
            description = cut(text_in(option, "description"), MAX_QUESTION_CHARACTERS)
            choices.setdefault(label, {"key": label, "label": label, "description": description})
        header = cut(text_in(asked, "header"), MAX_LABEL_CHARACTERS)
        questions.append({"question": text, "header": header, "choices": list(choices.values())})
    return {
        "ask_kind": "question",
        "tool_name": "request_user_input",
        "title": str(questions[0]["question"]) if questions else "A question",
        "questions": questions,
    }


def _describe_elicitation(ask: Ask, _item: dict[str, object]) -> Event:
    params = ask.params
    server = text_in(params, "serverName")
    url = text_in(params, "url")
    message = text_in(params, "message")
    questions, ask.question_ids = form_questions(object_in(params, "requestedSchema"))
    meta = object_in(params, "_meta")
    can_persist = meta.get("persist") == "session" or "session" in texts_in(meta, "persist", 10)
    return {
        "ask_kind": "question" if questions else "permission",
        "tool_ref": None,
        "tool_name": cut(server, 200),
        "target": cut(url or server, codex_items.MAX_TARGET_CHARACTERS),
        "title": message or (f"Open {url}" if url else f"{server} asks"),
        "detail": cut("\n".join(filter(None, (message, url))), MAX_DIFF_CHARACTERS),
        "questions": questions,
        "can_allow_for_session": not questions and can_persist,
    }


def _answer_approval(_ask: Ask, decision: str, answer: Mapping[str, object]) -> tuple[dict[str, object], str, bool]:
    if decision == "answer":
        raise RefusedAnswerError(PERMISSION_DECISIONS)
    if decision == "deny":
        return {"decision": "cancel" if answer.get("interrupts") is True else "decline"}, "denied", False
    return {"decision": "accept" if decision == "allow" else "acceptForSession"}, "allowed", False


def _answer_permissions(ask: Ask, decision: str, answer: Mapping[str, object]) -> tuple[dict[str, object], str, bool]:
    if decision == "answer":
        raise RefusedAnswerError(PERMISSION_DECISIONS)
    if decision == "deny":
        return {"permissions": {}, "scope": "turn"}, "denied", answer.get("interrupts") is True
    wanted = object_in(ask.params, "permissions")
    granted = {name: wanted[name] for name in ("fileSystem", "network") if wanted.get(name) is not None}
    return {"permissions": granted, "scope": "turn" if decision == "allow" else "session"}, "allowed", False


def _answer_user_input(ask: Ask, decision: str, answer: Mapping[str, object]) -> tuple[dict[str, object], str, bool]:
    if decision == "deny":
        return {"answers": {}}, "denied", answer.get("interrupts") is True
    replies = _replies(ask, answer)
    return (
        {"answers": {ask.question_ids[question]: {"answers": texts} for question, texts in replies.items()}},
        "answered",
        False,
    )


def _answer_elicitation(ask: Ask, decision: str, answer: Mapping[str, object]) -> tuple[dict[str, object], str, bool]:
    if decision == "deny":
        return {"action": "cancel" if answer.get("interrupts") is True else "decline", "content": None}, "denied", False
    if not ask.question_ids:
        if decision == "answer":
            raise RefusedAnswerError(PERMISSION_DECISIONS)
        accepted: dict[str, object] = {"action": "accept", "content": {}}
        if decision == "allow_for_session":
            accepted["_meta"] = {"persist": "session"}
        return accepted, "allowed", False
    replies = {ask.question_ids[question]: texts for question, texts in _replies(ask, answer).items()}
    try:
        content = form_content(object_in(ask.params, "requestedSchema"), replies)
    except ValueError as error:
        raise RefusedAnswerError(str(error)) from error
    return {"action": "accept", "content": content}, "answered", False


def _replies(ask: Ask, answer: Mapping[str, object]) -> dict[str, list[str]]:
    """Return the texts for each question that was answered."""
    given = object_in(answer, "answers")
    replies = {}
    for question in given:
        if question not in ask.question_ids:
            raise RefusedAnswerError(FOREIGN_ANSWER)
        reply = given[question]
        replies[question] = [reply] if isinstance(reply, str) else texts_in(given, question, MAX_CHOICES)
    if not any(replies.values()):
        raise RefusedAnswerError(NO_ANSWER)
    return replies


_DESCRIBE = {
    COMMAND: _describe_command,
    FILE_CHANGE: _describe_file_change,
    PERMISSIONS: _describe_permissions,
    USER_INPUT: _describe_user_input,
    ELICITATION: _describe_elicitation,
}
_ANSWER = {
    COMMAND: _answer_approval,
    FILE_CHANGE: _answer_approval,
    PERMISSIONS: _answer_permissions,
    USER_INPUT: _answer_user_input,
    ELICITATION: _answer_elicitation,
}
