"""The interpreter's own signal module: ``signal`` wraps it in enums, whose import costs 4 ms and 1 MB."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal
else:
    import _signal as signal

__all__ = ["signal"]
