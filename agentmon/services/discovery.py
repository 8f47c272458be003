"""Discovery: what programs this machine has, which of them are agents, and what became of them since the last look."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import threading
import time
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from agentmon.domain.errors import NotFoundError
from agentmon.domain.plain_text import plain_line
from agentmon.domain.programs import ProgramKind, ScanOutcome, ScanProgress
from agentmon.paths import expanded
from agentmon.runners.discovery import path_scan, probe
from agentmon.runners.discovery.packages import forget_packages, with_packages
from agentmon.runners.discovery.places import find_places
from agentmon.runners.discovery.shell_aliases import find_aliases
from agentmon.runners.presets import agents_of, find_installed, load_library
from agentmon.threads import in_daemon_thread

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from agentmon.domain.agent_health import AgentHealth
    from agentmon.domain.agents import Agent
    from agentmon.domain.clock import Clock
    from agentmon.domain.ids import AgentId
    from agentmon.domain.programs import Program
    from agentmon.paths import Paths
    from agentmon.runners.presets import PresetAgent
    from agentmon.services.agent_health import AgentHealthService
    from agentmon.services.settings import SettingsService
    from agentmon.store.agents import AgentRepository
    from agentmon.store.programs import ProgramChanges, ProgramRepository

READING_FOLDERS: Final = "reading folders"
READING_PACKAGES: Final = "reading packages"
COMPARING: Final = "comparing"
ASKING_VERSIONS: Final = "asking for versions"
_ASKED_AT_ONCE: Final = 2
_ASKED_FOR_S: Final = 15.0
"""Agents that are made with Node.js take up to 5 s on a busy machine."""
_VERSION: Final = re.compile(r"\d+(?:\.\d+)+[\w.+-]*")
_LONGEST_VERSION: Final = 60
_VERSION_WORDS: Final = ("--version",)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Look:
    """What the files of this machine say."""

    programs: tuple[Program, ...]
    scan: path_scan.PathScan
    installed: tuple[PresetAgent, ...]
    startable: Mapping[str, Program]
    """By name: what the PATH finds."""
    everywhere: Mapping[str, frozenset[str]]
    """By name: which programs can be started somewhere on this machine, their links followed."""
    by_path: Mapping[str, Program]
    problems: tuple[str, ...]


class DiscoveryService:
    """Scans this machine and keeps what it finds.

    Attributes:
        progress: How far the scan is that goes on now; None when none does.
        outcome: What the newest scan of this process found.
    """

    def __init__(
        self,
        *,
        programs: ProgramRepository,
        agents: AgentRepository,
        health: AgentHealthService,
        settings: SettingsService,
        paths: Paths,
        clock: Clock,
    ) -> None:
        self._programs = programs
        self._agents = agents
        self._health = health
        self._settings = settings
        self._paths = paths
        self._clock = clock
        self._running: asyncio.Task[ScanOutcome] | None = None
        self._listeners: list[Callable[[ScanProgress], None]] = []
        self._waiting = 0
        self.progress: ScanProgress | None = None
        self.outcome: ScanOutcome | None = None

    async def is_due(self) -> bool:
        """Return whether the last scan is older than the setting ``agents.scan_hours`` says; 0 there means never."""
        hours = (await self._settings.agents()).scan_hours
        if not hours:
            return False
        scanned_at = await self._programs.scanned_at()
        return scanned_at is None or self._clock.now() - scanned_at >= timedelta(hours=hours)

    async def scan(self, *, on_progress: Callable[[ScanProgress], None] | None = None) -> ScanOutcome:
        """Look at the PATH and the places of version managers, and bring the registry up to date.

        Folders in which an earlier scan found programs are looked at too: a shell with an environment of its own and a
        job with a short PATH see the same machine, and nothing goes and comes back between them.

        Files are read, in a thread, and no program is run but those of presets in the registry that are switched on
        and new or changed: they are asked for their versions. A call while a scan goes on waits for that one. A scan
        that nobody waits for any more ends soon: while files are read nothing is written, and a version that was not
        told yet is asked for with the next scan.

        Args:
            on_progress: Told on the event loop how far it is.
        """
        if self._running is None or self._running.done():
            self._running = asyncio.create_task(self._scan(), name="scan of programs")
        running = self._running
        if on_progress is not None:
            self._listeners.append(on_progress)
        self._waiting += 1
        try:
            return await asyncio.shield(running)
        finally:
            self._waiting -= 1
            if on_progress is not None:
                self._listeners.remove(on_progress)
            if not self._waiting:
                self._running = None
                running.cancel()
                await asyncio.gather(running, return_exceptions=True)

    async def programs(
        self, words: str = "", *, only_new: bool = False, with_missing: bool = False
    ) -> tuple[Program, ...]:
        """Return the programs that the last scan found, by name; aliases and broken links are among them.

        Args:
            words: All of them have to be in the path or the package.
            only_new: Those that came or changed with the last scan.
            with_missing: Also those that are gone.
        """
        return await self._programs.list(words, only_new=only_new, with_missing=with_missing)

    async def version(self, slug: str) -> str | None:
        """Ask an agent's program for its version now, note it, and return it; None when it tells none.

        Raises:
            NotFoundError: There is no such agent.
        """
        agent = await self._agents.find_by_slug(slug)
        if agent is None or agent.removed_at is not None:
            raise NotFoundError(f"there is no agent {slug}", hint="`agentmon agents` names those there are")
        look = await in_daemon_thread(
            partial(
                self._look,
                dict(os.environ),
                await self._programs.folders(),
                lambda _done, _total: None,
                lambda: False,
            ),
            name="reading programs",
        )
        path = _path_of(agent, look)
        if path is None:
            return None
        preset = next((one for one in look.installed if one.slug == slug), None)
        version, _problem = await _ask_version(agent, _asked_path(path, look), preset)
        await self._write_facts(agent, look.by_path.get(path), version)
        return version

    async def health(self, agents: Sequence[Agent]) -> Mapping[AgentId, AgentHealth]:
        """Return how each of these agents fares; no program is run."""
        return await self._health.look(agents)

    async def _scan(self) -> ScanOutcome:
        began = time.monotonic()
        left = threading.Event()
        loop = asyncio.get_running_loop()
        self._tell(READING_FOLDERS, 0, 0)

        def tell_folder(done: int, total: int) -> None:
            if not left.is_set():
                self._tell(READING_PACKAGES if done == total else READING_FOLDERS, done, total)

        def on_folder(done: int, total: int) -> None:
            with suppress(RuntimeError):
                # The loop may be closed already: nobody waits for this thread.
                loop.call_soon_threadsafe(tell_folder, done, total)

        try:
            known = await self._programs.folders()
            look = await in_daemon_thread(
                partial(self._look, dict(os.environ), known, on_folder, left.is_set), name="reading programs"
            )
            self._tell(COMPARING, 0, 0)
            changes = await self._programs.record(look.programs, unread=look.scan.unread, at=self._clock.now())
            added = await self._add_agents(look)
            missing, back = await self._mark_agents(look)
            version_problems = await self._ask_versions(look, changes)
            self.outcome = ScanOutcome(
                programs=len(look.programs),
                folders=len(look.scan.folders),
                came=changes.came,
                changed=changes.changed,
                went=changes.went,
                agents_added=added,
                agents_missing=missing,
                agents_back=back,
                problems=(*look.problems, *version_problems),
                elapsed_s=time.monotonic() - began,
                is_first=changes.is_first,
            )
            return self.outcome
        finally:
            left.set()
            self.progress = None

    def _tell(self, step: str, done: int, total: int) -> None:
        self.progress = ScanProgress(step=step, done=done, total=total)
        for listener in self._listeners:
            listener(self.progress)

    def _look(
        self,
        environ: Mapping[str, str],
        known: Sequence[str],
        on_folder: Callable[[int, int], None],
        is_left: Callable[[], bool],
    ) -> _Look:
        """Read the files, also those of folders that are known; in a thread."""
        on_path = path_scan.path_folders(environ)
        folders = tuple(dict.fromkeys((*on_path, *find_places(environ))))
        everywhere = tuple(dict.fromkeys((*folders, *map(Path, known))))
        scan = path_scan.scan_path(everywhere, on_folder=on_folder, is_left=is_left, known=known)
        scan = replace(scan, programs=() if is_left() else with_packages(scan.programs))
        forget_packages()
        # A folder that did not answer is not waited for once more.
        read = [folder for folder in folders if str(folder) not in scan.unread]
        installed = find_installed(
            {**environ, "PATH": os.pathsep.join(map(str, read))}, own_folder=self._paths.presets_dir
        )
        startable = _startable(scan.programs, {scan.called.get(str(folder), str(folder)) for folder in on_path})
        aliases = [
            replace(alias, real_path=startable[alias.real_path].path) if alias.real_path in startable else alias
            for alias in find_aliases(environ)
        ]
        programs = (*scan.programs, *aliases)
        return _Look(
            programs=programs,
            scan=scan,
            installed=installed,
            startable=startable,
            everywhere=_everywhere(scan.programs),
            by_path={program.path: program for program in programs},
            problems=(*scan.problems, *(str(problem) for problem in load_library(self._paths.presets_dir).problems)),
        )

    async def _add_agents(self, look: _Look) -> tuple[str, ...]:
        """Bring the presets of this machine into the registry; return the slugs of those whose programs are new."""
        now = self._clock.now()
        known = {agent.slug: agent for agent in await self._agents.list(active_only=False)}
        found = [
            replace(agent, binary_path=_binary_of(preset, known.get(agent.slug), look))
            for preset, agent in zip(look.installed, agents_of(look.installed), strict=True)
        ]
        fresh = [agent for agent in found if agent.slug not in known]
        if fresh:
            await self._agents.add_missing(fresh, at=now)
        came = [known[agent.slug] for agent in found if agent.slug in known and known[agent.slug].is_history_alone]
        if came:
            await self._agents.activate([agent.id for agent in came], at=now)
        await self._agents.refresh([agent for agent in found if agent.slug in known], at=now)
        active = [agent for agent in fresh if agent.is_active and agent.binary_path]
        return tuple(sorted(agent.slug for agent in (*active, *came)))

    async def _mark_agents(self, look: _Look) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Note which programs of agents are gone and which are back; return both as slugs."""
        agents = [agent for agent in await self._agents.registered() if agent.binary_path]
        paths = await asyncio.to_thread(lambda: {agent.id: _path_of(agent, look) for agent in agents})
        found = [agent for agent in agents if paths[agent.id] is not None]
        gone = [agent for agent in agents if paths[agent.id] is None and _may_be_missed(agent, look)]
        now = self._clock.now()
        back = [agent.id for agent in found if agent.missing_since is not None]
        lost = [agent.id for agent in gone if agent.missing_since is None]
        return (
            await self._agents.mark_missing(lost, at=now) if lost else (),
            await self._agents.mark_found(back, at=now) if back else (),
        )

    async def _ask_versions(self, look: _Look, changes: ProgramChanges) -> tuple[str, ...]:
        """Ask the presets' programs that are new or changed for their versions; return what went wrong."""
        presets = {preset.slug: preset for preset in look.installed if preset.binary}
        different = {*changes.came, *changes.changed}
        asked: list[tuple[Agent, str]] = []
        for agent in await self._agents.registered():
            path = _path_of(agent, look)
            is_new = path is not None and (agent.last_scanned_at is None or path in different)
            if path is not None and is_new and agent.slug in presets and agent.is_active:
                asked.append((agent, path))
            elif path is not None and is_new and agent.slug not in presets:
                await self._write_facts(agent, look.by_path.get(path), agent.version)
        room = asyncio.Semaphore(_ASKED_AT_ONCE)
        problems: list[str] = []
        done = 0

        async def ask(agent: Agent, path: str) -> None:
            nonlocal done
            async with room:
                version, problem = await _ask_version(agent, _asked_path(path, look), presets[agent.slug])
            problems.extend([problem] if problem else [])
            if version is not None or not problem:
                # Who did not answer is asked again with the next scan.
                await self._write_facts(agent, look.by_path.get(path), version)
            done += 1
            self._tell(ASKING_VERSIONS, done, len(asked))

        if asked:
            self._tell(ASKING_VERSIONS, 0, len(asked))
        async with asyncio.TaskGroup() as group:
            for agent, path in asked:
                group.create_task(ask(agent, path), name=f"version of {agent.slug}")
        return tuple(sorted(problems))

    async def _write_facts(self, agent: Agent, program: Program | None, version: str | None) -> None:
        package = None if program is None or program.package_name is None else program
        await self._agents.write_facts(
            agent.id,
            version=version,
            package_name=None if package is None else f"{package.package_manager}:{package.package_name}",
            package_section=None if package is None else package.package_section,
            at=self._clock.now(),
        )


