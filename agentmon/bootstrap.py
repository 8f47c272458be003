"""Builds the store and the services over it; the one place that knows how they fit together."""

from __future__ import annotations

from contextlib import asynccontextmanager
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

from agentmon import __version__
from agentmon.domain.clock import SystemClock
from agentmon.paths import find_paths
from agentmon.services.actors import find_actor
from agentmon.services.agent_asking import AgentAsking
from agentmon.services.agent_files import AgentFileService
from agentmon.services.agent_health import AgentHealthService
from agentmon.services.agents import AgentService
from agentmon.services.approvals import ApprovalService
from agentmon.services.archive import ArchiveService
from agentmon.services.attaching import AttachService
from agentmon.services.audit import AuditService
from agentmon.services.background import BackgroundService
from agentmon.services.board import BoardService
from agentmon.services.budgets import BudgetService
from agentmon.services.capability_scanning import CapabilityScanService
from agentmon.services.changes import ChangeService
from agentmon.services.conversations import ConversationService
from agentmon.services.costs import CostService
from agentmon.services.discovery import DiscoveryService
from agentmon.services.doctor import DoctorService
from agentmon.services.executions import ExecutionService
from agentmon.services.explaining import ExplainService
from agentmon.services.gate import Gate
from agentmon.services.limits import LimitService
from agentmon.services.merges import MergeService
from agentmon.services.notifications import NotificationService
from agentmon.services.pull_requests import PullRequestService
from agentmon.services.queue import QueueService
from agentmon.services.queue_checks import QueueChecks
from agentmon.services.quick_add import QuickAddService
from agentmon.services.request_checks import RequestChecks
from agentmon.services.search import SearchService
from agentmon.services.sessions import SessionService
from agentmon.services.settings import SettingsService
from agentmon.services.shown_screens import ScreenService
from agentmon.services.sightings import SightingService
from agentmon.services.storage import StorageService
from agentmon.services.summaries import SummaryService
from agentmon.services.tasks import TaskService
from agentmon.services.templates import TemplateService
from agentmon.services.verifications import VerificationService
from agentmon.services.workers import WorkerService
from agentmon.services.workspaces import WorkspaceService
from agentmon.services.worktrees import WorktreeService
from agentmon.store.agent_edits import AgentEditRepository
from agentmon.store.agent_files import AgentFileRepository
from agentmon.store.agent_health import AgentHealthRepository
from agentmon.store.agents import AgentRepository
from agentmon.store.alternatives import AlternativeRepository
from agentmon.store.approval_rules import ApprovalRuleRepository
from agentmon.store.approvals import ApprovalRepository
from agentmon.store.audit import AuditRepository
from agentmon.store.board_pages import BoardRepository
from agentmon.store.budgets import BudgetRepository
from agentmon.store.capability_scans import CapabilityScanRepository
from agentmon.store.changes import ChangeRepository
from agentmon.store.claims import ClaimRepository
from agentmon.store.conversations import ConversationRepository
from agentmon.store.database import open_database
from agentmon.store.dependencies import DependencyRepository
from agentmon.store.events import EventRepository
from agentmon.store.execution_commands import CommandRepository
from agentmon.store.executions import ExecutionRepository
from agentmon.store.idempotency import IdempotencyRepository
from agentmon.store.limit_snapshots import LimitSnapshotRepository
from agentmon.store.live_executions import LiveExecutionRepository
from agentmon.store.log_sizes import LogSizeRepository
from agentmon.store.old_logs import OldLogRepository
from agentmon.store.overlaps import OverlapRepository
from agentmon.store.parking import ParkingRepository
from agentmon.store.private_files import require_usable
from agentmon.store.programs import ProgramRepository
from agentmon.store.pull_requests import PullRequestRepository
from agentmon.store.queue_pause import QueuePauseRepository
from agentmon.store.review_comments import ReviewCommentRepository
from agentmon.store.schedules import ScheduleRepository
from agentmon.store.sessions import SessionRepository
from agentmon.store.setting_rows import SettingRepository
from agentmon.store.subtasks import SubtaskRepository
from agentmon.store.summaries import SummaryRepository
from agentmon.store.table_sizes import TableSizeRepository
from agentmon.store.task_archive import ArchiveRepository
from agentmon.store.task_authors import TaskAuthorRepository
from agentmon.store.task_labels import LabelRepository
from agentmon.store.task_picks import TaskPickRepository
from agentmon.store.tasks import TaskRepository
from agentmon.store.thinning import ThinningRepository
from agentmon.store.usage_costs import CostRepository
from agentmon.store.usage_days import UsageDayRepository
from agentmon.store.usage_prices import UsagePriceRepository
from agentmon.store.verifications import VerificationRepository
from agentmon.store.worker_heartbeats import HeartbeatRepository
from agentmon.store.workspace_counts import WorkspaceCountRepository
from agentmon.store.workspace_moves import WorkspaceMoveRepository
from agentmon.store.workspaces import WorkspaceRepository
from agentmon.store.worktrees import WorktreeRepository
from agentmon.worker.merge_finishing import MergeFinisher
from agentmon.worker.status_intake import StatusIntake

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from agentmon.domain.events import Actor
    from agentmon.paths import Paths
    from agentmon.store.database import Database


