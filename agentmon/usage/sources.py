"""Finds the files in which agents on this computer keep what they were billed for."""

from __future__ import annotations

import json
import os
import re
import stat
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Final

from agentmon.usage.ages import begun_and_ended_ms
from agentmon.usage.reading import ReadingProblem

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping

CLAUDE: Final = "claude"
CODEX: Final = "codex"
GEMINI: Final = "gemini"
OPENCODE: Final = "opencode"
QWEN: Final = "qwen"
COPILOT: Final = "copilot"
AMP: Final = "amp"
_MAX_DEPTH: Final = 8
_ROLLOUT: Final = re.compile(r"^rollout-.*?([0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12})\.jsonl(?:\.zst)?$")
LOG_SUFFIX: Final = "-wal"
_ENDS: Final = (".jsonl", ".json", ".zst", ".db", LOG_SUFFIX)
_OPENCODE_DATABASE: Final = re.compile(r"opencode(?:-[^/]+)?\.db")
_MAX_SETTING_BYTES: Final = 1_048_576
_HASH: Final = re.compile(r"[0-9a-f]{64}")


class SourceKind(StrEnum):
    """How a source is read."""

    FILE = "file"
    """Lines, or one document."""
    DATABASE = "database"
    FOLDER = "folder"
    """A file for each message."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceFile:
    """One file to be read, as it was when it was found; of a folder and a database with what belongs to it."""

    agent_slug: str
    path: str
    kind: SourceKind = SourceKind.FILE
    thread_key: str
    """Names what the file is about beyond its path: a rollout keeps it while it is compressed and unpacked again."""
    size: int
    """In bytes, as the file lies there."""
    mtime_ns: int
    inode: int
    project_hint: str = ""
    """The folder of the project, where the place of the file tells it and its records do not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SourcePlace:
    """A folder in which an agent's files are looked for."""

    agent_slug: str
    path: str
    problem: str = ""
    """Why nothing can be found there; empty when it can be read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Entry:
    path: str
    size: int
    mtime_ns: int
    inode: int
    device: int


def list_places(environ: Mapping[str, str]) -> list[SourcePlace]:
    """Return the folders in which the agents' files are looked for, those that are not there as well."""
    folders = [
        *((CLAUDE, folder) for folder in _claude_folders(environ)),
        *((CODEX, folder) for folder in _codex_folders(environ)),
        (GEMINI, _gemini_home(environ) / "tmp"),
        *((OPENCODE, folder) for folder in _opencode_homes(environ)),
        (QWEN, _qwen_home(environ) / "projects"),
        (COPILOT, _copilot_home(environ) / "session-state"),
        (AMP, _data_home(environ) / "amp" / "threads"),
    ]
    return [SourcePlace(agent_slug=slug, path=str(folder), problem=_problem_with(folder)) for slug, folder in folders]


def find_sources(
    environ: Mapping[str, str],
    *,
    known_paths: Collection[str] = (),
    find_folders: Callable[[], Iterable[str]] = tuple,
    problems: list[ReadingProblem] | None = None,
) -> list[SourceFile]:
    """Return the files of all agents that can be read here, oldest first, each once.

    The order is that in which they are to be read first: of two files with the same unmarked history, the one that
    ended earlier owns it.

    Args:
        environ: Says where the agents keep their files.
        known_paths: Of files that were read before: they are not opened to learn their age.
        find_folders: Gives folders in which agents may have worked; only called where the place of a file has nothing
            but the hash of one.
        problems: Gets the folders that could not be read.
    """
    seen: set[tuple[int, int]] = set()
    found: list[SourceFile] = []
    report = problems if problems is not None else []
    finders = _FINDERS | {GEMINI: partial(_find_gemini, find_folders=find_folders)}
    for find in finders.values():
        found += find(environ, seen, report)
    ages = {source.path: _age(source, known_paths) for source in found}
    return sorted(found, key=lambda source: ages[source.path])


def find_sources_of(agent_slug: str, environ: Mapping[str, str]) -> list[SourceFile]:
    """Return the files of one agent that can be read here; none of an agent whose files nobody knows."""
    find = _FINDERS.get(agent_slug)
    return [] if find is None else find(environ, set(), [])


def paths_of_source(path: str) -> tuple[str, ...]:
    """Return the paths of sources to which what changed at a path may belong, the likeliest first."""
    return path, path.removesuffix(LOG_SUFFIX), str(Path(path).parent)


