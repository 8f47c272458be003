from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.cli.command_lines import CommandLine

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="module")
def cli() -> Iterator[CommandLine]:
    """One home for the tests of a module, in a folder whose name leaves room for socket paths."""
    with CommandLine(Path(tempfile.mkdtemp(prefix="am-"))) as command_line:
        yield command_line
