"""Typing into a run: by ``send``, and by a person who is attached; the record says how many keys it was."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest

from tests.terminals import terminal
from tests.waiting import wait_for

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.cli.command_lines import CommandLine

pytestmark = pytest.mark.proof

_ASKS: Final = "sh -c 'echo ready; while read -r line; do echo got $line; done'"
_HIDES: Final = "sh -c 'stty -echo; echo ready; read -r line; stty echo; echo thanks; sleep 600'"
_ARROWS: Final = (
    'python3 -c \'import os, tty; tty.setraw(0); os.write(1, b"\\x1b[?1hready");'
    " print(os.read(0, 99).hex(), flush=True)'"
)


@pytest.fixture
def ask(cli: CommandLine) -> Iterator[str]:
    number = started(cli, _ASKS)
    yield number
    cli("stop", number, "--kill")


def started(cli: CommandLine, command: str) -> str:
    number = cli.add("asks", "--command", command, "--run")
    wait_for(lambda: "ready" in cli("log", number).stdout)
    return number


def entries(cli: CommandLine, number: str, *kinds: str) -> list[dict[str, Any]]:
    told = [json.loads(line) for line in cli("events", number, "--json").stdout.splitlines()]
    return [one["payload"] for one in told if one["payload"].get("entry") in kinds]


def test_a_text_and_keys_reach_the_program_and_are_counted(cli: CommandLine, ask: str) -> None:
    sent = cli("send", ask, "hello there", "--key", "enter", "--json").document()
    wait_for(lambda: "got hello there" in cli("log", ask).stdout)

    (typed,) = wait_for(lambda: entries(cli, ask, "typed"))
    assert (typed["keys"], typed["text"], typed["command_id"]) == (12, None, sent["command_id"])
    trail = cli("audit", ask, "--json").document()
    assert [one["payload"]["command_id"] for one in trail if one["event_type"] == "message_sent"] == [
        sent["command_id"]
    ]

    assert cli("send", ask, "--key", "ctrl+c").code == 0
    wait_for(lambda: cli("task", "show", ask, "--json").document()["status"] == "blocked")
    refused = cli("send", ask, "x")
    assert (refused.code, f"agentmon run {ask}" in refused.stderr) == (1, True)


def test_what_is_sent_is_in_no_file(cli: CommandLine) -> None:
    number = started(cli, _HIDES)
    assert cli("send", number, "-", "--key", "enter", standard_input="hunter-2-horse\n").code == 0
    wait_for(lambda: "thanks" in cli("log", number).stdout)
    (typed,) = wait_for(lambda: entries(cli, number, "typed"))
    cli("stop", number, "--kill")

    assert typed["keys"] == len("hunter-2-horse") + 1
    assert [file for file in _files(cli.home) if b"hunter-2-horse" in _content(file)] == []


def test_by_setting_the_text_is_recorded_but_not_what_the_program_hides(cli: CommandLine) -> None:
    assert cli("settings", "worker.record_typed_text", "true").code == 0
    try:
        shown, hidden = started(cli, _ASKS), started(cli, _HIDES)
        for number in (shown, hidden):
            cli("send", number, "hunter-3-horse", "--key", "enter")
        assert wait_for(lambda: entries(cli, shown, "typed"))[0]["text"] == "hunter-3-horse<enter>"
        assert wait_for(lambda: entries(cli, hidden, "typed"))[0]["text"] == ""
    finally:
        cli("settings", "worker.record_typed_text", "--reset")
        cli("stop", shown, hidden, "--kill")


def test_arrows_come_as_the_program_asked_for_them(cli: CommandLine) -> None:
    number = started(cli, _ARROWS)

    cli("send", number, "--key", "up")

    wait_for(lambda: "1b4f41" in cli("log", number).stdout)


def test_an_agent_may_not_type_not_even_into_its_own_run(cli: CommandLine, ask: str) -> None:
    execution = cli("executions", "--task", ask, "--json").document()[0]["id"]

    refused = cli("send", ask, "y", "--key", "enter", environ={"AGENTMON_EXECUTION_ID": execution})

    assert (refused.code, "an agent may not type" in refused.stderr) == (1, True)
    assert entries(cli, ask, "typed") == []


def test_who_attaches_leaves_and_types_is_in_the_record(cli: CommandLine, ask: str) -> None:
    environ = {**cli.environ, "PYTHONPATH": str(Path.cwd())}
    attach = [sys.executable, "-P", "-m", "agentmon", "attach", ask, "-C", str(cli.workspace)]
    with terminal(attach, environ) as person:
        person.read_until(lambda shown: b"ready" in shown, "the run")
        wait_for(lambda: entries(cli, ask, "attached"))
        person.send(b"from here\x1b[A\x7f\x7f\x7f\r")
        wait_for(lambda: "got from here" in cli("log", ask).stdout)
        person.send(b"\x11")
        assert person.wait() == 0
    kinds = wait_for(lambda: _when_left(cli, ask))

    assert [one["entry"] for one in kinds] == ["attached", "typed", "detached"]
    assert (kinds[0]["is_read_only"], kinds[0]["client"]) == (False, kinds[2]["client"])
    assert (kinds[1]["keys"], kinds[1]["text"], kinds[1]["command_id"]) == (14, None, None)

    with terminal([*attach, "--read-only"], environ) as watcher:
        watcher.read_until(lambda shown: b"read only" in shown, "the run")
        wait_for(lambda: any(one["is_read_only"] for one in entries(cli, ask, "attached")))


def _when_left(cli: CommandLine, number: str) -> list[dict[str, Any]]:
    found = entries(cli, number, "attached", "typed", "detached")
    return found if found and found[-1]["entry"] == "detached" else []


def _content(file: Path) -> bytes:
    """Return what is in a file; nothing for one that went away, as some do when a run ends."""
    try:
        return file.read_bytes()
    except FileNotFoundError:
        return b""


def _files(folder: Path) -> list[Path]:
    return [file for file in folder.rglob("*") if file.is_file()]


@pytest.mark.parametrize("words", [(), ("--key", "no-such-key"), ("x" * 4000,)])
def test_what_cannot_be_typed_is_refused(cli: CommandLine, ask: str, words: tuple[str, ...]) -> None:
    assert cli("send", ask, *words).code == 2
