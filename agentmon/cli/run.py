"""``agentmon run``: tasks put into the queue, now or for later, and waited for."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Annotated

import typer

from agentmon.bootstrap import Services
from agentmon.cli import exit_codes
from agentmon.cli.context import JsonOption, KeyOption, WorkspaceOption, numbered_task, with_workspace
from agentmon.cli.local_time import moment_to_come
from agentmon.cli.numbered_work import (
    NumbersArgument,
    TaskExecution,
    executions_form,
    for_each_number,
    require_one_for_key,
)
from agentmon.cli.option_groups import spreading
from agentmon.cli.output import say, say_document, tell
from agentmon.cli.piped_text import piped_text
from agentmon.cli.run_waiting import WaitOption, all_finished, exit_code_of
from agentmon.cli.task_options import (
    BaseOption,
    IsolationOption,
    ProgramOptions,
    parsed_arguments,
    valid_base,
    valid_text,
)
from agentmon.cli.troubles import tell_troubles
from agentmon.cli.wait_text import obstacles_of, waiting_text
from agentmon.domain.any_command import ANY_COMMAND_KEY, ANY_COMMAND_SLUG
from agentmon.domain.errors import UsageError
from agentmon.domain.events import ActorType
from agentmon.domain.executions import ConversationStart, Execution
from agentmon.domain.idempotency import idempotency_key
from agentmon.domain.live_state import numbers_text
from agentmon.domain.sandboxes import Sandbox
from agentmon.domain.tasks import Task, Workspace
from agentmon.domain.worktrees import Isolation, shared_folder_note
from agentmon.runners.adapters.template import parse_command


@dataclass(frozen=True, slots=True, kw_only=True)
class StartOptions:
    """When a queued run starts, as it was typed."""

    at: Annotated[
        str | None,
        typer.Option("--at", metavar="TIME", help="Start then at the earliest: 15:04, 'tomorrow 7:00', 'in 2h'."),
    ] = None
    is_when_ready: Annotated[
        bool, typer.Option("--when-ready", help="Start by itself when the last task it waits for is done.")
    ] = False
    is_anyway: Annotated[
        bool, typer.Option("--anyway", help="Start without the tasks it waits for, and no longer wait for them.")
    ] = False

    def not_before(self) -> datetime | None:
        """Return the time of ``--at``.

        Raises:
            UsageError: It is not understood, or is in the past, or the options contradict each other.
        """
        if self.is_when_ready and self.is_anyway:
            raise UsageError("--when-ready and --anyway exclude each other")
        return None if self.at is None else moment_to_come(self.at)


@dataclass(frozen=True, slots=True, kw_only=True)
class ConversationOptions:
    """How the conversation with an agent begins, as it was typed."""

    message: Annotated[
        str | None, typer.Option("--message", "-m", metavar="TEXT|-", help="Tell the agent this, not the task's text.")
    ] = None
    is_resuming: Annotated[
        bool, typer.Option("--resume", help="Go on with the task's newest conversation; needs --message.")
    ] = False
    is_forking: Annotated[bool, typer.Option("--fork", help="Go on with a copy of it; needs --message.")] = False
    model: Annotated[str | None, typer.Option("--model", metavar="MODEL", help="The agent's model for this run.")] = (
        None
    )
    permission_mode: Annotated[
        str | None, typer.Option("--permission-mode", metavar="MODE", help="The agent's permission mode for this run.")
    ] = None
    is_own_screen: Annotated[
        bool, typer.Option("--own-screen", help="Let the agent show its own screen; attach to see it.")
    ] = False

    def start(self) -> ConversationStart:
        """Return how the conversation begins.

        Raises:
            UsageError: The options contradict each other.
        """
        if self.is_resuming and self.is_forking:
            raise UsageError("--resume and --fork exclude each other")
        if (self.is_resuming or self.is_forking) and not self.message:
            raise UsageError("what is the agent told next?", hint="add --message TEXT")
        if self.is_resuming:
            return ConversationStart.RESUME
        return ConversationStart.FORK if self.is_forking else ConversationStart.FRESH


@dataclass(frozen=True, slots=True, kw_only=True)
class _ChosenProgram:
    """What a run takes instead of its task's own program, capability and arguments; None keeps that of the task."""

    agent_slug: str | None
    capability_key: str | None
    args: Mapping[str, object] | None


