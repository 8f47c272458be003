"""``agentmon costs``: what agents took and cost, imported, summed up, explained and priced anew."""

import sys
from datetime import datetime
from typing import Annotated
from zoneinfo import ZoneInfo

import typer

from agentmon.bootstrap import Services
from agentmon.cli.columns import terminal_width
from agentmon.cli.context import JsonOption, with_services
from agentmon.cli.cost_documents import currency_form, report_document
from agentmon.cli.cost_text import (
    explained_document,
    explained_lines,
    progress_words,
    report_csv,
    report_table,
    source_words,
)
from agentmon.cli.import_problems import tell_problems
from agentmon.cli.json_form import json_form
from agentmon.cli.output import say, say_document, tell, tell_in_place
from agentmon.cli.registration import register, register_default
from agentmon.domain.amounts import MoneyFormat, duration_text, size_text
from agentmon.domain.costs import CostFilter, CostGroup
from agentmon.domain.errors import UsageError
from agentmon.domain.plain_text import plain_line
from agentmon.services.cost_reports import CostReport
from agentmon.services.costs import ExplainedAnswer, HistoryPlace
from agentmon.worker.import_progress import ImportOutcome, ImportProgress

group = typer.Typer(rich_markup_mode=None)


def costs(
    context: typer.Context,
    *,
    by: Annotated[CostGroup, typer.Option("--by", help="What each line sums up.")] = CostGroup.DAY,
    since: Annotated[str | None, typer.Option("--since", metavar="DAY", help="The first day: 2026-03-01.")] = None,
    until: Annotated[str | None, typer.Option("--until", metavar="DAY", help="The last day.")] = None,
    last: Annotated[
        int | None, typer.Option("--last", min=1, max=36_500, help="So many days, weeks or months up to today.")
    ] = None,
    agent: Annotated[str, typer.Option("--agent", metavar="NAME", help="Only of this agent, such as claude.")] = "",
    model: Annotated[str, typer.Option("--model", metavar="NAME", help="Only of this model.")] = "",
    project: Annotated[str, typer.Option("--project", metavar="PATH", help="Only in this folder and below it.")] = "",
    zone_name: Annotated[
        str | None, typer.Option("--timezone", metavar="ZONE", help="Whose days count; the setting costs.timezone.")
    ] = None,
    as_json: JsonOption = False,
    as_csv: Annotated[bool, typer.Option("--csv", help="Print CSV.")] = False,
) -> None:
    """Show tokens and costs of all agents on this machine.

    What agentmon did not start counts too. Costs are list prices of the day of each answer, unless the agent reported
    one. An answer without a known price is counted and in no sum. Weeks begin on Monday. The settings costs.currency,
    costs.exchange_rate and costs.decimals say how amounts are shown; JSON and CSV are in US dollars.

    Examples:
      agentmon costs
      agentmon costs --by model --last 30
      agentmon costs --by month --since 2026-01-01 --json
      agentmon costs explain 019bf3a2
    """
    if context.invoked_subcommand is not None:
        return
    if as_json and as_csv:
        raise UsageError("--json and --csv exclude each other")
    chosen = CostFilter(since_day=since, until_day=until, agent_slug=agent, model=model, project=project)

    async def read(services: Services) -> tuple[CostReport, list[str], MoneyFormat]:
        report = await services.costs.report(by, chosen, last=last, zone_name=zone_name)
        places = [] if report.buckets or as_json else [_place_words(place) for place in services.costs.places()]
        return report, places, await services.settings.money()

    report, places, money = with_services(read)
    if as_json:
        say_document(report_document(report, money))
    elif as_csv:
        say(report_csv(report))
    elif report.buckets:
        say("\n".join(report_table(report, terminal_width(), money)))
        say(f"{source_words(report.totals)}. Days of {report.zone_name}.")
    else:
        is_everything = chosen == CostFilter() and last is None
        tell("no answer is known yet" if is_everything else "no answer is known of that time and choice")
        tell("`agentmon costs import` reads what agents wrote down. It looks in:")
        tell("\n".join(places))
    if report.running_import is not None and not as_json:
        tell(f"note: an import goes on, so more will come: {progress_words(report.running_import.progress)}")


def import_history(
    is_rescan: Annotated[
        bool, typer.Option("--rescan", help="Read every file again from its beginning; nothing counts twice.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Read in this process what agents wrote down since the last time.

    The worker does the same by itself, unless the setting costs.import_history says no.

    Examples:
      agentmon costs import
      agentmon costs import --rescan --json
    """
    is_shown = sys.stderr.isatty() and not as_json

    def show(progress: ImportProgress) -> None:
        tell_in_place(f"reading {progress_words(progress)}")

    async def work(services: Services) -> tuple[ImportOutcome, list[str]]:
        outcome = await services.costs.import_history(rescan=is_rescan, report=show if is_shown else None)
        return outcome, [_place_words(place) for place in services.costs.places()]

    outcome, places = with_services(work)
    if is_shown:
        tell_in_place("")
    if as_json:
        say_document(json_form(outcome))
        return
    say(
        f"{outcome.files:,} of {outcome.all_files:,} files had something new: {outcome.answers:,} answers told, "
        f"{size_text(outcome.read_bytes)} in {duration_text(outcome.elapsed_s)}"
    )
    if not outcome.all_files:
        tell("no file of an agent was found in:")
        tell("\n".join(places))
    tell_problems(outcome.problems)


def explain(
    name: Annotated[
        str, typer.Argument(metavar="ID", help="The start of the id of a session or an answer, or the agent's own id.")
    ],
    as_json: JsonOption = False,
) -> None:
    """Show where each figure of a session or an answer comes from: file, rate, tier and formula.

    Examples:
      agentmon costs explain 019bf3a2
      agentmon costs explain msg_01XFDUDYJgAACzvnptvVoYEL --json
    """

    async def read(services: Services) -> tuple[tuple[ExplainedAnswer, ...], str, MoneyFormat]:
        zone_name = (await services.costs.report(CostGroup.AGENT, CostFilter())).zone_name
        return await services.costs.explain(name), zone_name, await services.settings.money()

    explained, zone_name, money = with_services(read)
    if as_json:
        answers = [explained_document(one) for one in explained]
        say_document({"answers": answers, "timezone": zone_name, **currency_form(money)})
        return
    if not explained:
        tell("no answer of this session is known yet; `agentmon costs import` reads what agents wrote down")
        return
    zone = ZoneInfo(zone_name)
    for one in explained:
        at_ms = one.source.answer.at_ms
        when = datetime.fromtimestamp(at_ms / 1000, zone).strftime("%Y-%m-%d %H:%M:%S") if at_ms else "time not known"
        say("\n".join(explained_lines(one, when, money)))


def reprice(as_json: JsonOption = False) -> None:
    """Look up the price of every answer anew, by the day of each, and bring all sums up to it.

    Examples:
      agentmon costs reprice
    """
    answers, changed = with_services(lambda services: services.costs.reprice(actor=services.actor))
    if as_json:
        say_document({"answers": answers, "changed": changed})
    else:
        say(f"{answers:,} answers priced, {changed:,} changed")


def _place_words(place: HistoryPlace) -> str:
    problem = f" ({place.problem})" if place.problem else ""
    return f"  {place.agent_slug:<8} {plain_line(place.path, max_characters=300)}{problem}"


register_default(group, costs)
register(group, "import", import_history)
register(group, "explain", explain)
register(group, "reprice", reprice)
