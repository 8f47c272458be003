"""Saving a log to a file that the person names; nothing is overwritten unasked."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from agentmon.domain.amounts import size_text
from agentmon.domain.errors import AgentmonError, ConflictError
from agentmon.logs.saving import save_log
from agentmon.paths import expanded
from agentmon.screens.dialogs.confirm import ConfirmDialog

if TYPE_CHECKING:
    from pathlib import Path

    from agentmon.screens.frame import ServiceScreen
    from agentmon.widgets.log_pane import LogPane


async def save_shown_log(screen: ServiceScreen[None], wanted: LogPane.SaveWanted) -> None:
    """Write what is wanted to its file, ask before one is overwritten, and say how it went."""
    target = _target(wanted.target)

    async def save(*, overwrite: bool) -> None:
        size = await asyncio.to_thread(
            save_log, wanted.source, target, pattern=wanted.pattern, overwrite=overwrite, text=wanted.text
        )
        what = "the log" if wanted.pattern is None else "the lines that match"
        screen.notify(f"Saved {what}, {size_text(size)}, to {target}", markup=False)

    try:
        try:
            await save(overwrite=False)
        except ConflictError:
            question = ConfirmDialog(
                f"Overwrite {target.name}?", loss=f"What {target} holds now will be lost.", yes="Overwrite"
            )
            if await screen.ask(question):
                await save(overwrite=True)
    except AgentmonError as error:
        screen.notify(str(error), severity="error", markup=False)


def _target(text: str) -> Path:
    return expanded(text).absolute()
