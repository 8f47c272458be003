"""Another process of agentmon that reads a long history, which would hold up what the worker does for the runs."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import sys
from typing import TYPE_CHECKING

from agentmon.paths import find_paths

if TYPE_CHECKING:
    from agentmon.paths import Paths

_log = logging.getLogger(__name__)


class SeparateImport:
    """One command of agentmon that is run in a process of its own; for one task of the worker.

    Args:
        words: The command, such as ``costs`` and ``import``.
        paths: Where the database is that it has to fill.
        niceness: How far it stands back, from 0 to 19.
    """

    def __init__(self, *words: str, paths: Paths, niceness: int) -> None:
        self._words = words
        self._paths = paths
        self._niceness = niceness
        self._process: asyncio.subprocess.Process | None = None
        self._is_ended = False

    @property
    def is_ended(self) -> bool:
        """Whether nothing is to be run any more."""
        return self._is_ended

    def end(self) -> None:
        """Let what runs or is being started end soon, and nothing be run from now on; idempotent."""
        self._is_ended = True
        if self._process is not None:
            with contextlib.suppress(ProcessLookupError):
                self._process.terminate()

    async def run(self) -> None:
        """Run the command to its end; not where another database is found by it, and not after ``end``.

        What it leaves unread, for whatever reason, is for the caller to read.
        """
        if self._is_ended or find_paths() != self._paths:
            return
        try:
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-P", "-m", "agentmon", *self._words),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.DEVNULL,
                stderr=asyncio.subprocess.DEVNULL,
                cwd="/",
            )
        except OSError as error:
            _log.warning("no process for `agentmon %s` could be started: %s", " ".join(self._words), error)
            return
        self._process = process
        try:
            if self.is_ended:
                self.end()
            with contextlib.suppress(OSError):
                os.setpriority(os.PRIO_PROCESS, process.pid, self._niceness)
            code = await process.wait()
            _log.info(
                "`agentmon %s` was run by process %s, which ended with %s", " ".join(self._words), process.pid, code
            )
        finally:
            self._process = None
