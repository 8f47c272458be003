"""``agentmon agents learn``: what a program can be asked to do, as its help, its files and others tell it."""

import functools
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

import typer

from agentmon.bootstrap import Services
from agentmon.cli import exit_codes
from agentmon.cli.columns import table, terminal_width
from agentmon.cli.context import JsonOption, with_services
from agentmon.cli.json_form import json_form
from agentmon.cli.output import say, say_document, tell, tell_in_place
from agentmon.domain.agents import CapabilitySource
from agentmon.domain.capability_proposals import CapabilityProposal, ProposalChange
from agentmon.domain.errors import NotFoundError, UsageError
from agentmon.domain.plain_text import plain_line
from agentmon.domain.programs import ScanProgress

_SOURCES = {
    "help": CapabilitySource.SCAN_HELP,
    "man": CapabilitySource.SCAN_MAN,
    "fig": CapabilitySource.SCAN_FIG,
    "completion": CapabilitySource.SCAN_COMPLETION,
    "mcp": CapabilitySource.SCAN_MCP,
    "llm": CapabilitySource.LLM_GENERATED,
}
_BY_ITSELF = "help,man,fig,completion"
_NAMES = {source: name for name, source in _SOURCES.items()}
_MARKS = {ProposalChange.NEW: "+", ProposalChange.CHANGED: "~", ProposalChange.SAME: "="}
_LEVELS = ("", "!", "!!", "!!!")
_SUBJECT_MAX_CHARACTERS = 60

LearnedSlugArgument = Annotated[str, typer.Argument(metavar="SLUG", help="The program, as `agentmon agents` names it.")]
SubcommandArgument = Annotated[
    list[str] | None, typer.Argument(metavar="SUBCOMMAND", help="Learn this command of it with all its options.")
]


