"""The file of agents that a workspace brings along: all that it would run, and whether the person trusts it."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Final

from textual.containers import Vertical, VerticalScroll
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Static

from agentmon.domain.agent_files import AgentFileState, FileTrust
from agentmon.domain.clock import SystemClock
from agentmon.domain.errors import AgentmonError
from agentmon.screens.agents.trust_text import file_text, trust_line
from agentmon.screens.bindings import TRUST_DIALOG
from agentmon.widgets.cells import even_line
from agentmon.widgets.guarded import Guarded
from agentmon.widgets.key_footer import KeyFooter

if TYPE_CHECKING:
    from collections.abc import Coroutine

    from textual.app import ComposeResult
    from textual.binding import BindingType
    from textual.worker import Worker

    from agentmon.bootstrap import Services
    from agentmon.domain.clock import Clock
    from agentmon.domain.tasks import Workspace

_TRUSTED: Final = frozenset({FileTrust.TRUSTED, FileTrust.CHANGED, FileTrust.GONE})
"""Where there is a trust to take back."""


class TrustDialog(Guarded, ModalScreen[bool | None]):
    """Shows the file; ends with True when it was trusted, False when the trust was taken back, None when neither.

    What is trusted is what was shown: a file that changes meanwhile is shown again first.
    """

    CSS_PATH = "trust_dialog.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [*TRUST_DIALOG]
    VERTICAL_BREAKPOINTS = [(0, "-short"), (28, "-tall")]  # noqa: RUF012 - Textual types it as an instance's
    AUTO_FOCUS = "#file"

    def __init__(self, services: Services, workspace: Workspace, *, clock: Clock | None = None) -> None:
        """Make the dialog.

        Args:
            services: Read the file and keep what is decided.
            workspace: Whose file it is.
            clock: Tells the present, for times.
        """
        super().__init__()
        self._services = services
        self._of = workspace
        self._clock = clock or SystemClock()
        self._state: AgentFileState | None = None
        self._is_over = False

    def compose(self) -> ComposeResult:
        """Yield heading, how the file stands, what it would run, and the keys."""
        with Vertical(id="dialog"):
            yield Static(Content(f"Agents that {even_line(self._of.name)} brings along"), id="heading")
            yield Static(id="told")
            with VerticalScroll(id="file"):
                yield Static(id="content")
            yield KeyFooter()

    def on_mount(self) -> None:
        """Read the file."""
        self._work(self._read())

    def on_resize(self) -> None:
        """Break the lines anew."""
        self.call_after_refresh(self._draw_file)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:  # noqa: ARG002 - Textual's
        """Offer only what can be decided."""
        if action == "trust":
            return self._state is not None and self._state.asks
        if action == "untrust":
            return self._state is not None and self._state.trust in _TRUSTED
        return True

    def action_trust(self) -> None:
        """Let its agents be used as they are shown."""
        if self._state is not None and self._state.asks:
            self._work(self._trust(self._state))

    def action_untrust(self) -> None:
        """Take the trust back: its agents are off, and what they did stays."""
        if self._state is not None and self._state.trust in _TRUSTED:
            self._work(self._untrust())

    def action_close(self) -> None:
        """Leave it as it is."""
        self._end(None)

    def action_scroll(self, rows: int) -> None:
        """Scroll by rows."""
        self.query_one("#file", VerticalScroll).scroll_relative(y=rows, animate=False)

    def action_scroll_page(self, direction: int) -> None:
        """Scroll by half a page."""
        file = self.query_one("#file", VerticalScroll)
        file.scroll_relative(y=direction * max(1, file.size.height // 2), animate=False)

    def _work(self, work: Coroutine[None, None, None]) -> None:
        _working: Worker[None] = self.run_worker(work, name="trust", group="trust", exclusive=True, exit_on_error=False)

    async def _read(self) -> None:
        self._show(await self._services.agent_files.state(self._of))

    async def _trust(self, shown: AgentFileState) -> None:
        try:
            await self._services.agent_files.trust(self._of, shown.digest, actor=self._services.actor)
        except AgentmonError as error:
            self._refuse(error)
            await self._read()
            return
        slugs = ", ".join(agent.slug for agent in shown.agents)
        self.notify(f"Trusted: {slugs} can be used in {self._of.name}", markup=False)
        self._end(True)

    async def _untrust(self) -> None:
        try:
            await self._services.agent_files.untrust(self._of, actor=self._services.actor)
        except AgentmonError as error:
            self._refuse(error)
            return
        self.notify("Not trusted any more; what its agents did stays", markup=False)
        self._end(False)

    def _refuse(self, error: AgentmonError) -> None:
        words = f"{error}\n{error.hint}" if error.hint else str(error)
        self.notify(words, severity="warning", timeout=8, markup=False)

    def _show(self, state: AgentFileState) -> None:
        self._state = state
        path = Content.styled(even_line(state.path), "$text-muted")
        told = Content("\n").join([path, trust_line(state, self._clock.now())])
        self.query_one("#told", Static).update(told)
        self._draw_file()
        self.refresh_bindings()

    def _draw_file(self) -> None:
        content = self.query_one("#content", Static)
        if self._state is not None and content.size.width:
            content.update(file_text(self._state, content.size.width))

    def _end(self, is_trusted: bool | None) -> None:
        if not self._is_over:
            self._is_over = True
            self.dismiss(is_trusted)
