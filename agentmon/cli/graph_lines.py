"""What waits for what as a tree of lines; without recursion, since chains can be long, and rings end."""

from collections.abc import Callable, Mapping, Sequence

from agentmon.cli.columns import fit
from agentmon.domain.ids import TaskId
from agentmon.domain.letters import columns_of
from agentmon.domain.live_state import LiveState
from agentmon.domain.plain_text import plain_line
from agentmon.domain.task_graph import TaskGraph
from agentmon.domain.task_status import TaskStatus
from agentmon.domain.tasks import Task

_BRANCH, _LAST_BRANCH = "├─ ", "└─ "
_GOES_ON, _IS_OVER = "│  ", "   "
_CUT = "⋯"
_TITLE_COLUMNS = 24
"""What a deep line keeps for the title at least, as far as the terminal has it."""

_GLYPHS = {
    TaskStatus.TODO: "○",
    TaskStatus.IN_PROGRESS: LiveState.RUNNING.glyph,
    TaskStatus.BLOCKED: "◇",
    TaskStatus.REVIEW: "◈",
    TaskStatus.DONE: LiveState.DONE.glyph,
    TaskStatus.CANCELLED: LiveState.CANCELLED.glyph,
}


def state_words(task: Task, live: LiveState | None) -> str:
    """Return glyph and word of a task: of its open execution, or else of its column or that it was deleted."""
    if live is not None:
        return f"{live.glyph} {live.value}"
    glyph = _GLYPHS[task.status] if task.deleted_at is None else LiveState.CANCELLED.glyph
    return f"{glyph} {task.state_label}"


def graph_lines(graph: TaskGraph, task_id: TaskId, live: Mapping[TaskId, LiveState], width: int) -> list[str]:
    """Return the task, all that it waits for, and all that waits for it, each as a tree; no line is wider than asked.

    A task that is met again is named with ``(above)``, and what is below it is not repeated.

    Args:
        graph: What waits for what.
        task_id: The task in the middle.
        live: The state of the open execution of each task that has one.
        width: Columns of a line.
    """

    def named(one: TaskId) -> str:
        task = graph.tasks[one]
        return f"#{task.number} {state_words(task, live.get(one))}  {plain_line(task.title)}"

    lines = [fit(named(task_id), width)]
    for heading, onward in (("waits for:", graph.needs), ("needed by:", graph.needed_by)):
        if onward.get(task_id):
            lines += ["", heading, *_tree(task_id, onward, named, width)]
    if len(lines) == 1:
        lines.append("waits for nothing, and nothing waits for it")
    return lines


def _tree(
    root: TaskId, onward: Mapping[TaskId, Sequence[TaskId]], named: Callable[[TaskId], str], width: int
) -> list[str]:
    deepest = max(len(_BRANCH), width - _TITLE_COLUMNS - 20)
    shown = {root}
    lines = []
    # Each entry: a task, whether it is the last of its parent, and what stands before its branch.
    waiting = _entries(onward.get(root, ()), "")
    while waiting:
        task_id, is_last, indent = waiting.pop()
        branch = _LAST_BRANCH if is_last else _BRANCH
        if task_id in shown:
            lines.append(_line(f"{indent}{branch}", named(task_id), " (above)", width))
            continue
        shown.add(task_id)
        lines.append(_line(f"{indent}{branch}", named(task_id), "", width))
        below = indent + (_IS_OVER if is_last else _GOES_ON)
        if len(below) > deepest:
            below = _CUT + below[len(below) - deepest + 1 :]
        waiting += _entries(onward.get(task_id, ()), below)
    return lines


def _entries(task_ids: Sequence[TaskId], indent: str) -> list[tuple[TaskId, bool, str]]:
    """Return the tasks for the stack: the first one on top."""
    return [(task_id, place == 0, indent) for place, task_id in enumerate(reversed(task_ids))]


def _line(before: str, name: str, after: str, width: int) -> str:
    return before + fit(name, max(1, width - columns_of(before) - columns_of(after))) + after
