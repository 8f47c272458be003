"""What one run changed: its files and their lines, live while it works, to be judged, commented on and taken back."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING, ClassVar, Final

from textual.containers import Vertical
from textual.content import Content
from textual.widgets import Static

from agentmon.domain.changes import amount_text, artifact_text
from agentmon.domain.clock import SystemClock
from agentmon.domain.diffs import Diff, LineSpan
from agentmon.domain.errors import NotFoundError, SnapshotError
from agentmon.domain.ids import new_id
from agentmon.domain.review_comments import ReviewComment, hunk_at, message_text, place_text
from agentmon.domain.standing import Standing
from agentmon.screens.bindings import CHANGES
from agentmon.screens.changes.undoing import carry_out, undo_run
from agentmon.screens.frame import ServiceScreen
from agentmon.screens.sessions.talking import send_message
from agentmon.widgets.cells import even_line
from agentmon.widgets.diff_rows import marks_of
from agentmon.widgets.diff_view import DiffView
from agentmon.widgets.guarded import Guarded

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from textual.app import ComposeResult
    from textual.binding import BindingType
    from textual.timer import Timer

    from agentmon.bootstrap import Services
    from agentmon.domain.executions import Execution
    from agentmon.domain.ids import TaskId
    from agentmon.services.changes import RunChanges
    from agentmon.widgets.diff_text import DiffText

_LOOK_EVERY_S: Final = 2.0
_LONGEST_PATH: Final = 200
_COMMENTED: Final = "commented"
_CHANGED: Final = "changed since your comment"
_NEVER_RUN: Final = "Not run yet: no changes."
_OF_ONE_RUN: Final = {"take_back", "comment"}
"""What makes no sense while two runs are compared."""


class ChangesPane(Guarded, Vertical):
    """The changes of a run; its screen says which one, and again whenever anything may be otherwise."""

    BINDINGS: ClassVar[list[BindingType]] = [one for one in CHANGES if one.id != "changes.close"]
    DEFAULT_CSS = """
    ChangesPane {
        height: 1fr;
        & > #changes-state { height: 1; padding: 0 1; text-wrap: nowrap; text-overflow: ellipsis; }
        & > DiffView { margin-top: 1; }
    }
    """

    def __init__(self, task_id: TaskId, *, is_whole: bool, id: str | None = None) -> None:  # noqa: A002 - Textual's own
        """Make the pane.

        Args:
            task_id: The task.
            is_whole: Whether it is a screen of its own; in a tab enter opens that.
            id: Its name.
        """
        super().__init__(id=id)
        self._task_id = task_id
        self._is_whole = is_whole
        self._reading = asyncio.Lock()
        self._looks: Timer | None = None
        self._run: Execution | None = None
        self._runs: Sequence[Execution] = ()
        self._found: RunChanges | None = None
        self._against: Execution | None = None
        self._against_name = ""
        self._comments: tuple[ReviewComment, ...] = ()
        self._standings: Mapping[str, Standing] | None = None
        """None while it is not known what became of the lines."""
        self._wanted_spot: tuple[str, int] | None = None

    def compose(self) -> ComposeResult:
        """Yield what is shown, and the difference."""
        yield Static(id="changes-state")
        yield DiffView(placeholder="")

    def on_mount(self) -> None:
        """Look again and again while the run works."""
        self._looks = self.set_interval(_LOOK_EVERY_S, self._look_again, name="changes", pause=True)

    # What its screen calls

    async def show(self, services: Services, runs: Sequence[Execution], run: Execution | None) -> None:
        """Show what a run changed.

        Args:
            services: That read it.
            runs: All of the task, newest first.
            run: The run; None when the task never ran.
        """
        if self._run is None or run is None or run.id != self._run.id:
            self._found, self._against, self._standings = None, None, None
            self._view.diff = Diff()
        self._run, self._runs = run, runs
        if run is None:
            self._say(_NEVER_RUN)
        elif self._owner.is_current:
            await self._look(services)
        self._run_clock(is_running=run is not None and self._is_live)

    def renew(self) -> None:
        """Find out anew what became of the lines, when it is shown next."""
        self._standings = None

    def show_spot(self, path: str, line: int) -> None:
        """Go to a line of a file, counted from 1 in its new text, once it is read."""
        self._wanted_spot = path, line

    @property
    def spot(self) -> tuple[str, int] | None:
        """The file under the cursor, and the line; None when nothing is shown."""
        text = self._view.text
        return None if text.row is None else (text.row.file.path, text.layout_of_diff.anchor(text.row.place).number)

    @property
    def text(self) -> DiffText:
        """What gets the keys."""
        return self._view.text

    @property
    def has_something_open(self) -> bool:
        """Whether there is something that ``step_back`` would end."""
        return self._view.has_something_open or self._against is not None

    def step_back(self) -> None:
        """End the search, the selection, the line that is typed or the comparison."""
        if self._view.has_something_open:
            self._view.step_back()
        else:
            self._compare_with(None)

    # Keys

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Offer what there is something for."""
        if action == "send_comments":
            return bool(self._unsent) or (None if self._is_whole else False)
        if action == "view" and parameters[:1] == ("fold",):
            return self._is_whole
        return True

    def action_view(self, action: str, amount: int | None = None) -> None:
        """Do with the difference what the key is for."""
        if self._against is not None and action in _OF_ONE_RUN:
            self._say_compared()
            return
        work = getattr(self._view, f"action_{action}")
        work() if amount is None else work(amount)

    def action_send_comments(self) -> None:
        """Send all comments to the agent as one message, which can be changed before."""
        self._owner.open_dialog(self._send_comments(), name="comments")

    def action_undo_run(self) -> None:
        """Take back what the run changed, after showing what that does; or take that back."""
        if self._against is not None:
            self._say_compared()
            return
        self._owner.open_dialog(self._undo_run(), name="undo")

    def action_compare(self) -> None:
        """Choose another run, of the task or an alternative, against which this one is shown; again ends that."""
        if self._against is not None:
            self._compare_with(None)
        else:
            self._owner.open_dialog(self._choose_other(), name="compare")

    # What the view asks for

    def on_diff_view_looked_at(self, message: DiffView.LookedAt) -> None:
        """Keep what was looked at."""
        message.stop()
        view = message.view
        view.looked = view.looked | message.digests if message.is_looked else view.looked - message.digests
        self._owner.start(self._mark(message), name="looked at")

    def on_diff_view_comment_wanted(self, message: DiffView.CommentWanted) -> None:
        """Let the person write."""
        message.stop()
        self._owner.open_dialog(self._comment(message), name="comment")

    def on_diff_view_edit_wanted(self, message: DiffView.EditWanted) -> None:
        """Open the file in the person's editor."""
        message.stop()
        self._owner.open_dialog(self._edit(message.path, message.line), name="edit")

    def on_diff_view_take_back_wanted(self, message: DiffView.TakeBackWanted) -> None:
        """Take the hunk or the file back, after a question."""
        message.stop()
        work = self._take_back(message.path, message.patch) if message.patch else self._undo_file(message.path)
        self._owner.open_dialog(work, name="undo")

    def on_diff_view_unchanged_wanted(self, message: DiffView.UnchangedWanted) -> None:
        """Show the lines around."""
        message.stop()
        self._owner.start(self._show_unchanged(message), name="unchanged lines")

    # Reading

    @property
    def _owner(self) -> ServiceScreen[None]:
        screen = self.screen
        assert isinstance(screen, ServiceScreen)
        return screen

    @property
    def _view(self) -> DiffView:
        return self.query_one(DiffView)

    @property
    def _is_live(self) -> bool:
        """Whether another look may find something else."""
        return self._found is None or self._found.is_live

    @property
    def _unsent(self) -> list[ReviewComment]:
        run = self._run
        return [one for one in self._comments if run is not None and one.execution_id == run.id and not one.sent_at]

    def _look_again(self) -> None:
        if not self._is_live or not self._owner.is_current or not self.is_on_screen:
            # Nobody looks at a folder for what is covered; being shown again begins with a look.
            self._run_clock(is_running=False)
        elif not self._reading.locked():
            self._show_soon()

    def _run_clock(self, *, is_running: bool) -> None:
        if self._looks is not None:
            self._looks.resume() if is_running else self._looks.pause()

    async def _look_and_show(self) -> None:
        await self._look(await self._owner.services())

    async def _look(self, services: Services) -> None:
        async with self._reading:
            run = self._run
            if run is None:
                return
            try:
                await self._read(services, run)
            except (NotFoundError, SnapshotError) as error:
                self._say(str(error))
                return
            self._comments = await services.changes.comments_of(self._task_id)
            self._show_all()
            found = self._found
            if found is not None and not found.is_live and self._standings is None and self._against is None:
                try:
                    self._standings = await services.changes.standings(found, self._view.diff)
                except SnapshotError:
                    # Its folder is gone, such as a worktree that was removed.
                    self._standings = {}
                self._show_all()

    async def _read(self, services: Services, run: Execution) -> None:
        known, against = self._found, self._against
        if known is not None and not known.is_live and not (against is not None and against.status.is_live):
            return
        found = await services.changes.of_run(run, known=known)
        if found is known and against is None:
            return
        if against is not None:
            found = await services.changes.between(await services.changes.of_run(against), found)
        patch = await services.changes.patch_of_run(found)
        diff = await asyncio.to_thread(Diff, patch)
        digests = await asyncio.to_thread(_digests, diff)
        view = self._view
        view.looked = await services.changes.looked_at(digests)
        view.text.sizes = await services.changes.sizes_of(found) if any(one.is_binary for one in diff.files) else {}
        self._found, self._standings, view.diff = found, None, diff
        if self._wanted_spot is not None:
            view.go_to(*self._wanted_spot)
            self._wanted_spot = None

    # Showing

    def _say_compared(self) -> None:
        self._view.say("Two runs are compared; esc ends that.", is_error=True)

    def _say(self, text: str) -> None:
        self.query_one("#changes-state", Static).update(Content(even_line(text, max_characters=400)), layout=False)

    def _show_all(self) -> None:
        view = self._view
        view.commented = frozenset(one.span for one in self._unsent)
        view.notes = {} if self._against is not None else self._notes()
        self._show_state()
        self._owner.refresh_bindings()

    def _notes(self) -> dict[str, str]:
        """Return what is said of hunks and files: what became of them, and of the comments that were sent."""
        run, diff = self._run, self._view.diff
        notes = {name: str(standing.value) for name, standing in (self._standings or {}).items()}
        sent = [one for one in self._comments if one.sent_at is not None]
        if run is None or not sent:
            return notes
        present = _digests(diff)
        ids = [one.id for one in self._runs]
        earlier = ids[ids.index(run.id) + 1 :] if run.id in ids else []
        for comment in sent:
            is_own = comment.execution_id == run.id
            if not is_own and comment.execution_id not in earlier:
                continue
            name = (
                comment.digest if is_own and comment.digest in present else hunk_at(diff, comment.span, is_own=is_own)
            )
            if name is None or notes.get(name) == Standing.TAKEN_BACK:
                continue
            is_changed = name != comment.digest or name in notes
            if notes.get(name) != _CHANGED:
                notes[name] = _CHANGED if is_changed else _COMMENTED
        return notes

    def _show_state(self) -> None:
        found, run = self._found, self._run
        if found is None or run is None:
            return
        diff = self._view.diff
        parts = [Content.styled(self._run_text(run), "$text-muted")]
        amount = amount_text(len(found.files), found.lines_added, found.lines_removed)
        if self._against is not None:
            parts.append(Content.styled(f"against {self._against_name}", "$accent"))
            parts.append(Content(amount or "no differences"))
        else:
            parts += [Content(amount or "no changes"), *self._standing_text(diff)]
        if self._is_live:
            parts.append(Content.styled("so far", "$secondary"))
        if found.note:
            parts.append(Content.styled(even_line(found.note, max_characters=200), "$warning"))
        if self._unsent:
            parts.append(Content.styled(f"{_count_text(self._unsent)} to send", "$accent"))
        if found.artifacts and self._against is None:
            more = f" and {len(found.artifacts) - 1} more" if len(found.artifacts) > 1 else ""
            first = even_line(artifact_text(found.artifacts[0]), max_characters=100)
            parts.append(Content.styled(f"outside of git: {first}{more}", "$text-muted"))
        self.query_one("#changes-state", Static).update(Content("   ").join(parts), layout=False)

    def _standing_text(self, diff: Diff) -> list[Content]:
        gone = sum(one is Standing.TAKEN_BACK for one in (self._standings or {}).values())
        count = sum(len(file.hunks) or 1 for file in diff.files) if gone else 0
        if not gone:
            return []
        return [Content.styled("undone" if gone == count else f"{gone} of {count} undone", "$warning")]

    def _run_text(self, run: Execution) -> str:
        numbers = [one.id for one in self._runs]
        return (
            f"run {len(numbers) - numbers.index(run.id)} of {len(numbers)}" if run.id in numbers else "an earlier run"
        )

    # Doing

    async def _mark(self, message: DiffView.LookedAt) -> None:
        services = await self._owner.services()
        await services.changes.mark_looked_at(message.digests, is_looked=message.is_looked, actor=services.actor)

    async def _show_unchanged(self, message: DiffView.UnchangedWanted) -> None:
        if self._found is not None:
            services = await self._owner.services()
            text = await services.changes.text_of(self._found, message.path)
            message.view.show_unchanged(message.path, text)

    async def _comment(self, wanted: DiffView.CommentWanted) -> None:
        from agentmon.screens.dialogs.text_dialog import TextDialog  # noqa: PLC0415 - not part of the first frame

        run = self._run
        if run is None:
            return
        span = LineSpan(wanted.path, wanted.side, wanted.first_line, wanted.last_line)
        before = next((one for one in self._unsent if one.span == span), None)
        note = "m sends all comments." if before is None else "An empty text removes it."
        text = await self._owner.ask(
            TextDialog(
                f"Comment on {place_text(span)}",
                note=note,
                text="" if before is None else before.text,
                allows_empty=before is not None,
            )
        )
        if text is None:
            return
        comment = ReviewComment(
            id=new_id() if before is None else before.id,
            execution_id=run.id,
            span=span,
            quoted=wanted.text,
            text=text,
            digest=wanted.digest,
            sent_at=None,
        )
        services = await self._owner.services()
        await services.changes.write_comment(comment, actor=services.actor)
        self._show_soon()

    async def _send_comments(self) -> None:
        comments = self._unsent
        ids = [one.id for one in comments]
        if await send_message(self._owner, self._task_id, text=message_text(comments), comment_ids=ids):
            self._show_soon()

    async def _edit(self, path: str, line: int) -> None:
        from agentmon.screens.tasks.external_editor import open_file_outside  # noqa: PLC0415 - rare

        if self._found is not None:
            await open_file_outside(self.app, self._found.root / path, line=line)
            self._renew_and_show()

    async def _take_back(self, path: str, patch: bytes) -> None:
        from agentmon.screens.dialogs.confirm import ConfirmDialog  # noqa: PLC0415 - not part of the first frame

        if self._found is None:
            return
        question = f"Undo these lines of {path}?"
        loss = "The earlier lines come back; all else stays. It is refused if the lines were changed since."
        if not await self._owner.ask(ConfirmDialog(question, loss=loss, yes="Undo")):
            return
        services = await self._owner.services()
        await services.changes.take_back_hunk(self._found, path, patch, actor=services.actor)
        self.notify(f"Undid lines of {even_line(path, max_characters=_LONGEST_PATH)}", markup=False)
        self._renew_and_show()

    async def _undo_run(self) -> None:
        if self._found is not None and await undo_run(self._owner, self._found):
            self._renew_and_show()

    async def _undo_file(self, path: str) -> None:
        found, services = self._found, await self._owner.services()
        if found is None:
            return
        await services.merges.require_unmerged(found.execution)
        planner = partial(services.changes.plan_undo, found, paths=[path])
        name = even_line(path, max_characters=_LONGEST_PATH)
        heading = f"Undo {name} of {self._run_text(found.execution)}?"
        if await carry_out(self._owner, found.execution, await planner(), planner, heading=heading):
            self._renew_and_show()

    async def _choose_other(self) -> None:
        from agentmon.screens.dialogs.menu_dialog import MenuDialog, MenuEntry  # noqa: PLC0415 - not part of the first frame

        run = self._run
        services = await self._owner.services()
        agents = {one.id: one.slug for one in await services.agents.list(active_only=False)}
        entries: list[MenuEntry] = []
        others: dict[str, Execution] = {}
        heading = "" if run is None else self._run_text(run)
        for at, one in enumerate(self._runs):
            if run is not None and one.id != run.id and one.before_snapshot is not None:
                number = str(len(self._runs) - at)
                others[number] = one
                entries.append(MenuEntry("run", _line(number, agents.get(one.agent_id, ""), _amount_of(one))))
        now = SystemClock().now()
        for card in await services.board.alternatives(self._task_id):
            words = _line(f"#{card.number}", *card.figures(now))
            if card.task_id == self._task_id:
                heading = words
                continue
            newest = await services.executions.newest(card.task_id)
            if newest is not None and newest.before_snapshot is not None:
                others[f"#{card.number}"] = newest
                entries.append(MenuEntry("alternative", words))
        if run is None or not others:
            self.notify("No other run to compare with: R runs it again, or with several agents")
            return
        entry = await self._owner.ask(MenuDialog(f"Compare {heading} with", entries, free_kind="run", is_wide=True))
        if entry is None:
            return
        name = entry.word.split()[0]
        if name not in others:
            self.notify(f"No other run {even_line(entry.word, max_characters=20)} of this task", severity="warning")
            return
        agent = agents.get(others[name].agent_id, "")
        self._compare_with(others[name], f"{name} {agent}" if name.startswith("#") else self._run_text(others[name]))

    def _compare_with(self, other: Execution | None, name: str = "") -> None:
        self._against_name = name
        self._against, self._found, self._standings = other, None, None
        self._show_soon()

    def _renew_and_show(self) -> None:
        self.renew()
        self._show_soon()

    def _show_soon(self) -> None:
        # Not as part of the dialog, which would keep the next one away.
        self._owner.start(self._look_and_show(), name="changes", group="changes")


def _digests(diff: Diff) -> frozenset[str]:
    return frozenset(digest for file in diff.files for digest in marks_of(diff, file))


def _line(*parts: str) -> str:
    return "  ".join(filter(None, parts))


def _count_text(comments: Sequence[ReviewComment]) -> str:
    return f"{len(comments)} {'comment' if len(comments) == 1 else 'comments'}"


def _amount_of(run: Execution) -> str:
    return amount_text(run.changed_files or 0, run.lines_added or 0, run.lines_removed or 0)