def learn(
    slug: LearnedSlugArgument,
    subcommand: SubcommandArgument = None,
    sources: Annotated[
        str,
        typer.Option("--from", metavar="SOURCES", help="What is asked: help, man, fig, completion, mcp, llm."),
    ] = _BY_ITSELF,
    only: Annotated[
        list[str] | None, typer.Option("--only", metavar="KEY", help="This capability alone; may be given again.")
    ] = None,
    ask: Annotated[str | None, typer.Option("--ask", metavar="AGENT", help="The AI agent to ask with --from llm.")] = (
        None
    ),
    is_accepting: Annotated[bool, typer.Option("--accept", help="Store what is shown.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Show what a program can be asked to do; with --accept it becomes its capabilities.

    Files are read and never run. `help` asks the program without a terminal, a network or your home folder. `mcp`
    starts the program as an MCP server. `llm` lets an AI agent work, which may cost money; what it writes is stored
    only when you say yes to it. What you have edited stays as it is.

    Marks: + new, ~ changed, = as it is stored. ! to !!! say how dangerous it is.

    Examples:
      agentmon agents learn git
      agentmon agents learn git log --accept
      agentmon agents learn jq --from help,man --json
      agentmon agents learn notes --from mcp --accept
      agentmon agents learn kubectl --from llm --ask claude --accept
    """
    question = _Question(
        slug=slug,
        sources=_chosen(sources),
        subcommand=tuple(subcommand or ()),
        only=tuple(only or ()),
        ask=ask,
        is_accepting=is_accepting,
        has_person=sys.stdin.isatty() and sys.stderr.isatty() and not as_json,
    )
    if question.is_confirmed and not question.has_person:
        raise UsageError(
            "what an AI agent has written is stored only after you have seen it",
            hint="use --accept without --json at a terminal, or the Agents screen",
        )
    proposals, is_stored = with_services(functools.partial(_learned, question))
    if as_json:
        say_document({"agent": slug, "is_stored": is_stored, "proposals": [_document(one) for one in proposals]})
    elif proposals and not question.is_confirmed:
        _show(proposals)
    if not proposals:
        tell(f"nothing was learned of {slug}")
        raise typer.Exit(exit_codes.FAILED)
    if not as_json:
        _tell_end(question, proposals, is_stored=is_stored)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Question:
    slug: str
    sources: list[CapabilitySource]
    subcommand: tuple[str, ...]
    only: tuple[str, ...]
    ask: str | None
    is_accepting: bool
    has_person: bool
    """Whether somebody sits at a terminal and sees what is told."""

    @property
    def is_confirmed(self) -> bool:
        """Whether a person has to say yes before anything is stored."""
        return self.is_accepting and CapabilitySource.LLM_GENERATED in self.sources


async def _learned(question: _Question, services: Services) -> tuple[tuple[CapabilityProposal, ...], bool]:
    """Return what is proposed, and whether it is stored."""
    problems: list[str] = []
    found = await services.capability_scans.scan(
        question.slug,
        question.sources,
        subcommand=question.subcommand,
        on_progress=_tell_progress if question.has_person else None,
        on_problem=problems.append,
        ask=question.ask,
        actor=services.actor,
    )
    for problem in problems:
        tell(f"note: {problem}")
    proposals = _only(found, question.only)
    if not question.is_accepting or not proposals:
        return proposals, False
    if question.is_confirmed:
        _show(proposals)
        if not typer.confirm("Store these?", err=True):
            return proposals, False
    await services.capability_scans.accept(question.slug, proposals, actor=services.actor)
    return proposals, True


def _chosen(sources: str) -> list[CapabilitySource]:
    names = [name.strip() for name in sources.split(",") if name.strip()]
    unknown = [name for name in names if name not in _SOURCES]
    if unknown or not names:
        raise UsageError(
            f"{unknown[0]!r} is no source" if unknown else "what should be asked?",
            hint=f"sources are: {', '.join(_SOURCES)}; several are divided by commas",
        )
    return [_SOURCES[name] for name in names]


def _only(proposals: tuple[CapabilityProposal, ...], only: tuple[str, ...]) -> tuple[CapabilityProposal, ...]:
    if not only:
        return proposals
    known = {proposal.capability.key for proposal in proposals}
    for key in only:
        if key not in known:
            raise NotFoundError(f"no capability {key} is proposed", hint=f"proposed are: {', '.join(known) or 'none'}")
    return tuple(proposal for proposal in proposals if proposal.capability.key in only)


def _show(proposals: Sequence[CapabilityProposal]) -> None:
    rows = [
        (
            _MARKS[proposal.change],
            proposal.capability.key,
            _LEVELS[proposal.capability.danger_level],
            _arguments(proposal),
            ",".join(_NAMES[source] for source in proposal.sources),
            plain_line(
                proposal.capability.description or proposal.capability.label, max_characters=_SUBJECT_MAX_CHARACTERS
            ),
        )
        for proposal in proposals
    ]
    say("\n".join(table(("", "KEY", "DANGER", "ARGUMENTS", "FROM", "DOES"), rows, terminal_width())))


def _arguments(proposal: CapabilityProposal) -> str:
    described = proposal.capability.args_schema.get("properties")
    count = str(len(described)) if isinstance(described, dict) else "0"
    if proposal.stored is None:
        return count
    news = [f"+{len(proposal.new_arguments)}"] if proposal.new_arguments else []
    losses = [f"−{len(proposal.lost_arguments)}"] if proposal.lost_arguments else []
    return " ".join([count, *news, *losses])


def _document(proposal: CapabilityProposal) -> dict[str, object]:
    return {
        "change": proposal.change.value,
        "capability": json_form(proposal.capability),
        "sources": json_form(proposal.sources),
        "argument_sources": json_form(proposal.argument_sources),
        "changed_fields": json_form(proposal.changed_fields),
        "kept_fields": json_form(proposal.kept_fields),
        "new_arguments": json_form(proposal.new_arguments),
        "lost_arguments": json_form(proposal.lost_arguments),
        "danger_reasons": json_form(proposal.danger_reasons),
    }


def _tell_end(question: _Question, proposals: Sequence[CapabilityProposal], *, is_stored: bool) -> None:
    changing = [proposal for proposal in proposals if proposal.change is not ProposalChange.SAME]
    kept = [proposal.capability.key for proposal in proposals if proposal.kept_fields]
    if kept:
        tell(f"what you edited stays as it is: {', '.join(kept)}")
    if is_stored:
        tell(f"{question.slug} has learned {len(changing)}")
    elif question.is_accepting:
        tell("nothing is stored")
    elif changing:
        tell("--accept stores them; --only KEY chooses")


def _tell_progress(progress: ScanProgress) -> None:
    tell_in_place(
        f"{progress.step} ({progress.done + 1} of {progress.total})" if progress.done < progress.total else ""
    )
