"""Sends the app in a real terminal what no person types: ``python -m benchmarks.keyboard_fuzz --inputs 1000000``.

Half is no key, to the app as it is: it may do nothing. Half is anything, and what is read as a key goes nowhere: the
app may not end. Prints the seed of the first thousand that break this, and ends with 1; ``--seed N --inputs 1000``
does it again.
"""

from __future__ import annotations

import argparse
import asyncio
import re
import sys
import tempfile
import time
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Final

from tests.app_program import START, environment
from tests.idle_worker import idle_worker
from tests.screens.boards import make_place
from tests.terminals import terminal
from tests.widgets.terminal_inputs import anything, no_key

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.screens.boards import Place
    from tests.terminals import Terminal

ROOT: Final = Path(__file__).resolve().parents[1]
AT_ONCE: Final = 1_000
DEADLINE_S: Final = 60.0
"""A thousand inputs, on a machine that others use; they take a tenth of a second."""
_SYNC: Final = "\x1b[201~\x1b[201~\x1b[200~reached {}\x1b[201~"
_COUNTING: Final = """
from textual import events

class App(AgentmonApp):
    keys = 0

    async def on_event(self, event):
        typed = isinstance(event, events.Key | events.Paste) and not event.is_forwarded
        if isinstance(event, events.Paste) and event.text.startswith("reached "):
            Path(sys.argv[2]).write_text(f"{event.text} keys {self.keys}.")
            event.stop()
            return
        if typed:
            self.keys += 1
        if typed and IS_SUNK:
            event.stop()
        else:
            await super().on_event(event)
"""
_REACHED: Final = re.compile(r"reached (\d+) keys (\d+)\.")


def check(folder: Path, make: Callable[[Random], bytes], inputs: int, seed: int, *, is_sunk: bool) -> tuple[float, int]:
    """Send so many, a thousand for each seed, and return the longest time that a thousand took and the keys read.

    Raises:
        AssertionError: The app ended, or took too long.
    """
    place = make_place(folder)
    asyncio.run(place.fill("one", "two"))
    program, reached = folder / "program.py", folder / "reached"
    program.write_text(START.format(extra=f"IS_SUNK = {is_sunk}\n{_COUNTING}"))
    words = [sys.executable, str(program), str(place.root), str(reached)]
    longest_s = 0.0
    with idle_worker(place.paths), terminal(words, environment(place, PYTHONPATH=str(ROOT))) as app:
        app.read_until(lambda output: b"\x1b[?2004h" in output, "the app")
        before = asyncio.run(_state(place))
        for number in range(seed, seed + -(-inputs // AT_ONCE)):
            random = Random(number)
            begun = time.monotonic()
            try:
                _send(app, random, b"".join(make(random) for _ in range(min(AT_ONCE, inputs))))
                _send(app, random, _SYNC.format(number).encode())
                keys = _wait_for(app, reached, number)
                assert is_sunk or keys == 0, f"{keys} keys were read where there were none"
            except AssertionError as error:
                message = f"seed {number}: {error}"
                raise AssertionError(message) from None
            longest_s = max(longest_s, time.monotonic() - begun)
            app.output = b""
        assert is_sunk or asyncio.run(_state(place)) == before, "it did something"
    return longest_s, keys


def _send(app: Terminal, random: Random, data: bytes) -> None:
    place = 0
    while place < len(data):
        assert app.process.poll() is None, f"the app ended with {app.process.returncode}: {app.output[-2000:]!r}"
        end = place + random.randrange(1, 1_024)
        if data[end - 1 : end] == b"\x1b":
            # On a busy machine the rest may come later than that of a key, and a lone ESC is one.
            end += 1
        app.send(data[place:end])
        place = end
        app.drain()


def _wait_for(app: Terminal, reached: Path, number: int) -> int:
    end = time.monotonic() + DEADLINE_S
    while True:
        found = _REACHED.fullmatch(reached.read_text()) if reached.exists() else None
        if found is not None and int(found[1]) == number:
            return int(found[2])
        assert app.process.poll() is None, f"the app ended with {app.process.returncode}: {app.output[-2000:]!r}"
        assert time.monotonic() < end, f"not read in {DEADLINE_S:.0f} s"
        app.drain(0.01)


async def _state(place: Place) -> tuple[object, ...]:
    """Return the tasks, what runs and waits, and whether the queue is paused."""
    async with place.services() as (services, workspace):
        page = await services.board.page(workspace, ())
        return await services.tasks.list(workspace), page.status_line.queued, page.status_line.is_paused


def main() -> None:
    """Run as many as are asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--inputs", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=0)
    chosen = parser.parse_args()
    for make, is_sunk in ((no_key, False), (anything, True)):
        inputs = max(AT_ONCE, chosen.inputs // 2)
        started = time.monotonic()
        with tempfile.TemporaryDirectory(dir="/tmp", prefix="amb-") as folder:
            longest_s, keys = check(Path(folder), make, inputs, chosen.seed, is_sunk=is_sunk)
        took_s = time.monotonic() - started
        print(
            f"{make.__name__}: {inputs:,} in {took_s:.0f} s, a thousand in {longest_s:.2f} s at most, {keys:,} keys",
            flush=True,
        )


if __name__ == "__main__":
    main()
