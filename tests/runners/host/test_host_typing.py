"""What is typed: by a person in the pane of a conversation, and by a client into a program's own screen."""

from __future__ import annotations

import json
import os
import sys
import termios
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

from agentmon.runners.host.pane_typing import PaneTyping
from tests.runners.host.conversations import Conversation
from tests.waiting import wait_for

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.runners.host.conftest import PrepareRun
    from tests.runners.host.host_runs import Document, HostRun
    from tests.runners.host.scripted_agent import Act

# Tells in hexadecimal what it got up to the letter Q, in raw mode as the agents' own screens.
_SCREEN = """
import os, sys, tty
tty.setraw(0)
os.write(1, sys.argv[1].encode().decode("unicode_escape").encode() + b"ready")
got = b""
while not got.endswith(b"Q"):
    got += os.read(0, 65536)
print(f"{len(got)} {got[:200].hex()}", end=".", flush=True)
"""


class Pane:
    """A terminal in front of a host: what is typed there and what it has shown."""

    def __init__(self, outer: int) -> None:
        self._outer = outer
        self.shown = bytearray()

    def type(self, keys: bytes) -> None:
        os.write(self._outer, keys)

    def read(self) -> None:
        while True:
            try:
                piece = os.read(self._outer, 65536)
            except OSError:
                return
            self.shown += piece


@contextmanager
def _pane_of(run: HostRun) -> Iterator[Pane]:
    outer, inner = os.openpty()
    termios.tcsetwinsize(inner, (24, 80))
    run.start(stdin=inner, stdout=inner)
    os.close(inner)
    pane = Pane(outer)
    reader = threading.Thread(target=pane.read)
    reader.start()
    try:
        yield pane
    finally:
        run.end()
        reader.join()
        os.close(outer)


def _type(run: HostRun, command_id: str, text: str, *, is_paste: bool = False) -> None:
    line = json.dumps({"id": command_id, "type": "type", "text": text, "is_paste": is_paste})
    with (run.folder / "control.jsonl").open("a") as file:
        file.write(line + "\n")
    with (run.folder / "wake").open("wb", buffering=0) as wake:
        wake.write(b"!")


def _told(run: HostRun) -> list[Document]:
    return [entry["event"] for entry in run.entries("agent_event")]


def test_a_line_typed_in_the_pane_is_a_message(prepare_run: PrepareRun) -> None:
    talk = Conversation(prepare_run, [["prompt"], ["stream", "well"], ["prompt"], ["result"], ["wait_for_end"]])
    with _pane_of(talk.run) as pane:
        talk.wait_for("message", 2)
        pane.type("grün\x1b[Aex\x7f".encode())
        wait_for(lambda: "> grüne".encode() in pane.shown, "the line")
        pane.type(b"\r")

        assert talk.end()["agent_outcome"] == "completed"

    assert talk.events("message")[-1]["text"] == "grüne"
    # Nobody but the pane knows of this command.
    assert talk.events("command") == []
    assert b"type a line here" in pane.shown
    assert "› grüne\r\n".encode() in pane.shown.replace(b"\x1b[1m\x1b[36m", b"").replace(b"\x1b[0m", b"")


def test_ctrl_c_in_the_pane_interrupts(prepare_run: PrepareRun) -> None:
    talk = Conversation(prepare_run, [["prompt"], ["until_interrupted"], ["wait_for_end"]])
    with _pane_of(talk.run) as pane:
        talk.wait_for("session")
        pane.type(b"\x03")

        assert talk.wait_for("turn_ended")["outcome"] == "interrupted"


def test_what_is_said_while_somebody_types_does_not_tear_the_line(prepare_run: PrepareRun) -> None:
    acts: list[Act] = [
        ["prompt"],
        ["stream", "one"],
        ["prompt"],
        ["stream", "two ", "three"],
        ["result"],
        ["wait_for_end"],
    ]
    talk = Conversation(prepare_run, acts)
    with _pane_of(talk.run) as pane:
        talk.wait_for("message", 2)
        pane.type(b"draft")
        wait_for(lambda: b"> draft" in pane.shown, "the line")
        talk.command("message", "c1", text="go")

        talk.end()

    assert b"\r\x1b[Ktwo three\r\n" in pane.shown.replace(b"\x1b[0m", b"")
    assert bytes(pane.shown).count(b"> draft") > 1


