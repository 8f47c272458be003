"""Real agents through whole conversations; every check is on rows of the database."""

from __future__ import annotations

import json
import os
import signal
from typing import TYPE_CHECKING

import pytest

from agentmon.domain.activity import Activity
from agentmon.domain.approvals import ApprovalScope, ApprovalStatus, RuleDecision
from agentmon.domain.errors import ConflictError
from agentmon.domain.execution_status import ExecutionStatus
from agentmon.domain.executions import ConversationStart
from agentmon.domain.sessions import SessionStatus
from agentmon.domain.tasks import InputContext, TaskDraft
from agentmon.services.actors import USER_ACTOR
from tests.agents.drive import require_succeeded

if TYPE_CHECKING:
    from collections.abc import Mapping

    from agentmon.domain.executions import Execution
    from agentmon.domain.sessions import Draft
    from tests.agents.drive import Drive
    from tests.live_home import LiveHome

pytestmark = pytest.mark.agents

# What makes each agent ask before it runs a command.
ASKS = {
    "claude": "go #mock:shell",
    "codex": "go #mock:escalate",
    "gemini": "go #mock:shell",
    "opencode": "go #mock:shell",
}
MADE = {"claude": "made-by-agent", "codex": "escalated", "gemini": "made-by-agent", "opencode": "made-by-agent"}


def steps(*answers: Mapping[str, object]) -> str:
    return f"#mock:{json.dumps(list(answers))}"


async def test_a_plain_answer_is_recorded_whole(drive: Drive) -> None:
    ended = await drive.until_over(await drive.start("say hello #mock:plain"))

    require_succeeded(ended, drive)
    session = await drive.session_of(ended)
    assert session.status is SessionStatus.COMPLETED
    assert session.session_ref
    assert session.model
    assert drive.texts(ended, "user") == ["say hello #mock:plain"]
    assert drive.texts(ended, "assistant") == ["Hello from the mock model."]
    assert ended.tokens_used > 0
    assert session.total_tokens == ended.tokens_used
    (answer,) = drive.rows("llm_interactions", ended)
    assert answer["response_tokens"] > 0
    types = {row["type"] for row in drive.rows("events", ended)}
    assert types >= {"message", "status_change", "usage"}
    assert {row["trace_id"] for row in drive.rows("events", ended)} == {ended.id}


async def test_a_message_can_be_read_while_it_is_written_also_without_a_worker(
    drive: Drive, live_home: LiveHome
) -> None:
    text = " ".join(f"word{number}" for number in range(60))
    execution = await drive.start(steps({"text": text, "chunk_delay": 0.2}))
    reader = drive.services.executions.draft_reader(execution)

    async def written(characters: int) -> str:
        reader.poll()
        found = await drive.services.executions.get(execution.id)
        texts = [draft.text for draft in reader.drafts(found.journal_offset) if not draft.is_thinking]
        return texts[0] if texts and len(texts[0]) >= characters else ""

    begun = await drive.until(lambda: written(20), "the beginning of the message")
    assert drive.texts(execution, "assistant") == []
    live_home.kill_worker()
    grown = await drive.until(lambda: written(len(begun) + 30), "more of the message without a worker")
    await drive.services.workers.ensure_running()
    ended = await drive.until_over(execution)

    assert text.startswith(grown)
    assert drive.texts(ended, "assistant") == [text]
    assert await written(0) == ""
    assert not reader.poll()


async def test_what_was_written_before_an_interrupt_is_no_draft_afterwards(drive: Drive) -> None:
    execution = await drive.start("go #mock:slow")
    reader = drive.services.executions.draft_reader(execution)

    async def drafts() -> list[Draft]:
        reader.poll()
        found = await drive.services.executions.get(execution.id)
        return list(reader.drafts(found.journal_offset))

    await drive.until(drafts, "the beginning of the message")
    await drive.services.conversations.interrupt(execution.task_id, actor=USER_ACTOR)
    await drive.until_active(execution, Activity.WAITING)

    async def is_none() -> bool:
        return not await drafts()

    await drive.until(is_none, "the end of the draft")
    await drive.services.conversations.finish(execution.task_id, actor=USER_ACTOR)
    await drive.until_over(execution)


