"""The command ``agentmon``: answers the light requests itself and hands everything else to the rooms below.

Parses on Python 3.7, so that an older Python gets a sentence instead of a syntax error; imports nothing heavy.
"""

from __future__ import annotations

import gc
import os
import sys

from agentmon.cli import exit_codes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

MINIMUM_PYTHON = (3, 11)
_MADE_BEFORE_COLLECTION = 50_000
"""Objects more than before, after which the collector looks for garbage."""


def main() -> None:
    """Run the command line of this process and end it with the command's exit code."""
    if sys.version_info[:2] < MINIMUM_PYTHON:
        present = ".".join(str(part) for part in sys.version_info[:3])
        sys.stderr.write(
            "error: agentmon needs Python 3.11 or newer, this is Python " + present + "\n"
            "hint: install it with a newer one, for example: pipx install --python python3.11 agentmon\n"
        )
        sys.exit(exit_codes.USAGE)
    # What the imports make is never garbage; looking through it would cost a short command a third of its time.
    gc.set_threshold(_MADE_BEFORE_COLLECTION)
    leave(run(sys.argv[1:]))


def leave(code: int) -> NoReturn:
    """End the process with this exit code, also when its terminal is gone: Python would make 120 of it."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
    sys.exit(code)


def run(words: list[str]) -> int:
    """Run one command line, without the program's name, and return its exit code; every error has been told."""
    _replace_closed_streams()
    _forget_frozen_size()
    try:
        code = _dispatch(words)
        sys.stdout.flush()
    except KeyboardInterrupt:
        return exit_codes.INTERRUPTED
    except BrokenPipeError:
        # The reader went away (`agentmon task list | head -1`); what is left in the buffer has no one to go to.
        from agentmon.cli.output import discard_output  # noqa: PLC0415 - each request loads its own part alone

        discard_output()
        return 0
    except SystemExit as ended:
        return ended.code if isinstance(ended.code, int) else exit_codes.FAILED if ended.code else 0
    except Exception as error:  # noqa: BLE001 - the last line of defence: a sentence for the person, all of it in a file
        from agentmon.cli.failures import tell_failure  # noqa: PLC0415 - each request loads its own part alone

        return tell_failure(error)
    return code


def _replace_closed_streams() -> None:
    """Put /dev/null where a standard stream is closed, so that no file opened later gets its number."""
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        try:
            os.fstat(number)
        except OSError:
            descriptor = os.open(os.devnull, os.O_RDWR)
            os.set_inheritable(descriptor, True)
            if getattr(sys, name) is None:
                setattr(sys, name, os.fdopen(descriptor, "r" if number == 0 else "w", closefd=False))


def _forget_frozen_size() -> None:
    """Let the terminal alone say its size: exported variables would hold against it, here and in what is started."""
    if os.isatty(1):
        os.environ.pop("COLUMNS", None)
        os.environ.pop("LINES", None)


def _dispatch(words: list[str]) -> int:
    first = words[0] if words else ""
    calls = os.environ.get("AGENTMON_CALLS")
    is_line = first == "statusline" and not {"--help", "-h", "--install", "--remove"} & set(words)
    if calls and not is_line:
        from agentmon.cli.calling import call  # noqa: PLC0415 - each request loads its own part alone

        return call(calls, words)
    if "AGENTMON_CALLED" in os.environ:
        _confine()
    if first == "command-server" and len(words) == 2:  # noqa: PLR2004 - with its place
        from agentmon.cli.command_server import serve  # noqa: PLC0415 - each request loads its own part alone

        return serve(words[1], run)
    if first in {"--version", "-V"}:
        from agentmon.cli.status import print_version  # noqa: PLC0415 - each request loads its own part alone

        return print_version(as_json="--json" in words[1:])
    if first == "status" and "--help" not in words and "-h" not in words:
        from agentmon.cli.status import print_status  # noqa: PLC0415 - each request loads its own part alone

        return print_status(words[1:])
    if first == "tmux-status" and "--help" not in words and "-h" not in words:
        from agentmon.cli.tmux_status import print_tmux_status  # noqa: PLC0415 - each request loads its own part alone

        return print_tmux_status(words[1:])
    if is_line:
        from agentmon.cli.statusline import print_statusline  # noqa: PLC0415 - each request loads its own part alone

        return print_statusline(words[1:])
    code = _find_quick_answer(first, words[1:])
    if code is not None:
        return code
    if words[:2] == ["costs", "import"] and not {"--help", "-h"} & set(words):
        from agentmon.worker.early_reading import begin_reading  # noqa: PLC0415 - each request loads its own part alone

        begin_reading()
    return _dispatch_heavy(words)


