"""The demo: a small project, and tasks that run real programs in it."""

from __future__ import annotations

import os
import shutil
import subprocess
import textwrap
from dataclasses import dataclass, field
from datetime import timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Final

from agentmon.domain.clock import SystemClock
from agentmon.domain.task_status import Priority
from agentmon.domain.tasks import InputContext, Schedule, Task, TaskDraft
from agentmon.services.actors import USER_ACTOR
from agentmon.services.demo_agent import DEMO_AGENT_SLUG, DEMO_MODEL, make_demo_agent

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from agentmon.domain.tasks import Workspace
    from agentmon.services.agents import AgentService
    from agentmon.services.tasks import TaskService

_GIT_TIMEOUT_S: Final = 30


@dataclass(frozen=True, slots=True, kw_only=True)
class DemoTask:
    """A task of the demo."""

    title: str
    description: str = ""
    priority: Priority = Priority.NORMAL
    slug: str | None = None
    """The program; None leaves the task without one."""
    capability_key: str | None = None
    args: Mapping[str, object] = field(default_factory=dict)
    after: str | None = None
    """The title of an earlier task that must be done first."""
    labels: tuple[str, ...] = ()
    due_in: timedelta | None = None
    """When it has to be done, from the start of the demo on."""
    schedule: Schedule | None = None
    starts_in: timedelta | None = None
    """How long its run waits before it may begin."""
    budget_nano: int | None = None
    """Nano-USD that may be spent on it in all."""
    is_taken_back: bool = False
    """Whether its run is cancelled as soon as it is queued."""
    is_started: bool = True
    is_long: bool = False
    """Whether it goes on until somebody stops or answers it, or a minute has passed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AddedDemoTask:
    """A task of the demo that is on the board."""

    demo: DemoTask
    task: Task


_PROGRESS: Final = """
i=0
while [ $i -le 100 ]; do
  printf '\\rimporting products: %3d of 100' "$i"
  i=$((i + 4))
  sleep 0.1
done
printf '\\n100 products imported, 0 rejected\\n'
"""
_COLOURS: Final = """
for c in 31 32 33 34 35 36; do
  printf '\\033[%smservice %s\\033[0m answers in \\033[1m%s ms\\033[0m\\n' "$c" "$c" "$((c * 7))"
  sleep 0.2
done
"""
_MINUTE: Final = """
i=60
while [ $i -gt 0 ]; do
  echo "$(date +%H:%M:%S) queue length $((i % 7)), $i s to go"
  i=$((i - 1))
  sleep 1
