"""What the real agents wrote down of conversations that ran here is not told a second time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentmon.services.actors import USER_ACTOR

if TYPE_CHECKING:
    from tests.agents.drive import Drive


async def test_what_was_told_live_is_not_read_again(drive: Drive) -> None:
    ended = [await drive.allow_all_until_over(await drive.start("go #mock:tools"))]
    if drive.agent.slug != "gemini":
        # It keeps no conversation that it could go on with here.
        sent = await drive.services.conversations.send(ended[0].task_id, "again #mock:plain", actor=USER_ACTOR)
        ended.append(await drive.until_over(sent.execution))
    before = [(len(drive.rows("messages", one)), len(drive.rows("operations", one))) for one in ended]

    await drive.services.costs.import_history()
    await drive.services.costs.import_conversations(rescan=True)

    (listing,) = await drive.services.sessions.list(None, limit=10)
    messages = await drive.services.conversations.messages(listing.session.id)
    operations = await drive.services.conversations.operations(session_id=listing.session.id)
    assert (len(messages), len(operations)) == (sum(one for one, _ in before), sum(two for _, two in before))
    assert listing.session.operation_count == len(operations)
