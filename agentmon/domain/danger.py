"""How dangerous a command line is, by rules: pure reading of words, nothing is run or looked up on a disk.

The rules are data (``runners.danger``). Of the rules about a program the first that fits decides, so that an exception
stands before what it is an exception of; of several commands in one line the most dangerous one counts.
"""

from __future__ import annotations

import itertools
import re
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from agentmon.domain.agents import DangerLevel
from agentmon.domain.command_reading import CommandReading, ProgramGrammar, plain_path
from agentmon.domain.shell_script import MOST_CHARACTERS, ScriptCommand, UnreadableScriptError, read_script

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

TOO_MUCH: Final = "it is too long or too nested to be read whole"
_MOST_COMMANDS: Final = 1000
_MOST_WORK: Final = 1_500_000
"""Characters that are looked at, those of a command inside others again for each of them."""
_WORK_OF_WORD: Final = 16
"""A word costs as much as so many characters, however short it is."""
_MOST_KNOWN: Final = 4096
_LONGEST_NAME: Final = 60
_MAX_DEPTH: Final = 12
_MOST_REASONS: Final = 5
_VERB_OPERANDS: Final = 3
_ANY_PROGRAM: Final = "*"
_HELP: Final = frozenset({"--help"})
_FOUND: Final = "{}"
_EVALUATING: Final = frozenset({"eval", "source", "."})
_SUBSTITUTED: Final = "$(…)"
_LOOKING_UP: Final = frozenset({"which", "command", "type"})
_ALIASING: Final = "alias"
_STANDARD_OUTPUT: Final = "-"
_DECLARING: Final = frozenset({"export", "declare", "readonly", "typeset"})
_WRITES: Final = frozenset({">", ">|", "&>", "<>", ">>", "&>>"})


