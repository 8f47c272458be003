"""Commands of a project that belong to a run: its set-up and its verification, each with its output in a log."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import time
from typing import TYPE_CHECKING, Final, NamedTuple

from agentmon.domain.plain_text import plain_line
from agentmon.domain.redaction import redact
from agentmon.runners.execution_folder import open_descriptor
from agentmon.runners.sandbox.plan import in_sandbox
from agentmon.threads import in_daemon_thread
from agentmon.worker.strays import end_strays

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping
    from pathlib import Path

    from agentmon.domain.ids import ExecutionId

STRAYS_GRACE_S: Final = 2.0
"""How long what a command has started gets to end by itself."""
_LOOK_EVERY_S: Final = 0.1
_MAX_LOG_BYTES: Final = 16 * 1024 * 1024
_TAIL_BYTES: Final = 64 * 1024
_READ_BYTES: Final = 64 * 1024
_SAID_BYTES: Final = 4 * 1024
_MAX_LINE_CHARACTERS: Final = 200
_SIGNALLED: Final = 128


class CommandEnd(NamedTuple):
    """How a command ended."""

    exit_code: int = 0
    """128 + N when signal N ended it; of one that was ended from here it says nothing."""
    is_stopped: bool = False
    is_timed_out: bool = False


class CommandLog:
    """What a command says, behind what the file has already: its first 16 MiB, and its end.

    Args:
        path: The file; its folder is there.
        on_output: Called with each piece as it comes.

    Raises:
        OSError: The file cannot be written.
    """

    def __init__(self, path: Path, *, on_output: Callable[[bytes], None] | None = None) -> None:
        self._file = open_descriptor(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        self.is_continued = os.fstat(self._file).st_size > 0
        self._on_output = on_output
        self._left = _MAX_LOG_BYTES
        self._left_out = 0
        self._tail = b""
        self._said = b""

    @property
    def last_line(self) -> str:
        """The newest line of the command that says something, safe to show; empty without one."""
        lines = self._said.decode("utf-8", "replace").splitlines()
        said = next((line for line in reversed(lines) if line.strip()), "")
        return plain_line(redact(said), max_characters=_MAX_LINE_CHARACTERS)

    def say(self, line: str) -> None:
        """Write one line of agentmon's own."""
        self._write(f"[agentmon] {redact(plain_line(line))}\n".encode("utf-8", "replace"))

    async def copy(self, stream: asyncio.StreamReader | None) -> None:
        """Write what the command says."""
        while stream is not None and (chunk := await stream.read(_READ_BYTES)):
            self._write(chunk)
            self._said = (self._said + chunk)[-_SAID_BYTES:]

    def close(self) -> None:
        """Write the end of what had no room, and close the file."""
        if self._left_out:
            end = self._tail[-self._left_out :]
            mark = f"\n[agentmon] … {self._left_out - len(end):,} bytes left out\n".encode()
            with contextlib.suppress(OSError):
                os.write(self._file, mark + end)
        os.close(self._file)

    def _write(self, chunk: bytes) -> None:
        if self._on_output is not None:
            self._on_output(chunk)
        # What a full disk does not take is lost; the run itself waits for space.
        with contextlib.suppress(OSError):
            os.write(self._file, chunk[: self._left])
        self._left_out += max(0, len(chunk) - self._left)
        self._left = max(0, self._left - len(chunk))
        self._tail = (self._tail + chunk)[-_TAIL_BYTES:]


async def run_project_command(
    command: str,
    *,
    working_dir: str,
    environment: Mapping[str, str],
    layout: Mapping[str, object] | None = None,
    execution_id: ExecutionId,
    log: CommandLog,
    timeout_s: float,
    is_stopped: Callable[[], bool],
    inherited: Collection[int] = (),
) -> CommandEnd:
    """Run a line of shell to its end; what it leaves running then goes on, unless it is ended from here.

    Args:
        command: For ``/bin/sh``.
        working_dir: Absolute.
        environment: All variables but the marker of the run, by which its processes are found after a kill.
        layout: What it runs in; None for nothing.
        execution_id: The run that it belongs to.
        log: Gets both outputs.
        timeout_s: After that it is ended.
        is_stopped: Asked ten times a second, in a thread, whether it is to be ended.
        inherited: Descriptors that it keeps open for as long as it lives.

    Raises:
        OSError: It cannot be started; the folder may be gone.
    """
    process = await asyncio.create_subprocess_exec(
        *in_sandbox(layout, ("/bin/sh", "-c", command)),
        cwd=working_dir,
        env={**environment, "AGENTMON_EXECUTION_ID": execution_id},
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        start_new_session=True,
        pass_fds=tuple(inherited),
    )
    began_at = time.monotonic()
    ending = asyncio.create_task(process.wait())
    copying = asyncio.create_task(log.copy(process.stdout))
    try:
        while not ending.done():
            await asyncio.wait([ending], timeout=_LOOK_EVERY_S)
            if not ending.done() and await in_daemon_thread(is_stopped, name="stop"):
                return CommandEnd(is_stopped=True)
            if not ending.done() and time.monotonic() - began_at > timeout_s:
                return CommandEnd(is_timed_out=True)
    finally:
        await _end(process, execution_id)
        # What it left running in the background may hold its output open.
        await asyncio.wait([copying], timeout=_LOOK_EVERY_S)
        copying.cancel()
        await asyncio.wait([copying, ending])
    code = process.returncode or 0
    return CommandEnd(exit_code=code if code >= 0 else _SIGNALLED - code)


async def _end(process: asyncio.subprocess.Process, execution_id: ExecutionId) -> None:
    """End the command with all that it has started and that still runs."""
    if process.returncode is None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGTERM)
        await end_strays(execution_id, grace_s=STRAYS_GRACE_S)
        await process.wait()
