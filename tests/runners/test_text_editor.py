from __future__ import annotations

import os
import stat
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from agentmon.domain.errors import RunnerError, UsageError
from agentmon.runners.text_editor import find_editor, left_files, lend_file, run_editor

if TYPE_CHECKING:
    from pathlib import Path


def program(folder: Path, name: str, body: str) -> Path:
    path = folder / name
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)
    return path


def test_the_own_editor_with_its_arguments_comes_first_then_a_usual_one(tmp_path: Path) -> None:
    own = program(tmp_path, "my editor", "")
    usual = program(tmp_path, "vi", "")
    environ = {"PATH": str(tmp_path)}

    assert find_editor({**environ, "VISUAL": f"'{own}' --wait", "EDITOR": "vi"}) == [str(own), "--wait"]
    assert find_editor({**environ, "VISUAL": " ", "EDITOR": "vi -f"}) == [str(usual), "-f"]
    assert find_editor(environ) == [str(usual)]
    for wrong, words in (({"EDITOR": "gone -x"}, "no program gone"), ({"VISUAL": "vi '"}, "cannot be read")):
        with pytest.raises(UsageError, match=words):
            find_editor({**environ, **wrong})
    with pytest.raises(UsageError, match="there is no editor"):
        find_editor({"PATH": "/nowhere"})


def test_the_text_comes_back_from_a_private_file_that_is_removed(tmp_path: Path) -> None:
    drafts = tmp_path / "drafts"
    lent = lend_file(drafts, "one\n\ttwo — [/]", title="../Fix: a/b [x]\n" + "ü" * 200)
    editor = program(tmp_path, "editor", 'printf " and\\r\\nmore\\n" >> "$2"')

    written = run_editor([str(editor), "-f"], lent, os.environ)

    assert written.text == "one\n\ttwo — [/] and\nmore"
    assert not written.complaint
    assert lent.path.name.startswith("Fix: a-b [x] üü")
    assert lent.path.suffix == ".md"
    assert stat.S_IMODE(lent.path.stat().st_mode) == 0o600
    assert stat.S_IMODE(lent.path.parent.stat().st_mode) == 0o700
    lent.remove()
    assert list(drafts.iterdir()) == []


def test_an_editor_that_fails_or_is_killed_says_so_and_its_text_comes_back(tmp_path: Path) -> None:
    for body, complaint in (("exit 3", "exit code 3"), ("kill -9 $$", "SIGKILL"), ("kill -2 $$", "SIGINT")):
        lent = lend_file(tmp_path / "drafts", "", title="")
        editor = program(tmp_path, "editor", f'printf new > "$1"; {body}')

        written = run_editor([str(editor)], lent, os.environ)

        assert (written.text, lent.path.name) == ("new", "description.md")
        assert complaint in written.complaint

    remover = program(tmp_path, "remover", 'rm "$1"')
    with pytest.raises(RunnerError, match="cannot be read"):
        run_editor([str(remover)], lend_file(tmp_path / "drafts", "x", title="x"), os.environ)


def test_the_file_of_an_agentmon_that_died_is_found_and_that_of_a_living_one_is_not(tmp_path: Path) -> None:
    drafts = tmp_path / "drafts"
    lend_file(drafts, "mine", title="mine")
    assert left_files(drafts) == []
    assert left_files(tmp_path / "none") == []
    code = (
        "import sys, pathlib; from agentmon.runners.text_editor import lend_file\n"
        "print(lend_file(pathlib.Path(sys.argv[1]), 'theirs', title='theirs').path)"
    )
    died = subprocess.run([sys.executable, "-c", code, str(drafts)], capture_output=True, text=True, check=True)

    assert [str(path) for path in left_files(drafts)] == [died.stdout.strip()]