@dataclass(frozen=True, slots=True, kw_only=True)
class DangerReason:
    """One command of a line that can do harm, and what harm."""

    level: DangerLevel
    text: str
    """A sentence without subject and period: ``deletes folders with all that is in them``."""
    command: str
    """The words that say which command it is: ``git push``, ``rm``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DangerFinding:
    """What the rules say to a command line."""

    level: DangerLevel = DangerLevel.SAFE
    """``SAFE`` also when no rule knows the program."""
    reasons: tuple[DangerReason, ...] = ()
    """The most dangerous first, each once; at most five."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DangerRule:
    """Fits a command when all that it names fits."""

    programs: tuple[str, ...]
    """Names with ``*``; ``*`` alone means every program that no other rule and no grammar names."""
    level: DangerLevel
    reason: str
    command: tuple[frozenset[str], ...] = ()
    """The first operands, each one of several words: ``{"volume"}, {"rm", "prune"}``."""
    verbs: frozenset[str] = frozenset()
    """One of the first operands is such a word, or begins or ends with it: ``delete``, ``delete-bucket``."""
    options: tuple[frozenset[str], ...] = ()
    """Of each group one option is there."""
    unless_options: frozenset[str] = frozenset()
    operand: re.Pattern[str] | None = None
    """Some operand behind ``command`` is this from its first to its last character."""
    last_operand: re.Pattern[str] | None = None
    """The last operand is this, as the target of a copy."""
    only_operands: re.Pattern[str] | None = None
    """There are operands behind ``command``, and each is this."""
    text: re.Pattern[str] | None = None
    """It stands somewhere in a word, or in what the command is given to read."""
    lowers: bool = False
    """Whether a person's rule may say less than the rules that came with agentmon."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WrapperRule:
    """A program that runs the command in its arguments."""

    programs: tuple[str, ...]
    grammar: ProgramGrammar
    command: tuple[frozenset[str], ...] = ()
    """It runs others only with these first operands: ``docker exec``."""
    operands: int = 0
    """How many words of its own stand before the command."""
    has_assignments: bool = False
    """Whether ``NAME=text`` may stand before the command."""
    is_shared: bool = False
    """Whether its programs differ in the options that take a word, so that such a word may be the command."""
    is_script: bool = False
    """Whether its words are one line of shell when they are put together."""
    script_options: frozenset[str] = frozenset()
    """Options whose value is a line of shell."""
    level: DangerLevel = DangerLevel.SAFE
    reason: str = ""
    most: DangerLevel = DangerLevel.DESTRUCTIVE
    """The command can do no more harm than that, as in a container."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteRule:
    """A file that a redirection writes."""

    target: re.Pattern[str]
    level: DangerLevel
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class VariableRule:
    """A variable that decides what programs do."""

    names: tuple[str, ...]
    """With ``*``."""
    text: re.Pattern[str] | None
    """Found somewhere in the value; None for any value."""
    level: DangerLevel
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DangerRules:
    """The rules, as they were read from their files."""

    rules: tuple[DangerRule, ...] = ()
    own_rules: tuple[DangerRule, ...] = ()
    """The person's; they raise, and lower only where they say so."""
    wrappers: tuple[WrapperRule, ...] = ()
    grammars: tuple[tuple[tuple[str, ...], ProgramGrammar], ...] = ()
    """How the words of programs are read, by their names."""
    writes: tuple[WriteRule, ...] = ()
    variables: tuple[VariableRule, ...] = ()
    interpreters: frozenset[str] = frozenset()
    """Programs that run what they read, with ``*`` in their names."""
    shells: frozenset[str] = frozenset()
    """Interpreters whose ``-c`` is a line of shell."""
    senders: frozenset[str] = frozenset()
    """Programs whose output comes from elsewhere."""
    printers: frozenset[str] = frozenset()
    """Programs whose output is their arguments."""
    command_variables: frozenset[str] = frozenset()
    """Variables that programs take a command from, with ``*`` in their names."""
    reading_verbs: frozenset[str] = frozenset()
    """Words behind which no other word is a verb: ``search delete``."""
    free_words: frozenset[str] = frozenset()
    """Programs whose words say nothing of what they do: ``grep delete``."""
    _known: dict[str, tuple[DangerRule, ...]] = field(default_factory=dict, init=False, repr=False, compare=False)

    def judge(self, words: Sequence[str]) -> DangerFinding:
        """Return how dangerous it is to run these words as one command, its program first.

        What cannot be read whole counts as dangerous. The work is bounded whatever the words.
        """
        judging = _Judging(self)
        judging.look_at(ScriptCommand(words=tuple(words)), depth=0)
        return judging.finding()

    def judge_script(self, script: str) -> DangerFinding:
        """Return how dangerous a line of shell is."""
        judging = _Judging(self)
        judging.look_at_script(script, depth=0)
        return judging.finding()

    def decides(self, variable: str) -> bool:
        """Return whether a variable of this name decides what programs do."""
        known = (self.command_variables, *(frozenset(rule.names) for rule in self.variables))
        return any(is_named(variable, names) for names in known)

    def about(self, program: str) -> tuple[DangerRule, ...]:
        """Return the rules about a program in their order; those for every program when none names it."""
        if program not in self._known:
            if len(self._known) >= _MOST_KNOWN:
                self._known.clear()
            named = tuple(rule for rule in self.rules if is_named(program, rule.programs))
            described = (
                *(names for names, grammar in self.grammars if grammar.value_options or not grammar.write_options),
                *(one.programs for one in self.wrappers),
            )
            is_known = bool(named) or any(is_named(program, names) for names in described)
            if not is_known and not is_named(program, self.free_words):
                named = tuple(rule for rule in self.rules if _ANY_PROGRAM in rule.programs)
            self._known[program] = named
        return self._known[program]

    def own(self, program: str) -> tuple[DangerRule, ...]:
        """Return the person's rules about a program in their order."""
        return tuple(
            rule for rule in self.own_rules if _ANY_PROGRAM in rule.programs or is_named(program, rule.programs)
        )

    def grammar_of(self, program: str) -> ProgramGrammar:
        """Return how the words of a program are read."""
        return next((grammar for names, grammar in self.grammars if is_named(program, names)), _PLAIN_GRAMMAR)


_PLAIN_GRAMMAR: Final = ProgramGrammar()


def is_named(program: str, names: tuple[str, ...] | frozenset[str]) -> bool:
    """Return whether a name is among those, of which ``*`` alone is none."""
    # One is asked about many times; what is no name of a program is not kept.
    return (_is_known_named if len(program) <= _LONGEST_NAME else _is_named)(program, names)


def _is_named(program: str, names: tuple[str, ...] | frozenset[str]) -> bool:
    return any(
        program == name or ("*" in name and name != _ANY_PROGRAM and fnmatchcase(program, name)) for name in names
    )


_is_known_named: Final = lru_cache(maxsize=_MOST_KNOWN)(_is_named)


