"""The schema: every table, constraint and index, under the names that the code, the CLI and people use.

Rows are written and read through SQLAlchemy Core (``tables.tasks.insert()``); the SQLModel classes define them.
Columns with a server default may be left out of an insert; times never have one, because they come from the clock.
"""

from collections.abc import Collection
from datetime import datetime
from enum import IntEnum, StrEnum
from typing import ClassVar, Final

from sqlalchemy import (
    DDL,
    BigInteger,
    CheckConstraint,
    Float,
    Index,
    MetaData,
    PrimaryKeyConstraint,
    String,
    Table,
    TextClause,
    UniqueConstraint,
    event,
    text,
)
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.orm import registry
from sqlalchemy.schema import CreateIndex
from sqlalchemy.sql.compiler import DDLCompiler
from sqlmodel import Field, SQLModel

from agentmon.domain.activity import Activity
from agentmon.domain.agents import (
    AgentKind,
    CapabilitySource,
    DangerLevel,
    DiscoveryMethod,
    InteractionMode,
    ParkReason,
    ToolType,
)
from agentmon.domain.approvals import ApprovalScope, ApprovalStatus, RuleDecision
from agentmon.domain.billing import Confidence
from agentmon.domain.budgets import BudgetAction, BudgetPeriod, BudgetScope, BudgetUnit
from agentmon.domain.changes import ChangeType
from agentmon.domain.conversation import AskKind
from agentmon.domain.diffs import DiffSide
from agentmon.domain.events import ActorType, EventLevel, EventType
from agentmon.domain.execution_mode import ExecutionMode
from agentmon.domain.execution_status import OPEN_STATUSES, EndReason, ExecutionStatus, WaitReason
from agentmon.domain.executions import CommandCause, CommandType
from agentmon.domain.merges import MergeHow
from agentmon.domain.operations import ArtifactKind, MessageRole, OperationStatus, OperationType
from agentmon.domain.overlaps import OverlapKind
from agentmon.domain.programs import ProgramKind
from agentmon.domain.pull_requests import ChecksState, PullRequestProgram, PullRequestState, ReviewState
from agentmon.domain.sandboxes import Sandbox
from agentmon.domain.sessions import RegistryStatus, SessionStatus
from agentmon.domain.task_status import Priority, TaskStatus
from agentmon.domain.verifications import VerificationStatus
from agentmon.domain.worktrees import Isolation, WorktreeStatus
from agentmon.store.activity_sums import TRIGGERS
from agentmon.store.board_counts import TASK_TRIGGERS
from agentmon.store.column_types import Json, Moment, growing_id, word
from agentmon.store.message_index import MESSAGES
from agentmon.store.search_index import LOG_SCHEMA, ROW_INDEXES
from agentmon.store.usage_conversations import HAS_FORMER_REFS

_ID: Final = String(36)
_MOMENT: Final = Moment()
_JSON: Final = Json()
_BIG: Final = BigInteger()
_FLOAT: Final = Float()

_ZERO: Final = {"server_default": text("0")}
_ONE: Final = {"server_default": text("1")}
_THREE: Final = {"server_default": text("3")}
_FALSE: Final = {"server_default": text("false")}
_TRUE: Final = {"server_default": text("true")}
_PERSON: Final = {"server_default": text("'person'")}
_EMPTY: Final = {"server_default": text("''")}
_EMPTY_LIST: Final = {"server_default": text("'[]'")}
_EMPTY_OBJECT: Final = {"server_default": text("'{}'")}
_METADATA: Final = {"name": "metadata", "server_default": text("'{}'")}

metadata: Final = MetaData(
    naming_convention={
        "pk": "pk_%(table_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "ck": "ck_%(table_name)s_%(constraint_name)s",
    },
)
_registry: Final = registry(metadata=metadata)


class _Row(SQLModel, registry=_registry):
    """The base of every row class; it keeps the schema apart from SQLModel's global one."""

    metadata: ClassVar[MetaData] = metadata


def _one_of(column: str, words: Collection[StrEnum]) -> TextClause:
    listed = [f"'{value}'" for value in sorted(words)]
    return text(f"{column} = {listed[0]}" if len(listed) == 1 else f"{column} IN ({', '.join(listed)})")


def _within(column: str, numbers: type[IntEnum]) -> CheckConstraint:
    return CheckConstraint(f"{column} BETWEEN {min(numbers).value} AND {max(numbers).value}", name=column)


def _not_negative(*columns: str) -> tuple[CheckConstraint, ...]:
    return tuple(CheckConstraint(f"{column} >= 0", name=f"{column}_not_negative") for column in columns)


_WHERE: Final = "where"


def _where(name: str, *columns: str, where: TextClause, unique: bool = False) -> Index:
    # The word for PostgreSQL would load that dialect, 2 MB that SQLite has no use for; see ``_create_partial_index``.
    return Index(name, *columns, unique=unique, sqlite_where=where, info={_WHERE: where})


@compiles(CreateIndex, "postgresql")
def _create_partial_index(create: CreateIndex, compiler: DDLCompiler, **options: object) -> str:
    index = create.element
    index.dialect_options["postgresql"][_WHERE] = index.info.get(_WHERE)
    statement: str = compiler.visit_create_index(create, **options)  # type: ignore[no-untyped-call]
    return statement


def _of_board(name: str, *order: str, is_archived: bool = False) -> Index:
    """Return the index of one order of the cards of a column.

    It holds the columns of its condition too, since SQLite reads the row for what an index does not hold.
    """
    condition = text(f"deleted_at IS NULL AND archived_at IS {'NOT ' if is_archived else ''}NULL")
    return _where(name, "status", "workspace_id", *order, "deleted_at", "archived_at", where=condition)


class UserRow(_Row, table=True):
    """A person; a local database has one."""

    __tablename__ = "users"

    id: str = Field(primary_key=True, sa_type=_ID)
    name: str
    created_at: datetime = Field(sa_type=_MOMENT)
    updated_at: datetime = Field(sa_type=_MOMENT)


class WorkspaceRow(_Row, table=True):
    """A project folder."""

    __tablename__ = "workspaces"
    __table_args__ = (UniqueConstraint("root_path"), Index(None, "owner_id"))

    id: str = Field(primary_key=True, sa_type=_ID)
    owner_id: str = Field(foreign_key="users.id", ondelete="RESTRICT", sa_type=_ID)
    name: str
    root_path: str
    settings: dict[str, object] = Field(sa_type=_JSON, sa_column_kwargs=_EMPTY_OBJECT)
    created_at: datetime = Field(sa_type=_MOMENT)
    updated_at: datetime = Field(sa_type=_MOMENT)
    first_commit: str | None
    """Of its repository, whose folder is known again by it; empty when git could not say in time."""
    remote: str | None


class SettingRow(_Row, table=True):
    """One setting; the value is any JSON."""

    __tablename__ = "settings"

    key: str = Field(primary_key=True)
    value: object = Field(sa_type=_JSON, nullable=False)
    created_at: datetime = Field(sa_type=_MOMENT)
    updated_at: datetime = Field(sa_type=_MOMENT)


class AgentRow(_Row, table=True):
    """A program that can be given work; one of a workspace goes with it."""

    __tablename__ = "agents"
    __table_args__ = (
        UniqueConstraint("slug"),
        CheckConstraint("model_tier BETWEEN 1 AND 4", name="model_tier"),
        *_not_negative("max_concurrent", "temperature", "failure_streak"),
        Index(None, "workspace_id", "is_active"),
    )

    id: str = Field(primary_key=True, sa_type=_ID)
    owner_id: str = Field(foreign_key="users.id", ondelete="RESTRICT", sa_type=_ID)
    workspace_id: str | None = Field(foreign_key="workspaces.id", ondelete="CASCADE", sa_type=_ID)
    name: str
    slug: str
    kind: AgentKind = Field(sa_type=word(AgentKind, "kind"))
    tool_type: ToolType = Field(sa_type=word(ToolType, "tool_type"))
    binary_path: str
    base_args: list[str] = Field(sa_type=_JSON, sa_column_kwargs=_EMPTY_LIST)
    working_dir: str | None
    env_allowlist: list[str] = Field(sa_type=_JSON, sa_column_kwargs=_EMPTY_LIST)
    is_active: bool = Field(sa_column_kwargs=_TRUE)
    max_concurrent: int = Field(sa_column_kwargs=_ONE)
    discovery_method: DiscoveryMethod = Field(sa_type=word(DiscoveryMethod, "discovery_method"))
    version: str | None
    package_name: str | None
    package_section: str | None
    mcp_enabled: bool = Field(sa_column_kwargs=_FALSE)
    session_config: dict[str, object] | None = Field(sa_type=_JSON)
    role: str | None
    model: str | None
    model_tier: int | None
    temperature: float | None = Field(sa_type=_FLOAT)
    instructions: str | None
    last_scanned_at: datetime | None = Field(sa_type=_MOMENT)
    failure_streak: int = Field(sa_column_kwargs=_ZERO)
    """How many of its executions failed one after the other."""
    parked_until: datetime | None = Field(sa_type=_MOMENT)
    """Nothing of it starts before."""
    park_reason: ParkReason | None = Field(sa_type=word(ParkReason, "park_reason"))
    park_note: str | None
    metadata_: dict[str, object] = Field(sa_type=_JSON, sa_column_kwargs=_METADATA)
    created_at: datetime = Field(sa_type=_MOMENT)
    updated_at: datetime = Field(sa_type=_MOMENT)
    edited_fields: list[str] = Field(sa_type=_JSON, sa_column_kwargs=_EMPTY_LIST)
    """What a person changed, by the names of the columns; neither a preset nor a scan writes there again."""
    missing_since: datetime | None = Field(sa_type=_MOMENT)
    """When a scan first saw that its program is gone; NULL while it is there."""
    removed_at: datetime | None = Field(sa_type=_MOMENT)
    """When a person took it out of the registry; the row stays for what it has done."""
    parked_at: datetime | None = Field(sa_type=_MOMENT)
    """When ``parked_until`` was written."""


