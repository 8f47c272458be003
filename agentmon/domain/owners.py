"""The owner of a live execution: the worker that claimed it, known by the identity of its process."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime
    from typing import Self

    from agentmon.domain.ids import WorkerId


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessIdentity:
    """One process, never another one that has its number later."""

    pid: int
    start_time: str
    """When the system says that it started, in the system's own words."""
    boot_id: str
    """The start of the machine; empty where the system has no such thing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Owner:
    """A worker as its heartbeat describes it."""

    worker_id: WorkerId
    machine: str = ""
    """The name of the machine; empty when it never said."""
    identity: ProcessIdentity | None = None
    run_dir: str = ""
    """The folder whose lock it holds for as long as it lives."""
    last_seen_at: datetime | None = None

    @classmethod
    def of_particulars(
        cls, worker_id: WorkerId, particulars: Mapping[str, object], *, last_seen_at: datetime | None
    ) -> Self:
        """Return the owner that a heartbeat's particulars describe; parts of another shape count as unknown."""
        pid = particulars.get("pid")
        identity = None
        if isinstance(pid, int):
            identity = ProcessIdentity(
                pid=pid,
                start_time=str(particulars.get("start_time", "")),
                boot_id=str(particulars.get("boot_id", "")),
            )
        return cls(
            worker_id=worker_id,
            machine=str(particulars.get("host", "")),
            identity=identity,
            run_dir=str(particulars.get("run_dir", "")),
            last_seen_at=last_seen_at,
        )

    def particulars(self, *, version: str) -> Mapping[str, object]:
        """Return what a heartbeat says of this owner."""
        identity = self.identity
        return {
            "host": self.machine,
            "pid": None if identity is None else identity.pid,
            "start_time": "" if identity is None else identity.start_time,
            "boot_id": "" if identity is None else identity.boot_id,
            "run_dir": self.run_dir,
            "version": version,
        }
