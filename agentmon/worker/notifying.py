"""Tells a person of what the audit trail says happened, over the channels that the worker serves, each thing once."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
from typing import TYPE_CHECKING, Final

from agentmon.domain.notifications import Channel, gathered, notifications_in
from agentmon.worker.notification_channels import ChannelError, tell_command, tell_desktop, tell_webhook

if TYPE_CHECKING:
    from pathlib import Path

    from agentmon.domain.clock import Clock
    from agentmon.domain.notifications import Notification
    from agentmon.settings import NotificationSettings
    from agentmon.store.audit import AuditRepository

_log = logging.getLogger(__name__)

_MOST_LINES: Final = 1_000
"""Most lines of the trail that are read at once."""
_MOST_WAITING: Final = 50
"""Most that wait to be told: a channel that hangs loses the oldest, never the newest."""


class Notifier:
    """Looks at what is new in the trail, and tells of it in a task of its own.

    Args:
        audit: The trail.
        place_file: Keeps up to which line was told, from one worker to the next.
        clock: Tells the time for quiet hours.
    """

    def __init__(self, *, audit: AuditRepository, place_file: Path, clock: Clock) -> None:
        self._audit = audit
        self._place_file = place_file
        self._clock = clock
        self._seen_id: int | None = None
        self._is_forgotten = False
        self._waiting: asyncio.Queue[tuple[Channel, Notification, NotificationSettings]] = asyncio.Queue(_MOST_WAITING)
        self._next: tuple[Channel, Notification, NotificationSettings] | None = None
        self._complaints: dict[Channel, str] = {}

    async def look(self, settings: NotificationSettings) -> None:
        """Queue what is new for its channels; before anything is set up the trail is only followed.

        Raises:
            StoreError: The trail could not be read; the next look reads the same.
        """
        if not settings.is_worker_needed:
            await self._forget()
            return
        self._is_forgotten = False
        if self._seen_id is None:
            self._seen_id = await asyncio.to_thread(_read_place, self._place_file)
        if self._seen_id is None:
            await self._have_seen(await self._audit.newest_id())
            return
        is_quiet = settings.are_hours_quiet(self._clock.now().astimezone())
        while lines := await self._audit.news(self._seen_id, limit=_MOST_LINES):
            for notification in [] if is_quiet else gathered(notifications_in(lines)):
                for channel in sorted(settings.channels_of(notification.kind)):
                    if not channel.is_of_app:
                        self._put(channel, notification, settings)
            await self._have_seen(lines[-1][0].id)
            if len(lines) < _MOST_LINES:
                return

    async def wait(self) -> None:
        """Wait until something is to be told."""
        if self._next is None:
            self._next = await self._waiting.get()

    async def tell_next(self) -> None:
        """Tell what has waited longest; what a channel refuses is logged once and not tried again."""
        if self._next is None:
            return
        (channel, notification, settings), self._next = self._next, None
        try:
            await tell(channel, notification, settings)
        except ChannelError as error:
            if self._complaints.get(channel) != str(error):
                _log.warning("notification over %s was not told: %s", channel.value, error)
            self._complaints[channel] = str(error)
        else:
            self._complaints.pop(channel, None)

    def _put(self, channel: Channel, notification: Notification, settings: NotificationSettings) -> None:
        if self._waiting.full():
            with contextlib.suppress(asyncio.QueueEmpty):
                self._waiting.get_nowait()
        self._waiting.put_nowait((channel, notification, settings))

    async def _forget(self) -> None:
        """Let nothing that happens now be told when something is set up later."""
        if not self._is_forgotten:
            self._seen_id, self._is_forgotten = None, True
            await asyncio.to_thread(_remove_place, self._place_file)

    async def _have_seen(self, event_id: int) -> None:
        self._seen_id = event_id
        await asyncio.to_thread(_write_place, self._place_file, event_id)


async def tell(channel: Channel, notification: Notification, settings: NotificationSettings) -> None:
    """Tell it over one channel; those of an open app are none of the worker's.

    Raises:
        ChannelError: It was not told.
    """
    if channel is Channel.DESKTOP:
        await tell_desktop(notification)
    elif channel is Channel.COMMAND:
        if not settings.command:
            raise ChannelError("no command is set; `agentmon settings notifications.command COMMAND` sets one")
        await tell_command(settings.command, notification)
    elif channel is Channel.WEBHOOK:
        if not settings.webhook:
            raise ChannelError("no address is set; `agentmon settings notifications.webhook URL` sets one")
        await tell_webhook(settings.webhook, notification)


def _read_place(file: Path) -> int | None:
    try:
        return int(json.loads(file.read_text(encoding="utf-8"))["event_id"])
    except (OSError, ValueError, TypeError, KeyError):
        return None


def _remove_place(file: Path) -> None:
    with contextlib.suppress(OSError):
        file.unlink()


def _write_place(file: Path, event_id: int) -> None:
    new = file.with_name(f".{file.name}.new")
    with contextlib.suppress(OSError):
        new.write_text(json.dumps({"event_id": event_id}), encoding="utf-8")
        new.replace(file)
