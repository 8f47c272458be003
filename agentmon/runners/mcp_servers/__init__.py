"""MCP servers: programs that offer tools over their standard input and output; asked for them, and one tool called.

The client library is an extra of the package and imported late: it takes most of a second.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

_CALL: Final = "agentmon.runners.mcp_servers.call"


def call_words(server: Sequence[str], tool_words: Sequence[str]) -> tuple[str, ...]:
    """Return the command that starts a server, has it do one tool's work and prints what came of it.

    Args:
        server: The command that starts it.
        tool_words: The tool's name, then its arguments as ``name=value``; a list has its name once for each item.
    """
    # -P: a folder of the project must not stand in for a package of Python.
    return (sys.executable, "-P", "-m", _CALL, str(len(server)), *server, *tool_words)
