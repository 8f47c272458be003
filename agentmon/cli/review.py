"""``agentmon review``: what waits for a person to look at it, comments on its lines, and accepting it."""

from dataclasses import replace
from typing import Annotated, NamedTuple

import typer

from agentmon.bootstrap import Services
from agentmon.cli.board import LARGEST_PAGE
from agentmon.cli.columns import table, terminal_width
from agentmon.cli.context import (
    JsonOption,
    RunOption,
    WorkspaceOption,
    execution_to_review,
    numbered_task,
    with_services,
    with_workspace,
    workspace_here,
)
from agentmon.cli.json_form import json_form
from agentmon.cli.output import say, say_document, tell
from agentmon.cli.piped_text import piped_text
from agentmon.domain.board import BoardPage, Card, ColumnRequest
from agentmon.domain.changes import amount_text
from agentmon.domain.diffs import DiffSide, LineSpan
from agentmon.domain.errors import ConflictError, NotFoundError, UsageError
from agentmon.domain.executions import MOST_RUNS, Execution
from agentmon.domain.ids import ExecutionId
from agentmon.domain.plain_text import plain_line
from agentmon.domain.review_comments import ReviewComment, message_text, place_text, read_place
from agentmon.domain.task_status import TaskStatus
from agentmon.domain.tasks import Task, Workspace
from agentmon.services.conversations import SentMessage


def review(
    number: Annotated[
        str | None, typer.Argument(metavar="[NUMBER]", help="The task, such as 12 or '#12'; without it, all in Review.")
    ] = None,
    place: Annotated[
        str | None,
        typer.Argument(metavar="[PATH:LINE]", help="Comment on this line or range, such as src/app.py:12-14."),
    ] = None,
    text: Annotated[
        str | None, typer.Argument(metavar="[TEXT|-]", help="The comment; - reads standard input, '' removes it.")
    ] = None,
    folder: WorkspaceOption = None,
    run: RunOption = None,
    *,
    is_old: Annotated[bool, typer.Option("--old", help="Lines as they were before the run.")] = False,
    is_send: Annotated[bool, typer.Option("--send", help="Send the comments to the agent as one message.")] = False,
    is_accept: Annotated[bool, typer.Option("--accept", help="Accept the work: move the card to Done.")] = False,
    is_all: Annotated[bool, typer.Option("--all", "-A", help="Of all workspaces.")] = False,
    as_json: JsonOption = False,
) -> None:
    """List tasks in Review, comment on changes, accept the work.

    Lines are as agentmon diff prints them. Comments are kept until you send them. Only a
    person reviews; an agent may look.

    Examples:
      agentmon review
      agentmon review 12
      agentmon review 12 src/app.py:12-14 "raise an error instead"
      agentmon review 12 --send
      agentmon review 12 --accept
    """
    asked = [
        word for word, is_given in (("PATH:LINE", place), ("--send", is_send), ("--accept", is_accept)) if is_given
    ]
    if len(asked) > 1:
        raise UsageError(f"{' and '.join(asked)} exclude each other", hint="one after the other")
    if number is None:
        if asked:
            raise UsageError("which task?", hint="agentmon review NUMBER; agentmon review lists them")
        _list(folder, is_all=is_all, as_json=as_json)
    elif is_all:
        raise UsageError("--all lists; it cannot be combined with a task", hint="agentmon review --all")
    elif place is not None:
        _comment(number, place, text, folder, run, side=DiffSide.OLD if is_old else DiffSide.NEW, as_json=as_json)
    elif is_old or (run is not None and asked):
        raise UsageError("--old and --run say which lines are meant", hint=f"agentmon review {number} PATH:LINE TEXT")
    elif is_send:
        _send(number, folder, as_json=as_json)
    elif is_accept:
        _accept(number, folder, as_json=as_json)
    else:
        _show(number, folder, run, as_json=as_json)


def _list(folder: str | None, *, is_all: bool, as_json: bool) -> None:
    async def read(services: Services) -> BoardPage:
        here = None if is_all else await workspace_here(services, folder)
        wanted = ColumnRequest(status=TaskStatus.REVIEW, limit=LARGEST_PAGE if is_all or here else 0)
        return await services.board.page(here, [wanted])

    page = with_services(read)
    cards = page.columns[TaskStatus.REVIEW].cards
    if as_json:
        say_document([json_form(card) for card in cards])
    elif cards:
        say(
            "\n".join(
                table(("TASK", "AGENT", "CHANGES", "VERIFIED", "TITLE"), list(map(_row, cards)), terminal_width())
            )
        )
        tell("agentmon diff NUMBER shows the changes; agentmon review NUMBER --accept moves the card to Done")
    else:
        tell("nothing to review" if page.has_review else "nothing to review: the setting board.review is off")


def _row(card: Card) -> tuple[str, ...]:
    program = plain_line(card.command_word or card.agent_slug or "", max_characters=20)
    verified = "" if card.verification is None else card.verification.text
    return plain_line(card.name), program, card.changes_text, verified, plain_line(card.title, max_characters=300)


class _Reviewed(NamedTuple):
    """A task with what is to be looked at."""

    task: Task
    run: Execution
    numbers: dict[ExecutionId, int]
    """Which of the task's runs each is."""
    comments: tuple[ReviewComment, ...]


