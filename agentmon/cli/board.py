"""``agentmon board``: the columns as sections, the cards as lines."""

from datetime import datetime
from pathlib import Path
from typing import Annotated

import typer

from agentmon.bootstrap import Services
from agentmon.cli.columns import fit, terminal_width
from agentmon.cli.context import JsonOption, WorkspaceOption, with_workspace
from agentmon.cli.json_form import json_form
from agentmon.cli.local_time import local_words
from agentmon.cli.output import say, say_document
from agentmon.domain.board import BoardPage, BoardSort, Card, ColumnPage, ColumnRequest, StatusLine
from agentmon.domain.board_filter import ARCHIVED_WORD, require_known
from agentmon.domain.clock import SystemClock
from agentmon.domain.due_dates import due_words
from agentmon.domain.labels import labels_text
from agentmon.domain.letters import columns_of
from agentmon.domain.live_state import LiveState, elapsed_text
from agentmon.domain.plain_text import plain_line
from agentmon.domain.task_status import TaskStatus
from agentmon.domain.tasks import Workspace

LARGEST_PAGE = 10_000
_DEFAULT_LIMIT = 200


def board(
    folder: WorkspaceOption = None,
    as_json: JsonOption = False,
    text_filter: Annotated[
        str,
        typer.Option(
            "--filter", "-f", metavar="TEXT", help="Only cards that fit: words, #label, @agent, !1, is:needs-you."
        ),
    ] = "",
    sort: Annotated[
        BoardSort | None, typer.Option("--sort", help="In this order; without it as board.sort says.")
    ] = None,
    saved: Annotated[str, typer.Option("--saved", metavar="NAME", help="Only cards that fit this saved filter.")] = "",
    save: Annotated[str, typer.Option("--save", metavar="NAME", help="Save what --filter says under a name.")] = "",
    forget: Annotated[str, typer.Option("--forget", metavar="NAME", help="Forget a saved filter.")] = "",
    archived: Annotated[bool, typer.Option("--archived", help="The archived cards instead, as is:archived.")] = False,
    all_workspaces: Annotated[
        bool, typer.Option("--all", help="The cards of all workspaces together, each with its workspace.")
    ] = False,
    limit: Annotated[
        int, typer.Option(min=0, max=LARGEST_PAGE, help="Most cards shown of each column.")
    ] = _DEFAULT_LIMIT,
) -> None:
    """Print the board of a workspace, or of all.

    Examples:
      agentmon board
      agentmon board --all
      agentmon board --archived
      agentmon board --filter "login #auth @claude !1" -C ~/src/api
      agentmon board --filter is:failed --json
      agentmon board --filter "#auth !1-2" --save mine
      agentmon board --saved mine
      agentmon board --json
    """

    async def work(services: Services, workspace: Workspace) -> BoardPage:
        require_known(text_filter)
        if forget:
            await services.board.forget_filter(forget, actor=services.actor)
        if save:
            await services.board.save_filter(save, text_filter, actor=services.actor)
        fit_text = f"{await services.board.find_filter(saved)} {text_filter}" if saved else text_filter
        if archived:
            fit_text = f"{ARCHIVED_WORD} {fit_text}"
        return await read_page(services, None if all_workspaces else workspace, limit, fit_text, sort)

    page = with_workspace(folder, work)
    if as_json:
        say_document(json_form(page))
    else:
        is_filtered = bool(text_filter or saved or archived)
        say("\n".join(board_lines(page, SystemClock().now(), terminal_width(), is_filtered=is_filtered)))


def print_board(root: Path) -> None:
    """Print the board of the workspace as text."""
    board(folder=str(root))


async def read_page(
    services: Services, workspace: Workspace | None, limit: int, text_filter: str = "", sort: BoardSort | None = None
) -> BoardPage:
    """Return the first cards of every column, of all workspaces for None."""
    requests = [ColumnRequest(status=status, limit=limit, text_filter=text_filter, sort=sort) for status in TaskStatus]
    return await services.board.page(workspace, requests)


