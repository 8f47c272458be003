"""Completion files of zsh: the specifications of ``_arguments``, and the lists of commands for ``_describe``."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from agentmon.domain.agents import CapabilitySource
from agentmon.runners.capability_scanners.case_branches import CaseBranches
from agentmon.runners.capability_scanners.command_tree import CommandTree
from agentmon.runners.capability_scanners.scanned import ScannedCapability, ValueJoin, ValueKind
from agentmon.runners.capability_scanners.shell_text import ShellText, Token

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_OPTION: Final = re.compile(r"([-+][^\[:=+]*?|[-+]{1,2}[^\[:]*?)(=-|=|\+|-)?(?=\[|:|$)")
_COMMAND_SUBJECT: Final = re.compile(r"(?:line|words|service|cmd|command|subcommand|verb)\b")
_VARIABLE: Final = re.compile(r"\$\{?(?:\([^)]*\)|[=~^]+)?(\w+)(?:\[[@*]\])?\}?")
_LIST_NAME: Final = re.compile(r"(?:^|_)(?:sub)?(?:commands?|cmds?|verbs)$", re.IGNORECASE)
_NAME: Final = re.compile(r"[A-Za-z0-9][\w.+-]*")
_OWN_OPTION: Final = re.compile(r"-[nswWCRSAOM]+|:|-")
_MOST_EXPANDED: Final = 2000
_MOST_DEPTH: Final = 3


@dataclass(frozen=True, slots=True)
class _Specification:
    names: tuple[str, ...]
    """Empty for a positional argument."""
    place: str = ""
    """Of a positional argument: its number, ``*`` or nothing."""
    is_repeated: bool = False
    join: ValueJoin | None = None
    explanation: str = ""
    messages: tuple[tuple[str, str, bool], ...] = ()
    """Of each value its message, its action and whether it may be left out."""


def read_zsh(text: str, program: str) -> tuple[ScannedCapability, ...]:
    """Return what a completion file of zsh tells of the program."""
    tree = CommandTree(program, CapabilitySource.SCAN_COMPLETION)
    tokens = ShellText(text).tokens()
    lists = _lists(tokens)
    for function, name, words in _command_lists(tokens, program):
        if _LIST_NAME.search(name):
            for word in words:
                command, _, told = word.text.replace("\\:", "\0").partition(":")
                if word.is_fixed and _NAME.fullmatch(command):
                    tree.name((*function, command), told.replace("\0", ":"))
    branches = CaseBranches(program, _COMMAND_SUBJECT)
    statement: list[Token] = []
    for token in tokens:
        if not token.is_sign:
            statement.append(token)
            continue
        counts_for = branches.command
        if statement and statement[0].text == "_arguments" and counts_for is not None:
            _note_arguments(tree, counts_for, _expanded(statement[1:], lists))
        branches.read(statement, token)
        statement = []
    return tree.capabilities()


def _lists(tokens: Sequence[Token]) -> dict[str, list[Token]]:
    """Return the fixed words of every array and text that the script sets, by name."""
    found: dict[str, list[Token]] = {}
    for name, words in _assignments(tokens):
        found.setdefault(name, []).extend(words)
    return found


def _assignments(tokens: Sequence[Token]) -> list[tuple[str, list[Token]]]:
    found: list[tuple[str, list[Token]]] = []
    for at, token in enumerate(tokens):
        assigned = re.fullmatch(r"(\w+)\+?=(.*)", token.text, re.DOTALL)
        if token.is_sign or assigned is None:
            continue
        if assigned[2]:
            found.append((assigned[1], [Token(assigned[2], is_fixed=token.is_fixed)]))
        elif at + 1 < len(tokens) and tokens[at + 1] == Token("(", is_sign=True):
            found.append((assigned[1], _until_closed(tokens, at + 2)))
    return found


def _until_closed(tokens: Sequence[Token], at: int) -> list[Token]:
    words: list[Token] = []
    while at < len(tokens) and tokens[at] != Token(")", is_sign=True):
        if not tokens[at].is_sign:
            words.append(tokens[at])
        at += 1
    return words


def _command_lists(tokens: Sequence[Token], program: str) -> list[tuple[tuple[str, ...], str, list[Token]]]:
    """Return each list with its name and the command whose function it stands in."""
    found: list[tuple[tuple[str, ...], str, list[Token]]] = []
    function: tuple[str, ...] = ()
    for at, token in enumerate(tokens):
        if token.is_sign:
            continue
        opening = [Token("(", is_sign=True), Token(")", is_sign=True)]
        if list(tokens[at + 1 : at + 3]) == opening:
            # clap writes ``_git__remote_commands`` with two lines between the words.
            named = re.fullmatch(rf"_{re.escape(program)}((?:__\w[\w-]*?)*)(?:__?commands)?", token.text)
            function = tuple(part for part in named[1].split("__") if part) if named is not None else ()
        elif token.text.endswith("=") and at + 1 < len(tokens) and tokens[at + 1] == opening[0]:
            found.append((function, token.text.rstrip("+="), _until_closed(tokens, at + 2)))
    return found


def _expanded(words: Sequence[Token], lists: Mapping[str, Sequence[Token]], depth: int = 0) -> list[Token]:
    found: list[Token] = []
    for word in words:
        variable = None if word.is_fixed else _VARIABLE.fullmatch(word.text)
        if variable is not None and depth < _MOST_DEPTH and variable[1] in lists:
            found += _expanded(lists[variable[1]], lists, depth + 1)
        else:
            found.append(word)
        if len(found) > _MOST_EXPANDED:
            break
    return found


def _note_arguments(tree: CommandTree, command: tuple[str, ...], words: Sequence[Token]) -> None:
    told = [found for word in _own_options_passed(words) if (found := _specification(word.text)) is not None]
    if any(specification.names or specification.messages for specification in told):
        tree.learn(command)
    # The two names of an option are specifications of their own with the same explanation, one behind the other.
    same: list[_Specification] = []
    for specification in [*told, None]:
        if same and (specification is None or not _is_same(same[-1], specification)):
            _note_option(tree, command, same)
            same = []
        if specification is None:
            break
        if specification.names:
            same.append(specification)
        else:
            _note_word(tree, command, specification)


def _own_options_passed(words: Sequence[Token]) -> Sequence[Token]:
    """Return the words behind the options of ``_arguments`` itself, as ``-s -A '^--' :``."""
    at = 0
    while at < len(words) and _OWN_OPTION.fullmatch(words[at].text):
        at += 2 if words[at].text in {"-A", "-O", "-M"} else 1
    return words[at:]


def _is_same(one: _Specification, other: _Specification) -> bool:
    return bool(one.explanation) and (one.explanation, one.messages) == (other.explanation, other.messages)


def _note_option(tree: CommandTree, command: tuple[str, ...], same: Sequence[_Specification]) -> None:
    told = same[0]
    message, action, is_optional = told.messages[0] if told.messages else ("", "", False)
    takes_value = bool(told.messages) or any(one.join is not None for one in same)
    long = next((one for one in same if one.names[0].startswith("--")), told)
    tree.add_option(
        command,
        [name for one in same for name in one.names],
        kind=ValueKind.STRING if takes_value else ValueKind.BOOLEAN,
        value_name=message.strip(),
        description=told.explanation,
        choices=_choices(action),
        is_repeated=any(one.is_repeated for one in same),
        is_value_optional=is_optional,
        join=long.join if takes_value else None,
    )


def _note_word(tree: CommandTree, command: tuple[str, ...], told: _Specification) -> None:
    if not told.messages:
        return
    message, action, is_optional = told.messages[0]
    if message.strip() in {"", "default"}:
        return
    if action.startswith("->") or _LIST_NAME.search(action.split(" ")[0]):
        # A subcommand and its words, which are commands of their own.
        return
    tree.add_word(
        command,
        message.strip(),
        choices=_choices(action),
        is_repeated=told.place == "*",
        is_required=told.place.isdigit() and not is_optional,
    )


def _specification(text: str) -> _Specification | None:
    """Return what ``(-q)*-v[more words]:how:(a b)`` says; None for what is no specification."""
    rest = re.sub(r"^\([^)]*\)", "", text)
    is_repeated = rest.startswith("*")
    rest = rest.removeprefix("*")
    place = re.match(r"(\d*)(::?:?)", rest)
    if place is not None:
        messages = _messages(rest[len(place[1]) :])
        return _Specification((), "*" if is_repeated else place[1], messages=messages)
    found = _OPTION.match(rest)
    if found is None or not found[1].strip("-+") or not found[1].startswith("-"):
        return None
    name = found[1]
    join = {"=": ValueJoin.EQUALS, "=-": ValueJoin.EQUALS, "+": ValueJoin.WORD, "-": ValueJoin.NOTHING}.get(
        found[2] or ""
    )
    rest = rest[found.end() :]
    explanation = ""
    if rest.startswith("["):
        end = re.search(r"(?<!\\)\]", rest)
        explanation = re.sub(r"\\(.)", r"\1", rest[1 : end.start()] if end else rest[1:])
        rest = rest[end.end() :] if end else ""
    messages = _messages(rest)
    if join is None and messages:
        join = ValueJoin.WORD
    return _Specification((name,), "", is_repeated, join, explanation, messages)


def _messages(rest: str) -> tuple[tuple[str, str, bool], ...]:
    parts = re.split(r"(?<!\\):", rest)[1:]
    found: list[tuple[str, str, bool]] = []
    while parts:
        is_optional = parts[0] == "" and len(parts) > 1
        if is_optional:
            parts = parts[1:]
        message, action, parts = parts[0], parts[1] if len(parts) > 1 else "", parts[2:]
        found.append((message.replace("\\:", ":"), action.strip(), is_optional))
    return tuple(found)


def _choices(action: str) -> list[str]:
    """Return the values of a list in parentheses, and of one in two pairs of them that says something of each."""
    if not action.startswith("("):
        return []
    inner = action.strip("() \n")
    words = [re.split(r"\\?:", word)[0] for word in re.findall(r"(?:\\.|\"[^\"]*\"|'[^']*'|\S)+", inner)]
    return [word for word in words if re.fullmatch(r"[\w.+:/@-]+", word)]
