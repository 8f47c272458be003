"""The folder of one execution: its files by name, and writing them so that nobody else can read them."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import os
import select
import shutil
import stat
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from agentmon.domain.ids import new_id
from agentmon.private_folders import make_private_folder

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path
    from typing import BinaryIO

_ERRORS: Final = "errors.log"
"""What an agent wrote to its error output, which is in the output log too."""

_DRAFTS: Final = "drafts.jsonl"
"""What an agent that is spoken to in a protocol is writing; a host that was killed leaves it behind."""

_END_STEPS: Final = "finalizing.jsonl"
"""What was done after the processes of a try were gone, one JSON object a line."""

_STOPPED: Final = "stopped"
"""Its presence means that the host was told to stop the run and had no space left to journal the end."""

_OF_ONE_TRY: Final = (
    "output.log", _ERRORS, _DRAFTS, "journal.jsonl", "protocol.jsonl", "host.lock", _END_STEPS, _STOPPED, "spec.json",
)  # fmt: skip
"""The specification last, since it says of which try the others are.

Not ``control.jsonl``: a try that was told to end is never followed by another, so what stands there is meant for the
present one, whose stop may have been asked before it was prepared. What was said to an agent names its try."""

_APPENDING: Final = os.O_WRONLY | os.O_APPEND | os.O_CREAT

_MAX_READ_BYTES: Final = 16 * 1024 * 1024
"""Most that is read of a file at once; what agentmon wrote itself is smaller by far."""

_FIFO_LINE_MAX_BYTES: Final = select.PIPE_BUF
"""What a FIFO takes whole, whoever else writes to it; a longer line only wakes the host. Source: POSIX, PIPE_BUF."""


@dataclass(frozen=True, slots=True)
class ExecutionFolder:
    """Paths inside the folder of one execution."""

    path: Path

    @property
    def spec(self) -> Path:
        """What the host has to do."""
        return self.path / "spec.json"

    @property
    def environment(self) -> Path:
        """The allow-listed environment of whoever asked for the execution; kept until it is over."""
        return self.path / "environment.json"

    @property
    def launch_environment(self) -> Path:
        """The complete environment of the program; the host deletes it when it has read it."""
        return self.path / "launch-environment.json"

    @property
    def output_log(self) -> Path:
        """What the program wrote, byte for byte."""
        return self.path / "output.log"

    @property
    def errors_log(self) -> Path:
        """What an agent that is spoken to in a protocol wrote to its error output."""
        return self.path / _ERRORS

    @property
    def drafts(self) -> Path:
        """The messages that an agent is writing, one piece a line; gone when its host has ended."""
        return self.path / _DRAFTS

    @property
    def journal(self) -> Path:
        """What happened, one JSON object a line."""
        return self.path / "journal.jsonl"

    @property
    def control(self) -> Path:
        """Commands for the host, one JSON object a line."""
        return self.path / "control.jsonl"

    @property
    def wake(self) -> Path:
        """The FIFO that makes the host look at its commands at once."""
        return self.path / "wake"

    @property
    def verification_lock(self) -> Path:
        """Locked for as long as somebody verifies the run."""
        return self.path / "verification.lock"

    @property
    def host_lock(self) -> Path:
        """Locked for as long as the host lives."""
        return self.path / "host.lock"

    @property
    def was_stopped(self) -> bool:
        """Whether its host was told to stop the run and had no space left to journal the end."""
        return (self.path / _STOPPED).exists()

    def verification_log(self, attempt: int) -> str:
        """Return where the output of a verification of the run goes; they are counted from 1."""
        return str(self.path / f"verification-{attempt}.log")

    def make(self) -> None:
        """Make the folder, for nobody but its owner; one that is there is fine."""
        make_private_folder(self.path)

    def remove(self) -> None:
        """Remove the folder of an execution that never got its row."""
        shutil.rmtree(self.path, ignore_errors=True)

    def remove_logs(self) -> None:
        """Remove the output of every try; the journals stay, and so does what is missing already.

        Raises:
            OSError: One of them cannot be removed.
        """
        for name in (self.output_log.name, _ERRORS, _DRAFTS):
            # One that was being cut when its host was killed has a copy behind it.
            for log in (self.path / name, self.path / f"{name}.new", *self.path.glob(f"try-*/{name}")):
                log.unlink(missing_ok=True)
        for log in self.path.glob("verification-*.log"):
            log.unlink(missing_ok=True)

    def is_of_try(self, attempt: int) -> bool:
        """Return whether what stands in the folder itself is of this try: all before it were set aside.

        Its specification says so. Where there is none the folder of the try before counts, which a program can make.
        """
        if attempt == 0:
            return True
        told = self._find_attempt()
        return (self.path / f"try-{attempt}").exists() if told is None else told == attempt

    def set_tries_aside(self, count: int) -> None:
        """Move the files of the first ``count`` tries into folders of their own; those that are there stay.

        What stands in the place of such a folder, and is none, is moved out of the way.

        Before that is done, no further try may be begun in the folder, and nothing in it be read as that of one.

        Raises:
            OSError: The folder is missing or cannot be written.
        """
        present = self._find_attempt()
        if present == count:
            return
        for try_number in range(1, count + 1):
            aside = self.path / f"try-{try_number}"
            unfinished = self.path / f"try-{try_number}.partial"
            is_due = present == try_number - 1 or unfinished.exists()
            if aside.exists() and not is_due:
                continue
            unfinished.mkdir(mode=0o700, exist_ok=True)
            for name in _OF_ONE_TRY:
                if (self.path / name).exists():
                    (self.path / name).rename(unfinished / name)
            if aside.exists():
                aside.rename(self.path / f"try-{try_number}.{new_id()}")
            unfinished.rename(aside)

    def _find_attempt(self) -> int | None:
        """Return of which try the specification in the folder is; None where there is none that can be read."""
        try:
            spec = json.loads(read_whole(self.spec))
        except (OSError, ValueError):
            return None
        attempt = spec.get("attempt") if isinstance(spec, dict) else None
        return attempt if type(attempt) is int else None

    def write_spec(self, spec: Mapping[str, object]) -> None:
        """Write what the host has to do."""
        write_private_json(self.spec, spec)

    def withdraw(self) -> bool:
        """Take back what a host was to do; return False when one has begun with it.

        A host that comes late, as from a tmux that hung, finds nothing to do and touches nothing.

        Raises:
            OSError: The folder cannot be read or written, so that nothing is certain.
        """
        if self.journal.exists():
            return False
        if not self.spec.exists():
            return True
        with os.fdopen(open_descriptor(self.host_lock, os.O_RDWR | os.O_CREAT)) as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return False
            if self.journal.exists():
                return False
            self.spec.unlink()
            self.launch_environment.unlink(missing_ok=True)
        return True

    def write_environment(self, environment: Mapping[str, str]) -> None:
        """Write the environment of whoever asked for the execution."""
        write_private_json(self.environment, environment)

    def write_launch_environment(self, environment: Mapping[str, str]) -> None:
        """Write the environment of the program."""
        write_private_json(self.launch_environment, environment)

    def remove_environments(self) -> None:
        """Remove what was written of environments; what is not there is fine."""
        self.launch_environment.unlink(missing_ok=True)
        self.environment.unlink(missing_ok=True)

    def read_environment(self) -> Mapping[str, str] | None:
        """Return what ``write_environment`` wrote, or None when it is gone or damaged."""
        try:
            environment = json.loads(read_whole(self.environment).decode("utf-8", "surrogateescape"))
        except (OSError, ValueError):
            return None
        return {str(name): str(text) for name, text in environment.items()} if isinstance(environment, dict) else None

    def append_end_step(self, line: Mapping[str, object]) -> None:
        """Note a step of the end that was done, for whoever looks into the folder; nothing is read from there.

        Raises:
            OSError: The folder is missing, or the disk is full.
        """
        with os.fdopen(open_descriptor(self.path / _END_STEPS, _APPENDING), "wb") as file:
            file.write(json.dumps(line).encode() + b"\n")

    def append_command(self, command: Mapping[str, object]) -> None:
        """Hand the host one command, through its file and through the FIFO; a host that is gone is no error.

        The file is for a host that reads later, the FIFO is at once and needs no space on the disk. A command that
        comes both ways is obeyed once.

        Raises:
            OSError: It could be handed over in neither way.
        """
        line = json.dumps(command).encode() + b"\n"
        failure = None
        try:
            self._append_to_control(line)
        except OSError as error:
            failure = error
        # A longer line may go into the FIFO in pieces; then the file alone has it.
        is_short = len(line) <= select.PIPE_BUF
        is_told = self._write_to_wake(line if is_short else b"\n") and is_short
        if not is_told and failure is not None:
            raise failure

    def hand_over(self, command: Mapping[str, object]) -> None:
        """Hand the host one command through the FIFO alone, so that no file has it.

        Raises:
            OSError: Nobody reads there now, or the command is too long for that.
        """
        line = json.dumps(command).encode() + b"\n"
        if len(line) > _FIFO_LINE_MAX_BYTES:
            raise OSError(errno.EMSGSIZE, "the command is too long to be handed over at once")
        if not self._write_to_wake(line):
            raise OSError(errno.EAGAIN, "its host does not read commands yet")

    def has_command(self, command_id: str) -> bool:
        """Return whether the host was handed a command of this id; half a line, which a full disk leaves, is none.

        Only the newest 16 MiB of commands are looked at.

        Raises:
            OSError: The file cannot be read; one that is missing has none.
        """
        return any(command.get("id") == command_id for command in self._commands())

    @property
    def has_stop(self) -> bool:
        """Whether the host was handed a stop: it will start nothing.

        Raises:
            OSError: The file cannot be read; one that is missing has none.
        """
        return any(command.get("type") in {"stop", "kill"} for command in self._commands())

    def _commands(self) -> Iterator[Mapping[str, object]]:
        try:
            with open_at_once(self.control) as file:
                file.seek(max(0, file.seek(0, os.SEEK_END) - _MAX_READ_BYTES))
                lines = file.read(_MAX_READ_BYTES).decode("utf-8", "replace").split("\n")
        except FileNotFoundError:
            return
        for line in lines:
            with contextlib.suppress(ValueError):
                command = json.loads(line)
                if isinstance(command, dict):
                    yield command

    def _append_to_control(self, line: bytes) -> None:
        descriptor = open_descriptor(self.control, _APPENDING)
        try:
            # A full disk takes half a line; the line feed in front keeps the next one apart from it.
            if os.write(descriptor, b"\n" + line) <= len(line):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        finally:
            os.close(descriptor)

    def _write_to_wake(self, line: bytes) -> bool:
        try:
            wake = os.open(self.wake, os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError:
            return False
        is_whole = len(line) <= _FIFO_LINE_MAX_BYTES
        try:
            os.write(wake, line if is_whole else b"\n")
        except OSError:
            return False
        finally:
            os.close(wake)
        return is_whole


def open_descriptor(path: Path | str, flags: int) -> int:
    """Open a file of a run; a pipe that an agent put in its place would hold the thread for ever.

    Raises:
        OSError: It is missing, cannot be opened, or is no regular file.
    """
    descriptor = os.open(path, flags | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY, 0o600)
    if stat.S_ISREG(os.fstat(descriptor).st_mode):
        return descriptor
    os.close(descriptor)
    raise OSError(errno.EINVAL, "it is not a file", str(path))


def open_at_once(path: Path) -> BinaryIO:
    """Open a file of a run for reading.

    Raises:
        OSError: It is missing, cannot be read, or is no regular file.
    """
    return open(path, "rb", opener=open_descriptor)


def read_whole(path: Path) -> bytes:
    """Return the content of a file of a run.

    Raises:
        OSError: It is missing, cannot be read, is no regular file, or is larger than 16 MiB.
    """
    with open_at_once(path) as file:
        content = file.read(_MAX_READ_BYTES + 1)
    if len(content) > _MAX_READ_BYTES:
        raise OSError(errno.EFBIG, os.strerror(errno.EFBIG), str(path))
    return content


def write_private_json(path: Path, content: Mapping[str, object]) -> None:
    """Write a file of a run as a whole or not at all, for nobody but its owner.

    Raises:
        OSError: It cannot be written.
    """
    text = json.dumps(content, ensure_ascii=False).encode("utf-8", "surrogateescape")
    partial = path.with_name(path.name + ".partial")
    # What a kill left behind is nobody's, and what a program put there may be a pipe.
    partial.unlink(missing_ok=True)
    with os.fdopen(open_descriptor(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL), "wb") as file:
        file.write(text)
    partial.replace(path)
