"""Agentmon's command line for a run in a sandbox: called over a socket that the run alone has, started out here.

A call is one line of JSON, ``words``, ``folder`` and ``variables``, and with it the caller's three standard files. What
comes back, once it has ended, is its exit code. Who hangs up ends the call.
"""

from __future__ import annotations

import _socket  # ``socket`` wraps it in enums, whose import costs 10 ms
import os
import struct
import sys

from agentmon.runners.host import documents
from agentmon.runners.host.lean import signal
from agentmon.runners.host.signals import reset_signals
from agentmon.runners.host.spec import CALLED_VARIABLE, MARKER_VARIABLE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from agentmon.runners.host.family import Family
    from agentmon.runners.host.spec import Spec

_NAME = "calls.sock"
_MOST_CALLS = 32
_MOST_BYTES = 1024 * 1024
_PIECE_BYTES = 65536
_STANDARD_FILES = 3
_HIGHEST_FILE = 4096
_HIGHEST_SELECTED = 1024
"""The first file that ``select`` takes no more."""
_NOT_STARTED = 126
_TAKEN = frozenset(
    {"COLUMNS", "COLORTERM", "FORCE_COLOR", "LANG", "LANGUAGE", "LC_ALL", "LC_CTYPE", "LINES", "NO_COLOR", "TERM", "TZ"}
)
"""Variables of the caller that reach a call; any other might make it do more than the run itself can."""
_NOT_HANDED_ON = frozenset({"TMUX", "TMUX_PANE", "EDITOR", "VISUAL", "PAGER", "BROWSER"})


class _Call:
    __slots__ = ("content", "files", "line", "pid")

    def __init__(self, line: _socket.socket) -> None:
        self.line = line
        self.content = bytearray()
        self.files: list[int] = []
        self.pid: int | None = None


class Calls:
    """Listens for the calls of one run, and looks after what they have started."""

    def __init__(self, spec: Spec, folder: str, family: Family) -> None:
        """Listen where the sandbox of the specification says so; a run without one is not listened for.

        Raises:
            OSError: Its socket cannot be made.
        """
        self._spec = spec
        self._family = family
        self._open: list[_Call] = []
        self._listener: _socket.socket | None = None
        if spec.sandbox is None:
            return
        self._path = os.path.join(folder, _NAME)
        try:
            os.unlink(self._path)
        except FileNotFoundError:
            pass
        self._listener = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM | _socket.SOCK_NONBLOCK)
        # A path of a socket may have 108 bytes, and that of a folder is as long as it is.
        at = os.open(folder, os.O_PATH | os.O_CLOEXEC)
        try:
            self._listener.bind(f"/proc/self/fd/{at}/{_NAME}")
        finally:
            os.close(at)
        os.chmod(self._path, 0o600)
        self._listener.listen(_MOST_CALLS)
        family.on_outsider_end = self._end

    @property
    def reads(self) -> list[int]:
        """Files to read from."""
        if self._listener is None:
            return []
        is_listening = len(self._open) < _MOST_CALLS
        return [call.line.fileno() for call in self._open] + ([self._listener.fileno()] if is_listening else [])

    def move(self, readable: list[int]) -> None:
        """Take what came."""
        if self._listener is None:
            return
        for call in [one for one in self._open if one.line.fileno() in readable]:
            self._hear(call)
        if self._listener.fileno() in readable:
            try:
                file, _ = self._listener._accept()  # type: ignore[attr-defined] # noqa: SLF001 - all of its accept
            except OSError:
                return
            line = _socket.socket(fileno=file)
            if file >= _HIGHEST_SELECTED:
                line.close()
                return
            line.setblocking(False)
            self._open.append(_Call(line))

    def close(self) -> None:
        """Hear no more, and end what is still running."""
        for call in list(self._open):
            self._drop(call)
        if self._listener is not None:
            self._listener.close()
            self._listener = None
            try:
                os.unlink(self._path)
            except OSError:
                pass

    def _hear(self, call: _Call) -> None:
        try:
            content, files, is_whole = _receive(call.line)
        except BlockingIOError:
            return
        except OSError:
            content, files, is_whole = b"", [], True
        call.files += files
        call.content += content
        is_too_much = len(call.content) > _MOST_BYTES or len(call.files) > _STANDARD_FILES or not is_whole
        if not content or is_too_much or (files and call.pid is not None):
            self._drop(call)
        elif call.pid is None and call.content.endswith(b"\n"):
            self._start(call)

    def _start(self, call: _Call) -> None:
        try:
            asked = documents.parse(call.content.decode())
        except ValueError:
            asked = None
        if not isinstance(asked, dict) or len(call.files) != _STANDARD_FILES:
            self._drop(call)
            return
        words = _texts(asked.get("words"))
        variables = asked.get("variables")
        environment = {name: text for name, text in os.environ.items() if name not in _NOT_HANDED_ON}
        if isinstance(variables, dict):
            told = {name: text for name, text in variables.items() if name in _TAKEN and isinstance(text, str)}
            environment |= {name: text for name, text in told.items() if "\0" not in text}
        environment |= self._spec.calls_environment
        environment[MARKER_VARIABLE] = self._spec.execution_id
        environment[CALLED_VARIABLE] = "1"
        folder = asked.get("folder")
        try:
            pid = os.fork()
        except OSError:
            self._drop(call)
            return
        if pid == 0:
            _become_command(words, environment, folder if isinstance(folder, str) else "/", call.files)
        for file in call.files:
            os.close(file)
        call.files = []
        call.pid = pid
        self._family.outsiders.add(pid)
        self._family.has_children = True

    def _end(self, pid: int, status: int) -> None:
        for call in [one for one in self._open if one.pid == pid]:
            call.pid = None
            code = os.waitstatus_to_exitcode(status)
            try:
                call.line.send(b"%d\n" % (code if code >= 0 else 128 - code))
            except OSError:
                pass
            self._drop(call)

    def _drop(self, call: _Call) -> None:
        self._open.remove(call)
        call.line.close()
        for file in call.files:
            os.close(file)
        if call.pid is not None:
            # It may not lead a group yet.
            for end in (os.killpg, os.kill):
                try:
                    end(call.pid, signal.SIGTERM)
                except OSError:
                    pass


def _receive(line: _socket.socket) -> tuple[bytes, list[int], bool]:
    """Return what came, the files that came with it, and whether these are all."""
    room = _socket.CMSG_SPACE(4 * _STANDARD_FILES)
    content, messages, flags, _ = line.recvmsg(_PIECE_BYTES, room, _socket.MSG_CMSG_CLOEXEC)
    files: list[int] = []
    for level, kind, data in messages:
        if level == _socket.SOL_SOCKET and kind == _socket.SCM_RIGHTS:
            files += struct.unpack(f"{len(data) // 4}i", data[: len(data) // 4 * 4])
    return content, files, not flags & _socket.MSG_CTRUNC


def _become_command(words: list[str], environment: dict[str, str], folder: str, files: list[int]) -> None:
    try:
        os.setsid()
        for number, file in enumerate([os.dup(file) for file in files]):
            os.dup2(file, number)
        os.closerange(_STANDARD_FILES, _HIGHEST_FILE)
        reset_signals()
        os.chdir(folder)
        os.execve(sys.executable, [sys.executable, "-P", "-m", "agentmon", *words], environment)
    except (OSError, ValueError) as error:
        os.write(2, f"error: {error}\n".encode("utf-8", "replace"))
    finally:
        os._exit(_NOT_STARTED)


def _texts(told: object) -> list[str]:
    return [one for one in told if isinstance(one, str) and "\0" not in one] if isinstance(told, list) else []
