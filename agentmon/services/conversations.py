"""Conversations: what agents said and did, and what they are told while they run."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from agentmon.domain.activity import DELIVERY_SOURCE, Activity
from agentmon.domain.errors import ConflictError, UsageError
from agentmon.domain.execution_status import ExecutionStatus
from agentmon.domain.executions import CommandType, ConversationStart, hears_late
from agentmon.domain.ids import CommandId, ExecutionId
from agentmon.domain.terminal_keys import key_sequence
from agentmon.runners.execution_folder import ExecutionFolder
from agentmon.threads import in_daemon_thread

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from agentmon.domain.clock import Clock
    from agentmon.domain.conversation import PlanNews
    from agentmon.domain.events import Actor, Event, EventLevel, EventType
    from agentmon.domain.executions import Execution
    from agentmon.domain.idempotency import IdempotencyKey
    from agentmon.domain.ids import MessageId, SessionId, TaskId
    from agentmon.domain.operations import Operation
    from agentmon.domain.sessions import Message
    from agentmon.domain.tasks import Task
    from agentmon.services.queue import QueueService
    from agentmon.store.conversations import ConversationRepository
    from agentmon.store.events import EventRepository
    from agentmon.store.execution_commands import CommandRepository
    from agentmon.store.executions import ExecutionRepository
    from agentmon.store.idempotency import IdempotencyRepository
    from agentmon.store.tasks import TaskRepository

_EARLIER_LOOKED_AT: Final = 200
_MOST_TYPED_BYTES: Final = 3_000
"""As JSON: with its frame less than a FIFO takes whole."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SentMessage:
    """Where a message went."""

    execution: Execution
    is_new_execution: bool
    """Whether it begins an execution that goes on with an earlier conversation."""
    waits_for: str = ""
    """What keeps it from its agent for now; empty when nothing does."""

    @property
    def outcome(self) -> str:
        """What became of it, for a person."""
        if self.is_new_execution:
            return "the conversation goes on with the message"
        return f"the message waits: {self.waits_for}" if self.waits_for else "message sent"