def may_be_source(path: str) -> bool:
    """Return whether a source may be there, or below, that was not there before; other programs' files are none."""
    place = Path(path)
    return place.is_dir() or (path.endswith(_ENDS) and place.exists())


def look_again(source: SourceFile) -> SourceFile | None:
    """Return the source as it is by now; None when it is gone."""
    if source.kind is SourceKind.FOLDER:
        return _session_folder(Path(source.path), [])
    try:
        facts = Path(source.path).stat()
    except OSError:
        return None
    entry = _entry(source.path, facts)
    size, mtime_ns = _with_log(entry) if source.kind is SourceKind.DATABASE else (entry.size, entry.mtime_ns)
    return replace(source, size=size, mtime_ns=mtime_ns, inode=entry.inode)


def _claude_folders(environ: Mapping[str, str]) -> list[Path]:
    named = [part.strip() for part in environ.get("CLAUDE_CONFIG_DIR", "").split(",") if part.strip()]
    home = _home(environ)
    if named:
        roots = [_expanded(part, home) for part in named]
    else:
        config_home = environ.get("XDG_CONFIG_HOME", "")
        roots = [(Path(config_home) if config_home else home / ".config") / "claude", home / ".claude"]
    folders = [root if root.name == "projects" else root / "projects" for root in roots]
    return list(dict.fromkeys(folders))


def _codex_folders(environ: Mapping[str, str]) -> list[Path]:
    home = _home(environ)
    named = environ.get("CODEX_HOME", "").strip()
    root = _expanded(named, home) if named else home / ".codex"
    return [root / "sessions", root / "archived_sessions"]


def _gemini_home(environ: Mapping[str, str]) -> Path:
    home = _home(environ)
    named = environ.get("GEMINI_CLI_HOME", "").strip()
    return (_expanded(named, home) if named else home) / ".gemini"


def _data_home(environ: Mapping[str, str]) -> Path:
    data_home = Path(environ.get("XDG_DATA_HOME", ""))
    return data_home if data_home.is_absolute() else _home(environ) / ".local" / "share"


def _qwen_home(environ: Mapping[str, str]) -> Path:
    home = _home(environ)
    named = environ.get("QWEN_RUNTIME_DIR", "").strip() or environ.get("QWEN_HOME", "").strip()
    return _expanded(named, home) if named else home / ".qwen"


def _copilot_home(environ: Mapping[str, str]) -> Path:
    home = _home(environ)
    named = environ.get("COPILOT_HOME", "").strip()
    return _expanded(named, home) if named else home / ".copilot"


def _home(environ: Mapping[str, str]) -> Path:
    named = environ.get("HOME", "")
    return Path(named) if named else Path.home()


def _expanded(named: str, home: Path) -> Path:
    return home / named[2:] if named.startswith("~/") else home if named == "~" else Path(named).absolute()


def _problem_with(folder: Path) -> str:
    try:
        with os.scandir(folder):
            return ""
    except OSError as error:
        return (error.strerror or "it cannot be read").lower()


def _find_codex(
    environ: Mapping[str, str], seen: set[tuple[int, int]], report: list[ReadingProblem]
) -> list[SourceFile]:
    """Return the rollouts; one that lies there unpacked and compressed is taken unpacked."""
    by_name: dict[str, SourceFile] = {}
    for folder in _codex_folders(environ):
        is_archive = folder.name == "archived_sessions"
        for entry in _files_below(folder, seen, report):
            named = _ROLLOUT.match(Path(entry.path).name)
            if named is None:
                continue
            source = _source(CODEX, entry, f"archived/{named[1]}" if is_archive else named[1])
            # A thread may go on in a file of another day.
            name = entry.path.removesuffix(".zst")
            present = by_name.get(name)
            if present is None or _preference(source) > _preference(present):
                by_name[name] = source
    return list(by_name.values())


def _preference(source: SourceFile) -> tuple[bool, int, str]:
    return source.size > 0 and not source.path.endswith(".zst"), source.size, source.path


def _is_chat(path: str) -> bool:
    parts = Path(path).parts
    return "chats" in parts[-3:-1] and path.endswith((".jsonl", ".json"))