async def test_tools_that_are_allowed_run_and_leave_operations(drive: Drive) -> None:
    ended = await drive.allow_all_until_over(await drive.start("go #mock:tools"))

    require_succeeded(ended, drive)
    assert (drive.project / "hello.txt").read_text() == "hello\n"
    operations = drive.rows("operations", ended)
    assert [row["type"] for row in operations][:1] == ["write"]
    assert {row["type"] for row in operations} >= {"write", "execute"}
    assert {row["status"] for row in operations} == {"success"}
    assert "hello.txt" in operations[0]["target"]
    assert all(row["finished_at"] for row in operations)
    assert (await drive.session_of(ended)).operation_count == len(operations)
    assert any(row["type"] == "diff" for row in drive.rows("events", ended))


async def test_a_permission_is_asked_for_and_its_answer_is_obeyed(drive: Drive) -> None:
    started = await drive.start(ASKS[drive.agent.slug])
    asked = await drive.until_asked(started)
    waiting = await drive.until_active(started, Activity.WAITING)

    assert MADE[drive.agent.slug] in asked.approval.detail
    assert not (drive.project / MADE[drive.agent.slug]).exists()
    assert waiting.live_state.value == "needs you"

    await drive.allow(asked)
    ended = await drive.until_over(started)

    require_succeeded(ended, drive)
    assert (drive.project / MADE[drive.agent.slug]).exists()
    assert drive.approval_states(ended) == [ApprovalStatus.ALLOWED]
    approved = [row for row in drive.rows("operations", ended) if row["approved"]]
    assert [row["type"] for row in approved] == ["execute"]
    assert approved[0]["approved_by"]


async def test_an_answer_given_while_the_worker_is_dead_reaches_the_agent(drive: Drive, live_home: LiveHome) -> None:
    started = await drive.start(ASKS[drive.agent.slug])
    asked = await drive.until_asked(started)
    live_home.kill_worker()

    await drive.allow(asked)
    ended = await drive.until_over(started)

    require_succeeded(ended, drive)
    assert (drive.project / MADE[drive.agent.slug]).exists()
    assert drive.approval_states(ended) == [ApprovalStatus.ALLOWED]


@pytest.mark.only("codex", "gemini", "opencode")  # Claude hears it with the answer.
async def test_the_reason_of_a_denial_is_said_and_the_agent_goes_on(drive: Drive) -> None:
    reason = f"not below {drive.project}"
    started = await drive.start(ASKS[drive.agent.slug])
    await drive.deny(await drive.until_asked(started), reason)
    ended = await drive.until_over(started)

    require_succeeded(ended, drive)
    assert not (drive.project / MADE[drive.agent.slug]).exists()
    assert drive.texts(ended, "user")[-1] == reason
    assert any(reason in text for text in drive.asked())


@pytest.mark.only("opencode")  # The others go on by themselves.
async def test_an_agent_that_stops_after_a_denial_needs_a_person(drive: Drive) -> None:
    started = await drive.start(ASKS[drive.agent.slug])
    await drive.deny(await drive.until_asked(started))
    waiting = await drive.until_active(started, Activity.WAITING)

    assert waiting.live_state.value == "needs you"
    await drive.services.conversations.send(started.task_id, "say hello #mock:plain", actor=USER_ACTOR)
    require_succeeded(await drive.until_over(started), drive)


async def test_a_rule_allows_without_a_person(drive: Drive) -> None:
    await drive.services.approvals.add_rule(decision=RuleDecision.ALLOW, tool="*", actor=USER_ACTOR)

    ended = await drive.until_over(await drive.start(ASKS[drive.agent.slug]))

    require_succeeded(ended, drive)
    (approval,) = drive.rows("approvals", ended)
    assert approval["status"] == "allowed"
    assert approval["decided_by_type"] == "system"
    assert approval["rule_id"]


async def test_what_is_allowed_for_the_session_is_not_asked_again(drive: Drive) -> None:
    extra = {"extra": {"sandbox_permissions": "require_escalated", "justification": "again"}}
    call = ["shell", {"command": "touch twice-1", **extra}]
    again = ["shell", {"command": "touch twice-1", **extra}]
    started = await drive.start("go " + steps({"tools": [call]}, {"tools": [again]}, {"text": "Both done."}))
    asked = await drive.until_asked(started)

    assert asked.approval.can_allow_for_session
    await drive.allow(asked, ApprovalScope.SESSION)
    ended = await drive.until_over(started)

    require_succeeded(ended, drive)
    assert drive.approval_states(ended) == [ApprovalStatus.ALLOWED]
    assert len([row for row in drive.rows("operations", ended) if row["type"] == "execute"]) == 2


