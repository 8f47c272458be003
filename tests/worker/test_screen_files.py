"""What the files of an agent in its own screen tell of work that is over before anybody looks."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Final

import pytest

from agentmon.runners.execution_folder import ExecutionFolder
from agentmon.runners.screens.rules import find_rules
from agentmon.worker.screen_files import ScreenFiles

if TYPE_CHECKING:
    from pathlib import Path

_RULES: Final = r"""
agent = "stub"

[[rule]]
name = "title-working"
state = "working"
in = "title"
pattern = '^busy '

[[rule]]
name = "title-ready"
state = "ready"
in = "title"
pattern = '^free '
"""


class _Agent:
    """Sets titles, as its terminal gets them."""

    def __init__(self, folder: ExecutionFolder) -> None:
        self._folder = folder

    def write(self, *texts: str) -> None:
        with self._folder.output_log.open("a", encoding="utf-8") as file:
            file.write("".join(texts))


def _title(text: str) -> str:
    return f"\x1b]0;{text} 1\x07"


@pytest.fixture
def folder(tmp_path: Path) -> ExecutionFolder:
    folder = ExecutionFolder(tmp_path / "e1")
    folder.make()
    folder.write_spec({"attempt": 0})
    folder.journal.write_text(json.dumps({"n": 1, "type": "agent_started", "pid": os.getpid()}) + "\n")
    return folder


def test_a_title_tells_of_work_that_is_over_once(folder: ExecutionFolder, tmp_path: Path) -> None:
    (tmp_path / "stub.toml").write_text(_RULES)
    files, agent = ScreenFiles(folder, find_rules("stub", own_folder=tmp_path), {}), _Agent(folder)
    agent.write(_title("busy"), _title("free"))
    assert files.read().has_worked

    agent.write("a line")
    assert not files.read().has_worked, "what was told before is not told again"
    agent.write("\x1b]0;busy")
    assert not files.read().has_worked, "no title yet"
    agent.write(" 2\x07", _title("free"))
    news = files.read()

    assert news.has_worked
    assert not news.is_telling, "it is as free as it was"


@pytest.mark.parametrize(
    ("before", "after", "has_worked"),
    [
        (("idle", 1), ("idle", 1), False),
        (("idle", 1), ("idle", 2), True),
        (("idle", 1), ("busy", 2), True),
        (("waiting", 1), ("idle", 2), False),
    ],
)
def test_claudes_file_tells_of_work_that_is_over(
    folder: ExecutionFolder, tmp_path: Path, before: tuple[str, int], after: tuple[str, int], *, has_worked: bool
) -> None:
    session = tmp_path / "claude" / "sessions" / f"{os.getpid()}.json"
    session.parent.mkdir(parents=True)
    files = ScreenFiles(folder, find_rules("claude"), {"CLAUDE_CONFIG_DIR": str(tmp_path / "claude")})
    told = []
    for status, at in (before, after):
        session.write_text(json.dumps({"status": status, "statusUpdatedAt": at}))
        told.append(files.read().has_worked)

    assert told == [False, has_worked]
