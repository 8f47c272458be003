"""One tmux command through libtmux: scrubbed environment, a deadline, its refusals read instead of hidden."""

from __future__ import annotations

import asyncio
import io
import os
from concurrent.futures import ThreadPoolExecutor
from contextlib import redirect_stdout
from dataclasses import dataclass
from enum import Enum, auto
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol

from agentmon.domain.errors import RunnerError, TmuxUnavailableError
from agentmon.private_folders import is_left_by_another, make_private_folder
from agentmon.runners.tmux.version import find_tmux, install_hint

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Mapping, Sequence

_MAX_THREADS: Final = 4
_PASSED_NAMES: Final = ("PATH", "HOME", "LANG", "TMPDIR", "USER", "LOGNAME")
_NOT_EXECUTABLE: Final = (126, 127)
"""What ``env`` ends with when it cannot run the program or find it. Source: POSIX, env."""
_SOCKET_PATH_LIMIT: Final = 103 if os.uname().sysname in {"Darwin", "FreeBSD", "OpenBSD", "NetBSD"} else 107
"""Bytes of ``sun_path`` less the closing NUL."""


class Outcome(Enum):
    """How tmux took a command."""

    DONE = auto()
    REFUSED = auto()
    """A server answered, and said no."""
    NO_SERVER = auto()
    """Nobody listens on the socket: it is missing, or nobody accepts."""
    UNSETTLED = auto()
    """The server went away while it was asked; asking again tells."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What came back from one tmux command."""

    outcome: Outcome
    lines: tuple[str, ...]
    words: str
    """The complaint of tmux; empty when it had none."""


class _Invocation(Protocol):
    returncode: int
    stdout: list[str]
    stderr: list[str]

    def run(self, *arguments: str, tmux_bin: str) -> None: ...

    def give_up(self) -> None: ...


@cache
def _invocation_type() -> type[Any]:
    # libtmux asks for sys.stdout.encoding while it is imported, which the stand-in of a running Textual app lacks.
    with redirect_stdout(io.TextIOWrapper(io.BytesIO(), encoding="utf-8")):
        from libtmux.common import tmux_cmd  # noqa: PLC0415 - costs 200 ms, so it waits for the first use

    class Invocation(tmux_cmd):
        """A tmux command that another thread can end: libtmux itself waits for ever."""

        def __init__(self) -> None:
            self._process: subprocess.Popen[str] | None = None
            self._is_given_up = False

        def run(self, *arguments: str, tmux_bin: str) -> None:
            super().__init__(*arguments, tmux_bin=tmux_bin)

        def give_up(self) -> None:
            self._is_given_up = True
            if self._process is not None:
                self._process.kill()

        @property
        def process(self) -> subprocess.Popen[str]:
            if self._process is None:
                raise RuntimeError("the command has not started")
            return self._process

        @process.setter
        def process(self, process: subprocess.Popen[str]) -> None:
            self._process = process
            if self._is_given_up:
                process.kill()

    return Invocation


