"""Settings: defaults, then the settings file, then AGENTMON_… variables; the database's own values come on top."""

from __future__ import annotations

import shlex
from decimal import Decimal, InvalidOperation
from functools import cache
from typing import TYPE_CHECKING, ClassVar, Final, TypeVar, cast
from urllib.parse import urlsplit
from zoneinfo import ZoneInfo

from pydantic import Field, ValidationError, field_validator, model_validator
from pydantic_settings import BaseSettings, InitSettingsSource, PydanticBaseSettingsSource, SettingsConfigDict

from agentmon.domain.amounts import DOLLAR, MoneyFormat
from agentmon.domain.board import BoardSort
from agentmon.domain.errors import UsageError
from agentmon.domain.execution_columns import columns_text, parse_columns
from agentmon.domain.limits import DEFAULT_RUNNING_LIMIT, LARGEST_RUNNING_LIMIT
from agentmon.domain.merges import MergeHow, trailer_lines
from agentmon.domain.notifications import Channel, NotificationKind, parse_channels, parse_quiet_hours
from agentmon.domain.worktrees import BRANCH_TEMPLATE, branch_name
from agentmon.domain.written_text import toml_of

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime
    from pathlib import Path

    from pydantic.fields import FieldInfo
    from pydantic_core import ErrorDetails


SYSTEM_ZONE: Final = "system"
"""Stands for the zone of this machine."""
_LONGEST_CURRENCY: Final = 8
_LEAST_RATE: Final = Decimal("1e-9")
_LARGEST_RATE: Final = Decimal("1e9")


class TableSettings(BaseSettings):
    """Settings that stand in one table of the settings file."""

    settings_file: ClassVar[Path | None] = None
    table_name: ClassVar[str]

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
            sources.append(_FileTable(settings_cls, cls.settings_file, cls.table_name))
        return tuple(sources)


class _FileTable(InitSettingsSource):
    """One table of the settings file."""

    def __init__(self, settings_cls: type[BaseSettings], settings_file: Path, table_name: str) -> None:
        table = toml_of(settings_file.read_bytes()).get(table_name, {})
        super().__init__(settings_cls, table if isinstance(table, dict) else {table_name: table})


class WorkerSettings(TableSettings):
    """What the worker reads at its start and again whenever the database changes."""

    model_config = SettingsConfigDict(env_prefix="AGENTMON_WORKER_", extra="forbid", validate_default=True)
    table_name = "worker"

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
    keep_events_days: int = Field(
        180,
        ge=0,
        le=36500,
        description="Days after which the stream of an ended run loses what its conversation keeps; 0 keeps all.",
    )
    terminal_columns: int = Field(
        200, ge=80, le=1000, description="Columns of a run's terminal, whatever terminal shows it."
    )
    terminal_rows: int = Field(50, ge=24, le=1000, description="Rows of a run's terminal.")
    keep_audit_days: int = Field(
        0, ge=0, le=36500, description="Days after which lines of the audit trail are removed; 0 keeps all."
    )
    record_typed_text: bool = Field(
        False,
        description="Also record what is typed into the terminals of later runs, masked; otherwise how many keys.",
    )


class ApprovalSettings(TableSettings):
    """How requests of agents are decided."""

    model_config = SettingsConfigDict(env_prefix="AGENTMON_APPROVALS_", extra="forbid", validate_default=True)
    table_name = "approvals"

    timeout_s: float = Field(
        0,
        ge=0,
        le=31_536_000,
        description="Seconds after which a request that nobody decided is denied; 0 means never.",
    )
    agents_may_decide: bool = Field(
        False, description="Whether a program that agentmon runs may decide requests and change their rules."
    )


