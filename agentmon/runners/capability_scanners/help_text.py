"""A program's own help text, read into its options, its arguments and its subcommands.

The families of argparse, click, cobra, clap, getopt, git, Go's flag, commander, yargs, busybox and docopt differ in
layout, not in kind: an option begins a line, what it takes follows it, and what it does stands right of it or below.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from agentmon.runners.capability_scanners.command_list import ListedCommand, read_commands
from agentmon.runners.capability_scanners.help_lines import HelpLine, help_lines
from agentmon.runners.capability_scanners.option_spec import OptionSpec, SpecLine, read_spec_line, spread_names
from agentmon.runners.capability_scanners.option_words import (
    choices_of,
    default_of,
    is_repeated,
    is_required,
    kind_of,
    plain_value_name,
    told_kind,
    typed_default,
)
from agentmon.runners.capability_scanners.scanned import ScannedCapability, ScannedOption, ValueJoin, ValueKind
from agentmon.runners.capability_scanners.usage_text import Usage, UsageArgument, read_usage

if TYPE_CHECKING:
    from collections.abc import Sequence

_OPTIONS_HEADING: Final = re.compile(r"\b(?:options?|flags?|switches|arguments)\b", re.IGNORECASE)
_ARGUMENTS_HEADING: Final = re.compile(r"(?:positional )?(?:arguments?|args|positionals)\s*:?", re.IGNORECASE)
_ARGUMENT_LINE: Final = re.compile(
    r"(?:\* +)?[<\[]?([A-Za-z][\w./-]{0,40})[>\]]?(\.\.\.)?[>\]]?(\.\.\.)?(?: {2,}(\S.*))?"
)
_COMMAND_NAMES: Final = frozenset({"command", "subcommand", "cmd", "group", "object", "commands", "applet", "function"})
_ENDS_OPTIONS: Final = re.compile(
    r"positional arguments:|show this help message and exit|Show this message and exit|Print help|this help and exit"
    r"|Global Flags:"
)
_OTHER_ENTRY: Final = re.compile(r"\S{1,30}(?:, -\S{1,30})? {2,}\S")
_SINGLE_DASH_WORD: Final = re.compile(r"-[A-Za-z][\w-]{2,}")
_JOINED_VALUE: Final = re.compile(r"-[A-Z][a-z]{3,}")
_LAST_OPTION: Final = re.compile(r"terminates? (?:the )?option|(?:ends|stops) option", re.IGNORECASE)
_PROGRAM_KEY: Final = "run"
_NOT_A_KEY: Final = re.compile(r"[^A-Za-z0-9]+")
_LITERAL_BOOLEANS: Final = frozenset({"true", "false"})
_MOST_OPTIONS: Final = 3_000
_LONGEST_DESCRIPTION: Final = 600
_MOST_HEADING_WORDS: Final = 4
_PROSE: Final = re.compile(r"[A-Z][^:]{0,200} ")
_TITLE: Final = re.compile(r"([\w.-]{1,40})(?: - | – |: )(?=\S+ \S)")
_TO_READER: Final = re.compile(
    r"(?:usage|use|try|see|run [`']|report|note|warning|copyright|examples?|written|more|options?|arguments?|commands?"
    r"|global|version|the available|there (?:are|were)|error)\b|[^@]{0,60}@",
    re.IGNORECASE,
)
_SENTENCE_END: Final = re.compile(r"(?<=[\w)])[.;] ")
_SUMMARY_LINES: Final = 60


@dataclass(slots=True)
class _Found:
    """An option of the text, while its description is still read."""

    spec: OptionSpec
    description: list[str] = field(default_factory=list)
    is_value_default: bool = False
    """Whether what stands for the value is its default: ``--chunk-size=500:``."""

    @property
    def words(self) -> str:
        return " ".join(" ".join(self.description).split())[:_LONGEST_DESCRIPTION]


def parse_help(text: str, *, program: str, subcommand: Sequence[str] = ()) -> tuple[ScannedCapability, ...]:
    """Return what a help text tells: the command itself first, then each subcommand that it names, not yet learned.

    Args:
        text: What the program printed, colours and all; what is over 1 MiB is left out.
        program: Its name.
        subcommand: The words of the subcommand whose help this is; empty for the program itself.

    No text makes it fail. A text that is no help gives the command itself without any option.
    """
    lines = help_lines(text)
    usage = read_usage(lines, program=program, subcommand=subcommand)
    reader = _OptionReader(lines, usage.lines)
    reader.read()
    takes_command = _takes_command(usage)
    commands = _commands(lines, usage, program=program, subcommand=subcommand, takes_command=takes_command)
    options = _scanned_options(reader.found, usage, has_types="[boolean]" in text)
    arguments = _scanned_arguments(lines, usage, taken={option.key for option in options})
    command = ScannedCapability(
        key=capability_key(subcommand),
        label=" ".join((program, *subcommand)),
        description=_summary(lines, usage, reader.places, program=program),
        subcommand=tuple(subcommand),
        options=_in_order(options, arguments),
        takes_double_dash=usage.has_double_dash or _is_double_dash_known(text, options),
    )
    named = [
        ScannedCapability(
            key=capability_key((*subcommand, listed.name)),
            label=" ".join((program, *subcommand, listed.name)),
            description=listed.description[:_LONGEST_DESCRIPTION],
            subcommand=(*subcommand, listed.name),
            is_learned=False,
        )
        for listed in commands
    ]
    by_key: dict[str, ScannedCapability] = {}
    for capability in (command, *named):
        by_key.setdefault(capability.key, capability)
    return tuple(by_key.values())


def _in_order(options: list[ScannedOption], arguments: list[ScannedOption]) -> tuple[ScannedOption, ...]:
    """Return the options, those that end the options last, then the arguments.

    Where options are words of an expression, as those of find, the arguments stand before them.
    """
    options = sorted(options, key=lambda option: _LAST_OPTION.search(option.description) is not None)
    if arguments and arguments[-1].value_name == "expression":
        return (*arguments[:-1], *options)
    return (*options, *arguments)


def _is_double_dash_known(text: str, options: list[ScannedOption]) -> bool:
    """Tell whether a program is of a family that knows ``--``."""
    has_single_dash_words = any(
        not name.startswith("--") and len(name) > len("-xx") for option in options for name in option.names
    )
    return not has_single_dash_words and _ENDS_OPTIONS.search(text[: 1024 * 1024]) is not None


def capability_key(subcommand: Sequence[str]) -> str:
    """Return the key of a subcommand's capability: ``remote-add``; ``run`` for the program itself."""
    key = _NOT_A_KEY.sub("-", "-".join(subcommand).lower()).strip("-")
    if not key:
        return _PROGRAM_KEY
    if key == _PROGRAM_KEY:
        return f"{_PROGRAM_KEY}-command"
    return key if key[0].isalpha() else f"{_PROGRAM_KEY}-{key}"


