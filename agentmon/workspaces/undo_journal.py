"""The journal of an undo: all that it does, written before it begins, so that a kill in between is made good.

Contents are beside the journal, so that nothing else is needed to go on.
"""

from __future__ import annotations

import json
import os
import shutil
from typing import TYPE_CHECKING, Final, NamedTuple

from agentmon.workspaces.contained import ContainedFolder
from agentmon.workspaces.files import FileState, private_file, private_folder, replace_file, sync_folder

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

_JOURNAL: Final = "journal.json"


class JournalStep(NamedTuple):
    """What is done to one path."""

    path: str
    now: FileState | None
    result: FileState | None


class Journal:
    """An undo that is written down, and may be done in part.

    Args:
        folder: Where it is; nobody else may use it.
        root: In which folder files are placed and removed.
    """

    def __init__(self, folder: Path, root: Path) -> None:
        self._folder = folder
        self._files = ContainedFolder(root)
        self._steps: list[JournalStep] = []
        self._new_folders: list[str] = []
        self._old_folders: list[str] = []
        self._hash = "sha1"

    def write(
        self,
        steps: Sequence[JournalStep],
        contents: Iterable[bytes],
        *,
        new_folders: Sequence[str],
        old_folders: Sequence[str],
        hash_name: str,
    ) -> None:
        """Write it down; from the end of this on the undo counts as begun.

        Args:
            steps: What is done to files.
            contents: Of each step that has a result, in their order.
            new_folders: Removed when they are empty, in this order.
            old_folders: Made when they are not there.
            hash_name: Which hash made the ids.
        """
        shutil.rmtree(self._folder, ignore_errors=True)
        private_folder(self._folder)
        remaining = iter(contents)
        for number, step in enumerate(steps):
            if step.result is not None:
                with private_file(self._folder / str(number)) as file:
                    file.write(next(remaining))
                    file.flush()
                    os.fsync(file.fileno())
        known = {"steps": steps, "new_folders": new_folders, "old_folders": old_folders, "hash": hash_name}
        replace_file(self._folder / _JOURNAL, json.dumps(known).encode(), lasts=True)
        sync_folder(self._folder.parent)
        self._read()

    def read(self) -> bool:
        """Read one that a kill left, and return whether there is any; what was not begun is removed."""
        if not (self._folder / _JOURNAL).exists():
            shutil.rmtree(self._folder, ignore_errors=True)
            return False
        self._read()
        return True

    def differing(self, steps: Iterable[JournalStep], hash_name: str) -> list[str]:
        """Return the paths that are no longer what they were when the steps were planned."""
        self._hash = hash_name
        return [step.path for step in steps if self._state(step.path) != step.now]

    @property
    def paths(self) -> tuple[str, ...]:
        """What it changes."""
        return tuple(step.path for step in self._steps)

    def run(self) -> list[str]:
        """Do what is not done yet, and return the paths that somebody changed since; they are left alone.

        Raises:
            OSError: A file cannot be written; what was done before stays done.
        """
        left = [step.path for step in self._steps if step.result is None and not self._remove(step)]
        for folder in self._new_folders:
            self._files.remove_folder(folder)
        for number, step in enumerate(self._steps):
            if step.result is not None and not self._place(number, step, step.result):
                left.append(step.path)
        for folder in self._old_folders:
            self._files.make_folder(folder)
        return left

    def remove(self) -> None:
        """Forget it, since it is done."""
        (self._folder / _JOURNAL).unlink()
        shutil.rmtree(self._folder)

    def reversed_steps(self) -> list[JournalStep]:
        """Return what takes back the steps that are done, in the order that undoes them."""
        done = [step for step in self._steps if self._state(step.path) == step.result]
        return [JournalStep(step.path, step.result, step.now) for step in done]

    def _remove(self, step: JournalStep) -> bool:
        state = self._state(step.path)
        if state == step.now:
            self._files.remove(step.path)
            return True
        return state is None

    def _place(self, number: int, step: JournalStep, result: FileState) -> bool:
        self._files.remove_unfinished(step.path, mark=str(number))
        state = self._state(step.path)
        if state == result:
            return True
        if state != step.now or (self._files.is_folder(step.path) and not self._files.remove_empty_folders(step.path)):
            return False
        try:
            self._files.place(step.path, result.mode, (self._folder / str(number)).read_bytes(), mark=str(number))
        except NotADirectoryError:
            return False
        return True

    def _state(self, path: str) -> FileState | None:
        try:
            return self._files.state(path, self._hash)
        except IsADirectoryError:
            return None
        except OSError:
            # Neither file nor link, or not readable: never what was planned.
            return FileState(0, "")

    def _read(self) -> None:
        known = json.loads((self._folder / _JOURNAL).read_bytes())
        self._steps = [JournalStep(path, _state(now), _state(result)) for path, now, result in known["steps"]]
        self._new_folders, self._old_folders = known["new_folders"], known["old_folders"]
        self._hash = known["hash"]


def _state(values: Sequence[object] | None) -> FileState | None:
    return FileState(*values) if values is not None else None  # type: ignore[arg-type] # as they were written
