"""``agentmon task show``: all that is known of one task."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from agentmon.bootstrap import Services
from agentmon.cli.alternatives import alternative_lines
from agentmon.cli.context import JsonOption, NumberArgument, WorkspaceOption, numbered_task, with_workspace
from agentmon.cli.json_form import json_form
from agentmon.cli.local_time import zone_words
from agentmon.cli.output import say, say_document, tell
from agentmon.cli.pausing import silence_note
from agentmon.cli.task_text import execution_line, local_time, program_text
from agentmon.cli.wait_text import obstacles_of, waiting_text
from agentmon.domain.agents import Agent
from agentmon.domain.amounts import MoneyFormat
from agentmon.domain.board import Card
from agentmon.domain.clock import SystemClock
from agentmon.domain.errors import NotFoundError
from agentmon.domain.executions import Execution
from agentmon.domain.labels import labels_text
from agentmon.domain.live_state import LiveState
from agentmon.domain.overlaps import overlap_notes
from agentmon.domain.plain_text import plain_line, plain_lines
from agentmon.domain.pull_requests import PullRequest
from agentmon.domain.spending import Spent
from agentmon.domain.tasks import Schedule, Task, Workspace
from agentmon.domain.verifications import command_text
from agentmon.domain.worktrees import Worktree
from agentmon.schedule import next_times

_MOST_EXECUTIONS = 10
_MOST_SUBTASKS = 50
_NEXT_TIMES = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class _TaskFacts:
    """A task with what lies around it."""

    task: Task
    agent: Agent | None
    parent: Task | None
    subtasks: Sequence[Task]
    alternatives: Sequence[Card]
    """With the task's own card; none for a task without any."""
    waits_for: Sequence[Task]
    """Open and closed ones."""
    needed_by: Sequence[Task]
    next_times: Sequence[datetime]
    worktree: Worktree | None
    pull_request: PullRequest | None
    executions: Sequence[Execution]
    """The newest, newest first."""
    spent: Spent
    """By all of them."""
    money: MoneyFormat
    now: datetime
    newest_state: str
    """The words for the state of the newest one, with what it waits for; empty when there is none."""
    note: str
    """How old what is known of its runs may be; empty when a worker is at work."""


def show(number: NumberArgument, folder: WorkspaceOption = None, as_json: JsonOption = False) -> None:
    """Show a task: its schedule, its parts, what waits for what, and its runs.

    Examples:
      agentmon task show 12
      agentmon task show 12 --json
    """
    facts = with_workspace(folder, lambda services, workspace: _facts(services, workspace, number))
    if not as_json:
        if facts.note:
            tell(facts.note)
        say("\n".join(_lines(facts)))
        return
    form = json_form(facts.task)
    beside = {
        "parent": json_form(facts.parent),
        "subtasks": json_form(facts.subtasks),
        "alternatives": json_form(facts.alternatives),
        "dependencies": json_form(facts.waits_for),
        "needed_by": json_form(facts.needed_by),
        "next_times": json_form(facts.next_times),
        "worktree": json_form(facts.worktree),
        "pull_request": json_form(facts.pull_request),
        "executions": json_form(facts.executions),
        **facts.spent.named,
    }
    say_document({**form, **beside} if isinstance(form, dict) else form)


async def _facts(services: Services, workspace: Workspace, number: str) -> _TaskFacts:
    task = await numbered_task(services, workspace, number)
    graph = await services.tasks.graph(task.id)
    executions = await services.executions.of_task(task.id)
    return _TaskFacts(
        task=task,
        agent=await services.agents.get(task.assignee_agent_id) if task.assignee_agent_id is not None else None,
        parent=await _parent(services, task),
        subtasks=await services.tasks.subtasks(task.id),
        alternatives=await services.board.alternatives(task.id),
        waits_for=await services.tasks.dependencies(task.id),
        needed_by=[graph.tasks[one] for one in graph.needed_by.get(task.id, ())],
        next_times=_next_times(task.schedule) if task.schedule is not None else (),
        worktree=await services.worktrees.of_task(task.id),
        pull_request=await services.pull_requests.of_task(task.id),
        executions=executions,
        spent=(await services.board.spent([task.id])).get(task.id, Spent()),
        money=await services.settings.money(),
        now=SystemClock().now(),
        newest_state=waiting_text(executions[0], await obstacles_of(services, executions[0])) if executions else "",
        note=await silence_note(services) if executions and executions[0].status.is_open else "",
    )