def argument_key(name: str) -> str:
    """Return the name of an option's argument: ``max_count`` for ``--max-count``."""
    return _NOT_A_KEY.sub("_", name).strip("_") or "option"


class _OptionReader:
    """Goes through the lines once, and keeps the option that the next lines may describe."""

    def __init__(self, lines: Sequence[HelpLine], usage_lines: set[int]) -> None:
        self._lines = lines
        self._usage_lines = usage_lines
        self.found: list[_Found] = []
        self.places: set[int] = set()
        self._indents: set[int] = set()
        self._current: list[_Found] = []
        self._indent = 0
        self._column = 0
        """Where descriptions of the current option begin; 0 while it has none."""
        self._is_below_heading = False

    def read(self) -> None:
        was_empty = True
        for at, line in enumerate(self._lines):
            if not line.text or at in self._usage_lines:
                was_empty = True
                self._is_below_heading |= at in self._usage_lines
                continue
            spec_line = read_spec_line(line.text)
            if spec_line and self._begins_option(line, spec_line, was_empty=was_empty):
                self.places.add(at)
                self._begin(line, spec_line)
                if len(self.found) > _MOST_OPTIONS:
                    return
            elif self._current and line.indent > self._indent:
                self._describe(line, was_empty=was_empty)
            else:
                self._current = []
                self._is_below_heading = _is_options_heading(line.text)
            was_empty = False

    def _begins_option(self, line: HelpLine, spec_line: SpecLine, *, was_empty: bool) -> bool:
        is_whole = not spec_line.description
        is_clear = is_whole or spec_line.has_gap
        if self._current and self._column and line.indent >= self._column - 1 and line.indent > self._indent + 1:
            # What stands where descriptions stand is one that begins with an option's name.
            return was_empty and is_clear and spec_line.specs[0].names[0].startswith("--")
        if is_clear:
            return line.indent > 0 or spec_line.has_gap or self._is_below_heading or 0 in self._indents or was_empty
        return line.indent in self._indents or (self._is_below_heading and line.indent > 0)

    def _begin(self, line: HelpLine, spec_line: SpecLine) -> None:
        self._indents.add(line.indent)
        self._indent = line.indent
        self._column = line.indent + spec_line.description_column if spec_line.description else 0
        is_default = line.text.endswith(":") and "=" in line.text and not spec_line.description
        self._current = [_Found(spec, is_value_default=is_default) for spec in spec_line.specs]
        if spec_line.description:
            self._current[-1].description.append(spec_line.description)
        self.found += self._current

    def _describe(self, line: HelpLine, *, was_empty: bool) -> None:
        is_left_of_column = bool(self._column) and line.indent < self._column - 1
        if is_left_of_column and (was_empty or _OTHER_ENTRY.match(line.text)):
            self._current = []
            return
        self._column = self._column or line.indent
        described = self._current[-1].description
        if sum(map(len, described)) < _LONGEST_DESCRIPTION:
            described.append(line.text if described else line.text.removeprefix("= "))


