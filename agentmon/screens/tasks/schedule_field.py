"""The part of a dialog that says when a task runs by itself: a cron line and its zone, with the next times."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from textual.containers import Vertical

from agentmon.domain.errors import UsageError
from agentmon.domain.moments import moment_words
from agentmon.domain.plain_text import plain_line
from agentmon.domain.tasks import Schedule
from agentmon.widgets.form import FormField, LineInput
from agentmon.widgets.guarded import Guarded

if TYPE_CHECKING:
    from datetime import datetime

    from textual.app import ComposeResult
    from textual.widgets import Input
    from textual.worker import Worker

    from agentmon.domain.clock import Clock

_TIMES: Final = 3
_EMPTY_HELP: Final = "30 7 * * 1-5 is 07:30 from Monday to Friday; empty: it runs when somebody starts it"


class ScheduleField(Guarded, Vertical):
    """Two inputs; the zone is there while there is a line, and an empty one is that of this machine."""

    DEFAULT_CSS = """
    ScheduleField { height: auto; }
    """

    def __init__(self, schedule: Schedule | None, *, clock: Clock) -> None:
        super().__init__()
        self._clock = clock
        self._cron = LineInput("" if schedule is None else schedule.cron, placeholder="30 7 * * 1-5", id="cron")
        self._zone = LineInput("" if schedule is None else schedule.zone, id="zone")
        self._cron_field = FormField("Schedule", self._cron, id="cron-field")
        self._zone_field = FormField("Time zone", self._zone, id="zone-field")

    def compose(self) -> ComposeResult:
        """Yield the field of the times; that of their zone comes with the first time."""
        yield self._cron_field

    def on_mount(self) -> None:
        """Tell the next times of the start."""
        self._look()

    @property
    def typed(self) -> tuple[str, str]:
        """What stands in the inputs."""
        return self._cron.value.strip(), self._zone.value.strip()

    @property
    def first_wrong(self) -> FormField | None:
        """The first field with an error."""
        return next((one for one in (self._cron_field, self._zone_field) if one.error), None)

    def on_input_changed(self, event: Input.Changed) -> None:
        """Tell the next times of what is typed, or what is wrong with it."""
        event.stop()
        for one in (self._cron_field, self._zone_field):
            one.clear_when_changed()
        self._look()

    async def read(self) -> Schedule | None:
        """Return the schedule, or None when there is none or it is wrong; ``first_wrong`` tells which."""
        for one in (self._cron_field, self._zone_field):
            one.clear()
        cron, zone = self.typed
        if not cron:
            return None
        read = await asyncio.to_thread(_read, cron, zone, self._clock.now())
        if isinstance(read, Schedule):
            return read
        error, is_zone = read
        wrong = self._zone_field if is_zone else self._cron_field
        wrong.show_error(str(error), hint=error.hint)
        return None

    def _look(self) -> None:
        # Not the coroutine: one that another replaces before it began would never be awaited.
        _looking: Worker[None] = self.run_worker(
            self._tell_times, name="next times", group="next times", exclusive=True, exit_on_error=False
        )

    async def _tell_times(self) -> None:
        cron, zone = self.typed
        if cron and not self._zone_field.is_attached:
            await self.mount(self._zone_field)
        self._zone_field.display = bool(cron)
        if not cron:
            self._cron_field.show_note("")
            self._cron_field.show_help(_EMPTY_HELP)
            return
        words, note, is_zone, local_zone = await asyncio.to_thread(_told, cron, zone, self._clock.now())
        self._zone.placeholder = plain_line(local_zone)
        self._cron_field.show_help(words)
        self._cron_field.show_note("" if is_zone else note)
        self._zone_field.show_note(note if is_zone else "")


def _read(cron: str, zone: str, now: datetime) -> Schedule | tuple[UsageError, bool]:
    """Return the schedule, or the error with whether it is the zone's."""
    from agentmon.schedule import check_cron, check_zone, local_zone_name, next_time  # noqa: PLC0415 - see schedule

    try:
        zone = check_zone(zone) if zone else local_zone_name()
    except UsageError as error:
        return error, True
    try:
        cron = check_cron(cron)
        next_time(cron, zone, now)
    except UsageError as error:
        return error, False
    return Schedule(cron=cron, zone=zone)


def _told(cron: str, zone: str, now: datetime) -> tuple[str, str, bool, str]:
    """Return the next times, else what is wrong and whether with the zone, and the zone of this machine."""
    from zoneinfo import ZoneInfo  # noqa: PLC0415 - only schedules need zones

    from agentmon.schedule import local_zone_name, next_times  # noqa: PLC0415 - see schedule

    local_zone = local_zone_name()
    read = _read(cron, zone, now)
    if not isinstance(read, Schedule):
        error, is_zone = read
        return "", f"{error}; {error.hint}" if error.hint else str(error), is_zone, local_zone
    shown = ZoneInfo(read.zone)
    times = next_times(read.cron, read.zone, now, _TIMES)
    words = [moment_words(time, now=now, zone=shown) for time in times]
    return f"next: {', '.join(words)} ({read.zone})", "", False, local_zone
