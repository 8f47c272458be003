"""Asks the sources of a scan about one agent, and puts what they tell into the form of capabilities."""

from __future__ import annotations

import asyncio
import re
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from agentmon.domain.agents import CapabilitySource, DangerLevel
from agentmon.domain.errors import AgentmonError, RunnerError, UsageError
from agentmon.domain.programs import ScanProgress
from agentmon.runners.capability_scanners import scan_help, to_capability
from agentmon.runners.capability_scanners.answer import question as ask_about
from agentmon.runners.capability_scanners.answer import read_answer
from agentmon.runners.capability_scanners.completion import scan_completion
from agentmon.runners.capability_scanners.fig import scan_fig
from agentmon.runners.capability_scanners.man import read_page, scan_man
from agentmon.runners.capability_scanners.merging import merge
from agentmon.runners.capability_scanners.program_place import ProgramPlace, find_place
from agentmon.runners.capability_scanners.roff import Page
from agentmon.runners.danger import load_danger_rules
from agentmon.runners.discovery.probe import ask as ask_program
from agentmon.runners.environment import select_environment
from agentmon.runners.mcp_servers.tools import scan_tools

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from agentmon.domain.agents import Agent, Capability
    from agentmon.domain.danger import DangerFinding, DangerRules
    from agentmon.domain.events import Actor
    from agentmon.paths import Paths
    from agentmon.runners.capability_scanners.merging import MergedCapability
    from agentmon.runners.capability_scanners.scanned import ScannedCapability
    from agentmon.services.agent_asking import AgentAsking

_STEPS: Final[Mapping[CapabilitySource, str]] = {
    CapabilitySource.SCAN_HELP: "asking for its help",
    CapabilitySource.SCAN_MAN: "reading its manual page",
    CapabilitySource.SCAN_FIG: "reading its Fig description",
    CapabilitySource.SCAN_COMPLETION: "reading its completion files",
    CapabilitySource.SCAN_MCP: "asking the MCP server for its tools",
    CapabilitySource.LLM_GENERATED: "asking an AI agent",
}
_FILES: Final = frozenset({CapabilitySource.SCAN_MAN, CapabilitySource.SCAN_FIG, CapabilitySource.SCAN_COMPLETION})
_MOST_FOUND: Final = 1000
_OPTION: Final = re.compile(r"\{\{\s*([^{}\s]+)\s+args\.[^{}\s]+\s*\}\}")
_PLACEHOLDER: Final = re.compile(r"\{\{[^{}]*\}\}")


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundCapability:
    """A capability as the sources tell it, before it is compared with what is stored."""

    capability: Capability
    sources: tuple[CapabilitySource, ...]
    argument_sources: Mapping[str, tuple[CapabilitySource, ...]] = field(default_factory=dict)
    danger_reasons: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Question:
    """What is asked, of each source alike."""

    agent: Agent
    place: ProgramPlace
    environ: Mapping[str, str]
    subcommand: tuple[str, ...]
    rules: DangerRules
    on_problem: Callable[[str], None]
    on_step: Callable[[str], None]
    """Told what is done now."""
    ask: str | None
    actor: Actor


class CapabilitySources:
    """Everything that can be asked what a program can do."""

    def __init__(self, paths: Paths, asking: AgentAsking) -> None:
        self._paths = paths
        self._asking = asking

    async def read(
        self,
        agent: Agent,
        sources: Sequence[CapabilitySource],
        *,
        environ: Mapping[str, str],
        subcommand: tuple[str, ...],
        on_progress: Callable[[ScanProgress], None],
        on_problem: Callable[[str], None],
        ask: str | None,
        actor: Actor,
    ) -> tuple[FoundCapability, ...]:
        """Return what the sources tell; see ``CapabilityScanService.scan``."""
        rules = await asyncio.to_thread(load_danger_rules, self._paths.danger_rules_file)
        done = 0

        def tell(step: str) -> None:
            on_progress(ScanProgress(step=step, done=done, total=len(sources)))

        question = _Question(
            agent=agent,
            place=await asyncio.to_thread(find_place, agent.binary_path, environ),
            environ=environ,
            subcommand=subcommand,
            rules=rules,
            on_problem=on_problem,
            on_step=tell,
            ask=ask,
            actor=actor,
        )
        scans: list[Sequence[ScannedCapability]] = []
        others: list[FoundCapability] = []
        for done, source in enumerate(sources):  # noqa: B007 - tell reads it
            tell(_STEPS[source])
            try:
                match source:
                    case CapabilitySource.SCAN_MCP:
                        others += await _tools(question)
                    case CapabilitySource.LLM_GENERATED:
                        others += await self._generated(question)
                    case _:
                        scans.append(await _scanned(question, source))
            except AgentmonError as error:
                on_problem(_sentence(error))
            except RecursionError:
                on_problem(f"{_STEPS[source]} ended: it is nested too deep to be read")
        if not others and not any(scans):
            # Where one has told something, nobody misses the files of the others.
            for source in sources:
                if source in _FILES:
                    on_problem(_nothing_words(source, (question.place.name, *subcommand)))
        done = len(sources)
        tell("comparing")
        return (*(_found(question, merged) for merged in merge(scans)[:_MOST_FOUND]), *others)

    async def _generated(self, question: _Question) -> list[FoundCapability]:
        """Have an AI agent describe the program from the program's own words, which are all that it may use."""
        asked = await self._asking.choose(question.ask)
        program, subcommand = question.place.name, question.subcommand
        text = await _own_words(question)
        title = f"What can {' '.join((program, *subcommand))} be asked to do?"
        said = await self._asking.ask(
            asked,
            title,
            ask_about(program, text, subcommand=subcommand),
            actor=question.actor,
            on_start=question.on_step,
        )
        answer = read_answer(said, program=program, text=text, agent_id=question.agent.id)
        for problem in answer.problems:
            question.on_problem(problem)
        return [_judged(question, capability) for capability in answer.capabilities]


