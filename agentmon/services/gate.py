"""Who may ask each service for what: one table, and the refusal of everybody else."""

from __future__ import annotations

from enum import Enum
from functools import wraps
from typing import TYPE_CHECKING, Final, NamedTuple, cast

from agentmon.domain.errors import ConflictError
from agentmon.domain.events import UNSEEN_ACTOR, Actor, ActorType
from agentmon.services.settings import AGENTS_MAY_DECIDE_KEY

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from agentmon.domain.ids import TaskId
    from agentmon.services.settings import SettingsService
    from agentmon.store.task_authors import TaskAuthorRepository


class Who(Enum):
    """Who may, besides the worker."""

    EVERYONE = "everyone"
    """A person and any agent; what an agent may not say, the method itself refuses or puts to a person."""
    OWNER = "owner"
    """A person, or an agent about its own card and those that were made from it; the task is the first argument."""
    MAKER = "maker"
    """A person, or an agent about the cards that were made from its own."""
    DECIDER = "decider"
    """A person, or any agent where a person has set ``approvals.agents_may_decide``."""
    PERSON = "person"


class Right(NamedTuple):
    """Who may do what."""

    who: Who
    deed: str
    """What an agent is told that it may not do."""
    methods: str
    """Of the services, divided by blanks; each is named by the class that defines it."""


