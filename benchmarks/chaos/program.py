"""The program that chaos runs: behaves as its first argument says and keeps a ledger of its own outside the home.

Standard library only, run with ``-I -S``. Each process of a run has its own ledger file, one JSON object a line:
``start``, then ``will`` before and ``wrote`` after each write to standard output, with the bytes and the digest of all
that was written so far, then ``end`` with the exit code. A ledger without ``end`` is that of a process that was killed.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import random
import signal
import sys
import time

MARKER = "AGENTMON_EXECUTION_ID"
_FAR_S = 40.0
_MADE = 40
_SECONDS = {
    "short": (0.0, 0.4),
    "long": (3.0, 8.0),
    "failing": (0.0, 0.3),
    "flaky": (0.0, 0.3),
    "stubborn": (3.0, 8.0),
    "overtime": (_FAR_S, _FAR_S),
    "overtime_stubborn": (_FAR_S, _FAR_S),
}
"""How long the kinds that do nothing else print."""


class Ledger:
    """What one process says of itself."""

    def __init__(self, folder: str, writer: str, *, main_pid: int, kind: str) -> None:
        self._execution = os.environ.get(MARKER, "none")
        self._writer = writer
        path = os.path.join(folder, f"{self._execution}.{os.getpid()}.{time.monotonic_ns()}.jsonl")  # noqa: PTH118 - lean
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        self._digest = hashlib.sha256()
        self._bytes = 0
        self._lines = 0
        self._is_deaf = False
        self._add(
            type="start",
            execution=self._execution,
            writer=writer,
            pid=os.getpid(),
            born=_start_time(),
            parent=os.getppid(),
            main=main_pid,
            kind=kind,
            secret=hashlib.sha256(os.environ.get("API_KEY", "").encode()).hexdigest(),
        )

    def write(self, payload: str = "", *, lines: int = 1) -> None:
        """Write whole lines to standard output; once nobody listens any more, say nothing further."""
        if self._is_deaf:
            return
        chunk = b"".join(f"{self._writer} {self._lines + offset} {payload}\n".encode() for offset in range(lines))
        self._digest.update(chunk)
        self._bytes += len(chunk)
        self._lines += lines
        self._note("will")
        rest = chunk
        try:
            while rest:
                rest = rest[os.write(1, rest) :]
        except OSError:
            self._is_deaf = True
            return
        self._note("wrote")

    def end(self, code: int) -> None:
        """Say that this process ends by itself, and end it."""
        self._note("end", code=code, deaf=self._is_deaf)
        os._exit(code)

    def _note(self, what: str, **more: object) -> None:
        self._add(type=what, bytes=self._bytes, lines=self._lines, sha256=self._digest.hexdigest(), **more)

    def _add(self, **entry: object) -> None:
        os.write(self._file, json.dumps({"at": time.monotonic(), **entry}).encode() + b"\n")


def _start_time() -> str:
    """Return when this process was born, in ticks since the machine's start; with the pid it names it for good."""
    try:
        with open("/proc/self/stat", "rb") as file:  # noqa: PTH123 - lean
            return file.read().rpartition(b")")[2].split()[19].decode()
    except OSError:
        return ""


def main(kind: str, folder: str, seed: str) -> None:
    """Behave as the kind says."""
    ignores_term = kind in {"stubborn", "overtime_stubborn"}
    if ignores_term:
        _ignore_requests()
    # Else a hang-up is as good as death, as for most programs.
    ledger = Ledger(folder, "m", main_pid=os.getpid(), kind=kind)
    chance = random.Random(f"{seed} {os.environ.get(MARKER)}")
    ledger.end(_behave(kind, folder, ledger, chance))


def _behave(kind: str, folder: str, ledger: Ledger, chance: random.Random) -> int:
    """Do what the kind stands for and return the exit code."""
    if kind in {"daemon", "setsid"}:
        _leave_behind(ledger, folder, kind, is_deaf_to_requests=kind == "setsid")
    elif kind == "forking":
        return _fork_writers(ledger, folder, kind)
    elif kind == "last_words":
        _say_last_words(folder, ledger)
    elif kind in {"changing", "merging"}:
        return _change(kind, folder, ledger, chance)
    elif kind == "silent":
        time.sleep(chance.uniform(0.1, 1.5))
    elif kind == "noisy":
        for _ in range(chance.randrange(20, 50)):
            ledger.write("x" * 100, lines=80)
    else:
        _print_for(ledger, chance.uniform(*_SECONDS[kind]))
    if kind == "flaky":
        prefix = os.environ.get(MARKER, "none") + "."
        is_first = sum(name.startswith(prefix) for name in os.listdir(folder)) == 1  # noqa: PTH208 - lean
        return 7 if is_first else 0
    return 3 if kind == "failing" else 0


