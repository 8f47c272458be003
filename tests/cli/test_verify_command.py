from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.cli.command_lines import CommandLine


def _verified(cli: CommandLine, check: str, *more: str) -> str:
    """Return the number of a task that has run and was verified."""
    number = cli.add("Mend the door", "--verify", check, "--command", "true", *more)
    cli("run", number, "--wait")
    return number


def test_a_pass_is_told_everywhere(cli: CommandLine) -> None:
    number = _verified(cli, "echo fine; make --version > /dev/null")
    shown = cli("task", "show", number, "--json").document()
    listed = cli("executions", "--task", number, "--json").document()
    board = cli("board", "--json").document()
    log = cli("verify", number, "--log", "--json").document()

    (run,) = listed
    cards = [card for column in board["columns"] for card in column["cards"] if str(card["number"]) == number]
    assert (shown["status"], run["status"]) == ("done", "succeeded")
    assert shown["input_context"]["verify"] == "echo fine; make --version > /dev/null"
    for verdict in (shown["executions"][0]["verification"], run["verification"], cards[0]["verification"]):
        assert verdict["status"] == "passed"
        assert verdict["command"] == shown["input_context"]["verify"]
        assert verdict["text"].startswith(f"✓ {verdict['name']}")
    assert (log["status"], log["exit_code"], log["output"].splitlines()) == ("passed", 0, ["fine"])
    assert run["verification"]["text"] in cli("task", "show", number).stdout
    assert cli("log", number, "--stream", "verification").stdout == "fine\n"


def test_what_does_not_pass_fails_the_run_and_verifying_by_hand_tells_and_moves_nothing(cli: CommandLine) -> None:
    number = _verified(cli, "echo 'two tests failed'; test -e ok")
    failed = cli("task", "show", number, "--json").document()
    again = cli("verify", number)
    (cli.workspace / "ok").touch()
    passed = cli("verify", number, "--json")
    after = cli("task", "show", number, "--json").document()

    assert (failed["status"], failed["executions"][0]["end_reason"]) == ("blocked", "unverified")
    assert (again.code, again.stdout.splitlines()) == (1, ["two tests failed", "✗ tests"])
    assert (passed.code, passed.document()["attempt"], passed.document()["status"]) == (0, 3, "passed")
    assert (after["status"], after["executions"][0]["status"]) == ("blocked", "failed")
    assert after["executions"][0]["verification"]["status"] == "passed"
    assert cli("verify", number, "--log").stdout.splitlines()[0] == "two tests failed"


def test_what_has_nothing_to_pass_says_where_that_is_said(cli: CommandLine) -> None:
    number = cli.add("Paint it", "--command", "true")
    cli("run", number, "--wait")

    nothing, never = cli("verify", number), cli("verify", number, "--log")
    cli("task", "edit", number, "--verify", "exit 0", "--verify-retries", "3")
    edited = cli("task", "show", number, "--json").document()["input_context"]
    cli("task", "edit", number, "--verify", "")
    none = cli("task", "show", number, "--json").document()["input_context"]
    cli("task", "edit", number, "--verify", "inherit")
    inherited = cli("task", "show", number, "--json").document()["input_context"]

    assert (nothing.code, never.code) == (2, 2)
    assert "--verify" in nothing.stderr
    assert (edited["verify"], edited["verify_retries"]) == ("exit 0", 3)
    assert (none["verify"], inherited["verify"]) == ("", None)


def test_an_agent_neither_says_what_its_work_has_to_pass_nor_verifies_it(cli: CommandLine) -> None:
    number = _verified(cli, "true")
    (run,) = cli("executions", "--task", number, "--json").document()
    inside = {"AGENTMON_EXECUTION_ID": run["id"]}
    refused = [
        cli("task", "edit", number, "--verify", "", environ=inside),
        cli("task", "edit", number, "--verify-retries", "0", environ=inside),
        cli("add", "Another verify:true", environ=inside),
        cli("task", "add", "Another", "--verify", "true", environ=inside),
        cli("settings", "workspace.verify", "true", environ=inside),
        cli("settings", "verification.timeout_s", "5", environ=inside),
        cli("verify", number, environ=inside),
    ]
    other = cli("task", "edit", number, "--description", "more", environ=inside)

    assert [one.code == 0 for one in refused] == [False] * len(refused)
    assert other.code == 0, other.stderr
    assert cli("task", "show", number, "--json").document()["input_context"]["verify"] == "true"
