"""Folders that only their owner can use, whatever the umask says and whoever else writes beside them."""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

_MODE: Final = 0o700
_OF_OTHERS: Final = 0o077


def make_private_folder(folder: Path) -> None:
    """Make a folder and what is missing above it; one that is there stays as it is.

    Raises:
        NotOwnError: It is in a place where everybody may write, and somebody else made it or may write in it.
        OSError: It cannot be made.
    """
    if not folder.is_dir():
        make_private_folder(folder.parent)
        folder.mkdir(mode=_MODE, exist_ok=True)
        if folder.stat().st_uid == os.geteuid():
            folder.chmod(_MODE)
    require_own(folder)


def close_to_others(folder: Path) -> None:
    """Take the permissions of an own folder from everybody but its owner; one that is not own, or missing, stays."""
    try:
        found = folder.stat()
        if found.st_uid == os.geteuid() and found.st_mode & _OF_OTHERS:
            folder.chmod(stat.S_IMODE(found.st_mode) & ~_OF_OTHERS)
    except OSError:
        return


def require_own(path: Path) -> None:
    """See to it that nobody else has prepared what is at a path, where everybody may write beside it.

    Raises:
        NotOwnError: Somebody else made it, or may write there.
        OSError: It is not there.
    """
    if path.parent.stat().st_mode & stat.S_IWOTH and path.parent != path:
        _require(path, path.stat(), stat.S_IWOTH)


def require_private(folder: Path) -> None:
    """See to it that a folder is one that ``make_private_folder`` made for this user; one that is missing is fine.

    Raises:
        NotOwnError: It is a link or no folder, somebody else made it, or others may look into it.
    """
    try:
        found = folder.lstat()
    except FileNotFoundError:
        return
    if stat.S_ISLNK(found.st_mode):
        raise NotOwnError(f"{folder} is a link")
    if not stat.S_ISDIR(found.st_mode):
        raise NotOwnError(f"{folder} is no folder")
    _require(folder, found, _OF_OTHERS)


def find_locked(places: Iterable[Path]) -> list[Path]:
    """Return what keeps this user out: what others own at these places and above them, the outermost of each."""
    found = []
    for place in places:
        for path in (*reversed(place.parents), place):
            try:
                is_foreign = path.stat().st_uid != os.geteuid()
            except OSError:
                break
            need = os.X_OK if path != place else os.R_OK | os.W_OK | (os.X_OK if path.is_dir() else 0)
            if is_foreign and not os.access(path, need):
                found.append(path)
                break
    return list(dict.fromkeys(found))


def find_left_by_others(folders: Iterable[Path]) -> list[Path]:
    """Return those of the folders in which something is that another user made, one level deep."""
    found = []
    for folder in folders:
        try:
            with os.scandir(folder) as entries:
                if any(entry.stat(follow_symlinks=False).st_uid != os.geteuid() for entry in entries):
                    found.append(folder)
        except OSError:
            continue
    return found


def take_over(places: Iterable[Path]) -> str:
    """Return the command line that gives places to this user, with all that is in them."""
    import shlex  # noqa: PLC0415 - seldom needed

    user = owner_name(os.geteuid()).removeprefix("user ")
    return f"sudo chown -R {user}:{os.getegid()} {' '.join(shlex.quote(str(one)) for one in places)}"


def is_left_by_another(path: Path) -> bool:
    """Whether somebody else made what is at a path, in a folder of this user; so does root, when it runs once."""
    try:
        return path.lstat().st_uid != os.geteuid() == path.parent.stat().st_uid
    except OSError:
        return False


class NotOwnError(PermissionError):
    """What is at a path is, or may be, the work of another user."""


def _require(path: Path, found: os.stat_result, forbidden: int) -> None:
    if found.st_uid != os.geteuid():
        raise NotOwnError(f"{path} belongs to {owner_name(found.st_uid)}")
    if found.st_mode & forbidden:
        raise NotOwnError(f"{path} is open to others (mode {stat.S_IMODE(found.st_mode):04o})")


def owner_name(uid: int) -> str:
    """Return what the system calls a user; the number where it has no name for it."""
    import pwd  # noqa: PLC0415 - seldom needed

    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"user {uid}"
