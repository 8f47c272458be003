"""Running and stopping tasks from any screen, with the questions and the words that belong to it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from agentmon.domain.errors import AgentmonError, ConflictError, WaitsForTasksError
from agentmon.domain.execution_status import ExecutionStatus
from agentmon.domain.live_state import numbers_text, short_moment
from agentmon.domain.task_status import TaskStatus
from agentmon.domain.tasks import awaited_text
from agentmon.domain.worktrees import Isolation
from agentmon.widgets.cells import even_line
from agentmon.widgets.guarded import Failed

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from agentmon.bootstrap import Services
    from agentmon.domain.agents import Agent
    from agentmon.domain.board import Card
    from agentmon.domain.executions import Execution
    from agentmon.domain.ids import TaskId
    from agentmon.screens.frame import ServiceScreen
    from agentmon.screens.tasks.run_dialog import RunChoice

_LONGEST_TITLE: Final = 60
_MOST_NAMED: Final = 8
_QUEUE: Final = "queue"
_ANYWAY: Final = "anyway"
_DROP: Final = "drop"
_STOP: Final = "stop"
_WORKTREE: Final = "worktree"
_IN_TURN: Final = "in-turn"
_AT_ONCE: Final = "at-once"
_PLACE_SETTINGS: Final = {
    _WORKTREE: {"isolation": Isolation.AUTO.value},
    _IN_TURN: {"isolation": Isolation.FOLDER.value, "max_per_folder": "1"},
    _AT_ONCE: {"isolation": Isolation.FOLDER.value, "max_per_folder": "0"},
}
"""What an answer means for a workspace from then on."""


async def ask_run_choice(screen: ServiceScreen[None], task_id: TaskId, *, others: int = 0) -> RunChoice | None:
    """Ask with which program the task is run this once; None when the person left. Must run in a worker.

    So many ``others`` are run with the same; then no conversation of the task is offered to go on with.

    Raises:
        NotFoundError: The task is gone.
    """
    from agentmon.screens.tasks.run_dialog import RunDialog  # noqa: PLC0415 - not part of the first frame
    from agentmon.screens.tasks.start_note import judge_finder  # noqa: PLC0415 - as above

    services = await screen.services()
    task = await services.tasks.get(task_id)
    sessions = await services.sessions.of_task(task_id)
    executions = () if others else await services.executions.of_task(task_id)
    agents = await services.agents.list(workspace_id=task.workspace_id)
    workspace = await services.workspaces.get(task.workspace_id)
    return await screen.ask(
        RunDialog(
            agents=agents,
            task=task,
            executions=executions,
            sessions=sessions,
            others=others,
            beside=await services.queue.numbers_in_folder(task, workspace),
            find_judge=judge_finder(services),
        )
    )


async def run_tasks(
    screen: ServiceScreen[None], task_ids: Sequence[TaskId], *, now: datetime, choice: RunChoice | None = None
) -> list[Execution]:
    """Queue a run of each task with its own program, or with the choice, and return the runs that are queued now.

    What keeps one from starting is told; those that wait for tasks are asked about in one question. A task that
    cannot be run is told as an error and keeps none of the others. Must run in a worker of the screen.
    """
    services = await screen.services()
    queued: list[Execution] = []
    waiting: list[TaskId] = []
    try:
        for task_id in task_ids:
            try:
                if await _choose_place(screen, services, task_id, choice):
                    queued.append(await _run(screen, services, task_id, choice, now=now))
            except WaitsForTasksError:
                waiting.append(task_id)
            except AgentmonError as error:
                screen.post_message(Failed(error))
        screen.request_refresh()
        if waiting and await _ask_when_ready(screen, services, waiting):
            for task_id in waiting:
                try:
                    queued.append(await _run(screen, services, task_id, choice, now=now, when_ready=True))
                except AgentmonError as error:
                    screen.post_message(Failed(error))
    finally:
        screen.request_refresh()
    return queued


async def stop_run(screen: ServiceScreen[None], task_id: TaskId, *, kill: bool = False) -> None:
    """Ask the program of the task to end, or end it by force; the screen shows it soon.

    Raises:
        ConflictError: Nothing of the task waits or runs.
    """
    services = await screen.services()
    try:
        stopped = await services.queue.stop(task_id, actor=services.actor, kill=kill)
    finally:
        screen.request_refresh()
    if stopped.mode.is_conversation and stopped.status.is_open:
        task = await services.tasks.get(task_id)
        session = None if stopped.session_id is None else await services.sessions.get(stopped.session_id)
        is_resumable = session is not None and not session.cannot_resume
        screen.notify(f"Stopping #{task.number}{' · m resumes its conversation' if is_resumable else ''}")


async def verify_run(screen: ServiceScreen[None], task_id: TaskId, run: Execution | None) -> None:
    """Verify a run that is over, the newest one for None, and say how that ended."""
    services = await screen.services()
    task = await services.tasks.get(task_id)
    run = run or await services.executions.newest(task_id)
    if run is None:
        raise ConflictError(f"#{task.number} has not run yet", hint="r runs it")
    command = await services.verifications.command(task, run)
    screen.notify(f"Verifying #{task.number}: {even_line(command, max_characters=_LONGEST_TITLE)}")
    verification = await services.verifications.verify(task, run, command, actor=services.actor)
    # The page may be closed by now.
    screen.app.notify(
        f"#{task.number} {verification.verdict.text}",
        severity="error" if verification.failure else "information",
        markup=False,
    )


async def decide_waiting(screen: ServiceScreen[None], task_id: TaskId) -> None:
    """Ask what becomes of a queued run whose task waits for what will not be done by itself. Must run in a worker.

    Raises:
        NotFoundError: The task is gone.
        ConflictError: The run began or was stopped meanwhile.
    """
    from agentmon.screens.dialogs.choice import Answer, ChoiceDialog  # noqa: PLC0415 - not part of the first frame

    services = await screen.services()
    task = await services.tasks.get(task_id)
    awaited = [one for one in await services.tasks.dependencies(task_id) if not one.releases]
    given_up = [one for one in awaited if one.is_given_up]
    names = awaited_text(awaited)
    dropped = numbers_text([one.number for one in given_up])
    answers = [Answer(_ANYWAY, "Start anyway"), Answer(_DROP, f"Drop {dropped}"), Answer(_STOP, "Take out of queue")]
    if len(given_up) == len(awaited):
        detail = f"Start anyway: it no longer waits for {dropped}."
        answers = [answers[0], answers[2]]
    else:
        detail = f"Start anyway: it waits for nothing.  Drop {dropped}: it waits for the others."
    question = f"#{task.number} {even_line(task.title, max_characters=_LONGEST_TITLE)} waits for {names}."
    answer = await screen.ask(ChoiceDialog(question, detail=detail, answers=answers))
    try:
        if answer == _ANYWAY:
            await services.queue.start_anyway(task_id, actor=services.actor)
            screen.notify(f"#{task.number} no longer waits")
        elif answer == _DROP:
            removed = [one.number for one in given_up]
            await services.tasks.change_dependencies(task_id, removed=removed, actor=services.actor)
            await services.queue.deliver()
            screen.notify(f"#{task.number} no longer waits for {dropped}")
        elif answer == _STOP:
            await services.queue.stop(task_id, actor=services.actor)
    finally:
        screen.request_refresh()


async def ask_let_go(screen: ServiceScreen[None], task_id: TaskId) -> list[Card]:
    """Return which alternatives are let go, since another one was taken: asks where one was and others are open.

    Must run in a worker.
    """
    from agentmon.screens.dialogs.confirm import ConfirmDialog  # noqa: PLC0415 - not part of the first frame

    services = await screen.services()
    cards = await services.board.alternatives(task_id)
    taken = next((card for card in cards if card.status is TaskStatus.DONE), None)
    left = [card for card in cards if card.is_on_offer]
    if taken is None or not left:
        return []
    names = numbers_text([card.number for card in left])
    title = even_line(taken.title, max_characters=_LONGEST_TITLE)
    them = "it" if len(left) == 1 else "them"
    question = f"#{taken.number} {title} was taken. Let {names} go?"
    loss = (
        f"Cancels {names} and stops what runs. Worktrees and branches stay: T shows and removes them."
        f"\nNo keeps {them} for now; y on the card asks again."
    )
    return left if await screen.ask(ConfirmDialog(question, loss=loss, yes="Let go")) else []


async def let_go(screen: ServiceScreen[None], task_id: TaskId) -> None:
    """Let the alternatives go that were not taken, once that was answered.

    Must run in a worker.
    """
    left = await ask_let_go(screen, task_id)
    if not left:
        return
    services = await screen.services()
    try:
        await services.queue.let_go(task_id, actor=services.actor)
        screen.notify(f"Let {numbers_text([card.number for card in left])} go · T shows what is left")
    finally:
        screen.request_refresh()


async def release_agent(screen: ServiceScreen[None], task_id: TaskId) -> None:
    """Let the parked program of the task's newest run, or else its own, start again.

    Raises:
        NotFoundError: The task or the program is gone.
    """
    services = await screen.services()
    task = await services.tasks.get(task_id)
    newest = await services.executions.newest(task_id)
    agent_id = task.assignee_agent_id if newest is None else newest.agent_id
    if agent_id is None:
        screen.notify(f"#{task.number} has no program")
        return
    agent = await services.agents.get(agent_id)
    try:
        await services.agents.release(agent.slug, actor=services.actor)
    except ConflictError:
        starts = f"; r starts #{task.number} now" if newest is not None and newest.not_before is not None else ""
        screen.notify(f"{agent.slug} is not parked{starts}")
    else:
        screen.notify(f"{agent.slug} starts again; its failures are forgotten")
    finally:
        screen.request_refresh()


async def ask_stop(screen: ServiceScreen[None], name: str, title: str) -> bool:
    """Ask whether the agent at work on a task that nobody has selected is stopped. Must run in a worker."""
    from agentmon.screens.dialogs.confirm import ConfirmDialog  # noqa: PLC0415 - not part of the first frame

    question = f"Stop {name} {even_line(title, max_characters=_LONGEST_TITLE)}?"
    loss = "Its agent is at work, and it came under the cursor by itself. What was written so far stays."
    answer: bool | None = await screen.ask(ConfirmDialog(question, loss=loss, yes="Stop"))
    return answer is True


async def ask_kill(screen: ServiceScreen[None], tasks: Sequence[tuple[int | str, str]]) -> bool:
    """Ask whether the runs of these tasks, numbers or names and titles, are ended by force. Must run in a worker."""
    from agentmon.screens.dialogs.confirm import ConfirmDialog  # noqa: PLC0415 - not part of the first frame

    names = named_tasks(tasks)
    if len(names) == 1:
        question, whose = f"Kill {names[0]}?", "Its"
    else:
        question, whose = "\n".join([f"Kill {len(tasks)} runs?", *names]), "Their"
    loss = f"{whose} processes end at once, without a chance to save; what was written so far stays in the log."
    answer: bool | None = await screen.ask(ConfirmDialog(question, loss=loss, yes="Kill"))
    return answer is True


def named_tasks(tasks: Sequence[tuple[int | str, str]]) -> list[str]:
    """Return numbers, or names such as ``api#12``, and titles as lines of a question.

    The last line says how many are left out.
    """
    names = [
        f"{f'#{name}' if isinstance(name, int) else even_line(name)} {even_line(title, max_characters=_LONGEST_TITLE)}"
        for name, title in tasks
    ]
    left_out = len(names) - _MOST_NAMED
    return [*names[:_MOST_NAMED], f"and {left_out} more"] if left_out > 0 else names


async def _choose_place(
    screen: ServiceScreen[None], services: Services, task_id: TaskId, choice: RunChoice | None
) -> bool:
    """Ask once for a workspace what becomes of a run in a repository in which another AI agent works.

    Returns:
        Whether the run is to start; what was answered holds for the workspace from then on.
    """
    from agentmon.screens.dialogs.choice import Answer, ChoiceDialog  # noqa: PLC0415 - not part of the first frame

    agent_slug, isolation = (None, None) if choice is None else (choice.agent_slug, choice.isolation)
    try:
        beside = await services.queue.look_beside(task_id, agent_slug=agent_slug, isolation=isolation)
    except AgentmonError:
        # Whatever is wrong with the task, its run tells.
        return True
    if beside is None or beside.is_chosen or not beside.can_isolate:
        return True
    task = await services.tasks.get(task_id)
    who = numbers_text(beside.numbers)
    works = "works" if len(beside.numbers) == 1 else "work"
    question = f"{who} {works} in this repository. Where does #{task.number} work?"
    detail = (
        "Own worktree: in a copy with a branch of its own, merged later.  One after another: in the folder, once the"
        " other is done.  At once: in the folder, where one can overwrite, stash or reset what the other edits.\n"
        "Remembered for this workspace; workspace.isolation and workspace.max_per_folder in the settings change it."
    )
    answers = [Answer(_WORKTREE, "Own worktree"), Answer(_IN_TURN, "One after another"), Answer(_AT_ONCE, "At once")]
    answer = await screen.ask(ChoiceDialog(question, detail=detail, answers=answers))
    if answer is None:
        return False
    workspace = await services.workspaces.get(task.workspace_id)
    for name, text in _PLACE_SETTINGS[answer].items():
        await services.settings.set(f"workspace.{name}", text, actor=services.actor, workspace=workspace)
    return True


async def _run(
    screen: ServiceScreen[None],
    services: Services,
    task_id: TaskId,
    choice: RunChoice | None,
    *,
    now: datetime,
    when_ready: bool = False,
) -> Execution:
    """Queue one run, and tell what keeps it from starting at once.

    Raises:
        AgentmonError: As ``QueueService.run``.
    """
    from agentmon.screens.tasks.conversation_form import ConversationChoice  # noqa: PLC0415 - not part of the first frame

    conversation = ConversationChoice() if choice is None else choice.conversation
    before = await services.executions.newest(task_id)
    waited = before if before is not None and before.status is ExecutionStatus.QUEUED else None
    try:
        execution = await services.queue.run(
            task_id,
            actor=services.actor,
            agent_slug=None if choice is None else choice.agent_slug,
            capability_key=None if choice is None else choice.capability_key,
            args=None if choice is None else choice.args,
            when_ready=when_ready,
            message=conversation.message,
            start=conversation.start,
            parent_execution_id=conversation.parent_execution_id,
            model=conversation.model,
            permission_mode=conversation.permission_mode,
            own_screen=conversation.own_screen,
            isolation=None if choice is None else choice.isolation,
            base=None if choice is None else choice.base,
            sandbox=None if choice is None else choice.sandbox,
            also=() if choice is None else choice.also,
        )
    except ConflictError as error:
        if waited is None or isinstance(error, WaitsForTasksError):
            raise
        obstacle = await _obstacle(services, waited, now=now)
        if not obstacle:
            raise
        task = await services.tasks.get(task_id)
        screen.notify(f"#{task.number} is queued already: {obstacle}")
        return waited
    if choice is not None and choice.also:
        runs = await services.queue.queued_with(execution)
        numbers = [(await services.tasks.get(one.task_id)).number for one in runs]
        screen.notify(f"{numbers_text(numbers)} are alternatives; = in the changes compares them")
    obstacle = await _obstacle(services, execution, now=now)
    is_hastened = waited is not None and waited.id == execution.id
    if obstacle or is_hastened:
        task = await services.tasks.get(task_id)
        starts = f"#{task.number} no longer waits" if is_hastened else f"#{task.number} is queued"
        screen.notify(f"{starts}: {obstacle}" if obstacle else f"#{task.number} starts now")
    return execution


async def _obstacle(services: Services, execution: Execution, *, now: datetime) -> str:
    """Return what keeps a queued run from starting although its time has come; empty when nothing does."""
    if await services.queue.find_pause() is not None:
        return "the queue is paused · P lets it go on"
    agent = await services.agents.get(execution.agent_id)
    if agent.off_words:
        return f"{agent.off_words} · 4 shows the agents"
    if agent.parked_until is not None and agent.parked_until > now:
        return f"{_parked_words(agent, agent.parked_until, now)} · U lets it start again"
    prerequisites = await services.tasks.dependencies(execution.task_id)
    awaited = awaited_text(prerequisites)
    ways = " · y shows the ways out" if any(one.is_given_up for one in prerequisites) else ""
    return f"it starts after {awaited}{ways}" if awaited else ""


def _parked_words(agent: Agent, until: datetime, now: datetime) -> str:
    why = f" ({even_line(agent.park_note, max_characters=120)})" if agent.park_note else ""
    return f"{agent.slug} is parked until {short_moment(until, now)}{why}"


async def _ask_when_ready(screen: ServiceScreen[None], services: Services, task_ids: Sequence[TaskId]) -> bool:
    from agentmon.screens.dialogs.choice import Answer, ChoiceDialog  # noqa: PLC0415 - not part of the first frame

    told = []
    for task_id in task_ids:
        task = await services.tasks.get(task_id)
        told.append((task, [one for one in await services.tasks.dependencies(task_id) if not one.releases]))
    is_one = len(told) == 1
    lines = [f"#{task.number} waits for {awaited_text(awaited)}" for task, awaited in told[:_MOST_NAMED]]
    if len(told) > _MOST_NAMED:
        lines.append(f"and {len(told) - _MOST_NAMED} more wait as well")
    them = "it is" if is_one and len(told[0][1]) == 1 else "they are"
    what = "it by itself" if is_one else "them by themselves"
    question = "\n".join([*(f"{line}." for line in lines), f"Start {what} when {them} done?"])
    detail = "The run stands in the queue until then; x takes it out." if is_one else "x takes them out of the queue."
    answer = await screen.ask(ChoiceDialog(question, detail=detail, answers=[Answer(_QUEUE, "Start when ready")]))
    return answer == _QUEUE
