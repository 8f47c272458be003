"""``agentmon conversation``, ``operations`` and ``events``: what an agent said and did, also while it does."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from datetime import timedelta
from typing import Annotated, TypeAlias

import typer

from agentmon.bootstrap import Services
from agentmon.cli.columns import table, terminal_width
from agentmon.cli.context import JsonOption, NumberArgument, WorkspaceOption, numbered_task, with_workspace
from agentmon.cli.conversation_text import (
    body_part,
    draft_head,
    event_line,
    message_text,
    operation_line,
    plan_lines,
)
from agentmon.cli.json_form import json_form
from agentmon.cli.output import flush, say, say_clean_part, say_document, say_document_line, tell
from agentmon.cli.task_text import local_time
from agentmon.domain.clock import SystemClock
from agentmon.domain.events import Event, EventLevel, EventType
from agentmon.domain.executions import Execution
from agentmon.domain.ids import ExecutionId, MessageId, OperationId, SessionId
from agentmon.domain.operations import Operation, OperationStatus
from agentmon.domain.plain_text import plain_line
from agentmon.domain.sessions import Draft, Message, Session
from agentmon.domain.tasks import Task, Workspace

_LOOK_INTERVAL_S = 0.2
_PAGE = 500
_MOST_OPERATIONS = 10_000

FollowOption = Annotated[bool, typer.Option("--follow", "-f", help="Go on until the run is over, or ctrl+c.")]


def conversation(
    number: NumberArgument,
    folder: WorkspaceOption = None,
    session: Annotated[
        str | None, typer.Option("--session", metavar="ID", help="An earlier conversation of it: the start of its id.")
    ] = None,
    is_following: FollowOption = False,
    as_json: JsonOption = False,
) -> None:
    """Show the newest conversation of a task.

    With --follow, text is printed while it is written. --json then prints one object a line; its kind is draft (a piece
    of a message), message or operation.

    Examples:
      agentmon conversation 12
      agentmon conversation 12 -f
      agentmon conversation 12 --json
    """

    async def work(services: Services, workspace: Workspace) -> None:
        task = await numbered_task(services, workspace, number)
        sessions = await services.sessions.of_task(task.id)
        chosen = await services.sessions.find(session) if session is not None else next(iter(sessions), None)
        if chosen is None:
            if as_json and not is_following:
                say_document({"session": None, "messages": [], "operations": [], "plan": None})
            tell(f"#{task.number} has had no conversation; `agentmon run {task.number}` starts one with an agent")
        elif is_following:
            await _follow_conversation(services, chosen, as_json=as_json)
        else:
            await _print_conversation(services, chosen, as_json=as_json)

    with_workspace(folder, work)


def operations(number: NumberArgument, folder: WorkspaceOption = None, as_json: JsonOption = False) -> None:
    """List the tool calls of a task's newest conversation.

    Examples:
      agentmon operations 12
      agentmon operations 12 --json
    """

    async def work(services: Services, workspace: Workspace) -> tuple[Operation, ...]:
        task = await numbered_task(services, workspace, number)
        newest = next(iter(await services.sessions.of_task(task.id)), None)
        if newest is None:
            return ()
        return await services.conversations.operations(session_id=newest.id, limit=_MOST_OPERATIONS)

    found = with_workspace(folder, work)
    if as_json:
        say_document(json_form(found))
    elif not found:
        tell(f"no agent of #{number.removeprefix('#')} has called a tool")
    else:
        rows = [
            (str(one.number or ""), local_time(one.started_at), one.type.value, operation_line(one)) for one in found
        ]
        say("\n".join(table(("#", "STARTED", "KIND", "CALL"), rows, terminal_width())))


def events(
    number: NumberArgument,
    folder: WorkspaceOption = None,
    is_following: FollowOption = False,
    types: Annotated[list[EventType] | None, typer.Option("--type", help="Only these kinds.")] = None,
    levels: Annotated[list[EventLevel] | None, typer.Option("--level", help="Only these levels.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Show the events of a task's newest run, oldest first.

    --json prints one object a line.

    Examples:
      agentmon events 12
      agentmon events 12 -f --json
      agentmon events 12 --type tool_started --type error
    """

    async def work(services: Services, workspace: Workspace) -> None:
        task = await numbered_task(services, workspace, number)
        execution = await services.executions.newest(task.id)
        if execution is None:
            tell(f"#{task.number} has not run yet; agentmon run {task.number}")
            return
        after_id = 0
        execution_id = execution.id
        await _tell_thinned(services, execution, task)

        async def read() -> bool:
            nonlocal after_id
            has_any = False
            while page := await _events_after(services, execution_id, types or (), levels or (), after_id):
                for event in page:
                    say_document_line(json_form(event)) if as_json else say(event_line(event))
                after_id, has_any = page[-1].id, True
            return has_any

        if is_following:
            await _follow(services, execution_id, read)
        elif not await read():
            tell("nothing of that is recorded")

    with_workspace(folder, work)


