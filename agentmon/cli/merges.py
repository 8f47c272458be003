"""``agentmon merge``: what a task's branch has goes into its base, or is taken back."""

from dataclasses import fields, replace
from typing import Annotated

import typer

from agentmon.bootstrap import Services
from agentmon.cli.alternatives import left_open, tell_left_open
from agentmon.cli.context import JsonOption, NumberArgument, WorkspaceOption, numbered_task, with_workspace
from agentmon.cli.json_form import json_form
from agentmon.cli.output import say, say_document, tell
from agentmon.domain.errors import UsageError
from agentmon.domain.merges import MergeHow, few, forecast_lines
from agentmon.domain.plain_text import plain_line
from agentmon.domain.tasks import Task, Workspace
from agentmon.services.merges import MergePlan, MergeResult


def merge(
    number: NumberArgument,
    folder: WorkspaceOption = None,
    how: Annotated[
        MergeHow | None, typer.Option("--how", help="How to merge; squash unless the setting merge.how says otherwise.")
    ] = None,
    into: Annotated[
        str | None, typer.Option("--into", metavar="BRANCH", help="The branch to merge into; the base by default.")
    ] = None,
    message: Annotated[
        str | None,
        typer.Option("--message", "-m", metavar="TEXT", help="The commit message, instead of the proposed one."),
    ] = None,
    *,
    is_dry: Annotated[
        bool, typer.Option("--dry-run", help="Show what would happen and what is in the way; change nothing.")
    ] = False,
    solves: Annotated[bool, typer.Option("--solve", help="Ask the task's agent to resolve the conflicts.")] = False,
    undoes: Annotated[bool, typer.Option("--undo", help="Undo the merge, by a reverting commit.")] = False,
    skips_hooks: Annotated[bool, typer.Option("--no-verify", help="Skip your git hooks, as in git.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Merge a task's branch into its base, all or nothing.

    Uncommitted work of its agent is committed first. Conflicts and local changes in the way are found before anything
    is touched. Afterwards the worktree is removed, unless something would be lost, and the card is Done.

    Examples:
      agentmon merge 12 --dry-run
      agentmon merge 12
      agentmon merge 12 --how rebase --into release
      agentmon merge 12 --solve
      agentmon merge 12 --undo
    """
    if undoes and (how or into or solves):
        raise UsageError(
            "--undo cannot be combined with --how, --into or --solve", hint=f"agentmon merge {number} --undo"
        )
    if solves and is_dry:
        raise UsageError("--solve cannot be combined with --dry-run", hint=f"agentmon merge {number} --dry-run")

    async def look(services: Services, workspace: Workspace) -> MergePlan:
        task = await numbered_task(services, workspace, number)
        plan = await _planned(services, task, how=how, into=into, message=message, undoes=undoes)
        if solves and plan.forecast.conflicts:
            await services.merges.ask_to_solve(task, plan.forecast, actor=services.actor)
        return plan

    async def work(services: Services, workspace: Workspace) -> tuple[MergeResult, tuple[int, ...]]:
        task = await numbered_task(services, workspace, number)
        merges, actor = services.merges, services.actor
        if undoes:
            return await merges.undo(task, message=message, runs_hooks=not skips_hooks, actor=actor), ()
        text = message and (await _planned(services, task, how=how, into=into, message=message, undoes=False)).message
        result = await merges.merge(task, how=how, into=into, message=text, runs_hooks=not skips_hooks, actor=actor)
        return result, await left_open(services, await services.tasks.get(task.id))

    if is_dry or solves:
        _tell_plan(with_workspace(folder, look), solves=solves, as_json=as_json)
    else:
        result, left = with_workspace(folder, work)
        _tell_result(result, as_json=as_json)
        tell_left_open(left, result.worktree.task_number)


def _tell_plan(plan: MergePlan, *, solves: bool, as_json: bool) -> None:
    number = plan.worktree.task_number
    if as_json:
        say_document(_document(plan))
    else:
        say("\n".join(_plan_lines(plan)))
    if solves and plan.forecast.conflicts:
        tell(f"asked the agent of #{number} to resolve them; agentmon conversation {number} -f follows it")
    elif solves:
        tell(f"no conflicts: agentmon merge {number} merges it")
    elif not plan.forecast.is_possible:
        raise typer.Exit(1)


async def _planned(
    services: Services, task: Task, *, how: MergeHow | None, into: str | None, message: str | None, undoes: bool
) -> MergePlan:
    merges = services.merges
    plan = await (merges.plan_undo(task) if undoes else merges.plan(task, how=how, into=into))
    if message is None or undoes:
        return plan
    return replace(plan, message=await merges.message(task, plan.worktree.branch, message))


def _plan_lines(plan: MergePlan) -> list[str]:
    """Return what a merge, or taking one back, would do, line by line."""
    forecast = plan.forecast
    lines = [plain_line(line) for line in forecast_lines(forecast, plan.worktree.branch)]
    if forecast.is_possible and forecast.how is not MergeHow.REBASE:
        lines += ["", *(f"    {plain_line(line)}".rstrip() for line in plan.message.rstrip().splitlines())]
    elif forecast.conflicts and forecast.how is not None:
        lines.append(f"agentmon merge {plan.worktree.task_number} --solve asks its agent to resolve them")
    return lines


def _tell_result(result: MergeResult, *, as_json: bool) -> None:
    if as_json:
        say_document(_document(result))
        return
    number = result.worktree.task_number
    forecast, worktree, cleaned_up = result.forecast, result.worktree, result.cleaned_up
    if forecast.uncommitted:
        say(f"committed on {worktree.branch}: {few([plain_line(path) for path in forecast.uncommitted])}")
    what = "reverted" if forecast.how is None else f"merged {worktree.branch} into"
    say(f"{what} {'the merge on ' if forecast.how is None else ''}{forecast.into}: {result.commit[:10]}")
    for path in result.left_alone:
        tell(f"{plain_line(path)} was changed meanwhile and left alone; git diff shows it")
    if forecast.how is None:
        return
    if cleaned_up.is_removed:
        say(f"removed {plain_line(worktree.path)}")
        if cleaned_up.kept_ref is not None:
            say(f"its commits: git log {cleaned_up.kept_ref}")
    elif cleaned_up.is_in_use:
        tell(f"{plain_line(worktree.path)} is in use and stays")
    else:
        tell(f"{plain_line(worktree.path)} stays: {plain_line('; '.join(loss.words for loss in cleaned_up.losses))}")
        tell(f"agentmon worktrees remove {number} --confirm {worktree.branch} removes it")


def _document(found: MergePlan | MergeResult) -> dict[str, object]:
    forecast = found.forecast
    known: dict[str, object] = {"branch": found.worktree.branch, "worktree": found.worktree.path}
    known |= {field.name: json_form(getattr(forecast, field.name)) for field in fields(forecast)}
    if isinstance(found, MergePlan):
        return known | {"is_done": False, "is_possible": forecast.is_possible, "message": found.message}
    return known | {
        "is_done": True,
        "commit": found.commit,
        "left_alone": list(found.left_alone),
        "cleaned_up": json_form(found.cleaned_up),
    }
