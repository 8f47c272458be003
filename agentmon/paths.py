"""Where agentmon keeps its files; cheap to import, since the first frame needs it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from agentmon.domain.errors import UsageError
from agentmon.private_folders import NotOwnError, require_private

if TYPE_CHECKING:
    from collections.abc import Mapping

    from agentmon.domain.ids import ExecutionId

HOME_NAME: Final = "AGENTMON_HOME"
DATABASE_URL_NAME: Final = "AGENTMON_DATABASE_URL"
DEMO_NAME: Final = "AGENTMON_DEMO"
"""Set where all that runs ends with the app."""
LOCATION_NAMES: Final = frozenset({HOME_NAME, DATABASE_URL_NAME})
"""The variables that say where agentmon's files are."""
_DATABASE: Final = "agentmon.db"
_SQLITE_SCHEMES: Final = frozenset({"sqlite", "sqlite+aiosqlite"})
_EXAMPLE: Final = "Write sqlite:////home/me/agentmon.db (four slashes for an absolute path), or leave it unset."
_TEMPORARY: Final = "/tmp"
_SOCKET_PATH_MAX_BYTES: Final = 100
"""Longest socket path used; the system's limit is 104 (macOS) or 108 (Linux) with its end mark."""


class Paths(NamedTuple):
    """Every file and folder that agentmon makes, as absolute paths; none has to exist yet."""

    data_dir: Path
    config_dir: Path
    database_path: Path
    executions_dir: Path
    backups_dir: Path
    logs_dir: Path
    run_dir: Path
    """Sockets and locks of the worker and the tmux server that belong to this database; a lasting folder."""

    @property
    def settings_file(self) -> Path:
        """The file of settings that a person edits."""
        return self.config_dir / "config.toml"

    @property
    def prices_file(self) -> Path:
        """The file of prices that a person edits; they count more than any list."""
        return self.config_dir / "prices.toml"

    @property
    def keymap_file(self) -> Path:
        """The file of keys that a person edits."""
        return self.config_dir / "keymap.toml"

    @property
    def danger_rules_file(self) -> Path:
        """The file of the person's own rules about dangerous command lines."""
        return self.config_dir / "danger.toml"

    @property
    def themes_dir(self) -> Path:
        """The folder of themes that a person made."""
        return self.config_dir / "themes"

    @property
    def templates_dir(self) -> Path:
        """The folder of the person's templates of tasks."""
        return self.config_dir / "templates"

    @property
    def presets_dir(self) -> Path:
        """The folder of a person's own descriptions of programs."""
        return self.config_dir / "presets"

    @property
    def worktrees_dir(self) -> Path:
        """The worktrees that agentmon makes; nothing of anybody else is in it."""
        return self.data_dir / "worktrees"

    @property
    def merges_dir(self) -> Path:
        """What merges are about to do, written down until it is done."""
        return self.data_dir / "merges"

    @property
    def questions_dir(self) -> Path:
        """Where agents are asked what a program can do: an empty folder."""
        return self.data_dir / "questions"

    @property
    def snapshots_dir(self) -> Path:
        """What the folders of runs held before and after each."""
        return self.data_dir / "snapshots"

    @property
    def drafts_dir(self) -> Path:
        """Texts that are in an editor now, or were when agentmon died."""
        return self.data_dir / "drafts"

    @property
    def welcomed(self) -> Path:
        """There once somebody was welcomed."""
        return self.data_dir / "welcomed"

    @property
    def price_data_file(self) -> Path:
        """The price list that was fetched last; without it the installed one counts."""
        return self.data_dir / "genai-prices.jsonl"

    @property
    def worker_lock(self) -> Path:
        """Held by the worker for its whole life."""
        return self.run_dir / "worker.lock"

    @property
    def worker_log(self) -> Path:
        """What the worker has to say."""
        return self.logs_dir / "worker.log"

    @property
    def worker_loops(self) -> Path:
        """How the worker's loops fare, as it said last."""
        return self.run_dir / "worker-loops.json"

    @property
    def import_progress(self) -> Path:
        """How far the import of usage is; there only while one goes on."""
        return self.run_dir / "usage-import.json"

    @property
    def telemetry_place(self) -> Path:
        """The port and the secret by which the worker is sent telemetry; it outlives the worker."""
        return self.run_dir / "telemetry.json"

    @property
    def notified(self) -> Path:
        """Up to which line of the audit trail the worker has told of it."""
        return self.run_dir / "notified.json"

    @property
    def worker_socket(self) -> Path:
        """Where the worker is woken by datagram."""
        return self.run_dir / "worker.sock"

    @property
    def tmux_socket(self) -> Path:
        """The private tmux server."""
        return self.tmux_socket_in(self.run_dir)

    @property
    def needed(self) -> tuple[Path, ...]:
        """What agentmon has to read and write; of the settings, only the way to them."""
        beside = (self.database_path.with_name(self.database_path.name + end) for end in ("", "-wal", "-shm", ".lock"))
        folders = (self.data_dir, self.merges_dir, self.logs_dir.parent, *self.own_folders)
        return (*folders, *beside, self.worker_log, self.worker_lock, self.config_dir / "nothing")

    @property
    def own_folders(self) -> tuple[Path, ...]:
        """Folders in which everything is agentmon's; a folder that ``AGENTMON_HOME`` names may have more in it."""
        below = (self.executions_dir, self.backups_dir, self.snapshots_dir, self.logs_dir, self.run_dir)
        return below if self.config_dir == self.data_dir else (self.data_dir, self.logs_dir.parent, *below)

    @property
    def variables(self) -> dict[str, str]:
        """What leads another process to these files, wherever it works; empty for the usual places."""
        home = {HOME_NAME: str(self.data_dir)} if self.config_dir == self.data_dir else {}
        is_moved = self.database_path != self.data_dir / _DATABASE
        return home | ({DATABASE_URL_NAME: self.database_url} if is_moved else {})

    @property
    def database_url(self) -> str:
        """The database as ``AGENTMON_DATABASE_URL`` names it."""
        return f"sqlite:///{self.database_path}"

    @staticmethod
    def tmux_socket_in(run_dir: Path) -> Path:
        """Return where the tmux server of a run folder is, also of another data folder."""
        return run_dir / "tmux.sock"

    def execution_dir(self, execution_id: ExecutionId) -> Path:
        """Return the folder of one execution."""
        return self.executions_dir / execution_id

    def output_of(self, execution_id: ExecutionId, log_file_path: str | None) -> Path:
        """Return the file of an execution's output, also of one that was queued or begun from another data folder.

        Args:
            execution_id: Which execution.
            log_file_path: Where its row says that the file is; None when it says nothing.
        """
        return Path(log_file_path) if log_file_path else self.execution_dir(execution_id) / "output.log"


