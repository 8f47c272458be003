"""The doctor: whether everything that agentmon needs is there and works."""

from __future__ import annotations

import asyncio
import os
import shutil
import sys
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from agentmon import __version__
from agentmon.domain.amounts import size_text
from agentmon.domain.errors import AgentmonError
from agentmon.runners.tmux import Tmux, find_version
from agentmon.worker.presence import read_presence

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path

    from agentmon.paths import Paths
    from agentmon.services.agents import AgentService

_LOW_SPACE_BYTES: Final = 500_000_000


class FindingLevel(StrEnum):
    """How bad a finding is."""

    OK = "ok"
    WARN = "warn"
    FAIL = "fail"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing that was looked at."""

    name: str
    level: FindingLevel
    text: str
    hint: str = ""


class DoctorService:
    """Looks at the machine."""

    def __init__(self, paths: Paths, agents: AgentService) -> None:
        self._paths = paths
        self._agents = agents

    async def check(self) -> tuple[Finding, ...]:
        """Return what was found, in a fixed order; nothing is changed."""
        checks: tuple[tuple[str, Callable[[], Awaitable[Finding]]], ...] = (
            ("python", self._python),
            ("tmux", self._tmux),
            ("tmux server", self._tmux_server),
            ("database", self._database),
            ("disk", self._disk),
            ("worker", self._worker),
            ("programs", self._programs),
        )
        return tuple([await _looked_at(name, check) for name, check in checks])

    async def _python(self) -> Finding:
        version = ".".join(str(part) for part in sys.version_info[:3])
        return _ok("python", f"Python {version}, agentmon {__version__}")

    async def _tmux(self) -> Finding:
        version = await asyncio.to_thread(find_version, os.environ)
        return _ok("tmux", f"tmux {version.text}")

    async def _tmux_server(self) -> Finding:
        tmux = Tmux(self._paths.tmux_socket)
        try:
            listing = await tmux.list_sessions()
        finally:
            tmux.close()
        if not listing.is_server_running:
            return _ok("tmux server", "not running; it starts with the first run")
        return _ok("tmux server", f"{len(listing.sessions)} sessions on {self._paths.tmux_socket}")

    async def _database(self) -> Finding:
        size = await asyncio.to_thread(_size_of, self._paths.database_path)
        return _ok("database", f"{self._paths.database_path}, {size_text(size)}")

    async def _disk(self) -> Finding:
        free = (await asyncio.to_thread(shutil.disk_usage, self._paths.database_path.parent)).free
        text = f"{size_text(free)} free for the database and the logs"
        if free < _LOW_SPACE_BYTES:
            return Finding(
                name="disk",
                level=FindingLevel.WARN,
                text=text,
                hint=f"runs wait when the disk is full; old logs lie in {self._paths.executions_dir}",
            )
        return _ok("disk", text)

    async def _worker(self) -> Finding:
        presence = await asyncio.to_thread(read_presence, self._paths.worker_lock)
        if not presence.is_running:
            return _ok("worker", "not running; it starts with the first run")
        if presence.version not in {None, __version__}:
            return Finding(
                name="worker",
                level=FindingLevel.WARN,
                text=f"pid {presence.pid} is of release {presence.version}",
                hint="`agentmon worker --stop` ends it; the next run starts one of this release",
            )
        return _ok("worker", f"running, pid {presence.pid}, since {presence.started_at}")

    async def _programs(self) -> Finding:
        slugs = [agent.slug for agent in await self._agents.list()]
        return _ok("programs", f"{len(slugs)} found: {', '.join(slugs)}")


async def _looked_at(name: str, check: Callable[[], Awaitable[Finding]]) -> Finding:
    try:
        return await check()
    except AgentmonError as error:
        return Finding(name=name, level=FindingLevel.FAIL, text=str(error), hint=error.hint)
    except OSError as error:
        return Finding(name=name, level=FindingLevel.FAIL, text=str(error))


def _ok(name: str, text: str) -> Finding:
    return Finding(name=name, level=FindingLevel.OK, text=text)


def _size_of(path: Path) -> int:
    return path.stat().st_size
