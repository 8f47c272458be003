"""The proof that the queue and the worker can be trusted: kills, a full disk and a missing tmux, then every promise.

In a scratch home a stream of tasks runs – short, long, noisy, silent, forking, daemonising, deaf to TERM, failing,
waiting for others, running into their time limit, changing files in worktrees that are set up first and verified
afterwards, talking, and talking to do harm – while workers, clients, apps, tmux servers, the parents of hosts, gits
and, more rarely, hosts are killed with -9, clients stop tasks and do with their work what ``reviewing`` lists: undo and
redo, merge and take that back, verify, comment, remove; people and rules decide what agents ask, budgets stop what
people interrupt, the disk fills up, at times at the last words of a run, tmux vanishes and the clock of workers jumps.
When all has come to rest, every promise of ARCHITECTURE.md is checked from outside. The seed chooses what is done and
roughly when; what falls together is chance. The exit code is 1 when a promise was broken, and the home is kept then.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING

from benchmarks.chaos.checks import check
from benchmarks.chaos.conversations import TALKING_AGENTS
from benchmarks.chaos.endings import windows_text
from benchmarks.chaos.home import chaos_home
from benchmarks.chaos.stop_times import percentiles_text
from benchmarks.chaos.storm import rage_and_gather

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from benchmarks.chaos.checks import Violation
    from benchmarks.chaos.evidence import Evidence
    from benchmarks.chaos.stop_times import StopTime

_DISK_MB = 96
_DISK_MB_A_MINUTE = 32
_FLOOD_EVENTS_A_MB = 500
_MOST_SHOWN = 40


def main() -> int:
    """Run chaos as the arguments say and return the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.chaos", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--minutes", type=float, default=2.0, help="how long things are killed (default: 2)")
    parser.add_argument("--seed", type=int, default=1, help="chooses what is done, and when (default: 1)")
    parser.add_argument("--flood", type=int, default=0, help="one agent tells of so many events (default: none)")
    parser.add_argument("--keep", action="store_true", help="keep the home also when nothing was broken")
    arguments = parser.parse_args()
    size_mb = _DISK_MB + int(_DISK_MB_A_MINUTE * arguments.minutes) + arguments.flood // _FLOOD_EVENTS_A_MB
    with chaos_home(size_mb=size_mb) as home:
        print(f"chaos for {arguments.minutes:g} min with seed {arguments.seed} in {home.folder}", flush=True)
        if home.disk is None:
            print("no full disk: that needs root and a mount of its own, which this machine does not allow", flush=True)
        work = rage_and_gather(home, seconds=60 * arguments.minutes, seed=arguments.seed, flood=arguments.flood)
        evidence, settled_s = asyncio.run(work)
        _report(evidence, settled_s)
        violations = check(evidence)
        _report_violations(violations)
        if violations or arguments.keep:
            evidence.actions.write(home.folder / "actions.json")
            print(f"\nthe home is kept: {home.keep()}; ledgers, samples and actions.json stand beside it")
    return 1 if violations else 0


def _report(evidence: Evidence, settled_s: float) -> None:
    actions = evidence.actions
    kills = Counter(kill.what for kill in actions.kills)
    endings = Counter(_ending(row.status, row.error) for row in evidence.rows)
    programs = [ledger for ledgers in evidence.ledgers.values() for ledger in ledgers if ledger.is_main]
    logged_bytes = sum(len(attempt.output or b"") for tries in evidence.tries.values() for attempt in tries)
    print(f"kills -9: {len(actions.kills)} ({_counts(kills)})")
    print(f"disk full: {windows_text(actions.full_disk)}; without tmux: {windows_text(actions.without_tmux)}")
    print(
        f"disk filled at last words: {actions.last_words}; clock steps: {actions.clock_steps}; "
        f"tasks with a budget: {len(actions.budgeted_tasks)}"
    )
    for outcome in ("done", "refused", "killed"):
        found = {name: count for (name, became), count in actions.reviews.items() if became == outcome}
        print(f"work of tasks, {outcome}: {sum(found.values())} ({_counts(found)})")
    print(f"after a kill: {_counts(evidence.finished_late)}; commits of the person: {len(actions.person_commits)}")
    print(f"runs: {len(evidence.rows)} ({_counts(endings)}), {sum(row.retry_count for row in evidence.rows)} retries")
    print(f"programs: {len(programs)} ({_counts(Counter(program.kind for program in programs))})")
    talks = [row for row in evidence.rows if row.agent_slug in TALKING_AGENTS]
    told = Counter(
        name.removeprefix("agent_event ")
        for row in talks
        for name, _ in evidence.events.get(row.id, ())
        if name.startswith("agent_event ")
    )
    endings = Counter(_ending(row.status, row.error) for row in talks)
    print(f"conversations: {len(talks)} ({_counts(endings)}); of their news: {_counts(told)}")
    left_out = sum(name == "not_recorded" for told in evidence.events.values() for name, _ in told)
    print(f"requests: {_counts(evidence.requests)}; left out of the database, with the reason: {left_out}")
    print(f"commands: {_counts(evidence.commands)}")
    print(f"output checked: {logged_bytes:,} bytes; events checked: {sum(map(len, evidence.events.values())):,}")
    _report_stop_times(evidence)
    most = max((len(sample.marked) for sample in evidence.samples), default=0)
    print(f"most live at one time: {most} (limit {evidence.running_limit})")
    print(f"samples: {evidence.sample_count:,}, the longest gap {1000 * evidence.longest_gap_s:.0f} ms")
    print(f"at rest after {settled_s:.0f} s")


def _report_stop_times(evidence: Evidence) -> None:
    actions = evidence.actions
    stops = [one for one in evidence.stop_times if one.is_stop]
    calm = [one for one in stops if one.is_undisturbed(actions)]
    others = [one for one in evidence.stop_times if not one.is_stop and one.is_written]
    print(f"stops with a worker, a disk and tmux: {percentiles_text(calm)}")
    waited = [replace(one, done_at=one.done_at - one.waited_s) for one in calm]
    print(f"the same without the wait for a core: {percentiles_text(waited)}")
    print(f"stops while workers were killed, or disk or tmux were gone: {percentiles_text(_without(stops, calm))}")
    print(f"other commands that were handed on: {percentiles_text(others)}")


def _without(times: Sequence[StopTime], others: Sequence[StopTime]) -> list[StopTime]:
    return [one for one in times if one not in others]


def _ending(status: str, error: str) -> str:
    return "lost" if status == "failed" and error.startswith("lost:") else status


def _counts(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{name} {count}" for name, count in sorted(counts.items(), key=lambda item: -item[1])) or "none"


def _report_violations(violations: tuple[Violation, ...]) -> None:
    print(f"violations: {len(violations)}")
    for promise, count in Counter(violation.promise for violation in violations).items():
        print(f"\n{promise}: {count}")
        found = [violation.what for violation in violations if violation.promise == promise]
        for what in found[:_MOST_SHOWN]:
            print(f"  {what}")
        if len(found) > _MOST_SHOWN:
            print(f"  and {len(found) - _MOST_SHOWN} more")


if __name__ == "__main__":
    sys.exit(main())
