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

    Rows keep their numbers, by which the indexes of texts know them. One that has its first change already, as in a
    database of a later release whose revision was set back, stays.

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
        described = connection.exec_driver_sql("PRAGMA table_info(old)").fetchall()
        columns = [row[1] for row in described]
        names = ", ".join(f'"{column}"' for column in columns)
        values = ", ".join((taken or {}).get(column, f'"{column}"') for column in columns)
        is_numbered = "WITHOUT ROWID" not in text
        is_number_a_column = any(row[2].upper() == "INTEGER" and row[5] for row in described)
        number = "rowid, " if is_numbered and not is_number_a_column else ""
        order = " ORDER BY rowid" if is_numbered else ""
        connection.exec_driver_sql(f"INSERT INTO {table} ({number}{names}) SELECT {number}{values} FROM old{order}")
        connection.exec_driver_sql("DROP TABLE old")
        for _, _, sql in others:
            connection.exec_driver_sql(sql)
    connection.exec_driver_sql("PRAGMA legacy_alter_table = OFF")