def _say_last_words(folder: str, ledger: Ledger) -> None:
    """Tell whoever fills disks that the end is near, and then say most of what there is to say."""
    with open(os.path.join(folder, f"{os.environ.get(MARKER, 'none')}.brink"), "wb"):  # noqa: PTH118, PTH123 - lean
        time.sleep(0.3)
    for _ in range(20):
        ledger.write("x" * 100, lines=80)


def _change(kind: str, folder: str, ledger: Ledger, chance: random.Random) -> int:
    """Change what the kind changes; a full disk fails it, as any program."""
    try:
        _change_files(ledger)
        if kind == "merging":
            _change_shared_file(folder, chance)
    except OSError as error:
        if error.errno != errno.ENOSPC:
            raise
        return 4
    return 0


def _change_files(ledger: Ledger) -> None:
    """Make a folder of files that belong to this run alone."""
    made = os.path.join("made", os.environ.get(MARKER, "none"))  # noqa: PTH118 - lean
    os.makedirs(made, exist_ok=True)  # noqa: PTH103 - lean
    for number in range(_MADE):
        with open(os.path.join(made, str(number)), "w", encoding="ascii") as file:  # noqa: PTH118, PTH123 - lean
            file.write(f"{number}\n" * 20)
        ledger.write("made")


def _change_shared_file(folder: str, chance: random.Random) -> None:
    """Write a line where other branches write theirs, and at times commit all of it."""
    path = f"shared/{chance.randrange(6)}.txt"
    with open(path, encoding="ascii") as file:  # noqa: PTH123 - lean
        first, rest = file.readline(), file.read()
    # Whole or not at all, also on a full disk.
    new = f"{path}.new"
    try:
        with open(new, "w", encoding="ascii") as file:  # noqa: PTH123 - lean
            file.write(f"{first}{os.environ.get(MARKER)}\n{rest}")
        os.replace(new, path)  # noqa: PTH105 - lean
    except OSError:
        if os.path.exists(new):  # noqa: PTH110 - lean
            os.unlink(new)  # noqa: PTH108 - lean
        raise
    if chance.random() < 0.5:
        # A commit that is cut off leaves locks, as that of any agent.
        mark = os.path.join(folder, f"{os.environ.get(MARKER, 'none')}.commits")  # noqa: PTH118 - lean
        with open(mark, "wb"):  # noqa: PTH123 - lean
            pass
        for words in (("add", "-A"), ("commit", "-q", "-m", "work")):
            os.waitpid(os.posix_spawnp("git", ("git", *words), os.environ), 0)
        os.unlink(mark)  # noqa: PTH108 - lean


def _ignore_requests() -> None:
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
        signal.signal(number, signal.SIG_IGN)


def _print_for(ledger: Ledger, seconds: float) -> None:
    until = time.monotonic() + seconds
    ledger.write("first")
    while time.monotonic() < until:
        ledger.write("tick")
        time.sleep(0.05)


def _fork_writers(ledger: Ledger, folder: str, kind: str) -> int:
    main_pid = os.getpid()
    children = []
    for number in range(3):
        child = os.fork()
        if child == 0:
            own = Ledger(folder, f"c{number}", main_pid=main_pid, kind=kind)
            _print_for(own, 0.5)
            own.end(0)
        children.append(child)
    _print_for(ledger, 0.3)
    codes = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
    return 0 if codes == [0, 0, 0] else 1


def _leave_behind(ledger: Ledger, folder: str, kind: str, *, is_deaf_to_requests: bool) -> None:
    main_pid = os.getpid()
    first = os.fork()
    if first == 0:
        os.setsid()
        if is_deaf_to_requests:
            _ignore_requests()
        elif os.fork():
            os._exit(0)
        Ledger(folder, "d", main_pid=main_pid, kind=kind)
        time.sleep(_FAR_S)
        os._exit(0)
    if not is_deaf_to_requests:
        os.waitpid(first, 0)
    _print_for(ledger, 0.3)


if __name__ == "__main__":
    main(*sys.argv[1:])
