"""Pressing keys in a dialog of a real agent, which is drawn before it listens."""

from __future__ import annotations

import asyncio
import re
import subprocess
from dataclasses import dataclass
from typing import TYPE_CHECKING

from agentmon.runners.screens.reading import ScreenText, read_screen
from agentmon.runners.screens.rules import find_rules
from tests.waiting import until

if TYPE_CHECKING:
    from pathlib import Path

HEARD_WITHIN_S = 2.0
_CHOSEN = re.compile(r"^[\s│┃]*(?:[❯›>]\s+\S|●\s*\d\.)")

Dialog = tuple[str, tuple[str, ...]]


@dataclass(frozen=True, kw_only=True)
class AgentPane:
    """The pane of one agent in its own screen."""

    slug: str
    socket: Path
    session: str

    def ask_tmux(self, command: str, *words: str) -> str:
        """Return what tmux says to a command for the pane; blocks."""
        argv = ["tmux", "-S", str(self.socket), command, "-t", f"={self.session}:", *words]
        return subprocess.run(argv, check=True, capture_output=True, text=True, timeout=10).stdout

    def dialog(self) -> Dialog | None:
        """Return what the agent asks, and the lines with a mark of choice; None when it asks nothing. Blocks."""
        screen = ScreenText.of("", self.ask_tmux("capture-pane", "-p").split("\n"))
        finding = read_screen(find_rules(self.slug), screen)
        if finding is None or not finding.state.is_asking:
            return None
        return f"{finding.state} {finding.note}", tuple(line for line in screen.lines if _CHOSEN.match(line))

    async def press(self, key: str) -> None:
        """Press a key, named as tmux names it, until the dialog shows that it heard it: once, and once more."""
        before = await asyncio.to_thread(self.dialog)
        assert before is not None, f"{self.slug} shows no dialog"

        async def is_heard() -> bool:
            return await asyncio.to_thread(self.dialog) != before

        await asyncio.to_thread(self.ask_tmux, "send-keys", key)
        try:
            await until(is_heard, f"{key} in {before[0]}", deadline_s=HEARD_WITHIN_S)
        except AssertionError:
            await asyncio.to_thread(self.ask_tmux, "send-keys", key)
            await until(is_heard, f"{key} in {before[0]}, pressed twice")
