"""Completing what is typed into a field: tasks by number or letters of their title, folders as in a shell."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from agentmon.services.folders import FolderCompleter, common_start
from agentmon.widgets.completed_field import Way

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Collection, Sequence
    from typing import TypeAlias

    from agentmon.domain.task_picks import TaskPick
    from agentmon.widgets.completed_field import CompletedField

    WayFinder: TypeAlias = Callable[[str], Awaitable[Sequence[Way]]]
    PickFinder: TypeAlias = Callable[[str], Awaitable[Sequence[TaskPick]]]

_NUMBERS_BEFORE: Final = re.compile(r"(?P<numbers>\s*(?:#?[0-9]+\s+)*)(?P<typed>.*)", re.ASCII | re.DOTALL)


class Completion:
    """What one field offers, and what becomes of its text when a way is taken."""

    def __init__(self, field: CompletedField, find: WayFinder, *, marks_first: bool, is_shell: bool = False) -> None:
        """Complete a field.

        Args:
            field: Shows the ways.
            find: Returns the ways for a text.
            marks_first: Whether the best way is the one that enter takes.
            is_shell: Whether tab first takes what all ways have in common.
        """
        self.field = field
        self._find = find
        self._marks_first = marks_first
        self._is_shell = is_shell
        self._set_text: str | None = None
        self._offered_for = ""
        """The text that the offered ways were found for."""

    @property
    def is_typed(self) -> bool:
        """Whether the text is one that a person typed, rather than one that was taken whole."""
        return self.field.box.value != self._set_text

    async def look(self) -> None:
        """Offer the ways for what stands there now."""
        text = self.field.box.value
        ways = await self._find(text) if text.strip() else ()
        if self.field.box.value == text and self.field.box.has_focus:
            self._offered_for = text
            self.field.offer(ways, marks_first=self._marks_first)

    async def renew(self) -> None:
        """Offer the ways anew where more was typed than they were found for."""
        if self.field.is_open and self.field.box.value != self._offered_for:
            await self.look()

    def complete(self) -> None:
        """Do what tab does: take the marked way, else what all ways begin with, else the first."""
        ways = self.field.ways
        if not ways:
            return
        text = self.field.box.value
        start = common_start(tuple(way.text for way in ways))
        marked = self.field.marked
        if self._is_shell and marked is None and len(start) > len(text) and len(ways) > 1:
            self._put(start)
            return
        self.take(marked or ways[0])

    def take(self, way: Way) -> None:
        """Put the way into the field; of a folder those inside are offered next."""
        if not self._is_shell:
            self._set_text = way.text
        self._put(way.text)
        self.field.offer((), marks_first=False)

    def _put(self, text: str) -> None:
        self.field.box.value = text
        self.field.box.cursor_position = len(text)


def task_ways(find: PickFinder, *, is_several: bool, left_out: Collection[int] = ()) -> WayFinder:
    """Return the finder of tasks for the last of the tasks that a text names.

    Args:
        find: Returns tasks for a number or letters.
        is_several: Whether the field takes several tasks.
        left_out: Numbers that make no sense, such as the task's own.
    """

    async def ways(text: str) -> Sequence[Way]:
        head, comma, last = text.rpartition(",")
        found = _NUMBERS_BEFORE.fullmatch(last)
        if found is None or not found["typed"].strip():
            return ()
        before = f"{head}{comma}{found['numbers']}" if is_several else ""
        if before and before[-1] == ",":
            before += " "
        typed = found["typed"] if is_several else text
        taken = {int(number) for number in re.findall(r"[0-9]+", before, re.ASCII)}
        end = ", " if is_several else ""
        return [
            Way(f"{before}#{one.number}{end}", one.title, f"#{one.number}")
            for one in await find(typed)
            if one.number not in taken and one.number not in left_out
        ]

    return ways


def folder_ways(root: str) -> WayFinder:
    """Return the finder of folders, as seen from the root."""
    completer = FolderCompleter(root)

    async def ways(text: str) -> Sequence[Way]:
        return [Way(folder, folder) for folder in await completer.complete(text)]

    return ways
