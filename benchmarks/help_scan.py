"""How many of the options that ``--help`` shows are found: ``python -m benchmarks.help_scan``, a table as Markdown.

What a text shows is counted here on its own, with nothing of the scanner: see ``shown_options``. Programs that this
machine lacks are named and left out.
"""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import sys
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from agentmon.domain.errors import RunnerError
from agentmon.runners.capability_scanners.help_scan import ask_help

if TYPE_CHECKING:
    from collections.abc import Iterable

COMMANDS = (
    *(
        "ansible-playbook",
        "apt-get",
        "aws",
        "bandit",
        "black",
        "busybox wget",
        "cargo build",
        "cmake",
        "celery worker",
        "cookiecutter",
        "cp",
        "csvgrep",
    ),
    *("curl", "docker run", "docker build", "dpkg", "eslint", "esbuild", "fdfind", "find", "flake8", "fzf"),
    *("gcc", "gcloud", "gdb", "gh pr create", "git", "git commit", "git log", "grep", "gzip", "hatch", "http"),
    *(
        "gofmt",
        "hyperfine",
        "ip",
        "isort",
        "java",
        "jest",
        "jq",
        "json-server",
        "kubectl get",
        "ls",
        "make",
        "mkdocs build",
        "mocha",
    ),
    *("mvn", "mypy", "ninja", "node", "npm install", "num2words", "openssl req", "perl", "pdm add", "pip install"),
    *(
        "poetry add",
        "pre-commit run",
        "prettier",
        "ps",
        "psql",
        "pytest",
        "python",
        "rclone copy",
        "restic backup",
        "rg",
    ),
    *("ruff check", "rustc", "sed", "shellcheck", "sphinx-build", "sqlite3", "ssh", "strace"),
    *("systemctl", "tar", "terraform plan", "tmux", "top", "tox", "tree", "tsc", "twine upload", "uv pip install"),
    *("valgrind", "webpack", "wget", "xz", "yamllint", "yt-dlp", "zstd"),
)
GOAL = 0.9

_COLOURS = re.compile(r"\x1b\[[0-9;]*m|.\x08")
_NAME = re.compile(r"(?<![\w/.=+-])(--?(?:\[no-\])?[\w?#@][\w.-]*)")
_FRAME = " \t│*•"
_GAP = re.compile(r"\s{2,}|\t")
_BRACKET = re.compile(r"\[(-[^\[\]\n]*)")
_LETTERS = re.compile(r"-(\w{3,})")


@dataclass(frozen=True, slots=True)
class Row:
    """What was found in one program's help."""

    command: str
    shown: int
    found: int
    beyond: int
    """Options that the scanner names and the count does not."""
    commands: int
    seconds: float
    missed: tuple[str, ...]


def shown_options(text: str) -> set[frozenset[str]]:
    """Return the options that a help text shows, each as the set of its names.

    An option is shown where its name begins a line, alone or with its other names before the first gap of two blanks,
    and where it stands behind an opening bracket, as in a usage line. A mention in a sentence shows nothing, but a
    sentence whose wrapped line happens to begin with a name counts, to the scanner's disadvantage.
    """
    shown: set[frozenset[str]] = set()
    for line in _COLOURS.sub("", text).splitlines():
        bare = line.strip(_FRAME)
        if bare.startswith("-") and _NAME.match(bare):
            cells = [cell for cell in _GAP.split(bare) if cell]
            heads = [cells[0], *(cell for cell in cells[1:2] if cell.startswith("-"))]
            shown |= _split(name for head in heads for name in _NAME.findall(head))
        for inside in _BRACKET.findall(line):
            for part in inside.split("|"):
                shown |= {frozenset({name}) for name in _spread(_NAME.findall(part.strip())[:1], is_usage=True)}
    known = {name for option in shown for name in option if len(option) > 1}
    return {option for option in shown if len(option) > 1 or not option <= known}


def _split(names: Iterable[str]) -> set[frozenset[str]]:
    """Return names of one line as one option, or as several when they are of one kind: ``-name X -size Y``."""
    found = [name for name in _spread(list(names)) if name.strip("-")]
    if len(found) > 1 and not any(name.startswith("--") for name in found):
        return {frozenset({name}) for name in found}
    return {frozenset(found)} if found else set()


def _spread(names: list[str], *, is_usage: bool = False) -> list[str]:
    """Return both names of ``--[no-]all``, and in a usage line the letters of ``-46AaC``."""
    spread: list[str] = []
    for name in names:
        letters = _LETTERS.fullmatch(name)
        if "[no-]" in name:
            spread += [name.replace("[no-]", ""), name.replace("[no-]", "no-")]
        elif is_usage and letters and len(set(letters[1])) == len(letters[1]) and letters[1] != letters[1].lower():
            spread += [f"-{letter}" for letter in letters[1]]
        else:
            spread.append(name.rstrip(".-"))
    return spread


async def scan(command: str) -> Row:
    """Ask one program and compare.

    Raises:
        RunnerError: It tells nothing.
    """
    program, *subcommand = command.split()
    start = time.perf_counter()
    answer = await ask_help(shutil.which(program) or program, subcommand=subcommand, timeout_s=60)
    seconds = time.perf_counter() - start
    shown = shown_options(answer.text)
    options = [option for option in answer.commands[0].options if not option.is_positional]
    names = {name.rstrip("-:,") for option in options for name in option.names}
    missed = tuple(sorted("/".join(sorted(option, key=len)) for option in shown if not option <= names))
    counted = {name for option in shown for name in option}
    beyond = sum(1 for option in options if not counted.intersection(option.names))
    return Row(command, len(shown), len(shown) - len(missed), beyond, len(answer.commands) - 1, seconds, missed)


def main() -> None:
    chosen = sys.argv[1:] or COMMANDS
    rows, absent = [], []
    for command in chosen:
        if shutil.which(command.split()[0]) is None:
            absent.append(command)
            continue
        try:
            rows.append(asyncio.run(scan(command)))
        except RunnerError as error:
            print(f"{command}: {error}", file=sys.stderr)
            absent.append(command)
    print(
        "| command | options shown | found | share | beyond | commands named | seconds |\n|---|---|---|---|---|---|---|"
    )
    for row in rows:
        share = row.found / row.shown if row.shown else 1
        print(
            f"| {row.command} | {row.shown} | {row.found} | {share:.0%} | {row.beyond} | {row.commands} |"
            f" {row.seconds:.1f} |"
        )
        if os.environ.get("MISSED"):
            print("    ", " ".join(row.missed), file=sys.stderr)
    shown, found = sum(row.shown for row in rows), sum(row.found for row in rows)
    share = found / shown if shown else 0
    print(f"| **{len(rows)} commands** | **{shown}** | **{found}** | **{share:.1%}** | | | |")
    if absent:
        print(f"\nNot here: {', '.join(absent)}.")
    sys.exit(0 if share >= GOAL else 1)


if __name__ == "__main__":
    main()
