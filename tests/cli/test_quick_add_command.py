from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.cli.command_lines import CommandLine


def titles(cli: CommandLine) -> list[str]:
    return [task["title"] for task in cli("task", "list", "--json").document()]


def test_one_line_makes_a_task_with_all_that_it_says(cli: CommandLine) -> None:
    first = cli.add("the first")
    (cli.workspace / "my folder").mkdir()

    added = cli(
        "add", f"see #7 on page !1 #auth after:{first} parent:{first} in:'my folder' retry:2 due:+2d", "--json"
    ).document()

    assert added["title"] == "see #7 on page"
    assert (added["priority"], added["labels"], added["status"]) == (1, ["auth"], "blocked")
    assert added["input_context"]["working_dir"] == str(cli.workspace / "my folder")
    assert added["input_context"]["max_retries"] == 2
    assert added["due_at"]
    assert added["parent_task_id"]
    assert cli("add", "a", "second", "one").stdout.endswith(" a second one\n")


def test_a_line_that_makes_no_sense_adds_nothing_and_says_why(cli: CommandLine) -> None:
    before = titles(cli)

    for line, words in (
        ("x @nobody", "there is no program @nobody"),
        ("x @command", "more than a word"),
        ("x after:999", "there is no task #999"),
        ("x in:nowhere", "does not exist"),
        ("!1", "needs a title"),
        ("x !9", "!9: priorities are !1 to !5"),
    ):
        refused = cli("add", line)
        assert (refused.code, refused.stdout) == (2, ""), line
        assert words in refused.stderr
    assert "cannot run" in cli("add", "x", "--run").stderr
    assert titles(cli) == before


def test_lines_that_are_piped_in_are_all_added_or_none(cli: CommandLine) -> None:
    before = titles(cli)

    refused = cli("add", standard_input="one\n\ntwo !7\nthree\nfour @nobody\n")

    assert refused.code == 2
    assert "line 3: !7" in refused.stderr
    assert "line 5: there is no program @nobody" in refused.stderr
    assert titles(cli) == before

    added = cli("add", "-", "--json", standard_input="\ufeffone #a\r\n\r\ntwo\u2028more !2\n").document()

    assert [(task["title"], task["priority"]) for task in added] == [("one", 3), ("two more", 2)]
    assert cli("add", standard_input="").code == 2
