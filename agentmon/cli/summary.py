"""``agentmon summary``: what was done by day and user, and by project."""

from typing import Annotated

import typer

from agentmon.bootstrap import Services
from agentmon.cli.columns import terminal_width
from agentmon.cli.context import JsonOption, with_services
from agentmon.cli.output import say, say_document, tell
from agentmon.cli.summary_text import daily_document, daily_table, project_document, project_table
from agentmon.domain.amounts import MoneyFormat
from agentmon.domain.errors import UsageError
from agentmon.domain.plain_text import plain_line
from agentmon.domain.summaries import SummaryPeriod
from agentmon.services.summaries import DailyReport, ProjectReport


def summary(
    by: Annotated[SummaryPeriod, typer.Option("--by", help="How much time each line is about.")] = SummaryPeriod.DAY,
    project: Annotated[
        str | None, typer.Option("--project", metavar="PATH", help="The project of this folder, and those below it.")
    ] = None,
    is_of_projects: Annotated[bool, typer.Option("--projects", help="Every project by itself.")] = False,
    since: Annotated[str | None, typer.Option("--since", metavar="DAY", help="The first day: 2026-03-01.")] = None,
    until: Annotated[str | None, typer.Option("--until", metavar="DAY", help="The last day.")] = None,
    last: Annotated[
        int | None, typer.Option("--last", min=1, max=36_500, help="So many days, weeks or months up to today.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Sum up sessions, tool calls, tokens and costs.

    A session counts on the day on which it began, a tool call and an answer each on its own. The success rate is that
    of the calls that succeeded or failed; those that were refused are blocked. Weeks begin on Monday. Of a project it
    shows who was active, the dearest models and the kinds of tool calls.

    Examples:
      agentmon summary --last 7
      agentmon summary --by month --json
      agentmon summary --by week --project ~/webshop
      agentmon summary --by month --projects
    """
    if project is not None and is_of_projects:
        raise UsageError("--project and --projects exclude each other", hint="--projects shows every project")
    is_everything = since is None and until is None and last is None
    if project is None and not is_of_projects:
        _show_daily(by, since, until, last, is_everything=is_everything, as_json=as_json)
    else:
        _show_projects(by, project, since, until, last, is_everything=is_everything, as_json=as_json)


def _show_daily(
    by: SummaryPeriod, since: str | None, until: str | None, last: int | None, *, is_everything: bool, as_json: bool
) -> None:
    async def read(services: Services) -> tuple[DailyReport, MoneyFormat]:
        report = await services.summaries.daily(by, since=since, until=until, last=last)
        return report, await services.settings.money()

    report, money = with_services(read)
    if as_json:
        say_document(daily_document(report, money))
    elif report.summaries:
        say("\n".join(daily_table(report, money)))
        say(f"Days of {report.time.zone_name}.")
    else:
        _tell_nothing("nothing was done yet" if is_everything else "nothing was done in that time")


def _show_projects(
    by: SummaryPeriod,
    project: str | None,
    since: str | None,
    until: str | None,
    last: int | None,
    *,
    is_everything: bool,
    as_json: bool,
) -> None:
    async def read(services: Services) -> tuple[ProjectReport, MoneyFormat]:
        report = await services.summaries.projects(by, folder=project, since=since, until=until, last=last)
        return report, await services.settings.money()

    report, money = with_services(read)
    if as_json:
        say_document(project_document(report, money))
    elif report.summaries:
        say("\n".join(project_table(report, money, terminal_width())))
        say(f"Days of {report.time.zone_name}.")
    elif report.project:
        when = "" if is_everything else " in that time"
        tell(f"nothing is known of the project {plain_line(report.project, max_characters=300)}{when}")
        tell("`agentmon summary --projects` shows those that are known")
    else:
        _tell_nothing("nothing was done yet" if is_everything else "nothing was done in that time")


def _tell_nothing(words: str) -> None:
    tell(words)
    tell("`agentmon costs import` reads what agents wrote down before; `agentmon run NUMBER` starts one")
