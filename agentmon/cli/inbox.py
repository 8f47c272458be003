"""``agentmon inbox``, ``approve``, ``deny`` and ``answer``: what agents ask, and the decisions."""

import json
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Annotated, NamedTuple

import typer

from agentmon.bootstrap import Services
from agentmon.cli import exit_codes
from agentmon.cli.columns import table, terminal_width
from agentmon.cli.context import JsonOption, KeyOption, WorkspaceOption, with_services, with_workspace
from agentmon.cli.json_form import json_form
from agentmon.cli.output import flush, say, say_document, tell
from agentmon.cli.pausing import silence_note
from agentmon.cli.request_text import history_row, request_lines, status_text, waiting_lines
from agentmon.domain.approvals import Approval, ApprovalListing, ApprovalScope, ApprovalStatus
from agentmon.domain.clock import SystemClock
from agentmon.domain.conversation import AskQuestion
from agentmon.domain.errors import ConflictError, UsageError
from agentmon.domain.events import Actor, ActorType
from agentmon.domain.executions import ExecutionListing
from agentmon.domain.idempotency import IdempotencyKey, idempotency_key
from agentmon.domain.plain_text import plain_line
from agentmon.domain.request_words import wish_words
from agentmon.domain.tasks import Workspace

_MOST_HISTORY = 10_000
_MOST_DIGITS = 18

NameArgument = Annotated[
    str, typer.Argument(metavar="ID|#N", help="The start of the request's id, or the task whose only one it is.")
]
DigestOption = Annotated[
    str | None,
    typer.Option(
        "--digest",
        metavar="DIGEST",
        help="Decide only what has this input_digest, as told by `inbox --json`.",
    ),
]
SureOption = Annotated[bool, typer.Option("--yes", "-y", help="Do not show it and ask when it is named by its task.")]


def inbox(
    folder: WorkspaceOption = None,
    is_all: Annotated[bool, typer.Option("--all", help="Of every workspace.")] = False,
    is_history: Annotated[bool, typer.Option("--history", help="Also what was decided, newest first.")] = False,
    is_whole: Annotated[bool, typer.Option("--whole", help="Show long commands and diffs to their end.")] = False,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, max=_MOST_HISTORY, help="Most of --history.")] = 50,
    as_json: JsonOption = False,
) -> None:
    """List requests, and whatever else needs you.

    Examples:
      agentmon inbox
      agentmon inbox --all --json
      agentmon inbox --history -n 20
    """

    async def read(
        services: Services, workspace: Workspace | None
    ) -> tuple[tuple[ApprovalListing, ...], tuple[ExecutionListing, ...]]:
        workspace_id = None if workspace is None else workspace.id
        if not as_json and (note := await silence_note(services)):
            tell(note)
        if is_history:
            return await services.approvals.history(workspace_id, limit=limit), ()
        waiting = await services.executions.without_request(workspace)
        ended = await services.executions.ended_by_budgets(workspace)
        return await services.approvals.inbox(workspace_id), (*waiting, *ended)

    listings, waiting = with_services(lambda services: read(services, None)) if is_all else with_workspace(folder, read)
    if as_json:
        say_document([*(json_form(one) for one in listings), *(_waiting_form(one) for one in waiting)])
    elif not listings and not waiting:
        tell("no agent has asked anything yet" if is_history else "nobody waits for you")
    elif is_history:
        rows = [history_row(listing) for listing in listings]
        say("\n".join(table(("STATE", "TASK", "ASKED", "ID", "WHAT"), rows, terminal_width())))
    else:
        now = SystemClock().now()
        blocks = [request_lines(one, now, is_whole=is_whole) for one in listings]
        say("\n\n".join("\n".join(lines) for lines in [*blocks, *(waiting_lines(one, now) for one in waiting)]))
        if listings:
            tell("agentmon approve, deny or answer ID decides; agentmon rules decides by itself")


def _waiting_form(listing: ExecutionListing) -> dict[str, object]:
    """Return a run that waits without a request, in the form of those that have one."""
    return {
        "approval": None,
        "execution": json_form(listing.execution),
        "task_id": listing.execution.task_id,
        "task_number": listing.task_number,
        "task_title": listing.task_title,
        "agent_slug": listing.agent_slug,
    }