class AgentToolRow(_Row, table=True):
    """Whether an agent may use one of its own tools."""

    __tablename__ = "agent_tools"

    agent_id: str = Field(primary_key=True, foreign_key="agents.id", ondelete="CASCADE", sa_type=_ID)
    tool_name: str = Field(primary_key=True)
    enabled: bool = Field(sa_column_kwargs=_TRUE)
    created_at: datetime = Field(sa_type=_MOMENT)
    updated_at: datetime = Field(sa_type=_MOMENT)


class AgentCapabilityRow(_Row, table=True):
    """One thing an agent can be asked to do."""

    __tablename__ = "agent_capabilities"
    __table_args__ = (
        UniqueConstraint("agent_id", "key"),
        CheckConstraint(
            f"interaction_mode <> '{InteractionMode.TEMPLATE}' OR command_tokens IS NOT NULL",
            name="template_has_command_tokens",
        ),
        _within("danger_level", DangerLevel),
        *_not_negative("timeout_s", "max_output_bytes"),
    )

    id: str = Field(primary_key=True, sa_type=_ID)
    agent_id: str = Field(foreign_key="agents.id", ondelete="CASCADE", sa_type=_ID)
    key: str
    label: str
    description: str | None
    source: CapabilitySource = Field(sa_type=word(CapabilitySource, "source"))
    interaction_mode: InteractionMode = Field(sa_type=word(InteractionMode, "interaction_mode"))
    command_tokens: list[str] | None = Field(sa_type=_JSON)
    prompt_template: str | None
    mode: ExecutionMode | None = Field(sa_type=word(ExecutionMode, "mode"))
    """How the agent is spoken to for this; NULL means its own protocol, or a plain command."""
    args_schema: dict[str, object] = Field(sa_type=_JSON, sa_column_kwargs=_EMPTY_OBJECT)
    requires_approval: bool = Field(sa_column_kwargs=_FALSE)
    is_enabled: bool = Field(sa_column_kwargs=_TRUE)
    danger_level: int = Field(sa_column_kwargs=_ZERO)
    timeout_s: int = Field(sa_column_kwargs={"server_default": text("300")})
    max_output_bytes: int = Field(sa_type=_BIG, sa_column_kwargs={"server_default": text(str(10 * 1024 * 1024))})
    created_at: datetime = Field(sa_type=_MOMENT)
    updated_at: datetime = Field(sa_type=_MOMENT)
    edited_fields: list[str] = Field(sa_type=_JSON, sa_column_kwargs=_EMPTY_LIST)
    """What a person changed, by the names of the columns; neither a preset nor a scan writes there again."""
    removed_at: datetime | None = Field(sa_type=_MOMENT)
    """When a person took it away; the row stays for what ran with it."""


class ProgramRow(_Row, table=True):
    """A program that a scan of the PATH found; one that went keeps its row."""

    __tablename__ = "programs"
    __table_args__ = (Index(None, "name"),)

    path: str = Field(primary_key=True)
    """As it stands on the PATH, before links are followed; an alias is ``alias:NAME``."""
    name: str
    real_path: str
    kind: ProgramKind = Field(sa_type=word(ProgramKind, "kind"))
    shadowed_by: str | None
    """The path of the program of this name that comes earlier on the PATH."""
    size_bytes: int = Field(sa_type=_BIG, sa_column_kwargs=_ZERO)
    modified_ms: int = Field(sa_type=_BIG, sa_column_kwargs=_ZERO)
    package_manager: str | None
    package_name: str | None
    package_section: str | None
    package_version: str | None
    first_seen_at: datetime = Field(sa_type=_MOMENT)
    last_seen_at: datetime = Field(sa_type=_MOMENT)
    changed_at: datetime | None = Field(sa_type=_MOMENT)
    """When a scan last saw another file at its place."""
    missing_since: datetime | None = Field(sa_type=_MOMENT)
    created_at: datetime = Field(sa_type=_MOMENT)
    updated_at: datetime = Field(sa_type=_MOMENT)


class TrustedAgentFileRow(_Row, table=True):
    """The file of agents of a workspace, in the very state that a person has trusted."""

    __tablename__ = "trusted_agent_files"

    workspace_id: str = Field(primary_key=True, foreign_key="workspaces.id", ondelete="CASCADE", sa_type=_ID)
    path: str
    digest: str
    """SHA-256 of its bytes, in hexadecimal digits."""
    trusted_by: str = Field(foreign_key="users.id", ondelete="RESTRICT", sa_type=_ID)
    created_at: datetime = Field(sa_type=_MOMENT)
    updated_at: datetime = Field(sa_type=_MOMENT)


class TaskRow(_Row, table=True):
    """A card; a deleted or archived one keeps its row, so that it comes back and its number is never used again."""

    __tablename__ = "tasks"
    __table_args__ = (
        UniqueConstraint("workspace_id", "number"),
        _within("priority", Priority),
        CheckConstraint("number >= 1", name="number_from_one"),
        CheckConstraint("version >= 1", name="version_from_one"),
        CheckConstraint("parent_task_id <> id", name="no_parent_of_itself"),
        CheckConstraint("(cron IS NULL) = (cron_zone IS NULL)", name="cron_with_zone"),
        _of_board("ix_tasks_board", "sort_order", "id"),
        _of_board("ix_tasks_board_priority", "priority", "sort_order", "id"),
        _of_board("ix_tasks_board_due", "due_at", "sort_order", "id"),
        _of_board("ix_tasks_board_changed", "updated_at", "id"),
        _of_board("ix_tasks_archived", "sort_order", "id", is_archived=True),
        Index(None, "parent_task_id"),
        Index(None, "assignee_agent_id"),
        _where("ix_tasks_next_run_at", "next_run_at", where=text("next_run_at IS NOT NULL")),
        _where("ix_tasks_alternatives_id", "alternatives_id", where=text("alternatives_id IS NOT NULL")),
    )

    id: str = Field(primary_key=True, sa_type=_ID)
    number: int
    owner_id: str = Field(foreign_key="users.id", ondelete="RESTRICT", sa_type=_ID)
    workspace_id: str = Field(foreign_key="workspaces.id", ondelete="RESTRICT", sa_type=_ID)
    parent_task_id: str | None = Field(foreign_key="tasks.id", ondelete="SET NULL", sa_type=_ID)
    title: str
    description: str | None
    status: TaskStatus = Field(sa_type=word(TaskStatus, "status"))
    priority: int = Field(sa_column_kwargs=_THREE)
    sort_order: int = Field(sa_type=_BIG)
    assignee_agent_id: str | None = Field(foreign_key="agents.id", ondelete="SET NULL", sa_type=_ID)
    input_context: dict[str, object] = Field(sa_type=_JSON, sa_column_kwargs=_EMPTY_OBJECT)
    due_at: datetime | None = Field(sa_type=_MOMENT)
    cron: str | None
    cron_zone: str | None
    """IANA name of the time zone in which the cron line is read."""
    next_run_at: datetime | None = Field(sa_type=_MOMENT)
    version: int = Field(sa_column_kwargs=_ONE)
    """Counts the writes: a change names the version it has seen and is refused when the row has moved on."""
    deleted_at: datetime | None = Field(sa_type=_MOMENT)
    created_at: datetime = Field(sa_type=_MOMENT)
    updated_at: datetime = Field(sa_type=_MOMENT)
    archived_at: datetime | None = Field(sa_type=_MOMENT)
    """Off the board since then, with everything kept."""
    alternatives_id: str | None = Field(foreign_key="tasks.id", ondelete="SET NULL", sa_type=_ID)
    """The first of the tasks that are alternatives of each other, also on its own row; NULL for a task without any."""


