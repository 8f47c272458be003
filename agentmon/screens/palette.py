"""The command palette: every action of the screen by its words."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from textual.command import DiscoveryHit, Hit, Provider
from textual.content import Content

from agentmon.screens.themes import THEMES

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator

    from textual.command import Hits


class ActionProvider(Provider):
    """Finds the actions behind the keys that work on the screen now, and the themes."""

    async def search(self, query: str) -> Hits:
        """Yield the actions whose words match what was typed, best first."""
        matcher = self.matcher(query)
        for words, help_text, run in self._actions():
            score = matcher.match(words)
            if score > 0:
                yield Hit(score, matcher.highlight(words), run, text=words, help=help_text)

    async def discover(self) -> Hits:
        """Yield all actions, before anything was typed."""
        for words, help_text, run in self._actions():
            yield DiscoveryHit(Content(words), run, text=words, help=help_text)

    def _actions(self) -> Iterator[tuple[str, str, Callable[[], Awaitable[None] | None]]]:
        told: set[str] = set()
        for active in self.screen.active_bindings.values():
            binding = active.binding
            if binding.id is None or binding.id in told or binding.system or not active.enabled:
                continue
            if binding.id == "app.palette":
                continue
            told.add(binding.id)
            key = self.app.get_key_display(binding)
            run = partial(self.app.run_action, binding.action, active.node)
            words = (binding.tooltip or binding.description).rstrip(".")
            yield f"{binding.description}: {words}", key, partial(_discard, run)
        for theme in THEMES:
            kind = "dark" if theme.dark else "light"
            yield f"Theme: use the {kind} one", "", partial(setattr, self.app, "theme", theme.name)


async def _discard(run: Callable[[], Awaitable[bool]]) -> None:
    await run()
