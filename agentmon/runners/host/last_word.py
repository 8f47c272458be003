"""The end of a run on a full disk: nobody but its host knows how it ended, so the host stays until that is written."""

from __future__ import annotations

import os
import select

TYPE_CHECKING = False
if TYPE_CHECKING:
    from agentmon.runners.host.control import ControlChannel
    from agentmon.runners.host.journal import Journal

_RETRY_INTERVAL_S = 0.5


def wait_until_written(journal: Journal, control: ControlChannel, folder: str) -> None:
    """Return when the journal is on the disk, its folder is gone, or a person killed the run."""
    while journal.is_behind and os.path.isdir(folder):
        files = [] if control.wake_file is None else [control.wake_file]
        select.select(files, (), (), _RETRY_INTERVAL_S)
        control.clear_wake()
        if any(command.kind == "kill" for command in control.read_commands()):
            return
        journal.retry()
