"""Tasks can be archived, and what they say is searched.

Revision ID: 0006
Revises: 0005
"""

from __future__ import annotations

from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None

_ARCHIVE = (
    "ALTER TABLE tasks ADD COLUMN archived_at VARCHAR(24)",
    "DROP INDEX ix_tasks_workspace_id_status_sort_order",
    """CREATE INDEX ix_tasks_board ON tasks (status, workspace_id, sort_order, id, deleted_at, archived_at)
    WHERE deleted_at IS NULL AND archived_at IS NULL""",
    """CREATE INDEX ix_tasks_board_priority ON tasks (status, workspace_id, priority, sort_order, id, deleted_at, archived_at)
    WHERE deleted_at IS NULL AND archived_at IS NULL""",
    """CREATE INDEX ix_tasks_board_due ON tasks (status, workspace_id, due_at, sort_order, id, deleted_at, archived_at)
    WHERE deleted_at IS NULL AND archived_at IS NULL""",
    """CREATE INDEX ix_tasks_board_changed ON tasks (status, workspace_id, updated_at, id, deleted_at, archived_at)
    WHERE deleted_at IS NULL AND archived_at IS NULL""",
    """CREATE INDEX ix_tasks_archived ON tasks (status, workspace_id, sort_order, id, deleted_at, archived_at)
    WHERE deleted_at IS NULL AND archived_at IS NOT NULL""",
    """CREATE INDEX ix_executions_unsuccessful ON executions (task_id, created_at, id)
    WHERE status IN ('failed', 'timed_out')""",
)

_COUNTS = (
    (
        "CREATE TABLE board_counts ( status VARCHAR(11) NOT NULL, workspace_id VARCHAR(36) NOT NULL, cards "
        "INTEGER NOT NULL, CONSTRAINT pk_board_counts PRIMARY KEY (status, workspace_id), CONSTRAINT "
        "ck_board_counts_status CHECK (status IN ('todo', 'in_progress', 'blocked', 'done', 'cancelled')), "
        "CONSTRAINT fk_board_counts_workspace_id FOREIGN KEY(workspace_id) REFERENCES workspaces (id) ON DELETE "
        "CASCADE ) WITHOUT ROWID "
    ),
    (
        "CREATE TRIGGER tr_tasks_board_came AFTER INSERT ON tasks WHEN NEW.deleted_at IS NULL AND NEW.archived_at"
        " IS NULL BEGIN INSERT INTO board_counts (status, workspace_id, cards) VALUES (NEW.status, "
        "NEW.workspace_id, 1) ON CONFLICT (status, workspace_id) DO UPDATE SET cards = cards + 1; END"
    ),
    (
        "CREATE TRIGGER tr_tasks_board_left AFTER UPDATE OF workspace_id, status, deleted_at, archived_at ON "
        "tasks WHEN (NEW.workspace_id IS NOT OLD.workspace_id OR NEW.status IS NOT OLD.status OR (NEW.deleted_at "
        "IS NULL AND NEW.archived_at IS NULL) IS NOT (OLD.deleted_at IS NULL AND OLD.archived_at IS NULL)) AND "
        "OLD.deleted_at IS NULL AND OLD.archived_at IS NULL BEGIN UPDATE board_counts SET cards = cards - 1 WHERE"
        " status = OLD.status AND workspace_id = OLD.workspace_id; END"
    ),
    (
        "CREATE TRIGGER tr_tasks_board_moved AFTER UPDATE OF workspace_id, status, deleted_at, archived_at ON "
        "tasks WHEN (NEW.workspace_id IS NOT OLD.workspace_id OR NEW.status IS NOT OLD.status OR (NEW.deleted_at "
        "IS NULL AND NEW.archived_at IS NULL) IS NOT (OLD.deleted_at IS NULL AND OLD.archived_at IS NULL)) AND "
        "NEW.deleted_at IS NULL AND NEW.archived_at IS NULL BEGIN INSERT INTO board_counts (status, workspace_id,"
        " cards) VALUES (NEW.status, NEW.workspace_id, 1) ON CONFLICT (status, workspace_id) DO UPDATE SET cards "
        "= cards + 1; END"
    ),
    (
        "CREATE TRIGGER tr_tasks_board_gone AFTER DELETE ON tasks WHEN OLD.deleted_at IS NULL AND OLD.archived_at"
        " IS NULL BEGIN UPDATE board_counts SET cards = cards - 1 WHERE status = OLD.status AND workspace_id = "
        "OLD.workspace_id; END"
    ),
    (
        "INSERT INTO board_counts (status, workspace_id, cards) SELECT status, workspace_id, count(*) AS cards "
        "FROM tasks WHERE deleted_at IS NULL AND archived_at IS NULL GROUP BY status, workspace_id"
    ),
)
"""How many cards each column has, kept by triggers."""

