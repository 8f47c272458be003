"""Completes the last word of a line that makes a task: programs, labels, tasks, folders."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from agentmon.domain.any_command import ANY_COMMAND_SLUG
from agentmon.domain.quick_add import quick_words
from agentmon.services.folders import FolderCompleter

if TYPE_CHECKING:
    from agentmon.domain.tasks import Workspace
    from agentmon.services.agents import AgentService
    from agentmon.services.tasks import TaskService

_MOST: Final = 6


class Completion(NamedTuple):
    """One way to go on."""

    line: str
    """The whole line with its last word completed."""
    words: str
    """What is shown for it."""


class QuickCompleter:
    """Completes lines for one workspace; programs and labels are read once."""

    def __init__(self, *, tasks: TaskService, agents: AgentService, workspace: Workspace) -> None:
        self._tasks = tasks
        self._agents = agents
        self._workspace = workspace
        self._folders = FolderCompleter(workspace.root_path)
        self._slugs: tuple[str, ...] | None = None
        self._labels: tuple[str, ...] | None = None

    async def complete(self, line: str) -> tuple[Completion, ...]:
        """Return how the last word may go on, the best first; none behind a blank and for words of the title."""
        last = next(reversed([*quick_words(line)]), None)
        if last is None or last.is_literal or line[-1:].isspace():
            return ()
        head, word = line[: last.at], last.text
        if word.startswith("@"):
            return tuple(Completion(f"{head}@{slug} ", f"@{slug}") for slug in await self._slugs_like(word[1:].lower()))
        if word.startswith("#") and not word[1:].isdecimal():
            return tuple(Completion(f"{head}#{one} ", f"#{one}") for one in await self._labels_like(word[1:].lower()))
        key, colon, content = word.partition(":")
        if not colon:
            return ()
        match key.lower():
            case "after" | "parent":
                before, comma, typed = content.rpartition(",")
                picks = await self._tasks.picks(self._workspace, typed, limit=_MOST)
                start = f"{head}{key}:{before}{comma}"
                return tuple(Completion(f"{start}{one.number}", f"#{one.number} {one.title}") for one in picks)
            case "in" if content[:1] not in {'"', "'"}:
                # A blank inside would end the word.
                found = [one for one in await self._folders.complete(content, limit=_MOST) if " " not in one]
                return tuple(Completion(f"{head}{key}:{one}", one) for one in found)
            case _:
                return ()

    async def _slugs_like(self, start: str) -> list[str]:
        if self._slugs is None:
            agents = await self._agents.list(workspace_id=self._workspace.id)
            self._slugs = tuple(one.slug for one in agents if one.slug != ANY_COMMAND_SLUG)
        return [slug for slug in self._slugs if slug.lower().startswith(start)][:_MOST]

    async def _labels_like(self, start: str) -> list[str]:
        if self._labels is None:
            self._labels = await self._tasks.known_labels(self._workspace)
        return [label for label in self._labels if label.startswith(start)][:_MOST]
