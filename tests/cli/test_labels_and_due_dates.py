from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.cli.command_lines import CommandLine


def test_labels_are_given_changed_shown_and_told_in_the_history(cli: CommandLine) -> None:
    added = cli("task", "add", "Fix the login", "--label", "auth", "--label", "#Web", "--json").document()
    number = str(added["number"])

    edited = cli("task", "edit", number, "--label", "later", "--no-label", "web", "--json").document()

    assert added["labels"] == ["auth", "web"]
    assert edited["labels"] == ["auth", "later"]
    assert "labels:    #auth #later" in cli("task", "show", number).stdout
    assert "#auth #later" in cli("board").stdout
    assert "added #later; took away #web" in cli("task", "history", number).stdout
    (card,) = cli("board", "--json").document()["columns"][0]["cards"]
    assert card["labels"] == ["auth", "later"]


def test_a_wrong_label_changes_nothing(cli: CommandLine) -> None:
    number = cli.add("Fix the login", "--label", "auth")

    for options, words in ((("--label", "two words"), "cannot have"), (("--no-label", "web"), "it has #auth")):
        refused = cli("task", "edit", number, *options)
        assert refused.code == 2
        assert words in refused.stderr
    assert cli("task", "show", number, "--json").document()["labels"] == ["auth"]


def test_a_due_date_is_set_shown_and_taken_away(cli: CommandLine) -> None:
    number = cli.add("Fix the login", "--due", "in 1 day")

    assert "due tomorrow" in cli("board").stdout
    assert "due:" in cli("task", "show", number).stdout
    assert cli("task", "edit", number, "--due", "", "--json").document()["due_at"] is None
    assert "no due date" in cli("task", "edit", number, "--due", "soon").stderr


def test_the_board_is_filtered_by_what_is_typed_or_saved(cli: CommandLine) -> None:
    cli.add("Mend the gate", "--label", "gate")
    cli.add("Write the notes", "--priority", "1")

    def titles(*options: str) -> list[str]:
        page = cli("board", "--json", *options).document()
        return [card["title"] for column in page["columns"] for card in column["cards"]]

    assert titles("--filter", "mnd #gate") == ["Mend the gate"]
    assert titles("--filter", "!1 notes", "--save", "urgent") == ["Write the notes"]
    assert titles("--saved", "urgent") == ["Write the notes"]
    assert titles("--saved", "urgent", "--filter", "#gate") == []
    assert "No task fits the filter" in cli("board", "--saved", "urgent", "--filter", "#gate").stdout
    assert cli("board", "--saved", "other").code == 2
    assert len(titles("--forget", "urgent")) >= 2


def test_the_board_is_sorted_and_its_limits_are_told(cli: CommandLine) -> None:
    cli.add("Last of all", "--priority", "5", "--label", "sorted")
    cli.add("First of all", "--priority", "1", "--label", "sorted")
    cli("settings", "board.limit_todo", "1")

    page = cli("board", "--sort", "priority", "--filter", "#sorted", "--json").document()

    assert page["sort"] == "priority"
    assert [card["title"] for card in page["columns"][0]["cards"]] == ["First of all", "Last of all"]
    assert "over the limit" in cli("board").stdout
    cli("settings", "board.limit_todo", "0")
