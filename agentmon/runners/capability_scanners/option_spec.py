"""The head of an option's line: its names and the value it takes, read character by character.

Nothing here backtracks, so that no line takes longer than its length.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Final

from agentmon.runners.capability_scanners.scanned import ValueJoin

_NAME: Final = re.compile(
    r"--?(?:\[no-\]|\[no\]|\(no-\))?[A-Za-z0-9?#@%_][\w.+?!@#*-]{0,80}|-{1,2}(?=[<\[{ ,]|$)|\+[A-Za-z][\w-]{0,40}"
)
_NEGATABLE: Final = re.compile(r"(--?)(?:\[no-?\]|\(no-\))(.+)")
_SEPARATOR: Final = re.compile(r"(?: \(\"\w{1,10}\"\))? ?(?:,|\||/) {0,20}(?=[-+])|, \w, (?=-)| or (?=-)")
_OTHER_SYSTEM: Final = re.compile(r",/[?A-Z](?=[ ,]|$)|, \w(?= {2})")
"""A spelling that no option of this kind has: ``/?`` of Windows, the letters of BSD's ps."""
_SEVERAL_TIMES: Final = re.compile(r"\.\.\.(?! -)|(?:\|([a-z])\1+)+(?=[, ])")
"""``-v...``, or ``-v|vv|vvv``."""
_ONE_OF_LETTERS: Final = re.compile(r"-\[(?!no\])([A-Za-z]{2,4})\]((?:\[[^\]\s]{1,20}\])?\S{1,40})")
"""``-[mM][-]module`` of perl."""
_NUMBER_ITSELF: Final = frozenset({"-NUM", "-NUMBER"})
"""An option that is a number: ``-5``."""
_RANGE: Final = " ... -"
"""Between ``-0`` and ``-9``."""
_GAP: Final = re.compile(r" {2,}| (?=[=:] )")
_UPPER_WORD: Final = re.compile(
    r"[A-Z][A-Z0-9_]*(?:[-./:=,+@|][A-Za-z0-9_]+|\[[^\s\]]{0,60}\]|<[^\s>]{0,60}>|\.{2,3}|s\b)*(?=\s|,|$)"
)
_PLAIN_WORD: Final = re.compile(r"[^\s,]+")
_LOWER_WORD: Final = re.compile(r"[a-z](?:,?[\w./:=|+-]){0,60}(?:\[[^\s\]]{0,60}\])?(?:\.\.\.)?|\+int")
_CLOSING: Final = {"<": ">", "[": "]", "{": "}", "(": ")"}
_REMARKS: Final = ("[default", "[env", "[possible", "[required", "[boolean", "[string", "[number", "[array", "[count")
"""Brackets that say something of an option and are no value."""
_JOINS: Final = {"=": ValueJoin.EQUALS, ":": ValueJoin.COLON}
_QUOTES: Final = "'\"`"
_MOST_VALUE_CHARACTERS: Final = 400
_MOST_VALUE_WORDS: Final = 4
_SENTENCE_STARTS: Final = frozenset({"A", "I"})


@dataclass(slots=True)
class OptionSpec:
    """One option of a line."""

    names: list[str] = field(default_factory=list)
    value: str = ""
    """What stands for its value, with brackets; empty when it takes none."""
    is_value_optional: bool = False
    is_repeated: bool = False
    join: ValueJoin = ValueJoin.EQUALS


@dataclass(frozen=True, slots=True)
class SpecLine:
    """What a line that begins with an option says."""

    specs: tuple[OptionSpec, ...]
    description: str
    description_column: int
    """Where the description begins in the line's text; 0 when it has none."""
    has_gap: bool
    """Whether two blanks or more divide the options from the description."""


