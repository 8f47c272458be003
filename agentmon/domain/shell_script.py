"""The commands of a line of shell, with what feeds them and where they write: read, never run.

Best effort: of variables only those are seen through that the script itself gives a text, where they name the command.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

MOST_CHARACTERS: Final = 128 * 1024
"""No shell can be given more in one word (source: execve(2), MAX_ARG_STRLEN)."""
MOST_COMMANDS: Final = 2000
_MAX_DEPTH: Final = 20
_MOST_SEPARATORS: Final = 200
_ASSIGNMENT: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\+?=")
_KEYWORDS: Final = frozenset(
    {"!", "{", "}", "if", "then", "elif", "else", "fi", "while", "until", "do", "done", "time", "coproc", "esac"}
)
_DECLARING: Final = frozenset({"export", "declare", "local", "readonly", "typeset"})
_REDIRECTION: Final = re.compile(r"[0-9]*(&>>|&>|>>|>\||>&|<&|<<<|<<-|<<|<>|>|<)")
_OPERATOR: Final = re.compile(r"\|\||\|&|\||&&|&|;;&|;;|;&|;|\r?\n|\(|\)")
_BARE: Final = re.compile(r"[^\s'\"\\|&;<>()`$]+")
_BLANK: Final = re.compile(r"[ \t]|(\$\{IFS[^}]*\}|\$IFS(?![A-Za-z0-9_]))(\$[0-9@*])?")
_VARIABLE: Final = re.compile(r"\$(?:\{([A-Za-z_][A-Za-z0-9_]*)\}|([A-Za-z_][A-Za-z0-9_]*))")
_LIST: Final = re.compile(r"\{([^{}\s]*)\}")
_ANSI_ESCAPES: Final = {"n": "\n", "t": "\t", "r": "\r"}


class UnreadableScriptError(ValueError):
    """A script is too long or too deep to be read whole."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Redirection:
    """A file that a command reads or writes by a sign of the shell."""

    operator: str
    """Without the number in front: ``>``, ``>>``, ``<``."""
    target: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ScriptCommand:
    """One command of a script."""

    words: tuple[str, ...]
    """Without quotes and without assignments in front; variables and substitutions stand as they are written."""
    redirections: tuple[Redirection, ...] = ()
    inner: tuple[ScriptCommand, ...] = ()
    """The commands of its substitutions."""
    fed_by: ScriptCommand | None = None
    """The command whose output it reads through a pipe."""
    input_text: str = ""
    """What a here-document or here-string gives it."""
    assignments: tuple[str, ...] = ()
    """What stands in front of it: ``NAME=text``."""


def read_script(script: str) -> tuple[ScriptCommand, ...]:
    """Return the commands of a script in their order; those of substitutions stand in ``inner``.

    Raises:
        UnreadableScriptError: It has more than 128 Ki characters, with its variables filled in too, more than 2,000
            commands in a row, or more than 20 substitutions in each other.
    """
    if len(script) > MOST_CHARACTERS:
        raise UnreadableScriptError(f"more than {MOST_CHARACTERS:,} characters")
    if script.count("${IFS") > _MOST_SEPARATORS:  # each is read up to its brace, which may be far away
        raise UnreadableScriptError(f"more than {_MOST_SEPARATORS} separators from a variable")
    return tuple(_Reader(script).commands(depth=0))


