"""The line of keys at the bottom: what the focused thing can do, as many as fit, the help always."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from rich.segment import Segment
from textual.binding import Binding
from textual.reactive import var
from textual.strip import Strip
from textual.widget import Widget

from agentmon.widgets.cells import cells, cut
from agentmon.widgets.guarded import Guarded
from agentmon.widgets.theme_style import theme_style

if TYPE_CHECKING:
    from textual import events
    from textual.screen import Screen

_HELP_ACTION: Final = "help"
_GAP: Final = 2
_TEXTUAL_KEYS: Final = ("tab", "shift+tab")
"""Keys that every screen has from Textual, before its own."""


class FooterKey(NamedTuple):
    """One key of the footer."""

    key: str
    """What Textual calls the key."""
    display: str
    description: str


class KeyFooter(Guarded, Widget, can_focus=False):
    """Draws the shown bindings of the screen in their order; those that do not fit are left out from the right."""

    DEFAULT_CSS = """
    KeyFooter { dock: bottom; height: 1; background: $footer-background; }
    """
    keys: var[tuple[FooterKey, ...]] = var((), init=False)
    """What is shown, in order; the help is kept to the last."""
    hidden_actions: var[frozenset[str]] = var(frozenset(), init=False)
    """Names of actions, without arguments, that make no sense at this moment."""
    _are_keys_read = False
    """Whether the bindings were read; not before the first paint, since they change several times until then."""

    def on_mount(self) -> None:
        """Follow the bindings of the screen."""
        self.screen.bindings_updated_signal.subscribe(self, self._read_keys)

    def watch_keys(self) -> None:
        """Draw the keys."""
        self.refresh()

    def watch_hidden_actions(self) -> None:
        """Leave out or bring back keys."""
        if self.is_attached:
            self._read_keys(self.screen)

    def render_line(self, y: int) -> Strip:
        """Return the line of keys."""
        width = self.size.width
        if y:
            return Strip.blank(width, self.rich_style)
        if not self._are_keys_read:
            self._are_keys_read = True
            self.set_reactive(KeyFooter.keys, self._present_keys())
        key_style = theme_style(self, "footer-key-foreground", is_bold=True)
        text_style = theme_style(self, "footer-description-foreground")
        segments = [Segment(" ", text_style)]
        used = 1
        for _start, footer_key in self._placed(width):
            words = cut(f" {footer_key.description}", max(0, width - used - cells(footer_key.display)))
            words += " " * min(_GAP, max(0, width - used - cells(footer_key.display) - cells(words)))
            segments += [Segment(footer_key.display, key_style), Segment(words, text_style)]
            used += cells(footer_key.display) + cells(words)
        segments.append(Segment(" " * max(0, width - used), text_style))
        return Strip(segments).crop(0, width)

    def on_click(self, event: events.Click) -> None:
        """Press the key that was clicked on."""
        event.stop()
        for start, footer_key in self._placed(self.size.width):
            if start <= event.x < start + _width(footer_key):
                self.app.simulate_key(footer_key.key)

    def _placed(self, width: int) -> list[tuple[int, FooterKey]]:
        """Return the keys that fit with their places."""
        last = self.keys[-1:]
        room = width - 1 - sum(_width(footer_key) for footer_key in last)
        placed: list[tuple[int, FooterKey]] = []
        at = 1
        for footer_key in self.keys[:-1]:
            if _width(footer_key) + _GAP > room:
                break
            placed.append((at, footer_key))
            room -= _width(footer_key) + _GAP
            at += _width(footer_key) + _GAP
        placed.extend((at, footer_key) for footer_key in last)
        return placed

    def _read_keys(self, screen: Screen[object]) -> None:
        if screen is self.screen and self._are_keys_read:
            self.keys = self._present_keys()

    def _present_keys(self) -> tuple[FooterKey, ...]:
        shown: dict[str, FooterKey] = {}
        for binding in self._in_order_of_table():
            name = binding.action.split("(", 1)[0].rsplit(".", 1)[-1]
            if binding.show and binding.description and name not in self.hidden_actions:
                display = self.app.get_key_display(binding)
                shown.setdefault(binding.action, FooterKey(binding.key, display, binding.description))
        last = [footer_key for action, footer_key in shown.items() if action.endswith(_HELP_ACTION)]
        others = [footer_key for action, footer_key in shown.items() if not action.endswith(_HELP_ACTION)]
        return (*others, *last)

    def _in_order_of_table(self) -> list[Binding]:
        """Return what can be pressed; a key that Textual's screens have too, such as tab, is no reason to be first."""
        place = {one.id: at for at, one in enumerate(self.screen.BINDINGS) if isinstance(one, Binding)}
        shown: list[Binding] = []
        displaced: list[Binding] = []
        for key, active in self.screen.active_bindings.items():
            if active.enabled:
                is_displaced = key in _TEXTUAL_KEYS and active.binding.id in place
                (displaced if is_displaced else shown).append(active.binding)
        for one in sorted(displaced, key=lambda one: place[one.id]):
            before = [at for at, other in enumerate(shown) if place.get(other.id, len(place)) < place[one.id]]
            shown.insert(max(before, default=-1) + 1, one)
        return shown


def _width(footer_key: FooterKey) -> int:
    return cells(footer_key.display) + 1 + cells(footer_key.description)
