from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from agentmon.store.usage_begun import is_usage_begun
from agentmon.usage.sources import find_sources
from agentmon.worker import early_reading, usage_importing
from agentmon.worker.early_reading import begin_reading, start_reading
from tests.usage.histories import environ_of
from tests.worker.usage_home import copy_samples, home_paths, usage_home

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(autouse=True)
def _long_history(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A home whose samples count as a long history."""
    copy_samples(tmp_path)
    for name, value in environ_of(tmp_path).items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("AGENTMON_HOME", str(home_paths(tmp_path).database_path.parent))
    monkeypatch.setattr(early_reading, "APART_FROM_BYTES", 1)
    monkeypatch.setattr(usage_importing, "_APART_FROM_BYTES", 1)


async def test_what_was_begun_early_is_imported_once(tmp_path: Path) -> None:
    begin_reading()
    begun = list(early_reading._begun)
    async with usage_home(tmp_path) as home:
        outcome = await home.read()
        contents = home.contents()
        home.importer.forget_cursors()
        await home.read()

        assert home.contents() == contents
    assert outcome.answers > 40
    assert not early_reading._begun
    (processes,) = begun
    for pid in processes.pids:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


async def test_nothing_is_begun_where_files_were_read_before(tmp_path: Path) -> None:
    async with usage_home(tmp_path) as home:
        assert not is_usage_begun(home.paths.database_path)
        await home.read()
        assert is_usage_begun(home.paths.database_path)

    begin_reading()

    assert not early_reading._begun


def test_a_file_that_grew_since_is_read_here(tmp_path: Path) -> None:
    begin_reading()
    transcript = next((tmp_path / "claude").rglob("*.jsonl"))
    with transcript.open("a") as opened:
        opened.write('{"type":"summary","summary":"grown"}\n')
    jobs = [(source, None) for source in find_sources(os.environ)]

    processes = start_reading(jobs)

    try:
        told = {source.path: list(processes.read((source, None))) for source, _ in jobs}
    finally:
        processes.close()
    assert told[str(transcript)]
    assert all(told.values())


def test_a_database_that_cannot_be_asked_counts_as_read(tmp_path: Path) -> None:
    (tmp_path / "broken.db").write_bytes(b"no database at all" * 100)

    assert is_usage_begun(tmp_path / "broken.db")
    assert not is_usage_begun(tmp_path / "missing.db")
