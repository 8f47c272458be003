"""A person who comments on changes and sends the comments: ``python -m benchmarks.chaos.commenting TASK``."""

from __future__ import annotations

import asyncio
import sys
from dataclasses import replace

from agentmon.bootstrap import open_services
from agentmon.domain.diffs import Diff, DiffSide, LineSpan
from agentmon.domain.errors import AgentmonError
from agentmon.domain.ids import TaskId, new_id
from agentmon.domain.review_comments import message_text

_FILES = 2


async def comment(task_id: TaskId) -> None:
    """Comment on the first lines of what its newest run changed, then send all that waits.

    Raises:
        AgentmonError: There is no run, or something cannot be read, written or sent.
    """
    async with open_services() as services:
        changes = services.changes
        for run in await services.executions.of_task(task_id, limit=1):
            found = await changes.of_run(run)
            for file in Diff(await changes.patch_of_run(found)).files[:_FILES]:
                known = await changes.comment_at(found, LineSpan(file.path, DiffSide.NEW, 1, 1))
                await changes.write_comment(replace(known, text=f"comment {new_id()}"), actor=services.actor)
        unsent = [one for one in await changes.comments_of(task_id) if one.sent_at is None]
        if unsent:
            ids = [one.id for one in unsent]
            await services.conversations.send(task_id, message_text(unsent), comment_ids=ids, actor=services.actor)


if __name__ == "__main__":
    try:
        asyncio.run(comment(TaskId(sys.argv[1])))
    except AgentmonError as error:
        sys.exit(str(error))
