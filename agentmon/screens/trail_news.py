"""What happened since the last look, for toasts and the bell."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from agentmon.domain.notifications import Channel, NotificationKind, gathered

if TYPE_CHECKING:
    from datetime import datetime

    from agentmon.bootstrap import Services
    from agentmon.domain.notifications import Notification

_GLYPHS: Final = {
    NotificationKind.NEEDS_YOU: "◆",
    NotificationKind.DONE: "✓",
    NotificationKind.FAILED: "✗",
    NotificationKind.PARKED: "⏸",
    NotificationKind.BUDGET: "$",
    NotificationKind.OVERLAP: "⚠",
}
_OF_CARDS: Final = frozenset(
    {NotificationKind.DONE, NotificationKind.FAILED, NotificationKind.PARKED, NotificationKind.OVERLAP}
)
"""What a card of the board shows by itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToldNews:
    """What is to be told in the app."""

    good: tuple[str, ...] = ()
    bad: tuple[str, ...] = ()
    has_bell: bool = False


class TrailNews:
    """Remembers up to where the audit trail was told."""

    def __init__(self) -> None:
        self._seen_id: int | None = None
        # A look that takes long is waited for: two from the same line would tell it twice.
        self._looking = asyncio.Lock()

    async def find(self, services: Services, *, is_board_shown: bool, now: datetime) -> ToldNews:
        """Return what is new since the last call; nothing at the first.

        What waits for a person is told by ``NeedsWatch``, which knows of agents' own screens too.

        Args:
            services: Tell what happened, and what is to be told.
            is_board_shown: Whether the person looks at the board, which shows by itself what became of runs.
            now: The time.
        """
        async with self._looking:
            if self._seen_id is None:
                self._seen_id = await services.audit.newest_id()
                return ToldNews()
            self._seen_id, found = await services.audit.notifications(self._seen_id)
        news = [one for one in gathered(found) if one.kind is not NotificationKind.NEEDS_YOU]
        if not news:
            return ToldNews()
        settings = await services.settings.notifications()
        shown = [
            one
            for one in news
            if Channel.TOAST in settings.channels_of(one.kind) and not (is_board_shown and one.kind in _OF_CARDS)
        ]
        rings = any(Channel.BELL in settings.channels_of(one.kind) for one in news)
        return ToldNews(
            good=tuple(_words(one) for one in shown if one.kind is NotificationKind.DONE),
            bad=tuple(_words(one) for one in shown if one.kind is not NotificationKind.DONE),
            has_bell=rings and not settings.are_hours_quiet(now.astimezone()),
        )


def _words(notification: Notification) -> str:
    title = f"{_GLYPHS[notification.kind]} {notification.title}"
    return f"{title}\n{notification.text}" if notification.text else title