@dataclass(frozen=True, slots=True, kw_only=True)
class Services:
    """All use cases over one open database."""

    paths: Paths
    actor: Actor
    """In whose name this process acts."""
    notices: tuple[str, ...]
    """Sentences that a person should see once, such as an upgrade and where its backup lies."""
    workspaces: WorkspaceService
    tasks: TaskService
    archive: ArchiveService
    quick_add: QuickAddService
    templates: TemplateService
    audit: AuditService
    notifications: NotificationService
    queue: QueueService
    executions: ExecutionService
    sightings: SightingService
    screens: ScreenService
    approvals: ApprovalService
    conversations: ConversationService
    explaining: ExplainService
    changes: ChangeService
    sessions: SessionService
    search: SearchService
    agents: AgentService
    capability_scans: CapabilityScanService
    agent_files: AgentFileService
    discovery: DiscoveryService
    board: BoardService
    workers: WorkerService
    attaching: AttachService
    doctor: DoctorService
    background: BackgroundService
    storage: StorageService
    worktrees: WorktreeService
    verifications: VerificationService
    merges: MergeService
    pull_requests: PullRequestService
    settings: SettingsService
    costs: CostService
    summaries: SummaryService
    budgets: BudgetService
    limits: LimitService
    database: Database

    def data_version(self) -> int:
        """Return a number that differs from the last one when anybody has changed the database since; 5 µs."""
        return self.database.data_version()