class _Judging:
    """One look at a line."""

    __slots__ = ("_commands_left", "_found", "_rules", "_work_left")

    def __init__(self, rules: DangerRules) -> None:
        self._rules = rules
        self._found: dict[DangerReason, None] = {}
        self._commands_left = _MOST_COMMANDS
        self._work_left = _MOST_WORK

    def finding(self) -> DangerFinding:
        reasons = sorted(self._found, key=lambda reason: -reason.level)
        level = reasons[0].level if reasons else DangerLevel.SAFE
        return DangerFinding(level=level, reasons=tuple(reasons[:_MOST_REASONS]))

    def look_at_script(
        self, script: str, *, depth: int, most: DangerLevel = DangerLevel.DESTRUCTIVE, given: str = ""
    ) -> None:
        """Look at each command of a line of shell, of which the first reads what is given."""
        if not self._may_take(len(script), "sh", most):
            return
        try:
            commands = read_script(script)
        except UnreadableScriptError:
            self._add(DangerLevel.DANGEROUS, TOO_MUCH, "sh", most)
            return
        for place, command in enumerate(commands):
            if self._is_over:
                return
            reads = given and not place and command.fed_by is None and not command.input_text
            self.look_at(replace(command, input_text=given) if reads else command, depth=depth, most=most)

    def look_at(self, command: ScriptCommand, *, depth: int, most: DangerLevel = DangerLevel.DESTRUCTIVE) -> None:
        """Look at a command, at what it runs, and at the files that the shell writes for it."""
        self._commands_left -= 1
        texts = (*command.words, *(one.target for one in command.redirections))
        work = sum(map(len, texts)) + _WORK_OF_WORD * len(texts) + len(_given_text(command, self._rules.printers))
        if not self._may_take(work, _name(command.words) or "sh", most, is_deep=depth > _MAX_DEPTH):
            return
        for inner in command.inner:
            self.look_at(inner, depth=depth + 1, most=most)
        for redirection in command.redirections:
            if redirection.operator in _WRITES:
                self._look_at_target(redirection.target, _name(command.words), most)
        program = _name(command.words)
        self._look_at_variables(program, command, depth=depth, most=most)
        if not program:
            return
        named = _named_by(command, self._rules.printers)
        if named:
            self._look_at_words((*named, *command.words[1:]), command, depth=depth, most=most)
        self._apply_rules(program, command, most)
        self._look_at_feed(program, command, depth=depth, most=most)
        self._look_inside(program, command, depth=depth, most=most)

    @property
    def _is_over(self) -> bool:
        return self._commands_left < 0 or self._work_left < 0

    def _may_take(self, work: int, command: str, most: DangerLevel, *, is_deep: bool = False) -> bool:
        """Return whether there is room for more work; what is left unread is dangerous."""
        self._work_left -= work
        if is_deep or self._is_over:
            self._add(DangerLevel.DANGEROUS, TOO_MUCH, command, most)
            return False
        return True

    def _apply_rules(self, program: str, command: ScriptCommand, most: DangerLevel) -> None:
        reading = CommandReading(command.words[1:], self._rules.grammar_of(program))
        given = _given_text(command, self._rules.printers)
        verbs = reading.words_before(self._rules.reading_verbs, most=_VERB_OPERANDS)
        about = self._rules.about(program)
        if reading.has_any(_HELP):
            # Whoever asks for help gets it and nothing else; code that is given as a word may not know of it.
            about = tuple(rule for rule in about if rule.text is not None)
        fitting = next((rule for rule in about if _fits(rule, reading, verbs, given)), None)
        own = next((rule for rule in self._rules.own(program) if _fits(rule, reading, verbs, given)), None)
        if own is not None and (fitting is None or own.lowers or own.level > fitting.level):
            fitting = own
        if fitting is not None and fitting.level > DangerLevel.SAFE:
            told = [program, *reading.operands[: len(fitting.command)]]
            self._add(fitting.level, fitting.reason, " ".join(told), most)

    def _look_at_variables(self, program: str, command: ScriptCommand, *, depth: int, most: DangerLevel) -> None:
        """Look at commands that are put down for later: as an alias, or in a variable that programs take one from."""
        told = command.assignments
        if program in _DECLARING or program == _ALIASING:
            told = (*told, *command.words[1:])
        for word in told:
            if self._is_over:
                return
            name, equals, script = word.partition("=")
            if equals:
                self._look_at_value(name, script, most)
            if equals and (program == _ALIASING or is_named(name, self._rules.command_variables)):
                self.look_at_script(script, depth=depth + 1, most=most)

    def _look_at_value(self, name: str, value: str, most: DangerLevel) -> None:
        for rule in self._rules.variables:
            if is_named(name, rule.names) and (rule.text is None or rule.text.search(value)):
                self._add(rule.level, rule.reason, name, most)
                return

    def _look_inside(self, program: str, command: ScriptCommand, *, depth: int, most: DangerLevel) -> None:
        """Look at the commands that a command runs."""
        grammar = self._rules.grammar_of(program)
        names = CommandReading(command.words[1:], grammar).values_of("-name") if _FOUND in command.words else []
        for words in grammar.commands_in(command.words[1:]):
            if not self._may_take(len(names) * words.count(_FOUND), program, most):
                return
            found = tuple(one for word in words for one in (names if names and word == _FOUND else [word]))
            self._look_at_words(found, command, depth=depth, most=most)
        if grammar.write_options:
            reading = CommandReading(command.words[1:], grammar)
            targets = [one for option in sorted(grammar.write_options) for one in reading.values_of(option)]
            for target in targets:
                self._look_at_target(target, program, most)
        if is_named(program, self._rules.shells):
            script = CommandReading(command.words[1:], _SHELL_GRAMMAR).shell_script
            if script is not None:
                self.look_at_script(_filled(script, command, self._rules.printers), depth=depth + 1, most=most)
        for wrapper in self._rules.wrappers:
            if is_named(program, wrapper.programs) and self._unwrap(wrapper, program, command, depth=depth, most=most):
                return

    def _unwrap(
        self, wrapper: WrapperRule, program: str, command: ScriptCommand, *, depth: int, most: DangerLevel
    ) -> bool:
        """Look at what a wrapper runs; return whether it is one with these words."""
        reading = CommandReading(command.words[1:], wrapper.grammar)
        place = reading.place_of(wrapper.command)
        if place is None:
            return False
        if wrapper.level > DangerLevel.SAFE:
            self._add(wrapper.level, wrapper.reason, program, most)
        most = min(most, wrapper.most)
        assigned, words = _wrapped(wrapper, reading.rest_behind(place + len(wrapper.command) + wrapper.operands))
        self._look_at_variables("", ScriptCommand(words=(), assignments=assigned), depth=depth, most=most)
        for rest in reading.rests_behind_options() if wrapper.is_shared else ():
            if self._is_over:
                break
            if _name(rest)[:1].isalpha():
                self._look_at_words(rest, command, depth=depth, most=most)
        scripts = [script for option in wrapper.script_options for script in reading.values_of(option)]
        given = _given_text(command, self._rules.printers) if wrapper.is_script else ""
        if wrapper.is_script and (words or given):
            scripts.append(" ".join(words) or given)
        elif words:
            self._look_at_words(words, command, depth=depth, most=most)
        for script in scripts:
            self.look_at_script(script, depth=depth + 1, most=most, given=given if words else "")
        return True

    def _look_at_words(self, words: tuple[str, ...], around: ScriptCommand, *, depth: int, most: DangerLevel) -> None:
        """Look at a command that another one runs, which hands it what it reads."""
        if len(words) == 1 and " " in words[0]:
            self.look_at_script(words[0], depth=depth + 1, most=most)
            return
        inside = ScriptCommand(words=words, inner=(), fed_by=around.fed_by, input_text=around.input_text)
        self.look_at(inside, depth=depth + 1, most=most)

    def _look_at_feed(self, program: str, command: ScriptCommand, *, depth: int, most: DangerLevel) -> None:
        """Look at what a program runs that it reads, or that a substitution gives it."""
        rules = self._rules
        is_evaluating = program in _EVALUATING or _SUBSTITUTED in program
        if not is_evaluating and not is_named(program, rules.interpreters):
            return
        if any(is_named(_name(inner.words), rules.senders) for inner in _flat(command.inner)):
            self._add(DangerLevel.DANGEROUS, "runs what a server sends", program, most)
        grammar = _SHELL_GRAMMAR if is_named(program, rules.shells) else rules.grammar_of(program)
        if is_evaluating or not CommandReading(command.words[1:], grammar).reads_program:
            return
        sources = itertools.takewhile(lambda _: self._may_take(_WORK_OF_WORD, program, most), _sources(command))
        if any(is_named(_name(source.words), rules.senders) for source in sources):
            self._add(DangerLevel.DANGEROUS, "runs what a server sends", program, most)
        if is_named(program, rules.shells):
            given = _given_text(command, rules.printers)
            if given:
                self.look_at_script(given, depth=depth + 1, most=most)

    def _look_at_target(self, target: str, program: str, most: DangerLevel) -> None:
        if target == _STANDARD_OUTPUT:
            return
        path = plain_path(target)
        rule = next((rule for rule in self._rules.writes if rule.target.fullmatch(path)), None)
        if rule is not None and rule.level > DangerLevel.SAFE:
            self._add(rule.level, rule.reason, program or ">", most)

    def _add(self, level: DangerLevel, text: str, command: str, most: DangerLevel) -> None:
        self._found[DangerReason(level=min(level, most), text=text, command=command)] = None


