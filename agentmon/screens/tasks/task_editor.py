"""The dialog that makes a task or changes one."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar, Final, NamedTuple

from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Input, Select, Static

from agentmon.domain.amounts import DOLLARS
from agentmon.domain.any_command import ANY_COMMAND_SLUG
from agentmon.domain.clock import SystemClock
from agentmon.domain.due_dates import due_text, parse_due
from agentmon.domain.errors import AgentmonError, UsageError
from agentmon.domain.labels import labels_text, parse_labels
from agentmon.domain.live_state import numbers_text
from agentmon.domain.plain_text import plain_line
from agentmon.domain.task_status import Priority
from agentmon.domain.tasks import TITLE_MAX_CHARACTERS, TaskDraft, draft_of
from agentmon.screens.bindings import TASK_EDITOR
from agentmon.screens.tasks.completing import Completion, folder_ways, task_ways
from agentmon.screens.tasks.more_fields import MoreFields
from agentmon.screens.tasks.program_form import ProgramForm
from agentmon.services.folders import existing_folder
from agentmon.widgets.completed_field import CompletedField
from agentmon.widgets.fold_line import FoldLine
from agentmon.widgets.form import FormField, LineInput, TextBox, plain_paragraphs
from agentmon.widgets.guarded import Guarded
from agentmon.widgets.key_footer import KeyFooter
from agentmon.widgets.label_suggester import LabelSuggester

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence
    from datetime import datetime
    from typing import TypeAlias

    from textual.app import ComposeResult
    from textual.binding import BindingType
    from textual.worker import Worker

    from agentmon.domain.agents import Agent
    from agentmon.domain.amounts import MoneyFormat
    from agentmon.domain.clock import Clock
    from agentmon.domain.ids import TaskId
    from agentmon.domain.tasks import Task
    from agentmon.screens.tasks.completing import PickFinder
    from agentmon.screens.tasks.start_note import JudgeFinder

    TaskFinder: TypeAlias = Callable[[int], Awaitable[Task | None]]

_REPLACE: Final = "replace"
_OF_LIST: Final = {"go_way", "take_way"}
_PRIORITY_WORDS: Final = {
    Priority.URGENT: "P1 urgent",
    Priority.HIGH: "P2 high",
    Priority.NORMAL: "P3 normal",
    Priority.LOW: "P4 low",
    Priority.LOWEST: "P5 lowest",
}


class TemplateKeeping(NamedTuple):
    """How a task becomes a template."""

    names: Callable[[], Awaitable[Sequence[str]]]
    """Those that are there and would be replaced."""
    save: Callable[[str, TaskDraft, bool], Awaitable[str]]
    """Takes the name, and whether it may replace one that is there; returns where it is now."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EditedTask:
    """What a person decided in the editor."""

    draft: TaskDraft
    should_run: bool
    parent: int | None = None
    """The number of the parent, whose id stands in the draft."""
    after: tuple[int, ...] = ()
    """Numbers of the tasks that it waits for."""
    budget_nano: int | None = None
    """What all its runs together may cost; None without a limit."""


