"""What can be done with a conversation from any screen: go on with it, copy it, begin it anew, rename it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from agentmon.screens.sessions.talking import fresh_start_note, send_message
from agentmon.widgets.cells import even_line

if TYPE_CHECKING:
    from agentmon.domain.sessions import SessionListing
    from agentmon.screens.frame import ServiceScreen

_LONGEST_TITLE: Final = 80


def session_title(listing: SessionListing) -> str:
    """Return what a conversation is called: its title, else its first words, else its task."""
    return even_line(listing.title)


async def go_on(screen: ServiceScreen[None], listing: SessionListing) -> None:
    """Write to the agent of the conversation; one that is over goes on in a new run. Must run in a worker.

    Raises:
        AgentmonError: It cannot go on.
    """
    if listing.is_live and listing.session.task_id is not None:
        await send_message(screen, listing.session.task_id)
        return
    from agentmon.screens.dialogs.text_dialog import TextDialog  # noqa: PLC0415 - not part of the first frame

    why = listing.session.cannot_resume
    note = fresh_start_note(why) if why else "A new run goes on with this conversation and your message."
    text = await screen.ask(TextDialog(f"Go on with: {_short(listing)}", note=note))
    if text is not None:
        services = await screen.services()
        if why:
            await services.sessions.restart(listing.session.id, text, actor=services.actor)
            screen.notify("A fresh conversation with the history goes on in a new run")
        else:
            await services.sessions.resume(listing.session.id, text, actor=services.actor)
            screen.notify("The conversation goes on in a new run")
        screen.request_refresh()


async def fork(screen: ServiceScreen[None], listing: SessionListing) -> None:
    """Go on with a copy of the conversation; this one stays as it is. Must run in a worker.

    Raises:
        AgentmonError: It cannot be copied.
    """
    from agentmon.screens.dialogs.text_dialog import TextDialog  # noqa: PLC0415 - not part of the first frame

    note = "A new run goes on with a copy of it; this conversation stays as it is."
    text = await screen.ask(TextDialog(f"Fork: {_short(listing)}", note=note))
    if text is not None:
        services = await screen.services()
        await services.sessions.fork(listing.session.id, text, actor=services.actor)
        screen.notify("A copy of the conversation goes on in a new run")
        screen.request_refresh()


async def restart(screen: ServiceScreen[None], listing: SessionListing) -> None:
    """Ask, then begin a fresh conversation with the same first words. Must run in a worker.

    Raises:
        AgentmonError: It cannot be run.
    """
    from agentmon.screens.dialogs.choice import Answer, ChoiceDialog  # noqa: PLC0415 - not part of the first frame

    first = even_line(listing.asked, max_characters=400)
    answer = await screen.ask(
        ChoiceDialog(
            f"Begin anew: {_short(listing)}?",
            detail=f"A fresh conversation with the same first words: {first}" if first else "A fresh conversation.",
            answers=[Answer("restart", "Begin anew")],
        )
    )
    if answer is not None:
        services = await screen.services()
        await services.sessions.restart(listing.session.id, actor=services.actor)
        screen.notify("A fresh conversation waits for its turn")
        screen.request_refresh()


async def rename(screen: ServiceScreen[None], listing: SessionListing) -> None:
    """Give the conversation another title. Must run in a worker."""
    from agentmon.screens.dialogs.text_dialog import TextDialog  # noqa: PLC0415 - not part of the first frame

    note = "One line; ctrl+s takes it."
    text = await screen.ask(TextDialog("Title of the conversation", note=note, text=session_title(listing)))
    if text is not None:
        services = await screen.services()
        await services.sessions.rename(listing.session.id, even_line(text.strip(), max_characters=200))
        screen.request_refresh()


def _short(listing: SessionListing) -> str:
    return even_line(session_title(listing), max_characters=_LONGEST_TITLE)
