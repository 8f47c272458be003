"""What a person types to see fewer cards: words, ``#label``, ``@agent``, ``!priority`` and ``is:state``."""

from __future__ import annotations

import unicodedata
from enum import StrEnum
from typing import Final, NamedTuple

_STATE_MARK: Final = "is:"
_PRIORITY_SIGNS: Final = frozenset("12345-,")


class CardState(StrEnum):
    """States of cards that can be asked for."""

    NEEDS_YOU = "needs-you"
    RUNNING = "running"
    QUEUED = "queued"
    FAILED = "failed"
    DUE = "due"
    OVERDUE = "overdue"


class BoardFilter(NamedTuple):
    """A card is shown when all of it holds; of priorities and of states one is enough."""

    words: tuple[str, ...] = ()
    """The letters of each stand in this order in the title, the program or a label, or begin the number."""
    labels: tuple[str, ...] = ()
    """A label of the card begins with each; an empty one means any label."""
    agents: tuple[str, ...] = ()
    """The name of the card's program begins with each; an empty one means any program."""
    priorities: tuple[int, ...] = ()
    states: tuple[CardState, ...] = ()


def parse_filter(text: str) -> BoardFilter:
    """Return the filter that was typed; every text is one, since it is read while it is typed."""
    words: list[str] = []
    labels: list[str] = []
    agents: list[str] = []
    priorities: list[int] = []
    states: list[CardState] = []
    known_states = {f"{_STATE_MARK}{state.value}": state for state in CardState}
    for word in unicodedata.normalize("NFC", text).split():
        lower = word.lower()
        if lower in known_states:
            states.append(known_states[lower])
        elif word.startswith("#") and word[1:].isdecimal():
            # People write numbers of tasks so.
            words.append(word)
        elif word.startswith("#"):
            labels.append(lower[1:])
        elif word.startswith("@"):
            agents.append(lower[1:])
        elif word.startswith("!") and frozenset(word[1:]) <= _PRIORITY_SIGNS:
            priorities += _priorities(word[1:])
        else:
            words.append(word)
    return BoardFilter(tuple(words), tuple(labels), tuple(agents), tuple(priorities), tuple(states))


def _priorities(text: str) -> list[int]:
    """Return the priorities of ``1``, ``1-3`` or ``1,3``; half-typed parts are passed over."""
    found: list[int] = []
    for part in text.split(","):
        first, _, last = part.partition("-")
        if len(first) == 1 and len(last) <= 1:
            found += range(int(first), int(last or first) + 1)
    return found
