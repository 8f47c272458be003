"""Trying out how a person is told of what happens."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from agentmon.domain.notifications import Channel, Notification, NotificationKind

if TYPE_CHECKING:
    from agentmon.domain.clock import Clock
    from agentmon.services.settings import SettingsService


@dataclass(frozen=True, slots=True, kw_only=True)
class ChannelTrial:
    """What came of telling something over one channel."""

    channel: Channel
    problem: str
    """Why it was not told; empty when it was, or when only an open app can tell it."""


class NotificationService:
    """Sends a notification for trial."""

    def __init__(self, settings: SettingsService, clock: Clock) -> None:
        self._settings = settings
        self._clock = clock

    async def try_out(self, kind: NotificationKind) -> tuple[ChannelTrial, ...]:
        """Tell something over every channel that the kind is told over, whatever the hour."""
        from agentmon.worker.notification_channels import ChannelError  # noqa: PLC0415 - nothing else here needs it
        from agentmon.worker.notifying import tell  # noqa: PLC0415 - nothing else here needs it

        settings = await self._settings.notifications()
        notification = Notification(
            kind=kind,
            title="agentmon: a trial",
            text=f"so you are told of {kind.value.replace('_', ' ')}",
            at=self._clock.now(),
            event_id=0,
        )
        trials = []
        for channel in [channel for channel in Channel if channel in settings.channels_of(kind)]:
            problem = ""
            try:
                await tell(channel, notification, settings)
            except ChannelError as error:
                problem = str(error)
            trials.append(ChannelTrial(channel=channel, problem=problem))
        return tuple(trials)
