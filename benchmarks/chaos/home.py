"""The home that chaos uses up: on a small file system where one can be made, with a tmux that can vanish."""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from agentmon.paths import find_paths
from agentmon.settings import WorkerSettings
from benchmarks.chaos.evidence import Place
from benchmarks.chaos.merging import make_trunk
from benchmarks.chaos.repository import make_repository
from benchmarks.chaos.reviewing import BY_HAND
from benchmarks.chaos.tasks import RUNNING_LIMIT

if TYPE_CHECKING:
    from collections.abc import Iterator

    from agentmon.paths import Paths

_PROJECT_ROOT = Path(__file__).parent.parent.parent


class SmallDisk:
    """A file system in memory that can be filled to its last byte and emptied again."""

    def __init__(self, mount_point: Path) -> None:
        self._mount_point = mount_point
        self._filler = mount_point / "filler"

    @classmethod
    def mount(cls, mount_point: Path, size_mb: int) -> SmallDisk | None:
        """Return the file system, or None where it may not be mounted."""
        if os.geteuid() != 0 or sys.platform != "linux":
            return None
        command = ["mount", "-t", "tmpfs", "-o", f"size={size_mb}m,mode=0700", "agentmon-chaos", str(mount_point)]
        try:
            mounted = subprocess.run(command, check=False, capture_output=True).returncode == 0
        except OSError:
            return None
        return cls(mount_point) if mounted else None

    def fill(self) -> None:
        """Take all the space there is."""
        descriptor = os.open(self._filler, os.O_WRONLY | os.O_CREAT, 0o600)
        try:
            step_bytes = 64 * 1024 * 1024
            size_bytes = 0
            while step_bytes >= 4096:
                try:
                    os.posix_fallocate(descriptor, size_bytes, step_bytes)
                    size_bytes += step_bytes
                except OSError:
                    step_bytes //= 2
        finally:
            os.close(descriptor)

    def empty(self) -> None:
        """Give the space back."""
        self._filler.unlink(missing_ok=True)

    def unmount(self) -> None:
        """Take it away; what still uses it keeps it alive until it ends."""
        subprocess.run(["umount", "--lazy", str(self._mount_point)], check=False, capture_output=True)


class VanishingTmux:
    """The one tmux on the PATH, which can be moved away and back."""

    def __init__(self, folder: Path) -> None:
        self._link = folder / "tmux"
        self._hidden = folder / ".tmux-moved-away"

    def vanish(self) -> None:
        """Take it off the PATH."""
        self._link.rename(self._hidden)

    def come_back(self) -> None:
        """Put it where it was; harmless when it is there."""
        with contextlib.suppress(FileNotFoundError):
            self._hidden.rename(self._link)


@dataclass(frozen=True, slots=True, kw_only=True)
class ChaosHome:
    """Where everything is."""

    folder: Path
    place: Place
    project: Path
    disk: SmallDisk | None
    tmux: VanishingTmux
    secret: str
    kept: list[Path]
    """Gets the folder that is to be looked at afterwards; empty means that nothing is kept."""

    @property
    def paths(self) -> Paths:
        """The paths that agentmon uses there."""
        return find_paths()

    def keep(self) -> Path:
        """Copy the home off its file system and let everything stay; return where it is."""
        copy = self.folder / "home-kept"
        shutil.copytree(
            self.place.home,
            copy,
            ignore=lambda folder, names: [name for name in names if not _is_plain(Path(folder) / name)],
            dirs_exist_ok=True,
        )
        self.kept.append(self.folder)
        return copy


def _is_plain(path: Path) -> bool:
    return path.is_file() or path.is_dir()


@contextmanager
def chaos_home(*, size_mb: int) -> Iterator[ChaosHome]:
    """Make the home, point the environment of this process at it, and take it away at the end unless it is kept.

    The caller ends the processes first.
    """
    folder = Path(tempfile.mkdtemp(prefix="amc-", dir="/tmp"))
    home, project, ledgers = folder / "home", folder / "project", folder / "ledgers"
    for made in (home, project, ledgers):
        made.mkdir(mode=0o700)
    bin_folder = folder / "bin"
    real_tmux = shutil.which("tmux")
    if real_tmux is None:
        raise SystemExit("chaos needs tmux on the PATH")
    _link_programs(bin_folder, Path(real_tmux))
    secret = f"SENTINEL-{secrets.token_hex(12)}"
    changed = {
        "AGENTMON_HOME": str(home),
        "AGENTMON_COMMAND_SERVER": "0",
        "API_KEY": secret,
        BY_HAND: "0",
        "HOME": str(project),
        "PATH": str(bin_folder),
        # So that the worker, whose folder is /, runs the code beside this module.
        "PYTHONPATH": str(_PROJECT_ROOT),
        "TERM": "xterm-256color",
    }
    before = dict(os.environ)
    disk = SmallDisk.mount(home, size_mb)
    _write_settings(home)
    place = Place(home=home, ledgers=ledgers, samples=folder / "samples.jsonl")
    make_repository(place)
    make_trunk(place)
    chaos = ChaosHome(
        folder=folder,
        place=place,
        project=project,
        disk=disk,
        tmux=VanishingTmux(bin_folder),
        secret=secret,
        kept=[],
    )
    for name in [name for name in os.environ if name.startswith(("AGENTMON_", "TMUX"))]:
        del os.environ[name]
    os.environ.update(changed)
    try:
        yield chaos
    finally:
        os.environ.clear()
        os.environ.update(before)
        if disk is not None:
            disk.unmount()
        if not chaos.kept:
            shutil.rmtree(folder, ignore_errors=True)


def _write_settings(home: Path) -> None:
    wanted = {
        "max_running": RUNNING_LIMIT,
        "grace_s": 1,
        # Else the agents whose tasks fail on purpose would be parked.
        "park_after_failures": 0,
    }
    lines = [f"{name} = {value}" for name, value in wanted.items() if name in WorkerSettings.model_fields]
    settings_file = home / "config.toml"
    settings_file.write_text("\n".join(["[worker]", *lines, ""]), encoding="utf-8")
    settings_file.chmod(0o600)


def _link_programs(bin_folder: Path, real_tmux: Path) -> None:
    """Make one folder with links to all that the PATH has, so that tmux alone can be taken away."""
    bin_folder.mkdir(mode=0o700)
    for folder in os.get_exec_path():
        with contextlib.suppress(OSError):
            for program in os.scandir(folder):
                link = bin_folder / program.name
                if program.name != "tmux" and not link.is_symlink():
                    link.symlink_to(program.path)
    (bin_folder / "tmux").symlink_to(real_tmux)
