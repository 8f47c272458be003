"""Words and signs of a shell script, told apart without running a line of it; enough to read completion files.

What only a shell can know (variables, the output of commands) stays in the words as it is written.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

_OPEN: Final = "\ue000"
_COMMA: Final = "\ue001"
_CLOSE: Final = "\ue002"
"""Stand for the signs of a brace expansion where they are not quoted."""
_SIGNS: Final = ("\n", ";;&", ";;", ";&", ";", "&&", "||", "|&", "|", "&", "(", ")", "<", ">")
_BRACES: Final = re.compile(f"{_OPEN}([^{_OPEN}{_CLOSE}]*){_CLOSE}")
_HERE_DOCUMENT: Final = re.compile(r"<<-?\s*(['\"]?)(\w+)\1")
_MOST_EXPANSIONS: Final = 64
_MOST_NESTED: Final = 40
"""Commands inside of words in each other; what is deeper is no script that anybody wrote, and is left unread."""
_VARIABLE: Final = re.compile(r"\$\w+|\$[!#$*?@-]")


@dataclass(frozen=True, slots=True)
class Token:
    """A word or a sign of a script."""

    text: str
    """A word without its quotes; ``$name`` and ``${name}`` stay in it, a command in it does not."""
    is_sign: bool = False
    """Whether it is an operator or the end of a line."""
    is_fixed: bool = True
    """Whether the text is all there is: no variable and no command is in it."""


@dataclass(slots=True)
class _Word:
    text: str = ""
    is_there: bool = False
    is_fixed: bool = True


class ShellText:
    """Reads a script from its beginning to its end.

    Args:
        text: The script.
        is_fish: Whether it is fish's, where a backslash counts inside of single quotes and ``(…)`` is a command.
    """

    def __init__(self, text: str, *, is_fish: bool = False) -> None:
        self._text = text
        self._at = 0
        self._is_fish = is_fish
        self._tokens: list[Token] = []
        self._nested = 0
        self._line_start = 0
        """Where in the tokens the present line of the script begins."""

    def tokens(self) -> list[Token]:
        """Return all words and signs; a command inside of a word is a line of its own before the line of the word."""
        self._read_until(None)
        return self._tokens

    def _read_until(self, end: str | None) -> None:
        """Read on to the sign that ends a command inside of a word, or to the end of the text."""
        word = _Word()
        depth = 0
        text = self._text
        while self._at < len(text):
            character = text[self._at]
            if character in " \t":
                self._finish(word)
                self._at += 1
            elif character == "\\" and text.startswith("\\\n", self._at):
                self._finish(word)
                self._at += 2
            elif character == "#" and not word.is_there:
                self._at = _line_end(text, self._at)
            elif end is not None and character == end and depth == 0:
                self._finish(word)
                self._at += 1
                return
            elif text.startswith("<<", self._at) and (found := _HERE_DOCUMENT.match(text, self._at)):
                self._finish(word)
                self._skip_here_document(found)
            elif self._is_fish and character == "(":
                self._at += 1
                word.is_there, word.is_fixed = True, False
                self._read_command(")")
            elif sign := next((sign for sign in _SIGNS if text.startswith(sign, self._at)), None):
                self._finish(word)
                depth += {"(": 1, ")": -1}.get(sign, 0)
                # A pattern of a case has no opening sign.
                depth = max(depth, 0)
                self._tokens.append(Token(sign, is_sign=True))
                self._line_start = len(self._tokens)
                self._at += len(sign)
            else:
                self._read_part(word)
        self._finish(word)

    def _read_command(self, end: str) -> None:
        if self._nested == _MOST_NESTED:
            self._at = len(self._text)
            return
        outer, start = self._tokens, self._line_start
        self._tokens, self._line_start = [], 0
        self._nested += 1
        self._read_until(end)
        self._nested -= 1
        inner = [*self._tokens, Token("\n", is_sign=True)]
        self._tokens = [*outer[:start], *inner, *outer[start:]]
        self._line_start = start + len(inner)

    def _read_part(self, word: _Word) -> None:
        text, at = self._text, self._at
        character = text[at]
        word.is_there = True
        match character:
            case "'":
                self._at += 1
                word.text += self._single_quoted()
            case '"':
                self._at += 1
                self._read_double_quoted(word)
            case "\\":
                word.text += text[at + 1 : at + 2]
                self._at += 2
            case "$" | "`":
                self._read_dollar(word)
            case "{" | "," | "}":
                word.text += {"{": _OPEN, ",": _COMMA, "}": _CLOSE}[character]
                self._at += 1
            case _:
                word.text += character
                self._at += 1

    def _single_quoted(self) -> str:
        found = ""
        while self._at < len(self._text):
            character = self._text[self._at]
            self._at += 1
            if character == "'":
                break
            if self._is_fish and character == "\\" and self._text[self._at : self._at + 1] in {"'", "\\"}:
                character = self._text[self._at]
                self._at += 1
            found += character
        return found

    def _read_double_quoted(self, word: _Word) -> None:
        text = self._text
        while self._at < len(text):
            character = text[self._at]
            if character == '"':
                self._at += 1
                return
            if character == "\\" and text[self._at + 1 : self._at + 2] in {'"', "\\", "$", "`", "\n"}:
                word.text += text[self._at + 1].replace("\n", "")
                self._at += 2
            elif character == "$" or (character == "`" and not self._is_fish):
                self._read_dollar(word)
            else:
                word.text += character
                self._at += 1

    def _read_dollar(self, word: _Word) -> None:
        """Read a variable, which stays in the word, or a command, whose words become tokens."""
        text, at = self._text, self._at
        word.is_there = True
        if text.startswith("$'", at):
            self._at += 2
            word.text += self._single_quoted()
            return
        word.is_fixed = False
        if text.startswith("$((", at):
            end = text.find("))", at)
            self._at = len(text) if end < 0 else end + 2
        elif text.startswith("$(", at):
            self._at += 2
            self._read_command(")")
        elif text[at] == "`":
            self._at += 1
            self._read_command("`")
        elif text.startswith("${", at):
            end = _brace_end(text, at + 2)
            word.text += text[at:end]
            self._at = end
        elif found := _VARIABLE.match(text, at):
            word.text += found[0]
            self._at = found.end()
        else:
            word.text += "$"
            self._at += 1

    def _skip_here_document(self, found: re.Match[str]) -> None:
        ends = re.compile(rf"^\t*{found[2]}$", re.MULTILINE).search(self._text, found.end())
        self._at = len(self._text) if ends is None else ends.end()

    def _finish(self, word: _Word) -> None:
        if not word.is_there:
            return
        for text in _expanded(word.text):
            self._tokens.append(Token(text, is_fixed=word.is_fixed))
        word.text, word.is_there, word.is_fixed = "", False, True


def statements(tokens: list[Token]) -> list[list[Token]]:
    """Return the tokens line by line, where ``;``, ``|`` and their like end a line too; the signs are left out."""
    found: list[list[Token]] = [[]]
    for token in tokens:
        if token.is_sign:
            found.append([])
        else:
            found[-1].append(token)
    return [statement for statement in found if statement]


def _expanded(text: str) -> list[str]:
    """Return the words of brace expansions: ``{-a,--all}x`` is two."""
    words = [text]
    while len(words) < _MOST_EXPANSIONS:
        place = next((at for at, word in enumerate(words) if _BRACES.search(word)), None)
        if place is None:
            break
        found = _BRACES.search(words[place])
        if found is None:
            break
        parts = found[1].split(_COMMA)
        before, after = words[place][: found.start()], words[place][found.end() :]
        # One part alone is no expansion, and its braces are text.
        spelled = parts if len(parts) > 1 else [f"{{{found[1]}}}"]
        words[place : place + 1] = [before + part + after for part in spelled]
    return [word.replace(_OPEN, "{").replace(_COMMA, ",").replace(_CLOSE, "}") for word in words]


def _line_end(text: str, at: int) -> int:
    end = text.find("\n", at)
    return len(text) if end < 0 else end


def _brace_end(text: str, at: int) -> int:
    """Return where the parameter that begins with ``${`` ends; braces inside of it count."""
    depth = 1
    while at < len(text) and depth:
        if text[at] == "\\":
            at += 1
        else:
            depth += {"{": 1, "}": -1}.get(text[at], 0)
        at += 1
    return min(at, len(text))
