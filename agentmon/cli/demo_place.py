"""The demo's scratch folder: its own database, worker and tmux server, and the way all of it goes away again."""

import fcntl
import os
import re
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from agentmon.domain.errors import TmuxUnavailableError
from agentmon.domain.ids import new_id
from agentmon.paths import Paths, find_paths
from agentmon.runners.execution_folder import ExecutionFolder
from agentmon.runners.locks import is_locked
from agentmon.runners.tmux import find_tmux
from agentmon.worker.presence import WorkerLock, read_presence

_PREFIX = "agentmon-demo-"
_NAME = re.compile(rf"{_PREFIX}\d+-\w{{8}}")
"""What ``make`` calls a place: other folders of this user may begin the same way."""
_LOCK_NAME = "lock"
_LOOK_INTERVAL_S = 0.05
_WORKER_ENDS_WITHIN_S = 5.0
_HOSTS_END_WITHIN_S = 10.0
_TMUX_ANSWERS_WITHIN_S = 5.0


class DemoPlace:
    """A folder in the system's folder for temporary files; its lock tells other demos that it is in use.

    Attributes:
        folder: Everything of the demo lies in it.
        lock_file: The descriptor of the lock, for processes that shall keep the place in use.
    """

    def __init__(self, folder: Path, lock_file: int) -> None:
        self.folder = folder
        self.lock_file = lock_file

    @classmethod
    def make(cls) -> "DemoPlace":
        """Return a new place for this process."""
        folder = Path(tempfile.mkdtemp(prefix=f"{_PREFIX}{os.getpid()}-"))
        lock_file = os.open(folder / _LOCK_NAME, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        fcntl.flock(lock_file, fcntl.LOCK_EX)
        return cls(folder, lock_file)

    @property
    def home(self) -> Path:
        """What AGENTMON_HOME is for the demo."""
        return self.folder / "home"

    @property
    def project(self) -> Path:
        """The demo's workspace."""
        return self.folder / "shop"

    def remove(self) -> None:
        """End everything that runs in the place and remove it; doing it twice is harmless."""
        _remove(self.folder)
        if self.lock_file >= 0:
            os.close(self.lock_file)
            self.lock_file = -1


def remove_leftovers() -> list[Path]:
    """Remove the places of this user's demos that were killed, with what still runs there, and return them."""
    removed = []
    for folder in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        try:
            if (
                not _NAME.fullmatch(folder.name)
                or folder.is_symlink()
                or folder.stat().st_uid != os.getuid()
                or is_locked(folder / _LOCK_NAME)
            ):
                continue
        except OSError:
            continue
        _remove(folder)
        removed.append(folder)
    return removed


def end_everything(paths: Paths) -> None:
    """End the worker, every run and the tmux server that belong to these paths; without any of them it does nothing."""
    with _everything_ended(paths):
        pass


@contextmanager
def _everything_ended(paths: Paths) -> Iterator[None]:
    """End all there is; no other worker comes up inside, not even one that was already on its way."""
    lock = _end_worker(paths)
    try:
        _end_hosts(paths)
        _end_tmux_server(paths)
        # A host that had only been started when the worker ended holds its lock by now.
        _end_hosts(paths)
        yield
    finally:
        if lock is not None:
            lock.release()


def _remove(folder: Path) -> None:
    if not folder.exists():
        return
    paths = find_paths({"AGENTMON_HOME": str(folder / "home")})
    with _everything_ended(paths):
        if not paths.run_dir.is_relative_to(folder):
            shutil.rmtree(paths.run_dir, ignore_errors=True)
        shutil.rmtree(folder, ignore_errors=True)


def _end_worker(paths: Paths) -> WorkerLock | None:
    """End the worker and return its lock, or None when there is no place for one or nothing ends the one there is."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        deadline = time.monotonic() + _WORKER_ENDS_WITHIN_S
        asked: int | None = None
        while time.monotonic() < deadline:
            if not paths.worker_lock.parent.is_dir():
                return None
            lock = WorkerLock.take(paths.worker_lock)
            if lock is not None:
                return lock
            # One that is only starting has not written its number yet.
            pid = read_presence(paths.worker_lock).pid
            if pid is not None and pid != asked:
                asked = pid
                with suppress(ProcessLookupError):
                    os.kill(pid, number)
    return None


def _end_hosts(paths: Paths) -> None:
    """Let every living host end its program by force, and wait until it has recorded that."""
    asked: set[Path] = set()

    def are_gone() -> bool:
        living = [folder for folder in paths.executions_dir.glob("*") if is_locked(folder / "host.lock")]
        for folder in living:
            if folder not in asked:
                ExecutionFolder(folder).append_command({"id": new_id(), "type": "kill"})
                asked.add(folder)
        return not living

    _comes_true(are_gone, within_s=_HOSTS_END_WITHIN_S)


def _end_tmux_server(paths: Paths) -> None:
    if not paths.tmux_socket.exists():
        return
    try:
        subprocess.run(
            [find_tmux(os.environ), "-S", str(paths.tmux_socket), "kill-server"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_TMUX_ANSWERS_WITHIN_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired, TmuxUnavailableError):
        return


def _comes_true(condition: Callable[[], bool], *, within_s: float) -> bool:
    deadline = time.monotonic() + within_s
    while not condition():
        if time.monotonic() >= deadline:
            return False
        time.sleep(_LOOK_INTERVAL_S)
    return True
