"""The dialog that changes an agent: what is started, where, with which variables and limits, and what it is told."""

from __future__ import annotations

import asyncio
import os
import shutil
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar, Final

from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.content import Content
from textual.widgets import Input, Static

from agentmon.domain.agent_changes import AgentChanges
from agentmon.domain.errors import AgentmonError
from agentmon.screens.agents.agent_fields import AgentFields
from agentmon.screens.bindings import AGENT_EDITOR
from agentmon.screens.dialogs.form_dialog import FormDialog
from agentmon.widgets.cells import even_line
from agentmon.widgets.fold_line import FoldLine
from agentmon.widgets.form import TextBox, plain_paragraphs
from agentmon.widgets.key_footer import KeyFooter

if TYPE_CHECKING:
    from collections.abc import Mapping

    from textual.app import ComposeResult
    from textual.binding import BindingType
    from textual.worker import Worker

    from agentmon.bootstrap import Services
    from agentmon.domain.agents import Agent

_ITS_OWN: Final = "its own default"
_MOST_AT_ONCE: Final = 1000
_MOST_TIER: Final = 4
_HOTTEST: Final = 2.0
_LONGEST_HEADING: Final = 60


class AgentEditor(FormDialog["Agent"]):
    """A form over one agent; ends with the agent as it is stored then."""

    CSS_PATH = ["../dialogs/form_dialog.tcss", "agent_editor.tcss"]  # noqa: RUF012 - Textual types it as an instance's
    BINDINGS: ClassVar[list[BindingType]] = [*AGENT_EDITOR]
    AUTO_FOCUS = "#name"

    def __init__(self, services: Services, agent: Agent) -> None:
        """Make the editor.

        Args:
            services: Store it.
            agent: What is changed.
        """
        super().__init__()
        self._services = services
        self._agent = agent
        self._form = AgentFields(agent)
        self._fold = FoldLine("More", key="ctrl+g", id="fold")
        self._more = Vertical(id="more")
        self.bound = tuple(self._form.bound)

    def compose(self) -> ComposeResult:
        """Yield the form, most needed fields first."""
        form, agent = self._form, self._agent
        with Vertical(id="dialog"):
            name = even_line(agent.name, max_characters=_LONGEST_HEADING)
            yield Static(Content.assemble("Edit ", name, (f"  {even_line(agent.slug)}", "$text-muted")), id="heading")
            with VerticalScroll(id="fields", can_focus=False):
                with Horizontal(classes="pair"):
                    yield form.name
                    yield form.role
                if form.binary is not None and form.base_args is not None:
                    with Horizontal(classes="pair"):
                        yield form.binary
                        yield form.base_args
                yield form.working_dir
                with Horizontal(classes="pair"):
                    yield form.isolation
                    yield form.sandbox
                yield form.env_allowlist
                with Horizontal(classes="pair"):
                    yield form.max_concurrent
                    yield form.is_active
                if form.model is not None:
                    with Horizontal(classes="pair"):
                        yield form.model
                        if form.permission_modes is not None:
                            yield form.permission_modes
                if form.allowed is not None and form.denied is not None:
                    yield form.allowed
                    yield form.denied
                yield self._fold
                if form.instructions is not None:
                    yield form.instructions
            yield KeyFooter()

    def on_mount(self) -> None:
        """Say what is folded."""
        self._fold.summary = self._form.summary

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:  # noqa: ARG002 - Textual's
        """Offer the editor only where there are instructions to write."""
        return action != "edit_outside" or self._form.instructions is not None

    async def action_toggle_more(self) -> None:
        """Unfold what is seldom needed, and go there; fold it again."""
        await self._show_more(is_open=not self._fold.is_open)

    async def on_fold_line_clicked(self, message: FoldLine.Clicked) -> None:
        """Unfold or fold."""
        message.stop()
        await self.action_toggle_more()

    async def action_edit_outside(self) -> None:
        """Write the instructions in the person's editor; ``ctrl+z`` in the field takes back what it did."""
        from agentmon.screens.tasks.external_editor import edit_outside  # noqa: PLC0415 - needed on this way only

        field = self._form.instructions
        if field is None or not isinstance(field.control, TextBox):
            return
        box = field.control
        field.clear()
        try:
            written, lent = await edit_outside(self.app, box.text, title=f"instructions of {self._agent.slug}")
        except AgentmonError as error:
            field.show_error(str(error), hint=error.hint)
            return
        if written.text != box.text:
            box.replace(plain_paragraphs(written.text), (0, 0), box.document.end, maintain_selection_offset=False)
        lent.remove()
        field.show_note(f"{written.complaint}; its text is here" if written.complaint else "")
        box.focus()

    def on_input_changed(self, event: Input.Changed) -> None:
        """Say what is worth to be known of a program or a variable."""
        form = self._form
        if form.binary is not None and event.input is form.binary.control:
            _looking: Worker[None] = self.run_worker(
                self._note_program, name="look for the program", group="program", exclusive=True, exit_on_error=False
            )
        elif event.input is form.env_allowlist.control:
            form.note_variables(os.environ)

    async def store(self) -> Agent | None:
        """Store what was changed, and return the agent as it is then."""
        changes = self.read_changes()
        if changes is None:
            return None
        tools = self._form.changed_tools(changes)
        return await _store(self._services, self._agent, changes, tools)

    def go_to_wrong(self) -> None:
        """Unfold first what has the error."""
        if any(field.error for field in self._form.seldom) and not self._fold.is_open:
            self.call_later(self._show_more_and_go)
        else:
            super().go_to_wrong()

    async def _show_more_and_go(self) -> None:
        await self._show_more(is_open=True)
        super().go_to_wrong()

    async def _note_program(self) -> None:
        field = self._form.binary
        if field is None or not isinstance(field.control, Input):
            return
        typed = field.control.value.strip()
        found = await asyncio.to_thread(shutil.which, typed) if typed else None
        is_missing = typed and found is None
        field.show_note("not found here now" if is_missing else "")

    async def _show_more(self, *, is_open: bool) -> None:
        if is_open and not self._more.is_attached:
            await self.query_one("#fields").mount(self._more, after=self._fold)
            await self._more.mount(*self._form.seldom_rows)
        self._more.display = is_open
        self._fold.summary = self._form.summary
        self._fold.is_open = is_open
        if is_open:
            self._form.description.focus_control()
        elif self.focused is None or self._more in self.focused.ancestors:
            self._form.name.focus_control()


async def _store(
    services: Services, agent: Agent, changes: Mapping[str, Any], tools: Mapping[str, bool | None]
) -> Agent:
    stored = agent
    if changes:
        stored = await services.agents.edit(agent.slug, replace(AgentChanges(), **changes), actor=services.actor)
    if tools:
        stored = await services.agents.set_tools(agent.slug, tools, actor=services.actor)
    return stored
