"""The dialog that runs a task once with another program, capability or arguments than it has."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar, Final

from textual.containers import Vertical, VerticalScroll
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Input, Select, Static

from agentmon.domain.agents import ToolType
from agentmon.domain.executions import ConversationStart
from agentmon.domain.plain_text import plain_line
from agentmon.domain.worktrees import Isolation, shared_folder_note
from agentmon.screens.bindings import RUN_DIALOG
from agentmon.screens.place_fields import BaseField, IsolationField, SandboxField
from agentmon.screens.tasks.conversation_form import ConversationChoice, ConversationForm
from agentmon.screens.tasks.program_form import ProgramForm
from agentmon.widgets.form import FormField, LineInput
from agentmon.widgets.guarded import Guarded
from agentmon.widgets.key_footer import KeyFooter
from agentmon.widgets.label_suggester import LabelSuggester

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from textual.app import ComposeResult
    from textual.binding import BindingType

    from agentmon.domain.agents import Agent
    from agentmon.domain.executions import Execution
    from agentmon.domain.sandboxes import Sandbox
    from agentmon.domain.sessions import Session
    from agentmon.domain.tasks import Task
    from agentmon.screens.tasks.start_note import JudgeFinder

_LONGEST_TITLE: Final = 200
_ONE_RUN: Final = "For this run only; the task stays as it is."
_SEVERAL: Final = "Each agent works on a card and in a worktree of its own; you take one."


@dataclass(frozen=True, slots=True, kw_only=True)
class RunChoice:
    """With what a task is run this once."""

    agent_slug: str
    capability_key: str
    args: Mapping[str, object] = field(default_factory=dict)
    conversation: ConversationChoice = field(default_factory=ConversationChoice)
    """How an AI agent begins."""
    isolation: Isolation | None = None
    base: str | None = None
    """Where it works, and what its worktree is made from; None leaves it to the task."""
    sandbox: Sandbox | None = None
    """Its sandbox; None leaves it to the agent."""
    also: tuple[str, ...] = ()
    """Agents that do the same, each on a card of its own."""


class RunDialog(Guarded, ModalScreen[RunChoice | None]):
    """A form over program, capability and arguments; ends with the choice, or with None when the person left."""

    CSS_PATH = "run_dialog.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [*RUN_DIALOG]
    VERTICAL_BREAKPOINTS = [(0, "-short"), (20, "-tall")]  # noqa: RUF012 - Textual types it as an instance's
    AUTO_FOCUS = "#program"

    def __init__(
        self,
        *,
        agents: tuple[Agent, ...],
        task: Task,
        executions: tuple[Execution, ...] = (),
        sessions: tuple[Session, ...] = (),
        others: int = 0,
        beside: Sequence[int] = (),
        find_judge: JudgeFinder | None = None,
    ) -> None:
        """Make the dialog.

        Args:
            agents: What can be run.
            task: What is run.
            executions: Of the task, newest first.
            sessions: Of these executions.
            others: How many other tasks are run with the same choice.
            beside: Numbers of the tasks whose AI agents work in its folder.
            find_judge: Returns what says how dangerous a command line is; None says nothing of it.
        """
        super().__init__()
        self._beside = tuple(beside)
        self._isolation = IsolationField(None, default="as the task says")
        self._base = BaseField(None, default="as the task says")
        self._sandbox = SandboxField(None, default="as its agent says")
        self._conversation = ConversationForm(executions, sessions)
        self._asked = task
        self._others = others
        self._slugs = [one.slug for one in agents if one.tool_type is ToolType.AI_AGENT]
        self._also = LineInput(placeholder=f"more agents, such as {' '.join(self._slugs[:2])}", id="also")
        self._also.suggester = LabelSuggester(self._slugs)
        self._also_field = FormField("Also", self._also)
        slug = next((agent.slug for agent in agents if agent.id == task.assignee_agent_id), None)
        self._program = ProgramForm(
            agents=agents,
            agent_slug=slug,
            capability_key=task.input_context.capability_key,
            args=task.input_context.args,
            find_judge=find_judge,
        )
        self._is_over = False

    def compose(self) -> ComposeResult:
        """Yield what is run, and with what."""
        title = plain_line(self._asked.title, max_characters=_LONGEST_TITLE)
        with Vertical(id="dialog"):
            others = f" and {self._others} more" if self._others else ""
            heading = Content.assemble("Run ", (f"#{self._asked.number} ", "$text-muted"), title, others)
            yield Static(heading, id="heading")
            with VerticalScroll(id="fields", can_focus=False):
                yield self._program
                yield self._also_field
                yield self._conversation
                yield self._isolation
                yield self._base
                yield self._sandbox
            yield Static(Content(_ONE_RUN), id="scope")
            yield KeyFooter()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:  # noqa: ARG002 - Textual's
        """Offer the suggested command line only while there is one."""
        return action != "take_suggestion" or bool(self._program.suggestion)

    def action_run(self) -> None:
        """End with the choice, or go to the first field that is wrong."""
        if self._is_over:
            return
        choice = self._program.read(needs_program=True)
        if choice is None or choice.agent is None or choice.capability_key is None:
            wrong = self._program.first_wrong
            if wrong is not None:
                wrong.focus_control()
            return
        conversation = self._conversation.read()
        if conversation is None:
            return
        base = self._base.read()
        if self._base.error:
            self._base.focus_control()
            return
        also = self._read_also(conversation)
        if also is None:
            self._also_field.focus_control()
            return
        self._is_over = True
        self.dismiss(
            RunChoice(
                agent_slug=choice.agent.slug,
                capability_key=choice.capability_key,
                args=choice.args,
                conversation=conversation,
                isolation=Isolation.WORKTREE if also else self._isolation.chosen,
                base=base,
                sandbox=self._sandbox.chosen,
                also=also,
            ),
        )

    def action_cancel(self) -> None:
        """Leave without running."""
        if not self._is_over:
            self._is_over = True
            self.dismiss(None)

    def action_take_suggestion(self) -> None:
        """Take the command line that was suggested."""
        self._program.take_suggestion()
        self.refresh_bindings()

    def on_program_form_capability_shown(self, message: ProgramForm.CapabilityShown) -> None:
        """Ask how it begins where it is an AI agent."""
        message.stop()
        self._conversation.show_agent(message.agent, message.capability)
        is_agent = message.agent is not None and message.agent.tool_type is ToolType.AI_AGENT
        self._also_field.display = is_agent and not self._others
        self._say_scope()

    def on_select_changed(self, event: Select.Changed) -> None:
        """Say what happens in a folder in which others work."""
        if event.select is self._isolation.control:
            is_shared = bool(self._beside) and event.value == Isolation.FOLDER
            self._isolation.show_note(shared_folder_note(self._beside) if is_shared else "")

    def on_input_changed(self, event: Input.Changed) -> None:
        """Say what becomes of further agents."""
        if event.input is self._also:
            self._also_field.clear_when_changed()
            self._say_scope()

    def _say_scope(self) -> None:
        self.query_one("#scope", Static).update(Content(_SEVERAL if self._typed_also else _ONE_RUN), layout=False)

    @property
    def _typed_also(self) -> list[str]:
        """The further agents that were typed; none while they are not asked for."""
        return self._also.value.replace(",", " ").split() if self._also_field.display else []

    def _read_also(self, conversation: ConversationChoice) -> tuple[str, ...] | None:
        """Return the further agents, or show what is wrong and return None."""
        also = [slug.removeprefix("@") for slug in self._typed_also]
        unknown = next((slug for slug in also if slug not in self._slugs), None)
        if unknown is not None:
            self._also_field.show_error(f"there is no AI agent {unknown}", hint=" ".join(self._slugs))
        elif also and conversation.start is not ConversationStart.FRESH:
            self._also_field.show_error("several agents cannot go on with one conversation")
        elif also and self._isolation.chosen is Isolation.FOLDER:
            self._also_field.show_error("several agents cannot work in one folder: each gets a worktree")
        else:
            return tuple(also)
        return None

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Run from the command; go on to the next field from the others."""
        event.stop()
        if event.input.id == "command":
            self.action_run()
        else:
            self.focus_next()