_SHELL_GRAMMAR: Final = ProgramGrammar(value_options=frozenset({"-o", "-O", "--rcfile", "--init-file"}))


def _fits(rule: DangerRule, reading: CommandReading, verbs: Sequence[str], given: str) -> bool:
    place = reading.place_of(rule.command)
    return (
        place is not None
        and (not rule.verbs or _has_verb(rule.verbs, verbs))
        and all(reading.has_any(group) for group in rule.options)
        and not reading.has_any(rule.unless_options)
        and _operands_fit(rule, reading, place + len(rule.command))
        and (rule.text is None or any(rule.text.search(word) for word in (*reading.words, given) if word))
    )


def _operands_fit(rule: DangerRule, reading: CommandReading, first: int) -> bool:
    some, last, only = rule.operand, rule.last_operand, rule.only_operands
    if some is None and last is None and only is None:
        return True
    operands = reading.plain_operands[first:]
    return (
        bool(operands)
        and (some is None or any(some.fullmatch(operand) for operand in operands))
        and (last is None or last.fullmatch(operands[-1]) is not None)
        and (only is None or all(only.fullmatch(operand) for operand in operands))
    )


def _has_verb(verbs: frozenset[str], operands: Sequence[str]) -> bool:
    for operand in operands:
        parts = re.split(r"[-_:]", operand.lower())
        if all(part.isalpha() for part in parts) and not verbs.isdisjoint({parts[0], parts[-1]}):
            return True
    return False


