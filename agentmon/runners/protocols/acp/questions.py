"""What an agent asks by ``elicitation/create``: a form of questions, and the answers that it takes."""

from __future__ import annotations

from agentmon.domain.json_values import as_json, object_in, one_line, text_in, texts_in
from agentmon.domain.letters import cut
from agentmon.runners.protocols.acp.asks import MAX_DETAIL_CHARACTERS
from agentmon.runners.protocols.asks import (
    FOREIGN_ANSWER,
    NO_ANSWER,
    PERMISSION_DECISIONS,
    RefusedAnswerError,
    digest_of,
    require_same_input,
)
from agentmon.runners.protocols.forms import MAX_CHOICES, form_content, form_questions

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from agentmon.runners.protocols.acp.calls import Call
    from agentmon.runners.protocols.adapter import Event

MAX_TITLE_CHARACTERS = 160
CANCELLED_FORM: dict[str, object] = {"action": "cancel"}


class Question:
    """One open form: what was asked, and all that an answer needs."""

    __slots__ = ("_names", "_schema", "digest", "event", "request_id", "server_id", "tool_ref")

    withdrawn = CANCELLED_FORM
    """The result for the agent when nobody answers any more."""

    def __init__(self, request_id: str, server_id: int | str, params: Mapping[str, object], call: Call | None) -> None:
        """``request_id`` is the adapter's own, ``server_id`` the agent's; ``call`` is the one that asks, when open.

        Raises:
            ValueError: The form is nested too deeply.
        """
        self.request_id = request_id
        self.server_id = server_id
        self.tool_ref = None if call is None else call.tool_ref
        self._schema = object_in(params, "requestedSchema")
        questions, self._names = form_questions(self._schema)
        shown = as_json(params)
        if not shown:
            raise ValueError("The form is nested too deeply.")
        self.digest = digest_of(shown)
        message = text_in(params, "message")
        first = str(questions[0]["question"]) if questions else "The agent asks something"
        self.event: Event = {
            "kind": "ask",
            "request_id": request_id,
            "ask_kind": "question" if questions else "permission",
            "tool_ref": self.tool_ref,
            "tool_name": "" if call is None else call.name,
            "title": one_line(message, MAX_TITLE_CHARACTERS) or one_line(first, MAX_TITLE_CHARACTERS),
            "detail": cut(message, MAX_DETAIL_CHARACTERS),
            "input_digest": self.digest,
            "questions": questions,
        }

    def answer(self, command: Mapping[str, object]) -> tuple[dict[str, object], str]:
        """Return the result for the agent and the ``AskOutcome``.

        Raises:
            RefusedAnswerError: The answer does not fit the form.
        """
        require_same_input(command, self.digest)
        decision = text_in(command, "decision")
        if decision == "deny":
            return {"action": "cancel" if command.get("interrupts") is True else "decline"}, "denied"
        if not self._names:
            if decision != "allow":
                raise RefusedAnswerError(PERMISSION_DECISIONS)
            return {"action": "accept", "content": {}}, "allowed"
        if decision != "answer":
            raise RefusedAnswerError(NO_ANSWER)
        try:
            content = form_content(self._schema, self._replies(object_in(command, "answers")))
        except ValueError as error:
            raise RefusedAnswerError(str(error)) from error
        return {"action": "accept", "content": content}, "answered"

    def _replies(self, given: Mapping[str, object]) -> dict[str, list[str]]:
        """Return the texts for each field that was answered."""
        replies: dict[str, list[str]] = {}
        for question, reply in given.items():
            if question not in self._names:
                raise RefusedAnswerError(FOREIGN_ANSWER)
            texts = [reply] if isinstance(reply, str) else texts_in(given, question, MAX_CHOICES)
            replies[self._names[question]] = texts
        if not any(replies.values()):
            raise RefusedAnswerError(NO_ANSWER)
        return replies
