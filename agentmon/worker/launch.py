"""Starting the worker as a process of its own: not a child of who needs it, not inside tmux, deaf to their end."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from typing import IO, TYPE_CHECKING, Final

from agentmon.domain.errors import RunnerError
from agentmon.paths import LOCATION_NAMES
from agentmon.private_folders import make_private_folder
from agentmon.runners.session_marks import is_of_session
from agentmon.worker.presence import WorkerInfo, read_presence

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from agentmon.paths import Paths

_READY_WITHIN_S: Final = 20.0
_START_AGAIN_AFTER_S: Final = 6.0
"""How long a started worker may take to its lock before it is given up, as one that was killed meanwhile."""
_LOOK_EVERY_S: Final = 0.02
_LAST_WORDS_BYTES: Final = 4096


def ensure_worker(
    paths: Paths, *, environ: Mapping[str, str] | None = None, after: WorkerInfo | None = None
) -> WorkerInfo:
    """Return the worker that lives, started if there was none; blocks until it is ready, at most 20 s.

    Any number of callers may ask at once: the lock lets one of the started workers live.

    Args:
        paths: Of the machine and database.
        environ: Of the worker; None takes that of this process.
        after: One that has ended. The next has the lock for a moment before it wipes out what that one wrote there.

    Raises:
        RunnerError: The worker ended or was not ready in time; the message names its log.
    """
    presence = read_presence(paths.worker_lock)
    if presence.pid is not None and presence != after:
        return presence
    logged_bytes = _size(paths.worker_log)
    if not presence.is_running:
        _start(paths, os.environ if environ is None else environ)
    seen_at = time.monotonic()
    deadline = seen_at + _READY_WITHIN_S
    while time.monotonic() < deadline:
        presence = read_presence(paths.worker_lock)
        if presence.pid is not None and presence != after:
            return presence
        if presence.is_running:
            seen_at = time.monotonic()
        elif time.monotonic() - seen_at >= _START_AGAIN_AFTER_S:
            _start(paths, os.environ if environ is None else environ)
            seen_at = time.monotonic()
        time.sleep(_LOOK_EVERY_S)
    raise RunnerError(
        f"the background worker did not become ready{_last_words(paths.worker_log, logged_bytes)}", hint=_hint(paths)
    )


def _start(paths: Paths, environ: Mapping[str, str]) -> None:
    # It must not pass for a part of the run or the agent from which it is started.
    own = {name: text for name, text in environ.items() if not is_of_session(name) and name not in LOCATION_NAMES}
    logged_bytes = _size(paths.worker_log)
    try:
        make_private_folder(paths.logs_dir)
        with paths.worker_log.open("ab") as log:
            paths.worker_log.chmod(0o600)
            code = _launch(own | paths.variables, log)
    except (OSError, subprocess.SubprocessError) as error:
        raise RunnerError(f"the background worker could not be started: {error}", hint=_hint(paths)) from error
    if code:
        why = _last_words(paths.worker_log, logged_bytes)
        raise RunnerError(f"the background worker could not be started{why}", hint=_hint(paths))


def _hint(paths: Paths) -> str:
    return f"`agentmon worker` runs it in the foreground and shows what is wrong; its log: {paths.worker_log}"


def _last_words(log: Path, from_byte: int) -> str:
    """Return the last line that was logged since then, behind a colon; empty when there is none."""
    try:
        with log.open("rb") as file:
            file.seek(max(from_byte, _size(log) - _LAST_WORDS_BYTES))
            lines = file.read().decode("utf-8", "replace").split("\n")
    except OSError:
        return ""
    told = [line.strip() for line in lines if line.strip() and not line.startswith("hint: ")]
    return f": {told[-1].removeprefix('error: ')}" if told else ""


def _size(file: Path) -> int:
    try:
        return file.stat().st_size
    except OSError:
        return 0


def _launch(environ: Mapping[str, str], log: IO[bytes]) -> int:
    """Start the program with its two outputs in the log; return the exit code of the process that starts it."""
    # The started process forks and ends at once, so nothing is left to reap and the worker's parent is init.
    return subprocess.run(
        [sys.executable, "-P", "-m", "agentmon.worker", "--background"],
        stdin=subprocess.DEVNULL,
        stdout=log,
        stderr=log,
        env=environ,
        cwd="/",
        start_new_session=True,
        timeout=_READY_WITHIN_S,
        check=False,
    ).returncode
