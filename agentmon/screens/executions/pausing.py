"""Pausing the queue and letting it go on, from any screen."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from agentmon.domain.pause import QueuePause
    from agentmon.screens.frame import ServiceScreen

PAUSE_WORDS: Final = "Pause the queue"
RESUME_WORDS: Final = "Let the queue go on"
_FINISH: Final = "finish"
_HALT: Final = "halt"


async def toggle_pause(screen: ServiceScreen[None]) -> None:
    """Pause the queue, or let it go on; asks what becomes of what runs. Must run in a worker of the screen.

    Raises:
        ConflictError: Somebody else did the same at this moment.
    """
    services = await screen.services()
    if await services.queue.find_pause() is not None:
        screen.release_keys()
        ended = await services.queue.resume(actor=services.actor)
        screen.notify(_resumed_words(ended))
        screen.request_refresh()
        return
    page = await services.board.page(await screen.workspace(), ())
    halts_running = False
    if page.status_line.running:
        answer = await _ask(screen, page.status_line.running)
        if answer is None:
            return
        halts_running = answer == _HALT
    screen.release_keys()
    await services.queue.pause(actor=services.actor, halts_running=halts_running)
    after = "what runs is halted" if halts_running else "nothing new starts"
    screen.notify(f"The queue is paused, {after} · P lets it go on")
    screen.request_refresh()


async def _ask(screen: ServiceScreen[None], running: int) -> str | None:
    from agentmon.screens.dialogs.choice import Answer, ChoiceDialog  # noqa: PLC0415 - not part of the first frame

    one = running == 1
    question = f"Pause the queue? {running:,} run{'' if one else 's'} {'goes' if one else 'go'} on now."
    detail = (
        "Nothing new starts until P lets the queue go on, also after a restart. What runs may finish, or its processes "
        "are halted where they are and go on later."
    )
    answers = [
        Answer(_FINISH, "Let it finish" if one else "Let them finish"),
        Answer(_HALT, "Halt it" if one else "Halt them where they are"),
    ]
    return await screen.ask(ChoiceDialog(question, detail=detail, answers=answers))


def _resumed_words(ended: QueuePause) -> str:
    return "The queue goes on, and what was halted" if ended.halts_running else "The queue goes on"
