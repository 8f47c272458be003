"""Tasks made from single lines: what each line means here, and all of them stored or none."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from agentmon.domain.any_command import ANY_COMMAND_SLUG
from agentmon.domain.errors import AgentmonError, NotFoundError, UsageError
from agentmon.domain.quick_add import QuickProblem, parse_quick
from agentmon.domain.task_status import Priority
from agentmon.domain.tasks import InputContext, TaskDraft
from agentmon.services.folders import existing_folder
from agentmon.services.quick_completion import QuickCompleter

if TYPE_CHECKING:
    from collections.abc import Sequence

    from agentmon.domain.agents import Agent
    from agentmon.domain.clock import Clock
    from agentmon.domain.events import Actor
    from agentmon.domain.quick_add import QuickLine
    from agentmon.domain.tasks import Task, Workspace
    from agentmon.services.agents import AgentService
    from agentmon.services.tasks import TaskService

LINES_MAX: Final = 1000
"""Most tasks that are made at once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QuickReading:
    """What a line means in a workspace."""

    line: QuickLine
    problems: tuple[QuickProblem, ...] = ()
    """What is wrong with it, also what only a look at the workspace tells; without any it can be stored."""
    agent: Agent | None = None
    linked: dict[int, Task] = field(default_factory=dict)
    """The tasks that it names, by number."""
    folder: str | None = None
    """The whole path of its folder."""

    @property
    def draft(self) -> TaskDraft:
        """The task that the line describes; of meaning only when nothing is wrong."""
        line = self.line
        parent = None if line.parent is None else self.linked.get(line.parent)
        return TaskDraft(
            title=line.title,
            priority=line.priority or Priority.NORMAL,
            assignee_agent_id=None if self.agent is None else self.agent.id,
            input_context=InputContext(working_dir=self.folder, max_retries=line.retries or 0, verify=line.verify),
            due_at=line.due_at,
            parent_task_id=None if parent is None else parent.id,
            labels=line.labels,
        )


class QuickAddService:
    """Reads lines, and makes tasks of them."""

    def __init__(self, *, tasks: TaskService, agents: AgentService, clock: Clock) -> None:
        self._tasks = tasks
        self._agents = agents
        self._clock = clock

    def completer(self, workspace: Workspace) -> QuickCompleter:
        """Return what completes lines for the workspace while they are typed."""
        return QuickCompleter(tasks=self._tasks, agents=self._agents, workspace=workspace)

    async def read(self, workspace: Workspace, text: str) -> QuickReading:
        """Return what the line means; every line can be read, since it is read while it is typed."""
        now = self._clock.now()
        zone = now.astimezone().tzinfo
        if zone is None:  # pragma: no cover - an aware time always has one
            raise UsageError("this machine has no time zone")
        line = parse_quick(text, now=now, zone=zone)
        problems = list(line.problems)
        agent = await self._find_agent(workspace, line, problems)
        linked: dict[int, Task] = {}
        for number in dict.fromkeys([*line.after, *([] if line.parent is None else [line.parent])]):
            try:
                linked[number] = await self._tasks.by_number(workspace, number)
            except NotFoundError:
                problems.append(QuickProblem(f"#{number}", f"there is no task #{number} here"))
        folder = None if line.folder is None else await _find_folder(line.folder, workspace, problems)
        return QuickReading(line=line, problems=tuple(problems), agent=agent, linked=linked, folder=folder)

    async def add(
        self, workspace: Workspace, texts: Sequence[str], *, actor: Actor, needs_program: bool = False
    ) -> tuple[Task, ...]:
        """Make a task of each line that is not blank, in their order: all of them, or none.

        Args:
            workspace: Where.
            texts: The lines.
            actor: Who makes them.
            needs_program: Whether a line without a program is wrong, since the tasks are to run.

        Raises:
            UsageError: There is no line, there are too many, or something in them is wrong; the message names each
                line by its number when there are several.
        """
        lines = [(at, text) for at, text in enumerate(texts, start=1) if text.strip()]
        if not lines:
            raise UsageError("nothing to add: the line is empty", hint="for example: fix login !1 #auth")
        if len(lines) > LINES_MAX:
            raise UsageError(f"{len(lines):,} lines; {LINES_MAX:,} tasks are the most at once", hint="take them apart")
        complaints: list[str] = []
        hints: list[str] = []
        drafts: list[tuple[TaskDraft, tuple[int, ...]]] = []
        for at, text in lines:
            reading = await self.read(workspace, text)
            place = f"line {at}: " if len(texts) > 1 else ""
            if needs_program and reading.line.agent_slug is None:
                complaints.append(f"{place}a task without a program cannot run")
                hints.append("add @agent to the line")
            complaints += [f"{place}{problem_words(problem)}" for problem in reading.problems]
            hints += [problem.hint for problem in reading.problems if problem.hint]
            drafts.append((reading.draft, reading.line.after))
        if complaints:
            untouched = "; nothing was added" if len(lines) > 1 else ""
            raise UsageError("\n".join(complaints) + untouched, hint=hints[0] if hints else "")
        try:
            return await self._tasks.add_all(workspace, drafts, actor=actor)
        except NotFoundError as error:
            raise UsageError(f"a task that is named was deleted meanwhile: {error}", hint=error.hint) from error

    async def _find_agent(self, workspace: Workspace, line: QuickLine, problems: list[QuickProblem]) -> Agent | None:
        if line.agent_slug is None:
            return None
        word = f"@{line.agent_slug}"
        agents = await self._agents.list(workspace_id=workspace.id)
        agent = next((one for one in agents if one.slug.lower() == line.agent_slug), None)
        try:
            if agent is None:
                known = ", ".join(f"@{one.slug}" for one in agents if one.slug != ANY_COMMAND_SLUG)
                raise NotFoundError(f"there is no program {word}", hint=f"there are {known}; \\{word} is text")
            if agent.slug == ANY_COMMAND_SLUG:
                raise UsageError("a command line is more than a word", hint="leave it out; the editor takes a command")
            agent.choose_capability(None)
        except AgentmonError as error:
            problems.append(QuickProblem(word, str(error), error.hint))
            return None
        return agent


def problem_words(problem: QuickProblem) -> str:
    """Return what is wrong in one line: ``!9: priorities are !1 to !5``."""
    is_named = not problem.word or problem.word in problem.message
    return problem.message if is_named else f"{problem.word}: {problem.message}"


async def _find_folder(text: str, workspace: Workspace, problems: list[QuickProblem]) -> str | None:
    try:
        return await existing_folder(text, workspace.root_path)
    except UsageError as error:
        problems.append(QuickProblem(f"in:{text}", str(error), "in:~/src, or in:'my folder'"))
        return None
