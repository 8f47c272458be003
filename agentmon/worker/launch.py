"""Starting the worker as a process of its own: not a child of who needs it, not inside tmux, deaf to their end."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from typing import IO, TYPE_CHECKING, Final

from agentmon.domain.errors import RunnerError
from agentmon.worker.presence import WorkerInfo, read_presence

if TYPE_CHECKING:
    from collections.abc import Mapping

    from agentmon.paths import Paths

_READY_WITHIN_S: Final = 20.0
_START_AGAIN_AFTER_S: Final = 6.0
"""How long a started worker may take to its lock before it is given up, as one that was killed meanwhile."""
_LOOK_EVERY_S: Final = 0.02


def ensure_worker(paths: Paths, *, environ: Mapping[str, str] | None = None) -> WorkerInfo:
    """Return the worker that lives, started if there was none; blocks until it is ready, at most 20 s.

    Any number of callers may ask at once: the lock lets one of the started workers live.

    Raises:
        RunnerError: The worker ended or was not ready in time; the message names its log.
    """
    presence = read_presence(paths.worker_lock)
    if presence.pid is not None:
        return presence
    if not presence.is_running:
        _start(paths, dict(os.environ if environ is None else environ))
    seen_at = time.monotonic()
    deadline = seen_at + _READY_WITHIN_S
    while time.monotonic() < deadline:
        presence = read_presence(paths.worker_lock)
        if presence.pid is not None:
            return presence
        if presence.is_running:
            seen_at = time.monotonic()
        elif time.monotonic() - seen_at >= _START_AGAIN_AFTER_S:
            _start(paths, dict(os.environ if environ is None else environ))
            seen_at = time.monotonic()
        time.sleep(_LOOK_EVERY_S)
    raise RunnerError(
        "the background worker did not become ready",
        hint=f"its log says why: {paths.worker_log}; `agentmon worker` runs it in the foreground",
    )


def _start(paths: Paths, environ: dict[str, str]) -> None:
    paths.logs_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
    # A worker that is started from inside a run must not pass for a part of that run.
    for name in ("TMUX", "TMUX_PANE", "AGENTMON_EXECUTION_ID"):
        environ.pop(name, None)
    with paths.worker_log.open("ab") as log:
        paths.worker_log.chmod(0o600)
        code = _launch(environ, log)
    if code:
        raise RunnerError("the background worker could not be started", hint=f"its log says why: {paths.worker_log}")


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
