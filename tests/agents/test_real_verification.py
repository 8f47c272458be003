"""Real agents whose work does not pass: they get the output, and go on in the same conversation."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from agentmon.domain.activity import Activity
from agentmon.domain.execution_status import EndReason, ExecutionStatus
from agentmon.domain.verifications import VerificationStatus
from agentmon.services.actors import USER_ACTOR
from tests.agents.drive import require_succeeded
from tests.agents.test_states import DONE_NOTE, start_own_screen, until_noted

if TYPE_CHECKING:
    from tests.agents.drive import Drive

pytestmark = pytest.mark.agents

# Gemini loses a conversation that is resumed in the minute of its beginning, which the name of its file tells.
_AGED = (
    'for file in "$HOME"/.gemini/tmp/*/chats/session-*.jsonl; do test -e "$file" || break; ref="${file##*-}";'
    ' mv "$file" "${file%/*}/session-2026-01-01T00-00-$ref"; done; '
)
_SECOND_TIME = f"{_AGED}echo again >> .tries; echo 'one test failed #mock:plain'; test $(wc -l < .tries) -ge 2"


async def test_an_agent_whose_work_does_not_pass_goes_on_with_the_output(drive: Drive) -> None:
    services = drive.services
    workspace = await services.workspaces.open(drive.project)
    await services.settings.set("workspace.verify", _SECOND_TIME, actor=USER_ACTOR, workspace=workspace)
    first = await drive.until_over(await drive.start("say hello #mock:plain"))

    async def is_sent_back() -> bool:
        newest = await services.executions.newest(first.task_id)
        return newest is not None and newest.id != first.id and not newest.status.is_open

    assert (first.status, first.end_reason) == (ExecutionStatus.FAILED, EndReason.UNVERIFIED), drive.story()
    await drive.until(is_sent_back, "the end of the second run")
    second = await services.executions.newest(first.task_id)
    assert second is not None
    require_succeeded(second, drive)
    assert (second.session_id, second.verify_retry) == (first.session_id, 1)
    assert "one test failed" in drive.texts(second, "user")[-1]
    assert second.verification is not None
    assert second.verification.status is VerificationStatus.PASSED


async def test_an_own_screen_is_verified_when_it_is_finished_and_opens_again_with_the_output(drive: Drive) -> None:
    services = drive.services
    workspace = await services.workspaces.open(drive.project)
    await services.settings.set("workspace.verify", _SECOND_TIME, actor=USER_ACTOR, workspace=workspace)
    first = await start_own_screen(drive, "say hello #mock:plain")
    await until_noted(drive, first, Activity.WAITING, DONE_NOTE)
    await services.conversations.finish(first.task_id, actor=USER_ACTOR)
    first = await drive.until_over(first)
    assert (first.status, first.end_reason) == (ExecutionStatus.FAILED, EndReason.UNVERIFIED), drive.story()
    second = await services.executions.newest(first.task_id)
    assert second is not None
    assert (second.mode, second.session_id) == (first.mode, first.session_id)
    await until_noted(drive, second, Activity.WAITING, DONE_NOTE)
    await services.conversations.finish(first.task_id, actor=USER_ACTOR)
    second = await drive.until_over(second)

    require_succeeded(second, drive)
    assert second.verification is not None
    assert second.verification.status is VerificationStatus.PASSED
