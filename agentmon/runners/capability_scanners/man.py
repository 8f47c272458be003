"""The source ``scan_man``: options and commands as a manual page tells them; the page is read, ``man`` is not run."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Final

from agentmon.domain.agents import CapabilitySource
from agentmon.runners.capability_scanners.command_tree import CommandTree
from agentmon.runners.capability_scanners.option_spec import OptionSpec, read_spec_line, spread_names
from agentmon.runners.capability_scanners.option_words import (
    choices_of,
    is_repeated,
    kind_of,
    plain_value_name,
)
from agentmon.runners.capability_scanners.roff import Page, Paragraph
from agentmon.runners.capability_scanners.scanned import ScannedCapability, ValueJoin, ValueKind
from agentmon.runners.capability_scanners.text_files import read_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from agentmon.runners.capability_scanners.program_place import ProgramPlace

_SECTIONS: Final = ("1", "8", "6")
"""The sections of commands, of the administrator's and of games."""
_PACKED: Final = ("", ".gz", ".bz2", ".xz", ".zst", ".lzma")
_CONFIGURATIONS: Final = (Path("/etc/manpath.config"), Path("/etc/man_db.conf"))
_CONFIGURED: Final = re.compile(r"^(?:MANDATORY_MANPATH\s+|MANPATH_MAP\s+\S+\s+)(/\S+)", re.MULTILINE)
_SAME_AS: Final = re.compile(r"^\.so\s+(\S+)\s*$", re.MULTILINE)
_MOST_LINKS: Final = 3
_OTHER_SECTIONS: Final = re.compile(
    r"EXAMPLE|SEE ALSO|ENVIRONMENT|FILES|EXIT|AUTHOR|BUGS|HISTORY|COPYRIGHT|DIAGNOSTIC|CONFIGURATION|NOTES|STANDARDS",
    re.IGNORECASE,
)
_OF_COMMANDS: Final = re.compile(r"COMMANDS?\b(?! ?-?LINE)", re.IGNORECASE)
_COMMAND: Final = re.compile(r"([a-z][\w.-]*)(?:\(\d\w*\))?(?:\s|$|,)")
_BETWEEN_OPTIONS: Final = re.compile(r",\s+(?=-)|\s+(?:and|or)\s+(?=-)")
_FIRST_SENTENCE: Final = re.compile(r"(.+?[.!?])(?:\s|$)", re.DOTALL)
_LONGEST_DESCRIPTION: Final = 300


def scan_man(place: ProgramPlace, *, subcommand: Sequence[str] = ()) -> tuple[ScannedCapability, ...]:
    """Return what the manual page of a program tells; of a subcommand that of its own page, as ``git-log``.

    Commands that a page only names are not learned: their options stand on pages of their own.
    """
    page = read_page(place, "-".join((place.name, *subcommand)))
    return () if page is None else read_man(page, place.name, subcommand=subcommand)


def read_page(place: ProgramPlace, name: str) -> str | None:
    """Return the source of a manual page, links followed; None when there is none that can be read."""
    for folder in _man_folders(place):
        for section in _SECTIONS:
            for path in _candidates(folder / f"man{section}", name, section):
                text = read_text(path)
                if text is not None:
                    return _followed(text, folder)
    return None


def read_man(text: str, program: str, *, subcommand: Sequence[str] = ()) -> tuple[ScannedCapability, ...]:
    """Return what a manual page in its source form tells."""
    tree = CommandTree(program, CapabilitySource.SCAN_MAN)
    command = tuple(subcommand)
    for paragraph in Page(text).paragraphs():
        if paragraph.section.upper() in {"NAME", "NAMEN", "NOM", "NOMBRE"}:
            _, dash, told = paragraph.text.partition(" - ")
            if dash:
                tree.name(command, told.strip())
        elif paragraph.tag.startswith(("-", "+")) and not _OTHER_SECTIONS.search(paragraph.section):
            _note_options(tree, command, paragraph)
        elif not command and _OF_COMMANDS.search(paragraph.section):
            _note_command(tree, program, paragraph)
    found = tree.capabilities()
    # A page without an option and a command tells what the program is for, and nothing of how it is used.
    return found if len(found) > 1 or any(capability.options for capability in found) else ()


