"""``agentmon settings``: values shown and set."""

from typing import Annotated

import typer

from agentmon.bootstrap import Services
from agentmon.cli.context import JsonOption, with_services
from agentmon.cli.json_form import json_form
from agentmon.cli.output import say, say_document
from agentmon.services.settings import SettingValue


def settings(
    key: Annotated[str | None, typer.Argument(metavar="[KEY]", help="The setting, such as worker.max_running.")] = None,
    value: Annotated[str | None, typer.Argument(metavar="[VALUE]", help="Its new value.")] = None,
    as_json: JsonOption = False,
) -> None:
    """List the settings, show one, or set it.

    A running worker takes a change over at once.

    Examples:
      agentmon settings
      agentmon settings worker.max_running 8
    """

    async def work(services: Services) -> tuple[SettingValue, ...]:
        if key is None:
            return await services.settings.all()
        if value is None:
            return (await services.settings.get(key),)
        return (await services.settings.set(key, value),)

    chosen = with_services(work)
    if as_json:
        say_document(json_form(chosen if key is None else chosen[0]))
        return
    for setting in chosen:
        default = "" if setting.value == setting.default else f"  (default {setting.default})"
        say(f"{setting.key} = {setting.value}{default}")
        say(f"    {setting.help}")
