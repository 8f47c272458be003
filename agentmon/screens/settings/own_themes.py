"""Themes that a person made: a file each, over one of agentmon's own."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from textual.color import Color, ColorParseError

from agentmon.domain.errors import NotFoundError, UsageError
from agentmon.domain.written_text import toml_of
from agentmon.screens.settings.themes import DARK, HIGH_CONTRAST, LIGHT
from agentmon.services.theme_names import is_theme_name

if TYPE_CHECKING:
    from pathlib import Path

    from textual.theme import Theme

_BASES: Final = {"dark": DARK, "light": LIGHT, "high-contrast": HIGH_CONTRAST}
_COLOURS: Final = (
    *("primary", "secondary", "warning", "error", "success", "accent"),
    *("foreground", "background", "surface", "panel"),
)
_FROM_BEHIND: Final = re.compile(r"auto(?: \d{1,3}%)?|initial")
"""Colours that follow from what lies behind them."""
_STYLES: Final = frozenset({"none", "not", "bold", "b", "dim", "italic", "underline", "reverse", "strike"})


def read_own_theme(folder: Path, name: str) -> Theme:
    """Return a person's theme.

    Args:
        folder: Where the files are.
        name: That of the file, without its ending; its TOML may say ``base`` (dark, light, high-contrast), any of the
            colours ``primary``, ``secondary``, ``warning``, ``error``, ``success``, ``accent``, ``foreground``,
            ``background``, ``surface`` and ``panel``, and in a table ``[variables]`` what else a theme has.

    Raises:
        NotFoundError: There is no such theme.
        UsageError: The file cannot be used; the message says why.
    """
    file = folder / f"{name}.toml"
    if not is_theme_name(name) or not file.is_file():
        raise NotFoundError(f"there is no theme {name!r}", hint=f"themes of your own are files in {folder}")
    try:
        written = toml_of(file.read_bytes())
    except (OSError, ValueError) as error:
        raise UsageError(f"the theme {file} cannot be read: {error}") from error
    base = _BASES.get(str(written.pop("base", "dark")))
    if base is None:
        raise UsageError(f"the theme {file} has an unknown base", hint=f"bases are: {', '.join(_BASES)}")
    variables = written.pop("variables", {})
    unknown = [key for key in written if key not in _COLOURS]
    if unknown or not isinstance(variables, dict):
        raise UsageError(
            f"the theme {file} says {(unknown or ['variables'])[0]!r}", hint=f"it may say {', '.join(_COLOURS)}"
        )
    for key, value in written.items():
        try:
            Color.parse(str(value))
        except ColorParseError as error:
            raise UsageError(
                f"the theme {file}: {key} = {value!r} is no colour", hint='write it like "#82aaff"'
            ) from error
    variables = {key: str(value) for key, value in variables.items()}
    usual = base.to_color_system().generate() | base.variables
    for key, value in variables.items():
        if not _is_usable(value, usual.get(key)):
            raise UsageError(
                f"the theme {file}: {key} = {value!r} cannot be used", hint='write a colour like "#82aaff", or "bold"'
            )
    theme = replace(base, name=name, variables=base.variables | variables)
    for key, value in written.items():
        setattr(theme, key, str(value))
    return theme


def _is_usable(value: str, usual: str | None) -> bool:
    """Return whether a variable may have the value in place of its usual one: a wrong one would end the app."""
    is_style = bool(value.split()) and set(value.split()) <= _STYLES
    if usual is None:
        return is_style or _is_colour(value)
    if _FROM_BEHIND.fullmatch(usual):
        return _is_colour(value) or _FROM_BEHIND.fullmatch(value) is not None
    return _is_colour(value) if _is_colour(usual) else is_style


def _is_colour(value: str) -> bool:
    try:
        Color.parse(value)
    except ColorParseError:
        return False
    return True
