"""A log view with what belongs around it: search, filter, ways to go, and a line that says where one is."""

from __future__ import annotations

from enum import Enum
from time import monotonic
from typing import TYPE_CHECKING, Final

from textual.containers import Vertical
from textual.content import Content
from textual.message import Message
from textual.widgets import Input, Static

from agentmon.domain.errors import UsageError
from agentmon.logs.pattern import BothMatch, LogPattern
from agentmon.logs.places import ClockPlace, LinePlace, SharePlace, SpanPlace, parse_place
from agentmon.logs.search import Direction, find_next
from agentmon.widgets.cells import even_line
from agentmon.widgets.form import LineInput
from agentmon.widgets.guarded import Guarded
from agentmon.widgets.log_view import SLICE_REST_S, LogView

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime
    from pathlib import Path

    from textual.app import ComposeResult

    from agentmon.logs.filtered_log import FilteredLog
    from agentmon.logs.log_file import LogFile
    from agentmon.logs.log_times import LogTimes
    from agentmon.logs.places import LogPlace
    from agentmon.logs.search import SearchStep

_SLICE_S: Final = 0.012
"""How long a search holds up keys and paints between two looks at them."""
_LONGEST_SHOWN: Final = 60


class Prompt(Enum):
    """What is typed into the line below the log."""

    SEARCH = "search: a regular expression; capitals count when there are any"
    FILTER = "show only lines that match a regular expression; nothing shows all"
    GO = "go to: 1200, 50%, 14:02, -5m before the newest output, +5m after the beginning"
    SAVE = "save to: a file"


