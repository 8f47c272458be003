"""What sort of program one is that nobody has described: told by its place and its package."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from agentmon.domain.agents import ToolType

if TYPE_CHECKING:
    from agentmon.domain.programs import Program

_SHELL_PACKAGES: Final = frozenset(
    {
        *("bash", "bsdutils", "busybox", "coreutils", "dash", "diffutils", "debianutils", "findutils", "fish"),
        *("gawk", "grep", "gzip", "hostname", "less", "mawk", "moreutils", "procps", "procps-ng", "psmisc"),
        *("sed", "tar", "util-linux", "which", "xz-utils", "zsh"),
    }
)


def guess_tool_type(program: Program) -> ToolType:
    """Return a daemon for what ends in d in a system folder, a shell utility by its package, else a tool."""
    if program.package_name in _SHELL_PACKAGES:
        return ToolType.SHELL_UTIL
    folders = {Path(path).parent.name for path in (program.path, program.real_path)}
    return ToolType.DAEMON if program.name.endswith("d") and "sbin" in folders else ToolType.CLI_TOOL
