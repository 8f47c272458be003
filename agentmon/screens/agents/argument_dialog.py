"""One argument of a capability: its name, its type, what may be chosen, its default."""

from __future__ import annotations

import json
import re
import shlex
from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar, Final

from rich.text import Text
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.content import Content
from textual.widgets import Checkbox, Select, Static

from agentmon.domain.errors import AgentmonError, FieldError
from agentmon.screens.agents.argument_schema import KIND_WORDS, with_argument
from agentmon.screens.agents.field_words import parse_words
from agentmon.screens.bindings import ARGUMENT_DIALOG
from agentmon.screens.dialogs.form_dialog import FormDialog, bind
from agentmon.widgets.arguments_form import ArgumentKind, ArgumentProblem, ArgumentSpec, parse_value, value_text
from agentmon.widgets.form import FormField, LineInput
from agentmon.widgets.key_footer import KeyFooter

if TYPE_CHECKING:
    from collections.abc import Mapping

    from textual.app import ComposeResult
    from textual.binding import BindingType

_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*", re.ASCII)
_YES: Final = frozenset({"yes", "true", "on"})
_NO: Final = frozenset({"no", "false", "off"})


class ArgumentDialog(FormDialog[ArgumentSpec]):
    """A form over one argument; ends with it as it is then. Nothing is stored here."""

    CSS_PATH = ["../dialogs/form_dialog.tcss", "argument_dialog.tcss"]  # noqa: RUF012 - Textual types it as an instance's
    BINDINGS: ClassVar[list[BindingType]] = [*ARGUMENT_DIALOG]
    AUTO_FOCUS = "#argument-name"

    def __init__(self, spec: ArgumentSpec | None, schema: Mapping[str, object], *, new_name: str = "") -> None:
        """Make the dialog.

        Args:
            spec: What is changed; None makes a new one.
            schema: The one that it belongs to, for the other names and for what the default has to fit.
            new_name: What a new one is called at first.
        """
        super().__init__()
        self._spec = spec
        self._schema = schema
        one = spec or ArgumentSpec(name="", kind=ArgumentKind.TEXT, label="")
        self._first = one
        kinds = [(Text(words), kind.value) for kind, words in KIND_WORDS.items()]
        name = LineInput(one.name or new_name, placeholder="max_count", id="argument-name")
        self._name_field = FormField("Name", name, is_required=True)
        self._kind_select: Select[str] = Select(
            kinds, value=one.kind.value, allow_blank=False, compact=True, id="argument-kind"
        )
        self._kind_field = FormField("Type", self._kind_select)
        own_label = "" if one.label == one.name.replace("_", " ") else one.label
        self._label_field = FormField(
            "Label", LineInput(own_label, placeholder="as the form calls it", id="argument-label")
        )
        self._help_field = FormField("Help", LineInput(one.description, id="argument-help"))
        choices = LineInput(_choices_text(one), placeholder="low high 'very high'", id="argument-choices")
        self._choices_field = FormField("Choices", choices, is_required=True)
        self._default_field = FormField("Default", LineInput(_default_text(one), id="argument-default"))
        self._required_field = FormField(
            "Needed", Checkbox("must be given", one.is_required, compact=True, id="argument-required")
        )
        self.bound = (
            bind("name", self._name_field, self._read_name),
            bind("kind", self._kind_field, ArgumentKind, first=one.kind.value),
            bind("label", self._label_field, str.strip),
            bind("description", self._help_field, str.strip),
            bind("choices", self._choices_field),
            bind("default", self._default_field),
            bind("is_required", self._required_field),
        )

    def compose(self) -> ComposeResult:
        """Yield the form."""
        with Vertical(id="dialog"):
            yield Static(Content("New argument" if self._spec is None else "Argument"), id="heading")
            with VerticalScroll(id="fields", can_focus=False):
                yield self._name_field
                with Horizontal(classes="pair"):
                    yield self._kind_field
                    yield self._required_field
                yield self._choices_field
                yield self._default_field
                yield self._label_field
                yield self._help_field
            yield KeyFooter()

    def on_mount(self) -> None:
        """Show what belongs to the type."""
        self._show_kind()

    def on_select_changed(self, event: Select.Changed) -> None:
        """Show what belongs to the type."""
        event.stop()
        self._show_kind()

    async def store(self) -> ArgumentSpec | None:
        """Return the argument, or show what is wrong."""
        changes = self.read_changes()
        if changes is None:
            return None
        if not self._text("name"):
            raise FieldError("name", "an argument needs a name", hint="placeholders call it so: {{args.max_count}}")
        kind = self._present_kind
        kept_name = self._first.name if self._spec is not None else self._read_name(self._text("name"))
        spec = replace(
            self._first,
            name=changes.get("name", kept_name),
            kind=kind,
            description=changes.get("description", self._first.description),
            is_required=changes.get("is_required", self._first.is_required),
        )
        label = self._text("label")
        spec = replace(spec, label=label or spec.name.replace("_", " "))
        spec = replace(spec, choices=self._read_choices() if kind is ArgumentKind.CHOICE else ())
        is_same = kind is self._first.kind and "default" not in changes and "choices" not in changes
        spec = replace(spec, default=self._first.default if is_same else self._read_default(spec))
        self._require_fitting(spec)
        return spec

    @property
    def _present_kind(self) -> ArgumentKind:
        return ArgumentKind(str(self._kind_select.value))

    def _text(self, name: str) -> str:
        return next(str(one.typed).strip() for one in self.bound if one.name == name)

    def _show_kind(self) -> None:
        kind = self._present_kind
        self._choices_field.display = kind is ArgumentKind.CHOICE
        self._default_field.show_help(
            {
                ArgumentKind.BOOLEAN: "yes or no; empty is no",
                ArgumentKind.TEXTS: "several, separated by blanks; quotes keep blanks together",
                ArgumentKind.JSON: "as JSON",
            }.get(kind, "")
        )

    def _read_name(self, text: str) -> str:
        name = text.strip()
        if not _NAME.fullmatch(name):
            raise FieldError(
                "name", f"{name!r} cannot be a name", hint="a letter, then letters, digits, _ and -: max_count"
            )
        taken = self._schema.get("properties")
        if isinstance(taken, dict) and name in taken and name != self._first.name:
            raise FieldError("name", f"there is an argument {name} already", hint="give it another name")
        return name

    def _read_choices(self) -> tuple[object, ...]:
        text = self._text("choices")
        if text == _choices_text(self._first) and self._first.choices:
            return self._first.choices
        words = parse_words("choices", text)
        if not words:
            raise FieldError("choices", "name what can be chosen", hint="separated by blanks: low high 'very high'")
        before = {_choice_word(choice): choice for choice in self._first.choices}
        return tuple(before.get(word, word) for word in dict.fromkeys(words))

    def _read_default(self, spec: ArgumentSpec) -> object:
        text = self._text("default")
        if not text:
            return None
        if spec.kind is ArgumentKind.BOOLEAN:
            if text.lower() not in _YES | _NO:
                raise FieldError("default", f"{text!r} is neither yes nor no")
            return text.lower() in _YES
        if spec.kind is ArgumentKind.CHOICE:
            found = [choice for choice in spec.choices if _choice_word(choice) == text]
            if not found:
                known = ", ".join(_choice_word(choice) for choice in spec.choices)
                raise FieldError("default", f"{text!r} is none of the choices", hint=f"they are: {known}")
            return found[0]
        try:
            return parse_value(spec, text)
        except ArgumentProblem as problem:
            raise FieldError("default", str(problem)) from problem

    def _require_fitting(self, spec: ArgumentSpec) -> None:
        """Refuse a default that the rest of what the schema says about the argument does not allow.

        Raises:
            FieldError: It does not fit.
        """
        from agentmon.runners.adapters.template import check_arguments  # noqa: PLC0415 - 60 ms

        if spec.default is None:
            return
        schema = with_argument(self._schema, spec, replaces=None if self._spec is None else self._first.name)
        properties = schema["properties"]
        own = properties[spec.name] if isinstance(properties, dict) else {}
        try:
            check_arguments({"type": "object", "properties": {spec.name: own}}, {spec.name: spec.default})
        except AgentmonError as error:
            raise FieldError("default", str(error), hint=error.hint) from error


def _choice_word(choice: object) -> str:
    return choice if isinstance(choice, str) else json.dumps(choice, ensure_ascii=False)


def _choices_text(spec: ArgumentSpec) -> str:
    return shlex.join(_choice_word(choice) for choice in spec.choices)


def _default_text(spec: ArgumentSpec) -> str:
    if isinstance(spec.default, bool):
        return "yes" if spec.default else "no"
    if spec.kind is ArgumentKind.CHOICE and spec.default is not None:
        return _choice_word(spec.default)
    return value_text(spec, spec.default)
