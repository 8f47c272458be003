"""How the app looks, read with the standard library alone, since the first frame needs it."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING, NamedTuple

from agentmon.store.untouched import FIRST_FRAME_TIMEOUT_S, connect_untouched

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

NAMES = ("theme", "reduced_motion", "ascii", "mouse", "welcome")
_ROWS = "SELECT key, value FROM settings WHERE key >= 'app.' AND key < 'app/'"


class Look(NamedTuple):
    """How the app looks."""

    theme: str = "agentmon-dark"
    reduced_motion: bool = False
    """Whether nothing moves or pulses."""
    ascii: bool = False
    """Whether only ASCII is drawn."""
    mouse: bool = True
    welcome: bool = False
    """Whether a first start says what there is; only where somebody opens the app."""


USUAL_LOOK = Look()


def find_look(database_path: Path, settings_file: Path, environ: Mapping[str, str]) -> Look:
    """Return what the database, the environment and the settings file say, in this order.

    Whatever cannot be read is left out: settings are checked, and complained of, where they are loaded in earnest.
    """
    words = _words_of_file(settings_file)
    words |= {
        name: environ[f"AGENTMON_APP_{name.upper()}"] for name in NAMES if f"AGENTMON_APP_{name.upper()}" in environ
    }
    words |= _words_of_database(database_path)
    usual = USUAL_LOOK
    return Look(
        theme=str(words.get("theme") or usual.theme),
        reduced_motion=_is_true(words.get("reduced_motion"), usual.reduced_motion),
        ascii=_is_true(words.get("ascii"), usual.ascii),
        mouse=_is_true(words.get("mouse"), usual.mouse),
        welcome=_is_true(words.get("welcome"), True),
    )


def _is_true(word: object, usual: bool) -> bool:
    text = str(word).strip().lower()
    return (
        text in {"true", "1", "yes", "on"} if text in {"true", "1", "yes", "on", "false", "0", "no", "off"} else usual
    )


def _words_of_database(database_path: Path) -> dict[str, object]:
    if not database_path.is_file():
        return {}
    try:
        with closing(connect_untouched(database_path, timeout_s=FIRST_FRAME_TIMEOUT_S)) as connection:
            rows = connection.execute(_ROWS).fetchall()
        if not rows:
            return {}
        import json  # noqa: PLC0415 - most databases say nothing of it

        return {key.removeprefix("app."): json.loads(value) for key, value in rows}
    except (sqlite3.Error, ValueError, TypeError):
        return {}


def _words_of_file(settings_file: Path) -> dict[str, object]:
    try:
        content = settings_file.read_bytes()
    except OSError:
        return {}
    if b"app" not in content:
        return {}
    from agentmon.domain.written_text import toml_of  # noqa: PLC0415 - most settings files say nothing of it

    try:
        table = toml_of(content).get("app", {})
    except ValueError:
        return {}
    return {name: table[name] for name in NAMES if name in table} if isinstance(table, dict) else {}
