"""``agentmon statusline`` in the list of commands: its help, and its way into the settings of Claude Code and out."""

import os
import shlex
import shutil
import sys
from pathlib import Path
from typing import Annotated

import typer

from agentmon.cli.context import JsonOption, require_person
from agentmon.cli.json_form import json_form
from agentmon.cli.output import say, say_document, tell
from agentmon.cli.statusline import print_statusline
from agentmon.domain.errors import UsageError
from agentmon.paths import find_paths
from agentmon.services.statusline_setup import SetupChange, SetupOutcome, claude_settings_file, install, remove


def statusline(
    *,
    then: Annotated[
        str, typer.Option("--then", metavar="COMMAND", help="Your own status line, which gets the same input.")
    ] = "",
    is_install: Annotated[bool, typer.Option("--install", help="Put it into the settings of Claude Code.")] = False,
    is_remove: Annotated[bool, typer.Option("--remove", help="Take it out of them again.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Print a status line for the prompt of Claude Code.

    It has model, context, costs of the session and the day, and limits. Claude Code hands over its state as JSON on
    standard input. What it says of the vendor's windows and of the context is kept, for `agentmon limits` and the
    costs screen. --install chains the status line that you have; its output comes first.

    Examples:
      agentmon statusline --install
      agentmon statusline --remove
      agentmon statusline --then ~/.claude/my-line.sh < status.json
      agentmon statusline --json < status.json
    """
    if is_install and is_remove:
        raise UsageError("--install and --remove exclude each other")
    if not is_install and not is_remove:
        words = [*(["--then", then] if then else []), *(["--json"] if as_json else [])]
        raise typer.Exit(print_statusline(words))
    if then:
        raise UsageError("--then belongs to the line itself", hint="--install chains what stands in the settings")
    require_person("change the settings of Claude Code")
    settings_file = claude_settings_file(os.environ)
    outcome = install(settings_file, _own_command()) if is_install else remove(settings_file)
    if as_json:
        say_document(json_form(outcome))
    else:
        _tell_outcome(outcome)


def _own_command() -> str:
    """Return how Claude Code calls this agentmon: by its name when that leads here, else by its place.

    Where agentmon keeps its data elsewhere, the command says so: who starts Claude Code may not have set it.
    """
    places = [f"{name}={shlex.quote(text)}" for name, text in find_paths().variables.items()]
    here = Path(sys.argv[0])
    found = shutil.which("agentmon")
    if here.name != "agentmon" or not here.is_file():
        words = f"{shlex.quote(sys.executable)} -P -m agentmon"
    elif found is not None and Path(found).resolve() == here.resolve():
        words = "agentmon"
    else:
        words = shlex.quote(str(here.absolute()))
    return " ".join([*places, words, "statusline"])


def _tell_outcome(outcome: SetupOutcome) -> None:
    match outcome.change:
        case SetupChange.INSTALLED:
            say(f"{outcome.settings_file} has agentmon's status line now")
            if outcome.chained_command:
                say(f"it runs first, as before: {outcome.chained_command}")
        case SetupChange.ALREADY_INSTALLED:
            say(f"{outcome.settings_file} has agentmon's status line already")
        case SetupChange.REMOVED:
            say(f"{outcome.settings_file} has agentmon's status line no longer")
            if outcome.command:
                say(f"Claude Code runs again: {outcome.command}")
        case SetupChange.NOT_INSTALLED:
            say(f"{outcome.settings_file} has no status line of agentmon")
    if outcome.backup_file:
        tell(f"note: how it was before is in {outcome.backup_file}")
