"""The part of a dialog that says how an AI agent begins: in which conversation, with which model, on which screen."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from textual.containers import Vertical
from textual.content import Content
from textual.widgets import Checkbox, Input, Select

from agentmon.domain.execution_mode import ExecutionMode
from agentmon.domain.executions import ConversationStart
from agentmon.runners.adapters.prompt import MODEL_ARGUMENT, PERMISSION_MODE_ARGUMENT
from agentmon.widgets.form import FormField, LineInput
from agentmon.widgets.guarded import Guarded

if TYPE_CHECKING:
    from collections.abc import Sequence

    from textual.app import ComposeResult

    from agentmon.domain.agents import Agent, Capability
    from agentmon.domain.executions import Execution
    from agentmon.domain.ids import ExecutionId
    from agentmon.domain.sessions import Session

_FRESH: Final = (Content("a fresh one"), ConversationStart.FRESH.value)
_RESUME: Final = (Content("go on with the earlier one"), ConversationStart.RESUME.value)
_FORK: Final = (Content("go on with a copy of it"), ConversationStart.FORK.value)


@dataclass(frozen=True, slots=True, kw_only=True)
class ConversationChoice:
    """How the conversation of one run begins."""

    start: ConversationStart = ConversationStart.FRESH
    parent_execution_id: ExecutionId | None = None
    message: str | None = None
    model: str | None = None
    permission_mode: str | None = None
    own_screen: bool = False


class ConversationForm(Guarded, Vertical):
    """Fields for an AI agent; hidden for every other program."""

    def __init__(self, executions: Sequence[Execution], sessions: Sequence[Session]) -> None:
        """Make the form.

        Args:
            executions: Of the task, newest first: an earlier conversation is one of theirs.
            sessions: Of these executions.
        """
        super().__init__()
        self._executions = tuple(executions)
        self._sessions = {one.id: one for one in sessions}
        self._earlier: Execution | None = None
        self._start: Select[str] = Select([_FRESH], allow_blank=False, compact=True, id="conversation-start")
        self._message = LineInput(placeholder="what to do next", id="conversation-message")
        self._model = LineInput(placeholder="its own default", id="conversation-model")
        self._mode = LineInput(placeholder="its own default", id="conversation-mode")
        self._screen = Checkbox("its own screen, to be worked in by attaching", compact=True, id="conversation-screen")
        self._message_field = FormField("Message", self._message, help_text="the next message of the conversation")
        self._model_field = FormField("Model", self._model)
        self._mode_field = FormField("Permissions", self._mode)
        self._screen_field = FormField("Screen", self._screen)
        self.display = False

    def compose(self) -> ComposeResult:
        """Yield the fields."""
        yield FormField("Conversation", self._start)
        yield self._message_field
        yield self._model_field
        yield self._mode_field
        yield self._screen_field

    def show_agent(self, agent: Agent | None, capability: Capability | None) -> None:
        """Show what belongs to the agent, but for what the capability asks for itself.

        A program that is no AI agent has nothing here.
        """
        config = None if agent is None else agent.session_config
        self.display = config is not None
        if agent is None or config is None:
            return
        asked = {} if capability is None else capability.args_schema.get("properties")
        self._model_field.display = not isinstance(asked, Mapping) or MODEL_ARGUMENT not in asked
        self._mode_field.display = not isinstance(asked, Mapping) or PERMISSION_MODE_ARGUMENT not in asked
        self._screen_field.display = capability is None or capability.mode is not ExecutionMode.TMUX
        self._start.set_options([_FRESH, *self._find_earlier(agent)])
        self._message_field.display = False
        self._model_field.show_help(", ".join(config.models))
        self._mode_field.show_help(", ".join(config.permission_modes))
        can_both = config.bidirectional_protocol is not ExecutionMode.TMUX
        self._screen.value = not can_both
        self._screen.disabled = not can_both

    def _find_earlier(self, agent: Agent) -> list[tuple[Content, str]]:
        """Find the newest conversation that the agent can go on with, and return the ways it can."""
        for one in self._executions:
            session = None if one.session_id is None else self._sessions.get(one.session_id)
            if one.agent_id == agent.id and session is not None and not session.cannot_resume:
                self._earlier = one
                return [_RESUME] if session.cannot_fork else [_RESUME, _FORK]
        self._earlier = None
        return []

    def read(self) -> ConversationChoice | None:
        """Return what was chosen, or show what is missing and return None."""
        if not self.display:
            return ConversationChoice()
        start = ConversationStart(str(self._start.value))
        goes_on = start is not ConversationStart.FRESH and self._earlier is not None
        message = self._message.value.strip()
        if goes_on and not message:
            self._message_field.show_error("write what the agent is to do next")
            self._message_field.focus_control()
            return None
        return ConversationChoice(
            start=start,
            parent_execution_id=self._earlier.id if goes_on and self._earlier is not None else None,
            message=message if goes_on else None,
            model=_value_of(self._model_field, self._model),
            permission_mode=_value_of(self._mode_field, self._mode),
            own_screen=self._screen.value and self._screen_field.display,
        )

    def on_select_changed(self, event: Select.Changed) -> None:
        """Ask for a message where the conversation goes on."""
        event.stop()
        self._message_field.display = event.value != ConversationStart.FRESH.value

    def on_input_changed(self, event: Input.Changed) -> None:
        """Take the error away while the person mends it."""
        if event.input is self._message:
            self._message_field.clear_when_changed()


def _value_of(shown: FormField, field: LineInput) -> str | None:
    """Return what was typed; None when nothing was, or when something else asks for it."""
    return (field.value.strip() or None) if shown.display else None