@pytest.mark.only("claude")
async def test_a_question_is_answered(drive: Drive) -> None:
    options = [{"label": "Red", "description": "warm"}, {"label": "Blue", "description": "cold"}]
    question = {"question": "Which colour?", "header": "Colour", "options": options, "multiSelect": False}
    ask = {"tools": [["AskUserQuestion", {"questions": [question]}]]}
    started = await drive.start("go " + steps(ask, {"text": "Thanks."}))
    asked = (await drive.until_asked(started)).approval

    assert [choice.label for choice in asked.questions[0].choices] == ["Red", "Blue"]
    await drive.services.approvals.answer(
        asked.id, actor=USER_ACTOR, seen_digest=asked.input_digest, answers={"Which colour?": "Blue"}
    )
    ended = await drive.until_over(started)

    require_succeeded(ended, drive)
    assert drive.approval_states(ended) == [ApprovalStatus.ANSWERED]
    assert "Blue" in str([row["output_summary"] for row in drive.rows("operations", ended)])


async def test_parallel_calls_are_operations_of_their_own(drive: Drive) -> None:
    ended = await drive.allow_all_until_over(await drive.start("go #mock:parallel"))

    require_succeeded(ended, drive)
    operations = [row for row in drive.rows("operations", ended) if row["type"] == "execute"]
    assert len(operations) == 2
    # Gemini does not tell over ACP what a command wrote.
    wrote = ["", ""] if drive.agent.slug == "gemini" else ["one", "two"]
    assert sorted(row["output_summary"].strip()[:3] for row in operations) == wrote


async def test_an_interrupt_keeps_what_was_said_and_marks_it(drive: Drive) -> None:
    started = await drive.start("go #mock:slow")
    log = drive.services.paths.execution_dir(started.id) / "output.log"

    async def has_spoken() -> bool:
        return log.exists() and b"word3" in log.read_bytes()

    await drive.until(has_spoken, "the first words")
    await drive.services.conversations.interrupt(started.task_id, actor=USER_ACTOR)
    await drive.until_active(started, Activity.WAITING)

    said, mark = [row for row in drive.rows("messages", started) if row["role"] != "user"]
    assert (said["role"], mark["role"]) == ("assistant", "system")
    assert said["content"].startswith("word0 word1 word2 word3")
    assert "nterrupted" in mark["content"]
    await drive.services.conversations.finish(started.task_id, actor=USER_ACTOR)
    await drive.until_over(started)


async def test_an_interrupt_while_a_tool_runs_ends_the_call(drive: Drive) -> None:
    started = await drive.start("go #mock:sleep")
    if drive.agent.slug != "codex":
        await drive.allow(await drive.until_asked(started))
    await drive.until_operation(started, "pending")
    await drive.services.conversations.interrupt(started.task_id, actor=USER_ACTOR)
    await drive.until_active(started, Activity.WAITING)
    await drive.services.conversations.finish(started.task_id, actor=USER_ACTOR)
    ended = await drive.until_over(started)

    assert ended.status in {ExecutionStatus.FAILED, ExecutionStatus.CANCELLED}
    assert "pending" not in {row["status"] for row in drive.rows("operations", ended)}


async def test_an_interrupt_while_it_asks_withdraws_the_request(drive: Drive) -> None:
    started = await drive.start(ASKS[drive.agent.slug])
    await drive.until_asked(started)
    await drive.services.conversations.interrupt(started.task_id, actor=USER_ACTOR)

    async def is_withdrawn() -> bool:
        return drive.approval_states(started) == [ApprovalStatus.WITHDRAWN]

    await drive.until(is_withdrawn, "the withdrawal")
    await drive.services.conversations.finish(started.task_id, actor=USER_ACTOR)
    await drive.until_over(started)

    assert not (drive.project / MADE[drive.agent.slug]).exists()
    assert await drive.services.approvals.inbox(None) == ()


