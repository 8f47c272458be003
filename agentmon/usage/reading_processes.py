"""Reads many sources in processes of their own, since readers keep a core busy; what they tell comes in order."""

from __future__ import annotations

import contextlib
import gc
import marshal
import os
import pickle
import queue
import struct
import subprocess
import sys
import threading
from dataclasses import fields
from operator import attrgetter
from typing import IO, TYPE_CHECKING, Any, Final, TypeAlias

from agentmon.domain.billing import BilledAnswer, Confidence
from agentmon.usage.following import Read
from agentmon.usage.reading import Reading
from agentmon.usage.unread import read_unread

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from agentmon.usage.following import Cursor
    from agentmon.usage.sources import SourceFile

_NAMES: Final = tuple(field.name for field in fields(BilledAnswer))
_columns_of: Final = attrgetter(*_NAMES)
_CONFIDENCE: Final = _NAMES.index("confidence")
_WRITERS: Final = tuple(getattr(BilledAnswer, name).__set__ for name in _NAMES)
_CONFIDENCES: Final = {one.value: one for one in Confidence}
_HEADER: Final = struct.Struct("<II")
"""The number of a job, and how many bytes follow: none behind its last piece."""
_PIECES_AHEAD: Final = 256
"""So many, of some 50 kB each, a process reads ahead of what it is asked for."""
_PIPE_BYTES: Final = 1_048_576
"""As large as Linux lets anybody make a pipe."""
_MADE_BEFORE_COLLECTION: Final = 50_000
_F_SETPIPE_SZ: Final = 1031


Job: TypeAlias = "tuple[SourceFile, Cursor | None]"
"""A source to be read from its cursor on."""


class ReadingProcesses:
    """Some processes that share jobs; ``close`` ends them, also in the midst of their work."""

    def __init__(self, jobs: Sequence[Job], count: int) -> None:
        """Start the processes.

        Args:
            jobs: In the order in which they are to be asked for.
            count: How many processes there are.
        """
        self._jobs = {source: (number, cursor) for number, (source, cursor) in enumerate(jobs)}
        self._processes = [_start(list(enumerate(jobs))[number::count]) for number in range(min(count, len(jobs)))]
        self._is_given_up = [False] * len(self._processes)

    @property
    def pids(self) -> list[int]:
        """Those of the processes."""
        return [process.pid for process in self._processes]

    def read(self, job: Job) -> Iterator[Read]:
        """Yield what ``read_unread`` yields for the job; the jobs have to be asked for in their order.

        One that is not read to its end is passed over. Where a process ends before its time, or tells something odd,
        the source is read here.
        """
        source, cursor = job
        number, known = self._jobs.get(source, (-1, None))
        turn = number % len(self._processes)
        if number >= 0 and known == cursor and not self._is_given_up[turn]:
            try:
                for read in _receive(self._processes[turn], number):
                    cursor = read.cursor or cursor
                    yield read
            except (EOFError, OSError, TypeError, ValueError, pickle.UnpicklingError):
                self._give_up(turn)
            else:
                return
        yield from read_unread(source, cursor)

    def close(self) -> None:
        """End the processes; idempotent."""
        for turn in range(len(self._processes)):
            self._give_up(turn)

    def _give_up(self, turn: int) -> None:
        self._is_given_up[turn] = True
        process = self._processes[turn]
        process.kill()
        if process.stdout is not None:
            process.stdout.close()
        process.wait()


def _start(jobs: Sequence[tuple[int, Job]]) -> subprocess.Popen[bytes]:
    process = subprocess.Popen(
        [sys.executable, "-P", "-m", "agentmon.usage.reading_processes"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    if process.stdin is not None and process.stdout is not None:
        if sys.platform == "linux":
            import fcntl  # noqa: PLC0415 - not everywhere

            with contextlib.suppress(OSError):
                fcntl.fcntl(process.stdout, _F_SETPIPE_SZ, _PIPE_BYTES)
        with contextlib.suppress(BrokenPipeError), process.stdin as stdin:
            pickle.dump(jobs, stdin, pickle.HIGHEST_PROTOCOL)
    return process


def _receive(process: subprocess.Popen[bytes], number: int) -> Iterator[Read]:
    """Yield the pieces of one job; what is left of earlier ones is passed over.

    Raises:
        EOFError: The process has ended, or is at a later job.
    """
    if process.stdout is None:
        raise EOFError
    while True:
        told_number, length = _HEADER.unpack(_exactly(process.stdout, _HEADER.size))
        told = _exactly(process.stdout, length)
        if told_number < number:
            continue
        if told_number > number:
            raise EOFError
        if not told:
            return
        answers, more = marshal.loads(told)
        failures, sessions, problems, limits, contexts, cursor = pickle.loads(more)
        reading = Reading(
            answers=tuple(_answer_of(_with_confidence(columns)) for columns in answers),
            failures=failures,
            sessions=sessions,
            problems=problems,
            limits=limits,
            contexts=contexts,
        )
        yield Read(reading=reading, cursor=cursor)


def _answer_of(columns: tuple[Any, ...]) -> BilledAnswer:
    """Return the answer; its constructor, which lets nothing be changed afterwards, would take four times as long."""
    answer = object.__new__(BilledAnswer)
    for write, column in zip(_WRITERS, columns, strict=True):
        write(answer, column)
    return answer


def _with_confidence(columns: tuple[Any, ...]) -> tuple[Any, ...]:
    return (*columns[:_CONFIDENCE], _CONFIDENCES[columns[_CONFIDENCE]], *columns[_CONFIDENCE + 1 :])


def _exactly(stream: IO[bytes], length: int) -> bytes:
    told = stream.read(length)
    if len(told) < length:
        raise EOFError
    return told


def _told(number: int, read: Read | None) -> bytes:
    """Return a piece of a job, or the end of its last one, as it is sent."""
    told = b""
    if read is not None:
        reading = read.reading
        answers = [_plain(_columns_of(answer)) for answer in reading.answers]
        more = (reading.failures, reading.sessions, reading.problems, reading.limits, reading.contexts, read.cursor)
        told = marshal.dumps((answers, pickle.dumps(more, pickle.HIGHEST_PROTOCOL)))
    return _HEADER.pack(number, len(told)) + told


def _send(stream: IO[bytes], pieces: queue.Queue[bytes]) -> None:
    """Send what comes until nothing is left; ends the process when nobody listens any more."""
    try:
        while piece := pieces.get():
            stream.write(piece)
            stream.flush()
    except OSError:
        os._exit(1)


def _plain(columns: tuple[object, ...]) -> tuple[object, ...]:
    return (*columns[:_CONFIDENCE], str(columns[_CONFIDENCE]), *columns[_CONFIDENCE + 1 :])


def main() -> None:
    """Read the jobs that come in on standard input, and tell on standard output what they hold."""
    # Answers are no garbage to look through.
    gc.set_threshold(_MADE_BEFORE_COLLECTION)
    # Whatever else prints must not come between.
    stream = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    pieces: queue.Queue[bytes] = queue.Queue(_PIECES_AHEAD)
    sender = threading.Thread(target=_send, args=(stream, pieces))
    sender.start()
    for number, job in pickle.load(sys.stdin.buffer):
        for read in read_unread(*job):
            pieces.put(_told(number, read))
        pieces.put(_told(number, None))
    pieces.put(b"")
    sender.join()


if __name__ == "__main__":
    main()
