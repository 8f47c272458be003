from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.cli.command_lines import CommandLine


@pytest.mark.proof
def test_a_command_with_closed_standard_streams_does_its_work(cli: CommandLine) -> None:
    cli.add("a task")

    closed = subprocess.run(
        ["sh", "-c", 'exec "$0" -P -m agentmon task move 1 done <&- >&- 2>&-', sys.executable],
        cwd=cli.workspace,
        env=cli.environ,
        check=False,
    )

    assert closed.returncode == 0
    assert cli("task", "show", "1", "--json").document()["status"] == "done"
