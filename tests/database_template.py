"""A new database as a copy of one that was made before, which takes a tenth of the time that its statements take."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

from agentmon.store import upgrade
from agentmon.store.private_files import make_private_file

if TYPE_CHECKING:
    from pathlib import Path

    from agentmon.store.upgrade import Migrations

make_whole = upgrade._make


class DatabaseTemplate:
    """Makes the first database of this process as agentmon does, and every other one like it."""

    def __init__(self, folder: Path) -> None:
        self._file = folder / "template.db"

    def make(self, path: Path, migrations: Migrations) -> tuple[str, ...]:
        """Take the place of ``upgrade._make``; where something lies beside the database, the original has its say."""
        beside = {file.name for file in path.parent.iterdir() if path.name in file.name} - {f"{path.name}.lock"}
        if beside or migrations != upgrade.Migrations():
            return make_whole(path, migrations)
        if not self._file.exists():
            make_whole(self._file, migrations)
        new = path.with_name(f".{path.name}.new")
        make_private_file(new)
        shutil.copyfile(self._file, new)
        new.rename(path)
        return ()