async def _parent(services: Services, task: Task) -> Task | None:
    if task.parent_task_id is None:
        return None
    try:
        return await services.tasks.get(task.parent_task_id)
    except NotFoundError:
        return None


def _next_times(schedule: Schedule) -> tuple[datetime, ...]:
    return next_times(schedule.cron, schedule.zone, SystemClock().now(), _NEXT_TIMES)


def _lines(facts: _TaskFacts) -> list[str]:
    """Return all that is known of a task, one fact a line."""
    task, context = facts.task, facts.task.input_context
    named_facts = [
        ("status", task.status.label),
        ("priority", f"P{int(task.priority)}"),
        ("due", "" if task.due_at is None else local_time(task.due_at)),
        ("labels", labels_text(task.labels)),
        ("program", program_text(task, facts.agent)),
        ("folder", context.working_dir or ""),
        ("isolation", context.isolation.value if context.isolation is not None else ""),
        ("base", context.base or ""),
        ("verify", command_text(context.verify)),
        ("worktree", f"{facts.worktree.path} ({facts.worktree.branch})" if facts.worktree is not None else ""),
        ("sandbox", (facts.executions[0].sandbox or "") if facts.executions else ""),
        ("pr", f"{facts.pull_request.label} {facts.pull_request.url}" if facts.pull_request else ""),
        ("overlap", "; ".join(overlap_notes(facts.executions[0], task.number)) if facts.executions else ""),
        ("variables", ", ".join([*(f"{name}=…" for name in context.env_overrides), *context.env_passed])),
        ("retries", str(context.max_retries) if context.max_retries else ""),
        ("schedule", _schedule_text(task.schedule, facts.next_times)),
        ("parent", f"#{facts.parent.number} {facts.parent.title}" if facts.parent is not None else ""),
        ("waits for", _named(facts.waits_for)),
        ("needed by", _named(facts.needed_by)),
        ("cost", facts.spent.text(facts.money)),
        ("created", local_time(task.created_at)),
        ("changed", local_time(task.updated_at)),
    ]
    lines = [f"#{task.number} {plain_line(task.title)}"]
    lines += [f"  {name + ':':<11}{plain_line(fact)}" for name, fact in named_facts if fact]
    if task.description:
        lines += ["", *(f"  {line}" for line in plain_lines(task.description).split("\n"))]
    if facts.alternatives:
        lines += ["", "  alternatives:", *(f"    {line}" for line in alternative_lines(facts.alternatives, facts.now))]
    return lines + _subtask_lines(facts.subtasks) + _execution_lines(facts)


def _schedule_text(schedule: Schedule | None, times: Sequence[datetime]) -> str:
    if schedule is None:
        return ""
    shown = ", ".join(zone_words(moment, schedule.zone) for moment in times)
    return f"{schedule.cron} in {schedule.zone}, next {shown}"


def _named(tasks: Sequence[Task]) -> str:
    return ", ".join(f"#{task.number} ({task.state_label})" for task in tasks)


def _subtask_lines(subtasks: Sequence[Task]) -> list[str]:
    if not subtasks:
        return []
    closed = sum(not task.status.is_open for task in subtasks)
    shown = subtasks[:_MOST_SUBTASKS]
    lines = ["", f"  subtasks, {closed} of {len(subtasks)} done:"]
    lines += [f"    #{task.number} {task.status.label}: {plain_line(task.title, max_characters=200)}" for task in shown]
    return lines + ([f"    … {len(subtasks) - len(shown):,} more"] if len(shown) < len(subtasks) else [])


def _execution_lines(facts: _TaskFacts) -> list[str]:
    if not facts.executions:
        return []
    newest, *older = facts.executions[:_MOST_EXECUTIONS]
    lines = ["", "  runs, newest first:", f"    {execution_line(newest, facts.money, facts.now, facts.newest_state)}"]
    if newest.live_state is LiveState.LOST:
        lines.append(f"      agentmon run {facts.task.number} runs it again")
    return lines + [f"    {execution_line(execution, facts.money, facts.now)}" for execution in older]
