"""What every adapter keeps of its conversation, and how commands of a client are told apart and answered."""

from __future__ import annotations

from io import StringIO

from agentmon.domain.json_values import MAX_REF_CHARACTERS, one_line, text_in
from agentmon.domain.unheard import AGENT_ENDED
from agentmon.runners.protocols.adapter import Adapter, JsonLines, Step
from agentmon.runners.protocols.asks import ClosedAsks
from agentmon.runners.protocols.last_message import TAIL_CHARACTERS, gives_up, open_question
from agentmon.runners.protocols.messages import Message, has_room, message_events

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from agentmon.runners.protocols.adapter import Event

MAX_ERROR_CHARACTERS = 1_000
MAX_PENDING = 64
"""Requests to an agent that it has not answered."""
MAX_UNFINISHED = 64
MAX_UNFINISHED_CHARACTERS = 1_000_000
"""Most that is kept of all of them."""
MAX_TOLD_REFS = 1_024
MAX_REASONS = 10

INTERRUPTED = "The turn was interrupted."

UNKNOWN_COMMAND = "This command is not known."
NO_TEXT = "A message needs a text."
NO_NAME = "It needs a name."
NOTHING_TO_INTERRUPT = "The agent does nothing that could be interrupted."
TOO_MUCH_WAITS = "Too much waits for the agent already."
TOO_MANY_COMMANDS = "Too many commands wait for the agent."
ENDED_AT_WORK = "The agent ended in the middle of its work."
ENDED_BEFORE_BEGIN = "The agent ended before it began."


def unknown_mode(offered: list[str]) -> str:
    """Return that a mode is none of those that the agent offers."""
    return f"The agent has these modes: {', '.join(offered[:20])}."


