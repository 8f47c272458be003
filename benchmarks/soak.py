"""A day shrunk to minutes: a hundred live runs with constant output, and a script at the keys of the real app.

``python -m benchmarks.soak --minutes 20``. Each key has an answer that the screen has to show within a deadline; the
memory of app and worker is looked at every ten seconds.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import re
import shlex
import statistics
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

from agentmon.bootstrap import open_services
from agentmon.services.actors import USER_ACTOR
from agentmon.worker.presence import read_presence
from benchmarks.process_costs import processor_s
from benchmarks.scratch_home import add_command, scratch_home

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from agentmon.paths import Paths

RUNS: Final = 100
MINUTES: Final = 20.0
GROWTH_GOAL_PERCENT: Final = 5.0
ANSWER_WITHIN_S: Final = 5.0
_WARM_UP_SHARE: Final = 0.25
_COMPARED_SHARE: Final = 0.15
"""The memory of so much of the time behind the warm-up is compared with that of as much at the end."""
_LOOK_EVERY_S: Final = 10.0
_START_WITHIN_S: Final = 240.0
_LEAST_LINES: Final = 60
_SELECTED: Final = re.compile(r"▌#(\d+)")
_LINE: Final = re.compile(r"line (\d+) of run")
# Asked to end by a file, so that no run is over before the measurement is.
_SCRIPT: Final = (
    'n=0; while [ -d "${0%/*}" ] && [ ! -e "$0" ]; do n=$((n + 1)); '
    'printf "\\033[32mline %d of run %s\\033[0m, with some words behind it that make it longer\\n" $n "$1"; '
    "sleep 0.5; done"
)


@dataclass(slots=True)
class Answers:
    """How the keys were answered."""

    waits_s: list[float] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    """What was not shown in time."""


@dataclass(slots=True)
class Memory:
    """Samples of one process: seconds since the begin, and MB of its own memory."""

    samples: list[tuple[float, float]] = field(default_factory=list)

    def growth(self, total_s: float) -> tuple[float, float]:
        """Return the medians behind the warm-up and at the end, in MB."""
        warm_s, part_s = total_s * _WARM_UP_SHARE, total_s * _COMPARED_SHARE
        early = [mb for at, mb in self.samples if warm_s <= at <= warm_s + part_s]
        late = [mb for at, mb in self.samples if at >= total_s - part_s]
        # A short try may have no look in one of them.
        return statistics.median(early or [self.samples[0][1]]), statistics.median(late or [self.samples[-1][1]])


class Screen:
    """The app in a terminal of its own, inside a tmux server of its own."""

    def __init__(self, paths: Paths, project: Path) -> None:
        self._socket = str(paths.data_dir.parent / "soak.sock")
        environ = {
            "AGENTMON_HOME": str(paths.data_dir),
            "AGENTMON_COSTS_IMPORT_HISTORY": "false",
            "AGENTMON_APP_WELCOME": "false",
            "TERM": "xterm-256color",
            "COLORTERM": "truecolor",
        }
        words = ["exec", "env", "-u", "TMUX", *(f"{name}={value}" for name, value in environ.items())]
        words += [sys.executable, "-m", "agentmon", "-C", str(project)]
        command = " ".join(shlex.quote(word) if word != "exec" else word for word in words)
        self._tmux("-f", "/dev/null", "new-session", "-d", "-x", "120", "-y", "40", "-c", str(Path.cwd()), command)
        self.pid = int(self._tmux("display-message", "-p", "#{pane_pid}"))
        self.answers = Answers()
        self.missing_file: Path | None = None
        """Gets the screens on which an answer was missing."""

    def text(self) -> str:
        """Return what is shown."""
        return self._tmux("capture-pane", "-p")

    def press(self, key: str, shows: Callable[[str], bool], what: str) -> None:
        """Press the key, and wait until the screen shows its answer or the deadline is over."""
        began = time.monotonic()
        self._tmux("send-keys", key)
        while True:
            if shows(self.text()):
                self.answers.waits_s.append(time.monotonic() - began)
                return
            if time.monotonic() - began > ANSWER_WITHIN_S:
                self.answers.missing.append(f"{what} ({key})")
                if self.missing_file is not None:
                    with self.missing_file.open("a") as missing:
                        missing.write(f"--- {len(self.answers.waits_s)} answers, then {what} ({key})\n{self.text()}\n")
                return
            time.sleep(0.02)

    def end(self) -> None:
        """End the app and its terminal."""
        subprocess.run(["tmux", "-S", self._socket, "kill-server"], check=False, capture_output=True)

    def _tmux(self, *words: str) -> str:
        command = ["tmux", "-S", self._socket, *words]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def measure(
    *, minutes: float = MINUTES, runs: int = RUNS, samples_file: Path | None = None
) -> list[tuple[str, str, str]]:
    """Return rows of name, what was measured, and the goal; needs tmux and Linux.

    Args:
        minutes: How long the script goes on, behind the start of the runs.
        runs: How many run.
        samples_file: Where every look at the memory is written too, as CSV; beside it come the screens on which an
            answer was missing.
    """
    with scratch_home() as paths:
        project = paths.data_dir.parent / "project"
        end_file = project / "end"
        asyncio.run(_start_runs(paths, project, end_file, runs))
        screen = Screen(paths, project)
        if samples_file is not None:
            screen.missing_file = samples_file.with_suffix(".missing")
        try:
            rows = _drive(screen, paths, minutes * 60, runs, samples_file)
        finally:
            end_file.touch()
            screen.end()
    return rows


async def _start_runs(paths: Paths, project: Path, end_file: Path, runs: int) -> None:
    async with open_services(paths) as services:
        workspace = await services.workspaces.open(project)
        await services.settings.set("worker.max_running", str(runs), actor=services.actor)
        executions = []
        for number in range(1, runs + 1):
            words = ("sh", "-c", _SCRIPT, str(end_file), f"{number:03d}")
            task = await add_command(services, workspace, *words, title=f"run {number:03d}")
            executions.append(await services.queue.run(task.id, actor=USER_ACTOR))
        deadline = time.monotonic() + _START_WITHIN_S
        for execution in executions:
            while (await services.executions.get(execution.id)).pid is None:
                if time.monotonic() > deadline:
                    message = f"not all programs ran within {_START_WITHIN_S:g} s"
                    raise TimeoutError(message)
                await asyncio.sleep(0.1)
        # The script turns pages of logs.
        log = services.executions.log_path(executions[-1])
        while not log.exists() or log.read_bytes().count(b"\n") < _LEAST_LINES:  # noqa: ASYNC110 - it is in a file
            await asyncio.sleep(_LOOK_EVERY_S / 10)


def _drive(
    screen: Screen, paths: Paths, total_s: float, runs: int, samples_file: Path | None
) -> list[tuple[str, str, str]]:
    app, worker = Memory(), Memory()
    worker_pid = read_presence(paths.worker_lock).pid or 0
    screen.press("1", lambda text: f"In progress {runs}" in text, "the board at the start")
    screen.answers = Answers()
    used_before = processor_s(screen.pid), processor_s(worker_pid)
    began, looked_at = time.monotonic(), float("-inf")
    steps = _steps(screen, runs)
    while (elapsed_s := time.monotonic() - began) < total_s:
        if elapsed_s - looked_at >= _LOOK_EVERY_S:
            looked_at = elapsed_s
            for memory, pid in ((app, screen.pid), (worker, worker_pid)):
                memory.samples.append((elapsed_s, _own_mb(pid)))
            if samples_file is not None:
                with samples_file.open("a") as samples:
                    samples.write(f"{elapsed_s:.0f},{app.samples[-1][1]:.1f},{worker.samples[-1][1]:.1f}\n")
        next(steps)()
    used = processor_s(screen.pid) - used_before[0], processor_s(worker_pid) - used_before[1]
    waits = sorted(screen.answers.waits_s)
    missing = screen.answers.missing
    named = f": {', '.join(missing[:5])}" if missing else ""
    what = f"{runs} runs with constant output, {total_s / 60:g} min of keys"
    return [
        (f"{what}: keys without an answer within {ANSWER_WITHIN_S:g} s", f"{len(missing)} of {len(waits)}{named}", "0"),
        (
            f"{what}: key → answer on the screen, with what tmux and looking take",
            f"median {_ms(waits, 50)}, p95 {_ms(waits, 95)}, longest {_ms(waits, 100)} ms",
            "",
        ),
        _memory_row(f"{what}: memory of the app", app, total_s),
        _memory_row(f"{what}: memory of the worker", worker, total_s),
        (f"{what}: app and worker", " and ".join(f"{100 * one / total_s:.0f} %" for one in used) + " of a core", ""),
    ]


def _ms(waits: list[float], percent: int) -> str:
    return f"{waits[min(len(waits) - 1, len(waits) * percent // 100)] * 1000:.0f}"


def _memory_row(what: str, memory: Memory, total_s: float) -> tuple[str, str, str]:
    early, late = memory.growth(total_s)
    return what, f"{early:.1f} → {late:.1f} MB ({100 * (late / early - 1):+.1f} %)", f"≤ +{GROWTH_GOAL_PERCENT:g} %"


def _own_mb(pid: int) -> float:
    """Return the memory that the process alone holds; what it shares with others comes and goes with them."""
    kilobytes = 0
    for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
        if line.startswith(("Private_Clean:", "Private_Dirty:")):
            kilobytes += int(line.split()[1])
    return kilobytes / 1024


def _steps(screen: Screen, runs: int) -> Iterator[Callable[[], None]]:
    """Give steps for ever: each presses a few keys and waits for the answer of each."""
    number = 0
    while True:
        number = number % runs + 1
        yield lambda: _go_through_places(screen, runs)
        yield lambda: _move_cursor(screen)
        yield lambda: _open_dialogs(screen)
        at = number * 37 % runs + 1
        yield lambda at=at: _filter_and_read_log(screen, at, runs)  # type: ignore[misc] # a default binds it


def _go_through_places(screen: Screen, runs: int) -> None:
    for key, words in (
        ("2", f"{runs} running"),
        ("3", "Costs"),
        ("5", "Sessions"),
        ("6", "Inbox"),
        ("7", "Settings"),
        ("1", f"In progress {runs}"),
    ):
        screen.press(key, lambda text, words=words: words in text, words)  # type: ignore[misc] # as above


def _move_cursor(screen: Screen) -> None:
    screen.press("g", lambda text: _SELECTED.search(text) is not None, "a selected card")
    for key in ("j", "j", "j", "k", "G", "k", "g"):
        before = _selected(screen.text())
        screen.press(key, lambda text, before=before: _selected(text) not in {before, None}, "another card")  # type: ignore[misc] # as above


def _open_dialogs(screen: Screen) -> None:
    for key, words in (("?", "Everywhere"), ("B", "Background work"), ("n", "ctrl+s"), ("C-p", "Search")):
        screen.press(key, lambda text, words=words: words in text, words)  # type: ignore[misc] # as above
        screen.press("Escape", lambda text, words=words: words not in text and "▌#" in text, f"no {words}")  # type: ignore[misc] # as above


def _filter_and_read_log(screen: Screen, at: int, runs: int) -> None:
    title = f"run {at:03d}"
    screen.press("/", lambda text: "n New" not in text, "the filter")
    typed = ""
    for letter in f"{at:03d}":
        typed += letter
        screen.press(letter, lambda text, typed=typed: typed in text, f"the filter {typed}")  # type: ignore[misc] # as above
    screen.press("Enter", lambda text: title in text and f"In progress {runs}" not in text, f"only {title}")
    screen.press("g", lambda text: _selected(text) is not None, "the card")
    screen.press("Enter", lambda text: "Details" in text and "]" in text, "its page")
    screen.press("]", lambda text: _LINE.search(text) is not None, "its log")
    screen.press("g", lambda text: "line 1 of run" in text, "the first line")
    screen.press("C-d", lambda text: "line 1 of run" not in text and _LINE.search(text) is not None, "a page down")
    newest = max((int(found) for found in _LINE.findall(screen.text())), default=0)
    screen.press("G", lambda text: any(int(found) > newest for found in _LINE.findall(text)), "the last line")
    screen.press("Escape", lambda text: "Details" not in text, "the board")
    screen.press("Escape", lambda text: f"In progress {runs}" in text, "all cards")


def _selected(text: str) -> str | None:
    found = _SELECTED.search(text)
    return None if found is None else found[1]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else "")
    parser.add_argument("--minutes", type=float, default=MINUTES)
    parser.add_argument("--runs", type=int, default=RUNS)
    parser.add_argument("--samples", type=Path, default=None, help="also write each look at the memory to this file")
    chosen = parser.parse_args()
    os.environ.pop("TMUX", None)
    rows = measure(minutes=chosen.minutes, runs=chosen.runs, samples_file=chosen.samples)
    for row in rows:
        print(" | ".join(row))


if __name__ == "__main__":
    main()
