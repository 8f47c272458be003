"""Which package a program belongs to, read from what package managers keep on the disk; none of them is run."""

from __future__ import annotations

import json
import re
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Final

from agentmon.domain.programs import ProgramKind
from agentmon.runners.discovery.rpm_database import rpm_owners
from agentmon.runners.discovery.system_packages import apk_owners, dpkg_owners, pacman_owners

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from agentmon.domain.programs import Program


@dataclass(frozen=True, slots=True, kw_only=True)
class Package:
    """What a program came with."""

    manager: str
    name: str
    section: str | None = None
    """What sort of thing the manager says it is, such as ``vcs``."""
    version: str | None = None


_NODE_MODULE: Final = re.compile(r"^(?P<folder>.*/node_modules/(?P<name>@[^/]+/[^/]+|[^@/.][^/]*))/")
_BREW: Final = re.compile(r"/(?P<place>Cellar|Caskroom)/(?P<name>[^/]+)/(?P<version>[^/]+)/")
_NIX: Final = re.compile(r"^/nix/store/[a-z0-9]{32}-(?P<name>.+?)(?:-(?P<version>\d[^/]*?))?/")
_PIPX: Final = re.compile(r"^(?P<folder>.*/pipx/venvs/(?P<name>[^/]+))/")
_UV_TOOL: Final = re.compile(r"^(?P<folder>.*/uv/tools/(?P<name>[^/]+))/")
_MISE: Final = re.compile(r"/(?P<manager>mise|\.asdf|asdf)/installs/(?P<name>[^/]+)/(?P<version>[^/]+)/")
_SNAP: Final = re.compile(r"^/snap/bin/(?P<name>[^./]+)")
_FLATPAK: Final = re.compile(r"/flatpak/exports/bin/(?P<name>[^/]+)$")
_VERSIONS: Final = re.compile(
    r"/\.?(?P<manager>pyenv|rbenv|nodenv|nvm|fnm)/(?:versions|versions/node|node-versions)/(?P<version>v?\d[^/]*)/"
)
_LANGUAGES: Final = {"pyenv": "python", "rbenv": "ruby", "nodenv": "node", "nvm": "node", "fnm": "node"}
_RUST_TOOLCHAIN: Final = re.compile(r"/toolchains/(?P<name>[^/]+)/bin/[^/]+$")
_CRATE: Final = re.compile(r"^(?P<name>\S+) (?P<version>\S+)")
_MOST_BYTES: Final = 4 * 1024 * 1024


def with_packages(programs: Sequence[Program], *, root: Path = Path("/")) -> tuple[Program, ...]:
    """Return the programs, each with its package where one can be told.

    Args:
        programs: As the scan found them.
        root: Where the system's own package managers keep their files.
    """
    wanted = frozenset(path for program in programs for path in _names(program))
    system = {
        manager: owners(wanted, root)
        for manager, owners in (
            ("dpkg", dpkg_owners),
            ("rpm", rpm_owners),
            ("pacman", pacman_owners),
            ("apk", apk_owners),
        )
    }
    return tuple(
        _with_package(program, _own_package(program) or _system_package(program, system)) for program in programs
    )


def _names(program: Program) -> tuple[str, ...]:
    """Return the paths under which a package may list the program, with the folders that are one on most systems."""
    if program.kind is ProgramKind.ALIAS:
        return ()
    own = (program.real_path, program.path) if program.kind is not ProgramKind.WRAPPER else (program.path,)
    moved = [path[4:] if path.startswith(("/usr/bin/", "/usr/sbin/", "/usr/lib")) else f"/usr{path}" for path in own]
    return (*own, *moved)


def _system_package(
    program: Program, system: Mapping[str, Mapping[str, tuple[str, str | None, str | None]]]
) -> Package | None:
    for manager, owners in system.items():
        for path in _names(program) if owners else ():
            if path in owners:
                name, section, version = owners[path]
                return Package(manager=manager, name=name, section=section, version=version)
    return None


def _with_package(program: Program, package: Package | None) -> Program:
    if package is None:
        return program
    return replace(
        program,
        package_manager=package.manager,
        package_name=package.name,
        package_section=package.section,
        package_version=package.version,
    )


def _own_package(program: Program) -> Package | None:
    """Return the package as the program's own place tells it; None where only the system's lists can."""
    if program.kind is ProgramKind.ALIAS:
        return None
    for path in dict.fromkeys((program.real_path, program.path)):
        for read in (
            _of_node,
            _of_pipx,
            _of_brew,
            _of_nix,
            _of_manager,
            _of_desktop,
            _of_cargo,
            _of_python,
            _of_language,
        ):
            package = read(path)
            if package is not None:
                return package
    return None


