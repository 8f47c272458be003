"""Files of presets: those that agentmon brings, and those of a person, of which a bad one hides no other."""

from __future__ import annotations

import re
import stat
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Final

from agentmon.domain.errors import ArgumentsError, UsageError
from agentmon.domain.written_text import text_of, toml_of_text
from agentmon.runners.adapters.template import render_tokens
from agentmon.runners.presets.agents import agents_of
from agentmon.runners.presets.entries import Entry
from agentmon.runners.presets.preset import PresetAgent, PresetLibrary, PresetProblem
from agentmon.runners.presets.reading import read_agent

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

PRESETS_DIR: Final = Path(__file__).parent
SUFFIX: Final = ".preset.toml"
"""The files have a second suffix, for ``ruff.toml`` and ``pytest.toml`` would be read by those programs themselves."""

_MAX_FILE_BYTES: Final = 1024 * 1024
_NAMES: Final = re.compile(r'^(?:slug|binary) = "([^"]*)"$|^also_known_as = \[(.*)\]$', re.MULTILINE)
_QUOTED: Final = re.compile(r'"([^"]*)"')
_HINT: Final = "mend that file, or move it out of the folder; all other presets are used meanwhile"


def load_presets(folder: Path = PRESETS_DIR, *, of_programs: Collection[str] | None = None) -> tuple[PresetAgent, ...]:
    """Return the agents of all files ``*.preset.toml`` of a folder: those that need no program first, then by slug.

    Args:
        folder: Where the files lie.
        of_programs: Read only files that have one of these names as a slug or as the name of a program, and those of
            agents without a program; every file when None. It tells by lines of the text, in a tenth of the time that
            reading takes, so that it is right only for files in the form that agentmon's own have.

    Raises:
        UsageError: A file is not TOML, or an entry is missing, unknown or of the wrong kind; the message names the
            file, the agent and the entry.
    """
    presets: list[PresetAgent] = []
    for path in sorted(folder.glob(f"*{SUFFIX}")):
        text = _text(path)
        if of_programs is None or not names_in(text).isdisjoint({"", *of_programs}):
            presets += _agents_in(text, path)
    slugs = [preset.slug for preset in presets]
    repeated = sorted({slug for slug in slugs if slugs.count(slug) > 1})
    if repeated:
        raise UsageError(f"two presets are called {repeated[0]}")
    return _in_order(presets)


def load_library(own_folder: Path | None, *, of_programs: Collection[str] | None = None) -> PresetLibrary:
    """Return agentmon's presets and those of a person, whose agents replace agentmon's of the same slug as a whole.

    A person's files are all ``*.toml`` of the folder, which need not be there. What is wrong with one of them, or with
    one agent of it, becomes a problem, and everything else counts.

    Args:
        own_folder: The person's folder; None for none.
        of_programs: As ``load_presets``; a person's files are read in any case.
    """
    problems: list[PresetProblem] = []
    own: dict[str, PresetAgent] = {}
    for path in _own_files(own_folder, problems):
        for preset in _read_own_file(path, problems):
            earlier = own.get(preset.slug)
            if earlier is None:
                own[preset.slug] = preset
            else:
                place = "" if earlier.path is None else earlier.path.name
                problems.append(
                    _problem(path, f"{path}: the agent {preset.slug} is described in {place} already, which counts")
                )
    built_in = [preset for preset in load_presets(of_programs=of_programs) if preset.slug not in own]
    return PresetLibrary(presets=_in_order([*own.values(), *built_in]), problems=tuple(problems))


def names_in(text: str) -> frozenset[str]:
    """Return the slugs and names of programs in the text of one of agentmon's own files, without reading it as TOML."""
    names = set()
    for found in _NAMES.finditer(text):
        names |= set(_QUOTED.findall(found[2])) if found[1] is None else {found[1]}
    return frozenset(names)


def _in_order(presets: Iterable[PresetAgent]) -> tuple[PresetAgent, ...]:
    return tuple(sorted(presets, key=lambda preset: (preset.binary != "", not preset.is_active, preset.slug)))


def _text(path: Path) -> str:
    try:
        return text_of(path.read_bytes())
    except (OSError, ValueError) as error:
        raise UsageError(f"the preset file {path.name} cannot be read: {_reason(error)}") from error


@lru_cache(maxsize=256)
def _agents_in(text: str, path: Path) -> tuple[PresetAgent, ...]:
    return tuple(replace(read_agent(table, place=path.name), path=path) for table in _tables(text, path))


def _tables(text: str, path: Path) -> list[Mapping[str, object]]:
    try:
        document = toml_of_text(text)
    except ValueError as error:
        raise UsageError(f"the preset file {path.name} cannot be read: {error}") from error
    return Entry(document, place=path.name, known=frozenset({"agent"})).tables("agent")


def _own_files(folder: Path | None, problems: list[PresetProblem]) -> list[Path]:
    if folder is None:
        return []
    try:
        return sorted(path for path in folder.iterdir() if path.suffix == ".toml" and not path.name.startswith("."))
    except FileNotFoundError:
        return []
    except OSError as error:
        problems.append(_problem(folder, f"the folder of presets {folder} cannot be read: {_reason(error)}"))
        return []


def _read_own_file(path: Path, problems: list[PresetProblem]) -> list[PresetAgent]:
    try:
        _require_small_file(path)
        tables = _tables(_text(path), path)
    except UsageError as error:
        problems.append(_problem(path, str(error).replace(path.name, str(path), 1)))
        return []
    presets = []
    for table in tables:
        try:
            preset = replace(read_agent(table, place=str(path)), path=path, is_own=True)
            _require_known_placeholders(preset, path)
        except UsageError as error:
            problems.append(_problem(path, str(error)))
        else:
            presets.append(preset)
    return presets


def _require_small_file(path: Path) -> None:
    """Refuse what may never end or hang, such as a device or a pipe."""
    try:
        about = path.stat()
    except OSError as error:
        raise UsageError(f"the preset file {path.name} cannot be read: {_reason(error)}") from error
    if not stat.S_ISREG(about.st_mode):
        raise UsageError(f"the preset file {path.name} cannot be read: it is not a file")
    if about.st_size > _MAX_FILE_BYTES:
        raise UsageError(f"the preset file {path.name} cannot be read: it is larger than 1 MiB")


def _require_known_placeholders(preset: PresetAgent, path: Path) -> None:
    (agent,) = agents_of([preset])
    for capability in agent.capabilities:
        try:
            render_tokens(capability, task_title="", args={}, prompt_additions="")
        except ArgumentsError as error:
            raise UsageError(f"{path}, agent {preset.slug}, capability {capability.key}: {error}") from error


def _reason(error: OSError | ValueError) -> str:
    return (error.strerror or str(error)).lower() if isinstance(error, OSError) else str(error)


def _problem(path: Path, message: str) -> PresetProblem:
    return PresetProblem(path=path, message=message, hint=_HINT)
