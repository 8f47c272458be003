"""The scan of the PATH: which programs there are, without running any of them.

Each folder is read in a thread of its own, so that one on a drive that does not answer holds up nobody.
"""

from __future__ import annotations

import os
import queue
import re
import threading
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from agentmon.domain.programs import Program, ProgramKind
from agentmon.runners.discovery.packages import with_packages
from agentmon.runners.discovery.program_kinds import kind_of

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

PATIENCE_S: Final = 3.0
"""How long a folder may take until it is left out."""
_MOST_PER_FOLDER: Final = 20_000
_OF_WINDOWS: Final = re.compile(r"/mnt/[a-z](?:/|$)")


@dataclass(frozen=True, slots=True, kw_only=True)
class FolderScan:
    """What one folder has."""

    real_path: str
    programs: tuple[Program, ...] = ()
    problem: str = ""
    """A sentence; empty when all went well."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PathScan:
    """What all folders have."""

    programs: tuple[Program, ...]
    """In the order of the folders, by name within each."""
    folders: tuple[str, ...]
    """Those that were read."""
    unread: tuple[str, ...]
    """Those of which nothing is known now: they did not answer, or may not be read."""
    problems: tuple[str, ...]
    called: Mapping[str, str]
    """By folder that was read: the name of it, which another of its links may be, under which its programs stand."""


def path_folders(environ: Mapping[str, str]) -> tuple[Path, ...]:
    """Return the absolute folders of the PATH; what a relative one means differs from folder to folder.

    Those of Windows are left out in its subsystem for Linux: every file there counts as a program, and is read slowly.
    """
    names = environ.get("PATH", os.defpath).split(os.pathsep)
    if environ.get("WSL_DISTRO_NAME"):
        names = [name for name in names if not _OF_WINDOWS.match(name)]
    return tuple(dict.fromkeys(Path(name) for name in names if Path(name).is_absolute()))


def scan_path(
    folders: Sequence[Path],
    *,
    on_folder: Callable[[int, int], None] | None = None,
    is_left: Callable[[], bool] = lambda: False,
    read: Callable[[Path], FolderScan] | None = None,
    patience_s: float = PATIENCE_S,
    known: Collection[str] = (),
) -> PathScan:
    """Read the folders one after the other; of two that are the same, the place of the first counts.

    Args:
        folders: In the order in which a program is looked for.
        on_folder: Told how many folders are done, and how many there are.
        is_left: Whether nobody wants the answer any more; looked at before each folder.
        read: How one folder is read.
        patience_s: How long a folder may take.
        known: Names of folders that count before other names of the same ones, which a PATH in another order has.
    """
    read = read or read_folder
    done: dict[str, tuple[str, FolderScan]] = {}
    real_paths: dict[str, str] = {}
    unread: list[str] = []
    problems: list[str] = []
    for number, folder in enumerate(folders):
        if is_left():
            break
        if on_folder is not None:
            on_folder(number, len(folders))
        scan = _read_with_patience(read, folder, patience_s)
        if scan is None:
            unread.append(str(folder))
            problems.append(f"{folder} did not answer within {patience_s:g} s and is left out")
            continue
        if scan.problem:
            unread.append(str(folder))
            problems.append(scan.problem)
            continue
        real_paths[str(folder)] = scan.real_path
        earlier = done.get(scan.real_path)
        if earlier is None or (str(folder) in known and earlier[0] not in known):
            done[scan.real_path] = (str(folder), scan)
    if on_folder is not None:
        on_folder(len(folders), len(folders))
    return PathScan(
        programs=_with_shadows([program for _, scan in done.values() for program in scan.programs]),
        folders=tuple(done),
        unread=tuple(unread),
        problems=tuple(problems),
        called={folder: done[real_path][0] for folder, real_path in real_paths.items()},
    )


def read_folder(folder: Path) -> FolderScan:
    """Return the programs of a folder by name; a folder that is not there has none."""
    real_path = os.path.realpath(folder)
    try:
        with os.scandir(folder) as entries:
            names = sorted(entry.name for _, entry in zip(range(_MOST_PER_FOLDER), entries, strict=False))
    except (FileNotFoundError, NotADirectoryError):
        return FolderScan(real_path=real_path)
    except OSError as error:
        return FolderScan(real_path=real_path, problem=f"{folder} cannot be read: {error.strerror}")
    found = (_program(str(folder), name) for name in names)
    return FolderScan(real_path=real_path, programs=tuple(one for one in found if one is not None))


def describe_program(path: str) -> Program | None:
    """Return what stands at a whole path, with its package; None for what is no program."""
    folder, _, name = path.rpartition("/")
    found = _program(folder or "/", name)
    return None if found is None else with_packages([found])[0]


def _program(folder: str, name: str) -> Program | None:
    path = f"{folder.rstrip('/')}/{name}"
    if not name.isprintable() or not _is_text(path):
        return None
    try:
        status = os.stat(path)  # noqa: PTH116 - thousands of them, each a third dearer by pathlib
    except OSError:
        if not os.path.islink(path):  # noqa: PTH114 - as above
            return None
        leads_to = os.path.realpath(path)
        real_path = leads_to if _is_text(leads_to) else path
        return Program(path=path, name=name, real_path=real_path, kind=ProgramKind.BROKEN)
    found = kind_of(path, status)
    if found is None:
        return None
    kind, real_path = found
    real_path = real_path if _is_text(real_path) else path
    return Program(
        path=path,
        name=name,
        real_path=real_path,
        kind=kind,
        size_bytes=status.st_size,
        modified_ms=status.st_mtime_ns // 1_000_000,
    )


def _is_text(path: str) -> bool:
    """Return whether the path is UTF-8, as all is that can be stored and shown."""
    try:
        path.encode()
    except UnicodeEncodeError:
        return False
    return True


def _with_shadows(programs: Sequence[Program]) -> tuple[Program, ...]:
    """Return the programs, each with the one that comes before it, and with a path for what was only a name."""
    first: dict[str, str] = {}
    for program in programs:
        if program.kind is not ProgramKind.BROKEN:
            first.setdefault(program.name, program.path)
    found = []
    passed: set[str] = set()
    for program in programs:
        earlier = first.get(program.name) if program.name in passed else None
        if program.kind is not ProgramKind.BROKEN:
            passed.add(program.name)
        real_path = program.real_path if os.sep in program.real_path else first.get(program.real_path, "")
        found.append(replace(program, shadowed_by=earlier, real_path=real_path or program.real_path))
    return tuple(found)


def _read_with_patience(read: Callable[[Path], FolderScan], folder: Path, patience_s: float) -> FolderScan | None:
    """Return what the folder has; None when it does not answer, and its thread, which nobody can end, is left alone."""
    answers: queue.SimpleQueue[FolderScan | BaseException] = queue.SimpleQueue()

    def look() -> None:
        try:
            answers.put(read(folder))
        except BaseException as error:  # noqa: BLE001 - raised again where the answer is waited for
            answers.put(error)

    threading.Thread(target=look, name=f"reading {folder}", daemon=True).start()
    try:
        answer = answers.get(timeout=patience_s)
    except queue.Empty:
        return None
    if isinstance(answer, BaseException):
        raise answer
    return answer
