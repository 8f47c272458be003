"""``agentmon sessions``: conversations found again, gone on with, copied, begun anew and named."""

import sys
from typing import Annotated

import typer

from agentmon.bootstrap import Services
from agentmon.cli.columns import table, terminal_width
from agentmon.cli.context import JsonOption, WorkspaceOption, with_services, with_workspace
from agentmon.cli.cost_text import progress_words
from agentmon.cli.import_problems import tell_problems
from agentmon.cli.json_form import json_form
from agentmon.cli.local_time import local_words
from agentmon.cli.output import say, say_document, tell, tell_in_place
from agentmon.cli.piped_text import piped_text
from agentmon.cli.registration import register, register_default
from agentmon.cli.task_text import execution_line, local_time
from agentmon.domain.amounts import MoneyFormat, duration_text, size_text
from agentmon.domain.clock import SystemClock
from agentmon.domain.executions import Execution
from agentmon.domain.plain_text import plain_line
from agentmon.domain.sessions import Session, SessionListing
from agentmon.domain.tasks import Workspace
from agentmon.worker.history_outcome import HistoryOutcome
from agentmon.worker.import_progress import ImportProgress

group = typer.Typer(rich_markup_mode=None)

SessionArgument = Annotated[
    str, typer.Argument(metavar="ID", help="The start of the session's id, or of the agent's own id of it.")
]
TextArgument = Annotated[
    str, typer.Argument(metavar="TEXT|-", help="What the agent is told first; - reads standard input.")
]
AllOption = Annotated[bool, typer.Option("--all", help="Of every workspace.")]
LiveOption = Annotated[bool, typer.Option("--live", help="Only those of which a run is open.")]
SearchOption = Annotated[
    str, typer.Option("--search", metavar="WORDS", help="Words that all have to occur; the last one may be cut off.")
]
LimitOption = Annotated[int, typer.Option("--limit", "-n", min=1, max=10_000, help="Most sessions shown.")]

_NOTHING_YET = (
    "no conversation yet; `agentmon run NUMBER` starts one\n"
    "`agentmon sessions import` reads those that agents had without agentmon"
)


def sessions(
    context: typer.Context,
    folder: WorkspaceOption = None,
    is_all: AllOption = False,
    is_live: LiveOption = False,
    words: SearchOption = "",
    limit: LimitOption = 50,
    as_json: JsonOption = False,
) -> None:
    """List conversations; resume, fork or restart one.

    Examples:
      agentmon sessions
      agentmon sessions search "login test"
      agentmon sessions resume 019bf3a2 "now the other test"
    """
    if context.invoked_subcommand is None:
        _print_list(folder, words, is_all=is_all, is_live=is_live, limit=limit, as_json=as_json)


def list_sessions(
    folder: WorkspaceOption = None,
    is_all: AllOption = False,
    is_live: LiveOption = False,
    words: SearchOption = "",
    limit: LimitOption = 50,
    as_json: JsonOption = False,
) -> None:
    """List conversations with agents, newest first.

    Examples:
      agentmon sessions list --live --json
    """
    _print_list(folder, words, is_all=is_all, is_live=is_live, limit=limit, as_json=as_json)


def search(
    words: Annotated[list[str], typer.Argument(metavar="WORD", help="Words that all have to occur.")],
    folder: WorkspaceOption = None,
    is_all: AllOption = False,
    limit: LimitOption = 50,
    as_json: JsonOption = False,
) -> None:
    """Find conversations by words of their title, messages and tool calls.

    Examples:
      agentmon sessions search discount rounding
    """
    _print_list(folder, " ".join(words), is_all=is_all, is_live=False, limit=limit, as_json=as_json)


def show(name: SessionArgument, as_json: JsonOption = False) -> None:
    """Show one conversation: its agent, its runs, and what the agent offers.

    Examples:
      agentmon sessions show 019bf3a2
    """

    async def read(services: Services) -> tuple[SessionListing, tuple[Execution, ...], MoneyFormat]:
        session_id = (await services.sessions.find(name)).id
        listing = await services.sessions.get_listing(session_id)
        return listing, await services.sessions.executions(session_id), await services.settings.money()

    listing, executions, money = with_services(read)
    session = listing.session
    if as_json:
        say_document({"session": json_form(session), "executions": json_form(executions)})
        return
    facts = [
        ("title", session.title),
        ("state", listing.state.with_cause(exit_code=listing.exit_code)),
        ("folder", session.workspace),
        ("agent's id", session.session_ref or "not known yet"),
        ("cannot resume", session.cannot_resume if session.session_ref else ""),
        ("cannot fork", session.cannot_fork if session.session_ref and not session.cannot_resume else ""),
        ("model", session.model or "the agent's own"),
        ("permission mode", session.permission_mode or ""),
        ("models", ", ".join(session.models)),
        ("permission modes", ", ".join(session.permission_modes)),
        ("started", local_time(session.started_at)),
        ("ended", "" if session.ended_at is None else local_time(session.ended_at)),
        ("tokens", f"{session.total_tokens:,}" if session.total_tokens else ""),
        ("context", _context_words(session)),
        ("cost", money.text(session.total_cost_nano) if session.total_cost_nano else ""),
        ("tool calls", str(session.operation_count) if session.operation_count else ""),
        ("copy of", session.forked_from or ""),
    ]
    say(session.id)
    say("\n".join(f"  {label:<17} {plain_line(fact, max_characters=500)}" for label, fact in facts if fact))
    now = SystemClock().now()
    for execution in executions:
        say(f"  {execution_line(execution, money, now)}")