def _show(number: str, folder: str | None, run: str | None, *, as_json: bool) -> None:
    async def read(services: Services, workspace: Workspace) -> _Reviewed:
        task = await numbered_task(services, workspace, number)
        execution = await execution_to_review(services, task, run)
        runs = await services.executions.of_task(task.id, limit=MOST_RUNS)
        numbers = {one.id: len(runs) - at for at, one in enumerate(runs)}
        comments = await services.changes.comments_of(task.id)
        if run is not None:
            comments = tuple(one for one in comments if one.execution_id == execution.id)
        return _Reviewed(task, execution, numbers, comments)

    task, execution, numbers, comments = with_workspace(folder, read)
    verdict = execution.verification
    if as_json:
        say_document(
            {
                "task_number": task.number,
                "title": task.title,
                "status": task.status.value,
                "execution_id": execution.id,
                "run": numbers[execution.id],
                "changed_files": execution.changed_files,
                "lines_added": execution.lines_added,
                "lines_removed": execution.lines_removed,
                "verification": json_form(verdict),
                "comments": [{"run": numbers[one.execution_id], **_form(one)} for one in comments],
            }
        )
        return
    facts = [task.status.label, f"run {numbers[execution.id]} of {len(numbers)}"]
    if execution.changed_files is not None:
        amount = amount_text(execution.changed_files, execution.lines_added or 0, execution.lines_removed or 0)
        facts.append(amount or "no changes")
    facts += [] if verdict is None else [verdict.text]
    say(f"#{task.number} {plain_line(task.title, max_characters=200)}")
    say("  ".join(facts))
    for comment in comments:
        state = "to send" if comment.sent_at is None else "sent"
        say(f"\nrun {numbers[comment.execution_id]}, {state}: {message_text([comment])}")
    unsent = sum(one.sent_at is None for one in comments)
    if unsent:
        tell(f"agentmon review {task.number} --send sends {_count_text(unsent)} to its agent")
    elif not comments:
        tell(f"no comments; agentmon review {task.number} PATH:LINE TEXT adds one")
    if task.status is TaskStatus.REVIEW:
        tell(f"agentmon review {task.number} --accept moves it to Done")


def _comment(
    number: str, place: str, text: str | None, folder: str | None, run: str | None, *, side: DiffSide, as_json: bool
) -> None:
    named = read_place(place)
    if text is None:
        raise UsageError(f"what about {place}?", hint=f"agentmon review {number} {place} TEXT")
    words = piped_text() if text == "-" else text

    async def work(services: Services, workspace: Workspace) -> tuple[Task, ReviewComment, bool]:
        task = await numbered_task(services, workspace, number)
        found = await services.changes.of_run(await execution_to_review(services, task, run))
        known = await services.changes.comment_at(found, LineSpan(named.path, side, named.first_line, named.last_line))
        if not words.strip() and not known.text:
            raise NotFoundError(
                f"no comment on {plain_line(place)} waits to be sent",
                hint=f"agentmon review {task.number} lists the comments",
            )
        comment = replace(known, text=words.strip())
        await services.changes.write_comment(comment, actor=services.actor)
        return task, comment, bool(known.text)

    task, comment, was_known = with_workspace(folder, work)
    if as_json:
        say_document(_form(comment))
    elif not comment.text:
        say(f"removed the comment on {plain_line(place_text(comment.span))}")
    else:
        say(f"{'changed' if was_known else 'added'}: {message_text([comment])}")
        tell(f"agentmon review {task.number} --send sends it to the agent")


def _send(number: str, folder: str | None, *, as_json: bool) -> None:
    async def work(services: Services, workspace: Workspace) -> tuple[Task, SentMessage, tuple[ReviewComment, ...]]:
        task = await numbered_task(services, workspace, number)
        return task, *await services.changes.send_comments(task, actor=services.actor)

    task, sent, comments = with_workspace(folder, work)
    if as_json:
        said = {"execution": json_form(sent.execution), "is_new_execution": sent.is_new_execution}
        say_document(said | {"comments": [_form(one) for one in comments]})
        return
    became = " in a new run" if sent.is_new_execution else f"; {sent.outcome}" if sent.waits_for else ""
    say(f"sent {_count_text(len(comments))} to the agent of #{task.number}{became}")
    tell(f"agentmon conversation {task.number} -f shows what it says")


def _accept(number: str, folder: str | None, *, as_json: bool) -> None:
    async def work(services: Services, workspace: Workspace) -> tuple[Task, int]:
        task = await numbered_task(services, workspace, number)
        if task.status is not TaskStatus.REVIEW:
            raise ConflictError(
                f"#{task.number} is not in Review but in {task.status.label}",
                hint=""
                if task.status is TaskStatus.DONE
                else f"agentmon task move {task.number} done moves it to Done",
            )
        done = await services.tasks.move(task.id, TaskStatus.DONE, actor=services.actor)
        # What was queued after it may start now.
        await services.queue.deliver()
        return done, sum(one.sent_at is None for one in await services.changes.comments_of(task.id))

    task, unsent = with_workspace(folder, work)
    if as_json:
        say_document(json_form(task))
        return
    say(f"#{task.number} {task.status.label}: {plain_line(task.title, max_characters=200)}")
    if unsent:
        tell(f"note: {_count_text(unsent)} {'was' if unsent == 1 else 'were'} not sent")


def _form(comment: ReviewComment) -> dict[str, object]:
    """Return a comment as JSON, with its lines on the same level."""
    return {
        "id": comment.id,
        "execution_id": comment.execution_id,
        **comment.span._asdict(),
        "quoted": comment.quoted,
        "text": comment.text,
        "sent_at": json_form(comment.sent_at),
    }


def _count_text(count: int) -> str:
    return f"{count} {'comment' if count == 1 else 'comments'}"
