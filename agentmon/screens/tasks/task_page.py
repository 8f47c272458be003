"""The page of one task: what it is, what its program writes, who changed what."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, ClassVar, Final

from textual.containers import Vertical, VerticalScroll
from textual.content import Content
from textual.widgets import ContentSwitcher, Static, Tab, Tabs

from agentmon.domain.amounts import size_text
from agentmon.domain.clock import SystemClock
from agentmon.domain.errors import NotFoundError
from agentmon.domain.execution_columns import ExecutionColumn
from agentmon.domain.execution_status import ExecutionStatus
from agentmon.domain.executions import ExecutionListing, run_to_review
from agentmon.domain.live_state import LiveState
from agentmon.domain.task_status import Priority
from agentmon.screens.bindings import TASK_PAGE
from agentmon.screens.changes.pane import ChangesPane
from agentmon.screens.changes.undoing import undo_call
from agentmon.screens.frame import AttachRequested
from agentmon.screens.sessions.conversation_source import DRAFT_POLL_INTERVAL_S, Conversation, ConversationSource
from agentmon.screens.sessions.talking import change_agent, interrupt, send_message, show_request
from agentmon.screens.tasks.editing import edit_task
from agentmon.screens.tasks.running import (
    ask_kill,
    ask_run_choice,
    let_go,
    release_agent,
    run_tasks,
    stop_run,
    verify_run,
)
from agentmon.screens.tasks.same_place import block_key, log_offset
from agentmon.screens.tasks.task_facts import (
    FACT_NAMES,
    TaskFacts,
    fact_lines,
    log_removal_words,
    read_task_facts,
    try_words,
)
from agentmon.screens.tasks.task_log import TaskLogScreen
from agentmon.screens.tasks.task_places import LogSpot, TalkSpot
from agentmon.screens.wait_clock import WaitClock
from agentmon.widgets.audit_list import AuditList
from agentmon.widgets.cells import even_line
from agentmon.widgets.conversation_pane import ConversationPane
from agentmon.widgets.execution_table import ExecutionTable
from agentmon.widgets.fact_list import FactList
from agentmon.widgets.guarded import Failed
from agentmon.widgets.key_footer import KeyFooter
from agentmon.widgets.local_time import local_time_text
from agentmon.widgets.log_pane import LogPane
from agentmon.widgets.markdown_text import MarkdownText
from agentmon.widgets.operation_rows import OPERATION_COLUMNS, operation_rows
from agentmon.widgets.row_table import RowTable
from agentmon.widgets.state_words import NO_WAIT, execution_words, reason_text

if TYPE_CHECKING:
    from textual import events
    from textual.app import ComposeResult
    from textual.binding import BindingType
    from textual.timer import Timer
    from textual.widget import Widget

    from agentmon.bootstrap import Services
    from agentmon.domain.agents import Agent
    from agentmon.domain.clock import Clock
    from agentmon.domain.executions import Execution
    from agentmon.domain.ids import ExecutionId, SessionId, TaskId
    from agentmon.screens.frame import ServicesGetter, WorkspaceGetter
    from agentmon.screens.tasks.run_dialog import RunChoice
    from agentmon.widgets.block_view import BlockView
    from agentmon.widgets.log_view import LogView

LOG_POLL_INTERVAL_S: Final = 0.1
"""How often a log that is shown and still written looks for more."""

_TABS: Final = {
    "details": "Details",
    "log": "Log",
    "conversation": "Conversation",
    "operations": "Operations",
    "changes": "Changes",
    "audit": "Audit",
}
_LONGEST_TITLE: Final = 10_000
_COLOURS: Final = {
    "muted": "$text-muted",
    "running": "$secondary",
    "warning": "$warning",
    "good": "$success",
    "bad": "$error",
}
_COLUMNS: Final = (
    ExecutionColumn.STATE,
    ExecutionColumn.AGENT,
    ExecutionColumn.STARTED,
    ExecutionColumn.ELAPSED,
    ExecutionColumn.EXIT,
    ExecutionColumn.OUTPUT,
    ExecutionColumn.CHANGES,
    ExecutionColumn.TOKENS,
    ExecutionColumn.COST,
    ExecutionColumn.LAST_LINE,
)
BESIDE_COLUMNS: Final = 150
"""Cells from which conversation and log have room side by side."""
_BESIDE: Final = ("conversation", "log")
_NO_CONVERSATION: Final = (
    "No conversation yet.\n\nAn AI agent makes one when it runs this task; a plain command has a log alone."
)
_NEVER_RUN: Final = Content.assemble("Never run. Press ", ("r", "$primary bold"), " to run it.")


class TaskPage(TaskLogScreen):
    """One task with its details, log, conversation, tool calls, changes and audit trail, all live."""

    CSS_PATH = "task_page.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [*TASK_PAGE]
    AUTO_FOCUS = ""

    def __init__(
        self,
        *,
        task_id: TaskId,
        services: ServicesGetter,
        workspace: WorkspaceGetter,
        execution_id: ExecutionId | None = None,
        tab: str = "details",
        at: LogSpot | TalkSpot | None = None,
        clock: Clock | None = None,
    ) -> None:
        """Make the page.

        Args:
            task_id: The task.
            services: Gives the services once they are there.
            workspace: Gives the workspace.
            execution_id: The run that is shown, with its log; None for the newest.
            tab: What is shown at first.
            at: A place in the log of that run, or in its conversation, that is shown instead.
            clock: Tells the time.
        """
        super().__init__(services, workspace)
        self._task_id = task_id
        self._picked_id = execution_id
        self._first_tab = "log" if execution_id is not None else tab
        if at is not None:
            self._first_tab = "log" if isinstance(at, LogSpot) else "conversation"
        self._wanted_spot = at
        self._clock = clock or SystemClock()
        self._shown: TaskFacts | None = None
        self._source: ConversationSource | None = None
        self._conversation = Conversation()
        self._seconds: Timer | None = None
        self._log_poll: Timer | None = None
        self._draft_poll: Timer | None = None
        self._waits = WaitClock(self, self._on_wait_end)

    def compose(self) -> ComposeResult:
        """Yield the heading, the tabs with their panes, and the keys."""
        with Vertical(id="heading"):
            yield Static(id="title")
            yield Static(id="state")
        yield Tabs(
            *(Tab(Content(word), id=f"tab-{name}") for name, word in _TABS.items()), active=f"tab-{self._first_tab}"
        )
        with ContentSwitcher(initial=self._first_tab, id="panes"):
            with Vertical(id="details"):
                with VerticalScroll(id="about", can_focus=False):
                    yield FactList(FACT_NAMES, id="facts")
                    yield MarkdownText(id="description")
                yield Static(Content("Runs"), id="runs-heading")
                yield Static(_NEVER_RUN, id="no-runs")
                yield ExecutionTable(columns=_COLUMNS, clock=self._clock, id="runs")
            with Vertical(id="log"):
                yield Static(id="log-heading")
                yield LogPane(placeholder="", id="log-pane")
            yield ConversationPane(placeholder=_NO_CONVERSATION, id="conversation")
            with Vertical(id="operations"):
                yield Static(id="operations-heading")
                yield RowTable(OPERATION_COLUMNS, id="operations-table")
            yield ChangesPane(self._task_id, is_whole=False, id="changes")
            yield AuditList(clock=self._clock, id="audit")
        yield KeyFooter()

    def on_mount(self) -> None:
        """Start the clocks, which stand still while nothing runs."""
        # The tabs have keys of their own, so that arrows belong to what the tabs show.
        self.query_one(Tabs).can_focus = False
        self._seconds = self.set_interval(1.0, self._tick, name="seconds", pause=True)
        self._log_poll = self.set_interval(LOG_POLL_INTERVAL_S, self.poll_log, name="log", pause=True)
        self._draft_poll = self.set_interval(DRAFT_POLL_INTERVAL_S, self._poll_drafts, name="drafts", pause=True)

    async def refresh_snapshot(self) -> None:
        """Read the task and all that belongs to it."""
        services = await self.services()
        try:
            snapshot = await read_task_facts(services, await self.workspace(), self._task_id)
        except NotFoundError:
            self.notify("The task was deleted", severity="warning", markup=False)
            self.dismiss(None)
            return
        self._shown = snapshot
        await self._read_conversation(services, snapshot)
        self.is_queue_paused = snapshot.pause is not None
        with self.app.batch_update():
            self._show_heading()
            self._show_details(snapshot)
            self._show_log(services, snapshot)
            self._show_conversation()
            audit = self.query_one(AuditList)
            audit.folder = snapshot.workspace_root
            audit.history = snapshot.history
        await self.query_one("#description", MarkdownText).show(snapshot.task.description)
        await self._show_changes(services, snapshot)
        self._go_to_spot()
        self._run_clocks()
        self._plan_waits()
        self.refresh_bindings()
        self.query_one(KeyFooter).hidden_actions = self._hidden_actions(snapshot)
        if self.focused is None:
            self._focus_pane()

    def action_words(self, action: str) -> str | None:
        """Return the words of an action that depend on the task, for the palette."""
        agent = self._run_agent
        return f"Let {agent.slug} start again" if action == "release_agent" and agent is not None else None

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Offer what the state of the newest execution allows."""
        newest = self._newest
        if action == "attach":
            return True if newest is not None and newest.status.is_live else None
        if action in {"stop", "kill"}:
            return True if newest is not None and newest.status.is_open else None
        if action == "release_agent":
            return True if self._run_agent is not None else None
        if action == "show_request":
            return True if self._needs_you or self._is_left_over else None
        if action == "send_message":
            return True if newest is not None and newest.mode.is_conversation else None
        if action == "interrupt":
            return True if newest is not None and newest.status.is_live and newest.mode.is_conversation else None
        if action == "change_agent":
            return True if newest is not None and newest.status.is_live and newest.mode.is_protocol else None
        if action == "undo_call":
            has_changes = any(one.changes is not None for one in self._conversation.operations)
            return self._tab in {"conversation", "operations"} and has_changes
        if action == "pick":
            return self._tab in {"details", "conversation", "operations", "changes"} and newest is not None
        return super().check_action(action, parameters)

    def action_close(self) -> None:
        """Leave the search or what else is open in the tab; without any, go back to where the page was opened."""
        pane, changes = self.query_one(LogPane), self.query_one(ChangesPane)
        if self._tab == "log" and pane.has_something_open:
            pane.step_back()
        elif self._tab == "changes" and changes.has_something_open:
            changes.step_back()
        else:
            self.dismiss(None)

    def action_show_tab(self, name: str) -> None:
        """Show a tab, at once: what is typed behind the key is for what it shows."""
        self.query_one(Tabs).active = f"tab-{name}"
        self._show_pane(name)

    def action_next_tab(self, steps: int) -> None:
        """Show the tab so many to the right, round the ends."""
        names = list(_TABS)
        self.action_show_tab(names[(names.index(self._tab) + steps) % len(names)])

    def action_run(self) -> None:
        """Run the task, and show what its program writes."""
        self.start(self._run(), name="run")

    def action_run_with(self) -> None:
        """Ask for program, capability and arguments of one run."""
        self.open_dialog(self._run_with(), name="run with")

    def action_release_agent(self) -> None:
        """Let the parked program of the task start again."""
        self.start(release_agent(self, self._task_id), name="release")

    def action_edit_task(self) -> None:
        """Change the task."""
        self.open_dialog(self._edit(), name="edit")

    def action_edit_description(self) -> None:
        """Write the description in the person's editor."""
        self.open_dialog(self._edit_description(), name="description")

    def action_attach(self) -> None:
        """Enter the terminal of the execution that runs."""
        newest = self._newest
        if newest is not None:
            self.post_message(AttachRequested(newest.id))

    def action_show_changes(self) -> None:
        """Show what the run that was picked changed, or else the newest that changed something."""
        picked = self._reviewed
        spot = self.query_one(ChangesPane).spot if self._tab == "changes" else None
        self.show_changes_of(self._task_id, None if picked is None else picked.id, spot=spot)

    def action_undo_call(self) -> None:
        """Undo what the tool call under the cursor changed, after showing what that does."""
        operation = self.query_one(ConversationPane).selected_call
        if self._tab == "operations":
            key = self.query_one("#operations-table", RowTable).selected_key
            operation = next((one for one in self._conversation.operations if one.id == key), None)
        self.open_dialog(undo_call(self, operation), name="undo")

    def action_verify(self) -> None:
        """Verify the run whose log is shown; that goes on when the page is left."""

        async def verify() -> None:
            try:
                await verify_run(self, self._task_id, self._picked)
            except Exception as error:  # noqa: BLE001 - as of all that a key begins, it is told what failed
                self.app.post_message(Failed(error))

        self.app.run_worker(verify(), name=f"verify {self._task_id}", exit_on_error=False)

    def action_show_worktrees(self) -> None:
        """Show the worktrees of the workspace, that of the task first."""

        async def show() -> None:
            await self.show_worktrees(await self.workspace_of(self._task_id), self._task_id)

        self.open_dialog(show(), name="worktrees")

    def action_stop(self) -> None:
        """Ask the program to end."""
        self.start(stop_run(self, self._task_id), name="stop")

    def action_kill(self) -> None:
        """End the program by force, after a question."""
        self.open_dialog(self._kill(), name="kill")

    def action_archive(self) -> None:
        """Archive the task, or bring it back."""
        self.start(self._archive(), name="archive")

    def action_show_request(self) -> None:
        """Show what its agent asks, with the keys to decide."""
        if self._is_left_over and not self._needs_you:
            self.open_dialog(let_go(self, self._task_id), name="let go")
            return
        self.open_dialog(show_request(self, self._task_id, self._clock), name="request")

    def action_send_message(self) -> None:
        """Write to its agent."""
        self.open_dialog(send_message(self, self._task_id), name="message")

    def action_interrupt(self) -> None:
        """Let its agent stop and listen."""
        self.start(interrupt(self, self._task_id), name="interrupt")

    def action_change_agent(self) -> None:
        """Change model or permission mode of its agent."""
        self.open_dialog(change_agent(self, self._task_id), name="model")

    def action_pick(self) -> None:
        """Show the log of the run, unfold what was said or done, or show a tool call whole."""
        match self._tab:
            case "conversation" if self.query_one(ConversationPane).is_at_request:
                self.action_show_request()
            case "conversation":
                self.query_one(ConversationPane).view.toggle()
            case "operations":
                self.query_one("#operations-table", RowTable).open_selected()
            case "changes":
                self.action_show_changes()
            case _:
                self.query_one(ExecutionTable).open_selected()

    def action_go_row(self, rows: int) -> None:
        """Move by rows in what the tab shows."""
        match self._tab:
            case "log":
                self.query_one(LogPane).view.action_scroll_lines(rows)
            case "conversation":
                self.query_one(ConversationPane).view.move_by(rows)
            case "operations":
                self.query_one("#operations-table", RowTable).move_by(rows)
            case "changes":
                self.query_one(ChangesPane).action_view("move", rows)
            case "audit":
                self.query_one(AuditList).scroll_relative(y=rows, animate=False)
            case _:
                self.query_one(ExecutionTable).move_by(rows)

    def action_go_end(self, direction: int) -> None:
        """Go to the beginning or the end of what the tab shows; at the end of a log it is followed."""
        match self._tab:
            case "log":
                view = self.query_one(LogPane).view
                view.action_home() if direction < 0 else view.action_end()
            case "conversation":
                self.query_one(ConversationPane).view.go_end(direction)
            case "operations":
                self.query_one("#operations-table", RowTable).go_end(direction)
            case "changes":
                self.query_one(ChangesPane).action_view("go_end", direction)
            case "audit":
                audit = self.query_one(AuditList)
                audit.scroll_home(animate=False) if direction < 0 else audit.scroll_end(animate=False)
            case _:
                table = self.query_one(ExecutionTable)
                table.move_to(0 if direction < 0 else len(table.rows) - 1)

    def action_go_page(self, direction: int) -> None:
        """Move by a page in what the tab shows; the details scroll by half of one."""
        match self._tab:
            case "log":
                view = self.query_one(LogPane).view
                view.action_page_up() if direction < 0 else view.action_page_down()
            case "conversation":
                self.query_one(ConversationPane).view.go_page(direction)
            case "operations":
                self.query_one("#operations-table", RowTable).go_page(direction)
            case "changes":
                self.query_one(ChangesPane).action_view("move_page", direction)
            case "audit":
                audit = self.query_one(AuditList)
                audit.scroll_relative(y=direction * max(1, audit.size.height - 1), animate=False)
            case _:
                about = self.query_one("#about", VerticalScroll)
                about.scroll_relative(y=direction * max(1, about.size.height // 2), animate=False)

    @property
    def log_run(self) -> Execution | None:
        """The run whose log is shown."""
        return self._picked

    @property
    def has_log_keys(self) -> bool:
        """Whether the keys of the log mean something now: also before it is read, for who types on."""
        return self._tab == "log" and (self._picked is not None or self._shown is None)

    @property
    def has_conversation_keys(self) -> bool:
        """Whether the keys of the conversation mean something now."""
        return self._tab == "conversation" and self._source is not None

    @property
    def has_both(self) -> bool:
        """Whether the run has a conversation beside its log."""
        return self._source is not None and self._picked is not None

    @property
    def log_name(self) -> str:
        """The name that a saved log gets."""
        return f"task-{0 if self._shown is None else self._shown.task.number}.log"

    def action_beside(self) -> None:
        """Show conversation and log side by side, or one of them again; where that is too narrow, change over."""
        if self.has_class("-beside"):
            self.remove_class("-beside")
            self._lay_panes()
        elif self.size.width >= BESIDE_COLUMNS:
            self.add_class("-beside")
            if self._tab not in _BESIDE:
                self.action_show_tab("conversation")
            self._lay_panes()
            self._follow_beside()
        else:
            self._follow_beside()
            self.action_show_tab("log" if self._tab == "conversation" else "conversation")

    def action_unfold_all(self) -> None:
        """Unfold all that was said and done, or fold it again."""
        self.query_one(ConversationPane).view.toggle_all()

    def on_tabs_tab_activated(self, event: Tabs.TabActivated) -> None:
        """Show the pane of the tab that was clicked."""
        event.stop()
        # Another one may have been chosen since.
        if event.tab.id == event.tabs.active:
            self._show_pane(str(event.tab.id).removeprefix("tab-"))

    def _show_pane(self, name: str) -> None:
        panes = self.query_one("#panes", ContentSwitcher)
        if panes.current == name:
            return
        panes.current = name
        self._lay_panes()
        self._focus_pane()
        self.refresh_bindings()
        if name == "changes":
            self.request_refresh(at_once=True)

    def on_screen_resume(self) -> None:
        """Find out what became of changed lines meanwhile."""
        self.query_one(ChangesPane).renew()

    def on_execution_table_opened(self, message: ExecutionTable.Opened) -> None:
        """Show the log of the chosen run."""
        message.stop()
        self._picked_id = message.listing.execution.id
        self.action_show_tab("log")
        self.request_refresh()

    def on_row_table_opened(self, message: RowTable.Opened) -> None:
        """Show the tool call whole."""
        message.stop()
        operation = next((one for one in self._conversation.operations if one.id == message.key), None)
        if operation is not None:
            from agentmon.screens.tasks.operation_dialog import OperationDialog  # noqa: PLC0415 - not needed before

            self.app.push_screen(OperationDialog(operation, self._conversation.folder))

    def on_row_table_highlighted(self, message: RowTable.Highlighted) -> None:
        """Nothing follows the cursor."""
        message.stop()

    def on_block_view_opened(self, message: BlockView.Opened) -> None:
        """Fold what was clicked twice."""
        message.stop()
        message.view.toggle()

    def on_block_view_selected(self, message: BlockView.Selected) -> None:
        """Let the log follow the cursor where it is beside the conversation."""
        message.stop()
        if message.is_by_person and self._is_split and self._tab == "conversation":
            self._follow_beside()

    def on_log_view_moved(self, message: LogView.Moved) -> None:
        """Let the conversation follow the log where it is beside it."""
        message.stop()
        if self._is_split and self._tab == "log":
            self._follow_beside()

    def on_descendant_focus(self, event: events.DescendantFocus) -> None:
        """Of two that are side by side, the one with the focus has the keys."""
        if self._is_split:
            for name in _BESIDE:
                if name != self._tab and self.query_one(f"#{name}") in event.widget.ancestors:
                    self.action_show_tab(name)

    def on_resize(self, event: events.Resize) -> None:
        """Show one of two alone where both have no room any more."""
        if self.has_class("-beside") and event.size.width < BESIDE_COLUMNS:
            self.remove_class("-beside")
            self._lay_panes()

    def on_execution_table_highlighted(self, message: ExecutionTable.Highlighted) -> None:
        """Nothing follows the cursor."""
        message.stop()

    @property
    def _tab(self) -> str:
        panes = self.query_one_optional("#panes", ContentSwitcher)
        return self._first_tab if panes is None or panes.current is None else panes.current

    @property
    def _is_split(self) -> bool:
        return self.has_class("-beside") and self._tab in _BESIDE

    @property
    def _needs_you(self) -> bool:
        newest = self._newest
        return newest is not None and newest.live_state is LiveState.NEEDS_YOU

    @property
    def _is_left_over(self) -> bool:
        """Whether an alternative was taken instead of it."""
        return self._shown is not None and self._shown.taken_number is not None

    @property
    def _newest(self) -> Execution | None:
        return None if self._shown is None else self._shown.newest

    @property
    def _run_agent(self) -> Agent | None:
        """The program of the newest run, or of the task when it never ran."""
        shown = self._shown
        if shown is None:
            return None
        return shown.agent if shown.newest is None else shown.agents.get(shown.newest.agent_id)

    def _hidden_actions(self, facts: TaskFacts) -> frozenset[str]:
        """Return the actions that the footer leaves out."""
        now = self._clock.now()
        newest, agent = facts.newest, self._run_agent
        is_parked = agent is not None and agent.parked_until is not None and agent.parked_until > now
        hidden = set() if is_parked else {"release_agent"}
        if newest is not None and newest.status.is_open:
            hidden.add("run_with")
            if newest.status.is_live or newest.not_before is None or newest.not_before <= now:
                hidden.add("run")
        return frozenset(hidden)

    @property
    def _picked(self) -> Execution | None:
        if self._shown is None or self._picked_id is None:
            return self._newest
        return next((one for one in self._shown.executions if one.id == self._picked_id), self._newest)

    @property
    def _reviewed(self) -> Execution | None:
        """The run whose changes are shown."""
        if self._shown is None or self._picked_id is not None:
            return self._picked
        return run_to_review(self._shown.executions)

    def _show_heading(self) -> None:
        snapshot = self._shown
        if snapshot is None:
            return
        task = snapshot.task
        title = even_line(task.title, max_characters=_LONGEST_TITLE)
        self.query_one("#title", Static).update(
            Content.assemble((f"#{task.number} ", "$text-muted"), (title, "bold")), layout=False
        )
        self.query_one("#state", Static).update(self._state_line(snapshot), layout=False)

    def _state_line(self, snapshot: TaskFacts) -> Content:
        task = snapshot.task
        newest = self._newest
        now = self._clock.now()
        agent = self._run_agent
        parts: list[tuple[str, str]] = [] if task.archived_at is None else [("archived", "$warning")]
        if newest is None:
            parts.append(("never run", "$text-muted"))
        else:
            told = execution_words(newest, now, snapshot.wait)
            colour = _COLOURS[told.style]
            parts.append((told.text, colour))
            elapsed = newest.elapsed_text(now)
            if elapsed:
                parts.append((elapsed, colour if newest.status.is_live else ""))
            if words := try_words(newest):
                parts.append((words, "$text-muted"))
        parts.append((even_line(agent.name, max_characters=40) if agent is not None else "no program", ""))
        urgent = {Priority.URGENT: "$error", Priority.HIGH: "$warning"}
        parts.append((f"P{task.priority.value} {task.priority.name.lower()}", urgent.get(task.priority, "$text-muted")))
        line = Content("   ").join([Content.styled(text, style) for text, style in parts])
        reason = "" if newest is None else reason_text(newest, snapshot.wait)
        if newest is not None and reason:
            is_waiting = newest.status is ExecutionStatus.QUEUED
            line = line.append_text(f"   {reason}", "$text-muted" if is_waiting else "$error")
        return line

    def _show_details(self, snapshot: TaskFacts) -> None:
        task = snapshot.task
        self.query_one("#facts", FactList).show(fact_lines(snapshot, self._clock.now()))
        self.set_class(bool(task.description.strip()), "-described")
        self.set_class(not snapshot.executions, "-never-run")
        table = self.query_one("#runs", ExecutionTable)
        table.waits = {} if snapshot.newest is None else {snapshot.newest.id: snapshot.wait}
        table.folder = snapshot.workspace_root
        table.listings = tuple(self._listing(snapshot, execution) for execution in snapshot.executions)

    def _listing(self, snapshot: TaskFacts, execution: Execution) -> ExecutionListing:
        agent = snapshot.agents.get(execution.agent_id)
        capability = snapshot.capabilities.get(execution.capability_id)
        return ExecutionListing(
            execution=execution,
            task_number=snapshot.task.number,
            task_title=snapshot.task.title,
            agent_slug="gone" if agent is None else agent.slug,
            capability_key="" if capability is None else capability.key,
        )

    def _show_log(self, services: Services, snapshot: TaskFacts) -> None:
        picked = self._picked
        self.set_class(picked is None, "-no-log")
        pane = self.query_one(LogPane)
        if picked is None:
            pane.view.placeholder = _NEVER_RUN.plain
            return
        now = self._clock.now()
        removed = log_removal_words(picked, snapshot.history, now)
        pane.view.placeholder = removed or ("No output yet." if picked.status.is_open else "It wrote nothing.")
        self.set_log(services.executions.log_path(picked))
        pane.poll()
        place = snapshot.executions.index(picked)
        told = execution_words(picked, now, snapshot.wait if place == 0 else NO_WAIT)
        which = "newest run" if place == 0 else f"run {len(snapshot.executions) - place} of {len(snapshot.executions)}"
        started = "" if picked.started_at is None else f", {local_time_text(picked.started_at, now)}"
        lines = f"{picked.log_line_count:,} line{'' if picked.log_line_count == 1 else 's'}"
        size = f"{size_text(picked.log_byte_size)}, {lines}" if picked.log_byte_size else ""
        parts = [
            Content.styled(f"{which}{started}", "$text-muted"),
            Content.styled(told.text, _COLOURS[told.style]),
            Content.styled(try_words(picked), "$text-muted"),
            Content.styled(f"{size}, removed" if size and removed else size, "$text-muted"),
            Content.styled(self.stream_words, "$secondary"),
        ]
        self.query_one("#log-heading", Static).update(
            Content("   ").join([part for part in parts if part]), layout=False
        )

    async def _show_changes(self, services: Services, facts: TaskFacts) -> None:
        """Read what the run changed, where that is shown."""
        if self._tab == "changes":
            await self.query_one(ChangesPane).show(services, facts.executions, self._reviewed)

    async def _read_conversation(self, services: Services, facts: TaskFacts) -> None:
        """Read the conversation of the picked run, or else the newest one of the task."""
        session_id = await self._find_session(services, facts)
        if session_id is None:
            self._source, self._conversation = None, Conversation()
            return
        if self._source is None or self._source.session_id != session_id:
            self._source = ConversationSource(session_id)
        agent = self._run_agent
        name = "agent" if agent is None else agent.slug
        workspace = await self.workspace()
        self._conversation = await self._source.read(services, workspace.id, agent_name=name, now=self._clock.now())

    async def _find_session(self, services: Services, facts: TaskFacts) -> SessionId | None:
        picked = self._picked
        if picked is not None and picked.session_id is not None:
            return picked.session_id
        if not any(execution.mode.is_conversation for execution in facts.executions):
            return None
        sessions = await services.sessions.of_task(self._task_id)
        return sessions[0].id if sessions else None

    def _show_conversation(self) -> None:
        shown = self._conversation
        self._show_talk()
        self.query_one("#operations-table", RowTable).rows = operation_rows(shown.operations, shown.folder)
        count = len(shown.operations)
        words = (
            f"{count:,} tool call{'' if count == 1 else 's'}   enter shows one whole" if count else "No tool calls yet."
        )
        self.query_one("#operations-heading", Static).update(Content.styled(words, "$text-muted"), layout=False)

    def _show_talk(self) -> None:
        shown = self._conversation
        self.query_one(ConversationPane).show(shown.blocks, shown.plan, is_own_screen=shown.is_own_screen)

    def _poll_drafts(self) -> None:
        """Show more of what is being written."""
        shown = None if self._source is None or not self.is_current else self._source.poll()
        if shown is not None:
            self._conversation = shown
            self._show_talk()

    def _go_to_spot(self) -> None:
        """Go where the page was opened at, once."""
        spot, self._wanted_spot = self._wanted_spot, None
        match spot:
            case LogSpot(offset=offset, words=words) if self._picked is not None:
                self.show_output()
                self.query_one(LogPane).show_spot(offset, words)
            case TalkSpot(key=key):
                self.query_one(ConversationPane).view.select(key)
            case _:
                pass

    def _plan_waits(self) -> None:
        facts = self._shown
        if facts is not None:
            newest = facts.newest
            not_before = None if newest is None else newest.not_before
            self._waits.plan([not_before, facts.wait.parked_until, facts.task.next_run_at], self._clock.now())

    def _on_wait_end(self) -> None:
        if self._shown is not None:
            self._tick()
            self._show_details(self._shown)
            self._plan_waits()

    def _run_clocks(self) -> None:
        newest, picked = self._newest, self._picked
        if self._seconds is not None:
            if newest is not None and newest.status.is_live:
                self._seconds.resume()
            else:
                self._seconds.pause()
        if self._log_poll is not None:
            if (self._tab == "log" or self._is_split) and picked is not None:
                self._log_poll.resume()
            else:
                self._log_poll.pause()
        if self._draft_poll is not None:
            if (self._tab == "conversation" or self._is_split) and self._source is not None and self._source.is_live:
                self._draft_poll.resume()
            else:
                self._draft_poll.pause()

    def _tick(self) -> None:
        self._show_heading()
        self.query_one("#runs", ExecutionTable).tick()
        self.renew_times()

    def _focus_pane(self) -> None:
        places: dict[str, Widget] = {
            "details": self.query_one("#runs", ExecutionTable),
            "log": self.query_one(LogPane).view,
            "conversation": self.query_one(ConversationPane).view,
            "operations": self.query_one("#operations-table", RowTable),
            "changes": self.query_one(ChangesPane).text,
            "audit": self.query_one(AuditList),
        }
        wanted = places[self._tab]
        if wanted.display and wanted.focusable:
            self.set_focus(wanted, scroll_visible=False)

    def _lay_panes(self) -> None:
        """Show the pane of the tab, and beside it its other half where the two are side by side."""
        is_beside = self.has_class("-beside") and self._tab in _BESIDE
        self.query_one("#panes").set_class(is_beside, "-split")
        for name in _BESIDE:
            self.query_one(f"#{name}").display = is_beside or name == self._tab
            self.query_one(f"#{name}").set_class(is_beside and name == self._tab, "-driving")
        self._run_clocks()

    def _follow_beside(self) -> None:
        """Let the other one of conversation and log go where this one is."""
        # A view that is hidden meanwhile knows no place.
        origin = self.query_one(LogPane).view.search_origin if self._tab == "log" else None
        self.start(self._go_to_same_place(origin), name="same place", exclusive=True, group="same place")

    async def _go_to_same_place(self, log_origin: int | None) -> None:
        run, times = self._picked, await self.log_times()
        if run is None or times is None or self._output_log is None:
            return
        path, view = self._output_log, self.query_one(ConversationPane).view
        pane = self.query_one(LogPane)
        if log_origin is not None:
            key = await asyncio.to_thread(block_key, path, times, log_origin, self._conversation.blocks, run.id)
            if key is not None:
                view.select(key)
            return
        block = next((one for one in reversed(view.blocks) if one.key == view.selected_key), None)
        offset = None if block is None else await asyncio.to_thread(log_offset, path, times, block, run.id)
        if offset is not None:
            self.show_output()
            pane.view.go_to_offset(offset)
            pane.poll()

    async def _run(self, choice: RunChoice | None = None) -> None:
        queued = await run_tasks(self, [self._task_id], now=self._clock.now(), choice=choice)
        is_waiting = self._shown is not None and any(not task.releases for task in self._shown.waits_for)
        if queued and not is_waiting:
            self._picked_id = queued[0].id
            self.action_show_tab("log")
        self.request_refresh()

    async def _run_with(self) -> None:
        choice = await ask_run_choice(self, self._task_id)
        if choice is not None:
            await self._run(choice)

    async def _edit(self) -> None:
        edit = await edit_task(self, self._task_id)
        if edit is None:
            return
        self.request_refresh()
        if edit.should_run:
            await self._run()

    async def _edit_description(self) -> None:
        from agentmon.screens.tasks.external_editor import edit_description  # noqa: PLC0415 - rare

        if await edit_description(self, self._task_id) is not None:
            self.request_refresh()

    async def _archive(self) -> None:
        services = await self.services()
        task = await services.tasks.get(self._task_id)
        if task.archived_at is None:
            await services.archive.archive(task.id, actor=services.actor)
            self.notify(f"Archived #{task.number} · Z brings it back")
        else:
            await services.archive.unarchive(task.id, actor=services.actor)
            self.notify(f"Brought #{task.number} back to {task.status.label}")
        self.request_refresh()

    async def _kill(self) -> None:
        task = None if self._shown is None else self._shown.task
        if task is not None and await ask_kill(self, [(task.number, task.title)]):
            await stop_run(self, self._task_id, kill=True)
