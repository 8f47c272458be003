"""The small folder beside the database in which status lines leave what they were told, for whoever takes it in.

Writing into the database would make a status line wait for other writers, fold the write-ahead log when it is its turn,
and wake every screen. A file is there in a fraction of a millisecond, and what gets lost is told again with the next
answer. No more than ``_MOST_FILES`` can lie there, also when nobody ever takes them in.
"""

from __future__ import annotations

import os
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

SUFFIX = "-status"
_MOST_FILES = 256
_ENDING = ".json"
_LEFT_BEHIND_AFTER_S = 60


def reports_folder(database_path: str) -> str:
    """Return where the reports that belong to a database lie."""
    return database_path + SUFFIX


def leave_report(database_path: str, name: str, report: Mapping[str, object]) -> None:
    """Leave a report in place of the one of the same name; without a database, and where it fails, nothing is left."""
    if not os.path.exists(database_path):  # noqa: PTH110 - pathlib costs more than the rest
        return
    folder = reports_folder(database_path)
    path = f"{folder}/{sum(name.encode('utf-8', 'replace')) % _MOST_FILES:02x}{_ENDING}"
    scratch = f"{path}.{os.getpid()}"
    try:
        try:
            descriptor = _open_new(scratch)
        except FileNotFoundError:
            os.mkdir(folder, 0o700)  # noqa: PTH102
            descriptor = _open_new(scratch)
        try:
            os.write(descriptor, _written(report).encode())
        finally:
            os.close(descriptor)
        os.rename(scratch, path)  # noqa: PTH104
    except OSError:
        return


def take_reports(database_path: str) -> list[bytes]:
    """Return the reports that were left, and remove them; each is returned to one caller alone."""
    folder = reports_folder(database_path)
    taken = []
    try:
        names = os.listdir(folder)  # noqa: PTH208 - as above
    except OSError:
        return []
    for name in names:
        path = f"{folder}/{name}"
        own = f"{path}.taken.{os.getpid()}"
        try:
            if name.endswith(_ENDING):
                os.rename(path, own)  # noqa: PTH104
                with open(own, "rb") as file:  # noqa: PTH123
                    taken.append(file.read())
                os.unlink(own)  # noqa: PTH108
            elif _is_left_behind(path):
                os.unlink(path)  # noqa: PTH108
        except OSError:
            continue
    return taken


def _written(value: object) -> str:
    """Return numbers, texts, None and objects of these as JSON, without ``json``, which takes longer than the rest."""
    match value:
        case None:
            return "null"
        case dict():
            return "{" + ",".join(f"{_quoted(str(name))}:{_written(member)}" for name, member in value.items()) + "}"
        case str():
            return _quoted(value)
        case _:
            return repr(value)


def _quoted(text: str) -> str:
    try:
        from _json import encode_basestring_ascii  # noqa: PLC0415 - not every Python has it
    except ImportError:
        from json.encoder import encode_basestring_ascii  # noqa: PLC0415 - only where there is no other way

    return encode_basestring_ascii(text)


def _open_new(path: str) -> int:
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)


def _is_left_behind(path: str) -> bool:
    """Whether who was writing or taking the file was killed on the way."""
    return time.time() - os.stat(path).st_mtime > _LEFT_BEHIND_AFTER_S  # noqa: PTH116
