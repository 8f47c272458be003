"""What a capability would start, with arguments made up for looking at, and how dangerous the rules find that."""

from __future__ import annotations

import shlex
from dataclasses import replace
from typing import TYPE_CHECKING, Final, NamedTuple

from textual.content import Content

from agentmon.domain.agents import DangerLevel, InteractionMode
from agentmon.domain.danger import DangerFinding
from agentmon.domain.errors import AgentmonError
from agentmon.runners.adapters.prompt import DEFAULT_PROMPT_TEMPLATE, mode_of, start_command
from agentmon.runners.adapters.template import fill_text, render_tokens
from agentmon.screens.agents.argument_schema import sample_arguments
from agentmon.widgets.capability_rows import DANGER_WORDS
from agentmon.widgets.cells import even_line, even_lines

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import TypeAlias

    from agentmon.domain.agents import Agent, Capability

    Judge: TypeAlias = Callable[[Sequence[str]], DangerFinding]
    """Returns how dangerous the words of a command line are, and why."""

_TITLE: Final = "TITLE"
_DESCRIPTION: Final = "DESCRIPTION"
_SESSION: Final = "SESSION"
_LONGEST: Final = 1200


class PreviewWord(NamedTuple):
    """One word of the command line."""

    text: str
    is_filled: bool = False
    """Whether an argument or the task is in it."""


class Preview(NamedTuple):
    """What would be started."""

    full: tuple[PreviewWord, ...] = ()
    """With every argument."""
    least: tuple[PreviewWord, ...] = ()
    """With those alone that cannot be left out."""
    message: str = ""
    """The first message of a conversation."""
    finding: DangerFinding = DangerFinding()
    """What the rules say to it."""
    problem: str = ""
    """Why nothing can be started; empty when something can."""
    hint: str = ""


def preview_of(agent: Agent, capability: Capability, judge: Judge | None = None) -> Preview:
    """Return what the capability would start; without a judge it is not asked how dangerous that is."""
    schema = capability.args_schema
    samples, least_samples = sample_arguments(schema), sample_arguments(schema, is_least=True)
    try:
        full = _words(agent, capability, samples)
        least = _words(agent, capability, least_samples)
        message = _message(agent, capability, samples)
    except AgentmonError as error:
        return Preview(problem=str(error), hint=error.hint)
    if not full or not full[0].text:
        return Preview(problem="no program is named", hint="the first word of the command is the program here")
    finding = DangerFinding() if judge is None else judge([word.text for word in full])
    return Preview(full=full, least=least, message=message, finding=finding)


def preview_text(preview: Preview, *, max_characters: int = _LONGEST) -> Content:
    """Return the preview as lines of at most so many characters: what is filled in stands out."""
    if preview.problem:
        return Content.assemble(
            (f"✗ {even_lines(preview.problem)}", "$error"),
            (f"\n{even_lines(preview.hint)}" if preview.hint else "", "$text-muted"),
        )
    lines = [_line("$ ", preview.full, max_characters)]
    if preview.least != preview.full:
        lines.append(_line("at least  ", preview.least, max_characters))
    if preview.message:
        first = even_line(preview.message, max_characters=_LONGEST)
        lines.append(Content.assemble(("says  ", "$text-muted"), first))
    if preview.finding.level > DangerLevel.SAFE:
        why = "; ".join(f"{one.command}: {one.text}" for one in preview.finding.reasons)
        lines.append(danger_line(preview.finding.level, why))
    return Content("\n").join(lines)


def danger_line(level: DangerLevel, why: str) -> Content:
    """Return the words of a level with its reason."""
    words, style = DANGER_WORDS[level]
    colour = {"warning": "$warning", "bad": "$error"}.get(style, "")
    reason = even_line(why, max_characters=_LONGEST)
    return Content.assemble((words or "harmless", colour), (f"  {reason}" if reason else "", "$text-muted"))


def _line(before: str, words: Sequence[PreviewWord], max_characters: int) -> Content:
    parts: list[str | tuple[str, str]] = [(before, "$text-muted")]
    room = max_characters
    for at, word in enumerate(words):
        if room <= 0:
            parts.append((f" … and {len(words) - at} more", "$text-muted"))
            break
        quoted = even_line(shlex.quote(word.text), max_characters=_LONGEST)
        room -= len(quoted) + 1
        parts += [" " if at else "", (quoted, "$primary" if word.is_filled else "")]
    return Content.assemble(*parts)


def _words(agent: Agent, capability: Capability, args: Mapping[str, object]) -> tuple[PreviewWord, ...]:
    words = [PreviewWord(word) for word in _head(agent, capability, args)]
    for token in capability.command_tokens:
        one = replace(capability, command_tokens=(token,))
        rendered = render_tokens(one, task_title=_TITLE, args=args, prompt_additions="")
        words += [PreviewWord(word, "{{" in token) for word in rendered]
    return tuple(words)


def _head(agent: Agent, capability: Capability, args: Mapping[str, object]) -> tuple[str, ...]:
    """Return the words before those of the capability."""
    if capability.interaction_mode is InteractionMode.TEMPLATE:
        return (*([agent.binary_path] if agent.binary_path else []), *agent.base_args)
    bare = replace(capability, command_tokens=())
    return start_command(agent, bare, mode_of(agent, capability), task_title=_TITLE, args=args, session_id=_SESSION)


def _message(agent: Agent, capability: Capability, args: Mapping[str, object]) -> str:
    if capability.interaction_mode is InteractionMode.TEMPLATE:
        return ""
    told = fill_text(
        capability.prompt_template or DEFAULT_PROMPT_TEMPLATE,
        capability=capability,
        task_title=_TITLE,
        task_description=_DESCRIPTION,
        args=args,
        prompt_additions="",
    )
    instructions = (agent.instructions or "").strip()
    return "\n\n".join(part for part in (instructions, told) if part)