class CostSettings(TableSettings):
    """How tokens and money are counted."""

    model_config = SettingsConfigDict(env_prefix="AGENTMON_COSTS_", extra="forbid", validate_default=True)
    table_name = "costs"

    timezone: str = Field(
        SYSTEM_ZONE,
        description="Zone whose days, weeks and months count, such as Europe/Berlin; system is this machine's.",
    )
    import_history: bool = Field(
        True, description="Whether the worker reads what Claude Code, Codex and Gemini wrote down of their answers."
    )
    live_telemetry: bool = Field(
        False,
        description="Whether agents that start in their own screen send their usage to the worker over 127.0.0.1.",
    )

    currency: str = Field(
        DOLLAR, description="What amounts are shown in: an ISO code such as EUR, or what stands before an amount."
    )
    exchange_rate: str = Field(
        "1", description="Units of the currency for one US dollar, such as 0.92; of no meaning for USD."
    )
    decimals: int = Field(2, ge=0, le=9, description="How many decimals of an amount are shown.")

    @property
    def money(self) -> MoneyFormat:
        """How amounts are shown."""
        rate = self.exchange_rate if self.currency != DOLLAR else "1"
        return MoneyFormat(self.currency, rate, self.decimals)

    @field_validator("currency")
    @classmethod
    def _require_currency(cls, currency: str) -> str:
        written = currency.strip()
        if len(written) == len(DOLLAR) and written.isascii() and written.isalpha():
            return written.upper()
        is_plain = written.isprintable() and not any(letter.isspace() or letter.isnumeric() for letter in written)
        if not written or len(written) > _LONGEST_CURRENCY or not is_plain:
            raise ValueError("a code such as EUR is expected, or up to 8 characters such as € without blanks or digits")
        return written

    @field_validator("exchange_rate", mode="before")
    @classmethod
    def _require_rate(cls, rate: object) -> str:
        try:
            number = Decimal(str(rate).strip())
        except InvalidOperation as error:
            raise ValueError("a number is expected, such as 0.92") from error
        if not number.is_finite() or not _LEAST_RATE <= number <= _LARGEST_RATE:
            raise ValueError("a number above 0 is expected, such as 0.92")
        text = f"{number:f}"
        return text.rstrip("0").rstrip(".") if "." in text else text

    @model_validator(mode="after")
    def _require_rate_of_currency(self) -> CostSettings:
        if self.currency != DOLLAR and "exchange_rate" not in self.model_fields_set:
            raise ValueError(
                f"without costs.exchange_rate nothing can be shown in {self.currency}; "
                f"set the rate first, the units of {self.currency} for one US dollar"
            )
        return self

    @field_validator("timezone")
    @classmethod
    def _require_zone(cls, name: str) -> str:
        if name != SYSTEM_ZONE:
            try:
                ZoneInfo(name)
            except (KeyError, ValueError, OSError) as error:
                raise ValueError("there is no such time zone; zones are named like Europe/Berlin or UTC") from error
        return name


class HistorySettings(TableSettings):
    """What is kept of conversations that agents had without agentmon."""

    model_config = SettingsConfigDict(env_prefix="AGENTMON_HISTORY_", extra="forbid", validate_default=True)
    table_name = "history"

    import_messages: bool = Field(
        True, description="Whether what was said in them is kept, so that it can be read and searched."
    )


class SearchSettings(TableSettings):
    """What the search knows of."""

    model_config = SettingsConfigDict(env_prefix="AGENTMON_SEARCH_", extra="forbid", validate_default=True)
    table_name = "search"

    log_mb: int = Field(
        20,
        ge=0,
        le=100_000,
        description="Megabytes of a log that are searched, half at its beginning and half at its end; 0 means none.",
    )