class TaskDependencyRow(_Row, table=True):
    """A task waits for another one."""

    __tablename__ = "task_dependencies"
    __table_args__ = (
        CheckConstraint("task_id <> depends_on_task_id", name="not_on_itself"),
        Index(None, "depends_on_task_id"),
    )

    task_id: str = Field(primary_key=True, foreign_key="tasks.id", ondelete="CASCADE", sa_type=_ID)
    depends_on_task_id: str = Field(primary_key=True, foreign_key="tasks.id", ondelete="CASCADE", sa_type=_ID)
    created_at: datetime = Field(sa_type=_MOMENT)


class TaskLabelRow(_Row, table=True):
    """A task has a label."""

    __tablename__ = "task_labels"
    __table_args__ = (Index(None, "label"), {"sqlite_with_rowid": False})

    task_id: str = Field(primary_key=True, foreign_key="tasks.id", ondelete="CASCADE", sa_type=_ID)
    label: str = Field(primary_key=True)


class TaskEventRow(_Row, table=True):
    """One line of the audit trail; ids are never used twice, lines never changed, and removed by ``thinning`` alone."""

    __tablename__ = "task_events"
    __table_args__ = (Index(None, "task_id", "id"), {"sqlite_autoincrement": True})

    id: int = Field(primary_key=True, sa_type=growing_id())
    task_id: str | None = Field(foreign_key="tasks.id", ondelete="RESTRICT", sa_type=_ID)
    """NULL for what concerns no single task: a setting, the queue, an agent."""
    actor_type: ActorType = Field(sa_type=word(ActorType, "actor_type"))
    actor_id: str | None
    event_type: str
    payload: dict[str, object] = Field(sa_type=_JSON, sa_column_kwargs=_EMPTY_OBJECT)
    created_at: datetime = Field(sa_type=_MOMENT)


class SessionRow(_Row, table=True):
    """One conversation with an agent."""

    __tablename__ = "sessions"
    __table_args__ = (
        CheckConstraint("model_tier BETWEEN 1 AND 4", name="model_tier"),
        *_not_negative(
            "temperature",
            "total_tokens",
            "total_cost_nano",
            "operation_count",
            "context_tokens",
            "context_limit_tokens",
        ),
        Index(None, "status", "started_at"),
        Index(None, "agent_id", "started_at"),
        Index(None, "task_id"),
        Index(None, "started_at"),
        Index(None, "session_ref"),
        _where("ix_sessions_former_refs", "agent_id", where=text(HAS_FORMER_REFS)),
    )

    id: str = Field(primary_key=True, sa_type=_ID)
    user_id: str = Field(foreign_key="users.id", ondelete="RESTRICT", sa_type=_ID)
    agent_id: str = Field(foreign_key="agents.id", ondelete="RESTRICT", sa_type=_ID)
    task_id: str | None = Field(foreign_key="tasks.id", ondelete="SET NULL", sa_type=_ID)
    title: str | None
    workspace: str
    session_ref: str | None
    status: SessionStatus = Field(sa_type=word(SessionStatus, "status"))
    model: str | None
    model_tier: int | None
    temperature: float | None = Field(sa_type=_FLOAT)
    initial_prompt: str = Field(sa_column_kwargs=_EMPTY)
    started_at: datetime = Field(sa_type=_MOMENT)
    ended_at: datetime | None = Field(sa_type=_MOMENT)
    total_tokens: int = Field(sa_type=_BIG, sa_column_kwargs=_ZERO)
    total_cost_nano: int = Field(sa_type=_BIG, sa_column_kwargs=_ZERO)
    operation_count: int = Field(sa_column_kwargs=_ZERO)
    metadata_: dict[str, object] = Field(sa_type=_JSON, sa_column_kwargs=_METADATA)
    created_at: datetime = Field(sa_type=_MOMENT)
    updated_at: datetime = Field(sa_type=_MOMENT)
    project: str = Field(sa_column_kwargs=_EMPTY)
    """The repository around ``workspace``, under which its work is summed up."""
    day_local: str = Field(sa_type=String(10), sa_column_kwargs=_EMPTY)
    """The day on which it began."""
    context_tokens: int | None = Field(sa_type=_BIG)
    """How much of the context the last answer took."""
    context_limit_tokens: int | None = Field(sa_type=_BIG)
    context_at_ms: int | None = Field(sa_type=_BIG)


IS_ENDED_BY_BUDGET: Final = _one_of("end_reason", [EndReason.BUDGET])
"""In the words of its index."""


class ExecutionRow(_Row, table=True):
    """One try at a task; a task has at most one open one, and a task with tries cannot be removed from the file."""

    __tablename__ = "executions"
    __table_args__ = (
        *_not_negative(
            "log_byte_size",
            "log_line_count",
            "journal_offset",
            "retry_count",
            "max_retries",
            "attempt",
            "wait_count",
            "verify_retry",
            "verification_ms",
            "tokens_used",
            "cost_nano",
        ),
        _within("priority", Priority),
        _where(
            "ix_executions_queued",
            "priority",
            "queued_at",
            "id",
            where=_one_of("status", [ExecutionStatus.QUEUED]),
        ),
        _where("uq_executions_open_task_id", "task_id", where=_one_of("status", OPEN_STATUSES), unique=True),
        _where(
            "ix_executions_unsuccessful",
            "task_id",
            "created_at",
            "id",
            where=_one_of("status", [ExecutionStatus.FAILED, ExecutionStatus.TIMED_OUT]),
        ),
        _where("ix_executions_budget", "task_id", where=IS_ENDED_BY_BUDGET),
        Index(None, "task_id", "created_at"),
        Index(None, "heartbeat_at"),
        Index(None, "agent_id", "status"),
        Index(None, "agent_id", "created_at", "id"),
        Index(None, "session_id"),
        Index(None, "created_at"),
    )

    id: str = Field(primary_key=True, sa_type=_ID)
    task_id: str = Field(foreign_key="tasks.id", ondelete="RESTRICT", sa_type=_ID)
    agent_id: str = Field(foreign_key="agents.id", ondelete="RESTRICT", sa_type=_ID)
    capability_id: str = Field(foreign_key="agent_capabilities.id", ondelete="RESTRICT", sa_type=_ID)
    session_id: str | None = Field(foreign_key="sessions.id", ondelete="SET NULL", sa_type=_ID)
    requested_by: str = Field(foreign_key="users.id", ondelete="RESTRICT", sa_type=_ID)
    """The user on whose behalf it runs; the audit trail says who asked."""
    status: ExecutionStatus = Field(sa_type=word(ExecutionStatus, "status"))
    mode: ExecutionMode = Field(sa_type=word(ExecutionMode, "mode"))
    args: dict[str, object] = Field(sa_type=_JSON, sa_column_kwargs=_EMPTY_OBJECT)
    prompt: str | None
    pid: int | None
    session_ref: str | None
    tmux_session_name: str | None
    parent_execution_id: str | None = Field(foreign_key="executions.id", ondelete="SET NULL", sa_type=_ID)
    started_at: datetime | None = Field(sa_type=_MOMENT)
    ended_at: datetime | None = Field(sa_type=_MOMENT)
    exit_code: int | None
    error: str | None
    worker_id: str | None
    heartbeat_at: datetime | None = Field(sa_type=_MOMENT)
    log_file_path: str | None
    log_byte_size: int = Field(sa_type=_BIG, sa_column_kwargs=_ZERO)
    log_line_count: int = Field(sa_type=_BIG, sa_column_kwargs=_ZERO)
    log_updated_at: datetime | None = Field(sa_type=_MOMENT)
    last_line: str | None
    journal_offset: int = Field(sa_type=_BIG, sa_column_kwargs=_ZERO)
    retry_count: int = Field(sa_column_kwargs=_ZERO)
    max_retries: int = Field(sa_column_kwargs=_ZERO)
    attempt: int = Field(sa_column_kwargs=_ZERO)
    """How many tries of it were begun before this one; retries and waits for a vendor both make a new one."""
    not_before: datetime | None = Field(sa_type=_MOMENT)
    wait_reason: WaitReason | None = Field(sa_type=word(WaitReason, "wait_reason"))
    wait_count: int = Field(sa_column_kwargs=_ZERO)
    """How often in a row it waited for a short limit of its vendor."""
    priority: int = Field(sa_column_kwargs=_THREE)
    """That of its task, kept here for the order of the queue."""
    queued_at: datetime = Field(sa_type=_MOMENT)
    """Its age in the queue: when it was queued, or the moment before which it may not start."""
    paused_at: datetime | None = Field(sa_type=_MOMENT)
    end_reason: EndReason | None = Field(sa_type=word(EndReason, "end_reason"))
    log_removed_at: datetime | None = Field(sa_type=_MOMENT)
    """When its log was removed to keep within the limits of the settings."""
    activity: Activity | None = Field(sa_type=word(Activity, "activity"))
    activity_note: str | None
    activity_source: str | None
    activity_at: datetime | None = Field(sa_type=_MOMENT)
    is_held: bool = Field(sa_column_kwargs=_FALSE)
    """Whether it waits in the queue for a person's leave to start."""
    output_data: dict[str, object] | None = Field(sa_type=_JSON)
    ending: dict[str, object] | None = Field(sa_type=_JSON)
    """How its processes ended, from then until its end is settled."""
    journal_problem: str | None
    """Why its journal is set aside; NULL when it is read."""
    working_dir: str | None
    """The folder in which this try runs, from its claim on."""
    before_snapshot: str | None
    after_snapshot: str | None
    """What its folder held before it began and after its end; NULL when nobody looked."""
    snapshot_note: str | None
    """Why there is none, or what it leaves out."""
    changed_files: int | None
    lines_added: int | None
    lines_removed: int | None
    """What it changed, summed over its changes; NULL when that is not known."""
    worktree_id: str | None = Field(foreign_key="worktrees.id", ondelete="SET NULL", sa_type=_ID)
    """The worktree of its own, from its claim on; NULL when it works in the folder itself."""
    repository: str | None
    """The working tree around its folder when it was queued; NULL for none, and for what is no AI agent's."""
    isolation: Isolation | None = Field(sa_type=word(Isolation, "isolation"))
    base: str | None
    """What was chosen for this run alone; NULL leaves it to its task."""
    sandbox: Sandbox | None = Field(sa_type=word(Sandbox, "sandbox"))
    """Its sandbox, once it was started; before, the one that it was asked for with, NULL for none."""
    verify_retry: int = Field(sa_column_kwargs=_ZERO)
    """How often in a row its agent was sent back before it, since a verification had failed."""
    verification_status: VerificationStatus | None = Field(sa_type=word(VerificationStatus, "verification_status"))
    verification_command: str | None
    verification_ms: int | None
    """Those of its newest verification; NULL when there is none."""
    tokens_used: int = Field(sa_type=_BIG, sa_column_kwargs=_ZERO)
    cost_nano: int | None = Field(sa_type=_BIG)
    """NULL means that no price is known, which is not a cost of nothing."""
    created_at: datetime = Field(sa_type=_MOMENT)
    updated_at: datetime = Field(sa_type=_MOMENT)