done
"""
_REFUSED: Final = """
echo 'asking the shop for its reviews'
echo 'Error: daily quota exceeded, resets in 2 hours'
exit 1
"""
_CRASH: Final = """
echo 'stock 1 of 3 counted'
sleep 1
echo 'now its host is killed, as a crash of the machine would'
kill -KILL $PPID
sleep 60
"""
_QUESTION: Final = """
printf 'Attach with the key a and answer here.\\nWhich customer shall be told first? '
read -r name && echo "It will be $name."
"""

DEMO_TASKS: Final[tuple[DemoTask, ...]] = (
    DemoTask(
        title="Show what changed lately",
        description="`git log` in a small repository.",
        slug="git",
        capability_key="log",
        args={"count": 10},
    ),
    DemoTask(title="Check the working tree", slug="git", capability_key="status", priority=Priority.LOW),
    DemoTask(
        title="Run the unit tests of the cart",
        description="The standard library's unittest over tests/test_cart.py.",
        priority=Priority.HIGH,
        slug="python",
        capability_key="module",
        args={"module": "unittest", "arguments": ["-v", "tests.test_cart"]},
    ),
    DemoTask(
        title="Find out why the discount is wrong",
        labels=("cart", "bug"),
        due_in=timedelta(days=-1),
        description="This test fails: the discount is rounded down. Open the log to see where.",
        priority=Priority.URGENT,
        slug="python",
        capability_key="module",
        args={"module": "unittest", "arguments": ["-v", "tests.test_discount"]},
    ),
    DemoTask(
        title="Round half a cent up",
        labels=("cart",),
        description="The demo agent plays a part and asks before it edits: w, then y. No model is called.",
        priority=Priority.HIGH,
        slug=DEMO_AGENT_SLUG,
        capability_key="work",
        is_long=True,
    ),
    DemoTask(
        title="Write the catalogue",
        description="The demo agent asks a question: answer it in the inbox (6). No model is called.",
        slug=DEMO_AGENT_SLUG,
        capability_key="work",
        is_long=True,
    ),
    DemoTask(
        title="Build the packages",
        description="`make` with a Makefile of three targets.",
        slug="make",
        capability_key="build",
        args={"targets": ["all"]},
    ),
    DemoTask(
        title="Publish the packages",
        labels=("release",),
        description="Waits for the build; run it with r when that is done.",
        slug="make",
        capability_key="build",
        args={"targets": ["publish"]},
        after="Build the packages",
        is_started=False,
    ),
    DemoTask(
        title="Import the products",
        description="A progress bar that is redrawn with carriage returns: the log shows its last state.",
        slug="sh",
        capability_key="script",
        args={"script": _PROGRESS},
    ),
    DemoTask(title="Ask every service for its pulse", slug="sh", capability_key="script", args={"script": _COLOURS}),
    DemoTask(
        title="Count the lines of code",
        priority=Priority.LOW,
        slug="command",
        capability_key="run",
        args={"argv": ["sh", "-c", "find . -name '*.py' -exec wc -l {} +"]},
    ),
    DemoTask(
        title="Watch the queue for a minute",
        description="Attach with a, come back with ctrl+q, stop it with x.",
        priority=Priority.HIGH,
        slug="sh",
        capability_key="script",
        args={"script": _MINUTE},
        is_long=True,
    ),
    DemoTask(
        title="Ask whom to tell first",
        description="A program that reads from the keyboard: attach with a and answer.",
        slug="sh",
        capability_key="script",
        args={"script": _QUESTION},
        is_long=True,
    ),
    DemoTask(
        title="Collect the reviews",
        labels=("shop",),
        description="The program says that its quota is used up until later: the run is parked, and goes on by itself.",
        slug="sh",
        capability_key="script",
        args={"script": _REFUSED},
        is_long=True,
    ),
    DemoTask(
        title="Name the products in French",
        description="The demo agent gets four seconds, and nobody answers it in that time.",
        slug=DEMO_AGENT_SLUG,
        capability_key="hurry",
    ),
    DemoTask(
        title="Describe every product",
        description="Its budget is half a cent: the demo agent is stopped when that is spent.",
        priority=Priority.LOW,
        slug=DEMO_AGENT_SLUG,
        capability_key="work",
        budget_nano=5_000_000,
        is_long=True,
    ),
    DemoTask(
        title="Count the stock",
        description="A crash cuts it off: the card says that it is lost, and r runs it again.",
        slug="sh",
        capability_key="script",
        args={"script": _CRASH},
    ),
    DemoTask(
        title="Serve the shop",
        description="Makes nothing for a minute; make runs one at a time here.",
        slug="make",
        capability_key="build",
        args={"targets": ["serve"]},
        is_long=True,
    ),
    DemoTask(
        title="Check the links of the shop",
        description="Waits until make is free: agentmon agents limit make 1.",
        priority=Priority.LOW,
        slug="make",
        capability_key="build",
        args={"targets": ["links"]},
        is_long=True,
    ),
    DemoTask(
        title="Send the newsletter",
        labels=("shop",),
        due_in=timedelta(hours=5),
        description="Queued now, begins in three hours: x takes it out of the queue.",
        slug="command",
        capability_key="run",
        args={"argv": ["echo", "sent"]},
        starts_in=timedelta(hours=3),
        is_long=True,
    ),
    DemoTask(
        title="Tidy the build folder",
        description="Runs by itself at seven on working days.",
        priority=Priority.LOW,
        slug="command",
        capability_key="run",
        args={"argv": ["rm", "-rf", "build"]},
        schedule=Schedule(cron="0 7 * * 1-5", zone="UTC"),
        is_started=False,
    ),
    DemoTask(
        title="Close the old shop",
        description="Was queued and taken back: r queues it again.",
        priority=Priority.LOW,
        slug="command",
        capability_key="run",
        args={"argv": ["echo", "closed"]},
        starts_in=timedelta(hours=1),
        is_taken_back=True,
    ),
    DemoTask(
        title="Switch to the new queue",
        description="Blocked until the watch is over.",
        slug="command",
        capability_key="run",
        args={"argv": ["echo", "switched"]},
        after="Watch the queue for a minute",
        is_started=False,
    ),
    DemoTask(
        title="Write the release notes",
        labels=("docs", "release"),
        due_in=timedelta(days=2),
        description="No program yet: press e to choose one, or H and L to move the card by hand.",
        priority=Priority.LOW,
        is_started=False,
    ),
)

_FILES: Final[Mapping[str, str]] = {
    "README.md": "# shop\n\nA shop small enough for a demo.\n",
    "shop/__init__.py": '"""The shop."""\n',
    "shop/cart.py": """
        \"\"\"What a customer wants to buy; amounts in cents.\"\"\"


        def total(prices: list[int]) -> int:
            return sum(prices)


        def discounted(price: int, percent: int) -> int:
            return price * (100 - percent) // 100
        """,
    "tests/__init__.py": "",
    "tests/test_cart.py": """
        import unittest

        from shop.cart import total


        class CartTest(unittest.TestCase):
            def test_an_empty_cart_costs_nothing(self):
                self.assertEqual(total([]), 0)

            def test_prices_are_added(self):
                self.assertEqual(total([999, 1]), 1000)
        """,
    "tests/test_discount.py": """
        import unittest

        from shop.cart import discounted


        class DiscountTest(unittest.TestCase):
            def test_half_a_cent_is_rounded_up(self):
                self.assertEqual(discounted(999, 50), 500)
        """,
    "Makefile": """
        PACKAGES = build/cart.txt build/queue.txt build/mail.txt

        all: $(PACKAGES)

        build/%.txt:
        \t@mkdir -p build
        \t@echo "compiling $*"
        \t@sleep 0.3
        \t@date > $@

        serve:
        \t@for second in $$(seq 60); do echo "served $$second customers"; sleep 1; done

        links:
        \t@echo "no link is broken"

        publish: all
        \t@for package in $(PACKAGES); do echo "published $$package"; done

        .PHONY: all serve links publish
        """,
    ".gitignore": "build/\n__pycache__/\n",
}
_COMMITS: Final[tuple[tuple[str, tuple[str, ...]], ...]] = (
    ("Begin the shop", ("README.md", "shop/__init__.py", ".gitignore")),
    ("Add prices up", ("shop/cart.py",)),
    ("Test the cart", ("tests/__init__.py", "tests/test_cart.py")),
    ("Test the discount", ("tests/test_discount.py",)),
    ("Build with make", ("Makefile",)),
)


def write_project(folder: Path) -> None:
    """Write the demo's project into the folder, which is made; where git is, it becomes a repository."""
    git = shutil.which("git")
    folder.mkdir(parents=True)
    if git is not None:
        _git(git, folder, "init", "-q")
        _git(git, folder, "symbolic-ref", "HEAD", "refs/heads/main")
    for subject, names in _COMMITS:
        for name in names:
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(textwrap.dedent(_FILES[name]).lstrip("\n"), encoding="utf-8")
        if git is not None:
            _git(git, folder, "add", "--", *names)
            _git(git, folder, "commit", "-q", "-m", subject)


