"""What the page of a task tells about it: read in one go, and put into words."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from textual.content import Content

from agentmon.domain.amounts import DOLLARS
from agentmon.domain.any_command import ANY_COMMAND_SLUG
from agentmon.domain.changes import amount_text
from agentmon.domain.due_dates import due_text, due_words
from agentmon.domain.errors import NotFoundError
from agentmon.domain.events import TaskEvent, TaskEventType
from agentmon.domain.execution_status import ExecutionStatus, WaitReason
from agentmon.domain.labels import labels_text
from agentmon.domain.live_state import LiveState, short_moment
from agentmon.domain.moments import moment_words
from agentmon.domain.overlaps import overlap_notes
from agentmon.domain.spending import Spent
from agentmon.domain.task_status import AwaitedState
from agentmon.domain.tasks import awaited_text
from agentmon.domain.verifications import command_text
from agentmon.screens.tasks.command_preview import find_recorded_command, planned_command
from agentmon.screens.tasks.start_note import judge_finder, start_note
from agentmon.services.explaining import folder_words
from agentmon.widgets.card_text import subtask_words
from agentmon.widgets.cells import even_line
from agentmon.widgets.local_time import local_time_text
from agentmon.widgets.state_words import NO_WAIT, Wait, execution_words, stuck_hint

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from agentmon.bootstrap import Services
    from agentmon.domain.agents import Agent, Capability
    from agentmon.domain.amounts import MoneyFormat
    from agentmon.domain.board import Card
    from agentmon.domain.executions import Execution
    from agentmon.domain.ids import AgentId, CapabilityId, TaskId
    from agentmon.domain.pause import QueuePause
    from agentmon.domain.pull_requests import PullRequest
    from agentmon.domain.tasks import AwaitedTask, Schedule, Task, Workspace
    from agentmon.domain.worktrees import Worktree

FACT_NAMES: Final = (
    "Now",
    "Schedule",
    "Due",
    "Labels",
    "Program",
    "Command",
    "Folder",
    "Worktree",
    "Pull request",
    "Environment",
    "Changes",
    "Verification",
    "Alternatives",
    "Cost",
    "Retries",
    "Parent",
    "Subtasks",
    "Waits for",
    "Needed by",
    "Column",
    "Created",
)
"""The names of all facts, in their order."""
_MOST_LINES: Final = 30
_LOG_SETTINGS: Final = {"age": "worker.keep_logs_days", "size": "worker.keep_logs_mb"}


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskFacts:
    """A task and all that lies around it."""

    task: Task
    executions: tuple[Execution, ...] = ()
    """The newest, newest first."""
    spent: Spent = field(default_factory=Spent)
    """By all of them."""
    agents: dict[AgentId, Agent] = field(default_factory=dict)
    capabilities: dict[CapabilityId, Capability] = field(default_factory=dict)
    alternatives: tuple[Card, ...] = ()
    """With its own card; none for a task without any."""
    waits_for: tuple[AwaitedTask, ...] = ()
    """What it waits for or has waited for."""
    needed_by: tuple[Task, ...] = ()
    parent: Task | None = None
    subtasks: tuple[Task, ...] = ()
    pause: QueuePause | None = None
    history: tuple[TaskEvent, ...] = ()
    workspace_root: str = ""
    worktree: Worktree | None = None
    pull_request: PullRequest | None = None
    folder_holder: int | None = None
    """The task whose run works in the folder in which a queued one of this task would."""
    money: MoneyFormat = DOLLARS
    command: str = ""
    danger: str = ""
    """What harm the next run does; empty when there is nothing to say."""

    @property
    def taken_number(self) -> int | None:
        """The alternative that was taken instead of it; None while it may still be taken itself, or was."""
        return next((card.taken_number for card in self.alternatives if card.task_id == self.task.id), None)

    @property
    def newest(self) -> Execution | None:
        """The newest execution; None when the task never ran."""
        return self.executions[0] if self.executions else None

    @property
    def agent(self) -> Agent | None:
        """The program of the task."""
        agent_id = self.task.assignee_agent_id
        return None if agent_id is None else self.agents.get(agent_id)

    @property
    def wait(self) -> Wait:
        """What a queued execution of the task waits for."""
        newest = self.newest
        if newest is None or newest.status is not ExecutionStatus.QUEUED:
            return NO_WAIT
        agent = self.agents.get(newest.agent_id)
        return Wait(
            waits_for=", ".join(filter(None, [awaited_text(self.waits_for), self.folder_holder_name])),
            parked_until=None if agent is None else agent.parked_until,
            park_note=None if agent is None or agent.parked_until is None else agent.park_note,
        )

    @property
    def folder_holder_name(self) -> str:
        """The task whose run works in the folder of a queued one; empty for none."""
        return "" if self.folder_holder is None else AwaitedState.SAME_FOLDER.named(self.folder_holder)

    def capability_of(self, agent: Agent) -> Capability | None:
        """Return the capability of the agent that the task runs; None when it has none that is turned on."""
        key = self.task.input_context.capability_key
        if key is None:
            return next((capability for capability in agent.capabilities if capability.is_enabled), None)
        return next((capability for capability in agent.capabilities if capability.key == key), None)


async def read_task_facts(services: Services, workspace: Workspace, task_id: TaskId) -> TaskFacts:
    """Read the task and what lies around it.

    Raises:
        NotFoundError: The task is gone.
    """
    task = await services.tasks.get(task_id)
    agents = {agent.id: agent for agent in await services.agents.list(active_only=False)}
    graph = await services.tasks.graph(task_id)
    facts = TaskFacts(
        task=task,
        executions=await services.executions.of_task(task_id),
        spent=(await services.board.spent([task_id])).get(task_id, Spent()),
        agents=agents,
        capabilities={one.id: one for agent in agents.values() for one in agent.capabilities},
        alternatives=await services.board.alternatives(task_id),
        waits_for=await services.tasks.dependencies(task_id),
        needed_by=tuple(graph.tasks[other] for other in graph.needed_by.get(task_id, ())),
        parent=await _find_parent(services, task),
        subtasks=await services.tasks.subtasks(task_id),
        pause=await services.queue.find_pause(),
        history=await services.audit.of_task(task_id),
        workspace_root=workspace.root_path,
        worktree=await services.worktrees.of_task(task_id),
        pull_request=await services.pull_requests.of_task(task_id),
        folder_holder=await services.queue.find_folder_holder(task_id),
        money=await services.settings.money(),
    )
    return replace(facts, command=await _command_of(services, facts), danger=await _danger_of(services, facts))


def fact_lines(facts: TaskFacts, now: datetime) -> dict[str, Content]:
    """Return the facts by their names; those that say nothing are empty."""
    task = facts.task
    context = task.input_context
    given = [*context.env_overrides, *(f"{name} (passed on)" for name in context.env_passed)]
    made = local_time_text(task.created_at, now)
    if task.updated_at != task.created_at:
        made = f"{made}, changed {local_time_text(task.updated_at, now)}"
    return {
        "Now": Content("\n").join([_line(text) for text in _now_lines(facts, now)]),
        "Schedule": _line("" if task.schedule is None else schedule_words(task.schedule, task.next_run_at, now)),
        "Due": _line("" if task.due_at is None else _due_words(task.due_at, now)),
        "Labels": _line(labels_text(task.labels)),
        "Program": _line(_program_words(facts)),
        "Command": _line(facts.command),
        "Danger": Content.styled(even_line(facts.danger, max_characters=4000), "$warning"),
        "Folder": _line(context.working_dir or f"{facts.workspace_root}  (the workspace)"),
        "Worktree": _line("" if facts.worktree is None else _worktree_words(facts.worktree)),
        "Pull request": _line("" if facts.pull_request is None else _pull_request_words(facts.pull_request)),
        "Environment": _line(", ".join(given)),
        "Changes": _line(_change_words(facts)),
        "Verification": _line(_verification_words(facts)),
        "Alternatives": _alternative_lines(facts, now),
        "Cost": _line(_cost_words(facts)),
        "Retries": _line(str(context.max_retries) if context.max_retries else ""),
        "Sandbox": _line(facts.newest.sandbox or "" if facts.newest is not None else ""),
        "Parent": Content("") if facts.parent is None else _task_line(facts.parent),
        "Subtasks": _task_lines(facts.subtasks, heading=_subtasks_heading(facts.subtasks)),
        "Waits for": _task_lines(facts.waits_for),
        "Needed by": _task_lines(facts.needed_by),
        "Column": _line(task.status.label),
        "Created": _line(made),
    }


def schedule_words(schedule: Schedule, next_run_at: datetime | None, now: datetime) -> str:
    """Return the schedule with its zone and its next time: ``30 7 * * 1-5 in Europe/Berlin · next Mon 07:30 CET``."""
    words = f"{schedule.cron} in {schedule.zone}"
    if next_run_at is None:
        return words
    try:
        zone = ZoneInfo(schedule.zone)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return f"{words} · next {short_moment(next_run_at, now)}"
    return f"{words} · next {moment_words(next_run_at, now=now, zone=zone, with_zone=True)}"


def _change_words(facts: TaskFacts) -> str:
    """Return what the newest run that was looked at changed, or why the newest one was not."""
    for at, run in enumerate(facts.executions):
        if run.changed_files is not None:
            amount = amount_text(run.changed_files, run.lines_added or 0, run.lines_removed or 0) or "none"
            return amount if not at else f"{amount}, by run {len(facts.executions) - at} of {len(facts.executions)}"
        if run.snapshot_note and run.before_snapshot is None:
            return f"not known: {run.snapshot_note}"
    return ""


def _verification_words(facts: TaskFacts) -> str:
    """Return how the newest run was verified, and with what; else what the task says that its work has to pass."""
    verdict = facts.executions[0].verification if facts.executions else None
    if verdict is None:
        return command_text(facts.task.input_context.verify)
    return f"{verdict.text} · {verdict.command}  (its output: s in the log)"


def try_words(execution: Execution) -> str:
    """Return which try of a run this is: ``try 2 of 4``; empty when there is one only."""
    if execution.max_retries and (execution.retry_count or execution.status.is_open):
        return f"try {execution.retry_count + 1} of {execution.max_retries + 1}"
    return f"try {execution.attempt + 1}" if execution.attempt else ""


def log_removal_words(execution: Execution, history: Sequence[TaskEvent], now: datetime) -> str:
    """Return when and why the log of a run was removed; empty while it is there."""
    if execution.log_removed_at is None:
        return ""
    words = f"The log was removed on {local_time_text(execution.log_removed_at, now)}"
    told = next(
        (
            event.payload.get("reason")
            for event in reversed(history)
            if event.event_type is TaskEventType.EXECUTION_LOG_REMOVED
            and event.payload.get("execution_id") == execution.id
        ),
        None,
    )
    setting = _LOG_SETTINGS.get(str(told))
    if setting is None:
        return f"{words}."
    why = "it was older than logs are kept" if told == "age" else "all logs together were larger than they may be"
    return f"{words}: {why}.\n\nThe setting is {setting}; `agentmon settings {setting} VALUE` changes it, 0 keeps all."


def _due_words(due_at: datetime, now: datetime) -> str:
    zone = due_at.astimezone().tzinfo
    return "" if zone is None else f"{due_text(due_at, zone=zone)}  {due_words(due_at, now=now, zone=zone)}"


async def _find_parent(services: Services, task: Task) -> Task | None:
    if task.parent_task_id is None:
        return None
    try:
        return await services.tasks.get(task.parent_task_id)
    except NotFoundError:
        # It was deleted; the subtask stays.
        return None


def _now_lines(facts: TaskFacts, now: datetime) -> list[str]:
    """Return why the newest run does not go on, and what helps; none when it does."""
    taken = facts.taken_number
    if taken is not None:
        return [f"#{taken} was taken instead · y lets this one go"]
    newest = facts.newest
    if newest is None:
        return []
    if newest.status is ExecutionStatus.QUEUED:
        return _queued_lines(facts, newest, now)
    lines = []
    match newest.live_state:
        case LiveState.STUCK:
            lines = [even_line(newest.error or ""), stuck_hint(newest.error)]
        case LiveState.PAUSED:
            since = "" if newest.paused_at is None else f" since {short_moment(newest.paused_at, now)}"
            goes_on = "" if facts.pause is None else " · P lets the queue go on, and what was halted"
            lines = [f"its processes are halted{since}{goes_on}"]
        case LiveState.BUDGET_SPENT:
            lines = ["raise the budget, then r runs it again"]
        case LiveState.LOST:
            lines = ["its host ended without a word: killed, or the machine went down · r runs it again"]
        case _:
            pass
    lines += [f"⚠ {even_line(note, max_characters=300)}" for note in overlap_notes(newest, facts.task.number)]
    lines.append(even_line(newest.journal_problem or ""))
    return [line for line in lines if line]


def _queued_lines(facts: TaskFacts, newest: Execution, now: datetime) -> list[str]:
    wait = facts.wait
    agent = facts.agents.get(newest.agent_id)
    is_agent_parked = wait.parked_until is not None and wait.parked_until > now
    state = execution_words(newest, now, wait)
    lines = [state.words]
    if newest.activity is not None:
        lines.append(f"{even_line(newest.activity_note or '')} · y shows the ways out")
    if agent is not None and agent.off_words:
        lines.append(f"{agent.off_words} · 4 shows the agents")
    if is_agent_parked and agent is not None:
        why = f": {even_line(wait.park_note)}" if wait.park_note else ""
        lines.append(f"{agent.slug} is parked{why} · U lets it start again")
    elif newest.error and newest.wait_reason is WaitReason.BUDGET:
        lines.append(f"{even_line(newest.error)} · goes on when it is raised or its period is over")
    elif newest.error:
        lines.append(f"{even_line(newest.error)} · r starts it now")
    elif newest.not_before is not None and newest.not_before > now:
        lines.append("r starts it now")
    if facts.folder_holder is not None:
        lines.append(folder_words(facts.folder_holder))
    if facts.pause is not None:
        lines.append(f"the queue is paused since {short_moment(facts.pause.since, now)} · P lets it go on")
    return lines


def _program_words(facts: TaskFacts) -> str:
    agent = facts.agent
    if agent is None:
        return "none yet: e chooses one"
    capability = facts.capability_of(agent)
    if capability is None or agent.slug == ANY_COMMAND_SLUG or capability.label.casefold() in agent.name.casefold():
        return agent.name
    return f"{agent.name} · {capability.label}"


def _cost_words(facts: TaskFacts) -> str:
    spent = facts.spent.text(facts.money)
    return f"{spent} in {facts.spent.runs:,} runs" if spent and facts.spent.runs > 1 else spent


def _alternative_lines(facts: TaskFacts, now: datetime) -> Content:
    """Return a line for each of the cards that are done for the same, with what there is to compare."""
    lines = []
    for card in facts.alternatives:
        words = "  ".join(filter(None, card.figures(now)))
        style = "bold" if card.task_id == facts.task.id else ""
        lines.append(
            Content.assemble(
                (f"#{card.number} ", "$text-muted"),
                (even_line(words), style),
                (f"  {card.status.label}", "$text-muted"),
            )
        )
    return Content("\n").join(lines)


def _subtasks_heading(subtasks: Sequence[Task]) -> str:
    closed = sum(not task.status.is_open for task in subtasks)
    return f"{subtask_words(len(subtasks), closed)} closed" if subtasks else ""


def _task_lines(tasks: Sequence[Task], *, heading: str = "") -> Content:
    lines = [Content.styled(heading, "$text-muted")] if heading else []
    lines += [_task_line(task) for task in tasks[:_MOST_LINES]]
    if len(tasks) > _MOST_LINES:
        lines.append(Content.styled(f"and {len(tasks) - _MOST_LINES:,} more", "$text-muted"))
    return Content("\n").join(lines)


def _task_line(task: Task) -> Content:
    mark = "✓ " if not task.status.is_open else "◌ "
    title = even_line(task.title, max_characters=120)
    return Content.assemble(mark, (f"#{task.number} ", "$text-muted"), title, (f"  {task.state_label}", "$text-muted"))


def _pull_request_words(one: PullRequest) -> str:
    problem = f"  ({one.error})" if one.error else ""
    return f"{one.label}  {one.url}{problem}"


def _worktree_words(worktree: Worktree) -> str:
    base = worktree.base_branch or "a commit"
    commit = f" {worktree.base_commit[:10]}" if worktree.base_commit is not None else ""
    problem = f"  ({worktree.error})" if worktree.error else ""
    return f"{worktree.branch} from {base}{commit} in {worktree.path}{problem}"


def _line(text: str) -> Content:
    return Content(even_line(text, max_characters=4000))


async def _danger_of(services: Services, facts: TaskFacts) -> str:
    """Return what harm the next run of the task does, with what makes it wait."""
    agent = facts.agent
    capability = None if agent is None else facts.capability_of(agent)
    if agent is None or capability is None or (facts.newest is not None and facts.newest.status.is_live):
        return ""
    return start_note(await judge_finder(services)(), agent, capability, facts.task.input_context.args)


async def _command_of(services: Services, facts: TaskFacts) -> str:
    """Return the command line of the run that is going on, else the one that the next run starts."""
    newest = facts.newest
    if newest is not None and newest.status.is_live:
        recorded = await find_recorded_command(services.executions.log_path(newest).with_name("spec.json"))
        if recorded is not None:
            return recorded
    agent = facts.agent
    capability = None if agent is None else facts.capability_of(agent)
    if agent is None or capability is None:
        return ""
    return planned_command(facts.task, agent, capability, facts.task.input_context.args)
