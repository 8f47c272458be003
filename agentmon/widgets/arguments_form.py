"""A form made from the JSON Schema of a capability's arguments."""

from __future__ import annotations

import json
import math
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from rich.text import Text
from textual.containers import Vertical
from textual.widgets import Checkbox, Input, Select

from agentmon.domain.argument_order import argument_names
from agentmon.domain.former_names import with_present_names
from agentmon.domain.plain_text import plain_line
from agentmon.widgets.form import FormField, LineInput
from agentmon.widgets.guarded import Guarded

if TYPE_CHECKING:
    from textual.app import ComposeResult
    from textual.widget import Widget

_INTEGER_HELP: Final = "a whole number"
_MOST_SHOWN: Final = 16
"""Optional arguments that stand in the form at once: a hundred fields take seconds to appear, and nobody reads them."""
_LIST_HELP: Final = "several, separated by blanks; quotes keep blanks together"


class ArgumentKind(StrEnum):
    """What sort of control an argument gets."""

    TEXT = "text"
    INTEGER = "integer"
    NUMBER = "number"
    BOOLEAN = "boolean"
    CHOICE = "choice"
    TEXTS = "texts"
    JSON = "json"
    """Whatever has no control of its own is typed as JSON."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ArgumentSpec:
    """One argument, read from a schema."""

    name: str
    kind: ArgumentKind
    label: str
    description: str = ""
    is_required: bool = False
    default: object | None = None
    choices: tuple[object, ...] = ()
    minimum: float | None = None
    maximum: float | None = None


class ArgumentProblem(Exception):  # noqa: N818 - it never leaves this module's form
    """What a person typed does not fit an argument; the text is for that person."""


def argument_specs(schema: Mapping[str, object]) -> tuple[ArgumentSpec, ...]:
    """Return the arguments of a schema of type ``object``, in its order; anything malformed in it is passed over."""
    properties = schema.get("properties")
    if not isinstance(properties, Mapping):
        return ()
    required = schema.get("required")
    names = set(required) if isinstance(required, Sequence) and not isinstance(required, str) else set()
    return tuple(
        _spec(name, described, is_required=name in names)
        for name, described in ((name, properties.get(name)) for name in argument_names(schema))
        if isinstance(described, Mapping)
    )


def value_text(spec: ArgumentSpec, value: object) -> str:
    """Return a value as it stands in the argument's one-line input."""
    if value is None:
        return ""
    if spec.kind is ArgumentKind.TEXTS and isinstance(value, Sequence) and not isinstance(value, str):
        return shlex.join(str(word) for word in value)
    if spec.kind is ArgumentKind.JSON:
        return json.dumps(value, ensure_ascii=False)
    return str(value)


def parse_value(spec: ArgumentSpec, text: str) -> object:
    """Return the value that a person typed into the argument's one-line input.

    Raises:
        ArgumentProblem: The text is no value of that kind.
    """
    match spec.kind:
        case ArgumentKind.INTEGER | ArgumentKind.NUMBER:
            return _parse_number(spec, text.strip())
        case ArgumentKind.TEXTS:
            try:
                return shlex.split(text)
            except ValueError as error:
                raise ArgumentProblem("a quote is not closed") from error
        case ArgumentKind.JSON:
            try:
                return json.loads(text)
            except ValueError as error:
                raise ArgumentProblem("this is not JSON") from error
        case ArgumentKind.TEXT | ArgumentKind.CHOICE | ArgumentKind.BOOLEAN:
            return text


