from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli.command_lines import CommandLine


def test_workspaces_are_listed_and_their_cards_shown_together(cli: CommandLine, tmp_path: Path) -> None:
    other = tmp_path / "other-place"
    other.mkdir()
    number = cli.add("Here at home")
    elsewhere = cli("task", "add", "Over there", "-C", str(other), "--json").document()["number"]

    listed = {one["short_name"]: one for one in cli("workspaces", "--json").document()}

    assert listed["other-place"]["open_tasks"] == 1
    assert listed["other-place"]["workspace"]["root_path"] == str(other)
    assert "other-place" in cli("workspaces").stdout
    page = cli("board", "--all", "--json").document()
    names = {card["title"]: (card["workspace_name"], card["number"]) for card in page["columns"][0]["cards"]}
    assert names["Over there"] == ("other-place", elsewhere)
    assert names["Here at home"][1] == int(number)
    assert page["workspaces"]["other-place"] == str(other)
    text = cli("board", "--all").stdout
    assert text.startswith("All workspaces")
    assert f"other-place#{elsewhere} P3 Over there" in text
