"""What agents ask a person, whatever the protocol: which answers fit, which come too late, and what is said of them."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from agentmon.runners.protocols.adapter import Event

MAX_OPEN_ASKS = 64
MAX_CLOSED_ASKS = 512

PERMISSION_DECISIONS = "A permission is allowed or denied."
INPUT_CANNOT_BE_EDITED = "The input of this request cannot be edited."
NO_SESSION_PERMISSION = "The agent does not offer to allow this for the whole session."
NO_ANSWER = "A question needs an answer."
FOREIGN_ANSWER = "An answer names a question that was not asked."


class RefusedAnswerError(ValueError):
    """An answer that is not passed on; its text says why."""


class ClosedAsks:
    """The requests that are settled, so that an answer that comes late is told what became of them."""

    __slots__ = ("_outcomes",)

    def __init__(self) -> None:
        self._outcomes: dict[str, str] = {}

    def __contains__(self, request_id: str) -> bool:
        """Whether the request is settled, as far back as that is remembered."""
        return request_id in self._outcomes

    def add(self, request_id: str, outcome: str, command_id: str | None) -> Event:
        """Take note of the ``AskOutcome`` and return the event ``ask_closed``."""
        self._outcomes[request_id] = outcome
        if len(self._outcomes) > MAX_CLOSED_ASKS:
            del self._outcomes[next(iter(self._outcomes))]
        return {"kind": "ask_closed", "request_id": request_id, "outcome": outcome, "command_id": command_id}

    def refusal(self, request_id: str) -> str:
        """Return why an answer to a request that is not open is not passed on."""
        outcome = self._outcomes.get(request_id)
        return f"That request is settled already: {outcome}." if outcome else "The agent does not ask this."


def digest_of(written: str) -> str:
    """Return the SHA-256 of an input in hexadecimal digits."""
    import hashlib  # noqa: PLC0415 - a conversation without questions does without it

    return hashlib.sha256(written.encode("utf-8", "surrogatepass")).hexdigest()


def require_same_input(answer: Mapping[str, object], digest: str) -> None:
    """Return when the answer names the digest of what was asked.

    Raises:
        RefusedAnswerError: It names another one, or none.
    """
    if answer.get("input_digest") != digest:
        raise RefusedAnswerError("The answer is meant for another input than the one that the agent asks about.")
