"""Commands that are handed to a process that has everything imported, so that they need not import it themselves.

Imported before all else by whoever asks, so it imports nothing heavy.
"""

from __future__ import annotations

import os
import sys

from agentmon import __version__
from agentmon.cli import exit_codes
from agentmon.cli.names import COMMAND_NAMES

TYPE_CHECKING = False
if TYPE_CHECKING:
    import socket
    from types import FrameType

READY, GO, ENDED, REFUSED = b"ready", b"go\n", b"ended", b"refused"
VARIABLE = "AGENTMON_COMMAND_SERVER"
COMPLETION = "_AGENTMON_COMPLETE"
"""Set where a shell asks how a command line may go on. Source: click."""
SERVER = "command-server"
"""With the place of its socket, the words that start a server."""
LENGTH_BYTES = 4
FILES = 4
"""Standard input, output, errors, and the current folder."""
_AGAIN_WITHIN_S = 60.0
_BEGINS_WITHIN_S = 5.0
"""After that a command does without its server, and also waits no longer to hear of an end that it has seen."""
_IN_THEIR_OWN_PROCESS = frozenset({"attach", "demo", "merge", "notify", "pr", "undo", "verify", "worker"})
"""They take the terminal over, or keep programs that may ask there."""
_READ_ONLY = frozenset({"agents", "costs"})
"""Of these what is listed or shown alone: the others ask programs for long, or import."""
_AT_THE_TERMINAL = frozenset({"-e", "--editor"})
_FORWARDED = ("SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2", "SIGCONT")


class State:
    """What this process is in the handing over of commands."""

    is_served = False
    """Whether it carries out a command for another one."""


def may_be_served(words: list[str]) -> bool:
    """Return whether a command line can be carried out by another process for this one."""
    if sys.platform != "linux" or State.is_served or os.environ.get(VARIABLE) == "0":
        return False
    if COMPLETION in os.environ or not words:
        return COMPLETION in os.environ
    rest = [word for word in words[1:] if not word.startswith("-")]
    is_read = not rest or rest[0] in {"list", "show"}
    is_meant = is_read if words[0] in _READ_ONLY else words[0] in COMMAND_NAMES - _IN_THEIR_OWN_PROCESS
    return is_meant and _AT_THE_TERMINAL.isdisjoint(words)


def key() -> list[object]:
    """Return what has to be the same in both processes for a command to do the same in either."""
    python = sorted(pair for pair in os.environ.items() if pair[0].startswith("PYTHON"))
    return [__version__, __file__, sys.executable, sys.version, sys.getfilesystemencoding(), list(map(list, python))]


def hand_over(words: list[str], place: str) -> int | None:
    """Let the server carry out a command line, and return its exit code; None when this process has to do it.

    Args:
        words: Without the program's name.
        place: The server's socket.
    """
    import socket  # noqa: PLC0415 - what is answered quickly needs none of it

    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as line:
        try:
            line.connect(place)
            folder = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except OSError:
            return None
        try:
            line.settimeout(_BEGINS_WITHIN_S)
            line.sendall(_request(words))
            word, _, pid = _answer(line)
            if word != READY:
                return None
            _forward_signals(int(pid))
            # Nothing is done before: a server that was halted until now does it for nobody, and keeps no file open.
            socket.send_fds(line, [GO], [0, 1, 2, folder])
        except OSError:
            return None
        finally:
            os.close(folder)
        word, _, code = _end_of(int(pid), line)
    if word != ENDED:
        _end_orphan(int(pid))
        sys.stderr.write("error: the process that carried the command out has gone; nobody knows how far it came\n")
        return exit_codes.FAILED
    return _end_like(int(code))


def note_command(place: str) -> bool:
    """Note that a command was carried out by this process, and return whether that happened just before, too."""
    import time  # noqa: PLC0415 - see above

    mark = f"{place}.asked"
    try:
        was_asked = time.time() - os.stat(mark).st_mtime < _AGAIN_WITHIN_S  # noqa: PTH116 - pathlib costs 8 ms
    except OSError:
        was_asked = False
    try:
        os.close(os.open(mark, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600))
        os.utime(mark)
    except OSError:
        return False
    return was_asked


def begin_server(place: str) -> None:
    """Start the server for the commands to come; one that is there already goes on alone."""
    import subprocess  # noqa: PLC0415 - seldom needed

    try:
        subprocess.Popen(
            [sys.executable, "-P", "-m", "agentmon", SERVER, place],
            cwd="/",
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
    except OSError:
        return


def _request(words: list[str]) -> bytes:
    import json  # noqa: PLC0415 - see above
    import signal  # noqa: PLC0415 - see above

    umask = os.umask(0o077)
    os.umask(umask)
    streams = [[one.encoding, one.errors] for one in (sys.stdin, sys.stdout, sys.stderr)]
    asked = {
        "key": key(),
        "words": words,
        "variables": dict(os.environ),
        "umask": umask,
        "streams": streams,
        "ignored": [name for name in _FORWARDED if signal.getsignal(getattr(signal, name)) is signal.SIG_IGN],
    }
    told = json.dumps(asked).encode()
    return len(told).to_bytes(LENGTH_BYTES, "big") + told


def _answer(line: socket.socket) -> tuple[bytes, bytes, bytes]:
    """Return a line that the server says, in words; empty when it says nothing more.

    Raises:
        OSError: It takes too long.
    """
    said = b""
    while not said.endswith(b"\n") and (piece := line.recv(1)):
        said += piece
    return said.strip().partition(b" ")


def _end_of(pid: int, line: socket.socket) -> tuple[bytes, bytes, bytes]:
    """Return what the server says of the end of the command; empty when it is over, and the server says nothing."""
    import select  # noqa: PLC0415 - see above

    over = os.pidfd_open(pid)
    try:
        select.select([line.fileno(), over], [], [])
        return _answer(line)
    except OSError:
        return b"", b"", b""
    finally:
        os.close(over)


def _forward_signals(pid: int) -> None:
    """Let whatever is sent to this process reach the one that carries its command out, and what that has started."""
    import signal  # noqa: PLC0415 - see above

    def forward(number: int, frame: FrameType | None) -> None:  # noqa: ARG001 - the signature of handlers
        try:
            os.killpg(pid, number)
        except ProcessLookupError:
            return

    def halt(number: int, frame: FrameType | None) -> None:  # noqa: ARG001 - as above
        forward(signal.SIGSTOP, frame)
        os.kill(os.getpid(), signal.SIGSTOP)

    for name in _FORWARDED:
        number = getattr(signal, name)
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, forward)
    if signal.getsignal(signal.SIGTSTP) is not signal.SIG_IGN:
        signal.signal(signal.SIGTSTP, halt)


def _end_orphan(pid: int) -> None:
    """End the command whose server has gone, since nobody would hear of its end."""
    import signal  # noqa: PLC0415 - see above

    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return


def _end_like(code: int) -> int:
    """Return the exit code; end by the same signal when it is the negative number of one."""
    if code >= 0:
        return code
    import signal  # noqa: PLC0415 - see above

    signal.signal(-code, signal.SIG_DFL)
    os.kill(os.getpid(), -code)
    return 128 - code