class ConversationService:
    """Reads conversations and speaks to running agents."""

    def __init__(
        self,
        *,
        conversations: ConversationRepository,
        events: EventRepository,
        commands: CommandRepository,
        executions: ExecutionRepository,
        keys: IdempotencyRepository,
        tasks: TaskRepository,
        queue: QueueService,
        clock: Clock,
    ) -> None:
        self._conversations = conversations
        self._events = events
        self._commands = commands
        self._executions = executions
        self._keys = keys
        self._tasks = tasks
        self._queue = queue
        self._clock = clock

    async def messages(
        self, session_id: SessionId, *, after: MessageId | None = None, limit: int = 500
    ) -> tuple[Message, ...]:
        """Return messages of a session after one that is known, oldest first."""
        return await self._conversations.messages(session_id, after=after, limit=limit)

    async def operations(
        self, *, session_id: SessionId | None = None, execution_id: ExecutionId | None = None, limit: int = 500
    ) -> tuple[Operation, ...]:
        """Return the newest tool calls of a session or an execution, oldest first."""
        return await self._conversations.operations(session_id=session_id, execution_id=execution_id, limit=limit)

    async def plan(self, execution_id: ExecutionId) -> PlanNews | None:
        """Return the agent's plan as it stands; None when it told of none."""
        return await self._conversations.plan(execution_id)

    async def events(
        self,
        *,
        execution_id: ExecutionId | None = None,
        session_id: SessionId | None = None,
        types: Collection[EventType] = (),
        levels: Collection[EventLevel] = (),
        after_id: int = 0,
        limit: int = 500,
    ) -> tuple[Event, ...]:
        """Return entries of the stream after an id, oldest first."""
        return await self._events.list(
            execution_id=execution_id,
            session_id=session_id,
            types=types,
            levels=levels,
            after_id=after_id,
            limit=limit,
        )

    async def send(
        self,
        task_id: TaskId,
        text: str,
        *,
        comment_ids: Sequence[str] = (),
        actor: Actor,
        key: IdempotencyKey | None = None,
    ) -> SentMessage:
        """Say something to the task's agent: to the one that runs, or by going on with its newest conversation.

        The same request under the same key says nothing again, and returns where the message went. Comments on changes
        that the text consists of are noted as sent with it.

        Raises:
            UsageError: The text is empty, or the task has had no conversation.
            ConflictError: Nobody takes a message now, which the hint says more about, or something else was asked for
                under the key.
            UndeliveredError: It is sent, and nobody carries it to the agent yet.
            AgentmonError: The conversation cannot go on; see ``QueueService.run``.
        """
        if not text.strip():
            raise UsageError("the message is empty")
        known = await self._keys.find_result(key, actor=actor)
        if known is not None:
            # Whoever asked first may have died before it saw that somebody carries the message.
            await self._queue.deliver()
            return await self._sent(known)
        task, execution = await self._newest(task_id)
        if execution is None or not execution.status.is_open:
            earlier = await self.newest_to_resume(task_id)
            begun = await self._queue.run(
                task_id,
                actor=actor,
                message=text,
                comment_ids=comment_ids,
                start=ConversationStart.RESUME,
                parent_execution_id=earlier.id,
                key=key,
            )
            await self._queue.deliver()
            return SentMessage(execution=begun, is_new_execution=True)
        if not hears_late(execution.status, execution.mode, execution.ending):
            execution = _require_running(task, execution)
        return await self._sent(
            await self._command(
                execution, (CommandType.MESSAGE, {"text": text}), comment_ids=comment_ids, key=key, actor=actor
            )
        )

    async def interrupt(self, task_id: TaskId, *, actor: Actor) -> None:
        """Let the task's agent stop what it does and listen.

        Raises:
            ConflictError: No agent of the task runs.
            UndeliveredError: Nobody tells it yet.
        """
        await self._command(await self._running(task_id), (CommandType.INTERRUPT, {}), actor=actor)

    async def finish(self, task_id: TaskId, *, actor: Actor) -> None:
        """Let the conversation end when the agent has nothing left to do.

        Raises:
            ConflictError: No agent of the task runs.
            UndeliveredError: Nobody tells it yet.
        """
        await self._command(await self._running(task_id), (CommandType.FINISH, {}), actor=actor)

    async def switch(
        self, task_id: TaskId, *, model: str | None = None, permission_mode: str | None = None, actor: Actor
    ) -> None:
        """Let the task's agent go on with another model, in another permission mode, or both.

        Raises:
            UsageError: A name is empty, or none is given.
            ConflictError: No agent of the task runs.
            UndeliveredError: Nobody tells it yet.
        """
        commands: list[tuple[CommandType, Mapping[str, object]]] = []
        if model is not None:
            commands.append((CommandType.SET_MODEL, {"model": _named(model, "model")}))
        if permission_mode is not None:
            mode = _named(permission_mode, "permission mode")
            commands.append((CommandType.SET_PERMISSION_MODE, {"permission_mode": mode}))
        if not commands:
            raise UsageError("switch what?", hint="name a model or a permission mode")
        await self._command(await self._running(task_id), *commands, actor=actor)

    async def type_keys(self, task_id: TaskId, text: str, keys: Sequence[str] = (), *, actor: Actor) -> CommandId:
        """Type a text, then keys by their names, into the terminal of the task's run, as if a person were attached.

        It goes to the host itself and into no row and no file. The host records how many keys it was, and what they
        were only where the setting says so.

        Raises:
            UsageError: Nothing is to be typed, too much at a time, or there is no key of a name.
            ConflictError: The task has no run in a terminal, its host takes nothing now, or an agent asks.
        """
        typed = text + "".join(key_sequence(key) for key in keys)
        if not typed:
            raise UsageError("nothing to type", hint="give a text, or a key such as --key enter")
        if len(json.dumps(typed)) > _MOST_TYPED_BYTES:
            raise UsageError("too long to be typed at once", hint="send it in pieces, or as a `message`")
        task, execution = await self._newest(task_id)
        execution = _require_heard(task, execution)
        if execution.mode.is_protocol:
            raise ConflictError(
                f"#{task.number} is no program in a terminal: agentmon speaks to its agent",
                hint=f"`agentmon message {task.number} TEXT`, or `agentmon interrupt {task.number}` instead of ctrl+c",
            )
        command_id = await self._commands.note_typed(execution.id, actor=actor, at=self._clock.now())
        folder = ExecutionFolder(Path(execution.log_file_path or "").parent)
        line = {"id": command_id, "type": CommandType.TYPE.value, "text": typed, "is_sent": True}
        try:
            await in_daemon_thread(partial(folder.hand_over, line), name="type")
        except OSError as error:
            raise ConflictError(
                f"#{task.number} takes no keys now: {error.strerror}", hint="try again in a moment"
            ) from error
        return command_id

    async def newest_to_resume(self, task_id: TaskId) -> Execution:
        """Return the newest execution of the task whose conversation can be gone on with.

        Raises:
            UsageError: There is none; the hint says how to begin one.
        """
        task = await self._tasks.get(task_id)
        for earlier in await self._executions.of_task(task.id, limit=_EARLIER_LOOKED_AT):
            if earlier.session_ref is not None:
                return earlier
        raise UsageError(
            f"#{task.number} has no conversation to go on with",
            hint=f"`agentmon run {task.number}` starts one with an agent",
        )

    async def _running(self, task_id: TaskId) -> Execution:
        return _require_running(*await self._newest(task_id))

    async def _newest(self, task_id: TaskId) -> tuple[Task, Execution | None]:
        task = await self._tasks.get(task_id)
        newest = await self._executions.of_task(task_id, limit=1)
        return task, newest[0] if newest else None

    async def _command(
        self,
        execution: Execution,
        *commands: tuple[CommandType, Mapping[str, object]],
        comment_ids: Sequence[str] = (),
        key: IdempotencyKey | None = None,
        actor: Actor,
    ) -> CommandId:
        command_id = await self._commands.add(
            execution.id, *commands, comment_ids=comment_ids, key=key, actor=actor, at=self._clock.now()
        )
        await self._queue.deliver()
        return command_id

    async def _sent(self, result_id: str) -> SentMessage:
        """Return where a message went, by the command that carries it or the execution that begins with it."""
        told = await self._commands.find_execution_id(result_id)
        execution = await self._executions.get(told or ExecutionId(result_id))
        if told is None:
            return SentMessage(execution=execution, is_new_execution=True)
        earlier = await self._commands.count_waiting(execution.id, before=CommandId(result_id))
        waits_for = f"{earlier:,} sent before it {'waits' if earlier == 1 else 'wait'} too" if earlier else ""
        if execution.activity is Activity.WAITING and execution.activity_source == DELIVERY_SOURCE:
            waits_for = execution.activity_note or waits_for
        return SentMessage(execution=execution, is_new_execution=False, waits_for=waits_for)