@asynccontextmanager
async def open_services(paths: Paths | None = None) -> AsyncIterator[Services]:
    """Open the database, made or upgraded first when needed, and give the services over it; closes it at the end.

    Raises:
        UsageError: The database's place or a setting cannot be used.
        StoreError: The database cannot be opened; the message says what became of it.
    """
    paths = find_paths() if paths is None else paths
    require_usable(paths.needed, own=paths.data_dir)
    clock = SystemClock()
    opened = await open_database(paths.database_path, backups_dir=paths.backups_dir, release=__version__, clock=clock)
    database = opened.database
    search = SearchService(database.path)
    try:
        executions = ExecutionRepository(database)
        workspace_rows = WorkspaceRepository(database)
        settings = SettingsService(SettingRepository(database), workspace_rows, paths, clock)
        money_words = settings.default_money_words()
        tasks = TaskRepository(database, money_words=money_words)
        discovery = DiscoveryService(
            programs=ProgramRepository(database),
            agents=AgentRepository(database),
            health=AgentHealthService(AgentHealthRepository(database), UsageDayRepository(database), paths, clock),
            settings=settings,
            paths=paths,
            clock=clock,
        )
        agents = AgentService(
            AgentRepository(database),
            AgentEditRepository(database),
            ParkingRepository(database),
            discovery,
            paths,
            clock,
        )
        agent_files = AgentFileService(
            agents=agents,
            edits=AgentEditRepository(database),
            files=AgentFileRepository(database),
            paths=paths,
            clock=clock,
        )
        background = BackgroundService(paths, clock)
        workers = WorkerService(paths, background)
        live = LiveExecutionRepository(database)
        sightings = SightingService(live, paths, clock)
        workspaces = WorkspaceService(
            workspace_rows, WorkspaceCountRepository(database), WorkspaceMoveRepository(database), clock
        )
        cards = TaskService(
            tasks,
            DependencyRepository(database),
            SubtaskRepository(database),
            LabelRepository(database),
            TaskPickRepository(database),
            clock,
        )
        approvals = ApprovalRepository(database, money_words=money_words)
        keys = IdempotencyRepository(database)
        queue = QueueService(
            executions=executions,
            alternatives=AlternativeRepository(database, money_words=money_words),
            live=live,
            keys=keys,
            pauses=QueuePauseRepository(database),
            schedules=ScheduleRepository(database),
            tasks=tasks,
            authors=TaskAuthorRepository(database),
            claims=ClaimRepository(database),
            agents=agents,
            agent_files=agent_files,
            workspaces=workspaces,
            workers=workers,
            paths=paths,
            clock=clock,
            data_version=database.data_version,
        )
        conversations = ConversationService(
            conversations=ConversationRepository(database),
            events=EventRepository(database),
            commands=CommandRepository(database),
            executions=executions,
            keys=keys,
            tasks=tasks,
            queue=queue,
            clock=clock,
        )
        limits = LimitSnapshotRepository(database)
        sessions = SessionService(
            sessions=SessionRepository(database),
            conversations=ConversationRepository(database),
            sightings=sightings,
            agents=agents,
            queue=queue,
            clock=clock,
        )
        merges = MergeService(
            worktrees=WorktreeRepository(database),
            executions=executions,
            changes=ChangeRepository(database),
            conversations=ConversationRepository(database),
            talking=conversations,
            settings=SettingRepository(database),
            finisher=MergeFinisher(worktrees=WorktreeRepository(database), paths=paths, clock=clock),
            paths=paths,
        )
        services = Services(
            paths=paths,
            actor=await find_actor(executions, HeartbeatRepository(database), paths),
            notices=opened.notices,
            workspaces=workspaces,
            tasks=cards,
            archive=ArchiveService(ArchiveRepository(database), tasks, clock),
            quick_add=QuickAddService(tasks=cards, agents=agents, clock=clock),
            templates=TemplateService(agents=agents, paths=paths, clock=clock),
            audit=AuditService(AuditRepository(database)),
            notifications=NotificationService(settings, clock),
            queue=queue,
            approvals=ApprovalService(
                approvals=approvals,
                rules=ApprovalRuleRepository(database),
                keys=keys,
                agents=agents,
                workspaces=workspaces,
                settings=settings,
                queue=queue,
                clock=clock,
            ),
            explaining=ExplainService(
                executions=executions,
                sightings=sightings,
                events=EventRepository(database),
                agents=agents,
                dependencies=DependencyRepository(database),
                pauses=QueuePauseRepository(database),
                claims=ClaimRepository(database),
                settings=settings,
                paths=paths,
                clock=clock,
            ),
            changes=ChangeService(
                changes=ChangeRepository(database),
                comments=ReviewCommentRepository(database),
                conversations=ConversationRepository(database),
                talking=conversations,
                paths=paths,
                clock=clock,
            ),
            conversations=conversations,
            capability_scans=CapabilityScanService(
                agents=agents,
                scans=CapabilityScanRepository(database),
                asking=AgentAsking(
                    agents=agents,
                    workspaces=workspaces,
                    tasks=cards,
                    queue=queue,
                    conversations=conversations,
                    paths=paths,
                ),
                paths=paths,
                clock=clock,
            ),
            sessions=sessions,
            search=search,
            sightings=sightings,
            executions=ExecutionService(executions, OverlapRepository(database), sightings, paths),
            screens=ScreenService(executions, paths),
            agents=agents,
            agent_files=agent_files,
            discovery=discovery,
            board=BoardService(
                BoardRepository(database),
                settings,
                SettingRepository(database),
                sightings,
                clock,
                import_progress=paths.import_progress,
            ),
            workers=workers,
            attaching=AttachService(paths),
            doctor=DoctorService(
                paths=paths,
                agents=agents,
                workspaces=workspaces,
                settings=settings,
                log_sizes=LogSizeRepository(database),
                queue=QueueChecks(
                    paths=paths,
                    tasks=cards,
                    settings=settings,
                    heartbeats=HeartbeatRepository(database),
                    live=live,
                    sightings=sightings,
                    clock=clock,
                ),
                requests=RequestChecks(approvals=approvals, clock=clock),
                background=background,
                clock=clock,
            ),
            background=background,
            worktrees=WorktreeService(WorktreeRepository(database), paths, clock),
            verifications=VerificationService(
                verifications=VerificationRepository(database),
                agents=agents,
                agent_files=AgentFileRepository(database),
                worktrees=WorktreeRepository(database),
                settings=settings,
                paths=paths,
                clock=clock,
            ),
            merges=merges,
            pull_requests=PullRequestService(repository=PullRequestRepository(database), merges=merges, clock=clock),
            storage=StorageService(
                sizes=TableSizeRepository(database),
                thinning=ThinningRepository(database),
                old_logs=OldLogRepository(database),
                settings=settings,
                paths=paths,
                clock=clock,
            ),
            settings=settings,
            costs=CostService(
                costs=CostRepository(database),
                days=UsageDayRepository(database),
                prices=UsagePriceRepository(database),
                agents=AgentRepository(database),
                sessions=sessions,
                settings=settings,
                paths=paths,
                clock=clock,
            ),
            summaries=SummaryService(
                summaries=SummaryRepository(database),
                days=UsageDayRepository(database),
                settings=settings,
                clock=clock,
            ),
            budgets=BudgetService(
                budgets=BudgetRepository(database, money_words=money_words),
                days=UsageDayRepository(database),
                executions=executions,
                queue=queue,
                clock=clock,
            ),
            limits=LimitService(
                limits=limits,
                days=UsageDayRepository(database),
                intake=StatusIntake(limits=limits, paths=paths, clock=clock),
                clock=clock,
            ),
            database=database,
        )
        gate = Gate(TaskAuthorRepository(database), settings)
        for field in fields(services):
            gate.guard(getattr(services, field.name))
        yield services
    finally:
        await search.close()
        await database.close()
