"""The newest schema as statements for a fresh database; a test proves that the migrations lead to the same."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Final

from sqlalchemy import create_mock_engine
from sqlalchemy.dialects import sqlite
from sqlalchemy.sql import ClauseElement

from agentmon.store.tables import metadata

if TYPE_CHECKING:
    from sqlalchemy.sql.base import Executable

# As Alembic itself would make it. Source: alembic 1.20, runtime/migration.py.
_VERSION_TABLE: Final = (
    "CREATE TABLE alembic_version ( "
    "version_num VARCHAR(32) NOT NULL, CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num) )"
)


@cache
def fresh_schema(revision: str) -> tuple[str, ...]:
    """Return the SQLite statements that make an empty database of the newest schema, marked with the revision."""
    statements: list[str] = []

    def note(statement: Executable, *_: object, **__: object) -> None:
        if isinstance(statement, ClauseElement):
            statements.append(str(statement.compile(dialect=sqlite.dialect())))

    metadata.create_all(create_mock_engine("sqlite://", note), checkfirst=False)
    return (_VERSION_TABLE, *statements, f"INSERT INTO alembic_version (version_num) VALUES ('{revision}')")
