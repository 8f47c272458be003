"""What people do with the work of a task that is at rest, each by a client that may be killed: the list of actions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import random

    from benchmarks.chaos.tasks import Card

BY_HAND: Final = "CHAOS_BY_HAND"
"""Set for what somebody verifies by hand: no run of its own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Review:
    """One kind of action."""

    name: str
    weight: int
    words: str
    """Of the command line, with what a card has; empty for the comments, whose lines only the changes tell."""
    needs: str = "has_worktree"
    """The property of a card that it takes."""


REVIEWS: Final = (
    Review(name="undo a run", weight=10, words="undo {number} --run 1"),
    Review(name="undo a task", weight=8, words="undo {number} --task"),
    Review(name="undo a call", weight=8, words="undo {number} --call {call}", needs="has_changing_call"),
    Review(name="undo and commit", weight=4, words="undo {number} --commit", needs="is_of_trunk"),
    Review(name="redo", weight=14, words="undo {number} --redo", needs="is_undone"),
    Review(name="merge: squash", weight=14, words="merge {number} --how squash", needs="is_of_trunk"),
    Review(name="merge: merge", weight=10, words="merge {number} --how merge", needs="is_of_trunk"),
    Review(name="merge: rebase", weight=10, words="merge {number} --how rebase", needs="is_of_trunk"),
    Review(name="merge: aside", weight=6, words="merge {number} --into release", needs="is_of_trunk"),
    Review(name="merge: undo", weight=18, words="merge {number} --undo", needs="is_merged"),
    Review(name="verify", weight=8, words="verify {number}", needs="is_verified"),
    Review(name="comment", weight=12, words="", needs="has_calls"),
    Review(name="remove", weight=3, words="worktrees remove {number} --confirm {branch}"),
    Review(name="prune", weight=2, words="worktrees prune"),
)
"""All of them, with how often each is chosen among those that fit a card."""


def choose(card: Card, chance: random.Random) -> tuple[Review, list[str]] | None:
    """Return one that fits a card, with the words after ``python -P``; None when none does."""
    fitting = [one for one in REVIEWS if getattr(card, one.needs)]
    if not fitting:
        return None
    (review,) = chance.choices(fitting, weights=[one.weight for one in fitting])
    if not review.words:
        return review, ["-m", "benchmarks.chaos.commenting", card.id]
    words = review.words.format(number=card.number, branch=card.branch, call=card.call_number)
    return review, ["-m", "agentmon", *words.split()]