async def _tell_thinned(services: Services, execution: Execution, task: Task) -> None:
    days = (await services.settings.worker()).keep_events_days
    if days and execution.ended_at is not None and execution.ended_at < SystemClock().now() - timedelta(days=days):
        tell(
            f"after {days} days messages, tool calls and usage leave the stream (worker.keep_events_days); "
            f"agentmon conversation {task.number} and agentmon operations {task.number} show them"
        )


async def _events_after(
    services: Services,
    execution_id: ExecutionId,
    types: Sequence[EventType],
    levels: Sequence[EventLevel],
    after_id: int,
) -> tuple[Event, ...]:
    return await services.conversations.events(
        execution_id=execution_id, types=types, levels=levels, after_id=after_id, limit=_PAGE
    )


async def _follow(
    services: Services,
    execution_id: ExecutionId,
    read: Callable[[], Awaitable[bool]],
    poll: Callable[[], None] = lambda: None,
) -> None:
    """Read whenever the database changes, until the execution is over and all of it is read; poll in between."""
    version: int | None = None
    while True:
        present = services.data_version()
        if version != present:
            version = present
            execution = await services.executions.get(execution_id)
            await read()
            flush()
            if not execution.status.is_open:
                return
        poll()
        await asyncio.sleep(_LOOK_INTERVAL_S)


async def _all_messages(services: Services, session_id: SessionId, after: MessageId | None = None) -> list[Message]:
    found: list[Message] = []
    while page := await services.conversations.messages(session_id, after=after, limit=_PAGE):
        found += page
        after = page[-1].id
    return found


async def _print_conversation(services: Services, session: Session, *, as_json: bool) -> None:
    messages = await _all_messages(services, session.id)
    calls = await services.conversations.operations(session_id=session.id, limit=_MOST_OPERATIONS)
    newest = await _newest_execution(services, session)
    plan = None if newest is None else await services.conversations.plan(newest.id)
    listing = await services.sessions.get_listing(session.id)
    if as_json:
        say_document(
            {
                "session": json_form(session),
                "state": listing.state.value,
                "messages": json_form(messages),
                "operations": json_form(calls),
                "plan": json_form(plan),
            }
        )
        return
    state = f"{listing.state.glyph} {listing.state.with_cause(exit_code=listing.exit_code)}"
    tell(f"{plain_line(session.title) or 'conversation'}  {session.id}  {state}")
    told = [(one.created_at, message_text(one)) for one in messages]
    told += [(one.started_at, "  " + operation_line(one)) for one in calls]
    for _, text in sorted(told, key=lambda pair: pair[0]):
        say(text)
    if plan is not None:
        say("Plan")
        say("\n".join(f"  {line}" for line in plan_lines(plan)))
    if not told:
        tell("nothing was said yet")


async def _follow_conversation(services: Services, session: Session, *, as_json: bool) -> None:
    newest = await _newest_execution(services, session)
    if newest is None:
        await _print_conversation(services, session, as_json=as_json)
        return
    printed = _Printed(as_json=as_json)
    execution = newest
    reader = services.executions.draft_reader(execution)

    async def read() -> bool:
        nonlocal execution, reader
        # Before the messages: what was in the database then is among these.
        attempt, execution = execution.attempt, await services.executions.get(newest.id)
        if execution.attempt != attempt:
            reader = services.executions.draft_reader(execution)
        messages = await _all_messages(services, session.id, printed.before_open)
        operations = await services.conversations.operations(session_id=session.id, limit=_MOST_OPERATIONS)
        reader.poll()
        drafts = reader.drafts(execution.journal_offset) if execution.status.is_open else ()
        printed.messages(messages, drafts)
        printed.operations(operations)
        printed.drafts(drafts)
        return True

    def poll() -> None:
        if reader.poll():
            printed.drafts(reader.drafts(execution.journal_offset))
            flush()

    await _follow(services, newest.id, read, poll)
    printed.end_line()


