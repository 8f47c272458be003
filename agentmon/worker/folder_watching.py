"""Tells of what changes below folders, from a thread of its own; where that cannot be had, says so."""

from __future__ import annotations

import logging
import os
import re
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

_log = logging.getLogger(__name__)

_STEP_MS: Final = 100
"""How often the thread wakes; a change is told after one or two of these."""
_GATHERED_MS: Final = 400
"""Changes that go on are told at least so often."""
_FOLDERS_EVERY_S: Final = 2.0
"""How often it is looked whether folders came, went or were replaced."""
_TRY_AGAIN_AFTER_S: Final = 600.0
_MAX_PATHS: Final = 5_000
_FORCED: Final = "WATCHFILES_FORCE_POLLING"
_NOT_FORCED: Final = frozenset({"", "false", "disable", "disabled"})
"""As watchfiles reads its variable."""
_MOUNTS: Final = Path("/proc/self/mountinfo")
_ESCAPED: Final = re.compile(r"\\([0-7]{3})")
_DISTANT: Final = ("nfs", "cifs", "smb", "9p", "afs", "ceph", "gluster", "lustre", "gfs", "ocfs", "fuse.", "virtiofs")
"""How the names of file systems begin on which changes of other computers, or of the host, are not told."""

_Identities = dict[str, tuple[int, int]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Changes:
    """What has changed since the last time."""

    paths: frozenset[str] = frozenset()
    """Files and folders that were made, changed or removed."""
    is_everything: bool = False
    """Whether more may have changed than ``paths`` tells, so that all has to be looked at."""


class FolderWatch:
    """Watches folders with all below them; ``close`` ends its thread.

    Folders that are not there yet are watched once they are.

    Args:
        list_folders: Returns the folders; called in the thread.
        on_change: Called in the thread when there is something to ``take``.
    """

    def __init__(self, list_folders: Callable[[], Iterable[str]], on_change: Callable[[], None]) -> None:
        self._list_folders = list_folders
        self._on_change = on_change
        self._lock = threading.Lock()
        self._paths: set[str] = set()
        self._is_everything = True
        self._is_complete = False
        self._is_ending = threading.Event()
        self._complaint = ""
        self._thread = threading.Thread(target=self._run, name="watch folders of agents", daemon=True)
        self._thread.start()

    @property
    def is_complete(self) -> bool:
        """Whether every folder that is there is watched; otherwise changes are found by looking alone."""
        return self._is_complete

    def take(self) -> Changes:
        """Return what has changed since the last time; at first that is everything."""
        with self._lock:
            changes = Changes(paths=frozenset(self._paths), is_everything=self._is_everything)
            self._paths, self._is_everything = set(), False
        return changes

    def close(self) -> None:
        """End the thread, and return when it has ended, within some tenths of a second; idempotent."""
        self._is_ending.set()
        self._thread.join()

    def _run(self) -> None:
        try:
            self._watch_on()
        except Exception:  # noqa: BLE001 - whatever it is, changes are found without the thread
            _log.exception("the folders of agents are looked at every few seconds, since watching them ended")
        finally:
            self._is_complete = False

    def _watch_on(self) -> None:
        while not self._is_ending.is_set():
            folders, distant = self._find_folders()
            rest_s = _FOLDERS_EVERY_S
            try:
                if folders:
                    self._watch(folders, is_complete=not distant)
                    continue
                self._is_complete = not distant
            except FileNotFoundError:
                self._is_complete = False
            except (OSError, RuntimeError) as error:
                # Among them are the limits of the system for watches, and those of watchfiles for what notify says.
                self._is_complete = False
                self._complain(str(error) or type(error).__name__)
                rest_s = _TRY_AGAIN_AFTER_S
            self._is_ending.wait(rest_s)
            if self._find_folders()[0] != folders:
                self._tell_everything()

    def _watch(self, folders: _Identities, *, is_complete: bool) -> None:
        """Tell what changes until the folders are others, or until the end."""
        from watchfiles import watch  # noqa: PLC0415 - 30 ms and 5 MB that only the worker's thread needs

        # It would write a line for every change.
        logging.getLogger("watchfiles.main").setLevel(logging.WARNING)
        looked_at = time.monotonic()
        is_first = True
        for changes in watch(
            *folders,
            watch_filter=None,
            debounce=_GATHERED_MS,
            step=_STEP_MS,
            stop_event=self._is_ending,
            rust_timeout=round(_FOLDERS_EVERY_S * 1_000),
            yield_on_timeout=True,
            raise_interrupt=False,
            force_polling=False,
            ignore_permission_denied=True,
        ):
            self._is_complete = is_complete
            if is_first:
                # What changed while the watches were set up is not told.
                self._tell_everything()
                is_first = False
            if changes:
                self._tell(path for _, path in changes)
            if time.monotonic() - looked_at >= _FOLDERS_EVERY_S:
                if self._find_folders()[0] != folders:
                    self._tell_everything()
                    return
                looked_at = time.monotonic()

    def _find_folders(self) -> tuple[_Identities, list[str]]:
        """Return the folders that can be watched, and those of which changes are not told."""
        present: _Identities = {}
        for folder in self._list_folders():
            try:
                facts = Path(folder).stat()
            except OSError:
                continue
            present[folder] = facts.st_dev, facts.st_ino
        if os.environ.get(_FORCED, "").lower() not in _NOT_FORCED:
            return {}, list(present)
        distant = distant_folders(present) if present else []
        return {folder: identity for folder, identity in present.items() if folder not in distant}, distant

    def _tell(self, paths: Iterable[str]) -> None:
        with self._lock:
            self._paths.update(paths)
            if len(self._paths) > _MAX_PATHS:
                self._paths, self._is_everything = set(), True
        self._on_change()

    def _tell_everything(self) -> None:
        with self._lock:
            self._is_everything = True
        self._on_change()

    def _complain(self, reason: str) -> None:
        if reason != self._complaint:
            self._complaint = reason
            _log.warning(
                "the folders of agents are looked at every few seconds, since watching them failed: %s", reason
            )


def distant_folders(folders: Iterable[str], mounts: Path = _MOUNTS) -> list[str]:
    """Return those on file systems that do not tell of all changes; none where the system does not list its mounts.

    Args:
        folders: Absolute paths.
        mounts: Written as proc_pid_mountinfo(5) says.
    """
    try:
        lines = mounts.read_text("utf-8", "surrogateescape").splitlines()
    except OSError:
        return []
    types: dict[str, str] = {}
    for line in lines:
        fields, _, more = line.partition(" - ")
        # The later one of two mounts on one place lies above.
        types[_ESCAPED.sub(lambda found: chr(int(found[1], 8)), fields.split(" ")[4])] = more.partition(" ")[0]
    return [folder for folder in folders if _type_of(Path(folder).resolve(), types).startswith(_DISTANT)]


def _type_of(folder: Path, types: dict[str, str]) -> str:
    return next((types[str(place)] for place in (folder, *folder.parents) if str(place) in types), "")
