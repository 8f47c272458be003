"""The worker as a process: its lock, its log, its signals."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import sys
import time
from logging.handlers import RotatingFileHandler
from typing import TYPE_CHECKING, Final

from agentmon import __version__
from agentmon.domain.clock import SystemClock
from agentmon.domain.errors import AgentmonError
from agentmon.paths import find_paths
from agentmon.private_folders import close_to_others, make_private_folder
from agentmon.runners.host.signals import reset_signals
from agentmon.runners.tmux import Tmux
from agentmon.store.database import open_database
from agentmon.store.money_setting import find_money_words
from agentmon.store.private_files import require_usable
from agentmon.store.revision import HEAD_REVISION
from agentmon.worker.loop import WorkerLoop
from agentmon.worker.presence import WorkerLock, read_presence
from agentmon.worker.repositories import Repositories
from agentmon.worker.wake import WakeSocket

if TYPE_CHECKING:
    from pathlib import Path

    from agentmon.paths import Paths

_log = logging.getLogger(__name__)

_LOG_MAX_BYTES: Final = 2_000_000
_LOG_FILES: Final = 3
_KEPT_SIGNALS: Final = frozenset({signal.SIGINT, signal.SIGPIPE, signal.SIGXFSZ})
"""Python has set them for itself; what it starts gets none of that."""
_LOOK_FOR_DATABASE_EVERY_S: Final = 1.0
_WITHOUT_FOLDER_S: Final = 60.0
"""A disk may be away for a moment."""


def run_foreground(paths: Paths | None = None, *, makes_home: bool = True) -> int:
    """Run the worker in this process until SIGTERM or SIGINT; return the exit code.

    When another worker lives already this says so and returns 0: there is nothing to do.

    Args:
        paths: Where its files are; the environment tells when it is None.
        makes_home: Whether a missing data folder is made. Whoever starts a worker in the background has one: when it
            is gone by now, somebody removed it, and it stays so.

    Raises:
        UsageError: The environment names no usable place.
        StoreError: Files of agentmon belong to another user.
    """
    reset_signals(kept=_KEPT_SIGNALS)
    paths = find_paths() if paths is None else paths
    require_usable(paths.needed, own=paths.data_dir)
    home = _inode(paths.data_dir)
    if home is None and not makes_home:
        return _no_home(paths)
    lock = WorkerLock.take(paths.worker_lock)
    if lock is None:
        presence = read_presence(paths.worker_lock)
        sys.stderr.write(f"a worker is running already (pid {presence.pid})\n")
        return 0
    if not makes_home and _inode(paths.data_dir) != home:
        lock.release()
        return _no_home(paths)
    _start_log(paths)
    for folder in paths.own_folders:
        close_to_others(folder)
    try:
        asyncio.run(_serve(paths, lock))
    except AgentmonError as error:
        _log.error("%s", error)
        sys.stderr.write(f"error: {error}\n" + (f"hint: {error.hint}\n" if error.hint else ""))
        return 1
    finally:
        lock.release()
    return 0


def _inode(folder: Path) -> int | None:
    try:
        return folder.stat().st_ino
    except OSError:
        return None


def _no_home(paths: Paths) -> int:
    sys.stderr.write(f"error: the folder {paths.data_dir} was removed while the worker started\n")
    return 1


async def _serve(paths: Paths, lock: WorkerLock) -> None:
    """Work until told to end; begin anew when the database was replaced or the files in the run folder were removed.

    A worker without a data folder ends: somebody has deleted it, and whoever makes another one starts another worker.
    """
    is_told_to_end = asyncio.Event()
    # A handler, unlike SIG_IGN, is not handed down.
    signal.signal(signal.SIGHUP, lambda *_: None)
    await _work(paths, lock, is_told_to_end)
    seen_at = time.monotonic()
    while not is_told_to_end.is_set():
        if paths.data_dir.exists():
            seen_at = time.monotonic()
        elif time.monotonic() - seen_at >= _WITHOUT_FOLDER_S:
            return
        if not paths.database_path.exists():
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(is_told_to_end.wait(), _LOOK_FOR_DATABASE_EVERY_S)
        elif lock.is_in_place or lock.take_again():
            await _work(paths, lock, is_told_to_end)
        else:
            _log.info("another worker has taken over")
            return


async def _work(paths: Paths, lock: WorkerLock, is_told_to_end: asyncio.Event) -> None:
    clock = SystemClock()
    opened = await open_database(paths.database_path, backups_dir=paths.backups_dir, release=__version__, clock=clock)
    for notice in opened.notices:
        _log.info("%s", notice)
    tmux = Tmux(paths.tmux_socket)
    wake = WakeSocket.bind(paths.worker_socket)
    try:
        started_at = clock.now().isoformat()

        def has_place() -> bool:
            if not lock.is_announced:
                lock.announce(version=__version__, revision=HEAD_REVISION, started_at=started_at)
            return lock.is_in_place and wake.is_in_place

        worker = WorkerLoop(
            repositories=Repositories.over(
                opened.database, money_words=find_money_words(str(paths.settings_file), os.environ)
            ),
            tmux=tmux,
            wake=wake,
            paths=paths,
            clock=clock,
            has_place=has_place,
        )

        def end() -> None:
            is_told_to_end.set()
            worker.stop()

        for number in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(number, end)
        lock.announce(version=__version__, revision=HEAD_REVISION, started_at=started_at)
        _log.info("worker %s started, pid %s", worker.worker_id, os.getpid())
        await worker.run()
        _log.info("worker %s ended", worker.worker_id)
    finally:
        wake.close()
        tmux.close()
        await opened.database.close()


def _start_log(paths: Paths) -> None:
    make_private_folder(paths.logs_dir)
    handler = RotatingFileHandler(paths.worker_log, maxBytes=_LOG_MAX_BYTES, backupCount=_LOG_FILES)
    with contextlib.suppress(OSError):
        paths.worker_log.chmod(0o600)
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s %(message)s"))
    logging.basicConfig(level=logging.INFO, handlers=[handler], force=True)
