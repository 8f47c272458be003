"""``agentmon changes``, ``diff`` and ``undo``: what a run changed in its folder, also while it works."""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Annotated, NamedTuple

import typer

from agentmon.bootstrap import Services
from agentmon.cli.context import (
    JsonOption,
    NumberArgument,
    RunOption,
    WorkspaceOption,
    chosen_execution,
    execution_to_review,
    numbered_task,
    with_workspace,
)
from agentmon.cli.conversation_text import operation_line
from agentmon.cli.json_form import json_form
from agentmon.cli.output import flush, say, say_document, tell
from agentmon.domain.changes import ChangeType, FileChange, artifact_text
from agentmon.domain.errors import UsageError
from agentmon.domain.executions import MOST_RUNS, Execution
from agentmon.domain.operations import Operation
from agentmon.domain.overlaps import overlap_notes
from agentmon.domain.plain_text import plain_line
from agentmon.domain.tasks import Workspace
from agentmon.services.changes import RunChanges
from agentmon.workspaces.commits import MadeCommit
from agentmon.workspaces.three_way import Side
from agentmon.workspaces.undoing import UndoPlan

_LETTERS = {
    ChangeType.CREATE: "A",
    ChangeType.MODIFY: "M",
    ChangeType.DELETE: "D",
    ChangeType.RENAME: "R",
    ChangeType.MODE: "T",
}
PathsArgument = Annotated[list[str] | None, typer.Argument(metavar="[PATH]...", help="Only these files.")]


