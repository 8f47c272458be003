"""Folders that a person types: found and completed in a thread of its own with a deadline.

A folder of a network that is gone holds up whoever looks at it, for minutes; such a thread is left behind, and nothing
waits for it at the end.
"""

from __future__ import annotations

import asyncio
import os
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeVar

from agentmon.domain.errors import UsageError
from agentmon.paths import expanded

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Never

_FoundT = TypeVar("_FoundT")

LOOK_MAX_S: Final = 2.0
"""How long a folder that is saved is looked for."""
COMPLETE_MAX_S: Final = 0.5
"""How long folders to complete with are looked for."""
_MOST_ENTRIES: Final = 20_000
"""Entries of a folder that are looked at, so that a huge one costs no more than a moment."""


def resolved_folder(text: str, root: str) -> Path:
    """Return the path that is meant, as seen from the root; ``~`` and ``~name`` are homes. Nothing is looked at."""
    folder = expanded(text)
    return folder if folder.is_absolute() else Path(root, folder)


async def existing_folder(text: str, root: str, *, deadline_s: float = LOOK_MAX_S) -> str:
    """Return the whole path of the folder that is meant.

    Raises:
        UsageError: There is none, it is a file, or it does not answer in time.
    """

    def look() -> Path:
        folder = resolved_folder(text, root)
        try:
            if folder.is_dir():
                return folder
            is_there = folder.exists()
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            raise UsageError(f"this folder cannot be used: {folder} ({reason})") from error
        _refuse(f"this is a file, not a folder: {folder}" if is_there else f"this folder does not exist: {folder}")

    try:
        return str(await in_own_thread(look, deadline_s))
    except TimeoutError as error:
        raise UsageError(f"the folder does not answer within {deadline_s:g} s: {text}") from error


class FolderCompleter:
    """Completes what is typed of a folder, as a shell does."""

    def __init__(self, root: str) -> None:
        """Complete as seen from this folder."""
        self._root = root
        self._stuck: set[str] = set()

    async def complete(self, typed: str, *, limit: int = 50, deadline_s: float = COMPLETE_MAX_S) -> tuple[str, ...]:
        """Return the folders that begin as what is typed does, in the order of the alphabet, each ended by a slash.

        What is typed stays as it is in front of each. Hidden folders are told only for a dot, what cannot be read is
        passed over. A folder that did not answer in time is not asked again until it has.
        """
        if typed == "~":
            return ("~/",)
        head, slash, start = typed.rpartition("/")
        parent = f"{head}{slash}"
        if parent in self._stuck:
            return ()

        def look() -> tuple[str, ...]:
            try:
                names = _folder_names(resolved_folder(parent or ".", self._root), start)
            except (OSError, ValueError):
                names = []
            self._stuck.discard(parent)
            return tuple(f"{parent}{name}/" for name in sorted(names, key=str.casefold)[:limit])

        self._stuck.add(parent)
        try:
            return await in_own_thread(look, deadline_s)
        except TimeoutError:
            return ()


def common_start(folders: tuple[str, ...]) -> str:
    """Return the letters with which all of them begin."""
    return os.path.commonprefix(folders)  # noqa: RUF071 - letters are meant, as a shell completes


def _folder_names(folder: Path, start: str) -> list[str]:
    names: list[str] = []
    with os.scandir(folder) as entries:
        for count, entry in enumerate(entries):
            if count >= _MOST_ENTRIES:
                break
            name = entry.name
            if not name.startswith(start) or (name.startswith(".") and not start.startswith(".")):
                continue
            try:
                name.encode()
                if entry.is_dir() and os.access(entry.path, os.R_OK | os.X_OK):
                    names.append(name)
            except (OSError, UnicodeEncodeError):
                continue
    return names


def _refuse(message: str) -> Never:
    raise UsageError(message, hint="leave it empty for the root of the workspace")


async def in_own_thread(look: Callable[[], _FoundT], deadline_s: float) -> _FoundT:
    """Return what the function returns.

    Raises:
        TimeoutError: It took too long; it goes on, and what it finds is lost.
    """
    loop = asyncio.get_running_loop()
    found: asyncio.Future[_FoundT] = loop.create_future()

    def settle(result: _FoundT | None, error: Exception | None) -> None:
        if found.done():
            return
        if error is not None:
            found.set_exception(error)
        else:
            found.set_result(result)  # type: ignore[arg-type] # without an error it is what the function returned

    def work() -> None:
        result, failure = None, None
        try:
            result = look()
        except Exception as error:  # noqa: BLE001 - raised again where it is awaited
            failure = error
        try:
            loop.call_soon_threadsafe(settle, result, failure)
        except RuntimeError:
            # The loop is closed: nobody wants to know any more.
            return

    threading.Thread(target=work, name="folders", daemon=True).start()
    async with asyncio.timeout(deadline_s):
        return await found
