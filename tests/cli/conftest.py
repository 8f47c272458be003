from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.cli.command_lines import CommandLine

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.forks import Forks


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Keep the tests of a home in one process, since each process would make a home for itself."""
    for item in items:
        if isinstance(item, pytest.Function) and "cli" in item.fixturenames:
            item.add_marker(pytest.mark.xdist_group(item.module.__name__))


@pytest.fixture(scope="module")
def cli(forks: Forks) -> Iterator[CommandLine]:
    """One home for the tests of a module, in a folder whose name leaves room for socket paths."""
    with CommandLine(Path(tempfile.mkdtemp(prefix="am-")), forks) as command_line:
        yield command_line