@spreading(ProgramOptions, StartOptions, ConversationOptions)
def run(
    numbers: NumbersArgument = None,
    *,
    folder: WorkspaceOption = None,
    is_waiting: WaitOption = False,
    start: StartOptions,
    program: ProgramOptions,
    conversation: ConversationOptions,
    isolation: IsolationOption = None,
    base: BaseOption = None,
    sandbox: Annotated[
        Sandbox | None,
        typer.Option("--sandbox", help="Hide agentmon from the run; with project it also writes there only."),
    ] = None,
    also: Annotated[
        list[str] | None,
        typer.Option(
            "--also",
            metavar="SLUG",
            help="Let this agent do the same, on a card and in a worktree of its own, and take the better; repeatable.",
        ),
    ] = None,
    is_lost: Annotated[
        bool, typer.Option("--lost", help="Run again every task whose newest run was lost in a crash.")
    ] = False,
    key: KeyOption = None,
    as_json: JsonOption = False,
) -> None:
    """Run tasks; with --wait the exit code is that of the run.

    0 succeeded, the program's own code when it failed, 124 timed out, 130 cancelled; of several runs, 1 when not
    all succeeded. Times are those of this machine's zone. A run that waits for a time starts at once when it is
    asked for again. With --also several agents do the same, each on a card of its own: `agentmon diff` compares them
    with --against-task, `agentmon merge` takes one, and `agentmon task let-go` cancels the others.

    Examples:
      agentmon run 12
      agentmon run 12 --wait && echo fine
      agentmon run 3 4 5
      agentmon run 12 --at "tomorrow 7:00"
      agentmon run 12 --when-ready
      agentmon run 12 --anyway
      agentmon run 12 --with git.log --arg max=20
      agentmon run 12 --isolation worktree --base main
      agentmon run 12 --agent claude --also codex --also claude
      agentmon run 12 --model opus --permission-mode plan
      agentmon run 12 --resume --message "now the other test"
      agentmon run 12 --key 5f0c7a52
      agentmon run --lost
    """
    _require_numbers(numbers or (), is_lost=is_lost, also=also or ())
    not_before = start.not_before()
    begins = conversation.start()
    message = piped_text() if conversation.message == "-" else conversation.message
    is_one = numbers is not None and len(numbers) == 1
    require_one_for_key(key, is_one=is_one)
    own = (("isolation", isolation), ("base", base), ("sandbox", sandbox), ("also", also))
    place = {name: chosen for name, chosen in own if chosen is not None}
    asked = {**asdict(start), **asdict(program), **asdict(conversation), **place, "message": message}

    async def work(services: Services, workspace: Workspace) -> tuple[list[TaskExecution], int]:
        async def begin(number: str) -> list[TaskExecution]:
            task, actor = await numbered_task(services, workspace, number), services.actor
            named = idempotency_key(key, "run", {**asked, "task_id": task.id})
            begun = await services.queue.find_begun(named, actor=actor)
            if begun is not None:
                return await _told(services, task, begun, also, is_aside=is_waiting or as_json)
            chosen = await _chosen_program(services, task, program)
            is_fresh = begins is ConversationStart.FRESH
            parent = None if is_fresh else await services.conversations.newest_to_resume(task.id)
            execution = await services.queue.run(
                task.id,
                actor=actor,
                environ=os.environ,
                not_before=not_before,
                when_ready=start.is_when_ready,
                anyway=start.is_anyway,
                agent_slug=chosen.agent_slug,
                capability_key=chosen.capability_key,
                args=chosen.args,
                message=message,
                start=begins,
                parent_execution_id=None if parent is None else parent.id,
                model=conversation.model,
                permission_mode=conversation.permission_mode,
                own_screen=conversation.is_own_screen,
                isolation=isolation,
                base=None if base is None else valid_base(base),
                sandbox=sandbox,
                also=also or (),
                key=named,
            )
            started = await _told(services, task, execution, also, is_aside=is_waiting or as_json)
            if not also:
                await _tell_beside(services, task, chosen.agent_slug, isolation)
            return started

        chosen_numbers = await _lost_numbers(services, workspace) if is_lost else numbers or []
        if is_lost and not chosen_numbers:
            tell(f"no newest run of a task in {workspace.name} was lost")
        begun, failed = await for_each_number(chosen_numbers, begin)
        started = [one for runs in begun for one in runs]
        return await _looked_after(services, started, is_waiting=is_waiting), failed

    outcomes, failed = with_workspace(folder, work)
    if as_json:
        say_document(executions_form(outcomes, is_one=is_one and not also))
    elif not is_waiting and outcomes:
        named = outcomes[0].task.number
        tell(f"agentmon log {named} -f shows its output" if len(outcomes) == 1 else "agentmon log NUMBER -f shows one")
    codes = [exit_code_of(outcome.execution) for outcome in outcomes] if is_waiting else []
    code = codes[0] if is_one and len(codes) == 1 else exit_codes.FAILED if failed or any(codes) else 0
    if code:
        raise typer.Exit(code)


