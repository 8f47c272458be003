"""The board: columns of cards, the selected card's log beside them, and everything a person does to cards."""

from __future__ import annotations

from datetime import timedelta
from functools import partial
from time import monotonic
from typing import TYPE_CHECKING, ClassVar, Final

from textual.containers import Vertical
from textual.css.query import NoMatches

from agentmon.domain.board import BoardSort, StatusLine
from agentmon.domain.clock import SystemClock
from agentmon.domain.errors import NotFoundError
from agentmon.domain.live_state import LiveState
from agentmon.domain.plain_text import plain_line
from agentmon.domain.task_status import TaskStatus
from agentmon.screens.bindings import BOARD
from agentmon.screens.board.board_place import BoardPlace
from agentmon.screens.board.card_changes import CardChanges, Move
from agentmon.screens.frame import AttachRequested, FirstFrameShown, ServiceScreen
from agentmon.screens.tasks.running import (
    ask_kill,
    ask_run_choice,
    ask_stop,
    release_agent,
    run_tasks,
    stop_run,
)
from agentmon.screens.wait_clock import WaitClock
from agentmon.store.first_frame import read_first_board
from agentmon.widgets.board_column import FOLDED_WIDTH, MIN_WIDTH, BoardColumn
from agentmon.widgets.card_text import is_ongoing, is_open
from agentmon.widgets.key_footer import KeyFooter
from agentmon.widgets.status_line import StatusBar

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from textual import events
    from textual.app import ComposeResult
    from textual.binding import BindingType
    from textual.timer import Timer
    from textual.widgets import Input
    from textual.worker import Worker

    from agentmon.bootstrap import Services
    from agentmon.domain.board import BoardPage, Card, ColumnPage
    from agentmon.domain.clock import Clock
    from agentmon.domain.ids import TaskId, WorkspaceId
    from agentmon.domain.tasks import Workspace
    from agentmon.paths import Paths
    from agentmon.screens.frame import ServicesGetter, StoreReplaced, WorkspaceGetter
    from agentmon.screens.screen_feed import ScreenFeed
    from agentmon.screens.tasks.run_dialog import RunChoice
    from agentmon.widgets.card_preview import CardPreview

LEAST_WIDTH: Final = 40
LEAST_HEIGHT: Final = 10
PREVIEW_BELOW_FROM: Final = (120, 30)
"""Least width and height of a window that has room for the preview below the columns."""
PREVIEW_BESIDE_FROM: Final = 150
"""Least width of a window that has room for the preview on the right third, beside four columns."""

_IMPORT_LOOK_S: Final = 1.0
_TICK_S: Final = 1.0
_TALKS: Final = {"send_message", "interrupt", "change_agent"}
_LOG_POLL_S: Final = 0.2
_FIRST_CARDS_SPARE: Final = 5
_LEAST_CARD_LINES: Final = 3
_WAITING_SEARCH_LIMIT: Final = 1000
SORT_KEY: Final = "board.sort"
_SORT_WORDS: Final = {
    BoardSort.ORDER: "the cards stand in their own order",
    BoardSort.PRIORITY: "sorted by priority",
    BoardSort.DUE: "sorted by due date",
    BoardSort.CHANGED: "sorted by last change",
    BoardSort.STATE: "sorted by state",
}
_FOLDED_AT_FIRST: Final = frozenset({TaskStatus.REVIEW, TaskStatus.CANCELLED})
_EMPTY_BOARD: Final = "No tasks yet.\n\nn makes the first one.\n? shows all keys.\n\nagentmon demo shows it at work."
_EMPTY_COLUMN: Final = "Nothing here."
_NOTHING_FOUND: Final = "Nothing fits the filter."


