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
) -> None:
    """Return when the journal is on the disk, its folder is gone, the time is up, or somebody ends the run or its host.

    Args:
        journal: What is to be written.
        control: Where a kill comes from.
        folder: Of the execution.
        until: Monotonic time; infinite for an end that nobody but this host knows.
        signals: Those that the host got; one that asks it to end does.
    """
    while journal.is_behind and os.path.isdir(folder) and time.monotonic() < until:
        waker = None if signals is None else signals.waker
        files = [file for file in (control.wake_file, waker) if file is not None]
        select.select(files, (), (), _RETRY_INTERVAL_S)
        if signals is not None and any(number in STOP_SIGNALS for number in signals.take()):
            return
        control.clear_wake()
        if any(command.kind == "kill" for command in control.read_commands()):
            return
        journal.retry()
