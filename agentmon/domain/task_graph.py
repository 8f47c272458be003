"""What waits for what: tasks and their dependencies as a graph, with the rings that should not be there."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from agentmon.domain.ids import TaskId
    from agentmon.domain.tasks import Task


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskGraph:
    """Tasks around one of them, as far as dependencies lead in both directions."""

    tasks: Mapping[TaskId, Task]
    needs: Mapping[TaskId, Sequence[TaskId]] = field(default_factory=dict)
    """What each task waits for or has waited for, by number; tasks without any are left out."""

    @property
    def needed_by(self) -> Mapping[TaskId, Sequence[TaskId]]:
        """Return which tasks wait for each, by number."""
        needed_by: dict[TaskId, list[TaskId]] = {}
        for task_id in sorted(self.needs, key=lambda one: self.tasks[one].number):
            for prerequisite in self.needs[task_id]:
                needed_by.setdefault(prerequisite, []).append(task_id)
        return needed_by


def find_rings(needs: Mapping[TaskId, Sequence[TaskId]]) -> tuple[tuple[TaskId, ...], ...]:
    """Return every group of tasks that wait for each other, each in the order in which they were met.

    Source: Tarjan, Depth-first search and linear graph algorithms, 1972; without recursion, since chains can be long.
    """
    order: dict[TaskId, int] = {}
    lowest: dict[TaskId, int] = {}
    path: list[TaskId] = []
    on_path: set[TaskId] = set()
    rings = []
    for start in needs:
        if start in order:
            continue
        work = [(start, iter(needs.get(start, ())))]
        order[start] = lowest[start] = len(order)
        path.append(start)
        on_path.add(start)
        while work:
            present, onward = work[-1]
            following = next(onward, None)
            if following is None:
                work.pop()
                if work:
                    lowest[work[-1][0]] = min(lowest[work[-1][0]], lowest[present])
                if lowest[present] == order[present]:
                    ring = _take_back_to(path, present)
                    on_path.difference_update(ring)
                    if len(ring) > 1 or present in needs.get(present, ()):
                        rings.append(tuple(ring))
            elif following not in order:
                order[following] = lowest[following] = len(order)
                path.append(following)
                on_path.add(following)
                work.append((following, iter(needs.get(following, ()))))
            elif following in on_path:
                lowest[present] = min(lowest[present], order[following])
    return tuple(rings)


def _take_back_to(path: list[TaskId], first: TaskId) -> list[TaskId]:
    """Take the end of a path away, from the task onward, and return it."""
    taken = [path.pop()]
    while taken[-1] != first:
        taken.append(path.pop())
    taken.reverse()
    return taken