def _of_node(path: str) -> Package | None:
    found = _NODE_MODULE.match(path)
    if found is None:
        return None
    return Package(manager="npm", name=found["name"], version=_node_version(found["folder"]))


@lru_cache(maxsize=1024)
def _node_version(folder: str) -> str | None:
    document = _json(Path(folder) / "package.json")
    version = document.get("version")
    return version if isinstance(version, str) else None


def _of_pipx(path: str) -> Package | None:
    for manager, pattern in (("pipx", _PIPX), ("uv", _UV_TOOL)):
        found = pattern.match(path)
        if found is not None:
            versions = _distributions(found["folder"])
            wanted = found["name"].lower().replace("_", "-")
            version = next(
                (known for name, known in versions.values() if name.lower().replace("_", "-") == wanted), None
            )
            return Package(manager=manager, name=found["name"], version=version)
    return None


def _of_brew(path: str) -> Package | None:
    found = _BREW.search(path)
    if found is None:
        return None
    section = "cask" if found["place"] == "Caskroom" else None
    return Package(manager="brew", name=found["name"], version=found["version"], section=section)


def _of_nix(path: str) -> Package | None:
    found = _NIX.match(path)
    return None if found is None else Package(manager="nix", name=found["name"], version=found["version"])


def _of_manager(path: str) -> Package | None:
    found = _MISE.search(path)
    if found is not None:
        return Package(manager=found["manager"].lstrip("."), name=found["name"], version=found["version"])
    found = _RUST_TOOLCHAIN.search(path)
    return None if found is None else Package(manager="rustup", name=found["name"])


def _of_desktop(path: str) -> Package | None:
    for manager, pattern in (("snap", _SNAP), ("flatpak", _FLATPAK)):
        found = pattern.search(path)
        if found is not None:
            return Package(manager=manager, name=found["name"])
    return None


def _of_cargo(path: str) -> Package | None:
    folder, _, name = path.rpartition("/")
    return _crates(folder).get(name) if folder.endswith("/bin") else None


@lru_cache(maxsize=64)
def _crates(folder: str) -> Mapping[str, Package]:
    """Return what ``cargo install`` noted down of a folder of programs."""
    installs = _json(Path(folder).parent / ".crates2.json").get("installs")
    found: dict[str, Package] = {}
    for crate, entry in installs.items() if isinstance(installs, dict) else ():
        named = _CRATE.match(str(crate))
        programs = entry.get("bins") if isinstance(entry, dict) else None
        if named is not None and isinstance(programs, list):
            package = Package(manager="cargo", name=named["name"], version=named["version"])
            found |= dict.fromkeys(map(str, programs), package)
    return found


def _of_python(path: str) -> Package | None:
    folder, _, name = path.rpartition("/")
    if not folder.endswith("/bin") or folder in {"/usr/bin", "/bin"}:
        return None
    found = _distributions(folder.removesuffix("/bin")).get(name)
    return None if found is None else Package(manager="pip", name=found[0], version=found[1])


@lru_cache(maxsize=64)
def _distributions(prefix: str) -> Mapping[str, tuple[str, str]]:
    """Return name and version of the Python distribution of each program below a prefix, as their records say."""
    found: dict[str, tuple[str, str]] = {}
    with suppress(OSError):
        for record in sorted(Path(prefix).glob("lib/python3*/site-packages/*.dist-info/RECORD")):
            name, _, version = record.parent.name.removesuffix(".dist-info").rpartition("-")
            text = _read(record)
            for program in re.findall(r"^(?:\.\./)+bin/([^/,\n]+),", text, re.MULTILINE):
                found.setdefault(program, (name, version))
    return found


def _of_language(path: str) -> Package | None:
    found = _VERSIONS.search(path)
    if found is None:
        return None
    return Package(manager=found["manager"], name=_LANGUAGES[found["manager"]], version=found["version"].lstrip("v"))


def _json(path: Path) -> Mapping[str, object]:
    try:
        document = json.loads(_read(path) or "{}")
    except ValueError:
        return {}
    return document if isinstance(document, dict) else {}


def _read(path: Path) -> str:
    with suppress(OSError), path.open("rb") as file:
        return file.read(_MOST_BYTES).decode("utf-8", "replace")
    return ""


def forget_packages() -> None:
    """Forget what was read of packages, so that the next scan sees what is there then."""
    for cached in (_node_version, _crates, _distributions):
        cached.cache_clear()
