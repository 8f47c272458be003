"""What is wrong in the background, told to whoever queues a run or waits for one."""

import asyncio
from typing import Final

from agentmon.bootstrap import Services
from agentmon.cli.output import tell

_LOOK_EVERY_S: Final = 2.0


async def tell_troubles(services: Services, *, told: set[str] | None = None) -> set[str]:
    """Tell what is wrong with the worker, but for what was told before, and return what is wrong."""
    known = set() if told is None else told
    troubles = await services.background.troubles()
    for trouble in troubles:
        if trouble.what not in known:
            tell(f"warning: {trouble.text}\nhint: {trouble.hint}")
    return {trouble.what for trouble in troubles}


async def keep_telling_troubles(services: Services) -> None:
    """Look every two seconds until cancelled; each trouble is told when it begins."""
    told: set[str] = set()
    while True:
        told = await tell_troubles(services, told=told)
        await asyncio.sleep(_LOOK_EVERY_S)
