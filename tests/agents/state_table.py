"""The tables at the end of the tests with real agents: what the board showed in each state, and how soon."""

from __future__ import annotations

import math
import statistics
from collections import defaultdict
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

DELAY: Final = "delay of the card"
STATE: Final = "state of the board"
_GOAL_MS: Final = 300


def summary_lines(notes: Iterable[tuple[str, Any]]) -> Iterator[str]:
    """Give both tables as Markdown; nothing for what was not noted."""
    states: dict[tuple[str, ...], None] = {}
    delays: dict[tuple[str, str, str], list[float]] = defaultdict(list)
    for name, value in notes:
        if name == STATE:
            states[tuple(str(part or "") for part in value)] = None
        elif name == DELAY:
            slug, mode, activity, delay_ms = value
            delays[slug, mode, f"to {activity}"].append(delay_ms)
            delays[slug, mode, "all"].append(delay_ms)
    if states:
        yield from ("", "| agent | mode | state | board | note | error | source |", "|---|---|---|---|---|---|---|")
        for row in sorted(states, key=lambda row: row[:2]):
            yield f"| {' | '.join(part.replace('|', '/').replace(chr(10), ' ')[:90] for part in row)} |"
    if delays:
        yield from ("", f"From the agent's change to the card's, in ms; the goal is a median of {_GOAL_MS}.", "")
        yield from ("| agent | mode | change | count | median | 95 % | most |", "|---|---|---|---|---|---|---|")
        for key, found in sorted(delays.items()):
            figures = (statistics.median(found), _nearly_all(found), max(found))
            yield f"| {' | '.join(key)} | {len(found)} | {' | '.join(f'{one:.0f}' for one in figures)} |"


def _nearly_all(found: Sequence[float]) -> float:
    """Return what 95 of 100 are not above."""
    return sorted(found)[math.ceil(0.95 * len(found)) - 1]
