from __future__ import annotations

from typing import TYPE_CHECKING

from agentmon.domain.conversation import MessageNews
from agentmon.domain.operations import MessageRole
from agentmon.screens.sessions.conversation_source import ConversationSource
from tests.screens.scenes import NOW
from tests.screens.talks import a_talk, talks

if TYPE_CHECKING:
    from pathlib import Path


async def test_what_did_not_change_in_a_conversation_is_not_made_again(tmp_path: Path) -> None:
    async with talks(tmp_path) as (place, _):
        run = await place.begin()
        await place.tell(run, *a_talk())
        (session,) = await place.services.sessions.of_task(run.task_id)
        source = ConversationSource(session.id)

        async def blocks() -> tuple[object, ...]:
            shown = await source.read(place.services, place.workspace.id, agent_name="claude", now=NOW)
            return shown.blocks

        first = await blocks()
        again = await blocks()
        await place.tell(run, MessageNews(message_ref="m9", role=MessageRole.ASSISTANT, text="All is done."))
        grown = await blocks()

        assert again is first
        assert len(grown) == len(first) + 1
        assert all(one is other for one, other in zip(first, grown, strict=False))
