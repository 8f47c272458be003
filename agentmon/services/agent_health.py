"""How agents fare: whether their programs are there, whether somebody is logged in, and how their executions went."""

from __future__ import annotations

import asyncio
import os
import shutil
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Final

from agentmon.domain.agent_health import AgentHealth
from agentmon.runners.discovery.path_scan import path_folders
from agentmon.runners.discovery.places import find_places
from agentmon.runners.presets import load_library
from agentmon.schedule import local_zone_name
from agentmon.store.agent_health import AgentRuns
from agentmon.store.usage_days import days_of_zone

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from agentmon.domain.agents import Agent
    from agentmon.domain.clock import Clock
    from agentmon.domain.ids import AgentId
    from agentmon.paths import Paths
    from agentmon.runners.presets import PresetLogin
    from agentmon.store.agent_health import AgentHealthRepository
    from agentmon.store.usage_days import UsageDayRepository

_WEEK: Final = timedelta(days=6)
"""From today back to the first of seven days."""


class AgentHealthService:
    """Looks at agents without running one of them; reads nothing of what a login file holds."""

    def __init__(self, repository: AgentHealthRepository, days: UsageDayRepository, paths: Paths, clock: Clock) -> None:
        self._repository = repository
        self._days = days
        self._paths = paths
        self._clock = clock

    async def look(self, agents: Sequence[Agent]) -> Mapping[AgentId, AgentHealth]:
        """Return how each of these agents fares."""
        days = days_of_zone(await self._days.zone() or local_zone_name())
        runs = await self._repository.runs(since_day=days.day_of_moment(self._clock.now() - _WEEK))
        outside = await asyncio.to_thread(_look_outside, agents, dict(os.environ), self._paths.presets_dir)
        return {agent.id: _health(runs.get(agent.id, AgentRuns()), *outside[agent.id]) for agent in agents}


def _health(
    runs: AgentRuns, found_path: str | None, missing_note: str, is_logged_in: bool | None, login_note: str
) -> AgentHealth:
    return AgentHealth(
        found_path=found_path,
        missing_note=missing_note,
        is_logged_in=is_logged_in,
        login_note=login_note,
        running=runs.running,
        last_status=runs.last_status,
        last_ended_at=runs.last_ended_at,
        cost_week_nano=None if runs.answers == runs.unpriced_answers else runs.cost_nano,
        is_cost_known=runs.unpriced_answers == 0,
    )


def _look_outside(
    agents: Sequence[Agent], environ: Mapping[str, str], own_presets: Path
) -> Mapping[AgentId, tuple[str | None, str, bool | None, str]]:
    logins = {preset.slug: preset.login for preset in load_library(own_presets).presets}
    folders = (*path_folders(environ), *find_places(environ))
    return {
        agent.id: (
            *find_program(agent.binary_path, folders),
            *find_login(logins.get(agent.slug), environ),
        )
        for agent in agents
    }


def find_program(binary: str, folders: Sequence[Path]) -> tuple[str | None, str]:
    """Return where a program is, None when it cannot be started, and then why.

    Args:
        binary: A name, or a path.
        folders: Where a name is looked for.
    """
    found = shutil.which(binary, path=os.pathsep.join(map(str, folders))) if binary else None
    if found is not None or not binary:
        return found, ""
    for place in (Path(binary),) if os.sep in binary else (folder / binary for folder in folders):
        if place.is_symlink() and not os.path.lexists(os.path.realpath(place)):
            return None, f"{place} is a link to {os.path.realpath(place)}, which is not there"
        with suppress(OSError):
            if place.is_dir():
                return None, f"{place} is a folder"
            if place.is_file():
                return None, f"{place} cannot be executed; `chmod +x` makes a script a program"
    return None, f"{binary} is not there" if os.sep in binary else f"{binary} is not on the PATH"


def find_login(login: PresetLogin | None, environ: Mapping[str, str]) -> tuple[bool | None, str]:
    """Return whether somebody is logged in, None where that cannot be told from here, and what tells it.

    Args:
        login: How the program's preset says that it can be told.
        environ: Its home folder and its variables count.
    """
    if login is None:
        return None, ""
    for name in login.environment:
        if environ.get(name):
            return True, f"{name} is set"
    home = environ.get("HOME") or str(Path.home())
    for name in login.files:
        with suppress(OSError):
            if Path(home + name.removeprefix("~") if name.startswith("~") else name).is_file():
                return True, f"{name} is there"
    # What the program alone can say, such as a login in the system's own keyring, nobody denies here.
    is_told_by_files = bool(login.files or login.environment) and not (login.command or login.may_be_elsewhere)
    return (False if is_told_by_files else None), login.hint
