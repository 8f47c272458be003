"""The git worktrees of a workspace: what is in each, and keys to open, restore and remove them."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Final

from textual.app import SuspendNotSupported
from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import OptionList, Static
from textual.widgets.option_list import Option

from agentmon.domain.amounts import size_text
from agentmon.domain.errors import AgentmonError
from agentmon.domain.worktrees import WorktreeStatus
from agentmon.screens.bindings import WORKTREES
from agentmon.widgets.cells import even_line, pad
from agentmon.widgets.guarded import Failed, Guarded
from agentmon.widgets.key_footer import KeyFooter

if TYPE_CHECKING:
    from collections.abc import Coroutine

    from textual.app import ComposeResult
    from textual.binding import BindingType
    from textual.worker import Worker

    from agentmon.bootstrap import Services
    from agentmon.domain.ids import TaskId, WorkspaceId
    from agentmon.services.worktrees import WorktreeState

_EMPTY: Final = "No worktrees. An AI agent gets one while another works in the same repository."
_LOOKING: Final = "Looking…"
_BRANCH_WIDTH: Final = 30


class WorktreesDialog(Guarded, ModalScreen[None]):
    """A list over the worktrees, of one workspace or of all."""

    CSS_PATH = "dialog.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [*WORKTREES]
    AUTO_FOCUS = "OptionList"

    def __init__(self, services: Services, workspace_id: WorkspaceId | None, *, task_id: TaskId | None = None) -> None:
        """Make the dialog.

        Args:
            services: List and remove.
            workspace_id: Whose; None for those of all workspaces.
            task_id: The task whose worktree is selected first.
        """
        super().__init__()
        self._services = services
        self._workspace_id = workspace_id
        self._task_id = task_id
        self._states: tuple[WorktreeState, ...] = ()

    def compose(self) -> ComposeResult:
        """Yield heading, list, what would be lost of the selected one, and the keys."""
        with Vertical(id="dialog"):
            yield Static(Content("Worktrees"), id="heading")
            yield OptionList(id="worktrees", compact=True)
            yield Static(_LOOKING, id="facts", markup=False)
            yield KeyFooter()

    def on_mount(self) -> None:
        """Look what is in them."""
        self._begin(self._look())

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:  # noqa: ARG002 - Textual's
        """Offer what the selected one needs."""
        state = self._selected
        if action in {"open_shell", "open_editor"}:
            return state is not None and not state.is_missing
        if action == "restore":
            return state is not None and state.is_missing and state.worktree.status is WorktreeStatus.READY
        return action != "remove" or state is not None

    def on_option_list_option_highlighted(self) -> None:
        """Say what would be lost with the selected one."""
        self._show_facts()

    def action_close(self) -> None:
        """Go back."""
        self.dismiss(None)

    def action_go_row(self, rows: int) -> None:
        """Move in the list."""
        self._list.action_cursor_down() if rows > 0 else self._list.action_cursor_up()

    def action_open_shell(self) -> None:
        """Start a shell in the selected one."""
        self._lend_terminal([os.environ.get("SHELL") or "/bin/sh"])

    def action_open_editor(self) -> None:
        """Open the selected one in the person's editor."""
        from agentmon.runners.text_editor import find_editor  # noqa: PLC0415 - needed on this way only

        try:
            editor = find_editor(os.environ)
        except AgentmonError as error:
            self.post_message(Failed(error))
            return
        self._lend_terminal([*editor, "."])

    def action_restore(self) -> None:
        """Make the selected one again, with what was last seen in it."""
        self._begin(self._restore())

    def action_remove(self) -> None:
        """Remove the selected one; what would be lost is named and confirmed first."""
        self._begin(self._remove())

    def action_prune(self) -> None:
        """Remove those of closed tasks with which nothing is lost."""
        self._begin(self._prune())

    @property
    def _list(self) -> OptionList:
        return self.query_one(OptionList)

    @property
    def _selected(self) -> WorktreeState | None:
        at = self._list.highlighted if self.is_mounted else None
        return self._states[at] if at is not None and at < len(self._states) else None

    def _begin(self, work: Coroutine[None, None, None]) -> None:
        _working: Worker[None] = self.run_worker(
            self._without_failing(work), name="worktrees", group="worktrees", exit_on_error=False
        )

    async def _without_failing(self, work: Coroutine[None, None, None]) -> None:
        try:
            await work
        except AgentmonError as error:
            self.post_message(Failed(error))

    async def _look(self) -> None:
        states = await self._services.worktrees.states(self._workspace_id)
        selected = self._selected
        self._states = states
        wanted = self._task_id if selected is None else selected.worktree.task_id
        self._list.set_options([Option(_row(state)) for state in self._states])
        places = [at for at, state in enumerate(self._states) if state.worktree.task_id == wanted]
        if self._states:
            self._list.highlighted = places[0] if places else 0
        self._show_facts()

    def _show_facts(self) -> None:
        state = self._selected
        lines = [_EMPTY] if state is None else _facts(state)
        self.query_one("#facts", Static).update(Content("\n".join(even_line(line) for line in lines)))
        self.refresh_bindings()

    def _lend_terminal(self, argv: list[str]) -> None:
        state = self._selected
        if state is None:
            return
        folder = Path(state.worktree.path)
        try:
            with self.app.suspend():
                # Blocks on purpose: while the terminal is lent nothing here may draw or read.
                subprocess.run(argv, cwd=folder, check=False)
        except SuspendNotSupported:
            self.notify("This terminal cannot be lent to a program", severity="error")
        except OSError as error:
            self.notify(f"{argv[0]} could not be started there: {error.strerror}", severity="error", markup=False)
        self._begin(self._look())

    async def _restore(self) -> None:
        state = self._selected
        if state is None:
            return
        restored = await self._services.worktrees.restore(state.worktree, actor=self._services.actor)
        words = f"{len(restored.paths)} files beyond its branch are back"
        if restored.left_alone:
            words = f"{words}; left as the branch has them: {', '.join(restored.left_alone)}"
        self.notify(even_line(words, max_characters=300), markup=False)
        await self._look()

    async def _remove(self) -> None:
        state = self._selected
        if state is None:
            return
        worktree, confirmed = state.worktree, None
        if state.losses and not state.is_in_use:
            from agentmon.screens.dialogs.name_dialog import NameDialog  # noqa: PLC0415 - needed on this way only

            losses = "\n".join(f"would be lost: {loss.words}" for loss in state.losses)
            dialog = NameDialog(
                worktree.branch, command=worktree.path, danger=losses, heading="Remove this worktree?", deed="remove it"
            )
            confirmed = await self.app.push_screen_wait(dialog)
            if confirmed is None:
                return
        elif not state.is_in_use:
            from agentmon.screens.dialogs.confirm import ConfirmDialog  # noqa: PLC0415 - as above

            question = ConfirmDialog(
                f"Remove the worktree of #{worktree.task_number}?", loss="Nothing is lost with it.", yes="Remove"
            )
            if not await self.app.push_screen_wait(question):
                return
        removed = await self._services.worktrees.remove(worktree, confirmed=confirmed, actor=self._services.actor)
        if removed.kept_ref is not None:
            self.notify(f"Its commits: git log {removed.kept_ref}", timeout=15, markup=False)
        await self._look()

    async def _prune(self) -> None:
        removed = await self._services.worktrees.prune(self._workspace_id, is_dry=False, actor=self._services.actor)
        names = ", ".join(f"#{one.worktree.task_number}" for one in removed)
        self.notify(f"Removed those of {names}" if names else "Nothing to remove", markup=False)
        await self._look()


