"""Where a program lies, and the folders beside it and of the system in which others leave files about it."""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_SYSTEM_PREFIXES: Final = ("/usr/local", "/usr", "/opt/homebrew", "/home/linuxbrew/.linuxbrew")


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgramPlace:
    """One program, and where to look for what is written of it."""

    name: str
    """As its file is called; what is written of it has this name."""
    path: str
    """Absolute where it was found, else as it was asked for."""
    prefixes: tuple[Path, ...]
    """The folders above its ``bin``, its own first, then those of the system."""
    data_dirs: tuple[Path, ...]
    """The folders whose ``bash-completion``, ``zsh``, ``fish`` and ``man`` are looked into."""
    home: Path
    config_dir: Path
    search_path: tuple[Path, ...]
    man_path: str = ""
    """The person's ``MANPATH``."""


def find_place(binary: str, environ: Mapping[str, str]) -> ProgramPlace:
    """Return where a program lies; links are followed, since what is written of it lies beside the real file."""
    found = binary if os.sep in binary else shutil.which(binary, path=environ.get("PATH", os.defpath))
    path = Path(found or binary)
    home = Path(environ.get("HOME") or "/")
    own = [path.parent.parent, Path(os.path.realpath(path)).parent.parent] if found else []
    prefixes = _present([*own, *map(Path, _SYSTEM_PREFIXES)])
    own_data = Path(environ.get("XDG_DATA_HOME") or home / ".local/share")
    shared = (Path(part) for part in environ.get("XDG_DATA_DIRS", "").split(os.pathsep) if part)
    return ProgramPlace(
        name=path.name,
        path=str(path),
        prefixes=prefixes,
        data_dirs=_present([own_data, *(prefix / "share" for prefix in prefixes), *shared]),
        home=home,
        config_dir=Path(environ.get("XDG_CONFIG_HOME") or home / ".config"),
        search_path=tuple(Path(part) for part in environ.get("PATH", os.defpath).split(os.pathsep) if part),
        man_path=environ.get("MANPATH", ""),
    )


def _present(folders: Iterable[Path]) -> tuple[Path, ...]:
    return tuple(dict.fromkeys(folder for folder in folders if folder.is_absolute() and folder.is_dir()))
