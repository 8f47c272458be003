from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.cli.command_lines import CommandLine


def test_a_schedule_is_stated_with_its_zone_and_its_next_times(cli: CommandLine) -> None:
    options = ("--command", "true", "--schedule", "0 7 * * *", "--zone", "Europe/Berlin")

    added = cli("task", "add", "every morning", *options)
    number = added.stdout.split()[0].removeprefix("#")
    document = cli("task", "show", number, "--json").document()
    shown = cli("task", "show", number).stdout

    assert "runs by itself at 0 7 * * * in Europe/Berlin, next " in added.stderr
    assert document["schedule"] == {"cron": "0 7 * * *", "zone": "Europe/Berlin"}
    assert document["next_times"][0] == document["next_run_at"]
    assert len(document["next_times"]) == 3
    schedule = next(line for line in shown.splitlines() if "schedule:" in line)
    assert schedule.count("07:00") == 3


def test_a_schedule_without_a_zone_is_read_in_that_of_the_machine(cli: CommandLine) -> None:
    options = ("--command", "true", "--schedule", "@daily", "--json")

    added = cli("task", "add", "nightly", *options, environ={"TZ": "Asia/Tokyo"}).document()

    assert added["schedule"] == {"cron": "@daily", "zone": "Asia/Tokyo"}


def test_a_schedule_changes_and_goes(cli: CommandLine) -> None:
    number = cli.add("scheduled", "--command", "true", "--schedule", "0 7 * * *", "--zone", "Europe/Berlin")

    later = cli("task", "edit", number, "--schedule", "0 8 * * *", "--json").document()
    moved = cli("task", "edit", number, "--zone", "UTC", "--json").document()
    kept = cli("task", "edit", number, "--priority", "1", "--json").document()
    gone = cli("task", "edit", number, "--schedule", "", "--json").document()

    assert later["schedule"] == {"cron": "0 8 * * *", "zone": "Europe/Berlin"}
    assert moved["schedule"] == kept["schedule"] == {"cron": "0 8 * * *", "zone": "UTC"}
    assert gone["schedule"] is None
    assert gone["next_run_at"] is None


def test_a_task_tells_its_parent_and_how_far_its_parts_are(cli: CommandLine) -> None:
    parent = cli.add("whole")
    parts = [cli.add(f"part {place}", "--parent", f"#{parent}") for place in range(3)]
    cli("task", "move", parts[0], "done")

    whole = cli("task", "show", parent)
    part = cli("task", "show", parts[1]).stdout
    document = cli("task", "show", parent, "--json").document()

    assert "subtasks, 1 of 3 done:" in whole.stdout
    assert f"    #{parts[0]} Done: part 0" in whole.stdout
    assert f"parent:    #{parent} whole" in part
    assert [str(subtask["number"]) for subtask in document["subtasks"]] == parts
    assert "1 of 3 done" in cli("board").stdout


def test_a_parent_goes_by_an_empty_one(cli: CommandLine) -> None:
    parent = cli.add("whole")
    number = cli.add("part", "--parent", parent)

    kept = cli("task", "edit", number, "--title", "still a part", "--json").document()
    gone = cli("task", "edit", number, "--parent", "", "--json").document()

    assert kept["parent_task_id"] is not None
    assert gone["parent_task_id"] is None
    assert gone["title"] == "still a part"


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (("--schedule", "7 o'clock"), "has 2 fields"),
        (("--schedule", "0 25 * * *"), "cannot be read"),
        (("--schedule", "0 7 * * *", "--zone", "Europe/Berln"), "did you mean Europe/Berlin"),
        (("--zone", "UTC"), "--zone needs a schedule"),
        (("--schedule", "", "--zone", "UTC"), "--zone needs a schedule"),
        (("--parent", "99"), "there is no task #99"),
        (("--parent", "whole"), "is not the number of a task"),
    ],
)
def test_a_wrong_schedule_or_parent_is_told(cli: CommandLine, options: tuple[str, ...], sentence: str) -> None:
    ended = cli("task", "add", "x", "--command", "true", *options)

    assert (ended.code, ended.stdout) == (2, "")
    assert sentence in ended.stderr


def test_a_part_cannot_be_the_parent_of_its_whole(cli: CommandLine) -> None:
    whole = cli.add("whole")
    part = cli.add("part", "--parent", whole)

    ended = cli("task", "edit", whole, "--parent", part)

    assert ended.code == 1
    assert f"#{part} cannot be the parent" in ended.stderr
