"""Settings: what is in force, and changing it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from agentmon.domain.errors import NotFoundError
from agentmon.settings import KEY_PREFIX, WorkerSettings, load_worker_settings, setting_fields
from agentmon.worker.wake import wake_worker

if TYPE_CHECKING:
    from collections.abc import Mapping

    from agentmon.domain.clock import Clock
    from agentmon.paths import Paths
    from agentmon.store.setting_rows import SettingRepository


@dataclass(frozen=True, slots=True, kw_only=True)
class SettingValue:
    """One setting as people see it."""

    key: str
    value: float
    default: float
    help: str


class SettingsService:
    """Reads and changes settings."""

    def __init__(self, repository: SettingRepository, paths: Paths, clock: Clock) -> None:
        self._repository = repository
        self._paths = paths
        self._clock = clock

    def default_worker_settings(self) -> WorkerSettings:
        """Return what holds where the database says nothing: file, environment, defaults."""
        return load_worker_settings(self._paths.settings_file, {})

    async def all(self) -> tuple[SettingValue, ...]:
        """Return every setting with the value in force."""
        return _values(load_worker_settings(self._paths.settings_file, await self._repository.all()))

    async def get(self, key: str) -> SettingValue:
        """Return one setting.

        Raises:
            NotFoundError: There is no such setting; the hint names all.
        """
        found = {setting.key: setting for setting in await self.all()}
        if key not in found:
            raise NotFoundError(f"there is no setting {key}", hint=f"settings are: {', '.join(found)}")
        return found[key]

    async def set(self, key: str, text: str) -> SettingValue:
        """Store one setting; a running worker takes it at once.

        Raises:
            NotFoundError: There is no such setting.
            UsageError: The value is not allowed; the message says what is.
        """
        await self.get(key)
        stored: Mapping[str, object] = {**await self._repository.all(), key: text}
        checked = load_worker_settings(self._paths.settings_file, stored)
        await self._repository.set(key, getattr(checked, key.removeprefix(KEY_PREFIX)), at=self._clock.now())
        wake_worker(self._paths.worker_socket)
        return await self.get(key)


def _values(settings: WorkerSettings) -> tuple[SettingValue, ...]:
    return tuple(
        SettingValue(
            key=key,
            value=getattr(settings, key.removeprefix(KEY_PREFIX)),
            default=field.default,
            help=field.description or "",
        )
        for key, field in setting_fields().items()
    )