class NotificationSettings(TableSettings):
    """What a person is told of, and over which channels: toast, bell, desktop, command, webhook, or none."""

    model_config = SettingsConfigDict(env_prefix="AGENTMON_NOTIFICATIONS_", extra="forbid", validate_default=True)
    table_name = "notifications"

    needs_you: str = Field("toast bell", description="How you are told that an agent waits for you.")
    done: str = Field("toast", description="How you are told that a run is done.")
    failed: str = Field("toast", description="How you are told that a run failed and is not tried again by itself.")
    parked: str = Field("toast", description="How you are told that a run or an agent waits for its vendor.")
    budget: str = Field("toast bell", description="How you are told how much of a budget is used.")
    overlap: str = Field("toast", description="How you are told that two runs edit the same file.")
    command: str = Field("", description="The shell command of the channel command; it gets JSON on standard input.")
    webhook: str = Field("", description="The http or https address of the channel webhook; it gets JSON by POST.")
    quiet_hours: str = Field(
        "", description="When only toasts are shown, in this machine's time, such as 22:00-07:00; empty is never."
    )

    def channels_of(self, kind: NotificationKind) -> frozenset[Channel]:
        """Return the channels over which that kind is told."""
        return parse_channels(str(getattr(self, kind.value)))

    @property
    def is_worker_needed(self) -> bool:
        """Whether anything is told by others than an open app."""
        return any(not channel.is_of_app for kind in NotificationKind for channel in self.channels_of(kind))

    def are_hours_quiet(self, at: datetime) -> bool:
        """Return whether the local time lies in the quiet hours."""
        hours = parse_quiet_hours(self.quiet_hours)
        return hours is not None and hours.hold(at)

    @field_validator("needs_you", "done", "failed", "parked", "budget", "overlap")
    @classmethod
    def _require_channels(cls, text: str) -> str:
        try:
            channels = parse_channels(text)
        except UsageError as error:
            raise ValueError(f"{error}; {error.hint}") from error
        return " ".join(channel for channel in Channel if channel in channels) or "none"

    @field_validator("quiet_hours")
    @classmethod
    def _require_hours(cls, text: str) -> str:
        try:
            parse_quiet_hours(text)
        except UsageError as error:
            raise ValueError(f"{error}; {error.hint}") from error
        return text.strip()

    @field_validator("webhook")
    @classmethod
    def _require_address(cls, text: str) -> str:
        written = text.strip()
        place = urlsplit(written)
        if written and (place.scheme not in {"http", "https"} or not place.hostname):
            raise ValueError("an address such as https://example.org/hook is expected")
        return written


class AppSettings(TableSettings):
    """How the app looks; it takes them at its next start, the theme at once."""

    model_config = SettingsConfigDict(env_prefix="AGENTMON_APP_", extra="forbid", validate_default=True)
    table_name = "app"

    theme: str = Field(
        "agentmon-dark",
        min_length=1,
        max_length=64,
        description="agentmon-dark, agentmon-light, agentmon-high-contrast, or one of your own.",
    )
    reduced_motion: bool = Field(False, description="Whether nothing moves or pulses.")
    ascii: bool = Field(False, description="Whether only ASCII is drawn, for terminals and fonts with nothing else.")
    mouse: bool = Field(True, description="Whether the app hears the mouse; off leaves it to the terminal.")
    execution_columns: str = Field(
        "",
        description="The columns of executions from left to right, such as: state task model cost; empty is the usual.",
    )
    welcome: bool = Field(True, description="Whether the very first start says what was found and what to try.")

    @field_validator("execution_columns")
    @classmethod
    def _require_columns(cls, text: str) -> str:
        try:
            return columns_text(parse_columns(text))
        except UsageError as error:
            raise ValueError(f"{error}; {error.hint}") from error


class BoardSettings(TableSettings):
    """How the cards of the board stand; a limit of a column only warns."""

    model_config = SettingsConfigDict(env_prefix="AGENTMON_BOARD_", extra="forbid", validate_default=True)
    table_name = "board"

    sort: str = Field(
        BoardSort.ORDER.value,
        description="How every column is sorted: order (their own), priority, due, changed, or state.",
    )
    limit_todo: int = Field(0, ge=0, le=100_000, description="Most cards that Todo should have; 0 means no limit.")
    limit_in_progress: int = Field(
        0, ge=0, le=100_000, description="Most cards that In progress should have; 0 means no limit."
    )
    limit_blocked: int = Field(
        0, ge=0, le=100_000, description="Most cards that Blocked should have; 0 means no limit."
    )
    limit_review: int = Field(0, ge=0, le=100_000, description="Most cards that Review should have; 0 means no limit.")
    review: bool = Field(True, description="Whether what an AI agent changed goes to Review before it is done.")
    archive_after_days: int = Field(
        0, ge=0, le=36_500, description="Days after which a closed card that nobody changes is archived; 0 means never."
    )

    @field_validator("sort")
    @classmethod
    def _require_sort(cls, word: str) -> str:
        written = word.strip().lower()
        if written not in set(BoardSort):
            raise ValueError(f"one of {', '.join(BoardSort)} is expected")
        return written


