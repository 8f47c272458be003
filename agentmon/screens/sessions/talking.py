"""Speaking with the agent of a task from any screen: messages, answers, interrupts, model and permission mode."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from agentmon.domain.activity import Activity
from agentmon.domain.errors import AgentmonError
from agentmon.domain.execution_mode import ExecutionMode
from agentmon.domain.execution_status import ExecutionStatus
from agentmon.domain.live_state import LiveState
from agentmon.screens.frame import AttachRequested
from agentmon.widgets.cells import even_line
from agentmon.widgets.guarded import Failed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from agentmon.bootstrap import Services
    from agentmon.domain.agents import Agent
    from agentmon.domain.clock import Clock
    from agentmon.domain.executions import Execution
    from agentmon.domain.ids import SessionId, TaskId
    from agentmon.domain.sessions import Session
    from agentmon.screens.dialogs.menu_dialog import MenuEntry
    from agentmon.screens.frame import ServiceScreen

MODEL: Final = "model"
PERMISSION_MODE: Final = "permission mode"
_LONGEST_TITLE: Final = 80


class _Way(NamedTuple):
    """What becomes of a message."""

    note: str = ""
    obstacle: str = ""
    """Why none can be sent."""
    handed_over: SessionId | None = None
    """The conversation whose history a fresh one gets, since its agent cannot resume it."""


async def send_message(
    screen: ServiceScreen[None], *task_ids: TaskId, text: str = "", comment_ids: Sequence[str] = ()
) -> bool:
    """Let the person write to the agents of the tasks, say what becomes of it, and send it. Must run in a worker.

    Args:
        screen: Where it is written.
        task_ids: Whose agents.
        text: What stands there at first.
        comment_ids: The comments on changes that it consists of, which are noted as sent.

    Returns:
        Whether anything was sent; of several tasks, those that cannot be spoken to are told and left out.

    Raises:
        AgentmonError: It cannot be sent.
    """
    from agentmon.screens.dialogs.text_dialog import TextDialog  # noqa: PLC0415 - not part of the first frame

    services = await screen.services()
    ways = [(await services.tasks.get(task_id), await _message_way(services, task_id)) for task_id in task_ids]
    reached = [(task, way) for task, way in ways if not way.obstacle] or ways[:1]
    for task, way in ways:
        if len(ways) > 1 and way.obstacle:
            screen.notify(f"#{task.number} is left out: {way.obstacle}")
    first, way = reached[0]
    if len(reached) == 1:
        heading = f"Message to the agent of #{first.number} {even_line(first.title, max_characters=_LONGEST_TITLE)}"
    else:
        heading = f"Message to the agents of {', '.join(f'#{task.number}' for task, _ in reached)}"
        way = _Way(note="Each gets the same message: at once where it can take one, else when it can.")
    said = await screen.ask(TextDialog(heading, note=way.note, text=text, obstacle=way.obstacle))
    if said is None:
        return False
    for task, to_task in reached:
        try:
            if to_task.handed_over is not None:
                await services.sessions.restart(
                    to_task.handed_over, said, comment_ids=comment_ids, actor=services.actor
                )
                screen.notify(f"#{task.number} goes on in a fresh conversation with the history")
                continue
            sent = await services.conversations.send(task.id, said, comment_ids=comment_ids, actor=services.actor)
        except AgentmonError as error:
            if len(reached) == 1:
                raise
            screen.post_message(Failed(error))
            continue
        screen.notify(f"#{task.number}: {sent.outcome}")
    screen.request_refresh()
    return True


async def interrupt(screen: ServiceScreen[None], task_id: TaskId) -> None:
    """Let the agent of the task stop what it does and listen.

    Raises:
        ConflictError: No agent runs that could be interrupted.
    """
    services = await screen.services()
    task = await services.tasks.get(task_id)
    await services.conversations.interrupt(task_id, actor=services.actor)
    screen.notify(f"#{task.number} is asked to stop and listen; m tells it what to do")
    screen.request_refresh()


async def show_request(screen: ServiceScreen[None], task_id: TaskId, clock: Clock) -> None:
    """Show the oldest request of the task with the keys that decide on it. Must run in a worker.

    What waits without a request is answered where it can be: by a message, in its terminal, or in the queue.
    """
    from agentmon.screens.inbox.request_dialog import RequestDialog  # noqa: PLC0415 - not part of the first frame
    from agentmon.screens.tasks.running import decide_waiting  # noqa: PLC0415 - as above

    services = await screen.services()
    pending = await services.approvals.of_task(task_id)
    if not pending:
        newest = await services.executions.newest(task_id)
        if newest is None or newest.live_state is not LiveState.NEEDS_YOU:
            task = await services.tasks.get(task_id)
            screen.notify(f"#{task.number} asks nothing")
        elif newest.status is ExecutionStatus.QUEUED:
            await decide_waiting(screen, task_id)
        elif newest.mode.is_protocol:
            await send_message(screen, task_id)
        else:
            screen.post_message(AttachRequested(newest.id))
        return
    await screen.ask(
        RequestDialog(
            pending[0],
            services=screen.services,
            workspace=screen.workspace,
            clock=clock,
            more=len(pending) - 1,
        )
    )
    screen.request_refresh()


async def change_agent(screen: ServiceScreen[None], task_id: TaskId) -> None:
    """Let the person choose another model or permission mode for the running conversation. Must run in a worker.

    Raises:
        ConflictError: No conversation runs, or its agent cannot change that.
    """
    from agentmon.screens.dialogs.menu_dialog import MenuDialog  # noqa: PLC0415 - not part of the first frame

    services = await screen.services()
    task = await services.tasks.get(task_id)
    newest = await services.executions.newest(task_id)
    if newest is None or not newest.status.is_live or not newest.mode.is_protocol:
        screen.notify(f"#{task.number} has no conversation that runs; R runs it with a model of your choice")
        return
    session = next(iter(await services.sessions.of_task(task_id)), None)
    agent = await services.agents.get(newest.agent_id)
    entries = agent_entries(session, agent)
    chosen = await screen.ask(MenuDialog(f"The agent of #{task.number}", entries, free_kind=MODEL))
    if chosen is None:
        return
    if chosen.kind == MODEL:
        await services.conversations.switch(task_id, model=chosen.word, actor=services.actor)
    else:
        await services.conversations.switch(task_id, permission_mode=chosen.word, actor=services.actor)
    screen.notify(f"#{task.number}: {chosen.kind} {even_line(chosen.word, max_characters=_LONGEST_TITLE)}")
    screen.request_refresh()


def agent_entries(session: Session | None, agent: Agent) -> list[MenuEntry]:
    """Return the models and permission modes that can be chosen: what the conversation offered, then the preset's."""
    from agentmon.screens.dialogs.menu_dialog import MenuEntry  # noqa: PLC0415 - not part of the first frame

    config = agent.session_config
    model = None if session is None else session.model
    mode = None if session is None else session.permission_mode
    models = _united(() if session is None else session.models, () if config is None else config.models, model)
    modes = _united(
        () if session is None else session.permission_modes, () if config is None else config.permission_modes, mode
    )
    return [
        *(MenuEntry(MODEL, word, is_present=word == model) for word in models),
        *(MenuEntry(PERMISSION_MODE, word, is_present=word == mode) for word in modes),
    ]


