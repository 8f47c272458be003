"""The person's own keys: a file that names actions by their ids, checked against the tables of keys."""

from __future__ import annotations

from dataclasses import dataclass, field
from difflib import get_close_matches
from string import printable
from typing import TYPE_CHECKING, Final

from textual.keys import Keys, _character_to_key

from agentmon.domain.written_text import toml_of
from agentmon.screens.bindings import APP, REQUEST, TABLES, key_words

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from textual.binding import Binding

_MODIFIERS: Final = frozenset({"ctrl", "shift", "alt", "super", "hyper", "meta"})
_NAMES: Final = frozenset({key.value for key in Keys} | {_character_to_key(letter) for letter in printable})
_SHORT: Final = {
    "esc": "escape",
    "return": "enter",
    "del": "delete",
    "ins": "insert",
    "pgup": "pageup",
    "pgdn": "pagedown",
}
_BESIDE: Final = {"Inbox": REQUEST}
"""Tables whose keys work on the same screen."""
_DIALOGS: Final = frozenset(
    {
        *("Answers of a session", "Choices of a question", "Request of the card", "Task editor", "Run with"),
        *("Tool call", "Text", "Menu", "Rule", "Name", "Question", "Choice", "Setting", "Welcome", "Help", "Failure"),
    }
)
"""Where the keys that work everywhere do not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Keymap:
    """The keys that a person has changed."""

    keys: Mapping[str, str] = field(default_factory=dict)
    """Keys by the id of the action, several with commas, by Textual's names."""
    problems: tuple[str, ...] = ()
    """What in the file is not used, and why."""


def read_keymap(file: Path) -> Keymap:
    """Return what the file changes; a missing one changes nothing, and what is wrong in it leaves the key as it is.

    Args:
        file: TOML, with a table ``[keys]`` of ids and keys: ``"board.new" = "ctrl+n"``, or a list of keys.
    """
    try:
        content = file.read_bytes()
    except FileNotFoundError:
        return Keymap()
    except OSError as error:
        return Keymap(problems=(f"it cannot be read: {error.strerror}",))
    try:
        written = toml_of(content)
    except ValueError as error:
        return Keymap(problems=(f"it is no TOML: {error}",))
    problems = [f"[{name}] is no table of it; keys stand in [keys]" for name in written if name != "keys"]
    table = written.get("keys", {})
    if not isinstance(table, dict):
        return Keymap(problems=(*problems, "keys is no table"))
    known = {str(binding.id): binding for binding in all_bindings() if not binding.system}
    keys: dict[str, str] = {}
    for name, value in _flat(table):
        if name not in known:
            near = get_close_matches(name, known, n=1)
            problems.append(f"{name} is no action" + (f"; {near[0]} is" if near else ""))
            continue
        named, wrong = _keys_of(value)
        if wrong:
            problems.append(f"{name}: {wrong}")
        else:
            keys[name] = named
    return _without_clashes(keys, problems)


def all_bindings() -> Iterator[Binding]:
    """Yield every binding of every table, each id once."""
    told: set[str | None] = set()
    for table in TABLES.values():
        for binding in table:
            if binding.id not in told:
                told.add(binding.id)
                yield binding


def _flat(table: Mapping[str, object], before: str = "") -> Iterator[tuple[str, object]]:
    for name, value in table.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{before}{name}.")
        else:
            yield before + name, value


def _keys_of(value: object) -> tuple[str, str]:
    """Return the keys by Textual's names, and what is wrong; one of the two is empty."""
    listed = value if isinstance(value, list) else [value]
    if not listed or not all(isinstance(one, str) and one.strip() for one in listed):
        return "", "a key, or a list of keys, is expected, such as ctrl+n"
    found = []
    for one in listed:
        *modifiers, name = [part.strip() for part in _parts(str(one).strip())]
        if not set(modifiers) <= _MODIFIERS:
            return "", f"{one!r} is no key; modifiers are ctrl, shift and alt"
        name = _SHORT.get(name, name)
        is_character = len(name) == 1 and name.isprintable()
        name = _character_to_key(name) if is_character else name
        if not is_character and name not in _NAMES:
            return "", f"{one!r} is no key"
        found.append("+".join([*modifiers, name]))
    return ",".join(found), ""


def _parts(key: str) -> list[str]:
    """Return modifiers and name; a plus at the end is the key itself."""
    if key.endswith("+"):
        return [*key[:-1].rstrip("+").split("+"), "+"] if len(key) > 1 else ["+"]
    return key.split("+")


def _without_clashes(keys: Mapping[str, str], problems: list[str]) -> Keymap:
    """Leave out what would take the key of another action on the same screen."""
    kept = dict(keys)
    while True:
        clash = next(_clashes(kept), None)
        if clash is None:
            return Keymap(keys=kept, problems=tuple(problems))
        mine, other, key = clash
        problems.append(f"{mine}: {key_words(key)} is that of {other} already")
        del kept[mine]


def _clashes(keys: Mapping[str, str]) -> Iterator[tuple[str, str, str]]:
    """Yield of each clash the changed action, the other one, and the key."""
    for place, table in TABLES.items():
        beside: Sequence[Binding] = [] if table is APP or place in _DIALOGS else APP
        owners: dict[str, str] = {}
        for binding in (*table, *_BESIDE.get(place, ()), *beside):
            name = str(binding.id)
            for key in keys.get(name, binding.key).split(","):
                other = owners.setdefault(key.strip(), name)
                if other == name or (name not in keys and other not in keys):
                    continue
                mine, theirs = (name, other) if name in keys else (other, name)
                yield mine, theirs, key.strip()
