from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from agentmon.runners.screens.signals import is_halted, read_signal
from agentmon.runners.screens.states import ScreenState
from tests.waiting import wait_for

if TYPE_CHECKING:
    from pathlib import Path


def write_session(home: Path, pid: int, **fields: object) -> Path:
    folder = home / ".claude" / "sessions"
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{pid}.json"
    path.write_text(json.dumps({"pid": pid, **fields}))
    return path


@pytest.mark.parametrize(
    ("fields", "state", "note"),
    [
        ({"status": "busy"}, ScreenState.WORKING, ""),
        ({"status": "idle"}, ScreenState.READY, ""),
        ({"status": "waiting", "waitingFor": "permission prompt"}, ScreenState.PERMISSION, "permission prompt"),
        ({"status": "waiting", "waitingFor": "input needed"}, ScreenState.QUESTION, "input needed"),
        ({"status": "shell"}, ScreenState.BACKGROUND, "works in the background: a shell"),
    ],
)
def test_claude_s_session_file_tells_its_state(
    tmp_path: Path, fields: dict[str, object], state: ScreenState, note: str
) -> None:
    path = write_session(tmp_path, 4140, **fields)

    finding = read_signal("claude", {"HOME": str(tmp_path)}, 4140)

    assert finding is not None
    assert (finding.state, finding.note, finding.where) == (state, note, str(path))


@pytest.mark.parametrize("content", ["", "{", "[]", '{"status": 3}', '{"status": "dreaming"}'])
def test_a_session_file_that_says_nothing_clear_says_nothing(tmp_path: Path, content: str) -> None:
    write_session(tmp_path, 4140).write_text(content)

    assert read_signal("claude", {"HOME": str(tmp_path)}, 4140) is None


def test_the_folder_that_claude_was_told_to_use_is_looked_at(tmp_path: Path) -> None:
    (tmp_path / "own" / "sessions").mkdir(parents=True)
    (tmp_path / "own" / "sessions" / "7.json").write_text('{"status": "busy"}')

    assert read_signal("claude", {"HOME": "/nowhere", "CLAUDE_CONFIG_DIR": str(tmp_path / "own")}, 7) is not None
    assert read_signal("claude", {}, 7) is None


def test_an_agent_behind_a_script_is_found_and_a_stranger_is_not(tmp_path: Path) -> None:
    write_session(tmp_path, os.getpid(), status="busy")
    other = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    try:
        assert read_signal("claude", {"HOME": str(tmp_path)}, os.getppid()) is not None
        assert read_signal("claude", {"HOME": str(tmp_path)}, other.pid) is None
    finally:
        other.kill()
        other.communicate()


def test_an_agent_without_a_signal_gives_none(tmp_path: Path) -> None:
    assert read_signal("", {"HOME": str(tmp_path)}, 1) is None


def test_a_halted_process_is_seen() -> None:
    import signal

    program = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    try:
        assert not is_halted(program.pid)
        program.send_signal(signal.SIGSTOP)
        wait_for(lambda: is_halted(program.pid))
    finally:
        program.kill()
        program.communicate()
    assert not is_halted(program.pid)
