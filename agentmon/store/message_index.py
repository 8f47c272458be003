"""The index of words of messages: kept up behind the messages, so that text that streams in costs nothing more.

Triggers note which messages are not in the index as they are now; ``INDEX_SOME`` takes them up. Whoever searches looks
through those few as well. The index knows a message by its row number, which stays as it is: whoever makes the table of
messages again has to fill the index anew.
"""

from __future__ import annotations

import re
from typing import Final

UNINDEXED: Final = "unindexed_messages"
INDEX: Final = "message_words"

SCHEMA: Final = (
    f"CREATE TABLE {UNINDEXED} (message_row INTEGER NOT NULL PRIMARY KEY, indexed VARCHAR)",
    # Without the places of words the index is a third as large; what needs them is looked up in the message.
    (
        f"CREATE VIRTUAL TABLE {INDEX} USING fts5(content, content='messages', content_rowid='rowid', "
        "tokenize='unicode61', detail='none', columnsize=0)"
    ),
    # No trigger touches the index itself: SQLite refuses that where schemas are not trusted.
    (
        "CREATE TRIGGER tr_messages_added AFTER INSERT ON messages "
        f"BEGIN INSERT INTO {UNINDEXED} (message_row) VALUES (NEW.rowid) ON CONFLICT DO NOTHING; END"
    ),
    (
        "CREATE TRIGGER tr_messages_changed AFTER UPDATE OF content ON messages WHEN NEW.content IS NOT OLD.content "
        f"AND NOT EXISTS (SELECT 1 FROM {UNINDEXED} WHERE message_row = OLD.rowid) "
        f"BEGIN INSERT INTO {UNINDEXED} (message_row, indexed) VALUES (OLD.rowid, OLD.content); END"
    ),
    (
        "CREATE TRIGGER tr_messages_removed AFTER DELETE ON messages BEGIN INSERT INTO "
        f"{UNINDEXED} (message_row, indexed) VALUES (OLD.rowid, OLD.content) ON CONFLICT DO NOTHING; END"
    ),
)
"""What a fresh database gets with the table of messages; ``indexed`` is what the index holds of a message by now."""

_SOME: Final = f"SELECT message_row FROM {UNINDEXED} ORDER BY message_row LIMIT 1000"
INDEX_SOME: Final = (
    (
        f"INSERT INTO {INDEX} ({INDEX}, rowid, content) SELECT 'delete', message_row, indexed FROM {UNINDEXED} "
        f"WHERE indexed IS NOT NULL AND message_row IN ({_SOME})"
    ),
    f"INSERT INTO {INDEX} (rowid, content) SELECT rowid, content FROM messages WHERE rowid IN ({_SOME})",
    f"DELETE FROM {UNINDEXED} WHERE message_row IN ({_SOME})",
)
"""Take up at most a thousand messages, all in one transaction."""
HAS_UNINDEXED: Final = f"SELECT EXISTS (SELECT 1 FROM {UNINDEXED})"

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