class WorktreeRow(_Row, table=True):
    """A worktree of a repository that agentmon made; only what has a row here is ever removed."""

    __tablename__ = "worktrees"
    __table_args__ = (
        Index(None, "task_id"),
        _where("uq_worktrees_path", "path", where=text("status <> 'removed'"), unique=True),
    )

    id: str = Field(primary_key=True, sa_type=_ID)
    workspace_id: str = Field(foreign_key="workspaces.id", ondelete="RESTRICT", sa_type=_ID)
    task_id: str = Field(foreign_key="tasks.id", ondelete="RESTRICT", sa_type=_ID)
    source: str
    """The working tree that it was made from, as its run was queued in; absolute."""
    repository: str | None
    """The common git folder of the repository that it belongs to; absolute, NULL until git was asked."""
    path: str
    branch: str
    base_branch: str | None
    """The branch from which it was made, into which it is merged; NULL for a detached head.

    While ``base_commit`` is NULL, what was asked for.
    """
    base_commit: str | None
    """NULL until it is known: nothing of it is on the disk before."""
    status: WorktreeStatus = Field(sa_type=word(WorktreeStatus, "status"))
    error: str | None
    """Why it could not be made or set up."""
    slot: int | None
    """Its number among those that are there, from which its block of ports follows; NULL until one is needed."""
    merge_how: MergeHow | None = Field(sa_type=word(MergeHow, "merge_how"))
    """How its branch was merged last; NULL for never, as are the other columns about it."""
    merged_into: str | None
    merged_from: str | None
    """The tip of that branch before."""
    merged_commit: str | None
    reverted_by: str | None
    """The commit that took the merge back; NULL while it counts."""
    created_at: datetime = Field(sa_type=_MOMENT)
    updated_at: datetime = Field(sa_type=_MOMENT)


class PullRequestRow(_Row, table=True):
    """A pull request that somebody opened for the branch of a task, as its server said last."""

    __tablename__ = "pull_requests"
    __table_args__ = (UniqueConstraint("task_id", "url"),)

    id: str = Field(primary_key=True, sa_type=_ID)
    task_id: str = Field(foreign_key="tasks.id", ondelete="RESTRICT", sa_type=_ID)
    program: PullRequestProgram = Field(sa_type=word(PullRequestProgram, "program"))
    """What opened it, and is asked about it."""
    folder: str
    """The working tree in which that is run; absolute."""
    branch: str
    base: str
    url: str
    number: int | None
    state: PullRequestState = Field(sa_type=word(PullRequestState, "state"))
    is_draft: bool = Field(sa_column_kwargs=_FALSE)
    checks: ChecksState | None = Field(sa_type=word(ChecksState, "checks"))
    review: ReviewState | None = Field(sa_type=word(ReviewState, "review"))
    error: str | None
    """Why nobody could ask about it last; NULL when somebody could."""
    asked_at: datetime | None = Field(sa_type=_MOMENT)
    created_at: datetime = Field(sa_type=_MOMENT)
    updated_at: datetime = Field(sa_type=_MOMENT)


class VerificationRow(_Row, table=True):
    """A command that had to pass before the work of a run counted as done, run once."""

    __tablename__ = "verifications"
    __table_args__ = (
        UniqueConstraint("execution_id", "attempt"),
        CheckConstraint("attempt >= 1", name="attempt_from_one"),
        _where("ix_verifications_running", "execution_id", where=_one_of("status", [VerificationStatus.RUNNING])),
    )

    id: str = Field(primary_key=True, sa_type=_ID)
    execution_id: str = Field(foreign_key="executions.id", ondelete="CASCADE", sa_type=_ID)
    attempt: int
    """Which of the run's, counted from 1."""
    command: str
    status: VerificationStatus = Field(sa_type=word(VerificationStatus, "status"))
    exit_code: int | None
    log_path: str
    started_at: datetime = Field(sa_type=_MOMENT)
    ended_at: datetime | None = Field(sa_type=_MOMENT)
    created_at: datetime = Field(sa_type=_MOMENT)
    updated_at: datetime = Field(sa_type=_MOMENT)


class ExecutionCommandRow(_Row, table=True):
    """What a client asks of a running execution, until the worker has handed it on."""

    __tablename__ = "execution_commands"
    __table_args__ = (
        *_not_negative("attempt"),
        _where("ix_execution_commands_undelivered", "id", where=text("delivered_at IS NULL")),
        Index(None, "execution_id", "id"),
    )

    id: str = Field(primary_key=True, sa_type=_ID)
    execution_id: str = Field(foreign_key="executions.id", ondelete="CASCADE", sa_type=_ID)
    actor_type: ActorType = Field(sa_type=word(ActorType, "actor_type"))
    actor_id: str | None
    cause: CommandCause = Field(sa_type=word(CommandCause, "cause"), sa_column_kwargs=_PERSON)
    """The default is for an app of an earlier release that was open when the file was upgraded."""
    attempt: int = Field(sa_column_kwargs=_ZERO)
    """The try of the execution during which it was written; ``executions.attempt`` then."""
    type: CommandType = Field(sa_type=word(CommandType, "type"))
    payload: dict[str, object] = Field(sa_type=_JSON, sa_column_kwargs=_EMPTY_OBJECT)
    created_at: datetime = Field(sa_type=_MOMENT)
    delivered_at: datetime | None = Field(sa_type=_MOMENT)
    is_queued: bool = Field(sa_column_kwargs=_FALSE)
    """Whether the agent takes it up when it has finished what it does now."""
    obeyed_at: datetime | None = Field(sa_type=_MOMENT)
    error: str | None
    """Why it was not obeyed."""


class IdempotencyKeyRow(_Row, table=True):
    """A request that its client named, and what came of it: the same request with the same name is done once."""

    __tablename__ = "idempotency_keys"
    __table_args__ = (PrimaryKeyConstraint("actor_id", "key"), Index(None, "created_at"))

    actor_id: str
    """Who asked: the user, or the execution of an agent. Nobody sees the keys of another."""
    key: str
    action: str
    """The service call, such as ``run`` or ``approve``."""
    digest: str
    """SHA-256 of what was asked, in hexadecimal: another request must not hide behind a key."""
    result_id: str
    """The row that the request made or changed."""
    created_at: datetime = Field(sa_type=_MOMENT)


