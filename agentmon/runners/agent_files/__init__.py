"""Files of agents in TOML: presets with what a person adds to them, read and written.

The form is that of presets, so that a file can become one; what a person alone decides stands beside it.
"""

from __future__ import annotations

from agentmon.runners.agent_files.place import AGENT_FILE, FileRead, read_workspace_file
from agentmon.runners.agent_files.reading import read_agents_text, read_setup, read_verification
from agentmon.runners.agent_files.writing import write_agents_text

__all__ = [
    "AGENT_FILE",
    "FileRead",
    "read_agents_text",
    "read_setup",
    "read_verification",
    "read_workspace_file",
    "write_agents_text",
]
