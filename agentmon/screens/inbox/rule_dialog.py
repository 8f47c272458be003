"""The rule that would allow a request from now on, shown and changed before it is made."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar, Final

from textual.containers import Vertical, VerticalScroll
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Input, Select, Static

from agentmon.screens.bindings import RULE_DIALOG
from agentmon.widgets.cells import even_line
from agentmon.widgets.form import FormField, LineInput
from agentmon.widgets.guarded import Guarded
from agentmon.widgets.key_footer import KeyFooter

if TYPE_CHECKING:
    from textual.app import ComposeResult
    from textual.binding import BindingType

    from agentmon.domain.approvals import ApprovalListing, ApprovalRule

_HERE: Final = "here"
_EVERYWHERE: Final = "everywhere"


class RuleDialog(Guarded, ModalScreen["ApprovalRule | None"]):
    """A form over a rule that allows; ends with the rule, or with None when the person left."""

    CSS_PATH = "rule_dialog.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [*RULE_DIALOG]
    VERTICAL_BREAKPOINTS = [(0, "-short"), (28, "-tall")]  # noqa: RUF012 - Textual types it as an instance's
    AUTO_FOCUS = "#tool"

    def __init__(self, rule: ApprovalRule, listing: ApprovalListing) -> None:
        super().__init__()
        self._rule = rule
        self._listing = listing
        self._is_over = False

    def compose(self) -> ComposeResult:
        """Yield what the rule names."""
        rule, listing = self._rule, self._listing
        workspaces = [
            (Content(even_line(f"only {listing.workspace_name}")), _HERE),
            (Content("every one"), _EVERYWHERE),
        ]
        agents = [(Content(even_line(f"only {listing.agent_slug}")), _HERE), (Content("every one"), _EVERYWHERE)]
        with Vertical(id="dialog"):
            yield Static(Content("Allow always by this rule"), id="heading")
            with VerticalScroll(id="fields", can_focus=False):
                yield FormField("Tool", LineInput(rule.tool, id="tool"), help_text="a name; * and ? stand for any")
                yield FormField(
                    "Path",
                    LineInput(rule.path or "", id="path"),
                    help_text="a glob, from the workspace's root; empty: any",
                )
                yield FormField(
                    "Command",
                    LineInput(rule.command_prefix or "", id="command"),
                    help_text="its first words; only a single simple command is allowed; empty: any",
                )
                if rule.workspace_id is not None:
                    yield FormField(
                        "Workspace", Select(workspaces, value=_HERE, allow_blank=False, compact=True, id="workspace")
                    )
                if rule.agent_id is not None:
                    yield FormField("Agent", Select(agents, value=_HERE, allow_blank=False, compact=True, id="agent"))
                yield FormField("Note", LineInput(rule.note, id="note"), help_text="why, for whoever reads it later")
            yield KeyFooter()

    def action_save(self) -> None:
        """End with the rule as it stands in the fields."""
        tool = self._text("tool")
        if self._is_over:
            return
        if not tool:
            self.query_one(FormField).show_error("name the tool", hint="* means every tool")
            return
        self._is_over = True
        self.dismiss(
            replace(
                self._rule,
                tool=tool,
                path=self._text("path") or None,
                command_prefix=self._text("command") or None,
                workspace_id=self._rule.workspace_id if self._is_here("workspace") else None,
                agent_id=self._rule.agent_id if self._is_here("agent") else None,
                note=self._text("note"),
            )
        )

    def action_cancel(self) -> None:
        """Make no rule and decide nothing."""
        if not self._is_over:
            self._is_over = True
            self.dismiss(None)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Go on to the next field."""
        event.stop()
        self.focus_next()

    def _text(self, name: str) -> str:
        return self.query_one(f"#{name}", Input).value.strip()

    def _is_here(self, name: str) -> bool:
        return any(select.value == _HERE for select in self.query(f"#{name}").results(Select))