class WorkerHeartbeatRow(_Row, table=True):
    """A worker that lives, or has lived."""

    __tablename__ = "worker_heartbeats"
    __table_args__ = (*_not_negative("current_executions"),)

    worker_id: str = Field(primary_key=True)
    last_seen_at: datetime = Field(sa_type=_MOMENT)
    current_executions: int = Field(sa_column_kwargs=_ZERO)
    metadata_: dict[str, object] = Field(sa_type=_JSON, sa_column_kwargs=_METADATA)
    created_at: datetime = Field(sa_type=_MOMENT)


class AgentRegistryRow(_Row, table=True):
    """One small row for every live session: what the dashboard polls."""

    __tablename__ = "agent_registry"
    __table_args__ = (Index(None, "status", "last_heartbeat_at"),)

    session_id: str = Field(primary_key=True, foreign_key="sessions.id", ondelete="CASCADE", sa_type=_ID)
    status: RegistryStatus = Field(sa_type=word(RegistryStatus, "status"))
    last_heartbeat_at: datetime = Field(sa_type=_MOMENT)
    worker_id: str
    host: str
    created_at: datetime = Field(sa_type=_MOMENT)


class MessageRow(_Row, table=True):
    """One message of a conversation."""

    __tablename__ = "messages"
    __table_args__ = (Index(None, "session_id", "id"), UniqueConstraint("execution_id", "message_ref"))

    id: str = Field(primary_key=True, sa_type=_ID)
    session_id: str = Field(foreign_key="sessions.id", ondelete="CASCADE", sa_type=_ID)
    execution_id: str | None = Field(foreign_key="executions.id", ondelete="SET NULL", sa_type=_ID)
    message_ref: str | None
    """The try and the agent's own name of the message: ``0:msg_1``."""
    role: MessageRole = Field(sa_type=word(MessageRole, "role"))
    content: str
    is_thinking: bool = Field(sa_column_kwargs=_FALSE)
    parent_ref: str | None
    """The tool call of the subagent that speaks."""
    created_at: datetime = Field(sa_type=_MOMENT)


class EventRow(_Row, table=True):
    """One entry of the stream; ``timestamp_ms`` is its time, and ids are never used twice."""

    __tablename__ = "events"
    __table_args__ = (
        Index(None, "session_id", "id"),
        Index(None, "execution_id", "id"),
        Index(None, "type", "timestamp_ms"),
        {"sqlite_autoincrement": True},
    )

    id: int = Field(primary_key=True, sa_type=growing_id())
    session_id: str | None = Field(foreign_key="sessions.id", ondelete="CASCADE", sa_type=_ID)
    execution_id: str | None = Field(foreign_key="executions.id", ondelete="CASCADE", sa_type=_ID)
    user_id: str = Field(foreign_key="users.id", ondelete="RESTRICT", sa_type=_ID)
    trace_id: str
    type: EventType = Field(sa_type=word(EventType, "type"))
    level: EventLevel | None = Field(sa_type=word(EventLevel, "level"))
    timestamp_ms: int = Field(sa_type=_BIG)
    payload: dict[str, object] = Field(sa_type=_JSON, sa_column_kwargs=_EMPTY_OBJECT)


class OperationRow(_Row, table=True):
    """One tool call."""

    __tablename__ = "operations"
    __table_args__ = (
        *_not_negative("input_tokens", "output_tokens", "cost_nano"),
        UniqueConstraint("execution_id", "operation_ref"),
        *_not_negative("duration_ms"),
        Index(None, "session_id", "id"),
        Index(None, "execution_id", "answer_key"),
        _where(
            "ix_operations_pending",
            "started_at",
            where=_one_of("status", [OperationStatus.PENDING]),
        ),
    )

    id: str = Field(primary_key=True, sa_type=_ID)
    session_id: str = Field(foreign_key="sessions.id", ondelete="CASCADE", sa_type=_ID)
    execution_id: str | None = Field(foreign_key="executions.id", ondelete="SET NULL", sa_type=_ID)
    operation_ref: str | None
    """The try and the agent's own name of the call: ``0:toolu_1``."""
    parent_ref: str | None
    """The call of the subagent that made it."""
    answer_key: str | None
    """Key of the billed answer that asked for it."""
    tool_name: str
    type: OperationType = Field(sa_type=word(OperationType, "type"))
    target: str
    input_summary: str = Field(sa_column_kwargs=_EMPTY)
    output_summary: str = Field(sa_column_kwargs=_EMPTY)
    input_tokens: int = Field(sa_type=_BIG, sa_column_kwargs=_ZERO)
    output_tokens: int = Field(sa_type=_BIG, sa_column_kwargs=_ZERO)
    cost_nano: int = Field(sa_type=_BIG, sa_column_kwargs=_ZERO)
    status: OperationStatus = Field(sa_type=word(OperationStatus, "status"))
    result: object = Field(sa_type=_JSON, nullable=True)
    """What it changed: the fields of ``CallChanges``."""
    error: str | None
    approved: bool = Field(sa_column_kwargs=_FALSE)
    approved_by: str | None = Field(foreign_key="users.id", ondelete="SET NULL", sa_type=_ID)
    started_at: datetime = Field(sa_type=_MOMENT)
    finished_at: datetime | None = Field(sa_type=_MOMENT)
    duration_ms: int | None = Field(sa_type=_BIG)
    created_at: datetime = Field(sa_type=_MOMENT)
    updated_at: datetime = Field(sa_type=_MOMENT)
    day_local: str = Field(sa_type=String(10), sa_column_kwargs=_EMPTY)
    """The day on which it began."""


class ApprovalRow(_Row, table=True):
    """What waits for a person's decision, or did."""

    __tablename__ = "approvals"
    __table_args__ = (
        UniqueConstraint("execution_id", "request_ref"),
        _where("ix_approvals_pending", "asked_at", where=_one_of("status", [ApprovalStatus.PENDING])),
        Index(None, "session_id"),
        Index(None, "asked_at"),
    )

    id: str = Field(primary_key=True, sa_type=_ID)
    execution_id: str = Field(foreign_key="executions.id", ondelete="CASCADE", sa_type=_ID)
    session_id: str | None = Field(foreign_key="sessions.id", ondelete="CASCADE", sa_type=_ID)
    operation_id: str | None = Field(foreign_key="operations.id", ondelete="SET NULL", sa_type=_ID)
    request_ref: str
    """The try and the agent's own name of the request: ``0:3``."""
    request_id: str
    ask_kind: AskKind = Field(sa_type=word(AskKind, "ask_kind"))
    tool_name: str = Field(sa_column_kwargs=_EMPTY)
    type: OperationType | None = Field(sa_type=word(OperationType, "type"))
    target: str = Field(sa_column_kwargs=_EMPTY)
    title: str
    detail: str = Field(sa_column_kwargs=_EMPTY)
    reason: str = Field(sa_column_kwargs=_EMPTY)
    tool_input: dict[str, object] = Field(sa_type=_JSON, sa_column_kwargs=_EMPTY_OBJECT)
    input_digest: str = Field(sa_column_kwargs=_EMPTY)
    can_allow_for_session: bool = Field(sa_column_kwargs=_FALSE)
    can_edit_input: bool = Field(sa_column_kwargs=_FALSE)
    questions: list[object] = Field(sa_type=_JSON, sa_column_kwargs=_EMPTY_LIST)
    status: ApprovalStatus = Field(sa_type=word(ApprovalStatus, "status"))
    scope: ApprovalScope | None = Field(sa_type=word(ApprovalScope, "scope"))
    decided_by_type: ActorType | None = Field(sa_type=word(ActorType, "decided_by_type"))
    decided_by_id: str | None
    decision_reason: str | None
    rule_id: str | None = Field(foreign_key="approval_rules.id", ondelete="SET NULL", sa_type=_ID)
    command_id: str | None = Field(sa_type=_ID)
    """The command that carries the answer to the agent."""
    asked_at: datetime = Field(sa_type=_MOMENT)
    decided_at: datetime | None = Field(sa_type=_MOMENT)
    closed_at: datetime | None = Field(sa_type=_MOMENT)
    """When the agent had the answer, or no longer asked."""
    created_at: datetime = Field(sa_type=_MOMENT)
    updated_at: datetime = Field(sa_type=_MOMENT)
    danger_level: int = Field(sa_column_kwargs=_ZERO)
    danger_name: str = Field(sa_column_kwargs=_EMPTY)
    danger_reason: str = Field(sa_column_kwargs=_EMPTY)