def _path_of(agent: Agent, look: _Look) -> str | None:
    """Return where the program of an agent is; None when it is not there or cannot be started."""
    if not agent.binary_path:
        return None
    if os.sep not in agent.binary_path:
        found = look.startable.get(agent.binary_path)
        return None if found is None else found.path
    path = expanded(agent.binary_path)
    return shutil.which(str(path)) if path.is_absolute() else None


def _binary_of(preset: PresetAgent, known: Agent | None, look: _Look) -> str:
    """Return what starts a preset's program: its name where the PATH finds it, otherwise its whole path.

    A whole path that is known stays while the PATH finds the very same program, which another PATH may not find. A
    name that is known stays while the PATH lacks it and there are several programs of it: nobody knows which was meant.
    """
    found = look.startable.get(preset.binary)
    if found is None:
        is_ambiguous = len(look.everywhere.get(preset.binary, ())) > 1
        is_kept = is_ambiguous and known is not None and known.binary_path == preset.binary
        return preset.binary if is_kept else preset.binary_path
    stored = None if known is None else look.by_path.get(known.binary_path)
    is_same = stored is not None and stored.kind is not ProgramKind.BROKEN and stored.real_path == found.real_path
    return stored.path if stored is not None and is_same else preset.binary


def _may_be_missed(agent: Agent, look: _Look) -> bool:
    """Return whether an agent that the PATH does not find is gone: it was here, and no folder has it or hides it."""
    if agent.is_history_alone:
        return False
    if os.sep in agent.binary_path:
        return str(expanded(agent.binary_path).parent) not in look.scan.unread
    return agent.binary_path not in look.everywhere and not look.scan.unread


