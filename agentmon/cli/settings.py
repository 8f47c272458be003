"""``agentmon settings``: values shown and set."""

from typing import Annotated

import typer

from agentmon.bootstrap import Services
from agentmon.cli.context import JsonOption, WorkspaceOption, with_workspace
from agentmon.cli.json_form import json_form
from agentmon.cli.output import say, say_document
from agentmon.domain.errors import UsageError
from agentmon.domain.tasks import Workspace
from agentmon.services.settings import SettingValue


def settings(
    key: Annotated[str | None, typer.Argument(metavar="[KEY]", help="The setting, such as worker.max_running.")] = None,
    value: Annotated[str | None, typer.Argument(metavar="[VALUE]", help="Its new value.")] = None,
    reset: Annotated[
        bool, typer.Option("--reset", help="Let the file, the environment or the default say it again.")
    ] = False,
    folder: WorkspaceOption = None,
    as_json: JsonOption = False,
) -> None:
    """List the settings, show one, set it, or reset it.

    A running worker takes a change over at once. What begins with workspace. holds for one workspace.

    Examples:
      agentmon settings
      agentmon settings worker.max_running 8
      agentmon settings worker.max_running --reset
      agentmon settings workspace.max_running 2 -C ~/src/api
    """

    async def work(services: Services, workspace: Workspace) -> tuple[SettingValue, ...]:
        if reset and (key is None or value is not None):
            raise UsageError(
                "--reset takes a setting and no value", hint="agentmon settings worker.max_running --reset"
            )
        if key is None:
            return await services.settings.all(workspace)
        if reset:
            return (await services.settings.reset(key, actor=services.actor, workspace=workspace),)
        if value is None:
            return (await services.settings.get(key, workspace),)
        return (await services.settings.set(key, value, actor=services.actor, workspace=workspace),)

    chosen = with_workspace(folder, work, registers=value is not None)
    if as_json:
        say_document(json_form(chosen if key is None else chosen[0]))
        return
    for setting in chosen:
        default = "" if setting.value == setting.default else f"  (default {_shown(setting.default)})"
        say(f"{setting.key} = {_shown(setting.value)}{default}")
        say(f"    {setting.help}")


def _shown(value: float | str) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