def _require_numbers(numbers: Sequence[str], *, is_lost: bool, also: Sequence[str]) -> None:
    """Refuse to guess which tasks are meant.

    Raises:
        UsageError: None is named and --lost is not given, both are, or several with --also.
    """
    if bool(numbers) == is_lost:
        raise UsageError(
            "--lost and numbers exclude each other" if is_lost else "which task?",
            hint="agentmon run NUMBER, or agentmon run --lost; `agentmon task list` shows the numbers",
        )
    if also and len(numbers) != 1:
        raise UsageError("--also is for one task", hint="agentmon run NUMBER --also AGENT")


async def _told(
    services: Services, task: Task, execution: Execution, also: Sequence[str] | None, *, is_aside: bool
) -> list[TaskExecution]:
    """Say in which state a run is, and those that were queued with it; return them with their tasks."""
    started = [TaskExecution(task=task, execution=execution)]
    if also:
        runs = await services.queue.queued_with(execution)
        started = [TaskExecution(task=await services.tasks.get(one.task_id), execution=one) for one in runs]
    for one in started:
        await _tell_start(services, one.task, one.execution, is_aside=is_aside)
    return started


async def _looked_after(services: Services, started: list[TaskExecution], *, is_waiting: bool) -> list[TaskExecution]:
    """Return what was started, when it is to be waited for once it is over; tells why nothing may begin."""
    if is_waiting:
        return await all_finished(services, started)
    if started:
        await tell_troubles(services)
    return started


async def _tell_start(services: Services, task: Task, execution: Execution, *, is_aside: bool) -> None:
    state = waiting_text(execution, await obstacles_of(services, execution))
    if is_aside:
        tell(f"#{task.number} {state}")
    else:
        say(f"{task.number} {state}")


async def _tell_beside(services: Services, task: Task, agent_slug: str | None, isolation: Isolation | None) -> None:
    """Tell a person what comes of other agents in the folder, and how to choose otherwise."""
    beside = await services.queue.look_beside(task.id, agent_slug=agent_slug, isolation=isolation)
    if beside is None or services.actor.type is not ActorType.USER:
        return
    who = numbers_text(beside.numbers)
    works = "works" if len(beside.numbers) == 1 else "work"
    if beside.isolation is Isolation.FOLDER and beside.max_per_folder == 0:
        tell(f"warning: {shared_folder_note(beside.numbers)} (--isolation worktree)")
    elif beside.isolation is Isolation.AUTO and beside.can_isolate:
        tell(f"{who} {works} in this repository: #{task.number} gets a git worktree of its own")
        if not beside.is_chosen:
            tell("`agentmon settings workspace.isolation folder` lets agents wait for each other instead")


async def _chosen_program(services: Services, task: Task, program: ProgramOptions) -> _ChosenProgram:
    program = program.apart()
    if program.command is not None:
        if program.agent_slug not in {None, ANY_COMMAND_SLUG} or program.capability_key or program.arguments:
            raise UsageError("--command excludes --agent, --with and --arg")
        words = list(parse_command(valid_text(program.command)))
        return _ChosenProgram(agent_slug=ANY_COMMAND_SLUG, capability_key=ANY_COMMAND_KEY, args={"argv": words})
    args = await _arguments(services, task, program) if program.arguments else None
    return _ChosenProgram(agent_slug=program.agent_slug, capability_key=program.capability_key, args=args)


async def _arguments(services: Services, task: Task, program: ProgramOptions) -> dict[str, object]:
    """Return the arguments of this run: the task's own for the same program and capability, then the typed ones."""
    context = task.input_context
    if program.agent_slug is not None:
        agent = await services.agents.by_slug(program.agent_slug)
    elif task.assignee_agent_id is not None:
        agent = await services.agents.get(task.assignee_agent_id)
    else:
        raise UsageError("--arg needs a program", hint="name it with --agent; `agentmon agents` lists them")
    is_same_agent = agent.id == task.assignee_agent_id
    is_own_key = program.capability_key is None and is_same_agent
    key = context.capability_key if is_own_key else program.capability_key
    kept = context.args if is_same_agent and key == context.capability_key else {}
    return {**kept, **parsed_arguments(program.arguments or (), agent.choose_capability(key))}


async def _lost_numbers(services: Services, workspace: Workspace) -> list[str]:
    await services.queue.settle()
    return [str(task.number) for task in await services.queue.lost_tasks(workspace)]