class _Reader:
    """Reads on from where it stands."""

    __slots__ = ("_at", "_text", "_waiting")

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._waiting: list[tuple[_Command, str, bool, bool]] = []
        """Commands whose here-documents begin with the next line, each with its end word.

        Then whether tabs in front of a line are no part of it, and whether substitutions in it are run.
        """

    def commands(self, *, depth: int, end: str = "") -> list[ScriptCommand]:
        """Return the commands up to the character ``end``, which is read too; empty means the end of the text."""
        if depth > _MAX_DEPTH:
            raise UnreadableScriptError(f"more than {_MAX_DEPTH} substitutions in each other")
        drafts: list[_Command] = [_Command()]
        open_parentheses = 0
        while self._at < len(self._text):
            character = self._text[self._at]
            if character == end and not open_parentheses:
                self._at += 1
                break
            operator = _OPERATOR.match(self._text, self._at)
            redirection = self._redirection(drafts[-1], character)
            if character in "<>" and self._text.startswith("(", self._at + 1):
                self._at += 2
                drafts[-1].add_inner(self.commands(depth=depth + 1, end=")"), f"{character}(…)")
            elif redirection is not None:
                self._at = redirection.end()
                drafts[-1].redirect(redirection[1])
            elif operator is not None:
                open_parentheses += (operator[0] == "(") - (operator[0] == ")" and open_parentheses > 0)
                self._end_command(drafts, operator, depth=depth)
            else:
                self._read_piece(drafts[-1], character, depth=depth)
                if not drafts[-1].is_inside_word:
                    self._note_document(drafts[-1])
        drafts[-1].end_word()
        self._note_document(drafts[-1])
        self._read_documents(depth=depth)
        return _finished(drafts)

    def _redirection(self, draft: _Command, character: str) -> re.Match[str] | None:
        if draft.is_inside_word and character not in "<>":
            return None
        return _REDIRECTION.match(self._text, self._at)

    def _end_command(self, drafts: list[_Command], operator: re.Match[str], *, depth: int) -> None:
        """Begin another command, which reads the one before through a pipe if there is one."""
        self._at = operator.end()
        if len(drafts) > MOST_COMMANDS:
            raise UnreadableScriptError(f"more than {MOST_COMMANDS:,} commands")
        drafts[-1].end_word()
        self._note_document(drafts[-1])
        if operator[0].endswith("\n"):
            self._read_documents(depth=depth)
        is_pipe = operator[0] in {"|", "|&"}
        source = next((one for one in reversed(drafts[-2:]) if not one.is_empty), None) if is_pipe else None
        if not drafts[-1].is_empty or source is not None:
            drafts.append(_Command(fed_by=source))

    def _read_piece(self, draft: _Command, character: str, *, depth: int) -> None:
        text = self._text
        if (blank := _BLANK.match(text, self._at)) is not None:
            self._at = blank.end()
            draft.end_word()
        elif character == "#" and not draft.is_inside_word:
            self._at = _line_end(text, self._at)
        elif character == "\\":
            escaped = text[self._at + 1 : self._at + 2]
            self._at += 2
            if escaped != "\n":
                draft.add(escaped, is_quoted=True)
        elif character == "'":
            draft.add(self._until("'"), is_quoted=True)
        elif character == '"':
            self._at += 1
            draft.add("", is_quoted=True)
            self._read_double(draft, depth=depth)
        elif text.startswith("$'", self._at):
            self._at += 1
            draft.add(self._ansi())
        elif text.startswith("$(", self._at):
            self._at += 2
            draft.add_inner(self.commands(depth=depth + 1, end=")"), "$(…)")
        elif character == "`":
            script = self._until("`").replace("\\`", "`")
            draft.add_inner(_Reader(script).commands(depth=depth + 1), "$(…)")
        else:
            bare = _BARE.match(text, self._at)
            piece = character if bare is None else bare[0]
            self._at += len(piece)
            draft.add(piece)

    def _read_double(self, draft: _Command, *, depth: int, end: str = '"') -> None:
        """Take in what stands up to the end of a text in which substitutions are run."""
        text = self._text
        while self._at < len(text) and text[self._at] != end:
            if text[self._at] == "\\" and text[self._at + 1 : self._at + 2] in {"$", "`", '"', "\\"}:
                draft.add(text[self._at + 1])
                self._at += 2
            elif text.startswith("$(", self._at):
                self._at += 2
                draft.add_inner(self.commands(depth=depth + 1, end=")"), "$(…)")
            elif text[self._at] == "`":
                script = self._until("`").replace("\\`", "`")
                draft.add_inner(_Reader(script).commands(depth=depth + 1), "$(…)")
            else:
                draft.add(text[self._at])
                self._at += 1
        self._at += 1

    def _until(self, quote: str) -> str:
        """Return what stands up to the next quote of the kind that is read now."""
        start = self._at + 1
        end = self._text.find(quote, start)
        while quote == "`" and end > 0 and self._text[end - 1] == "\\":
            end = self._text.find(quote, end + 1)
        end = len(self._text) if end < 0 else end
        self._at = end + 1
        return self._text[start:end]

    def _ansi(self) -> str:
        found = re.compile(r"'((?:[^'\\]|\\.)*)'?", re.DOTALL).match(self._text, self._at)
        if found is None:
            return ""
        self._at = found.end()
        return re.sub(r"\\(x[0-9a-fA-F]{1,2}|[0-7]{1,3}|.)", _ansi_character, found[1], flags=re.DOTALL)

    def _note_document(self, draft: _Command) -> None:
        for operator, word, is_quoted in draft.take_documents():
            self._waiting.append((draft, word, operator == "<<-", not is_quoted))

    def _read_documents(self, *, depth: int) -> None:
        for draft, word, strips_tabs, is_filled in self._waiting:
            lines = []
            while self._at < len(self._text):
                end = _line_end(self._text, self._at)
                line = self._text[self._at : end].rstrip("\r")
                self._at = end + 1
                if (line.lstrip("\t") if strips_tabs else line) == word:
                    break
                lines.append(line)
            document = "\n".join(lines)
            draft.input_text += document
            if is_filled and ("$(" in document or "`" in document):
                filled = _Command()
                _Reader(document)._read_double(filled, depth=depth + 1, end="")  # noqa: SLF001 - of the same class
                draft.run_inside(filled)
        self._waiting = []


