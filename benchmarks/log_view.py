"""Measures the log view in a pseudo-terminal of 200 by 50: opening 1 GB, following a fast writer, keys, search.

``measure()`` returns rows of name, measured and goal; run as a program it prints them. The 1 GB file is written to a
temporary folder and removed. Memory is the proportional set size (PSS): what a process has for itself and its share of
what others have too; files in the page cache do not count. Runs of itself: the names of ``MEASUREMENTS`` are the
programs inside the pseudo-terminal, ``--write FILE`` is the one that grows a log.
"""

from __future__ import annotations

import fcntl
import json
import os
import pty
import resource
import statistics
import struct
import subprocess
import sys
import tempfile
import termios
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Final, NamedTuple

REPOSITORY: Final = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(REPOSITORY))

from textual.app import App  # noqa: E402 - the repository comes first on the path
from textual.binding import Binding, BindingType  # noqa: E402
from textual.events import Key  # noqa: E402
from textual.widgets import Log, RichLog  # noqa: E402

from agentmon.logs.filtered_log import FilteredLog  # noqa: E402
from agentmon.logs.line_text import styled_runs  # noqa: E402
from agentmon.logs.log_file import LogFile  # noqa: E402
from agentmon.logs.pattern import LogPattern  # noqa: E402
from agentmon.logs.search import search_log  # noqa: E402
from agentmon.widgets.log_view import LogView  # noqa: E402

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from textual.screen import Screen

COLUMNS: Final = 200
ROWS: Final = 50
FILE_BYTES: Final = 10**9
LINE_BYTES: Final = 100
LINES_PER_SECOND: Final = 200_000
FOLLOW_S: Final = 10.0
OPENINGS: Final = 15
LOG_BYTES: Final = 100_000_000
RICH_LOG_BYTES: Final = 5_000_000
KEYS: Final = 150


class MeasuredApp(App[None]):
    """An app that runs one measurement and knows when a frame was handed to the terminal."""

    CSS = "Log, RichLog, LogView { height: 1fr; scrollbar-size: 1 1; }"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("k", "run('scroll_lines(-1)')", show=False),
        Binding("j", "run('scroll_lines(1)')", show=False),
        Binding("u", "run('page_up')", show=False),
        Binding("d", "run('page_down')", show=False),
    ]

    def __init__(self, measurement: Callable[[MeasuredApp], Awaitable[dict[str, float]]]) -> None:
        super().__init__()
        self._measurement = measurement
        self.measured: dict[str, float] = {}
        self.frames: list[Callable[[float], None]] = []

    def on_mount(self) -> None:
        self.run_worker(self._measure())

    async def _measure(self) -> None:
        self.measured = await self._measurement(self)
        self.exit()

    async def action_run(self, action: str) -> None:
        await self.run_action(action, self.query_one(LogView))

    def _display(self, screen: Screen[object], renderable: object) -> None:
        super()._display(screen, renderable)  # type: ignore[arg-type]
        now = time.perf_counter()
        for frame in list(self.frames):
            frame(now)


async def frame_after(app: MeasuredApp, act: Callable[[], object], is_shown: Callable[[], bool]) -> float:
    """Return how many milliseconds pass from before the act to the first frame that shows its outcome."""
    import asyncio  # noqa: PLC0415 - the measured app has it loaded

    shown = asyncio.get_running_loop().create_future()

    def on_frame(now: float) -> None:
        if not shown.done() and is_shown():
            shown.set_result(now)

    app.frames.append(on_frame)
    started = time.perf_counter()
    act()
    ended: float = await asyncio.wait_for(shown, 10)
    app.frames.remove(on_frame)
    return 1000 * (ended - started)


