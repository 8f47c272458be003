"""The words of one command as its program reads them: options, their values, operands."""

from __future__ import annotations

import posixpath
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

_CLUSTER: Final = re.compile(r"-[A-Za-z0-9][A-Za-z0-9=,./+-]*")
_SHORT: Final = 2
"""Characters of a short option: ``-x``."""
_NO_SHORTER: Final = 4
"""Characters of the shortest abbreviation of a long option that counts: ``--fo``."""
_TEXT_OPTIONS: Final = ("-c", "-e", "-E", "-m", "-p", "-r", "--eval", "--print")
_ENDS: Final = frozenset({";", "+", "\\;"})
"""What ends the command behind a command option."""
_OFF: Final = frozenset({"false", "no", "0"})


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgramGrammar:
    """How a program reads its words, as far as that differs from the usual."""

    value_options: frozenset[str] = frozenset()
    """Options that take the next word."""
    exact_options: frozenset[str] = frozenset()
    """Long options that are options of their own, though they look like the beginning of another one."""
    command_options: frozenset[str] = frozenset()
    """Options behind which a command stands, up to ``;``, ``+`` or the end: ``find -exec``."""
    write_options: frozenset[str] = frozenset()
    """Options that take the next word, a file that is written."""
    abbreviates: bool = False
    """Whether the beginning of a long option stands for it."""
    has_clusters: bool = True
    """Whether ``-fd`` is ``-f`` and ``-d``."""

    def commands_in(self, words: Sequence[str]) -> Iterator[tuple[str, ...]]:
        """Yield the commands behind ``command_options``."""
        if not self.command_options:
            return
        end = len(words)
        ends = []
        for place in range(len(words) - 1, -1, -1):
            ends.append(end)
            end = place if words[place] in _ENDS else end
        for place, word in enumerate(words):
            if word in self.command_options:
                behind = words[place + 1 : place + 2]
                is_line = bool(behind) and any(character.isspace() for character in behind[0])
                yield tuple(behind if is_line else words[place + 1 : ends[-1 - place]])
            elif word.partition("=")[0] in self.command_options and "=" in word:
                yield (word.partition("=")[2],)
            elif self.has_clusters and len(word) > _SHORT and word[:_SHORT] in self.command_options:
                yield (word[_SHORT:],)


def plain_path(operand: str) -> str:
    """Return a path without what changes nothing in it; what is no path stays as it is."""
    if "/" not in operand or "://" in operand:
        return operand
    path = posixpath.normpath(operand)
    return path[1:] if path.startswith("//") else path