async def _scanned(question: _Question, source: CapabilitySource) -> list[ScannedCapability]:
    place, subcommand = question.place, question.subcommand
    told: Sequence[ScannedCapability]
    match source:
        case CapabilitySource.SCAN_HELP:
            told = await scan_help(place.path, subcommand=subcommand, environ=question.environ)
        case CapabilitySource.SCAN_MAN:
            told = await asyncio.to_thread(scan_man, place, subcommand=subcommand)
        case CapabilitySource.SCAN_FIG:
            told = await asyncio.to_thread(scan_fig, place, subcommand=subcommand)
        case CapabilitySource.SCAN_COMPLETION:
            told = await asyncio.to_thread(scan_completion, place)
        case _:
            raise UsageError(f"a scan cannot ask {source.value}")
    deepest = len(subcommand) + 1
    return [one for one in told if one.subcommand[: len(subcommand)] == subcommand and len(one.subcommand) <= deepest]


async def _tools(question: _Question) -> list[FoundCapability]:
    agent = question.agent
    told = await scan_tools(
        (question.place.path, *agent.base_args),
        agent_id=agent.id,
        environ=select_environment(question.environ, allowlist=agent.env_allowlist),
        working_dir=agent.working_dir or str(question.place.home),
    )
    for problem in told.problems:
        question.on_problem(problem)
    if not told.capabilities and not told.problems:
        question.on_problem(f"the MCP server {question.place.name} has no tools")
    return [
        FoundCapability(
            capability=capability,
            sources=(CapabilitySource.SCAN_MCP,),
            danger_reasons=told.danger_reasons[capability.key],
        )
        for capability in told.capabilities
    ]


async def _own_words(question: _Question) -> str:
    """Return the program's own help, and its manual page behind it, which often tells more.

    Raises:
        RunnerError: It has neither.
    """
    place, subcommand = question.place, question.subcommand
    answer = await ask_program(place.path, (*subcommand, "--help"), environ=question.environ)
    parts = [answer.output.strip()] if answer.problem is None else []
    page = await asyncio.to_thread(read_page, place, "-".join((place.name, *subcommand)))
    if page is not None:
        paragraphs = await asyncio.to_thread(Page(page).paragraphs)
        parts.append("\n".join(f"{paragraph.tag}\n    {paragraph.text}" for paragraph in paragraphs))
    text = "\n\n".join(part for part in parts if part)
    if not text:
        raise RunnerError(
            f"there is nothing to read about {' '.join((place.name, *subcommand))}: no help and no manual page",
            hint="an agent is not asked what it could only guess",
        )
    return text


def _found(question: _Question, merged: MergedCapability) -> FoundCapability:
    finding = question.rules.judge((question.place.name, *merged.scanned.subcommand))
    return FoundCapability(
        capability=to_capability(merged.scanned, agent_id=question.agent.id, danger_level=finding.level),
        sources=merged.sources,
        argument_sources=merged.option_sources,
        danger_reasons=_reasons(finding),
    )


def _judged(question: _Question, capability: Capability) -> FoundCapability:
    """Return what an agent wrote at the level of the rules, with all its options given; never as quite safe."""
    words = [word for token in capability.command_tokens for word in _spelled(token)]
    finding = question.rules.judge((question.place.name, *words))
    level = max(finding.level, DangerLevel.CAUTION)
    names = capability.args_schema["properties"]
    return FoundCapability(
        capability=replace(capability, danger_level=level, requires_approval=level >= DangerLevel.DANGEROUS),
        sources=(CapabilitySource.LLM_GENERATED,),
        argument_sources=dict.fromkeys(names if isinstance(names, dict) else (), (CapabilitySource.LLM_GENERATED,)),
        danger_reasons=_reasons(finding) or ("an AI agent has written it",),
    )


def _spelled(token: str) -> list[str]:
    """Return what a word of a capability says whatever its arguments are."""
    option = _OPTION.fullmatch(token)
    if option is not None:
        return [option[1].rstrip("*+=")]
    fixed = _PLACEHOLDER.sub("", token)
    return [fixed] if fixed else []


def _reasons(finding: DangerFinding) -> tuple[str, ...]:
    return tuple(f"{reason.command}: {reason.text}" for reason in finding.reasons)


def _sentence(error: AgentmonError) -> str:
    return f"{error}; {error.hint}" if error.hint else str(error)


def _nothing_words(source: CapabilitySource, words: Sequence[str]) -> str:
    named = " ".join(words)
    match source:
        case CapabilitySource.SCAN_MAN:
            return f"there is no manual page of {named} with options in it"
        case CapabilitySource.SCAN_FIG:
            return f"there is no Fig description of {named}; `npm install -g @withfig/autocomplete` brings many"
        case _:
            return f"no completion file tells anything of {named}"
