"""Settings: what is in force, and changing it."""

from __future__ import annotations

import asyncio
import os
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from agentmon.domain.errors import NotFoundError, UsageError
from agentmon.domain.execution_columns import columns_text, parse_columns
from agentmon.domain.limits import LARGEST_RUNNING_LIMIT
from agentmon.domain.sandboxes import read_sandbox
from agentmon.domain.verifications import read_command
from agentmon.domain.worktrees import Isolation
from agentmon.schedule import check_zone
from agentmon.services.theme_names import THEME_KEY, require_theme
from agentmon.settings import (
    SETTING_TABLES,
    SYSTEM_ZONE,
    AgentSettings,
    AppSettings,
    CostSettings,
    HistorySettings,
    NotificationSettings,
    SandboxSettings,
    VerificationSettings,
    WorkerSettings,
    load_settings,
    setting_fields,
)
from agentmon.store.board_setting import LIMITED, find_board_words, limit_name
from agentmon.store.money_setting import find_money_words
from agentmon.store.workspaces import SETTING_DEFAULTS
from agentmon.worker.wake import wake_worker

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from agentmon.domain.amounts import MoneyFormat
    from agentmon.domain.clock import Clock
    from agentmon.domain.events import Actor
    from agentmon.domain.execution_columns import ExecutionColumn
    from agentmon.domain.tasks import Workspace
    from agentmon.paths import Paths
    from agentmon.store.setting_rows import SettingRepository
    from agentmon.store.workspaces import WorkspaceRepository

AGENTS_MAY_DECIDE_KEY: Final = "approvals.agents_may_decide"
EXECUTION_COLUMNS_KEY: Final = "app.execution_columns"
ZONE_KEY: Final = "costs.timezone"
_OF_WORKSPACE: Final = "workspace."
_WORKSPACE_HELP: Final = {
    "max_running": "Most executions of this workspace that run at one time; 0 means no limit of its own.",
    "max_per_folder": "Most AI agents that work in one folder of this workspace at one time; 0 means any number.",
    "isolation": "Where runs work: folder, worktree (a git worktree each), or auto: an AI agent gets a worktree while "
    "another one works in the folder.",
    "sandbox": "The sandbox of runs that have none of their own: off, agentmon (it hides agentmon but for its command "
    "line), project (a run also writes in its project only). Empty: agentmon for AI agents, where this machine has it.",
    "verify": "The command that the work of AI agents has to pass before it counts as done, such as: make test.",
    **{
        limit_name(status): f"Most cards that {status.label} of this workspace should have; 0 is as board.* says."
        for status in LIMITED
    },
}
"""What each limit of a workspace is, by its name."""
_LARGEST_LIMITS: Final = {"max_running": LARGEST_RUNNING_LIMIT, "max_per_folder": LARGEST_RUNNING_LIMIT}
_MOST_CARDS: Final = 100_000


