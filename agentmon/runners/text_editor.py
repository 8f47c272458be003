"""A person's own editor over a text: found by ``$VISUAL`` and ``$EDITOR``, run on a private file of its own.

The file is kept until the text has arrived where it belongs, so that nothing is lost when agentmon dies meanwhile.
"""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import subprocess
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from agentmon.domain.errors import RunnerError, UsageError
from agentmon.domain.plain_text import plain_line
from agentmon.domain.written_text import text_of
from agentmon.private_folders import make_private_folder
from agentmon.runners.lent_terminal import deaf_to_interrupts
from agentmon.runners.terminal_type import with_usable_terminal

if TYPE_CHECKING:
    from collections.abc import Mapping

_VARIABLES: Final = ("VISUAL", "EDITOR")
_USUAL: Final = ("nano", "vim", "vi")
_WITH_PLUS: Final = frozenset(
    {"vi", "vim", "nvim", "view", "nano", "pico", "emacs", "emacsclient", "micro", "kak", "joe", "mg", "ne"}
)
_WITH_COLON: Final = frozenset({"hx", "helix", "subl", "zed", "zeditor"})
_WITH_GOTO: Final = frozenset({"code", "codium", "cursor", "windsurf"})
_NAME_MAX_BYTES: Final = 80
_FILE_MODE: Final = 0o600


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenText:
    """What came back from an editor."""

    text: str
    complaint: str = ""
    """How the editor failed; empty when it ended well. The text is what stood in its file all the same."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LentFile:
    """A text in a file that an editor may change; ``remove`` once the text has arrived."""

    path: Path
    first_text: str

    def read(self) -> str:
        """Return the text as it is now, with line feeds, and without the last one where an editor has put it there.

        Raises:
            RunnerError: The file is gone or cannot be read.
        """
        try:
            text = text_of(self.path.read_bytes()).replace("\r", "\n")
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) else error
            raise RunnerError(
                f"the text of the editor cannot be read: {reason}", hint=f"what was written is in {self.path}"
            ) from error
        return text if self.first_text.endswith("\n") else text.removesuffix("\n")

    def remove(self) -> None:
        """Remove the file and its folder with all that an editor left there."""
        shutil.rmtree(self.path.parent, ignore_errors=True)


def find_editor(environ: Mapping[str, str]) -> list[str]:
    """Return the words of the command that edits a file: the person's own, else a usual one that is there.

    Raises:
        UsageError: The person's own is not there or cannot be read as a command, or there is none at all.
    """
    search_path = environ.get("PATH")
    for variable in _VARIABLES:
        written = environ.get(variable, "").strip()
        if not written:
            continue
        try:
            words = shlex.split(written)
        except ValueError as error:
            raise UsageError(f"${variable} cannot be read: {written}", hint=f"{error}".lower()) from error
        found = shutil.which(os.path.expanduser(words[0]), path=search_path)  # noqa: PTH111 - which takes text
        if found is None:
            raise UsageError(
                f"${variable} is {written}, but there is no program {words[0]}", hint="set it to one that is there"
            )
        return [found, *words[1:]]
    for name in _USUAL:
        found = shutil.which(name, path=search_path)
        if found is not None:
            return [found]
    raise UsageError("there is no editor", hint="set EDITOR to yours, for example: export EDITOR='code --wait'")


def lend_file(drafts_dir: Path, text: str, *, title: str) -> LentFile:
    """Put the text into a file that only its owner can read, named after the title, in a folder of its own.

    Raises:
        RunnerError: It cannot be written.
    """
    try:
        make_private_folder(drafts_dir)
        folder = Path(tempfile.mkdtemp(prefix=f"{os.getpid()}-", dir=drafts_dir))
        path = folder / _file_name(title)
        descriptor = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, _FILE_MODE)
        with os.fdopen(descriptor, "w", encoding="utf-8", errors="replace", newline="") as file:
            file.write(text)
    except OSError as error:
        raise RunnerError(
            f"the file for the editor cannot be written: {error.strerror}", hint=f"it goes below {drafts_dir}"
        ) from error
    return LentFile(path=path, first_text=text)


def left_files(drafts_dir: Path) -> list[Path]:
    """Return the files of editors whose agentmon died before it got their text, oldest first."""
    found: list[tuple[float, Path]] = []
    with suppress(OSError):
        files = [path for path in drafts_dir.glob("*-*/*.md") if not _is_alive(path.parent.name.partition("-")[0])]
        found = [(path.stat().st_mtime, path) for path in files]
    return [path for _, path in sorted(found)]


def run_editor(argv: list[str], lent: LentFile, environ: Mapping[str, str]) -> WrittenText:
    """Run the editor on the file in this terminal and return what stands there at its end; blocks until then.

    Raises:
        RunnerError: The editor cannot be started, or the file is gone.
    """
    with deaf_to_interrupts():
        try:
            ended = subprocess.run([*argv, str(lent.path)], env=with_usable_terminal(environ), check=False)
        except OSError as error:
            raise RunnerError(f"{argv[0]} cannot be started: {error.strerror}") from error
    name = Path(argv[0]).name
    complaint = ""
    if ended.returncode < 0:
        complaint = f"{name} was ended by {_signal_name(-ended.returncode)}"
    elif ended.returncode:
        complaint = f"{name} ended with exit code {ended.returncode}"
    return WrittenText(text=lent.read(), complaint=complaint)


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _file_name(title: str) -> str:
    name = plain_line(title).replace("/", "-").replace("\\", "-").strip(" .-") or "description"
    while len(name.encode()) > _NAME_MAX_BYTES:
        name = name[:-1]
    return f"{name.strip()}.md"


def place_words(program: str, path: Path, line: int) -> list[str]:
    """Return the words with which an editor opens a file at a line; one that is not known gets the file alone."""
    name = Path(program).name
    if name in _WITH_GOTO:
        return ["--goto", f"{path}:{line}"]
    if name in _WITH_COLON:
        return [f"{path}:{line}"]
    return [f"+{line}", str(path)] if name in _WITH_PLUS else [str(path)]


def open_file(argv: list[str], path: Path, environ: Mapping[str, str], *, line: int) -> None:
    """Open a file at a line in this terminal; blocks until the editor has ended.

    Raises:
        RunnerError: The editor cannot be started.
    """
    with deaf_to_interrupts():
        try:
            subprocess.run([*argv, *place_words(argv[0], path, line)], env=with_usable_terminal(environ), check=False)
        except OSError as error:
            raise RunnerError(f"{argv[0]} cannot be started: {error.strerror}") from error


def _is_alive(pid: str) -> bool:
    try:
        os.kill(int(pid), 0)
    except (ValueError, ProcessLookupError):
        return False
    except OSError:
        return True
    return True
