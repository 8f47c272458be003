"""The changes of one run: its files and their lines, live while it works, with comments that go to its agent."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Final

from textual.containers import Vertical
from textual.content import Content
from textual.widgets import Static

from agentmon.domain.changes import amount_text
from agentmon.domain.diffs import Diff, LineSpan
from agentmon.domain.errors import NotFoundError, SnapshotError
from agentmon.screens.bindings import CHANGES
from agentmon.screens.paced_screen import PacedScreen
from agentmon.screens.sessions.talking import send_message
from agentmon.widgets.cells import even_line
from agentmon.widgets.diff_rows import marks_of
from agentmon.widgets.diff_view import DiffView
from agentmon.widgets.key_footer import KeyFooter

if TYPE_CHECKING:
    from textual.app import ComposeResult
    from textual.binding import BindingType

    from agentmon.bootstrap import Services
    from agentmon.domain.executions import Execution
    from agentmon.domain.ids import ExecutionId, TaskId
    from agentmon.screens.frame import ServicesGetter, WorkspaceGetter
    from agentmon.services.changes import RunChanges

_LOOK_EVERY_S: Final = 2.0
_LONGEST_TITLE: Final = 10_000
_LONGEST_PATH: Final = 200
_QUOTED_LINES: Final = 12


@dataclass(frozen=True, slots=True)
class _Comment:
    """What a person says of lines."""

    span: LineSpan
    quoted: str
    text: str


class ChangesScreen(PacedScreen[None]):
    """What one run of a task changed."""

    CSS_PATH = "screen.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [*CHANGES]
    AUTO_FOCUS = "DiffText"

    def __init__(
        self,
        *,
        task_id: TaskId,
        services: ServicesGetter,
        workspace: WorkspaceGetter,
        execution_id: ExecutionId | None = None,
    ) -> None:
        """Make the screen.

        Args:
            task_id: The task.
            services: Gives the services once they are there.
            workspace: Gives the workspace.
            execution_id: The run; None for the newest.
        """
        super().__init__(services, workspace)
        self._task_id = task_id
        self._execution_id = execution_id
        self._comments: list[_Comment] = []
        self._found: RunChanges | None = None

    def compose(self) -> ComposeResult:
        """Yield heading, difference and keys."""
        with Vertical(id="heading"):
            yield Static(id="title")
            yield Static(id="state")
        yield DiffView(placeholder="", id="changes")
        yield KeyFooter()

    def on_mount(self) -> None:
        """Look again and again while the run works."""
        self.set_interval(_LOOK_EVERY_S, self._look_again, name="changes")

    async def refresh_snapshot(self) -> None:
        """Read what the run changed."""
        services = await self.services()
        try:
            task = await services.tasks.get(self._task_id)
        except NotFoundError:
            self.notify("The task was deleted", severity="warning", markup=False)
            self.dismiss(None)
            return
        title = even_line(task.title, max_characters=_LONGEST_TITLE)
        self.query_one("#title", Static).update(
            Content.assemble((f"#{task.number} ", "$text-muted"), (title, "bold")), layout=False
        )
        runs = await services.executions.of_task(self._task_id)
        run = next((one for one in runs if self._execution_id in {None, one.id}), None)
        if run is None and self._execution_id is not None:
            run = await services.executions.get(self._execution_id)
        if run is None:
            self._say("Never run: nothing was changed.")
            return
        self._execution_id = run.id
        if self._is_live:
            try:
                await self._read(services, run)
            except (NotFoundError, SnapshotError) as error:
                self._say(str(error))
                return
        self._show_state(f"run {len(runs) - runs.index(run)} of {len(runs)}" if run in runs else "an earlier run")
        self.refresh_bindings()

    async def _read(self, services: Services, run: Execution) -> None:
        found = await services.changes.of_run(run)
        patch = await services.changes.patch_of_run(found)
        diff = await asyncio.to_thread(Diff, patch)
        digests = await asyncio.to_thread(_digests, diff)
        view = self.query_one(DiffView)
        view.looked = await services.changes.looked_at(digests)
        self._found, view.diff = found, diff

    @property
    def _is_live(self) -> bool:
        """Whether another look may find something else."""
        return self._found is None or self._found.is_live

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Offer to send comments where there are any."""
        if action == "send_comments":
            return True if self._comments else None
        return super().check_action(action, parameters)

    def action_close(self) -> None:
        """End the search, the selection or the line that is typed; without any, go back."""
        view = self.query_one(DiffView)
        if view.has_something_open:
            view.step_back()
        elif self._comments:
            self.open_dialog(self._leave_comments(), name="leave")
        else:
            self.dismiss(None)

    def action_view(self, action: str, amount: int | None = None) -> None:
        """Do with the difference what the key is for."""
        work = getattr(self.query_one(DiffView), f"action_{action}")
        work() if amount is None else work(amount)

    def action_send_comments(self) -> None:
        """Send all comments to the agent as one message, which can be changed before."""
        self.open_dialog(self._send_comments(), name="comments")

    def on_diff_view_looked_at(self, message: DiffView.LookedAt) -> None:
        """Keep what was looked at."""
        message.stop()
        view = message.view
        view.looked = view.looked | message.digests if message.is_looked else view.looked - message.digests
        self.start(self._mark(message), name="looked at")

    def on_diff_view_comment_wanted(self, message: DiffView.CommentWanted) -> None:
        """Let the person write."""
        message.stop()
        self.open_dialog(self._comment(message), name="comment")

    def on_diff_view_edit_wanted(self, message: DiffView.EditWanted) -> None:
        """Open the file in the person's editor."""
        message.stop()
        self.open_dialog(self._edit(message.path, message.line), name="edit")

    def on_diff_view_take_back_wanted(self, message: DiffView.TakeBackWanted) -> None:
        """Take the hunk back, after a question."""
        message.stop()
        self.open_dialog(self._take_back(message), name="take back")

    def on_diff_view_unchanged_wanted(self, message: DiffView.UnchangedWanted) -> None:
        """Show the lines around."""
        message.stop()
        self.start(self._show_unchanged(message), name="unchanged lines")

    def _look_again(self) -> None:
        if self.is_current and self._is_live:
            self.request_refresh()

    async def _mark(self, message: DiffView.LookedAt) -> None:
        services = await self.services()
        await services.changes.mark_looked_at(message.digests, is_looked=message.is_looked)

    async def _show_unchanged(self, message: DiffView.UnchangedWanted) -> None:
        if self._found is not None:
            services = await self.services()
            text = await services.changes.text_of(self._found, message.path)
            message.view.show_unchanged(message.path, text)

    async def _leave_comments(self) -> None:
        from agentmon.screens.dialogs.confirm import ConfirmDialog  # noqa: PLC0415 - not part of the first frame

        question = "Leave without sending your comments?"
        if await self.ask(ConfirmDialog(question, loss=f"Lost are {self._comment_words}.", yes="Leave")):
            self.dismiss(None)

    def _say(self, words: str) -> None:
        self.query_one("#state", Static).update(Content(words), layout=False)

    @property
    def _comment_words(self) -> str:
        return f"{len(self._comments)} {'comment' if len(self._comments) == 1 else 'comments'}"

    def _show_state(self, which: str) -> None:
        found = self._found
        if found is None:
            return
        amount = amount_text(len(found.files), found.lines_added, found.lines_removed) or "no changes"
        parts = [Content.styled(which, "$text-muted"), Content(amount)]
        if self._is_live:
            parts.append(Content.styled("as of now", "$secondary"))
        if found.note:
            parts.append(Content.styled(even_line(found.note, max_characters=200), "$warning"))
        if self._comments:
            parts.append(Content.styled(f"{self._comment_words} to send", "$accent"))
        self.query_one("#state", Static).update(Content("   ").join(parts), layout=False)

    async def _comment(self, wanted: DiffView.CommentWanted) -> None:
        from agentmon.screens.dialogs.text_dialog import TextDialog  # noqa: PLC0415 - not part of the first frame

        span = LineSpan(wanted.path, wanted.side, wanted.first_line, wanted.last_line)
        text = await self.ask(TextDialog(f"Comment on {_place_text(span)}", note="Sent with the others: m"))
        if text is not None:
            self._comments.append(_Comment(span, wanted.text, text))
            wanted.view.commented = frozenset(one.span for one in self._comments)
            self.request_refresh(at_once=True)

    async def _send_comments(self) -> None:
        if await send_message(self, self._task_id, text="\n\n".join(_comment_text(one) for one in self._comments)):
            view = self.query_one(DiffView)
            view.known = frozenset(_digests(view.diff))
            view.commented = frozenset()
            self._comments.clear()

    async def _edit(self, path: str, line: int) -> None:
        from agentmon.screens.tasks.external_editor import open_file_outside  # noqa: PLC0415 - rare

        if self._found is not None:
            await open_file_outside(self.app, self._found.root / path, line=line)
            self.request_refresh(at_once=True)

    async def _take_back(self, wanted: DiffView.TakeBackWanted) -> None:
        from agentmon.screens.dialogs.confirm import ConfirmDialog  # noqa: PLC0415 - not part of the first frame

        if self._found is None:
            return
        question = f"Take back these lines of {wanted.path}?"
        loss = "The file gets its earlier lines there. All else stays; git apply refuses what does not fit any more."
        if not await self.ask(ConfirmDialog(question, loss=loss, yes="Take back")):
            return
        services = await self.services()
        await services.changes.take_back_hunk(self._found, wanted.path, wanted.patch, actor=services.actor)
        self.notify(f"Took back lines of {even_line(wanted.path, max_characters=_LONGEST_PATH)}", markup=False)
        self.request_refresh(at_once=True)


def _digests(diff: Diff) -> frozenset[str]:
    return frozenset(digest for file in diff.files for digest in marks_of(diff, file))


def _place_text(span: LineSpan) -> str:
    lines = str(span.first_line) if span.first_line == span.last_line else f"{span.first_line}–{span.last_line}"
    return f"{span.path}:{lines}"


def _comment_text(comment: _Comment) -> str:
    lines = comment.quoted.split("\n")
    quoted = [f"> {line}" for line in lines[:_QUOTED_LINES]] + (["> …"] if len(lines) > _QUOTED_LINES else [])
    return "\n".join([_place_text(comment.span), *quoted, comment.text])
