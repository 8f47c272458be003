"""Calls that have begun and not ended, kept while the lines in between are read."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import TYPE_CHECKING, Final

from agentmon.domain.history import HistoryOperation
from agentmon.domain.operations import OperationStatus, OperationType
from agentmon.usage.fields import objects_in

if TYPE_CHECKING:
    from collections.abc import Mapping

MAX_OPEN_CALLS: Final = 64
"""More at once have no agent; what goes beyond stays without an end."""
_KEPT: Final = [one.name for one in fields(HistoryOperation) if one.name != "differences"]
"""How it changed files is told when it ends."""


class OpenCalls:
    """The calls of one file that wait for their end; a part of the state of its reader."""

    __slots__ = ("_by_ref",)

    def __init__(self) -> None:
        self._by_ref: dict[str, HistoryOperation] = {}

    def begin(self, operation: HistoryOperation) -> HistoryOperation:
        """Take a call and return it; one that is open keeps the time at which it began."""
        known = self._by_ref.get(operation.ref)
        if known is not None:
            operation = replace(operation, started_at_ms=known.started_at_ms, place=known.place)
        self._by_ref[operation.ref] = operation
        if len(self._by_ref) > MAX_OPEN_CALLS:
            del self._by_ref[next(iter(self._by_ref))]
        return operation

    def end(
        self,
        ref: str,
        status: OperationStatus,
        *,
        at_ms: int,
        output_summary: str,
        error: str | None = None,
        duration_ms: int | None = None,
        differences: tuple[tuple[str, str], ...] = (),
    ) -> HistoryOperation | None:
        """Return the call with its end; None when none of that name is open."""
        known = self._by_ref.pop(ref, None)
        if known is None:
            return None
        finished_at_ms = max(at_ms, known.started_at_ms)
        return replace(
            known,
            status=status,
            output_summary=output_summary,
            error=error,
            finished_at_ms=finished_at_ms,
            duration_ms=finished_at_ms - known.started_at_ms if duration_ms is None else duration_ms,
            # What was refused, or went wrong, has changed nothing that counts.
            differences=differences if status is OperationStatus.SUCCESS else (),
        )

    def state(self) -> list[dict[str, object]]:
        """Return the calls as values of JSON."""
        return [{name: getattr(operation, name) for name in _KEPT} for operation in self._by_ref.values()]

    @classmethod
    def restore(cls, state: Mapping[str, object], name: str) -> OpenCalls:
        """Return what ``state`` gave, as it stands under the name; what is damaged is left out."""
        calls = cls()
        for written in objects_in(state, name):
            try:
                operation = HistoryOperation(
                    **{
                        **{name: written[name] for name in _KEPT},  # type: ignore[arg-type] # checked below
                        "type": OperationType(str(written["type"])),
                        "status": OperationStatus(str(written["status"])),
                    }
                )
            except (KeyError, TypeError, ValueError):
                continue
            if type(written["ref"]) is str and type(written["started_at_ms"]) is int:
                calls._by_ref[operation.ref] = operation
        return calls
