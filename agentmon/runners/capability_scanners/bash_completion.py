"""Completion files of bash: lists of words that are offered, and branches that look at the word before.

Such a file is a program of its own, and many ask the tool itself at each key. What stands in it as fixed text is read:
the files of util-linux, systemd and Debian, and those that clap and older cobra write.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from agentmon.domain.agents import CapabilitySource
from agentmon.runners.capability_scanners.case_branches import CaseBranches
from agentmon.runners.capability_scanners.command_tree import CommandTree
from agentmon.runners.capability_scanners.scanned import ScannedCapability, ValueJoin, ValueKind
from agentmon.runners.capability_scanners.shell_text import ShellText, Token, statements

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_OPTION: Final = re.compile(r"(-[A-Za-z0-9?#@]|--?[A-Za-z0-9][\w.+-]+)(\[?=.*)?")
_COMMAND: Final = re.compile(r"[a-z][\w.+-]*")
_ASSIGNMENT: Final = re.compile(r"(?:(\w+)\+?=|\[(\w+)\]=)(.*)", re.DOTALL)
_VARIABLE: Final = re.compile(r"\$\{?(\w+)(?:\[[@*]\])?\}?")
_COMMAND_SUBJECT: Final = re.compile(r"cmd\b|command\b|subcmd|subcommand|verb\b|words\[1\]|COMP_WORDS\[1\]")
_BEFORE_SUBJECT: Final = re.compile(r"prev\b|COMP_CWORD *- *1")
_LIST_NAME: Final = re.compile(r"(?:^|_)(?:sub)?(?:commands?|cmds?|verbs|actions)(?:$|_)", re.IGNORECASE)
_TAKES_VALUE: Final = re.compile(r"ARG|two_word|with_?arg|takes_arg|arg_?opts", re.IGNORECASE)
_FLAG_LIST: Final = re.compile(r"^(?:two_word_)?flags$|^(?:must_have_one_)?flags?$")
_BEFORE_COMMANDS: Final = frozenset(
    {"local", "declare", "typeset", "readonly", "-A", "-a", "-r", "then", "do", "else", "{", "function"}
)
_OFFERS: Final = frozenset({"__gitcomp", "__gitcomp_nl", "__gitcomp_builtin_options"})
_MOST_CHOICES: Final = 60


def read_bash(text: str, program: str) -> tuple[ScannedCapability, ...]:
    """Return what a completion file of bash tells of the program."""
    return _Reader(text, program).read()


class _Reader:
    def __init__(self, text: str, program: str) -> None:
        self._program = program
        self._tokens = ShellText(text).tokens()
        self._tree = CommandTree(program, CapabilitySource.SCAN_COMPLETION)
        self._lists = _fixed_lists(self._tokens)
        self._functions = _functions(self._tokens)
        self._mains = _main_functions(self._tokens, program)
        self._offered = _offered_names(self._tokens)
        self._function: tuple[str, ...] | None = ()
        """The command whose function is read; None in one that serves several commands."""
        self._depth = 0
        """Of braces around what is read; a function ends with the last of its own."""
        self._list = ""
        """The array whose words are read."""

    def read(self) -> tuple[ScannedCapability, ...]:
        branches = CaseBranches(self._program, _COMMAND_SUBJECT)
        statement: list[Token] = []
        for at, token in enumerate(self._tokens):
            if not token.is_sign:
                statement.append(token)
                continue
            self._read_statement(statement, branches)
            branches.read(statement, token)
            if token.text == "(":
                self._open(statement, is_empty=_is_sign(self._tokens, at + 1, ")"))
            elif token.text == ")":
                self._list = ""
            statement = []
        self._read_statement(statement, branches)
        return self._tree.capabilities()

    def _open(self, statement: Sequence[Token], *, is_empty: bool) -> None:
        name = statement[-1].text if statement else ""
        if name.endswith("="):
            self._list = name.rstrip("+=")
        elif is_empty:
            self._function = self._command_of_function(name)
            self._list, self._depth = "", 0

    def _command_of_function(self, name: str) -> tuple[str, ...] | None:
        start = f"_{self._program.replace('-', '_')}_"
        if name.startswith("__") and name not in self._mains and name != f"_{start}main":
            return None
        word = name.removeprefix(start)
        if not name.startswith(start) or name in self._mains or word in {"root_command", "main"}:
            return ()
        if self._program == "git":
            # Its file writes a line for a dash; in all others a line stands between a command and its part.
            return (word.replace("_", "-"),)
        parts = word.split("_")
        known = [start + "_".join(parts[:count]) in self._functions for count in range(1, len(parts))]
        if not all(known):
            return (word.replace("_", "-"),) if not any(known) else ("_".join(parts[:-1]), parts[-1])
        return tuple(parts)

    def _read_statement(self, statement: Sequence[Token], branches: CaseBranches) -> None:
        words = list(statement)
        while words and words[0].text in _BEFORE_COMMANDS:
            self._depth += words[0].text == "{"
            words = words[1:]
        if not words:
            return
        if words[0].text == "}":
            self._depth -= 1
            if self._depth <= 0:
                self._function = ()
            return
        command = self._command(branches)
        if command is None:
            return
        before = branches.branch_of(_BEFORE_SUBJECT)
        if before is not None:
            self._read_branch(command, before, words)
        elif words[0].text in _OFFERS:
            self._offer(command, "", words[1:])
        elif words[0].text == "compgen":
            self._offer(command, "", self._word_list(words))
        elif self._list:
            self._read_elements(command, words)
        else:
            self._read_assignments(command, words)

    def _read_assignments(self, command: tuple[str, ...], words: Sequence[Token]) -> None:
        for word in words:
            found = _ASSIGNMENT.fullmatch(word.text)
            if found is None or not found[1] or not found[3]:
                continue
            # What the program itself takes is read where it is offered.
            if (command and found[1] in self._offered) or _LIST_NAME.search(found[1]):
                self._offer(command, found[1], [Token(found[3], is_fixed=word.is_fixed)])

    def _command(self, branches: CaseBranches) -> tuple[str, ...] | None:
        typed = branches.command
        if typed is None or self._function is None:
            return None
        if not typed:
            return self._function
        words: list[str] = []
        for part in typed:
            # clap names the way to a command: git__remote__add, in newer releases with subcmd between.
            way = [word for word in part.split("__") if word not in {self._program, "subcmd"}]
            words += way if "__" in part else [part]
        return tuple(words)

    def _read_elements(self, command: tuple[str, ...], words: Sequence[Token]) -> None:
        for word in words:
            found = _ASSIGNMENT.fullmatch(word.text)
            if found is not None and found[2]:
                # systemd's arrays: what takes a value, what does not, and the commands.
                named = self._list if _LIST_NAME.search(self._list) else found[2]
                self._offer(command, named, [Token(found[3], is_fixed=word.is_fixed)])
            elif self._list in self._offered or _LIST_NAME.search(self._list) or _FLAG_LIST.search(self._list):
                self._offer(command, self._list, [word])

    def _offer(self, command: tuple[str, ...], name: str, lists: Sequence[Token]) -> None:
        """Note the options in lists of words; a list that begins with another word than an option is none of them."""
        for offered in lists:
            words = self._resolved(offered).split()
            if not words:
                continue
            if not words[0].startswith("-"):
                if name and _LIST_NAME.search(name):
                    self._name_commands(command, offered)
                continue
            options = [found for word in words if (found := _OPTION.fullmatch(word)) is not None]
            if len(options) == 1 and not self._list and name and not options[0][1].startswith("--"):
                # A text that happens to be one short option is what the script itself works with.
                continue
            for option in options:
                takes_value = option[2] is not None or bool(_TAKES_VALUE.search(name))
                self._tree.add_option(
                    command,
                    [option[1]],
                    kind=ValueKind.STRING if takes_value else ValueKind.BOOLEAN,
                    join=ValueJoin.EQUALS if option[2] else None,
                )

    def _name_commands(self, command: tuple[str, ...], offered: Token) -> None:
        if not offered.is_fixed:
            return
        for word in offered.text.split():
            if _COMMAND.fullmatch(word):
                self._tree.name((*command, word))

    def _read_branch(self, command: tuple[str, ...], patterns: Sequence[str], words: Sequence[Token]) -> None:
        """Note what a branch for the word before says: that its options take a value, and which."""
        names = [pattern for pattern in patterns if _OPTION.fullmatch(pattern)]
        if not names or words[0].text in {"return", "break", ";;"}:
            # Nothing that is offered may mean that no value follows.
            return
        lists = self._word_list(words)
        assigned = _ASSIGNMENT.fullmatch(words[0].text)
        if assigned is not None and assigned[1] in {"comps", "COMPREPLY"} and assigned[3]:
            lists = [Token(assigned[3], is_fixed=words[0].is_fixed)]
        offered = [word for one in lists if one.is_fixed or one.text in self._lists for word in one.text.split()]
        value_name = offered[0] if len(offered) == 1 else ""
        is_closed = 1 < len(offered) <= _MOST_CHOICES and not {word.text for word in words} & {"-S", "-P"}
        choices = [word for word in offered if re.fullmatch(r"[\w.+:/@-]+", word)] if is_closed else []
        for same in _pairs(names):
            self._tree.add_option(
                command,
                same,
                kind=ValueKind.STRING,
                value_name=value_name if re.fullmatch(r"[\w-]+", value_name) else "",
                choices=[] if any(choice.startswith("-") for choice in choices) else choices,
            )

    def _word_list(self, words: Sequence[Token]) -> list[Token]:
        """Return the list behind ``-W``, where it is known."""
        texts = [word.text for word in words]
        if "-W" not in texts[:-1]:
            return []
        offered = words[texts.index("-W") + 1]
        return [Token(self._resolved(offered))]

    def _resolved(self, offered: Token) -> str:
        """Return a list with the fixed ones that it names filled in; variables that nobody knows vanish."""

        def fill(found: re.Match[str]) -> str:
            return self._lists.get(found[1], "")

        return _VARIABLE.sub(fill, offered.text)


def _pairs(names: Sequence[str]) -> list[list[str]]:
    """Return the names of a branch by option: a short and a long one beside each other are the same option's."""
    found: list[list[str]] = []
    for name in names:
        is_long = name.startswith("--")
        if not found or len(found[-1]) > 1 or found[-1][0].startswith("--") is is_long:
            found.append([name])
        else:
            found[-1].append(name)
    return found