def _united(offered: Sequence[str], known: Sequence[str], present: str | None) -> list[str]:
    return list(dict.fromkeys([*offered, *known, *([present] if present else [])]))


def fresh_start_note(why: str) -> str:
    """Return what becomes of a message to a conversation that its agent cannot resume."""
    reason = even_line(why, max_characters=_LONGEST_TITLE).rstrip(".")
    return f"Its agent cannot resume it: {reason}. A fresh conversation gets its history and your message."


async def _message_way(services: Services, task_id: TaskId) -> _Way:
    """Return what becomes of a message to the agent of the task."""
    newest = await services.executions.newest(task_id)
    if newest is None:
        return _Way(obstacle="It never ran; r runs it, and then it can be spoken to.")
    if newest.status is ExecutionStatus.QUEUED:
        return _Way(obstacle="It waits in the queue; it can be spoken to when it has begun.")
    if newest.status is ExecutionStatus.CANCELLING:
        return _Way(obstacle="It is being stopped.")
    if newest.status.is_live:
        return _live_way(newest)
    sessions = await services.sessions.of_task(task_id)
    to_resume = next((session for session in sessions if session.session_ref), None)
    if to_resume is not None and to_resume.cannot_resume:
        return _Way(note=fresh_start_note(to_resume.cannot_resume), handed_over=to_resume.id)
    if to_resume is not None:
        return _Way(note="It does not run: a new run goes on with the earlier conversation and this message.")
    return _Way(obstacle="It does not run, and there is no conversation to go on with; r runs it anew.")


def _live_way(execution: Execution) -> _Way:
    if execution.mode is ExecutionMode.TEMPLATE:
        return _Way(obstacle="It is a plain command, which takes no messages; a enters its terminal.")
    if execution.mode is ExecutionMode.TMUX:
        return _Way(note="It is typed into the agent's own screen, and sent with enter.")
    if execution.activity is Activity.WAITING:
        return _Way(note="The agent waits and gets it at once.")
    return _Way(note="The agent works: it gets the message at once where it can take one, else it is queued for it.")