@pytest.mark.only("gemini")
async def test_a_history_that_is_told_again_leaves_no_rows(drive: Drive) -> None:
    first = await drive.allow_all_until_over(await drive.start("go #mock:tools"))
    ref = (await drive.session_of(first)).session_ref
    assert ref is not None
    # Gemini loses a conversation that is resumed in the minute of its beginning, which the name of its file tells.
    (chat,) = drive.home.glob(f".gemini/tmp/*/chats/session-*-{ref[:8]}.jsonl")
    chat.rename(chat.with_name(f"session-2026-01-01T00-00-{ref[:8]}.jsonl"))

    sent = await drive.services.conversations.send(first.task_id, "again #mock:plain", actor=USER_ACTOR)
    second = await drive.until_over(sent.execution)
    await import_all(drive)

    require_succeeded(second, drive)
    assert drive.texts(second, "user") == ["again #mock:plain"]
    assert drive.texts(second, "assistant") == ["Hello from the mock model."]
    assert drive.rows("operations", second) == []
    require_one_session(drive)
    assert len(drive._select("SELECT id FROM operations", ())) == 2


async def test_the_conversation_of_a_failed_try_belongs_to_its_run(drive: Drive) -> None:
    await drive.services.approvals.add_rule(decision=RuleDecision.ALLOW, tool="*", actor=USER_ACTOR)
    slow = {"text": " ".join(f"word{number}" for number in range(240)), "chunk_delay": 0.25}
    prompt = "go " + steps({"text": "First.", "tools": [["shell", {"command": "echo once"}]]}, slow)
    agent = await drive.services.agents.by_slug(drive.agent.slug)
    context = InputContext(capability_key="work", args=drive.agent.args, env_passed=drive.agent.passed, max_retries=1)
    draft = TaskDraft(title=prompt, assignee_agent_id=agent.id, input_context=context)
    task = await drive.services.tasks.add(drive.workspace, draft, actor=USER_ACTOR)
    started = await drive.services.queue.run(task.id, actor=USER_ACTOR, environ=drive.agent.environ)

    async def try_says(number: int) -> Execution | None:
        found = await drive.services.executions.get(started.id)
        done = [row["operation_ref"] for row in drive.rows("operations", started) if row["status"] == "success"]
        return found if any(ref.startswith(f"{number}:") for ref in done) and found.pid is not None else None

    first = await drive.until(lambda: try_says(0), "the call of the first try")
    os.killpg(first.pid, signal.SIGKILL)
    await drive.until(lambda: try_says(1), "the call of the second try")
    await drive.services.conversations.interrupt(started.task_id, actor=USER_ACTOR)
    await drive.until_active(started, Activity.WAITING)
    await drive.services.conversations.send(started.task_id, "say hello #mock:plain", actor=USER_ACTOR)
    ended = await drive.until_over(started)
    await import_all(drive)

    require_succeeded(ended, drive)
    session = await drive.session_of(ended)
    assert session.status is SessionStatus.COMPLETED
    assert session.metadata["former_refs"]
    require_one_session(drive)
    assert session.total_tokens == (await drive.services.executions.get(ended.id)).tokens_used
    assert len(drive.rows("operations", ended)) == 2
    assert [row["role"] for row in drive.rows("messages", ended)].count("user") == 3


async def import_all(drive: Drive) -> None:
    """Read all that the agent's own files tell."""
    await drive.services.costs.import_history()
    await drive.services.costs.import_conversations()


def require_one_session(drive: Drive) -> None:
    """Assert that what was said and done belongs to one session, which is that of the task."""
    said = "SELECT session_id, execution_id FROM messages UNION SELECT session_id, execution_id FROM operations"
    billed = " UNION SELECT session_id, execution_id FROM llm_interactions"
    found = drive._select(said + billed, ())
    assert None not in {row["execution_id"] for row in found}
    (session_id,) = {row["session_id"] for row in found}
    (session,) = drive._select("SELECT task_id FROM sessions WHERE id = ?", (session_id,))
    assert session["task_id"] is not None


@pytest.mark.only("claude", "codex", "opencode")
async def test_a_fork_goes_on_with_a_copy(drive: Drive) -> None:
    first = await drive.until_over(await drive.start("say hello #mock:plain"))
    session = await drive.session_of(first)

    forked = await drive.services.sessions.fork(session.id, "elsewhere #mock:plain", actor=USER_ACTOR)
    second = await drive.until_over(forked)

    require_succeeded(second, drive)
    other = await drive.session_of(second)
    assert other.id != session.id
    assert other.session_ref not in {None, session.session_ref}
    assert other.forked_from == session.id
    assert (await drive.services.sessions.get(session.id)).total_tokens == first.tokens_used
    assert len(drive.rows("llm_interactions", second)) == 1