def _dispatch_heavy(words: list[str]) -> int:
    """Run what needs the rooms below: here, or in a process that has them already."""
    from agentmon.cli.served import COMPLETION  # noqa: PLC0415 - each request loads its own part alone

    place = _server_of(words)
    if place:
        from agentmon.cli.served import hand_over  # noqa: PLC0415 - each request loads its own part alone

        code = hand_over(words, place)
        if code is not None:
            return code
    _hear_signals()
    folder = None if COMPLETION in os.environ else _folder_to_open(words)
    if folder is not None:
        from agentmon.cli.open_app import open_app  # noqa: PLC0415 - each request loads its own part alone

        return open_app(folder)
    from agentmon.cli.app import run_command_line  # noqa: PLC0415 - each request loads its own part alone

    code = run_command_line(words)
    if place:
        _serve_what_follows(place)
    return code


def _server_of(words: list[str]) -> str:
    """Return where a server is looked for that carries such a command out; empty for one that needs its own process."""
    from agentmon.cli.served import may_be_served  # noqa: PLC0415 - each request loads its own part alone

    if not may_be_served(words):
        return ""
    from agentmon.cli.status import find_run_dir  # noqa: PLC0415 - each request loads its own part alone

    return f"{find_run_dir()}/commands.sock"


def _serve_what_follows(place: str) -> None:
    """Start a server when commands follow each other; never from a run, which would have to wait for its end."""
    from pathlib import Path  # noqa: PLC0415 - each request loads its own part alone

    from agentmon.cli.served import begin_server, note_command  # noqa: PLC0415
    from agentmon.domain.errors import AgentmonError  # noqa: PLC0415
    from agentmon.private_folders import make_private_folder  # noqa: PLC0415
    from agentmon.runners.host.spec import MARKER_VARIABLE  # noqa: PLC0415

    if MARKER_VARIABLE in os.environ or "AGENTMON_CALLED" in os.environ:
        return
    try:
        make_private_folder(Path(place).parent)
    except (OSError, AgentmonError):
        return
    if note_command(place):
        begin_server(place)


def _hear_signals() -> None:
    """Undo an inherited mask, and an ignored SIGCHLD, which would hide how what is started from here ends."""
    import signal  # noqa: PLC0415 - each request loads its own part alone

    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)


def _confine() -> None:
    """Keep a command that a run in a sandbox has called from doing what that run cannot."""
    from tempfile import gettempdir  # noqa: PLC0415 - each request loads its own part alone

    from agentmon.cli.calling import confine  # noqa: PLC0415 - each request loads its own part alone
    from agentmon.paths import find_paths  # noqa: PLC0415

    paths = find_paths()
    # Looking for the temporary folder writes a file.
    own = (paths.data_dir, paths.run_dir, paths.logs_dir, paths.database_path.parent, gettempdir())
    confine(starts=frozenset({"git", "tmux"}), writes=tuple(os.path.realpath(place) for place in own))


def _find_quick_answer(command: str, words: list[str]) -> int | None:
    """Return the exit code of a command that was answered by reading the database alone; None when it takes more."""
    if command == "costs" and "--json" in words:
        from agentmon.cli.quick_costs import print_costs  # noqa: PLC0415 - each request loads its own part alone

        return 0 if print_costs(words) else None
    if command == "search":
        from agentmon.cli.quick_search import print_search  # noqa: PLC0415 - each request loads its own part alone

        return print_search(words)
    return None


def _folder_to_open(words: list[str]) -> str | None:
    """Return the folder when the command line asks for the app alone, else None."""
    if not words:
        return "."
    if words[0] in {"-C", "--workspace"} and len(words) == 2:  # noqa: PLR2004 - the option and its value
        return words[1]
    if words[0] == "--" and len(words) == 2:  # noqa: PLR2004 - the end of the options and one folder
        return words[1]
    if len(words) == 1 and not words[0].startswith("-"):
        from agentmon.cli.names import COMMAND_NAMES  # noqa: PLC0415 - each request loads its own part alone

        if words[0] not in COMMAND_NAMES and (os.path.isdir(words[0]) or _is_written_as_path(words[0])):  # noqa: PTH112 - pathlib costs 8 ms of every start
            return words[0]
    return None


def _is_written_as_path(word: str) -> bool:
    return "/" in word or word in {".", "..", "~"}


if __name__ == "__main__":
    main()
