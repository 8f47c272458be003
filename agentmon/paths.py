"""Where agentmon keeps its files; cheap to import, since the first frame needs it."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

    from agentmon.domain.ids import ExecutionId

_SOCKET_PATH_MAX_BYTES: Final = 100
"""Longest socket path used; the system's limit is 104 (macOS) or 108 (Linux) with its end mark."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Paths:
    """Every file and folder that agentmon makes, as absolute paths; none has to exist yet."""

    data_dir: Path
    config_dir: Path
    database_path: Path
    database_url: str | None
    """What AGENTMON_DATABASE_URL says, unread; None when it is not set."""
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
    def worker_lock(self) -> Path:
        """Held by the worker for its whole life."""
        return self.run_dir / "worker.lock"

    @property
    def worker_log(self) -> Path:
        """What the worker has to say."""
        return self.logs_dir / "worker.log"

    @property
    def worker_socket(self) -> Path:
        """Where the worker is woken by datagram."""
        return self.run_dir / "worker.sock"

    @property
    def tmux_socket(self) -> Path:
        """The private tmux server."""
        return self.run_dir / "tmux.sock"

    def execution_dir(self, execution_id: ExecutionId) -> Path:
        """Return the folder of one execution."""
        return self.executions_dir / execution_id


def find_paths(environ: Mapping[str, str] | None = None) -> Paths:
    """Return the paths that the environment asks for; nothing is made or read.

    ``AGENTMON_HOME`` puts everything below one folder; without it the folders of the XDG base directory rules (or of
    macOS) are used. ``AGENTMON_DATABASE_URL`` moves the database alone.
    """
    environ = os.environ if environ is None else environ
    home = environ.get("AGENTMON_HOME", "")
    if home:
        data_dir = Path(home).expanduser().absolute()
        config_dir, state_dir = data_dir, data_dir
    else:
        from platformdirs import PlatformDirs  # noqa: PLC0415 - not needed where AGENTMON_HOME is set

        folders = PlatformDirs("agentmon", appauthor=False)
        data_dir, config_dir = folders.user_data_path, folders.user_config_path
        state_dir = folders.user_state_path
    database_url = environ.get("AGENTMON_DATABASE_URL") or None
    database_path = _database_path(database_url) or data_dir / "agentmon.db"
    run_dir = state_dir / "run"
    if database_url:
        run_dir /= _short_hash(str(database_path))
    return Paths(
        data_dir=data_dir,
        config_dir=config_dir,
        database_path=database_path,
        database_url=database_url,
        executions_dir=data_dir / "executions",
        backups_dir=data_dir / "backups",
        logs_dir=state_dir / "logs",
        run_dir=_short_enough(run_dir),
    )


def find_workspace_root(folder: Path) -> Path:
    """Return the nearest folder at or above ``folder`` that holds a ``.git``, else the folder itself, made absolute."""
    folder = folder.resolve()
    for candidate in (folder, *folder.parents):
        if (candidate / ".git").exists():
            return candidate
    return folder


def _database_path(url: str | None) -> Path | None:
    scheme, separator, rest = (url or "").partition("://")
    if not separator or not scheme.startswith("sqlite") or not rest.startswith("/"):
        return None
    return Path(rest[1:].partition("?")[0]).expanduser().absolute()


def _short_enough(run_dir: Path) -> Path:
    if len(os.fsencode(run_dir / "worker.sock")) <= _SOCKET_PATH_MAX_BYTES:
        return run_dir
    import tempfile  # noqa: PLC0415 - seldom needed, and dear at the start

    return Path(tempfile.gettempdir()) / f"agentmon-{os.getuid()}-{_short_hash(str(run_dir))}"


def _short_hash(text: str) -> str:
    import hashlib  # noqa: PLC0415 - seldom needed, and dear at the start

    return hashlib.sha256(os.fsencode(text)).hexdigest()[:12]