class AgentSettings(TableSettings):
    """What is done about agents by itself."""

    model_config = SettingsConfigDict(env_prefix="AGENTMON_AGENTS_", extra="forbid", validate_default=True)
    table_name = "agents"

    scan_hours: int = Field(
        24,
        ge=0,
        le=8760,
        description="Hours after which the app looks for programs again when it starts; 0 means never by itself.",
    )


class WorktreeSettings(TableSettings):
    """How worktrees of a repository are made for runs."""

    model_config = SettingsConfigDict(env_prefix="AGENTMON_WORKTREES_", extra="forbid", validate_default=True)
    table_name = "worktrees"

    branch: str = Field(
        BRANCH_TEMPLATE, description="What the branch of a worktree is called, with {number} and {title}."
    )
    setup_timeout_s: float = Field(600, ge=1, le=86_400, description="Seconds that the set-up of a worktree may take.")

    @field_validator("branch")
    @classmethod
    def _require_branch(cls, template: str) -> str:
        written = template.strip()
        try:
            branch_name(written, number=1, title="Title")
        except UsageError as error:
            raise ValueError(f"{error}; {error.hint}") from error
        return written


class SandboxSettings(TableSettings):
    """What a run in the sandbox ``project`` may do beside working in its project."""

    model_config = SettingsConfigDict(env_prefix="AGENTMON_SANDBOX_", extra="forbid", validate_default=True)
    table_name = "sandbox"

    writable: str = Field(
        "~/.cache",
        description="Folders and files that it also writes, separated by blanks, in shell quotes; ~ is your home.",
    )
    hidden: str = Field(
        "~/.aws ~/.azure ~/.config/gcloud ~/.docker ~/.git-credentials ~/.gnupg ~/.kube ~/.netrc ~/.ssh",
        description="Folders and files that it finds empty, separated by blanks, in shell quotes; ~ is your home.",
    )
    network: bool = Field(True, description="Whether it has a network; without one an AI agent reaches no model.")

    @field_validator("writable", "hidden")
    @classmethod
    def _require_places(cls, text: str) -> str:
        try:
            places = shlex.split(text)
        except ValueError as error:
            raise ValueError("a quote is not closed") from error
        wrong = next((one for one in places if not one.startswith(("/", "~/")) or "\0" in one), None)
        if wrong is not None:
            raise ValueError(f"{wrong} does not begin with / or ~/")
        return text.strip()


class VerificationSettings(TableSettings):
    """How the work of runs is verified."""

    model_config = SettingsConfigDict(env_prefix="AGENTMON_VERIFICATION_", extra="forbid", validate_default=True)
    table_name = "verification"

    timeout_s: float = Field(1800, ge=1, le=86_400, description="Seconds that a verification may take.")
    verify_retries: int = Field(
        1, ge=0, le=20, description="How often an agent is sent back with the output of a failed verification."
    )