class ArgumentsForm(Guarded, Vertical):
    """One field for each argument; what is typed stays in it whatever else happens.

    Of many arguments only those stand there that are needed or have a value; the others come when they are looked for.
    """

    DEFAULT_CSS = """
    ArgumentsForm {
        height: auto;
        & Checkbox { width: 1fr; background: transparent; }
    }
    """

    def __init__(
        self,
        schema: Mapping[str, object],
        values: Mapping[str, object],
        *,
        id: str | None = None,  # noqa: A002 - Textual's own name
    ) -> None:
        super().__init__(id=id)
        values = with_present_names(schema, values)
        self.specs = argument_specs(schema)
        self._values: Mapping[str, object] = values
        self._is_open = schema.get("additionalProperties", False) is not False
        self._fields: dict[str, FormField] = {}
        self._untouched: dict[str, object] = {}
        has_many = sum(not spec.is_required for spec in self.specs) > _MOST_SHOWN
        for spec in self.specs:
            if not has_many or spec.is_required or values.get(spec.name) is not None:
                self._make_field(spec)
        self._search = LineInput(placeholder=f"a word finds one of {len(self.specs)} options") if has_many else None

    def compose(self) -> ComposeResult:
        """Yield a field for each argument that is shown, and the search for the others when there are many."""
        yield from self._fields.values()
        if self._search is not None:
            yield FormField("More options", self._search)

    @property
    def first_wrong(self) -> FormField | None:
        """The first field with an error."""
        return next((field for field in self._fields.values() if field.error), None)

    def field(self, name: str) -> FormField | None:
        """Return the field of an argument."""
        return self._fields.get(name)

    @property
    def is_changed(self) -> bool:
        """Whether some control holds another value than at first."""
        return any(self._is_touched(name) for name in self._fields)

    def read(self) -> dict[str, object] | None:
        """Return the arguments that were filled in, or show what is wrong at its field and return None.

        An empty optional field is left out, so that its default applies. Values that came in and have no field stay
        as they are where the schema allows them.
        """
        known = {spec.name for spec in self.specs}
        arguments = {name: value for name, value in self._values.items() if self._is_open and name not in known}
        is_right = True
        for spec in self.specs:
            field = self._fields.get(spec.name)
            if field is None:
                if self._values.get(spec.name, True) is None:
                    arguments[spec.name] = None
                continue
            field.clear()
            try:
                value = self._read(spec, field.control)
            except ArgumentProblem as problem:
                field.show_error(str(problem))
                is_right = False
                continue
            is_left_out = spec.name in self._values and self._values[spec.name] is None
            if value is not None or (is_left_out and not self._is_touched(spec.name)):
                # None was given on purpose: then the default does not apply.
                arguments[spec.name] = value
            elif spec.is_required:
                field.show_error("this is needed")
                is_right = False
        return arguments if is_right else None

    def peek(self) -> dict[str, object] | None:
        """Return the arguments as far as they are filled in, without a word; None while one cannot be used."""
        arguments: dict[str, object] = {}
        for spec in self.specs:
            field = self._fields.get(spec.name)
            if field is None:
                continue
            try:
                value = self._read(spec, field.control)
            except ArgumentProblem:
                return None
            if value is not None:
                arguments[spec.name] = value
        return arguments

    async def on_input_changed(self, event: Input.Changed) -> None:
        """Take the error away while the person mends it, or show the options that are looked for."""
        if event.input is self._search:
            await self._show_found(event.value)
            return
        for field in self._fields.values():
            if field.control is event.input:
                field.clear_when_changed()

    def show_error(self, message: str, *, hint: str = "") -> bool:
        """Show an error that names an argument at its field; False when it names none of them."""
        for name, field in self._fields.items():
            if re.search(rf"\bargument {re.escape(name)}(?!\w)", message):
                field.show_error(message, hint=hint)
                return True
        return False

    async def _show_found(self, text: str) -> None:
        """Show the arguments with all of these words in their name or description, beside those that have a value."""
        words = text.casefold().split()
        found = [spec.name for spec in self.specs if words and all(word in _searched(spec) for word in words)]
        wanted = set(found[:_MOST_SHOWN])
        for spec in self.specs:
            field = self._fields.get(spec.name)
            if field is not None:
                is_kept = spec.is_required or bool(field.error) or self._is_touched(spec.name)
                field.display = is_kept or spec.name in wanted or self._values.get(spec.name) is not None
        new = [self._make_field(spec) for spec in self.specs if spec.name in wanted and spec.name not in self._fields]
        if new:
            await self.mount(*new)

    def _make_field(self, spec: ArgumentSpec) -> FormField:
        field = FormField(spec.label, self._control(spec), help_text=_help_text(spec), is_required=spec.is_required)
        self._fields[spec.name] = field
        return field

    def _is_touched(self, name: str) -> bool:
        return _raw(self._fields[name].control) != self._untouched[name]

    def _control(self, spec: ArgumentSpec) -> Widget:
        value = self._values.get(spec.name)
        if spec.kind is ArgumentKind.BOOLEAN:
            is_on = value if isinstance(value, bool) else spec.default is True
            self._untouched[spec.name] = is_on
            return Checkbox("", is_on, compact=True)
        if spec.kind is ArgumentKind.CHOICE:
            # The value of an option is its place, since choices need not be hashable.
            options = [(Text(plain_line(_shown(choice))), place) for place, choice in enumerate(spec.choices)]
            chosen = value if value is not None else spec.default
            place = next((place for place, choice in enumerate(spec.choices) if _is_same(choice, chosen)), None)
            self._untouched[spec.name] = Select.NULL if place is None else place
            select: Select[int] = Select(
                options,
                value=Select.NULL if place is None else place,
                allow_blank=not spec.is_required or place is None,
                prompt="choose",
                compact=True,
            )
            return select
        placeholder = "" if spec.default is None else f"{value_text(spec, spec.default)}  (default)"
        line = LineInput(value_text(spec, value), placeholder=placeholder)
        self._untouched[spec.name] = line.value
        return line

    def _read(self, spec: ArgumentSpec, control: Widget) -> object | None:
        if isinstance(control, Checkbox):
            was_given = spec.name in self._values
            is_default = control.value == (spec.default is True)
            return control.value if was_given or spec.is_required or not is_default else None
        if isinstance(control, Select):
            return spec.choices[control.value] if isinstance(control.value, int) else None
        text = control.value if isinstance(control, Input) else ""
        if not text.strip():
            return None
        return parse_value(spec, text)


