from __future__ import annotations

from datetime import UTC, datetime

import pytest

from agentmon.cli.graph_lines import graph_lines
from agentmon.domain.ids import TaskId, WorkspaceId
from agentmon.domain.letters import columns_of
from agentmon.domain.task_graph import TaskGraph
from agentmon.domain.tasks import Task

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def _graph(needs: dict[int, list[int]], title: str = "a task") -> TaskGraph:
    numbers = {*needs, *(other for others in needs.values() for other in others)}
    return TaskGraph(
        tasks={
            TaskId(str(number)): Task(
                id=TaskId(str(number)),
                number=number,
                workspace_id=WorkspaceId("w"),
                title=title,
                created_at=NOW,
                updated_at=NOW,
            )
            for number in numbers
        },
        needs={TaskId(str(number)): [TaskId(str(other)) for other in others] for number, others in needs.items()},
    )


@pytest.mark.proof
@pytest.mark.parametrize("width", [40, 80, 120])
def test_a_chain_of_thousands_is_drawn_within_the_width(width: int) -> None:
    graph = _graph({number: [number + 1] for number in range(1, 5001)}, "a rather long title " * 10)

    lines = graph_lines(graph, TaskId("1"), {}, width)

    assert len(lines) == 3 + 5000
    assert max(map(columns_of, lines)) <= width
    assert "#5001 ○ Todo" in lines[-1]


def test_a_ring_ends_where_it_is_met_again() -> None:
    graph = _graph({1: [2], 2: [3], 3: [1]})

    lines = graph_lines(graph, TaskId("1"), {}, 80)

    assert lines[2:6] == [
        "waits for:",
        "└─ #2 ○ Todo  a task",
        "   └─ #3 ○ Todo  a task",
        "      └─ #1 ○ Todo  a task (above)",
    ]


def test_many_ways_to_the_same_task_cost_one_line_each() -> None:
    layers = 40
    needs = {10 * layer + place: [10 * layer + 10, 10 * layer + 11] for layer in range(1, layers) for place in (0, 1)}

    lines = graph_lines(_graph(needs), TaskId("10"), {}, 80)

    assert len(lines) < 4 * layers + 5


def test_wide_titles_are_cut_by_columns() -> None:
    lines = graph_lines(_graph({1: [2]}, "漢字" * 100), TaskId("1"), {}, 50)

    assert all(columns_of(line) <= 50 for line in lines)
    assert lines[0].endswith("…")
