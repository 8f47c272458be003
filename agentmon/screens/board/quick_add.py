"""A line at the bottom of the board that makes a task; what was understood of it stands below while it is typed."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Final, NamedTuple

from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Input, Static

from agentmon.domain.clock import SystemClock
from agentmon.domain.errors import AgentmonError
from agentmon.domain.labels import labels_text
from agentmon.domain.moments import moment_words
from agentmon.domain.plain_text import plain_line
from agentmon.domain.quick_add import SIGNS
from agentmon.domain.verifications import command_text
from agentmon.screens.bindings import QUICK_ADD
from agentmon.services.quick_add import problem_words
from agentmon.widgets.form import LineInput
from agentmon.widgets.guarded import Guarded
from agentmon.widgets.key_footer import KeyFooter

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence
    from datetime import datetime
    from typing import TypeAlias

    from textual.app import ComposeResult
    from textual.binding import BindingType
    from textual.worker import Worker

    from agentmon.domain.tasks import Task
    from agentmon.screens.frame import ServiceScreen
    from agentmon.services.quick_add import QuickReading
    from agentmon.services.quick_completion import Completion

    Reader: TypeAlias = Callable[[str], Awaitable[QuickReading]]
    Completer: TypeAlias = Callable[[str], Awaitable[Sequence[Completion]]]

_LONGEST_TITLE: Final = 60
_MOST_PROBLEMS: Final = 3


class QuickAnswer(NamedTuple):
    """A line that can be stored."""

    text: str
    should_run: bool


class QuickAddDialog(Guarded, ModalScreen[QuickAnswer | None]):
    """Ends with a line in which nothing is wrong, or with None when the person left; the board stays in view."""

    CSS_PATH = "quick_add.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [*QUICK_ADD]
    AUTO_FOCUS = "#line"

    def __init__(self, *, read: Reader, complete: Completer, text: str = "") -> None:
        """Make the dialog.

        Args:
            read: Returns what a line means.
            complete: Returns how the last word of a line may go on.
            text: What stands in the line at first.
        """
        super().__init__()
        self._read = read
        self._complete = complete
        self._line = LineInput(text, placeholder="fix login !1 @agent #label after:38 due:fri", id="line")
        self._completions: tuple[Completion, ...] = ()
        self._completed = ""
        """The line that these complete."""
        self._taken: tuple[Completion, ...] = ()
        """The ways among which tab goes on; the line is one of them."""
        self._is_over = False

    def compose(self) -> ComposeResult:
        """Yield the line, what was understood, how it may go on, and the keys."""
        with Vertical(id="bar"):
            yield self._line
            yield Static(id="understood")
            yield Static(id="completions")
            yield KeyFooter()

    def on_mount(self) -> None:
        """Tell what can be written."""
        self._look()

    def on_input_changed(self, event: Input.Changed) -> None:
        """Tell what is understood of the line now."""
        event.stop()
        self._look()

    def on_line_input_noted(self, message: LineInput.Noted) -> None:
        """Tell what became of a paste."""
        message.stop()
        self.notify(message.text, markup=False)

    async def action_add(self) -> None:
        """Make the task."""
        await self._end(should_run=False)

    async def action_add_and_run(self) -> None:
        """Make the task and run it."""
        await self._end(should_run=True)

    async def action_complete(self) -> None:
        """Complete the last word; when it was completed just now, take the next way to do so."""
        value = self._line.value
        ways = [one.line for one in self._taken]
        if value in ways:
            value = ways[(ways.index(value) + 1) % len(ways)]
        else:
            if value != self._completed:
                # More was typed since it was looked for them.
                await self._look_for_completions(value)
            if not self._completions:
                return
            self._taken = self._completions
            value = self._completions[0].line
        self._line.value = value
        self._line.cursor_position = len(value)

    def action_cancel(self) -> None:
        """Leave without a task."""
        if not self._is_over:
            self._is_over = True
            self.dismiss(None)

    async def _end(self, *, should_run: bool) -> None:
        text = self._line.value
        if self._is_over or not text.strip():
            return
        reading = await self._read(text)
        lacks_program = should_run and reading.agent is None and reading.line.agent_slug is None
        if reading.problems or lacks_program:
            self._show(reading, "a task without a program cannot run: add @agent" if lacks_program else "")
            return
        if not self._is_over:
            self._is_over = True
            self.dismiss(QuickAnswer(text, should_run))

    def _look(self) -> None:
        _looking: Worker[None] = self.run_worker(
            self._understand, name="understand", group="understand", exclusive=True, exit_on_error=False
        )

    async def _understand(self) -> None:
        text = self._line.value
        if not text.strip():
            self._completions, self._completed = (), text
            self.query_one("#understood", Static).update(Content.styled(SIGNS, "$text-muted"))
            self._show_completions()
            return
        self._show(await self._read(text))
        await self._look_for_completions(text)

    async def _look_for_completions(self, text: str) -> None:
        self._completions, self._completed = tuple(await self._complete(text)), text
        self._show_completions()

    def _show(self, reading: QuickReading, complaint: str = "") -> None:
        lines = [Content(" · ").join([*_understood(reading)])]
        wrong = [(complaint, "")] if complaint else []
        wrong += [(problem_words(problem), problem.hint) for problem in reading.problems]
        for words, hint in wrong[:_MOST_PROBLEMS]:
            lines.append(Content.styled(f"✗ {plain_line(words)}", "$error"))
            if hint:
                lines.append(Content.styled(f"  {plain_line(hint)}", "$text-muted"))
        self.query_one("#understood", Static).update(Content("\n").join(lines))

    def _show_completions(self) -> None:
        shown = [plain_line(one.words, max_characters=_LONGEST_TITLE) for one in self._completions]
        line = self.query_one("#completions", Static)
        line.display = bool(shown)
        if shown:
            others = [("  ·  " + words, "$text-muted") for words in shown[1:]]
            line.update(Content.assemble(("tab ", "$primary bold"), shown[0], *others))


async def quick_add(screen: ServiceScreen[None]) -> tuple[Task, bool] | None:
    """Let a person make a task on one line; return it and whether it is to run, or None when they left.

    A line that cannot be stored comes back. Must run in a worker of the screen.
    """
    services = await screen.services()
    workspace = await screen.workspace()
    completer = services.quick_add.completer(workspace)

    async def read(text: str) -> QuickReading:
        return await services.quick_add.read(workspace, text)

    text = ""
    while True:
        answer = await screen.ask(QuickAddDialog(read=read, complete=completer.complete, text=text))
        if answer is None:
            return None
        try:
            (task,) = await services.quick_add.add(workspace, [answer.text], actor=services.actor)
        except AgentmonError as error:
            text = answer.text
            screen.notify(f"Not added: {error}", severity="warning", timeout=8, markup=False)
            continue
        return task, answer.should_run


def _understood(reading: QuickReading) -> list[Content]:
    """Return the parts of the line as they were understood."""
    line = reading.line
    parts = [Content.styled(plain_line(line.title, max_characters=_LONGEST_TITLE) or "…", "bold")]
    marks: list[str] = []
    if line.priority is not None:
        marks.append(f"P{line.priority.value}")
    if reading.agent is not None:
        marks.append(f"@{reading.agent.slug}")
    if line.labels:
        marks.append(labels_text(line.labels))
    marks += [f"after {_task_words(reading, number)}" for number in line.after if number in reading.linked]
    if line.parent is not None and line.parent in reading.linked:
        marks.append(f"part of {_task_words(reading, line.parent)}")
    if line.due_at is not None:
        marks.append(f"due {_local_words(line.due_at)}")
    if reading.folder is not None:
        marks.append(f"in {reading.folder}")
    if line.retries is not None:
        marks.append("1 retry" if line.retries == 1 else f"{line.retries} retries")
    if line.verify is not None:
        marks.append(f"verify {command_text(line.verify)}")
    return [*parts, *(Content.styled(plain_line(mark, max_characters=_LONGEST_TITLE), "$secondary") for mark in marks)]


def _task_words(reading: QuickReading, number: int) -> str:
    return f"#{number} {reading.linked[number].title}"


def _local_words(due_at: datetime) -> str:
    now = SystemClock().now()
    zone = now.astimezone().tzinfo
    return "" if zone is None else moment_words(due_at, now=now, zone=zone)
