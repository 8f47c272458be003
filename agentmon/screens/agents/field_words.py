"""What people type into one line of an editor, and what it stands for: words of a command, names, tools, numbers."""

from __future__ import annotations

import math
import re
import shlex
from typing import TYPE_CHECKING, Final

from agentmon.domain.errors import FieldError

if TYPE_CHECKING:
    from collections.abc import Sequence

_PLACEHOLDER: Final = re.compile(r"\{\{\s*[^\s{}'\"]+(?:\s+[^\s{}'\"]+)?\s*\}\}")
_KEPT: Final = re.compile("\0([0-9]+)\0")
_TOOL: Final = re.compile(r"[^\s,()]+(?:\([^()]*\))?|[^\s,]+")
_WHOLE: Final = re.compile(r"[0-9]{1,9}", re.ASCII)


def parse_words(field: str, text: str) -> tuple[str, ...]:
    """Return the words of a command line; quotes keep blanks together, a placeholder is one word with its blanks.

    Raises:
        FieldError: A quote is not closed.
    """
    placeholders: list[str] = []

    def keep(found: re.Match[str]) -> str:
        placeholders.append(found[0])
        return f"\0{len(placeholders) - 1}\0"

    # A sign that nobody can type stands for each: a placeholder may have blanks and quotes in it.
    whole = _PLACEHOLDER.sub(keep, text.replace("\0", ""))
    try:
        words = shlex.split(whole)
    except ValueError as error:
        raise FieldError(field, "a quote is not closed", hint="close it, or put a \\ before it") from error
    return tuple(_KEPT.sub(lambda found: placeholders[int(found[1])], word) for word in words)


def words_text(words: Sequence[str]) -> str:
    """Return the words as ``parse_words`` reads them; a placeholder stands without quotes where it needs none."""
    return " ".join(_quoted(word) for word in words)


def parse_names(text: str) -> tuple[str, ...]:
    """Return names that blanks or commas part, each once."""
    return tuple(dict.fromkeys(text.replace(",", " ").split()))


def parse_tools(field: str, text: str) -> tuple[str, ...]:
    """Return names of tools that blanks or commas part, each once; blanks in brackets belong to the name.

    Raises:
        FieldError: A name would be read as an option.
    """
    names = tuple(dict.fromkeys(_TOOL.findall(text)))
    for name in names:
        if name.startswith("-"):
            raise FieldError(
                field, f"{name} is not the name of a tool", hint="such as Bash, WebFetch or Bash(git log:*)"
            )
    return names


def parse_whole(field: str, text: str, *, least: int, most: int, hint: str = "") -> int:
    """Return a whole number.

    Raises:
        FieldError: It is none, or outside of the range.
    """
    word = text.strip()
    if _WHOLE.fullmatch(word) and least <= int(word) <= most:
        return int(word)
    raise FieldError(field, f"{word!r} is not a whole number from {least:,} to {most:,}", hint=hint)


def parse_fraction(field: str, text: str, *, least: float, most: float, hint: str = "") -> float:
    """Return a number.

    Raises:
        FieldError: It is none, or outside of the range.
    """
    word = text.strip()
    try:
        number = float(word)
    except ValueError:
        number = math.nan
    if least <= number <= most:
        return number
    raise FieldError(field, f"{word!r} is not a number from {least:g} to {most:g}", hint=hint)


def _quoted(word: str) -> str:
    bare = _PLACEHOLDER.sub("x", word)
    return word if bare == shlex.quote(bare) else shlex.quote(word)