def changes(
    number: NumberArgument,
    folder: WorkspaceOption = None,
    run: RunOption = None,
    *,
    by_call: Annotated[
        bool, typer.Option("--calls", help="List what each tool call changed, where that is known.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """List the files that a run changed, also by shell commands.

    It is the newest run that changed any, or works. Below stand files that its tool calls wrote and git does not
    keep: ignored ones, and those elsewhere.

    Examples:
      agentmon changes 12
      agentmon changes 12 --calls
      agentmon changes 12 --run 1 --json
    """
    if by_call:
        _list_calls(number, folder, run, as_json=as_json)
        return

    async def work(services: Services, workspace: Workspace) -> tuple[RunChanges, Mapping[str, str | None]]:
        task = await numbered_task(services, workspace, number)
        found = await services.changes.of_run(await execution_to_review(services, task, run))
        return found, await services.changes.hashes_of(found.artifacts if as_json else ())

    found, hashes = with_workspace(folder, work)
    if as_json:
        made = [json_form(asdict(one) | {"sha256": hashes[one.path]}) for one in found.artifacts]
        say_document(_document(found) | {"artifacts": made})
        return
    if found.note:
        tell(found.note)
    for note in overlap_notes(found.execution, number):
        tell(f"⚠ {note}")
    say("\n".join(change_lines(found)))


def diff(
    number: NumberArgument,
    paths: PathsArgument = None,
    folder: WorkspaceOption = None,
    run: RunOption = None,
    is_stat: Annotated[bool, typer.Option("--stat", help="Only the number of changed lines per file.")] = False,
    is_name_only: Annotated[bool, typer.Option("--name-only", help="Only the names of the files.")] = False,
    against: Annotated[
        str | None,
        typer.Option("--against", metavar="N|ID", help="Compare with the result of this other run of the task."),
    ] = None,
    against_task: Annotated[
        str | None,
        typer.Option(
            "--against-task",
            metavar="NUMBER",
            help="Compare with what this other task's newest run left, such as an alternative; --against chooses one.",
        ),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Print what a run changed as a patch for git apply.

    It is the newest run that changed files, or works. --against and --against-task compare the results of two runs,
    in the files that either of them changed.

    Examples:
      agentmon diff 12
      agentmon diff 12 src/app.py --run 1
      agentmon diff 12 --run 3 --against 2
      agentmon diff 12 --against-task 13 --stat
      agentmon diff 12 | git apply --reverse
    """

    async def work(services: Services, workspace: Workspace) -> tuple[RunChanges, bytes]:
        task = await numbered_task(services, workspace, number)
        found = await services.changes.of_run(await execution_to_review(services, task, run))
        if against is not None or against_task is not None:
            other = task if against_task is None else await numbered_task(services, workspace, against_task)
            older = await services.changes.of_run(await execution_to_review(services, other, against))
            found = await services.changes.between(older, found)
        found.chosen(paths or ())
        is_patch = as_json or not (is_stat or is_name_only)
        return found, await services.changes.patch_of_run(found, paths or ()) if is_patch else b""

    found, patch = with_workspace(folder, work)
    if as_json:
        say_document(_document(found) | {"patch": patch.decode("utf-8", "replace")})
    elif is_name_only:
        say("\n".join(plain_line(one.path) for one in found.files))
    elif is_stat:
        say("\n".join(change_lines(found)))
    else:
        # Byte for byte: a patch of a file in another encoding has to apply.
        flush()
        sys.stdout.buffer.write(patch)
        sys.stdout.buffer.flush()


def undo(
    number: NumberArgument,
    paths: PathsArgument = None,
    folder: WorkspaceOption = None,
    run: RunOption = None,
    *,
    side: Annotated[
        Side | None,
        typer.Option("--conflicts", help="In conflicts, restore what was before the run, or keep what is there now."),
    ] = None,
    call: Annotated[
        int | None,
        typer.Option("--call", metavar="N", help="Only this tool call; agentmon operations lists the numbers."),
    ] = None,
    is_task: Annotated[bool, typer.Option("--task", help="All runs of the task, as one undo.")] = False,
    is_redo: Annotated[bool, typer.Option("--redo", help="Redo what the last undo of the task took back.")] = False,
    commits: Annotated[
        bool, typer.Option("--commit", help="Commit the files that were undone, and nothing else.")
    ] = False,
    is_dry: Annotated[bool, typer.Option("--dry-run", help="Show what would happen; change nothing.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Undo what a run changed, on the files as they are now.

    It is the newest run that changed files. A file that is unchanged since comes back byte for byte. One that was
    edited since is merged, or left alone and named. All or nothing; --redo redoes it. Commits of the run stay and are
    named; --commit commits the result on the current branch, without hooks.

    Examples:
      agentmon undo 12 --dry-run
      agentmon undo 12 --run 3
      agentmon undo 12 --run 3 --call 7
      agentmon undo 12 --task --dry-run
      agentmon undo 12 src/app.py
      agentmon undo 12 --redo
    """
    options = {"--redo": is_redo, "--task": is_task, "--call": call is not None}
    whole = [name for name, is_given in options.items() if is_given]
    if len(whole) > 1 or (whole and paths) or (run and whole[:1] in (["--redo"], ["--task"])) or (side and is_redo):
        raise UsageError(f"{whole[0]} cannot be combined with these", hint=f"agentmon undo {number} {whole[0]}")

    async def work(services: Services, workspace: Workspace) -> _Undo:
        for one in await services.changes.recover():
            state = f"cannot be finished: {one.problem}" if one.problem else f"is finished now: {len(one.paths)} files"
            tell(f"an interrupted undo in {plain_line(str(one.root))} {state}")
        task = await numbered_task(services, workspace, number)
        choose = chosen_execution if whole else execution_to_review
        execution = await choose(services, task, run)
        operation_id = None
        if is_redo:
            plan = await services.changes.plan_redo(task.id)
        elif is_task:
            await services.merges.require_unmerged(execution)
            runs = await services.executions.of_task(task.id, limit=MOST_RUNS)
            plan = await services.changes.plan_undo_of_task(runs, side=side)
        elif call is not None:
            await services.merges.require_unmerged(execution)
            operation_id = (await services.changes.of_call(execution, call))[0].id
            plan = await services.changes.plan_undo_of_call(execution, call, side=side)
        else:
            await services.merges.require_unmerged(execution)
            found = await services.changes.of_run(execution)
            plan = await services.changes.plan_undo(found, paths=paths or (), side=side)
        made = () if whole else await services.changes.commits_of_run(execution)
        if is_dry or not plan.steps:
            return _Undo(plan, made=made)
        left = await services.changes.undo(execution, plan, call=operation_id, is_redo=is_redo, actor=services.actor)
        commit = None
        if commits:
            message = f"{'Redo' if is_redo else 'Undo'} #{task.number}: {plain_line(task.title)}"
            commit = await services.changes.commit_undone(plan, message, actor=services.actor)
        return _Undo(plan, left, made, commit)

    done = with_workspace(folder, work)
    _say_undo(done, is_dry=is_dry, as_json=as_json)
    if done.plan.left_alone or done.left:
        raise typer.Exit(1)


class _Undo(NamedTuple):
    plan: UndoPlan
    left: tuple[str, ...] = ()
    """Files that somebody changed meanwhile."""
    made: tuple[MadeCommit, ...] = ()
    """Commits of the run, which stay."""
    commit: str | None = None
    """That of the undo itself."""


def _say_undo(done: _Undo, *, is_dry: bool, as_json: bool) -> None:
    plan, left, made, commit = done
    if as_json:
        found = {
            "root": str(plan.root),
            "is_done": not is_dry,
            "steps": [
                {"path": step.path, "action": step.action.value, "reason": step.reason or None} for step in plan.steps
            ],
            "changed_meanwhile": list(left),
            "commits": [one._asdict() for one in made],
            "commit": commit,
        }
        say_document(found)
        return
    say("\n".join(undo_lines(plan)))
    for one in made:
        tell(f"commit stays: {one.id[:10]} {plain_line(one.subject)}")
    if commit is not None:
        say(f"committed as {commit[:10]}")
    if is_dry and plan.steps:
        tell("dry run: nothing was changed")
    for path in left:
        tell(f"{plain_line(path)} was changed meanwhile and left alone")


def undo_lines(plan: UndoPlan) -> list[str]:
    """Return a line for each file that an undo does something to, or leaves alone."""
    if not plan.steps:
        return ["nothing to undo: the files are as they were before the run"]
    width = max(len(step.action.value) for step in plan.steps)
    return [
        f"{step.action.value:<{width}}  {plain_line(step.path)}" + (f": {step.reason}" if step.reason else "")
        for step in plan.steps
    ]


def change_lines(found: RunChanges) -> list[str]:
    """Return a line for each file, and one for all."""
    made = [f"outside of version control: {artifact_text(one)}" for one in found.artifacts]
    if not found.files:
        return ["this run changed no files", *made]
    rows = [(_LETTERS[one.change_type], _lines_text(one), _path_text(one)) for one in found.files]
    width = max(len(row[1]) for row in rows)
    total = f"{len(found.files)} {'file' if len(found.files) == 1 else 'files'}"
    lines = [f"{letter}  {text:>{width}}  {path}" for letter, text, path in rows]
    return [*lines, f"{total}, +{found.lines_added} −{found.lines_removed}", *made]


def _list_calls(number: str, folder: WorkspaceOption, run: RunOption, *, as_json: bool) -> None:
    async def work(
        services: Services, workspace: Workspace
    ) -> tuple[Execution, tuple[tuple[Operation, tuple[FileChange, ...]], ...]]:
        task = await numbered_task(services, workspace, number)
        execution = await chosen_execution(services, task, run)
        return execution, await services.changes.of_calls(execution)

    execution, found = with_workspace(folder, work)
    if as_json:
        calls = [{"operation": json_form(call), "files": [json_form(one) for one in files]} for call, files in found]
        say_document({"execution_id": execution.id, "calls": calls})
        return
    say("\n".join(call_lines(found)))


def call_lines(found: Sequence[tuple[Operation, tuple[FileChange, ...]]]) -> list[str]:
    """Return the calls that changed something, or of which that is not known, each with its files below."""
    lines = []
    for call, files in found:
        note = "" if call.changes is None else call.changes.note
        if not files and not note:
            continue
        lines.append(f"{call.number}  {operation_line(call)}" + (f"  ({note})" if note else ""))
        for one in files:
            why = f"  cannot be undone alone: {one.why_not}" if not one.can_undo else ""
            lines.append(f"   {_LETTERS[one.change_type]}  {_lines_text(one)}  {_path_text(one)}{why}")
    return lines or ["no tool call of this run is known to have changed a file"]


def _lines_text(change: FileChange) -> str:
    return "binary" if change.is_binary else f"+{change.lines_added} −{change.lines_removed}"


def _path_text(change: FileChange) -> str:
    path = plain_line(change.path)
    return f"{plain_line(change.old_path)} → {path}" if change.old_path else path


def _document(found: RunChanges) -> dict[str, object]:
    return {
        "execution_id": found.execution.id,
        "root": str(found.root),
        "is_live": found.is_live,
        "overlaps": json_form(found.execution.overlaps),
        "note": found.note or None,
        "lines_added": found.lines_added,
        "lines_removed": found.lines_removed,
        "files": [json_form(one) for one in found.files],
    }
