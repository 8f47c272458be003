"""What waits in Review is listed, commented on, sent and accepted from the command line."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from agentmon.bootstrap import open_services
from agentmon.domain.agent_changes import AgentChanges
from agentmon.domain.agents import ToolType
from agentmon.services.actors import USER_ACTOR
from agentmon.services.demo_agent import make_demo_agent
from tests.waiting import wait_for
from tests.workspaces.worktree_place import a_repository

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli.command_lines import CommandLine

_BEFORE = "".join(f"line {number}\n" for number in range(1, 41))
_LINE = "    return price * (100 - percent) // 100"
_AFTER = "    return (price * (100 - percent) + 50) // 100"
_EDIT = "sed -i 's/line 3$/line three/; s/line 4$/line four/' a; rm gone; printf '\\\\000' > bin"


@pytest.fixture(scope="module")
def reviewed(cli: CommandLine) -> str:
    """The number of a task in Review, whose run edited a file, removed one and made a binary one."""

    async def two_agents() -> None:
        async with open_services(cli.paths) as services:
            await services.agents.add(make_demo_agent(pace_s=0.0))
            await services.agents.edit("command", AgentChanges(tool_type=ToolType.AI_AGENT), actor=USER_ACTOR)

    a_repository(cli.workspace, a=_BEFORE, gone="was here\n")
    asyncio.run(two_agents())
    number = cli.add("Mend the door", "--command", f'sh -c "{_EDIT}"', "--verify", "exit 0")
    ran = cli("run", number, "--wait")
    assert ran.code == 0, ran.stderr
    return number


def _comments(cli: CommandLine, number: str) -> list[tuple[str, str, int, int, str, str]]:
    found = cli("review", number, "--json").document()["comments"]
    return [
        (one["path"], one["side"], one["first_line"], one["last_line"], one["quoted"], one["text"]) for one in found
    ]


def test_nothing_to_review_says_so_and_makes_no_workspace(cli: CommandLine, tmp_path: Path) -> None:
    for words in (("review",), ("review", "--all")):
        empty = cli(*words, folder=tmp_path)
        assert (empty.code, empty.stdout, empty.stderr) == (0, "", "nothing to review\n")
    assert cli("review", "--json", folder=tmp_path).document() == []
    assert str(tmp_path) not in cli("workspaces", "--json").stdout
    cli("settings", "board.review", "false")
    assert "board.review" in cli("review").stderr
    cli("settings", "board.review", "true")


def test_what_waits_is_listed_with_its_changes_and_verification(cli: CommandLine, reviewed: str) -> None:
    (card,) = cli("review", "--json").document()
    (row,) = cli("review").stdout.splitlines()[1:]
    (everywhere,) = cli("review", "--all", "--json").document()
    shown = cli("review", reviewed, "--json").document()

    assert (str(card["number"]), card["title"], card["status"]) == (reviewed, "Mend the door", "review")
    assert (card["changed_files"], card["lines_added"], card["lines_removed"]) == (3, 2, 3)
    assert card["verification"]["status"] == "passed"
    assert row.startswith(f"#{reviewed}  ")
    assert row.endswith("Mend the door")
    assert "+2 −3 · 3 files" in row
    assert everywhere["task_id"] == card["task_id"]
    assert (shown["status"], shown["run"], shown["changed_files"], shown["comments"]) == ("review", 1, 3, [])
    assert shown["verification"]["status"] == "passed"
    assert f"agentmon review {reviewed} PATH:LINE" in cli("review", reviewed).stderr


def test_comments_are_added_changed_and_removed(cli: CommandLine, reviewed: str) -> None:
    added = cli("review", reviewed, "a:3-4", "Why words?", "--json").document()
    changed = cli("review", reviewed, "a:3–4", "-", "--json", standard_input="Why\nwords?\n").document()
    cli("review", reviewed, "a:3", "Old", "--old")
    cli("review", reviewed, "a:40", "Outside of the hunk")
    cli("review", reviewed, "gone:1", "Keep it", "--old", "--run", "1")

    assert changed["id"] == added["id"]
    assert _comments(cli, reviewed) == [
        ("a", "new", 3, 4, "line three\nline four", "Why\nwords?"),
        ("a", "old", 3, 3, "line 3", "Old"),
        ("a", "new", 40, 40, "line 40", "Outside of the hunk"),
        ("gone", "old", 1, 1, "was here", "Keep it"),
    ]
    text = cli("review", reviewed).stdout
    assert "run 1, to send: a:3–4\n> line three\n> line four\nWhy\nwords?\n" in text
    for place in (["a:3", "--old"], ["a:40"], ["gone:1", "--old"], ["a:3-4"]):
        removed = cli("review", reviewed, place[0], "", *place[1:])
        assert removed.code == 0, removed.stderr
    assert _comments(cli, reviewed) == []


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("a", "text"), 2),
        (("a:0", "text"), 2),
        (("a:4-3", "text"), 2),
        (("a:3",), 2),
        (("a:3", "text", "--send"), 2),
        (("--send", "--accept"), 2),
        (("--old",), 2),
        (("--send", "--run", "1"), 2),
        (("--all",), 2),
        (("a:41", "text"), 2),
        (("gone:1", "text"), 2),
        (("bin:1", "text"), 2),
        (("other:1", "text"), 2),
        (("a:3", "text", "--run", "2"), 2),
        (("a:3", ""), 2),
        (("--send",), 2),
    ],
)
def test_what_makes_no_sense_is_refused_with_a_next_step(
    cli: CommandLine, reviewed: str, words: tuple[str, ...], code: int
) -> None:
    refused = cli("review", reviewed, *words)

    assert (refused.code, refused.stdout) == (code, "")
    assert "hint: " in refused.stderr
    assert _comments(cli, reviewed) == []


def test_an_agent_looks_and_decides_nothing(cli: CommandLine, reviewed: str) -> None:
    inside = {"AGENTMON_EXECUTION_ID": cli("review", reviewed, "--json").document()["execution_id"]}
    cli("review", reviewed, "a:3", "A person's")
    refused = [
        cli("review", reviewed, *words, environ=inside)
        for words in (["a:4", "mine"], ["a:3", ""], ["--send"], ["--accept"])
    ]

    assert [one.code for one in refused] == [1] * len(refused)
    assert len(cli("review", "--json", environ=inside).document()) == 1
    assert len(cli("review", reviewed, "--json", environ=inside).document()["comments"]) == 1
    cli("review", reviewed, "a:3", "")


@pytest.mark.proof
def test_comments_go_to_the_agent_as_one_message_once(cli: CommandLine, reviewed: str) -> None:
    del reviewed
    (cli.workspace / "shop").mkdir()
    (cli.workspace / "shop/cart.py").write_text(f"def discounted(price, percent):\n{_LINE}\n")
    added = cli("task", "add", "Round up", "--agent", "demo-agent", "--json")
    number = str(added.document()["number"])
    started = cli("run", number)
    assert started.code == 0, started.stderr
    # It asks before it edits, and before it runs the tests.
    for _ in range(2):
        wait_for(lambda: cli("approve", f"#{number}", "--yes").code == 0)
    wait_for(lambda: cli("task", "show", number, "--json").document()["status"] == "review")
    commented = [cli("review", number, f"shop/cart.py:{line}", text) for line, text in ((2, "Why 50?"), (1, "Fine"))]
    sent = cli("review", number, "--send", "--json").document()
    again = cli("review", number, "--send")
    wait_for(lambda: cli("executions", "--task", number, "--json").document()[0]["status"] == "succeeded")
    told = cli("conversation", number, "--json").document()["messages"]
    shown = cli("review", number, "--json").document()

    assert [one.code for one in commented] == [0, 0]
    assert (sent["is_new_execution"], len(sent["comments"]), again.code) == (True, 2, 2)
    assert [one["content"] for one in told if one["role"] == "user"][-1] == (
        f"shop/cart.py:2\n> {_AFTER}\nWhy 50?\n\nshop/cart.py:1\n> def discounted(price, percent):\nFine"
    )
    assert all(one["sent_at"] for one in shown["comments"])
    assert "run 1, sent: shop/cart.py:2" in cli("review", number).stdout


def test_accepting_moves_the_card_to_done_and_names_what_was_not_sent(cli: CommandLine, reviewed: str) -> None:
    cli("review", reviewed, "a:3", "Never mind")
    accepted = cli("review", reviewed, "--accept")
    again = cli("review", reviewed, "--accept")

    assert accepted.code == 0, accepted.stderr
    assert "1 comment was not sent" in accepted.stderr
    assert cli("task", "show", reviewed, "--json").document()["status"] == "done"
    assert again.code == 1
    assert reviewed not in [str(card["number"]) for card in cli("review", "--json").document()]