class TmuxCommands:
    """Runs commands against one server in a small thread pool; safe to use from many tasks of one event loop."""

    def __init__(self, *, socket_path: Path, config_path: Path, deadline_s: float, environ: Mapping[str, str]) -> None:
        self.socket_path = socket_path
        self.environ = environ
        self._config_path = config_path
        self._deadline_s = deadline_s
        self._executor = ThreadPoolExecutor(max_workers=_MAX_THREADS, thread_name_prefix="tmux")
        self._invocations: set[_Invocation] = set()

    async def run(self, *commands: Sequence[str], may_start_server: bool = False) -> Answer:
        """Return how tmux took the commands, run one after another until one fails; arguments reach tmux unchanged.

        A cancelled call ends its tmux client; whether the server still did the command is then unknown.

        Raises:
            TmuxUnavailableError: tmux is missing, did not answer by the deadline, or failed in a way that tells
                nothing about its sessions.
        """
        if len(os.fsencode(self.socket_path)) > _SOCKET_PATH_LIMIT:
            message = f"the path of the tmux socket is longer than {_SOCKET_PATH_LIMIT} bytes: {self.socket_path}"
            raise TmuxUnavailableError(message, hint="set AGENTMON_HOME to a folder with a shorter path")
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(self._deadline_s):
                invocation = await self._execute(loop, commands, may_start_server=may_start_server)
        except TimeoutError as error:
            message = f"tmux did not answer within {self._deadline_s:g} s"
            raise TmuxUnavailableError(message, hint=f"its socket is {self.socket_path}") from error
        return self._read(invocation)

    def close(self) -> None:
        """End every tmux client that still waits and free the threads; the server goes on. Idempotent."""
        for invocation in tuple(self._invocations):
            invocation.give_up()
        self._executor.shutdown(wait=False, cancel_futures=True)

    async def _execute(
        self, loop: asyncio.AbstractEventLoop, commands: Sequence[Sequence[str]], *, may_start_server: bool
    ) -> _Invocation:
        running: list[_Invocation] = []
        is_over = False

        def work() -> _Invocation:
            arguments = self._client_arguments(commands, may_start_server=may_start_server)
            invocation: _Invocation = _invocation_type()()
            running.append(invocation)
            self._invocations.add(invocation)
            if is_over:
                invocation.give_up()
            try:
                invocation.run(*arguments, tmux_bin="/usr/bin/env")
            finally:
                self._invocations.discard(invocation)
            return invocation

        try:
            future = loop.run_in_executor(self._executor, work)
        except RuntimeError as error:
            raise TmuxUnavailableError("the connection to tmux is closed") from error
        try:
            return await future
        except OSError as error:
            raise TmuxUnavailableError(f"tmux cannot be run: {error.strerror}") from error
        except asyncio.CancelledError:
            is_over = True
            for invocation in running:
                invocation.give_up()
            raise

    def _client_arguments(self, commands: Sequence[Sequence[str]], *, may_start_server: bool) -> list[str]:
        binary = find_tmux(self.environ)
        if is_left_by_another(self.socket_path) and not _is_listened_to(self.socket_path):
            self.socket_path.unlink(missing_ok=True)
        if may_start_server:
            make_private_folder(self.socket_path.parent)
        # libtmux hands on the whole environment of this process, which the server would keep and show to every
        # session: env -i leaves it what it needs.
        return [
            "-i",
            *(f"{name}={value}" for name, value in self._scrubbed_environment().items()),
            binary,
            "-u",
            *(() if may_start_server else ("-N",)),
            "-S",
            str(self.socket_path),
            "-f",
            str(self._config_path),
            *_joined(commands),
        ]

    def _scrubbed_environment(self) -> dict[str, str]:
        passed = {
            name: value for name, value in self.environ.items() if name in _PASSED_NAMES or name.startswith("LC_")
        }
        return {"PATH": os.defpath, **passed, "SHELL": "/bin/sh"}

    def _read(self, invocation: _Invocation) -> Answer:
        words = " ".join(invocation.stderr).strip()
        outcome = _outcome_of(invocation.returncode, words)
        if outcome is Outcome.REFUSED and (invocation.returncode in _NOT_EXECUTABLE or words.startswith("env:")):
            raise TmuxUnavailableError(f"tmux cannot be run: {words}", hint=install_hint(self.environ))
        if outcome is Outcome.REFUSED and words.startswith(("error connecting to", "protocol version mismatch")):
            hint = (
                "a server of another tmux version still runs; it ends with its last session"
                if words.startswith("protocol")
                else f"see who may use {self.socket_path}"
            )
            raise TmuxUnavailableError(f"tmux cannot be reached: {words}", hint=hint)
        if invocation.returncode < 0:
            raise TmuxUnavailableError(f"the tmux client was ended by signal {-invocation.returncode}")
        return Answer(outcome=outcome, lines=tuple(invocation.stdout), words=words)


def refusal(doing: str, answer: Answer) -> RunnerError:
    """Return the error for a command that was not done, with the words of tmux."""
    words = answer.words or "it gave no reason"
    return RunnerError(f"{doing}: tmux said: {words}", hint="agentmon doctor shows the state of tmux")


def _is_listened_to(socket_path: Path) -> bool:
    """Whether a process has the socket, also where it may not be asked; yes where the system does not tell."""
    try:
        # Source: proc(5), /proc/net/unix: the path is the last column.
        lines = Path("/proc/net/unix").read_bytes().splitlines()
    except OSError:
        return True
    return any(line.endswith(b" " + os.fsencode(socket_path)) for line in lines)


def _joined(commands: Sequence[Sequence[str]]) -> list[str]:
    arguments: list[str] = []
    for command in commands:
        arguments.extend([";"] if arguments else [])
        # tmux takes a last ; of any argument as the end of the command, and \\; as that character.
        arguments.extend(word[:-1] + "\\;" if word.endswith(";") else word for word in command)
    return arguments


def _outcome_of(returncode: int, words: str) -> Outcome:
    if returncode == 0:
        return Outcome.DONE
    lost_socket = words.startswith("error connecting to") and words.endswith(
        ("(No such file or directory)", "(Connection refused)")
    )
    if lost_socket or words.startswith("no server running on"):
        return Outcome.NO_SERVER
    if words.startswith(("server exited", "lost server", "[server exited", "[lost server")):
        return Outcome.UNSETTLED
    return Outcome.REFUSED
