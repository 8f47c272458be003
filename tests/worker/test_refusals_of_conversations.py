from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest

from agentmon.domain.agents import ToolType
from agentmon.domain.execution_mode import ExecutionMode
from agentmon.domain.execution_status import EndReason, ExecutionStatus
from agentmon.domain.executions import ExecutionEnding
from agentmon.domain.refusals import RefusalKind
from agentmon.runners.execution_folder import ExecutionFolder
from agentmon.worker.refusal_reading import with_refusal
from tests.store.conversation_place import opened_place

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from agentmon.domain.executions import ClaimedExecution
    from tests.store.conversation_place import ConversationPlace

NOON = datetime(2026, 5, 4, 12, tzinfo=UTC)
LIMIT = "You've hit your session limit · resets 3pm (UTC)"


@pytest.fixture
async def place(tmp_path: Path) -> AsyncIterator[ConversationPlace]:
    async with opened_place(tmp_path) as opened:
        yield opened


@pytest.fixture
async def claimed(place: ConversationPlace) -> ClaimedExecution:
    await place.enqueue()
    found = await place.claim()
    return replace(found, agent=replace(found.agent, binary_path="/bin/claude", tool_type=ToolType.AI_AGENT))


def an_end(
    error: str | None, *, outcome: str | None = "failed", reason: EndReason = EndReason.EXITED
) -> ExecutionEnding:
    return ExecutionEnding(
        status=ExecutionStatus.FAILED,
        ended_at=NOON,
        reason=reason,
        exit_code=1,
        error=error,
        output_data={} if outcome is None else {"agent_outcome": outcome},
    )


def a_folder(path: Path, output: str) -> ExecutionFolder:
    folder = ExecutionFolder(path / "execution")
    folder.make()
    folder.output_log.write_text(output)
    return folder


@pytest.mark.parametrize("reason", [EndReason.EXITED, EndReason.FINISHED])
async def test_the_limit_that_an_agent_tells_in_its_protocol_is_one(
    claimed: ClaimedExecution, tmp_path: Path, reason: EndReason
) -> None:
    assert claimed.execution.mode is ExecutionMode.STREAM_JSON

    ending = with_refusal(an_end(LIMIT, reason=reason), claimed, a_folder(tmp_path, "› go\n"))

    assert ending.refusal is not None
    assert ending.refusal.kind is RefusalKind.USAGE_LIMIT
    assert ending.refusal.until == datetime(2026, 5, 4, 15, tzinfo=UTC)


async def test_the_status_of_the_vendors_answer_tells_of_a_limit(claimed: ClaimedExecution, tmp_path: Path) -> None:
    gemini = replace(claimed, agent=replace(claimed.agent, binary_path="/bin/gemini"))

    ending = with_refusal(an_end("slow down (HTTP 429)"), gemini, a_folder(tmp_path, ""))

    assert ending.refusal is not None
    assert ending.refusal.kind is RefusalKind.RATE_LIMIT


async def test_a_limit_that_only_the_model_or_a_tool_speaks_of_is_none(
    claimed: ClaimedExecution, tmp_path: Path
) -> None:
    folder = a_folder(tmp_path, f"● {LIMIT}\n{LIMIT}\nClaude usage limit reached\n")

    assert with_refusal(an_end("a tool failed"), claimed, folder).refusal is None


@pytest.mark.parametrize("is_in_error", [True, False])
async def test_an_agent_that_died_before_it_spoke_is_read_by_what_it_said_in_plain_text(
    claimed: ClaimedExecution, tmp_path: Path, *, is_in_error: bool
) -> None:
    said = "Not logged in · Please run /login"
    folder = a_folder(tmp_path, f"● {LIMIT}\n{LIMIT}\n")
    folder.errors_log.write_text("" if is_in_error else f"{said}\n")

    ending = with_refusal(an_end(said if is_in_error else "It ended.", outcome=None), claimed, folder)

    assert ending.refusal is not None
    assert ending.refusal.kind is RefusalKind.BAD_LOGIN


@pytest.mark.parametrize(
    ("program", "said", "name"),
    [
        ("codex", "Missing environment variable: `MOCK_API_KEY`.", "MOCK_API_KEY"),
        ("codex", "Missing environment variable: `internal`.", "internal"),
        (
            "opencode",
            "xAI API key is missing. Pass it using the 'apiKey' parameter or the XAI_API_KEY environment variable.",
            "XAI_API_KEY",
        ),
        (
            "aider",
            "litellm.AuthenticationError: Missing Anthropic API Key - A call is being made, set `ANTHROPIC_API_KEY`",
            "ANTHROPIC_API_KEY",
        ),
        (
            "qwen",
            "Missing API key for OpenAI-compatible auth. Set it, or set the 'OPENAI_API_KEY' environment variable.",
            "OPENAI_API_KEY",
        ),
        ("goose", "Configuration value not found: XAI_API_KEY", "XAI_API_KEY"),
    ],
)
async def test_a_key_that_was_held_back_is_named_with_the_command_that_lets_it_through(
    claimed: ClaimedExecution, tmp_path: Path, program: str, said: str, name: str
) -> None:
    agent = replace(claimed.agent, binary_path=f"/bin/{program}", env_allowlist=("CODEX_HOME",))
    folder = a_folder(tmp_path, "")
    folder.write_environment({"HOME": "/root"})

    held_back = with_refusal(an_end(said), replace(claimed, agent=agent), folder).refusal
    listed = replace(agent, env_allowlist=(name,))
    unset = with_refusal(an_end(said), replace(claimed, agent=listed), folder).refusal
    folder.write_environment({"HOME": "/root", name: ""})
    let_through = with_refusal(an_end(said), replace(claimed, agent=agent), folder).refusal

    assert held_back is not None
    assert let_through is not None
    assert held_back.kind is let_through.kind is RefusalKind.BAD_LOGIN
    assert f"agentmon agents edit {agent.slug} --env {name}`" in held_back.advice
    assert name not in let_through.advice
    assert unset is not None
    assert unset.advice == f"set {name}, or {let_through.advice}"