class ApprovalRuleRow(_Row, table=True):
    """Decides requests without a person."""

    __tablename__ = "approval_rules"
    __table_args__ = (Index(None, "workspace_id"), Index(None, "agent_id"))

    id: str = Field(primary_key=True, sa_type=_ID)
    workspace_id: str | None = Field(foreign_key="workspaces.id", ondelete="CASCADE", sa_type=_ID)
    agent_id: str | None = Field(foreign_key="agents.id", ondelete="CASCADE", sa_type=_ID)
    decision: RuleDecision = Field(sa_type=word(RuleDecision, "decision"))
    tool: str = Field(sa_column_kwargs={"server_default": text("'*'")})
    path: str | None
    command_prefix: str | None
    note: str = Field(sa_column_kwargs=_EMPTY)
    is_enabled: bool = Field(sa_column_kwargs=_TRUE)
    created_at: datetime = Field(sa_type=_MOMENT)
    updated_at: datetime = Field(sa_type=_MOMENT)


class ChangeRow(_Row, table=True):
    """What happened to one file; its content lives in the content store under the hashes named here."""

    __tablename__ = "changes"
    __table_args__ = (
        *_not_negative("diff_lines", "lines_added"),
        Index(None, "execution_id", "path"),
        Index(None, "operation_id"),
    )

    id: str = Field(primary_key=True, sa_type=_ID)
    operation_id: str | None = Field(foreign_key="operations.id", ondelete="CASCADE", sa_type=_ID)
    """The tool call that made it; NULL for what the run changed as a whole, which is what is counted."""
    execution_id: str = Field(foreign_key="executions.id", ondelete="CASCADE", sa_type=_ID)
    path: str
    old_path: str | None
    """Its name before, of one that was renamed."""
    change_type: ChangeType = Field(sa_type=word(ChangeType, "change_type"))
    before_ref: str | None
    after_ref: str | None
    before_mode: int | None
    after_mode: int | None
    """Type and permission bits: 0o100755; NULL where there is no file."""
    diff_lines: int = Field(sa_column_kwargs=_ZERO)
    """Lines added and removed together; 0 for what is no text."""
    lines_added: int = Field(sa_column_kwargs=_ZERO)
    is_binary: bool = Field(sa_column_kwargs=_FALSE)
    can_undo: bool = Field(sa_column_kwargs=_FALSE)
    why_not: str | None
    """Why it cannot be undone."""
    undo_operation_id: str | None = Field(foreign_key="operations.id", ondelete="SET NULL", sa_type=_ID)
    created_at: datetime = Field(sa_type=_MOMENT)
    updated_at: datetime = Field(sa_type=_MOMENT)


class OverlapRow(_Row, table=True):
    """What one live run has to do with another one; each of the two has a row.

    A row without paths tells that there was such an overlap: it is noted in the audit trail once.
    """

    __tablename__ = "overlaps"
    __table_args__ = (
        PrimaryKeyConstraint("execution_id", "other_id", "kind"),
        *_not_negative("path_count"),
        Index(None, "other_id"),
    )

    execution_id: str = Field(foreign_key="executions.id", ondelete="CASCADE", sa_type=_ID)
    other_id: str = Field(foreign_key="executions.id", ondelete="CASCADE", sa_type=_ID)
    kind: OverlapKind = Field(sa_type=word(OverlapKind, "kind"))
    paths: list[str] = Field(sa_type=_JSON, sa_column_kwargs=_EMPTY_LIST)
    path_count: int = Field(sa_column_kwargs=_ZERO)
    is_own_doing: bool | None
    detail: str = Field(sa_column_kwargs=_EMPTY)
    created_at: datetime = Field(sa_type=_MOMENT)


class LookedAtRow(_Row, table=True):
    """A stretch of changed lines, or a file without any, that a person has looked at, by its content."""

    __tablename__ = "looked_at"

    digest: str = Field(primary_key=True, sa_type=String(64))
    created_at: datetime = Field(sa_type=_MOMENT)


class ReviewCommentRow(_Row, table=True):
    """What a person says of lines that a run changed."""

    __tablename__ = "review_comments"
    __table_args__ = (Index(None, "execution_id"),)

    id: str = Field(primary_key=True, sa_type=_ID)
    execution_id: str = Field(foreign_key="executions.id", ondelete="CASCADE", sa_type=_ID)
    path: str
    side: DiffSide = Field(sa_type=word(DiffSide, "side"))
    first_line: int
    """Counted from 1 in the text of its side."""
    last_line: int
    quoted: str
    text: str
    digest: str = Field(sa_type=String(64))
    """Of the hunk with the first line; empty outside of any."""
    sent_at: datetime | None = Field(sa_type=_MOMENT)
    created_at: datetime = Field(sa_type=_MOMENT)
    updated_at: datetime = Field(sa_type=_MOMENT)


class LlmInteractionRow(_Row, table=True):
    """One billed answer of a model; a session or agent with bills cannot be removed from the file."""

    __tablename__ = "llm_interactions"
    __table_args__ = (
        UniqueConstraint("agent_id", "key"),
        # NULLs are distinct in a unique constraint, so answers without an agent need a rule of their own.
        _where("uq_llm_interactions_key_without_agent", "key", where=text("agent_id IS NULL"), unique=True),
        *_not_negative(
            "prompt_tokens",
            "cache_read_tokens",
            "cache_write_5m_tokens",
            "cache_write_1h_tokens",
            "response_tokens",
            "reasoning_tokens",
            "latency_ms",
            "cost_nano",
            "web_searches",
            "reported_cost_nano",
            "source_offset",
        ),
        Index(None, "session_id", "at_ms"),
        _where("ix_llm_interactions_execution_id", "execution_id", where=text("execution_id IS NOT NULL")),
        _where("ix_llm_interactions_unlooked", "at_ms", where=text("price_version = ''")),
        Index(None, "at_ms"),
    )

    id: str = Field(primary_key=True, sa_type=_ID)
    key: str
    session_id: str = Field(foreign_key="sessions.id", ondelete="RESTRICT", sa_type=_ID)
    execution_id: str | None = Field(foreign_key="executions.id", ondelete="SET NULL", sa_type=_ID)
    agent_id: str | None = Field(foreign_key="agents.id", ondelete="RESTRICT", sa_type=_ID)
    model: str
    provider: str
    prompt: str | None
    response: str | None
    prompt_tokens: int = Field(sa_type=_BIG, sa_column_kwargs=_ZERO)
    cache_read_tokens: int = Field(sa_type=_BIG, sa_column_kwargs=_ZERO)
    cache_write_5m_tokens: int = Field(sa_type=_BIG, sa_column_kwargs=_ZERO)
    cache_write_1h_tokens: int = Field(sa_type=_BIG, sa_column_kwargs=_ZERO)
    response_tokens: int = Field(sa_type=_BIG, sa_column_kwargs=_ZERO)
    reasoning_tokens: int = Field(sa_type=_BIG, sa_column_kwargs=_ZERO)
    latency_ms: int | None = Field(sa_type=_BIG)
    success: bool
    error_message: str | None
    error_status: int | None
    """The status that the vendor answered a failed call with; NULL where none was told."""
    cost_nano: int | None = Field(sa_type=_BIG)
    cost_source: str
    price_version: str
    is_provisional: bool = Field(sa_column_kwargs=_FALSE)
    """Whether the key is the adapter's own, because the protocol does not tell that of the transcript."""
    at_ms: int = Field(sa_type=_BIG)
    day_local: str = Field(sa_type=String(10))
    created_at: datetime = Field(sa_type=_MOMENT)
    project: str = Field(sa_column_kwargs=_EMPTY)
    """The folder or repository in which the agent worked; empty when it is not known."""
    is_owner_marked: bool = Field(sa_column_kwargs=_FALSE)
    """Whether its record names the conversation that paid; where none does, the oldest one that has it does."""
    web_searches: int = Field(sa_column_kwargs=_ZERO)
    speed: str = Field(sa_column_kwargs={"server_default": text("'standard'")})
    geo: str = Field(sa_column_kwargs=_EMPTY)
    is_subagent: bool = Field(sa_column_kwargs=_FALSE)
    reported_cost_nano: int | None = Field(sa_type=_BIG)
    """What the agent itself wrote down as its cost."""
    confidence: Confidence = Field(
        sa_type=word(Confidence, "confidence"), sa_column_kwargs={"server_default": text("'exact'")}
    )
    source_file_id: str | None = Field(foreign_key="usage_files.id", ondelete="SET NULL", sa_type=_ID)
    """The file that told it last; NULL for what only a conversation here told."""
    source_offset: int | None = Field(sa_type=_BIG)
    """Where its line begins in that file, in bytes after decompression."""


class UsageFileRow(_Row, table=True):
    """A file in which an agent keeps its own history, and up to where it was read; it outlives the file."""

    __tablename__ = "usage_files"
    __table_args__ = (
        UniqueConstraint("path"),
        *_not_negative("size_bytes", "read_offset"),
    )

    id: str = Field(primary_key=True, sa_type=_ID)
    agent_slug: str
    path: str
    thread_key: str
    inode: int = Field(sa_type=_BIG)
    size_bytes: int = Field(sa_type=_BIG)
    mtime_ns: int = Field(sa_type=_BIG)
    read_offset: int = Field(sa_type=_BIG)
    """Bytes after decompression; always behind a whole line."""
    head_hash: str
    parser_version: int
    state: dict[str, object] = Field(sa_type=_JSON, sa_column_kwargs=_EMPTY_OBJECT)
    """What the reader has to know to go on."""
    created_at: datetime = Field(sa_type=_MOMENT)
    updated_at: datetime = Field(sa_type=_MOMENT)


