"""The names of the themes there are, for whoever keeps one without drawing it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from agentmon.domain.errors import UsageError

if TYPE_CHECKING:
    from pathlib import Path

THEME_KEY: Final = "app.theme"
AGENTMON_THEMES: Final = ("agentmon-dark", "agentmon-light", "agentmon-high-contrast")
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")


def is_theme_name(name: str) -> bool:
    """Return whether a theme may have that name."""
    return _NAME.fullmatch(name) is not None


def own_theme_names(folder: Path) -> list[str]:
    """Return the names of the person's themes in the folder, sorted; none when it is not there."""
    try:
        return sorted(file.stem for file in folder.glob("*.toml") if is_theme_name(file.stem))
    except OSError:
        return []


def theme_names(folder: Path) -> list[str]:
    """Return the names of all themes: agentmon's, then the person's own."""
    return [*AGENTMON_THEMES, *own_theme_names(folder)]


def require_theme(name: str, folder: Path) -> None:
    """Refuse a theme that is not there.

    Raises:
        UsageError: It is none of agentmon's and has no file in the folder; the hint names those there are.
    """
    known = theme_names(folder)
    if name not in known:
        raise UsageError(
            f"there is no theme {name!r}", hint=f"themes are: {', '.join(known)}; your own are files in {folder}"
        )
