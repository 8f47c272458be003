"""The Textual application: places, themes, errors, and the one bridge from changes in the database to the screens.

Before the first frame it imports Textual, the domain, the paths and the standard library's sqlite3 alone; the rest
comes after the frame, in a thread. Nothing that takes half a second to import may stand at the top of this module.
"""

from __future__ import annotations

import asyncio
import gc
import importlib
import os
import select
import signal
import subprocess
import sys
import threading
from collections import deque
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path, PurePath
from time import monotonic
from typing import TYPE_CHECKING, ClassVar, Final

from rich.text import Text
from textual import events
from textual.app import SuspendNotSupported
from textual.reactive import Reactive

from agentmon.domain.clock import SystemClock
from agentmon.domain.errors import AgentmonError, DatabaseBusyError, DatabaseMovedError
from agentmon.domain.plain_text import plain_lines
from agentmon.paths import DEMO_NAME
from agentmon.screens.bindings import APP, HARMFUL_ACTIONS, key_word
from agentmon.screens.frame import (
    BEGUN_BY_KEYS,
    AttachRequested,
    FirstFrameShown,
    KeysReleased,
    ServiceScreen,
    StoreChanged,
    StoreReplaced,
    WorkStarted,
)
from agentmon.screens.settings.themes import CURSORS_OF_16_COLOURS, DARK, THEMES
from agentmon.store.look_setting import USUAL_LOOK
from agentmon.widgets.guarded import Failed, Guarded
from agentmon.widgets.kept_columns import give_marks_a_cell
from agentmon.widgets.library_caches import bound_caches
from agentmon.widgets.ordered_keys import OrderedKeys
from agentmon.widgets.whole_keys import SplitSequence

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator, Mapping
    from datetime import datetime
    from types import FrameType

    from rich.console import RenderableType
    from textual.binding import Binding, BindingType
    from textual.command import Provider
    from textual.driver import Driver
    from textual.message import Message
    from textual.notifications import Notify, SeverityLevel
    from textual.screen import Screen
    from textual.theme import Theme
    from textual.worker import Worker

    from agentmon.bootstrap import Services
    from agentmon.domain.clock import Clock
    from agentmon.domain.tasks import Workspace
    from agentmon.paths import Paths
    from agentmon.screens.background_dialog import BackgroundPicture
    from agentmon.screens.background_watch import BackgroundWatch
    from agentmon.screens.board.lost_runs import LostRunWatch
    from agentmon.screens.inbox.needs import NeedsWatch
    from agentmon.screens.trail_news import TrailNews
    from agentmon.store.look_setting import Look

bound_caches()
give_marks_a_cell()

POLL_INTERVAL_S: Final = 0.25
"""How often the database's change counter is compared; costs 0.33 % of a core (measured)."""

_OWN_THEMES: Final = {theme.name: theme for theme in THEMES}
_SLOW_START_S: Final = 1.0
_QUEUE_LOOK_S: Final = 10.0
"""How long the queue may stand still after the worker was killed."""
_LOST_LOOK_S: Final = 3.0
"""How long after a change of the database lost runs are looked for: a change brings more of them."""
_NEWS_LOOK_S: Final = 2.0
"""How long after a change of the database it is told what became of runs: of a hundred, many end in that time."""
_NEED_LOOK_S: Final = 0.5
"""How long after a change of the database it is looked for what waits for the person."""
_SCAN_AFTER_S: Final = 2.0
"""When after the start it is looked for new programs: nobody waits for them."""
_BACKGROUND_LOOK_S: Final = 2.0
"""How soon it is seen that the worker is halted, or that a loop fails."""
_BUSY_LOOK_S: Final = 1.0
_OPEN_AGAIN_AFTER_S: Final = 1.0
_FAR_S: Final = float("inf")
_MADE_BEFORE_COLLECTION: Final = 5_000
"""Objects more than before, after which the collector looks at the new ones."""
_UNCLEAN_END: Final = (
    "agentmon was ended without a word last time: killed, or the machine stopped. What ran went on. "
    "When the shell shows odd characters after that, `reset` mends it"
)
_CHANGES: Final = "reading changes"
_LONGEST_POLL_PAUSE_S: Final = 2.0
"""How long the comparison of versions rests after failures: whoever frees the database wants to see it."""
_ENDING_SIGNALS: Final = (
    *(signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2),
    *(signal.SIGALRM, signal.SIGVTALRM, signal.SIGPROF, signal.SIGXCPU),
)
"""They would end the app without giving its terminal back."""
_TERMINAL_LOOK_S: Final = 1.0
_MOST_TOLD_PROBLEMS: Final = 3
_CHANGES_TIMEOUT_S: Final = 2.0
_MOST_TOASTS: Final = 3
"""More hide the board, and nobody reads them all."""
_COUNT_TIMEOUT_S: Final = 1.0
_CLOSE_TIMEOUT_S: Final = 3.0
_MOST_FAILURES: Final = 20
_FAILURE_WINDOW_S: Final = 5.0
_TOAST_REPEAT_S: Final = 10.0
_LAST_KEYS: Final = 12


def _find_action_provider() -> type[Provider]:
    from agentmon.screens.palette import ActionProvider  # noqa: PLC0415 - not part of the first frame

    return ActionProvider


