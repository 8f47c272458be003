"""Looking at many panes in one call: which there are, their titles, and what some of them show."""

from __future__ import annotations

import secrets
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

_FIELDS = "#{pane_id}|#{@agentmon_session}|#{pane_title}"


@dataclass(frozen=True, slots=True, kw_only=True)
class PaneInfo:
    """A pane that agentmon made."""

    pane_id: str
    """``%5``; stays with the pane wherever a person moves it."""
    title: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PaneLooks:
    """What one look at the server saw."""

    panes: Mapping[str, PaneInfo] = field(default_factory=dict)
    """By the name that their session was started with; panes that a person opened are not among them."""
    screens: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """By pane id: the lines that it shows, wrapped ones as they are. One that could not be read is missing."""


class PaneQuestion:
    """The commands of one look, and how its answer is read; what a pane shows cannot pass for a part of it.

    Args:
        pane_ids: The panes whose screens are looked at.
        history_lines: How many lines that scrolled off a screen come before it.
        is_coloured: Whether the lines keep their colours, as sequences of SGR that go on in the next line.
    """

    def __init__(self, pane_ids: Collection[str], *, history_lines: int = 0, is_coloured: bool = False) -> None:
        capture = ("capture-pane", "-p", *(("-e",) if is_coloured else ()), "-S", f"-{history_lines}")
        self._mark = f"agentmon-look-{secrets.token_hex(8)}"
        self._pane_ids = list(pane_ids)
        # By its place: tmux takes the % of a pane's id for one of a date.
        self.commands: tuple[Sequence[str], ...] = (
            ("list-panes", "-a", "-F", f"{self._mark}|{_FIELDS}"),
            *(
                command
                for at, pane_id in enumerate(self._pane_ids)
                for command in (
                    ("display-message", "-p", f"{self._mark}={at}"),
                    (*capture, "-t", pane_id),
                )
            ),
            ("display-message", "-p", f"{self._mark}=end"),
        )

    def read(self, lines: Sequence[str]) -> PaneLooks:
        """Return what the answer says; one that breaks off tells of the panes before that."""
        panes: dict[str, PaneInfo] = {}
        screens: dict[str, list[str]] = {}
        present: list[str] | None = None
        for line in lines:
            if line.startswith(f"{self._mark}|"):
                pane_id, session, title = line.removeprefix(f"{self._mark}|").split("|", 2)
                if session:
                    panes[session] = PaneInfo(pane_id=pane_id, title=title)
            elif line.startswith(f"{self._mark}="):
                present = screens.setdefault(line.removeprefix(f"{self._mark}="), [])
            elif present is not None:
                present.append(line)
        # A screen counts when something follows it: the answer may have broken off within the last one.
        whole = list(screens)[:-1]
        return PaneLooks(panes=panes, screens={self._pane_ids[int(at)]: tuple(screens[at]) for at in whole})
