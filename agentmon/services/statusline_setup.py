"""Puts agentmon's status line into the settings of Claude Code, and takes it out again.

Only the text of one member changes: everything else in the file stays byte for byte, also what JSON readers would lose.
"""

from __future__ import annotations

import contextlib
import json
import os
import shlex
from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Final

from agentmon.domain.errors import UsageError
from agentmon.private_folders import make_private_folder

if TYPE_CHECKING:
    from collections.abc import Mapping

_MEMBER: Final = "statusLine"
_COMMAND: Final = "command"
_MAX_BYTES: Final = 4_000_000
_BYTE_ORDER_MARK: Final = "\ufeff"
_SPACES: Final = frozenset(" \t\r\n")
_DECODER: Final = json.JSONDecoder(strict=False)


class SetupChange(StrEnum):
    """What became of the settings."""

    INSTALLED = "installed"
    ALREADY_INSTALLED = "already_installed"
    REMOVED = "removed"
    NOT_INSTALLED = "not_installed"


@dataclass(frozen=True, slots=True, kw_only=True)
class SetupOutcome:
    """What was done to which file."""

    change: SetupChange
    settings_file: str
    command: str
    """What Claude Code runs from now on; empty when it runs none."""
    chained_command: str
    """The person's own command, whose output is shown first; empty when there is none."""
    backup_file: str
    """How the file was before; empty when nothing changed or there was none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Member:
    """One member of an object in a JSON text, by its places in the text."""

    name: str
    begin: int
    """Of its name."""
    value_begin: int
    end: int
    value: object


def claude_settings_file(environ: Mapping[str, str]) -> Path:
    """Return the settings of Claude Code that count for the person, whether they are there or not."""
    folder = environ.get("CLAUDE_CONFIG_DIR", "").strip()
    home = Path(environ.get("HOME") or Path.home())
    return (Path(folder) if folder else home / ".claude") / "settings.json"


def install(settings_file: Path, own_command: str) -> SetupOutcome:
    """Let Claude Code run agentmon's status line, and that one the command that stands there now.

    Args:
        settings_file: Made when it is missing.
        own_command: How agentmon is called: ``agentmon statusline``.

    Raises:
        UsageError: The file cannot be read or written, is damaged, or has a status line of another kind.
    """
    text = _read(settings_file)
    members = _members(text, settings_file)
    present = _find(members, _MEMBER)
    command = None if present is None else _command_of(text, present, settings_file)
    if command is not None and _is_own(str(command.value)):
        return SetupOutcome(
            change=SetupChange.ALREADY_INSTALLED,
            settings_file=str(settings_file),
            command=str(command.value),
            chained_command=_chained(str(command.value)),
            backup_file="",
        )
    chained = "" if command is None else str(command.value)
    line = f"{own_command} --then {shlex.quote(chained)}" if chained.strip() else own_command
    if command is not None:
        changed = text[: command.value_begin] + json.dumps(line) + text[command.end :]
    else:
        changed = _with_member(text, members, json.dumps({"type": _COMMAND, _COMMAND: line}))
    backup = _write(settings_file, changed)
    return SetupOutcome(
        change=SetupChange.INSTALLED,
        settings_file=str(settings_file),
        command=line,
        chained_command=chained.strip() and chained,
        backup_file=backup,
    )


def remove(settings_file: Path) -> SetupOutcome:
    """Take agentmon's status line out, and put the command back that it ran.

    Raises:
        UsageError: The file cannot be read or written, or is damaged.
    """
    text = _read(settings_file)
    members = _members(text, settings_file)
    present = _find(members, _MEMBER)
    command = None if present is None else _command_of(text, present, settings_file)
    if present is None or command is None or not _is_own(str(command.value)):
        return SetupOutcome(
            change=SetupChange.NOT_INSTALLED,
            settings_file=str(settings_file),
            command="" if command is None else str(command.value),
            chained_command="",
            backup_file="",
        )
    chained = _chained(str(command.value))
    if chained:
        changed = text[: command.value_begin] + json.dumps(chained) + text[command.end :]
    else:
        changed = _without_member(text, members, present)
    return SetupOutcome(
        change=SetupChange.REMOVED,
        settings_file=str(settings_file),
        command=chained,
        chained_command="",
        backup_file=_write(settings_file, changed),
    )


def _read(settings_file: Path) -> str:
    """Return the text of the file, an empty object when it is missing or empty."""
    try:
        with settings_file.open("rb") as file:
            written = file.read(_MAX_BYTES + 1)
        text = written.decode()
    except FileNotFoundError:
        return "{}\n"
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{settings_file} cannot be read: {error}") from error
    if len(written) > _MAX_BYTES:
        raise UsageError(f"{settings_file} is too long to be settings of Claude Code")
    return text if text.strip(_BYTE_ORDER_MARK).strip() else "{}\n"


def _members(text: str, settings_file: Path) -> list[_Member]:
    try:
        told = json.loads(text.removeprefix(_BYTE_ORDER_MARK), strict=False)
        if isinstance(told, dict):
            return _members_at(text, text.index("{"))
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{settings_file} is no JSON: {error}", hint="mend it first; nothing was changed") from error
    raise UsageError(f"{settings_file} holds no JSON object", hint="mend it first; nothing was changed")


def _members_at(text: str, at: int) -> list[_Member]:
    """Return the members of the object that begins there; the text has been read as JSON before."""
    found = []
    at = _skip(text, at + 1)
    while text[at] != "}":
        name, end = _DECODER.raw_decode(text, at)
        value_begin = _skip(text, _skip(text, end) + 1)
        value, value_end = _DECODER.raw_decode(text, value_begin)
        found.append(_Member(name=name, begin=at, value_begin=value_begin, end=value_end, value=value))
        at = _skip(text, value_end)
        if text[at] == ",":
            at = _skip(text, at + 1)
    return found


def _skip(text: str, at: int) -> int:
    """Return the place behind white space, which may be the end."""
    while text[at : at + 1] in _SPACES:
        at += 1
    return at


def _find(members: list[_Member], name: str) -> _Member | None:
    """Return the member of this name; of several the last one, which is the one that counts."""
    return next((member for member in reversed(members) if member.name == name), None)


def _command_of(text: str, present: _Member, settings_file: Path) -> _Member:
    """Return the command of the status line."""
    command = _find(_members_at(text, present.value_begin), _COMMAND) if isinstance(present.value, dict) else None
    if command is None or not isinstance(command.value, str):
        raise UsageError(
            f"the {_MEMBER} in {settings_file} runs no command",
            hint="agentmon can only chain a command; nothing was changed",
        )
    return command


def _with_member(text: str, members: list[_Member], value: str) -> str:
    """Return the text with the member behind all others, laid out as these are."""
    if members:
        last = members[-1]
        return f"{text[: last.end]},{_before(text, last)}{json.dumps(_MEMBER)}: {value}{text[last.end :]}"
    begin = text.index("{") + 1
    return f"{text[:begin]}\n  {json.dumps(_MEMBER)}: {value}\n{text[_skip(text, begin) :]}"


def _before(text: str, member: _Member) -> str:
    """Return the white space before a member."""
    begin = member.begin
    while text[begin - 1] in _SPACES:
        begin -= 1
    return text[begin : member.begin]


def _without_member(text: str, members: list[_Member], member: _Member) -> str:
    place = members.index(member)
    if place > 0:
        return text[: members[place - 1].end] + text[member.end :]
    if len(members) > 1:
        return text[: member.begin] + text[members[1].begin :]
    begin = text.index("{") + 1
    return text[:begin] + text[_skip(text, member.end) :]


def _is_own(command: str) -> bool:
    return any(
        Path(word).name == "agentmon" and following == "statusline" for word, following in pairwise(_words(command))
    )


def _chained(command: str) -> str:
    words = _words(command)
    return words[words.index("--then") + 1] if "--then" in words[:-1] else ""


def _words(command: str) -> list[str]:
    try:
        return shlex.split(command)
    except ValueError:
        return []


def _write(settings_file: Path, text: str) -> str:
    """Put the text in place of the file, through links, and return where a copy of the old one lies."""
    target = Path(os.path.realpath(settings_file))
    scratch = target.with_name(f".{target.name}.{os.getpid()}")
    try:
        make_private_folder(target.parent)
        backup, mode = "", 0o600
        if target.exists():
            mode = target.stat().st_mode & 0o777
            backup = str(_keep_copy(target, mode))
        try:
            _write_new(scratch, text.encode(), mode)
            scratch.replace(target)
        finally:
            with contextlib.suppress(OSError):
                scratch.unlink()
    except OSError as error:
        raise UsageError(f"{settings_file} cannot be written: {error}", hint="nothing was changed") from error
    return backup


def _keep_copy(target: Path, mode: int) -> Path:
    """Copy the file beside itself, over no other copy."""
    content = target.read_bytes()
    number = 0
    while True:
        copy = target.with_name(f"{target.name}.before-agentmon{f'-{number}' if number else ''}")
        try:
            _write_new(copy, content, mode)
        except FileExistsError:
            number += 1
        else:
            return copy


def _write_new(path: Path, content: bytes, mode: int) -> None:
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
        os.fchmod(file.fileno(), mode)
