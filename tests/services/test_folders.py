from __future__ import annotations

import os
import threading
from typing import TYPE_CHECKING

import pytest

from agentmon.domain.errors import UsageError
from agentmon.services import folders
from agentmon.services.folders import FolderCompleter, existing_folder
from tests.waiting import DEADLINE_S

if TYPE_CHECKING:
    from pathlib import Path


async def test_folders_are_completed_as_in_a_shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("src", "Spec", "src-old", ".hidden", "ünï", "locked"):
        (tmp_path / name).mkdir()
    (tmp_path / "src.txt").touch()
    (tmp_path / "src" / "deep").mkdir()
    (tmp_path / "srclink").symlink_to("src")
    (tmp_path / "locked").chmod(0)
    monkeypatch.setenv("HOME", str(tmp_path))
    completer = FolderCompleter(str(tmp_path))

    assert await completer.complete("sr") == ("src/", "src-old/", "srclink/")
    assert await completer.complete(".") == (".hidden/",)
    assert await completer.complete("src/") == ("src/deep/",)
    assert await completer.complete("~/ü") == ("~/ünï/",)
    assert await completer.complete(f"{tmp_path}/src/d") == (f"{tmp_path}/src/deep/",)
    assert await completer.complete("~") == ("~/",)
    assert await completer.complete("nowhere/x") == ()
    assert await completer.complete("a\0b") == ()
    # Root reads everything.
    assert await completer.complete("lo") == (() if os.geteuid() else ("locked/",))
    assert "src/" in await completer.complete("")


async def test_a_folder_that_does_not_answer_holds_up_nobody_and_is_not_asked_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    answered: list[str] = []
    answers = threading.Event()

    def hang(_folder: Path, start: str) -> list[str]:
        asked.append(start)
        answers.wait(DEADLINE_S)
        answered.append(start)
        return []

    monkeypatch.setattr(folders, "_folder_names", hang)
    completer = FolderCompleter(str(tmp_path))

    assert await completer.complete("a", deadline_s=0.02) == ()
    assert await completer.complete("ab", deadline_s=0.02) == ()

    assert (asked, answered) == (["a"], [])
    answers.set()


async def test_the_folder_that_is_saved_has_to_be_one(tmp_path: Path) -> None:
    (tmp_path / "file").touch()

    assert await existing_folder(".", str(tmp_path)) == str(tmp_path)
    for text, words in (("file", "a file, not a folder"), ("gone", "does not exist"), ("~nobody-here/x", "not exist")):
        with pytest.raises(UsageError, match=words):
            await existing_folder(text, str(tmp_path))