_SEARCH = (
    (
        "CREATE TABLE unindexed_tasks (task_row INTEGER NOT NULL PRIMARY KEY, indexed_title VARCHAR, "
        "indexed_description VARCHAR)"
    ),
    (
        "CREATE VIRTUAL TABLE task_words USING fts5(title, description, content='', tokenize='unicode61', "
        "detail='column', columnsize=0, prefix='2 3')"
    ),
    (
        "CREATE TRIGGER tr_tasks_words_added AFTER INSERT ON tasks BEGIN INSERT INTO unindexed_tasks (task_row) "
        "VALUES (NEW.rowid) ON CONFLICT DO NOTHING; END"
    ),
    (
        "CREATE TRIGGER tr_tasks_words_changed AFTER UPDATE OF title, description ON tasks WHEN (NEW.title IS NOT "
        "OLD.title OR coalesce(NEW.description, '') IS NOT coalesce(OLD.description, '')) AND NOT EXISTS (SELECT "
        "1 FROM unindexed_tasks WHERE task_row = OLD.rowid) BEGIN INSERT INTO unindexed_tasks (task_row, "
        "indexed_title, indexed_description) VALUES (OLD.rowid, OLD.title, coalesce(OLD.description, '')); END"
    ),
    (
        "CREATE TRIGGER tr_tasks_words_removed AFTER DELETE ON tasks BEGIN INSERT INTO unindexed_tasks (task_row, "
        "indexed_title, indexed_description) VALUES (OLD.rowid, OLD.title, coalesce(OLD.description, '')) ON "
        "CONFLICT DO NOTHING; END"
    ),
    "CREATE TABLE unindexed_sessions (session_row INTEGER NOT NULL PRIMARY KEY, indexed VARCHAR)",
    (
        "CREATE VIRTUAL TABLE session_words USING fts5(content, content='', tokenize='unicode61', detail='none', "
        "columnsize=0, prefix='2 3')"
    ),
    (
        "CREATE TRIGGER tr_sessions_words_added AFTER INSERT ON sessions BEGIN INSERT INTO unindexed_sessions "
        "(session_row) VALUES (NEW.rowid) ON CONFLICT DO NOTHING; END"
    ),
    (
        "CREATE TRIGGER tr_sessions_words_changed AFTER UPDATE OF title, initial_prompt ON sessions WHEN "
        "(coalesce(NEW.title, '') || ' ' || NEW.initial_prompt) IS NOT (coalesce(OLD.title, '') || ' ' || "
        "OLD.initial_prompt) AND NOT EXISTS (SELECT 1 FROM unindexed_sessions WHERE session_row = OLD.rowid) "
        "BEGIN INSERT INTO unindexed_sessions (session_row, indexed) VALUES (OLD.rowid, (coalesce(OLD.title, '') "
        "|| ' ' || OLD.initial_prompt)); END"
    ),
    (
        "CREATE TRIGGER tr_sessions_words_removed AFTER DELETE ON sessions BEGIN INSERT INTO unindexed_sessions "
        "(session_row, indexed) VALUES (OLD.rowid, (coalesce(OLD.title, '') || ' ' || OLD.initial_prompt)) ON "
        "CONFLICT DO NOTHING; END"
    ),
    "CREATE TABLE unindexed_operations (operation_row INTEGER NOT NULL PRIMARY KEY, indexed VARCHAR)",
    (
        "CREATE VIRTUAL TABLE operation_words USING fts5(content, content='', tokenize='unicode61', "
        "detail='none', columnsize=0, prefix='2 3')"
    ),
    (
        "CREATE TRIGGER tr_operations_words_added AFTER INSERT ON operations BEGIN INSERT INTO "
        "unindexed_operations (operation_row) VALUES (NEW.rowid) ON CONFLICT DO NOTHING; END"
    ),
    (
        "CREATE TRIGGER tr_operations_words_changed AFTER UPDATE OF tool_name, target, input_summary, "
        "output_summary, error ON operations WHEN (NEW.tool_name || ' ' || NEW.target || ' ' || NEW.input_summary "
        "|| ' ' || NEW.output_summary || ' ' || coalesce(NEW.error, '')) IS NOT (OLD.tool_name || ' ' || "
        "OLD.target || ' ' || OLD.input_summary || ' ' || OLD.output_summary || ' ' || coalesce(OLD.error, '')) "
        "AND NOT EXISTS (SELECT 1 FROM unindexed_operations WHERE operation_row = OLD.rowid) BEGIN INSERT INTO "
        "unindexed_operations (operation_row, indexed) VALUES (OLD.rowid, (OLD.tool_name || ' ' || OLD.target || "
        "' ' || OLD.input_summary || ' ' || OLD.output_summary || ' ' || coalesce(OLD.error, ''))); END"
    ),
    (
        "CREATE TRIGGER tr_operations_words_removed AFTER DELETE ON operations BEGIN INSERT INTO "
        "unindexed_operations (operation_row, indexed) VALUES (OLD.rowid, (OLD.tool_name || ' ' || OLD.target || "
        "' ' || OLD.input_summary || ' ' || OLD.output_summary || ' ' || coalesce(OLD.error, ''))) ON CONFLICT DO "
        "NOTHING; END"
    ),
    "CREATE TABLE unindexed_documents (document_row INTEGER NOT NULL PRIMARY KEY, indexed VARCHAR)",
    (
        "CREATE VIRTUAL TABLE document_words USING fts5(content, content='', tokenize='unicode61', detail='none', "
        "columnsize=0, prefix='2 3')"
    ),
    (
        "CREATE TRIGGER tr_documents_words_added AFTER INSERT ON documents BEGIN INSERT INTO unindexed_documents "
        "(document_row) VALUES (NEW.rowid) ON CONFLICT DO NOTHING; END"
    ),
    (
        "CREATE TRIGGER tr_documents_words_changed AFTER UPDATE OF title, source_url, content ON documents WHEN "
        "(NEW.title || ' ' || coalesce(NEW.source_url, '') || ' ' || NEW.content) IS NOT (OLD.title || ' ' || "
        "coalesce(OLD.source_url, '') || ' ' || OLD.content) AND NOT EXISTS (SELECT 1 FROM unindexed_documents "
        "WHERE document_row = OLD.rowid) BEGIN INSERT INTO unindexed_documents (document_row, indexed) VALUES "
        "(OLD.rowid, (OLD.title || ' ' || coalesce(OLD.source_url, '') || ' ' || OLD.content)); END"
    ),
    (
        "CREATE TRIGGER tr_documents_words_removed AFTER DELETE ON documents BEGIN INSERT INTO "
        "unindexed_documents (document_row, indexed) VALUES (OLD.rowid, (OLD.title || ' ' || "
        "coalesce(OLD.source_url, '') || ' ' || OLD.content)) ON CONFLICT DO NOTHING; END"
    ),
    (
        "CREATE TABLE unindexed_logs (execution_id VARCHAR(36) NOT NULL PRIMARY KEY, FOREIGN KEY(execution_id) "
        "REFERENCES executions (id) ON DELETE CASCADE) WITHOUT ROWID"
    ),
    (
        "CREATE TABLE log_indexes (execution_id VARCHAR(36) NOT NULL PRIMARY KEY, inode BIGINT NOT NULL, end_byte "
        "BIGINT NOT NULL, end_line BIGINT NOT NULL, end_hash BIGINT NOT NULL, skipped_bytes BIGINT DEFAULT 0 NOT "
        "NULL, FOREIGN KEY(execution_id) REFERENCES executions (id) ON DELETE CASCADE) WITHOUT ROWID"
    ),
    (
        "CREATE TABLE log_pieces (id INTEGER PRIMARY KEY AUTOINCREMENT, execution_id VARCHAR(36) NOT NULL, "
        "start_byte BIGINT NOT NULL, end_byte BIGINT NOT NULL, first_line BIGINT NOT NULL, words BLOB NOT NULL, "
        "FOREIGN KEY(execution_id) REFERENCES executions (id) ON DELETE CASCADE)"
    ),
    "CREATE INDEX ix_log_pieces_execution_id_start_byte ON log_pieces (execution_id, start_byte)",
    (
        "CREATE VIRTUAL TABLE log_words USING fts5(content, content='', tokenize='unicode61', detail='none', "
        "columnsize=0, prefix='2 3')"
    ),
    (
        "CREATE TRIGGER tr_executions_log_came AFTER INSERT ON executions WHEN NEW.log_byte_size > 0 BEGIN INSERT "
        "INTO unindexed_logs (execution_id) VALUES (NEW.id) ON CONFLICT DO NOTHING; END"
    ),
    (
        "CREATE TRIGGER tr_executions_log_changed AFTER UPDATE OF log_byte_size, log_file_path, log_removed_at, "
        "ended_at ON executions WHEN NEW.log_byte_size IS NOT OLD.log_byte_size OR NEW.log_file_path IS NOT "
        "OLD.log_file_path OR NEW.log_removed_at IS NOT OLD.log_removed_at OR (NEW.ended_at IS NOT OLD.ended_at "
        "AND NEW.log_byte_size > 0) BEGIN INSERT INTO unindexed_logs (execution_id) VALUES (NEW.id) ON CONFLICT "
        "DO NOTHING; END"
    ),
)
"""Indexes of words over tasks, sessions, tool calls, documents and logs."""