def _functions(tokens: Sequence[Token]) -> frozenset[str]:
    return frozenset(
        token.text
        for at, token in enumerate(tokens)
        if not token.is_sign and _is_sign(tokens, at + 1, "(") and _is_sign(tokens, at + 2, ")")
    )


def _offered_names(tokens: Sequence[Token]) -> frozenset[str]:
    """Return the variables whose words are offered to complete."""
    found: set[str] = set()
    for statement in statements(list(tokens)):
        if statement[0].text == "compgen" or statement[0].text in _OFFERS:
            for token in statement[1:]:
                found.update(_VARIABLE.findall(token.text))
    return frozenset(found)


def _main_functions(tokens: Sequence[Token], program: str) -> frozenset[str]:
    """Return the functions that ``complete`` names for the program itself."""
    found: set[str] = set()
    for statement in statements(list(tokens)):
        words = [token.text for token in statement]
        if words[0] == "complete" and "-F" in words[:-1] and program in words:
            found.add(words[words.index("-F") + 1])
    return frozenset(found)


def _fixed_lists(tokens: Sequence[Token]) -> Mapping[str, str]:
    found: dict[str, str] = {}
    for at, token in enumerate(tokens):
        assigned = None if token.is_sign else _ASSIGNMENT.fullmatch(token.text)
        if assigned is None or not assigned[1]:
            continue
        if assigned[3]:
            if token.is_fixed:
                found.setdefault(assigned[1], assigned[3])
        elif _is_sign(tokens, at + 1, "("):
            end = next((place for place in range(at + 2, len(tokens)) if _is_sign(tokens, place, ")")), at + 1)
            inside = [one for one in tokens[at + 2 : end] if not one.is_sign]
            if all(one.is_fixed and not one.text.startswith("[") for one in inside):
                found.setdefault(assigned[1], " ".join(one.text for one in inside))
    return found


def _is_sign(tokens: Sequence[Token], at: int, text: str) -> bool:
    return at < len(tokens) and tokens[at].is_sign and tokens[at].text == text
