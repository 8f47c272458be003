"""What stands at a place of the PATH, told by its links and its first bytes; nothing is run."""

from __future__ import annotations

import os
import re
import shlex
import stat
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

from agentmon.domain.programs import ProgramKind
from agentmon.runners.discovery.places import version_key

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

HEAD_BYTES: Final = 4096
_BINARIES: Final = (
    b"\x7fELF",
    b"\xcf\xfa\xed\xfe",
    b"\xce\xfa\xed\xfe",
    b"\xca\xfe\xba\xbe",
    b"MZ",
)
"""How ELF, Mach-O (64 and 32 bits, several machines) and Windows programs begin."""
_SHELLS: Final = re.compile(rb"#!\s*(?:\S*/)?(?:env\s+(?:-S\s+)?)?(?:\S*/)?(?:ba|da|z|k|a)?sh\b")
_SHIM_MANAGERS: Final = ("pyenv", "rbenv", "nodenv", "jenv", "goenv", "plenv", "phpenv", "asdf", "mise", "volta")
_SHIM_WORDS: Final = re.compile(rb"(?:pyenv|rbenv|nodenv|jenv|goenv|plenv|phpenv|asdf|mise)\"?\s+(?:exec|x)\b")
_MULTI_SHIMS: Final = {"rustup": "rustup", "rustup-init": "rustup", "volta-shim": "volta", "mise": "mise"}
"""Programs that are many by the name they are called by, and the version manager each belongs to."""
_PREPARATION: Final = re.compile(
    r"(?:export\s+|readonly\s+|local\s+)?[A-Za-z_]\w*=(?:\"[^\"`]*\"|'[^']*'|[^\s;&|`]*)"
    r"(?:\s+[A-Za-z_]\w*=(?:\"[^\"`]*\"|'[^']*'|[^\s;&|`]*))*"
    r"|export(?:\s+[A-Za-z_]\w*)+|unset(?:\s+\w+)+|set\s+-\w+(?:\s+\w+)?|umask\s+\d+|cd\s+\S+|shift|:"
)
"""A line of a shell script that only prepares for the next one."""
_ASSIGNMENT: Final = re.compile(r"[A-Za-z_]\w*=")
_MOST_VERSIONS: Final = 200


def kind_of(path: str, status: os.stat_result) -> tuple[ProgramKind, str] | None:
    """Return what the file is, and where it leads; None when it is no program and not meant to be one.

    Args:
        path: Absolute, as it stands on the PATH.
        status: Of what its links end at.
    """
    if not stat.S_ISREG(status.st_mode):
        return None
    real_path = os.path.realpath(path)
    head = _head(path)
    if not os.access(path, os.X_OK):
        is_meant = head.startswith((b"#!", *_BINARIES)) and "." not in path.rpartition("/")[2]
        return (ProgramKind.BROKEN, real_path) if is_meant else None
    shim = _shim_target(path, real_path, head)
    if shim is not None:
        return ProgramKind.SHIM, shim
    if head.startswith(_BINARIES) or not _is_text(head):
        return ProgramKind.BINARY, real_path
    if _SHELLS.match(head) and len(head) < HEAD_BYTES:
        target = _wrapped(head.decode("utf-8", "replace"), Path(real_path).parent)
        if target is not None:
            return ProgramKind.WRAPPER, os.path.realpath(target) if os.sep in target else target
    return ProgramKind.SCRIPT, real_path


def _head(path: str) -> bytes:
    """Return the first bytes; empty for a program that may be run and not read."""
    try:
        file = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY)
    except OSError:
        return b""
    try:
        return os.read(file, HEAD_BYTES)
    except OSError:
        return b""
    finally:
        os.close(file)


def _is_text(head: bytes) -> bool:
    return head.startswith(b"#!") or (bool(head) and b"\0" not in head)


