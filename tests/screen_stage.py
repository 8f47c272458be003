"""An application that shows one screen at a time, and agents to fill forms with."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

from textual._context import visible_screen_stack
from textual.app import App

from agentmon.domain.agents import Agent, Capability
from agentmon.domain.any_command import ANY_COMMAND_KEY, ANY_COMMAND_SLUG
from agentmon.domain.ids import AgentId, CapabilityId
from agentmon.screens.settings.themes import THEMES
from agentmon.widgets.cells import even_line
from agentmon.widgets.guarded import Guarded
from tests.waiting import DEADLINE_S, next_look_s

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from textual.pilot import Pilot
    from textual.screen import Screen

    from agentmon.screens.frame import AttachRequested
    from agentmon.widgets.guarded import Failed

NASTY_TITLES = (
    "fix [/] bug",
    "see [b + x",
    "regex [a-z]+ [/foo]",
    "🎉 release 👨‍👩‍👧 party",
    "שלום עולם, right to left",
    "中文标题",
    "\x1b[31mred\x1b[0m \x1b]0;owned\x07title\x9b2J",
    "two\nlines",
    "x" * 10_000,
)


class Stage(Guarded, App[None]):
    """Shows whatever is pushed; remembers what screens ask of the application and what failed in them."""

    def __init__(self) -> None:
        super().__init__()
        self.ended: list[object] = []
        self.attach_requests: list[AttachRequested] = []
        self.failures: list[BaseException] = []
        for theme in THEMES:
            self.register_theme(theme)
        self.theme = THEMES[0].name
        # Every key of a pilot waits until nothing moves any more.
        self.animation_level = "none"

    def show(self, screen: Screen[object]) -> None:
        self.push_screen(screen, self.ended.append)

    def on_failed(self, message: Failed) -> None:
        self.failures.append(message.error)

    def on_attach_requested(self, message: AttachRequested) -> None:
        self.attach_requests.append(message)


async def until(pilot: Pilot[None], condition: Callable[[], bool], *, deadline_s: float = DEADLINE_S) -> None:
    """Let the application work until the condition holds, and what the screen is made of is there."""
    began = time.monotonic()
    while not (condition() and pilot.app.screen.is_mounted):
        assert time.monotonic() < began + deadline_s, f"it did not come true; shown is:\n{screen_text(pilot.app)}"
        await pilot.pause()
        await asyncio.sleep(next_look_s(began))


def screen_text(app: App[None]) -> str:
    """Return what the screen shows, one line per row."""
    # A dialog that is drawn for the first time keeps what is below it.
    visible_screen_stack.set(app._background_screens)
    return "\n".join(strip.text for strip in app.screen._compositor.render_strips())


def shown(title: str) -> str:
    """Return how a title looks on a screen, in a prefix that fits anywhere."""
    return even_line(title)[:12]


def agent(slug: str, *capabilities: Capability, name: str = "") -> Agent:
    return Agent(
        id=AgentId(f"agent-{slug}"),
        slug=slug,
        name=name or slug.capitalize(),
        binary_path=slug,
        capabilities=capabilities,
    )


def capability(key: str, schema: Mapping[str, object] | None = None, *, tokens: tuple[str, ...] = ()) -> Capability:
    return Capability(
        id=CapabilityId(f"capability-{key}"),
        agent_id=AgentId("agent"),
        key=key,
        label=key.capitalize(),
        command_tokens=tokens,
        args_schema={"type": "object", "properties": {}} if schema is None else schema,
    )


def any_command() -> Agent:
    schema = {
        "type": "object",
        "properties": {"argv": {"type": "array", "items": {"type": "string"}, "minItems": 1}},
        "required": ["argv"],
    }
    return Agent(
        id=AgentId("agent-command"),
        slug=ANY_COMMAND_SLUG,
        name="Any command",
        capabilities=(capability(ANY_COMMAND_KEY, schema, tokens=("{{args.argv}}",)),),
    )
