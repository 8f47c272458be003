from __future__ import annotations

import gc
import itertools
import os
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings
from textual.css.model import RuleSet
from textual.css.stylesheet import Stylesheet
from textual.notifications import Notification
from textual.pilot import Pilot

from agentmon.cli.served import VARIABLE
from agentmon.store import upgrade
from agentmon.worker import launch
from tests.compiled_statements import share_compiled_statements
from tests.database_template import DatabaseTemplate, make_whole
from tests.forks import Forks, ForkServer
from tests.live_home import LiveHome
from tests.waiting import DEADLINE_S

if TYPE_CHECKING:
    from collections.abc import Generator, Hashable, Iterator

# How long an example takes says more about the machine than about the code.
settings.register_profile("suite", deadline=None)
settings.load_profile("suite")

_launch = launch._launch
_PERSONAL = frozenset({"NO_COLOR", "COLUMNS", "LINES", "CLAUDE_CONFIG_DIR", "CODEX_HOME", "GEMINI_CLI_HOME"})
_PROOF_TIMEOUT_S = 900
_LONGEST_NAME = 60

# What a test starts ends with it.
os.environ[VARIABLE] = "0"
_FORKS = "TESTS_FORKS"
"""Names the socket of the one fork server to the processes of the run."""
_fork_server = pytest.StashKey[ForkServer]()


def pytest_configure(config: pytest.Config) -> None:
    """Start what forks commands and workers for all processes of the run; it gets ready while they look for tests."""
    if not hasattr(config, "workerinput") and not config.option.collectonly:
        config.stash[_fork_server] = ForkServer()
        os.environ[_FORKS] = str(config.stash[_fork_server].path)


def pytest_unconfigure(config: pytest.Config) -> None:
    """End it."""
    if _fork_server in config.stash:
        config.stash[_fork_server].close()


def pytest_make_parametrize_id(val: object) -> str | None:
    """Name a long value by its begin: every process of the run gets every name, and some values have megabytes."""
    if isinstance(val, str | bytes) and len(val) > _LONGEST_NAME:
        return ascii(val[:_LONGEST_NAME])
    return None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Give a proof, which is long by itself, more time before it counts as hanging on a busy machine."""
    for item in items:
        if item.get_closest_marker("proof") and not item.get_closest_marker("timeout"):
            item.add_marker(pytest.mark.timeout(_PROOF_TIMEOUT_S))


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Look for no garbage while only modules and tests are made, and leave what they are out of every later look."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.set_threshold(20_000)
        gc.enable()


@pytest.fixture(autouse=True)
def toasts_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    """A slow machine may look for a toast only after its time."""
    monkeypatch.setattr(Notification, "time_left", 3_600.0)


@pytest.fixture(scope="session", autouse=True)
def a_new_size_is_there() -> None:
    """A slow machine may lay out the screen only after the pilot has gone on."""
    resize = Pilot.resize_terminal

    async def resize_and_wait(pilot: Pilot[object], width: int, height: int) -> None:
        await resize(pilot, width, height)
        began = time.monotonic()
        while tuple(pilot.app.screen._compositor.size) != (width, height) or pilot.app.screen._layout_required:
            assert time.monotonic() < began + DEADLINE_S, f"never {width}x{height}"
            await pilot.pause(0.01)
        await pilot.pause()

    Pilot.resize_terminal = resize_and_wait  # type: ignore[method-assign,assignment] # for all tests of the process


@pytest.fixture(scope="session")
def empty_homes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A home for each test; most never look at theirs, so it has to cost next to nothing."""
    folder = tmp_path_factory.mktemp("homes")
    return (folder / str(number) for number in itertools.count())


@pytest.fixture(autouse=True)
def isolated_environment(monkeypatch: pytest.MonkeyPatch, empty_homes: Iterator[Path]) -> None:
    """No test sees the person's own files, terminal or tmux."""
    for name in list(os.environ):
        if name.startswith(("AGENTMON_", "XDG_", "TMUX")) or name in _PERSONAL:
            monkeypatch.delenv(name)
    home = next(empty_homes)
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    # No app looks for the programs of this machine by itself.
    monkeypatch.setenv("AGENTMON_AGENTS_SCAN_HOURS", "0")
    monkeypatch.setenv("LANG", "C.UTF-8")
    monkeypatch.setenv("LC_ALL", "C.UTF-8")
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("TZ", "UTC")


@pytest.fixture(scope="session")
def forks() -> Forks:
    """What forks commands and workers."""
    return Forks(Path(os.environ[_FORKS]))


@pytest.fixture(scope="session", autouse=True)
def workers_are_forks(forks: Forks) -> None:
    """A worker is a fork of a process that has imported everything; see ``workers_are_programs``."""
    launch._launch = forks.start_worker


@pytest.fixture
def workers_are_programs(monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker is started as it is outside of tests."""
    monkeypatch.setattr(launch, "_launch", _launch)


@pytest.fixture
def live_home(monkeypatch: pytest.MonkeyPatch) -> Iterator[LiveHome]:
    """A home of agentmon whose worker and tmux server are ended with the test."""
    # Short, since sockets lie in it.
    folder = Path(tempfile.mkdtemp(prefix="amt-", dir="/tmp"))
    monkeypatch.setenv("AGENTMON_HOME", str(folder / "home"))
    monkeypatch.setenv("AGENTMON_APP_WELCOME", "false")
    home = LiveHome(folder)
    try:
        yield home
    finally:
        home.end()
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="session", autouse=True)
def databases_are_copies(tmp_path_factory: pytest.TempPathFactory) -> None:
    """A new database is a copy of the first one of this process; see ``databases_are_made_whole``."""
    upgrade._make = DatabaseTemplate(tmp_path_factory.mktemp("template")).make


@pytest.fixture
def databases_are_made_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    """A new database is made as it is outside of tests."""
    monkeypatch.setattr(upgrade, "_make", make_whole)


@pytest.fixture(scope="session", autouse=True)
def statements_are_compiled_once() -> None:
    """See ``tests.compiled_statements``."""
    share_compiled_statements()


@pytest.fixture(scope="session", autouse=True)
def styles_are_read_once() -> None:
    """What was read from a style sheet serves every application of this process, as it does every screen of one.

    A set of rules is hashed by what it is, as Textual does it, but without a call of Python: some ten thousand times a
    test.
    """
    RuleSet.__hash__ = object.__hash__  # type: ignore[method-assign] # for all tests
    read: dict[tuple[object, ...], list[RuleSet]] = {}
    read_rules = Stylesheet._parse_rules

    def rules_of(sheet: Stylesheet, *text: Hashable, **place: Hashable) -> list[RuleSet]:
        key = (text, *sorted(place.items()), *sheet._variables.items())
        if key not in read:
            read[key] = read_rules(sheet, *text, **place)  # type: ignore[arg-type] # what it was asked
        return read[key]

    Stylesheet._parse_rules = rules_of  # type: ignore[method-assign,assignment] # for all tests


@pytest.fixture(scope="session", autouse=True)
def signals_as_in_a_terminal() -> None:
    """A suite that a shell starts in the background ignores the interrupt, and so would all that it starts."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGQUIT, signal.SIG_DFL)


@pytest.fixture(scope="session", autouse=True)
def tmux_is_there() -> None:
    """Without tmux nothing can be tested, which has to be said rather than skipped."""
    subprocess.run(["tmux", "-V"], check=True, capture_output=True)
