"""agentmon in a sandbox: each command is handed to the host of the run, which starts it outside of the sandbox.

Imported before all else where it is needed, so it imports nothing heavy.
"""

from __future__ import annotations

import errno
import os
import sys

from agentmon.cli import exit_codes

_LONGEST_ANSWER = 100
_CALLED = "called from a sandbox, agentmon"
_NEVER = frozenset({"os.exec", "os.spawn", "os.system", "pty.spawn"})


def call(place: str, words: list[str], *, written: bytes | None = None) -> int:
    """Run a command line outside of the sandbox, with these standard files, and return its exit code.

    Args:
        place: The socket of the run's host.
        words: Without the program's name.
        written: What it finds on its standard input; None for this process's own.
    """
    import json  # noqa: PLC0415 - what is not in a sandbox needs none of these
    import socket  # noqa: PLC0415

    try:
        folder = os.getcwd()  # noqa: PTH109 - pathlib costs 8 ms of every start
    except OSError:
        folder = "/"
    asked = json.dumps({"words": words, "folder": folder, "variables": dict(os.environ)}).encode() + b"\n"
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as line:
        try:
            line.connect(place)
            sent = socket.send_fds(line, [asked], [_file_of(written), 1, 2])
            line.sendall(asked[sent:])
            answer = b""
            while len(answer) < _LONGEST_ANSWER and (piece := line.recv(_LONGEST_ANSWER)):
                answer += piece
        except OSError as error:
            is_forbidden = error.errno in {errno.EACCES, errno.EPERM}
            hint = "the agent's own sandbox forbids it: let it run agentmon outside of that"
            sys.stderr.write(
                f"error: agentmon cannot be reached from the sandbox: {error.strerror}\n"
                f"hint: {hint if is_forbidden else 'the run that this belongs to has ended, or its host has'}\n"
            )
            return exit_codes.FAILED
    if not answer.strip().isdigit():
        sys.stderr.write("error: the command was broken off: its run ends, or its host did\n")
        return exit_codes.FAILED
    return int(answer)


def _file_of(written: bytes | None) -> int:
    if written is None:
        return 0
    file = os.memfd_create("input")
    os.write(file, written)
    os.lseek(file, 0, os.SEEK_SET)
    return file


def is_called() -> bool:
    """Return whether this process was started for a run that is in a sandbox, so that it stands outside of it."""
    return "AGENTMON_CALLED" in os.environ


def require_not_called(deed: str, *, hint: str) -> None:
    """Refuse what would let a run reach around its sandbox.

    Args:
        deed: What is refused, such as ``it writes no files``.
        hint: What to do instead.

    Raises:
        UsageError: A run in a sandbox asks.
    """
    if is_called():
        from agentmon.domain.errors import UsageError  # noqa: PLC0415 - each request loads its own part alone

        raise UsageError(f"called from a sandbox, {deed}", hint=hint)


def confine(*, starts: frozenset[str], writes: tuple[str, ...]) -> None:
    """Let this process, which stands outside of a sandbox for a run in it, do no more than it is there for.

    Args:
        starts: Names of the programs that it may start, beside Python.
        writes: Folders in which it may write files, beside devices.
    """

    def look(event: str, arguments: tuple[object, ...]) -> None:
        if event == "open":
            place, _, flags = arguments
            is_written = isinstance(flags, int) and flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC)
            if is_written and isinstance(place, (str, bytes, os.PathLike)) and not _is_below(place, writes):
                raise PermissionError(errno.EACCES, f"{_CALLED} writes no files", os.fsdecode(place))
        elif event in {"subprocess.Popen", "os.posix_spawn"}:
            program = _program_of(arguments)
            if program != sys.executable and os.path.basename(program) not in starts:  # noqa: PTH119
                raise PermissionError(errno.EACCES, f"{_CALLED} starts no other program", program)
        elif event in _NEVER:
            raise PermissionError(errno.EACCES, f"{_CALLED} starts no other program")

    sys.addaudithook(look)


def _program_of(arguments: tuple[object, ...]) -> str:
    """Return what is started by such an event, also when ``env`` does it."""
    first, words = arguments[0], arguments[1]
    program = os.fsdecode(first) if isinstance(first, (str, bytes, os.PathLike)) else ""
    if os.path.basename(program) != "env" or not isinstance(words, (list, tuple)):  # noqa: PTH119
        return program
    told = [word for word in words[1:] if isinstance(word, str)]
    return next((word for word in told if "=" not in word and not word.startswith("-")), "")


def _is_below(place: str | bytes | os.PathLike[str], folders: tuple[str, ...]) -> bool:
    whole = os.path.realpath(os.fsdecode(place))
    return whole.startswith("/dev/") or any(whole == folder or whole.startswith(f"{folder}/") for folder in folders)
