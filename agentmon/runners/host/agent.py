"""Starting the program: in a session of its own, with a terminal or pipes, and the signals as any program expects."""

from __future__ import annotations

import errno
import os

from agentmon.runners.host import terminal
from agentmon.runners.host.signals import reset_signals

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from agentmon.runners.host.spec import Spec

_DEFAULT_PATH = "/usr/local/bin:/usr/bin:/bin"
_HIGHEST_FILE = 4096
_IN_FOLDER = b"folder"
_IN_PROGRAM = b"program"
_IN_SANDBOX = b"sandbox"


class StartError(Exception):
    """The program did not start; the message is one line for a person."""

    def __init__(self, message: str, number: int | None) -> None:
        super().__init__(message)
        self.number = number


class Agent:
    """The running program and the terminal it runs in; the caller closes nothing before the host ends."""

    __slots__ = ("inner_terminal", "outer_end", "pid")

    def __init__(self, pid: int, outer_end: int, inner_terminal: int) -> None:
        self.pid = pid
        self.outer_end = outer_end
        # Held open: otherwise the outer end reports a hang-up for ever once the program closes its own.
        self.inner_terminal = inner_terminal


class PipedAgent:
    """The running program and the host's ends of its three pipes, which never block; ``None`` once closed."""

    __slots__ = ("errors", "input", "output", "pid")

    def __init__(self, pid: int, input_end: int | None, output_end: int | None, errors_end: int | None) -> None:
        self.pid = pid
        self.input = input_end
        self.output = output_end
        self.errors = errors_end

    def close_input(self) -> None:
        """Let the program find the end of its input."""
        if self.input is not None:
            os.close(self.input)
            self.input = None

    def close_output(self) -> None:
        """Read no more of its output."""
        if self.output is not None:
            os.close(self.output)
            self.output = None

    def close_errors(self) -> None:
        """Read no more of its error output."""
        if self.errors is not None:
            os.close(self.errors)
            self.errors = None


def start(spec: Spec, environment: dict[str, str], window_size: tuple[int, int]) -> Agent:
    """Start the program of the specification in a terminal of its own and return once it runs.

    Raises:
        StartError: The working folder or the program is missing, not allowed, or not what it should be.
    """
    try:
        outer_end, inner_terminal = os.openpty()
        terminal.set_window_size(inner_terminal, window_size)
        os.set_blocking(outer_end, False)
    except OSError as error:
        raise _no_process(error) from error
    pid = _fork(spec, environment, lambda: os.login_tty(inner_terminal))
    return Agent(pid, outer_end, inner_terminal)


def start_piped(spec: Spec, environment: dict[str, str]) -> PipedAgent:
    """Start the program of the specification in a session of its own, with pipes, and return once it runs.

    Raises:
        StartError: As ``start`` raises it.
    """
    try:
        inner_input, input_end = os.pipe()
        output_end, inner_output = os.pipe()
        errors_end, inner_errors = os.pipe()
        for file in (input_end, output_end, errors_end):
            os.set_blocking(file, False)
    except OSError as error:
        raise _no_process(error) from error

    def connect() -> None:
        os.setsid()
        for number, file in enumerate((inner_input, inner_output, inner_errors)):
            os.dup2(file, number)

    pid = _fork(spec, environment, connect)
    for file in (inner_input, inner_output, inner_errors):
        os.close(file)
    return PipedAgent(pid, input_end, output_end, errors_end)


def _no_process(error: OSError) -> StartError:
    return StartError(f"no process could be made for the program: {error.strerror}", error.errno)


def _fork(spec: Spec, environment: dict[str, str], connect: Callable[[], object]) -> int:
    """Return the pid of the program once it runs; ``connect`` gives the new process its session and standard files."""
    try:
        failure_reader, failure_writer = os.pipe()
        pid = os.fork()
    except OSError as error:
        raise _no_process(error) from error
    if pid == 0:
        _become_program(spec, environment, connect, failure_writer)
    os.close(failure_writer)
    failure = b""
    while piece := os.read(failure_reader, 4096):
        failure += piece
    os.close(failure_reader)
    if failure:
        os.waitpid(pid, 0)
        place, number, path = failure.split(b" ", 2)
        raise _explain(place, int(number), path, spec)
    return pid


