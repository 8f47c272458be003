"""``agentmon worktrees``: the git worktrees that agentmon made for tasks, and taking them away."""

import os
import sys
from typing import Annotated

import typer

from agentmon.bootstrap import Services
from agentmon.cli.columns import table, terminal_width
from agentmon.cli.context import (
    JsonOption,
    NumberArgument,
    WorkspaceOption,
    numbered_task,
    with_services,
    with_workspace,
    workspace_here,
)
from agentmon.cli.json_form import json_form
from agentmon.cli.output import flush, say, say_document, tell
from agentmon.cli.registration import register, register_default
from agentmon.domain.amounts import size_text
from agentmon.domain.errors import ConflictError, UsageError
from agentmon.domain.plain_text import plain_line
from agentmon.domain.tasks import Workspace
from agentmon.domain.worktrees import Worktree
from agentmon.runners.host.signals import reset_signals
from agentmon.runners.text_editor import find_editor
from agentmon.services.worktrees import RemovedWorktree, RestoredWorktree, WorktreeState

group = typer.Typer(rich_markup_mode=None)

AllOption = Annotated[bool, typer.Option("--all", "-A", help="Of all workspaces.")]


def worktrees(
    context: typer.Context, folder: WorkspaceOption = None, is_all: AllOption = False, as_json: JsonOption = False
) -> None:
    """List, open, restore and remove the runs' git worktrees.

    An AI agent gets one of its own while another works in the same repository. `agentmon settings workspace.isolation`
    and the --isolation of a task change that. Work that exists nowhere else is removed only with --confirm BRANCH.

    Examples:
      agentmon worktrees
      cd "$(agentmon worktrees open 12)"
      agentmon worktrees remove 12
      agentmon worktrees prune --dry-run
    """
    if context.invoked_subcommand is None:
        list_worktrees(folder=folder, is_all=is_all, as_json=as_json)


def list_worktrees(folder: WorkspaceOption = None, is_all: AllOption = False, as_json: JsonOption = False) -> None:
    """List the worktrees with their branch, task, commits, changes and size.

    Examples:
      agentmon worktrees list --json
    """

    async def read(services: Services) -> tuple[WorktreeState, ...]:
        here = None if is_all else await workspace_here(services, folder)
        return () if here is None and not is_all else await services.worktrees.states(here.id if here else None)

    states = with_services(read)
    if as_json:
        say_document(json_form(states))
    elif not states:
        tell("no worktrees; agentmon makes one when two AI agents work in one repository")
    else:
        rows = [_row(state) for state in states]
        say("\n".join(table(("TASK", "BRANCH", "COMMITS", "SIZE", "STATE", "PATH"), rows, terminal_width())))
        for state in states:
            if state.worktree.error is not None:
                tell(f"#{state.worktree.task_number}: {plain_line(state.worktree.error)}")


