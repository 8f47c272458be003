"""The storm itself: tasks, clients, kills, a full disk and a missing tmux, all at once, then rest."""

from __future__ import annotations

import asyncio
import contextlib
import random
import sqlite3
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

from agentmon.bootstrap import open_services
from agentmon.domain.clock import SystemClock
from agentmon.domain.errors import AgentmonError
from agentmon.domain.ids import TaskId
from agentmon.services.actors import USER_ACTOR
from agentmon.store.agents import AgentRepository
from agentmon.worker.presence import read_presence
from benchmarks.chaos.actions import Actions, Window
from benchmarks.chaos.clients import AppInTerminal, Clients
from benchmarks.chaos.conversations import HOSTILE_AGENT
from benchmarks.chaos.evidence import gather
from benchmarks.chaos.merging import commit_as_person
from benchmarks.chaos.people import Decider
from benchmarks.chaos.processes import find_processes, gits_of, kill
from benchmarks.chaos.sampling import ProcessScan
from benchmarks.chaos.shifted_worker import set_clock, start_shifted_worker, step_clock
from benchmarks.chaos.tasks import (
    AGENT_LIMITS,
    AGENT_SLUGS,
    RUNNING_LIMIT,
    Producer,
    add_rules,
    chaos_agents,
    read_cards,
)

if TYPE_CHECKING:
    from agentmon.bootstrap import Services
    from benchmarks.chaos.clients import Client
    from benchmarks.chaos.evidence import Evidence
    from benchmarks.chaos.home import ChaosHome, SmallDisk
    from benchmarks.chaos.tasks import Card

SETTLE_WITHIN_S: Final = 180.0
_KILL_EVERY_S: Final = (0.2, 0.8)
_WILD_S: Final = 15.0
_CALM_S: Final = 15.0
_AT_ONCE: Final = 0.15
"""How often the next kill follows without a pause."""
_MOST_ASKING: Final = 4
_STOPPED: Final = 0.6
"""How often something that runs is stopped, when somebody looks for it."""
_KILLED_IN_THE_MIDDLE: Final = 0.4
"""How often what somebody does with the work of a task is killed in the middle, and not with all other clients."""
_MOST_GITS: Final = 50
"""That is counted by the gits which it has started; most start fewer."""
_STARTING_WORKERS_TOO: Final = 0.1
_MOST_FRESH: Final = 16
"""How many tasks wait to be run by some client; more are made as they go."""
_MOST_OPEN: Final = 20
_KILL_WEIGHTS: Final = {
    "worker": 18,
    "client": 40,
    "app": 16,
    "tmux server": 11,
    "host's parent": 11,
    "host": 4,
    "git": 12,
}
_HOSTS_END_WITHIN_S: Final = 20.0
_SHIFTED_WORKERS: Final = 0.5
"""How often a worker that was killed is followed by one with another time."""
_FILLED_AT_LAST_WORDS: Final = 0.4
_SPARED: Final = 0.25
"""Of the time, at most: until the first tasks are at rest."""
_HALF_DONE: Final = ("snapshots/roots/*/undo", "worktrees/.removing/*", "merges/*/*")
_FLOOD_EVENTS_A_SECOND: Final = 1_000
"""So many are taken in, at the least."""

Targets = dict[str, list[tuple[int, str | None]]]
"""By kind: pids, with the execution where it is a host."""