_MESSAGES_AGAIN = (
    "DROP TABLE message_words",
    "DELETE FROM unindexed_messages",
    (
        "CREATE VIRTUAL TABLE message_words USING fts5(content, content='messages', content_rowid='rowid', "
        "tokenize='unicode61', detail='none', columnsize=0, prefix='2 3')"
    ),
    "INSERT INTO unindexed_messages (message_row) SELECT rowid FROM messages",
)
"""The index of messages anew, with the beginnings of words: without them two letters took a second of a core."""

_NOTED = (
    "INSERT INTO unindexed_tasks (task_row) SELECT rowid FROM tasks",
    "INSERT INTO unindexed_sessions (session_row) SELECT rowid FROM sessions",
    "INSERT INTO unindexed_operations (operation_row) SELECT rowid FROM operations",
    "INSERT INTO unindexed_documents (document_row) SELECT rowid FROM documents",
    (
        "INSERT INTO unindexed_logs (execution_id) SELECT id FROM executions WHERE log_byte_size > 0 AND "
        "log_removed_at IS NULL"
    ),
)
"""What is there already: the worker takes it up in pieces."""


def upgrade() -> None:
    """Give the tasks a time since which they are off the board, with indexes for those on it and those off it.

    The cards of each column are counted. What is searched gets indexes of words, which are filled later.
    """
    connection = op.get_bind()
    for statement in (*_ARCHIVE, *_COUNTS, *_SEARCH, *_MESSAGES_AGAIN, *_NOTED):
        connection.exec_driver_sql(statement)
