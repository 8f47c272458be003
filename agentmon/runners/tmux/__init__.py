"""agentmon's own tmux server; the only room that knows libtmux, which it imports on first use and in a thread."""

from __future__ import annotations

from agentmon.runners.tmux.pane_looks import PaneInfo, PaneLooks
from agentmon.runners.tmux.server import (
    DEFAULT_CONFIG_PATH,
    SessionHandle,
    SessionInfo,
    SessionListing,
    Tmux,
)
from agentmon.runners.tmux.version import MINIMUM_VERSION, TmuxVersion, find_tmux, find_version

__all__ = [
    "DEFAULT_CONFIG_PATH",
    "MINIMUM_VERSION",
    "PaneInfo",
    "PaneLooks",
    "SessionHandle",
    "SessionInfo",
    "SessionListing",
    "Tmux",
    "TmuxVersion",
    "find_tmux",
    "find_version",
]