class DailyUsageRow(_Row, table=True):
    """The sum of all billed answers of a day, agent, model and project; it changes in the transaction of the answers.

    There is none for a combination without answers. It names its agent without a reference, since an answer may have
    none.
    """

    __tablename__ = "daily_usage"
    __table_args__ = (*_not_negative("answers", "unpriced_answers", "reported_answers"), {"sqlite_with_rowid": False})

    day_local: str = Field(primary_key=True, sa_type=String(10))
    agent_id: str = Field(primary_key=True, sa_type=_ID)
    model: str = Field(primary_key=True)
    project: str = Field(primary_key=True)
    answers: int = Field(sa_type=_BIG)
    prompt_tokens: int = Field(sa_type=_BIG)
    cache_read_tokens: int = Field(sa_type=_BIG)
    cache_write_5m_tokens: int = Field(sa_type=_BIG)
    cache_write_1h_tokens: int = Field(sa_type=_BIG)
    response_tokens: int = Field(sa_type=_BIG)
    reasoning_tokens: int = Field(sa_type=_BIG)
    web_searches: int = Field(sa_type=_BIG)
    cost_nano: int = Field(sa_type=_BIG)
    """Of the answers with a known cost."""
    unpriced_answers: int = Field(sa_type=_BIG)
    reported_answers: int = Field(sa_type=_BIG)
    """Those whose cost is what the agent itself reported."""


class DailyModelUsageRow(_Row, table=True):
    """As ``daily_usage``, over all projects: what a year by day, agent or model is read from."""

    __tablename__ = "daily_model_usage"
    __table_args__ = (*_not_negative("answers", "unpriced_answers", "reported_answers"), {"sqlite_with_rowid": False})

    day_local: str = Field(primary_key=True, sa_type=String(10))
    agent_id: str = Field(primary_key=True, sa_type=_ID)
    model: str = Field(primary_key=True)
    answers: int = Field(sa_type=_BIG)
    prompt_tokens: int = Field(sa_type=_BIG)
    cache_read_tokens: int = Field(sa_type=_BIG)
    cache_write_5m_tokens: int = Field(sa_type=_BIG)
    cache_write_1h_tokens: int = Field(sa_type=_BIG)
    response_tokens: int = Field(sa_type=_BIG)
    reasoning_tokens: int = Field(sa_type=_BIG)
    web_searches: int = Field(sa_type=_BIG)
    cost_nano: int = Field(sa_type=_BIG)
    unpriced_answers: int = Field(sa_type=_BIG)
    reported_answers: int = Field(sa_type=_BIG)


class MonthlyUsageRow(_Row, table=True):
    """As ``daily_usage``, over a whole month."""

    __tablename__ = "monthly_usage"
    __table_args__ = (*_not_negative("answers", "unpriced_answers", "reported_answers"), {"sqlite_with_rowid": False})

    month_local: str = Field(primary_key=True, sa_type=String(7))
    """``2026-03``."""
    agent_id: str = Field(primary_key=True, sa_type=_ID)
    model: str = Field(primary_key=True)
    project: str = Field(primary_key=True)
    answers: int = Field(sa_type=_BIG)
    prompt_tokens: int = Field(sa_type=_BIG)
    cache_read_tokens: int = Field(sa_type=_BIG)
    cache_write_5m_tokens: int = Field(sa_type=_BIG)
    cache_write_1h_tokens: int = Field(sa_type=_BIG)
    response_tokens: int = Field(sa_type=_BIG)
    reasoning_tokens: int = Field(sa_type=_BIG)
    web_searches: int = Field(sa_type=_BIG)
    cost_nano: int = Field(sa_type=_BIG)
    unpriced_answers: int = Field(sa_type=_BIG)
    reported_answers: int = Field(sa_type=_BIG)


class SessionUsageRow(_Row, table=True):
    """As ``daily_usage``, for each session and execution: what their costs and those of tasks are read from.

    It names them without a reference; an execution that is not known is an empty text.
    """

    __tablename__ = "session_usage"
    __table_args__ = (
        *_not_negative("answers", "unpriced_answers", "reported_answers"),
        Index(None, "session_id"),
        _where("ix_session_usage_execution_id", "execution_id", where=text("execution_id <> ''")),
        {"sqlite_with_rowid": False},
    )

    day_local: str = Field(primary_key=True, sa_type=String(10))
    session_id: str = Field(primary_key=True, sa_type=_ID)
    execution_id: str = Field(primary_key=True, sa_type=_ID)
    agent_id: str = Field(primary_key=True, sa_type=_ID)
    model: str = Field(primary_key=True)
    project: str = Field(primary_key=True)
    answers: int = Field(sa_type=_BIG)
    prompt_tokens: int = Field(sa_type=_BIG)
    cache_read_tokens: int = Field(sa_type=_BIG)
    cache_write_5m_tokens: int = Field(sa_type=_BIG)
    cache_write_1h_tokens: int = Field(sa_type=_BIG)
    response_tokens: int = Field(sa_type=_BIG)
    reasoning_tokens: int = Field(sa_type=_BIG)
    web_searches: int = Field(sa_type=_BIG)
    cost_nano: int = Field(sa_type=_BIG)
    unpriced_answers: int = Field(sa_type=_BIG)
    reported_answers: int = Field(sa_type=_BIG)


class BoardCountRow(_Row, table=True):
    """How many cards a column of a workspace has; it changes in the transaction of the tasks."""

    __tablename__ = "board_counts"
    __table_args__ = {"sqlite_with_rowid": False}

    status: TaskStatus = Field(primary_key=True, sa_type=word(TaskStatus, "status"))
    workspace_id: str = Field(primary_key=True, foreign_key="workspaces.id", ondelete="CASCADE", sa_type=_ID)
    cards: int


class DailySessionsRow(_Row, table=True):
    """How many sessions began on a day; it changes in the transaction of the sessions."""

    __tablename__ = "daily_sessions"
    __table_args__ = (*_not_negative("sessions"), {"sqlite_with_rowid": False})

    day_local: str = Field(primary_key=True, sa_type=String(10))
    user_id: str = Field(primary_key=True, sa_type=_ID)
    agent_id: str = Field(primary_key=True, sa_type=_ID)
    project: str = Field(primary_key=True)
    sessions: int = Field(sa_type=_BIG)


class DailyOperationsRow(_Row, table=True):
    """How many tool calls began on a day, and how they ended; it changes in the transaction of the calls."""

    __tablename__ = "daily_operations"
    __table_args__ = (
        *_not_negative("operations", "successes", "failures", "blocked"),
        {"sqlite_with_rowid": False},
    )

    day_local: str = Field(primary_key=True, sa_type=String(10))
    user_id: str = Field(primary_key=True, sa_type=_ID)
    agent_id: str = Field(primary_key=True, sa_type=_ID)
    project: str = Field(primary_key=True)
    type: OperationType = Field(primary_key=True, sa_type=word(OperationType, "type"))
    operations: int = Field(sa_type=_BIG)
    successes: int = Field(sa_type=_BIG)
    failures: int = Field(sa_type=_BIG)
    blocked: int = Field(sa_type=_BIG)


class LimitSnapshotRow(_Row, table=True):
    """How much of a vendor's usage window was taken, as the agent's own files or its status line say."""

    __tablename__ = "limit_snapshots"
    __table_args__ = (
        UniqueConstraint("agent_id", "account", "window", "captured_at_ms"),
        CheckConstraint("used_percent >= 0", name="used_percent_not_negative"),
    )

    id: str = Field(primary_key=True, sa_type=_ID)
    agent_id: str = Field(foreign_key="agents.id", ondelete="CASCADE", sa_type=_ID)
    account: str = Field(sa_column_kwargs=_EMPTY)
    """What the agent calls the plan or limit; empty when it says nothing."""
    window: str
    """``five_hour``, ``seven_day``, or what else the agent calls it."""
    window_minutes: int | None
    used_percent: float = Field(sa_type=_FLOAT)
    resets_at_ms: int | None = Field(sa_type=_BIG)
    captured_at_ms: int = Field(sa_type=_BIG)
    """When this was said first."""
    seen_at_ms: int = Field(sa_type=_BIG)
    """When the same was said last."""
    source: str
    """``transcript`` or ``statusline``."""
    created_at: datetime = Field(sa_type=_MOMENT)


