"""Column types whose stored form is fixed here: times, JSON values and the words of closed sets."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final, TypeVar

from sqlalchemy import BigInteger, DateTime, Enum, Integer, String, Text
from sqlalchemy.types import TypeDecorator

from agentmon.store.moments import moment_text, parse_moment

if TYPE_CHECKING:
    from enum import StrEnum

    from sqlalchemy.engine import Dialect
    from sqlalchemy.types import TypeEngine

_MOMENT_LENGTH: Final = len("2026-01-01T00:00:00.000Z")

_Words = TypeVar("_Words", bound="StrEnum")


def json_text(value: object) -> str:
    """Return a value as JSON with sorted keys and readable letters; lone surrogates become ``?``.

    Raises:
        ValueError: The value holds a number that JSON does not know.
        TypeError: The value holds an object that JSON does not know.
    """
    text = json.dumps(value, sort_keys=True, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return text if text.isascii() else text.encode(errors="replace").decode()


class Moment(TypeDecorator[datetime]):
    """An aware UTC time with milliseconds; fixed-width text on SQLite, ``timestamptz`` on PostgreSQL."""

    impl = String
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[datetime] | TypeEngine[str]:
        """Return the column type of the dialect."""
        if dialect.name == "postgresql":
            return dialect.type_descriptor(DateTime(timezone=True))
        return dialect.type_descriptor(String(_MOMENT_LENGTH))

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> str | datetime | None:
        """Return what is stored; a naive time is refused."""
        if value is None:
            return None
        text = moment_text(value)
        return parse_moment(text) if dialect.name == "postgresql" else text

    def process_result_value(self, value: str | datetime | None, dialect: Dialect) -> datetime | None:
        """Return the aware UTC time that was stored."""
        del dialect
        if value is None:
            return None
        return value.astimezone(UTC) if isinstance(value, datetime) else parse_moment(value)


class Json(TypeDecorator[object]):
    """A JSON object or list; text with sorted keys on SQLite, ``jsonb`` on PostgreSQL; None is NULL, not ``null``."""

    impl = Text
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        """Return the column type of the dialect; text on SQLite, whose JSON type would turn digits into floats."""
        if dialect.name == "postgresql":
            from sqlalchemy.dialects.postgresql import JSONB  # noqa: PLC0415 - 2 MB that SQLite has no use for

            return dialect.type_descriptor(JSONB(none_as_null=True))
        return dialect.type_descriptor(Text())

    def process_bind_param(self, value: object, dialect: Dialect) -> object:
        """Return what is stored."""
        if value is None or dialect.name == "postgresql":
            return value
        return json_text(value)

    def process_result_value(self, value: object, dialect: Dialect) -> object:
        """Return the parsed value."""
        del dialect
        return json.loads(value) if isinstance(value, str) else value


def word(words: type[_Words], name: str) -> Enum:
    """Return a text column type with a CHECK named after the column, made from the values of an enum.

    Rows come back as members; a member or its plain text may be written, and any other text is refused by the CHECK.
    """
    values = [member.value for member in words]
    return Enum(
        words,
        name=name,
        native_enum=False,
        create_constraint=True,
        length=max(map(len, values)),
        values_callable=lambda enum: [member.value for member in enum],
    )


def growing_id() -> TypeEngine[int]:
    """Return the type of a bigint that the database counts up; SQLite counts only ``INTEGER PRIMARY KEY``."""
    return BigInteger().with_variant(Integer(), "sqlite")
