"""A workspace's file of agents in words: how it stands, and all that it would run."""

from __future__ import annotations

import unicodedata
from typing import TYPE_CHECKING, Final

from textual.content import Content

from agentmon.domain.agent_files import FileTrust
from agentmon.domain.agents import DangerLevel
from agentmon.domain.plain_text import plain_line
from agentmon.screens.capability_preview import danger_line
from agentmon.widgets.cells import even_line, even_lines
from agentmon.widgets.local_time import local_time_text

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from agentmon.domain.agent_files import AgentFileState
    from agentmon.domain.agents import Agent

_LONGEST_LINE: Final = 4000
_LONGEST_TEXT: Final = 20_000
_WORDS: Final = {
    FileTrust.NONE: ("○ there is no such file", "$text-muted"),
    FileTrust.UNTRUSTED: ("◆ not trusted: nothing of it runs", "$warning"),
    FileTrust.CHANGED: ("◆ not the file that you trusted: nothing of it runs", "$warning"),
    FileTrust.TRUSTED: ("✓ trusted", "$success"),
    FileTrust.BROKEN: ("✗ it cannot be used", "$error"),
    FileTrust.GONE: ("○ the file that you trusted is gone; its agents are off", "$text-muted"),
}


def news_text(state: AgentFileState, name: str) -> str:
    """Return what a person is told when the workspace of this name is opened; empty when there is nothing to decide."""
    match state.trust:
        case FileTrust.UNTRUSTED:
            return f"{even_line(name)} brings agents of its own that are not used yet: 4, then T, shows what they run"
        case FileTrust.CHANGED:
            return f"The agents that {even_line(name)} brings along have changed: 4, then T, shows what they run now"
        case FileTrust.BROKEN:
            return f"The agents that {even_line(name)} brings along cannot be used: {even_line(state.problem)}"
        case FileTrust.NONE | FileTrust.TRUSTED | FileTrust.GONE:
            return ""


def trust_line(state: AgentFileState, now: datetime) -> Content:
    """Return how the file stands, with what is wrong with it."""
    words, colour = _WORDS[state.trust]
    since = "" if state.trusted_at is None else f"  trusted {local_time_text(state.trusted_at, now)}"
    lines = [Content.assemble((words, colour), (since, "$text-muted"))]
    lines += [Content(even_lines(text)) for text in (state.problem, state.hint) if text]
    return Content("\n").join(lines)


def file_text(state: AgentFileState) -> Content:
    """Return every agent of the file with all that it would run; empty where the file cannot be used."""
    return Content("\n").join([line for agent in state.agents for line in _agent_lines(state, agent)])


def _agent_lines(state: AgentFileState, agent: Agent) -> Iterator[Content]:
    yield Content.assemble((exact_line(agent.name), "bold"), (f"  {exact_line(agent.slug)}", "$text-muted"))
    yield from _fact("starts", agent.binary_path)
    yield from _fact("works in", agent.working_dir or "")
    yield from _fact("may see", " ".join(agent.env_allowlist))
    config = agent.session_config
    if config is not None:
        yield from _fact("always gets", " ".join(f"{name}={value}" for name, value in config.environment.items()))
    yield from _fact("is told", agent.instructions or "")
    for command in (one for one in state.commands if one.agent == agent.slug):
        heading = Content.assemble("  ", (exact_line(command.capability), "$primary"), f"  {exact_line(command.label)}")
        if command.danger_level > DangerLevel.SAFE:
            heading = Content.assemble(heading, "  ", danger_line(command.danger_level, ""))
        yield heading
        yield Content.assemble(("    $ ", "$text-muted"), exact_line(command.command_line))
        for line in command.prompt[:_LONGEST_TEXT].splitlines():
            yield Content.assemble(("    > ", "$text-muted"), exact_line(line))
    yield Content()


def _fact(name: str, words: str) -> Iterator[Content]:
    if words:
        for at, line in enumerate(words[:_LONGEST_TEXT].splitlines()):
            yield Content.assemble((f"  {name if not at else '':<12}", "$text-muted"), exact_line(line))


def exact_line(text: str) -> str:
    r"""Return a line in which nothing is left out: what cannot be seen stands as its number, such as ``\u200d``."""
    line = plain_line(text, max_characters=_LONGEST_LINE)
    if line.isascii():
        return line
    seen = (one if even_line(f"x{one}") != "x" else f"\\u{ord(one):04x}" for one in unicodedata.normalize("NFC", line))
    return even_line("".join(seen), max_characters=6 * _LONGEST_LINE)
