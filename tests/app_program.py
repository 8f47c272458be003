"""The application as a program of its own in a terminal, maybe with a fault built in."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.screens.boards import Place

START = """
import sys
from pathlib import Path
from agentmon.__main__ import leave
from agentmon.app import AgentmonApp
from agentmon.paths import find_paths
{extra}
app = App(find_paths(), Path(sys.argv[1]))
app.run()
leave(app.return_code or 0)
"""
"""``extra`` defines ``App``."""


def environment(place: Place, **more: str) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("TEXTUAL", "AGENTMON"))}
    usual = {"AGENTMON_HOME": str(place.paths.data_dir), "TERM": "xterm-256color", "AGENTMON_APP_WELCOME": "false"}
    usual["AGENTMON_AGENTS_SCAN_HOURS"] = "0"
    return kept | usual | more
