"""``agentmon storage``: what takes room, what the next thinning removes, and thinning now."""

import sys
from collections.abc import Mapping
from typing import Annotated

import typer

from agentmon.bootstrap import Services
from agentmon.cli import exit_codes
from agentmon.cli.columns import table, terminal_width
from agentmon.cli.context import JsonOption, with_services
from agentmon.cli.json_form import json_form
from agentmon.cli.output import say, say_document, tell
from agentmon.domain.amounts import size_text
from agentmon.domain.errors import UsageError
from agentmon.domain.storage import StorageReport, ThinningOutlook, ThinningRule

_MOST_TABLES = 12
_WHAT = {
    "logs": "logs of ended runs",
    ThinningRule.EVENTS.value: "events of ended runs that are in the conversation too",
    ThinningRule.COMMANDS.value: "delivered commands of ended runs",
    ThinningRule.HEARTBEATS.value: "workers not seen for 30 days",
    ThinningRule.REQUEST_KEYS.value: "idempotency keys older than a week",
    ThinningRule.AUDIT.value: "lines of the audit trail",
}


def storage(
    is_thinning: Annotated[bool, typer.Option("--thin", help="Remove what is due now.")] = False,
    is_confirmed: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask before removing.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Show disk usage, and what is due for removal.

    The worker removes what is due by itself; --thin does it now. How long things are kept is a setting.

    Examples:
      agentmon storage
      agentmon storage --thin
      agentmon settings worker.keep_logs_days 90
      agentmon settings worker.keep_audit_days 365
    """
    if is_confirmed and not is_thinning:
        raise UsageError("--yes needs --thin", hint="agentmon storage --thin --yes")
    if is_thinning:
        _thin(is_confirmed=is_confirmed, as_json=as_json)
        return
    report = with_services(lambda services: services.storage.report())
    if as_json:
        say_document(json_form(report))
    else:
        _show(report)


def _thin(*, is_confirmed: bool, as_json: bool) -> None:
    async def thin(services: Services) -> Mapping[str, int]:
        return await services.storage.thin(actor=services.actor)

    due = [one for one in with_services(lambda services: services.storage.outlook()) if one.count]
    if due and not is_confirmed:
        for one in due:
            tell(f"{one.count:,} {_WHAT[one.rule]}{_size_of(one)}")
        if not sys.stdin.isatty():
            raise UsageError("this removes what is listed and needs a yes", hint="add --yes")
        if not typer.confirm("Remove all of this permanently?", err=True):
            raise typer.Exit(exit_codes.FAILED)
    removed = with_services(thin) if due else dict.fromkeys(_WHAT, 0)
    if as_json:
        say_document(json_form(removed))
        return
    for rule, count in removed.items():
        if count:
            say(f"removed {_WHAT[rule]}: {count:,}")
    if not any(removed.values()):
        tell("nothing is due for removal")


def _show(report: StorageReport) -> None:
    database = report.database
    free = f", {size_text(database.free_bytes)} of it free for reuse" if database.free_bytes else ""
    say(f"{database.path}: {size_text(database.size_bytes)}{free}")
    shown = [one for one in database.tables if one.rows][:_MOST_TABLES]
    if shown:
        heading = "SIZE (ESTIMATE)" if database.is_estimate else "SIZE"
        rows = [(size_text(one.size_bytes), f"{one.rows:,}", one.name) for one in shown]
        say("\n".join(table((heading, "ROWS", "TABLE"), rows, terminal_width())))
    else:
        say("empty")
    say()
    files = [
        (size_text(one.size_bytes), f"{one.files:,}", f"{one.kind}  {one.path}") for one in report.files if one.files
    ]
    if files:
        say("\n".join(table(("SIZE", "FILES", "KIND"), files, terminal_width())))
    else:
        say("no files of runs, no backups, no logs")
    say()
    due = [(_due(one), f"{_WHAT[one.rule]}{_kept_by(one)}") for one in report.next_thinning]
    say("\n".join(table(("DUE", "WHAT"), due, terminal_width())))
    if any(one.count for one in report.next_thinning):
        tell("the worker removes what is due by itself; agentmon storage --thin does it now")


def _due(outlook: ThinningOutlook) -> str:
    return f"{outlook.count:,}{_size_of(outlook)}" if outlook.is_on else "kept"


def _size_of(outlook: ThinningOutlook) -> str:
    return f" ({size_text(outlook.size_bytes)})" if outlook.size_bytes else ""


def _kept_by(outlook: ThinningOutlook) -> str:
    return f" ({outlook.setting})" if outlook.setting else ""
