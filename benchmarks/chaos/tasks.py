"""The stream of tasks: which there are, and what of them can be run or stopped, read with plain SQL."""

from __future__ import annotations

import sqlite3
import sys
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from agentmon.domain.agents import Agent, Capability
from agentmon.domain.approvals import RuleDecision
from agentmon.domain.budgets import BudgetPeriod, BudgetScope, BudgetUnit
from agentmon.domain.ids import AgentId, CapabilityId, new_id
from agentmon.domain.tasks import InputContext, TaskDraft
from agentmon.domain.worktrees import Isolation
from agentmon.services.actors import USER_ACTOR
from agentmon.services.demo_agent import DEMO_AGENT_SLUG, make_demo_agent
from benchmarks.chaos.conversations import HOSTILE_AGENT
from benchmarks.chaos.merging import SHOP
from benchmarks.chaos.repository import MADE
from benchmarks.chaos.reviewing import BY_HAND

if TYPE_CHECKING:
    import random

    from agentmon.bootstrap import Services
    from agentmon.domain.tasks import Task, Workspace
    from benchmarks.chaos.actions import Actions
    from benchmarks.chaos.evidence import Place

_PROGRAM: Final = Path(__file__).with_name("program.py")
RUNNING_LIMIT: Final = 4
AGENT_LIMITS: Final = {"chaos-brief": 2}
"""Most live executions of an agent; the other one has no limit of its own."""
_KINDS: Final = {
    "short": 18,
    "silent": 8,
    "noisy": 10,
    "last_words": 14,
    "long": 12,
    "failing": 8,
    "flaky": 8,
    "forking": 8,
    "daemon": 7,
    "setsid": 5,
    "stubborn": 7,
    "overtime": 5,
    "overtime_stubborn": 4,
}
"""How often each kind comes among a hundred."""
_VERIFIED: Final = f'sleep 0.3; test "$(ls made/$AGENTMON_EXECUTION_ID | wc -l)" -eq {MADE}'
_VERIFICATIONS: Final = (None, _VERIFIED, _VERIFIED, "sleep 0.2; exit 1")
"""What the work of tasks has to pass that are merged."""
_FIRST: Final = 4
_ASKING: Final = "chaos-asking"
"""The agent that waits for leave before it starts."""
_PACE_S: Final = 0.03
_HOSTILE: Final = Path(__file__).with_name("hostile.py")
_HOSTILE_SHARE: Final = 0.45
"""Of the conversations."""
_FLOOD_SHARE: Final = 0.15
"""Of the hostile ones."""
_FLOOD_EVENTS: Final = (4_000, 20_000)
_BUDGETED: Final = 0.5
_BUDGET_TOKENS: Final = (6_000, 30_000)
"""An answer takes some 6,000."""
_PLAYS: Final = ("repair the discount", "write the catalogue")
_READ: Final = """
SELECT t.id, t.number, t.status,
    (SELECT count(*) FROM executions e WHERE e.task_id = t.id) AS runs,
    (SELECT e.status FROM executions e WHERE e.task_id = t.id
        AND e.status IN ('queued', 'running', 'cancelling', 'finalizing')) AS open_status,
    EXISTS (SELECT 1 FROM executions e WHERE e.task_id = t.id AND e.session_id IS NOT NULL) AS is_conversation,
    EXISTS (SELECT 1 FROM task_dependencies d JOIN tasks p ON p.id = d.depends_on_task_id
            WHERE d.task_id = t.id AND p.status <> 'done') AS is_waiting,
    w.branch, w.source, w.status AS worktree_status,
    w.merged_commit IS NOT NULL AND w.reverted_by IS NULL AS has_merge,
    json_extract(t.input_context, '$.verify') AS verification,
    EXISTS (SELECT 1 FROM task_events a WHERE a.task_id = t.id AND a.event_type = 'changes_undone') AS has_undo,
    (SELECT (SELECT count(*) FROM operations b WHERE b.execution_id = o.execution_id AND b.id <= o.id)
        FROM operations o
        WHERE o.execution_id = (SELECT e.id FROM executions e WHERE e.task_id = t.id ORDER BY e.id DESC LIMIT 1)
            AND EXISTS (SELECT 1 FROM changes c WHERE c.execution_id = o.execution_id AND c.operation_id = o.id)
        ORDER BY o.id DESC LIMIT 1) AS call_number
FROM tasks t LEFT JOIN worktrees w ON w.id = (SELECT v.id FROM worktrees v WHERE v.task_id = t.id
    ORDER BY v.updated_at DESC LIMIT 1)
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Card:
    """A task as it stands now."""

    id: str
    number: int
    status: str
    runs: int
    open_status: str | None
    """Of its execution that waits or runs."""
    is_conversation: bool
    """Whether an agent was spoken to."""
    is_waiting: bool
    """Whether it waits for others."""

    branch: str | None
    """Of its newest worktree."""
    source: str | None
    """The folder from which that was made."""
    worktree_status: str | None
    has_merge: bool
    """Whether its branch was merged, and that was not taken back."""
    verification: str | None
    """What its work has to pass."""
    has_undo: bool
    """Whether something of it was taken back."""
    call_number: int | None
    """Of the newest tool call of its newest run that is known to have changed a file."""

    @property
    def has_worktree(self) -> bool:
        """Whether it worked in a worktree and is at rest."""
        return self.worktree_status == "ready" and self.open_status is None

    @property
    def is_of_trunk(self) -> bool:
        """Whether its branch can be merged."""
        return self.has_worktree and Path(self.source or "/").name == "trunk"

    @property
    def has_calls(self) -> bool:
        """Whether it is a conversation in a worktree."""
        return self.has_worktree and bool(self.is_conversation)

    @property
    def has_changing_call(self) -> bool:
        """Whether a tool call of it can be taken back."""
        return self.has_worktree and self.call_number is not None

    @property
    def is_undone(self) -> bool:
        """Whether something of it can come back."""
        return self.has_worktree and bool(self.has_undo)

    @property
    def is_merged(self) -> bool:
        """Whether it was merged and is at rest."""
        return bool(self.has_merge) and self.open_status is None

    @property
    def is_verified(self) -> bool:
        """Whether its work can be verified."""
        return self.has_worktree and self.verification is not None

    @property
    def is_fresh(self) -> bool:
        """Whether it could be run and never was."""
        return not self.runs and not self.is_waiting


def read_cards(database: Path) -> list[Card]:
    """Return all cards.

    Raises:
        sqlite3.OperationalError: The database cannot be read now.
    """
    with closing(sqlite3.connect(f"file:{database}?mode=ro", uri=True, isolation_level=None)) as connection:
        found = connection.execute(_READ)
        names = [column[0] for column in found.description]
        return [Card(**dict(zip(names, values, strict=True))) for values in found]


def chaos_agents(ledgers: Path) -> tuple[Agent, ...]:
    """Return the agents whose program keeps a ledger, and those that are spoken to.

    Of the others one may run as long as it likes, one may not, and one waits for leave before it starts.
    """
    return (
        *(
            _agent(slug, timeout_s=timeout_s, limit=AGENT_LIMITS.get(slug, 0), asks=slug == _ASKING)
            for slug, timeout_s in (("chaos", 0), ("chaos-brief", 2), (_ASKING, 0))
        ),
        make_demo_agent(pace_s=_PACE_S),
        _hostile_agent(ledgers),
    )


AGENT_SLUGS: Final = ("chaos", "chaos-brief", _ASKING, DEMO_AGENT_SLUG, HOSTILE_AGENT)


def _hostile_agent(ledgers: Path) -> Agent:
    return replace(
        make_demo_agent(),
        slug=HOSTILE_AGENT,
        name=HOSTILE_AGENT,
        base_args=("-I", "-S", str(_HOSTILE), "--ledgers", str(ledgers)),
    )


async def add_rules(services: Services, workspace: Workspace, agent_id: AgentId) -> None:
    """Add rules of every kind, so that each request is held against each of them."""
    add, actor = services.approvals.add_rule, USER_ACTOR
    await add(decision=RuleDecision.DENY, tool="Web*", actor=actor)
    await add(decision=RuleDecision.DENY, path="/etc/**", actor=actor)
    await add(decision=RuleDecision.DENY, command_prefix="sudo", agent_id=agent_id, actor=actor)
    await add(decision=RuleDecision.ASK, tool="Bash", command_prefix="git push", actor=actor)
    await add(decision=RuleDecision.ASK, tool="mcp__*", workspace_id=workspace.id, actor=actor)
    await add(decision=RuleDecision.ALLOW, tool="Read", path="**/*.py", workspace_id=workspace.id, actor=actor)
    await add(decision=RuleDecision.ALLOW, tool="Bash", command_prefix="echo", agent_id=agent_id, actor=actor)
    await add(decision=RuleDecision.ALLOW, tool="TodoWrite", actor=actor)


def _agent(slug: str, *, timeout_s: int, limit: int, asks: bool) -> Agent:
    agent_id = AgentId(new_id())
    words = ("kind", "ledgers", "seed")
    capability = Capability(
        id=CapabilityId(new_id()),
        agent_id=agent_id,
        key="behave",
        label="Behave",
        command_tokens=("-I", "-S", str(_PROGRAM), *(f"{{{{args.{word}}}}}" for word in words)),
        args_schema={"type": "object", "properties": {word: {"type": "string"} for word in words}},
        timeout_s=timeout_s,
        requires_approval=asks,
    )
    return Agent(
        id=agent_id, slug=slug, name=slug, binary_path=sys.executable, max_concurrent=limit, capabilities=(capability,)
    )


class Producer:
    """Makes tasks: single ones, chains and diamonds."""

    def __init__(
        self,
        services: Services,
        workspace: Workspace,
        agents: dict[str, AgentId],
        place: Place,
        actions: Actions,
        chance: random.Random,
    ) -> None:
        self._services = services
        self._workspace = workspace
        self._agents = agents
        self._ledgers, self._trunk = place.ledgers, place.trunk
        self._actions = actions
        self._chance = chance

    async def make_some(self) -> None:
        """Make one task, or some that wait for each other.

        Raises:
            AgentmonError: A task was not made; those before it were.
        """
        shape = self._chance.random()
        if shape < 0.36:
            await self._make_conversation()
        elif shape < 0.42:
            await self._make_reviewed_conversation()
        elif shape < 0.47:
            await self._make("changing")
        elif shape < 0.6:
            await self._make("merging")
        elif shape < 0.8:
            await self._make(self._kind())
        elif shape < 0.9:
            first = await self._make("short")
            second = await self._make(self._chance.choice(("silent", "flaky", "forking")), after=[first.number])
            await self._make("short", after=[second.number])
        else:
            top = await self._make("short")
            left = await self._make("noisy", after=[top.number])
            right = await self._make("silent", after=[top.number])
            await self._make("forking", after=[left.number, right.number])

    async def run_first(self) -> frozenset[str]:
        """Make and run some tasks whose work is merged; return their ids."""
        made = [await self._make("merging") for _ in range(_FIRST)]
        made += [await self._make_reviewed_conversation() for _ in range(_FIRST // 2)]
        for task in made:
            await self._services.queue.run(task.id, actor=USER_ACTOR)
        return frozenset(task.id for task in made)

    async def make_flood(self, events: int) -> Task:
        """Make a task whose agent tells of so many events.

        Raises:
            AgentmonError: It was not made.
        """
        draft = TaskDraft(
            title=f"be hostile 1 and flood {events}",
            assignee_agent_id=self._agents[HOSTILE_AGENT],
            input_context=InputContext(max_retries=2),
        )
        return await self._services.tasks.add(self._workspace, draft, actor=USER_ACTOR)

    async def _make_conversation(self) -> Task:
        for name, text in SHOP.items():
            path = Path(self._workspace.root_path) / name
            path.parent.mkdir(mode=0o700, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        is_hostile = self._chance.random() < _HOSTILE_SHARE
        draft = TaskDraft(
            title=self._hostile_title() if is_hostile else self._chance.choice(_PLAYS),
            assignee_agent_id=self._agents[HOSTILE_AGENT if is_hostile else DEMO_AGENT_SLUG],
            input_context=InputContext(max_retries=self._chance.choice((0, 0, 2)), env_passed=("API_KEY",)),
        )
        task = await self._services.tasks.add(self._workspace, draft, actor=USER_ACTOR)
        if self._chance.random() < _BUDGETED:
            self._actions.budgeted_tasks.add(task.number)
            limit = self._chance.randrange(*_BUDGET_TOKENS)
            await self._services.budgets.set(
                scope=BudgetScope.TASK,
                scope_id=task.id,
                period=BudgetPeriod.TOTAL,
                unit=BudgetUnit.TOKENS,
                limit=limit,
                actor=USER_ACTOR,
            )
        return task

    async def _make_reviewed_conversation(self) -> Task:
        draft = TaskDraft(
            title=_PLAYS[0],
            assignee_agent_id=self._agents[DEMO_AGENT_SLUG],
            input_context=InputContext(working_dir=str(self._trunk), isolation=Isolation.WORKTREE),
        )
        return await self._services.tasks.add(self._workspace, draft, actor=USER_ACTOR)

    def _hostile_title(self) -> str:
        title = f"be hostile {self._chance.randrange(10**6)}"
        if self._chance.random() < _FLOOD_SHARE:
            title += f" and flood {self._chance.randrange(*_FLOOD_EVENTS)}"
        return title

    def _kind(self) -> str:
        return self._chance.choices(list(_KINDS), weights=list(_KINDS.values()))[0]

    async def _make(self, kind: str, after: list[int] | None = None) -> Task:
        slug = "chaos-brief" if kind.startswith("overtime") else "chaos"
        if kind == "short" and self._chance.random() < 0.3:
            slug = _ASKING
        retries = {"failing": self._chance.randrange(3), "flaky": 3}.get(kind, self._chance.choice((0, 0, 2)))
        is_merged = kind == "merging"
        draft = TaskDraft(
            title=f"be {kind}",
            assignee_agent_id=self._agents[slug],
            input_context=InputContext(
                args={"kind": kind, "ledgers": str(self._ledgers), "seed": str(self._chance.randrange(10**9))},
                env_passed=("API_KEY", BY_HAND),
                max_retries=0 if is_merged else retries,
                isolation=Isolation.WORKTREE if kind in {"changing", "merging"} else None,
                working_dir=str(self._trunk) if is_merged else None,
                verify=self._chance.choice(_VERIFICATIONS) if is_merged else None,
            ),
        )
        return await self._services.tasks.add(self._workspace, draft, after=after or (), actor=USER_ACTOR)