def find_paths(environ: Mapping[str, str] | None = None) -> Paths:
    """Return the paths that the environment asks for; nothing is made.

    ``AGENTMON_HOME`` puts everything below one folder; without it the folders of the XDG base directory rules (or of
    macOS) are used. ``AGENTMON_DATABASE_URL`` moves the database alone.

    Raises:
        UsageError: ``AGENTMON_DATABASE_URL`` names no SQLite file, a relative path has no folder to start from, there
            is no such home, a path is not valid UTF-8 and so cannot be kept, or somebody else has prepared the short
            run folder that a long path needs.
    """
    environ = os.environ if environ is None else environ
    home = environ.get(HOME_NAME, "")
    if home:
        data_dir = _absolute(Path(home))
        config_dir, state_dir = data_dir, data_dir
    else:
        from platformdirs import PlatformDirs  # noqa: PLC0415 - not needed where AGENTMON_HOME is set

        folders = PlatformDirs("agentmon", appauthor=False)
        try:
            data_dir, config_dir = _absolute(folders.user_data_path), _absolute(folders.user_config_path)
            state_dir = _absolute(folders.user_state_path)
        except RuntimeError as error:
            raise UsageError(
                "your home folder is unknown", hint=f"Set HOME or {HOME_NAME} to an absolute path."
            ) from error
    database_url = environ.get(DATABASE_URL_NAME) or None
    database_path = find_database(database_url) if database_url else data_dir / _DATABASE
    run_dir = state_dir / "run"
    # One database has one worker, by whichever name it is reached.
    real = os.path.realpath(database_path) if database_url else ""
    if real and real != os.path.realpath(data_dir / _DATABASE):
        run_dir /= _short_hash(real)
    return Paths(
        data_dir=data_dir,
        config_dir=config_dir,
        database_path=database_path,
        executions_dir=data_dir / "executions",
        backups_dir=data_dir / "backups",
        logs_dir=state_dir / "logs",
        run_dir=_short_enough(run_dir),
    )


