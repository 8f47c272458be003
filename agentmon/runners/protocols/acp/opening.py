"""How a conversation begins: the greeting, the session, the choice of model and mode."""

from __future__ import annotations

from agentmon.domain.json_values import object_in, objects_in, one_line, ref_in, text_in
from agentmon.runners.protocols.acp.errors import error_line, is_login_needed, login_line
from agentmon.runners.protocols.acp.turns import TurnKeeper
from agentmon.runners.protocols.notices import notice

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

PROTOCOL_VERSION = 1
NO_RESUME = "It has no way to resume a conversation."
NO_FORK = "It has no way to copy a conversation."
MAX_HISTORY_ASKS = 50
CAPABILITIES: dict[str, object] = {
    "fs": {"readTextFile": False, "writeTextFile": False},
    "terminal": False,
    "elicitation": {"form": {}},
}


class Opener(TurnKeeper):
    """Opens the session that the launch wants."""

    __slots__ = ()

    def _greet(self) -> None:
        client = {"name": "agentmon", "version": self._launched("client_version") or "0"}
        greeting = {"protocolVersion": PROTOCOL_VERSION, "clientCapabilities": CAPABILITIES, "clientInfo": client}
        self._request("initialize", greeting, "initialize")

    def _take_greeting(self, result: Mapping[str, object], error: Mapping[str, object] | None) -> None:
        if error is not None:
            self._fail_to_begin(f"The agent does not take the greeting: {error_line(error)}")
            return
        if result.get("protocolVersion") != PROTOCOL_VERSION:
            version = one_line(str(result.get("protocolVersion")), 20)
            self._fail_to_begin(f"The agent speaks version {version} of the protocol, not {PROTOCOL_VERSION}.")
            return
        self._capabilities = object_in(result, "agentCapabilities")
        self._login_methods = objects_in(result, "authMethods")
        agent = object_in(result, "agentInfo")
        self._agent_name = one_line(text_in(agent, "name"), 100)
        self._note_session(agent_version=text_in(agent, "version"))
        self._ask_for_session()

    def _ask_for_session(self) -> None:
        place: dict[str, object] = {"cwd": self._launched("working_dir") or "/", "mcpServers": []}
        start, ref = self._launched("start") or "fresh", self._launched("session_ref")
        if start == "fresh":
            if self._launched("instructions"):
                self._unheard.append(self._launched("instructions"))
            self._request("session/new", place, "session", start)
        elif start == "fork" and self._offers("fork"):
            self._request("session/fork", {"sessionId": ref, **place}, "session", start)
        elif start == "fork":
            self._fail_to_begin(self._cannot_go_on("The agent", start, NO_FORK))
        elif self._offers("resume"):
            self._request("session/resume", {"sessionId": ref, **place}, "session", start)
        elif self._can_load:
            self._request("session/load", {"sessionId": ref, **place}, "session", start)
        else:
            self._fail_to_begin(self._cannot_go_on("The agent", start, NO_RESUME))

    def _offers(self, name: str) -> bool:
        return isinstance(object_in(self._capabilities, "sessionCapabilities").get(name), dict)

    @property
    def _can_load(self) -> bool:
        return self._capabilities.get("loadSession") is True

    def _take_session(self, result: Mapping[str, object], error: Mapping[str, object] | None, start: object) -> None:
        ref = self._launched("session_ref")
        if error is not None:
            if is_login_needed(error):
                told = login_line(error, self._login_methods)
            elif start == "fresh":
                told = f"The agent could not begin: {error_line(error)}"
            else:
                told = self._cannot_go_on("The agent", str(start), error_line(error))
            self._fail_to_begin(told)
            return
        self._session_id = ref if start == "resume" else ref_in(result, "sessionId")
        if not self._session_id:
            self._fail_to_begin("The agent named no conversation.")
            return
        self._options.learn(result)
        obstacles = {
            "cannot_resume": None if self._offers("resume") or self._can_load else NO_RESUME,
            "cannot_fork": None if self._offers("fork") else NO_FORK,
        }
        self._note_session(session_ref=self._session_id, **obstacles, **self._options.fields())
        self._plan_choices()
        if start == "resume":
            self._let_history_pass()
        else:
            self._choose_next()

    def _let_history_pass(self) -> None:
        """Ask for what is so already, where a history may follow the answer: what comes before the reply is old.

        Gemini answers ``session/load`` in the midst of telling the conversation again, and goes on with that while it
        answers more. So it is asked until nothing comes between a request and its reply, or often enough.
        """
        mode = self._options.mode
        if self._offers("resume") or mode.config_id or not mode.current or self._history_asks >= MAX_HISTORY_ASKS:
            self._choose_next()
            return
        self._was_replayed = False
        self._history_asks += 1
        self._request("session/set_mode", {"sessionId": self._session_id, "modeId": mode.current}, "history")

    def _take_history_passed(self) -> None:
        if self._was_replayed:
            self._let_history_pass()
        else:
            self._choose_next()

    def _plan_choices(self) -> None:
        for name, field in (("model", "model"), ("mode", "permission_mode")):
            choice = self._options.model if name == "model" else self._options.mode
            wanted = choice.named(self._launched(field))
            if wanted and wanted != choice.current:
                self._wanted.append((name, wanted))

    def _choose_next(self) -> None:
        """Choose what is wanted, one after the other; the first message follows."""
        while self._wanted and not self._is_over:
            name, value = self._wanted.pop(0)
            request = self._options.request(name, value)
            offered = self._options.mode.offered
            if request is None:
                shown = one_line(value, 100)
                text = f"The agent offers no choice of a {name}; {shown} holds only where its command line says so."
                self._events.append(notice("warn", text, name))
            elif name == "mode" and offered and value not in offered:
                self._fail_to_begin(f"The agent has no mode {one_line(value, 100)}; it has {', '.join(offered[:20])}.")
            else:
                method, params = request
                self._request(method, {"sessionId": self._session_id, **params}, "choice", (name, value))
                return
        if self._is_over:
            return
        self._is_listening = True
        if not self._waiting:
            self._set_activity("waiting", "", "session")
        self._start_next_turn()

    def _take_choice(self, result: Mapping[str, object], error: Mapping[str, object] | None, context: object) -> None:
        name, value = context if isinstance(context, tuple) else ("", "")
        if error is not None:
            told = f"The agent does not take the {name} {one_line(str(value), 100)}: {error_line(error)}"
            self._fail_to_begin(told)
            return
        self._note_choice(name, value, result)
        self._choose_next()

    def _note_choice(self, name: str, value: str, result: Mapping[str, object]) -> None:
        """Tell what is chosen now: as the agent says, else as it was asked for."""
        choice = self._options.model if name == "model" else self._options.mode
        choice.current = value
        self._options.learn(result)
        self._note_session(**self._options.fields())

    def _fail_to_begin(self, error: str) -> None:
        self._is_over = True
        told = one_line(error, 1_000)
        for message in self._waiting:
            self._refuse(message.command_id, told)
        self._waiting.clear()
        self._wanted.clear()
        for purpose, context in self._pending.values():
            if purpose == "set" and isinstance(context, tuple):
                self._refuse(str(context[0]), told)
        self._pending.clear()
        self._end_turn("failed", told)
