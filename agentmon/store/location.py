"""Where the database is: a URL or path made into the absolute path of one file."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from agentmon.domain.errors import UsageError

_SQLITE_SCHEMES: Final = frozenset({"sqlite", "sqlite+aiosqlite"})
_EXAMPLE: Final = "Write sqlite:////home/me/agentmon.db (four slashes for an absolute path), or leave it unset."


def find_database(location: str | Path) -> Path:
    """Return the absolute path of the database that a path or an SQLAlchemy URL names; nothing is opened or made.

    ``sqlite:///name`` is relative to the present folder, ``sqlite:////name`` is absolute.

    Raises:
        UsageError: The text is no URL, is not for SQLite, names no file, or carries options.
    """
    if isinstance(location, Path):
        return location.expanduser().absolute()
    scheme, separator, rest = location.partition("://")
    if not separator:
        raise UsageError("the database URL does not start with sqlite:///", hint=_EXAMPLE)
    if scheme not in _SQLITE_SCHEMES:
        # Only the scheme is repeated: the rest may hold a password.
        raise UsageError(f"this release keeps its data in SQLite only; {scheme}:// cannot be used", hint=_EXAMPLE)
    name, _, options = rest.removeprefix("/").partition("?")
    if not rest.startswith("/"):
        raise UsageError("the database URL has too few slashes after its scheme", hint=_EXAMPLE)
    if not name or name == ":memory:":
        raise UsageError("the database URL names no file", hint=_EXAMPLE)
    if options:
        raise UsageError("the database URL carries options after '?', and none is understood", hint=_EXAMPLE)
    return Path(name).expanduser().absolute()
