"""The place that shows all conversations, and searches everything that was said and done in them."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Final

from textual.content import Content
from textual.widgets import Input, Static

from agentmon.domain.clock import SystemClock
from agentmon.screens.bindings import SESSIONS
from agentmon.screens.frame import AttachRequested, ServiceScreen
from agentmon.screens.row_filter import clear_filter, leave_filter, show_filter
from agentmon.screens.row_moves import RowMoves
from agentmon.screens.sessions.session_actions import fork, go_on, rename, restart
from agentmon.widgets.form import LineInput
from agentmon.widgets.key_footer import KeyFooter
from agentmon.widgets.row_table import RowTable
from agentmon.widgets.session_rows import SESSION_COLUMNS, session_rows
from agentmon.widgets.status_line import StatusBar

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from textual.app import ComposeResult
    from textual.binding import BindingType
    from textual.timer import Timer

    from agentmon.domain.clock import Clock
    from agentmon.domain.sessions import SessionListing
    from agentmon.screens.frame import ServicesGetter, WorkspaceGetter

SEARCH_WAIT_S: Final = 0.15
"""How long after the last letter a search begins."""
_PAGE: Final = 500
_MOST_ROWS: Final = 5_000
"""What lies farther back is found by searching."""
_CLOCK_INTERVAL_S: Final = 20.0
_EMPTY: Final = (
    ("No conversations yet.\n\n", "bold"),
    ("Give a task an AI agent on the board (", ""),
    ("1", "$primary bold"),
    (") and press ", ""),
    ("r", "$primary bold"),
    ("; what is said and done then stays here.\n\n", ""),
    (
        "What Claude Code, Codex and Gemini CLI said and did without agentmon is read in the background;\n",
        "$text-muted",
    ),
    ("agentmon sessions import", "$primary"),
    (" reads it at once.", "$text-muted"),
)
_ACTIONS: Final = {"open_session", "send_message", "fork", "restart", "rename", "open_task", "attach"}
_ON_RUNS: Final = {"send_message", "fork", "restart"}
"""What goes on from a run of agentmon."""


class SessionsScreen(RowMoves, ServiceScreen[None]):
    """A table of conversations, newest first, with a search over titles, messages and tool calls."""

    CSS_PATH = "screen.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [*SESSIONS]
    AUTO_FOCUS = "#sessions"

    def __init__(self, services: ServicesGetter, workspace: WorkspaceGetter, *, clock: Clock | None = None) -> None:
        super().__init__(services, workspace)
        self._clock = clock or SystemClock()
        self._known: dict[str, SessionListing] = {}
        self._search = ""
        self._found_for = ""
        """What the rows that are shown were searched with."""
        self._most = _PAGE
        """So many rows are read at most; more when the cursor comes to the last one."""
        self._is_loaded = False
        self._search_timer: Timer | None = None

    def compose(self) -> ComposeResult:
        """Yield summary, table and search."""
        yield StatusBar(id="status")
        yield Static(id="summary")
        yield RowTable(SESSION_COLUMNS, id="sessions")
        yield Static(Content.assemble(*_EMPTY), id="empty")
        yield LineInput(placeholder="words of titles, messages and tool calls", id="search")
        yield KeyFooter()

    def on_mount(self) -> None:
        """Show the time."""
        self.set_interval(_CLOCK_INTERVAL_S, self._show_time, name="clock")
        self._show_time()
        self._show_summary()

    async def refresh_snapshot(self) -> None:
        """Read the conversations that have the words of the search."""
        services = await self.services()
        workspace = await self.workspace()
        page = await services.board.page(workspace, ())
        status_bar = self.query_one(StatusBar)
        status_bar.place = page.workspace_name
        status_bar.numbers = page.status_line
        self.is_queue_paused = page.status_line.is_paused
        search = self._search
        listings = await services.sessions.list(workspace.id, search=search, with_history=True, limit=self._most)
        if search != self._search:
            self.request_refresh()
            return
        self._known = {str(one.session.id): one for one in listings}
        self._is_loaded = True
        self._found_for = search
        with self.app.batch_update():
            self._table.rows = session_rows(listings, self._clock.now(), page.status_line.money)
            self.set_class(not listings and not search, "-empty")
            self._show_summary()
        self.refresh_bindings()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:  # noqa: ARG002 - Textual's
        """Offer what the conversation under the cursor allows."""
        if action not in _ACTIONS:
            return True
        selected = self._selected
        if selected is None:
            return None
        if action == "attach":
            return True if selected.is_live and selected.newest_execution_id is not None else None
        if action == "open_task":
            return True if selected.session.task_id is not None else None
        if action in _ON_RUNS and selected.newest_execution_id is None:
            return None
        if action == "fork":
            return None if selected.session.cannot_fork else True
        return True

    def action_open_session(self) -> None:
        """Show the conversation under the cursor."""
        self._table.open_selected()

    def action_send_message(self) -> None:
        """Write to its agent."""
        self._with_selected(go_on, "message")

    def action_fork(self) -> None:
        """Go on with a copy of it."""
        self._with_selected(fork, "fork")

    def action_restart(self) -> None:
        """Begin it anew."""
        self._with_selected(restart, "restart")

    def action_rename(self) -> None:
        """Give it another title."""
        self._with_selected(rename, "rename")

    def action_open_task(self) -> None:
        """Show its task."""
        selected = self._selected
        if selected is None or selected.session.task_id is None:
            return
        from agentmon.screens.tasks.task_page import TaskPage  # noqa: PLC0415 - not needed before

        self.app.push_screen(
            TaskPage(
                task_id=selected.session.task_id, services=self.services, workspace=self.workspace, clock=self._clock
            )
        )

    def action_attach(self) -> None:
        """Enter its terminal."""
        selected = self._selected
        if selected is not None and selected.newest_execution_id is not None:
            self.post_message(AttachRequested(selected.newest_execution_id))

    def action_search(self) -> None:
        """Show the search and type into it."""
        show_filter(self, self.query_one("#search", Input))

    def action_clear(self) -> None:
        """Clear the search."""
        clear_filter(self, self.query_one("#search", Input))
        self._table.focus()

    def on_input_changed(self, event: Input.Changed) -> None:
        """Search a moment after the last letter."""
        event.stop()
        if self._search_timer is not None:
            self._search_timer.stop()
        self._search_timer = self.set_timer(SEARCH_WAIT_S, self._begin_search, name="search")

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Go back to the rows; an empty search goes away."""
        event.stop()
        leave_filter(self, event.input)
        self._table.focus()

    def on_row_table_highlighted(self, message: RowTable.Highlighted) -> None:
        """Offer what fits the row; behind the last one more are read."""
        message.stop()
        self.refresh_bindings()
        if self._has_more and message.key is not None and message.key == next(reversed(self._known), None):
            self._most = min(self._most + _PAGE, _MOST_ROWS)
            self.request_refresh()

    def on_row_table_opened(self, message: RowTable.Opened) -> None:
        """Show the conversation."""
        message.stop()
        listing = self._known.get(message.key)
        if listing is None:
            return
        from agentmon.screens.sessions.conversation_page import ConversationPage  # noqa: PLC0415 - not needed before

        self.app.push_screen(
            ConversationPage(listing, services=self.services, workspace=self.workspace, clock=self._clock)
        )

    @property
    def _table(self) -> RowTable:
        return self.query_one("#sessions", RowTable)

    @property
    def _has_more(self) -> bool:
        return len(self._known) == self._most < _MOST_ROWS

    @property
    def _selected(self) -> SessionListing | None:
        table = self.query_one_optional("#sessions", RowTable)
        return None if table is None else self._known.get(table.selected_key or "")

    def _with_selected(
        self, work: Callable[[SessionsScreen, SessionListing], Coroutine[None, None, None]], name: str
    ) -> None:
        selected = self._selected
        if selected is not None:
            self.open_dialog(work(self, selected), name=name)

    def _begin_search(self) -> None:
        search = self.query_one("#search", Input).value.strip()
        if search != self._search:
            self._search, self._most = search, _PAGE
            self._show_summary()
            self.request_refresh()

    def _show_time(self) -> None:
        self.query_one(StatusBar).time = self._clock.now().astimezone()

    def _show_summary(self) -> None:
        live = sum(listing.is_live for listing in self._known.values())
        parts: list[tuple[str, str]] = [("Sessions", "bold")]
        if live:
            parts.append((f"   ● {live:,} live", "$secondary"))
        if self._is_loaded:
            count = len(self._known)
            more = "+" if count >= self._most else ""
            words = "found" if self._found_for else "in all"
            parts.append((f"   {count:,}{more} {words}", "$text-muted"))
        if self._search != self._found_for:
            parts.append(("   searching…", "$text-muted"))
        elif self._found_for and not self._known:
            parts.append(("   nothing has these words; esc clears the search", "$text-muted"))
        self.query_one("#summary", Static).update(Content.assemble(*parts), layout=False)