def _context_words(session: Session) -> str:
    """Return how full the context is: ``65,050 of 1,000,000 tokens (7 %)``; empty when nobody told."""
    tokens, limit = session.context_tokens, session.context_limit_tokens
    if tokens is None:
        return ""
    return f"{tokens:,} of {limit:,} tokens ({100 * tokens / limit:.0f} %)" if limit else f"{tokens:,} tokens"


def resume(name: SessionArgument, text: TextArgument, as_json: JsonOption = False) -> None:
    """Go on with a conversation, beginning with this message.

    Examples:
      agentmon sessions resume 019bf3a2 "now the other test"
    """

    async def work(services: Services) -> Execution:
        session = await services.sessions.find(name)
        return await services.sessions.resume(session.id, _words(text), actor=services.actor)

    _tell_start(with_services(work), "goes on", as_json=as_json)


def fork(name: SessionArgument, text: TextArgument, as_json: JsonOption = False) -> None:
    """Go on with a copy of a conversation; the conversation itself stays as it is.

    Examples:
      agentmon sessions fork 019bf3a2 "try it without a cache"
    """

    async def work(services: Services) -> Execution:
        session = await services.sessions.find(name)
        return await services.sessions.fork(session.id, _words(text), actor=services.actor)

    _tell_start(with_services(work), "goes on in a copy", as_json=as_json)


def restart(
    name: SessionArgument,
    message: Annotated[
        str,
        typer.Option(
            "--message", "-m", metavar="TEXT|-", help="Hand over the history, and tell the agent this; - reads stdin."
        ),
    ] = "",
    as_json: JsonOption = False,
) -> None:
    """Begin a fresh conversation with the same agent.

    It begins with the same first prompt, or with --message where the old one stopped: the agent is handed what was said
    and done in it. That is the way on when an agent cannot resume a conversation.

    Examples:
      agentmon sessions restart 019bf3a2
      agentmon sessions restart 019bf3a2 --message "now the other test"
    """

    async def work(services: Services) -> Execution:
        session = await services.sessions.find(name)
        text = _words(message) if message else ""
        return await services.sessions.restart(session.id, text, actor=services.actor)

    _tell_start(with_services(work), "begins anew", as_json=as_json)


def rename(
    name: SessionArgument,
    title: Annotated[str, typer.Argument(metavar="TITLE", help="Its new title.")],
    as_json: JsonOption = False,
) -> None:
    """Give a conversation another title.

    Examples:
      agentmon sessions rename 019bf3a2 "rounding of discounts"
    """

    async def work(services: Services) -> Session:
        session = await services.sessions.find(name)
        await services.sessions.rename(session.id, title)
        return await services.sessions.get(session.id)

    session = with_services(work)
    if as_json:
        say_document(json_form(session))
    else:
        say(f"{session.id} {plain_line(session.title)}")


def import_conversations(
    is_rescan: Annotated[
        bool, typer.Option("--rescan", help="Read every file again from its beginning; nothing is told twice.")
    ] = False,
    is_gentle: Annotated[bool, typer.Option("--gently", help="Rest half of the time.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Read in this process what was said and done in conversations of agents, with what they cost.

    The worker does the same by itself, unless the setting costs.import_history says no. The setting
    history.import_messages says whether what was said is kept.

    Examples:
      agentmon sessions import
      agentmon sessions import --rescan --json
    """
    is_shown = sys.stderr.isatty() and not as_json

    def show(progress: ImportProgress) -> None:
        tell_in_place(f"reading {progress_words(progress)}")

    async def work(services: Services) -> HistoryOutcome:
        report = show if is_shown else None
        await services.costs.import_history(report=report)
        return await services.costs.import_conversations(rescan=is_rescan, gently=is_gentle, report=report)

    outcome = with_services(work)
    if is_shown:
        tell_in_place("")
    if as_json:
        say_document(json_form(outcome))
        return
    say(
        f"{outcome.files:,} files had something new: {outcome.messages:,} messages and "
        f"{outcome.operations:,} tool calls told, {size_text(outcome.read_bytes)} in {duration_text(outcome.elapsed_s)}"
    )
    tell_problems(outcome.problems)


def _print_list(folder: str | None, words: str, *, is_all: bool, is_live: bool, limit: int, as_json: bool) -> None:
    async def read(services: Services, workspace: Workspace | None) -> tuple[SessionListing, ...]:
        return await services.sessions.list(
            None if workspace is None else workspace.id,
            search=words,
            live_only=is_live,
            with_history=True,
            limit=limit,
        )

    found = with_services(lambda services: read(services, None)) if is_all else with_workspace(folder, read)
    if as_json:
        say_document(json_form(found))
    elif not found:
        tell("no conversation has these words" if words else _NOTHING_YET)
    else:
        rows = [
            (
                listing.session.id,
                f"{listing.state.glyph} {listing.state.with_cause(exit_code=listing.exit_code)}",
                "" if listing.task_number is None else f"#{listing.task_number}",
                listing.agent_slug,
                local_words(listing.session.started_at),
                plain_line(listing.match or listing.title, max_characters=200),
            )
            for listing in found
        ]
        headings = ("ID", "STATE", "TASK", "AGENT", "STARTED", "FOUND" if words else "TITLE")
        say("\n".join(table(headings, rows, terminal_width())))


def _words(text: str) -> str:
    return piped_text() if text == "-" else text


def _tell_start(execution: Execution, words: str, *, as_json: bool) -> None:
    if as_json:
        say_document(json_form(execution))
    else:
        say(f"the conversation {words}: run {execution.id} is {execution.live_state.value}")


register_default(group, sessions)
register(group, "list", list_sessions)
register(group, "show", show)
register(group, "resume", resume)
register(group, "fork", fork)
register(group, "restart", restart)
register(group, "rename", rename)
register(group, "search", search)
register(group, "import", import_conversations)
