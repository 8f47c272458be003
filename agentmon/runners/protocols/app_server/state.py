"""What is known of one conversation with Codex, and what goes out to it."""

from __future__ import annotations

from agentmon.domain.json_values import text_in
from agentmon.runners.protocols.adapter import encode_line
from agentmon.runners.protocols.app_server.calls import ItemLog
from agentmon.runners.protocols.app_server.modes import DEFAULT_MODE, MODES
from agentmon.runners.protocols.app_server.notices import LimitBook
from agentmon.runners.protocols.app_server.usage import UsageCounter
from agentmon.runners.protocols.conversation import Conversation

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from agentmon.runners.protocols.app_server.asks import Ask
    from agentmon.runners.protocols.messages import Message


class ThreadState(Conversation):
    """The state of a thread, and the words for what became of commands and requests."""

    __slots__ = (
        "_answer_keys",
        "_ask_count",
        "_asks",
        "_begun_turns",
        "_calls",
        "_effort",
        "_has_person_the_word",
        "_interrupts",
        "_is_plan_told",
        "_is_starting_turn",
        "_is_turn_running",
        "_last_text",
        "_mode",
        "_model",
        "_next_id",
        "_notices",
        "_pending",
        "_policy",
        "_provider",
        "_settings_changed",
        "_thread_id",
        "_thread_models",
        "_turn_id",
        "_turn_refs",
        "_usage",
        "_version",
        "_waiting",
        "_was_interrupted",
    )

    def __init__(self, launch: Mapping[str, object]) -> None:
        """``launch`` is the object ``conversation`` of ``spec.json``; see ``runners/protocols/__init__.py``."""
        super().__init__(launch)
        self._calls = ItemLog()
        self._notices = LimitBook()
        self._usage = UsageCounter()
        self._answer_keys: dict[str, str] = {}
        """For each thread the answer whose calls run now, where its key is known."""

        self._pending: dict[int | str, tuple[str, object]] = {}
        """Ids of requests to Codex that it has not answered yet: what they are for, and what belongs to it."""
        self._next_id = 1
        self._waiting: list[Message] = []
        self._interrupts: list[str] = []
        """Commands that wait for the turn to have an id."""
        self._asks: dict[int | str, Ask] = {}
        self._ask_count = 0

        self._thread_id = ""
        self._turn_id = ""
        self._begun_turns: dict[str, None] = {}
        self._turn_refs: tuple[str, ...] = ()
        self._is_starting_turn = False
        self._is_turn_running = False
        """Whether Codex has said that the turn began; before that it refuses to interrupt one that has an id."""
        self._was_interrupted = False
        self._has_person_the_word = False
        self._last_text = ""

        wanted_mode = text_in(launch, "permission_mode")
        self._mode = wanted_mode if wanted_mode in MODES else DEFAULT_MODE
        self._model = text_in(launch, "model")
        self._provider = ""
        self._effort: object = None
        self._policy: dict[str, object] = {}
        self._settings_changed = False
        self._is_plan_told = False
        self._thread_models: dict[str, tuple[str, str]] = {}
        self._version = ""

    @property
    def is_finished(self) -> bool:
        """Whether all that was asked is done, so that the agent's input may be closed."""
        if self._is_ended or self._is_over:
            return True
        if self._turn_id or self._is_starting_turn or self._waiting or self._has_pending_steer():
            return False
        return self._is_finish_wanted or (
            bool(self._outcome) and not self._has_person_the_word and not self._has_person_to_answer
        )

    def _is_idle(self) -> bool:
        return bool(self._thread_id) and not self._turn_id and not self._is_starting_turn

    def _has_pending_steer(self) -> bool:
        return any(purpose in {"steer", "reason"} for purpose, _ in self._pending.values())

    def _is_ours(self, params: dict[str, object]) -> bool:
        return bool(self._thread_id) and params.get("threadId") == self._thread_id

    def _request(
        self,
        method: str,
        params: dict[str, object],
        purpose: str,
        context: object = None,
        request_id: str | None = None,
    ) -> None:
        message_id: int | str = request_id or self._next_id
        if request_id is None:
            self._next_id += 1
        self._pending[message_id] = (purpose, context)
        self._send.append(encode_line({"id": message_id, "method": method, "params": params}))

    def _reject(self, server_id: int | str, code: int, message: str) -> None:
        self._send.append(encode_line({"id": server_id, "error": {"code": code, "message": message}}))

    def _close_ask(self, ask: Ask, outcome: str, command_id: str | None) -> None:
        del self._asks[ask.server_id]
        self._events.append(self._closed_asks.add(ask.request_id, outcome, command_id))

    def _withdraw_asks(self, thread_id: str | None) -> None:
        for ask in [ask for ask in self._asks.values() if thread_id is None or ask.thread_id == thread_id]:
            self._close_ask(ask, "withdrawn", None)
