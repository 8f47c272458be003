"""Which ``TERM`` programs of this system can draw on, wherever descriptions may be."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from agentmon.runners.terminal_type import usable_terminal

if TYPE_CHECKING:
    from pathlib import Path

SOMEBODY = 65_534


def test_a_folder_of_descriptions_that_is_another_users_is_passed_over(tmp_path: Path) -> None:
    locked = tmp_path / "of-somebody"
    locked.mkdir(mode=0o000)
    is_root = os.geteuid() == 0
    if is_root:
        os.seteuid(SOMEBODY)
    try:
        usable = usable_terminal({"TERM": "xterm-256color", "TERMINFO": str(locked / "terminfo")})
    finally:
        if is_root:
            os.seteuid(0)

    assert usable == "xterm-256color"


def test_a_name_that_no_file_can_have_is_no_terminal() -> None:
    assert usable_terminal({"TERM": "x" * 5000}) == "xterm-256color"
