"""The end of a run on a full disk: nobody but its host knows how it ended, so the host stays until that is written."""

from __future__ import annotations

import math
import os
import select
import time

from agentmon.runners.host.signals import STOP_SIGNALS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from agentmon.runners.host.control import ControlChannel
    from agentmon.runners.host.journal import Journal
    from agentmon.runners.host.signals import SignalInbox

_RETRY_INTERVAL_S = 0.5


def wait_until_written(
    journal: Journal,
    control: ControlChannel,
    folder: str,
    *,
    until: float = math.inf,
    signals: SignalInbox | None = None,
    is_stopped: bool = False,
) -> None:
    """Return when the journal is on the disk, its folder is gone, the time is up, or somebody ends the run or its host.

    Of a run that was told to end and whose journal cannot say so the folder says it, which takes no space.

    Args:
        journal: What is to be written.
        control: Where a kill comes from.
        folder: Of the execution.
        until: Monotonic time; infinite for an end that nobody but this host knows.
        signals: Those that the host got; one that asks it to end does.
        is_stopped: Whether the run was told to end; a kill during the wait tells it too.
    """
    while journal.is_behind and os.path.isdir(folder) and time.monotonic() < until:
        waker = None if signals is None else signals.waker
        files = [file for file in (control.wake_file, waker) if file is not None]
        select.select(files, (), (), _RETRY_INTERVAL_S)
        if signals is not None and any(number in STOP_SIGNALS for number in signals.take()):
            break
        control.clear_wake()
        if any(command.kind == "kill" for command in control.read_commands()):
            is_stopped = True
            break
        journal.retry()
    if is_stopped and journal.is_behind:
        _mark_as_stopped(folder)


def _mark_as_stopped(folder: str) -> None:
    """Give a file that goes with its host the name of the mark."""
    for name in ("reserve", "wake"):
        try:
            os.rename(os.path.join(folder, name), os.path.join(folder, "stopped"))
        except OSError:
            continue
        return
