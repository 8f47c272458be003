"""``agentmon notify``: trying out how one is told of what happens."""

from typing import Annotated

import typer

from agentmon.bootstrap import Services
from agentmon.cli.context import JsonOption, with_services
from agentmon.cli.output import say, say_document
from agentmon.domain.errors import ConflictError
from agentmon.domain.notifications import NotificationKind
from agentmon.services.notifications import ChannelTrial


def notify(
    kind: Annotated[
        NotificationKind, typer.Argument(metavar="[KIND]", help="needs_you, done, failed, parked or budget.")
    ] = NotificationKind.NEEDS_YOU,
    as_json: JsonOption = False,
) -> None:
    """Send a test notification.

    Which these are is a setting of each kind: toast, bell, desktop, command, webhook, or none. A command gets JSON on
    its standard input, a webhook by POST. In quiet hours only toasts are shown; this trial is told at any hour.

    Examples:
      agentmon settings notifications.needs_you "toast bell desktop"
      agentmon settings notifications.command 'jq -r .title | wall'
      agentmon settings notifications.quiet_hours 22:00-07:00
      agentmon notify needs_you
    """

    async def work(services: Services) -> tuple[ChannelTrial, ...]:
        return await services.notifications.try_out(kind)

    trials = with_services(work)
    if as_json:
        say_document([{"channel": one.channel.value, "problem": one.problem or None} for one in trials])
    else:
        for one in trials:
            told = one.problem or ("an open app tells it" if one.channel.is_of_app else "told")
            say(f"{one.channel.value:<8}  {told}")
    failed = [one for one in trials if one.problem]
    if not trials:
        raise ConflictError(
            f"nothing is told of {kind.value}",
            hint=f'`agentmon settings notifications.{kind.value} "toast bell desktop"` names its channels',
        )
    if failed:
        raise typer.Exit(1)