class MergeSettings(TableSettings):
    """How what a task's branch has goes into its base."""

    model_config = SettingsConfigDict(env_prefix="AGENTMON_MERGE_", extra="forbid", validate_default=True)
    table_name = "merge"

    how: str = Field(MergeHow.SQUASH.value, description="How a task's branch is merged: squash, merge or rebase.")
    trailers: str = Field(
        "",
        description="Lines at the end of a proposed commit message, separated by ';', with {number}, {title} and "
        "{branch}, such as: Task: {number}; Reviewed-by: Ann <ann@example.org>.",
    )

    @field_validator("how")
    @classmethod
    def _require_how(cls, word: str) -> str:
        written = word.strip().lower()
        if written not in set(MergeHow):
            raise ValueError(f"one of {', '.join(MergeHow)} is expected")
        return written

    @field_validator("trailers")
    @classmethod
    def _require_trailers(cls, text: str) -> str:
        try:
            trailer_lines(text, number=1, title="Title", branch="branch")
        except UsageError as error:
            raise ValueError(f"{error}; {error.hint}") from error
        return text.strip()


_Settings = TypeVar("_Settings", bound=TableSettings)
SETTING_TABLES: Final[tuple[type[TableSettings], ...]] = (
    WorkerSettings,
    ApprovalSettings,
    CostSettings,
    HistorySettings,
    SearchSettings,
    NotificationSettings,
    AppSettings,
    BoardSettings,
    AgentSettings,
    WorktreeSettings,
    SandboxSettings,
    VerificationSettings,
    MergeSettings,
)


def setting_fields() -> Mapping[str, FieldInfo]:
    """Return every setting by its key, such as ``worker.max_running``, in the order of definition."""
    return {
        f"{table.table_name}.{name}": field for table in SETTING_TABLES for name, field in table.model_fields.items()
    }


@cache
def _located(table: type[TableSettings], settings_file: Path | None) -> type[TableSettings]:
    """Return the settings over this file; kept, since making such a class takes milliseconds of the event loop."""
    located: type[TableSettings] = type("Located", (table,), {"__module__": __name__})
    located.settings_file = settings_file
    return located


def _rule_words(table: type[TableSettings], fault: ErrorDetails) -> str:
    """Return what a value that was refused has to be."""
    field = table.model_fields.get(str(fault["loc"][0])) if fault["loc"] else None
    if field is not None and field.annotation is bool:
        return "true or false is expected"
    if field is not None and field.annotation in {int, float}:
        bounds = {name: getattr(rule, name) for rule in field.metadata for name in ("ge", "le") if hasattr(rule, name)}
        kind = "a whole number" if field.annotation is int else "a number"
        limits = "".join(f" {word} {bounds[name]:,}" for name, word in (("ge", "from"), ("le", "to")) if name in bounds)
        return f"{kind}{limits} is expected"
    if fault["type"] in {"literal_error", "enum"}:
        return f"{fault['ctx']['expected']} is expected"
    wrong = fault["msg"].removeprefix("Value error, ")
    return f"{wrong[:1].lower()}{wrong[1:]}"


def load_settings(table: type[_Settings], settings_file: Path | None, stored: Mapping[str, object]) -> _Settings:
    """Return the values in force of one table.

    Args:
        table: Which, such as ``WorkerSettings``.
        settings_file: A TOML file with the table, such as ``[worker]``; a missing one is as good as an empty one.
        stored: The rows of the table ``settings`` by key; they win over the file and the environment.

    Raises:
        UsageError: A value is not allowed; the message names the key, the value and the rule.
    """
    prefix = table.table_name + "."
    overrides = {
        key.removeprefix(prefix): stored_value
        for key, stored_value in stored.items()
        if key.startswith(prefix) and key.removeprefix(prefix) in table.model_fields
    }
    try:
        loaded = _located(table, settings_file)(**overrides)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        words = _rule_words(table, first)
        if not first["loc"]:
            # Two settings that do not go together.
            raise UsageError(
                f"the settings of {table.table_name}: {words}", hint=f"`agentmon settings`, or look in {settings_file}"
            ) from error
        key = prefix + ".".join(str(part) for part in first["loc"])
        raise UsageError(
            f"setting {key} = {first['input']!r}: {words}",
            hint=f"`agentmon settings {key} VALUE` sets it; otherwise look in {settings_file}",
        ) from error
    except (OSError, ValueError) as error:
        raise UsageError(f"the settings file {settings_file} cannot be read: {error}") from error
    return cast("_Settings", loaded)
