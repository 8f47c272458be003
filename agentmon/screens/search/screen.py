"""The search over everything: results while it is typed, and enter goes there."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, ClassVar, Final

from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.content import Content
from textual.widgets import Input, Static
from textual.widgets.input import Selection

from agentmon.domain.clock import SystemClock
from agentmon.domain.errors import NotFoundError
from agentmon.domain.ids import ExecutionId, SessionId, TaskId
from agentmon.domain.moments import moment_words
from agentmon.domain.plain_text import plain_line
from agentmon.domain.search import SearchKind, TextMatcher, parse_query
from agentmon.screens.bindings import SEARCH
from agentmon.screens.frame import ServiceScreen
from agentmon.screens.search.document_dialog import DocumentDialog
from agentmon.screens.tasks.task_places import LogSpot
from agentmon.services.search import PATIENT_S
from agentmon.widgets.form import LineInput
from agentmon.widgets.key_footer import KeyFooter
from agentmon.widgets.search_results import SearchResults, found_rows, preview

if TYPE_CHECKING:
    from collections.abc import Sequence

    from textual.app import ComposeResult
    from textual.binding import BindingType
    from textual.screen import Screen

    from agentmon.domain.clock import Clock
    from agentmon.domain.search import FoundOfKind, SearchHit
    from agentmon.domain.tasks import Workspace
    from agentmon.screens.frame import ServicesGetter, WorkspaceGetter

_TIPS: Final = (
    ("Tasks, conversations, messages, tool calls, changes, logs and documents.\n\n", "$text-muted"),
    ("fix login        ", "$primary"),
    ("both words; the last one may be cut off\n", ""),
    ('"exit code 1"    ', "$primary"),
    ("these words in this order\n", ""),
    ("retry -test      ", "$primary"),
    ("retry without test\n", ""),
    ("in:logs timeout  ", "$primary"),
    ("only logs; also tasks, messages, operations, changes …\n", ""),
    ("#auth   #12      ", "$primary"),
    ("tasks with the label, the task of the number", ""),
)
_NOTHING: Final = "   nothing has these words"
_LONGEST_HEADING: Final = 200


class SearchScreen(ServiceScreen[str]):
    """One line to type into, what was found below it, and the text around it beside that; ends with what was typed."""

    CSS_PATH = "screen.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [*SEARCH]
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (120, "-wide")]  # noqa: RUF012 - Textual types it as an instance's
    AUTO_FOCUS = "#query"

    def __init__(
        self,
        services: ServicesGetter,
        workspace: WorkspaceGetter,
        *,
        text: str = "",
        is_everywhere: bool = False,
        clock: Clock | None = None,
    ) -> None:
        """Make the screen.

        Args:
            services: Gives the services once they are there.
            workspace: Gives the workspace that is searched.
            text: What was searched last; the next letter replaces it.
            is_everywhere: Whether all workspaces are searched.
            clock: Tells the time.
        """
        super().__init__(services, workspace)
        self._text = text
        self._clock = clock or SystemClock()
        self._is_everywhere = is_everywhere
        self._matcher = TextMatcher(parse_query(""))
        self._found: tuple[FoundOfKind, ...] = ()
        self._found_for: str | None = None
        """What the rows that are shown were searched with."""

    def compose(self) -> ComposeResult:
        """Yield the line, the counts, the rows with the text beside them, and the keys."""
        yield LineInput(self._text, placeholder="search everything", id="query")
        yield Static(id="summary")
        with Horizontal(id="found"):
            yield SearchResults(id="results")
            with VerticalScroll(id="around", can_focus=False):
                yield Static(id="preview")
        with Vertical(id="tips"):
            yield Static(Content.assemble(*_TIPS))
        yield KeyFooter()

    def on_mount(self) -> None:
        """Search what was searched last."""
        field = self.query_one("#query", LineInput)
        field.selection = Selection(0, len(self._text))
        self._search()

    async def refresh_snapshot(self) -> None:
        """Nothing follows the database: what was found stays while somebody reads it."""

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:  # noqa: ARG002 - Textual's
        """Offer to go somewhere when something was found."""
        return True if action not in {"open_hit", "go_kind"} or self._results.rows else None

    def action_close(self) -> None:
        """Go back."""
        self.dismiss(self._text)

    def action_open_hit(self) -> None:
        """Go to what is under the cursor."""
        self._results.open_selected()

    def action_go_row(self, rows: int) -> None:
        """Move the cursor by rows."""
        self._results.move_by(rows)

    def action_go_page(self, direction: int) -> None:
        """Move the cursor by half a screenful."""
        self._results.go_page(direction)

    def action_go_kind(self, steps: int) -> None:
        """Go to the next kind."""
        self._results.go_kind(steps)

    def action_search_everywhere(self) -> None:
        """Search all workspaces, or this one alone again."""
        self._is_everywhere = not self._is_everywhere
        self._search()

    def on_input_changed(self, event: Input.Changed) -> None:
        """Search at once; what was asked before is broken off."""
        event.stop()
        if event.value != self._text:
            self._text = event.value
            self._search()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Go to what is under the cursor."""
        event.stop()
        self.action_open_hit()

    def on_line_input_noted(self, message: LineInput.Noted) -> None:
        """Tell what became of a paste."""
        message.stop()
        self.notify(message.text)

    def on_search_results_highlighted(self, message: SearchResults.Highlighted) -> None:
        """Show the text around it."""
        message.stop()
        self._show_preview(message.hit)

    def on_search_results_opened(self, message: SearchResults.Opened) -> None:
        """Go there."""
        message.stop()
        self.open_dialog(self._go_to(message.hit), name="go to what was found")

    @property
    def is_everywhere(self) -> bool:
        """Whether all workspaces are searched."""
        return self._is_everywhere

    @property
    def _results(self) -> SearchResults:
        return self.query_one("#results", SearchResults)

    def _search(self) -> None:
        self._show_summary()
        self.start(self._find(self._text), name="search", group="search", exclusive=True)

    async def _find(self, text: str) -> None:
        """Search, and once more with patience when the time was too short for something."""
        services = await self.services()
        workspace = None if self._is_everywhere else await self.workspace()
        found = await services.search.search(text, workspace=workspace)
        if found is None:
            return
        self._show(text, found)
        if any(group.is_cut for group in found):
            found = await services.search.search(text, workspace=workspace, most_s=PATIENT_S)
            if found is not None:
                self._show(text, found)

    def _show(self, text: str, found: tuple[FoundOfKind, ...]) -> None:
        if text != self._text:
            return
        self._matcher = TextMatcher(parse_query(text))
        self._results.keeps_cursor = text == self._found_for
        self._found, self._found_for = found, text
        with self.app.batch_update():
            self._results.rows = found_rows(found, {hit.key: self._place(hit) for group in found for hit in group.hits})
            self.set_class(parse_query(text).is_empty, "-empty")
            self._show_summary()
            self._show_preview(self._results.selected)
        self.refresh_bindings()

    def _show_summary(self) -> None:
        scope = "all workspaces" if self._is_everywhere else "this workspace"
        parts: list[tuple[str, str]] = [(scope, "$text-muted")]
        if self._found_for is not None and self._text.strip():
            count = sum(len(group.hits) for group in self._found)
            nothing = "   one letter finds whole words; type on" if len(self._text.strip()) == 1 else _NOTHING
            more = "+" if any(group.has_more or group.is_cut for group in self._found) else ""
            parts.append((f"   {count:,}{more} found", "bold") if count else (nothing, "$warning"))
        elif self._text.strip():
            parts.append(("   searching…", "$text-muted"))
        parts += [(f"   {note}", "$text-muted") for note in _notes(self._found)]
        self.query_one("#summary", Static).update(Content.assemble(*parts), layout=False)

    def _show_preview(self, hit: SearchHit | None) -> None:
        shown = Content()
        if hit is not None:
            number = "" if hit.task_number is None else f"#{hit.task_number} "
            heading = plain_line(f"{number}{hit.title}", max_characters=_LONGEST_HEADING)
            shown = preview(hit, f"{heading}\n{self._place(hit)}", self._matcher)
        self.query_one("#preview", Static).update(shown)
        self.query_one("#around", VerticalScroll).scroll_home(animate=False)

    def _place(self, hit: SearchHit) -> str:
        now = self._clock.now()
        when = "" if hit.at is None else moment_words(hit.at, now=now, zone=now.astimezone().tzinfo or now.tzinfo)  # type: ignore[arg-type] # an aware time has one
        where = f"line {hit.line:,}" if hit.line is not None else hit.where
        return ", ".join(part for part in (when, plain_line(where, max_characters=60)) if part)

    async def _go_to(self, hit: SearchHit) -> None:
        """Show what was found, above this screen."""
        services = await self.services()
        page: Screen[None] | None = None
        if hit.kind is SearchKind.DOCUMENTS:
            found = await services.search.document(hit.key)
            page = None if found is None else DocumentDialog(*found)
        elif hit.kind is SearchKind.CHANGES:
            path = hit.context.split("\n", 1)[0]
            self.show_changes_of(TaskId(str(hit.task_id)), ExecutionId(str(hit.execution_id)), spot=(path, 0))
            return
        elif hit.kind in {SearchKind.TASKS, SearchKind.LOGS}:
            from agentmon.screens.tasks.task_page import TaskPage  # noqa: PLC0415 - not needed before

            page = TaskPage(
                task_id=TaskId(str(hit.task_id)),
                services=self.services,
                workspace=partial(self._workspace_of_hit, hit),
                execution_id=None if hit.execution_id is None else ExecutionId(hit.execution_id),
                at=None if hit.offset is None else LogSpot(offset=hit.offset, words=_marked_words(hit)),
                clock=self._clock,
            )
        elif hit.session_id is not None:
            from agentmon.screens.sessions.conversation_page import ConversationPage  # noqa: PLC0415 - not needed before

            page = ConversationPage(
                await services.sessions.get_listing(SessionId(hit.session_id)),
                services=self.services,
                workspace=partial(self._workspace_of_hit, hit),
                clock=self._clock,
                at=None if hit.kind is SearchKind.SESSIONS else hit.key,
            )
        if page is None:
            self.notify("It was removed meanwhile.", severity="warning")
            self._search()
            return
        await self.app.push_screen(page)

    async def _workspace_of_hit(self, hit: SearchHit) -> Workspace:
        """Return the workspace of what was found; where it belongs to no task that is there, that of this screen."""
        try:
            return await (self.workspace() if hit.task_id is None else self.workspace_of(TaskId(hit.task_id)))
        except NotFoundError:
            return await self.workspace()


def _marked_words(hit: SearchHit) -> str:
    """Return the first piece of the line that was found, for the log to mark."""
    start, end = hit.snippet.marks[0] if hit.snippet.marks else (0, 0)
    return hit.snippet.text[start:end].lower()


def _notes(found: Sequence[FoundOfKind]) -> list[str]:
    notes = []
    missing = sum(group.unindexed for group in found)
    if missing:
        notes.append(f"{missing:,} are not in the index yet")
    if any(group.is_cut for group in found):
        notes.append("looking on…")
    if any(hit.is_partial for group in found for hit in group.hits):
        notes.append("long logs in part (search.log_mb)")
    return notes
