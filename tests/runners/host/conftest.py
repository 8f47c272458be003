from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import pytest

from tests.runners.host.host_runs import HostRun

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


class PrepareRun(Protocol):
    def __call__(self, *argv: str, environment: dict[str, str] | None = None, **spec: object) -> HostRun: ...


@pytest.fixture
def prepare_run(tmp_path: Path) -> Iterator[PrepareRun]:
    """Give a maker of execution folders; every run of them is ended afterwards."""
    runs: list[HostRun] = []

    def prepare(*argv: str, environment: dict[str, str] | None = None, **spec: object) -> HostRun:
        run = HostRun.prepare(tmp_path / f"run{len(runs)}", *argv, environment=environment, **spec)
        runs.append(run)
        return run

    yield prepare
    for run in runs:
        run.end()
