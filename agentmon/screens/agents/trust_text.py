"""A workspace's file of agents in words: how it stands, and all that it would run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from textual.content import Content

from agentmon.domain.agent_files import FileTrust, default_text, file_facts
from agentmon.domain.agents import DangerLevel
from agentmon.domain.plain_text import exact_line
from agentmon.screens.agents.capability_preview import danger_line
from agentmon.widgets.cells import cells, even_line, even_lines
from agentmon.widgets.local_time import local_time_text
from agentmon.widgets.text_rows import wrapped

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from agentmon.domain.agent_files import AgentFileState
    from agentmon.domain.agents import Agent

_MOST_SHOWN: Final = 20_000
"""Characters of one text; what is longer says that there is more."""
_WORDS: Final = {
    FileTrust.NONE: ("○ there is no such file", "$text-muted"),
    FileTrust.UNTRUSTED: ("◆ not trusted: nothing of it runs", "$warning"),
    FileTrust.CHANGED: ("◆ not the file that you trusted: nothing of it runs", "$warning"),
    FileTrust.TRUSTED: ("✓ trusted", "$success"),
    FileTrust.BROKEN: ("✗ it cannot be used", "$error"),
    FileTrust.GONE: ("○ the file that you trusted is gone; its agents are off", "$text-muted"),
}


def trust_line(state: AgentFileState, now: datetime) -> Content:
    """Return how the file stands, with what is wrong with it."""
    words, colour = _WORDS[state.trust]
    since = "" if state.trusted_at is None else f"  trusted {local_time_text(state.trusted_at, now)}"
    lines = [Content.assemble((words, colour), (since, "$text-muted"))]
    lines += [Content(even_lines(text)) for text in (state.problem, state.hint, *state.notes) if text]
    return Content("\n").join(lines)


def file_text(state: AgentFileState, width: int) -> Content:
    """Return all that the file would run, with every agent of it, in lines of so many cells."""
    lines = [line for agent in state.agents for line in _agent_lines(state, agent, width)]
    of_project = {"In each new worktree": state.setup, "To verify the work of AI agents": state.verification}
    for heading, command in reversed(of_project.items()):
        if command:
            lines = [Content.styled(heading, "bold"), *_lines("    $ ", command, width), Content(), *lines]
    return Content("\n").join(lines)


def _agent_lines(state: AgentFileState, agent: Agent, width: int) -> Iterator[Content]:
    is_off = "" if agent.is_active else "  off"
    yield Content.assemble((_even(agent.name), "bold"), (f"  {_even(agent.slug)}{is_off}", "$text-muted"))
    for name, words in file_facts(agent).items():
        yield from _lines(f"  {name:<12}", words, width)
    for command in (one for one in state.commands if one.agent == agent.slug):
        heading = Content.assemble("  ", (_even(command.capability), "$primary"), f"  {_even(command.label)}")
        if command.danger_level > DangerLevel.SAFE:
            heading = Content.assemble(heading, "  ", danger_line(command.danger_level, ""))
        if command.requires_approval:
            heading = Content.assemble(heading, ("  asks first", "$text-muted"))
        yield heading
        yield from _lines("    $ ", command.command_line, width)
        yield from _lines("    > ", command.prompt, width)
        for name, value in command.defaults.items():
            yield from _lines(f"    {_even(name)} = ", default_text(value), width)
    yield Content()


def _lines(before: str, text: str, width: int) -> Iterator[Content]:
    """Return a text behind some words, each of its rows below the first; none for an empty text."""
    if not text:
        return
    room = max(1, width - cells(before))
    shown = text[:_MOST_SHOWN]
    rows = [row for line in shown.splitlines() or [""] for row in wrapped(_even(line), room)]
    for at, row in enumerate(rows):
        yield Content.assemble((before if not at else " " * cells(before), "$text-muted"), row)
    if len(text) > _MOST_SHOWN:
        words = f"✗ {len(text) - _MOST_SHOWN:,} characters more than can be shown: look into the file itself"
        yield Content.styled(words, "$error")


def _even(text: str) -> str:
    return even_line(exact_line(text), max_characters=6 * _MOST_SHOWN)
