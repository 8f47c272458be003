"""Making tables again, since SQLite cannot change a constraint."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from sqlalchemy import Connection


def make_again(
    connection: Connection,
    tables: Mapping[str, Sequence[tuple[str, str]]],
    *,
    taken: Mapping[str, str] | None = None,
) -> None:
    """Make tables again with all their rows, indexes and triggers; references from other tables are by name.

    One that has its first change already, as in a database of a later release whose revision was set back, stays.

    Args:
        connection: In a transaction.
        tables: What changes in the text of each table: what stands there, and what takes its place.
        taken: What a column gets instead of its old value, by its name.

    Raises:
        RuntimeError: A table is not as the revision before made it.
    """
    connection.exec_driver_sql("PRAGMA legacy_alter_table = ON")
    for table, changes in tables.items():
        kept = connection.exec_driver_sql(
            "SELECT type, name, sql FROM sqlite_master WHERE tbl_name = ? AND sql IS NOT NULL", (table,)
        ).fetchall()
        text = next(sql for kind, _, sql in kept if kind == "table")
        if changes[0][1] in " ".join(text.split()):
            continue
        for old, new in changes:
            if old not in text:
                raise RuntimeError(f"the table {table} is not as the revision before made it: {old} is not there")
            text = text.replace(old, new)
        others = [(kind, name, sql) for kind, name, sql in kept if kind != "table"]
        for kind, name, _ in others:
            connection.exec_driver_sql(f"DROP {kind} {name}")
        connection.exec_driver_sql(f"ALTER TABLE {table} RENAME TO old")
        connection.exec_driver_sql(text)
        columns = [row[1] for row in connection.exec_driver_sql("PRAGMA table_info(old)").fetchall()]
        names = ", ".join(f'"{column}"' for column in columns)
        values = ", ".join((taken or {}).get(column, f'"{column}"') for column in columns)
        connection.exec_driver_sql(f"INSERT INTO {table} ({names}) SELECT {values} FROM old ORDER BY rowid")
        connection.exec_driver_sql("DROP TABLE old")
        for _, _, sql in others:
            connection.exec_driver_sql(sql)
    connection.exec_driver_sql("PRAGMA legacy_alter_table = OFF")