async def test_a_conversation_that_is_gone_says_so(drive: Drive) -> None:
    first = await drive.until_over(await drive.start("say hello #mock:plain"))
    for place in (".claude", ".codex", ".gemini", ".local"):
        folder = drive.project.parent / "agent-home" / place
        if folder.exists():
            folder.rename(folder.with_name(f"{place}-gone"))
    if drive.agent.slug in {"codex", "gemini"}:
        place = f".{drive.agent.slug}"
        gone, back = (drive.project.parent / "agent-home" / name for name in (f"{place}-gone", place))
        back.mkdir()
        for settings in (*gone.glob("*.toml"), *gone.glob("settings.json")):
            (back / settings.name).write_bytes(settings.read_bytes())

    again = await drive.services.queue.run(
        first.task_id,
        actor=USER_ACTOR,
        environ=drive.agent.environ,
        message="again #mock:plain",
        start=ConversationStart.RESUME,
        parent_execution_id=first.id,
    )
    ended = await drive.until_over(again)

    assert ended.status is ExecutionStatus.FAILED
    assert ended.error
    session = await drive.session_of(ended)
    assert session.cannot_resume
    assert session.cannot_resume in ended.error
    with pytest.raises(ConflictError):
        await drive.services.conversations.send(first.task_id, "more", actor=USER_ACTOR)

    text = f"go on below {drive.project} #mock:plain"
    fresh = await drive.until_over(await drive.services.sessions.restart(session.id, text, actor=USER_ACTOR))
    require_succeeded(fresh, drive)
    (told,) = [one for one in drive.asked() if text in one]
    assert told.index("Hello from the mock model.") < told.index(text)


@pytest.mark.parametrize("error", ["e400", "e401"])
async def test_an_error_of_the_vendor_fails_the_run_with_its_words(drive: Drive, error: str) -> None:
    await require_failed_with_words(drive, error)


# opencode asks a server that fails again and again, and says nothing of it over ACP. Codex calls it high demand, which
# is waited for as a limit is.
@pytest.mark.only("claude", "gemini")
async def test_a_server_that_fails_fails_the_run_with_its_words(drive: Drive) -> None:
    await require_failed_with_words(drive, "e500")


async def require_failed_with_words(drive: Drive, error: str) -> None:
    ended = await drive.until_over(await drive.start(f"go #mock:{error}"))

    assert ended.status is ExecutionStatus.FAILED
    assert ended.error
    # Codex has words of its own for a server that fails.
    assert any(words in ended.error for words in ("mock", error[1:], "high demand"))
    assert (await drive.session_of(ended)).status is SessionStatus.FAILED


async def test_a_limit_of_the_vendor_parks_or_fails_the_run(drive: Drive) -> None:
    started = await drive.start("go #mock:e429")

    async def is_settled() -> bool:
        found = await drive.services.executions.get(started.id)
        return not found.status.is_open or found.wait_reason is not None

    await drive.until(is_settled, "the end of the try")


@pytest.mark.only("claude")
async def test_a_limit_of_turns_fails_the_run_and_says_so(drive: Drive) -> None:
    await drive.services.approvals.add_rule(decision=RuleDecision.ALLOW, tool="*", actor=USER_ACTOR)
    ended = await drive.until_over(await drive.start("go #mock:loop", max_turns=2))

    assert ended.status is ExecutionStatus.FAILED
    assert "turn" in (ended.error or "")


@pytest.mark.only("claude", "codex")
async def test_answers_have_the_keys_of_the_agents_own_transcript(drive: Drive) -> None:
    ended = await drive.allow_all_until_over(await drive.start("go #mock:tools"))

    keys = [row["key"] for row in drive.rows("llm_interactions", ended)]
    transcripts = "".join(
        path.read_text("utf-8", "replace")
        for pattern in (".claude/projects/*/*.jsonl", ".codex/sessions/*/*/*/*.jsonl")
        for path in (drive.project.parent / "agent-home").glob(pattern)
    )
    assert len(keys) == 3
    assert all(key in transcripts for key in keys)
    assert not any(row["is_provisional"] for row in drive.rows("llm_interactions", ended))
