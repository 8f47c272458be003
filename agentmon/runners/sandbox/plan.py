"""What the sandbox of one run consists of: what it hides, keeps and lets be written, as ``kernel.enter`` takes it."""

from __future__ import annotations

import contextlib
import json
import os
import shlex
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Final

from agentmon.domain.errors import RunnerError
from agentmon.domain.sandboxes import Sandbox
from agentmon.paths import LOCATION_NAMES, find_paths, find_workspace_root
from agentmon.private_folders import make_private_folder
from agentmon.runners.session_marks import is_of_session

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from agentmon.paths import Paths
    from agentmon.settings import SandboxSettings

_MAIN: Final = Path(__file__).with_name("__main__.py")
CALLS_SOCKET: Final = "calls.sock"
"""Where a run finds agentmon's command line, in the run folder, and where its host listens, in that of the run."""
CALLS_VARIABLE: Final = "AGENTMON_CALLS"
_BESIDE_DATABASE: Final = ("", "-wal", "-shm", "-journal", ".lock")
_COPIED: Final = ("/etc/ssh/ssh_config.d",)
"""ssh refuses files of others there, and in a sandbox those of root are of others."""
_DOORS: Final = ("/run/docker.sock", "/var/run/docker.sock", "/run/podman/podman.sock", "/run/containerd")
_SYSTEM: Final = ("/dev", "/proc", "/tmp", "/var/tmp")
_OWN_FOLDERS: Final[Mapping[str, tuple[str, ...]]] = {
    "aider": ("~/.aider",),
    "amp": ("~/.config/amp", "~/.local/share/amp"),
    "claude": ("~/.claude", "~/.local/share/claude", "~/.local/state/claude"),
    "cline": ("~/.cline",),
    "codex": ("~/.codex",),
    "copilot": ("~/.copilot",),
    "crush": ("~/.local/share/crush", "~/.config/crush"),
    "cursor-agent": ("~/.cursor", "~/.config/cursor", "~/.local/share/cursor-agent"),
    "droid": ("~/.factory",),
    "gemini": ("~/.gemini",),
    "goose": ("~/.config/goose", "~/.local/share/goose", "~/.local/state/goose"),
    "kimi": ("~/.kimi",),
    "opencode": ("~/.cache/opencode", "~/.config/opencode", "~/.local/share/opencode", "~/.local/state/opencode"),
    "qwen": ("~/.qwen",),
}
"""Where AI agents keep logins and conversations, by the name of the program."""
_OWN_FILES: Final[Mapping[str, tuple[str, ...]]] = {"claude": ("~/.claude.json",)}
"""Beside these folders; one that is missing cannot be made."""
_CACHES: Final = "~/.cache"
_OWN_VARIABLES: Final = ("CLAUDE_CONFIG_DIR", "CODEX_HOME", "OPENCODE_CONFIG_DIR")
_OF_CALLS: Final = frozenset({"HOME", "LANG", "LOGNAME", "PATH", "USER"})
_OF_CALLS_FROM: Final = ("AGENTMON_", "XDG_")
_UNKNOWN_HOME: Final = "/"


def plan_sandbox(
    sandbox: Sandbox,
    *,
    paths: Paths,
    environ: Mapping[str, str],
    working_dir: str,
    program: str,
    settings: SandboxSettings,
    folder: Path | None,
) -> dict[str, object] | None:
    """Return the sandbox of a run; None for none.

    What it hides is made where it is missing, so that a run cannot make it.

    Args:
        sandbox: How high it is.
        paths: Of agentmon.
        environ: The environment of agentmon; that of a card is its writer's.
        working_dir: Where it works; absolute.
        program: What it is: a path, or a name.
        settings: What ``project`` lets it do besides.
        folder: That of the run, in which its host listens for its calls; None where no host does.

    Raises:
        RunnerError: It works in a folder of agentmon itself.
        OSError: A folder of agentmon cannot be made.
    """
    if sandbox is Sandbox.OFF:
        return None
    home = environ.get("HOME") or _UNKNOWN_HOME
    own = [paths.data_dir, paths.config_dir, paths.run_dir, paths.logs_dir]
    for place in own:
        make_private_folder(place)
    usual = find_paths({})
    hidden = _real([*own, usual.data_dir, usual.config_dir, usual.run_dir, usual.logs_dir])
    kept = _real([paths.worktrees_dir, paths.questions_dir])
    work_place = os.path.realpath(working_dir)
    if _is_below(work_place, hidden) and not _is_below(work_place, kept):
        # A home of agentmon may be a folder in which projects are, too.
        root = os.path.realpath(find_workspace_root(Path(work_place)))
        kept.append(work_place if root in hidden else root)
    own_places = _real([*_own_places(paths), *_own_places(usual)])
    if _is_below(work_place, own_places) or work_place in hidden:
        raise RunnerError(
            f"it works in a folder of agentmon itself, in the sandbox {sandbox}: {working_dir}",
            hint="`agentmon run NUMBER --sandbox off`, if you mean that",
        )
    tmux = Path(environ.get("TMUX_TMPDIR") or "/tmp") / f"tmux-{os.getuid()}"
    with contextlib.suppress(OSError):
        make_private_folder(tmux)
    hidden += _real(_database_places(paths.database_path, home))
    layout: dict[str, object] = {
        "hidden": hidden,
        "emptied": _real([tmux]),
        "copied": [] if os.getuid() == 0 else _real(_COPIED),
        "kept": kept,
        "writable": None,
        "socket": None if folder is None else [os.path.realpath(folder / CALLS_SOCKET), calls_socket(paths)],
        "has_network": True,
    }
    if sandbox is Sandbox.PROJECT:
        desktop = environ.get("XDG_RUNTIME_DIR", "")
        doors = [*_DOORS, *([desktop] if desktop.startswith("/") else [])]
        layout["hidden"] = hidden + _real([*doors, *_told(settings.hidden, home)])
        told = _real(_writable(work_place, program, environ, home, settings))
        # A place that is told to be writable uncovers nothing.
        layout["writable"] = [one for one in told if _is_below(one, kept) or not _is_below(one, hidden)]
        layout["has_network"] = settings.network
    return layout


