"""Whether programs take what their help was read as: ``python -m benchmarks.help_taken``, a table as Markdown.

Each argument that was learned is given to the program alone, with a value of its kind, in the box of the probe: nothing
can be written there, and there is no network. Counted is what the program refuses as no option of its own, as one that
takes a value or as one that takes none; that it does not like the value is no fault of the reader.
"""

from __future__ import annotations

import asyncio
import re
import shutil
import sys
from typing import TYPE_CHECKING

from agentmon.domain.ids import AgentId
from agentmon.runners.adapters.template import render_command
from agentmon.runners.capability_scanners import scan_help, to_capability
from agentmon.runners.discovery.probe import ask

if TYPE_CHECKING:
    from collections.abc import Mapping

COMMANDS = (
    *("black", "cargo build", "cmake", "curl", "docker run", "esbuild", "fdfind", "find", "gcc", "gh pr create"),
    *("git commit", "git log", "gofmt", "grep", "isort", "java", "jq", "kubectl get", "ls", "make", "node"),
    *("openssl req", "perl", "psql", "python", "rclone copy", "restic backup", "rg", "ruff check", "sed"),
    *("shellcheck", "sort", "sqlite3", "ss", "strace", "tar", "tmux", "tree", "uv pip install", "wget", "xz"),
)

_REFUSAL = re.compile(
    r"unrecogni[sz]ed (?:command-line )?option|invalid option --|unknown option|unexpected argument|unknown flag"
    r"|unknown shorthand|flag provided but not defined|no such option|illegal option|bad option|unknown predicate"
    r"|requires an argument|requires a value|expected one argument|option requires|missing argument to|flag needs"
    r"|doesn't allow an argument|does not take a value|ambiguous option|: is unknown",
    re.IGNORECASE,
)
_AT_ONCE = 3


def sample(described: Mapping[str, object]) -> object:
    """Return a value that a schema allows."""
    choices = described.get("enum")
    if isinstance(choices, list):
        return choices[0]
    match described.get("type"):
        case "boolean":
            return True
        case "integer" | "number":
            return 1
        case "array":
            items = described["items"]
            return [sample(items)] if isinstance(items, dict) else []
        case _:
            return "1"


async def refused(command: str) -> tuple[int, list[str]]:
    """Return how many arguments a command was tried with, and the lines of those that it refused."""
    program, *subcommand = command.split()
    path = shutil.which(program) or program
    capability = to_capability(
        (await scan_help(path, subcommand=subcommand, timeout_s=60))[0], agent_id=AgentId("agent")
    )
    properties, required = capability.args_schema["properties"], capability.args_schema["required"]
    if not isinstance(properties, dict) or not isinstance(required, list):
        return 0, []
    refusals: list[str] = []
    turn = asyncio.Semaphore(_AT_ONCE)

    async def give(name: str) -> None:
        args = {key: sample(properties[key]) for key in (*required, name)}
        words = render_command(capability, binary=path, base_args=(), task_title="", args=args, prompt_additions="")
        async with turn:
            answer = await ask(path, words[1:], timeout_s=20)
        line = next((line for line in answer.output.splitlines() if _REFUSAL.search(line)), "")
        if line and answer.exit_code:
            refusals.append(f"{' '.join(words[1:])}: {line.strip()}")

    async with asyncio.TaskGroup() as group:
        for name in properties:
            group.create_task(give(name))
    return len(properties), refusals


def main() -> None:
    print("| command | arguments given | refused |\n|---|---|---|")
    given = lost = 0
    for command in sys.argv[1:] or COMMANDS:
        if shutil.which(command.split()[0]) is None:
            continue
        count, refusals = asyncio.run(refused(command))
        given, lost = given + count, lost + len(refusals)
        print(f"| {command} | {count} | {len(refusals)} |", flush=True)
        for line in refusals:
            print(f"     {line[:160]}", file=sys.stderr)
    print(f"| **all** | **{given}** | **{lost}** |")


if __name__ == "__main__":
    main()
