"""The index of words of messages, and which of its searches find a word."""

from __future__ import annotations

import re
from typing import Final

from agentmon.store.word_index import WordIndex

MESSAGES: Final = WordIndex(
    rows="messages",
    noun="message",
    texts={"content": "{row}.content"},
    changed_by="content",
    # What needs the places of words is looked up in the message.
    options="content='messages', content_rowid='rowid', tokenize='unicode61', detail='none', columnsize=0, "
    "prefix='2 3'",
)
UNINDEXED: Final = MESSAGES.unindexed
INDEX: Final = MESSAGES.words
SCHEMA: Final = MESSAGES.schema
"""What a fresh database gets with the table of messages; ``indexed`` is what the index holds of a message by now."""
INDEX_SOME: Final = MESSAGES.index_some
"""Take up at most a thousand messages, all in one transaction."""

_WORD: Final = re.compile(r"[^\W_]+")
_LEAST_PREFIX: Final = 2
_KNOWN_LETTERS: Final = re.compile("[\x00-\u036f\u0380-\u04ff]+")
"""Latin, Greek and Cyrillic: there the index and this module agree on what a word is, and words stand apart."""


def index_query(word: str, *, is_last: bool) -> str | None:
    """Return a search that finds all messages with the word and maybe others; None when only looking helps.

    Args:
        word: Anything but white space. Each of its parts is a word of the index.
        is_last: Whether it is still being typed, so that longer words count as well.
    """
    parts = _WORD.findall(word)
    if not parts or not _KNOWN_LETTERS.fullmatch(word):
        return None
    quoted = [f'"{part}"' for part in parts]
    if is_last and word[-1].isalnum() and len(parts[-1]) >= _LEAST_PREFIX:
        quoted[-1] += "*"
    return " ".join(quoted)


def is_plain(word: str) -> bool:
    """Return whether the index alone tells which messages have the word."""
    return _WORD.fullmatch(word) is not None
