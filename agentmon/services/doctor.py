"""The doctor: whether everything that agentmon needs is there and works."""

from __future__ import annotations

import asyncio
import os
import shutil
import sys
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from agentmon import __version__
from agentmon.domain.amounts import size_text
from agentmon.domain.errors import AgentmonError, UsageError
from agentmon.logs.crash_reports import crash_reports
from agentmon.private_folders import find_left_by_others, take_over
from agentmon.runners.danger import load_danger_rules
from agentmon.runners.presets import load_library
from agentmon.runners.sandbox.trial import find_sandbox_problem
from agentmon.runners.tmux import Tmux, find_version
from agentmon.services.findings import Finding, FindingLevel, fine, warning

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path

    from agentmon.domain.clock import Clock
    from agentmon.paths import Paths
    from agentmon.services.agents import AgentService
    from agentmon.services.background import BackgroundService
    from agentmon.services.queue_checks import QueueChecks
    from agentmon.services.request_checks import RequestChecks
    from agentmon.services.settings import SettingsService
    from agentmon.services.workspaces import WorkspaceService
    from agentmon.store.log_sizes import LogSizeRepository

_LOW_SPACE_BYTES: Final = 500_000_000
_LARGE_BYTES: Final = 1_000_000_000
"""Of database and logs together."""
_MEGABYTE: Final = 1_000_000
_OLD_CRASH_AFTER: Final = timedelta(days=7)