def board_lines(page: BoardPage, now: datetime, width: int, *, is_filtered: bool = False) -> list[str]:
    """Return the lines of the board; none is wider than ``width``."""
    lines = [fit(f"{plain_line(page.workspace_name)}   {status_text(page.status_line, now)}", width)]
    for status in TaskStatus:
        column = page.columns.get(status, ColumnPage(status=status))
        is_seldom = status is TaskStatus.CANCELLED or (status is TaskStatus.REVIEW and not page.has_review)
        if is_seldom and not column.total:
            continue
        lines += ["", f"{status.label} {_count_text(column)}"]
        lines += [_card_line(card, now, width) for card in column.cards]
        hidden = column.total - len(column.cards)
        if hidden > 0:
            lines.append(f"  … {hidden:,} more")
    if not any(column.total for column in page.columns.values()):
        nothing = 'No tasks yet: agentmon task add "TITLE" --command "make test" --run'
        lines += ["", "No task fits the filter; agentmon board shows all." if is_filtered else nothing]
    return lines


def _count_text(column: ColumnPage) -> str:
    limit = "" if column.card_limit is None else f"/{column.card_limit}"
    where = f" in {', '.join(map(plain_line, column.workspaces_over))}" if column.workspaces_over else ""
    return f"{column.total}{limit}{f' over the limit{where}' if column.is_over_limit else ''}"


def status_text(numbers: StatusLine, now: datetime) -> str:
    """Return the numbers of the status line in words."""
    return (
        f"{LiveState.RUNNING.glyph} {numbers.running}/{numbers.running_limit} running  "
        f"{LiveState.QUEUED.glyph} {numbers.queued} queued  "
        f"{LiveState.NEEDS_YOU.glyph} {numbers.needs_you} {'needs' if numbers.needs_you == 1 else 'need'} you"
        + (f"  {LiveState.PAUSED.glyph} {LiveState.PAUSED.value}" if numbers.is_paused else "")
        + ("" if numbers.worker_seen_at is None else f"  {silence_text(numbers.worker_seen_at, now)}")
    )


def silence_text(worker_seen_at: datetime, now: datetime) -> str:
    """Return since when no worker is at work."""
    return f"{LiveState.UNKNOWN.glyph} worker last seen {elapsed_text(worker_seen_at, None, now)} ago"


def _card_line(card: Card, now: datetime, width: int) -> str:
    facts = "  ".join(_facts(card, now))
    left = f"  {plain_line(card.name)} P{card.priority} "
    title = plain_line(card.title)
    room = width - columns_of(left) - (columns_of(facts) + 2 if facts else 0)
    if room < min(columns_of(title), 20):
        facts = fit(facts, max(0, width - columns_of(left) - 22))
        room = width - columns_of(left) - columns_of(facts) - 2
    return f"{left}{fit(title, room)}  {facts}".rstrip()


def _facts(card: Card, now: datetime) -> list[str]:
    program = card.command_word or card.agent_slug
    words = [plain_line(program, max_characters=20)] if program else []
    if (label := card.state_label(now)) is not None:
        words += [label[0].glyph, label[1], *filter(None, [card.elapsed_text(now)])]
    facts = [" ".join(words)] if words else []
    if card.verification is not None and card.state is not LiveState.VERIFYING:
        facts.append(card.verification.text)
    if card.state is LiveState.PARKED and card.error:
        facts.append(plain_line(card.error, max_characters=60))
    if card.subtask_count:
        facts.append(f"{card.subtasks_closed} of {card.subtask_count} done")
    if card.next_run_at is not None:
        facts.append(f"next {local_words(card.next_run_at)}")
    facts += _marks(card, now)
    if card.spent_text:
        facts.append(card.spent_text)
    if card.alternatives_text:
        facts.append(card.alternatives_text)
    if card.waits_for:
        facts.append(f"waits for {card.awaited_text}")
    return facts


def _marks(card: Card, now: datetime) -> list[str]:
    """Return the due date of an open card, and the labels."""
    zone = now.astimezone().tzinfo
    marks = [labels_text(card.labels)] if card.labels else []
    if card.due_at is not None and card.status.is_open and zone is not None:
        marks.insert(0, due_words(card.due_at, now=now, zone=zone))
    return marks
