"""The usage of a help text, read: options in brackets, positional arguments, the words that choose a subcommand."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from agentmon.runners.capability_scanners.option_spec import OptionSpec
from agentmon.runners.capability_scanners.scanned import ValueJoin
from agentmon.runners.capability_scanners.usage_forms import DEFINITION, usage_forms

if TYPE_CHECKING:
    from collections.abc import Sequence

    from agentmon.runners.capability_scanners.help_lines import HelpLine

_TOKEN: Final = re.compile(
    r"\[|\]|\(|\)|\{|\}|\||\.\.\.|…|<[^<>]{0,80}>|-{1,2}[A-Za-z0-9?#@][\w.+-]*(?:\[no-\][\w-]+)?|--\[no-\][\w-]+|--(?=[\s\]])"
    r"|=|[^\s\[\](){}|<>=]+|<"
)
_OPTION: Final = re.compile(r"--?[A-Za-z0-9?#@].*|--\[no-\].+")
_PLACEHOLDER_OF_OPTIONS: Final = re.compile(
    r"<?\W*(?:[a-z_-]*[ _-])?(?:options?|opts?|flags?|switch(?:es)?|option_list|modifiers?)\W*>?", re.IGNORECASE
)
_LITERAL: Final = re.compile(r"[a-z][a-z0-9_-]*")
_VALUE_WORD: Final = re.compile(r"[A-Z][A-Z0-9_/.:,-]*|<.*>|[a-z][a-zA-Z0-9_./:-]*")
_COMMAND_WORDS: Final = frozenset({"command", "commands", "object", "subcommand", "cmd"})
_NAME_OF_POSITIONAL: Final = re.compile(r"[A-Za-z][\w./:@ -]{0,60}")
_MIXED_BUNDLE: Final = 6
"""So many letters, large and small ones and no two alike, are no word."""
_MOST_DEPTH: Final = 20
_MOST_TOKENS: Final = 4_000


_ATTACHED: Final = frozenset(":=@/.,;#")
"""What begins a bracket that is a part of the word before it: ``IMAGE[:TAG]``."""


@dataclass(slots=True)
class UsageArgument:
    """One positional argument."""

    name: str
    is_required: bool
    is_repeated: bool = False
    choices: tuple[str, ...] = ()


@dataclass(slots=True)
class Usage:
    """What the usage lines say."""

    options: list[OptionSpec] = field(default_factory=list)
    required_options: set[str] = field(default_factory=set)
    sure_values: set[str] = field(default_factory=set)
    """Names of options whose value surely belongs to them: in brackets of their own, or behind an equals sign."""
    arguments: list[UsageArgument] = field(default_factory=list)
    literals: list[str] = field(default_factory=list)
    """Words right behind the program that are typed as they are, one for each line that has one."""
    has_double_dash: bool = False
    lines: set[int] = field(default_factory=set)
    """Places of the lines that belong to the usage."""


def read_usage(lines: Sequence[HelpLine], *, program: str, subcommand: Sequence[str]) -> Usage:
    """Return what the usage lines of a help text say; an empty one when it has none."""
    usage = Usage()
    forms = usage_forms(lines, program=program, places=usage.lines)
    starts_with_word = False
    for number, form in enumerate(forms):
        defined = DEFINITION.match(form)
        tokens = [found[0] for found in _TOKEN.finditer(form[defined.end() :] if defined else form)][:_MOST_TOKENS]
        if defined:
            _read_definition(tokens, usage, is_of_commands=defined[1].casefold() in _COMMAND_WORDS)
            continue
        rest = _behind_program(tokens, subcommand)
        if rest is None:
            continue
        if rest and _LITERAL.fullmatch(rest[0]) and len(forms) > 1:
            usage.literals.append(rest[0])
            rest = rest[1:]
            starts_with_word |= number == 0
        _UsageReader(rest, usage, is_first=number == 0).read()
    if len(forms) > 1:
        usage.required_options.clear()
    if len(set(usage.literals)) < 2:  # noqa: PLR2004 - one word alone may as well be an argument
        usage.literals.clear()
    elif starts_with_word:
        # The arguments are those of the first subcommand.
        usage.arguments = []
    return usage


def _read_definition(tokens: list[str], usage: Usage, *, is_of_commands: bool) -> None:
    """Read ``OPTIONS := { -s[tatistics] | -f[amily] NAME }`` or ``OBJECT := { link | route }``."""
    if is_of_commands:
        usage.literals += [token for token in tokens if _LITERAL.fullmatch(token)]
        return
    _UsageReader(tokens, usage, is_first=False, is_definition=True).read()


def _behind_program(tokens: list[str], subcommand: Sequence[str]) -> list[str] | None:
    """Return the tokens behind the program's name and the subcommand; None when they are of another subcommand."""
    if not tokens:
        return None
    rest = tokens[1:]
    if rest[:1] == ["["] and rest[2:3] == ["]"] and rest[1] == "EXE":
        rest = rest[3:]
    for word in subcommand:
        if word in rest[:12]:
            rest = rest[rest.index(word) + 1 :]
        elif rest and _LITERAL.fullmatch(rest[0]):
            return None
    return rest


