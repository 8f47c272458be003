"""The log of a task's page: its keys, its times, and which of its streams is shown."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from agentmon.domain.amounts import size_text
from agentmon.logs.search import Direction
from agentmon.logs.streams import LogStream, streams_of
from agentmon.screens.frame import ServiceScreen
from agentmon.screens.log_saving import save_shown_log
from agentmon.screens.screen_feed import ScreenFeed
from agentmon.widgets.log_pane import LogPane, Prompt

if TYPE_CHECKING:
    from pathlib import Path

    from agentmon.domain.executions import Execution
    from agentmon.logs.log_times import LogTimes
    from agentmon.runners.log_times import LogTimesReader
    from agentmon.screens.frame import ServicesGetter, WorkspaceGetter

_OF_LOG: Final = {
    "search",
    "find",
    "wrap",
    "go_sideways",
    "go_to",
    "filter_log",
    "mark_log",
    "copy_log",
    "save_log",
    "show_times",
    "next_stream",
}
_ONE_STREAM: Final = "one stream: a terminal mixes output and errors"


class TaskLogScreen(ServiceScreen[None]):
    """A screen with the log of one run in a ``LogPane``; the subclass says which run and how its files are named."""

    def __init__(self, services: ServicesGetter, workspace: WorkspaceGetter) -> None:
        super().__init__(services, workspace)
        self._stream = LogStream.OUTPUT
        self._is_stream_chosen = False
        self._feed = ScreenFeed(self, self._show_screen)
        self._output_log: Path | None = None
        self._times_reader: LogTimesReader | None = None
        self._shows_times = False

    # What the subclass says and calls

    @property
    def log_run(self) -> Execution | None:
        """The run whose log is shown."""
        raise NotImplementedError

    @property
    def log_name(self) -> str:
        """The name that a saved log gets."""
        raise NotImplementedError

    @property
    def has_log_keys(self) -> bool:
        """Whether the keys of the log mean something now."""
        raise NotImplementedError

    @property
    def has_conversation_keys(self) -> bool:
        """Whether the keys of the conversation mean something now."""
        raise NotImplementedError

    @property
    def has_both(self) -> bool:
        """Whether the run has a conversation beside its log."""
        raise NotImplementedError

    def set_log(self, output_log: Path) -> None:
        """Show the log of another run, or of the same one again."""
        if output_log != self._output_log:
            self._output_log = output_log
            self._is_stream_chosen = False
            self._times_reader = None
        self._choose_stream()
        self._show_stream()

    def poll_log(self) -> None:
        """Look whether the log has grown."""
        view = self.query_one(LogPane).view
        known_size = view.byte_size
        self.query_one(LogPane).poll()
        if self._stream is LogStream.OUTPUT and view.byte_size != known_size:
            self._choose_stream()
            self._show_stream()
        self._feed.poll()

    def show_output(self) -> None:
        """Show the whole output again, whichever stream was shown."""
        self._stream, self._is_stream_chosen = LogStream.OUTPUT, True
        self._show_stream()

    @property
    def stream_words(self) -> str:
        """What the heading says of the stream: nothing for the output."""
        if self._stream is LogStream.OUTPUT or self._output_log is None:
            return ""
        if self._stream is LogStream.SCREEN:
            run = self.log_run
            return "screen" if run is not None and run.status.is_live else "last screen"
        try:
            size = size_text(self._stream.path(self._output_log).stat().st_size)
        except OSError:
            size = "removed"
        return f"{self._stream.value} only, {size}"

    async def log_times(self) -> LogTimes | None:
        """Return when the log was written, with what was reported since it was asked last; None without a run."""
        run = self.log_run
        if run is None:
            return None
        if self._times_reader is None:
            services = await self.services()
            self._times_reader = services.executions.log_times_reader(run)
        return await asyncio.to_thread(self._times_reader.read)

    def renew_times(self) -> None:
        """Show the times of what came meanwhile, where times are shown."""
        if self._shows_times:
            self.start(self._show_times(), name="log times", exclusive=True, group="log times")

    # Keys

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:  # noqa: ARG002 - Textual's
        """Offer what belongs to what is shown."""
        if action in _OF_LOG:
            return self.has_log_keys
        if action == "beside":
            return True if self.has_both else None
        return self.has_conversation_keys if action == "unfold_all" else True

    def action_go_sideways(self, direction: int) -> None:
        """Show what a log line has on the left or the right of the view."""
        view = self.query_one(LogPane).view
        view.action_scroll_left() if direction < 0 else view.action_scroll_right()

    def action_search(self) -> None:
        """Type what to look for in the log."""
        self.query_one(LogPane).ask(Prompt.SEARCH)

    def action_find(self, direction: int) -> None:
        """Go to the next match below, or above."""
        self.query_one(LogPane).find(Direction.BACKWARDS if direction < 0 else Direction.FORWARDS)

    def action_go_to(self) -> None:
        """Type a line, a share or a time of the log to go to."""
        self.query_one(LogPane).ask(Prompt.GO)

    def action_filter_log(self) -> None:
        """Type what the lines of the log that are shown have to match."""
        pane = self.query_one(LogPane)
        filtered = pane.view.filtered
        pane.ask(Prompt.FILTER, "" if filtered is None else filtered.pattern.expression)

    def action_mark_log(self) -> None:
        """Mark the line at the top of the log, or drop the mark."""
        self.query_one(LogPane).mark()

    def action_copy_log(self) -> None:
        """Copy what is selected, marked or in view of the log."""
        self.query_one(LogPane).copy()

    def action_save_log(self) -> None:
        """Type the file to save the log to."""
        self.query_one(LogPane).ask(Prompt.SAVE, self.log_name)

    def action_wrap(self) -> None:
        """Wrap long lines, or scroll them sideways again."""
        self.query_one(LogPane).view.action_toggle_wrap()

    def action_show_times(self) -> None:
        """Show beside each line of the log when it had come, or stop showing it."""
        self._shows_times = not self._shows_times
        self.show_output()
        if self._shows_times:
            self.renew_times()
        else:
            self.query_one(LogPane).view.show_times(None)

    def action_next_stream(self) -> None:
        """Show the next of the streams that the run has, the output after the last."""
        if self._output_log is None:
            return
        streams = streams_of(self._output_log)
        if len(streams) == 1:
            self.query_one(LogPane).say(_ONE_STREAM)
            return
        at = streams.index(self._stream) if self._stream in streams else 0
        self._stream, self._is_stream_chosen = streams[(at + 1) % len(streams)], True
        self._show_stream()
        self.request_refresh()

    def on_log_pane_save_wanted(self, message: LogPane.SaveWanted) -> None:
        """Save the log."""
        message.stop()
        self.open_dialog(save_shown_log(self, message), name="save log")

    def on_log_pane_time_wanted(self, message: LogPane.TimeWanted) -> None:
        """Go to what was written at a time."""
        message.stop()
        self.start(self._go_to_time(message), name="log time", exclusive=True, group="log time")

    # Inside

    def _choose_stream(self) -> None:
        """Show a screen where there is one, unless a person chose another stream."""
        if self._output_log is not None and not self._is_stream_chosen and not self._shows_times:
            self._stream = streams_of(self._output_log)[0]

    def _show_screen(self, text: bytes | None) -> None:
        self.query_one(LogPane).view.show_text(text)

    def _show_stream(self) -> None:
        if self._output_log is None:
            return
        pane = self.query_one(LogPane)
        is_output = self._stream is LogStream.OUTPUT
        pane.path = self._stream.path(self._output_log)
        run = self.log_run
        is_screen = self._stream is LogStream.SCREEN and run is not None
        self._feed.follow(run.id if is_screen and run is not None else None, self._output_log if is_screen else None)
        if not is_output:
            pane.view.show_times(None)
        elif self._shows_times and not pane.view.has_times:
            self.renew_times()

    async def _show_times(self) -> None:
        times = await self.log_times()
        if times is not None and self._shows_times and self._stream is LogStream.OUTPUT:
            self.query_one(LogPane).view.show_times(times)

    async def _go_to_time(self, wanted: LogPane.TimeWanted) -> None:
        if self._stream is not LogStream.OUTPUT:
            self.query_one(LogPane).say("only the whole output is known by time", is_error=True)
            return
        times = await self.log_times()
        if times is not None:
            self.query_one(LogPane).go_to_moment(times, wanted.place)