async def measure_open(app: MeasuredApp, path: Path) -> dict[str, float]:
    with LogFile(path) as log:
        tail = [line.content.decode() for line in log.lines_before(log.size, ROWS)]
    ours: list[float] = []
    theirs: list[float] = []
    for _ in range(OPENINGS):
        view = LogView()

        def open_view(view: LogView = view) -> None:
            app.screen.mount(view)
            view.path = path

        ours.append(await frame_after(app, open_view, lambda view=view: tail[-1] in view.shown_text))  # type: ignore[misc]
        await view.remove()
        log_widget = Log()

        def open_log(log_widget: Log = log_widget) -> None:
            app.screen.mount(log_widget)
            log_widget.write_lines(tail)

        theirs.append(await frame_after(app, open_log, lambda widget=log_widget: widget.size.height > 0))  # type: ignore[misc]
        await log_widget.remove()
    view = LogView(path)
    await frame_after(app, lambda: app.screen.mount(view), lambda: bool(view.shown_text))
    app.set_interval(0.1, view.poll)
    keys = [await key_latency(app, view, key) for key in "ukjd" * (KEYS // 4)]
    await app.screen.query(LogView).remove()
    return {
        "open_ms": statistics.median(ours),
        "log_open_ms": statistics.median(theirs),
        **latencies("key", keys),
        "memory_mb": memory_mb(),
    }


async def measure_follow(app: MeasuredApp, path: Path) -> dict[str, float]:
    import asyncio  # noqa: PLC0415 - the measured app has it loaded

    view = LogView(path)
    await app.screen.mount(view)
    behind: list[float] = []
    shown_until = 0.0

    def on_frame(_: float) -> None:
        nonlocal shown_until
        rows = view.shown_text.rsplit("\n", 2)
        if len(rows) > 2:
            # Until this frame the one before was shown: nothing is further behind than just before it is replaced.
            if shown_until:
                behind.append(1000 * (time.time() - shown_until))
            shown_until = float(rows[-2].split(" ", 1)[0])

    app.set_interval(0.1, view.poll)
    writer = await asyncio.create_subprocess_exec(sys.executable, __file__, "--write", str(path))
    started, cpu_started = time.perf_counter(), time.process_time()
    app.frames.append(on_frame)
    await asyncio.sleep(FOLLOW_S * 0.6)
    cpu = (time.process_time() - cpu_started) / (time.perf_counter() - started)
    app.frames.remove(on_frame)
    keys: list[float] = []
    view.action_page_up()
    view.action_page_up()
    while writer.returncode is None and len(keys) < KEYS:
        keys.append(await key_latency(app, view, "kujd"[len(keys) % 4]))
        await asyncio.sleep(0.02)
    await writer.wait()
    return {
        "cpu_percent": 100 * cpu,
        **latencies("behind", behind),
        "behind_max_ms": max(behind),
        **latencies("key", keys),
        "memory_mb": memory_mb(),
    }


async def key_latency(app: MeasuredApp, view: LogView, key: str) -> float:
    before = view.search_origin
    return await frame_after(app, lambda: app.post_message(Key(key, key)), lambda: view.search_origin != before)


def latencies(name: str, values: list[float]) -> dict[str, float]:
    ordered = sorted(values)
    return {f"{name}_p50_ms": ordered[len(ordered) // 2], f"{name}_p95_ms": ordered[int(len(ordered) * 0.95)]}


async def measure_bare(app: MeasuredApp, path: Path) -> dict[str, float]:
    del path
    await frame_after(app, app.screen.refresh, lambda: True)
    return {"memory_mb": memory_mb()}


async def measure_view_load(app: MeasuredApp, path: Path) -> dict[str, float]:
    view = LogView(path)
    load_ms = await frame_after(app, lambda: app.screen.mount(view), lambda: bool(view.shown_text))
    return {"load_ms": load_ms, "memory_mb": memory_mb()}


async def measure_log_load(app: MeasuredApp, path: Path) -> dict[str, float]:
    widget = Log()

    def load() -> None:
        app.screen.mount(widget)
        widget.write_lines(path.read_text().splitlines())

    load_ms = await frame_after(app, load, lambda: widget.line_count > 1 and widget.size.height > 0)
    return {"load_ms": load_ms, "memory_mb": memory_mb()}


async def measure_rich_log_load(app: MeasuredApp, path: Path) -> dict[str, float]:
    widget = RichLog()
    await app.screen.mount(widget)
    await frame_after(app, app.screen.refresh, lambda: widget.size.height > 0)

    def load() -> None:
        for line in path.read_text().splitlines():
            widget.write(line)

    load_ms = await frame_after(app, load, lambda: len(widget.lines) > 1)
    return {"load_ms": load_ms, "memory_mb": memory_mb()}


MEASUREMENTS: Final = {
    "--open": measure_open,
    "--follow": measure_follow,
    "--bare": measure_bare,
    "--load-view": measure_view_load,
    "--load-log": measure_log_load,
    "--load-rich-log": measure_rich_log_load,
}


def memory_mb() -> float:
    sizes = Path("/proc/self/smaps_rollup")
    if sizes.exists():
        return int(sizes.read_text().partition("\nPss:")[2].split()[0]) / 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1024 if sys.platform == "linux" else 1024**2)


def write_lines(path: Path) -> None:
    """Grow a log by lines that begin with the time they were written at."""
    step_s = 0.01
    count = int(LINES_PER_SECOND * step_s)
    with path.open("ab", buffering=0) as file:
        began = time.perf_counter()
        for step in range(int(FOLLOW_S / step_s)):
            time.sleep(max(0.0, began + step * step_s - time.perf_counter()))
            line = f"{time.time():.6f} INFO worker: ".encode().ljust(LINE_BYTES - 1, b"x") + b"\n"
            file.write(line * count)


def run_in_terminal(option: str, path: Path, program: str = __file__) -> dict[str, float]:
    """Run this or another program of its kind in a pseudo-terminal and return what it measured."""
    terminal, inner = pty.openpty()
    fcntl.ioctl(inner, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
    report = path.with_name("report.json")
    environment = {**os.environ, "TERM": "xterm-256color", "COLORTERM": "truecolor"}
    process = subprocess.Popen(
        [sys.executable, program, option, str(path), str(report)],
        stdin=inner,
        stdout=inner,
        stderr=inner,
        env=environment,
        start_new_session=True,
    )
    os.close(inner)

    shown = b""

    def drain() -> None:
        nonlocal shown
        try:
            while block := os.read(terminal, 65536):
                shown = (shown + block)[-200_000:]
        except OSError:
            return

    reader = threading.Thread(target=drain)
    reader.start()
    process.wait(300)
    reader.join()
    os.close(terminal)
    measured: dict[str, float] = json.loads(report.read_text()) if report.exists() else {}
    if not measured:
        raise RuntimeError(shown.decode(errors="replace"))
    return measured


def write_big_file(path: Path, size_bytes: int = FILE_BYTES) -> None:
    block = b"".join(
        f"2026-11-27 10:00:{n % 60:02} INFO worker.{n % 7}: step {n:08} of the run went well".encode().ljust(
            LINE_BYTES - 1, b"."
        )
        + b"\n"
        for n in range(min(100_000, size_bytes // LINE_BYTES))
    )
    with path.open("wb") as file:
        for _ in range(size_bytes // len(block)):
            file.write(block)
        file.write(b"the very last line\n")


class Speed(NamedTuple):
    """Megabytes a second by the clock, and for each second of a core: the two are one on a quiet machine."""

    by_clock: float
    of_core: float

    def __str__(self) -> str:
        return f"{self.by_clock:.0f} ({self.of_core:.0f})"


def speed_mb_s(size_bytes: int, act: Callable[[], object]) -> Speed:
    started, cpu_started = time.perf_counter(), time.process_time()
    act()
    elapsed_s, cpu_s = time.perf_counter() - started, time.process_time() - cpu_started
    return Speed(size_bytes / 1e6 / elapsed_s, size_bytes / 1e6 / cpu_s)


def first_result_ms(log: LogFile, expression: str) -> float:
    """Return when the first lines that match are there to be shown, from the end of the log."""
    started = time.perf_counter()
    found = FilteredLog(log, LogPattern(expression))
    while not found.match_count and not found.search_more(0.012, near=log.size - 1, backwards=True):
        pass
    return 1000 * (time.perf_counter() - started)


def measure_loads(folder: Path) -> list[tuple[str, str, str]]:
    """Return how the view loads files beside the log widgets of Textual, each in a process of its own."""
    rows = []
    for size_bytes, option, name in ((LOG_BYTES, "--load-log", "Log"), (RICH_LOG_BYTES, "--load-rich-log", "RichLog")):
        path = folder / "loaded.log"
        write_big_file(path, size_bytes)
        theirs = run_in_terminal(option, path)
        ours = run_in_terminal("--load-view", path)
        rows.append(
            (
                f"Textual's {name} ÷ the view, {size_bytes // 10**6} MB: time until shown, memory",
                f"{theirs['load_ms'] / ours['load_ms']:.0f} ×, {theirs['memory_mb'] / ours['memory_mb']:.1f} ×",
                f"{ours['load_ms']:.0f} ms, {ours['memory_mb']:.0f} MB",
            )
        )
    return rows


def measure() -> list[tuple[str, str, str]]:
    """Return what was measured: name, value and goal."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "big.log"
        write_big_file(path)
        bare_mb = run_in_terminal("--bare", path)["memory_mb"]
        opened = run_in_terminal("--open", path)
        with LogFile(path) as log:
            index_s = log.size / 1e6 / speed_mb_s(log.size, lambda: log.index_more(1e9)).by_clock
            plain = speed_mb_s(log.size, lambda: list(search_log(log, LogPattern("absent"), start=0)))
            with_case = speed_mb_s(log.size, lambda: list(search_log(log, LogPattern("Absent"), start=0)))
            both = speed_mb_s(log.size, lambda: list(search_log(log, LogPattern("absent|missing"), start=0)))
            regex = speed_mb_s(log.size, lambda: list(search_log(log, LogPattern(r"ab[s]ent \d+$"), start=0)))
            counted = speed_mb_s(
                log.size,
                lambda: FilteredLog(log, LogPattern("absent")).search_more(1e9, near=0, backwards=False),
            )
            first_ms = first_result_ms(log, "went well")
            lines = [line.content for line in log.lines_from(0, 100_000)]
        path.unlink()
        clean = speed_mb_s(len(lines) * LINE_BYTES, lambda: [styled_runs(line) for line in lines])
        growing = Path(folder) / "growing.log"
        growing.touch()
        followed = run_in_terminal("--follow", growing)
        lines_per_second = growing.stat().st_size / LINE_BYTES / FOLLOW_S
        growing.unlink()
        loads = measure_loads(Path(folder))
    ratio = opened["open_ms"] / opened["log_open_ms"]
    return [
        ("open 1 GB, tail visible", f"{opened['open_ms']:.0f} ms", "≤ 100 ms"),
        ("the same ÷ Textual's Log given that tail", f"{ratio:.2f}", "≤ 1.2"),
        (
            "key → repaint in 1 GB, p50 / p95",
            f"{opened['key_p50_ms']:.0f} / {opened['key_p95_ms']:.0f} ms",
            "p95 ≤ 50 ms",
        ),
        (
            "memory with 1 GB open (PSS): in all, over a bare Textual app",
            f"{opened['memory_mb']:.0f} MB, {opened['memory_mb'] - bare_mb:.0f} MB",
            "≤ 60 MB",
        ),
        ("line index of 10 M lines", f"{index_s:.1f} s", "in the background"),
        (
            f"follow {lines_per_second:,.0f} lines/s: behind, p50 / most",
            f"{followed['behind_p50_ms']:.0f} / {followed['behind_max_ms']:.0f} ms",
            "never > 300 ms",
        ),
        ("the same: share of a core", f"{followed['cpu_percent']:.0f} %", "≤ 25 %"),
        (
            "the same: key → repaint, p50 / p95",
            f"{followed['key_p50_ms']:.0f} / {followed['key_p95_ms']:.0f} ms",
            "p95 ≤ 50 ms",
        ),
        (
            "the same: memory (PSS): in all, over a bare Textual app",
            f"{followed['memory_mb']:.0f} MB, {followed['memory_mb'] - bare_mb:.0f} MB",
            "≤ 60 MB",
        ),
        ("search 1 GB for a word, case ignored / kept (of a core)", f"{plain} / {with_case} MB/s", "≥ 500 MB/s"),
        ("search it for a regular expression, for either of two words", f"{regex} / {both} MB/s", "≥ 500 MB/s"),
        ("filter or count its lines with a word, first result", f"{counted} MB/s, {first_ms:.1f} ms", "≥ 500 MB/s"),
        *loads,
        ("cleaning plain lines", f"{clean} MB/s", "≥ 20 MB/s"),
    ]


def main(arguments: list[str]) -> None:
    """Run as the option says, or print the table."""
    match arguments:
        case ["--write", path]:
            write_lines(Path(path))
        case [option, path, report] if option in MEASUREMENTS:
            measurement = MEASUREMENTS[option]
            app = MeasuredApp(lambda app: measurement(app, Path(path)))
            app.run()
            Path(report).write_text(json.dumps(app.measured))
        case _:
            for name, measured, goal in measure():
                print(f"{name:<55} {measured:>18}   {goal}")


if __name__ == "__main__":
    main(sys.argv[1:])
