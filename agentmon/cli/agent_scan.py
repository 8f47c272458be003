"""``agentmon agents scan``: what programs this machine has, and what is different since the last look."""

from typing import Annotated

import typer

from agentmon.bootstrap import Services
from agentmon.cli.columns import table, terminal_width
from agentmon.cli.context import JsonOption, with_services
from agentmon.cli.json_form import json_form
from agentmon.cli.output import say, say_document, tell
from agentmon.domain.programs import Program, ScanOutcome
from agentmon.domain.scan_words import outcome_line

_MOST_PATHS = 20
_HEADINGS = ("NAME", "KIND", "PACKAGE", "PATH")

WordsArgument = Annotated[
    list[str] | None, typer.Argument(metavar="WORDS", help="Show the programs that have all of these words.")
]


def scan(
    words: WordsArgument = None,
    is_list: Annotated[bool, typer.Option("--list", help="Show every program that was found.")] = False,
    only_new: Annotated[bool, typer.Option("--new", help="Show what came or changed with this scan.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Look for programs on the PATH and at the places of version managers, without running them.

    Only the programs of known agents that are new or changed are asked for their versions, without a terminal, your
    keys and your home folder, on Linux also without a network.

    Examples:
      agentmon agents scan
      agentmon agents scan --json
      agentmon agents scan claude
      agentmon agents scan --new
    """
    is_shown = bool(words) or is_list or only_new

    async def look(services: Services) -> tuple[ScanOutcome, tuple[Program, ...]]:
        outcome = await services.discovery.scan()
        found = await services.discovery.programs(" ".join(words or ()), only_new=only_new) if is_shown else ()
        return outcome, found

    outcome, found = with_services(look)
    if as_json:
        document = json_form(outcome)
        say_document({**document, "found": json_form(found)} if is_shown and isinstance(document, dict) else document)
        return
    for problem in outcome.problems:
        tell(problem)
    if is_shown:
        rows = [_row(program) for program in found]
        say("\n".join(table(_HEADINGS, rows, terminal_width())) if rows else _nothing(words))
        return
    say(outcome_line(outcome))
    if not outcome.is_first:
        for mark, paths in (("+", outcome.came), ("~", outcome.changed), ("-", outcome.went)):
            for path in paths[:_MOST_PATHS]:
                say(f"{mark} {path}")
            if len(paths) > _MOST_PATHS:
                say(f"{mark} … {len(paths) - _MOST_PATHS} more")


def _row(program: Program) -> tuple[str, str, str, str]:
    package = "" if program.package_name is None else f"{program.package_manager}:{program.package_name}"
    kind = f"{program.kind.value}, hidden" if program.shadowed_by else program.kind.value
    leads = "" if program.real_path == program.path else f" → {program.real_path}"
    return program.name, kind, package, f"{program.path}{leads}"


def _nothing(words: list[str] | None) -> str:
    return "no program has all of these words" if words else "no program came or changed"
