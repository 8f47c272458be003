"""The part of a dialog that says what runs: a program, and its command line or its capability with arguments."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from rich.text import Text
from textual.containers import Vertical
from textual.message import Message
from textual.widgets import Input, Select

from agentmon.domain.agents import DangerLevel, ToolType
from agentmon.domain.any_command import ANY_COMMAND_KEY, ANY_COMMAND_SLUG
from agentmon.domain.errors import AgentmonError
from agentmon.domain.plain_text import plain_line
from agentmon.screens.tasks.start_note import start_note
from agentmon.widgets.arguments_form import ArgumentsForm
from agentmon.widgets.form import FormField, LineInput
from agentmon.widgets.guarded import Guarded

if TYPE_CHECKING:
    from collections.abc import Mapping

    from textual.app import ComposeResult

    from agentmon.domain.agents import Agent, Capability
    from agentmon.screens.tasks.start_note import Judge, JudgeFinder

_NO_PROGRAM: Final = ""
_LONGEST_NAME: Final = 60
_NOTHING: Final = (Text("nothing to run"), "")
_DANGER_WORDS: Final = {
    DangerLevel.SAFE: "",
    DangerLevel.CAUTION: "changes files",
    DangerLevel.DANGEROUS: "dangerous",
    DangerLevel.DESTRUCTIVE: "destroys things",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgramChoice:
    """What was filled in, checked as far as a form can."""

    agent: Agent | None
    """None: the task has no program yet."""
    capability_key: str | None = None
    args: Mapping[str, object] = field(default_factory=dict)


class ProgramForm(Guarded, Vertical):
    """Program, command or capability, arguments; what was typed for one program is kept while another is shown."""

    @dataclass
    class CapabilityShown(Message):
        """The fields belong to another program or capability now; None when none is chosen."""

        agent: Agent | None
        capability: Capability | None

    def __init__(
        self,
        *,
        agents: tuple[Agent, ...],
        agent_slug: str | None,
        capability_key: str | None = None,
        args: Mapping[str, object] | None = None,
        allows_none: bool = False,
        find_judge: JudgeFinder | None = None,
    ) -> None:
        super().__init__()
        self._find_judge = find_judge
        self._judge: Judge | None = None
        self._note = ""
        self._agents = {agent.slug: agent for agent in sorted(agents, key=_place)}
        self._first_slug = agent_slug if agent_slug in self._agents else None
        self._first_key = capability_key
        self._first_args = dict(args or {})
        self._shown_slug = _NO_PROGRAM
        self._chosen_keys: dict[str, str] = {}
        self._forms: dict[tuple[str, str], ArgumentsForm] = {}
        self._form: ArgumentsForm | None = None
        self.suggestion = ""
        """A command line that would be accepted instead of the one typed; empty when there is none."""
        options = [
            (Text(plain_line(agent.name, max_characters=_LONGEST_NAME)), slug) for slug, agent in self._agents.items()
        ]
        if allows_none or not options:
            options.append((Text("No program yet"), _NO_PROGRAM))
        fallback = _NO_PROGRAM if allows_none and self._first_slug is None else options[0][1]
        self._start_slug = self._first_slug or fallback
        self._program: Select[str] = Select(
            options, value=self._start_slug, allow_blank=False, compact=True, id="program"
        )
        self._program_field = FormField("Program", self._program, id="program-field")
        self._command = LineInput(
            _command_text(self._first_args) if self._start_slug == ANY_COMMAND_SLUG else "",
            placeholder="pytest -q tests",
            id="command",
        )
        self._first_command = self._command.value
        self._command_field = FormField("Command", self._command, id="command-field")
        self._capability: Select[str] = Select([_NOTHING], allow_blank=False, compact=True, id="capability")
        self._capability_field = FormField("Capability", self._capability, id="capability-field")

    def compose(self) -> ComposeResult:
        """Yield the fields; those that the program does not need are hidden, or come when one needs them."""
        yield self._program_field
        yield self._command_field
        yield Vertical(id="arguments")

    async def on_mount(self) -> None:
        """Show what belongs to the program of the start."""
        await self._show_program(self._start_slug)
        if self._find_judge is not None:
            self.call_after_refresh(self._begin_judging, self._find_judge)

    async def _begin_judging(self, find_judge: JudgeFinder) -> None:
        """Read the rules when the form stands there, and tell what they say to what is filled in."""
        self._judge = await find_judge()
        self._note_danger()

    @property
    def agent(self) -> Agent | None:
        """The program that is chosen."""
        return self._agents.get(self._shown_slug)

    @property
    def is_changed(self) -> bool:
        """Whether anything differs from the start."""
        started_key = self._key_at_start(self._start_slug)
        return (
            self._shown_slug != self._start_slug
            or self._command.value != self._first_command
            or self._chosen_keys.get(self._start_slug) != started_key
            or any(form.is_changed for form in self._forms.values())
        )

    @property
    def first_wrong(self) -> FormField | None:
        """The first shown field with an error."""
        shown = (self._program_field, self._command_field, self._capability_field)
        own = next((one for one in shown if one.error and one.display), None)
        return own or (None if self._form is None else self._form.first_wrong)

    def read(self, *, needs_program: bool) -> ProgramChoice | None:
        """Return what was filled in, or show what is wrong at its field and return None.

        Args:
            needs_program: Whether leaving the program open is an error.
        """
        for one in (self._program_field, self._command_field, self._capability_field):
            one.clear()
        self.suggestion = ""
        self._note = ""
        self._note_danger()
        agent = self.agent
        if agent is None:
            if needs_program:
                self._program_field.show_error("choose the program that is to run")
                return None
            return ProgramChoice(agent=None)
        if agent.slug == ANY_COMMAND_SLUG:
            if not needs_program and not self._command.value.strip():
                # A thought that is noted down first; what runs it is said later.
                return ProgramChoice(agent=None)
            return self._read_command(agent)
        key = self._chosen_keys.get(agent.slug)
        if key is None or self._form is None:
            self._capability_field.show_error("this program has nothing to run; choose another")
            return None
        return self._read_arguments(agent, self._form)

    def take_suggestion(self) -> None:
        """Put the suggested command line into the field; nothing happens when there is none."""
        if self.suggestion:
            self._command.value = self.suggestion
            self._command.cursor_position = len(self.suggestion)
            self._command_field.clear()
            self.suggestion = ""
            self._command.focus()

    def show_program_error(self, message: str, *, hint: str = "") -> None:
        """Say at the program that it cannot be used."""
        self._program_field.show_error(message, hint=hint)

    async def on_select_changed(self, event: Select.Changed) -> None:
        """Show what belongs to the program or the capability that was chosen."""
        if event.select is self._program:
            event.stop()
            slug = str(event.value)
            if slug != self._shown_slug:
                await self._show_program(slug)
        elif event.select is self._capability:
            event.stop()
            key = str(event.value)
            # News of a list that was replaced meanwhile is no choice.
            if key == self._capability.value and key and key != self._chosen_keys.get(self._shown_slug):
                self._chosen_keys[self._shown_slug] = key
                await self._show_arguments()
        else:
            self._note_danger()

    def on_input_changed(self, event: Input.Changed) -> None:
        """Take the error away while the person mends it."""
        if event.input is self._command and self._command_field.clear_when_changed():
            self.suggestion = ""
            self.refresh_bindings()
        self._note_danger()

    def on_checkbox_changed(self) -> None:
        """Say what harm it does with other arguments."""
        self._note_danger()

    def _note_danger(self) -> None:
        """Say at the command or the capability what harm the start does, as long as it is not wrong otherwise."""
        agent = self.agent
        note = "" if self._judge is None or agent is None else self._danger_of(self._judge, agent)
        if note != self._note:
            self._note = note
            is_command = self._command_field.display
            self._command_field.show_note(note if is_command else "")
            if self._capability_field.is_attached:
                self._capability_field.show_note("" if is_command else note)

    def _danger_of(self, judge: Judge, agent: Agent) -> str:
        if agent.slug == ANY_COMMAND_SLUG:
            return self._danger_of_command(judge, agent)
        capability = self._shown_capability()
        if capability is None:
            return ""
        return start_note(judge, agent, capability, None if self._form is None else self._form.peek())

    def _danger_of_command(self, judge: Judge, agent: Agent) -> str:
        from agentmon.runners.adapters.template import parse_command  # noqa: PLC0415 - after the first frame

        try:
            argv = parse_command(self._command.value)
        except AgentmonError:
            return ""
        capability = next((one for one in agent.capabilities if one.key == ANY_COMMAND_KEY), None)
        return "" if capability is None else start_note(judge, agent, capability, {"argv": list(argv)})

    def _read_command(self, agent: Agent) -> ProgramChoice | None:
        from agentmon.runners.adapters.template import parse_command  # noqa: PLC0415 - after the first frame

        text = self._command.value
        if not text.strip():
            self._command_field.show_error("type the command that is to run", hint="for example: pytest -q tests")
            return None
        try:
            argv = parse_command(text)
        except AgentmonError as error:
            self.suggestion = error.hint if error.hint.startswith("sh -c ") else ""
            hint = f"ctrl+t takes instead: {self.suggestion}" if self.suggestion else error.hint
            self._command_field.show_error(str(error), hint=hint)
            self.refresh_bindings()
            return None
        return ProgramChoice(agent=agent, capability_key=ANY_COMMAND_KEY, args={"argv": list(argv)})

    def _read_arguments(self, agent: Agent, form: ArgumentsForm) -> ProgramChoice | None:
        from agentmon.runners.adapters.template import check_arguments  # noqa: PLC0415 - after the first frame

        capability = self._shown_capability()
        args = form.read()
        if args is None or capability is None:
            return None
        try:
            check_arguments(capability.args_schema, args)
        except AgentmonError as error:
            if not form.show_error(str(error), hint=error.hint):
                self._capability_field.show_error(str(error), hint=error.hint)
            return None
        return ProgramChoice(agent=agent, capability_key=capability.key, args=args)

    async def _show_program(self, slug: str) -> None:
        self._shown_slug = slug
        agent = self._agents.get(slug)
        is_command = slug == ANY_COMMAND_SLUG
        self._program_field.clear()
        self._program_field.show_help("" if agent is None or is_command else _program_help(agent))
        self._command_field.display = is_command
        has_capabilities = agent is not None and not is_command
        if has_capabilities and not self._capability_field.is_attached:
            await self.mount(self._capability_field, after=self._command_field)
        self._capability_field.display = has_capabilities
        if agent is not None and has_capabilities:
            enabled = _enabled(agent)
            options = [(Text(plain_line(one.label, max_characters=_LONGEST_NAME)), one.key) for one in enabled]
            self._capability.set_options(options or [_NOTHING])
            key = self._chosen_keys.get(slug) or self._key_at_start(slug)
            if key is not None:
                self._chosen_keys[slug] = key
                self._capability.value = key
        await self._show_arguments()

    def _key_at_start(self, slug: str) -> str | None:
        agent = self._agents.get(slug)
        if agent is None or slug == ANY_COMMAND_SLUG:
            return None
        keys = [capability.key for capability in _enabled(agent)]
        if slug == self._start_slug and self._first_key in keys:
            return self._first_key
        return keys[0] if keys else None

    async def _show_arguments(self) -> None:
        capability = self._shown_capability()
        self.post_message(self.CapabilityShown(self.agent, capability))
        if self._form is not None:
            self._form.display = False
        self._form = None
        if capability is None:
            self._note = ""
            self._note_danger()
            return
        self._capability_field.clear()
        self._capability_field.show_help(_capability_help(capability))
        place = (self._shown_slug, capability.key)
        form = self._forms.get(place)
        if form is None:
            is_first = self._shown_slug == self._start_slug and capability.key == self._key_at_start(self._start_slug)
            form = ArgumentsForm(capability.args_schema, self._first_args if is_first else {})
            self._forms[place] = form
            await self.query_one("#arguments", Vertical).mount(form)
        form.display = True
        self._form = form
        self._note = ""
        self._note_danger()

    def _shown_capability(self) -> Capability | None:
        agent = self.agent
        if agent is None or agent.slug == ANY_COMMAND_SLUG:
            return None
        key = self._chosen_keys.get(agent.slug)
        return next((capability for capability in _enabled(agent) if capability.key == key), None)


def _place(agent: Agent) -> tuple[bool, bool]:
    """AI agents come first, then tools, and what runs any command last."""
    return (agent.slug == ANY_COMMAND_SLUG, agent.tool_type is not ToolType.AI_AGENT)


def _enabled(agent: Agent) -> tuple[Capability, ...]:
    return tuple(capability for capability in agent.capabilities if capability.is_enabled)


def _program_help(agent: Agent) -> str:
    version = f"{agent.slug} {agent.version}" if agent.version else ""
    return " · ".join(part for part in (agent.description.rstrip("."), version) if part)


def _capability_help(capability: Capability) -> str:
    parts = (capability.description.rstrip("."), _DANGER_WORDS[capability.danger_level])
    return " · ".join(part for part in parts if part)


def _command_text(args: Mapping[str, object]) -> str:
    argv = args.get("argv")
    return shlex.join(str(word) for word in argv) if isinstance(argv, Sequence) and not isinstance(argv, str) else ""