def _shim_target(path: str, real_path: str, head: bytes) -> str | None:
    """Return what a version manager's placeholder starts, or the manager when that cannot be told; None for others."""
    folder, _, name = path.rpartition("/")
    real_name = real_path.rpartition("/")[2]
    manager = _MULTI_SHIMS.get(real_name, "")
    if manager and name not in {real_name, manager}:
        return _chosen(manager, Path(real_path), folder, name) or real_path
    root, _, last = folder.rpartition("/")
    owner = root.rpartition("/")[2].lstrip(".")
    if last == "shims" and (owner in _SHIM_MANAGERS or _SHIM_WORDS.search(head)):
        return _chosen(owner, Path(real_path), folder, name) or real_path
    if _SHIM_WORDS.search(head) and head.startswith(b"#!"):
        return real_path
    return None


def _chosen(manager: str, program: Path, folder: str, name: str) -> str | None:
    """Return the newest version's program, or that of the version that the manager's own file names first."""
    root = Path(folder).parent
    match manager:
        case "rustup":
            found = _newest(_rustup_home(program).glob(f"toolchains/*/bin/{name}"), _settings(_rustup_home(program)))
        case "volta":
            found = _newest(root.glob(f"tools/image/*/*/bin/{name}"), ())
        case "asdf" | "mise":
            versions = _tool_versions(Path.home() / ".tool-versions")
            found = _newest(root.glob(f"installs/*/*/bin/{name}"), versions)
        case _:
            found = _newest(root.glob(f"versions/*/bin/{name}"), _first_words(root / "version"))
    return found


def _newest(found: Iterator[Path], chosen: Sequence[str]) -> str | None:
    paths = []
    with suppress(OSError):
        for path in found:
            paths.append(path)
            if len(paths) == _MOST_VERSIONS:
                break
    for version in chosen:
        for path in paths:
            if path.parent.parent.name == version:
                return str(path)
    return str(max(paths, key=lambda path: version_key(path.parent.parent.name))) if paths else None


def _rustup_home(program: Path) -> Path:
    return Path(os.environ.get("RUSTUP_HOME") or program.parent.parent.parent / ".rustup")


def _settings(root: Path) -> tuple[str, ...]:
    with suppress(OSError, UnicodeDecodeError):
        text = (root / "settings.toml").read_text(encoding="utf-8")
        return tuple(re.findall(r'^default_toolchain\s*=\s*"([^"]+)"', text, re.MULTILINE))
    return ()


def _first_words(path: Path) -> tuple[str, ...]:
    with suppress(OSError, UnicodeDecodeError):
        return tuple(path.read_text(encoding="utf-8")[:HEAD_BYTES].split())
    return ()


def _tool_versions(path: Path) -> tuple[str, ...]:
    with suppress(OSError, UnicodeDecodeError):
        lines = path.read_text(encoding="utf-8")[: 16 * HEAD_BYTES].splitlines()
        return tuple(word for line in lines for word in line.partition("#")[0].split()[1:])
    return ()


def _wrapped(script: str, folder: Path) -> str | None:
    """Return the program that a shell script does nothing but start; None when it does more."""
    lines = [line.strip() for line in script.replace("\\\n", " ").splitlines()[1:]]
    lines = [line for line in lines if line and not line.startswith("#")]
    if not lines or not all(_PREPARATION.fullmatch(line) for line in lines[:-1]):
        return None
    try:
        words = shlex.split(lines[-1])
    except ValueError:
        return None
    is_exec = words[:1] == ["exec"]
    words = words[1:] if is_exec else words
    while words and (words[0] in {"env", "/usr/bin/env"} or _ASSIGNMENT.match(words[0])):
        words = words[1:]
    passes_arguments = '"$@"' in lines[-1] or "$*" in lines[-1] or lines[-1].endswith("$@")
    if not words or not (is_exec or passes_arguments) or re.search(r"[;|&<>`]|\$\(", lines[-1].replace("2>&1", "")):
        return None
    target = words[0]
    for written in ("$(dirname $0)", "${0%/*}", '$(dirname "$0")'):
        target = target.replace(written, str(folder))
    if "$" in target:
        return None
    return target
