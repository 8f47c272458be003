from __future__ import annotations

import os
import shutil
import signal
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from agentmon.usage.reading_processes import Job, ReadingProcesses
from agentmon.usage.sources import find_sources
from agentmon.usage.unread import read_unread
from tests.usage.histories import SAMPLES, environ_of

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def jobs(tmp_path: Path) -> list[Job]:
    for name in ("claude", "claude-xdg", "codex"):
        shutil.copytree(SAMPLES / name, tmp_path / name)
    shutil.copytree(SAMPLES / "gemini", tmp_path / "gemini-home" / ".gemini")
    return [(source, None) for source in find_sources(environ_of(tmp_path))]


def test_processes_tell_what_is_read_here(jobs: list[Job]) -> None:
    with closing(ReadingProcesses(jobs, 2)) as processes:
        told = [list(processes.read(job)) for job in jobs]

    assert told == [list(read_unread(*job)) for job in jobs]
    assert sum(len(read.reading.answers) for reads in told for read in reads) > 40


def test_reading_goes_on_from_a_cursor(jobs: list[Job]) -> None:
    jobs = [(source, list(read_unread(source, None))[-1].cursor) for source, _ in jobs]
    with closing(ReadingProcesses(jobs, 2)) as processes:
        assert [list(processes.read(job)) for job in jobs] == [[] for _ in jobs]


def test_a_source_that_is_not_read_to_its_end_is_passed_over(jobs: list[Job]) -> None:
    with closing(ReadingProcesses(jobs, 2)) as processes:
        for job in jobs[:4]:
            next(processes.read(job))
        told = [list(processes.read(job)) for job in jobs[6:]]

    assert told == [list(read_unread(*job)) for job in jobs[6:]]


def test_what_a_killed_process_leaves_is_read_here(jobs: list[Job]) -> None:
    with closing(ReadingProcesses(jobs, 2)) as processes:
        told = [list(processes.read(jobs[0]))]
        for pid in processes.pids:
            os.kill(pid, signal.SIGKILL)
        told += [list(processes.read(job)) for job in jobs[1:]]

    assert told == [list(read_unread(*job)) for job in jobs]


def test_a_source_that_was_never_handed_over_is_read_here(jobs: list[Job]) -> None:
    with closing(ReadingProcesses(jobs[:3], 2)) as processes:
        assert list(processes.read(jobs[4])) == list(read_unread(*jobs[4]))


def test_no_process_is_left_behind(jobs: list[Job]) -> None:
    processes = ReadingProcesses(jobs, 2)
    pids = processes.pids

    processes.close()
    processes.close()

    for pid in pids:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)
