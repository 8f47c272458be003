"""What an agent writes down of its own screen is on its card: messages, calls, tokens, cost, and what follows."""

from __future__ import annotations

import json
import shlex
import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING, Any

import pytest

from agentmon.bootstrap import open_services
from agentmon.domain.budgets import BudgetPeriod, BudgetScope
from agentmon.domain.conversation import AskKind
from agentmon.domain.execution_status import ExecutionStatus
from agentmon.domain.live_state import LiveState
from agentmon.domain.task_status import TaskStatus
from agentmon.domain.tasks import TaskDraft
from agentmon.runners.adapters.prompt import CHOSEN_LATER, command_before_arguments
from agentmon.screens.tasks.command_preview import planned_command
from agentmon.services.actors import USER_ACTOR
from tests.waiting import until
from tests.worker.screen_stubs import received, start_stub, until_note

if TYPE_CHECKING:
    from pathlib import Path

    from agentmon.bootstrap import Services
    from agentmon.domain.executions import Execution
    from tests.live_home import LiveHome

FLAGS = {"session_id": ("--session-id", "{{value}}")}


@pytest.fixture(autouse=True)
def person(live_home: LiveHome, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The home in which agents keep their files."""
    del live_home
    monkeypatch.setenv("HOME", str(tmp_path / "person"))
    for name in ("CLAUDE_CONFIG_DIR", "CODEX_HOME", "GEMINI_CLI_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path / "person"


async def start_claude(services: Services, home: LiveHome, prompt: str = "go", **wishes: object) -> Execution:
    return await start_stub(services, home, prompt, name="claude", flags=FLAGS, writes="claude", **wishes)


def rows(home: LiveHome, query: str, *parameters: object) -> list[tuple[Any, ...]]:
    with closing(sqlite3.connect(home.paths.database_path)) as connection:
        return connection.execute(query, parameters).fetchall()


async def until_rows(home: LiveHome, query: str, *parameters: object) -> list[tuple[Any, ...]]:
    async def is_there() -> bool:
        return bool(rows(home, query, *parameters))

    await until(is_there, query)
    return rows(home, query, *parameters)


@pytest.mark.proof
async def test_a_card_has_what_its_agent_says_does_and_spends_in_its_own_screen(live_home: LiveHome) -> None:
    async with open_services(live_home.paths) as services:
        started = await start_claude(services, live_home)
        said = "SELECT role, content FROM messages WHERE execution_id = ? AND role = 'assistant'"
        assert await until_rows(live_home, said, started.id) == [("assistant", "On it.")]
        told = await services.executions.get(started.id)

        assert told.session_ref == told.session_id
        assert told.status is ExecutionStatus.RUNNING
        assert told.tokens_used == 35
        assert told.cost_nano
        assert rows(live_home, "SELECT execution_id, status FROM operations") == [(started.id, "pending")]
        assert rows(live_home, "SELECT id, task_id, session_ref, total_tokens, context_tokens FROM sessions") == [
            (told.session_id, told.task_id, told.session_ref, 35, 15)
        ]

        await services.conversations.finish(started.task_id, actor=USER_ACTOR)
        await until_rows(live_home, "SELECT id FROM executions WHERE status = 'succeeded'")
        assert rows(live_home, "SELECT status FROM operations") == [("cancelled",)]
        assert (await services.conversations.newest_to_resume(started.task_id)).id == started.id


@pytest.mark.proof
@pytest.mark.parametrize("scope", [BudgetScope.TASK, BudgetScope.AGENT, BudgetScope.EXECUTION])
async def test_an_own_screen_that_has_spent_its_budget_waits(live_home: LiveHome, scope: BudgetScope) -> None:
    async with open_services(live_home.paths) as services:
        started = await start_claude(services, live_home, deaf_s=1.0, turn="background")
        scope_id = {
            BudgetScope.TASK: started.task_id,
            BudgetScope.AGENT: started.agent_id,
            BudgetScope.EXECUTION: started.id,
        }[scope]
        await services.budgets.set(
            scope=scope, scope_id=scope_id, period=BudgetPeriod.TOTAL, limit=100_000, actor=USER_ACTOR
        )

        ((kind,),) = await until_rows(live_home, "SELECT ask_kind FROM approvals WHERE status = 'pending'")

        assert kind == AskKind.BUDGET.value
        assert (await services.executions.get(started.id)).live_state is LiveState.NEEDS_YOU
        assert len(rows(live_home, "SELECT id FROM llm_interactions WHERE execution_id = ?", started.id)) == 1


async def test_a_prompt_that_has_not_been_given_leaves_no_second_session(live_home: LiveHome) -> None:
    async with open_services(live_home.paths) as services:
        started = await start_claude(services, live_home, dialog="Do you trust this folder?")
        await until_note(services, started, "Do you trust")
        assert rows(live_home, "SELECT count(*) FROM sessions") == [(1,)]


@pytest.mark.proof
async def test_a_run_that_ends_right_behind_its_record_gets_its_conversation(live_home: LiveHome) -> None:
    async with open_services(live_home.paths) as services:
        started = await start_stub(services, live_home, "go", name="codex", writes="codex", turn="leave")
        await until_rows(live_home, "SELECT id FROM executions WHERE ended_at > ''")
        said = "SELECT role, content FROM messages WHERE execution_id = ? ORDER BY id"
        assert await until_rows(live_home, said, started.id) == [("user", "go"), ("assistant", "On it.")]
        told = await services.executions.get(started.id)

        assert told.status is ExecutionStatus.SUCCEEDED
        assert told.session_ref
        assert told.tokens_used == 35
        assert rows(live_home, "SELECT execution_id, status FROM operations") == [(started.id, "cancelled")]
        assert rows(live_home, "SELECT id, session_ref FROM sessions") == [(told.session_id, told.session_ref)]
        await services.costs.import_history()
        await services.costs.import_conversations(rescan=True)
        assert rows(live_home, "SELECT id, session_ref FROM sessions") == [(told.session_id, told.session_ref)]
        assert len(rows(live_home, "SELECT id FROM messages")) == 2


@pytest.mark.proof
@pytest.mark.parametrize(
    ("name", "wishes", "status"),
    [
        ("stub", {"quits": "Error: no login"}, ExecutionStatus.FAILED),
        ("claude", {"quits": "Error: no login"}, ExecutionStatus.FAILED),
        ("claude", {"turn": "leave"}, ExecutionStatus.FAILED),
        ("claude", {"turn": "leave", "writes": "claude"}, ExecutionStatus.SUCCEEDED),
        ("stub", {"turn": "leave"}, ExecutionStatus.SUCCEEDED),
    ],
)
async def test_an_agent_that_leaves_with_0_has_done_nothing_unless_it_was_told_something(
    live_home: LiveHome, name: str, wishes: dict[str, object], status: ExecutionStatus
) -> None:
    async with open_services(live_home.paths) as services:
        started = await start_stub(services, live_home, "go", name=name, flags=FLAGS, **wishes)
        await until_rows(live_home, "SELECT id FROM executions WHERE ended_at > ''")
        told = await services.executions.get(started.id)
        task = await services.tasks.get(started.task_id)

    assert (told.status, told.exit_code) == (status, 0)
    assert str(wishes.get("quits", "")) in (told.error or "")
    assert (task.status is TaskStatus.DONE) is (status is ExecutionStatus.SUCCEEDED)


@pytest.mark.proof
async def test_a_run_that_ends_without_a_worker_gets_its_conversation_from_the_next_one(live_home: LiveHome) -> None:
    async with open_services(live_home.paths) as services:
        started = await start_stub(services, live_home, "go", name="codex", writes="codex", turn="leave", thinks_s=3)

        async def is_received() -> bool:
            return received(live_home, "codex") == ["go"]

        await until(is_received)
        live_home.kill_worker()
        assert not rows(live_home, "SELECT id FROM sessions WHERE session_ref > ''")
        journal = live_home.paths.execution_dir(started.id) / "journal.jsonl"

        async def has_ended() -> bool:
            return '"ended"' in journal.read_text()

        await until(has_ended)
        await services.workers.ensure_running()
        said = "SELECT role, content FROM messages WHERE execution_id = ? ORDER BY id"
        assert await until_rows(live_home, said, started.id) == [("user", "go"), ("assistant", "On it.")]
        assert len(rows(live_home, "SELECT id FROM sessions")) == 1


@pytest.mark.proof
async def test_of_two_runs_with_the_same_words_in_one_folder_neither_is_given_the_other_s_conversation(
    live_home: LiveHome,
) -> None:
    async with open_services(live_home.paths) as services:
        first = await start_stub(services, live_home, "go", name="codex", writes="codex", turn="leave", slow_s=0.5)
        workspace = await services.workspaces.open(live_home.project)
        draft = TaskDraft(title="another", description="x", assignee_agent_id=first.agent_id)
        task = await services.tasks.add(workspace, draft, actor=USER_ACTOR)
        second = await services.queue.run(task.id, actor=USER_ACTOR, message="go")
        await until_rows(live_home, "SELECT count(*) FROM llm_interactions HAVING count(*) = 2")
        await until_rows(live_home, "SELECT count(*) FROM executions WHERE ended_at > '' HAVING count(*) = 2")

        for execution in (first, second):
            told = await services.executions.get(execution.id)
            assert told.session_ref is None or told.session_ref.endswith(f"{told.pid:012d}")


async def test_what_is_shown_before_a_run_is_what_starts(live_home: LiveHome) -> None:
    async with open_services(live_home.paths) as services:
        started = await start_claude(services, live_home)
        spec = live_home.paths.execution_dir(started.id) / "spec.json"
        await until_note(services, started, "done")
        argv = json.loads(spec.read_bytes())["argv"]
        agent = await services.agents.by_slug("claude")
        (capability,) = agent.capabilities
        task = await services.tasks.get(started.task_id)

        shown = command_before_arguments(agent, capability)
        planned = shlex.split(planned_command(task, agent, capability, {}))

        assert "--session-id" in argv
        assert [started.session_id if word == CHOSEN_LATER else word for word in shown] == argv
        assert [started.session_id if word == CHOSEN_LATER else word for word in planned] == argv
