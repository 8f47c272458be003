"""The clients: processes that run and stop tasks, and the app in a terminal of its own; each can be killed."""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import os
import pty
import struct
import sys
import termios
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from benchmarks.chaos.reviewing import BY_HAND, choose

if TYPE_CHECKING:
    import random
    from pathlib import Path

    from benchmarks.chaos.actions import Actions
    from benchmarks.chaos.tasks import Card

_MOST_CLIENTS: Final = 3
_MOST_REVIEWS: Final = 2
"""At a time, beside the others."""
_GIVE_UP_AFTER_S: Final = 180.0
_FORBIDDEN_WORDS: Final = ("Traceback (most recent call last)", "database is locked")
_BATCH: Final = """
import asyncio, sys
from agentmon.bootstrap import open_services
from agentmon.services.actors import USER_ACTOR
from agentmon.domain.errors import AgentmonError

async def main():
    async with open_services() as services:
        for word in sys.argv[1:]:
            number, _, task_id = word.partition("=")
            try:
                await services.queue.run(task_id, actor=USER_ACTOR)
            except AgentmonError as error:
                print(error, file=sys.stderr)
            else:
                print(number, flush=True)

try:
    asyncio.run(main())
except AgentmonError as error:
    sys.exit(str(error))
"""


@dataclass(eq=False)
class Client:
    """One client process."""

    process: asyncio.subprocess.Process
    review: str | None = None
    """What it does with the work of a task."""
    number: int = 0
    """Of that task."""


@dataclass
class Clients:
    """Starts client processes and judges what they say."""

    project: Path
    actions: Actions
    chance: random.Random
    living: set[Client] = field(default_factory=set)
    _watchers: set[asyncio.Task[None]] = field(default_factory=set)

    @property
    def has_room(self) -> bool:
        """Whether another one may be started."""
        return sum(client.review is None for client in self.living) < _MOST_CLIENTS

    @property
    def has_room_for_review(self) -> bool:
        """Whether another one may do something with the work of a task."""
        return sum(client.review is not None for client in self.living) < _MOST_REVIEWS

    async def run(self, cards: list[Card]) -> None:
        """Let one client queue one or all of these tasks."""
        card = cards[0]
        if len(cards) > 1:
            words = ["-c", _BATCH, *(f"{card.number}={card.id}" for card in cards)]
            await self._start(words, runs=None)
        elif self.chance.random() < 0.3:
            await self._start(["-m", "agentmon", "run", str(card.number), "--wait"], runs=None)
        else:
            await self._start(["-m", "agentmon", "run", str(card.number)], runs=card.number)

    async def stop(self, card: Card) -> None:
        """Let one client stop this task, by force or not."""
        self.actions.stopped_tasks.add(card.number)
        force = ["--kill"] if self.chance.random() < 0.3 else []
        await self._start(["-m", "agentmon", "stop", str(card.number), *force], runs=None)

    async def review(self, card: Card) -> Client | None:
        """Let one client do something with the work of this task; None when there is nothing to do."""
        chosen = choose(card, self.chance)
        if chosen is None:
            return None
        review, words = chosen
        return await self._start(words, runs=None, review=review.name, number=card.number)

    async def finish(self) -> None:
        """Wait for all that live; those that only wait for runs are ended."""
        for client in self.living:
            with contextlib.suppress(ProcessLookupError):
                client.process.kill()
        if self._watchers:
            await asyncio.wait(self._watchers)

    async def _start(self, words: list[str], *, runs: int | None, review: str | None = None, number: int = 0) -> Client:
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-P",
            *words,
            cwd=self.project,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env=os.environ | ({BY_HAND: "1"} if review == "verify" else {}),
        )
        client = Client(process, review=review, number=number)
        self.living.add(client)
        watcher = asyncio.create_task(self._watch(client, words, runs=runs), name="client")
        self._watchers.add(watcher)
        watcher.add_done_callback(self._watchers.discard)
        return client

    async def _watch(self, client: Client, words: list[str], *, runs: int | None) -> None:
        is_batch = words[1] == _BATCH
        try:
            async with asyncio.timeout(_GIVE_UP_AFTER_S):
                out, complaints = await client.process.communicate()
        except TimeoutError:
            if "--wait" not in words:
                self.actions.client_words.append(f"a client did not end within {_GIVE_UP_AFTER_S:g} s: {words[1:]}")
            with contextlib.suppress(ProcessLookupError):
                client.process.kill()
            out, complaints = await client.process.communicate()
        finally:
            self.living.discard(client)
        text = complaints.decode("utf-8", "replace")
        for forbidden in _FORBIDDEN_WORDS:
            if forbidden in text:
                shown = " ".join(words) if words[0] != "-c" else client.review or "a batch"
                self.actions.client_words.append(f"client `{shown}` said: {text.strip()[-1500:]}")
        if is_batch:
            self.actions.accepted_runs.update(int(number) for number in out.split())
        elif runs is not None and client.process.returncode == 0:
            self.actions.accepted_runs[runs] += 1
        elif client.review is not None:
            self.actions.note_review(client.review, client.number, client.process.returncode, said=text.strip())


class AppInTerminal:
    """The app in a pseudo-terminal; what it draws is read and thrown away."""

    def __init__(self, project: Path) -> None:
        self._project = project
        self._process: asyncio.subprocess.Process | None = None
        self._master = -1

    @property
    def pid(self) -> int | None:
        """Its pid while it lives."""
        if self._process is None or self._process.returncode is not None:
            return None
        return self._process.pid

    async def open(self) -> None:
        """Start it, unless it lives."""
        if self.pid is not None:
            return
        self.close()
        self._master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 30, 100, 0, 0))
        os.set_blocking(self._master, False)
        asyncio.get_running_loop().add_reader(self._master, self._drain)
        self._process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-P",
            "-m",
            "agentmon",
            cwd=self._project,
            stdin=slave,
            stdout=slave,
            stderr=slave,
            start_new_session=True,
        )
        os.close(slave)

    def press(self, keys: bytes) -> None:
        """Type, if anybody listens."""
        with contextlib.suppress(OSError):
            os.write(self._master, keys)

    def close(self) -> None:
        """Take its terminal away."""
        if self._master >= 0:
            asyncio.get_running_loop().remove_reader(self._master)
            os.close(self._master)
            self._master = -1

    def _drain(self) -> None:
        try:
            is_over = not os.read(self._master, 65536)
        except BlockingIOError:
            return
        except OSError:
            is_over = True
        if is_over:
            asyncio.get_running_loop().remove_reader(self._master)