class DoctorService:
    """Looks at the machine."""

    def __init__(
        self,
        *,
        paths: Paths,
        agents: AgentService,
        workspaces: WorkspaceService,
        settings: SettingsService,
        log_sizes: LogSizeRepository,
        queue: QueueChecks,
        requests: RequestChecks,
        background: BackgroundService,
        clock: Clock,
    ) -> None:
        self._paths = paths
        self._agents = agents
        self._workspaces = workspaces
        self._settings = settings
        self._log_sizes = log_sizes
        self._queue = queue
        self._requests = requests
        self._background = background
        self._clock = clock

    async def check(self) -> tuple[Finding, ...]:
        """Return what was found, in a fixed order; nothing is changed."""
        checks: tuple[tuple[str, Callable[[], Awaitable[Finding]]], ...] = (
            ("python", self._python),
            ("tmux", self._tmux),
            ("tmux server", self._tmux_server),
            ("database", self._database),
            ("files", self._files),
            ("disk", self._disk),
            ("worker", self._queue.worker),
            ("background loops", self._loops),
            ("runs", self._queue.owners),
            ("journals", self._queue.journals),
            ("dependencies", self._queue.dependencies),
            ("requests", self._requests.waiting),
            ("workspaces", self._workspaces_there),
            ("programs", self._programs),
            ("presets", self._presets),
            ("danger rules", self._danger_rules),
            ("sandbox", self._sandbox),
            ("crashes", self._crashes),
        )
        return tuple([await _looked_at(name, check) for name, check in checks])

    async def _python(self) -> Finding:
        version = ".".join(str(part) for part in sys.version_info[:3])
        return fine("python", f"Python {version}, agentmon {__version__}")

    async def _tmux(self) -> Finding:
        version = await asyncio.to_thread(find_version, os.environ)
        return fine("tmux", f"tmux {version.text}")

    async def _tmux_server(self) -> Finding:
        tmux = Tmux(self._paths.tmux_socket)
        try:
            listing = await tmux.list_sessions()
        finally:
            tmux.close()
        if not listing.is_server_running:
            return fine("tmux server", "not running; it starts with the first run")
        count = len(listing.sessions)
        return fine("tmux server", f"{count} {'session' if count == 1 else 'sessions'} on {self._paths.tmux_socket}")

    async def _database(self) -> Finding:
        size = await asyncio.to_thread(_size_of, self._paths.database_path)
        text = f"{self._paths.database_path}, {size_text(size)}"
        if size + await self._log_sizes.total_bytes() < _LARGE_BYTES:
            return fine("database", text)
        return fine("database", f"{text}; `agentmon storage` shows what takes room, and what can go")

    async def _files(self) -> Finding:
        places = await asyncio.to_thread(find_left_by_others, self._paths.own_folders)
        if not places:
            return fine("files", "all belong to you")
        return warning(
            "files", f"another user owns some of those in {places[0]}", hint=f"take them over: {take_over(places)}"
        )

    async def _disk(self) -> Finding:
        free = (await asyncio.to_thread(shutil.disk_usage, self._paths.database_path.parent)).free
        text = f"{size_text(free)} free for the database and the logs"
        if free < _LOW_SPACE_BYTES:
            return warning(
                "disk", text, hint=f"runs wait when the disk is full; old logs lie in {self._paths.executions_dir}"
            )
        limit = int((await self._settings.get("worker.keep_logs_mb")).value) * _MEGABYTE
        present = await self._log_sizes.total_bytes()
        growth = limit - present
        if limit and free < growth:
            enough = max(1, (present + free // 2) // _MEGABYTE)
            return warning(
                "disk",
                f"{text}, which may still grow by {size_text(growth)}",
                hint=f"`agentmon settings worker.keep_logs_mb {enough}` removes old logs before the disk is full",
            )
        return fine("disk", text)

    async def _loops(self) -> Finding:
        troubles = await self._background.troubles()
        if troubles:
            first = troubles[0]
            return warning("background loops", "; ".join(trouble.text for trouble in troubles), hint=first.hint)
        health = await self._background.worker()
        if not health.loops:
            return fine("background loops", "none; they run with the worker")
        return fine("background loops", f"{len(health.loops)} go well: {', '.join(one.name for one in health.loops)}")

    async def _crashes(self) -> Finding:
        reports = await asyncio.to_thread(crash_reports, self._paths.logs_dir)
        if not reports:
            return fine("crashes", "no reports")
        newest = reports[-1]
        if self._clock.now() - newest.at > _OLD_CRASH_AFTER:
            return fine("crashes", f"{len(reports)} reports, the newest {newest.file}")
        return warning(
            "crashes",
            f"the app crashed {newest.at:%Y-%m-%d %H:%M} UTC: {newest.summary}; {len(reports)} reports in all",
            hint=f"{newest.file} has no secrets in it and can go with a bug report; delete it and this line goes too",
        )

    async def _presets(self) -> Finding:
        library = await asyncio.to_thread(load_library, self._paths.presets_dir)
        own = sum(preset.is_own for preset in library.presets)
        text = f"{len(library.presets)}" + (f", {own} of yours" if own else "")
        if library.problems:
            first = library.problems[0]
            more = f"; {len(library.problems) - 1} more of yours cannot" if len(library.problems) > 1 else ""
            return warning("presets", f"{text}; one of yours cannot be used: {first.message}{more}", hint=first.hint)
        return fine("presets", text)

    async def _danger_rules(self) -> Finding:
        own_file = self._paths.danger_rules_file
        try:
            rules = await asyncio.to_thread(load_danger_rules, own_file)
        except UsageError as error:
            return warning("danger rules", f"yours do not count: {error}", hint=error.hint)
        lowered = sum(rule.lowers for rule in rules.own_rules)
        own = f", {len(rules.own_rules)} of yours, {lowered} of which lower" if rules.own_rules else ""
        return fine("danger rules", f"{len(rules.rules)}{own}")

    async def _sandbox(self) -> Finding:
        problem = await asyncio.to_thread(find_sandbox_problem)
        if not problem:
            return fine("sandbox", "available; AI agents run in one")
        text = f"none here, agents run without: {problem}"
        if sys.platform != "linux":
            return fine("sandbox", text)
        return warning(
            "sandbox",
            text,
            hint="it needs user namespaces: on Ubuntu `sysctl kernel.apparmor_restrict_unprivileged_userns=0`, in a "
            "container its --security-opt; SECURITY.md says what does not hold without",
        )

    async def _workspaces_there(self) -> Finding:
        counts = await self._workspaces.counts()
        gone = [one for one in counts if one.is_gone]
        text = f"{len(counts)}"
        if gone:
            named = ", ".join(one.workspace.root_path for one in gone)
            text = f"{text}, {len(gone)} moved or missing: {named}"
        if not any(one.open_tasks for one in gone):
            return fine("workspaces", text)
        return warning(
            "workspaces", text, hint="`agentmon workspaces move OLD NEW` brings the board of a moved folder along"
        )

    async def _programs(self) -> Finding:
        slugs = [agent.slug for agent in await self._agents.list()]
        return fine("programs", f"{len(slugs)} found: {', '.join(slugs)}")


async def _looked_at(name: str, check: Callable[[], Awaitable[Finding]]) -> Finding:
    try:
        return await check()
    except AgentmonError as error:
        return Finding(name=name, level=FindingLevel.FAIL, text=str(error), hint=error.hint)
    except OSError as error:
        return Finding(name=name, level=FindingLevel.FAIL, text=str(error))


def _size_of(path: Path) -> int:
    return path.stat().st_size