def _own_places(paths: Paths) -> tuple[Path, ...]:
    """Return the folders that nobody works in."""
    of_config = (paths.themes_dir, paths.templates_dir, paths.presets_dir)
    of_data = (paths.executions_dir, paths.backups_dir, paths.merges_dir, paths.snapshots_dir, paths.drafts_dir)
    return (*of_config, *of_data, paths.run_dir, paths.logs_dir)


def calls_socket(paths: Paths) -> str:
    """Return where a run in a sandbox finds agentmon's command line."""
    return os.path.join(os.path.realpath(paths.run_dir), CALLS_SOCKET)  # noqa: PTH118 - one text, as all of these


def calls_environment(paths: Paths, environ: Mapping[str, str]) -> dict[str, str]:
    """Return what a command needs that is called from within a sandbox, to be about the same board.

    Args:
        paths: Of agentmon.
        environ: That of the worker.
    """
    told = {name: text for name, text in environ.items() if name in _OF_CALLS or name.startswith(_OF_CALLS_FROM)}
    kept = {name: text for name, text in told.items() if not is_of_session(name) and name not in LOCATION_NAMES}
    return kept | paths.variables


def in_sandbox(layout: Mapping[str, object] | None, command: tuple[str, ...]) -> tuple[str, ...]:
    """Return the command that runs another one in a sandbox; itself when there is none."""
    return command if layout is None else (sys.executable, "-I", "-S", str(_MAIN), json.dumps(layout), *command)


def _writable(
    place: str, program: str, environ: Mapping[str, str], home: str, settings: SandboxSettings
) -> Iterable[str | Path]:
    """Yield where a run writes that is confined to its project."""
    yield from _SYSTEM
    yield from (environ[name] for name in ("TMPDIR", *_OWN_VARIABLES) if environ.get(name, "").startswith("/"))
    yield tempfile.gettempdir()
    root = find_workspace_root(Path(place))
    yield from (place, root)
    yield from _git_folders(root)
    name = Path(program).name
    yield from (_expanded(one, home) for one in _OWN_FILES.get(name, ()))
    for folder in (_CACHES, *_OWN_FOLDERS.get(name, ())):
        own = Path(_expanded(folder, home))
        with contextlib.suppress(OSError):
            # In a home that cannot be written the program could not make it.
            make_private_folder(own)
        if folder != _CACHES:
            yield own
    yield from _told(settings.writable, home)


def _git_folders(root: Path) -> Iterable[Path]:
    """Yield where git writes for a worktree: in the repository that it belongs to. Source: gitrepository-layout(5).

    The file that names it may be anybody's, so that a repository counts only when it names the worktree, too.
    """
    mark = root / ".git"
    try:
        own = Path(os.path.realpath(root / _text(mark).removeprefix("gitdir:").strip()))
        common = Path(os.path.realpath(own / _text(own / "commondir").strip()))
        named = os.path.realpath(_text(own / "gitdir").strip())
    except OSError:
        return
    is_repository = (common / "HEAD").is_file() and (common / "objects").is_dir() and (common / "refs").is_dir()
    if own.parent == common / "worktrees" and named == os.path.realpath(mark) and is_repository:
        yield common


def _text(file: Path) -> str:
    return file.read_text(encoding="utf-8", errors="surrogateescape")


def _database_places(database: Path, home: str) -> Iterable[str | Path]:
    """Yield what hides a database: its folder, when nothing else is in it, else its files that are there."""
    try:
        others = [one for one in os.listdir(database.parent) if not one.startswith(database.name)]  # noqa: PTH208
    except OSError:
        others = []
    if not others and str(database.parent) not in {home, "/"}:
        yield database.parent
    yield from (f"{database}{end}" for end in _BESIDE_DATABASE)


def _told(text: str, home: str) -> list[str]:
    return [_expanded(one, home) for one in shlex.split(text)]


def _expanded(place: str, home: str) -> str:
    return home + place[1:] if place.startswith("~/") else place


def _real(places: Iterable[str | Path]) -> list[str]:
    return list(dict.fromkeys(os.path.realpath(place) for place in places))


def _is_below(place: str, folders: Iterable[str]) -> bool:
    return any(place == folder or place.startswith(f"{folder}/") for folder in folders)
