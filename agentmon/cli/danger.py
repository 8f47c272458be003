"""``agentmon danger``: how dangerous a command line is, and why."""

from typing import Annotated

import typer

from agentmon.cli.context import JsonOption
from agentmon.cli.output import say, say_document
from agentmon.domain.agents import DangerLevel
from agentmon.domain.danger import DangerFinding
from agentmon.domain.start_danger import level_words
from agentmon.paths import find_paths
from agentmon.runners.danger import load_danger_rules

_WHAT_FOLLOWS = {
    DangerLevel.SAFE: "it starts at once",
    DangerLevel.CAUTION: "it starts at once",
    DangerLevel.DANGEROUS: "it waits for you when an agent starts it",
    DangerLevel.DESTRUCTIVE: "it waits for you when an agent starts it, and you type its name",
}


def danger(
    words: Annotated[
        list[str],
        typer.Argument(metavar="COMMAND", help="A line of shell in quotes, or behind -- the words of one command."),
    ],
    as_json: JsonOption = False,
) -> None:
    """Rate how dangerous a command line is; nothing is run.

    It names the rules that decided, and what follows. Levels: 0 reads, 1 changes files, 2 is dangerous, 3 destroys
    things. Rules of your own stand in danger.toml in the config folder.

    Examples:
      agentmon danger 'git fetch && git push --force'
      agentmon danger -- rm -rf build
      agentmon danger 'terraform apply' --json
    """
    rules = load_danger_rules(find_paths().danger_rules_file)
    finding = rules.judge_script(words[0]) if len(words) == 1 else rules.judge(words)
    if as_json:
        say_document(_document(finding))
        return
    say(f"level {finding.level.value}, {level_words(finding.level)}: {_WHAT_FOLLOWS[finding.level]}")
    for reason in finding.reasons:
        say(f"  {reason.level.value}  {reason.command}: {reason.text}")


def _document(finding: DangerFinding) -> dict[str, object]:
    return {
        "level": finding.level.value,
        "waits_when_started_by_agent": finding.level >= DangerLevel.DANGEROUS,
        "asks_for_name": finding.level is DangerLevel.DESTRUCTIVE,
        "reasons": [
            {"level": reason.level.value, "command": reason.command, "text": reason.text} for reason in finding.reasons
        ],
    }