class _Command:
    """A command that is being read."""

    __slots__ = (
        "_documents",
        "_inner",
        "_is_quoted",
        "_operator",
        "_pieces",
        "_quoted",
        "_redirections",
        "_words",
        "fed_by",
        "input_text",
    )

    def __init__(self, fed_by: _Command | None = None) -> None:
        self.fed_by = fed_by
        self.input_text = ""
        self._words: list[str] = []
        self._quoted: set[int] = set()
        self._pieces: list[str] | None = None
        self._operator = ""
        self._redirections: list[Redirection] = []
        self._inner: list[ScriptCommand] = []
        self._documents: list[tuple[str, str, bool]] = []
        self._is_quoted = False

    @property
    def is_inside_word(self) -> bool:
        return self._pieces is not None

    @property
    def is_empty(self) -> bool:
        return not (self._words or self._redirections or self._inner or self._documents)

    def add(self, piece: str, *, is_quoted: bool = False) -> None:
        if self._pieces is None:
            self._pieces = []
            self._is_quoted = False
        self._is_quoted |= is_quoted
        self._pieces.append(piece)

    def add_inner(self, commands: list[ScriptCommand], written: str) -> None:
        self._inner += commands
        self.add(written)

    def run_inside(self, other: _Command) -> None:
        """Take over the substitutions of another one."""
        self._inner += other._inner

    def redirect(self, operator: str) -> None:
        self.end_word()
        self._operator = operator

    def end_word(self) -> None:
        if self._pieces is None:
            return
        word = "".join(self._pieces)
        self._pieces = None
        operator, self._operator = self._operator, ""
        if not operator:
            if self._is_quoted:
                self._quoted.add(len(self._words))
            self._words.append(word)
        elif operator == "<<<":
            self.input_text += word
        elif operator in {"<<", "<<-"}:
            self._documents.append((operator, word, self._is_quoted))
        else:
            self._redirections.append(Redirection(operator=operator, target=word))

    def take_documents(self) -> list[tuple[str, str, bool]]:
        taken, self._documents = self._documents, []
        return taken

    def finished(self, fed_by: ScriptCommand | None, variables: dict[str, str]) -> ScriptCommand:
        """Return what was read; what it gives variables is noted, and those that name its command are filled in."""
        start = 0
        while start < len(self._words) and (
            self._is_keyword(start) or _ASSIGNMENT.match(self._words[start]) is not None
        ):
            start += 1
        if start and self._words[start - 1 : start + 1] == ["time", "-p"]:
            start += 1
        assignments = tuple(word for at, word in enumerate(self._words[:start]) if not self._is_keyword(at))
        words = _filled(self._words[start:], variables)
        if not words or words[0] in _DECLARING:
            told = [word.partition("=") for word in (*assignments, *words[1:])]
            variables |= {name.removesuffix("+"): value for name, equals, value in told if equals}
        return ScriptCommand(
            words=words,
            redirections=tuple(self._redirections),
            inner=tuple(self._inner),
            fed_by=fed_by,
            input_text=self.input_text,
            assignments=assignments,
        )

    def _is_keyword(self, at: int) -> bool:
        """Whether the word means something to the shell, which it does not in quotes."""
        return self._words[at] in _KEYWORDS and at not in self._quoted


def _finished(drafts: list[_Command]) -> list[ScriptCommand]:
    done: dict[_Command, ScriptCommand] = {}
    variables: dict[str, str] = {}
    size = 0
    for draft in drafts:
        done[draft] = draft.finished(None if draft.fed_by is None else done.get(draft.fed_by), variables)
        size += sum(map(len, done[draft].words))
        if size > MOST_CHARACTERS:
            raise UnreadableScriptError(f"more than {MOST_CHARACTERS:,} characters in its variables")
    return [one for one in done.values() if one.words or one.redirections or one.inner or one.assignments]


def _filled(words: list[str], variables: dict[str, str]) -> tuple[str, ...]:
    """Return the words with the command and its options in place of variables that are known."""
    filled: list[str] = []
    for place, word in enumerate(words):
        variable = _VARIABLE.fullmatch(word) if variables else None
        value = "" if variable is None else variables.get(variable[1] or variable[2], "")
        listed = _LIST.fullmatch(word) if place == 0 and "," in word else None
        if listed is not None:
            filled += listed[1].split(",")
        elif value and (place == 0 or value.startswith("-")):
            filled += value.split()
        else:
            filled.append(word)
    return tuple(filled)


def _line_end(text: str, start: int) -> int:
    end = text.find("\n", start)
    return len(text) if end < 0 else end


def _ansi_character(found: re.Match[str]) -> str:
    code = found[1]
    if code[0] == "x" and len(code) > 1:
        return chr(int(code[1:], 16))
    if code[0] in "01234567":
        return chr(int(code, 8) & 0xFF)
    return _ANSI_ESCAPES.get(code, code)