def write_prices(file: Path) -> None:
    """Give the model of the demo a price, so that its costs are to be seen."""
    from agentmon.usage.prices.own_prices import write_own_price  # noqa: PLC0415 - nothing else here needs prices
    from agentmon.usage.prices.rates import Kind  # noqa: PLC0415

    rates = {Kind.INPUT: Decimal(3), Kind.CACHE_READ: Decimal("0.3"), Kind.OUTPUT: Decimal(15)}
    write_own_price(file, model=DEMO_MODEL, rates=rates)


async def add_demo_tasks(
    tasks: TaskService, agents: AgentService, workspace: Workspace, *, chosen: Sequence[DemoTask] = DEMO_TASKS
) -> tuple[AddedDemoTask, ...]:
    """Put the demo's tasks on the board, none of them started; those whose program is not on PATH are left out."""
    await agents.add(make_demo_agent())
    known = {agent.slug: agent for agent in await agents.list()}
    added: dict[str, AddedDemoTask] = {}
    began = SystemClock().now()
    for demo in chosen:
        if demo.slug is not None and demo.slug not in known:
            continue
        if demo.after is not None and demo.after not in added:
            continue
        draft = TaskDraft(
            title=demo.title,
            description=demo.description,
            priority=demo.priority,
            assignee_agent_id=known[demo.slug].id if demo.slug is not None else None,
            input_context=InputContext(capability_key=demo.capability_key, args=demo.args),
            labels=demo.labels,
            due_at=None if demo.due_in is None else began + demo.due_in,
            schedule=demo.schedule,
        )
        after = (added[demo.after].task.number,) if demo.after is not None else ()
        task = await tasks.add(workspace, draft, actor=USER_ACTOR, after=after)
        added[demo.title] = AddedDemoTask(demo=demo, task=task)
    return tuple(added.values())


def _git(git: str, folder: Path, *words: str) -> None:
    who = {f"GIT_{role}_{part}": text for role in ("AUTHOR", "COMMITTER") for part, text in _DEVELOPER.items()}
    subprocess.run(
        [git, "-c", "commit.gpgsign=false", *words],
        cwd=folder,
        env={**os.environ, **who, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=_GIT_TIMEOUT_S,
        check=True,
    )


_DEVELOPER: Final = {"NAME": "Demo Developer", "EMAIL": "demo@example.org"}
