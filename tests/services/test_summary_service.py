"""Summaries in the zone that is set, of the days and projects that a person names."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final

import pytest

from agentmon.domain.clock import FakeClock
from agentmon.domain.conversation import ToolStartedNews
from agentmon.domain.errors import UsageError
from agentmon.domain.operations import OperationType
from agentmon.domain.summaries import SummaryPeriod
from agentmon.paths import find_paths
from agentmon.services.actors import USER_ACTOR
from agentmon.services.settings import SettingsService
from agentmon.services.summaries import SummaryService
from agentmon.store.setting_rows import SettingRepository
from agentmon.store.summaries import SummaryRepository
from agentmon.store.usage_days import UsageDayRepository
from agentmon.store.workspaces import WorkspaceRepository
from tests.store.conversation_place import ConversationPlace, opened_place

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

SPRING: Final = datetime(2026, 3, 28, 23, 30, tzinfo=UTC)
"""Half past midnight in Berlin on the day whose clocks go forward, so that it has 23 hours."""


@pytest.fixture
async def place(tmp_path: Path) -> AsyncIterator[ConversationPlace]:
    async with opened_place(tmp_path) as opened:
        yield opened


@pytest.fixture
def settings(place: ConversationPlace, tmp_path: Path) -> SettingsService:
    paths = find_paths({"AGENTMON_HOME": str(tmp_path / "home")})
    database = place.database
    return SettingsService(SettingRepository(database), WorkspaceRepository(database), paths, FakeClock(SPRING))


def summaries_at(place: ConversationPlace, settings: SettingsService, now: datetime) -> SummaryService:
    return SummaryService(
        summaries=SummaryRepository(place.database),
        days=UsageDayRepository(place.database),
        settings=settings,
        clock=FakeClock(now),
    )


async def call_every_hour(place: ConversationPlace, since: datetime, hours: int) -> None:
    run = (await place.begin()).id
    for hour in range(hours):
        call = ToolStartedNews(tool_ref=str(hour), tool_name="Bash", type=OperationType.EXECUTE, target="ls")
        await place.tell(run, call, at_ms=round((since + timedelta(hours=hour)).timestamp() * 1000))


@pytest.mark.parametrize(
    ("zone_name", "since", "counts"),
    [
        ("Europe/Berlin", SPRING, [23, 7]),
        ("Europe/Berlin", datetime(2026, 10, 24, 22, tzinfo=UTC), [25, 5]),
        ("UTC", SPRING, [1, 24, 5]),
        ("Asia/Kolkata", SPRING, [19, 11]),
    ],
)
async def test_a_day_has_the_hours_that_its_zone_gives_it(
    place: ConversationPlace, settings: SettingsService, zone_name: str, since: datetime, counts: list[int]
) -> None:
    await call_every_hour(place, since, 30)
    await settings.set("costs.timezone", zone_name, actor=USER_ACTOR)

    report = await summaries_at(place, settings, SPRING).daily(SummaryPeriod.DAY, since="20260301")

    assert report.time.zone_name == zone_name
    assert [one.activity.operation_count for one in report.summaries] == counts


@pytest.mark.parametrize(
    ("period", "last", "since_day"),
    [
        (SummaryPeriod.DAY, 1, "2026-03-29"),
        (SummaryPeriod.DAY, 3, "2026-03-27"),
        (SummaryPeriod.WEEK, 1, "2026-03-23"),
        (SummaryPeriod.WEEK, 2, "2026-03-16"),
        (SummaryPeriod.MONTH, 1, "2026-03-01"),
        (SummaryPeriod.MONTH, 4, "2025-12-01"),
    ],
)
async def test_the_last_days_weeks_and_months_end_today(
    place: ConversationPlace, settings: SettingsService, period: SummaryPeriod, last: int, since_day: str
) -> None:
    await settings.set("costs.timezone", "Europe/Berlin", actor=USER_ACTOR)

    report = await summaries_at(place, settings, SPRING).daily(period, last=last)

    assert (report.time.since_day, report.time.until_day) == (since_day, "2026-03-29")


async def test_any_folder_of_a_repository_names_its_project(
    place: ConversationPlace, settings: SettingsService, tmp_path: Path
) -> None:
    (tmp_path / "shop" / ".git").mkdir(parents=True)
    (tmp_path / "shop" / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    (tmp_path / "shop" / "src").mkdir()
    summaries = summaries_at(place, settings, SPRING)

    report = await summaries.projects(SummaryPeriod.DAY, folder=str(tmp_path / "shop" / "src"))
    gone = await summaries.projects(SummaryPeriod.DAY, folder="/nowhere/at/all")

    assert report.project == str((tmp_path / "shop").resolve())
    assert (gone.project, gone.summaries) == ("/nowhere/at/all", ())


async def test_what_ran_in_a_project_is_in_its_summary(place: ConversationPlace, settings: SettingsService) -> None:
    await call_every_hour(place, SPRING, 2)

    report = await summaries_at(place, settings, SPRING).projects(SummaryPeriod.MONTH, folder="/w", since="2026-03-01")

    (summary,) = report.summaries
    assert (summary.workspace, summary.date, summary.active_users) == ("/w", "2026-03", 1)
    assert [(kind.type, kind.count) for kind in summary.top_operations] == [(OperationType.EXECUTE, 2)]


@pytest.mark.parametrize(
    ("since", "until", "message"),
    [
        ("2026-03-02", "2026-03-01", "the first day, 2026-03-02, comes after the last, 2026-03-01"),
        ("yesterday", None, "'yesterday' is no day"),
        (None, "2026-02-30", "'2026-02-30' is no day"),
    ],
)
async def test_days_that_cannot_be_meant_are_refused_with_a_way_out(
    place: ConversationPlace, settings: SettingsService, since: str | None, until: str | None, message: str
) -> None:
    with pytest.raises(UsageError) as refused:
        await summaries_at(place, settings, SPRING).daily(SummaryPeriod.DAY, since=since, until=until)

    assert str(refused.value) == message
    assert refused.value.hint


@pytest.mark.parametrize("folder", ["/w/\udcff", "/w\0", "~nobody-of-this-name/w"])
async def test_a_name_that_no_folder_can_have_is_refused_with_a_way_out(
    place: ConversationPlace, settings: SettingsService, folder: str
) -> None:
    with pytest.raises(UsageError, match="cannot be a folder") as refused:
        await summaries_at(place, settings, SPRING).projects(SummaryPeriod.DAY, folder=folder)

    assert refused.value.hint


async def test_the_earliest_days_can_be_named(place: ConversationPlace, settings: SettingsService) -> None:
    summaries = summaries_at(place, settings, SPRING)

    for period in SummaryPeriod:
        report = await summaries.daily(period, until="0001-01-03", last=36_500)
        assert report.time.since_day == "0001-01-01"
