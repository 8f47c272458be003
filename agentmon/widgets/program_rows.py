"""Programs of this machine as rows of a table, with what is new about them."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Final, NamedTuple

from agentmon.domain.amounts import size_text
from agentmon.domain.programs import Program, ProgramKind
from agentmon.widgets.agent_rows import name_distance
from agentmon.widgets.row_sorting import RowSorter
from agentmon.widgets.row_table import Column, TableRow
from agentmon.widgets.text_rows import Span

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from datetime import datetime

PROGRAM_COLUMNS: Final = (
    Column("State", 11),
    Column("Program", 22),
    Column("Agent", 12, from_width=92),
    Column("Kind", 7, from_width=74),
    Column("Package", 24, from_width=60),
    Column("Version", 14, from_width=150),
    Column("Size", 8, from_width=130, is_right=True),
    Column("Where"),
)
_STATE, _NAME, _AGENT, _KIND, _PACKAGE, _VERSION, _SIZE, _WHERE = range(len(PROGRAM_COLUMNS))


class ProgramNews(StrEnum):
    """What a person should know of a program first."""

    GONE = "gone"
    BROKEN = "broken"
    NEW = "new"
    CHANGED = "changed"
    AGENT = "agent"
    HIDDEN = "hidden"
    """Another one of its name comes earlier on the PATH."""
    PLAIN = ""


_WORDS: Final = {
    ProgramNews.GONE: ("✗ gone", "bad"),
    ProgramNews.BROKEN: ("! broken", "warning"),
    ProgramNews.NEW: ("+ new", "good"),
    ProgramNews.CHANGED: ("~ changed", "running"),
    ProgramNews.AGENT: ("● agent", "primary"),
    ProgramNews.HIDDEN: ("- hidden", "muted"),
    ProgramNews.PLAIN: ("", "muted"),
}


class FoundProgram(NamedTuple):
    """A program, and the agent that it is."""

    program: Program
    news: ProgramNews
    agent_slug: str
    """Empty for a program that nobody made an agent of."""
    text: str
    """What a filter looks in beside the name, in lower case."""
    row: TableRow


def found_programs(programs: Sequence[Program], slugs: Mapping[str, str]) -> list[FoundProgram]:
    """Return the programs by their names, with what the newest scan says of each.

    Args:
        programs: As the scans know them; what only the first scan has seen is not called new.
        slugs: Of agents, by the paths of their programs.
    """
    scans = [program.last_seen_at for program in programs if program.last_seen_at is not None]
    newest = max(scans, default=None)
    is_first = all(program.first_seen_at == newest for program in programs)
    found = []
    for program in programs:
        slug = slugs.get(program.path, "")
        news = _news(program, slug, None if is_first else newest)
        parts = (program.package_name, program.package_manager, program.kind, program.path, slug, news)
        text = " ".join(part for part in parts if part).lower()
        found.append(FoundProgram(program, news, slug, text, _row(program, news, slug)))
    return PROGRAM_SORTER.ordered(found, None)


def matching(found: Iterable[FoundProgram], words: str) -> list[FoundProgram]:
    """Return the programs that have all of the words, those first whose names are or begin with the first one."""
    wanted = words.lower().split()
    if not wanted:
        return list(found)
    fits = [one for one in found if all(word in one.text or word in one.program.name.lower() for word in wanted)]
    return sorted(fits, key=lambda one: name_distance((one.program.name.lower(),), wanted[0]))


def _row(program: Program, news: ProgramNews, slug: str) -> TableRow:
    words, style = _WORDS[news]
    package = f"{program.package_manager}:{program.package_name}" if program.package_name else ""
    where = program.path if program.real_path == program.path else f"{program.path} → {program.real_path}"
    return TableRow(
        program.path,
        (
            Span(words, style),
            Span(program.name, "muted" if news in {ProgramNews.GONE, ProgramNews.HIDDEN} else "text"),
            Span(slug, "primary"),
            Span(program.kind, "muted"),
            Span(package, "muted"),
            Span(program.package_version or "", "muted"),
            Span(size_text(program.size_bytes) if program.size_bytes else "", "muted"),
            Span(where, "muted"),
        ),
    )


def _news(program: Program, slug: str, scanned_at: datetime | None) -> ProgramNews:
    if program.missing_since is not None:
        return ProgramNews.GONE
    if program.kind is ProgramKind.BROKEN:
        return ProgramNews.BROKEN
    if scanned_at is not None and program.first_seen_at is not None and program.first_seen_at >= scanned_at:
        return ProgramNews.NEW
    if scanned_at is not None and program.changed_at is not None and program.changed_at >= scanned_at:
        return ProgramNews.CHANGED
    if slug:
        return ProgramNews.AGENT
    return ProgramNews.HIDDEN if program.shadowed_by is not None else ProgramNews.PLAIN


_NEWS_ORDER: Final = {news: at for at, news in enumerate(ProgramNews)}
PROGRAM_SORTER: Final = RowSorter[FoundProgram](
    {
        _STATE: lambda found: _NEWS_ORDER[found.news],
        _NAME: lambda found: found.program.name.lower(),
        _AGENT: lambda found: found.agent_slug or "~",
        _KIND: lambda found: found.program.kind,
        _PACKAGE: lambda found: f"{found.program.package_manager or '~'}:{found.program.package_name or ''}",
        _SIZE: lambda found: found.program.size_bytes,
        _WHERE: lambda found: found.program.path,
    },
    rising=(_STATE, _NAME, _AGENT, _KIND, _PACKAGE, _WHERE),
    usual=lambda found: (found.program.name.lower(), found.program.shadowed_by is not None, found.program.path),
)
"""By what is new, by the columns of text, by size."""
