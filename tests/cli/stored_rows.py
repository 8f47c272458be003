"""Rows of a command line's database changed past it, for states that take long to come about."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.cli.command_lines import CommandLine


def change_rows(cli: CommandLine, statement: str, *parameters: object) -> None:
    with closing(sqlite3.connect(cli.paths.database_path)) as connection, connection:
        changed = connection.execute(statement, parameters).rowcount
    assert changed, statement