class HistoryFileRow(_Row, table=True):
    """Up to where messages and tool calls of a file of an agent were read; as ``usage_files`` for its answers."""

    __tablename__ = "history_files"
    __table_args__ = (
        UniqueConstraint("path"),
        *_not_negative("size_bytes", "read_offset"),
    )

    id: str = Field(primary_key=True, sa_type=_ID)
    agent_slug: str
    path: str
    thread_key: str
    inode: int = Field(sa_type=_BIG)
    size_bytes: int = Field(sa_type=_BIG)
    mtime_ns: int = Field(sa_type=_BIG)
    read_offset: int = Field(sa_type=_BIG)
    """Bytes after decompression; always behind a whole line."""
    head_hash: str
    parser_version: int
    state: dict[str, object] = Field(sa_type=_JSON, sa_column_kwargs=_EMPTY_OBJECT)
    created_at: datetime = Field(sa_type=_MOMENT)
    updated_at: datetime = Field(sa_type=_MOMENT)


class BudgetRow(_Row, table=True):
    """How much may be spent on something in a period."""

    __tablename__ = "budgets"
    __table_args__ = (
        UniqueConstraint("scope", "scope_id", "period", "unit"),
        CheckConstraint("amount > 0", name="amount_positive"),
        *_not_negative("told_percent"),
    )

    id: str = Field(primary_key=True, sa_type=_ID)
    scope: BudgetScope = Field(sa_type=word(BudgetScope, "scope"))
    scope_id: str = Field(sa_type=_ID, sa_column_kwargs=_EMPTY)
    """The id of the task, execution, agent or workspace, which may be gone; empty for all."""
    period: BudgetPeriod = Field(sa_type=word(BudgetPeriod, "period"))
    unit: BudgetUnit = Field(sa_type=word(BudgetUnit, "unit"))
    amount: int = Field(sa_type=_BIG)
    """Nano-USD or tokens."""
    counts_cached: bool = Field(sa_column_kwargs=_TRUE)
    action: BudgetAction = Field(sa_type=word(BudgetAction, "action"))
    told_percent: int = Field(sa_column_kwargs=_ZERO)
    told_day: str = Field(sa_type=String(10), sa_column_kwargs=_EMPTY)
    """The first day of the period in which ``told_percent`` was told."""
    spent_until: datetime | None = Field(sa_type=_MOMENT)
    """Until when it is known to be spent; the claim looks at it."""
    created_at: datetime = Field(sa_type=_MOMENT)
    updated_at: datetime = Field(sa_type=_MOMENT)


class ArtifactRow(_Row, table=True):
    """What a session made that outlives it."""

    __tablename__ = "artifacts"
    __table_args__ = (Index(None, "session_id", "id"), Index(None, "execution_id"))

    id: str = Field(primary_key=True, sa_type=_ID)
    session_id: str = Field(foreign_key="sessions.id", ondelete="CASCADE", sa_type=_ID)
    execution_id: str | None = Field(foreign_key="executions.id", ondelete="SET NULL", sa_type=_ID)
    path: str
    kind: ArtifactKind = Field(sa_type=word(ArtifactKind, "kind"))
    created_at: datetime = Field(sa_type=_MOMENT)


class DocumentRow(_Row, table=True):
    """What a session fetched or wrote down."""

    __tablename__ = "documents"
    __table_args__ = (Index(None, "session_id", "id"),)

    id: str = Field(primary_key=True, sa_type=_ID)
    session_id: str = Field(foreign_key="sessions.id", ondelete="CASCADE", sa_type=_ID)
    agent_id: str | None = Field(foreign_key="agents.id", ondelete="SET NULL", sa_type=_ID)
    title: str
    content: str
    content_type: str
    source_url: str | None
    metadata_: dict[str, object] = Field(sa_type=_JSON, sa_column_kwargs=_METADATA)
    created_at: datetime = Field(sa_type=_MOMENT)
    updated_at: datetime = Field(sa_type=_MOMENT)


users: Final[Table] = metadata.tables["users"]
workspaces: Final[Table] = metadata.tables["workspaces"]
settings: Final[Table] = metadata.tables["settings"]
agents: Final[Table] = metadata.tables["agents"]
agent_tools: Final[Table] = metadata.tables["agent_tools"]
agent_capabilities: Final[Table] = metadata.tables["agent_capabilities"]
programs: Final[Table] = metadata.tables["programs"]
trusted_agent_files: Final[Table] = metadata.tables["trusted_agent_files"]
tasks: Final[Table] = metadata.tables["tasks"]
task_dependencies: Final[Table] = metadata.tables["task_dependencies"]
task_labels: Final[Table] = metadata.tables["task_labels"]
task_events: Final[Table] = metadata.tables["task_events"]
sessions: Final[Table] = metadata.tables["sessions"]
executions: Final[Table] = metadata.tables["executions"]
execution_commands: Final[Table] = metadata.tables["execution_commands"]
idempotency_keys: Final[Table] = metadata.tables["idempotency_keys"]
worker_heartbeats: Final[Table] = metadata.tables["worker_heartbeats"]
agent_registry: Final[Table] = metadata.tables["agent_registry"]
messages: Final[Table] = metadata.tables["messages"]
events: Final[Table] = metadata.tables["events"]
operations: Final[Table] = metadata.tables["operations"]
approvals: Final[Table] = metadata.tables["approvals"]
approval_rules: Final[Table] = metadata.tables["approval_rules"]
changes: Final[Table] = metadata.tables["changes"]
worktrees: Final[Table] = metadata.tables["worktrees"]
verifications: Final[Table] = metadata.tables["verifications"]
pull_requests: Final[Table] = metadata.tables["pull_requests"]
looked_at: Final[Table] = metadata.tables["looked_at"]
review_comments: Final[Table] = metadata.tables["review_comments"]
overlaps: Final[Table] = metadata.tables["overlaps"]
llm_interactions: Final[Table] = metadata.tables["llm_interactions"]
usage_files: Final[Table] = metadata.tables["usage_files"]
daily_usage: Final[Table] = metadata.tables["daily_usage"]
daily_model_usage: Final[Table] = metadata.tables["daily_model_usage"]
monthly_usage: Final[Table] = metadata.tables["monthly_usage"]
session_usage: Final[Table] = metadata.tables["session_usage"]
daily_sessions: Final[Table] = metadata.tables["daily_sessions"]
daily_operations: Final[Table] = metadata.tables["daily_operations"]
limit_snapshots: Final[Table] = metadata.tables["limit_snapshots"]
history_files: Final[Table] = metadata.tables["history_files"]
budgets: Final[Table] = metadata.tables["budgets"]
artifacts: Final[Table] = metadata.tables["artifacts"]
documents: Final[Table] = metadata.tables["documents"]

AUDIT_MARK: Final = "audit.thinned_before"
"""The key of the one setting that lets lines of the audit trail go; its row is there only while they are removed."""
_NOT_THINNED: Final = (
    f"WHEN OLD.created_at >= coalesce((SELECT trim(value, '\"') FROM settings WHERE key = '{AUDIT_MARK}'), '') "
)
for _change, _condition in (("UPDATE", ""), ("DELETE", _NOT_THINNED)):
    event.listen(
        task_events,
        "after_create",
        DDL(  # type: ignore[no-untyped-call] # SQLAlchemy types its arguments, not its result
            f"CREATE TRIGGER tr_task_events_no_{_change.lower()} BEFORE {_change} ON task_events {_condition}"
            "BEGIN SELECT RAISE(ABORT, 'the audit trail is append-only'); END"
        ).execute_if(dialect="sqlite"),
    )

for _table_name, _triggers in (*TRIGGERS.items(), ("tasks", TASK_TRIGGERS)):
    for _trigger in _triggers:
        event.listen(
            metadata.tables[_table_name],
            "after_create",
            DDL(_trigger).execute_if(dialect="sqlite"),  # type: ignore[no-untyped-call] # as above
        )

for _index in (MESSAGES, *ROW_INDEXES):
    for _statement in _index.schema:
        event.listen(
            metadata.tables[_index.rows],
            "after_create",
            DDL(_statement).execute_if(dialect="sqlite"),  # type: ignore[no-untyped-call] # as above
        )

for _statement in LOG_SCHEMA:
    event.listen(
        executions,
        "after_create",
        DDL(_statement).execute_if(dialect="sqlite"),  # type: ignore[no-untyped-call] # as above
    )

IS_OPEN: Final = _one_of("executions.status", OPEN_STATUSES)
"""The condition of the partial index over open executions, in its own words: with bound values it is not used."""
IS_QUEUED: Final = _one_of("executions.status", [ExecutionStatus.QUEUED])
"""The condition of the partial index over the queue."""
IS_PENDING_APPROVAL: Final = _one_of("approvals.status", [ApprovalStatus.PENDING])
"""The condition of the partial index over what waits for a decision."""
