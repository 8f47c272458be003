"""What is open in a conversation, and what goes out to the agent."""

from __future__ import annotations

from agentmon.domain.json_values import one_line, text_in
from agentmon.domain.letters import cut
from agentmon.runners.protocols.acp.calls import CallBook
from agentmon.runners.protocols.acp.messages import MessageBook
from agentmon.runners.protocols.acp.options import Options
from agentmon.runners.protocols.adapter import encode_line
from agentmon.runners.protocols.conversation import Conversation
from agentmon.runners.protocols.notices import NoticeBook

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from agentmon.runners.protocols.acp.asks import Ask
    from agentmon.runners.protocols.acp.questions import Question
    from agentmon.runners.protocols.adapter import Event
    from agentmon.runners.protocols.messages import Message

MAX_FIELD_CHARACTERS = 4_096


class AcpState(Conversation):
    """One session, and the words for what became of commands and requests."""

    __slots__ = (
        "_agent_name",
        "_ask_count",
        "_asks",
        "_calls",
        "_cancelled_at_ms",
        "_capabilities",
        "_has_person_the_word",
        "_history_asks",
        "_is_interrupting",
        "_is_listening",
        "_is_turn_open",
        "_login_methods",
        "_messages",
        "_next_id",
        "_notices",
        "_options",
        "_pending",
        "_session_id",
        "_told",
        "_turn_count",
        "_turn_key",
        "_unheard",
        "_waiting",
        "_wanted",
        "_was_replayed",
    )  # fmt: skip

    def __init__(self, launch: Mapping[str, object]) -> None:
        """``launch`` is the object ``conversation`` of ``spec.json``; see ``runners/protocols/__init__.py``."""
        super().__init__(launch)
        self._next_id = 1
        self._pending: dict[int, tuple[str, object]] = {}
        """Ids of requests to the agent that it has not answered: what they are for, and what belongs to it."""
        self._capabilities: Mapping[str, object] = {}
        self._login_methods: list[dict[str, object]] = []
        self._agent_name = ""
        self._session_id = ""
        self._is_listening = False
        """Whether updates are of this run, and not of a history that is told again."""
        self._was_replayed = False
        self._history_asks = 0
        self._options = Options()
        self._wanted: list[tuple[str, str]] = []
        """What is chosen before the first message: ``model`` or ``mode``, and which."""
        self._told: Event = {}
        self._waiting: list[Message] = []
        self._unheard: list[str] = []
        """Texts that the agent hears together with the next message."""
        self._turn_count = 0
        self._turn_key = ""
        self._is_turn_open = False
        self._is_interrupting = False
        self._cancelled_at_ms = 0
        self._has_person_the_word = False
        self._asks: dict[str, Ask | Question] = {}
        self._ask_count = 0
        self._calls = CallBook()
        self._messages = MessageBook()
        self._notices = NoticeBook()

    @property
    def is_finished(self) -> bool:
        """Whether the last turn has ended, no message waits, and no person has the word after an interrupt."""
        if self._is_ended or self._is_over:
            return True
        if self._is_turn_open or self._waiting:
            return False
        return self._is_finish_wanted or (
            bool(self._outcome) and not self._has_person_the_word and not self._has_person_to_answer
        )

    def _request(self, method: str, params: Mapping[str, object], purpose: str, context: object = None) -> None:
        self._pending[self._next_id] = (purpose, context)
        message = {"jsonrpc": "2.0", "id": self._next_id, "method": method, "params": params}
        self._next_id += 1
        self._send.append(encode_line(message))

    def _notify(self, method: str, params: Mapping[str, object]) -> None:
        self._send.append(encode_line({"jsonrpc": "2.0", "method": method, "params": params}))

    def _respond(self, server_id: int | str, result: Mapping[str, object]) -> None:
        self._send.append(encode_line({"jsonrpc": "2.0", "id": server_id, "result": result}))

    def _respond_error(self, server_id: int | str, code: int, text: str) -> None:
        error = {"code": code, "message": text}
        self._send.append(encode_line({"jsonrpc": "2.0", "id": server_id, "error": error}))

    def _close_ask(self, ask: Ask | Question, outcome: str, command_id: str | None) -> None:
        del self._asks[ask.request_id]
        self._events.append(self._closed_asks.add(ask.request_id, outcome, command_id))

    def _withdraw_asks(self) -> None:
        for ask in list(self._asks.values()):
            self._respond(ask.server_id, ask.withdrawn)
            self._close_ask(ask, "withdrawn", None)

    def _set_activity_of_turn(self, source: str) -> None:
        for ask in self._asks.values():
            self._set_activity("waiting", str(ask.event["title"]), source)
            return
        if self._is_turn_open:
            self._set_activity("working", "", source)

    def _note_session(self, **told: object) -> None:
        """Tell of the session what is new."""
        news: Event = {}
        for name, value in told.items():
            kept = cut(one_line(value, 500), MAX_FIELD_CHARACTERS) if isinstance(value, str) else value
            if kept and self._told.get(name) != kept:
                news[name] = self._told[name] = kept
        if news:
            self._events.append({"kind": "session", **news})

    def _launched(self, name: str) -> str:
        return text_in(self._launch, name)
