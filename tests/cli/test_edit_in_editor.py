from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.cli.command_lines import CommandLine


def test_a_description_is_written_in_the_own_editor(cli: CommandLine) -> None:
    editor = cli.folder / "editor"
    editor.write_text('#!/bin/sh\nprintf "## New\\n\\n[/] text\\n" > "$2"\nexit $FAILS\n')
    editor.chmod(0o755)
    number = cli.add("Fix it", "--description", "old")

    def edit(fails: str) -> str:
        return cli(
            "task", "edit", number, "--editor", environ={"EDITOR": f"{editor} -w", "VISUAL": "", "FAILS": fails}
        ).stderr

    refused = edit("7")
    assert "exit code 7; nothing was stored" in refused
    assert Path(refused.split("is in ")[1].strip()).read_text() == "## New\n\n[/] text\n"
    assert cli("task", "show", number, "--json").document()["description"] == "old"

    assert not edit("0")
    assert cli("task", "show", number, "--json").document()["description"] == "## New\n\n[/] text"
    assert "no program nowhere" in cli("task", "edit", number, "-e", environ={"VISUAL": "nowhere"}).stderr