def read_spec_line(text: str) -> SpecLine | None:
    """Return the options that a line begins with, and the rest as their description; None when it begins with none."""
    if not text or text[0] not in "-+":
        return None
    if " ; -" in text:
        # find lists several: "-exec COMMAND ; -exec COMMAND {} + -ok COMMAND ;".
        text = text.replace(" {} + -", " -").replace(" ; -", " -").removesuffix(" ;")
    reader = _SpecReader(text)
    specs = reader.read()
    if not specs:
        return None
    rest = text[reader.place :]
    stripped = rest.lstrip(" ")
    blanks = len(rest) - len(stripped)
    for mark in ("= ", ": ", "- ", "-- ", "– ", "— "):
        if stripped.startswith(mark) and blanks:
            stripped = stripped.removeprefix(mark).lstrip()
            blanks = max(blanks, 2)
    if not blanks and stripped not in {"", ":", ","}:
        if not stripped.startswith(":"):
            return None
        stripped = stripped[1:].lstrip()
        blanks = 2
    has_gap = blanks > 1 and stripped != ""
    return SpecLine(tuple(specs), "" if stripped in {":", ","} else stripped, len(text) - len(stripped), has_gap)


class _SpecReader:
    def __init__(self, text: str) -> None:
        self._text = text
        self.place = 0

    def read(self) -> list[OptionSpec]:
        letters = _ONE_OF_LETTERS.match(self._text)
        if letters:
            self.place = letters.end()
            return [OptionSpec([f"-{letter}"], letters[2], join=ValueJoin.NOTHING) for letter in letters[1]]
        specs: list[OptionSpec] = []
        is_alias = False
        while True:
            spec = self._option()
            if spec is None:
                return specs
            if is_alias and specs:
                _join(specs[-1], spec)
            else:
                specs.append(spec)
            following = self._next_name(specs[-1])
            if following is None:
                return specs
            is_alias = following

    def _option(self) -> OptionSpec | None:
        found = _NAME.match(self._text, self.place)
        if found is None:
            return None
        name = found[0].rstrip(".") if found[0].endswith("..") else found[0]
        if name in {"-", "--"}:
            return None
        # A word that only begins like an option, as a dash of a sentence does.
        is_prefix = name.endswith("-") and self._text[self.place + len(name) :][:1] == "<"
        name = name.rstrip("*+!?.-") if len(name.strip("-")) > 1 and not is_prefix else name
        self.place += len(name)
        if name in _NUMBER_ITSELF:
            return OptionSpec(names=[name], value="NUM", join=ValueJoin.NOTHING)
        if len(name) > len("-#") and name.endswith("#") and name[1] != "#":
            return OptionSpec(names=[name[:-1]], value="#", join=ValueJoin.NOTHING)
        spec = OptionSpec(names=[name])
        several = _SEVERAL_TIMES.match(self._text, self.place)
        if several:
            spec.is_repeated = True
            self.place = several.end()
        self._value(spec)
        return spec

    def _next_name(self, last: OptionSpec) -> bool | None:
        """Go to the next name of the line; return whether it is another name of the last option, None at the end."""
        other_system = _OTHER_SYSTEM.match(self._text, self.place)
        if other_system:
            self.place = other_system.end()
        separator = _SEPARATOR.match(self._text, self.place)
        if separator:
            name = _NAME.match(self._text, separator.end())
            if name is None:
                return None
            self.place = separator.end()
            # "-i|--install FILE | -R|--recursive FOLDER" are two.
            is_another = separator[0] == " | " and last.value and not name[0].startswith("--")
            return not (is_another and any(known.startswith("--") for known in last.names))
        if self._text.startswith(_RANGE, self.place):
            self.place += len(_RANGE) - 1
            return False
        rest = self._text[self.place :]
        stripped = rest.lstrip(" ")
        blanks = len(rest) - len(stripped)
        if not blanks or not stripped.startswith("-") or not _NAME.match(stripped):
            return None
        name = _NAME.match(stripped)
        end = name.end() if name else 0
        is_cell = stripped[end : end + 2] in {"", "  "} or stripped[end : end + 1] in {"=", "["}
        is_long_after_short = (
            _is_short(last.names[-1]) and stripped.startswith("--") and (not last.value or (blanks > 1 and is_cell))
        )
        if blanks > 1 and not is_long_after_short:
            return None
        # After the name of the second a description may follow: "-x -y is better".
        if stripped[end : end + 1] not in {"", " ", "=", "[", ","}:
            return None
        self.place += blanks
        return is_long_after_short

    def _value(self, spec: OptionSpec) -> None:
        text = self._text
        mark = text[self.place : self.place + 1]
        if mark == "=":
            self.place += 1
            # "--all= Show all" has no value: the sign divides the option from its description.
            following = text[self.place : self.place + 2]
            spec.value = self._word() or ("" if following[:1] == " " and following[1:].isalpha() else "VALUE")
            return
        if mark == "," and text[self.place + 1 : self.place + 2] == "<":
            spec.names[-1] += ","
            self.place += 1
            spec.join = ValueJoin.NOTHING
            mark = "<"
        if mark == "/" and "/" in text[self.place + 1 : self.place + 30].split(" ", 1)[0]:
            end = text.index("/", self.place + 1) + 1
            spec.value, spec.join = text[self.place : end], ValueJoin.NOTHING
            self.place = end
            return
        if mark == ":" and text[self.place + 1 : self.place + 2] in {"<", "[", "{"}:
            spec.names[-1] += ":"
            self.place += 1
            spec.join = ValueJoin.NOTHING
            mark = text[self.place]
        if mark and mark in _CLOSING:
            value = self._bracketed()
            if value.startswith("[") and value.endswith("]"):
                spec.is_value_optional = True
                inner = value[1:-1]
                join = _JOINS.get(inner[:1], ValueJoin.NOTHING)
                value = inner.removeprefix(join.value).strip() or "VALUE"
            else:
                join = ValueJoin.NOTHING
            value += self._attached_rest()
            spec.value = value
            spec.join = join
            return
        if mark == " ":
            self._spaced_value(spec)

    def _spaced_value(self, spec: OptionSpec) -> None:
        """Read the value that stands one blank behind the name; behind a wide gap only one in angle brackets."""
        text = self._text
        place = self.place
        while place < len(text) and text[place] == " ":
            place += 1
        blanks = place - self.place
        if place >= len(text) or text[place] in "-":
            return
        if blanks > 1:
            if text[place] == "<":
                self._take(spec, place)
            return
        start = self.place
        for _ in range(_MOST_VALUE_WORDS):
            if not self._take(spec, place):
                break
            if text[self.place : self.place + 1] != " " or text[self.place + 1 : self.place + 2] in {" ", "-", ""}:
                break
            place = self.place + 1
        if not spec.value:
            self.place = start
            self._words_before_gap(spec, start + 1)

    def _take(self, spec: OptionSpec, place: int) -> bool:
        """Take one word at this place as a part of the value when it looks like one."""
        text = self._text
        mark = text[place]
        if spec.value and text.startswith("| ", place) and not text.startswith("| -", place):
            self.place = place + 1
            self._add(spec, mark)
            return True
        if mark in "<{" or (mark == "[" and not text.startswith(_REMARKS, place)):
            self.place = place
            bracketed = self._bracketed()
            value = bracketed + self._attached_rest()
            if mark == "[" and value.removesuffix("...") == bracketed and not spec.value:
                spec.is_value_optional = True
                value = bracketed[1:-1].strip()
            self._add(spec, value)
            return True
        word = _UPPER_WORD.match(text, place)
        if word is None:
            return False
        is_sentence = word[0] in _SENTENCE_STARTS and _LOWER_WORD.match(text, word.end() + 1)
        if is_sentence and not _GAP.search(text, word.end(), word.end() + 3):
            return False
        self.place = word.end()
        self._add(spec, word[0])
        return True

    def _words_before_gap(self, spec: OptionSpec, start: int) -> None:
        """Take lower-case words as the value when nothing but a gap, another name or the end of the line follows."""
        gap = _GAP.search(self._text, start)
        end = gap.start() if gap else len(self._text)
        comma = self._text.find(", -", start, end)
        bar = self._text.find(" | -", start, end)
        end = min((place for place in (comma, bar) if place >= 0), default=end)
        words = self._text[start:end]
        if end == len(self._text) and words.endswith(":") and _is_value_like(words):
            words, end = words[:-1], end - 1
        count = words.count(" ") + 1
        most = _MOST_VALUE_WORDS if gap else 1
        if not words or count > most or " -" in words:
            dash = self._text.find(" -", start)
            first = _PLAIN_WORD.match(self._text, start)
            if first is None or first.end() != dash or not _LOWER_WORD.fullmatch(first[0]):
                return
            words, end = first[0], dash
        if count == 1 and not (_LOWER_WORD.fullmatch(words) or words[0] in _QUOTES or _is_value_like(words)):
            return
        if words.endswith((".", ":", ";", "!")) and not words.endswith(".."):
            return
        self._add(spec, words)
        self.place = end

    def _add(self, spec: OptionSpec, value: str) -> None:
        if not spec.value:
            spec.join = ValueJoin.WORD
        spec.value = f"{spec.value} {value}".strip()

    def _word(self) -> str:
        """Read a value that follows an equals sign: to a blank, or to a comma that another name follows."""
        text = self._text
        start = self.place
        while self.place < len(text) and self.place - start < _MOST_VALUE_CHARACTERS:
            mark = text[self.place]
            if mark in _CLOSING:
                self._bracketed()
                continue
            if mark in _QUOTES:
                end = text.find(mark, self.place + 1)
                if end > 0 and end - self.place < _MOST_VALUE_CHARACTERS:
                    self.place = end + 1
                    continue
            if mark == " " or _SEPARATOR.match(text, self.place):
                break
            self.place += 1
        word = text[start : self.place]
        if word.endswith(":") and self.place == len(text):
            self.place -= 1
        return word.rstrip(",:")

    def _attached_rest(self) -> str:
        """Read what hangs on a bracket without a blank: ``...``, ``=<value>``, ``[,<more>]``."""
        text = self._text
        start = self.place
        if text.startswith(" ...", self.place):
            self.place += len(" ...")
            return "..."
        while self.place < len(text) and self.place - start < _MOST_VALUE_CHARACTERS:
            if text[self.place] in _CLOSING:
                self._bracketed()
            elif text.startswith("|-", self.place) or (
                text[self.place] in " ," and not text.startswith((",<", ",[", ", <"), self.place)
            ):
                break
            else:
                self.place += 1
        return text[start : self.place].rstrip(":")

    def _bracketed(self) -> str:
        """Read from an opening bracket to the one that closes it, or only the bracket when none does."""
        text = self._text
        start = self.place
        waiting: list[str] = []
        for place in range(start, min(len(text), start + _MOST_VALUE_CHARACTERS)):
            mark = text[place]
            if waiting and mark == waiting[-1]:
                waiting.pop()
                if not waiting:
                    self.place = place + 1
                    return text[start : self.place]
            elif mark in _CLOSING:
                waiting.append(_CLOSING[mark])
        self.place = start + 1
        return text[start]


def spread_names(name: str) -> tuple[str, ...]:
    """Return ``--color`` and ``--no-color`` for ``--[no-]color``, and any other name as it is."""
    negatable = _NEGATABLE.fullmatch(name)
    if negatable is None:
        return (name,)
    between = "no-" if "no-" in name else "no"
    return (negatable[1] + negatable[2], negatable[1] + between + negatable[2])


def _is_short(name: str) -> bool:
    return name.startswith("-") and not name.startswith("--") and len(name) <= len("-xx")


def _is_value_like(word: str) -> bool:
    return any(mark in word for mark in "|<>[]{}=") or word[:1].isdigit()


def _join(kept: OptionSpec, other: OptionSpec) -> None:
    if other.names[0] not in kept.names:
        kept.names += other.names
    kept.is_repeated |= other.is_repeated
    if other.value and (not kept.value or other.join is ValueJoin.EQUALS):
        kept.value = other.value
        kept.join = other.join
        kept.is_value_optional = other.is_value_optional
