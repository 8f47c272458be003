"""What an agent does, judged from several looks: its own signal first, then its screen, and its output against both."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from agentmon.runners.screens.reading import read_screen, read_title, shows_menu
from agentmon.runners.screens.states import Finding, ScreenState

if TYPE_CHECKING:
    from agentmon.runners.screens.reading import ScreenText
    from agentmon.runners.screens.rules import ScreenRules

_UNKNOWN_AFTER_S: Final = 1.0
_DISAGREEMENT_AFTER_S: Final = 1.5
_GROWS_WITHIN_S: Final = 0.7
"""Longer than the gap between two drawings of a screen."""
_ONGOING_GROWTHS: Final = 2
"""From so many on, one soon after another, output goes on; a single drawing is over as soon as it is seen."""
_CHANGES_WITHIN_S: Final = 2.0
"""Output that changes nothing on the screen for so long, such as a cursor's blinking, is no work."""
OUTPUT_SOURCE: Final = "output"
SCREEN_SOURCE: Final = "rule "


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """What was seen of one agent at one time."""

    at: float
    """Seconds on the monotonic clock."""
    screen: ScreenText | None
    """None when tmux could not show it."""
    signal: Finding | None = None
    has_grown: bool = False
    """Whether its output grew since the look before."""
    is_halted: bool = False
    """Whether its process is halted by a signal."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What follows from the looks so far."""

    finding: Finding | None
    """None means that nothing is known, for the reason in ``doubt``."""
    doubt: str = ""
    sources: tuple[Finding, ...] = ()
    """What each source said at the last look."""

    @property
    def state(self) -> ScreenState | None:
        """The state; None when it is not known."""
        return self.finding.state if self.finding is not None else None

    @property
    def is_drawn(self) -> bool:
        """Whether the screen shows what the agent asks, so that a person can be shown it."""
        return any(one.state.is_asking and one.source.startswith(SCREEN_SOURCE) for one in self.sources)


