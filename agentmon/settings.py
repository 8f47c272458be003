"""Settings: defaults, then the settings file, then AGENTMON_… variables; the database's own values come on top."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, ClassVar

from pydantic import Field, ValidationError
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict, TomlConfigSettingsSource

from agentmon.domain.errors import UsageError
from agentmon.domain.limits import DEFAULT_RUNNING_LIMIT, LARGEST_RUNNING_LIMIT

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from pydantic.fields import FieldInfo


class WorkerSettings(BaseSettings):
    """What the worker reads at its start and again whenever the database changes."""

    model_config = SettingsConfigDict(env_prefix="AGENTMON_WORKER_", extra="forbid", validate_default=True)
    settings_file: ClassVar[Path | None] = None

    max_running: int = Field(
        DEFAULT_RUNNING_LIMIT, ge=1, le=LARGEST_RUNNING_LIMIT, description="Most executions that run at one time."
    )
    grace_s: float = Field(
        5.0, ge=0, le=600, description="Seconds a program gets between the request to stop and its end by force."
    )
    poll_interval_s: float = Field(
        1.0, ge=0.05, le=60, description="Longest time until a change is noticed when its wake-up got lost."
    )
    heartbeat_s: float = Field(
        30.0, ge=1, le=600, description="Seconds between two heartbeats of the worker and of what it runs."
    )
    takeover_after_s: float = Field(
        120.0,
        ge=1,
        le=86400,
        description="Seconds without a heartbeat until runs of a dead worker of another folder are taken over.",
    )
    park_after_failures: int = Field(
        5, ge=0, le=1000, description="Failures in a row after which a program rests for a while; 0 means never."
    )
    keep_logs_days: int = Field(
        0, ge=0, le=36500, description="Days after which the log of an ended run is removed; 0 keeps all."
    )
    keep_logs_mb: int = Field(
        10_000,
        ge=0,
        le=100_000_000,
        description="Megabytes that the logs of ended runs may have together, oldest removed first; 0 means no limit.",
    )

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,  # noqa: ARG003 - a .env file of a project is not agentmon's
        file_secret_settings: PydanticBaseSettingsSource,  # noqa: ARG003 - no secret is a setting
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Return the sources, strongest first."""
        sources = [init_settings, env_settings]
        if cls.settings_file is not None and cls.settings_file.is_file():
            sources.append(_WorkerTable(settings_cls, cls.settings_file))
        return tuple(sources)


class _WorkerTable(TomlConfigSettingsSource):
    """The table ``[worker]`` of the settings file."""

    def __call__(self) -> dict[str, object]:
        table = self.toml_data.get("worker", {})
        return table if isinstance(table, dict) else {"worker": table}


KEY_PREFIX = "worker."
"""All settings of today belong to the worker: ``worker.max_running`` and so on."""


def setting_fields() -> Mapping[str, FieldInfo]:
    """Return every setting by its key, in the order of definition."""
    return {KEY_PREFIX + name: field for name, field in WorkerSettings.model_fields.items()}


@cache
def _located(settings_file: Path | None) -> type[WorkerSettings]:
    """Return the settings over this file; kept, since making such a class takes milliseconds of the event loop."""

    class Located(WorkerSettings):
        pass

    Located.settings_file = settings_file
    return Located


def load_worker_settings(settings_file: Path | None, stored: Mapping[str, object]) -> WorkerSettings:
    """Return the values in force.

    Args:
        settings_file: A TOML file with a table ``[worker]``; a missing one is as good as an empty one.
        stored: The rows of the table ``settings`` by key; they win over the file and the environment.

    Raises:
        UsageError: A value is not allowed; the message names the key, the value and the rule.
    """
    overrides = {
        key.removeprefix(KEY_PREFIX): stored_value for key, stored_value in stored.items() if key in setting_fields()
    }
    try:
        return _located(settings_file)(**overrides)  # type: ignore[arg-type]  # pydantic checks each value and says what is wrong
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        key = KEY_PREFIX + ".".join(str(part) for part in first["loc"])
        raise UsageError(
            f"setting {key} = {first['input']!r}: {first['msg'][:1].lower()}{first['msg'][1:]}",
            hint=f"`agentmon settings {key} VALUE` sets it; otherwise look in {settings_file}",
        ) from error
    except (OSError, ValueError) as error:
        raise UsageError(f"the settings file {settings_file} cannot be read: {error}") from error
