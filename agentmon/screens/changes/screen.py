"""The changes of one run as a whole screen."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Final

from textual.containers import Vertical
from textual.content import Content
from textual.widgets import Static

from agentmon.domain.errors import NotFoundError
from agentmon.domain.executions import run_to_review
from agentmon.screens.bindings import CHANGES
from agentmon.screens.changes.merging import merge
from agentmon.screens.changes.pane import ChangesPane
from agentmon.screens.paced_screen import PacedScreen
from agentmon.widgets.cells import even_line
from agentmon.widgets.key_footer import KeyFooter

if TYPE_CHECKING:
    from textual.app import ComposeResult
    from textual.binding import BindingType

    from agentmon.domain.ids import ExecutionId, TaskId
    from agentmon.screens.frame import ServicesGetter, WorkspaceGetter

_LONGEST_TITLE: Final = 10_000


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
        spot: tuple[str, int] | None = None,
    ) -> None:
        """Make the screen.

        Args:
            task_id: The task.
            services: Gives the services once they are there.
            workspace: Gives the workspace.
            execution_id: The run; None for the newest.
            spot: The file where it begins, and the line in its new text.
        """
        super().__init__(services, workspace)
        self._task_id = task_id
        self._execution_id = execution_id
        self._pane = ChangesPane(task_id, is_whole=True)
        if spot is not None:
            self._pane.show_spot(*spot)

    def compose(self) -> ComposeResult:
        """Yield heading, difference and keys."""
        with Vertical(id="heading"):
            yield Static(id="title")
        yield self._pane
        yield KeyFooter()

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
        if self._execution_id is None:
            run = run_to_review(runs)
        else:
            run = next((one for one in runs if one.id == self._execution_id), None)
            run = run or await services.executions.get(self._execution_id)
        if run is not None:
            self._execution_id = run.id
        await self._pane.show(services, runs, run)

    def on_screen_resume(self) -> None:
        """Find out what became of the lines meanwhile."""
        self._pane.renew()

    def action_merge(self) -> None:
        """Merge the task's branch into its base, after a look at what would come of it."""
        self.open_dialog(merge(self, self._task_id), name="merge")

    def action_close(self) -> None:
        """End the search, the selection, the line that is typed or the comparison; without any, go back."""
        if self._pane.has_something_open:
            self._pane.step_back()
        else:
            self.dismiss(None)
