"""The fields of a form over a capability, filled with what it is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from textual.content import Content
from textual.widgets import Checkbox, Select

from agentmon.domain.agents import DangerLevel, InteractionMode
from agentmon.domain.errors import AgentmonError, FieldError
from agentmon.domain.execution_mode import ExecutionMode
from agentmon.domain.limit_words import parse_size_limit, parse_time_limit, size_limit_text, time_limit_text
from agentmon.screens.agents.argument_table import ArgumentTable
from agentmon.screens.agents.field_words import parse_words, words_text
from agentmon.screens.dialogs.form_dialog import BoundField, bind
from agentmon.widgets.form import FormField, LineInput, TextBox

if TYPE_CHECKING:
    from collections.abc import Callable

    from agentmon.domain.agents import Agent, Capability

_LEVEL_WORDS: Final = {
    DangerLevel.SAFE: "0  harmless",
    DangerLevel.CAUTION: "1  changes files",
    DangerLevel.DANGEROUS: "2  dangerous",
    DangerLevel.DESTRUCTIVE: "3  destroys things",
}
_KIND_WORDS: Final = {InteractionMode.TEMPLATE: "a command line", InteractionMode.PROMPT: "a message to it"}
_OWN_PROTOCOL: Final = ""


class CapabilityFields:
    """All of them are there; the editor shows those that the kind of capability has. ``bound`` has their order."""

    def __init__(self, agent: Agent, first: Capability) -> None:
        self.label = _line("Label", "label", first.label, placeholder="Show history", is_required=True)
        self.key = _line("Key", "key", first.key, placeholder="show-history", is_required=True)
        self.description = _line("Description", "description", first.description, placeholder="what it does")
        kinds = [(Content(words), kind.value) for kind, words in _KIND_WORDS.items()]
        is_ai = agent.session_config is not None
        self.kind_select: Select[str] = Select(
            kinds, value=first.interaction_mode.value, allow_blank=False, compact=True, id="kind"
        )
        self.kind = FormField("Takes", self.kind_select)
        modes = [(Content("its own protocol"), _OWN_PROTOCOL), (Content("its own screen"), ExecutionMode.TMUX.value)]
        chosen = "" if first.mode is None else first.mode.value
        if chosen not in {value for _, value in modes}:
            modes.append((Content(chosen), chosen))
        mode: Select[str] = Select(modes, value=chosen, allow_blank=False, compact=True, id="mode")
        self.mode = FormField("Speaks", mode)
        self.prompt = FormField(
            "Message",
            TextBox(first.prompt_template, id="prompt"),
            help_text="empty: the task itself; {{task_title}} {{args.name}}",
            id="prompt-field",
        )
        self.command = _line(
            "Command",
            "command",
            words_text(first.command_tokens),
            placeholder="log -n {{args.count}} {{--all args.all}}",
            help_text="{{args.name}} an argument, {{--all args.all}} an option",
        )
        self.arguments = FormField("Arguments", ArgumentTable(id="arguments"), id="arguments-field")
        levels = [(Content(words), int(level)) for level, words in _LEVEL_WORDS.items()]
        danger: Select[int] = Select(
            levels, value=int(first.danger_level), allow_blank=False, compact=True, id="danger"
        )
        self.danger_select = danger
        self.danger = FormField("Danger", danger)
        self.approval = FormField(
            "Asks first", Checkbox("before it starts", first.requires_approval, compact=True, id="approval")
        )
        self.timeout = _line("Time limit", "timeout", time_limit_text(first.timeout_s), placeholder="15m, or none")
        self.output = _line(
            "Output limit", "output", size_limit_text(first.max_output_bytes), placeholder="10 MiB, or none"
        )
        self.enabled = FormField("Enabled", Checkbox("is offered", first.is_enabled, compact=True, id="enabled"))
        self.bound = (
            bind("label", self.label, _needed_label),
            bind("key", self.key, str.strip),
            bind("description", self.description, str.strip),
            *(self._of_messages(first, chosen) if is_ai else ()),
            bind("command_tokens", self.command, lambda text: parse_words("command_tokens", text)),
            bind("danger_level", self.danger, DangerLevel, first=int(first.danger_level)),
            bind("requires_approval", self.approval),
            bind("timeout_s", self.timeout, _read_limit("timeout_s", parse_time_limit)),
            bind("max_output_bytes", self.output, _read_limit("max_output_bytes", parse_size_limit)),
            bind("is_enabled", self.enabled),
        )

    def _of_messages(self, first: Capability, mode: str) -> tuple[BoundField, ...]:
        """Return what only an AI agent has."""
        return (
            bind("interaction_mode", self.kind, InteractionMode, first=first.interaction_mode.value),
            bind("mode", self.mode, lambda text: ExecutionMode(text) if text else None, first=mode),
            bind("prompt_template", self.prompt),
        )


def key_of(label: str) -> str:
    """Return the key that a capability of this label gets unless a person types another: ``show-history``."""
    words = "".join(letter if letter.isascii() and letter.isalnum() else " " for letter in label.lower()).split()
    return "-".join(words)[:40].strip("-")


def _line(
    label: str, name: str, text: str, *, placeholder: str = "", help_text: str = "", is_required: bool = False
) -> FormField:
    box = LineInput(text, placeholder=placeholder, id=name)
    return FormField(label, box, help_text=help_text, is_required=is_required)


def _needed_label(text: str) -> str:
    if not text.strip():
        raise FieldError("label", "a capability needs a label", hint="what it does, in few words: Show history")
    return text.strip()


def _read_limit(field: str, parse: Callable[[str], int]) -> Callable[[str], int]:
    def read(text: str) -> int:
        try:
            return parse(text)
        except AgentmonError as error:
            raise FieldError(field, str(error), hint=error.hint) from error

    return read