class CommandReading:
    """The words behind the name of a program, read once."""

    __slots__ = (
        "_clusters",
        "_grammar",
        "_long",
        "_operand_places",
        "_options",
        "_plain",
        "_value_places",
        "_values",
        "operands",
        "words",
    )

    def __init__(self, words: Sequence[str], grammar: ProgramGrammar) -> None:
        self.words = tuple(words)
        self.operands: tuple[str, ...] = ()
        """What is no option and no known value of one."""
        self._grammar = grammar
        self._options: set[str] = set()
        self._clusters: set[str] = set()
        self._long: set[str] = set()
        self._values: list[tuple[str, str]] = []
        self._value_places: list[int] = []
        self._operand_places: list[int] = []
        self._plain: tuple[str, ...] | None = None
        self._read()

    @property
    def plain_operands(self) -> tuple[str, ...]:
        """The operands, paths among them in their shortest form."""
        if self._plain is None:
            self._plain = tuple(plain_path(operand) for operand in self.operands)
        return self._plain

    def has_any(self, options: Iterable[str]) -> bool:
        """Return whether one of these options is there, also abbreviated or among other letters."""
        return any(self._has(option) for option in options)

    def values_of(self, option: str) -> list[str]:
        """Return what the option is given, as often as it is there."""
        return [value for name, value in self._values if name == option]

    def place_of(self, command: Sequence[frozenset[str]]) -> int | None:
        """Return at which operand these words stand: the first, or one behind what may be the value of an option."""
        for place in range(len(self.operands) + 1):
            found = self.operands[place : place + len(command)]
            is_first = place == 0 or self._may_be_value(place - 1)
            if not is_first:
                return None
            if len(found) == len(command) and all(one in words for one, words in zip(found, command, strict=True)):
                return place
        return None

    def rest_behind(self, operand_count: int) -> tuple[str, ...]:
        """Return the words from the operand of this number on, options of its own included; empty if there is none."""
        if operand_count >= len(self._operand_places):
            return ()
        return self.words[self._operand_places[operand_count] :]

    def rests_behind_options(self) -> Iterator[tuple[str, ...]]:
        """Yield the words from each on that was taken for the value of an option, which may be wrong."""
        return (self.words[place:] for place in self._value_places)

    def words_before(self, ends: frozenset[str], *, most: int) -> tuple[str, ...]:
        """Return the first operands, up to one of those words, or to one that begins as they do."""
        for place, operand in enumerate(self.operands[:most]):
            begins = operand.partition("-")[0].partition("_")[0].partition(":")[0]
            if begins in ends and not self._may_be_value(place):
                return self.operands[:place]
        return self.operands[:most]

    @property
    def reads_program(self) -> bool:
        """Whether an interpreter runs what it reads: it is given neither a file nor a text to run."""
        gives_text = "-c" in self._clusters or any(self.values_of(option) for option in _TEXT_OPTIONS)
        return not gives_text and (not self.operands or self.operands[0] == "-" or "-s" in self._clusters)

    @property
    def shell_script(self) -> str | None:
        """The line that a shell is given by ``-c``, wherever its other options stand."""
        return self.operands[0] if "-c" in self._clusters and self.operands else None

    def _read(self) -> None:
        operands: list[str] = []
        is_value_of = ""
        is_over = False
        for place, word in enumerate(self.words):
            if is_value_of:
                self._values.append((is_value_of, word))
                self._value_places.append(place)
                is_value_of = ""
            elif is_over or not word.startswith("-") or word == "-":
                operands.append(word)
                self._operand_places.append(place)
            elif word == "--":
                is_over = True
                self._options.add(word)
            else:
                is_value_of = self._read_option(word)
        self.operands = tuple(operands)

    def _read_option(self, word: str) -> str:
        """Take an option in; return its name when the next word is its value."""
        takes = self._grammar.value_options | self._grammar.write_options
        name, equals, value = word.partition("=")
        if equals and value.lower() in _OFF:
            return ""
        self._options |= {word, name}
        if word.startswith("--"):
            self._long.add(name)
            if equals:
                self._values.append((name, value))
            return name if not equals and name in takes else ""
        if not self._grammar.has_clusters or _CLUSTER.fullmatch(word) is None:
            if self._grammar.has_clusters and len(word) > _SHORT and word[:_SHORT] in takes:
                self._values.append((word[:_SHORT], word[_SHORT:]))
                return ""
            return name if not equals and name in takes else ""
        for at, letter in enumerate(word[1:], 1):
            option = f"-{letter}"
            if not letter.isalnum():
                break
            self._clusters.add(option)
            if option in takes:
                rest = word[at + 1 :]
                if rest:
                    self._values.append((option, rest))
                return "" if rest else option
        return ""

    def _has(self, option: str) -> bool:
        if option.startswith("--") and option != "--":
            is_there = option in self._options or any(self._abbreviates(word, option) for word in self._long)
            return is_there and f"--no-{option[2:]}" not in self._options
        return option in self._options or option in self._clusters

    def _abbreviates(self, word: str, option: str) -> bool:
        return (
            self._grammar.abbreviates
            and len(word) >= _NO_SHORTER
            and option.startswith(word)
            and word not in self._grammar.exact_options
        )

    def _may_be_value(self, operand: int) -> bool:
        place = self._operand_places[operand]
        return place > 0 and self.words[place - 1].startswith("-") and self.words[place - 1] != "--"
