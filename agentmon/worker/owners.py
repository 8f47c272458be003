"""Whether the owner of a live execution is alive, known by its process's identity, and when its claims may be taken."""

from __future__ import annotations

import os
import platform
import time
from enum import Enum, auto
from typing import TYPE_CHECKING, Final

from agentmon.domain.clock import CLOCK_JITTER
from agentmon.domain.owners import Owner, ProcessIdentity
from agentmon.runners.host.process_table import find_boot_id, find_start_time

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime
    from pathlib import Path

    from agentmon.domain.ids import ExecutionId, WorkerId

_LOOKS_APART_S: Final = 1.0
"""Least time between the two looks that both have to find an owner of another folder dead."""


class OwnerLife(Enum):
    """What one look says of an owner."""

    ALIVE = auto()
    DEAD = auto()
    CANNOT_TELL = auto()


def this_owner(worker_id: WorkerId, run_dir: Path) -> Owner:
    """Return the worker of this process."""
    pid = os.getpid()
    identity = ProcessIdentity(pid=pid, start_time=find_start_time(pid) or "", boot_id=find_boot_id())
    return Owner(worker_id=worker_id, machine=platform.node(), identity=identity, run_dir=str(run_dir))


def look_at(owner: Owner, own: Owner) -> OwnerLife:
    """Return whether the owner lives, as far as this machine can tell.

    One that held the lock which the own worker holds now is dead. Any other is known by its process number, its start
    time and the boot of its machine.
    """
    if owner.run_dir in {"", own.run_dir}:
        return OwnerLife.DEAD
    if owner.machine != own.machine or owner.identity is None or own.identity is None:
        return OwnerLife.CANNOT_TELL
    if owner.identity.boot_id != own.identity.boot_id:
        return OwnerLife.DEAD
    is_same_process = find_start_time(owner.identity.pid) == owner.identity.start_time
    return OwnerLife.ALIVE if is_same_process else OwnerLife.DEAD


class Takeover:
    """Decides which claims of other workers are free to be taken.

    A claim of this folder's earlier worker is free at once, since the lock proves that worker's end. That of a worker
    of another folder is free when two looks found its process gone and its last heartbeat is old enough. One whose
    owner is on another machine is never free: nothing here can prove its end.
    """

    def __init__(self, own: Owner) -> None:
        self._own = own
        self._found_dead_at: dict[WorkerId, float] = {}

    def find_free(
        self, claims: Iterable[tuple[ExecutionId, Owner]], *, after_s: float, at: datetime
    ) -> tuple[ExecutionId, ...]:
        """Return the executions whose owner is gone for good.

        Args:
            claims: Executions with their owners.
            after_s: Least age, in seconds, of the last heartbeat of an owner of another folder.
            at: The time now.
        """
        lives: dict[WorkerId, bool] = {}
        free = []
        for execution_id, owner in claims:
            if owner.worker_id not in lives:
                lives[owner.worker_id] = self._is_gone(owner, after_s=after_s, at=at)
            if lives[owner.worker_id]:
                free.append(execution_id)
        self._found_dead_at = {known: since for known, since in self._found_dead_at.items() if known in lives}
        return tuple(free)

    def _is_gone(self, owner: Owner, *, after_s: float, at: datetime) -> bool:
        if look_at(owner, self._own) is not OwnerLife.DEAD:
            self._found_dead_at.pop(owner.worker_id, None)
            return False
        if owner.run_dir in {"", self._own.run_dir}:
            return True
        found_dead_at = self._found_dead_at.setdefault(owner.worker_id, time.monotonic())
        if time.monotonic() - found_dead_at < _LOOKS_APART_S:
            return False
        if owner.last_seen_at is None:
            return True
        if owner.last_seen_at > at + CLOCK_JITTER:
            # The clock was set back since then; what lives would have been seen again by now.
            return time.monotonic() - found_dead_at >= after_s
        return (at - owner.last_seen_at).total_seconds() >= after_s
