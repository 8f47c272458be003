"""The command palette: every action of the screen by its words."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final, Protocol, runtime_checkable

from textual.command import DiscoveryHit, Hit, Provider
from textual.content import Content
from textual.theme import BUILTIN_THEMES

from agentmon.screens.bindings import key_word
from agentmon.screens.settings.themes import THEMES

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator

    from textual.command import Hits


_KEY_WIDTH: Final = 9


@runtime_checkable
class NamesActions(Protocol):
    """Whoever has actions whose words depend on the moment."""

    def action_words(self, action: str) -> str | None:
        """Return the words of the action as the binding names it; None when those of the table fit."""
        ...


@runtime_checkable
class HasWelcome(Protocol):
    """Whoever has something to say at a first start."""

    async def show_welcome(self) -> None:
        """Say it again."""
        ...


class ActionProvider(Provider):
    """Finds the actions behind the keys that work on the screen now, and the themes, by word and by sentence."""

    async def search(self, query: str) -> Hits:
        """Yield the actions whose words match what was typed, best first."""
        matcher = self.matcher(query)
        for name, words, key, run in self._actions():
            score = max(matcher.match(words), matcher.match(name))
            if score > 0:
                yield Hit(score, _with_key(matcher.highlight(words), key), run, text=words)

    async def discover(self) -> Hits:
        """Yield all actions, before anything was typed."""
        for _name, words, key, run in self._actions():
            yield DiscoveryHit(_with_key(Content(words), key), run, text=words)

    def _actions(self) -> Iterator[tuple[str, str, str, Callable[[], Awaitable[None] | None]]]:
        told: set[str] = set()
        for active in self.screen.active_bindings.values():
            binding = active.binding
            if binding.id is None or binding.id in told or binding.system or not active.enabled:
                continue
            if binding.id == "app.palette":
                continue
            told.add(binding.id)
            key = key_word(binding.key.split(",")[0])
            run = partial(self.app.run_action, binding.action, active.node)
            words = _own_words(active.node, binding.action) or (binding.tooltip or binding.description).rstrip(".")
            yield binding.description, words, key, partial(_discard, run)
        if isinstance(self.app, HasWelcome):
            yield "Welcome", "Show the welcome of the first start", "", self.app.show_welcome
        for name in self._themes():
            kind = name.removeprefix("agentmon-").replace("-", " ")
            yield "Theme", f"Use the {kind} theme", "", partial(setattr, self.app, "theme", name)

    def _themes(self) -> list[str]:
        """Return the names of agentmon's themes and of the person's own, without any of the toolkit's."""
        own = [theme.name for theme in THEMES]
        return [*own, *(name for name in self.app.available_themes if name not in own and name not in BUILTIN_THEMES)]


def _own_words(node: object, action: str) -> str | None:
    """Return how the screen or the application names the action at this moment; None when the table says it."""
    return node.action_words(action) if isinstance(node, NamesActions) else None


def _with_key(words: Content, key: str) -> Content:
    """Return one line with the key on the left, in a column of its own."""
    return Content.assemble((f"{key:>{_KEY_WIDTH}}  ", "$primary"), words)


async def _discard(run: Callable[[], Awaitable[bool]]) -> None:
    await run()
