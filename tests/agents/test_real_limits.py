"""Real agents at their limits: vendors that refuse, streams that end, large texts, secrets, copies of copies."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from agentmon.domain.activity import Activity
from agentmon.domain.approvals import ApprovalScope, ApprovalStatus
from agentmon.domain.budgets import BudgetAction, BudgetPeriod, BudgetScope, BudgetUnit
from agentmon.domain.conversation import AskKind
from agentmon.domain.execution_status import ExecutionStatus, WaitReason
from agentmon.domain.live_state import LiveState
from agentmon.services.actors import USER_ACTOR
from tests.agents.drive import require_succeeded
from tests.agents.test_states import start_own_screen

if TYPE_CHECKING:
    from collections.abc import Mapping

    from agentmon.domain.executions import Execution
    from tests.agents.drive import Drive

pytestmark = pytest.mark.agents

# In parts, so that no tool that looks for secrets stops at this file.
SECRETS = ("AKIA" + "QWERTYUIOPASDFGH", "sk-ant-" + "api03-" + "Zx9Yw8Vu7Ts6Rq5Po4Nm3" * 4)
_ESCALATED = {"sandbox_permissions": "require_escalated", "justification": "May I?"}


def steps(*answers: Mapping[str, object]) -> str:
    return f"go #mock:{json.dumps(list(answers))}"


def shell(command: str) -> dict[str, object]:
    """Return a step that calls the shell in a way that every agent asks about."""
    return {"tools": [["shell", {"command": command, "extra": _ESCALATED}]]}


async def until_settled(drive: Drive, execution: Execution) -> Execution:
    """Wait until the try is over or waits for its vendor."""

    async def is_settled() -> Execution | None:
        found = await drive.services.executions.get(execution.id)
        return found if not found.status.is_open or found.wait_reason is not None else None

    found: Execution = await drive.until(is_settled, "the end of the try")
    return found


# opencode asks a server that fails again and again, and says nothing of it over ACP.
@pytest.mark.only("claude", "codex", "gemini")
@pytest.mark.parametrize("error", ["e429", "e529"])
async def test_a_vendor_that_is_full_is_quoted(drive: Drive, error: str) -> None:
    settled = await until_settled(drive, await drive.start(f"go #mock:{error}"))

    errors = " ".join(
        str(row["error"] or row["wait_reason"] or "") for row in drive.executions() if row["id"] == settled.id
    )
    assert any(words in errors for words in ("mock", error[1:], "exceeded retry limit", "high demand", "limit")), errors


# opencode begins again by itself and says nothing of it over ACP.
@pytest.mark.only("claude", "codex", "gemini")
async def test_a_stream_that_ends_in_the_midst_ends_the_run(drive: Drive) -> None:
    settled = await until_settled(drive, await drive.start("go #mock:drop"))

    assert not settled.status.is_open or settled.wait_reason is not None
    assert "pending" not in {row["status"] for row in drive.rows("operations", settled)}


@pytest.mark.only("claude")  # The others know no limit of money.
async def test_a_limit_of_money_fails_the_run_and_says_so(drive: Drive) -> None:
    again = {"text": "More.", "tools": [["shell", {"command": "echo more"}]]}
    costly = again | {"usage": {"input": 200000, "output": 50000}}
    ended = await drive.allow_all_until_over(await drive.start(steps(costly, costly, costly), max_budget_usd=0.05))

    assert ended.status is ExecutionStatus.FAILED
    assert "budget" in (ended.error or "").lower()


async def test_a_denial_with_an_interrupt_stops_the_turn(drive: Drive) -> None:
    started = await drive.start(steps(shell("touch denied"), {"text": "Went on."}))
    asked = (await drive.until_asked(started)).approval
    await drive.services.approvals.deny(
        asked.id, actor=USER_ACTOR, seen_digest=asked.input_digest, reason="stop", interrupts=True
    )
    await drive.until_active(started, Activity.WAITING)
    await drive.services.conversations.finish(started.task_id, actor=USER_ACTOR)
    ended = await drive.until_over(started)

    assert not (drive.project / "denied").exists()
    assert drive.approval_states(ended) == [ApprovalStatus.DENIED]
    assert "Went on." not in drive.texts(ended, "assistant")


@pytest.mark.only("claude")  # The others' protocols take no other input than the one that was asked about.
async def test_an_edited_input_is_what_runs(drive: Drive) -> None:
    started = await drive.start(steps(shell("touch asked-for"), {"text": "Done."}))
    asked = (await drive.until_asked(started)).approval
    await drive.services.approvals.allow(
        asked.id, actor=USER_ACTOR, seen_digest=asked.input_digest, tool_input={"command": "touch edited"}
    )
    require_succeeded(await drive.until_over(started), drive)

    assert (drive.project / "edited").exists()
    assert not (drive.project / "asked-for").exists()


async def test_what_is_always_allowed_is_decided_by_the_rule_the_next_time(drive: Drive) -> None:
    first = await drive.start(steps(shell("touch always"), {"text": "Done."}))
    await drive.allow(await drive.until_asked(first), ApprovalScope.ALWAYS)
    require_succeeded(await drive.until_over(first), drive)

    second = await drive.until_over(await drive.start(steps(shell("touch always"), {"text": "Done."})))

    require_succeeded(second, drive)
    (rule,) = await drive.services.approvals.rules()
    (approval,) = drive.rows("approvals", second)
    assert (approval["status"], approval["rule_id"], approval["decided_by_type"]) == ("allowed", rule.id, "system")


@pytest.mark.only("claude", "codex", "opencode")  # Gemini finds no conversation again over ACP.
async def test_a_fork_of_a_fork_is_a_conversation_of_its_own(drive: Drive) -> None:
    first = await drive.until_over(await drive.start("say hello #mock:plain"))
    refs = [(await drive.session_of(first)).session_ref]
    newest = first
    for _ in range(2):
        session = await drive.session_of(newest)
        newest = await drive.until_over(
            await drive.services.sessions.fork(session.id, "elsewhere #mock:plain", actor=USER_ACTOR)
        )
        require_succeeded(newest, drive)
        other = await drive.session_of(newest)
        assert other.forked_from == session.id
        refs.append(other.session_ref)

    assert len(set(refs)) == 3


async def test_a_restart_begins_a_fresh_conversation_with_the_same_prompt(drive: Drive) -> None:
    first = await drive.until_over(await drive.start("say hello #mock:plain"))
    session = await drive.session_of(first)
    second = await drive.until_over(await drive.services.sessions.restart(session.id, actor=USER_ACTOR))

    require_succeeded(second, drive)
    other = await drive.session_of(second)
    assert (other.id, other.session_ref) != (session.id, session.session_ref)
    assert drive.texts(second, "user") == ["say hello #mock:plain"]


@pytest.mark.only("claude", "codex", "opencode")  # Gemini finds no conversation again over ACP.
async def test_two_runs_in_one_folder_go_on_with_their_own_conversations(drive: Drive) -> None:
    # One after the other: two Codex that begin at once in a new home trip over the making of its database.
    firsts = [await drive.until_over(await drive.start(f"say hello to {name} #mock:plain")) for name in ("one", "two")]
    for first in firsts:
        require_succeeded(first, drive)
        before = await drive.session_of(first)
        sent = await drive.services.conversations.send(first.task_id, "again #mock:plain", actor=USER_ACTOR)
        second = await drive.until_over(sent.execution)
        require_succeeded(second, drive)
        after = await drive.session_of(second)
        assert (after.id, after.session_ref) == (before.id, before.session_ref)
    assert len({(await drive.session_of(first)).session_ref for first in firsts}) == 2


@pytest.mark.only("claude", "codex")  # The models and modes of ACP agents are their own lists.
async def test_a_model_and_a_mode_are_set_while_it_runs(drive: Drive) -> None:
    model, mode = {"claude": ("sonnet", "acceptEdits"), "codex": ("gpt-5.1-codex", "full-access")}[drive.agent.slug]
    started = await drive.start("go #mock:slow")
    await drive.until_active(started, Activity.WORKING)
    await drive.services.conversations.switch(started.task_id, model=model, permission_mode=mode, actor=USER_ACTOR)

    async def are_obeyed() -> bool:
        commands = drive.rows("execution_commands", started)
        assert [row["error"] for row in commands] == [None, None]
        return all(row["obeyed_at"] for row in commands)

    await drive.until(are_obeyed, "both commands")
    await drive.services.conversations.interrupt(started.task_id, actor=USER_ACTOR)


async def test_a_long_prompt_comes_whole_through_the_protocol(drive: Drive) -> None:
    word = drive.project.parent.name
    description = f"long {word} #mock:plain " + "0123456789 abcdef\n" * 5690 + "the end"
    ended = await drive.until_over(await drive.start("a long task", description=description))

    require_succeeded(ended, drive)
    assert any(description in text for text in drive.asked())
    assert drive.texts(ended, "assistant") == ["Hello from the mock model."]


async def test_a_secret_that_a_tool_prints_is_kept_nowhere(drive: Drive) -> None:
    (drive.project / "keys.env").write_text("".join(f"export KEY={secret}\n" for secret in SECRETS))
    ended = await drive.allow_all_until_over(await drive.start(steps(shell("cat keys.env"), {"text": "Seen."})))

    require_succeeded(ended, drive)
    assert [row["status"] for row in drive.rows("operations", ended)] == ["success"]
    assert [path for secret in SECRETS for path in files_with(drive.services.paths.data_dir, secret)] == []


@pytest.mark.only("claude", "codex", "gemini")  # opencode's key stands in its own settings.
async def test_the_key_of_the_environment_is_in_no_argument_and_no_row(drive: Drive) -> None:
    names = {"claude": "ANTHROPIC_API_KEY", "codex": "MOCK_API_KEY", "gemini": "GEMINI_API_KEY"}
    key = drive.agent.environ[names[drive.agent.slug]]
    started = await drive.start("go #mock:slow")
    await drive.until_active(started, Activity.WORKING)

    arguments = [path.read_bytes() for path in Path("/proc").glob("[0-9]*/cmdline") if path.exists()]
    await drive.services.conversations.interrupt(started.task_id, actor=USER_ACTOR)
    await drive.until_active(started, Activity.WAITING)
    await drive.services.conversations.finish(started.task_id, actor=USER_ACTOR)
    await drive.until_over(started)

    assert not any(key.encode() in one for one in arguments)
    assert files_with(drive.services.paths.data_dir, key) == []


def files_with(folder: Path, text: str) -> list[Path]:
    """Return the files that hold the text, those of the database among them."""
    return [path for path in folder.rglob("*") if path.is_file() and text.encode() in path.read_bytes()]


# opencode tells what it took when its turn is over.
@pytest.mark.only("claude", "codex", "gemini")
async def test_an_agent_that_asks_is_interrupted_and_waits_when_its_budget_is_spent(drive: Drive) -> None:
    await _see_it_wait_for_its_budget(drive, "escalate" if drive.agent.slug == "codex" else "shell")


# The others tell what an answer took when it is over.
@pytest.mark.only("claude")
async def test_an_answer_is_interrupted_in_the_midst_when_its_budget_is_spent(drive: Drive) -> None:
    await _see_it_wait_for_its_budget(drive, "slow")


async def _see_it_wait_for_its_budget(drive: Drive, scenario: str) -> None:
    task = await drive.add(f"go #mock:{scenario}")
    await drive.services.budgets.set(
        scope=BudgetScope.TASK,
        scope_id=task.id,
        period=BudgetPeriod.TOTAL,
        unit=BudgetUnit.TOKENS,
        limit=2,
        actor=USER_ACTOR,
    )

    begun = await drive.services.queue.run(task.id, actor=USER_ACTOR, environ=drive.agent.environ)
    await drive.until_asked(begun, AskKind.BUDGET)

    async def is_obeyed() -> bool:
        commands = drive.rows("execution_commands", begun)
        return bool(commands) and all(row["obeyed_at"] for row in commands)

    await drive.until(is_obeyed, "the interrupt to be obeyed")
    commands = [row["type"] for row in drive.rows("execution_commands", begun)]
    assert commands == ["interrupt"], commands
    assert (await drive.services.executions.get(begun.id)).live_state is LiveState.NEEDS_YOU
    await drive.decide_budget(begun, drive.deny)
    ended = await drive.until_over(begun)
    assert (ended.status, ended.live_state) == (ExecutionStatus.CANCELLED, LiveState.CANCELLED)


@pytest.mark.only("claude", "codex", "gemini")
async def test_an_agent_in_its_own_screen_is_warned_held_back_and_held_up(drive: Drive) -> None:
    for action in (BudgetAction.WARN, BudgetAction.BLOCK, BudgetAction.STOP):
        await drive.services.budgets.set(
            scope=BudgetScope.WORKSPACE,
            scope_id=drive.workspace.id,
            period=BudgetPeriod.TOTAL,
            unit=BudgetUnit.TOKENS,
            limit=2,
            action=action,
            actor=USER_ACTOR,
        )
        if action is BudgetAction.WARN:
            begun = await start_own_screen(drive, "go #mock:plain")

        async def is_told(action: BudgetAction = action) -> bool:
            lines = await drive.services.audit.all(None)
            return action.value in [
                one.event.payload.get("action") for one in lines if one.event.payload.get("percent")
            ]

        await drive.until(is_told, f"the end of a budget to {action.value}")
        if action is not BudgetAction.STOP:
            assert (await drive.services.executions.get(begun.id)).status is ExecutionStatus.RUNNING

    asked = await drive.until_asked(begun)
    assert (await drive.services.executions.get(begun.id)).live_state is LiveState.NEEDS_YOU
    await drive.deny(asked)
    ended = await drive.until_over(begun)
    assert ended.status is ExecutionStatus.CANCELLED
    later = await start_own_screen(drive, "go #mock:plain")

    async def is_held_back() -> bool:
        return (await drive.services.executions.get(later.id)).wait_reason is WaitReason.BUDGET

    await drive.until(is_held_back, "the next start to wait")