def _row(state: WorktreeState) -> Content:
    worktree = state.worktree
    words = state.label
    style = "$warning" if state.losses or state.is_missing else "$secondary" if state.is_in_use else "$text-muted"
    commits = "" if state.ahead is None or state.behind is None else f"+{state.ahead} −{state.behind}"
    size = "" if state.size_bytes is None else size_text(state.size_bytes)
    return Content.assemble(
        (f"#{worktree.task_number:<5}", "$text-muted"),
        f"{pad(even_line(worktree.branch), _BRANCH_WIDTH)} ",
        (f"{commits:>7} {size:>8}  ", "$text-muted"),
        (even_line(words, max_characters=60), style),
    )


def _facts(state: WorktreeState) -> list[str]:
    """Return what there is to say about a worktree, one fact a line."""
    worktree = state.worktree
    lines = [f"#{worktree.task_number} {worktree.task_title}", worktree.path]
    if state.is_in_use:
        lines.append("A run works in it, or waits for it.")
    if state.is_missing and worktree.status is WorktreeStatus.READY:
        lines.append("Its folder is gone; u makes it again from its branch, with what was last seen in it.")
    if worktree.error:
        lines.append(worktree.error)
    return [*lines, *(f"would be lost: {loss.words}" for loss in state.losses)]