class LogPane(Guarded, Vertical):
    """Shows one log; searches, filters, copies and saves it; the owner calls ``poll`` up to ten times a second.

    The owner sets ``path``, answers ``TimeWanted`` with ``go_to_moment``, and saves what ``SaveWanted`` names.
    """

    DEFAULT_CSS = """
    LogPane {
        height: 1fr;
        & > #log-place { height: 1; color: $text-muted; text-wrap: nowrap; text-overflow: ellipsis; }
        & > #log-prompt { display: none; background: $panel; padding: 0 1; }
        &.-asking > #log-prompt { display: block; }
    }
    """

    class TimeWanted(Message):
        """A person wants to see what was written at some time; ``go_to_moment`` goes there."""

        def __init__(self, place: ClockPlace | SpanPlace) -> None:
            super().__init__()
            self.place = place

    class SaveWanted(Message):
        """A person wants the log, or of it what the filter shows, in a file.

        ``text`` is what is shown in the place of the log; None when it is the log.
        """

        def __init__(self, source: Path, target: str, pattern: LogPattern | None, text: bytes | None = None) -> None:
            super().__init__()
            self.source = source
            self.text = text
            self.target = target
            self.pattern = pattern

    def __init__(self, *, placeholder: str, id: str | None = None) -> None:  # noqa: A002 - Textual's own name
        super().__init__(id=id)
        self.view = LogView(placeholder=placeholder)
        self._box = LineInput(id="log-prompt")
        self._prompt = Prompt.SEARCH
        self._pattern: LogPattern | None = None
        self._steps: Iterator[SearchStep] | None = None
        self._searched: LogFile | None = None
        self._direction = Direction.FORWARDS
        self._note = ""
        self._noted_error = False

    def compose(self) -> ComposeResult:
        """Yield the log, the line for typing and the line below."""
        yield self.view
        yield self._box
        yield Static(id="log-place")

    def on_mount(self) -> None:
        """Say where one is."""
        self._show_place()

    def on_unmount(self) -> None:
        """Close the file that was searched."""
        self._end_search()

    @property
    def path(self) -> Path | None:
        """The file that is shown."""
        return self.view.path

    @path.setter
    def path(self, path: Path | None) -> None:
        if self.view.path != path:
            self._end_search()
            self._note = ""
            self.view.path = path
            self._show_place()

    @property
    def has_something_open(self) -> bool:
        """Whether there is something that ``step_back`` would end."""
        is_marking = self.view.has_mark or self.view.filtered is not None
        return self._pattern is not None or self.has_class("-asking") or is_marking

    def poll(self) -> None:
        """Look at the file again."""
        self.view.poll()
        self._show_place()

    def ask(self, prompt: Prompt, text: str = "") -> None:
        """Let the person type something below the log."""
        self._prompt = prompt
        self._box.placeholder = prompt.value
        self._box.value = text
        self.add_class("-asking")
        # At once, not after what was typed behind the key.
        self.screen.set_focus(self._box)

    def step_back(self) -> None:
        """End the newest of: what is being typed, the mark, the search, the filter."""
        if self.has_class("-asking"):
            self._close_prompt()
        elif self.view.has_mark:
            self.view.toggle_mark()
        elif self._pattern is not None:
            self._end_search()
            self._pattern = None
            self.view.highlight(None)
        else:
            self.view.show_only(None)
        self.say("")

    def mark(self) -> None:
        """Mark the line at the top for copying, or drop the mark."""
        self.view.toggle_mark()
        self._show_place()

    def copy(self) -> None:
        """Copy the selected text, the marked lines, or those in view."""
        text, is_all = self.view.text_to_copy()
        if not text:
            self.say("nothing to copy", is_error=True)
            return
        self.app.copy_to_clipboard(text)
        lines = text.count("\n") + 1
        cut = "" if is_all else ", the first of more"
        self.say(f"copied {lines:,} line{'' if lines == 1 else 's'}{cut}")

    def go_to_moment(self, times: LogTimes, place: ClockPlace | SpanPlace) -> None:
        """Go to what was written at a time."""
        first, newest = times.first, times.newest
        if first is None or newest is None:
            self.say("nobody noted when this log was written", is_error=True)
            return
        if isinstance(place, ClockPlace):
            moment = place.moment_near(newest)
        else:
            moment = newest - place.span if place.from_end else first + place.span
        if moment > newest:
            self.say(f"the newest output came at {_time_text(newest)}", is_error=True)
            return
        self.view.go_to_offset(times.offset_at(moment, size=self.view.byte_size))
        is_before = moment < first
        self.say(f"the first output came at {_time_text(first)}" if is_before else _time_text(moment))

    def show_spot(self, offset: int, words: str = "") -> None:
        """Go to the line that holds this byte, with words marked that ``n`` and ``N`` look for on.

        Args:
            offset: A byte of the log; beyond its end it is the last line.
            words: What is marked, letter for letter; nothing marks nothing.
        """
        self._end_search()
        self._pattern = LogPattern.of_words(words) if words else None
        self.view.highlight(self._pattern)
        self.say("")
        # A log that has no room yet knows no third of its height, at which the line is put.
        self.call_after_refresh(self._arrive, offset)

    def _arrive(self, offset: int) -> None:
        self.view.go_to_offset(offset)
        self.view.count_matches()
        self._show_place()

    def say(self, text: str, *, is_error: bool = False) -> None:
        """Say something below the log until the next thing is said; nothing takes it away."""
        self._note = text
        self._noted_error = is_error
        self._show_place()

    def find(self, direction: Direction) -> None:
        """Go to the next match in this direction, round the ends of the log; asks for a pattern when there is none."""
        if self._pattern is None:
            self.ask(Prompt.SEARCH)
            return
        self._end_search()
        # What is shown is searched, also where its name is gone.
        self.view.poll()
        self._searched = self.view.open_twin()
        if self._searched is None:
            return
        self._direction = direction
        filtered = self.view.filtered
        matcher = self._pattern if filtered is None else BothMatch(self._pattern, filtered.pattern)
        self._steps = find_next(self._searched, matcher, origin=self.view.search_origin, direction=direction)
        self.say("searching…")
        self.call_next(self._search_on)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Do what was typed, or say what is wrong with it."""
        event.stop()
        typed = event.value
        try:
            match self._prompt:
                case Prompt.SEARCH:
                    self._search(LogPattern(typed) if typed else None)
                case Prompt.FILTER:
                    self._filter(LogPattern(typed) if typed else None)
                case Prompt.GO:
                    self._go(parse_place(typed) if typed.strip() else None)
                case Prompt.SAVE:
                    self._close_prompt()
                    if typed.strip() and self.path is not None:
                        pattern = None if self.view.filtered is None else self.view.filtered.pattern
                        self.post_message(self.SaveWanted(self.path, typed.strip(), pattern, self.view.text))
        except UsageError as error:
            self.say(str(error), is_error=True)

    def on_log_view_following_changed(self, message: LogView.FollowingChanged) -> None:
        """Say whether the tail is followed."""
        message.stop()
        self._show_place()

    def _close_prompt(self) -> None:
        self.remove_class("-asking")
        self.screen.set_focus(self.view)

    def _search(self, pattern: LogPattern | None) -> None:
        """Look for it: upwards from the tail, else downwards."""
        self._end_search()
        self._pattern = pattern
        self.view.highlight(pattern)
        self._close_prompt()
        self.say("")
        if pattern is not None:
            self.find(Direction.BACKWARDS if self.view.following else Direction.FORWARDS)

    def _filter(self, pattern: LogPattern | None) -> None:
        self.view.show_only(pattern)
        self._close_prompt()
        self.say("")

    def _go(self, place: LogPlace | None) -> None:
        self._close_prompt()
        self.say("")
        match place:
            case LinePlace(number=number):
                self.view.go_to_line(number)
            case SharePlace(share=share):
                self.view.go_to_share(share)
            case ClockPlace() | SpanPlace():
                self.post_message(self.TimeWanted(place))
            case None:
                pass

    def _search_on(self) -> None:
        steps = self._steps
        started = monotonic()
        while steps is not None and steps is self._steps:
            step = next(steps, None)
            if (step is None or step.matches) and self._is_outdated():
                self.find(self._direction)
                return
            if step is None:
                self._end_search()
                self.say("not found", is_error=True)
                return
            if step.matches:
                self._end_search()
                self.view.go_to_offset(step.matches[0])
                self.view.count_matches()
                self.say("went round the end" if step.has_wrapped else "")
                return
            if monotonic() - started > _SLICE_S:
                # Whatever waits comes first, such as keys: they take more than one turn to arrive.
                self.set_timer(SLICE_REST_S, self._search_on)
                return

    def _is_outdated(self) -> bool:
        """Whether the log became another one during the search, so that what was found lies elsewhere."""
        self.view.poll()
        return self._searched is not None and self._searched.generation != self.view.generation

    def _end_search(self) -> None:
        self._steps = None
        if self._searched is not None:
            self._searched.close()
            self._searched = None

    def _show_place(self) -> None:
        if not self.is_mounted:
            return
        view = self.view
        parts: list[Content] = []
        if view.counted_share is not None:
            parts.append(Content(f"counting lines, {view.counted_share:.0%}"))
        elif view.following:
            parts.append(Content("at the end"))
        else:
            first, count = view.first_line_number, view.line_count
            if first is not None and count is not None:
                parts.append(Content(f"line {first:,} of {count:,}"))
            parts.append(Content.assemble(("G", "$primary"), " to the end"))
        parts += [
            Content.styled(even_line(words), "$warning" if is_bad else "")
            for words, is_bad in ((view.trouble, True), (self._note, self._noted_error))
            if words
        ]
        if view.wrap:
            parts.append(Content("wrapped"))
        if view.has_mark:
            parts.append(Content.assemble("marked  ", ("c", "$primary"), " copy"))
        if (filtered := view.filtered) is not None:
            expression = even_line(filtered.pattern.expression, max_characters=_LONGEST_SHOWN)
            parts.append(Content.assemble("&", (expression, "$foreground"), _count_words(filtered)))
        if self._pattern is not None:
            shown = even_line(self._pattern.expression, max_characters=_LONGEST_SHOWN)
            parts.append(
                Content.assemble(
                    "/",
                    (shown, "$foreground"),
                    _count_words(view.counted),
                    "  ",
                    ("n", "$primary"),
                    " next  ",
                    ("N", "$primary"),
                    " before",
                )
            )
        self.query_one("#log-place", Static).update(Content("   ").join(parts), layout=False)


def _count_words(found: FilteredLog | None) -> str:
    if found is None:
        return ""
    lines = f"  {found.match_count:,} line{'' if found.match_count == 1 else 's'}"
    return lines if found.is_complete else f"{lines} so far, {found.searched_share:.0%} searched"


def _time_text(moment: datetime) -> str:
    return f"{moment.astimezone():%Y-%m-%d %H:%M:%S}"
