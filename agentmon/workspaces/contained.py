"""Files of a folder, reached from its top one name at a time: no link on the way is followed, whoever puts it there."""

from __future__ import annotations

import contextlib
import hashlib
import os
import stat
from pathlib import Path
from typing import TYPE_CHECKING, Final

from agentmon.workspaces.files import LINK, FileState, blob_id, kept_mode

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_NEW: Final = ".agentmon-undo-"
_PIECE: Final = 1 << 20


class ContainedFolder:
    """A folder whose files are read, placed and removed by paths that never lead out of it."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def state(self, path: str, hash_name: str) -> FileState | None:
        """Return what is at a path; None when nothing is there, or only behind a link.

        Raises:
            OSError: It cannot be read, or is neither file nor link: ``IsADirectoryError`` for a folder.
        """
        try:
            with self._parent(path) as (parent, name):
                found = os.stat(name, dir_fd=parent, follow_symlinks=False)
                if stat.S_ISLNK(found.st_mode):
                    content = os.fsencode(os.readlink(name, dir_fd=parent))
                    return FileState(LINK, blob_id(content, hash_name))
                if stat.S_ISDIR(found.st_mode):
                    raise IsADirectoryError(path)
                if not stat.S_ISREG(found.st_mode):
                    raise OSError(f"{path} is no file")
                # It may have become something else since, that would be waited for.
                flags = os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC
                descriptor = os.open(name, flags, dir_fd=parent)
                with open(descriptor, "rb") as file:  # noqa: PTH123 - from a descriptor
                    digest = hashlib.new(hash_name, b"blob %d\0" % found.st_size)
                    while piece := file.read(_PIECE):
                        digest.update(piece)
                return FileState(kept_mode(found.st_mode), digest.hexdigest())
        except (FileNotFoundError, NotADirectoryError):
            return None

    def is_folder(self, path: str) -> bool:
        """Return whether a folder is at a path, and not a link to one."""
        try:
            with self._parent(path) as (parent, name):
                return stat.S_ISDIR(os.stat(name, dir_fd=parent, follow_symlinks=False).st_mode)
        except (FileNotFoundError, NotADirectoryError):
            return False

    def is_there(self, path: str) -> bool:
        """Return whether anything but a folder is at a path: a file, a link, or something special."""
        try:
            with self._parent(path) as (parent, name):
                return not stat.S_ISDIR(os.stat(name, dir_fd=parent, follow_symlinks=False).st_mode)
        except (FileNotFoundError, NotADirectoryError):
            return False

    def inner_paths(self, path: str) -> Iterator[str]:
        """Yield the path of everything but folders below a folder."""
        for folder, inner, files in os.walk(self._root / path):
            links = [name for name in inner if (Path(folder) / name).is_symlink()]
            for name in (*files, *links):
                yield str((Path(folder) / name).relative_to(self._root))

    def in_the_way(self, path: str, fine: Collection[str]) -> Iterator[str]:
        """Yield what keeps a file from being placed at a path: there, on the way to it, or in a folder of its name.

        Args:
            path: Where a file is to be placed.
            fine: Paths that are no obstacle.
        """
        around = path
        while "/" in around:
            around = around.rpartition("/")[0]
            if around not in fine and self.is_there(around):
                yield around
        if path not in fine and self.is_there(path):
            yield path
        if self.is_folder(path):
            yield from (inner for inner in self.inner_paths(path) if inner not in fine)

    def remove(self, path: str) -> None:
        """Remove a file or link; one that is not there is fine."""
        with contextlib.suppress(FileNotFoundError, NotADirectoryError), self._parent(path) as (parent, name):
            try:
                os.unlink(name, dir_fd=parent)
            except OSError as error:
                raise OSError(error.errno, error.strerror, path) from error

    def remove_folder(self, path: str) -> bool:
        """Remove a folder that is empty, and return whether it is gone."""
        try:
            with self._parent(path) as (parent, name):
                os.rmdir(name, dir_fd=parent)
        except FileNotFoundError:
            return True
        except OSError:
            return False
        return True

    def remove_empty_folders(self, path: str) -> bool:
        """Remove a folder that has nothing but folders in it, and return whether it is gone."""
        for folder, _, _ in os.walk(self._root / path, topdown=False):
            self.remove_folder(str(Path(folder).relative_to(self._root)))
        return not self.is_folder(path)

    def make_folder(self, path: str) -> None:
        """Make a folder and those around it, as far as they are not there and nothing is in their place."""
        with contextlib.suppress(FileExistsError, NotADirectoryError), self._parent(path, makes=True) as (parent, name):
            os.mkdir(name, dir_fd=parent)

    def place(self, path: str, mode: int, content: bytes, *, mark: str) -> None:
        """Put a file or link at a path, whole or not at all.

        Args:
            path: Where; folders on the way are made.
            mode: Its type and permission bits.
            content: Of the file; of a link where it points to.
            mark: Names the file that is written beside, for ``remove_unfinished``.

        Raises:
            OSError: It cannot be written, or something that is no folder is on the way.
        """
        with self._parent(path, makes=True) as (parent, name):
            new = f"{_NEW}{mark}"
            with contextlib.suppress(FileNotFoundError):
                os.unlink(new, dir_fd=parent)
            try:
                if mode == LINK:
                    os.symlink(os.fsdecode(content), new, dir_fd=parent)
                else:
                    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
                    with open(os.open(new, flags, 0o600, dir_fd=parent), "wb") as file:  # noqa: PTH123 - a descriptor
                        file.write(content)
                        os.fchmod(file.fileno(), stat.S_IMODE(mode))
                        file.flush()
                        os.fsync(file.fileno())
                os.rename(new, name, src_dir_fd=parent, dst_dir_fd=parent)
            except OSError as error:
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(new, dir_fd=parent)
                raise OSError(error.errno, error.strerror, path) from error

    def make_lasting(self, paths: Iterable[str]) -> None:
        """Make what was placed and removed at some paths survive a loss of power."""
        for folder in {path.rpartition("/")[0] for path in paths}:
            inner = f"{folder}/{_NEW}".removeprefix("/")
            with contextlib.suppress(FileNotFoundError, NotADirectoryError), self._parent(inner) as (parent, _):
                os.fsync(parent)

    def remove_unfinished(self, path: str, *, mark: str) -> None:
        """Remove what a killed ``place`` left beside a path."""
        with contextlib.suppress(FileNotFoundError, NotADirectoryError), self._parent(path) as (parent, _):
            os.unlink(f"{_NEW}{mark}", dir_fd=parent)

    @contextlib.contextmanager
    def _parent(self, path: str, *, makes: bool = False) -> Iterator[tuple[int, str]]:
        """Open the folder of a path; a link on the way raises ``NotADirectoryError``."""
        *folders, name = path.split("/")
        if not name or any(part.lower() in {"", ".", "..", ".git"} for part in (*folders, name)):
            raise PermissionError(f"{path} is no path within a folder")
        current = os.open(self._root, _FOLDER)
        try:
            for folder in folders:
                if makes:
                    with contextlib.suppress(FileExistsError):
                        os.mkdir(folder, dir_fd=current)
                try:
                    inner = os.open(folder, _FOLDER, dir_fd=current)
                except OSError as error:
                    # A link is told as one of too many levels.
                    if isinstance(error, FileNotFoundError | PermissionError):
                        raise
                    raise NotADirectoryError(path) from error
                os.close(current)
                current = inner
            yield current, name
        finally:
            os.close(current)


def folders_around(path: str) -> Iterator[str]:
    """Yield the folders around a path, inner ones first."""
    while "/" in path:
        path = path.rpartition("/")[0]
        yield path
