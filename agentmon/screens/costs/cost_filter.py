"""Which answers count on the costs screen: the choices that a person has, and the words of what is chosen."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from agentmon.domain.costs import CostFilter, CostGroup
from agentmon.paths import expanded
from agentmon.screens.costs.cost_periods import PERIODS
from agentmon.screens.dialogs.menu_dialog import MenuEntry

if TYPE_CHECKING:
    from collections.abc import Sequence

    from agentmon.bootstrap import Services
    from agentmon.domain.tasks import Workspace

EVERYTHING: Final = "everything"
AGENT: Final = "agent"
MODEL: Final = "model"
PROJECT: Final = "project"
WORKSPACE: Final = "workspace"
TIME: Final = "time"
_MOST_CHOICES: Final = 12
"""Of each kind, the dearest; another project can be typed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FilterChoices:
    """What there is to choose from, the dearest first."""

    agents: tuple[str, ...]
    models: tuple[str, ...]
    projects: tuple[str, ...]
    workspaces: tuple[Workspace, ...]


async def read_choices(services: Services) -> FilterChoices:
    """Return what has answers, of all time."""
    names: dict[CostGroup, tuple[str, ...]] = {}
    for group in (CostGroup.AGENT, CostGroup.MODEL, CostGroup.PROJECT):
        report = await services.costs.report(group, CostFilter())
        names[group] = tuple(bucket.group for bucket in report.buckets if bucket.group)[:_MOST_CHOICES]
    return FilterChoices(
        agents=names[CostGroup.AGENT],
        models=names[CostGroup.MODEL],
        projects=names[CostGroup.PROJECT],
        workspaces=tuple(await services.workspaces.list())[:_MOST_CHOICES],
    )


def filter_entries(choices: FilterChoices, chosen: CostFilter, period: int) -> list[MenuEntry]:
    """Return what can be chosen; what is chosen already is marked, and choosing it again takes it back."""
    folders = {workspace.root_path for workspace in choices.workspaces}
    projects = [folder for folder in _with(chosen.project, choices.projects) if folder and folder not in folders]
    return [
        *([MenuEntry(EVERYTHING, "no filter")] if chosen != CostFilter() else []),
        *(MenuEntry(TIME, one.name, is_present=at == period) for at, one in enumerate(PERIODS)),
        *(MenuEntry(AGENT, slug, is_present=slug == chosen.agent_slug) for slug in choices.agents),
        *(
            MenuEntry(WORKSPACE, one.name, is_present=one.root_path == chosen.project, meaning=one.root_path)
            for one in choices.workspaces
        ),
        *(
            MenuEntry(PROJECT, _short(folder), is_present=folder == chosen.project, meaning=folder)
            for folder in projects
        ),
        *(MenuEntry(MODEL, model, is_present=model == chosen.model) for model in _with(chosen.model, choices.models)),
    ]


def with_entry(chosen: CostFilter, entry: MenuEntry) -> CostFilter:
    """Return the filter with what was chosen from the menu, or without it when it was chosen before."""
    meaning = entry.meaning or entry.word
    if entry.kind == EVERYTHING:
        return CostFilter()
    if entry.kind == AGENT:
        return replace(chosen, agent_slug="" if entry.is_present else meaning)
    if entry.kind == MODEL:
        return replace(chosen, model="" if entry.is_present else meaning)
    if entry.kind in {PROJECT, WORKSPACE}:
        return replace(chosen, project="" if entry.is_present else str(expanded(meaning)))
    return chosen


def merged(chosen: CostFilter, narrower: CostFilter) -> CostFilter:
    """Return a filter with what a row that was followed says, which lies within it."""
    return CostFilter(
        agent_slug=narrower.agent_slug or chosen.agent_slug,
        model=narrower.model or chosen.model,
        project=narrower.project or chosen.project,
    )


def filter_words(chosen: CostFilter) -> str:
    """Return what is chosen in words: ``only claude, in ~/src/shop``; empty for everything."""
    parts = [chosen.agent_slug, chosen.model, f"in {_short(chosen.project)}" if chosen.project else ""]
    words = ", ".join(part for part in parts if part)
    return f"only {words}" if words else ""


def _short(folder: str) -> str:
    home = str(Path.home())
    return f"~{folder[len(home) :]}" if folder.startswith(f"{home}/") else folder


def _with(word: str, words: Sequence[str]) -> Sequence[str]:
    return words if not word or word in words else (word, *words)
