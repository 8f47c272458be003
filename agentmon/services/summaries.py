"""Summaries of what was done: by day and user, and by project."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from agentmon.domain.errors import UsageError
from agentmon.services.day_spans import chosen_days, settled_zone
from agentmon.store.summaries import DaySpan
from agentmon.store.usage_days import days_of_zone
from agentmon.worker.project_folders import find_project

if TYPE_CHECKING:
    from agentmon.domain.clock import Clock
    from agentmon.domain.summaries import Activity, DailySummary, ProjectSummary, SummaryPeriod
    from agentmon.services.settings import SettingsService
    from agentmon.store.summaries import SummaryRepository
    from agentmon.store.usage_days import UsageDayRepository


@dataclass(frozen=True, slots=True, kw_only=True)
class SummaryTime:
    """How much time each summary is about, and which days count."""

    period: SummaryPeriod
    zone_name: str
    """IANA name of the zone whose days they are."""
    since_day: str | None
    until_day: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class DailyReport:
    """Summaries by time and user, the oldest first."""

    time: SummaryTime
    summaries: tuple[DailySummary, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectReport:
    """Summaries of projects, by time the oldest first, then the dearest first."""

    time: SummaryTime
    project: str
    """The path of the one that was asked for, with those below it; empty for all."""
    summaries: tuple[ProjectSummary, ...]


class SummaryService:
    """Reads summaries."""

    def __init__(
        self,
        *,
        summaries: SummaryRepository,
        days: UsageDayRepository,
        settings: SettingsService,
        clock: Clock,
    ) -> None:
        self._summaries = summaries
        self._days = days
        self._settings = settings
        self._clock = clock

    async def daily(
        self, period: SummaryPeriod, *, since: str | None = None, until: str | None = None, last: int | None = None
    ) -> DailyReport:
        """Return the summaries by day, week or month, and by user.

        Args:
            period: How much time each is about.
            since: The first day, as a person writes it.
            until: The last day.
            last: So many days, weeks or months up to the last day, which is today by default.

        Raises:
            UsageError: A day cannot be read, or there is no such span of days.
        """
        time = await self._time(period, since, until, last)
        return DailyReport(time=time, summaries=await self._summaries.daily(period, _span(time)))

    async def projects(
        self,
        period: SummaryPeriod,
        *,
        folder: str | None = None,
        since: str | None = None,
        until: str | None = None,
        last: int | None = None,
    ) -> ProjectReport:
        """Return the summaries of projects by day, week or month; as ``daily``.

        Args:
            period: How much time each is about.
            folder: Any folder of a project, which may be gone; projects below it count too. None means all projects.
            since: The first day.
            until: The last day.
            last: So many days, weeks or months.

        Raises:
            UsageError: As ``daily``, or the folder cannot be one.
        """
        time = await self._time(period, since, until, last)
        project = "" if folder is None else await asyncio.to_thread(_project_of, folder)
        summaries = await self._summaries.projects(period, _span(time), project=project)
        return ProjectReport(time=time, project=project, summaries=summaries)

    async def activity(
        self, *, since_day: str | None = None, until_day: str | None = None, agent_slug: str = "", project: str = ""
    ) -> Activity:
        """Return how much was done from the first to the last of these days, in the zone in which days are kept.

        Args:
            since_day: ``2026-03-01``; None is without a limit.
            until_day: The same for the last day.
            agent_slug: One agent; empty for all.
            project: The path of a project, with those below it; empty for all.
        """
        span = DaySpan(since_day=since_day, until_day=until_day)
        return await self._summaries.activity(span, agent_slug=agent_slug, project=project)

    async def _time(self, period: SummaryPeriod, since: str | None, until: str | None, last: int | None) -> SummaryTime:
        zone_name = await settled_zone(self._days, self._settings, self._clock)
        today = days_of_zone(zone_name).day_of_moment(self._clock.now())
        since_day, until_day = chosen_days(since, until, last, period=period.value, today=today)
        return SummaryTime(period=period, zone_name=zone_name, since_day=since_day, until_day=until_day)


def _span(time: SummaryTime) -> DaySpan:
    return DaySpan(since_day=time.since_day, until_day=time.until_day)


def _project_of(folder: str) -> str:
    try:
        path = str(Path(folder).expanduser().resolve())
        path.encode()
        return find_project(path)
    except (OSError, RuntimeError, ValueError) as error:
        reason = "its name is not valid UTF-8" if isinstance(error, UnicodeError) else error
        raise UsageError(
            f"{folder!r} cannot be a folder that is known here: {reason}", hint="name a folder of the project"
        ) from error