def _is_options_heading(text: str) -> bool:
    is_short = text.endswith(":") or (text.count(" ") < _MOST_HEADING_WORDS and text[-1:].isalpha())
    return is_short and _OPTIONS_HEADING.search(text) is not None


def _scanned_options(found: list[_Found], usage: Usage, *, has_types: bool) -> list[ScannedOption]:
    """Return all options, those of the usage alone last.

    Args:
        found: The options of the text.
        usage: What the usage lines say.
        has_types: Whether the text says of each option what kind it is, as that of yargs does.
    """
    options: list[ScannedOption] = []
    known: dict[str, int] = {}
    keys: set[str] = set()
    in_usage = {name: spec for spec in usage.options for name in spec.names if name in usage.sure_values}
    for option in found:
        told = next((in_usage[name] for name in option.spec.names if name in in_usage), None)
        if told is not None and not option.spec.value:
            option.spec.value, option.spec.join = told.value, told.join
        if has_types and not option.spec.value and "[boolean]" not in option.words and "[count]" not in option.words:
            option.spec.value = "VALUE"
    _split_joined_values([option.spec for option in found])
    for option in (*found, *(_Found(spec) for spec in usage.options)):
        for names in _separate_names(option.spec.names):
            fresh = [name for name in dict.fromkeys(names) if name not in known]
            if not fresh:
                _fill_gap(options, known[names[0]], option)
                continue
            # "-p, --style=slash" behind "--style=WORD": a short name for one of its values.
            is_shortcut = len(fresh) < len(names) and not any(map(_is_long, fresh))
            scanned = _scanned_option(option, tuple(fresh), keys, takes_value=not is_shortcut)
            if usage.required_options.intersection(fresh) and scanned.kind is not ValueKind.BOOLEAN:
                scanned = _replaced(scanned, is_required=True)
            known |= dict.fromkeys(fresh, len(options))
            keys.add(scanned.key)
            options.append(scanned)
    return options


def _split_joined_values(specs: Sequence[OptionSpec]) -> None:
    """Give ``-Idirectory`` its value, when all other names with one dash are single letters."""
    single = [spec for spec in specs if any(_SINGLE_DASH_WORD.fullmatch(name) for name in spec.names)]
    joined = [spec for spec in single if len(spec.names) == 1 and _JOINED_VALUE.fullmatch(spec.names[0])]
    if len(joined) == len(single) and len(joined) < len(specs):
        for spec in joined:
            name = spec.names[0]
            spec.names, spec.value, spec.join = [name[:2]], name[2:], ValueJoin.NOTHING