def approve(
    name: NameArgument,
    folder: WorkspaceOption = None,
    is_for_session: Annotated[bool, typer.Option("--session", help="Allow its like for the whole session.")] = False,
    is_always: Annotated[bool, typer.Option("--always", help="Add a rule that allows its like from now on.")] = False,
    edited_input: Annotated[
        str | None, typer.Option("--input", metavar="JSON", help="Allow it with this input instead, if the agent can.")
    ] = None,
    typed_name: Annotated[
        str | None,
        typer.Option("--name", metavar="NAME", help="Of what destroys things: its name, as the inbox shows it."),
    ] = None,
    digest: DigestOption = None,
    is_sure: SureOption = False,
    key: KeyOption = None,
    as_json: JsonOption = False,
) -> None:
    """Allow a request.

    Of a spent budget this lets the run go on once, for the amount of the budget.

    A request that is named by its task is shown first, since another may be in its place by now. What destroys things
    is allowed once at a time by its name: typed when it is asked for, or given by --name.

    Examples:
      agentmon approve 019bf3a2
      agentmon approve '#12' --session
      agentmon approve 019bf3a2 --always
      agentmon approve 019bf3a2 --name 'git push'
    """
    if is_for_session and is_always:
        raise UsageError("--session and --always exclude each other")
    tool_input = None if edited_input is None else _json_object(edited_input, "--input")
    scope = ApprovalScope.SESSION if is_for_session else ApprovalScope.ALWAYS if is_always else ApprovalScope.ONCE

    asked = {"scope": scope, "input": tool_input, "name": typed_name}

    async def decide(
        services: Services, listing: ApprovalListing, actor: Actor, named: IdempotencyKey | None
    ) -> Approval:
        return await services.approvals.allow(
            listing.approval.id,
            actor=actor,
            seen_digest=listing.approval.input_digest,
            scope=scope,
            tool_input=tool_input,
            typed_name=_name_of(listing, actor, scope) if typed_name is None and tool_input is None else typed_name,
            key=named,
        )

    request = _Request("approve", name, digest, key, asked)
    _decide(request, folder, decide, is_sure=is_sure, as_json=as_json)


def deny(
    name: NameArgument,
    folder: WorkspaceOption = None,
    reason: Annotated[str, typer.Option("--reason", "-m", metavar="TEXT", help="Why; the agent gets it.")] = "",
    interrupts: Annotated[
        bool, typer.Option("--interrupt", help="Let the agent stop what it does and wait for a message.")
    ] = False,
    digest: DigestOption = None,
    is_sure: SureOption = False,
    key: KeyOption = None,
    as_json: JsonOption = False,
) -> None:
    """Deny a request; for a spent budget this stops the run.

    A protocol that has no place for a reason (Gemini CLI, opencode) gets it as the next message, so that the agent goes
    on with it. With --interrupt it goes along with your next message.

    Examples:
      agentmon deny 019bf3a2
      agentmon deny '#12' --reason "use the test database" --interrupt
    """

    async def decide(
        services: Services, listing: ApprovalListing, actor: Actor, named: IdempotencyKey | None
    ) -> Approval:
        return await services.approvals.deny(
            listing.approval.id,
            actor=actor,
            seen_digest=listing.approval.input_digest,
            reason=reason,
            interrupts=interrupts,
            key=named,
        )

    request = _Request("deny", name, digest, key, {"reason": reason, "interrupts": interrupts})
    # Scripts deny without a question: nothing happens by it that anybody could regret.
    _decide(request, folder, decide, is_sure=is_sure or not sys.stdin.isatty(), as_json=as_json)


def answer(
    name: NameArgument,
    choices: Annotated[
        list[str] | None,
        typer.Argument(metavar="CHOICE", help="The number or label of a choice; of several questions one for each."),
    ] = None,
    folder: WorkspaceOption = None,
    text: Annotated[str | None, typer.Option("--text", "-m", metavar="TEXT", help="Answer in your own words.")] = None,
    answers: Annotated[
        str | None, typer.Option("--answers", metavar="JSON", help="Answers by the text of their question.")
    ] = None,
    digest: DigestOption = None,
    is_sure: SureOption = False,
    key: KeyOption = None,
    as_json: JsonOption = False,
) -> None:
    """Answer a request with one of the choices of the inbox.

    Where several may be chosen, several are given; of several questions each gets one, such as 2 or 1,3.

    Examples:
      agentmon answer 019bf3a2 2
      agentmon answer '#12' --text "the one of last year" --yes
      agentmon answer 019bf3a2 once
    """
    if sum(given is not None and given != [] for given in (choices, text, answers)) != 1:
        raise UsageError("give choices, --text or --answers", hint="`agentmon inbox` shows the choices")

    async def decide(
        services: Services, listing: ApprovalListing, actor: Actor, named: IdempotencyKey | None
    ) -> Approval:
        questions = listing.approval.questions
        if answers is not None:
            given = _texts(_json_object(answers, "--answers"))
        elif text is not None:
            given = {_only_one(questions).question: text} if questions else {}
        else:
            given = _chosen(questions, choices or [])
        return await services.approvals.answer(
            listing.approval.id,
            actor=actor,
            seen_digest=listing.approval.input_digest,
            answers=given,
            key=named,
        )

    request = _Request("answer", name, digest, key, {"choices": choices, "text": text, "answers": answers})
    _decide(request, folder, decide, is_sure=is_sure, as_json=as_json)


