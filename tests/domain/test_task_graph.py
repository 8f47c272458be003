from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from agentmon.domain.ids import TaskId
from agentmon.domain.task_graph import find_rings


def _graph(edges: set[tuple[int, int]]) -> dict[TaskId, list[TaskId]]:
    needs: dict[TaskId, list[TaskId]] = {}
    for source, target in sorted(edges):
        needs.setdefault(TaskId(str(source)), []).append(TaskId(str(target)))
    return needs


def _reaches(edges: set[tuple[int, int]]) -> set[tuple[int, int]]:
    reached = set(edges)
    while more := {(a, d) for a, b in reached for c, d in edges if b == c} - reached:
        reached |= more
    return reached


@given(edges=st.sets(st.tuples(st.integers(0, 7), st.integers(0, 7)), max_size=20))
def test_the_rings_are_exactly_the_groups_in_which_everybody_reaches_everybody(edges: set[tuple[int, int]]) -> None:
    reached = _reaches(edges)
    in_rings = {one for one in range(8) if (one, one) in reached}
    expected = {
        frozenset(str(other) for other in in_rings if {(one, other), (other, one)} <= reached) for one in in_rings
    }

    rings = find_rings(_graph(edges))

    assert {frozenset(ring) for ring in rings} == expected
    assert sum(map(len, rings)) == len(in_rings)


def test_a_chain_of_thousands_is_no_ring() -> None:
    chain = {(number, number + 1) for number in range(20_000)}

    assert find_rings(_graph(chain)) == ()


def test_a_ring_of_thousands_is_one_ring() -> None:
    size = 20_000
    (ring,) = find_rings(_graph({(number, (number + 1) % size) for number in range(size)}))

    assert len(ring) == size