def _require_running(task: Task, execution: Execution | None) -> Execution:
    """Return the execution when its agent can be spoken to.

    Raises:
        ConflictError: It cannot; the hint says what can be done.
    """
    execution = _require_heard(task, execution)
    if not execution.mode.is_conversation:
        raise ConflictError(
            f"#{task.number} runs a command, which takes no messages",
            hint=f"attach with `agentmon attach {task.number}`, or type with `agentmon send {task.number}`",
        )
    return execution


def _require_heard(task: Task, execution: Execution | None) -> Execution:
    """Return the execution when it runs.

    Raises:
        ConflictError: It does not; the hint says what can be done.
    """
    name = f"#{task.number}"
    if execution is None or not execution.status.is_open:
        raise ConflictError(f"no agent of {name} runs", hint=f"`agentmon run {task.number}` starts one")
    if execution.is_held:
        raise ConflictError(
            f"{name} waits for a leave to start", hint=f"`agentmon approve '{name}'` lets it start, then try again"
        )
    if execution.status is ExecutionStatus.QUEUED:
        raise ConflictError(f"{name} has not started yet", hint="try again when it runs")
    if execution.status is not ExecutionStatus.RUNNING:
        raise ConflictError(f"{name} is being stopped", hint=f"`agentmon run {task.number}` runs it again afterwards")
    return execution


def _named(text: str, what: str) -> str:
    if not text.strip():
        raise UsageError(f"the {what} has no name")
    return text.strip()