def _man_folders(place: ProgramPlace) -> Iterable[Path]:
    own = [Path(part) for part in place.man_path.split(":") if part]
    beside = [prefix / part for prefix in place.prefixes for part in ("share/man", "man")]
    on_path = [folder.parent / part for folder in place.search_path for part in ("share/man", "man")]
    told = [
        Path(found)
        for path in _CONFIGURATIONS
        if path.is_file()
        for found in _CONFIGURED.findall(path.read_text(encoding="utf-8", errors="replace"))
    ]
    for folder in dict.fromkeys([*own, *beside, *on_path, *told]):
        if folder.is_absolute() and folder.is_dir():
            yield folder


def _candidates(folder: Path, name: str, section: str) -> Iterable[Path]:
    for packed in _PACKED:
        path = folder / f"{name}.{section}{packed}"
        if path.is_file():
            yield path
    # Sections of a package, as openssl.1ssl.
    escaped = re.sub(r"([\[*?])", r"[\1]", name)
    yield from sorted(folder.glob(f"{escaped}.{section}[a-z]*"))


def _followed(text: str, folder: Path) -> str | None:
    """Return the page that a page of one line stands for; one outside of its folder is not read."""
    found: str | None = text
    for _ in range(_MOST_LINKS):
        link = _SAME_AS.match(found) if found is not None else None
        if link is None:
            return found
        target = (folder / link[1]).resolve()
        if not target.is_relative_to(folder.resolve()):
            return None
        found = next((read_text(path) for packed in _PACKED if (path := Path(f"{target}{packed}")).is_file()), None)
    return None


def _note_options(tree: CommandTree, command: tuple[str, ...], paragraph: Paragraph) -> None:
    description = _described(paragraph.text)
    specs = [spec for part in _BETWEEN_OPTIONS.split(paragraph.tag) for spec in _specs(part)]
    for same in _pairs(specs):
        told = next((spec for spec in same if spec.value), same[0])
        value_name = plain_value_name(told.value)
        choices = choices_of(told.value, "")
        kind = ValueKind.STRING if choices or told.value else ValueKind.BOOLEAN
        named = kind_of(value_name, description) if kind is ValueKind.STRING and not choices else kind
        # A value that is called a truth is still typed as a word.
        kind = ValueKind.STRING if named is ValueKind.BOOLEAN and told.value else named
        long = next((spec for spec in same if spec.names[0].startswith("--")), None)
        names = [spread_names(name) for spec in same for name in spec.names]
        for denied in [name for spread in names for name in spread[1:]]:
            tree.add_option(command, [denied], description=description)
        tree.add_option(
            command,
            [spread[0] for spread in names],
            kind=kind,
            value_name="" if choices else value_name,
            description=description,
            choices=choices,
            is_repeated=is_repeated(told.value, description),
            is_value_optional=told.is_value_optional,
            join=ValueJoin.EQUALS if long is not None and told.join is not ValueJoin.WORD else told.join,
        )


def _specs(part: str) -> list[OptionSpec]:
    line = read_spec_line(part.strip().rstrip(":,."))
    if line is None:
        return []
    specs = list(line.specs)
    if line.description and not specs[-1].value and re.fullmatch(r"[\w-]+", line.description):
        # A value whose slant alone told it from the name.
        specs[-1].value, specs[-1].join = line.description, ValueJoin.WORD
    return specs


def _pairs(specs: Iterable[OptionSpec]) -> list[list[OptionSpec]]:
    """Return the names of a tag by option: those that share a tag are one, but for a long one beside another."""
    found: list[list[OptionSpec]] = []
    for spec in specs:
        is_long = len(spec.names[0].lstrip("-")) > 1
        known = [name for one in found[-1] for name in one.names] if found else []
        if not known or any((len(name.lstrip("-")) > 1) is is_long for name in known):
            found.append([spec])
        else:
            found[-1].append(spec)
    return found


def _note_command(tree: CommandTree, program: str, paragraph: Paragraph) -> None:
    found = _COMMAND.match(paragraph.tag)
    if found is None:
        return
    word = found[1].removeprefix(f"{program}-")
    if word and word != program:
        tree.name((word,), _described(paragraph.text))


def _described(text: str) -> str:
    found = _FIRST_SENTENCE.match(text)
    described = found[1] if found is not None else text
    return described[:_LONGEST_DESCRIPTION].strip().removesuffix(".")
