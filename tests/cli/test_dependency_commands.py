from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.waiting import wait_for

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


@pytest.mark.proof
def test_a_run_behind_a_cancelled_task_is_in_the_inbox_with_the_ways_out(cli: CommandLine) -> None:
    first, second = cli.add("first"), cli.add("second")
    third = cli.add("third", "--command", "true", "--after", first, "--after", second)
    cli("pause")
    cli("run", third, "--when-ready")
    cli("task", "move", first, "cancelled")

    listed = cli("inbox")
    (document,) = cli("inbox", "--json").document()
    (again,) = cli("inbox", "--json").document()
    shown = cli("task", "show", third)
    awaited = cli("task", "show", third, "--json").document()["dependencies"]
    board = cli("board").stdout
    dropped = cli("task", "after", third, "--remove", first, "--json")
    after_drop = cli("inbox", "--json").document()
    cli("task", "delete", second)
    (asks_anew,) = cli("inbox", "--json").document()
    started = cli("run", third, "--anyway", "--json")
    last = cli("inbox", "--json").document()
    stopped = cli("stop", third, "--json")
    cli("resume")

    note = f"waits for #{first} (cancelled)"
    assert note in listed.stdout
    for way in (f"run {third} --anyway", f"task after {third} --remove", f"stop {third}"):
        assert way in listed.stdout
    assert document == again
    assert (document["approval"], document["execution"]["activity_note"]) == (None, note)
    assert document["execution"]["state"] == "needs you"
    assert f"◆ needs you, starts after #{first} (cancelled), #{second}" in shown.stdout
    assert [one["awaited_state"] for one in awaited] == ["cancelled", ""]
    assert note in board
    assert [str(one["number"]) for one in dropped.document()["waits_for"]] == [second]
    assert (after_drop, last) == ([], [])
    assert asks_anew["execution"]["activity_note"] == f"waits for #{second} (deleted)"
    assert started.document()["id"] == document["execution"]["id"]
    assert started.document()["state"] == "queued"
    assert stopped.code == 0


def test_a_task_that_waits_is_run_anyway(cli: CommandLine) -> None:
    first = cli.add("first")
    second = cli.add("second", "--command", "true", "--after", first)

    refused = cli("run", second)
    both = cli("run", second, "--anyway", "--when-ready")
    ran = cli("run", second, "--anyway", "--wait", "--json")

    assert refused.code == 1
    assert f"run {second} --anyway" in refused.stderr
    assert both.code == 2
    assert (ran.code, ran.document()["state"]) == (0, "done")
    assert cli("task", "after", second, "--json").document()["waits_for"] == []


@pytest.mark.parametrize("words", ["task edit {} --not-after {}", "task after {} --remove {}"])
def test_a_dependency_that_is_taken_away_has_a_worker_start_what_waited(cli: CommandLine, words: str) -> None:
    first = cli.add("first")
    second = cli.add("second", "--command", "true", "--after", first)
    cli("run", second, "--when-ready")
    cli("worker", "--stop")

    changed = cli(*words.format(second, first).split())
    is_running = cli("worker", "--status", "--json").document()["is_running"]
    assert (changed.code, is_running) == (0, True)
    wait_for(lambda: cli("task", "show", second, "--json").document()["status"] == "done")


def test_a_task_of_another_workspace_cannot_be_waited_for(cli: CommandLine) -> None:
    here = cli.add("here")

    refused = cli("task", "after", here, "elsewhere#1")

    assert refused.code == 2
    assert cli("task", "after", here, "--json").document()["waits_for"] == []


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