def _opencode_homes(environ: Mapping[str, str]) -> list[Path]:
    home = _data_home(environ) / "opencode"
    named = _named_database(environ)
    return [home] if named is None else list(dict.fromkeys((home, named.parent)))


def _named_database(environ: Mapping[str, str]) -> Path | None:
    named = environ.get("OPENCODE_DB", "")
    return _data_home(environ) / "opencode" / named if named and named != ":memory:" else None


def _opencode_databases(
    environ: Mapping[str, str], seen: set[tuple[int, int]], report: list[ReadingProblem]
) -> list[SourceFile]:
    named, default_home = _named_database(environ), _data_home(environ) / "opencode"
    return [
        replace(_source(OPENCODE, entry, entry.path), kind=SourceKind.DATABASE, size=size, mtime_ns=mtime_ns)
        for home in _opencode_homes(environ)
        for entry in _files_below(home, seen, report, max_depth=0)
        if Path(entry.path) == named or (home == default_home and _OPENCODE_DATABASE.fullmatch(Path(entry.path).name))
        for size, mtime_ns in [_with_log(entry)]
    ]


def _with_log(entry: _Entry) -> tuple[int, int]:
    """Return size and time of a database together with the log beside it, in which its newest changes are."""
    try:
        log = Path(f"{entry.path}{LOG_SUFFIX}").stat()
    except OSError:
        return entry.size, entry.mtime_ns
    return entry.size + log.st_size, max(entry.mtime_ns, log.st_mtime_ns)


def _opencode_folders(home: Path, report: list[ReadingProblem]) -> list[SourceFile]:
    """Return the sessions of older releases, a folder with a file for each message."""
    try:
        folders = sorted(folder for folder in (home / "storage" / "message").iterdir() if folder.is_dir())
    except OSError:
        return []
    return [source for folder in folders if (source := _session_folder(folder, report)) is not None]


def _session_folder(folder: Path, report: list[ReadingProblem]) -> SourceFile | None:
    entries = list(_files_below(folder, set(), report, max_depth=0))
    try:
        inode = folder.stat().st_ino
    except OSError:
        return None
    if not entries:
        return None
    return SourceFile(
        agent_slug=OPENCODE,
        path=str(folder),
        kind=SourceKind.FOLDER,
        thread_key=str(folder),
        size=sum(entry.size for entry in entries),
        mtime_ns=max(entry.mtime_ns for entry in entries),
        inode=inode,
    )


class _ProjectHints:
    """Knows which folder of Gemini's belongs to which project."""

    def __init__(self, gemini_home: Path, find_folders: Callable[[], Iterable[str]]) -> None:
        self._tmp = gemini_home / "tmp"
        self._find_folders = find_folders
        self._by_hash: dict[str, str] | None = None
        self._folders: dict[str, str] = {}
        self._by_name: dict[str, str] = {}
        try:
            projects = json.loads(_small_text(gemini_home / "projects.json")).get("projects", {})
        except (AttributeError, RecursionError, ValueError):
            projects = {}
        if isinstance(projects, dict):
            for folder, name in projects.items():
                self._by_name[_hash_of(folder)] = folder
                if isinstance(name, str):
                    self._by_name[name] = folder

    def folder_of(self, path: str) -> str:
        """Return the folder of the project of a chat, or an empty text."""
        try:
            name = Path(path).relative_to(self._tmp).parts[0]
        except (IndexError, ValueError):
            return ""
        if name not in self._folders:
            told = _small_text(self._tmp / name / ".project_root").strip()
            self._folders[name] = told or self._by_name.get(name, "") or self._folder_with_hash(name)
        return self._folders[name]

    def _folder_with_hash(self, name: str) -> str:
        if not _HASH.fullmatch(name):
            return ""
        if self._by_hash is None:
            self._by_hash = {_hash_of(folder): folder for folder in self._find_folders()}
        return self._by_hash.get(name, "")


def _hash_of(folder: str) -> str:
    return sha256(folder.encode("utf-8", "replace")).hexdigest()


def _small_text(path: Path) -> str:
    try:
        with path.open("rb") as opened:
            return opened.read(_MAX_SETTING_BYTES).decode("utf-8", "replace")
    except OSError:
        return ""


