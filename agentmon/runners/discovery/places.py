"""Folders of programs that the PATH of this process may lack: those of version managers and of installers.

An app that was started from a menu, by cron or over ssh has a short PATH; the programs that a person uses in a shell
are found all the same.
"""

from __future__ import annotations

import re
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

SYSTEM_PLACES: Final = (
    "/usr/local/bin",
    "/opt/homebrew/bin",
    "/home/linuxbrew/.linuxbrew/bin",
    "/snap/bin",
    "/var/lib/flatpak/exports/bin",
    "/run/current-system/sw/bin",
    "/nix/var/nix/profiles/default/bin",
)
_OF_HOME: Final = (
    *(".local/bin", "bin", ".claude/local", ".opencode/bin", ".npm-global/bin", ".npm-packages/bin"),
    *(".bun/bin", ".deno/bin", ".cargo/bin", "go/bin", ".yarn/bin", ".config/yarn/global/node_modules/.bin"),
    *(".local/share/pnpm", "Library/pnpm", ".volta/bin", ".asdf/shims", ".local/share/mise/shims"),
    *(".pyenv/shims", ".rbenv/shims", ".nodenv/shims", ".linuxbrew/bin", ".nix-profile/bin"),
    *(".local/share/flatpak/exports/bin", "miniconda3/bin", "anaconda3/bin", "miniforge3/bin"),
)
_BY_VARIABLE: Final = (
    ("NPM_CONFIG_PREFIX", "bin"),
    ("npm_config_prefix", "bin"),
    ("BUN_INSTALL", "bin"),
    ("DENO_INSTALL", "bin"),
    ("CARGO_HOME", "bin"),
    ("GOBIN", ""),
    ("GOPATH", "bin"),
    ("PNPM_HOME", ""),
    ("VOLTA_HOME", "bin"),
    ("ASDF_DATA_DIR", "shims"),
    ("MISE_DATA_DIR", "shims"),
    ("PYENV_ROOT", "shims"),
    ("RBENV_ROOT", "shims"),
    ("NODENV_ROOT", "shims"),
    ("HOMEBREW_PREFIX", "bin"),
    ("PIPX_BIN_DIR", ""),
    ("UV_TOOL_BIN_DIR", ""),
)
_VERSIONED: Final = (
    ("NVM_DIR", ".nvm", "versions/node", "bin"),
    ("FNM_DIR", ".local/share/fnm", "node-versions", "installation/bin"),
    ("FNM_DIR", ".fnm", "node-versions", "installation/bin"),
)
"""Managers without shims: their variable, their folder in the home, where their versions are, and programs in each."""
_PREFIX_LINE: Final = re.compile(r"^\s*prefix\s*=\s*(.+?)\s*$", re.MULTILINE)
_MOST_VERSIONS: Final = 50


def find_places(environ: Mapping[str, str]) -> tuple[Path, ...]:
    """Return the folders that are there, in the order in which a program is taken from them; none comes twice.

    Of a manager that keeps several versions, the one it calls its default comes first, then the newest.
    """
    home = Path(environ.get("HOME") or Path.home())
    return tuple(dict.fromkeys(place for place in _all(environ, home) if place.is_absolute() and _is_folder(place)))


def version_key(name: str) -> tuple[tuple[int, ...], str]:
    """Return what versions are sorted by: ``v9.1`` comes before ``v10.0``, and what has no number before both."""
    return tuple(int(number) for number in re.findall(r"\d+", name)), name


def _all(environ: Mapping[str, str], home: Path) -> Iterator[Path]:
    for variable, folder in _BY_VARIABLE:
        for named in environ.get(variable, "").split(":"):
            if named:
                yield Path(named) / folder
    yield from (home / folder for folder in _OF_HOME)
    yield from _npm_prefix(home)
    for variable, folder, versions, programs in _VERSIONED:
        root = Path(environ.get(variable) or home / folder)
        yield from _versions(root, versions, programs)
    yield from map(Path, SYSTEM_PLACES)


def _npm_prefix(home: Path) -> Iterator[Path]:
    with suppress(OSError, UnicodeDecodeError):
        for prefix in _PREFIX_LINE.findall((home / ".npmrc").read_text(encoding="utf-8")):
            plain = prefix.strip("\"'").replace("${HOME}", str(home))
            yield Path(str(home) + plain[1:] if plain.startswith("~/") else plain) / "bin"


def _versions(root: Path, versions: str, programs: str) -> Iterator[Path]:
    default = ""
    with suppress(OSError, UnicodeDecodeError):
        default = (root / "alias" / "default").read_text(encoding="utf-8").strip().removeprefix("v")
    with suppress(OSError):
        names = sorted((path.name for path in (root / versions).iterdir()), key=version_key, reverse=True)
        chosen = [name for name in names if default and f"{name.removeprefix('v')}.".startswith(f"{default}.")]
        for name in [*chosen[:1], *names][:_MOST_VERSIONS]:
            yield root / versions / name / programs


def _is_folder(path: Path) -> bool:
    try:
        return path.is_dir()
    except OSError:
        return False