def _separate_names(names: Sequence[str]) -> list[list[str]]:
    """Return the names of each option of a list such as ``-f, --field, -x, --extract``; what turns one off is apart."""
    spread = [part for name in names for part in spread_names(name)]
    negative = [
        name for name in spread if name.startswith("--no-") and any(f"--{name[5:]}" == other for other in spread)
    ]
    groups: list[list[str]] = [[]]
    for name in spread:
        if name in negative:
            continue
        has_both = any(map(_is_long, groups[-1])) and not all(map(_is_long, groups[-1]))
        if has_both and not _is_long(name) and any(map(_is_long, spread[spread.index(name) :])):
            groups.append([])
        groups[-1].append(name)
    return [*groups, *([name] for name in negative)]


def _is_long(name: str) -> bool:
    return name.startswith("--")


def _scanned_option(found: _Found, names: tuple[str, ...], keys: set[str], *, takes_value: bool) -> ScannedOption:
    spec, words = found.spec, found.words
    is_negative = all(name.startswith("--no-") for name in names) and len(spec.names) > len(names)
    value = "" if is_negative or not takes_value else spec.value
    kind, name, choices, default = _value(value, words, is_default=found.is_value_default)
    if value and not choices:
        kind = told_kind(words) or kind
    if kind is ValueKind.BOOLEAN and default == "true":
        # A flag that is on can only be turned off by its value.
        kind, choices = ValueKind.STRING, ("true", "false")
    return ScannedOption(
        key=_unique(argument_key(_key_name(names)), keys),
        names=names,
        kind=kind,
        value_name=name,
        description=words,
        choices=choices if kind is ValueKind.STRING else (),
        default=typed_default(default, kind),
        is_required=is_required(words),
        is_repeated=spec.is_repeated or is_repeated(value, words),
        is_value_optional=spec.is_value_optional and kind is not ValueKind.BOOLEAN,
        join=_join_of(spec, names),
    )


def _value(value: str, words: str, *, is_default: bool) -> tuple[ValueKind, str, tuple[str, ...], str | None]:
    """Return kind, name, choices and default of what an option takes."""
    default = default_of(words)
    if not value:
        choices = choices_of("", words)
        return (ValueKind.STRING if choices else ValueKind.BOOLEAN), "", choices, default
    literal = value.strip("\"'")
    if is_default or (value[:1] == '"' and value[-1:] == '"'):
        kind = ValueKind.BOOLEAN if literal in _LITERAL_BOOLEANS else kind_of(literal, words)
        return kind, "", choices_of("", words), literal or None
    if literal in _LITERAL_BOOLEANS:
        return ValueKind.STRING, "", ("true", "false"), default
    name = plain_value_name(value)
    choices = choices_of(value, words)
    kind = ValueKind.STRING if choices else kind_of(name, words)
    if choices and default not in choices:
        default = None
    return kind, name if any(map(str.isalnum, name)) else "VALUE", choices, default


def _join_of(spec: OptionSpec, names: tuple[str, ...]) -> ValueJoin:
    is_long = any(name.startswith("--") for name in names)
    if is_long:
        return ValueJoin.WORD if spec.join is ValueJoin.WORD else ValueJoin.EQUALS
    is_short = all(len(name) == len("-x") for name in names)
    if is_short and spec.join is ValueJoin.EQUALS:
        return ValueJoin.NOTHING
    return spec.join


def _key_name(names: Sequence[str]) -> str:
    long = [name for name in names if name.startswith("--")]
    return max(long[:1] or names, key=len).lstrip("-+")


def _unique(key: str, keys: set[str]) -> str:
    if key not in keys:
        return key
    return next(numbered for number in range(2, len(keys) + 3) if (numbered := f"{key}_{number}") not in keys)


