"""Labels of tasks: short words in lower case, written ``#auth``."""

from __future__ import annotations

import unicodedata
from typing import TYPE_CHECKING, Final

from agentmon.domain.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable

LABEL_MAX_CHARACTERS: Final = 40
LABELS_MAX: Final = 20
"""Most labels of one task."""
_SIGNS: Final = frozenset("-_/.")


def parse_label(text: str) -> str:
    """Return the label that was typed, with or without its ``#``.

    Raises:
        UsageError: It is no label; the message says why.
    """
    label = unicodedata.normalize("NFC", text.strip().removeprefix("#").lower())
    if not label:
        raise UsageError("a label is empty", hint="for example auth, or #auth")
    if len(label) > LABEL_MAX_CHARACTERS:
        raise UsageError(f"a label has {len(label):,} characters; {LABEL_MAX_CHARACTERS} are the most")
    wrong = next((letter for letter in label if not _is_allowed(letter)), None)
    if wrong is not None:
        raise UsageError(
            f"a label cannot have {ascii(wrong) if not wrong.isprintable() else repr(wrong)}",
            hint="letters, digits, - _ / and . make a label",
        )
    return label


def parse_labels(words: Iterable[str]) -> tuple[str, ...]:
    """Return the labels in their order of the alphabet, each once.

    Raises:
        UsageError: One of them is no label, or they are too many.
    """
    labels = tuple(sorted({parse_label(word) for word in words}))
    if len(labels) > LABELS_MAX:
        raise UsageError(f"{len(labels)} labels are too many; a task has at most {LABELS_MAX}")
    return labels


def labels_text(labels: Iterable[str]) -> str:
    """Return the labels as people write them: ``#auth #login``."""
    return " ".join(f"#{label}" for label in labels)


def _is_allowed(letter: str) -> bool:
    # Marks are parts of letters in many scripts.
    return letter.isalnum() or letter in _SIGNS or unicodedata.category(letter).startswith("M")
