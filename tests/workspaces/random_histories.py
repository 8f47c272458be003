"""Random histories of a folder: what runs and a person do to its files, and a model of what an undo has to leave."""

from __future__ import annotations

import random
import shutil
import stat
from typing import TYPE_CHECKING

from tests.workspaces.folders import files_of, write

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.workspaces.folders import Files

_NAMES = ("a", "b", "c d", "-e", "ü", "f\ng", "\udcfe", "sub/a", "sub/b", "sub/deep/c", "other/d", "other/it's")
_NEXT_MODES = {0o644: 0o755, 0o755: 0o600, 0o600: 0o750, 0o750: 0o664, 0o664: 0o711}
_LINE_ENDS = (b"\n", b"\r\n")


class Hand:
    """Somebody who changes files at random."""

    def __init__(self, root: Path, seed: int) -> None:
        self._root = root
        self._random = random.Random(seed)

    def act(self, times: int) -> None:
        """Do so many random things to the folder."""
        for _ in range(times):
            self._random.choice(_ACTIONS)(self)

    def _create(self) -> None:
        self._write(self._place(), self._content())

    def _edit(self) -> None:
        path = self._existing()
        if path is None or path.is_symlink():
            return
        content = path.read_bytes()
        lines = content.splitlines(keepends=True) or [b""]
        at = self._random.randrange(len(lines))
        lines[at : at + self._random.choice((0, 1))] = [b"edit %d" % self._random.randrange(1_000), b"\n"]
        path.write_bytes(b"".join(lines))

    def _delete(self) -> None:
        path = self._existing()
        if path is not None:
            path.unlink()

    def _delete_folder(self) -> None:
        folder = self._root / self._random.choice(("sub", "other", "sub/deep"))
        if folder.is_dir() and not folder.is_symlink():
            shutil.rmtree(folder)

    def _rename(self) -> None:
        source, target = self._existing(), self._place()
        if source is not None and source != target:
            self._clear(target)
            if source.exists() or source.is_symlink():
                target.parent.mkdir(parents=True, exist_ok=True)
                source.rename(target)

    def _switch_mode(self) -> None:
        path = self._existing()
        if path is not None and not path.is_symlink():
            path.chmod(_NEXT_MODES.get(stat.S_IMODE(path.stat().st_mode), 0o644))

    def _link(self) -> None:
        path = self._place()
        self._clear(path)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.symlink_to(self._random.choice(("a", "sub", "..", "/etc", "nowhere\udcff", str(path.name))))

    def _write(self, path: Path, content: bytes) -> None:
        self._clear(path)
        write(path, content, executable=self._random.random() < 0.2)

    def _clear(self, path: Path) -> None:
        """Make room for a file, as a program would that wants it there."""
        for folder in path.relative_to(self._root).parents:
            around = self._root / folder
            if around != self._root and (around.is_symlink() or around.is_file()):
                around.unlink()
        if path.is_symlink() or path.is_file():
            path.unlink()
        elif path.is_dir():
            shutil.rmtree(path)

    def _content(self) -> bytes:
        kind = self._random.randrange(5)
        if kind == 0:
            return b""
        if kind == 1:
            return self._random.randbytes(self._random.randrange(1, 2_000))
        end = self._random.choice(_LINE_ENDS)
        lines = [b"line %d" % self._random.randrange(50) for _ in range(self._random.randrange(1, 30))]
        return end.join(lines) + self._random.choice((b"", end))

    def _place(self) -> Path:
        name = self._random.choice(_NAMES)
        # A file's name for a folder now and then.
        return self._root / (f"{name}/inner" if self._random.random() < 0.1 else name)

    def _existing(self) -> Path | None:
        files = sorted(files_of(self._root))
        return self._root / self._random.choice(files) if files else None


_ACTIONS: tuple[Callable[[Hand], None], ...] = (
    Hand._create,
    Hand._create,
    Hand._edit,
    Hand._edit,
    Hand._delete,
    Hand._delete_folder,
    Hand._rename,
    Hand._switch_mode,
    Hand._link,
)


def untouched(before: Files, after: Files, now: Files) -> Files:
    """Return what is there when that between ``before`` and ``after`` is taken back and nobody touched it since."""
    result = dict(now)
    for path in before.keys() | after.keys():
        if before.get(path) != after.get(path) and now.get(path) == after.get(path):
            result.pop(path, None)
            if path in before:
                result[path] = before[path]
    return result
