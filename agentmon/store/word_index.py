"""An index of words of one table, kept up behind its rows, so that writing them costs nothing more.

Triggers note which rows are not in the index as they are now; whoever takes some up moves them into the index, and
whoever searches looks through those that are left. The index knows a row by its number, which stays as it is: whoever
makes a table again has to fill its index anew.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

SOME_ROWS: Final = 1000
"""Most rows that are taken up in one transaction."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WordIndex:
    """The index of one table, and the statements that make it and keep it up."""

    rows: str
    """The table."""
    noun: str
    """One row of it; names of the index are made of it."""
    texts: dict[str, str]
    """Columns of the index, each with its text as SQL over ``{row}``."""
    changed_by: str
    """The columns of the table whose change may change the texts."""
    options: str
    """Those of FTS5 behind the columns; without the places of words an index is a third as large."""
    word_function: str = ""
    """The SQL function that makes words of a text before they are indexed; empty when the text goes in as it is."""

    @property
    def words(self) -> str:
        """The table of the index."""
        return f"{self.noun}_words"

    @property
    def unindexed(self) -> str:
        """The table of rows that are not in the index as they are now, with what the index holds of each."""
        return f"unindexed_{self.rows}"

    @property
    def row_column(self) -> str:
        """The column of ``unindexed`` that has the row's number."""
        return f"{self.noun}_row"

    @property
    def schema(self) -> tuple[str, ...]:
        """What a fresh database gets with the table."""
        held = self._held
        olds = ", ".join(text.format(row="OLD") for text in self.texts.values())
        is_changed = " OR ".join(
            f"{text.format(row='NEW')} IS NOT {text.format(row='OLD')}" for text in self.texts.values()
        )
        if len(held) > 1:
            is_changed = f"({is_changed})"
        is_noted = f"EXISTS (SELECT 1 FROM {self.unindexed} WHERE {self.row_column} = OLD.rowid)"
        noted = f"INSERT INTO {self.unindexed} ({self.row_column}, {', '.join(held)}) VALUES (OLD.rowid, {olds})"
        return (
            (
                f"CREATE TABLE {self.unindexed} ({self.row_column} INTEGER NOT NULL PRIMARY KEY, "
                f"{', '.join(f'{name} VARCHAR' for name in held)})"
            ),
            f"CREATE VIRTUAL TABLE {self.words} USING fts5({', '.join(self.texts)}, {self.options})",
            # No trigger touches the index itself: SQLite refuses that where schemas are not trusted.
            (
                f"CREATE TRIGGER tr_{self.rows}_{self._tag}added AFTER INSERT ON {self.rows} "
                f"BEGIN INSERT INTO {self.unindexed} ({self.row_column}) VALUES (NEW.rowid) ON CONFLICT DO NOTHING; END"
            ),
            (
                f"CREATE TRIGGER tr_{self.rows}_{self._tag}changed AFTER UPDATE OF {self.changed_by} ON {self.rows} "
                f"WHEN {is_changed} AND NOT {is_noted} "
                f"BEGIN {noted}; END"
            ),
            (
                f"CREATE TRIGGER tr_{self.rows}_{self._tag}removed AFTER DELETE ON {self.rows} "
                f"BEGIN {noted} ON CONFLICT DO NOTHING; END"
            ),
        )

    @property
    def index_some(self) -> tuple[str, ...]:
        """Take up at most a thousand rows, the newest first, all in one transaction."""
        some = f"SELECT {self.row_column} FROM {self.unindexed} ORDER BY {self.row_column} DESC LIMIT {SOME_ROWS}"
        names = ", ".join(self.texts)
        held = ", ".join(self._worded(name) for name in self._held)
        texts = ", ".join(self._worded(text.format(row=self.rows)) for text in self.texts.values())
        return (
            (
                f"INSERT INTO {self.words} ({self.words}, rowid, {names}) SELECT 'delete', {self.row_column}, {held} "
                f"FROM {self.unindexed} WHERE {self._held[0]} IS NOT NULL AND {self.row_column} IN ({some})"
            ),
            f"INSERT INTO {self.words} (rowid, {names}) SELECT rowid, {texts} FROM {self.rows} WHERE rowid IN ({some})",
            f"DELETE FROM {self.unindexed} WHERE {self.row_column} IN ({some})",
        )

    @property
    def has_unindexed(self) -> str:
        """Ask whether there are rows to take up."""
        return f"SELECT EXISTS (SELECT 1 FROM {self.unindexed})"

    @property
    def note_all(self) -> str:
        """Note every row, when the index comes to a table that has some."""
        return f"INSERT INTO {self.unindexed} ({self.row_column}) SELECT rowid FROM {self.rows}"

    @property
    def _held(self) -> tuple[str, ...]:
        return ("indexed",) if len(self.texts) == 1 else tuple(f"indexed_{name}" for name in self.texts)

    @property
    def _tag(self) -> str:
        """Keep the names apart from those of other triggers; the first index had none."""
        return "words_" if self.word_function else ""

    def _worded(self, text: str) -> str:
        return f"{self.word_function}({text})" if self.word_function else text
