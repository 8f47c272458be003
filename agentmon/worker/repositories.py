"""What the worker reads and writes, over one open database."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from agentmon.store.activity import ActivityRepository
from agentmon.store.agent_files import AgentFileRepository
from agentmon.store.agents import AgentRepository
from agentmon.store.approval_rules import ApprovalRuleRepository
from agentmon.store.approvals import ApprovalRepository
from agentmon.store.audit import AuditRepository
from agentmon.store.budget_enforcing import BudgetEnforcement
from agentmon.store.budgets import BudgetRepository
from agentmon.store.changes import ChangeRepository
from agentmon.store.claims import ClaimRepository
from agentmon.store.ingest import IngestRepository
from agentmon.store.live_executions import LiveExecutionRepository
from agentmon.store.old_logs import OldLogRepository
from agentmon.store.overlaps import OverlapRepository
from agentmon.store.pull_requests import PullRequestRepository
from agentmon.store.queue_pause import QueuePauseRepository
from agentmon.store.schedules import ScheduleRepository
from agentmon.store.setting_rows import SettingRepository
from agentmon.store.settling import SettlementRepository
from agentmon.store.task_archive import ArchiveRepository
from agentmon.store.task_authors import TaskAuthorRepository
from agentmon.store.thinning import ThinningRepository
from agentmon.store.told_usage import ToldUsageRepository
from agentmon.store.usage_days import UsageDayRepository
from agentmon.store.usage_prices import UsagePriceRepository
from agentmon.store.verifications import VerificationRepository
from agentmon.store.workspaces import WorkspaceRepository
from agentmon.store.worktrees import WorktreeRepository

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Self

    from agentmon.store.database import Database


@dataclass(frozen=True, slots=True, kw_only=True)
class Repositories:
    """The worker's repositories."""

    database: Database
    claims: ClaimRepository
    changes: ChangeRepository
    live: LiveExecutionRepository
    ingest: IngestRepository
    settlement: SettlementRepository
    settings: SettingRepository
    pause: QueuePauseRepository
    old_logs: OldLogRepository
    overlaps: OverlapRepository
    thinning: ThinningRepository
    archive: ArchiveRepository
    schedules: ScheduleRepository
    task_authors: TaskAuthorRepository
    agents: AgentRepository
    agent_files: AgentFileRepository
    activity: ActivityRepository
    approvals: ApprovalRepository
    audit: AuditRepository
    approval_rules: ApprovalRuleRepository
    workspaces: WorkspaceRepository
    worktrees: WorktreeRepository
    verifications: VerificationRepository
    pull_requests: PullRequestRepository
    told_usage: ToldUsageRepository
    usage_days: UsageDayRepository
    usage_prices: UsagePriceRepository
    budgets: BudgetRepository
    budget_enforcement: BudgetEnforcement

    @classmethod
    def over(cls, database: Database, *, money_words: Mapping[str, str] | None = None) -> Self:
        """Return all repositories over the database.

        Args:
            database: The one that all of them are over.
            money_words: How amounts are shown where the database does not say; see ``store.money_setting``.
        """
        return cls(
            database=database,
            claims=ClaimRepository(database),
            changes=ChangeRepository(database),
            live=LiveExecutionRepository(database),
            ingest=IngestRepository(database),
            settlement=SettlementRepository(database),
            settings=SettingRepository(database),
            pause=QueuePauseRepository(database),
            old_logs=OldLogRepository(database),
            overlaps=OverlapRepository(database),
            thinning=ThinningRepository(database),
            archive=ArchiveRepository(database),
            schedules=ScheduleRepository(database),
            task_authors=TaskAuthorRepository(database),
            agents=AgentRepository(database),
            agent_files=AgentFileRepository(database),
            activity=ActivityRepository(database),
            approvals=ApprovalRepository(database, money_words=money_words),
            audit=AuditRepository(database),
            approval_rules=ApprovalRuleRepository(database),
            workspaces=WorkspaceRepository(database),
            worktrees=WorktreeRepository(database),
            verifications=VerificationRepository(database),
            pull_requests=PullRequestRepository(database),
            told_usage=ToldUsageRepository(database),
            usage_days=UsageDayRepository(database),
            usage_prices=UsagePriceRepository(database),
            budgets=BudgetRepository(database, money_words=money_words),
            budget_enforcement=BudgetEnforcement(database, money_words=money_words),
        )

    def data_version(self) -> int:
        """Return a number that differs from the last one when anybody has changed the database since."""
        return self.database.data_version()
