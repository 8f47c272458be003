"""What the first frame shows, read with the standard library alone, before anything heavy is imported."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

from agentmon.domain.ids import WorkspaceId
from agentmon.domain.limits import DEFAULT_RUNNING_LIMIT
from agentmon.store.board import read_board
from agentmon.store.board_setting import find_board_words
from agentmon.store.money_setting import find_money_words
from agentmon.store.revision import HEAD_REVISION
from agentmon.store.untouched import FIRST_FRAME_TIMEOUT_S, connect_untouched

if TYPE_CHECKING:
    from collections.abc import Sequence

    from agentmon.domain.board import BoardPage, ColumnRequest


def read_first_board(
    database_path: Path, settings_file: Path, workspace_root: str, requests: Sequence[ColumnRequest]
) -> BoardPage | None:
    """Return the board of the workspace, or None when the database has to be made, upgraded or looked at first."""
    connection = _open(database_path)
    if connection is None:
        return None
    with closing(connection):
        try:
            rows = connection.execute(
                "SELECT id, name FROM workspaces WHERE root_path = ?", (workspace_root,)
            ).fetchall()
            workspace_id, name = rows[0] if rows else (None, Path(workspace_root).name)
            return read_board(
                connection,
                workspace_id=None if workspace_id is None else WorkspaceId(workspace_id),
                workspace_name=name,
                requests=requests,
                running_limit=DEFAULT_RUNNING_LIMIT,
                money_words=find_money_words(str(settings_file), os.environ),
                board_words=find_board_words(str(settings_file), os.environ),
            )
        except sqlite3.Error:
            return None


def _open(database_path: Path) -> sqlite3.Connection | None:
    if not database_path.is_file():
        return None
    try:
        connection = connect_untouched(database_path, timeout_s=FIRST_FRAME_TIMEOUT_S)
    except sqlite3.Error:
        return None
    try:
        revision = connection.execute("SELECT version_num FROM alembic_version").fetchone()
    except sqlite3.Error:
        connection.close()
        return None
    if revision != (HEAD_REVISION,):
        connection.close()
        return None
    return connection