class ScreenJudge:
    """Judges the looks at one agent, in their order; reads no clock and asks nobody."""

    def __init__(self, rules: ScreenRules) -> None:
        self._rules = rules
        self._verdict = Verdict(finding=None, doubt="nothing was seen yet")
        self._candidate: tuple[ScreenState | None, str] | None = None
        self._candidate_since = 0.0
        self._lines: tuple[str, ...] | None = None
        self._lines_since = float("-inf")
        self._grown_at = float("-inf")
        self._growths = 0
        """How many looks, one soon after another, saw the output grow while the lines were read alike, not as work."""
        self._line_state: ScreenState | None = None
        self._blind_looks = 0
        self.settles_at = float("-inf")
        """When a look may find something else although nothing new came from the agent; infinite when none will."""

    @property
    def lines_since(self) -> float:
        """Since when the lines are what they are."""
        return self._lines_since

    @property
    def same_since(self) -> float:
        """Since when all looks have read the same."""
        return self._candidate_since

    @property
    def grown_at(self) -> float:
        """When the output was last seen to grow."""
        return self._grown_at

    def judge(self, look: Look) -> Verdict:
        """Return what the looks up to this one say."""
        if look.has_grown:
            self._growths = self._growths if look.at - self._grown_at < _GROWS_WITHIN_S else 0
            self._grown_at = look.at
        self._blind_looks = 0 if look.screen is not None else self._blind_looks + 1
        if look.screen is not None and look.screen.lines != self._lines:
            self._lines, self._lines_since = look.screen.lines, look.at
        newest, needed_s = self._read(look)
        key = (newest.state, newest.finding.note if newest.finding is not None else newest.doubt)
        if key != self._candidate:
            self._candidate, self._candidate_since = key, look.at
        since = self._candidate_since
        if newest.state is not None and newest.state.is_free and needed_s:
            since = max(since, self._lines_since)
        if look.at - since >= needed_s:
            self._verdict = newest
        self.settles_at = self._find_settling(newest, look, since + needed_s)
        return self._verdict

    def _find_settling(self, newest: Verdict, look: Look, settles_at: float) -> float:
        if look.at < settles_at:
            return settles_at
        if newest.finding is not None and newest.finding.source == OUTPUT_SOURCE:
            return look.at if self._growths < _ONGOING_GROWTHS else self._grown_at + _GROWS_WITHIN_S
        return look.at + self._rules.settled_s if self._blind_looks == 1 else float("inf")

    def _read(self, look: Look) -> tuple[Verdict, float]:
        """Return what this look says, and for how long it has to say so."""
        if look.is_halted:
            return Verdict(finding=None, doubt="its process is halted"), self._rules.settled_s
        if look.screen is None:
            if look.signal is not None:
                return Verdict(finding=look.signal, sources=(look.signal,)), 0.0
            # One tmux call that failed says nothing; what was known stays.
            if self._blind_looks < 2:  # noqa: PLR2004 - two independent looks
                return self._verdict, 0.0
            return Verdict(finding=None, doubt="tmux does not show its screen"), self._rules.settled_s
        title, lines = read_title(self._rules, look.screen), read_screen(self._rules, look.screen)
        own = look.signal or title
        sources = tuple(one for one in (look.signal, title, lines) if one is not None)
        self._count_growths(look, lines.state if lines is not None else None)
        if own is not None:
            agreed = _agreed(own, lines)
            if agreed is None:
                doubt = f"{own.source} says {own.state}, its screen says {lines.state if lines else 'nothing'}"
                return Verdict(finding=None, doubt=doubt, sources=sources), _DISAGREEMENT_AFTER_S
            if lines is None and own.state.is_free and shows_menu(look.screen):
                doubt = f"{own.source} says {own.state}, its screen shows a menu that no rule knows"
                return Verdict(finding=None, doubt=doubt, sources=sources), _UNKNOWN_AFTER_S
            # What is asked is wiped a moment before the signal says so.
            is_bare = own.state.is_asking and (lines is None or not lines.state.is_asking)
            is_wiped = is_bare and self._verdict.state is not None and self._verdict.state.is_asking
            needed_s = 0.0 if agreed.state is own.state and not is_wiped else self._rules.settled_s
            return Verdict(finding=agreed, sources=sources), needed_s
        if self._grows(look) and (lines is None or lines.state.is_free):
            against = f"against {lines.source}" if lines is not None else "no rule fits its screen"
            growth = Finding(state=ScreenState.WORKING, source=OUTPUT_SOURCE, evidence=f"its output grows; {against}")
            return Verdict(finding=growth, sources=(*sources, growth)), 0.0
        if lines is None:
            return Verdict(finding=None, doubt="no rule fits its screen", sources=sources), _UNKNOWN_AFTER_S
        return Verdict(finding=lines, sources=sources), 0.0 if lines.state.is_busy else self._rules.settled_s

    def _count_growths(self, look: Look, line_state: ScreenState | None) -> None:
        if line_state is not self._line_state:
            self._line_state, self._growths = line_state, 0
        if look.has_grown and (line_state is None or line_state.is_free):
            self._growths += 1

    def _grows(self, look: Look) -> bool:
        """Return whether the output goes on, in a way that shows on the screen."""
        is_ongoing = self._growths >= _ONGOING_GROWTHS and look.at - self._grown_at < _GROWS_WITHIN_S
        return (look.has_grown or is_ongoing) and look.at - self._lines_since < _CHANGES_WITHIN_S


def _agreed(own: Finding, lines: Finding | None) -> Finding | None:
    """Return what the agent's own signal and its screen say together; None when they exclude each other."""
    if lines is None:
        return own
    if own.state.is_busy:
        if lines.state.is_asking:
            return None
        return replace(own, note=lines.note) if lines.state.is_busy and lines.note else own
    if own.state.is_asking:
        if lines.state.is_busy and lines.state is not ScreenState.BACKGROUND:
            return None
        return replace(own, note=lines.note) if lines.state.is_asking and lines.note else own
    if lines.state.is_asking or lines.state is ScreenState.BACKGROUND:
        return lines
    if lines.state.is_busy:
        return None
    return replace(own, state=lines.state, note=lines.note)
