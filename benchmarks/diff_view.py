"""Measures the view of a difference in a pseudo-terminal of 200 by 50: opening 100,000 lines, keys, new content.

``measure()`` returns rows of name, measured and goal; run as a program it prints them. Each is measured in one process
with what Textual's ``Log`` takes for the same lines. ``--diff PATCH REPORT`` is the program inside the pseudo-terminal.
"""

from __future__ import annotations

import asyncio
import gc
import json
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Final

REPOSITORY: Final = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(REPOSITORY))

from textual.binding import Binding, BindingType  # noqa: E402 - the repository comes first on the path
from textual.events import Key  # noqa: E402
from textual.widgets import Log  # noqa: E402

from agentmon.domain.diffs import Diff  # noqa: E402
from agentmon.widgets.diff_view import DiffView  # noqa: E402
from benchmarks.log_view import MeasuredApp, frame_after, latencies, run_in_terminal  # noqa: E402

if TYPE_CHECKING:
    from collections.abc import Callable

FILES: Final = 500
HUNKS: Final = 5
OPENINGS: Final = 15
MADE_BEFORE_COLLECTION: Final = 5_000
KEYS: Final = 240
MOVES: Final = {
    "j": "move(1)",
    "d": "move_page(1)",
    "n": "go_hunk(1)",
    "f": "go_file(1)",
    "u": "move_page(-1)",
    "k": "move(-1)",
}


class DiffApp(MeasuredApp):
    """Has the keys of the view."""

    CSS = "Log, DiffView { height: 1fr; }"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding(key, f"run('{action}')", show=False) for key, action in MOVES.items()
    ]

    def on_mount(self) -> None:
        # As the app does; Textual calls the handler of the parent too.
        gc.freeze()
        gc.set_threshold(MADE_BEFORE_COLLECTION)

    async def action_run(self, action: str) -> None:
        await self.run_action(action, self.query_one(DiffView))


def many_files(mark: str = "new") -> bytes:
    """Return a patch of 100,000 lines in many files and hunks."""
    lines = [
        f"     kept_{n} = compute(first, second)  # of the whole\n"
        f"-    value_{n} = compute(first, 'old', {n})\n"
        f"+    value_{n} = compute(first, '{mark}', {n})\n"
        "     return None\n"
        for n in range(10)
    ]
    parts = []
    for file in range(FILES):
        path = f"src/package_{file % 20}/module_{file}.py"
        parts.append(f"diff --git a/{path} b/{path}\nindex 12..34 100644\n--- a/{path}\n+++ b/{path}\n")
        for hunk in range(HUNKS):
            at = hunk * 100 + 1
            parts += [f"@@ -{at},30 +{at},30 @@ def function_{hunk}(first, second):\n", *lines]
    return "".join(parts).encode()


def one_hunk() -> bytes:
    """Return a patch of one new file of 100,000 lines."""
    head = "diff --git a/big.py b/big.py\nnew file mode 100644\n--- /dev/null\n+++ b/big.py\n@@ -0,0 +1,100000 @@\n"
    return (head + "".join(f"+value_{n} = compute(first, 'new', {n})\n" for n in range(100_000))).encode()


async def measure_diff(app: MeasuredApp, path: Path) -> dict[str, float]:
    patch = await asyncio.to_thread(path.read_bytes)
    ours: list[float] = []
    theirs: list[float] = []
    of_core: list[float] = []
    for _ in range(OPENINGS):
        view = DiffView()

        def open_view(view: DiffView = view) -> None:
            app.screen.mount(view)
            view.diff = Diff(patch)

        cpu_started = time.process_time()
        ours.append(await frame_after(app, open_view, lambda view=view: " + " in view.text.shown_text))  # type: ignore[misc]
        of_core.append(1000 * (time.process_time() - cpu_started))
        await view.remove()
        log = Log()

        def open_log(log: Log = log) -> None:
            app.screen.mount(log)
            log.write_lines(patch.decode().splitlines())

        theirs.append(await frame_after(app, open_log, lambda log=log: log.line_count > 1 and log.size.height > 0))  # type: ignore[misc]
        await log.remove()
    view = DiffView()
    await app.screen.mount(view)
    view.diff = Diff(patch)
    cpu_started = time.process_time()
    keys = [await key_latency(app, view, key) for key in keys_for(view) * (KEYS // 10)]
    key_of_core = 1000 * (time.process_time() - cpu_started) / len(keys)
    news = [
        await frame_after(app, shown(view, patch.replace(b"'new'", b"'%d'" % n)), lambda: bool(view.text.shown_text))
        for n in range(5)
    ]
    await view.remove()
    return {
        "open_ms": statistics.median(ours),
        "open_of_core_ms": statistics.median(of_core),
        "key_of_core_ms": key_of_core,
        "log_open_ms": statistics.median(theirs),
        "news_ms": statistics.median(news),
        **latencies("key", keys),
    }


def keys_for(view: DiffView) -> str:
    """Return keys of which each goes somewhere."""
    return "jdnfduknjd" if len(view.diff.files) > 1 else "jddukkjddj"


def shown(view: DiffView, patch: bytes) -> Callable[[], None]:
    def show() -> None:
        view.diff = Diff(patch)

    return show


async def key_latency(app: MeasuredApp, view: DiffView, key: str) -> float:
    before = view.text.row
    return await frame_after(app, lambda: app.post_message(Key(key, key)), lambda: view.text.row != before)


def measure() -> list[tuple[str, str, str]]:
    """Return what was measured: name, value and goal."""
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "patch"
        for name, patch in (("500 files", many_files()), ("one hunk", one_hunk())):
            path.write_bytes(patch)
            found = run_in_terminal("--diff", path, __file__)
            ratio = found["open_ms"] / found["log_open_ms"]
            rows += [
                (
                    f"open a difference of 100,000 lines, {name} (of a core)",
                    f"{found['open_ms']:.0f} ({found['open_of_core_ms']:.0f}) ms",
                    "≤ 100 ms",
                ),
                ("the same ÷ Textual's Log given these lines", f"{ratio:.2f}", "≤ 2.0"),
                (
                    "key → repaint in it, p50 / p95 (mean of a core, colours too)",
                    f"{found['key_p50_ms']:.0f} / {found['key_p95_ms']:.0f} ({found['key_of_core_ms']:.0f}) ms",
                    "p95 ≤ 25 ms",
                ),
                ("show other content of it, the cursor stays", f"{found['news_ms']:.0f} ms", "≤ 100 ms"),
            ]
    return rows


def main(arguments: list[str]) -> None:
    """Run as the option says, or print the table."""
    match arguments:
        case ["--diff", path, report]:
            app = DiffApp(lambda app: measure_diff(app, Path(path)))
            app.run()
            Path(report).write_text(json.dumps(app.measured))
        case _:
            for name, measured, goal in measure():
                print(f"{name:<55} {measured:>18}   {goal}")


if __name__ == "__main__":
    main(sys.argv[1:])
