from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

import pytest

from agentmon.domain.errors import RunnerError
from agentmon.domain.ids import AgentId
from agentmon.runners.adapters.arguments import check_arguments, coerce_arguments
from agentmon.runners.adapters.template import render_command
from agentmon.runners.capability_scanners import help_scan, scan_help, to_capability
from agentmon.runners.discovery.probe import ProbeAnswer, ask

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path


def program(folder: Path, script: str) -> str:
    path = folder / "prog"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return str(path)


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The words that programs are asked with; they are asked all the same."""
    words_of_each: list[str] = []

    async def recorded(
        path: str, words: Sequence[str], *, timeout_s: float, environ: Mapping[str, str] | None
    ) -> ProbeAnswer:
        words_of_each.append(" ".join(words))
        return await ask(path, words, timeout_s=timeout_s, environ=environ)

    monkeypatch.setattr(help_scan, "ask", recorded)
    return words_of_each


async def test_a_subcommand_is_asked_for_its_own_help(tmp_path: Path, asked: list[str]) -> None:
    path = program(
        tmp_path,
        """case "$1" in
        --help) printf 'Usage: prog [options] <command>\n\nCommands:\n  sync  Bring up to date\n' ;;
        sync) printf 'Usage: prog sync [options]\n\n  --all   Everything\n' ;;
        esac""",
    )

    program_itself, named = await scan_help(path)
    learned = (await scan_help(path, subcommand=named.subcommand))[0]

    assert (program_itself.key, named.key, named.is_learned) == ("run", "sync", False)
    assert (learned.key, learned.is_learned, [option.names for option in learned.options]) == (
        "sync",
        True,
        [("--all",)],
    )
    assert asked == ["--help", "sync --help"]


@pytest.mark.parametrize(
    ("answer", "way"),
    [
        ("unknown option; use -h for help", "-h"),
        ("flag provided but not defined: -help-; see -help", "-help"),
        ("run prog help to learn more", "help"),
        ("Try prog --help all", "--help all"),
    ],
)
async def test_another_way_is_tried_when_the_answer_names_it(
    tmp_path: Path, asked: list[str], answer: str, way: str
) -> None:
    path = program(
        tmp_path, f"""[ "$*" = "{way}" ] && echo "  --all   Everything" || {{ echo "{answer}" >&2; exit 2; }}"""
    )

    scanned = await scan_help(path)

    assert scanned[0].options[0].names == ("--all",)
    assert asked == ["--help", way]


async def test_no_other_way_is_tried_that_the_answer_does_not_name(tmp_path: Path, asked: list[str]) -> None:
    path = program(tmp_path, "echo done")

    with pytest.raises(RunnerError, match="prog --help tells nothing that can be learned"):
        await scan_help(path)

    assert asked == ["--help"]


async def test_what_python_tells_of_itself_runs_as_it_was_learned() -> None:
    learned = (await scan_help(sys.executable))[0]
    capability = to_capability(learned, agent_id=AgentId("python"))
    chosen = {"I": "yes", "v": "0", "c": "import sys; print(sys.flags.isolated, sys.argv[1:])", "arg": ["--all", "x y"]}
    args = check_arguments(capability.args_schema, coerce_arguments(capability.args_schema, chosen))
    words = render_command(
        capability, binary=sys.executable, base_args=(), task_title="", args=args, prompt_additions=""
    )

    answer = await ask(words[0], words[1:])

    assert answer.output == "1 ['--all', 'x y']\n"


async def test_a_program_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(RunnerError, match="is not on the PATH"):
        await scan_help("no-such-program", environ=os.environ | {"PATH": str(tmp_path)})