class SettingOrigin(StrEnum):
    """Who said what is in force."""

    DEFAULT = "default"
    OUTSIDE = "outside"
    """The settings file, or a variable of the environment."""
    STORED = "stored"
    """The database: it was set in the app or with ``agentmon settings``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SettingValue:
    """One setting as people see it."""

    key: str
    value: float | str
    default: float | str
    help: str
    origin: SettingOrigin = SettingOrigin.DEFAULT


class SettingsService:
    """Reads and changes settings."""

    def __init__(
        self, repository: SettingRepository, workspaces: WorkspaceRepository, paths: Paths, clock: Clock
    ) -> None:
        self._repository = repository
        self._workspaces = workspaces
        self._paths = paths
        self._clock = clock

    def default_worker_settings(self) -> WorkerSettings:
        """Return what holds where the database says nothing: file, environment, defaults."""
        return load_settings(WorkerSettings, self._paths.settings_file, {})

    def default_money_words(self) -> Mapping[str, str]:
        """Return what file and environment say of how amounts are shown, for readers that see the database's rows."""
        return find_money_words(str(self._paths.settings_file), os.environ)

    def default_board_words(self) -> Mapping[str, str]:
        """Return what file and environment say of the board, for readers that see the database's rows."""
        return find_board_words(str(self._paths.settings_file), os.environ)

    async def costs(self) -> CostSettings:
        """Return how tokens and money are counted."""
        return load_settings(CostSettings, self._paths.settings_file, await self._repository.all())

    async def worker(self) -> WorkerSettings:
        """Return what the worker goes by."""
        return load_settings(WorkerSettings, self._paths.settings_file, await self._repository.all())

    async def history(self) -> HistorySettings:
        """Return what is kept of conversations that agents had without agentmon."""
        return load_settings(HistorySettings, self._paths.settings_file, await self._repository.all())

    async def agents(self) -> AgentSettings:
        """Return what is done about agents by itself."""
        return load_settings(AgentSettings, self._paths.settings_file, await self._repository.all())

    async def notifications(self) -> NotificationSettings:
        """Return what a person is told of, and how."""
        return load_settings(NotificationSettings, self._paths.settings_file, await self._repository.all())

    async def verification(self) -> VerificationSettings:
        """Return how the work of runs is verified."""
        return load_settings(VerificationSettings, self._paths.settings_file, await self._repository.all())

    async def sandbox(self) -> SandboxSettings:
        """Return what the strictest sandbox lets runs do."""
        return load_settings(SandboxSettings, self._paths.settings_file, await self._repository.all())

    async def execution_columns(self) -> tuple[ExecutionColumn, ...]:
        """Return the columns that the table of executions shows, from left to right."""
        return parse_columns(
            load_settings(AppSettings, self._paths.settings_file, await self._repository.all()).execution_columns
        )

    async def keep_execution_columns(self, columns: Sequence[ExecutionColumn], *, actor: Actor) -> None:
        """Have the table of executions show these columns from now on."""
        await self.set(EXECUTION_COLUMNS_KEY, columns_text(tuple(columns)), actor=actor)

    async def money(self) -> MoneyFormat:
        """Return how amounts are shown."""
        return (await self.costs()).money

    async def agents_may_decide(self) -> bool:
        """Return whether a person has set that agents may decide about agents.

        Only what the database holds counts: the environment of a command is in the hands of who runs it.
        """
        return (await self._repository.all()).get(AGENTS_MAY_DECIDE_KEY) is True

    async def all(self, workspace: Workspace | None = None) -> tuple[SettingValue, ...]:
        """Return every setting with the value in force, those of the workspace last."""
        values = self._values(await self._repository.all())
        if workspace is None:
            return values
        own = await self._workspaces.settings(workspace.id)
        return (
            *values,
            *(
                SettingValue(
                    key=f"{_OF_WORKSPACE}{name}",
                    value=own.get(name, SETTING_DEFAULTS[name]),
                    default=SETTING_DEFAULTS[name],
                    help=words,
                    origin=SettingOrigin.STORED if name in own else SettingOrigin.DEFAULT,
                )
                for name, words in _WORKSPACE_HELP.items()
            ),
        )

    async def get(self, key: str, workspace: Workspace | None = None) -> SettingValue:
        """Return one setting.

        Raises:
            NotFoundError: There is no such setting; the hint names all.
        """
        found = {setting.key: setting for setting in await self.all(workspace)}
        if key not in found:
            raise NotFoundError(f"there is no setting {key}", hint=f"settings are: {', '.join(found)}")
        return found[key]

    async def set(self, key: str, text: str, *, actor: Actor, workspace: Workspace | None = None) -> SettingValue:
        """Store one setting; a running worker takes it at once, and the audit trail tells of it.

        Raises:
            NotFoundError: There is no such setting.
            UsageError: The value is not allowed; the message says what is.
            ConflictError: An agent asks.
        """
        await self.get(key, workspace)
        if key == ZONE_KEY and text.strip().lower() != SYSTEM_ZONE:
            text = check_zone(text)
        if key == THEME_KEY:
            text = text.strip()
            await asyncio.to_thread(require_theme, text, self._paths.themes_dir)
        if workspace is not None and key.startswith(_OF_WORKSPACE):
            name = key.removeprefix(_OF_WORKSPACE)
            if isinstance(SETTING_DEFAULTS.get(name), int):
                chosen: int | str = _limit(key, text, _LARGEST_LIMITS.get(name, _MOST_CARDS))
            else:
                chosen = _WORDS_OF.get(name, lambda _key, text: read_command(text))(key, text)
            await self._workspaces.set(workspace.id, name, chosen, actor=actor, at=self._clock.now())
        else:
            stored: Mapping[str, object] = {**await self._repository.all(), key: text}
            checked = {setting.key: setting.value for setting in self._values(stored)}
            await self._repository.set(key, checked[key], actor=actor, at=self._clock.now())
        wake_worker(self._paths.worker_socket)
        return await self.get(key, workspace)

    async def reset(self, key: str, *, actor: Actor, workspace: Workspace | None = None) -> SettingValue:
        """Let the settings file, the environment or the default say it again; return what is in force then.

        Raises:
            NotFoundError: There is no such setting.
            UsageError: Without it another setting could not be what it is.
            ConflictError: An agent asks.
        """
        await self.get(key, workspace)
        if workspace is not None and key.startswith(_OF_WORKSPACE):
            name = key.removeprefix(_OF_WORKSPACE)
            await self._workspaces.set(workspace.id, name, None, actor=actor, at=self._clock.now())
            wake_worker(self._paths.worker_socket)
            return await self.get(key, workspace)
        self._values({name: value for name, value in (await self._repository.all()).items() if name != key})
        await self._repository.remove(key, actor=actor, at=self._clock.now())
        wake_worker(self._paths.worker_socket)
        return await self.get(key, workspace)

    def _values(self, stored: Mapping[str, object]) -> tuple[SettingValue, ...]:
        tables = {table.table_name: load_settings(table, self._paths.settings_file, stored) for table in SETTING_TABLES}
        values = []
        for key, field in setting_fields().items():
            table, _, name = key.partition(".")
            value = getattr(tables[table], name)
            origin = SettingOrigin.DEFAULT if value == field.default else SettingOrigin.OUTSIDE
            values.append(
                SettingValue(
                    key=key,
                    value=value,
                    default=field.default,
                    help=field.description or "",
                    origin=SettingOrigin.STORED if key in stored else origin,
                )
            )
        return tuple(values)


def _isolation(key: str, text: str) -> str:
    written = text.strip().lower()
    if written not in set(Isolation):
        raise UsageError(f"setting {key} = {text!r}: one of {', '.join(Isolation)} is expected")
    return written


def _sandbox(key: str, text: str) -> str:
    return read_sandbox(text, name=f"setting {key}") or ""


_WORDS_OF: Final = {"isolation": _isolation, "sandbox": _sandbox}


def _limit(key: str, text: str, largest: int) -> int:
    if not text.strip().isdecimal() or int(text) > largest:
        raise UsageError(
            f"setting {key} = {text!r}: a whole number from 0 to {largest} is expected",
            hint=f"`agentmon settings {key} 2`; 0 means no limit of its own",
        )
    return int(text)
