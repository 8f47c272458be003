"""The indexes of words of what is searched beside messages: tasks, sessions, tool calls, documents, and logs.

They hold no text, only which words are where; what a search shows is read from the row or the log itself, and found
there again. The words are made by ``domain.search.indexed_words``, which every connection that fills them registers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from agentmon.domain.search import indexed_words
from agentmon.store.word_index import WordIndex

if TYPE_CHECKING:
    import sqlite3

WORD_FUNCTION: Final = "search_words"
_OPTIONS: Final = "content='', tokenize='unicode61', detail='none', columnsize=0, prefix='2 3'"

TASKS: Final = WordIndex(
    rows="tasks",
    noun="task",
    texts={"title": "{row}.title", "description": "coalesce({row}.description, '')"},
    changed_by="title, description",
    # Which column has a word is kept, so that titles can come first.
    options=_OPTIONS.replace("detail='none'", "detail='column'"),
    word_function=WORD_FUNCTION,
)
SESSIONS: Final = WordIndex(
    rows="sessions",
    noun="session",
    texts={"content": "(coalesce({row}.title, '') || ' ' || {row}.initial_prompt)"},
    changed_by="title, initial_prompt",
    options=_OPTIONS,
    word_function=WORD_FUNCTION,
)
OPERATIONS: Final = WordIndex(
    rows="operations",
    noun="operation",
    texts={
        "content": "({row}.tool_name || ' ' || {row}.target || ' ' || {row}.input_summary || ' ' || "
        "{row}.output_summary || ' ' || coalesce({row}.error, ''))"
    },
    changed_by="tool_name, target, input_summary, output_summary, error",
    options=_OPTIONS,
    word_function=WORD_FUNCTION,
)
DOCUMENTS: Final = WordIndex(
    rows="documents",
    noun="document",
    texts={"content": "({row}.title || ' ' || coalesce({row}.source_url, '') || ' ' || {row}.content)"},
    changed_by="title, source_url, content",
    options=_OPTIONS,
    word_function=WORD_FUNCTION,
)
ROW_INDEXES: Final = (TASKS, SESSIONS, OPERATIONS, DOCUMENTS)

_NOTE_LOG: Final = "INSERT INTO unindexed_logs (execution_id) VALUES (NEW.id) ON CONFLICT DO NOTHING"
LOG_SCHEMA: Final = (
    # A log whose pieces are not those of the file as it is now.
    (
        "CREATE TABLE unindexed_logs (execution_id VARCHAR(36) NOT NULL PRIMARY KEY, "
        "FOREIGN KEY(execution_id) REFERENCES executions (id) ON DELETE CASCADE) WITHOUT ROWID"
    ),
    # How far a log is in the index: which file it was, up to which byte and line, and what was left out before that.
    (
        "CREATE TABLE log_indexes (execution_id VARCHAR(36) NOT NULL PRIMARY KEY, inode BIGINT NOT NULL, "
        "end_byte BIGINT NOT NULL, end_line BIGINT NOT NULL, end_hash BIGINT NOT NULL, "
        "skipped_bytes BIGINT DEFAULT 0 NOT NULL, "
        "FOREIGN KEY(execution_id) REFERENCES executions (id) ON DELETE CASCADE) WITHOUT ROWID"
    ),
    # Numbers are never used twice, and the packed words tell the index what to forget when the file is gone.
    (
        "CREATE TABLE log_pieces (id INTEGER PRIMARY KEY AUTOINCREMENT, execution_id VARCHAR(36) NOT NULL, "
        "start_byte BIGINT NOT NULL, end_byte BIGINT NOT NULL, first_line BIGINT NOT NULL, words BLOB NOT NULL, "
        "FOREIGN KEY(execution_id) REFERENCES executions (id) ON DELETE CASCADE)"
    ),
    "CREATE INDEX ix_log_pieces_execution_id_start_byte ON log_pieces (execution_id, start_byte)",
    f"CREATE VIRTUAL TABLE log_words USING fts5(content, {_OPTIONS})",
    (
        "CREATE TRIGGER tr_executions_log_came AFTER INSERT ON executions WHEN NEW.log_byte_size > 0 "
        f"BEGIN {_NOTE_LOG}; END"
    ),
    (
        "CREATE TRIGGER tr_executions_log_changed AFTER UPDATE OF log_byte_size, log_file_path, log_removed_at, "
        "ended_at ON executions WHEN NEW.log_byte_size IS NOT OLD.log_byte_size OR NEW.log_file_path IS NOT "
        "OLD.log_file_path OR NEW.log_removed_at IS NOT OLD.log_removed_at OR (NEW.ended_at IS NOT OLD.ended_at "
        "AND NEW.log_byte_size > 0) "
        f"BEGIN {_NOTE_LOG}; END"
    ),
)
"""What a fresh database gets with the table of executions."""
NOTE_LOGS: Final = (
    "INSERT INTO unindexed_logs (execution_id) SELECT id FROM executions "
    "WHERE log_byte_size > 0 AND log_removed_at IS NULL"
)
"""Note every log that is there, when the index comes to a database that has some."""


def register_words(connection: sqlite3.Connection) -> None:
    """Teach a connection to make words of texts."""
    connection.create_function(WORD_FUNCTION, 1, _words_of, deterministic=True)


def _words_of(text: str | None) -> str | None:
    return None if text is None else indexed_words(text)
