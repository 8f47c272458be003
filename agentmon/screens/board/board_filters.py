"""The menu of filters of the board: saved ones, and the words that are asked for most."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from agentmon.domain.board_filter import CardState
from agentmon.domain.task_status import Priority
from agentmon.screens.dialogs.menu_dialog import MenuDialog, MenuEntry

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from agentmon.screens.frame import ServiceScreen

SAVED: Final = "saved"
FORGET: Final = "forget"
ALL_CARDS: Final = "all"
SAVE_AS: Final = "save as"
TYPED: Final = "filter"
_MOST_LABELS: Final = 15
_STATE_WORDS: Final = {
    CardState.NEEDS_YOU: "needs you",
    CardState.FAILED: "failed",
    CardState.RUNNING: "running",
    CardState.QUEUED: "queued",
    CardState.DUE: "due within 7 days",
    CardState.OVERDUE: "overdue",
    CardState.ARCHIVED: "archived",
}


async def choose_filter(screen: ServiceScreen[None], present: str, programs: Iterable[str]) -> str | None:
    """Return the filter that a person chose, empty for all cards; None when they left it. Must run in a worker.

    Args:
        screen: Shows the menu.
        present: The filter of this moment, which can be saved.
        programs: The programs of the cards in view.
    """
    services = await screen.services()
    saved = await services.board.filters()
    labels = await services.tasks.known_labels(await screen.workspace())
    may_save = bool(present) and present not in saved.values()
    dialog = MenuDialog(
        f"Filter: {present}" if present else "Filter",
        filter_entries(present, saved, programs, labels),
        free_kind=SAVE_AS if may_save else TYPED,
        free_words="save this filter under a name" if may_save else "words, #label, @agent, !1, is:failed",
    )
    chosen = await screen.ask(dialog)
    if chosen is None:
        return None
    if chosen.kind == SAVE_AS:
        await services.board.save_filter(chosen.word, present, actor=services.actor)
        screen.notify(f"saved as “{chosen.word}”; f finds it again", markup=False)
        return None
    if chosen.kind == FORGET:
        await services.board.forget_filter(chosen.word, actor=services.actor)
        screen.notify(f"forgot the filter “{chosen.word}”", markup=False)
        return None
    if chosen.kind == ALL_CARDS:
        return ""
    if chosen.kind in {SAVED, TYPED}:
        return chosen.meaning or chosen.word
    return toggled(present, chosen.meaning)


def filter_entries(
    present: str, saved: Mapping[str, str], programs: Iterable[str], labels: Iterable[str]
) -> list[MenuEntry]:
    """Return what can be chosen; words of the present filter are marked, and choosing them takes them away."""
    words = set(present.split())

    def quick(kind: str, word: str, meaning: str) -> MenuEntry:
        return MenuEntry(kind, word, meaning in words, meaning)

    return [
        *(MenuEntry(SAVED, name, text == present, text) for name, text in saved.items()),
        *(quick("state", word, f"is:{state.value}") for state, word in _STATE_WORDS.items()),
        *(quick("agent", slug, f"@{slug}") for slug in programs),
        *(quick("label", f"#{label}", f"#{label}") for label in tuple(labels)[:_MOST_LABELS]),
        *(quick("priority", f"P{number.value}", f"!{number.value}") for number in Priority),
        *(MenuEntry(FORGET, name) for name, text in saved.items() if text == present),
        *([MenuEntry(ALL_CARDS, "no filter")] if present else []),
    ]


def toggled(present: str, word: str) -> str:
    """Return the filter with the word, or without it when it was there."""
    words = present.split()
    return " ".join([one for one in words if one != word] if word in words else [*words, word])
