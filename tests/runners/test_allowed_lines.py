"""What a rule allows, as a real shell runs it: mutated lines, run by bash with recorders in the place of programs."""

from __future__ import annotations

import os
import random
import shlex
import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest

from agentmon.domain.command_words import plain_words
from tests.seeds import seeds

if TYPE_CHECKING:
    from pathlib import Path

_ALLOWED = (
    *(
        "git status",
        "git diff",
        "git log",
        "git show",
        "git add",
        "npm test",
        "npm run lint",
        "npm ci",
        "make test",
        "make",
    ),
    *(
        "ls",
        "ls -la",
        "cat",
        "pytest",
        "pytest tests",
        "python -m pytest",
        "ruff check",
        "ruff format",
        "mypy",
        "cargo test",
    ),
    *(
        "cargo check",
        "cargo fmt",
        "go test",
        "go vet",
        "go build",
        "node --version",
        "grep",
        "rg",
        "head",
        "tail",
        "wc",
    ),
    *(
        "find src -name",
        "sed -n",
        "tsc --noEmit",
        "eslint",
        "prettier --check",
        "docker ps",
        "kubectl get",
        "terraform plan",
    ),
    *(
        "gh pr view",
        "gh pr list",
        "jq",
        "curl -s",
        "diff",
        "stat",
        "du -sh",
        "df -h",
        "tree",
        "which",
        "date",
        "uname -a",
    ),
    *("whoami", "id", "printenv", "pnpm test", "yarn test", "uv run pytest", "bundle exec rspec", "mvn test", "man"),
)
_PIECES = (
    *(
        " ",
        "  ",
        "\t",
        "'",
        '"',
        "\\",
        "|",
        "||",
        "&",
        "&&",
        ";",
        ";;",
        "<",
        ">",
        ">>",
        "<<",
        "$(",
        "`",
        "$",
        "${",
        "}",
    ),
    *(
        "(",
        ")",
        "{",
        "#",
        "!",
        "*",
        "?",
        "[",
        "]",
        "~",
        "=",
        "\n",
        "\r",
        "\x0b",
        "\x0c",
        "\x85",
        "\u00a0",
        "\u2028",
        "-",
    ),
    *(
        "--",
        "-c",
        "bash -c ",
        "sh -c ",
        "bash -lc ",
        "bash -norc ",
        "./bash -c ",
        "fish --init-command=",
        "env ",
        "A=b ",
    ),
    *(
        "A+=b ",
        "a[0]=b ",
        "time ",
        "! ",
        "eval ",
        "exec ",
        "$'",
        '$"',
        "\\\n",
        "rm -rf x",
        "rm",
        "x",
        "../x",
        "~/x",
        "{a,b}",
    ),
    *("a{1..3}", "%", "^", "@(a)", "+(a)", "\u200b", "\u00e9", "=x", "coproc ", "function f", "[[ ", "if ", " then"),
    *("'\"'", '"\'"', "\\'", "<(", ">("),
)
_SHELLS = ("bash -c ", "sh -c ", "bash -lc ", "zsh -c ", "bash -norc ", "bash --norc -c ", "bash -e -c ")
_MOST_CHANGES = 5
_LINES = 25_000
# Each program writes its words, divided by NUL, and a mark behind them. A shell that is given one line runs it.
_RECORDERS = """
builtin unalias -a
PATH=/nonexistent
record() { printf '%s\\0' "$@"; printf '\\001\\0'; }
command_not_found_handle() { record "$@"; }
"""
_SHELL = """
{name}() {{
  if [ "$#" -eq 2 ] && {{ [ "$1" = -c ] || [ "$1" = -lc ]; }}; then (eval "$2"); else record {name} "$@"; fi
}}
"""
_EACH = """
while IFS= read -r -d '' line; do
  printf '\\002\\0'
  (eval "$line") 2>/dev/null </dev/null
done
"""


def _line(chance: random.Random) -> str:
    line = chance.choice(_ALLOWED)
    for _ in range(chance.randint(0, _MOST_CHANGES)):
        at = chance.choice([0, len(line), chance.randint(0, len(line))])
        line = chance.choice(
            [
                line[:at] + chance.choice(_PIECES) + line[at:],
                line[:at] + chance.choice(_PIECES) + line[at:],
                line[:at] + line[at + 1 :],
                f"{line} {_quoted(chance, chance.choice(_PIECES) + chance.choice(['a', 'b c', '']))}",
                f"{chance.choice(_SHELLS)}{_quoted(chance, line)}",
                f"{line}{chance.choice([chr(10), ';', '&&', '|', ' & '])}{chance.choice(_ALLOWED)}",
            ]
        )
    return line


def _quoted(chance: random.Random, text: str) -> str:
    doubly = "".join(f"\\{letter}" if letter in '\\"$`' else letter for letter in text)
    return chance.choice([shlex.quote(text), f'"{doubly}"', text])


def _is_allowed(words: tuple[str, ...]) -> bool:
    return any(words[: len(wanted)] == wanted for wanted in (tuple(rule.split()) for rule in _ALLOWED))


def _run(lines: list[str], folder: Path) -> list[list[tuple[str, ...]]]:
    """Return which programs bash runs for each line, with their words; wildcards and ``~`` find nothing else."""
    names = sorted({rule.split()[0] for rule in _ALLOWED} | {"rm", "x", "env"})
    recorders = "".join(f'{name}() {{ record {name} "$@"; }}\n' for name in names)
    script = _RECORDERS + recorders + "".join(_SHELL.format(name=name) for name in ("bash", "sh", "zsh", "ash")) + _EACH
    told = subprocess.run(
        [str(shutil.which("bash")), "-c", script],
        input="".join(f"{line}\0" for line in lines).encode(),
        stdout=subprocess.PIPE,
        env={**os.environ, "HOME": "~"},
        cwd=folder,
        check=False,
    )
    runs = told.stdout.decode().split("\2\0")[1:]
    return [[tuple(words.split("\0")[:-1]) for words in run.split("\1\0")[:-1]] for run in runs]


@pytest.mark.proof
@pytest.mark.skipif(shutil.which("bash") is None, reason="no bash")
@pytest.mark.parametrize("seed", seeds(4, quick=0))
def test_no_line_that_a_rule_allows_is_run_as_something_else(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    allowed = {
        line: words for line in (_line(chance) for _ in range(_LINES)) if _is_allowed(words := plain_words(line))
    }

    ran = _run(list(allowed), tmp_path)

    assert len(allowed) > _LINES // 20
    assert {line: calls for (line, words), calls in zip(allowed.items(), ran, strict=True) if calls != [words]} == {}
