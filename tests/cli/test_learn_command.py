from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.cli.stored_rows import change_rows

if TYPE_CHECKING:
    from tests.cli.command_lines import CommandLine


@pytest.fixture
def brewer(cli: CommandLine) -> CommandLine:
    """A program on the PATH that an agent stands for."""
    program = cli.folder / "bin/brewer"
    if not program.exists():
        program.parent.mkdir()
        options = "options:\n  -v, --verbose  say more\n  --depth N      how deep\n"
        program.write_text(f"#!/bin/sh\ncat <<'EOF'\nusage: brewer [options]\n\n{options}EOF\n")
        program.chmod(0o755)
        cli("agents")
        change_rows(cli, "UPDATE agents SET slug = 'brewer', binary_path = ? WHERE slug = 'sh'", str(program))
    change_rows(cli, "DELETE FROM agent_capabilities WHERE agent_id = (SELECT id FROM agents WHERE slug = 'brewer')")
    return cli


def test_what_is_learned_is_shown_and_stored_when_it_is_accepted(brewer: CommandLine) -> None:
    shown = brewer("agents", "learn", "brewer")
    nothing = brewer("agents", "list", "--json").document()
    stored = brewer("agents", "learn", "brewer", "--accept", "--json").document()
    again = brewer("agents", "learn", "brewer", "--from", "help")
    audit = brewer("audit").stdout

    assert [line.split()[:4] for line in shown.stdout.splitlines()] == [
        ["KEY", "DANGER", "ARGUMENTS", "FROM"],
        ["+", "run", "2", "help"],
    ]
    assert shown.stderr == "--accept stores them; --only KEY chooses\n"
    assert next(agent for agent in nothing if agent["slug"] == "brewer")["capabilities"] == []
    assert stored["is_stored"]
    (proposal,) = stored["proposals"]
    assert proposal["argument_sources"] == {"verbose": ["scan_help"], "depth": ["scan_help"]}
    assert again.stdout.splitlines()[1].startswith("=  run")
    assert (again.code, again.stderr) == (0, "")
    assert audit.splitlines()[0].endswith("took over what was learned of brewer")


def test_what_cannot_be_learned_says_the_next_step(brewer: CommandLine) -> None:
    source = brewer("agents", "learn", "brewer", "--from", "help,telepathy")
    key = brewer("agents", "learn", "brewer", "--only", "brew")
    none = brewer("agents", "learn", "brewer", "--from", "man")
    unseen = brewer("agents", "learn", "brewer", "--from", "llm", "--accept")

    assert (source.code, key.code, none.code, unseen.code) == (2, 2, 1, 2)
    assert "'telepathy' is no source" in source.stderr
    assert "proposed are: run" in key.stderr
    assert none.stderr.splitlines() == [
        "note: there is no manual page of brewer with options in it",
        "nothing was learned of brewer",
    ]
    assert "stored only after you have seen it" in unseen.stderr
