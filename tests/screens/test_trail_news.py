from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from agentmon.domain.execution_status import ExecutionStatus
from agentmon.screens.trail_news import ToldNews, TrailNews
from tests.screens.talks import talks

if TYPE_CHECKING:
    from pathlib import Path

    from tests.screens.talks import Talks


async def _find(news: TrailNews, place: Talks, *, is_board_shown: bool = False) -> ToldNews:
    return await news.find(place.services, is_board_shown=is_board_shown, now=datetime.now(UTC))


async def _end(place: Talks, title: str, status: ExecutionStatus) -> None:
    execution = await place.begin(title)
    await place.tell(execution, ending=status)


async def test_what_ended_since_the_last_look_is_told_once(tmp_path: Path) -> None:
    async with talks(tmp_path) as (place, _):
        news = TrailNews()
        await _end(place, "before", ExecutionStatus.SUCCEEDED)
        assert await _find(news, place) == ToldNews()

        await _end(place, "good", ExecutionStatus.SUCCEEDED)
        await _end(place, "bad", ExecutionStatus.FAILED)

        told = await _find(news, place)
        assert told.good == ("✓ #2 good: done",)
        assert told.bad[0].startswith("✗ #3 bad: failed")
        assert await _find(news, place) == ToldNews()


async def test_the_board_tells_by_its_cards_what_became_of_runs(tmp_path: Path) -> None:
    async with talks(tmp_path) as (place, _):
        news = TrailNews()
        await _find(news, place)
        await _end(place, "good", ExecutionStatus.SUCCEEDED)

        assert await _find(news, place, is_board_shown=True) == ToldNews()


async def test_settings_say_how_it_is_told(tmp_path: Path) -> None:
    async with talks(tmp_path) as (place, _):
        news = TrailNews()
        await _find(news, place)
        await place.services.settings.set("notifications.done", "bell", actor=place.services.actor)
        await _end(place, "good", ExecutionStatus.SUCCEEDED)

        assert await _find(news, place) == ToldNews(has_bell=True)