def _fill_gap(options: list[ScannedOption], place: int, found: _Found) -> None:
    """Give an option that was listed without any words those of its second listing."""
    if not options[place].description and found.words:
        options[place] = _replaced(options[place], description=found.words)


def _replaced(option: ScannedOption, **changes: object) -> ScannedOption:
    fields = {name: getattr(option, name) for name in ScannedOption.__dataclass_fields__}
    return ScannedOption(**{**fields, **changes})


def _takes_command(usage: Usage) -> bool:
    return bool(usage.literals) or any(argument.name.casefold() in _COMMAND_NAMES for argument in usage.arguments)


def _commands(
    lines: Sequence[HelpLine], usage: Usage, *, program: str, subcommand: Sequence[str], takes_command: bool
) -> tuple[ListedCommand, ...]:
    listed = read_commands(lines, program=program, subcommand=subcommand, takes_command=takes_command)
    known = {command.name for command in listed}
    choices = [word for argument in usage.arguments if argument.is_repeated for word in argument.choices]
    named = [word for word in (*choices, *usage.literals) if word not in known]
    return (*listed, *(ListedCommand(word, "") for word in dict.fromkeys(named)))


def _scanned_arguments(lines: Sequence[HelpLine], usage: Usage, *, taken: set[str]) -> list[ScannedOption]:
    described = _described_arguments(lines)
    arguments = []
    keys = set(taken)
    for argument in usage.arguments or _undeclared(described):
        words = described.get(argument.name.casefold(), ("", False))[0]
        key = _unique(argument_key(argument.name.lower()), keys)
        keys.add(key)
        arguments.append(
            ScannedOption(
                key=key,
                kind=ValueKind.STRING,
                value_name=argument.name,
                description=words,
                choices=argument.choices or choices_of("", words),
                default=default_of(words),
                is_required=argument.is_required,
                is_repeated=argument.is_repeated,
                join=ValueJoin.WORD,
            )
        )
    return arguments


def _undeclared(described: dict[str, tuple[str, bool]]) -> list[UsageArgument]:
    return [
        UsageArgument(name, is_required=is_required(words), is_repeated=is_several)
        for name, (words, is_several) in described.items()
    ]


def _described_arguments(lines: Sequence[HelpLine]) -> dict[str, tuple[str, bool]]:
    """Return the words about each positional argument, by its name in small letters."""
    described: dict[str, tuple[str, bool]] = {}
    is_inside, name, indent = False, "", 0
    for line in lines:
        if not line.text:
            continue
        if _ARGUMENTS_HEADING.fullmatch(line.text):
            is_inside, name = True, ""
            continue
        if not is_inside:
            continue
        if line.indent == 0 or line.text.startswith("-"):
            is_inside = False
            continue
        found = _ARGUMENT_LINE.fullmatch(line.text)
        if found and (not name or line.indent <= indent):
            name, indent = found[1].casefold(), line.indent
            described[name] = (found[4] or "", bool(found[2] or found[3]))
        elif name:
            words, is_several = described[name]
            described[name] = (f"{words} {line.text}".strip()[:_LONGEST_DESCRIPTION], is_several)
    return described


def _summary(lines: Sequence[HelpLine], usage: Usage, places: set[int], *, program: str) -> str:
    """Return the first sentence of the text that is neither usage nor an option, nor a word to the reader."""
    for at, line in enumerate(lines[:_SUMMARY_LINES]):
        if at in places:
            return ""
        titled = _TITLE.match(line.text)
        if titled and titled[1].casefold() == program.casefold():
            return line.text[titled.end() :][:_LONGEST_DESCRIPTION]
        is_prose = _PROSE.match(line.text) or line.text.startswith(f"{program} is ")
        if at in usage.lines or not is_prose or _TO_READER.match(line.text) or line.text.endswith(":"):
            continue
        paragraph = [line.text]
        for later in lines[at + 1 : at + _SUMMARY_LINES]:
            if not later.text or later.indent > line.indent:
                break
            paragraph.append(later.text)
        return _SENTENCE_END.split(" ".join(paragraph), maxsplit=1)[0][:_LONGEST_DESCRIPTION].rstrip(".")
    return ""
