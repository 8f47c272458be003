"""Files and folders that only their owner can read, whatever the umask says."""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

from agentmon import private_folders
from agentmon.domain.errors import StoreError
from agentmon.private_folders import NotOwnError
from agentmon.store.errors import is_on_read_only_disk, writing_hint

if TYPE_CHECKING:
    from collections.abc import Iterable

_FILE_MODE: Final = 0o600
_OWN_PLACE: Final = "Set AGENTMON_HOME to a folder of your own, below your home."
_OTHERS: Final = stat.S_IRWXG | stat.S_IRWXO


def make_private_file(path: Path) -> None:
    """Make an empty file with mode 0600.

    Raises:
        OSError: It exists already, or cannot be made.
    """
    descriptor = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, _FILE_MODE)
    try:
        os.fchmod(descriptor, _FILE_MODE)
    finally:
        os.close(descriptor)


def make_private_folder(path: Path) -> None:
    """Make the folder and its missing parents with mode 0700; one that exists keeps its mode.

    Raises:
        StoreError: A folder cannot be made.
    """
    try:
        private_folders.make_private_folder(path)
    except NotOwnError as error:
        raise StoreError(f"agentmon cannot keep its files there: {error}", hint=_OWN_PLACE) from error
    except OSError as error:
        raise StoreError(
            f"the folder {path} cannot be made: {error.strerror}",
            hint=writing_hint(path, otherwise=f"Make {path.parent} writable, or set AGENTMON_HOME to another folder."),
        ) from error


def require_usable(places: Iterable[Path], *, own: Path) -> None:
    """See to it that nothing of agentmon is in the hands of another user, as after a run as root.

    Args:
        places: What is needed.
        own: The data folder, which may be taken over wherever it is; so may what is below the home.

    Raises:
        StoreError: Something is; the hint gives it back.
    """
    locked = private_folders.find_locked(places)
    if not locked or is_on_read_only_disk(locked[0]):
        return
    home = Path.home()
    can_be_taken = all(home in one.parents or one.is_relative_to(own) for one in locked)
    raise StoreError(
        f"{locked[0]} belongs to {private_folders.owner_name(locked[0].stat().st_uid)}, so agentmon cannot use it",
        hint=f"Take it over: {private_folders.take_over(locked)}" if can_be_taken else _OWN_PLACE,
    )


def require_own_file(path: Path) -> None:
    """See to it that nobody else has put a file there, in a folder where everybody may write.

    Raises:
        StoreError: Somebody else did.
    """
    try:
        private_folders.require_own(path)
    except NotOwnError as error:
        raise StoreError(f"agentmon does not use the files of others: {error}", hint=_OWN_PLACE) from error
    except OSError:
        return  # what is missing is nobody's, and what cannot be looked at is refused with its own reason


def keep_private(path: Path) -> None:
    """Take a file's permissions from everybody but its owner; another owner's file is left as it is."""
    mode = stat.S_IMODE(path.stat().st_mode)
    if mode & _OTHERS:
        with suppress(PermissionError):
            path.chmod(mode & ~_OTHERS)