class Storm:
    """One run of chaos over one home."""

    def __init__(self, home: ChaosHome, services: Services, *, seed: int, flood: int) -> None:
        self._home = home
        self._services = services
        self._chance = random.Random(seed)
        self._flood = flood
        self._flood_task: str | None = None
        self._flooding: str | None = None
        """The execution that tells of as many events as were asked for; nobody stops it, and its host is spared."""
        self._filling = asyncio.Lock()
        self._spared = frozenset[str]()
        """The first tasks, until there is something to review and to merge."""
        self._spared_until = 0.0
        self._days = 0
        self._began_at = time.monotonic()
        self._over = asyncio.Event()
        self.actions = Actions()
        self._clients = Clients(project=home.project, actions=self.actions, chance=random.Random(f"{seed} clients"))
        self._app = AppInTerminal(home.project)
        self._decider = Decider(services, self.actions, random.Random(f"{seed} decisions"))

    async def rage(self, seconds: float) -> None:
        """Make tasks, run them, stop some, and kill whatever there is, for so long."""
        producer = await self._prepare()
        self._spared = await producer.run_first()
        self._spared_until = time.monotonic() + _SPARED * seconds
        if self._flood:
            task = await producer.make_flood(self._flood)
            self._flood_task = task.id
            self._flooding = (await self._services.queue.run(task.id, actor=USER_ACTOR)).id
        async with asyncio.TaskGroup() as group:
            for work in (
                self._produce(producer),
                self._ask(group),
                self._talk(),
                self._review(group),
                self._work_as_person(),
                self._stop_some(),
                self._use_app(),
                self._kill(),
                self._spoil(),
                self._fill_at_last_words(),
                self._step_clocks(),
            ):
                group.create_task(work)
            await asyncio.sleep(seconds)
            self._over.set()
        await self._clients.finish()
        if self._app.pid is not None:
            kill(self._app.pid)

    @property
    def _is_calm(self) -> bool:
        """Whether worker, disk and tmux are left alone for a while, so that runs come far and stops are timed."""
        return bool(self._spared) or (time.monotonic() - self._began_at) % (_WILD_S + _CALM_S) > _WILD_S

    async def settle(self) -> float:
        """Let all that was made run to its end, and return how many seconds that took; at most the deadline."""
        begin = time.monotonic()
        set_clock(self._home.place.clock_offset, 0.0)
        # The next one finishes what was broken off since this one began.
        self._kill_one_of("worker", await self._targets())
        while time.monotonic() < begin + SETTLE_WITHIN_S + self._flood / _FLOOD_EVENTS_A_SECOND:
            with contextlib.suppress(AgentmonError):
                await self._services.workers.ensure_running()
            cards = await self._cards()
            for card in [card for card in cards if card.is_fresh]:
                await self._run(card)
            await self._decider.decide_all()
            await self._lift_budgets()
            for card in [card for card in cards if card.is_conversation and card.open_status == "running"]:
                await self._decider.finish(card.id)
            is_at_rest = cards and not any(card.is_fresh or card.open_status for card in await self._cards())
            if is_at_rest and not any(list(self._home.place.home.glob(left)) for left in _HALF_DONE):
                break
            await asyncio.sleep(0.5)
        # What is in nobody's way by now.
        await self._commit()
        settled_s = time.monotonic() - begin
        await asyncio.to_thread(self._wait_for_hosts)
        self._app.close()
        return settled_s

    async def _lift_budgets(self) -> None:
        """Let go what waits for budgets."""
        with contextlib.suppress(AgentmonError):
            for state in await self._services.budgets.states():
                await self._services.budgets.remove(state.budget.id, actor=USER_ACTOR)

    def _wait_for_hosts(self) -> None:
        """Hosts show the end of the output for a moment after their last entry."""
        deadline = time.monotonic() + _HOSTS_END_WITHIN_S
        while find_processes(self._home.place.home).hosts and time.monotonic() < deadline:
            time.sleep(0.2)

    async def _prepare(self) -> Producer:
        services = self._services
        ledgers = self._home.place.ledgers
        await AgentRepository(services.database).add_missing(chaos_agents(ledgers), at=SystemClock().now())
        agents = {slug: (await services.agents.by_slug(slug)).id for slug in AGENT_SLUGS}
        workspace = await services.workspaces.open(self._home.project)
        await services.settings.set("workspace.max_per_folder", "0", workspace=workspace, actor=services.actor)
        # What an agent plays needs the files that are in the folder and in no commit.
        await services.settings.set("workspace.isolation", "folder", workspace=workspace, actor=services.actor)
        await add_rules(services, workspace, agents[HOSTILE_AGENT])
        set_clock(self._home.place.clock_offset, 0.0)
        shown = await services.agent_files.state(workspace)
        await services.agent_files.trust(workspace, shown.digest, actor=USER_ACTOR)
        return Producer(services, workspace, agents, self._home.place, self.actions, self._chance)

    async def _cards(self) -> list[Card]:
        try:
            return await asyncio.to_thread(read_cards, self._home.place.database)
        except sqlite3.OperationalError:
            return []

    async def _cards_to_disturb(self) -> list[Card]:
        return [card for card in await self._cards() if card.id not in {self._flood_task, *self._spared}]

    async def _produce(self, producer: Producer) -> None:
        while not self._over.is_set():
            cards = await self._cards()
            if sum(card.is_fresh for card in cards) < _MOST_FRESH:
                # A full disk takes no task; the next look makes it.
                with contextlib.suppress(AgentmonError):
                    await producer.make_some()
            else:
                await asyncio.sleep(0.3)

    async def _ask(self, group: asyncio.TaskGroup) -> None:
        asking: set[asyncio.Task[None]] = set()
        while not self._over.is_set():
            await asyncio.sleep(self._chance.uniform(0.1, 0.4))
            cards = await self._cards_to_disturb()
            busy = [card for card in cards if card.open_status]
            fresh = [card for card in cards if card.is_fresh]
            again = [card for card in cards if card.status == "todo" and card.runs and not card.open_status]
            if fresh and len(busy) < _MOST_OPEN and len(asking) < _MOST_ASKING and self._chance.random() < 0.4:
                task = group.create_task(self._run_and_disturb(self._chance.sample(fresh, min(4, len(fresh)))))
                asking.add(task)
                task.add_done_callback(asking.discard)
            elif not self._clients.has_room:
                continue
            elif busy and self._chance.random() < 0.25:
                await self._clients.stop(self._chance.choice(busy))
            elif again and self._chance.random() < 0.1:
                await self._clients.run([self._chance.choice(again)])
            elif fresh and len(busy) < _MOST_OPEN:
                count = 4 if self._chance.random() < 0.5 else 1
                await self._clients.run(self._chance.sample(fresh, min(count, len(fresh))))

    async def _talk(self) -> None:
        while not self._over.is_set():
            await asyncio.sleep(self._chance.uniform(0.1, 0.6))
            await self._decider.decide_some()
            talking = [card for card in await self._cards_to_disturb() if card.is_conversation]
            running = [card for card in talking if card.open_status == "running"]
            if talking and self._chance.random() < 0.25:
                of_those = running if running and self._chance.random() < 0.8 else talking
                await self._decider.disturb(self._chance.choice(of_those).id)

    async def _review(self, group: asyncio.TaskGroup) -> None:
        while not self._over.is_set():
            await asyncio.sleep(self._chance.uniform(0.5, 2.0))
            cards = await self._cards()
            done = [card for card in cards if card.has_worktree or card.is_merged]
            if self._spared <= {card.id for card in done} or time.monotonic() > self._spared_until:
                self._spared = frozenset()
            if done and self._clients.has_room_for_review:
                client = await self._clients.review(self._chance.choice(done))
                if client is not None and self._chance.random() < _KILLED_IN_THE_MIDDLE:
                    group.create_task(self._kill_in_the_middle(client))

    async def _kill_in_the_middle(self, client: Client) -> None:
        """Kill a client that does something with the work of a task, or a git of it, once it has come so far."""
        is_git, so_far = self._chance.random() < 0.5, self._chance.randrange(1, _MOST_GITS)
        seen: set[int] = set()
        while client.process.returncode is None and not self._over.is_set():
            gits = gits_of(client.process.pid)
            seen.update(gits)
            pid = next(iter(gits), None) if is_git else client.process.pid
            if len(seen) >= so_far and pid is not None and kill(pid):
                self.actions.note_kill("git" if is_git else "client", pid)
                return
            await asyncio.sleep(0.01)

    async def _work_as_person(self) -> None:
        """Commit now and then where branches are merged; a git that finds another one at work tries again."""
        while not self._over.is_set():
            await asyncio.sleep(self._chance.uniform(2.0, 6.0))
            await self._commit()

    async def _commit(self) -> bool:
        self._days += 1
        commit = await asyncio.to_thread(commit_as_person, self._home.place.trunk, self._days)
        self.actions.person_commits |= {commit} if commit else set()
        return commit is not None

    async def _stop_some(self) -> None:
        while not self._over.is_set():
            await asyncio.sleep(self._chance.uniform(0.3, 1.0) if self._is_calm else self._chance.uniform(1.0, 3.0))
            running = [card for card in await self._cards_to_disturb() if card.open_status == "running"]
            if running and self._chance.random() < _STOPPED:
                card = self._chance.choice(running)
                self.actions.stopped_tasks.add(card.number)
                with contextlib.suppress(AgentmonError):
                    is_forced = self._chance.random() < 0.3
                    await self._services.queue.stop(TaskId(card.id), actor=USER_ACTOR, kill=is_forced)

    async def _run_and_disturb(self, cards: list[Card]) -> None:
        """Queue runs from this process, and at times stop one or kill the worker while it starts them."""
        for card in cards:
            if await self._run(card):
                self.actions.accepted_runs[card.number] += 1
        disturbance = self._chance.random()
        await asyncio.sleep(self._chance.uniform(0.0, 0.4))
        if disturbance < 0.25:
            self.actions.stopped_tasks.add(cards[0].number)
            with contextlib.suppress(AgentmonError):
                is_forced = self._chance.random() < 0.3
                await self._services.queue.stop(TaskId(cards[0].id), actor=USER_ACTOR, kill=is_forced)
        elif disturbance < 0.5 and not self._spared:
            self._kill_one_of("worker", await self._targets())

    async def _run(self, card: Card) -> bool:
        try:
            await self._services.queue.run(TaskId(card.id), actor=USER_ACTOR)
        except AgentmonError:
            return False
        return True

    async def _use_app(self) -> None:
        while not self._over.is_set():
            await self._app.open()
            await asyncio.sleep(self._chance.uniform(1.0, 3.0))
            self._app.press(self._chance.choice((b"j", b"k", b"l", b"h")))

    async def _kill(self) -> None:
        while not self._over.is_set():
            pause_s = self._chance.uniform(*_KILL_EVERY_S)
            await asyncio.sleep(0 if self._chance.random() < _AT_ONCE else pause_s)
            targets = await self._targets()
            if self._is_calm:
                targets["worker"] = []
            living = [what for what in _KILL_WEIGHTS if targets[what]]
            if self._spared:
                living = [what for what in living if what in {"client", "app"}]
            if living:
                (what,) = self._chance.choices(living, weights=[_KILL_WEIGHTS[what] for what in living])
                self._kill_one_of(what, targets)

    async def _targets(self) -> Targets:
        found = await asyncio.to_thread(find_processes, self._home.place.home)
        clients = [one for one in self._clients.living if one.process.returncode is None and one.review is None]
        # One that is killed before it has its lock is waited for by all: seldom, or nothing would ever run.
        ready, is_any = read_presence(self._home.paths.worker_lock).pid, self._chance.random() < _STARTING_WORKERS_TOO
        return {
            "worker": [(worker.pid, None) for worker in found.workers if worker.pid == ready or is_any],
            "client": [(client.process.pid, None) for client in clients],
            "app": [(self._app.pid, None)] if self._app.pid is not None else [],
            "tmux server": [(server.pid, None) for server in found.servers],
            "host's parent": [(pid, None) for pid in found.parents],
            "host": [(host.pid, host.execution_id) for host in found.hosts if host.execution_id != self._flooding],
            "git": [(git.pid, None) for git in found.gits],
        }

    def _kill_one_of(self, what: str, targets: Targets) -> None:
        if targets[what]:
            pid, execution_id = self._chance.choice(targets[what])
            if kill(pid):
                self.actions.note_kill(what, pid, execution_id)
                if what == "worker" and self._chance.random() < _SHIFTED_WORKERS:
                    # Before a client starts one with the true time.
                    asyncio.get_running_loop().run_in_executor(
                        None, start_shifted_worker, self._home.place.clock_offset
                    )

    async def _step_clocks(self) -> None:
        while not self._over.is_set():
            await asyncio.sleep(self._chance.uniform(1.0, 5.0))
            step_clock(self._home.place.clock_offset, self._chance)
            self.actions.clock_steps += 1

    async def _fill_at_last_words(self) -> None:
        """Fill the disk when a run says that it is about to end."""
        ledgers, seen = self._home.place.ledgers, set[Path]()
        while not self._over.is_set():
            await asyncio.sleep(0.05)
            fresh = set(ledgers.glob("*.brink")) - seen
            seen |= fresh
            if fresh and self._home.disk is not None and self._chance.random() < _FILLED_AT_LAST_WORDS:
                self.actions.last_words += 1
                await self._fill_disk(self._home.disk, seconds=self._chance.uniform(1.0, 4.0))

    async def _fill_disk(self, disk: SmallDisk, *, seconds: float) -> None:
        async with self._filling:
            window = Window(begin=time.monotonic())
            self.actions.full_disk.append(window)
            await asyncio.to_thread(disk.fill)
            await asyncio.sleep(seconds)
            await asyncio.to_thread(disk.empty)
            window.end = time.monotonic()

    async def _spoil(self) -> None:
        while not self._over.is_set():
            await asyncio.sleep(self._chance.uniform(3.0, 8.0))
            if self._is_calm:
                continue
            if self._over.is_set():
                return
            seconds = self._chance.uniform(1.0, 5.0)
            if self._home.disk is not None and self._chance.random() < 0.5:
                await self._fill_disk(self._home.disk, seconds=seconds)
            else:
                self._home.tmux.vanish()
                window = Window(begin=time.monotonic())
                self.actions.without_tmux.append(window)
                await asyncio.sleep(seconds)
                self._home.tmux.come_back()
                window.end = time.monotonic()