def _name(words: Sequence[str]) -> str:
    name = words[0].rpartition("/")[2] if words else ""
    return name.removesuffix(".exe")


def _named_by(command: ScriptCommand, printers: frozenset[str]) -> tuple[str, ...]:
    """Return the words of a command whose name is what a substitution prints: ``$(echo rm)``, ``$(which rm)``."""
    if command.words[0] != _SUBSTITUTED or not command.inner:
        return ()
    words = command.inner[0].words
    if is_named(_name(words), printers):
        return tuple(" ".join(words[1:]).split())
    return words[-1:] if _name(words) in _LOOKING_UP else ()


def _filled(script: str, command: ScriptCommand, printers: frozenset[str]) -> str:
    """Return a line of shell with what its substitutions print, where that is known."""
    for inner in command.inner:
        if is_named(_name(inner.words), printers) and _SUBSTITUTED in script:
            script = script.replace(_SUBSTITUTED, " ".join(inner.words[1:]), 1)
    return script


def _wrapped(wrapper: WrapperRule, words: tuple[str, ...]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the assignments in front of a command, and the command."""
    start = 0
    while wrapper.has_assignments and start < len(words) and "=" in words[start].partition("/")[0]:
        start += 1
    return words[:start], words[start:]


def _sources(command: ScriptCommand) -> Iterator[ScriptCommand]:
    """Yield the commands whose output comes into a command through its pipe, however far away."""
    source = command.fed_by
    for _ in range(_MOST_COMMANDS):
        if source is None:
            return
        yield source
        source = source.fed_by


def _given_text(command: ScriptCommand, printers: frozenset[str]) -> str:
    """Return what is known of what a command reads."""
    if command.input_text:
        return command.input_text
    source = command.fed_by
    if source is None or not is_named(_name(source.words), printers):
        return source.input_text if source is not None and _name(source.words) == "cat" else ""
    text = " ".join(source.words[1:])
    return text if len(text) <= MOST_CHARACTERS else text[:MOST_CHARACTERS]


def _flat(commands: Iterable[ScriptCommand]) -> Iterator[ScriptCommand]:
    for command in commands:
        yield command
        yield from _flat(command.inner)
