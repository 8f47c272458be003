"""What a person types to see fewer cards: words, ``#label``, ``@agent``, ``!priority`` and ``is:state``."""

from __future__ import annotations

import re
import unicodedata
from enum import StrEnum
from typing import Final, NamedTuple

from agentmon.domain.errors import UsageError

_STATE_MARK: Final = "is:"
_PRIORITY_WORD: Final = re.compile(r"![0-9,-]*")
_PRIORITIES: Final = re.compile(r"([1-5])(?:(-)([1-5])?)?")
_UNSTORABLE: Final = re.compile("[\ud800-\udfff]")
LONGEST_FILTER: Final = 500
"""Characters: a database refuses conditions of many hundred words. What is typed beyond is passed over."""
_KNOWN_PRIORITIES: Final = "priorities are !1 to !5, such as !1, !1-2 or !1,3"


class CardState(StrEnum):
    """States of cards that can be asked for."""

    NEEDS_YOU = "needs-you"
    RUNNING = "running"
    QUEUED = "queued"
    FAILED = "failed"
    DUE = "due"
    OVERDUE = "overdue"
    ARCHIVED = "archived"
    """Instead of the cards on the board those that were archived."""


ARCHIVED_WORD: Final = f"{_STATE_MARK}{CardState.ARCHIVED.value}"
"""The word that asks for archived cards."""


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
    is_archived: bool = False
    """Whether archived cards are meant, instead of those on the board."""
    unknown: tuple[str, ...] = ()
    """Words such as ``is:nonsense`` and ``!9``, which mean nothing and are passed over."""
    unfinished: tuple[str, ...] = ()
    """Words such as ``is:fai`` and ``!``, which may mean something when they are typed on, and are passed over."""


def known_words(word: str) -> str:
    """Return what could stand for a word of a filter that means nothing: ``states are is:needs-you, …``."""
    if word.startswith("!"):
        return _KNOWN_PRIORITIES
    return "states are " + ", ".join(f"{_STATE_MARK}{state.value}" for state in CardState)


def require_known(text: str) -> None:
    """Return when every word of a filter means something.

    Raises:
        UsageError: One means nothing, and the hint names what there is; or they are too many.
    """
    if len(text) > LONGEST_FILTER:
        raise UsageError(f"the filter has {len(text):,} characters; {LONGEST_FILTER} are the most")
    read = parse_filter(text)
    for word in (*read.unknown, *read.unfinished):
        kind = "priority" if word.startswith("!") else "state"
        raise UsageError(f"{word} is no {kind} of a card", hint=known_words(word))


def parse_filter(text: str) -> BoardFilter:
    """Return the filter that was typed; every text is one, since it is read while it is typed."""
    words: list[str] = []
    labels: list[str] = []
    agents: list[str] = []
    priorities: list[int] = []
    states: list[CardState] = []
    unknown: list[str] = []
    unfinished: list[str] = []
    known_states = {f"{_STATE_MARK}{state.value}": state for state in CardState}
    for word in unicodedata.normalize("NFC", _UNSTORABLE.sub("\ufffd", text[:LONGEST_FILTER])).split():
        lower = word.lower()
        if lower in known_states:
            states.append(known_states[lower])
        elif lower.startswith(_STATE_MARK):
            (unfinished if any(known.startswith(lower) for known in known_states) else unknown).append(word)
        elif word.startswith("#") and word[1:].isdecimal():
            # People write numbers of tasks so.
            words.append(word)
        elif word.startswith("#"):
            labels.append(lower[1:])
        elif word.startswith("@"):
            agents.append(lower[1:])
        elif _PRIORITY_WORD.fullmatch(word):
            found = _priorities(word[1:])
            if found is None:
                unknown.append(word)
            else:
                priorities += found
                unfinished += [] if found else [word]
        else:
            words.append(word)
    return BoardFilter(
        words=tuple(words),
        labels=tuple(labels),
        agents=tuple(agents),
        priorities=tuple(priorities),
        states=tuple(state for state in states if state is not CardState.ARCHIVED),
        is_archived=CardState.ARCHIVED in states,
        unknown=tuple(unknown),
        unfinished=tuple(unfinished),
    )


def _priorities(text: str) -> list[int] | None:
    """Return the priorities of ``1``, ``1-3`` or ``1,3``; none of half-typed parts, None where there is no such one."""
    found: list[int] = []
    for part in text.split(","):
        match = _PRIORITIES.fullmatch(part)
        if match is not None:
            first, last = int(match[1]), int(match[3] or match[1])
            found += range(min(first, last), max(first, last) + 1)
        elif part:
            return None
    return found