def _asked_path(path: str, look: _Look) -> str:
    """Return what is asked for a version: behind a shim the program itself, since a shim looks for it in the home."""
    program = look.by_path.get(path)
    if program is None or program.kind is not ProgramKind.SHIM:
        return path
    target = Path(program.real_path)
    return program.real_path if target.name == program.name and os.access(target, os.X_OK) else path


async def _ask_version(agent: Agent, path: str, preset: PresetAgent | None) -> tuple[str | None, str]:
    """Return the version, None when none is told, and what went wrong in a sentence."""
    words = _VERSION_WORDS if preset is None else preset.version_args
    if not words:
        return None, ""
    answer = await probe.ask(path, words, timeout_s=_ASKED_FOR_S)
    if answer.problem is not None:
        return None, f"{agent.slug}: {path} {answer.problem} when it was asked for its version"
    pattern = None if preset is None else preset.version_pattern
    found = (pattern or _VERSION).search(answer.output)
    if found is None:
        if pattern is None:
            return None, ""
        failed = f"told no version and ended with {answer.exit_code}; it may not work, or"
        may = "may" if answer.exit_code == 0 else failed
        return None, f"{agent.slug}: {path} {may} be another program of that name"
    told = found[1] if pattern is not None and pattern.groups else found[0]
    return plain_line(told, max_characters=_LONGEST_VERSION), ""


def _startable(programs: Sequence[Program], folders: Collection[str]) -> Mapping[str, Program]:
    """Return by name what one of the folders has first."""
    found: dict[str, Program] = {}
    for program in programs:
        if program.kind is not ProgramKind.BROKEN and (program.path.rpartition("/")[0] or "/") in folders:
            found.setdefault(program.name, program)
    return found


def _everywhere(programs: Sequence[Program]) -> Mapping[str, frozenset[str]]:
    found: dict[str, set[str]] = {}
    for program in programs:
        if program.kind is not ProgramKind.BROKEN:
            found.setdefault(program.name, set()).add(program.real_path)
    return {name: frozenset(paths) for name, paths in found.items()}
