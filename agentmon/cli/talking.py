"""``agentmon message``, ``send``, ``interrupt``, ``finish`` and ``switch``: what a running agent is told."""

from collections.abc import Awaitable, Callable
from typing import Annotated

import typer

from agentmon.bootstrap import Services
from agentmon.cli.context import JsonOption, KeyOption, NumberArgument, WorkspaceOption, numbered_task, with_workspace
from agentmon.cli.json_form import json_form
from agentmon.cli.output import say, say_document, tell
from agentmon.cli.piped_text import piped_text
from agentmon.domain.errors import UsageError
from agentmon.domain.events import Actor
from agentmon.domain.idempotency import idempotency_key
from agentmon.domain.tasks import Task, Workspace
from agentmon.services.conversations import SentMessage


def message(
    number: NumberArgument,
    text: Annotated[str, typer.Argument(metavar="TEXT|-", help="What the agent is told; - reads standard input.")],
    folder: WorkspaceOption = None,
    key: KeyOption = None,
    as_json: JsonOption = False,
) -> None:
    """Send a message to the agent of a task.

    One that runs is told at once or when it has finished what it does. When none runs, the task's newest
    conversation goes on with the message.

    Examples:
      agentmon message 12 "use the test database"
      git diff | agentmon message 12 -
    """
    words = piped_text() if text == "-" else text

    async def work(services: Services, workspace: Workspace) -> tuple[Task, SentMessage]:
        task = await numbered_task(services, workspace, number)
        named = idempotency_key(key, "message", {"task_id": task.id, "text": words})
        return task, await services.conversations.send(task.id, words, actor=services.actor, key=named)

    task, sent = with_workspace(folder, work)
    if as_json:
        say_document(json_form(sent))
    else:
        say(f"#{task.number}: {sent.outcome}")
        tell(f"agentmon conversation {task.number} -f shows what it says")


def send(
    number: NumberArgument,
    text: Annotated[
        str | None, typer.Argument(metavar="[TEXT|-]", help="What is typed; - reads standard input, as it is.")
    ] = None,
    keys: Annotated[
        list[str] | None,
        typer.Option("--key", metavar="KEY", help="A key pressed after the text: enter, up, f5, ctrl+c; repeatable."),
    ] = None,
    folder: WorkspaceOption = None,
    as_json: JsonOption = False,
) -> None:
    """Type into the terminal of a running task.

    The record has how many keys it were; with worker.record_typed_text also which. A text of an agent's
    conversation is better sent with `message`, which waits until the agent listens.

    Examples:
      agentmon send 12 "y" --key enter
      agentmon send 12 --key ctrl+c
      pass show deploy | agentmon send 12 - --key enter
    """
    typed = piped_text().removesuffix("\n") if text == "-" else text or ""

    async def work(services: Services, workspace: Workspace) -> tuple[Task, str]:
        task = await numbered_task(services, workspace, number)
        return task, await services.conversations.type_keys(task.id, typed, keys or (), actor=services.actor)

    task, command_id = with_workspace(folder, work)
    if as_json:
        say_document({"task_number": task.number, "task_id": task.id, "command_id": command_id})
    else:
        say(f"sent to #{task.number}")


def interrupt(number: NumberArgument, folder: WorkspaceOption = None, as_json: JsonOption = False) -> None:
    """Interrupt the agent of a task.

    Examples:
      agentmon interrupt 12
    """

    async def act(services: Services, task: Task, actor: Actor) -> None:
        await services.conversations.interrupt(task.id, actor=actor)

    _command(number, folder, act, "is interrupted", as_json=as_json)


def finish(number: NumberArgument, folder: WorkspaceOption = None, as_json: JsonOption = False) -> None:
    """End the conversation of a task once its agent is idle.

    Examples:
      agentmon finish 12
    """

    async def act(services: Services, task: Task, actor: Actor) -> None:
        await services.conversations.finish(task.id, actor=actor)

    _command(number, folder, act, "ends when its agent has nothing left to do", as_json=as_json)


def switch(
    number: NumberArgument,
    folder: WorkspaceOption = None,
    model: Annotated[str | None, typer.Option("--model", metavar="MODEL", help="Go on with this model.")] = None,
    permission_mode: Annotated[
        str | None, typer.Option("--permission-mode", metavar="MODE", help="Go on in this permission mode.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Switch the model or permission mode of a running agent.

    `agentmon sessions show` lists what an agent offers.

    Examples:
      agentmon switch 12 --model opus
      agentmon switch 12 --permission-mode plan
    """
    if model is None and permission_mode is None:
        raise UsageError("switch what?", hint="give --model or --permission-mode")

    async def act(services: Services, task: Task, actor: Actor) -> None:
        await services.conversations.switch(task.id, model=model, permission_mode=permission_mode, actor=actor)

    told = " and ".join(word for word in (model, permission_mode) if word is not None)
    _command(number, folder, act, f"is told to go on with {told}", as_json=as_json)


def _command(
    number: str,
    folder: str | None,
    act: Callable[[Services, Task, Actor], Awaitable[None]],
    words: str,
    *,
    as_json: bool,
) -> None:
    async def work(services: Services, workspace: Workspace) -> Task:
        task = await numbered_task(services, workspace, number)
        await act(services, task, services.actor)
        return task

    task = with_workspace(folder, work)
    if as_json:
        say_document({"task_number": task.number, "task_id": task.id})
    else:
        say(f"#{task.number} {words}")