class _Request(NamedTuple):
    """What a person wants to be decided, as it was typed."""

    action: str
    name: str
    digest: str | None
    key: str | None
    asked: Mapping[str, object]

    def named(self, workspace: Workspace) -> IdempotencyKey | None:
        """Return its idempotency key; a number means something in a workspace only."""
        place = workspace.id if _is_number(self.name) else None
        asked = {**self.asked, "request": self.name.strip(), "workspace_id": place, "digest": self.digest}
        return idempotency_key(self.key, self.action, asked)


def _decide(
    request: _Request,
    folder: str | None,
    decide: Callable[[Services, ApprovalListing, Actor, IdempotencyKey | None], Awaitable[Approval]],
    *,
    is_sure: bool,
    as_json: bool,
) -> None:
    name, digest = request.name, request.digest

    async def work(services: Services, workspace: Workspace) -> tuple[ApprovalListing, Approval]:
        actor, named = services.actor, request.named(workspace)
        decided = await services.approvals.find_decided(named, actor=actor)
        if decided is not None:
            return decided, decided.approval
        listing = await _find(services, workspace, name)
        if digest is not None and (not digest or not listing.approval.input_digest.startswith(digest)):
            raise ConflictError("it asks for something else than you have seen", hint="look again: `agentmon inbox`")
        if listing.approval.status is ApprovalStatus.PENDING and _is_number(name) and digest is None and not is_sure:
            _show_and_ask(listing)
        return listing, await decide(services, listing, actor, named)

    listing, decided = with_workspace(folder, work)
    if as_json:
        say_document(json_form(decided))
    else:
        say(f"#{listing.task_number} {status_text(decided)}: {wish_words(decided)}")


async def _find(services: Services, workspace: Workspace, name: str) -> ApprovalListing:
    """Return the request; a number counts in this workspace, an id everywhere."""
    return await services.approvals.find(name, workspace.id if _is_number(name) else None)


def _is_number(name: str) -> bool:
    digits = name.strip().removeprefix("#")
    return digits.isdecimal() and len(digits) <= _MOST_DIGITS


def _show_and_ask(listing: ApprovalListing) -> None:
    tell("\n".join(request_lines(listing, SystemClock().now(), is_whole=True)))
    if not sys.stdin.isatty():
        raise UsageError(
            "a request that is named by its task is decided after it was shown",
            hint=f"name it by its id, {listing.approval.id}, or add --yes",
        )
    flush()
    if not typer.confirm("Is this what you mean?", err=True):
        raise typer.Exit(exit_codes.INTERRUPTED)


def _name_of(listing: ApprovalListing, actor: Actor, scope: ApprovalScope) -> str | None:
    """Return the name that the person at the terminal types for what destroys things."""
    approval = listing.approval
    is_answerable = approval.status is ApprovalStatus.PENDING and actor.type is ActorType.USER
    if not approval.name_to_type or not is_answerable or scope is not ApprovalScope.ONCE or not sys.stdin.isatty():
        return None
    tell("\n".join(request_lines(listing, SystemClock().now(), is_whole=True)))
    flush()
    return str(typer.prompt(f"This destroys things. Type {plain_line(approval.name_to_type)} to allow it", err=True))


def _json_object(text: str, option: str) -> dict[str, object]:
    try:
        read = json.loads(text)
    except ValueError as error:
        raise UsageError(f"{option} is no JSON: {error}") from error
    if not isinstance(read, dict):
        raise UsageError(f"{option} is no JSON object", hint='write for example {"command": "git status"}')
    return read


def _texts(read: dict[str, object]) -> dict[str, str | list[str]]:
    texts: dict[str, str | list[str]] = {}
    for question, given in read.items():
        texts[question] = [str(one) for one in given] if isinstance(given, list) else str(given)
    return texts


def _only_one(questions: Sequence[AskQuestion]) -> AskQuestion:
    if len(questions) != 1:
        raise UsageError(f"{len(questions)} questions are asked", hint="answer them with --answers")
    return questions[0]


def _chosen(questions: Sequence[AskQuestion], choices: Sequence[str]) -> dict[str, str | list[str]]:
    if len(questions) == 1:
        return {questions[0].question: [_named(questions[0], choice) for choice in choices]}
    if questions and len(choices) != len(questions):
        raise UsageError(f"{len(questions)} questions are asked, and {len(choices)} answered", hint="give one for each")
    return {
        question.question: [_named(question, part) for part in _parts(choice)]
        for question, choice in zip(questions, choices, strict=False)
    }


def _parts(choice: str) -> list[str]:
    parts = choice.split(",")
    return parts if len(parts) > 1 and all(part.isdecimal() for part in parts) else [choice]


def _named(question: AskQuestion, choice: str) -> str:
    """Return the key of the choice of this number, or the text itself."""
    labels = {one.label for one in question.choices} | {one.key for one in question.choices}
    if choice in labels or not choice.isdecimal():
        return choice
    if not 0 < int(choice) <= len(question.choices):
        raise UsageError(f"there is no choice {choice}", hint=f"the choices are 1 to {len(question.choices)}")
    return question.choices[int(choice) - 1].key