class BoardScreen(ServiceScreen[None]):
    """The board of one workspace, or of all together.

    Moves show at once and are written behind; what the database says afterwards is what stays.
    """

    BINDINGS: ClassVar[list[BindingType]] = [*BOARD]
    AUTO_FOCUS = None

    def __init__(
        self,
        services: ServicesGetter,
        workspace: WorkspaceGetter,
        *,
        paths: Paths,
        workspace_root: Path,
        clock: Clock | None = None,
    ) -> None:
        super().__init__(services, workspace)
        self._paths = paths
        self._workspace_root = workspace_root
        self._clock = clock or SystemClock()
        self._board = {
            status: BoardColumn(status, is_folded=status in _FOLDED_AT_FIRST, id=f"column-{status.replace('_', '-')}")
            for status in TaskStatus
        }
        self._current = self._board[TaskStatus.TODO]
        self._has_review = True
        """Whether what agents changed goes to Review; else that column is shown only where it has cards."""
        self._is_review_left_alone = False
        """Whether the person folded or unfolded it; before that it unfolds with its first card, and folds without."""
        self._first_shown = 0
        self._text_filter = ""
        self._marked: dict[TaskId, Card] = {}
        self._changes = CardChanges(self, follow=self._follow, is_shown=self._is_shown)
        self._home = workspace
        self._shown: Workspace | None = None
        """The workspace that was chosen; None for that of the app, until another one is chosen."""
        self._is_all = False
        """Whether the cards of all workspaces are shown together."""
        self._places: dict[str, BoardPlace] = {}
        """Where the selection was on the boards that are not shown."""
        self._is_place_wanted = False
        """Whether a board is shown for the first time, so that the selection goes where there are cards."""
        self._is_card_wanted = False
        """Whether a filter was entered before what fits it was read, so that the selection goes there then."""
        self.workspace = self._working_place
        self._starting: set[TaskId] = set()
        self._followed_id: TaskId | None = None
        """The card that a person selected or ran last, which the selection goes along with; None for none."""
        self._seen_id: TaskId | None = None
        """The card that was under the cursor last."""
        self._is_restarting = False
        """Whether a person wants to see other cards, and none of these is shown yet."""
        self._seen_changes = 0
        """How many changes a person had begun here by then."""
        self._is_preview_wanted = True
        self._is_empty = False
        self._is_first_frame_shown = False
        self._are_styles_fresh = False
        self._preview: CardPreview | None = None
        self._preview_feed: ScreenFeed | None = None
        self._tick: Timer | None = None
        self._waits = WaitClock(self, self._on_wait_end)
        self._log_poll: Timer | None = None
        self._status_line = StatusLine()
        self._sort = BoardSort.ORDER
        self._sort_storing: Worker[object] | None = None
        self._is_import_look_planned = False

    @property
    def is_writing(self) -> bool:
        """Whether something is shown that is not written yet."""
        return self._changes.is_writing

    # What is shown.

    def compose(self) -> ComposeResult:
        """Yield the status line, the columns, room for the preview, and the keys."""
        # Before there are widgets, since each change of a class works out the styles of all below it.
        self._arrange()
        yield StatusBar(id="status")
        yield KeyFooter()
        yield Vertical(id="preview")
        yield from self._board.values()

    def on_mount(self) -> None:
        """Show what the database says, read without the services; they come after the first frame."""
        limit = max(self.app.size.height, LEAST_HEIGHT) // _LEAST_CARD_LINES + _FIRST_CARDS_SPARE
        requests = [column.request()._replace(limit=limit) for column in self._board.values()]
        page = read_first_board(
            self._paths.database_path, self._paths.settings_file, str(self._workspace_root), requests
        )
        self._tick = self.set_interval(_TICK_S, self._on_tick, name="elapsed", pause=True)
        self._log_poll = self.set_interval(_LOG_POLL_S, self._on_log_poll, name="log", pause=True)
        self._show_minute()
        if page is None:
            self.query_one(StatusBar).place = self._workspace_root.name
            self._show_hints(0)
            self._arrange()
        else:
            self._apply(page)
            self._current = next((column for column in self._board.values() if column.total), self._current)
            self._arrange()
        self._are_styles_fresh = True
        self._current.focus()

    def update_node_styles(self, animate: bool = True) -> None:
        """Work out the styles, but not those of a moment ago again.

        When it comes up a screen works out all styles below it, for what changed while it was away; of one that was
        mounted right before nothing did, and the first frame would wait 5 ms for it.
        """
        if self._are_styles_fresh:
            self._are_styles_fresh = False
        else:
            super().update_node_styles(animate=animate)

    def on_store_replaced(self, message: StoreReplaced) -> None:
        """Show the board of the app's own workspace in what is open now."""
        message.stop()
        self._shown = self._followed_id = None
        self._places.clear()
        self._set_marked({})
        self._changes.forget()
        self.request_refresh()

    async def refresh_snapshot(self) -> None:
        """Read what is in view of every column, and show it."""
        services = await self.services()
        await self._chosen_place()
        scope, text_filter = self._scope, self._text_filter
        was_writing, begun_count = self.is_writing, self._changes.begun_count
        requests = [column.request(text_filter) for column in self._board.values()]
        page = await services.board.page(scope, requests)
        pause = await services.queue.find_pause() if page.status_line.is_paused else None
        self.query_one(StatusBar).paused_since = None if pause is None else pause.since
        is_stale = text_filter != self._text_filter or scope is not self._scope
        if is_stale or begun_count != self._changes.begun_count:
            self.request_refresh()
        elif not was_writing:
            # A page read while something was written may be older than what is shown; the end of the write asks again.
            self._apply(page)

    def _look_at_import(self) -> None:
        self._is_import_look_planned = False
        self.request_refresh()

    def _apply(self, page: BoardPage) -> None:
        now = self._clock.now()
        status_bar = self.query_one(StatusBar)
        status_bar.place = page.workspace_name
        status_bar.numbers = self._status_line = page.status_line
        status_bar.import_percent = page.import_percent
        status_bar.sorting = "" if page.sort is BoardSort.ORDER else f"by {page.sort.value}"
        self._take_sort(page.sort)
        if page.import_percent is not None and not self._is_import_look_planned:
            # An import tells its progress, and its end, without a change of the database.
            self._is_import_look_planned = True
            self.set_timer(_IMPORT_LOOK_S, self._look_at_import, name="import")
        self.is_queue_paused = page.status_line.is_paused
        total = sum(column_page.total for column_page in page.columns.values())
        for status, column in self._board.items():
            column.now = now
            if status in page.columns:
                column.page = page.columns[status]
        was_empty, had_review = self._is_empty, self._has_review
        self._has_review = page.has_review
        is_arranged_anew = self._fit_review() or had_review != self._has_review
        self._show_hints(total)
        if was_empty != self._is_empty or is_arranged_anew:
            self._arrange()
        for column_page in page.columns.values():
            for at, card in enumerate(column_page.cards):
                if card.task_id in self._marked:
                    self._marked[card.task_id] = card
                if card.task_id == self._followed_id:
                    self._go_along(card, column_page.offset + at)
        if self._is_place_wanted or (self._is_card_wanted and not self._current.total):
            self._go_to(next((column for column in self._board.values() if column.total), self._current))
        self._is_place_wanted = self._is_card_wanted = False
        self._end_restart()
        self._pace()
        self._plan_waits()
        self._update_preview()

    def _fit_review(self) -> bool:
        """Fold the column Review while it is empty; return whether that changes anything."""
        column = self._board[TaskStatus.REVIEW]
        wanted = column.is_folded if self._is_review_left_alone else not column.total
        is_other, column.is_folded = wanted != column.is_folded, wanted
        return is_other

    @property
    def _columns(self) -> list[BoardColumn]:
        """The columns that are in use, from left to right."""
        review = self._board[TaskStatus.REVIEW]
        is_used = self._has_review or review.total or review is self._current
        return [column for column in self._board.values() if column is not review or is_used]

    def _take_sort(self, sort: BoardSort) -> None:
        """Take note of the stored order, but not while another one is being stored: the next key goes on from that."""
        if self._sort_storing is None or self._sort_storing.is_finished:
            self._sort = sort

    def _show_hints(self, total: int) -> None:
        """Say in empty columns why they are empty, given how many cards all columns have."""
        self._is_empty = not total and not self._text_filter
        for status, column in self._board.items():
            if self._is_empty and status is TaskStatus.TODO:
                column.hint = _EMPTY_BOARD
            else:
                column.hint = _NOTHING_FOUND if self._text_filter else _EMPTY_COLUMN

    def _go_along(self, card: Card, index: int) -> None:
        """Keep the card that a person selected or ran selected while its run moves it, until another one is."""
        column = self._board[card.status]
        if column is not self._current and isinstance(self.focused, BoardColumn):
            column.follow(card.task_id, index)
            self._go_to(column)

    def _pace(self) -> None:
        """Let the timers run only while something they would show moves."""
        is_moving = any(column.has_ongoing for column in self._board.values())
        preview = self._preview
        is_log_moving = preview is not None and preview.display and preview.is_live
        for timer, should_run in ((self._tick, is_moving), (self._log_poll, is_log_moving)):
            if timer is not None:
                (timer.resume if should_run else timer.pause)()

    def _on_tick(self) -> None:
        now = self._clock.now()
        is_motion = self.app.animation_level == "full"
        for column in self._board.values():
            if column.has_ongoing:
                column.is_pulse_low = is_motion and not column.is_pulse_low
                column.now = now
        if self._preview is not None:
            self._preview.now = now

    def _plan_waits(self) -> None:
        pages = [column.page for column in self._board.values() if column.page is not None]
        times = [
            time for page in pages for card in page.cards for time in (card.waits_until, card.next_run_at, card.due_at)
        ]
        self._waits.plan(times, self._clock.now())

    def _on_wait_end(self) -> None:
        self._show_now()
        self._plan_waits()

    def _show_now(self) -> None:
        """Draw the words of times as they are at this moment."""
        now = self._clock.now()
        for column in self._board.values():
            column.now = now
        if self._preview is not None:
            self._preview.now = now

    def _on_log_poll(self) -> None:
        if self._preview is not None and self._preview_feed is not None and self.is_current:
            self._preview.poll()
            self._preview_feed.poll()

    def _show_minute(self) -> None:
        present = self._clock.now().astimezone()
        self.query_one(StatusBar).time = present
        next_minute = present.replace(second=0, microsecond=0) + timedelta(minutes=1)
        self.set_timer(max(1.0, (next_minute - present).total_seconds()), self._show_minute, name="clock")

    def on_first_frame_shown(self, message: FirstFrameShown) -> None:
        """Make the preview."""
        message.stop()
        self._is_first_frame_shown = True
        self._update_preview()

    def action_sort(self) -> None:
        """Sort all columns in the next way."""
        self._sort = self._sort.next
        self._sort_storing = self.start(self._store_sort(self._sort), name="sort", group="sort", exclusive=True)

    async def _store_sort(self, sort: BoardSort) -> None:
        services = await self.services()
        await services.settings.set(SORT_KEY, sort.value, actor=services.actor)
        # The line at the top says it as well: whoever goes on to the next order sees no heap of them.
        self.notify(_SORT_WORDS[sort], timeout=2)
        selected = self._current.selected
        if selected is not None:
            await self._follow(services, selected.task_id)
        self.request_refresh()

    # Whose board.

    @property
    def _scope(self) -> Workspace | None:
        """The workspace whose cards are shown; None for those of all, and before any is known."""
        return None if self._is_all else self._shown

    @property
    def is_everywhere(self) -> bool:
        """Whether the cards of all workspaces are shown together."""
        return self._is_all

    async def _chosen_place(self) -> Workspace:
        """Return the workspace that was chosen last, all together apart; before that, the app's own."""
        if self._shown is None:
            self._shown = await self._home()
        return self._shown

    async def _working_place(self) -> Workspace:
        """Return the workspace in which a person works now: that which is shown, or else that of the selected card."""
        shown = await self._chosen_place()
        card = self._current.selected
        if card is None or not self._is_all:
            return shown
        try:
            return await self.workspace_of(card.task_id)
        except NotFoundError:
            # The card was deleted, and the board does not know it yet.
            return shown

    def _is_shown(self, workspace_id: WorkspaceId) -> bool:
        return self._is_all or (self._shown is not None and self._shown.id == workspace_id)

    def action_choose_workspace(self) -> None:
        """Choose whose board is shown, or that of all workspaces together."""
        self.open_dialog(self._choose_workspace(), name="workspaces")

    async def _choose_workspace(self) -> None:
        from agentmon.screens.board.workspace_menu import (  # noqa: PLC0415 - not part of the first frame
            AllWorkspaces,
            choose_workspace,
        )

        present = None if self._is_all else (await self._chosen_place()).id
        chosen = await choose_workspace(self, present)
        if chosen is None:
            return
        self._places[self._place_key] = BoardPlace.of(self._current, self._board.values())
        self._is_all = isinstance(chosen, AllWorkspaces)
        if not isinstance(chosen, AllWorkspaces):
            self._shown = chosen
        self._set_marked({})
        place = self._places.get(self._place_key)
        self._is_place_wanted = place is None
        self._restart_columns()
        if place is not None:
            self._go_to(place.restore(self._board))
        self.request_refresh()

    @property
    def _place_key(self) -> str:
        scope = self._scope
        return "" if scope is None else scope.id

    # How the window is divided.

    def on_resize(self, event: events.Resize) -> None:
        """Divide the window anew."""
        is_too_small = event.size.width < LEAST_WIDTH or event.size.height < LEAST_HEIGHT
        if self.has_class("-too-small") and not is_too_small:
            # What is hidden loses the focus.
            self.call_after_refresh(self._current.focus)
        self.set_class(is_too_small, "-too-small")
        if self.has_class("-too-small") and not self.query("#too-small"):
            from agentmon.widgets.notice import Notice  # noqa: PLC0415 - rare, so not part of the first frame

            self.mount(Notice(f"window too small (needs {LEAST_WIDTH}×{LEAST_HEIGHT})", id="too-small"))
        self._arrange()
        self.call_after_refresh(self._update_preview)

    def _arrange(self) -> None:
        """Choose the columns that fit, the current one among them, and the place of the preview."""
        width, height = self.app.size
        # An empty board has nothing to preview; its columns take the room.
        is_wanted = self._is_preview_wanted and not self._is_empty
        is_beside = is_wanted and width >= PREVIEW_BESIDE_FROM
        is_below = is_wanted and not is_beside and width >= PREVIEW_BELOW_FROM[0] and height >= PREVIEW_BELOW_FROM[1]
        self.set_class(is_beside, "-preview-beside")
        self.set_class(is_below, "-preview-below")
        room = width - width // 3 if is_beside else width
        columns = self._columns
        shown = _columns_that_fit(columns, self._current, room, self._first_shown)
        self._first_shown = columns.index(shown[0])
        last_shown = columns.index(shown[-1])
        for column in self._board.values():
            column.display = column in shown
        for at, column in enumerate(columns):
            column.has_left = column is shown[0] and at > 0
            column.has_right = column is shown[-1] and last_shown < len(columns) - 1

    @property
    def _has_preview(self) -> bool:
        return self.has_class("-preview-beside") or self.has_class("-preview-below")

    def _update_preview(self) -> None:
        footer = self.query_one(KeyFooter)
        card = self._current.selected
        hidden = _hidden_actions(card)
        footer.hidden_actions = hidden if self._marked or self._text_filter else hidden | {"clear"}
        if not self._has_preview or not self._is_first_frame_shown:
            return
        if self._preview is None:
            from agentmon.screens.screen_feed import ScreenFeed  # noqa: PLC0415 - not part of the first frame
            from agentmon.widgets.card_preview import CardPreview  # noqa: PLC0415 - not part of the first frame

            self._preview = CardPreview(id="card-preview")
            self._preview_feed = ScreenFeed(self, self._preview.show_screen)
            self.query_one("#preview").mount(self._preview)
        log_path = None
        if card is not None and card.execution_id is not None:
            log_path = self._paths.output_of(card.execution_id, card.log_file_path)
        self._preview.now = self._clock.now()
        self._preview.show(card, log_path)
        if self._preview_feed is not None:
            self._preview_feed.follow(None if card is None else card.execution_id, log_path)
        self._pace()

    # Messages of the columns.

    def on_descendant_focus(self, event: events.DescendantFocus) -> None:
        """Make the focused column the current one."""
        if isinstance(event.widget, BoardColumn) and event.widget is not self._current:
            self._current = event.widget
            self._choose_selected()
            self._arrange()
            self.call_after_refresh(self._update_preview)

    def on_board_column_selected(self, message: BoardColumn.Selected) -> None:
        """Show the selected card beside the board."""
        message.stop()
        if message.column is self._current:
            if message.is_by_person:
                self._choose_selected()
            else:
                self._note_replaced()
            self.call_after_refresh(self._update_preview)

    def _choose_selected(self) -> None:
        """Take the card under the cursor for the one that a person selected."""
        self._followed_id = self._note_selected()

    def _restart_columns(self) -> None:
        """Go to the first cards of what a person wants to see now."""
        self._followed_id = self._seen_id = None
        self._is_restarting = True
        for column in self._board.values():
            column.restart()

    def _end_restart(self) -> None:
        """Take note of the card under the cursor among those that a person wanted to see."""
        if self._is_restarting:
            self._is_restarting = False
            self._note_selected()

    def _note_replaced(self) -> None:
        """Remember when another card came under the cursor without anything that a person did here."""
        if self._is_restarting:
            return  # it belongs to what was shown before
        before, is_others = self._seen_id, self._seen_changes == self._changes.begun_count
        selected_id = self._note_selected()
        if is_others and before is not None and selected_id not in (None, before, self._followed_id):
            self.replaced_at = monotonic()

    def _note_selected(self) -> TaskId | None:
        selected = self._current.selected
        self._seen_id, self._seen_changes = selected and selected.task_id, self._changes.begun_count
        return self._seen_id

    def on_board_column_page_needed(self, message: BoardColumn.PageNeeded) -> None:
        """Read what came into view, once what is known of it is on the terminal."""
        message.stop()
        self.call_after_refresh(self.request_refresh)

    def on_board_column_opened(self, message: BoardColumn.Opened) -> None:
        """Open the card that was clicked twice."""
        message.stop()
        card = message.column.selected
        if card is not None and card.task_id == message.task_id:
            self._open(card)

    def on_board_column_fold_requested(self, message: BoardColumn.FoldRequested) -> None:
        """Fold or unfold the column whose heading was clicked."""
        message.stop()
        self._fold(message.column)

    def on_board_column_dragged(self, message: BoardColumn.Dragged) -> None:
        """Show where the dragged card would go."""
        message.stop()
        if not message.column.is_dragging:
            return
        over, region = self.get_widget_at(message.screen_x, message.screen_y)
        for column in self._board.values():
            if column is not over:
                column.drop_index = None
                continue
            index = column.index_at(message.screen_y - region.y)
            has_place = index is not None and self._sort is BoardSort.ORDER
            column.drop_index = index if has_place else column.total

    def _end_drag(self) -> None:
        for column in self._board.values():
            column.drop_index = None

    def on_board_column_dropped(self, message: BoardColumn.Dropped) -> None:
        """Put the dragged card where it was let go."""
        message.stop()
        self._end_drag()
        target, region = self.get_widget_at(message.screen_x, message.screen_y)
        card = message.column.selected
        if not isinstance(target, BoardColumn) or card is None or card.task_id != message.task_id:
            return
        index = target.index_at(message.screen_y - region.y)
        if target is not message.column:
            self._move([([card], target, index if self._sort is BoardSort.ORDER else None)])
        elif index is not None and index != target.cursor:
            self._shift([card], index - target.cursor)

    # Moving about.

    def action_go_card(self, steps: int) -> None:
        """Move the selection inside its column."""
        self._current.move(steps)

    def action_go_end(self, direction: int) -> None:
        """Select the first or the last card of the column."""
        self._current.select(0 if direction < 0 else self._current.total - 1)

    def action_go_page(self, direction: int) -> None:
        """Move the selection by half a page."""
        self._current.move_page(direction)

    def action_go_column(self, direction: int) -> None:
        """Go to the column beside this one; at the edge of the board it stays."""
        self._go_to(self._column_beside(self._current, direction))
        self._choose_selected()

    def action_fold(self) -> None:
        """Fold or unfold the current column."""
        self._fold(self._current)

    def action_toggle_preview(self) -> None:
        """Show or hide the preview."""
        has_had = self._has_preview
        self._is_preview_wanted = not has_had
        self._arrange()
        if not has_had and not self._has_preview and not self._is_empty:
            self.notify(f"the preview needs a window of {PREVIEW_BELOW_FROM[0]}×{PREVIEW_BELOW_FROM[1]}")
        self.call_after_refresh(self._update_preview)

    async def action_filter(self) -> None:
        """Show only the cards that fit what is typed, as it is typed."""
        # At once, not after what was typed behind the key.
        self.set_focus(await self._shown_filter_box())

    async def _shown_filter_box(self) -> Input:
        try:
            box = self._filter_box
        except NoMatches:
            from textual.widgets import Static  # noqa: PLC0415 - not part of the first frame

            from agentmon.widgets.form import LineInput  # noqa: PLC0415 - as above

            box = LineInput(placeholder="words, #label, @agent, !1, is:needs-you", id="filter")
            await self.mount(box, after=self.query_one(KeyFooter))
            await self.mount(Static(id="filter-told", markup=False), before=box)
        box.display = True
        self._tell_filter()
        return box

    def _tell_filter(self, *, is_finished: bool = False) -> None:
        """Say below the filter which of its words mean nothing, and what could stand there.

        Args:
            is_finished: Whether nobody types any more, so that half a word means nothing either.
        """
        from textual.widgets import Static  # noqa: PLC0415 - not part of the first frame

        from agentmon.domain.board_filter import known_words, parse_filter  # noqa: PLC0415 - as above

        read = parse_filter(self._filter_box.value if self._filter_box.display else "")
        unknown = (*read.unknown, *(read.unfinished if is_finished else ()))
        told = self.query_one("#filter-told", Static)
        told.display = bool(unknown)
        if unknown:
            told.update(plain_line(f"{unknown[0]} means nothing; {known_words(unknown[0])}"))

    def action_choose_filter(self) -> None:
        """Choose from the saved and the common filters."""
        self.open_dialog(self._choose_filter(), name="filters")

    async def _choose_filter(self) -> None:
        from agentmon.screens.board.board_filters import choose_filter  # noqa: PLC0415 - not part of the first frame

        pages = [column.page for column in self._board.values() if column.page is not None]
        programs = {card.agent_slug for page in pages for card in page.cards if card.agent_slug is not None}
        chosen = await choose_filter(self, self._text_filter, sorted(programs))
        if chosen is not None:
            box = await self._shown_filter_box()
            box.value = chosen
            box.display = bool(chosen)
            self._tell_filter()

    def action_clear(self) -> None:
        """Leave a dragged card where it is; otherwise clear the marks, and without marks the filter."""
        dragging = [column for column in self._board.values() if column.is_dragging]
        if dragging:
            dragging[0].cancel_drag()
            self._end_drag()
            return
        if self._marked:
            self._set_marked({})
            return
        if self.query("#filter"):
            box = self._filter_box
            box.value = ""
            box.display = False
            self._tell_filter()
            self.set_focus(self._current)

    def on_input_changed(self, event: Input.Changed) -> None:
        """Filter by what was typed so far."""
        event.stop()
        text_filter = event.value.strip()
        if event.input.id == "filter" and text_filter != self._text_filter:
            self._text_filter = text_filter
            if text_filter and self._marked:
                self._set_marked({})
                self.notify("Marks cleared: the filter may hide those cards")
            self._tell_filter()
            self._restart_columns()
            self.request_refresh(at_once=True)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Keep the filter and go back to the cards; an empty one goes away."""
        event.stop()
        if event.input.id == "filter":
            event.input.display = bool(self._text_filter)
            self._tell_filter(is_finished=True)
            column = next((column for column in self._board.values() if column.total), self._current)
            self._go_to(self._current if self._current.total else column)
            # Whoever types fast goes back to the cards before those that fit are read.
            self._is_card_wanted = self._is_refreshing or self._is_refresh_wanted
            self.set_focus(self._current)

    @property
    def _filter_box(self) -> Input:
        from agentmon.widgets.form import LineInput  # noqa: PLC0415 - not part of the first frame

        return self.query_one("#filter", LineInput)

    def show_next_waiting(self) -> None:
        """Select the next card that needs a person, or say that none does."""
        self.start(self._show_next_waiting(), name="next that needs you")

    async def _show_next_waiting(self) -> None:
        services = await self.services()
        await self._chosen_place()
        from agentmon.domain.board import ColumnRequest  # noqa: PLC0415 - here alone

        requests = [ColumnRequest(status=status, limit=_WAITING_SEARCH_LIMIT) for status in TaskStatus]
        page = await services.board.page(self._scope, requests)
        waiting = [
            card.task_id
            for column_page in page.columns.values()
            for card in column_page.cards
            if card.state is LiveState.NEEDS_YOU
        ]
        if not waiting:
            self.notify("nothing needs you")
            return
        selected = self._current.selected
        here = waiting.index(selected.task_id) if selected is not None and selected.task_id in waiting else -1
        await self._follow(services, waiting[(here + 1) % len(waiting)])

    def _go_to(self, column: BoardColumn) -> None:
        if column is not self._current:
            self._current = column
            self._arrange()
            self.call_after_refresh(self._update_preview)
        self.set_focus(column)

    def _column_beside(self, column: BoardColumn, direction: int) -> BoardColumn:
        columns = self._columns if column in self._columns else [column]
        return columns[max(0, min(columns.index(column) + direction, len(columns) - 1))]

    def _fold(self, column: BoardColumn) -> None:
        column.is_folded = not column.is_folded
        self._is_review_left_alone = self._is_review_left_alone or column.status is TaskStatus.REVIEW
        self._arrange()
        self.call_after_refresh(self._update_preview)

    async def _follow(self, services: Services, task_id: TaskId) -> None:
        """Select a task wherever it is."""
        place = await services.board.locate(self._scope, task_id, self._text_filter)
        if place is not None:
            status, index = place
            self._followed_id = task_id
            column = self._board[status]
            column.follow(task_id, index)
            self._go_to(column)
            self.request_refresh()

    # Marks.

    def action_mark(self) -> None:
        """Mark the selected card or take its mark away, and go to the next one."""
        card = self._current.selected
        if card is None:
            return
        marked = dict(self._marked)
        if marked.pop(card.task_id, None) is None:
            marked[card.task_id] = card
        self._set_marked(marked)
        self._current.move(1)

    def _set_marked(self, marked: dict[TaskId, Card]) -> None:
        if not marked and not self._marked:
            return
        self._marked = marked
        for column in self._board.values():
            column.marked = frozenset(marked)
        self.query_one(StatusBar).marked = len(marked)
        self._update_preview()

    def _targets(self) -> list[Card]:
        """Return the cards that an action takes, from the top down: the marked ones, else the selected one."""
        if self._marked:
            places = {
                card.task_id: (at, page.offset + index)
                for at, column in enumerate(self._board.values())
                if (page := column.page) is not None
                for index, card in enumerate(page.cards)
            }
            nowhere = (len(self._board), 0)
            return sorted(self._marked.values(), key=lambda card: places.get(card.task_id, nowhere))
        card = self._current.selected
        return [] if card is None else [card]

    # Running.

    def action_run(self) -> None:
        """Run the cards with their own programs."""
        selected = self._current.selected
        if not self._marked and selected is not None:
            self._followed_id = selected.task_id
        self._run(self._targets(), None)
        self._set_marked({})

    def action_run_with(self) -> None:
        """Ask for a program and arguments, then run the cards with them."""
        cards = self._targets()
        if cards:
            self.open_dialog(self._run_with(cards), name="run with")

    async def _run_with(self, cards: Sequence[Card]) -> None:
        choice = await ask_run_choice(self, cards[0].task_id, others=len(cards) - 1)
        if choice is not None:
            if len(cards) == 1:
                self._followed_id = cards[0].task_id
            self._run(cards, choice)
            self._set_marked({})

    def _run(self, cards: Sequence[Card], choice: RunChoice | None) -> None:
        fresh = []
        for card in cards:
            if card.task_id in self._starting:
                self.notify(f"{card.name} is being started")
            else:
                fresh.append(card)
        if fresh:
            task_ids = [card.task_id for card in fresh]
            self._starting.update(task_ids)
            names = ", ".join(card.name for card in fresh)
            self.start(self._enqueue(task_ids, choice), name=f"run {names}", group="runs")

    async def _enqueue(self, task_ids: Sequence[TaskId], choice: RunChoice | None) -> None:
        try:
            await run_tasks(self, task_ids, now=self._clock.now(), choice=choice)
        finally:
            self._starting.difference_update(task_ids)

    def action_release_agent(self) -> None:
        """Let the parked programs of the cards start again."""
        by_program = {card.agent_slug: card for card in reversed(self._targets())}
        for card in reversed(by_program.values()):
            self.start(release_agent(self, card.task_id), name="release")

    def action_words(self, action: str) -> str | None:
        """Return the words of an action that depend on the selected card, for the palette."""
        card = self._current.selected
        if action == "release_agent" and card is not None and card.agent_slug is not None:
            return f"Let {card.agent_slug} start again"
        return None

    def action_stop(self) -> None:
        """Ask the programs to end; marked cards that do not run are left alone."""
        cards = self._targets()
        running = [card for card in cards if is_open(card)]
        if len(cards) > 1 and not running:
            self.notify("none of the marked cards is queued or running")
            return
        if not self._marked and cards and self._is_at_work_by_chance(cards[0]):
            self.open_dialog(self._stop_asked(cards[0]), name="stop")
            return
        for card in running if len(cards) > 1 else cards:
            self.start(stop_run(self, card.task_id), name=f"stop {card.name}")
        self._set_marked({})

    def _is_at_work_by_chance(self, card: Card) -> bool:
        """Whether an agent is at work on the card, which nobody has selected by hand."""
        return card.task_id != self._followed_id and card.is_conversation and is_ongoing(card)

    async def _stop_asked(self, card: Card) -> None:
        self._followed_id = card.task_id
        if await ask_stop(self, card.name, card.title):
            await stop_run(self, card.task_id)

    def action_kill(self) -> None:
        """Ask, then end the programs by force."""
        cards = [card for card in self._targets() if is_open(card)]
        if cards:
            self.open_dialog(self._kill(cards), name="kill")
        elif self._marked:
            self.notify("none of the marked cards is queued or running")
        elif (card := self._current.selected) is not None:
            self.notify(f"{card.name} does not run")

    async def _kill(self, cards: Sequence[Card]) -> None:
        if await ask_kill(self, [(card.name, card.title) for card in cards]):
            for card in cards:
                # Each for itself: one that ended meanwhile must not save the others.
                self.start(stop_run(self, card.task_id, kill=True), name=f"kill {card.name}")
            self._set_marked({})

    def action_attach(self) -> None:
        """Enter the terminal of the selected card's program."""
        card = self._current.selected
        if card is None:
            return
        if card.execution_id is None or not is_ongoing(card):
            words = "waits in the queue" if is_open(card) else "does not run; r runs it"
            self.notify(f"{card.name} {words}")
            return
        self.post_message(AttachRequested(card.execution_id))

    # Speaking with agents.

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:  # noqa: ARG002 - Textual's
        """Offer to speak only with what can be spoken to; a plain command takes no messages."""
        if action not in _TALKS or not self.is_mounted:
            return True
        return True if any(card.is_conversation for card in self._targets()) else None

    def action_show_request(self) -> None:
        """Show what the agent of the selected card asks, with the keys to decide."""
        card = self._current.selected
        if card is None:
            return
        if card.taken_number is not None and card.state is not LiveState.NEEDS_YOU:
            self._changes.ask_let_go(card.task_id)
            return
        if card.state is not LiveState.NEEDS_YOU:
            self.notify(f"{card.name} asks nothing; w goes to the next that needs you")
            return
        from agentmon.screens.sessions.talking import show_request  # noqa: PLC0415 - not part of the first frame

        self.open_dialog(show_request(self, card.task_id, self._clock), name="request")

    def action_send_message(self) -> None:
        """Write to the agents of the cards."""
        cards = [card for card in self._targets() if card.is_conversation]
        if cards:
            self.open_dialog(self._send_message(cards), name="message")

    async def _send_message(self, cards: Sequence[Card]) -> None:
        from agentmon.screens.sessions.talking import send_message  # noqa: PLC0415 - not part of the first frame

        if await send_message(self, *(card.task_id for card in cards)):
            self._set_marked({})

    def action_interrupt(self) -> None:
        """Let the agents of the cards stop and listen."""
        from agentmon.screens.sessions.talking import interrupt  # noqa: PLC0415 - not part of the first frame

        cards = [card for card in self._targets() if card.is_conversation]
        for card in [card for card in cards if is_ongoing(card)] or cards[:1]:
            self.start(interrupt(self, card.task_id), name="interrupt")

    def action_change_agent(self) -> None:
        """Change model or permission mode of the selected card's agent."""
        card = self._current.selected
        if card is not None:
            from agentmon.screens.sessions.talking import change_agent  # noqa: PLC0415 - not part of the first frame

            self.open_dialog(change_agent(self, card.task_id), name="model")

    # Making and changing tasks.

    def action_open_task(self) -> None:
        """Show all about the selected card; of one in Review, what was changed."""
        card = self._current.selected
        if card is not None:
            self._open(card)

    def _open(self, card: Card) -> None:
        if card.status is TaskStatus.REVIEW and card.changed_files:
            self.show_changes_of(card.task_id)
        else:
            self._open_task(card.task_id)

    def _open_task(self, task_id: TaskId) -> None:
        from agentmon.screens.tasks.task_page import TaskPage  # noqa: PLC0415 - not part of the first frame

        self.app.push_screen(
            TaskPage(
                task_id=task_id,
                services=self.services,
                workspace=partial(self.workspace_of, task_id),
                clock=self._clock,
            )
        )

    def action_show_changes(self) -> None:
        """Show what the newest run of the selected card changed."""
        card = self._current.selected
        if card is not None:
            self.show_changes_of(card.task_id)

    def action_show_worktrees(self) -> None:
        """Show the worktrees of the workspaces that are shown, that of the selected card first."""
        card = self._current.selected
        task_id = None if card is None else card.task_id

        async def show() -> None:
            await self.show_worktrees(None if self._is_all else await self._chosen_place(), task_id)

        self.open_dialog(show(), name="worktrees")

    def action_new_task(self) -> None:
        """Make a task in the editor."""
        self.open_dialog(self._edit(None), name="new task")

    def action_edit_description(self) -> None:
        """Write the description of the selected task in the person's editor."""
        card = self._current.selected
        if card is not None:
            self._tell_one_is_edited(card)
            self.open_dialog(self._edit_description(card.task_id), name=f"description of {card.name}")

    async def _edit_description(self, task_id: TaskId) -> None:
        from agentmon.screens.tasks.external_editor import edit_description  # noqa: PLC0415 - not part of the first frame

        edit = await edit_description(self, task_id)
        if edit is not None:
            self._changes.remember_edit(edit)
            self.notify(f"Saved the description of #{edit.after.number} · ctrl+z takes it back", markup=False)
            self.request_refresh()

    def action_new_from_template(self) -> None:
        """Make a task from a template, in the editor."""
        self.open_dialog(self._new_from_template(), name="new from template")

    async def _new_from_template(self) -> None:
        from agentmon.screens.tasks.editing import new_from_template  # noqa: PLC0415 - not part of the first frame

        edit = await new_from_template(self)
        if edit is not None:
            await self._show_made(edit.after.id, should_run=edit.should_run)

    def action_quick_add(self) -> None:
        """Make a task from one line."""
        self.open_dialog(self._quick_add(), name="quick add")

    async def _quick_add(self) -> None:
        from agentmon.screens.board.quick_add import quick_add  # noqa: PLC0415 - not part of the first frame

        added = await quick_add(self)
        if added is not None:
            task, should_run = added
            await self._show_made(task.id, should_run=should_run)

    def action_edit_task(self) -> None:
        """Change the selected task in the editor."""
        card = self._current.selected
        if card is not None:
            self._tell_one_is_edited(card)
            self.open_dialog(self._edit(card), name=f"edit {card.name}")

    def _tell_one_is_edited(self, card: Card) -> None:
        if len(self._marked) > 1:
            self.notify(f"{card.name} alone is edited, not all marked cards")

    async def _edit(self, card: Card | None) -> None:
        from agentmon.screens.tasks.editing import edit_task  # noqa: PLC0415 - not part of the first frame

        edit = await edit_task(self, None if card is None else card.task_id)
        if edit is None:
            return
        self._changes.remember_edit(edit)
        await self._show_made(edit.after.id, should_run=edit.should_run)

    async def _show_made(self, task_id: TaskId, *, should_run: bool) -> None:
        """Select a task that was made or changed, and run it where that was asked for."""
        if self._is_all:
            task = await (await self.services()).tasks.get(task_id)
            self.notify(f"#{task.number} is in {(await self.workspace_of(task_id)).name}")
        await self._follow(await self.services(), task_id)
        if should_run:
            self._followed_id = task_id
            await run_tasks(self, [task_id], now=self._clock.now())

    # Moving cards.

    def action_move_card(self, direction: int) -> None:
        """Move the cards to the column beside theirs."""
        beside = {status: self._column_beside(column, direction) for status, column in self._board.items()}
        groups = _by_status([card for card in self._targets() if beside[card.status].status is not card.status])
        self._move([(cards, beside[status], None) for status, cards in groups.items()])
        self._set_marked({})

    def action_shift_card(self, steps: int) -> None:
        """Move the cards up or down in their columns."""
        self._shift(self._targets(), steps)

    def _move(self, groups: Sequence[tuple[Sequence[Card], BoardColumn, int | None]]) -> None:
        """Move groups of cards, each to a place of a column; all of them, or none where one move is illegal."""
        from agentmon.domain.life_cycles import require_task_move  # noqa: PLC0415 - not part of the first frame

        for cards, target, _ in groups:
            for card in cards:
                require_task_move(card.status, target.status)
        selected = self._current.selected
        for cards, target, index in groups:
            # One that runs is stopped first: it moves to Cancelled when nothing of it is alive.
            stopped = {card.task_id for card in cards if target.status is TaskStatus.CANCELLED and is_ongoing(card)}
            for card in reversed(cards):
                if card.task_id not in stopped:
                    self._show_moved(card, target, index)
            if selected is not None and selected.task_id in stopped:
                self._followed_id = selected.task_id
            elif selected is not None and selected.task_id in {card.task_id for card in cards}:
                self._followed_id = selected.task_id
                target.follow(selected.task_id, index or 0)
                self._go_to(target)
        moves = [Move(cards, target.status, self._own_index(cards, target, index)) for cards, target, index in groups]
        if moves:
            self._changes.move(moves)

    def _own_index(self, cards: Sequence[Card], target: BoardColumn, index: int | None) -> int | None:
        """Return a place of a column as a place among the cards of the moved cards' own workspace."""
        page = target.page
        if index is None or not self._is_all or page is None or page.offset:
            return None if self._is_all else index
        moved = {card.task_id for card in cards}
        above = [card for card in page.cards[:index] if card.task_id not in moved]
        return sum(card.workspace_name == cards[0].workspace_name for card in above)

    def _shift(self, cards: Sequence[Card], steps: int) -> None:
        if cards and self._sort is not BoardSort.ORDER:
            self.notify(
                f"the cards are {_SORT_WORDS[self._sort]}; s goes on to their own order, where they can be moved"
            )
        elif cards:
            self._changes.shift(cards, steps)

    def action_delete_task(self) -> None:
        """Delete the cards; ctrl+z brings them back."""
        cards = self._targets()
        if not cards:
            return
        self._changes.delete(cards)
        self._set_marked({})

    def action_archive(self) -> None:
        """Archive the cards, or bring them back where they are archived; ctrl+z takes that back."""
        cards = self._targets()
        archived = [card for card in cards if card.archived_at is not None]
        if archived:
            self._changes.unarchive(archived)
        elif cards:
            self._changes.archive(cards)
        self._set_marked({})

    def action_undo(self) -> None:
        """Take back the newest change that was made here."""
        self._changes.undo()

    def _show_moved(self, card: Card, target: BoardColumn, index: int | None) -> None:
        """Show the move before it is written."""
        source = self._board[card.status]
        if source.page is not None:
            source.page = _without(source.page, card)
        if target.page is not None:
            target.page = _with(target.page, card._replace(status=target.status), index or 0)


