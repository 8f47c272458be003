"""Scanners: what a program can be asked to do, learned from its own help, completions, manual and descriptions.

Each scanner names its source and stores nothing. A foreign program is run by ``runners.discovery.probe`` alone.
"""

from __future__ import annotations

from agentmon.runners.capability_scanners.capability_form import args_schema, command_tokens, to_capability
from agentmon.runners.capability_scanners.help_scan import scan_help
from agentmon.runners.capability_scanners.help_text import parse_help
from agentmon.runners.capability_scanners.scanned import ScannedCapability, ScannedOption, ValueJoin, ValueKind

__all__ = [
    "ScannedCapability",
    "ScannedOption",
    "ValueJoin",
    "ValueKind",
    "args_schema",
    "command_tokens",
    "parse_help",
    "scan_help",
    "to_capability",
]