def find_workspace_root(folder: Path) -> Path:
    """Return the nearest repository or worktree at or above ``folder``, else the folder itself, made absolute."""
    folder = folder.resolve()
    for candidate in (folder, *folder.parents):
        if is_repository(candidate):
            return candidate
    return folder


def is_repository(folder: Path) -> bool:
    """Return whether the folder is the root of a repository or a worktree of Git.

    An empty ``.git`` is none, as for Git itself: Codex leaves one in each folder where its sandbox guards the name,
    ``/tmp`` among them.
    """
    mark = f"{folder}/.git"
    # A path that may not be looked at, or is too long, is none, and raises nothing.
    return os.path.isfile(f"{mark}/HEAD") or os.path.isfile(mark)  # noqa: PTH113


def find_database(url: str) -> Path:
    """Return the absolute path of the database that an SQLAlchemy URL names; nothing is opened or made.

    ``sqlite:///name`` is relative to the present folder, ``sqlite:////name`` is absolute.

    Raises:
        UsageError: The text is no URL, is not for SQLite, names no file, or carries options; or the name is relative
            and the present folder is gone.
    """
    scheme, separator, rest = url.partition("://")
    if not separator:
        raise UsageError("the database URL does not start with sqlite:///", hint=_EXAMPLE)
    if scheme not in _SQLITE_SCHEMES:
        # Only the scheme is repeated: the rest may hold a password.
        raise UsageError(f"this release keeps its data in SQLite only; {scheme}:// cannot be used", hint=_EXAMPLE)
    name, _, options = rest.removeprefix("/").partition("?")
    if not rest.startswith("/"):
        raise UsageError("the database URL has too few slashes after its scheme", hint=_EXAMPLE)
    if not name or name == ":memory:":
        raise UsageError("the database URL names no file", hint=_EXAMPLE)
    if options:
        raise UsageError("the database URL carries options after '?', and none is understood", hint=_EXAMPLE)
    return _absolute(Path(name))


def expanded(text: str) -> Path:
    """Return a path that a person wrote, with ``~`` and ``~name`` filled in; where nobody has that name it stays."""
    return Path(os.path.expanduser(text))  # noqa: PTH111 - pathlib raises where nobody has the name


def _absolute(path: Path) -> Path:
    place = expanded(str(path))
    if str(place).startswith("~"):
        raise UsageError(f"there is no such home: {path}", hint="Write an absolute path.")
    try:
        str(place).encode()
        return place.absolute()
    except UnicodeEncodeError as error:
        raise UsageError(
            f"the path of agentmon's files is not valid UTF-8: {path}", hint=f"Set {HOME_NAME} to another folder."
        ) from error
    except FileNotFoundError as error:
        raise UsageError(
            f"the current folder is gone, and agentmon's files are relative to it: {path}",
            hint=f"Change to a folder that exists, or set {HOME_NAME} and {DATABASE_URL_NAME} to absolute paths.",
        ) from error


def _short_enough(run_dir: Path) -> Path:
    if len(os.fsencode(run_dir / "worker.sock")) <= _SOCKET_PATH_MAX_BYTES:
        return run_dir
    short = Path(_find_temporary()) / f"agentmon-{os.getuid()}-{_short_hash(str(run_dir))}"
    try:
        require_private(short)
    except NotOwnError as error:
        raise UsageError(
            f"agentmon's sockets are not safe there: {error}",
            hint=f"Remove {short}, as root where it is not yours, or set {HOME_NAME} to a shorter path.",
        ) from error
    return short


def _find_temporary() -> str:
    """Return where everybody may make files: the same for every process, which ``TMPDIR`` would not be."""
    if os.access(_TEMPORARY, os.W_OK | os.X_OK):
        return _TEMPORARY
    import tempfile  # noqa: PLC0415 - seldom needed, and dear at the start

    return tempfile.gettempdir()


def _short_hash(text: str) -> str:
    import hashlib  # noqa: PLC0415 - seldom needed, and dear at the start

    return hashlib.sha256(os.fsencode(text)).hexdigest()[:12]