def open_worktree(
    number: NumberArgument,
    folder: WorkspaceOption = None,
    is_shell: Annotated[bool, typer.Option("--shell", help="Start your shell in it.")] = False,
    is_editor: Annotated[bool, typer.Option("--editor", help="Open it in your editor.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Print the path of a task's worktree, or open it in a shell or your editor.

    Examples:
      cd "$(agentmon worktrees open 12)"
      agentmon worktrees open 12 --shell
    """
    if is_shell and is_editor:
        raise UsageError("--shell and --editor exclude each other")
    found = with_workspace(folder, lambda services, workspace: _of_number(services, workspace, number))
    if as_json:
        say_document(json_form(found))
    elif not (is_shell or is_editor):
        say(found.path)
    else:
        words = [*find_editor(os.environ), "."] if is_editor else [os.environ.get("SHELL") or "/bin/sh"]
        flush()
        try:
            os.chdir(found.path)
            reset_signals()
            os.execvp(words[0], words)
        except OSError as error:
            raise ConflictError(
                f"{words[0]} could not be started in {found.path}: {error.strerror}",
                hint="`agentmon worktrees` shows its state",
            ) from error


def remove(
    number: NumberArgument,
    folder: WorkspaceOption = None,
    confirmed: Annotated[
        str | None,
        typer.Option(
            "--confirm", metavar="BRANCH", help="Remove it although work would be lost; the name of its branch."
        ),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Remove a task's worktree and its branch.

    Work that would be lost is listed first and has to be confirmed with the name of the branch. Commits that are on no
    other branch stay under a ref that is printed.

    Examples:
      agentmon worktrees remove 12
      agentmon worktrees remove 12 --confirm agentmon/12-fix-login
    """

    async def look(services: Services, workspace: Workspace) -> WorktreeState:
        return await services.worktrees.state(await _of_number(services, workspace, number))

    async def work(services: Services, workspace: Workspace) -> RemovedWorktree:
        found = await _of_number(services, workspace, number)
        return await services.worktrees.remove(found, confirmed=confirmed, actor=services.actor)

    state = with_workspace(folder, look)
    if state.losses and confirmed is None and not as_json and sys.stdin.isatty() and not state.is_in_use:
        say("\n".join(["this would be lost:", *(f"  {plain_line(loss.words)}" for loss in state.losses)]))
        flush()
        confirmed = typer.prompt(f"type {state.worktree.branch} to remove it", default="", show_default=False, err=True)
    removed = with_workspace(folder, work)
    if as_json:
        say_document(json_form(removed))
    else:
        _tell_removed(removed)


def restore(number: NumberArgument, folder: WorkspaceOption = None, as_json: JsonOption = False) -> None:
    """Restore a task's worktree after its folder vanished, with the files last seen in it.

    Its commits come from its branch. If that has moved on, the files are merged into it; those with conflicts are named
    and left as on the branch. The set-up does not run again.

    Examples:
      agentmon worktrees restore 12
    """

    async def work(services: Services, workspace: Workspace) -> RestoredWorktree:
        found = await _of_number(services, workspace, number)
        return await services.worktrees.restore(found, actor=services.actor)

    restored = with_workspace(folder, work)
    if as_json:
        say_document(json_form(restored))
    else:
        say(f"restored {plain_line(restored.worktree.path)} ({restored.worktree.branch})")
        say("\n".join(f"  {plain_line(path)}" for path in restored.paths) or "  no files but those of its branch")
        for path in restored.left_alone:
            tell(f"{plain_line(path)} is left as on the branch")
    if restored.left_alone:
        raise typer.Exit(1)


def prune(
    folder: WorkspaceOption = None,
    is_all: AllOption = False,
    is_dry: Annotated[bool, typer.Option("--dry-run", help="Only list them.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Remove worktrees of closed tasks that lose nothing, and records of deleted ones.

    Examples:
      agentmon worktrees prune --dry-run
      agentmon worktrees prune --all
    """

    async def work(services: Services) -> tuple[RemovedWorktree, ...]:
        here = None if is_all else await workspace_here(services, folder)
        if here is None and not is_all:
            return ()
        return await services.worktrees.prune(here.id if here else None, is_dry=is_dry, actor=services.actor)

    removed = with_services(work)
    if as_json:
        say_document(json_form(removed))
        return
    for one in removed:
        _tell_removed(one, verb="would remove" if is_dry else "removed")
    if not removed:
        tell("nothing to remove")


def _row(state: WorktreeState) -> tuple[str, ...]:
    worktree = state.worktree
    commits = "?" if state.ahead is None or state.behind is None else f"+{state.ahead} −{state.behind}"
    size = "?" if state.size_bytes is None else size_text(state.size_bytes)
    branch = worktree.branch if state.head in {"", worktree.branch} else f"{worktree.branch} (at {state.head[:12]})"
    return f"#{worktree.task_number}", plain_line(branch), commits, size, state.label, plain_line(worktree.path)


def _tell_removed(removed: RemovedWorktree, *, verb: str = "removed") -> None:
    worktree = removed.worktree
    say(f"{verb} {plain_line(worktree.path)} ({worktree.branch})")
    if removed.kept_ref is not None:
        say(f"its commits: git log {removed.kept_ref}")


async def _of_number(services: Services, workspace: Workspace, number: str) -> Worktree:
    task = await numbered_task(services, workspace, number, deleted_too=True)
    return await services.worktrees.require_of_task(task.id, task.number)


register_default(group, worktrees)
register(group, "list", list_worktrees)
register(group, "open", open_worktree)
register(group, "remove", remove)
register(group, "restore", restore)
register(group, "prune", prune)
