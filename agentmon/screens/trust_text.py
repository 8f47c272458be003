"""A workspace's file of agents in words: how it stands, and all that it would run."""

from __future__ import annotations

import json
import shlex
import unicodedata
from typing import TYPE_CHECKING, Final

from textual.content import Content

from agentmon.domain.agent_files import FileTrust
from agentmon.domain.agents import DangerLevel
from agentmon.domain.plain_text import plain_line
from agentmon.screens.capability_preview import danger_line
from agentmon.widgets.arguments_form import argument_specs
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


def file_text(state: AgentFileState, width: int) -> Content:
    """Return every agent of the file with all that it would run, in lines of so many cells."""
    return Content("\n").join([line for agent in state.agents for line in _agent_lines(state, agent, width)])


def _agent_lines(state: AgentFileState, agent: Agent, width: int) -> Iterator[Content]:
    yield Content.assemble((exact_line(agent.name), "bold"), (f"  {exact_line(agent.slug)}", "$text-muted"))
    for name, words in _facts(agent).items():
        yield from _lines(f"  {name:<12}", words, width)
    commands = [one for one in state.commands if one.agent == agent.slug]
    for command, capability in zip(commands, agent.capabilities, strict=True):
        heading = Content.assemble("  ", (exact_line(command.capability), "$primary"), f"  {exact_line(command.label)}")
        if command.danger_level > DangerLevel.SAFE:
            heading = Content.assemble(heading, "  ", danger_line(command.danger_level, ""))
        yield heading
        yield from _lines("    $ ", command.command_line, width)
        yield from _lines("    > ", command.prompt, width)
        for spec in argument_specs(capability.args_schema):
            if spec.default is not None:
                yield from _lines(f"    {exact_line(spec.name)} = ", _value_text(spec.default), width)
    yield Content()


def _facts(agent: Agent) -> dict[str, str]:
    """Return what an agent is started with beside the words of its capabilities; empty texts say nothing."""
    config = agent.session_config
    facts = {
        "starts": agent.binary_path,
        "works in": agent.working_dir or "",
        "may see": " ".join(agent.env_allowlist),
        "model": agent.model or "",
        "own tools": " ".join(f"{'' if is_allowed else 'not '}{name}" for name, is_allowed in agent.tools.items()),
        "is told": agent.instructions or "",
    }
    if config is None:
        return facts
    return facts | {
        "always gets": " ".join(f"{name}={value}" for name, value in config.environment.items()),
        "own screen": shlex.join(config.screen_args),
        "goes on by": shlex.join(config.resume_flags),
        "lists by": shlex.join(config.list_sessions_command),
        "adds": "\n".join(f"{purpose}: {shlex.join(words)}" for purpose, words in config.flags.items()),
    }


def _value_text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _lines(before: str, text: str, width: int) -> Iterator[Content]:
    """Return a text behind some words, each of its rows below the first; none for an empty text."""
    if not text:
        return
    room = max(1, width - cells(before))
    shown = text[:_MOST_SHOWN]
    rows = [row for line in shown.splitlines() or [""] for row in wrapped(exact_line(line), room)]
    for at, row in enumerate(rows):
        yield Content.assemble((before if not at else " " * cells(before), "$text-muted"), row)
    if len(text) > _MOST_SHOWN:
        words = f"✗ {len(text) - _MOST_SHOWN:,} characters more than can be shown: look into the file itself"
        yield Content.styled(words, "$error")


def exact_line(text: str) -> str:
    r"""Return a line in which nothing is left out: what cannot be seen stands as its number, such as ``\u200d``."""
    line = plain_line(text, max_characters=_MOST_SHOWN)
    if line.isascii():
        return line
    seen = (one if even_line(f"x{one}") != "x" else f"\\u{ord(one):04x}" for one in unicodedata.normalize("NFC", line))
    return even_line("".join(seen), max_characters=6 * _MOST_SHOWN)