async def _newest_execution(services: Services, session: Session) -> Execution | None:
    executions = await services.sessions.executions(session.id)
    return executions[-1] if executions else None


_Name: TypeAlias = tuple[ExecutionId | None, str]


def _name(said: Draft | Message) -> _Name:
    """Return what a message and its draft have in common; runs of one conversation may give the same references."""
    return said.execution_id, said.message_ref or (said.id if isinstance(said, Message) else "")


class _Printed:
    """What has been printed of a conversation; messages that are being written, and the last one, may still grow."""

    def __init__(self, *, as_json: bool) -> None:
        self._as_json = as_json
        self._operations: dict[OperationId, OperationStatus] = {}
        self._messages: dict[_Name, str] = {}
        """Printed texts of the stored messages that may still grow and of those after them."""
        self.before_open: MessageId | None = None
        """The message before them."""
        self._parts: dict[_Name, str] = {}
        """What was printed of messages in parts; as text, of one at a time."""
        self._is_mid_line = False

    def messages(self, messages: Sequence[Message], drafts: Sequence[Draft]) -> None:
        """Print what is new of messages after ``before_open``, but for those that are being written."""
        writing = {_name(draft) for draft in drafts}
        names = [_name(message) for message in messages]
        for name, message in zip(names, messages, strict=True):
            if name not in writing and self._messages.get(name) != message.content:
                self._print_message(name, message)
                self._messages[name] = message.content
        first_open = next((at for at, name in enumerate(names) if name in writing), len(names) - 1)
        if first_open > 0:
            self.before_open = messages[first_open - 1].id
            for name in names[:first_open]:
                self._messages.pop(name, None)

    def _print_message(self, name: _Name, message: Message) -> None:
        if self._as_json:
            say_document_line({"kind": "message", **_fields(json_form(message))})
            return
        part = self._parts.get(name, "")
        self._parts[name] = message.content
        if not part or not message.content.startswith(part):
            self.end_line()
            say(message_text(message))
            return
        rest = message.content[len(part) :]
        if rest:
            self._print_part(rest)
        self.end_line()

    def drafts(self, drafts: Sequence[Draft]) -> None:
        """Print what was written since, and leave what came to nothing."""
        names = {_name(draft) for draft in drafts}
        self._parts = {name: text for name, text in self._parts.items() if name in names or name in self._messages}
        if not names:
            self.end_line()
        for draft in drafts if self._as_json else drafts[:1]:
            name = _name(draft)
            known = self._parts.get(name, "")
            added = draft.text[len(known) :]
            if not added:
                continue
            self._parts[name] = draft.text
            if self._as_json:
                part = {"message_ref": draft.message_ref, "is_thinking": draft.is_thinking, "text": added}
                say_document_line({"kind": "draft", **part})
            else:
                if not known:
                    self.end_line()
                    say(draft_head(draft))
                self._print_part(added)

    def _print_part(self, text: str) -> None:
        say_clean_part(("" if self._is_mid_line else "  ") + body_part(text))
        self._is_mid_line = True

    def end_line(self) -> None:
        """End the line that a message is being written in."""
        if self._is_mid_line:
            self._is_mid_line = False
            say()

    def operations(self, operations: Sequence[Operation]) -> None:
        """Print the calls that began or ended."""
        for operation in operations:
            if self._operations.get(operation.id) is operation.status:
                continue
            self._operations[operation.id] = operation.status
            self.end_line()
            if self._as_json:
                say_document_line({"kind": "operation", **_fields(json_form(operation))})
            else:
                say("  " + operation_line(operation))


def _fields(form: object) -> dict[str, object]:
    return form if isinstance(form, dict) else {}