class _UsageReader:
    def __init__(self, tokens: list[str], usage: Usage, *, is_first: bool, is_definition: bool = False) -> None:
        self._tokens = tokens
        self._usage = usage
        self._is_first = is_first
        self._at = 0
        self._is_definition = is_definition
        self._options_seen = 0

    def read(self, *, depth: int = 0) -> None:
        while self._at < len(self._tokens):
            self._group(closing="", is_optional=False, depth=depth)
            self._at += 1

    def _peek(self, ahead: int = 0) -> str:
        place = self._at + ahead
        return self._tokens[place] if place < len(self._tokens) else ""

    def _group(self, *, closing: str, is_optional: bool, depth: int) -> None:
        """Read to the closing bracket, which stays the current token."""
        last: OptionSpec | None = None
        is_alternative = False
        arguments = len(self._usage.arguments)
        options = self._options_seen
        is_led_by_option = False
        while self._at < len(self._tokens):
            token = self._peek()
            is_led_by_option |= self._options_seen > options and len(self._usage.arguments) == arguments
            if closing and is_led_by_option:
                # What stands beside an option in one bracket is a part of its value.
                del self._usage.arguments[arguments:]
            if closing and token == closing:
                return
            if token == "|":
                is_alternative = True
            elif token in {"[", "(", "{"}:
                self._open(token, is_optional=is_optional or token == "[", depth=depth)
                last, is_alternative = None, False
            elif token in {"--", "-"}:
                # Behind the first argument it divides arguments, and ends no options.
                self._usage.has_double_dash |= token == "--" and not self._usage.arguments and self._is_first
            elif _OPTION.fullmatch(token):
                last = self._option(token, alias_of=last if is_alternative else None, is_optional=is_optional)
                if not closing and not is_optional and last.value and not is_alternative:
                    self._usage.required_options.update(last.names)
                is_alternative = False
            else:
                self._argument(token, is_optional=is_optional or self._is_definition)
                last, is_alternative = None, False
            self._at += 1

    def _open(self, token: str, *, is_optional: bool, depth: int) -> None:
        closing = {"[": "]", "(": ")", "{": "}"}[token]
        if token == "{" or depth >= _MOST_DEPTH:
            self._choices(closing, is_optional=is_optional, depth=depth)
            return
        self._at += 1
        if token == "[" and (self._names_options() or self._peek()[:1] in _ATTACHED):
            self._at -= 1
            self._skip_group()
            return
        start = len(self._usage.arguments)
        self._group(closing=closing, is_optional=is_optional, depth=depth + 1)
        if self._peek(1) in {"...", "…"}:
            for argument in self._usage.arguments[start:]:
                argument.is_repeated = True

    def _names_options(self) -> bool:
        """Tell whether a bracket holds only words such as ``more options; see below``."""
        try:
            inside = self._tokens[self._at : self._tokens.index("]", self._at)]
        except ValueError:
            return False
        return any(_PLACEHOLDER_OF_OPTIONS.fullmatch(word) for word in inside) and all(
            word[0].isalpha() or word[0] in "<." for word in inside
        )

    def _choices(self, closing: str, *, is_optional: bool, depth: int) -> None:
        start = self._at + 1
        waiting = 0
        has_option = False
        while self._at < len(self._tokens):
            token = self._peek()
            waiting += (token in "[({") - (token in "])}")
            has_option |= _OPTION.fullmatch(token) is not None
            if waiting <= 0 and token == closing:
                break
            self._at += 1
        inside = self._tokens[start : self._at]
        if has_option and depth < _MOST_DEPTH:
            inner = _UsageReader(inside, self._usage, is_first=False, is_definition=self._is_definition)
            inner.read(depth=depth + 1)
            self._options_seen += 1
            return
        words = [word for part in inside for word in part.split(",") if word and word != "|"]
        is_list = len(words) > 1 and all(_LITERAL.fullmatch(word) for word in words)
        if is_list and self._is_first and not self._is_definition:
            self._usage.arguments.append(UsageArgument("command", not is_optional, choices=tuple(words)))

    def _option(self, token: str, *, alias_of: OptionSpec | None, is_optional: bool) -> OptionSpec:
        self._options_seen += 1
        bundle = _bundle(token)
        if bundle and is_optional:
            for letter in bundle:
                self._add(OptionSpec(names=[f"-{letter}"]))
            return OptionSpec()
        spec = OptionSpec(names=[token])
        self._value(spec, is_inside=is_optional)
        if spec.value and (is_optional or spec.join is ValueJoin.EQUALS):
            self._usage.sure_values.update(spec.names)
        if alias_of is not None and alias_of.names and _are_aliases(alias_of.names[-1], token):
            alias_of.names += [name for name in spec.names if name not in alias_of.names]
            if spec.value:
                alias_of.value, alias_of.join = spec.value, spec.join
            return alias_of
        return self._add(spec)

    def _value(self, spec: OptionSpec, *, is_inside: bool = False, may_be_cut: bool = True) -> None:
        following = self._peek(1)
        if following == "=":
            self._at += 1
            value = self._peek(1)
            if value == "{":
                self._at += 1
                spec.value = self._braced()
            elif value in {"", "[", "]", "(", ")", "|"}:
                spec.value = "VALUE"
            else:
                spec.value = value.strip("<>")
                self._at += 1
        elif following == "[" and self._peek(2) == "=":
            spec.value = self._peek(3).strip("<>]") or "VALUE"
            spec.is_value_optional = True
            self._at += 1
            self._skip_group()
        elif (
            following == "["
            and may_be_cut
            and self._is_definition
            and _LITERAL.fullmatch(self._peek(2))
            and self._peek(3) == "]"
        ):
            # "-s[tatistics]" of ip: a name that may be cut.
            spec.names.append(spec.names[0] + self._peek(2))
            self._at += 3
            self._value(spec, may_be_cut=False)
        elif following == "[" and (is_inside or self._is_definition):
            spec.value, spec.join = "VALUE", ValueJoin.WORD
            self._at += 1
            self._skip_group()
            spec.is_value_optional = self._peek(1) in {"]", "|"}
        elif following == "{":
            self._at += 1
            spec.value = self._braced()
            spec.join = ValueJoin.WORD
        elif following.startswith("<") or (following and _VALUE_WORD.fullmatch(following)):
            spec.value = following.strip("<>")
            spec.join = ValueJoin.WORD
            self._at += 1

    def _braced(self) -> str:
        start = self._at
        while self._at < len(self._tokens) and self._peek() != "}":
            self._at += 1
        return "{" + "".join(self._tokens[start + 1 : self._at]) + "}"

    def _skip_group(self) -> None:
        """Go from an opening bracket to the one that closes it."""
        depth = 0
        while self._at < len(self._tokens):
            depth += (self._peek() == "[") - (self._peek() == "]")
            if depth == 0:
                return
            self._at += 1

    def _add(self, spec: OptionSpec) -> OptionSpec:
        """Keep an option; return the one that is kept, which may be an earlier one of this name."""
        for known in self._usage.options:
            if not set(known.names).isdisjoint(spec.names):
                known.names += [name for name in spec.names if name not in known.names]
                if spec.value and not known.value:
                    known.value, known.join = spec.value, spec.join
                return known
        self._usage.options.append(spec)
        return spec

    def _argument(self, token: str, *, is_optional: bool) -> None:
        if token in {"...", "…"}:
            if self._usage.arguments and self._is_first:
                self._usage.arguments[-1].is_repeated = True
            return
        if not self._is_first or self._is_definition or token in {"<", "=", "]", ")", "}"}:
            return
        is_repeated = token.endswith("...") or "..." in token
        name = token.replace("...", "").strip("<>,:;'\"`$+")
        if not _NAME_OF_POSITIONAL.fullmatch(name) or _PLACEHOLDER_OF_OPTIONS.fullmatch(name):
            return
        for known in self._usage.arguments:
            if known.name.casefold() == name.casefold():
                known.is_repeated = True
                return
        self._usage.arguments.append(UsageArgument(name, not is_optional, is_repeated))


def _bundle(token: str) -> str:
    """Return the letters of ``-46AaC``, which are options of their own; empty for the name of one option."""
    letters = token[1:]
    if token.startswith("--") or len(letters) < 2 or not letters.isalnum() or len(set(letters)) < len(letters):  # noqa: PLR2004
        return ""
    ordered = [(not letter.isdigit(), letter.casefold()) for letter in letters]
    is_mixed = len(letters) >= _MIXED_BUNDLE and not letters.islower() and not letters.isupper()
    capitals_first = [(not letter.isdigit(), letter.islower(), letter.casefold()) for letter in letters]
    return letters if is_mixed or sorted(ordered) == ordered or sorted(capitals_first) == capitals_first else ""


def _are_aliases(first: str, second: str) -> bool:
    names = sorted((first, second), key=len)
    if names[1].startswith("--no-"):
        return False
    short, long = (name.lstrip("-") for name in names)
    return len(short) == 1 and names[1].startswith("--") and short.casefold() == long[:1].casefold()
