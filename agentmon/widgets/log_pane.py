"""A log view with what belongs around it: the search and a line that says where one is."""

from __future__ import annotations

from time import monotonic
from typing import TYPE_CHECKING, Final

from textual.containers import Vertical
from textual.content import Content
from textual.widgets import Input, Static

from agentmon.domain.errors import UsageError
from agentmon.logs.log_file import LogFile
from agentmon.logs.search import Direction, LogPattern, find_next
from agentmon.widgets.cells import even_line
from agentmon.widgets.form import LineInput
from agentmon.widgets.guarded import Guarded
from agentmon.widgets.log_view import LogView

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from textual.app import ComposeResult

    from agentmon.logs.search import SearchStep

_SLICE_S: Final = 0.012
"""How long a search holds up keys and paints between two looks at them."""
_LONGEST_SHOWN: Final = 60


class LogPane(Guarded, Vertical):
    """Shows one log and searches it; the owner sets ``path`` and calls ``poll`` up to ten times a second."""

    DEFAULT_CSS = """
    LogPane {
        height: 1fr;
        & > #log-place { height: 1; color: $text-muted; text-wrap: nowrap; text-overflow: ellipsis; }
        & > #log-search { display: none; background: $panel; padding: 0 1; }
        &.-searching > #log-search { display: block; }
    }
    """

    def __init__(self, *, placeholder: str, id: str | None = None) -> None:  # noqa: A002 - Textual's own name
        super().__init__(id=id)
        self.view = LogView(placeholder=placeholder)
        self._box = LineInput(
            placeholder="search: a regular expression; capitals count when there are any", id="log-search"
        )
        self._pattern: LogPattern | None = None
        self._steps: Iterator[SearchStep] | None = None
        self._searched: LogFile | None = None
        self._note = ""
        self._noted_error = False

    def compose(self) -> ComposeResult:
        """Yield the log, the search and the line below."""
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
    def is_searching(self) -> bool:
        """Whether a pattern is marked or being typed."""
        return self._pattern is not None or self.has_class("-searching")

    def poll(self) -> None:
        """Look at the file again."""
        self.view.poll()
        self._show_place()

    def open_search(self) -> None:
        """Let the person type what to look for."""
        self.add_class("-searching")
        self._box.focus()

    def close_search(self) -> None:
        """Forget what was looked for."""
        self._end_search()
        self._pattern = None
        self._note = ""
        self._box.value = ""
        self.remove_class("-searching")
        self.view.highlight(None)
        self.view.focus()
        self._show_place()

    def find(self, direction: Direction) -> None:
        """Go to the next match in this direction, round the ends of the log; asks for a pattern when there is none."""
        path = self.view.path
        if self._pattern is None:
            self.open_search()
            return
        if path is None:
            return
        self._end_search()
        self._searched = LogFile(path)
        self._searched.refresh()
        self._steps = find_next(self._searched, self._pattern, origin=self.view.search_origin, direction=direction)
        self._say("searching…")
        self.call_next(self._search_on)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Look for what was typed: upwards from the tail, else downwards."""
        event.stop()
        if not event.value:
            self.close_search()
            return
        try:
            self._pattern = LogPattern(event.value)
        except UsageError as error:
            self._say(str(error), is_error=True)
            return
        self.view.highlight(self._pattern)
        self.remove_class("-searching")
        self.view.focus()
        self.find(Direction.BACKWARDS if self.view.following else Direction.FORWARDS)

    def on_log_view_following_changed(self, message: LogView.FollowingChanged) -> None:
        """Say whether the tail is followed."""
        message.stop()
        self._show_place()

    def _search_on(self) -> None:
        steps = self._steps
        started = monotonic()
        while steps is not None and steps is self._steps:
            step = next(steps, None)
            if step is None:
                self._end_search()
                self._say("not found", is_error=True)
                return
            if step.matches:
                self._end_search()
                self.view.go_to_offset(step.matches[0])
                self._say("went round the end" if step.has_wrapped else "")
                return
            if monotonic() - started > _SLICE_S:
                self.call_next(self._search_on)
                return

    def _end_search(self) -> None:
        self._steps = None
        if self._searched is not None:
            self._searched.close()
            self._searched = None

    def _say(self, text: str, *, is_error: bool = False) -> None:
        self._note = text
        self._noted_error = is_error
        self._show_place()

    def _show_place(self) -> None:
        if not self.is_mounted:
            return
        view = self.view
        parts: list[Content] = []
        if view.following:
            parts.append(Content("at the end"))
        else:
            first, count = view.first_line_number, view.line_count
            if first is not None and count is not None:
                parts.append(Content(f"line {first:,} of {count:,}"))
            parts.append(Content.assemble(("G", "$primary"), " to the end"))
        if view.wrap:
            parts.append(Content("wrapped"))
        if self._note:
            parts.append(Content.styled(even_line(self._note), "$warning" if self._noted_error else ""))
        if self._pattern is not None:
            shown = even_line(self._pattern.expression, max_characters=_LONGEST_SHOWN)
            parts.append(
                Content.assemble(
                    "/", (shown, "$foreground"), "  ", ("n", "$primary"), " next  ", ("N", "$primary"), " before"
                )
            )
        self.query_one("#log-place", Static).update(Content("   ").join(parts), layout=False)
