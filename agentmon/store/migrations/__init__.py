"""The steps from each released schema to the next, and the one place that imports Alembic; only an upgrade needs it."""

from __future__ import annotations

import sqlite3
from typing import TYPE_CHECKING

from alembic import command
from alembic.config import Config
from alembic.util import CommandError
from sqlalchemy import create_engine, event
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.pool import StaticPool

if TYPE_CHECKING:
    from pathlib import Path

    from sqlalchemy import Connection

_BUSY_TIMEOUT_S = 30.0


class MigrationError(Exception):
    """A step failed; the transaction that held them all was rolled back."""


def run_migrations(path: Path, folder: Path, *, target: str = "head") -> None:
    """Bring the database at the path to the target revision, all steps in one transaction.

    Foreign keys are not enforced meanwhile, because SQLite changes a table by making it again, and dropping the old one
    would delete the rows that point to it; instead they are all checked before the end.

    Raises:
        MigrationError: A step failed, or would leave a row that points nowhere.
        sqlite3.Error: The database cannot be opened.
    """
    opened = sqlite3.connect(f"{path.as_uri()}?mode=rw", uri=True, timeout=_BUSY_TIMEOUT_S, isolation_level=None)
    try:
        opened.execute("PRAGMA foreign_keys = OFF")
        engine = create_engine("sqlite://", creator=lambda: opened, poolclass=StaticPool)
        event.listen(engine, "begin", _begin_immediate)
        with engine.begin() as connection:
            command.upgrade(_config(folder, connection), target)
            _require_whole_references(connection)
    except (CommandError, SQLAlchemyError) as error:
        raise MigrationError(str(error)) from error
    finally:
        opened.close()


def _config(folder: Path, connection: Connection) -> Config:
    config = Config()
    # The setting is read with interpolation, in which a percent sign is special.
    config.set_main_option("script_location", str(folder).replace("%", "%%"))
    config.attributes["connection"] = connection
    return config


def _begin_immediate(connection: Connection) -> None:
    connection.exec_driver_sql("BEGIN IMMEDIATE")


def _require_whole_references(connection: Connection) -> None:
    broken = connection.exec_driver_sql("PRAGMA foreign_key_check").first()
    if broken is not None:
        raise MigrationError(f"row {broken[1]} of {broken[0]} would point to a missing row of {broken[2]}")
