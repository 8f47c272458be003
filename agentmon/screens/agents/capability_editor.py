"""The dialog that makes or changes what an agent can be asked to do, with the command line that it starts."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar, Final

from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.content import Content
from textual.widgets import Input, Select, Static, TextArea

from agentmon.domain.agent_changes import CapabilityChanges
from agentmon.domain.agents import Agent, Capability, CapabilitySource, DangerLevel, InteractionMode
from agentmon.domain.argument_order import with_order
from agentmon.domain.errors import AgentmonError, FieldError
from agentmon.domain.execution_mode import ExecutionMode
from agentmon.domain.ids import CapabilityId, new_id
from agentmon.screens.agents.argument_schema import (
    undescribed_arguments,
    with_argument,
    with_argument_moved,
    with_placeholder_renamed,
    without_argument,
)
from agentmon.screens.agents.argument_table import ArgumentTable, argument_rows
from agentmon.screens.agents.capability_fields import CapabilityFields, key_of
from agentmon.screens.agents.capability_preview import Preview, preview_of, preview_text
from agentmon.screens.agents.field_words import parse_words, words_text
from agentmon.screens.bindings import CAPABILITY_EDITOR
from agentmon.screens.dialogs.form_dialog import FormDialog
from agentmon.widgets.arguments_form import ArgumentKind, argument_specs
from agentmon.widgets.cells import even_line
from agentmon.widgets.form import FormField, TextBox, plain_paragraphs
from agentmon.widgets.key_footer import KeyFooter

if TYPE_CHECKING:
    from textual.app import ComposeResult
    from textual.binding import BindingType

    from agentmon.bootstrap import Services
    from agentmon.screens.agents.capability_preview import Judge
    from agentmon.widgets.arguments_form import ArgumentSpec
    from agentmon.widgets.row_table import RowTable

_DANGER: Final = "danger_level"
_ASKS: Final = {2: "asks first", 3: "asks for its name first"}
_OF_ROWS: Final = frozenset({"change_argument", "remove_argument", "move_argument", "go_row"})
"""What the keys do while the focus is on the table of arguments."""
_LONGEST_HEADING: Final = 60


class CapabilityEditor(FormDialog[Agent]):
    """A form over one capability; ends with the agent as it is stored then."""

    CSS_PATH = ["../dialogs/form_dialog.tcss", "capability_editor.tcss"]  # noqa: RUF012 - Textual types it as an instance's
    BINDINGS: ClassVar[list[BindingType]] = [*CAPABILITY_EDITOR]
    AUTO_FOCUS = "#label"

    def __init__(
        self, services: Services, agent: Agent, capability: Capability | None, *, judge: Judge | None = None
    ) -> None:
        """Make the editor.

        Args:
            services: Store it.
            agent: Whose capability it is.
            capability: What is changed; None makes a new one.
            judge: Says how dangerous a command line is; None asks the rules of this machine.
        """
        super().__init__()
        self._services = services
        self._agent = agent
        self._edited = capability
        self._judge = judge or _judge_of(services)
        first = capability or Capability(
            id=CapabilityId(new_id()),
            agent_id=agent.id,
            key="",
            label="",
            source=CapabilitySource.MANUAL,
            interaction_mode=InteractionMode.TEMPLATE if agent.session_config is None else InteractionMode.PROMPT,
            args_schema={"type": "object", "properties": {}},
        )
        self._first = first
        self._schema = with_order(first.args_schema)
        self._first_schema = self._schema
        self._is_key_typed = capability is not None
        self._followed_level: DangerLevel | None = DangerLevel.SAFE if capability is None else None
        """What the rules said last, while a new capability has their level; None once a person has chosen one."""
        self._preview: Preview | None = None
        self._preview_lines = Static(id="preview")
        self._form = CapabilityFields(agent, first)
        self.bound = self._form.bound

    def compose(self) -> ComposeResult:
        """Yield the form, and below it what would be started."""
        with Vertical(id="dialog"):
            yield Static(self._heading(), id="heading")
            with VerticalScroll(id="fields", can_focus=False):
                if self._edited is None:
                    with Horizontal(classes="pair"):
                        yield self._form.label
                        yield self._form.key
                else:
                    yield self._form.label
                yield self._form.description
                if self._agent.session_config is not None:
                    with Horizontal(classes="pair"):
                        yield self._form.kind
                        yield self._form.mode
                    yield self._form.prompt
                yield self._form.command
                yield self._form.arguments
                with Horizontal(classes="pair"):
                    yield self._form.danger
                    yield self._form.approval
                with Horizontal(classes="pair"):
                    yield self._form.timeout
                    yield self._form.output
                yield self._form.enabled
            yield self._preview_lines
            yield KeyFooter()

    def on_mount(self) -> None:
        """Show the arguments and what would be started."""
        self._table.rows = argument_rows(self._schema)
        self._show_kind()
        self._show_preview()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:  # noqa: ARG002 - Textual's
        """Offer the keys of the table while the focus is there, and the editor where there is a message to write."""
        if action in _OF_ROWS:
            return self._table.has_focus and bool(self._table.rows)
        if action == "edit_outside":
            return self._is_prompt
        return True

    @property
    def is_changed(self) -> bool:
        """Whether leaving would lose something."""
        return self._schema != self._first_schema or any(
            one.typed != one.first for one in self.bound if self._is_level_chosen or one.name != _DANGER
        )

    # Keys.

    def action_add_argument(self) -> None:
        """Describe an argument more; one that a placeholder names already comes first."""
        from agentmon.screens.agents.argument_dialog import ArgumentDialog  # noqa: PLC0415 - needed on this way only

        names = self._undescribed
        dialog = ArgumentDialog(None, self._schema, new_name=names[0] if names else "")
        self.app.push_screen(dialog, self._take_new)

    def action_change_argument(self) -> None:
        """Change the argument under the cursor."""
        spec = self._selected
        if spec is None:
            return
        from agentmon.screens.agents.argument_dialog import ArgumentDialog  # noqa: PLC0415 - needed on this way only

        self.app.push_screen(ArgumentDialog(spec, self._schema), lambda changed: self._take_changed(spec.name, changed))

    def action_remove_argument(self) -> None:
        """Take the argument under the cursor away, and the words that name it."""
        spec = self._selected
        if spec is None:
            return
        self._set_schema(without_argument(self._schema, spec.name))
        box = self._box(self._form.command)
        try:
            words = parse_words("command_tokens", box.value)
        except FieldError:
            return
        gone = [word for word in words if with_placeholder_renamed(word, spec.name, "") != word]
        if gone:
            box.value = words_text([word for word in words if word not in gone])
            self.notify(f"{spec.name} is gone, and so is {words_text(gone)}", markup=False)

    def action_move_argument(self, steps: int) -> None:
        """Take the argument further up or down."""
        spec = self._selected
        if spec is not None:
            self._set_schema(with_argument_moved(self._schema, spec.name, steps))

    def action_go_row(self, rows: int) -> None:
        """Go to another argument."""
        self._table.move_by(rows)

    async def action_edit_outside(self) -> None:
        """Write the message in the person's editor; ``ctrl+z`` in the field takes back what it did."""
        from agentmon.screens.tasks.external_editor import edit_outside  # noqa: PLC0415 - needed on this way only

        box = self._form.prompt.control
        if not isinstance(box, TextBox):
            return
        self._form.prompt.clear()
        try:
            written, lent = await edit_outside(self.app, box.text, title=f"{self._agent.slug} {self._first.key}")
        except AgentmonError as error:
            self._form.prompt.show_error(str(error), hint=error.hint)
            return
        if written.text != box.text:
            box.replace(plain_paragraphs(written.text), (0, 0), box.document.end, maintain_selection_offset=False)
        lent.remove()
        self._form.prompt.show_note(f"{written.complaint}; its text is here" if written.complaint else "")
        box.focus()

    @property
    def _undescribed(self) -> tuple[str, ...]:
        prompt = self._form.prompt.control
        told = prompt.text if isinstance(prompt, TextArea) and self._is_prompt else ""
        return undescribed_arguments(f"{self._box(self._form.command).value} {told}", self._schema)

    # What is typed.

    def on_input_changed(self, event: Input.Changed) -> None:
        """Show what would be started now; a new capability is named by its label until its key is typed."""
        if event.input is self._form.key.control:
            self._is_key_typed = self._is_key_typed or event.input.has_focus
        if event.input is self._form.label.control and not self._is_key_typed:
            self._box(self._form.key).value = key_of(event.value)
        if event.input is self._form.command.control:
            self._show_preview()

    def on_text_area_changed(self, event: TextArea.Changed) -> None:
        """Show what would be said now."""
        event.stop()
        self._form.prompt.clear_when_changed()
        self._show_preview()

    def on_select_changed(self, event: Select.Changed) -> None:
        """Show what belongs to the kind, and what would be started now."""
        event.stop()
        self._note_choice()
        self._show_kind()
        self._show_preview()

    def on_row_table_opened(self, message: RowTable.Opened) -> None:
        """Change the argument that was clicked twice."""
        message.stop()
        self.action_change_argument()

    def on_row_table_highlighted(self, message: RowTable.Highlighted) -> None:
        """Keep the news to the dialog."""
        message.stop()

    def on_descendant_focus(self) -> None:
        """Offer the keys of what has the focus."""
        self.refresh_bindings()

    # Storing.

    def show_at(self, name: str, message: str, *, hint: str = "") -> bool:
        """Show an error at the field of this name; the arguments have a table instead of a field to type into."""
        if name == "args_schema":
            self._form.arguments.show_error(message, hint=hint)
            return True
        return super().show_at(name, message, hint=hint)

    async def store(self) -> Agent | None:
        """Store what was changed, and return the agent as it is then."""
        changes = self.read_changes()
        if changes is None:
            return None
        key = str(changes.pop("key", self._first.key))
        if self._edited is None and not key:
            is_bare = not self._box(self._form.label).value.strip()
            raise FieldError(
                "label" if is_bare else "key",
                "a capability needs a name",
                hint="what it does, in few words: Show history",
            )
        if self._edited is None and key in {one.key for one in self._agent.capabilities}:
            raise FieldError("key", f"{self._agent.slug} has a capability {key} already", hint="give it another key")
        if self._schema != self._first_schema:
            changes["args_schema"] = self._schema
        if not self._is_prompt and self._first.mode is not None:
            changes["mode"] = None
        preview = self._show_preview()
        if preview.problem:
            name = "prompt_template" if self._is_prompt and "command_tokens" not in changes else "command_tokens"
            raise FieldError(name, preview.problem, hint=preview.hint)
        if self._edited is not None:
            if not changes:
                return self._agent
            return await self._services.agents.edit_capability(
                self._agent.slug, key, replace(CapabilityChanges(), **changes), actor=self._services.actor
            )
        own = (_DANGER,) if self._is_level_chosen else ()
        made = replace(CapabilityChanges(), **changes).applied(replace(self._first, key=key, edited_fields=own))
        return await self._services.agents.add_capability(self._agent.slug, made, actor=self._services.actor)

    # Inside.

    @property
    def _table(self) -> ArgumentTable:
        table = self._form.arguments.control
        if not isinstance(table, ArgumentTable):
            raise TypeError(table)
        return table

    @property
    def _selected(self) -> ArgumentSpec | None:
        key = self._table.selected_key
        return next((spec for spec in argument_specs(self._schema) if spec.name == key), None)

    @property
    def _is_prompt(self) -> bool:
        return self._agent.session_config is not None and self._form.kind_select.value == InteractionMode.PROMPT.value

    def _heading(self) -> Content:
        name = even_line(self._agent.name, max_characters=_LONGEST_HEADING)
        if self._edited is None:
            return Content.assemble("New capability of ", name)
        return Content.assemble(f"{name}: ", even_line(self._edited.key, max_characters=_LONGEST_HEADING))

    def _show_kind(self) -> None:
        self._form.mode.display = self._form.prompt.display = self._is_prompt

    def _take_new(self, spec: ArgumentSpec | None) -> None:
        if spec is None:
            return
        self._set_schema(with_argument(self._schema, spec, replaces=None))
        self._table.go_end(1)
        box = self._box(self._form.command)
        if with_placeholder_renamed(box.value, spec.name, "") == box.value:
            option = f"--{spec.name.replace('_', '-')}"
            word = (
                f"{{{{{option} args.{spec.name}}}}}"
                if spec.kind is ArgumentKind.BOOLEAN
                else f"{{{{args.{spec.name}}}}}"
            )
            box.value = f"{box.value} {word}".strip()
            self._form.command.show_note(f"{word} is at its end now; put it where it belongs")

    def _take_changed(self, before: str, spec: ArgumentSpec | None) -> None:
        if spec is None:
            return
        if spec.name != before:
            box = self._box(self._form.command)
            box.value = with_placeholder_renamed(box.value, before, spec.name)
            prompt = self._form.prompt.control
            if isinstance(prompt, TextArea):
                prompt.text = with_placeholder_renamed(prompt.text, before, spec.name)
        self._set_schema(with_argument(self._schema, spec, replaces=before))

    def _set_schema(self, schema: dict[str, object]) -> None:
        self._schema = schema
        self._table.rows = argument_rows(schema)
        self.refresh_bindings()
        self._show_preview()

    def _show_preview(self) -> Preview:
        """Show what would be started with what stands in the fields now, and what the rules say about it."""
        try:
            tokens = parse_words("command_tokens", self._box(self._form.command).value)
        except FieldError as error:
            preview = Preview(problem=str(error), hint=error.hint)
        else:
            prompt = self._form.prompt.control
            present = replace(
                self._first,
                label=self._box(self._form.label).value,
                interaction_mode=InteractionMode.PROMPT if self._is_prompt else InteractionMode.TEMPLATE,
                mode=self._present_mode,
                prompt_template=prompt.text if isinstance(prompt, TextArea) else "",
                command_tokens=tokens,
                args_schema=self._schema,
            )
            preview = preview_of(self._agent, present, self._judge)
            names = self._undescribed
            if preview.problem and names:
                preview = preview._replace(hint=f"ctrl+n describes {names[0]}; {preview.hint}")
        if preview != self._preview:
            self._preview = preview
            self._preview_lines.update(preview_text(preview))
        self._note_danger(preview)
        return preview

    @property
    def _present_mode(self) -> ExecutionMode | None:
        control = self._form.mode.control
        value = control.value if isinstance(control, Select) and self._is_prompt else ""
        return ExecutionMode(value) if isinstance(value, str) and value else None

    def _note_danger(self, preview: Preview) -> None:
        """Take what the rules say for a new capability; say so where the chosen level is lower than that."""
        level = preview.finding.level
        self._note_choice()
        if self._followed_level is not None and not preview.problem:
            self._followed_level = level
            self._form.danger_select.value = int(level)
        chosen = self._form.danger_select.value
        self._form.danger.show_help(_ASKS.get(chosen, "") if isinstance(chosen, int) else "")
        is_lower = isinstance(chosen, int) and chosen < level
        is_persons = _DANGER in self._first.edited_fields or (
            self._is_level_chosen and chosen != self._first.danger_level
        )
        counts = "yours" if is_persons else "that"
        self._form.danger.show_note(f"rules say {int(level)}; {counts} counts" if is_lower else "")

    def _note_choice(self) -> None:
        """Follow the rules no more once the level is another than theirs."""
        chosen = self._form.danger_select.value
        if isinstance(chosen, int) and chosen != self._followed_level:
            self._followed_level = None

    @property
    def _is_level_chosen(self) -> bool:
        """Whether the level is not what the rules say by themselves for a new capability."""
        return self._followed_level is None

    @staticmethod
    def _box(field: FormField) -> Input:
        if not isinstance(field.control, Input):
            raise TypeError(field.control)
        return field.control


def _judge_of(services: Services) -> Judge:
    """Return what the rules say; a person's file of rules that cannot be used leaves those of agentmon."""
    from agentmon.runners.danger import load_danger_rules  # noqa: PLC0415 - needed in this dialog only

    try:
        return load_danger_rules(services.paths.danger_rules_file).judge
    except AgentmonError:
        return load_danger_rules().judge