async def rage_and_gather(home: ChaosHome, *, seconds: float, seed: int, flood: int = 0) -> tuple[Evidence, float]:
    """Return the evidence of one run, with how many seconds it took to come to rest; nothing lives afterwards."""
    scan = ProcessScan(home.place.executions_dir, "")
    watchers: list[subprocess.Popen[bytes]] = []
    try:
        async with open_services() as services:
            watchers = _start_watchers(home)
            storm = Storm(home, services, seed=seed, flood=flood)
            await storm.rage(seconds)
            settled_s = await storm.settle()
        marked, hosts = await asyncio.to_thread(scan.look)
        remaining = {
            execution_id: frozenset(pid for found in (marked, hosts) for pid, _ in found.get(execution_id, ()))
            for execution_id in marked.keys() | hosts.keys()
        }
        for watcher in watchers:
            watcher.terminate()
            await asyncio.to_thread(watcher.wait)
    finally:
        _end_all(home, scan, watchers)
    evidence = gather(
        home.place,
        storm.actions,
        running_limit=RUNNING_LIMIT,
        agent_limits=AGENT_LIMITS,
        secret=home.secret,
        remaining=remaining,
    )
    return evidence, settled_s


def _start_watchers(home: ChaosHome) -> list[subprocess.Popen[bytes]]:
    place = home.place
    looked_at = (place.database, place.executions_dir)
    return [
        subprocess.Popen([sys.executable, "-m", f"benchmarks.chaos.{name}", *looked_at, *more])
        for name, more in (("sampling", [place.samples]), ("stop_times", [home.paths.worker_lock, place.stop_times]))
    ]


def _end_all(home: ChaosHome, scan: ProcessScan, watchers: list[subprocess.Popen[bytes]]) -> None:
    for watcher in watchers:
        if watcher.poll() is None:
            watcher.kill()
            watcher.wait()
    for _ in range(3):
        found = find_processes(home.place.home)
        marked, hosts = scan.look()
        pids = {one.pid for part in (found.workers, found.servers, found.hosts) for one in part}
        pids |= {pid for part in (marked, hosts) for identities in part.values() for pid, _ in identities}
        for pid in pids:
            kill(pid)
