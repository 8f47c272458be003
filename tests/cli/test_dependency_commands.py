from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.cli.command_lines import CommandLine


def test_what_a_task_waits_for_is_added_listed_and_removed(cli: CommandLine) -> None:
    first, second, third = (cli.add(title) for title in ("first", "second", "third"))

    added = cli("task", "after", third, first, f"#{second}", "--json").document()
    listed = cli("task", "after", third).stdout
    other_way = cli("task", "after", first).stdout
    removed = cli("task", "after", third, "--remove", first, "--json").document()

    assert [str(task["number"]) for task in added["waits_for"]] == [first, second]
    assert (
        listed == f"#{third} ◇ Blocked  third\n  waits for:\n    #{first} ○ Todo  first\n    #{second} ○ Todo  second\n"
    )
    assert other_way == f"#{first} ○ Todo  first\n  needed by:\n    #{third} ◇ Blocked  third\n"
    assert [str(task["number"]) for task in removed["waits_for"]] == [second]


def test_a_ring_is_refused_and_shown(cli: CommandLine) -> None:
    first, second, third = (cli.add(title) for title in ("first", "second", "third"))
    cli("task", "after", second, first)
    cli("task", "after", third, second)

    refused = cli("task", "after", first, third)

    assert refused.code == 1
    assert f"#{first} → #{third} → #{second} → #{first}" in refused.stderr


def test_the_graph_is_a_tree_in_both_directions(cli: CommandLine) -> None:
    base, left, right, top, beyond = (cli.add(title) for title in ("base", "left", "right", "top", "beyond"))
    for number, others in ((left, [base]), (right, [base]), (top, [left, right]), (beyond, [top])):
        cli("task", "after", number, *others)

    shown = cli("task", "graph", top).stdout
    document = cli("task", "graph", top, "--json").document()

    assert shown.splitlines() == [
        f"#{top} ◇ Blocked  top",
        "",
        "waits for:",
        f"├─ #{left} ◇ Blocked  left",
        f"│  └─ #{base} ○ Todo  base",
        f"└─ #{right} ◇ Blocked  right",
        f"   └─ #{base} ○ Todo  base (above)",
        "",
        "needed by:",
        f"└─ #{beyond} ◇ Blocked  beyond",
    ]
    assert [str(node["number"]) for node in document["nodes"]] == [base, left, right, top, beyond]
    assert {"number": int(top), "waits_for": int(left)} in document["edges"]
    assert len(document["edges"]) == 5


def test_the_graph_shows_what_waits_in_the_queue(cli: CommandLine) -> None:
    first = cli.add("first", "--command", "true")
    second = cli.add("second", "--command", "true", "--after", first)
    cli("run", second, "--when-ready")

    shown = cli("task", "graph", second).stdout
    cli("stop", second)

    assert shown.splitlines()[0] == f"#{second} ◌ queued  second"


def test_a_task_alone_says_so(cli: CommandLine) -> None:
    number = cli.add("alone")

    assert "nothing waits for it" in cli("task", "graph", number).stdout
    assert "nothing waits for it" in cli("task", "after", number).stdout


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("after", "1", "99"), "#99"),
        (("after", "99"), "there is no task #99"),
        (("after", "1", "2", "--remove", "2"), "added and removed"),
        (("after", "1", "--remove", "2"), "#1 does not wait for #2"),
        (("graph", "99"), "there is no task #99"),
    ],
)
def test_wrong_words_about_dependencies_are_told(cli: CommandLine, words: tuple[str, ...], sentence: str) -> None:
    cli.add("first")
    cli.add("second")

    ended = cli("task", *words)

    assert (ended.code, ended.stdout) == (2, "")
    assert sentence in ended.stderr
