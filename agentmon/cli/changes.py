"""``agentmon changes``, ``diff`` and ``undo``: what a run changed in its folder, also while it works."""

import sys
from typing import Annotated

import typer

from agentmon.bootstrap import Services
from agentmon.cli.context import (
    JsonOption,
    NumberArgument,
    RunOption,
    WorkspaceOption,
    chosen_execution,
    numbered_task,
    with_workspace,
)
from agentmon.cli.json_form import json_form
from agentmon.cli.output import flush, say, say_document, tell
from agentmon.domain.changes import ChangeType, FileChange
from agentmon.domain.errors import UsageError
from agentmon.domain.plain_text import plain_line
from agentmon.domain.tasks import Workspace
from agentmon.services.changes import RunChanges
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
    number: NumberArgument, folder: WorkspaceOption = None, run: RunOption = None, as_json: JsonOption = False
) -> None:
    """List the files that a task's newest run changed, whatever made the change: also a shell command.

    A run that works is looked at now.

    Examples:
      agentmon changes 12
      agentmon changes 12 --run 1 --json
    """

    async def work(services: Services, workspace: Workspace) -> RunChanges:
        task = await numbered_task(services, workspace, number)
        return await services.changes.of_run(await chosen_execution(services, task, run))

    found = with_workspace(folder, work)
    if as_json:
        say_document(_document(found))
        return
    if found.note:
        tell(found.note)
    say("\n".join(change_lines(found)))


def diff(
    number: NumberArgument,
    paths: PathsArgument = None,
    folder: WorkspaceOption = None,
    run: RunOption = None,
    is_stat: Annotated[bool, typer.Option("--stat", help="Only how many lines of each file changed.")] = False,
    is_name_only: Annotated[bool, typer.Option("--name-only", help="Only the names of the files.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Print what a task's newest run changed, as a patch that git apply takes.

    A run that works is looked at now.

    Examples:
      agentmon diff 12
      agentmon diff 12 src/app.py --run 1
      agentmon diff 12 | git apply --reverse
    """

    async def work(services: Services, workspace: Workspace) -> tuple[RunChanges, bytes]:
        task = await numbered_task(services, workspace, number)
        found = await services.changes.of_run(await chosen_execution(services, task, run))
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
        typer.Option(
            "--conflicts", help="Where somebody changed the same since: take what was before, or keep it now."
        ),
    ] = None,
    is_redo: Annotated[bool, typer.Option("--redo", help="Take the last undo of the task back.")] = False,
    is_dry: Annotated[bool, typer.Option("--dry-run", help="Only say what would be done.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Take back what a task's newest run changed, on the files as they are today.

    What nobody touched since comes back byte for byte. What somebody touched is merged, or left alone and named.
    Commits stay. All is done or nothing, and --redo takes it back.

    Examples:
      agentmon undo 12 --dry-run
      agentmon undo 12 --run 3
      agentmon undo 12 src/app.py
      agentmon undo 12 --redo
    """
    if is_redo and (paths or run or side):
        raise UsageError("--redo takes back the last undo whole", hint=f"agentmon undo {number} --redo")

    async def work(services: Services, workspace: Workspace) -> tuple[UndoPlan, tuple[str, ...]]:
        task = await numbered_task(services, workspace, number)
        execution = await chosen_execution(services, task, run)
        if is_redo:
            plan = await services.changes.plan_redo(task.id)
        else:
            found = await services.changes.of_run(execution)
            plan = await services.changes.plan_undo(found, paths=paths or (), side=side)
        if is_dry or not plan.steps:
            return plan, ()
        return plan, await services.changes.undo(execution, plan, actor=services.actor)

    plan, left = with_workspace(folder, work)
    if as_json:
        say_document(
            {
                "root": str(plan.root),
                "is_done": not is_dry,
                "steps": [
                    {"path": step.path, "action": step.action.value, "reason": step.reason or None}
                    for step in plan.steps
                ],
                "changed_meanwhile": list(left),
            }
        )
    else:
        say("\n".join(undo_lines(plan)))
        if is_dry and plan.steps:
            tell("nothing was done: this is what agentmon undo does without --dry-run")
        for path in left:
            tell(f"{plain_line(path)} was changed meanwhile, and left alone")
    if plan.left_alone or left:
        raise typer.Exit(1)


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
    if not found.files:
        return ["this run has changed no file"]
    rows = [(_LETTERS[one.change_type], _lines_text(one), _path_text(one)) for one in found.files]
    width = max(len(row[1]) for row in rows)
    total = f"{len(found.files)} {'file' if len(found.files) == 1 else 'files'}"
    lines = [f"{letter}  {text:>{width}}  {path}" for letter, text, path in rows]
    return [*lines, f"{total}, +{found.lines_added} −{found.lines_removed}"]


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
        "note": found.note or None,
        "lines_added": found.lines_added,
        "lines_removed": found.lines_removed,
        "files": [json_form(one) for one in found.files],
    }