class TaskEditor(Guarded, ModalScreen[EditedTask | None]):
    """A form over one task; ends with what was typed, or with None when the person left.

    Nothing is stored here, and nothing typed is lost by an error: each is shown at its field.
    """

    CSS_PATH = "task_editor.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [*TASK_EDITOR]
    VERTICAL_BREAKPOINTS = [(0, "-short"), (28, "-tall")]  # noqa: RUF012 - Textual types it as an instance's
    AUTO_FOCUS = "#title"

    def __init__(
        self,
        *,
        agents: tuple[Agent, ...],
        task: Task | None,
        workspace_root: str,
        default_agent_slug: str | None = None,
        draft: TaskDraft | None = None,
        start: TaskDraft | None = None,
        templates: TemplateKeeping | None = None,
        parent: int | None = None,
        after: Sequence[int] = (),
        find_task: TaskFinder | None = None,
        find_picks: PickFinder | None = None,
        known_labels: Sequence[str] = (),
        budget_nano: int | None = None,
        money: MoneyFormat = DOLLARS,
        clock: Clock | None = None,
        find_judge: JudgeFinder | None = None,
    ) -> None:
        """Make the editor.

        Args:
            agents: The programs to choose from.
            task: The task to change; None makes a new one.
            workspace_root: The folder that an empty folder field stands for.
            default_agent_slug: The program of a new task; None takes the one for any command.
            draft: What was typed before and could not be stored; it is shown again.
            start: What a new task is filled with at first, as by a template.
            templates: Saves what is filled in as a template; None offers no such thing.
            parent: The number of its parent.
            after: Numbers of the tasks that it waits for.
            find_task: Returns the task of a number; None leaves the numbers unchecked.
            find_picks: Returns open tasks for a number or letters of a title; None completes nothing.
            known_labels: What the field of labels completes with, the most used first.
            budget_nano: What all its runs together may cost.
            money: How amounts are read and shown.
            clock: Tells the present, for the next times of a schedule and the due date.
            find_judge: Returns what says how dangerous a command line is; None says nothing of it.
        """
        super().__init__()
        self._edited = task
        self._workspace_root = workspace_root
        self._is_retyped = draft is not None
        self._find_task = find_task
        self._templates = templates
        start = draft or (start or TaskDraft(title="") if task is None else draft_of(task))
        self._start = start
        context = start.input_context
        slug: str | None = None
        if start.assignee_agent_id is not None:
            slug = next((agent.slug for agent in agents if agent.id == start.assignee_agent_id), None)
        elif task is None and draft is None:
            slug = default_agent_slug or ANY_COMMAND_SLUG
        self._lost_program = start.assignee_agent_id is not None and slug is None
        self._program = ProgramForm(
            agents=agents,
            agent_slug=slug,
            capability_key=context.capability_key,
            args=context.args,
            allows_none=True,
            find_judge=find_judge,
        )
        self._title = LineInput(start.title, placeholder="What is to be done", id="title")
        self._title_field = FormField("Title", self._title)
        priority = start.priority
        self._priority: Select[int] = Select(
            [(Content(word), value.value) for value, word in _PRIORITY_WORDS.items()],
            value=priority.value,
            allow_blank=False,
            compact=True,
            id="priority",
        )
        self._folder = LineInput(context.working_dir or "", placeholder=workspace_root, id="folder")
        self._folder_field = CompletedField("Folder", self._folder)
        self._parent_box = LineInput(
            "" if parent is None else f"#{parent}", placeholder="a number or words", id="parent"
        )
        self._parent_field = CompletedField("Parent", self._parent_box)
        # Also of tasks that were deleted since.
        self._waited_for = frozenset(after)
        self._after = LineInput(numbers_text(after), placeholder="numbers or words", id="after")
        self._after_field = CompletedField("After", self._after)
        self._clock = clock or SystemClock()
        self._labels = LineInput(labels_text(start.labels), placeholder="#auth #login", id="labels")
        self._labels.suggester = LabelSuggester(known_labels)
        self._labels_field = FormField("Labels", self._labels)
        self._due = LineInput(self._due_typed(start.due_at), placeholder="fri, in 2 days", id="due")
        self._due_field = FormField("Due", self._due)
        self._more = MoreFields(start, clock=self._clock, budget_nano=budget_nano, money=money)
        self._fold = FoldLine("More", key="ctrl+g", id="fold")
        self._description = TextBox(start.description, id="description")
        self._description_field = FormField("Description", self._description, id="description-field")
        self._completions = self._make_completions(find_picks)
        self._untouched = self._typed(priority.value)
        self._is_saving = False

    def compose(self) -> ComposeResult:
        """Yield the form, most needed fields first."""
        heading = "New task" if self._edited is None else f"Edit #{self._edited.number}"
        with Vertical(id="dialog"):
            yield Static(Content(heading), id="heading")
            with VerticalScroll(id="fields", can_focus=False):
                yield self._title_field
                yield self._program
                with Horizontal(id="numbers"):
                    yield FormField("Priority", self._priority)
                    yield self._due_field
                with Horizontal(id="links"):
                    yield self._after_field
                    yield self._parent_field
                yield self._labels_field
                yield self._folder_field
                yield self._fold
                yield self._description_field
            yield KeyFooter()

    def on_mount(self) -> None:
        """Say what became of a program that is gone, and what is folded."""
        self._fold.summary = self._more.summary
        if self._lost_program:
            self._program.show_program_error(
                "the program of this task is no longer available", hint="choose another, or leave it for later"
            )

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:  # noqa: ARG002 - Textual's signature
        """Offer the suggested command line, and the keys of a list, only while there is one."""
        if action in _OF_LIST:
            field = self._open_field
            return field is not None and (action != "take_way" or field.marked is not None)
        if action == "save_template":
            return self._templates is not None
        return action != "take_suggestion" or bool(self._program.suggestion)

    async def action_save(self) -> None:
        """Save."""
        await self._save(should_run=False)

    async def action_save_and_run(self) -> None:
        """Save, and have it run."""
        await self._save(should_run=True)

    def action_cancel(self) -> None:
        """Close a list that is open; otherwise leave.

        It asks first when something was typed, and goes on editing unless the answer is yes.
        """
        field = self._open_field
        if field is not None:
            field.offer((), marks_first=False)
            return
        if not self.is_changed:
            self.dismiss(None)
            return
        from agentmon.screens.dialogs.confirm import ConfirmDialog  # noqa: PLC0415 - needed on this way only

        question = ConfirmDialog("Leave without saving?", loss="What you typed here is lost.", yes="Leave")
        self.app.push_screen(question, self._leave_if)

    def action_save_template(self) -> None:
        """Save what is filled in as a template."""
        _saving: Worker[None] = self.run_worker(
            self._save_template, name="save template", group="save template", exclusive=True, exit_on_error=False
        )

    def action_go_way(self, rows: int) -> None:
        """Mark another of the offered ways."""
        if self._open_field is not None:
            self._open_field.go_row(rows)
        self.refresh_bindings()

    async def action_take_way(self) -> None:
        """Take the marked way; go to the next field when none fits what was typed last."""
        field = await self._renewed_field()
        if field is None or field.marked is None:
            self.focus_next()
        else:
            self._completions[field.box].take(field.marked)

    async def action_complete(self) -> None:
        """Complete what is typed, as far as that is clear; without anything to complete with, go to the next field."""
        field = await self._renewed_field()
        if field is None:
            self.focus_next()
        else:
            self._completions[field.box].complete()

    def on_completed_field_taken(self, message: CompletedField.Taken) -> None:
        """Take the way that was clicked."""
        message.stop()
        self._completions[message.field.box].take(message.way)
        message.field.focus_control()

    def on_descendant_blur(self) -> None:
        """Take the list of a field away that is left."""
        for box, completion in self._completions.items():
            if completion.field.is_open and not box.has_focus:
                completion.field.offer((), marks_first=False)

    async def action_toggle_more(self) -> None:
        """Unfold what is seldom needed, and go there; fold it again."""
        await self._show_more(is_open=not self._fold.is_open)

    async def on_fold_line_clicked(self, message: FoldLine.Clicked) -> None:
        """Unfold or fold."""
        message.stop()
        await self.action_toggle_more()

    async def action_edit_outside(self) -> None:
        """Write the description in the person's editor; ``ctrl+z`` in the field takes back what it did."""
        from agentmon.screens.tasks.external_editor import edit_outside  # noqa: PLC0415 - needed on this way only

        box = self._description
        self._description_field.clear()
        try:
            written, lent = await edit_outside(self.app, box.text, title=self._title.value)
        except AgentmonError as error:
            self._description_field.show_error(str(error), hint=error.hint)
            return
        if written.text != box.text:
            box.replace(plain_paragraphs(written.text), (0, 0), box.document.end, maintain_selection_offset=False)
        lent.remove()
        self._description_field.show_note(f"{written.complaint}; its text is here" if written.complaint else "")
        box.focus()

    def action_take_suggestion(self) -> None:
        """Take the command line that was suggested."""
        self._program.take_suggestion()
        self.refresh_bindings()

    async def on_input_submitted(self, event: Input.Submitted) -> None:
        """Save from the title and the command; go on to the next field from the others."""
        event.stop()
        if event.input.id in {"title", "command"}:
            await self._save(should_run=False)
        else:
            self.focus_next()

    def on_input_changed(self, event: Input.Changed) -> None:
        """Take the error away while the person mends it."""
        for one in self._own_fields:
            if one.control is event.input:
                one.clear_when_changed()
        completion = self._completions.get(event.input)
        if completion is not None and event.input.has_focus and completion.is_typed:
            _looking: Worker[None] = self.run_worker(
                completion.look, name="complete", group="complete", exclusive=True, exit_on_error=False
            )

    @property
    def is_changed(self) -> bool:
        """Whether leaving would lose something that was typed."""
        priority = self._priority.value
        return self._is_retyped or self._program.is_changed or self._typed(priority) != self._untouched

    def _leave_if(self, is_meant: bool | None) -> None:
        if is_meant:
            self.dismiss(None)

    def _typed(self, priority: object) -> tuple[object, ...]:
        return (
            self._title.value,
            priority,
            self._folder.value,
            self._parent_box.value,
            self._after.value,
            self._labels.value,
            self._due.value,
            self._more.typed,
            self._description.text,
        )

    @property
    def _own_fields(self) -> tuple[FormField, ...]:
        return (
            self._title_field,
            self._due_field,
            self._after_field,
            self._parent_field,
            self._labels_field,
            self._folder_field,
        )

    async def _save(self, *, should_run: bool) -> None:
        if self._is_saving:
            return
        self._is_saving = True
        try:
            edited = await self._read(should_run=should_run)
        finally:
            self._is_saving = False
        if edited is None:
            await self._go_to_wrong()
            return
        self._is_saving = True
        self.dismiss(edited)

    def _first_wrong(self) -> FormField | None:
        if self._title_field.error:
            return self._title_field
        others = (self._program.first_wrong, *self._own_fields[1:], self._more.first_wrong)
        return next((one for one in others if one is not None and one.error), None)

    async def _read(self, *, should_run: bool) -> EditedTask | None:
        for one in self._own_fields:
            one.clear()
        title = self._read_title()
        choice = self._program.read(needs_program=should_run)
        working_dir = await self._read_folder()
        more = await self._more.read()
        after = await self._read_tasks(self._after_field, self._after)
        parents = await self._read_tasks(self._parent_field, self._parent_box, most=1)
        labels, due_at = self._read_labels(), self._read_due()
        if title is None or choice is None or more is None or self._first_wrong() is not None:
            return None
        start = self._start
        context = start.input_context
        description = self._description.text
        if description == plain_paragraphs(start.description):
            description = start.description
        assignee_id = None if choice.agent is None else choice.agent.id
        if self._lost_program and choice.agent is None:
            assignee_id = start.assignee_agent_id
            choice = replace(choice, capability_key=context.capability_key, args=context.args)
        parent_id = start.parent_task_id if self._find_task is None else None
        draft = TaskDraft(
            title=title,
            description=description,
            priority=Priority(self._priority.value) if isinstance(self._priority.value, int) else Priority.NORMAL,
            assignee_agent_id=assignee_id,
            input_context=replace(
                more.context,
                capability_key=choice.capability_key,
                args=choice.args,
                working_dir=working_dir,
            ),
            due_at=due_at,
            parent_task_id=next(iter(parents.values()), parent_id),
            schedule=more.schedule,
            labels=labels,
        )
        return EditedTask(
            draft=draft,
            should_run=should_run,
            parent=next(iter(parents), None),
            after=tuple(after),
            budget_nano=more.budget_nano,
        )

    async def _read_tasks(
        self, field: FormField, box: LineInput, *, most: int | None = None
    ) -> dict[int, TaskId | None]:
        """Return the numbers that were typed with their tasks, or show what is wrong with them at the field."""
        words = box.value.replace(",", " ").split()
        found: dict[int, TaskId | None] = {}
        own_number = None if self._edited is None else self._edited.number
        for word in words:
            text = word.removeprefix("#")
            if not (text.isascii() and text.isdigit()):
                field.show_error(f"{word} is no number of a task", hint="for example #38, or 38 39 for two")
            elif int(text) == own_number:
                field.show_error(f"#{own_number} is this task itself")
            else:
                task = None if self._find_task is None else await self._find_task(int(text))
                is_known = box is self._after and int(text) in self._waited_for
                if task is None and self._find_task is not None and not is_known:
                    field.show_error(f"there is no task #{int(text)} here")
                found[int(text)] = None if task is None else task.id
        if most is not None and len(found) > most:
            field.show_error("a task has one parent")
        return found

    def _read_labels(self) -> tuple[str, ...]:
        try:
            return parse_labels(self._labels.value.replace(",", " ").split())
        except UsageError as error:
            self._labels_field.show_error(str(error), hint=error.hint or "")
            return ()

    def _read_due(self) -> datetime | None:
        text = self._due.value.strip()
        if text == self._due_typed(self._start.due_at):
            return self._start.due_at
        now = self._clock.now()
        zone = now.astimezone().tzinfo
        try:
            return parse_due(text, now=now, zone=zone) if text and zone is not None else None
        except UsageError as error:
            self._due_field.show_error(str(error), hint=error.hint or "")
            return None

    @staticmethod
    def _due_typed(due_at: datetime | None) -> str:
        zone = None if due_at is None else due_at.astimezone().tzinfo
        return "" if due_at is None or zone is None else due_text(due_at, zone=zone)

    def _read_title(self) -> str | None:
        shown = self._title.value
        if shown and shown == plain_line(self._start.title):
            # What cannot be drawn in one line stays in the title as long as nobody changes it.
            return self._start.title
        title = shown.strip()
        if not title:
            self._title_field.show_error("a task needs a title")
        elif len(title) > TITLE_MAX_CHARACTERS:
            self._title_field.show_error(
                f"the title has {len(title):,} characters, at most {TITLE_MAX_CHARACTERS:,} fit",
                hint="put the rest into the description",
            )
        else:
            return title
        return None

    async def _read_folder(self) -> str | None:
        text = self._folder.value.strip()
        if not text:
            return None
        kept = self._start.input_context.working_dir
        try:
            return await existing_folder(
                kept if kept is not None and text == plain_line(kept) else text, self._workspace_root
            )
        except UsageError as error:
            self._folder_field.show_error(str(error), hint=error.hint)
            return None

    async def _save_template(self) -> None:
        from agentmon.screens.dialogs.menu_dialog import MenuDialog, MenuEntry  # noqa: PLC0415 - needed on this way only

        templates = self._templates
        edited = None if templates is None else await self._read(should_run=False)
        if edited is None or templates is None:
            await self._go_to_wrong()
            return
        entries = [MenuEntry(_REPLACE, name) for name in await templates.names()]
        words = "its name; tab goes to those above" if entries else "its name"
        menu = MenuDialog("Save as template", entries, free_kind="template", free_words=words, is_typed_first=True)
        chosen = await self.app.push_screen_wait(menu)
        if chosen is None:
            return
        try:
            # A name that is typed may be one that the person forgot.
            place = await templates.save(chosen.word, edited.draft, chosen.kind == _REPLACE)
        except AgentmonError as error:
            self.notify(f"Not saved: {error}", severity="warning", timeout=8, markup=False)
        else:
            self.notify(f"Saved as {place}; N on the board makes tasks from it", markup=False)

    async def _go_to_wrong(self) -> None:
        wrong = self._first_wrong()
        if wrong is None:
            return
        if wrong is self._more.first_wrong:
            await self._show_more(is_open=True)
        wrong.focus_control()

    @property
    def _open_field(self) -> CompletedField | None:
        """The field that offers ways to go on now."""
        completion = self._completions.get(self.focused) if isinstance(self.focused, LineInput) else None
        return completion.field if completion is not None and completion.field.is_open else None

    async def _renewed_field(self) -> CompletedField | None:
        """The field that offers ways to go on with what stands in it now."""
        field = self._open_field
        if field is not None:
            await self._completions[field.box].renew()
        return self._open_field

    def _make_completions(self, find_picks: PickFinder | None) -> dict[Input, Completion]:
        folder = Completion(self._folder_field, folder_ways(self._workspace_root), marks_first=False, is_shell=True)
        made: dict[Input, Completion] = {self._folder: folder}
        if find_picks is not None:
            own = () if self._edited is None else (self._edited.number,)
            after = task_ways(find_picks, is_several=True, left_out=own)
            parent = task_ways(find_picks, is_several=False, left_out=own)
            made[self._after] = Completion(self._after_field, after, marks_first=True)
            made[self._parent_box] = Completion(self._parent_field, parent, marks_first=True)
        return made

    async def _show_more(self, *, is_open: bool) -> None:
        if is_open and not self._more.is_attached:
            await self.query_one("#fields").mount(self._more, after=self._fold)
        elif is_open != self._fold.is_open:
            self._more.display = is_open
        if is_open == self._fold.is_open:
            return
        self._fold.summary = self._more.summary
        self._fold.is_open = is_open
        self.set_class(is_open, "-more")
        if is_open:
            self.query_one("#retries").focus()
        elif self.focused is None or not self.focused.is_attached or self.focused in self._more.query("*"):
            self._description.focus()