class Conversation(Adapter):
    """The events and bytes of the step that is made now, how the newest turn ended, and what the agent does."""

    __slots__ = (
        "_activity", "_at_ms", "_closed_asks", "_denied_calls", "_error", "_events", "_has_broken_off", "_held_up_by",
        "_interruptions", "_is_denial_explained", "_is_denied", "_is_ended", "_is_finish_wanted", "_is_over",
        "_last_message", "_launch", "_lines", "_noted", "_outcome", "_reasons", "_send", "_stray_text", "_told_refs",
        "_unfinished",
    )  # fmt: skip

    def __init__(self, launch: Mapping[str, object]) -> None:
        """``launch`` is the object ``conversation`` of ``spec.json``; see ``runners/protocols/__init__.py``."""
        super().__init__(launch)
        self._launch = dict(launch)
        self._lines = JsonLines()
        self._events: list[Event] = []
        self._send: list[bytes] = []
        self._at_ms = 0
        self._activity: tuple[str, str] = ("", "")
        self._outcome = ""
        self._error: str | None = None
        self._closed_asks = ClosedAsks()
        self._is_finish_wanted = False
        self._is_ended = False
        """Whether the agent writes nothing any more."""
        self._is_over = False
        """Whether nothing could be begun."""
        self._has_broken_off = False
        self._stray_text = ""
        self._held_up_by: tuple[str, str] = ("", "")
        """What a person has to say after a turn that ended well, and what tells so; empty texts for nothing."""
        self._is_denied = False
        """Whether a request of this turn was denied and no call has gone well since."""
        self._denied_calls = 0
        """Of how many requests of this turn that were denied the calls are not told as blocked yet."""
        self._is_denial_explained = False
        """Whether the last denial came with a reason: what the agent says then is its answer to that."""
        self._last_message: tuple[str, str] = ("", "")
        """The id of the newest message of the agent in this turn, and the end of its text."""
        self._noted = 0
        """How many of the events of this step were looked at."""
        self._unfinished: dict[str, tuple[StringIO, bool]] = {}
        """The messages that are being written: what came of each, and whether it is a thought."""
        self._told_refs: dict[str, None] = {}
        """The newest messages that were told, of which late pieces begin none."""
        self._interruptions = 0
        self._reasons: list[str] = []
        """Why requests were denied, where no answer has a place for it: the agent hears it with its next message."""

    @property
    def outcome(self) -> str:
        """The ``TurnOutcome`` of the newest turn that ended, or an empty text."""
        return self._outcome

    @property
    def error(self) -> str | None:
        """One line for a person, when the newest turn failed or nothing could be begun."""
        return self._error

    @property
    def has_broken_off(self) -> bool:
        """Whether the agent ended without a word on how its work went."""
        return self._has_broken_off

    @property
    def stray_text(self) -> str:
        """The newest line of its output that was no message; empty without one."""
        return self._stray_text

    def command(self, command: Mapping[str, object], at_ms: int) -> Step:
        """Act on a command of a client; see ``Adapter.command``."""
        self._at_ms = at_ms
        command_id = str(command.get("id") or "")
        kind = text_in(command, "type")
        if self._is_ended or self._is_over:
            self._refuse(command_id, AGENT_ENDED)
        elif kind == "message":
            self._take_message(command_id, text_in(command, "text"))
        elif kind == "answer":
            self._take_answer(command_id, command)
        elif kind == "interrupt":
            self._take_interrupt(command_id)
        elif kind == "finish":
            self._is_finish_wanted = True
            self._obey(command_id)
        elif kind == "set_model":
            self._take_name(command_id, "model", text_in(command, "model").strip())
        elif kind == "set_permission_mode":
            self._take_name(command_id, "mode", text_in(command, "permission_mode").strip())
        else:
            self._refuse(command_id, UNKNOWN_COMMAND)
        return self._step()

    def _take_message(self, command_id: str, text: str) -> None:
        if text.strip():
            self._say(command_id, text)
        else:
            self._refuse(command_id, NO_TEXT)

    def _take_name(self, command_id: str, name: str, value: str) -> None:
        if value and len(value) <= MAX_REF_CHARACTERS:
            self._choose(command_id, name, value)
        else:
            self._refuse(command_id, NO_NAME)

    def _say(self, command_id: str, text: str) -> None:
        """Give the agent the message, or let it wait."""
        raise NotImplementedError

    def _take_answer(self, command_id: str, command: Mapping[str, object]) -> None:
        """Pass the answer on, when it fits an open request."""
        raise NotImplementedError

    def _take_interrupt(self, command_id: str) -> None:
        """Interrupt what the agent does."""
        raise NotImplementedError

    def _choose(self, command_id: str, name: str, value: str) -> None:
        """Choose the ``model`` or the permission ``mode`` of that name."""
        raise NotImplementedError

    def _obey(self, command_id: str | None) -> None:
        if command_id:
            self._events.append({"kind": "command", "command_id": command_id, "was_obeyed": True})

    def _refuse(self, command_id: str | None, error: str) -> None:
        if command_id:
            told = one_line(error, MAX_ERROR_CHARACTERS)
            self._events.append({"kind": "command", "command_id": command_id, "was_obeyed": False, "error": told})

    def _let_wait(self, message: Message, waiting: list[Message]) -> None:
        """Put the message behind those that wait, or refuse it when they are too many."""
        if not has_room(waiting, message):
            self._refuse(message.command_id, TOO_MUCH_WAITS)
            return
        waiting.append(message)
        if message.command_id:
            told: Event = {"kind": "command", "command_id": message.command_id, "was_obeyed": False}
            self._events.append({**told, "is_queued": True})

    def _cannot_go_on(self, agent: str, start: str, why: str) -> str:
        """Return that the agent refuses to resume or copy a conversation, what helps, and its own reason."""
        ref = one_line(text_in(self._launch, "session_ref"), 100)
        if start == "resume":
            self._events.append({"kind": "session", "cannot_resume": one_line(why, MAX_ERROR_CHARACTERS)})
        done = "resume" if start == "resume" else "copy"
        fresh = f"`agentmon sessions restart {ref} --message TEXT` starts a fresh one with its history"
        return f"{agent} cannot {done} the conversation; {fresh}. It says: {why}"

    def _note_denial(self, answer: Mapping[str, object]) -> None:
        self._is_denial_explained = bool(text_in(answer, "reason").strip())

    def _keep_reason(self, answer: Mapping[str, object]) -> None:
        reason = text_in(answer, "reason").strip()
        if reason:
            self._reasons = [*self._reasons, reason][-MAX_REASONS:]

    def _with_reasons(self, text: str = "") -> str:
        """Return the message behind the reasons that the agent has not heard."""
        texts, self._reasons = [*self._reasons, text], []
        return "\n\n".join(filter(None, texts))

    @property
    def _has_person_to_answer(self) -> bool:
        """Whether the last turn ended with something that holds the work up, so that its input stays open."""
        return bool(self._held_up_by[0]) and not self._is_finish_wanted

    def _note_held_up(self, outcome: str) -> None:
        """Find out whether the work that ended so is done, or held up by a refusal or a question in plain words."""
        self._note_events()
        self._held_up_by = ("", "")
        if outcome != "completed":
            return
        said = self._last_message[1]
        if question := open_question(said):
            self._held_up_by = (f"seems to ask: {question}", "the last message, a guess: it ends with a question")
        elif self._is_denied and (not self._is_denial_explained or not said.strip() or gives_up(said)):
            guess = ", a guess: no call has gone well since" if said.strip() else ""
            self._held_up_by = ("stopped after a denied request", f"the turn ended with a denied request{guess}")

    def _end_texts(self, outcome: str, *, is_marked: bool = False) -> None:
        """Tell what was being written when a turn ended before its time, and mark that it was interrupted.

        ``is_marked`` is whether the agent has done the latter itself.
        """
        self._note_events()
        if outcome != "completed":
            for ref, (text, is_thinking) in self._unfinished.items():
                self._events += message_events(ref, "assistant", text.getvalue(), is_thinking=is_thinking)
        self._unfinished = {}
        if outcome == "interrupted" and not is_marked:
            self._interruptions += 1
            self._events += message_events(f"interrupted-{self._interruptions}", "system", INTERRUPTED)

    def _note_events(self) -> None:
        for event in self._events[self._noted :]:
            kind = event["kind"]
            if kind == "turn_started":
                self._held_up_by, self._last_message, self._is_denied = ("", ""), ("", ""), False
                self._denied_calls, self._is_denial_explained = 0, False
            elif kind == "delta":
                self._note_piece(event)
            elif kind == "message":
                self._note_told(event)
                if event.get("role") == "assistant":
                    self._note_message(event)
            elif kind == "ask_closed" and event.get("outcome") == "denied":
                self._is_denied, self._last_message = True, ("", "")
                self._denied_calls += 1
            elif kind == "tool_finished" and event.get("status") == "success":
                self._is_denied = False
            elif kind == "tool_finished" and event.get("status") == "blocked":
                # What was denied may be told as blocked long after, when other calls have gone well.
                self._is_denied = self._is_denied or not self._denied_calls
                self._denied_calls = max(0, self._denied_calls - 1)
        self._noted = len(self._events)

    def _note_piece(self, event: Event) -> None:
        ref, added = str(event["message_ref"]), str(event.get("text") or "")
        if not added or event.get("parent_tool_ref") or ref in self._told_refs:
            return
        if ref not in self._unfinished:
            if len(self._unfinished) >= MAX_UNFINISHED:
                del self._unfinished[next(iter(self._unfinished))]
            self._unfinished[ref] = (StringIO(), event.get("is_thinking") is True)
        text, _ = self._unfinished[ref]
        size = sum(text.tell() for text, _ in self._unfinished.values())
        text.write(added[: max(0, MAX_UNFINISHED_CHARACTERS - size)])

    def _note_told(self, event: Event) -> None:
        self._unfinished.pop(str(event["message_ref"]), None)
        self._told_refs[str(event["message_ref"])] = None
        if len(self._told_refs) > MAX_TOLD_REFS:
            del self._told_refs[next(iter(self._told_refs))]

    def _note_message(self, event: Event) -> None:
        if event.get("is_thinking") or event.get("parent_tool_ref"):
            return
        ref, text = str(event.get("message_ref")), str(event.get("text") or "")
        before = self._last_message[1] if event.get("continues") and ref == self._last_message[0] else ""
        self._last_message = (ref, (before + text)[-TAIL_CHARACTERS:])

    def _set_activity(self, activity: str, note: str, source: str) -> None:
        if activity == "waiting" and self._has_person_to_answer:
            note, source = self._held_up_by
        if (activity, note) != self._activity and not (self._is_ended and activity == "working"):
            self._activity = (activity, note)
            self._events.append({"kind": "activity", "activity": activity, "note": note, "source": source})

    def _note_malformed(self, line: str, told: list[Event]) -> None:
        """Tell of a line that is no message, and keep it: an agent that cannot begin says why in plain text."""
        self._events += told
        self._stray_text = one_line(line, MAX_ERROR_CHARACTERS) or self._stray_text

    def _lacks_result(self, *, is_at_work: bool, is_asked_for_more: bool) -> bool:
        """Whether the agent that ended owes how its work went: exit code 0 alone is no success."""
        if is_at_work or is_asked_for_more:
            return True
        if not self._outcome and self._is_finish_wanted:
            self._outcome = "completed"  # a person ended what nothing was asked of
        return not self._outcome

    def _step(self) -> Step:
        """Return what was gathered, and begin anew."""
        self._note_events()
        step = Step(self._events, b"".join(self._send))
        self._events = []
        self._noted = 0
        self._send = []
        return step