def _files_below(
    folder: Path, seen: set[tuple[int, int]], report: list[ReadingProblem], *, max_depth: int = _MAX_DEPTH
) -> Iterator[_Entry]:
    """Yield the regular files below, each file and each folder once however many links lead to it."""
    waiting = [(str(folder), 0)]
    while waiting:
        path, depth = waiting.pop()
        try:
            with os.scandir(path) as entries:
                listed = sorted(entries, key=lambda entry: entry.name)
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError as error:
            report.append(ReadingProblem(offset=0, reason=f"{path}: {error.strerror or error}"))
            continue
        for entry in listed:
            try:
                facts = entry.stat()
            except OSError:
                continue
            identity = (facts.st_dev, facts.st_ino)
            if identity in seen:
                continue
            if stat.S_ISDIR(facts.st_mode) and depth < max_depth:
                seen.add(identity)
                waiting.append((entry.path, depth + 1))
            elif stat.S_ISREG(facts.st_mode):
                seen.add(identity)
                yield _entry(entry.path, facts)


def _entry(path: str, facts: os.stat_result) -> _Entry:
    return _Entry(path=path, size=facts.st_size, mtime_ns=facts.st_mtime_ns, inode=facts.st_ino, device=facts.st_dev)


def _source(agent_slug: str, entry: _Entry, thread_key: str, project_hint: str = "") -> SourceFile:
    return SourceFile(
        agent_slug=agent_slug,
        path=entry.path,
        thread_key=thread_key,
        size=entry.size,
        mtime_ns=entry.mtime_ns,
        inode=entry.inode,
        project_hint=project_hint,
    )


def _age(source: SourceFile, known_paths: Collection[str]) -> tuple[int, int, int, str]:
    changed_ms = source.mtime_ns // 1_000_000
    if source.agent_slug != CLAUDE or source.path in known_paths:
        return changed_ms, changed_ms, source.size, source.path
    begun_ms, ended_ms = begun_and_ended_ms(source.path)
    return begun_ms or changed_ms, ended_ms or changed_ms, source.size, source.path


_Seen = set[tuple[int, int]]


def _find_claude(environ: Mapping[str, str], seen: _Seen, report: list[ReadingProblem]) -> list[SourceFile]:
    return [
        _source(CLAUDE, entry, entry.path)
        for folder in _claude_folders(environ)
        for entry in _files_below(folder, seen, report)
        if entry.path.endswith(".jsonl")
    ]


def _find_gemini(
    environ: Mapping[str, str],
    seen: _Seen,
    report: list[ReadingProblem],
    *,
    find_folders: Callable[[], Iterable[str]] = tuple,
) -> list[SourceFile]:
    home = _gemini_home(environ)
    hints = _ProjectHints(home, find_folders)
    return [
        _source(GEMINI, entry, entry.path, hints.folder_of(entry.path))
        for entry in _files_below(home / "tmp", seen, report)
        if _is_chat(entry.path)
    ]


def _find_opencode(environ: Mapping[str, str], seen: _Seen, report: list[ReadingProblem]) -> list[SourceFile]:
    folders = _opencode_folders(_data_home(environ) / "opencode", report)
    return [*_opencode_databases(environ, seen, report), *folders]


def _find_qwen(environ: Mapping[str, str], seen: _Seen, report: list[ReadingProblem]) -> list[SourceFile]:
    return [
        _source(QWEN, entry, entry.path)
        for entry in _files_below(_qwen_home(environ) / "projects", seen, report)
        if Path(entry.path).parent.name == "chats" and entry.path.endswith(".jsonl")
    ]


def _find_copilot(environ: Mapping[str, str], seen: _Seen, report: list[ReadingProblem]) -> list[SourceFile]:
    return [
        _source(COPILOT, entry, entry.path)
        for entry in _files_below(_copilot_home(environ) / "session-state", seen, report, max_depth=1)
        if entry.path.endswith(".jsonl")
    ]


def _find_amp(environ: Mapping[str, str], seen: _Seen, report: list[ReadingProblem]) -> list[SourceFile]:
    return [
        _source(AMP, entry, entry.path)
        for entry in _files_below(_data_home(environ) / "amp" / "threads", seen, report, max_depth=0)
        if entry.path.endswith(".json")
    ]


_FINDERS: Final = {
    CLAUDE: _find_claude,
    CODEX: _find_codex,
    GEMINI: _find_gemini,
    OPENCODE: _find_opencode,
    QWEN: _find_qwen,
    COPILOT: _find_copilot,
    AMP: _find_amp,
}
