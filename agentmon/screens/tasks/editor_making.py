"""Makes task editors over the services of one workspace: what they choose from, look up and save."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from agentmon.domain.errors import NotFoundError
from agentmon.screens.tasks.start_note import judge_finder
from agentmon.screens.tasks.task_editor import TaskEditor, TemplateKeeping

if TYPE_CHECKING:
    from agentmon.bootstrap import Services
    from agentmon.domain.agents import Agent
    from agentmon.domain.amounts import MoneyFormat
    from agentmon.domain.task_picks import TaskPick
    from agentmon.domain.tasks import Task, TaskDraft, Workspace


@dataclass(frozen=True, slots=True, kw_only=True)
class EditorMaking:
    """What all editors of one edit have in common."""

    services: Services
    workspace: Workspace
    agents: tuple[Agent, ...]
    last_agent_slug: str | None
    """The program of the newest card that has one."""
    known_labels: tuple[str, ...]
    money: MoneyFormat

    @classmethod
    async def read(cls, services: Services, workspace: Workspace) -> EditorMaking:
        """Read what there is to choose from."""
        agents = await services.agents.list(workspace_id=workspace.id)
        last_agent_id = await services.tasks.last_agent_id(workspace)
        return cls(
            services=services,
            workspace=workspace,
            agents=agents,
            last_agent_slug=next((agent.slug for agent in agents if agent.id == last_agent_id), None),
            known_labels=await services.tasks.known_labels(workspace),
            money=await services.settings.money(),
        )

    def editor(
        self,
        *,
        task: Task | None,
        draft: TaskDraft | None,
        start: TaskDraft | None,
        parent: int | None,
        after: tuple[int, ...],
        budget_nano: int | None,
    ) -> TaskEditor:
        """Return an editor; see ``TaskEditor`` for what it is given."""
        return TaskEditor(
            agents=self.agents,
            task=task,
            workspace_root=self.workspace.root_path,
            default_agent_slug=self.last_agent_slug,
            draft=draft,
            start=start,
            templates=TemplateKeeping(names=self._own_templates, save=self._save_template),
            parent=parent,
            after=after,
            find_task=self._find_task,
            find_picks=self._find_picks,
            budget_nano=budget_nano,
            money=self.money,
            known_labels=self.known_labels,
            find_judge=judge_finder(self.services),
        )

    async def _find_task(self, number: int) -> Task | None:
        try:
            return await self.services.tasks.by_number(self.workspace, number)
        except NotFoundError:
            return None

    async def _find_picks(self, typed: str) -> tuple[TaskPick, ...]:
        return await self.services.tasks.picks(self.workspace, typed)

    async def _save_template(self, name: str, draft: TaskDraft, replaces: bool) -> str:
        return str(await self.services.templates.save(name, draft, replaces=replaces, actor=self.services.actor))

    async def _own_templates(self) -> tuple[str, ...]:
        shelf = await self.services.templates.list(self.workspace)
        return tuple(one.name for one in shelf.templates if not one.is_shared)
