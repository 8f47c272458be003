"""Which RPM package owns a file, read from rpm's own database; rpm itself is not run."""

from __future__ import annotations

import sqlite3
import struct
from contextlib import closing, suppress
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

_PLACES: Final = ("usr/lib/sysimage/rpm/rpmdb.sqlite", "var/lib/rpm/rpmdb.sqlite")
# Source: rpm's rpmtag.h and the header format in its documentation (docs/manual/format_header.md).
_NAME, _VERSION, _RELEASE, _GROUP, _DIR_INDEXES, _BASE_NAMES, _DIR_NAMES = 1000, 1001, 1002, 1016, 1116, 1117, 1118
_ENTRY: Final = struct.Struct(">4I")
_TEXT, _TEXTS, _TRANSLATED, _NUMBERS = 6, 8, 9, 4
_INTRO_BYTES: Final = 8
_UNTOLD_GROUP: Final = "Unspecified"


def rpm_owners(wanted: frozenset[str], root: Path) -> dict[str, tuple[str, str | None, str | None]]:
    """Return name, group and version of the packages of those paths that one has; empty where rpm keeps no SQLite."""
    owners: dict[str, tuple[str, str | None, str | None]] = {}
    for place in _PLACES:
        for header in _headers(root / place):
            with suppress(struct.error, IndexError):
                _take_package(header, wanted, owners)
    return owners


def _headers(path: Path) -> list[bytes]:
    # Without the right to write beside it, SQLite reads a file with a log only as one that nobody changes.
    for how in ("mode=ro", "immutable=1"):
        with suppress(sqlite3.Error), closing(sqlite3.connect(f"{path.as_uri()}?{how}", uri=True)) as database:
            return [bytes(header) for (header,) in database.execute("SELECT blob FROM Packages")]
    return []


def _take_package(header: bytes, wanted: frozenset[str], owners: dict[str, tuple[str, str | None, str | None]]) -> None:
    tags = _tags(header)
    folders, names = _texts(header, tags, _DIR_NAMES), _texts(header, tags, _BASE_NAMES)
    indexes = _numbers(header, tags, _DIR_INDEXES)
    found = [path for index, name in zip(indexes, names, strict=False) if (path := folders[index] + name) in wanted]
    if not found:
        return
    name, version, release, group = (
        "".join(_texts(header, tags, tag)[:1]) for tag in (_NAME, _VERSION, _RELEASE, _GROUP)
    )
    full_version = "-".join(part for part in (version, release) if part)
    section = group if group != _UNTOLD_GROUP else ""
    owners |= dict.fromkeys(found, (name, section or None, full_version or None))


def _tags(header: bytes) -> Mapping[int, tuple[int, int, int]]:
    """Return by tag: the kind, where its values begin in the header, and how many there are."""
    entries, _size = struct.unpack_from(">2I", header)
    begin = _INTRO_BYTES + _ENTRY.size * entries
    return {
        tag: (kind, begin + offset, count)
        for tag, kind, offset, count in _ENTRY.iter_unpack(header[_INTRO_BYTES:begin])
    }


def _texts(header: bytes, tags: Mapping[int, tuple[int, int, int]], tag: int) -> Sequence[str]:
    kind, begin, count = tags.get(tag, (0, 0, 0))
    if kind not in {_TEXT, _TEXTS, _TRANSLATED}:
        return ()
    found = header[begin:].split(b"\0", count)[:count]
    return [text.decode("utf-8", "replace") for text in found]


def _numbers(header: bytes, tags: Mapping[int, tuple[int, int, int]], tag: int) -> Sequence[int]:
    kind, begin, count = tags.get(tag, (0, 0, 0))
    return struct.unpack_from(f">{count}I", header, begin) if kind == _NUMBERS else ()
