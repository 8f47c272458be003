"""Which package of the system owns a file: dpkg, pacman and apk keep lists as text."""

from __future__ import annotations

import re
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

Owners = dict[str, tuple[str, str | None, str | None]]
"""By path: name, section and version."""


def dpkg_owners(wanted: frozenset[str], root: Path) -> Owners:
    """Return the Debian packages of those paths that one has; 700 packages take 0.1 s."""
    folder = root / "var/lib/dpkg"
    owners: dict[str, str] = {}
    # Line by line, since the lists of some packages are long; with the ends, so that no line is made anew.
    places = {path.encode("utf-8", "surrogateescape") + b"\n": path for path in wanted}
    with suppress(OSError):
        for path in (folder / "info").glob("*.list"):
            with suppress(OSError), path.open("rb") as lines:
                for line in lines:
                    if line in places:
                        owners[places[line]] = path.name.removesuffix(".list").partition(":")[0]
    owners |= {path: name for path, name in _diverted(folder / "diversions") if path in wanted}
    facts = _dpkg_facts(folder / "status", frozenset(owners.values())) if owners else {}
    return {path: (name, *facts.get(name, (None, None))) for path, name in owners.items()}


def _dpkg_facts(status: Path, names: frozenset[str]) -> Mapping[str, tuple[str | None, str | None]]:
    """Return section and version of those packages."""
    found: dict[str, tuple[str | None, str | None]] = {}
    name = ""
    with suppress(OSError), status.open(encoding="utf-8", errors="replace") as lines:
        for line in lines:
            key, _, value = line.partition(":")
            if key == "Package":
                name = value.strip()
            elif name in names and key in {"Section", "Version"}:
                section, version = found.get(name, (None, None))
                found[name] = (value.strip(), version) if key == "Section" else (section, value.strip())
    return found


def _diverted(path: Path) -> Iterator[tuple[str, str]]:
    """Yield what stands elsewhere since another package took its place, and to whom the place belongs now."""
    lines = _read(path).splitlines()
    for original, moved, package in zip(lines[::3], lines[1::3], lines[2::3], strict=False):
        if package != ":":
            yield original, package
        del moved


def pacman_owners(wanted: frozenset[str], root: Path) -> Owners:
    """Return the Arch packages of those paths that one has."""
    owners: Owners = {}
    with suppress(OSError):
        for folder in (root / "var/lib/pacman/local").glob("*-*"):
            files = {f"/{line}" for line in _read(folder / "files").splitlines()}
            found = wanted & files
            if found:
                facts = _pacman_facts(_read(folder / "desc"))
                name = facts.get("NAME", folder.name.rsplit("-", 2)[0])
                owners |= dict.fromkeys(found, (name, facts.get("GROUPS"), facts.get("VERSION")))
    return owners


def _pacman_facts(text: str) -> dict[str, str]:
    return dict(re.findall(r"^%(\w+)%\n(.+)$", text, re.MULTILINE))


def apk_owners(wanted: frozenset[str], root: Path) -> Owners:
    """Return the Alpine packages of those paths that one has."""
    owners: Owners = {}
    name, version, folder = "", None, ""
    for line in _read(root / "lib/apk/db/installed").splitlines():
        kind, _, value = line.partition(":")
        match kind:
            case "P":
                name, version, folder = value, None, ""
            case "V":
                version = value
            case "F":
                folder = value
            case "R" if f"/{folder}/{value}" in wanted:
                owners[f"/{folder}/{value}"] = (name, None, version)
            case _:
                continue
    return owners


def _read(path: Path) -> str:
    with suppress(OSError):
        return path.read_text(encoding="utf-8", errors="replace")
    return ""
