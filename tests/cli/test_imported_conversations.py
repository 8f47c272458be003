"""What agents said and did without agentmon, imported, listed and searched from the command line."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest

from tests.usage.histories import SAMPLES

if TYPE_CHECKING:
    from tests.cli.command_lines import CommandLine


@pytest.fixture
def told(cli: CommandLine) -> CommandLine:
    """A home whose agents have had conversations."""
    for name in ("claude", "codex", "gemini"):
        shutil.copytree(SAMPLES / "captured" / name, cli.folder / f".{name}", dirs_exist_ok=True)
    return cli


@pytest.mark.proof
def test_conversations_are_imported_listed_and_searched(told: CommandLine) -> None:
    before = told("sessions")
    told("settings", "history.import_messages", "false")
    without = told("sessions", "import", "--json").document()
    unfound = told("sessions", "--search", "subagent", "--json").document()

    told("settings", "history.import_messages", "true")
    imported = told("sessions", "import", "--json").document()
    again = told("sessions", "import").stdout
    listed = told("sessions", "--json").document()
    found = told("sessions", "--search", "starting suba", "--json").document()
    shown = told("sessions", "search", "subagent").stdout

    assert "`agentmon sessions import`" in before.stderr
    assert (without["files"], without["messages"], without["operations"], unfound) == (10, 0, 6, [])
    assert (imported["files"], imported["messages"], imported["operations"]) == (10, 46, 6)
    assert "0 files had something new" in again
    assert {one["session"]["initial_prompt"] for one in listed} >= {"USEAGENT please", "fork turn"}
    assert [one["match"] for one in found] == ["Starting a subagent."]
    assert "Starting a subagent." in shown
    assert "no conversation has these words" in told("sessions", "--search", 'giraffe" OR (').stderr


def test_a_conversation_of_elsewhere_names_the_id_that_its_agent_knows(told: CommandLine) -> None:
    told("sessions", "import")
    listed = told("sessions", "--json").document()
    session = next(one["session"] for one in listed if one["session"]["session_ref"])

    refused = told("sessions", "resume", session["id"], "go on")

    assert refused.code == 2
    assert session["session_ref"] in refused.stderr
