"""What a program's own help tells is shown first, and stored only when the person says so."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from agentmon.domain.agents import Agent
from agentmon.screens.agents.capability_proposals import CapabilityProposals
from agentmon.screens.dialogs.confirm import ConfirmDialog
from agentmon.screens.dialogs.menu_dialog import MenuDialog
from agentmon.widgets.row_table import RowTable
from tests.screen_stage import Stage, screen_text, until
from tests.screens.boards import make_place
from tests.screens.registered import a_coder, a_tool

if TYPE_CHECKING:
    from pathlib import Path

HELP = """#!/bin/sh
if [ "$1" = drop ]; then
cat <<'END'
usage: deploy drop [-h] [--force] TABLE

options:
  -h, --help   show this help message and exit
  --force      do not ask [/]
END
exit 0; fi
cat <<'END'
usage: deploy [-h] [--count NUM] [--dry-run] {plan,drop} ...

positional arguments:
  {plan,drop}
    plan       show what would be done
    drop       drop a table

options:
  -h, --help   show this help message and exit
  --count NUM  how many [default: 3]
  --dry-run    change nothing
END
"""


def keys(dialog: CapabilityProposals) -> list[str]:
    return [row.key for table in dialog.query(RowTable) for row in table.rows]


@pytest.mark.proof
async def test_what_is_learned_is_shown_marked_looked_into_and_stored(tmp_path: Path) -> None:
    program = tmp_path / "deploy"
    program.write_text(HELP)
    program.chmod(0o755)
    stage = Stage()
    async with make_place(tmp_path).services() as (services, _workspace), stage.run_test(size=(100, 30)) as pilot:
        await services.agents.add(a_coder())
        agent = await services.agents.add(
            replace(a_tool(), slug="deploy", binary_path=str(program), base_args=(), capabilities=())
        )
        dialog = CapabilityProposals(services, agent)
        stage.show(dialog)  # type: ignore[arg-type] # a screen ends with its own type
        await until(pilot, lambda: {"run", "plan", "drop"} <= set(keys(dialog)))
        assert "help" in screen_text(stage)

        await pilot.press("g", *["j"] * keys(dialog).index("drop"), "l")
        await until(pilot, lambda: "--force" in screen_text(stage) and "reading" not in screen_text(stage))
        assert keys(dialog)[dialog.query_one(RowTable).cursor_row] == "drop"
        assert "run" in keys(dialog)
        await pilot.press("m")
        await until(pilot, lambda: "mcp" in screen_text(stage).lower() and not dialog._is_scanning)
        await pilot.press("A")
        await until(pilot, lambda: isinstance(stage.screen, MenuDialog))
        assert "coder" in screen_text(stage)
        await pilot.press("escape")
        await until(pilot, lambda: stage.screen is dialog)
        assert (await services.agents.by_slug("deploy")).capabilities == ()

        await pilot.press("a")
        await until(pilot, lambda: f"{len(keys(dialog))} marked" in screen_text(stage))
        await pilot.press("a")
        await until(pilot, lambda: " 0 marked" in screen_text(stage))
        await pilot.press("g", "space", "escape")
        await until(pilot, lambda: isinstance(stage.screen, ConfirmDialog))
        await pilot.press("n")
        await until(pilot, lambda: stage.screen is dialog)
        await pilot.press("enter")
        await until(pilot, lambda: bool(stage.ended))

        stored = stage.ended[-1]
        assert isinstance(stored, Agent)
        assert [one.key for one in stored.capabilities] == ["run"]
        assert stage.failures == []


async def test_a_program_that_tells_nothing_says_what_else_can_be_asked(tmp_path: Path) -> None:
    program = tmp_path / "silent"
    program.write_text("#!/bin/sh\nexit 1\n")
    program.chmod(0o755)
    stage = Stage()
    async with make_place(tmp_path).services() as (services, _workspace), stage.run_test(size=(80, 24)) as pilot:
        agent = await services.agents.add(replace(a_tool(), slug="silent", binary_path=str(program), capabilities=()))
        dialog = CapabilityProposals(services, agent)
        stage.show(dialog)  # type: ignore[arg-type] # a screen ends with its own type
        await until(pilot, lambda: "Nothing was learned. m asks it" in screen_text(stage))
        await pilot.press("space", "enter", "escape")
        await until(pilot, lambda: stage.ended == [None])
        assert stage.failures == []
