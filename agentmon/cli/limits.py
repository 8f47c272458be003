"""``agentmon limits``: the vendors' usage windows, how fast they go, and what comes of it."""

import time
from typing import Annotated

import typer

from agentmon.bootstrap import Services
from agentmon.cli.columns import terminal_width
from agentmon.cli.context import JsonOption, with_services
from agentmon.cli.limits_text import (
    has_anything,
    history_document,
    history_lines,
    limit_document,
    limit_lines,
    moment_of,
)
from agentmon.cli.local_time import zone_words
from agentmon.cli.output import say, say_document, tell
from agentmon.domain.amounts import MoneyFormat
from agentmon.domain.limit_readings import LimitSnapshot
from agentmon.services.limits import LimitOverview

_DAY_MS = 86_400_000


def limits(
    history_days: Annotated[
        int | None,
        typer.Option("--history", metavar="DAYS", min=1, max=36_500, help="What was said in so many days instead."),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Show the vendors' 5-hour and weekly windows, and burn rate.

    With what the window and the month will come to. Percentages are official: Codex writes them down, Claude Code
    tells them to `agentmon statusline`. Where an agent says nothing, the window is estimated: five hours from the
    full hour of the first answer after a pause, without a percentage.

    Examples:
      agentmon limits
      agentmon limits --json
      agentmon limits --history 7
    """
    if history_days is not None:
        _print_history(history_days, as_json=as_json)
        return

    async def read(services: Services) -> tuple[LimitOverview, MoneyFormat]:
        return await services.limits.overview(), await services.settings.money()

    overview, money = with_services(read)
    if as_json:
        say_document(limit_document(overview, money))
    elif has_anything(overview):

        def words(at_ms: int) -> str:
            return zone_words(moment_of(at_ms), overview.zone_name)

        say("\n".join(limit_lines(overview, terminal_width(), money, words)))
    else:
        tell("no answer of this month and no figure of a vendor is known yet")
        tell("`agentmon costs import` reads what agents wrote down; Codex writes its limits there")
        tell("`agentmon statusline --install` lets Claude Code tell its limits")


def _print_history(days: int, *, as_json: bool) -> None:
    since_ms = time.time_ns() // 1_000_000 - days * _DAY_MS

    async def read(services: Services) -> tuple[tuple[LimitSnapshot, ...], str]:
        return await services.limits.history("", since_ms=since_ms), await services.limits.zone_name()

    history, zone_name = with_services(read)
    if as_json:
        say_document({"history": history_document(history)})
    elif history:
        say("\n".join(history_lines(history, terminal_width(), lambda at_ms: zone_words(moment_of(at_ms), zone_name))))
    else:
        tell("no agent has said anything of its limits in that time")
        tell("Codex writes its limits down; `agentmon statusline --install` lets Claude Code tell its own")