def _become_program(
    spec: Spec, environment: dict[str, str], connect: Callable[[], object], failure_writer: int
) -> None:
    """Turn this forked process into the program, or write why not and end."""
    place = _IN_PROGRAM
    number = errno.EINVAL
    path = b""
    try:
        connect()
        os.closerange(3, failure_writer)
        os.closerange(failure_writer + 1, _HIGHEST_FILE)
        reset_signals()
        if spec.sandbox is not None:
            place = _IN_SANDBOX
            from agentmon.runners.sandbox import kernel  # noqa: PLC0415 - in this process alone, and where it is needed

            kernel.enter(spec.sandbox)
        place, path = _IN_FOLDER, _encode(spec.working_dir)
        os.chdir(path)
        place, path = _IN_PROGRAM, _encode(spec.argv[0])
        variables = {_encode(name): _encode(value) for name, value in environment.items()}
        number, path = _execute(path, [_encode(argument) for argument in spec.argv], variables)
    except OSError as error:
        number = error.errno or number
    finally:
        try:
            os.write(failure_writer, b"%s %d %s" % (place, number, path))
        finally:
            os._exit(127)


def _execute(name: bytes, argv: list[bytes], variables: dict[bytes, bytes]) -> tuple[int, bytes]:
    """Replace this process by the program; return the error number and the file it concerns when that fails."""
    if b"/" in name:
        candidates = [name]
    else:
        folders = variables.get(b"PATH", _DEFAULT_PATH.encode()).split(b":")
        candidates = [os.path.join(folder or b".", name) for folder in folders]
    failure = (errno.ENOENT, name)
    for candidate in candidates:
        try:
            os.execve(candidate, argv, variables)
        except OSError as error:
            number = error.errno or errno.EINVAL
            is_absent = number in {errno.ENOENT, errno.ENOTDIR} and not os.path.exists(candidate)
            if is_absent and b"/" not in name:
                continue
            if number == errno.EACCES and b"/" not in name:
                failure = (number, candidate)  # a later folder may hold one that is allowed
                continue
            return number, candidate
    return failure


def _encode(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


def _explain(place: bytes, number: int, encoded_path: bytes, spec: Spec) -> StartError:
    path = encoded_path.decode("utf-8", "replace")
    reason = os.strerror(number)
    if place == _IN_SANDBOX:
        return StartError(f"its sandbox cannot be had here: {reason}; `agentmon doctor` says more", number)
    if place == _IN_FOLDER:
        message = {
            errno.ENOENT: f"the working folder does not exist: {path}",
            errno.ENOTDIR: f"the working folder is not a folder: {path}",
            errno.EACCES: f"the working folder may not be entered: {path}",
        }.get(number, f"the working folder cannot be used ({reason}): {path}")
    elif number == errno.ENOENT and os.path.exists(os.path.join(_encode(spec.working_dir), encoded_path)):
        message = f"the interpreter that the first line of {path} names does not exist{_first_line(spec, encoded_path)}"
    else:
        message = {
            errno.ENOENT: f"program not found: {path}" + ("" if "/" in path else " (not in any folder of PATH)"),
            errno.ENOTDIR: f"program not found: {path}",
            errno.EACCES: f"not allowed to run {path}: it is not executable, or a folder",
            errno.ENOEXEC: f"{path} is not a program: neither a binary for this machine nor a script "
            "whose first line names its interpreter (#!)",
            errno.E2BIG: f"the command line and environment are too long for {path}",
        }.get(number, f"{path} could not be started: {reason}")
    return StartError(" ".join(message.split()), number)


def _first_line(spec: Spec, path: bytes) -> str:
    try:
        with open(os.path.join(_encode(spec.working_dir), path), "rb") as file:
            line = file.read(200).split(b"\n")[0]
    except OSError:
        return ""
    return f": {line[2:].decode('utf-8', 'replace').strip()}" if line.startswith(b"#!") else ""