RIGHTS: Final = (
    Right(
        Who.PERSON,
        "change what agents are and may do",
        "AgentAdding.add_program AgentEditing.edit AgentEditing.enable AgentEditing.disable AgentEditing.duplicate "
        "AgentEditing.remove AgentEditing.restore AgentEditing.release AgentEditing.limit AgentEditing.set_tools "
        "CapabilityEditing.edit_capability CapabilityEditing.add_capability CapabilityEditing.remove_capability "
        "CapabilityEditing.restore_capability CapabilityScanService.scan CapabilityScanService.accept "
        "AgentExchange.import_text AgentFileService.trust AgentFileService.untrust",
    ),
    Right(
        Who.PERSON,
        "change settings",
        "SettingsService.keep_execution_columns SettingsService.set SettingsService.reset",
    ),
    Right(Who.PERSON, "choose the model or permission mode of what runs", "ConversationService.switch"),
    Right(Who.PERSON, "pause or resume the queue", "QueueService.pause QueueService.resume"),
    Right(Who.PERSON, "stop the worker", "WorkerService.stop"),
    Right(Who.PERSON, "move a workspace", "WorkspaceService.move"),
    # Keys can answer what an agent's own screen asks a person for.
    Right(Who.PERSON, "type into the terminal of a run", "ConversationService.type_keys"),
    Right(Who.PERSON, "change a person's templates", "TemplateService.save TemplateService.remove"),
    Right(Who.PERSON, "change a person's filters", "BoardService.save_filter BoardService.forget_filter"),
    Right(Who.PERSON, "change what was paid", "CostService.reprice"),
    Right(
        Who.PERSON,
        "remove what is kept of the work of agents",
        "StorageService.thin ArchiveService.archive_closed_before",
    ),
    Right(Who.PERSON, "undo changes", "ChangeService.take_back_hunk ChangeService.undo ChangeService.commit_undone"),
    Right(
        Who.PERSON,
        "review changes",
        "ChangeService.mark_looked_at ChangeService.write_comment ChangeService.send_comments",
    ),
    Right(Who.PERSON, "verify work itself", "VerificationService.verify"),
    Right(
        Who.PERSON,
        "merge or push",
        "MergeService.merge MergeService.undo MergeService.ask_to_solve PullRequestService.open",
    ),
    Right(
        Who.DECIDER,
        "decide what agents are allowed",
        "ApprovalService.allow ApprovalService.deny ApprovalService.answer ApprovalService.add_rule "
        "ApprovalService.remove_rule ApprovalService.set_rule_enabled",
    ),
    Right(Who.DECIDER, "decide what may be spent", "BudgetService.set BudgetService.remove"),
    Right(
        Who.OWNER,
        "change a card that is not its own",
        "TaskService.edit TaskService.move TaskService.shift TaskService.change_dependencies "
        "TaskService.add_dependency TaskService.remove_dependency ArchiveService.archive ArchiveService.unarchive",
    ),
    Right(
        Who.OWNER,
        "stop what it did not start, or speak to it",
        "QueueService.stop ConversationService.send ConversationService.interrupt ConversationService.finish",
    ),
    Right(
        Who.MAKER,
        "delete a card that it did not make",
        "TaskService.delete TaskService.restore QueueService.let_go",
    ),
    Right(
        Who.EVERYONE,
        "",
        # What is made or started: what an agent may not say is refused there; what may do harm waits.
        "TaskService.add TaskService.add_all QuickAddService.add QueueService.run "
        "QueueService.start_anyway QueueService.find_begun SessionService.resume "
        "SessionService.fork SessionService.restart "
        "SessionService.rename WorktreeService.remove WorktreeService.restore WorktreeService.prune "
        "WorkspaceService.open WorkspaceService.find_for AgentAdding.add AgentTesting.test_run DiscoveryService.scan "
        "NotificationService.try_out CostService.import_history CostService.import_conversations "
        "ApprovalService.find_decided SettingsService.agents_may_decide "
        # What keeps the work going.
        "QueueService.look_after QueueService.deliver QueueService.settle ChangeService.recover "
        "MergeService.commit_left_over WorkerService.ensure_running WorkerService.wake WorkerService.hand_over "
        # What is read.
        "TaskService.get TaskService.by_number TaskService.last_agent_id TaskService.known_labels TaskService.picks "
        "TaskService.list TaskService.subtasks TaskService.graph TaskService.rings TaskService.dependencies "
        "QueueService.queued_with QueueService.find_pause QueueService.find_folder_holder "
        "QueueService.numbers_in_folder QueueService.look_beside QueueService.lost_tasks QueueService.wait "
        "QuickAddService.completer QuickAddService.read TemplateService.list TemplateService.get TemplateService.draft "
        "AuditService.of_task AuditService.all AuditService.newest_id AuditService.notifications "
        "ExecutionService.list ExecutionService.without_request ExecutionService.ended_by_budgets "
        "ExecutionService.of_task ExecutionService.newest ExecutionService.get ExecutionService.events "
        "ExecutionService.log_path ExecutionService.draft_reader ExecutionService.log_times_reader "
        "SightingService.worker_seen_at SightingService.worker_missed_since SightingService.look "
        "SightingService.add_to SightingService.strays ScreenService.text ScreenService.text_of "
        "ApprovalService.inbox ApprovalService.history ApprovalService.get ApprovalService.find "
        "ApprovalService.of_task ApprovalService.proposed_rule ApprovalService.rules ApprovalService.find_rule "
        "ApprovalService.try_rules "
        "ApprovalService.try_rules_on_history "
        "ConversationService.messages ConversationService.operations ConversationService.plan "
        "ConversationService.events ConversationService.newest_to_resume ExplainService.explain "
        "ChangeService.of_run ChangeService.hashes_of ChangeService.patch_of_run ChangeService.between "
        "ChangeService.sizes_of ChangeService.text_of ChangeService.plan_undo ChangeService.plan_undo_of_call "
        "ChangeService.plan_undo_of_task ChangeService.of_call ChangeService.of_calls ChangeService.plan_redo "
        "ChangeService.is_last_undone ChangeService.step_patch ChangeService.standings ChangeService.commits_of_run "
        "ChangeService.looked_at ChangeService.comments_of ChangeService.comment_at "
        "SessionService.list SessionService.get_listing SessionService.get SessionService.find SessionService.of_task "
        "SessionService.executions SearchService.search SearchService.document SearchService.close "
        "AgentReading.list AgentReading.registered AgentReading.by_slug AgentReading.get "
        "AgentExchange.export AgentFileService.state AgentFileService.require_trusted "
        "DiscoveryService.is_due DiscoveryService.programs DiscoveryService.version DiscoveryService.health "
        "BoardService.page BoardService.filters BoardService.find_filter BoardService.spent BoardService.alternatives "
        "BoardService.locate WorkerService.status AttachService.plan DoctorService.check "
        "BackgroundService.worker BackgroundService.troubles BackgroundService.worker_trouble "
        "StorageService.report StorageService.outlook "
        "WorktreeService.get WorktreeService.of_task WorktreeService.require_of_task WorktreeService.states "
        "WorktreeService.state VerificationService.newest VerificationService.command "
        "MergeService.default_how MergeService.worktree_of MergeService.plan MergeService.message "
        "MergeService.plan_undo MergeService.require_unmerged PullRequestService.of_task "
        "SettingsService.default_worker_settings SettingsService.default_money_words "
        "SettingsService.default_board_words SettingsService.costs SettingsService.worker SettingsService.history "
        "SettingsService.agents SettingsService.notifications SettingsService.verification SettingsService.sandbox "
        "SettingsService.execution_columns SettingsService.money SettingsService.all SettingsService.get "
        "CostService.report CostService.places CostService.has_history_to_read CostService.explain "
        "SummaryService.daily SummaryService.projects SummaryService.activity "
        "BudgetService.states BudgetService.find BudgetService.find_execution "
        "LimitService.windows LimitService.burn LimitService.projection LimitService.overview LimitService.history "
        "LimitService.zone_name WorkspaceService.find_known WorkspaceService.look_at "
        "WorkspaceService.find_moved WorkspaceService.get WorkspaceService.own_settings "
        "WorkspaceService.list WorkspaceService.counts",
    ),
)
"""Who may what; what is not in it, a test refuses."""


