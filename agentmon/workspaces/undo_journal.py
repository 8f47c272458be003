"""The journal of an undo: all that it does, written before it begins, so that a kill in between is made good.

The contents of both sides are beside the journal, so that nothing else is needed to go on, or back.
"""

from __future__ import annotations

import json
import os
import shutil
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from agentmon.domain.errors import SnapshotError
from agentmon.domain.plain_text import plain_line
from agentmon.private_folders import make_private_folder
from agentmon.workspaces.contained import ContainedFolder, folders_around
from agentmon.workspaces.files import FileState, blob_id, private_file, replace_file, sync_folder

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path
    from typing import BinaryIO

_JOURNAL: Final = "journal.json"
_CONTENTS: Final = "contents"
_END: Final = "end.json"


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
        self._on_the_way: list[str] = []
        self._hash = "sha1"
        self._places: dict[str, tuple[int, int]] = {}
        self._before = ""
        self.note: Mapping[str, Any] = {}
        """What ``write`` was given."""

    def write(
        self,
        steps: Sequence[JournalStep],
        contents: Callable[[Sequence[str]], Iterator[bytes]],
        *,
        new_folders: Sequence[str],
        old_folders: Sequence[str],
        hash_name: str,
        before: str,
        note: Mapping[str, object],
    ) -> None:
        """Write it down; from the end of this on the undo counts as begun.

        Args:
            steps: What is done to files.
            contents: Gives the contents behind ids, in their order.
            new_folders: Removed when they are empty, in this order.
            old_folders: Made when they are not there.
            hash_name: Which hash made the ids.
            before: The id of the snapshot from which it begins.
            note: For whoever finds it after a kill.

        Raises:
            OSError: It could not be written; nothing has begun.
            SnapshotError: A content cannot be read; nothing has begun.
        """
        shutil.rmtree(self._folder, ignore_errors=True)
        make_private_folder(self._folder)
        refs = [state.ref for step in steps for state in (step.now, step.result) if state is not None]
        places: dict[str, tuple[int, int]] = {}
        end = 0
        with private_file(self._folder / _CONTENTS) as file:
            different = list(dict.fromkeys(refs))
            for ref, content in zip(different, contents(different), strict=True):
                file.write(content)
                places[ref] = end, len(content)
                end += len(content)
            file.flush()
            os.fsync(file.fileno())
        known = {
            "steps": steps,
            "places": places,
            "new_folders": [folder for folder in new_folders if self._files.is_folder(folder)],
            "old_folders": old_folders,
            # Those that placing files makes.
            "folders_on_the_way": sorted(
                {
                    folder
                    for step in steps
                    if step.result is not None
                    for folder in folders_around(step.path)
                    if not self._files.is_folder(folder)
                }
            ),
            "hash": hash_name,
            "before": before,
            "note": dict(note),
        }
        replace_file(self._folder / _JOURNAL, json.dumps(known).encode(), lasts=True)
        sync_folder(self._folder.parent)
        self._read()

    def read(self) -> bool:
        """Read one that a kill left, and return whether there is any; what was not begun is removed.

        Raises:
            SnapshotError: It is damaged.
        """
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

    def run(self, *, backwards: bool = False) -> list[str]:
        """Do what is not done yet, and return the paths that somebody changed since; they are left alone.

        Args:
            backwards: Take back what is done instead.

        Raises:
            OSError: A file cannot be written; what was done before stays done.
            SnapshotError: The journal is damaged.
        """
        steps, removed, made = self._steps, self._new_folders, self._old_folders
        if backwards:
            steps = [JournalStep(step.path, step.result, step.now) for step in steps]
            removed, made = sorted([*made, *self._on_the_way], key=lambda path: -path.count("/")), removed
        left = [step.path for step in steps if step.result is None and not self._remove(step)]
        for folder in removed:
            self._files.remove_folder(folder)
        with (self._folder / _CONTENTS).open("rb") as contents:
            for number, step in enumerate(steps):
                if step.result is not None and not self._place(number, step, step.result, contents):
                    left.append(step.path)
        for folder in made:
            self._files.make_folder(folder)
        self._files.make_lasting([*self.paths, *removed, *made])
        return left

    def end(self, after: str) -> None:
        """Note that it is done, and which snapshot was taken then."""
        replace_file(self._folder / _END, after.encode(), lasts=True)

    @property
    def ended(self) -> tuple[str, str] | None:
        """The ids of the snapshots before and after it, once it is done."""
        try:
            return self._before, (self._folder / _END).read_text()
        except FileNotFoundError:
            return None

    def remove(self) -> None:
        """Forget it, since it is done and known, or was never begun."""
        (self._folder / _JOURNAL).unlink(missing_ok=True)
        shutil.rmtree(self._folder)

    def _remove(self, step: JournalStep) -> bool:
        state = self._state(step.path)
        if state == step.now:
            self._files.remove(step.path)
            return True
        return state is None

    def _place(self, number: int, step: JournalStep, result: FileState, contents: BinaryIO) -> bool:
        self._files.remove_unfinished(step.path, mark=str(number))
        state = self._state(step.path)
        if state == result:
            return True
        if state != step.now or (self._files.is_folder(step.path) and not self._files.remove_empty_folders(step.path)):
            return False
        start, length = self._places[result.ref]
        contents.seek(start)
        content = contents.read(length)
        if blob_id(content, self._hash) != result.ref:
            raise self._damage()
        try:
            self._files.place(step.path, result.mode, content, mark=str(number))
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
        try:
            known = json.loads((self._folder / _JOURNAL).read_bytes())
            self._places, self._before, self.note = known["places"], known["before"], known["note"]
            self._steps = [JournalStep(path, _state(now), _state(result)) for path, now, result in known["steps"]]
            self._new_folders, self._old_folders = known["new_folders"], known["old_folders"]
            self._on_the_way = known["folders_on_the_way"]
            self._hash = known["hash"]
        except (ValueError, KeyError, TypeError) as error:
            raise self._damage() from error

    def _damage(self) -> SnapshotError:
        place = plain_line(str(self._folder))
        return SnapshotError(f"{place}, the journal of an undo, is damaged", hint="Move that folder away.")


def _state(values: Sequence[object] | None) -> FileState | None:
    return FileState(*values) if values is not None else None  # type: ignore[arg-type] # as they were written