@pytest.mark.parametrize(
    ("keys", "line"),
    [
        (b"a\x7f\x7fb", "b"),
        (b"abc\x15d", "d"),
        ("漢字".encode(), "漢字"),
        (b"\x1b[1;5Cx\x1bOA", "x"),
        (b"\xff\xfea", "��a"),
        (b"a" * 20_000, "a" * 16_384),
    ],
)
def test_a_line_is_edited_in_the_simplest_ways(keys: bytes, line: str) -> None:
    whole, by_piece = PaneTyping(), PaneTyping()

    assert whole.take(keys + b"\r") == ([line], False)
    messages = [message for key in keys + b"\r" for message in by_piece.take(bytes([key]))[0]]
    assert len(messages) == 1
    if b"\xff" not in keys:
        assert messages == [line]


def test_a_text_is_typed_as_it_is(prepare_run: PrepareRun) -> None:
    run = prepare_run(sys.executable, "-c", _SCREEN, "", mode="tmux").start()
    run.wait_for_output(b"ready")

    _type(run, "c1", "y\x1b[B\rQ")

    assert run.wait_for_end()["exit_code"] == 0
    assert bytes.fromhex(run.output.decode().split()[-1].strip(".")) == b"y\x1b[B\rQ"
    assert [(event["command_id"], event["was_obeyed"]) for event in _told(run)] == [("c1", True)]


@pytest.mark.parametrize(
    ("modes", "expected"),
    [
        ("", b"a\rbevilQ"),
        ("\\x1b[?2004h", b"\x1b[200~a\rbevil\x1b[201~Q"),
        ("\\x1b[?2004h\\x1b[?2004l", b"a\rbevilQ"),
    ],
)
def test_a_paste_is_marked_when_the_program_asks_for_it(prepare_run: PrepareRun, modes: str, expected: bytes) -> None:
    run = prepare_run(sys.executable, "-c", _SCREEN, modes, mode="tmux").start()
    run.wait_for_output(b"ready")

    _type(run, "c1", "a\nb\x1b[20\x1b[201~1~evil", is_paste=True)
    _type(run, "c2", "Q")

    run.wait_for_end()
    assert bytes.fromhex(run.output.decode().split()[-1].strip(".")) == expected
    assert [event["command_id"] for event in _told(run)] == ["c1", "c2"]


def test_a_text_of_any_size_is_typed_whole(prepare_run: PrepareRun) -> None:
    run = prepare_run(sys.executable, "-c", _SCREEN, "", mode="tmux").start()
    run.wait_for_output(b"ready")

    _type(run, "c1", "x" * 2_000_000 + "Q", is_paste=True)

    run.wait_for_end()
    assert run.output.split(b" ")[-2].endswith(b"2000001")


def test_what_a_program_does_not_take_is_told(prepare_run: PrepareRun) -> None:
    run = prepare_run("sh", "-c", "stty raw; echo ready; read x <&3; sleep 1000", mode="tmux").start()
    run.wait_for_output(b"ready")

    _type(run, "c1", "x" * 500_000)
    run.command("stop", command_id="s")

    run.wait_for_end()
    assert [(event["was_obeyed"], event["error"]) for event in _told(run)] == [
        (False, "the program ended before it took all of it")
    ]


def test_a_program_in_its_own_screen_is_ended_when_the_person_says_so(prepare_run: PrepareRun) -> None:
    run = prepare_run("cat", mode="tmux").start()
    run.wait_for_entry("agent_started")

    run.command("message", command_id="c1")
    run.command("finish", command_id="c2")

    ended = run.wait_for_end()
    assert (ended["outcome"], ended["agent_outcome"]) == ("finished", "completed")
    assert [(event["command_id"], event["was_obeyed"]) for event in _told(run)] == [("c1", False), ("c2", True)]