_ELSEWHERE: Final = "a person does, in a terminal that no agent runs in"


def require_person(actor: Actor, deed: str, *, hint: str = _ELSEWHERE) -> None:
    """Refuse an agent; the deed completes *an agent may not*.

    Raises:
        ConflictError: The actor is an agent.
    """
    if actor == UNSEEN_ACTOR:
        raise ConflictError(
            f"nobody can tell who asks, and an agent may not {deed}",
            hint="agentmon's tmux server cannot be seen from here: ask outside of containers and sandboxes",
        )
    if actor.type is ActorType.AGENT:
        raise ConflictError(f"an agent may not {deed}", hint=hint)


_TASK: Final = "task_id"
"""What the owner's and the maker's methods call their first argument."""
_TO_LET_DECIDE: Final = (
    f"{_ELSEWHERE}: the inbox, or `agentmon inbox`; there `agentmon settings {AGENTS_MAY_DECIDE_KEY} true` would let "
    "agents decide"
)


class Gate:
    """Lets through what the table allows."""

    def __init__(self, authors: TaskAuthorRepository, settings: SettingsService) -> None:
        self._authors = authors
        self._settings = settings

    def guard(self, service: object) -> None:
        """Let the methods of a service refuse from now on those who may not ask for them."""
        for name, right in rights_of(type(service)).items():
            if right.who is not Who.EVERYONE:
                setattr(service, name, self._guarded(right, getattr(service, name)))

    def _guarded(self, right: Right, method: Callable[..., Awaitable[object]]) -> Callable[..., Awaitable[object]]:
        @wraps(method)
        async def guarded(*args: object, actor: Actor, **kwargs: object) -> object:
            if actor.type is ActorType.AGENT:
                await self._require(right, actor, args[0] if args else kwargs.get(_TASK))
            return await method(*args, actor=actor, **kwargs)

        return guarded

    async def _require(self, right: Right, actor: Actor, about: object) -> None:
        """Refuse an agent that the right does not let; ``about`` is the first argument."""
        match right.who:
            case Who.DECIDER:
                if not await self._settings.agents_may_decide():
                    require_person(actor, right.deed, hint=_TO_LET_DECIDE)
            case Who.OWNER | Who.MAKER:
                task_id, is_made_only = cast("TaskId", about), right.who is Who.MAKER
                if not await self._authors.is_own(task_id, actor, is_made_only=is_made_only):
                    require_person(actor, right.deed)
            case _:
                require_person(actor, right.deed)


def rights_of(service: type) -> Mapping[str, Right]:
    """Return the rights for the methods of a service, and of the classes that it is made of, by their names."""
    return {name: right for one in service.__mro__ for name, right in _BY_CLASS.get(one.__name__, {}).items()}


def _by_class() -> Mapping[str, Mapping[str, Right]]:
    rights: dict[str, dict[str, Right]] = {}
    for right in RIGHTS:
        for owner, _, name in (method.partition(".") for method in right.methods.split()):
            rights.setdefault(owner, {})[name] = right
    return rights


_BY_CLASS: Final = _by_class()