def _columns_that_fit(
    columns: Sequence[BoardColumn], current: BoardColumn, room: int, first_shown: int
) -> list[BoardColumn]:
    """Return neighbouring columns for this many cells, the current one among them, as near to the last view as can be.

    Folded columns are shown when all fit, or when one of them is the current one.
    """
    widths = [FOLDED_WIDTH if column.is_folded else MIN_WIDTH for column in columns]
    at = columns.index(current)
    first = min(first_shown, at)
    while sum(widths[first : at + 1]) > room and first < at:
        first += 1
    last = first
    while last + 1 < len(columns) and sum(widths[first : last + 2]) <= room:
        last += 1
    while first > 0 and sum(widths[first - 1 : last + 1]) <= room:
        first -= 1
    return list(columns[first : max(last, at) + 1])


def _by_status(cards: Sequence[Card]) -> dict[TaskStatus, list[Card]]:
    groups: dict[TaskStatus, list[Card]] = {}
    for card in cards:
        groups.setdefault(card.status, []).append(card)
    return groups


def _without(page: ColumnPage, card: Card) -> ColumnPage:
    cards = tuple(other for other in page.cards if other.task_id != card.task_id)
    return page._replace(cards=cards, total=page.total - (len(page.cards) - len(cards)))


def _with(page: ColumnPage, card: Card, index: int) -> ColumnPage:
    at = index - page.offset
    if not 0 <= at <= len(page.cards):
        return page._replace(total=page.total + 1)
    return page._replace(cards=(*page.cards[:at], card, *page.cards[at:]), total=page.total + 1)


def _hidden_actions(card: Card | None) -> frozenset[str]:
    """Return the actions that the footer leaves out for this card."""
    if card is None:
        return frozenset(
            {
                *("edit_task", "run", "release_agent", "show_request", "send_message"),
                *("attach", "stop", "open_task", "move_card", "mark"),
            }
        )
    hidden = set()
    if card.state is not LiveState.NEEDS_YOU and card.taken_number is None:
        hidden.add("show_request")
    if not is_ongoing(card) or not card.is_conversation:
        hidden.add("send_message")
    if not is_open(card):
        hidden.add("stop")
    elif card.state is not LiveState.PARKED and card.waits_until is None:
        hidden.add("run")
    if not is_ongoing(card):
        hidden.add("attach")
    if card.state is not LiveState.PARKED:
        hidden.add("release_agent")
    return frozenset(hidden)