def _searched(spec: ArgumentSpec) -> str:
    return f"{spec.name} {spec.label} {spec.description}".casefold()


def _spec(name: str, described: Mapping[object, object], *, is_required: bool) -> ArgumentSpec:
    choices = described.get("enum")
    has_choices = isinstance(choices, Sequence) and not isinstance(choices, str) and len(choices) > 0
    title = described.get("title")
    description = described.get("description")
    minimum = described.get("minimum")
    maximum = described.get("maximum")
    return ArgumentSpec(
        name=name,
        kind=ArgumentKind.CHOICE if has_choices else _kind(described),
        label=title if isinstance(title, str) and title else name.replace("_", " "),
        description=description if isinstance(description, str) else "",
        is_required=is_required,
        default=described.get("default"),
        choices=tuple(choices) if has_choices and isinstance(choices, Sequence) else (),
        minimum=minimum if isinstance(minimum, int | float) else None,
        maximum=maximum if isinstance(maximum, int | float) else None,
    )


def _kind(described: Mapping[object, object]) -> ArgumentKind:
    match described.get("type"):
        case "string" | None:
            return ArgumentKind.TEXT
        case "integer":
            return ArgumentKind.INTEGER
        case "number":
            return ArgumentKind.NUMBER
        case "boolean":
            return ArgumentKind.BOOLEAN
        case "array":
            of = described.get("items")
            is_text = not isinstance(of, Mapping) or of.get("type", "string") == "string"
            return ArgumentKind.TEXTS if is_text else ArgumentKind.JSON
        case _:
            return ArgumentKind.JSON


def _help_text(spec: ArgumentSpec) -> str:
    parts = [spec.description.strip().rstrip(".")]
    match spec.kind:
        case ArgumentKind.INTEGER | ArgumentKind.NUMBER if not spec.description:
            parts.append(_INTEGER_HELP if spec.kind is ArgumentKind.INTEGER else "a number")
        case ArgumentKind.TEXTS:
            parts.append(_LIST_HELP)
        case ArgumentKind.JSON:
            parts.append("as JSON")
        case _:
            pass
    return "; ".join(part for part in parts if part)


def _parse_number(spec: ArgumentSpec, text: str) -> float:
    try:
        number = int(text) if spec.kind is ArgumentKind.INTEGER else float(text)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise ArgumentProblem(f"this must be {_INTEGER_HELP if spec.kind is ArgumentKind.INTEGER else 'a number'}")
    if spec.minimum is not None and number < spec.minimum:
        raise ArgumentProblem(f"this must be at least {spec.minimum}")
    if spec.maximum is not None and number > spec.maximum:
        raise ArgumentProblem(f"this must be at most {spec.maximum}")
    return number


def _shown(choice: object) -> str:
    return choice if isinstance(choice, str) else json.dumps(choice, ensure_ascii=False)


def _is_same(first: object, second: object) -> bool:
    # True equals 1 in Python, but not in a schema.
    return type(first) is type(second) and first == second


def _raw(control: Widget) -> object:
    return control.value if isinstance(control, Checkbox | Select | Input) else None