class AgentmonApp(Guarded, OrderedKeys, inherit_bindings=False):
    """The board and all that is reached from it, over one database and one workspace.

    Attributes:
        failures: The newest unexpected errors, oldest first; each is in the error file too.
    """

    TITLE = "agentmon"
    # Absolute: a relative one would be looked for beside the module of a subclass. The board's is read here since a
    # style sheet of a screen makes Textual parse all others again, which costs the first frame 14 ms (measured).
    CSS_PATH: ClassVar[list[str | PurePath]] = [
        Path(__file__).with_name("app.tcss"),
        Path(__file__).parent / "screens" / "board" / "screen.tcss",
    ]
    DEFAULT_MODE: ClassVar[str] = "board"
    BINDINGS: ClassVar[list[BindingType]] = [*APP]
    COMMANDS: ClassVar[set[type[Provider] | Callable[[], type[Provider]]]] = {_find_action_provider}

    # A default: after an assignment Textual would work out all styles again before the first frame.
    theme: Reactive[str] = Reactive(DARK.name)

    def __init__(
        self,
        paths: Paths,
        workspace_root: Path,
        *,
        clock: Clock | None = None,
        look: Look = USUAL_LOOK,
        is_alone: bool = False,
        notice: str = "",
    ) -> None:
        """Make the app.

        Args:
            paths: Where its files are.
            workspace_root: Folder of the workspace.
            clock: The time; None is the system's.
            look: Theme and the like, for the first frame.
            is_alone: Whether the process is the app's alone, which then says how garbage is collected.
            notice: What to tell at the start; empty for nothing.
        """
        if look.theme in _OWN_THEMES:
            # Before anything asks for it: an assignment works out all styles again.
            self._reactive_theme = look.theme
        super().__init__()
        self.esc_doubt_s = 0.3
        """So long after a lone ESC a letter may be the rest of alt and a letter, which came apart on its way."""
        self.split_sequence = SplitSequence()
        self.replaced_doubt_s = 0.5
        """So long after something else came under the cursor a key may be meant for what was there."""
        self._chosen_look = look
        self._is_alone = is_alone
        self._notice = notice
        self._own_keys: Mapping[str, str] = {}
        self._last_search = ""
        # The collector finds nothing to free among what the start makes, and would cost it 20 ms (measured).
        gc.disable()
        self.failures: deque[BaseException] = deque(maxlen=_MOST_FAILURES)
        self._last_keys: deque[str] = deque(maxlen=_LAST_KEYS)
        self._failure_times: deque[float] = deque(maxlen=_MOST_FAILURES)
        self._toasted_at: dict[str, float] = {}
        self._paths = paths
        self._workspace_root = workspace_root
        self._clock = clock
        self._opened: asyncio.Future[tuple[Services, Workspace]] | None = None
        self._is_replaced = asyncio.Event()
        """Set when another database has taken the place of the one that is open."""
        self._services_ended = asyncio.Event()
        self._services_ended.set()
        self._data_version = 0
        self._lost_runs: LostRunWatch | None = None
        self._needs: NeedsWatch | None = None
        self._trail_news: TrailNews | None = None
        self._background: BackgroundWatch | None = None
        self._waiting_looks: set[str] = set()
        self._has_asked_for_history = False
        self._is_news_look_planned = False
        self._is_need_look_planned = False
        self._is_lost_look_planned = False
        self._is_slow_start_told = False
        self._is_first_frame_shown = False
        self.add_mode("executions", self._make_executions)
        self.add_mode("costs", self._make_costs)
        self.add_mode("agents", self._make_agents)
        self.add_mode("sessions", self._make_sessions)
        self.add_mode("inbox", self._make_inbox)
        self.add_mode("settings", self._make_settings)
        if look.reduced_motion or os.environ.get("AGENTMON_REDUCED_MOTION") == "1":
            self.animation_level = "none"
        if look.ascii:
            from agentmon.widgets.ascii_filter import AsciiFilter  # noqa: PLC0415 - seldom wanted

            self._filters.append(AsciiFilter())

    @property
    def available_themes(self) -> dict[str, Theme]:
        """All themes by their names."""
        return super().available_themes | _OWN_THEMES

    def get_theme(self, theme_name: str) -> Theme | None:
        """Return the theme of the name; Textual asks hundreds of times before the first frame."""
        return _OWN_THEMES.get(theme_name) or super().get_theme(theme_name)

    def get_css_variables(self) -> dict[str, str]:
        """Return the variables of the theme, with grounds that 16 colours can tell from text."""
        variables = super().get_css_variables()
        if self.console.color_system == "standard" and not self.is_headless:
            variables.update(CURSORS_OF_16_COLOURS[self.current_theme.dark])
        return variables

    async def services(self) -> Services:
        """Return the services; waits until they are open, for ever when they cannot be opened."""
        services, _workspace = await self._opening()
        return services

    async def workspace(self) -> Workspace:
        """Return the workspace of this app; waits as ``services`` does."""
        _services, workspace = await self._opening()
        return workspace

    @property
    def paths(self) -> Paths:
        """Where this app's files are."""
        return self._paths

    def notify(
        self,
        message: str,
        *,
        title: str = "",
        severity: SeverityLevel = "information",
        timeout: float | None = None,
        markup: bool = False,  # noqa: ARG002 - texts of people and agents are never markup, whatever the caller says
    ) -> None:
        """Show the text as a toast, letter for letter, cleaned of control codes."""
        super().notify(plain_lines(message), title=plain_lines(title), severity=severity, timeout=timeout, markup=False)

    def on_notify(self, message: Notify) -> None:
        """Let the oldest toasts go where there would be too many; an error stays for its time."""
        del message
        surplus = len(self._notifications) + 1 - _MOST_TOASTS
        least = sorted(
            (one for one in self._notifications if one.severity != "error"),
            key=lambda one: (one.severity != "information", one.raised_at),
        )
        for one in least[: max(0, surplus)]:
            self._unnotify(one, refresh=False)

    def get_driver_class(self) -> type[Driver]:
        """Return what draws on the terminal: Textual's own, which lives on when the terminal is gone."""
        from agentmon.widgets.terminal import Terminal  # noqa: PLC0415 - of no use where nothing is drawn

        found = super().get_driver_class()
        return Terminal if issubclass(Terminal, found) else found

    def get_key_display(self, binding: Binding) -> str:
        """Return the key in the words of the help."""
        return binding.key_display or key_word(binding.key)

    def get_default_screen(self) -> Screen[None]:
        """Return the board.

        The first screen comes this way, not as a mode: for a mode Textual works out all style sheets a second time.
        """
        from agentmon.screens.board.screen import BoardScreen  # noqa: PLC0415 - keeps commands that never show it quick

        return BoardScreen(
            self.services, self.workspace, paths=self._paths, workspace_root=self._workspace_root, clock=self._clock
        )

    def on_mount(self) -> None:
        """Listen to signals, and load the rest once the first frame is on the screen."""
        self.add_mode(self.DEFAULT_MODE, self.get_default_screen)
        self._take_own_files()
        if self._notice:
            self.notify(self._notice, severity="warning", timeout=15)
        if not self.is_headless:
            self.set_interval(_TERMINAL_LOOK_S, self._leave_without_terminal, name="terminal")
            for number in _ENDING_SIGNALS:
                # The event loop's own handlers would hear of a ctrl+c in a lent terminal once that is back.
                signal.signal(number, partial(self._leave_on_signal, asyncio.get_running_loop()))

    def _take_own_files(self) -> None:
        """Take the keys and themes that the person made, where there are any."""
        if self._paths.keymap_file.exists():
            from agentmon.screens.settings.keymap import read_keymap  # noqa: PLC0415 - most have none

            keymap = read_keymap(self._paths.keymap_file)
            self._own_keys = keymap.keys
            self.set_keymap(dict(keymap.keys))
            for problem in keymap.problems[:_MOST_TOLD_PROBLEMS]:
                self.notify(f"{self._paths.keymap_file.name}: {problem}", severity="warning", timeout=15)
        if self._paths.themes_dir.is_dir():
            from agentmon.screens.settings.own_themes import read_own_theme  # noqa: PLC0415 - most have none
            from agentmon.services.theme_names import own_theme_names  # noqa: PLC0415 - as above

            for name in own_theme_names(self._paths.themes_dir):
                try:
                    self.register_theme(read_own_theme(self._paths.themes_dir, name))
                except AgentmonError as error:
                    self._show_error(error)
        chosen = self._chosen_look.theme
        if chosen != self.theme and chosen in self.available_themes:
            self.theme = chosen
        elif chosen != self.theme:
            self.notify(f"there is no theme {chosen}; ctrl+p names those there are", severity="warning")

    def watch_theme(self, theme: str) -> None:
        """Keep the theme that the person chose."""
        if self._is_opened and theme != self._chosen_look.theme:
            self._chosen_look = self._chosen_look._replace(theme=theme)

            async def keep() -> None:
                services = await self.services()
                await services.settings.set("app.theme", theme, actor=services.actor)

            _keeping: Worker[None] = self.run_worker(keep, name="theme", group="theme", exit_on_error=False)

    async def on_unmount(self) -> None:
        """Wait until the database is closed: the loop ends after this, and would cut it off."""
        with suppress(TimeoutError):
            await asyncio.wait_for(self._services_ended.wait(), _CLOSE_TIMEOUT_S)

    @property
    def are_keys_held(self) -> bool:
        """Whether keys are meant for what is not on the screen yet."""
        return any(isinstance(screen, ServiceScreen) and screen.holds_keys for screen in self.screen_stack)

    def doubt(self, key: events.Key, before: events.Event | None) -> str:
        """Return why a key that deletes, starts, ends or decides something is hardly meant to; empty when it is."""
        behind_esc_s = key.time - before.time if isinstance(before, events.Key) and before.key == "escape" else _FAR_S
        is_piece = self.split_sequence.may_go_on_with(key)
        is_behind_esc = behind_esc_s < self.esc_doubt_s or is_piece
        screen = self.screen
        replaced_s = key.time - screen.replaced_at if isinstance(screen, ServiceScreen) else _FAR_S
        if not key.is_printable or (not is_behind_esc and replaced_s >= self.replaced_doubt_s):
            return ""
        if self.focused is not None and self.focused.check_consume_key(key.key, key.character):
            return ""
        active = self.active_bindings.get(key.key)
        if active is None or active.binding.action.partition("(")[0] not in HARMFUL_ACTIONS:
            return ""
        return "it came right after esc" if is_behind_esc else "something else came under the cursor"

    async def on_keys_released(self, message: KeysReleased) -> None:
        """Give the held keys to what is shown now."""
        message.stop()
        message.release()
        await self.hand_keys_on()

    async def on_event(self, event: events.Event) -> None:
        """Remember which keys were pressed last, for a report of a crash; of text that is typed, that it was."""
        if isinstance(event, events.Key) and not event.is_forwarded:
            is_for_field = self.focused is not None and self.focused.check_consume_key(event.key, event.character)
            may_be_text = event.is_printable and (is_for_field or self.are_keys_held or bool(self._typed))
            self._last_keys.append("(text)" if may_be_text else event.key)
        await super().on_event(event)

    def on_failed(self, message: Failed) -> None:
        """Tell what failed."""
        message.stop()
        self._show_error(message.error)

    def on_work_started(self, message: WorkStarted) -> None:
        """Say that the action waits, when the services are still not there a second later."""
        message.stop()
        if not self._is_opened and not self._is_slow_start_told:
            self.set_timer(_SLOW_START_S, self._tell_slow_start, name="slow start")

    def on_attach_requested(self, message: AttachRequested) -> None:
        """Lend the terminal to the execution."""
        message.stop()
        _entering: Worker[None] = self.run_worker(
            partial(self._enter_terminal, message), name="attach", group="attach", exclusive=True, exit_on_error=False
        )

    def action_show_place(self, mode: str) -> None:
        """Go to a place."""
        self.switch_mode(mode)
        self.call_after_refresh(self._show_mark)

    def action_words(self, action: str) -> str | None:
        """Return the words of an action that depend on the moment, for the palette."""
        if action != "toggle_pause":
            return None
        from agentmon.screens.executions.pausing import PAUSE_WORDS, RESUME_WORDS  # noqa: PLC0415 - not part of the first frame

        screen = self._service_screen
        return RESUME_WORDS if screen is not None and screen.is_queue_paused else PAUSE_WORDS

    def action_toggle_pause(self) -> None:
        """Pause the queue, or let it go on."""
        from agentmon.screens.executions.pausing import toggle_pause  # noqa: PLC0415 - not part of the first frame

        screen = self._service_screen
        if screen is not None:
            screen.open_dialog(toggle_pause(screen), name="pause")

    def action_run_lost(self) -> None:
        """Ask, then run the tasks again whose runs were lost."""
        from agentmon.screens.board.lost_runs import run_lost_again  # noqa: PLC0415 - not part of the first frame

        screen = self._service_screen
        if screen is not None:
            screen.open_dialog(run_lost_again(screen, self._now()), name="run lost tasks")

    def on_status_bar_trouble_clicked(self, message: Message) -> None:
        """Show what is wrong."""
        message.stop()
        self.action_show_background()

    def on_status_bar_pause_clicked(self, message: Message) -> None:
        """Let the queue go on."""
        message.stop()
        self.action_toggle_pause()

    @property
    def _service_screen(self) -> ServiceScreen[None] | None:
        """The screen that is shown, or the one below the dialogs."""
        return next((screen for screen in reversed(self.screen_stack) if isinstance(screen, ServiceScreen)), None)

    def _now(self) -> datetime:
        return (self._clock or SystemClock()).now()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Offer the search wherever no dialog is open: in one, the key belongs to the field."""
        if action == "search":
            return bool(self.screen_stack) and not self.screen.is_modal
        return super().check_action(action, parameters)

    async def action_search(self) -> None:
        """Search what the screen is about; with what was typed last, and where it was opened already, there."""
        search_module = importlib.import_module("agentmon.screens.search.screen")
        if any(isinstance(screen, search_module.SearchScreen) for screen in self.screen_stack):
            while not isinstance(self.screen, search_module.SearchScreen):
                await self.pop_screen()
            return
        shown = self._service_screen
        screen = search_module.SearchScreen(
            self.services,
            self.workspace if shown is None else shown.workspace,
            text=self._last_search,
            is_everywhere=shown is not None and shown.is_everywhere,
            clock=self._clock,
        )
        await self.push_screen(screen, self._keep_search)

    def _keep_search(self, text: str | None) -> None:
        self._last_search = text or ""

    def action_help(self) -> None:
        """Show the keys of this screen."""
        help_module = importlib.import_module("agentmon.screens.help")
        self.push_screen(help_module.HelpScreen(self.screen, self._own_keys))

    async def action_show_next_waiting(self) -> None:
        """Go to the next one that needs a person: in the inbox there, from everywhere else on the board."""
        if self.current_mode == "inbox":
            inbox = importlib.import_module("agentmon.screens.inbox.screen")
            if isinstance(self.screen, inbox.InboxScreen):
                self.screen.show_next()
                return
        await self.switch_mode("board")
        while len(self.screen_stack) > 1:
            await self.pop_screen()
        board = importlib.import_module("agentmon.screens.board.screen")
        if isinstance(self.screen, board.BoardScreen):
            self.screen.show_next_waiting()

    def action_tell_quit_key(self) -> None:
        """Say which key leaves, to whoever pressed another program's."""
        self.notify("q leaves agentmon; what runs goes on running")

    async def action_quit(self) -> None:
        """Leave; whatever runs goes on, and the terminal says so."""
        sentences = []
        if not await self._finish_changes():
            sentences.append(f"What you did last may not be saved: it took longer than {_CHANGES_TIMEOUT_S:g} s.")
        words = await self._going_on()
        if words:
            sentences.append(f"{words} in the background; start agentmon again to see.")
        self.exit(message=Text("\n".join(sentences)) if sentences else None)

    def _display(self, screen: Screen[object], renderable: RenderableType | None) -> None:
        """Paint; after the first frame let everything else begin. Textual's own ``Ready`` comes before the paint."""
        super()._display(screen, renderable)
        if not self._is_first_frame_shown and renderable is not None and not self._batch_count:
            self._is_first_frame_shown = True
            gc.enable()
            self.call_later(self._open)
            self.screen.post_message(FirstFrameShown())

    @property
    def _is_opened(self) -> bool:
        return self._opened is not None and self._opened.done()

    async def _opening(self) -> tuple[Services, Workspace]:
        if self._opened is None:
            self._opened = asyncio.get_running_loop().create_future()
        return await asyncio.shield(self._opened)

    def _open(self) -> None:
        self._services_ended.clear()
        _holding: Worker[None] = self.run_worker(
            self._hold_services, name="services", group="services", exit_on_error=False
        )

    async def _hold_services(self) -> None:
        """Open the services, and keep them open until the application ends; anew when the database was replaced."""
        try:
            await _import_in_thread("agentmon.bootstrap")
            from agentmon.services.app_marks import AppMark, take_unclean_ends  # noqa: PLC0415 - after the first frame

            if await asyncio.to_thread(take_unclean_ends, self._paths.run_dir):
                self.notify(_UNCLEAN_END, severity="warning", timeout=15)
            mark = await asyncio.to_thread(AppMark.leave, self._paths.run_dir)
            try:
                while True:
                    await self._hold_database()
            finally:
                if mark is not None:
                    mark.remove()
        except Exception as error:
            if self._is_opened:
                raise
            await self._show_failure(error)
        finally:
            self._services_ended.set()

    async def _hold_database(self) -> None:
        """Keep the services open until another database took the place of this one; wait for one that is held."""
        from agentmon.bootstrap import open_services  # noqa: PLC0415 - half a second, so after the first frame

        try:
            async with open_services(self._paths) as services:
                workspace = await services.workspaces.open(self._workspace_root)
                if self._opened is None:
                    self._opened = asyncio.get_running_loop().create_future()
                if self._is_alone:
                    _collect_in_small_steps()
                self._opened.set_result((services, workspace))
                await self._work_with(services)
                self._opened = None
        except DatabaseBusyError as error:
            if self._is_opened:
                raise
            self._toast_once(f"{error}\nIt is tried again until it can be opened.")
            await asyncio.sleep(_OPEN_AGAIN_AFTER_S)

    async def _work_with(self, services: Services) -> None:
        """Look at the database again and again, until another one took its place."""
        from agentmon.screens.background_watch import BackgroundWatch  # noqa: PLC0415 - as below
        from agentmon.screens.board.lost_runs import LostRunWatch  # noqa: PLC0415 - not part of the first frame
        from agentmon.screens.inbox.needs import NeedsWatch  # noqa: PLC0415 - not part of the first frame
        from agentmon.screens.trail_news import TrailNews  # noqa: PLC0415 - not part of the first frame

        was_replaced = self._is_replaced.is_set()
        self._is_replaced.clear()
        self._background = BackgroundWatch(clock=self._clock or SystemClock(), logs_dir=self._paths.logs_dir)
        self._lost_runs, self._needs, self._trail_news = LostRunWatch(), NeedsWatch(), TrailNews()
        for notice in services.notices:
            self.notify(notice, severity="warning", timeout=15)
        self._data_version = services.data_version()
        if was_replaced:
            for stack in self._screen_stacks.values():
                for screen in stack:
                    screen.post_message(StoreReplaced())
        self._tell_screens()
        _greeting: Worker[None] = self.run_worker(
            partial(self._welcome, services), name="welcome", group="welcome", exit_on_error=False
        )
        _asking: Worker[None] = self.run_worker(
            partial(self._tell_own_agents, services), name="own agents", group="own agents", exit_on_error=False
        )
        _offering: Worker[None] = self.run_worker(
            partial(self._offer_moved, services), name="moved", group="moved", exit_on_error=False
        )
        timers = (
            self.set_interval(POLL_INTERVAL_S, self._look_for_changes, name="changes"),
            self.set_interval(_BACKGROUND_LOOK_S, self._look_at_background, name="background"),
            self.set_interval(_QUEUE_LOOK_S, self._look_after_queue, name="queue"),
        )
        self._look_at_background()
        self._look_for_lost()
        self._look_for_needs()
        self._look_for_news()
        self._look_after_queue()
        scan_timer = self.set_timer(_SCAN_AFTER_S, self._look_for_programs, name="programs")
        try:
            await self._is_replaced.wait()
        finally:
            for timer in (*timers, scan_timer):
                timer.stop()

    async def _welcome(self, services: Services) -> None:
        """Show at the very first start what there is: nothing has ever happened, and nobody was welcomed."""
        if not self._chosen_look.welcome or self._paths.welcomed.exists() or await services.audit.newest_id():
            return
        with suppress(OSError):
            self._paths.welcomed.touch()
        await self.show_welcome()

    async def _tell_own_agents(self, services: Services) -> None:
        """Say that the workspace brings agents along that nobody has trusted; nothing of them runs before that."""
        from agentmon.screens.agents.trust_news import news_text  # noqa: PLC0415 - not part of the first frame

        workspace = await self.workspace()
        told = news_text(await services.agent_files.state(workspace), workspace.name)
        if told:
            self.notify(told, severity="warning", timeout=12)

    async def _offer_moved(self, services: Services) -> None:
        """Offer the board of a project that was moved here, and show it."""
        from agentmon.screens.moved_workspace import offer_moved  # noqa: PLC0415 - not part of the first frame

        try:
            is_moved = await offer_moved(self, services, await self.workspace())
        except AgentmonError as error:
            self._show_error(error)
            return
        if is_moved:
            # The services are opened anew, and with them the workspace of this folder.
            self._is_replaced.set()

    async def show_welcome(self) -> None:
        """Show what was found here, and what to try."""
        from agentmon.screens.welcome import WelcomeScreen, find_here  # noqa: PLC0415 - seldom wanted

        await self.push_screen(WelcomeScreen(await find_here(await self.services())))

    async def _attempt(self, name: str, look: Callable[[], Awaitable[None]], *, longest_pause_s: float = 60.0) -> bool:
        """Do one turn of a background loop; return whether it ended well. What fails is told by a mark alone."""
        if self._background is None:
            return True
        from agentmon.worker.supervisor import Turn  # noqa: PLC0415 - not part of the first frame

        turn = Turn(name, look, longest_pause_s=longest_pause_s)
        has_ended_well = await self._background.supervisor.attempt(turn)
        if not has_ended_well:
            self._show_mark()
        return has_ended_well

    def _start_look(self, name: str, look: Callable[[], Awaitable[None]]) -> None:
        """Do one turn in the background: now, or once the loop has rested after a failure; one that fails follows."""
        if self._background is None or name in self._waiting_looks:
            return
        pause_s = self._background.supervisor.pause_s(name)
        if pause_s or self._background.supervisor.is_busy(name):
            self._waiting_looks.add(name)
            self.set_timer(pause_s or _BUSY_LOOK_S, partial(self._look_again, name, look), name=name)
            return

        async def attempt() -> None:
            if not await self._attempt(name, look):
                self._start_look(name, look)

        _looking: Worker[None] = self.run_worker(attempt, name=name, group=name, exit_on_error=False)

    def _look_again(self, name: str, look: Callable[[], Awaitable[None]]) -> None:
        self._waiting_looks.discard(name)
        self._start_look(name, look)

    def _look_at_background(self) -> None:
        """Look how the worker and the loops fare."""

        async def look() -> None:
            if self._background is not None:
                if await self._background.look(await self.services()):
                    self._tell_screens()
                self._show_mark()

        self._start_look("looking at the worker", look)

    def _show_mark(self) -> None:
        """Say in the line at the top what is wrong in the background, on every screen that is there."""
        from agentmon.widgets.status_line import StatusBar  # noqa: PLC0415 - the board has imported it

        mark = self._background.mark if self._background is not None else ""
        for screen in self.screen_stack:
            for bar in screen.query(StatusBar):
                bar.trouble = mark

    def action_show_background(self) -> None:
        """Show how the background work goes."""
        from agentmon.screens.background_dialog import BackgroundDialog  # noqa: PLC0415 - seldom wanted

        if not isinstance(self.screen, BackgroundDialog):
            self.push_screen(BackgroundDialog(self._background_picture))

    async def _background_picture(self) -> BackgroundPicture:
        from agentmon.screens.background_dialog import BackgroundPicture  # noqa: PLC0415 - as above

        services = await self.services()
        watch = self._background
        if watch is not None:
            await watch.look(services)
        return BackgroundPicture(
            of_app=() if watch is None else watch.supervisor.states,
            health=await services.background.worker(),
            troubles=() if watch is None else watch.troubles,
            now=self._now(),
        )

    async def _look_for_changes(self) -> None:
        if self._background is not None and not self._background.supervisor.pause_s(_CHANGES):
            await self._attempt(_CHANGES, self._compare_versions, longest_pause_s=_LONGEST_POLL_PAUSE_S)

    async def _compare_versions(self) -> None:
        services = await self.services()
        try:
            data_version = services.data_version()
        except DatabaseMovedError:
            if self._paths.database_path.exists():
                self._is_replaced.set()
            raise
        if data_version != self._data_version:
            self._data_version = data_version
            self._tell_screens()
            if not self._is_need_look_planned:
                self._is_need_look_planned = True
                self.set_timer(_NEED_LOOK_S, self._look_for_needs, name="needs")
            if not self._is_news_look_planned:
                self._is_news_look_planned = True
                self.set_timer(_NEWS_LOOK_S, self._look_for_news, name="news")
            if not self._is_lost_look_planned:
                self._is_lost_look_planned = True
                self.set_timer(_LOST_LOOK_S, self._look_for_lost, name="lost runs")

    def _look_for_lost(self) -> None:
        """Tell of runs that were lost since the last look."""

        async def look() -> None:
            self._is_lost_look_planned = False
            if self._lost_runs is None:
                return
            news = await self._lost_runs.find_news(await self.services(), await self.workspace(), self._now())
            if news:
                self.notify(news, severity="warning", timeout=15)

        self._start_look("finding lost runs", look)

    def _look_for_needs(self) -> None:
        """Ring and tell when something new waits for the person."""

        async def look() -> None:
            self._is_need_look_planned = False
            if self._needs is None:
                return
            services = await self.services()
            news = await self._needs.find_news(services, await self.workspace(), self._now())
            if news.rings and self._needs.may_ring(monotonic()):
                self.bell()
            if news.toast and self.current_mode != "inbox":
                self.notify(news.toast, severity="warning")

        self._start_look("finding what needs you", look)

    def _look_for_news(self) -> None:
        """Tell what became of runs and budgets."""

        async def look() -> None:
            self._is_news_look_planned = False
            if self._trail_news is None:
                return
            news = await self._trail_news.find(
                await self.services(),
                is_board_shown=self.current_mode == self.DEFAULT_MODE and len(self.screen_stack) == 1,
                now=self._now(),
            )
            if news.has_bell:
                self.bell()
            for words in news.good:
                self.notify(words)
            for words in news.bad:
                self.notify(words, severity="warning")

        self._start_look("finding news of runs", look)

    def _look_after_queue(self) -> None:
        """See to it that a worker lives while something waits or runs: one that was killed is started again.

        At the start of the app one begins as well when agents have left a history here, for who wants it read.
        """

        async def look() -> None:
            services = await self.services()
            await services.queue.look_after()
            if not self._has_asked_for_history:
                self._has_asked_for_history = True
                if await services.costs.has_history_to_read():
                    await services.workers.ensure_running()

        self._start_look("looking after the queue", look)

    def _look_for_programs(self) -> None:
        """Find out what programs came and went, when the last look is older than the settings say."""

        async def look() -> None:
            from agentmon.domain.scan_words import news_line  # noqa: PLC0415 - once a day

            discovery = (await self.services()).discovery
            if await discovery.is_due():
                news = news_line(await discovery.scan())
                if news:
                    self.notify(f"Programs: {news}")

        self._start_look("finding programs", look)

    def _tell_screens(self) -> None:
        for screen in self.screen_stack:
            screen.post_message(StoreChanged())

    async def _show_failure(self, error: Exception) -> None:
        from agentmon.screens.failure import FailureScreen  # noqa: PLC0415 - needed on bad days only

        if isinstance(error, AgentmonError):
            await self.push_screen(FailureScreen(str(error), error.hint))
            return
        self.failures.append(error)
        log_file = self._write_error(error)
        where = f"Details are in {log_file}." if log_file else "The details could not be written to a file."
        await self.push_screen(FailureScreen(f"agentmon could not start: {type(error).__name__}", where))

    def _show_error(self, error: BaseException) -> None:
        """Apply the one policy for errors: what is meant for people is a toast, the rest goes to the error file."""
        if isinstance(error, AgentmonError):
            text = f"{error}\n{error.hint}" if error.hint else str(error)
            self._toast_once(text)
            return
        self.failures.append(error)
        self._failure_times.append(monotonic())
        log_file = self._write_error(error)
        if self._is_failing_fast:
            self._crash(error)
            return
        where = f"details in {log_file}" if log_file else "the details could not be written to a file"
        self._toast_once(f"Internal error ({type(error).__name__}): {where}")

    def _write_error(self, error: BaseException) -> Path | None:
        from agentmon.logs.error_file import write_error  # noqa: PLC0415 - needed on bad days only

        return write_error(self._paths.logs_dir, error)

    @property
    def _is_failing_fast(self) -> bool:
        times = self._failure_times
        return len(times) == _MOST_FAILURES and times[-1] - times[0] < _FAILURE_WINDOW_S

    def _toast_once(self, text: str) -> None:
        present = monotonic()
        if present - self._toasted_at.get(text, -_TOAST_REPEAT_S) < _TOAST_REPEAT_S:
            return
        self._toasted_at = {told: at for told, at in self._toasted_at.items() if present - at < _TOAST_REPEAT_S}
        self._toasted_at[text] = present
        self.notify(text, severity="error", timeout=8)

    def _handle_exception(self, error: Exception) -> None:
        """End after an error that nothing survived, also after one for which Textual has a page of its own."""
        self._return_code = 1
        if self._exception is None:
            self._exception = error
            self._exception_event.set()
        self._crash(error)

    def _fatal_error(self) -> None:
        """End after an error that nothing survived: the terminal is given back, a report is left."""
        error = sys.exc_info()[1]
        self._crash(error if error is not None else RuntimeError("unknown error"))

    def _crash(self, error: BaseException) -> None:
        self._return_code = 1
        from agentmon.logs.crash_reports import write_crash_report  # noqa: PLC0415 - needed on bad days only

        report = write_crash_report(self._paths.logs_dir, error, self._crash_facts())
        where = f"The report is in {report}." if report else "The report could not be written."
        self.panic(
            Text(
                f"agentmon ended because of an internal error: {type(error).__name__}.\n{where}\n"
                "What was running goes on; start agentmon again to see it."
            )
        )

    def _crash_facts(self) -> dict[str, str]:
        """Return what helps to find the cause of a crash; nothing of what was typed or is shown."""
        from importlib.metadata import version  # noqa: PLC0415 - needed on bad days only

        return {
            "Textual": version("textual"),
            "terminal": f"{os.environ.get('TERM', '')}, {self.size.width}x{self.size.height}",
            "inside": " ".join(os.environ.get(name, "") for name in ("TERM_PROGRAM", "TERM_PROGRAM_VERSION")),
            "screens": " > ".join(type(screen).__name__ for screen in self._screen_stacks[self._current_mode]),
            "last keys": " ".join(self._last_keys),
        }

    def _leave_on_signal(self, loop: asyncio.AbstractEventLoop, number: int, _frame: FrameType | None) -> None:
        loop.call_soon_threadsafe(partial(self.exit, return_code=128 + number))

    @contextmanager
    def suspend(self) -> Iterator[None]:
        """Lend the terminal to a program, which alone hears ctrl+c then."""
        from agentmon.runners.lent_terminal import deaf_to_interrupts  # noqa: PLC0415 - not part of the first frame

        with super().suspend(), deaf_to_interrupts():
            yield

    def _leave_without_terminal(self) -> None:
        """Leave when the terminal is gone: the signal for that reaches only programs that the terminal controls."""
        poll = select.poll()
        try:
            poll.register(sys.__stdin__.fileno() if sys.__stdin__ is not None else 0, 0)
        except (OSError, ValueError):
            return
        if any(mask & select.POLLHUP for _descriptor, mask in poll.poll(0)):
            self.exit(return_code=128 + signal.SIGHUP)

    def _tell_slow_start(self) -> None:
        if not self._is_opened and not self._is_slow_start_told:
            self._is_slow_start_told = True
            self.notify("Still opening the database; what you asked for follows")

    async def _finish_changes(self) -> bool:
        """Wait for what keys began, for as long as a person would; return whether all of it is done."""
        begun = [worker for worker in self.workers if worker.group in BEGUN_BY_KEYS and not worker.is_finished]
        if not begun:
            return True
        waiting = [asyncio.ensure_future(worker.wait()) for worker in begun]
        return not (await asyncio.wait(waiting, timeout=_CHANGES_TIMEOUT_S))[1]

    async def _going_on(self) -> str:
        """Return how many executions run and wait, of all workspaces; empty when none does or it cannot be said."""
        if not self._is_opened or DEMO_NAME in os.environ:
            return ""
        try:
            async with asyncio.timeout(_COUNT_TIMEOUT_S):
                services = await self.services()
                page = await services.board.page(await self.workspace(), ())
        except (AgentmonError, TimeoutError):
            return ""
        running, queued = page.status_line.running, page.status_line.queued
        words = []
        if running:
            words.append("1 run goes on" if running == 1 else f"{running} runs go on")
        if queued:
            words.append("1 waits for its turn" if queued == 1 else f"{queued} wait for their turn")
        return " and ".join(words)

    async def _enter_terminal(self, request: AttachRequested) -> None:
        services = await self.services()
        execution = await services.executions.get(request.execution_id)
        plan = await services.attaching.plan(execution, environ=os.environ)
        try:
            with self.suspend():
                sys.stdout.write(f"{plan.note}\n")
                sys.stdout.flush()
                # Blocks on purpose: while the terminal is lent nothing here may draw or read.
                ended = subprocess.run(  # noqa: ASYNC221
                    plan.argv, env=dict(plan.environ), check=False, stderr=subprocess.PIPE
                )
        except SuspendNotSupported:
            self.notify("This terminal cannot be lent to a program", severity="error")
            return
        complaint = ended.stderr.decode(errors="replace").strip()
        if ended.returncode != 0:
            self.notify(complaint or f"attaching ended with exit code {ended.returncode}", severity="error")

    def _make_executions(self) -> Screen[None]:
        from agentmon.screens.executions.screen import ExecutionsScreen  # noqa: PLC0415 - not part of the first frame

        return ExecutionsScreen(self.services, self.workspace, clock=self._clock)

    def _make_costs(self) -> Screen[None]:
        from agentmon.screens.costs.screen import CostsScreen  # noqa: PLC0415 - not part of the first frame

        return CostsScreen(self.services, self.workspace, clock=self._clock)

    def _make_agents(self) -> Screen[None]:
        from agentmon.screens.agents.screen import AgentsScreen  # noqa: PLC0415 - not part of the first frame

        return AgentsScreen(self.services, self.workspace, clock=self._clock)

    def _make_sessions(self) -> Screen[None]:
        from agentmon.screens.sessions.screen import SessionsScreen  # noqa: PLC0415 - not part of the first frame

        return SessionsScreen(self.services, self.workspace, clock=self._clock)

    def _make_settings(self) -> Screen[None]:
        from agentmon.screens.settings.screen import SettingsScreen  # noqa: PLC0415 - not part of the first frame

        return SettingsScreen(self.services, self.workspace, clock=self._clock)

    def _make_inbox(self) -> Screen[None]:
        from agentmon.screens.inbox.screen import InboxScreen  # noqa: PLC0415 - not part of the first frame

        return InboxScreen(self.services, self.workspace, clock=self._clock)


def _collect_in_small_steps() -> None:
    """Leave what the start made out of every later look for garbage, and look often.

    A key makes some hundred objects that only the collector frees. With the threshold of the start one key in a hundred
    waited 40 ms for it (measured).
    """
    gc.freeze()
    gc.set_threshold(_MADE_BEFORE_COLLECTION)


async def _import_in_thread(module: str) -> None:
    """Import the module without holding up the loop; a quit meanwhile does not wait for it."""
    loop = asyncio.get_running_loop()
    imported: asyncio.Future[None] = loop.create_future()

    def settle(error: Exception | None) -> None:
        if imported.done():
            return
        if error is None:
            imported.set_result(None)
        else:
            imported.set_exception(error)

    def load() -> None:
        failure: Exception | None = None
        try:
            importlib.import_module(module)
        except Exception as error:  # noqa: BLE001 - raised again where the import is awaited
            failure = error
        try:
            loop.call_soon_threadsafe(settle, failure)
        except RuntimeError:
            # The loop is closed: the application ended first.
            return

    threading.Thread(target=load, name=f"import {module}", daemon=True).start()
    await imported
