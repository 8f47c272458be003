"""Presets: programs that agentmon knows from data files, and which of them this machine has.

The files hold facts about programs; what a person changes lives in the database. Files are read here and nowhere else.
"""

from __future__ import annotations

from agentmon.runners.presets.agents import agents_of
from agentmon.runners.presets.installed import find_installed
from agentmon.runners.presets.library import PRESETS_DIR, load_library, load_presets
from agentmon.runners.presets.preset import (
    PresetAgent,
    PresetCapability,
    PresetLibrary,
    PresetLogin,
    PresetProblem,
)

__all__ = [
    "PRESETS_DIR",
    "PresetAgent",
    "PresetCapability",
    "PresetLibrary",
    "PresetLogin",
    "PresetProblem",
    "agents_of",
    "find_installed",
    "load_library",
    "load_presets",
]
