"""The root of the typer commands."""

from collections.abc import Callable
from functools import cache
from typing import Annotated, Any

import typer

from agentmon.cli import (
    agents,
    attach,
    audit,
    board,
    budget,
    changes,
    conversation,
    costs,
    danger,
    demo,
    doctor,
    executions,
    explain,
    inbox,
    keys,
    limits,
    log,
    merges,
    notify,
    pausing,
    prices,
    pull_requests,
    quick_add,
    review,
    rules,
    run,
    search,
    sessions,
    settings,
    statusline_command,
    stop,
    storage,
    summary,
    talking,
    tasks,
    templates,
    tmux_status_command,
    verify,
    worker,
    workspaces,
    worktrees,
)
from agentmon.cli.context import JsonOption
from agentmon.cli.registration import register
from agentmon.cli.status import print_status, print_version

_HELP = """Run coding agents and command-line tools from a task board, in tmux, with an exact record of each.

Without a command it opens the app on PATH (a folder; the current one by default): agentmon [PATH]"""
_EPILOG = "Exit codes: 0 done, 1 failed, 2 wrong usage or configuration, 130 interrupted."

_GROUPS = {
    "Work": "add task template board run stop pause resume attach review verify merge pr worktrees workspaces",
    "Agents": "agents inbox approve deny answer rules message send interrupt finish switch",
    "Record": "executions log conversation sessions operations events changes diff undo search explain audit",
    "Money": "costs budget prices limits summary",
    "This machine": "status statusline tmux-status notify settings keys danger storage worker doctor demo",
}


class _GroupedHelp(typer.core.TyperGroup):
    """Lists the commands by what they are for."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:  # noqa: ANN401 - typer brings its own click
        """Write a section for each group; one that belongs to none is written last."""
        left = {
            name: command for name in self.list_commands(ctx) if (command := self.get_command(ctx, name)) is not None
        }
        limit = formatter.width - 6 - max(map(len, left))
        for heading, names in (*_GROUPS.items(), ("More", " ".join(left))):
            rows = [(name, left.pop(name).get_short_help_str(limit)) for name in names.split() if name in left]
            if rows:
                with formatter.section(heading):
                    formatter.write_dl(rows)


root = typer.Typer(
    name="agentmon",
    cls=_GroupedHelp,
    help=_HELP,
    epilog=_EPILOG,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
)
root.add_typer(tasks.group, name="task")
root.add_typer(templates.group, name="template")
root.add_typer(agents.group, name="agents")
root.add_typer(rules.group, name="rules")
root.add_typer(workspaces.group, name="workspaces")
root.add_typer(worktrees.group, name="worktrees")
root.add_typer(sessions.group, name="sessions")
root.add_typer(costs.group, name="costs")
root.add_typer(prices.group, name="prices")
root.add_typer(budget.group, name="budget")


def show_status(as_json: JsonOption = False) -> None:
    """Print one line for hooks and status bars.

    It counts over all workspaces and takes some 40 ms.

    Examples:
      agentmon status
      set -g status-right '#(agentmon status)'
    """
    raise typer.Exit(print_status(["--json"] if as_json else []))


register(root, "add", quick_add.add)
register(root, "run", run.run)
register(root, "stop", stop.stop)
register(root, "pause", pausing.pause)
register(root, "resume", pausing.resume)
register(root, "inbox", inbox.inbox)
register(root, "approve", inbox.approve)
register(root, "deny", inbox.deny)
register(root, "answer", inbox.answer)
register(root, "message", talking.message)
register(root, "send", talking.send)
register(root, "interrupt", talking.interrupt)
register(root, "finish", talking.finish)
register(root, "switch", talking.switch)
register(root, "conversation", conversation.conversation)
register(root, "operations", conversation.operations)
register(root, "events", conversation.events)
register(root, "log", log.log)
register(root, "changes", changes.changes)
register(root, "diff", changes.diff)
register(root, "undo", changes.undo)
register(root, "review", review.review)
register(root, "verify", verify.verify)
register(root, "merge", merges.merge)
register(root, "pr", pull_requests.open_pull_request)
register(root, "attach", attach.attach)
register(root, "search", search.search)
register(root, "board", board.board)
register(root, "executions", executions.list_executions)
register(root, "explain", explain.explain)
register(root, "danger", danger.danger)
register(root, "audit", audit.audit)
register(root, "notify", notify.notify)
register(root, "keys", keys.keys)
register(root, "status", show_status)
register(root, "statusline", statusline_command.statusline)
register(root, "tmux-status", tmux_status_command.tmux_status)
register(root, "limits", limits.limits)
register(root, "summary", summary.summary)
register(root, "worker", worker.worker)
register(root, "doctor", doctor.doctor)
register(root, "storage", storage.storage)
register(root, "settings", settings.settings, takes_words_with_dashes=True)
register(root, "demo", demo.demo)


def _print_version(is_asked: bool) -> None:
    if is_asked:
        raise typer.Exit(print_version(as_json=False))


@root.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", "-V", help="Print the version.", is_eager=True, callback=_print_version)
    ] = False,
) -> None:
    """Take the options that belong to no command."""
    del version


@cache
def _commands() -> Callable[..., object]:
    return typer.main.get_command(root)


def prepare() -> None:
    """Make what every command line needs."""
    _commands()


def run_command_line(words: list[str]) -> int:
    """Run one command line and return its exit code; wrong usage has been told, other errors are raised."""
    try:
        _commands()(args=words, prog_name="agentmon")
    except SystemExit as ended:
        return ended.code if isinstance(ended.code, int) else 1
    return 0
