"""The source ``scan_fig``: descriptions from which Fig and its followers complete, where they are installed."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from agentmon.domain.agents import CapabilitySource
from agentmon.runners.capability_scanners.command_tree import CommandTree
from agentmon.runners.capability_scanners.js_literals import JsModule
from agentmon.runners.capability_scanners.scanned import ScannedCapability, ValueJoin, ValueKind
from agentmon.runners.capability_scanners.text_files import read_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from agentmon.runners.capability_scanners.program_place import ProgramPlace

_PACKAGE: Final = "lib/node_modules/@withfig/autocomplete/build"
_NAME: Final = re.compile(r"[A-Za-z0-9][\w.+-]*")
_OPTION: Final = re.compile(r"[-+]{1,2}[^\s=]+")
_SPEC_PATH: Final = re.compile(r"[\w@.-]+(?:/[\w@.-]+)*")
_DEEPEST: Final = 4
_MOST_SUGGESTED: Final = 12


def scan_fig(place: ProgramPlace, *, subcommand: Sequence[str] = ()) -> tuple[ScannedCapability, ...]:
    """Return what a Fig description of the program tells, with all its subcommands.

    Args:
        place: The program.
        subcommand: A command whose description may stand in a file of its own, which is read then.
    """
    for folder in _folders(place):
        text = read_text(folder / f"{place.name}.js")
        if text:
            return read_fig(text, place.name, folder=folder, wanted=tuple(subcommand))
    return ()


def read_fig(
    text: str, program: str, *, folder: Path | None = None, wanted: tuple[str, ...] = ()
) -> tuple[ScannedCapability, ...]:
    """Return what a description in a module tells; parts in other files are looked for in the folder."""
    spec = JsModule(text).default_export()
    if not isinstance(spec, dict) or not _names(spec.get("name")):
        return ()
    tree = CommandTree(program, CapabilitySource.SCAN_FIG)
    _Reader(tree, folder, wanted).read((), spec, [])
    return tree.capabilities()


def _folders(place: ProgramPlace) -> Iterable[Path]:
    yield place.home / ".fig/autocomplete/build"
    yield place.home / ".local/share/fig/autocomplete/build"
    prefixes = [*place.prefixes, *(folder.parent for folder in place.search_path)]
    for prefix in dict.fromkeys(prefixes):
        yield prefix / _PACKAGE


class _Reader:
    def __init__(self, tree: CommandTree, folder: Path | None, wanted: tuple[str, ...]) -> None:
        self._tree = tree
        self._folder = folder
        self._wanted = wanted

    def read(self, command: tuple[str, ...], spec: dict[str, object], lasting: Sequence[dict[str, object]]) -> None:
        """Note a command with its parts; ``lasting`` are the options that it has from those above it."""
        self._tree.name(command, _text(spec.get("description")))
        options = [option for option in _members(spec.get("options")) if isinstance(option, dict)]
        if "loadSpec" in spec:
            spec = self._loaded(command, spec)
            options += [option for option in _members(spec.get("options")) if isinstance(option, dict)]
        if "loadSpec" not in spec:
            self._tree.learn(command)
            for option in [*options, *lasting]:
                self._note_option(command, option)
            for argument in _members(spec.get("args")):
                if isinstance(argument, dict):
                    self._note_word(command, argument)
        if len(command) >= _DEEPEST:
            return
        below = [*lasting, *(option for option in options if option.get("isPersistent") is True)]
        for part in _members(spec.get("subcommands")):
            names = _names(part.get("name")) if isinstance(part, dict) else []
            if isinstance(part, dict) and names and _NAME.fullmatch(names[0]):
                self.read((*command, names[0]), part, below)

    def _loaded(self, command: tuple[str, ...], spec: dict[str, object]) -> dict[str, object]:
        """Return the description in the file that a command names; read only for the one that is asked for."""
        path = spec.get("loadSpec")
        is_wanted = bool(command) and self._wanted[: len(command)] == command
        if self._folder is None or not is_wanted or not isinstance(path, str) or not _SPEC_PATH.fullmatch(path):
            return spec
        if ".." in path.split("/"):
            return spec
        text = read_text(self._folder / f"{path}.js")
        loaded = JsModule(text).default_export() if text else None
        return loaded if isinstance(loaded, dict) else spec

    def _note_option(self, command: tuple[str, ...], option: dict[str, object]) -> None:
        names = [name for name in _names(option.get("name")) if _OPTION.fullmatch(name)]
        arguments = [one for one in _members(option.get("args")) if isinstance(one, dict)]
        told = arguments[0] if arguments else {}
        separator = option.get("requiresSeparator", option.get("requiresEquals"))
        join = ValueJoin.EQUALS if separator else ValueJoin.WORD
        if isinstance(separator, str):
            join = next((one for one in ValueJoin if one.value == separator), join)
        self._tree.add_option(
            command,
            names,
            kind=ValueKind.STRING if arguments else ValueKind.BOOLEAN,
            value_name=_text(told.get("name")),
            description=_with_suggestions(_text(option.get("description")), told),
            is_repeated=bool(option.get("isRepeatable")),
            is_required=option.get("isRequired") is True,
            is_value_optional=told.get("isOptional") is True,
            join=ValueJoin.EQUALS if told.get("isOptional") is True else join,
        )

    def _note_word(self, command: tuple[str, ...], argument: dict[str, object]) -> None:
        self._tree.add_word(
            command,
            _text(argument.get("name")) or "word",
            description=_with_suggestions(_text(argument.get("description")), argument),
            is_repeated=argument.get("isVariadic") is True or argument.get("isCommand") is True,
            is_required=argument.get("isOptional") is not True,
        )


def _with_suggestions(description: str, argument: dict[str, object]) -> str:
    """Return a description with the values that are suggested, which are not all that there may be."""
    suggested = []
    for one in _members(argument.get("suggestions")):
        names = _names(one.get("name")) if isinstance(one, dict) else _names(one)
        suggested += names[:1]
    if not 0 < len(suggested) <= _MOST_SUGGESTED:
        return description
    such = "such as " + ", ".join(suggested)
    return f"{description}; {such}" if description else such


def _members(value: object) -> list[object]:
    """Return the members of what may be one or a list."""
    if isinstance(value, list):
        return value
    return [value] if isinstance(value, dict | str) else []


def _names(value: object) -> list[str]:
    return [name for name in _members(value) if isinstance(name, str) and name]


def _text(value: object) -> str:
    return " ".join(value.split()) if isinstance(value, str) else ""
