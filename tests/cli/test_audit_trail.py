from __future__ import annotations

import json
import signal
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from tests.cli.command_lines import CommandLine


def test_the_whole_trail_names_tasks_and_what_belongs_to_none(cli: CommandLine) -> None:
    number = cli.add("in the trail")
    cli("settings", "worker.max_running", "3")

    lines = cli("audit").stdout.splitlines()
    document = cli("audit", "--json").document()

    assert lines[-2].split()[2:] == [f"#{number}", "You", "made", "the", "task"]
    assert lines[-1].split()[2:5] == ["You", "set", "worker.max_running"]
    assert [entry["task_number"] for entry in document[-2:]] == [int(number), None]
    assert [entry["event_type"] for entry in document[-2:]] == ["task_created", "setting_changed"]


@pytest.mark.proof
def test_what_an_agent_does_on_the_command_line_is_the_agents(cli: CommandLine) -> None:
    number = cli.add("of a person", "--command", "true")
    cli("run", number, "--wait")
    execution = cli("executions", "--json").document()[0]["id"]
    inside = {"AGENTMON_EXECUTION_ID": execution}
    before = len(cli("audit", "--all", "--json").document())
    second, third = int(number) + 1, int(number) + 2

    done = [
        cli(*line.split(), environ=inside)
        for line in (
            "task add second --command true",
            "add third",
            f"task edit {number} --priority 1",
            f"task after {second} {number}",
            f"task move {second} in_progress",
            f"run {third} --command true",
            f"stop {third}",
            f"task delete {second}",
            f"task restore {second}",
        )
    ]
    said = [
        entry for entry in cli("audit", "--all", "--json").document()[before:] if entry["actor"]["type"] != "system"
    ]

    assert all(one.code == 0 for one in done[:5] + done[7:]), [one.stderr for one in done]
    assert cli("pause", environ=inside).code == 1
    assert {(entry["actor"]["type"], entry["actor"]["id"]) for entry in said} == {("agent", execution)}
    assert {entry["event_type"] for entry in said} >= {
        *("task_created", "task_edited", "task_moved", "task_deleted", "task_restored"),
        "dependency_added",
    }


@pytest.mark.proof
def test_the_zone_is_stated_once_and_times_are_read_in_it(cli: CommandLine) -> None:
    cli.add("in the trail")

    ended = cli.run_alone("audit", "--limit", "1", environ={"TZ": "Asia/Tokyo"})
    there = cli("audit", "--limit", "1", "--json").document()[0]["created_at"]

    assert ended.stderr == "times are in Asia/Tokyo\n"
    hour = (int(there[11:13]) + 9) % 24
    assert ended.stdout.split()[1].startswith(f"{hour:02d}:")


def test_a_workspace_sees_its_own_trail_and_all_on_request(cli: CommandLine) -> None:
    folder = cli.folder / "elsewhere"
    folder.mkdir()
    cli.add("here")
    cli("task", "add", "elsewhere", "-C", str(folder))

    own = cli("audit", "-C", str(folder), "--json").document()
    every = cli("audit", "-C", str(folder), "--all", "--json").document()

    assert [entry["task_number"] for entry in own if entry["task_number"] is not None] == [1]
    assert len(every) > len(own)


def test_the_trail_is_cut_to_the_newest_and_to_what_came_since(cli: CommandLine) -> None:
    numbers = [cli.add(f"task {place}") for place in range(3)]

    newest = cli("audit", "--limit", "2", "--json").document()
    recent = cli("audit", "--since", "1h", "--json").document()
    nothing = cli("audit", "--since", "0s")

    assert [str(entry["task_number"]) for entry in newest] == numbers[1:]
    assert len(recent) >= 3
    assert (nothing.code, nothing.stdout) == (0, "")


@pytest.mark.parametrize("words", [(), ("TASK",)])
def test_new_lines_are_followed_until_they_are_interrupted(cli: CommandLine, words: tuple[str, ...]) -> None:
    number = cli.add("followed")
    following = cli.start("audit", *(number for _ in words), "-f", "--json", "--since", "1h")

    def next_of(event_type: str) -> dict[str, Any]:
        assert following.stdout is not None
        while True:
            entry: dict[str, Any] = json.loads(following.stdout.readline())
            if entry["event_type"] == event_type and entry.get("task_number", int(number)) == int(number):
                return entry

    next_of("task_created")
    cli("task", "move", number, "done")
    line = next_of("task_moved")
    following.send_signal(signal.SIGINT)
    following.communicate(timeout=40)

    assert line["payload"]["to"] == "done"
    assert ("task_number" in line) is not bool(words)
    assert following.returncode == 130


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("audit", "99"), "there is no task #99"),
        (("audit", "1", "--all"), "exclude each other"),
        (("audit", "--since", "once"), "not understood as a past moment"),
        (("audit", "--since", "2999-01-01"), "is in the future"),
        (("audit", "--limit", "0"), "--limit"),
    ],
)
def test_wrong_words_about_the_trail_are_told(cli: CommandLine, words: tuple[str, ...], sentence: str) -> None:
    ended = cli(*words)

    assert (ended.code, ended.stdout) == (2, "")
    assert sentence in ended.stderr
