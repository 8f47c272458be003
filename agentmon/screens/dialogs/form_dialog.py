"""What every dialog over a form shares: storing, what is wrong at its field, and the question before work is lost."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, TypeVar

from textual.screen import ModalScreen
from textual.widgets import Checkbox, Input, Select, TextArea

from agentmon.domain.errors import AgentmonError, FieldError
from agentmon.widgets.form import FormField
from agentmon.widgets.guarded import Guarded

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from textual.binding import BindingType
    from textual.widget import Widget
    from textual.worker import Worker

_ResultT = TypeVar("_ResultT")


class BoundField(NamedTuple):
    """A field of the form that stands for a field of what is edited."""

    name: str
    """The field as the domain calls it."""
    field: FormField
    read: Callable[[Any], object]
    """Returns what the control stands for, given what it holds; raises ``FieldError`` where that is nothing."""
    first: object
    """What the control held at first."""

    @property
    def typed(self) -> object:
        """What the control holds."""
        control = self.field.control
        if isinstance(control, TextArea):
            return control.text
        return control.value if isinstance(control, Input | Select | Checkbox) else None

    def value(self) -> object:
        """Return what the control stands for.

        Raises:
            FieldError: It stands for nothing.
        """
        return self.read(self.typed)


def bind(
    name: str, field: FormField, read: Callable[[Any], object] | None = None, *, first: object = None
) -> BoundField:
    """Return the field as it stands now; without ``read`` it stands for what its control holds.

    A list holds nothing before it is shown, so that what it will hold then is given as ``first``.
    """
    bound = BoundField(name, field, read or _as_it_is, first)
    return bound if first is not None else bound._replace(first=bound.typed)


class FormDialog(Guarded, ModalScreen[_ResultT | None]):
    """A form that stores what was typed by itself; ends with what became of it, or with None when the person left.

    A subclass binds its fields (``bound``), stores what was typed (``store``), and has keys to save and to cancel.
    Nothing typed is lost by an error: it is shown at its field, and the dialog stays.
    """

    BINDINGS: ClassVar[list[BindingType]] = []
    VERTICAL_BREAKPOINTS = [(0, "-short"), (28, "-tall")]  # noqa: RUF012 - Textual types it as an instance's

    def __init__(self) -> None:
        super().__init__()
        self.bound: tuple[BoundField, ...] = ()
        """The fields, from top to bottom; a subclass sets them."""
        self._is_saving = False
        self._is_over = False

    # What a subclass says.

    async def store(self) -> _ResultT | None:
        """Store what was typed and return what the dialog ends with, or show what is wrong at its field: None.

        Raises:
            FieldError: It could not be stored for the value of one field.
            AgentmonError: It could not be stored for another reason.
        """
        raise NotImplementedError

    def show_trouble(self, error: AgentmonError) -> None:
        """Tell why nothing was stored where no field is the reason."""
        words = f"{error}\n{error.hint}" if error.hint else str(error)
        self.notify(f"Not saved: {words}", severity="warning", timeout=8, markup=False)

    # What a subclass calls.

    @property
    def is_changed(self) -> bool:
        """Whether leaving would lose something that was typed."""
        return any(one.typed != one.first for one in self.bound)

    def read_changes(self) -> dict[str, Any] | None:
        """Return what was changed by the names of the domain, or show what is wrong at its field and return None.

        A field that holds what it held at first is not among them, so that what cannot be shown in it stays.
        """
        changes: dict[str, Any] = {}
        is_right = True
        for one in self.bound:
            if one.typed == one.first:
                continue
            try:
                changes[one.name] = one.value()
            except FieldError as error:
                one.field.show_error(str(error), hint=error.hint)
                is_right = False
        return changes if is_right else None

    def show_at(self, name: str, message: str, *, hint: str = "") -> bool:
        """Show an error at the field of this name; False when there is none."""
        for one in self.bound:
            if one.name == name:
                one.field.show_error(message, hint=hint)
                return True
        return False

    @property
    def fields(self) -> Iterator[FormField]:
        """All fields, from top to bottom."""
        return iter(self.query(FormField).results(FormField))

    def go_to_wrong(self) -> None:
        """Go to the first field with an error."""
        wrong = next((field for field in self.fields if field.error), None)
        if wrong is not None:
            wrong.focus_control()

    # Keys and what is typed.

    def action_save(self) -> None:
        """Store it and end, or say what is wrong."""
        if not self._is_saving and not self._is_over:
            self._is_saving = True
            _saving: Worker[None] = self.run_worker(self._save, name="save", group="save", exit_on_error=False)

    def action_cancel(self) -> None:
        """Leave; it asks first when something was typed."""
        if self._is_saving or self._is_over:
            return
        if not self.is_changed:
            self._end(None)
            return
        from agentmon.screens.dialogs.confirm import ConfirmDialog  # noqa: PLC0415 - needed on this way only

        question = ConfirmDialog("Leave without saving?", loss="What you typed here is lost.", yes="Leave")
        self.app.push_screen(question, self._leave_if)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Go on to the next field."""
        event.stop()
        self.focus_next()

    def on_input_changed(self, event: Input.Changed) -> None:
        """Take the error away while the person mends it."""
        self._mend(event.input)

    def on_select_changed(self, event: Select.Changed) -> None:
        """Take the error away while the person mends it."""
        self._mend(event.select)

    def on_checkbox_changed(self, event: Checkbox.Changed) -> None:
        """Take the error away while the person mends it."""
        self._mend(event.checkbox)

    def _mend(self, control: Widget) -> None:
        for field in self.fields:
            if field.control is control:
                field.clear_when_changed()

    def _leave_if(self, is_meant: bool | None) -> None:
        if is_meant:
            self._end(None)

    def _end(self, result: _ResultT | None) -> None:
        if not self._is_over:
            self._is_over = True
            self.dismiss(result)

    async def _save(self) -> None:
        try:
            for field in self.fields:
                field.clear()
            stored = await self.store()
        except FieldError as error:
            stored = None
            if not self.show_at(error.field, str(error), hint=error.hint):
                self.show_trouble(error)
        except AgentmonError as error:
            self.show_trouble(error)
            return
        finally:
            self._is_saving = False
        if stored is None:
            self.go_to_wrong()
        else:
            self._end(stored)


def _as_it_is(held: object) -> object:
    return held
