"""What can be done with agents from their list and their page; each change leaves what takes it back."""

from __future__ import annotations

import asyncio
from dataclasses import fields
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple, TypeVar

from agentmon.domain.agent_changes import AgentChanges
from agentmon.domain.errors import AgentmonError
from agentmon.screens.board.undo import UndoStack
from agentmon.widgets.cells import even_line

if TYPE_CHECKING:
    from collections.abc import Sequence

    from agentmon.bootstrap import Services
    from agentmon.domain.agents import Agent
    from agentmon.screens.board.undo import Inverse
    from agentmon.screens.frame import ServiceScreen

_ResultT = TypeVar("_ResultT")

_MOST_NAMES: Final = 3
_SLUG: Final = "name"
_MODES: Final = "permission_modes"


class AgentChange(NamedTuple):
    """One change of a person's, of one or more agents."""

    words: str
    """What was changed, such as ``the removal of claude``."""
    inverses: Sequence[Inverse]
    """Undo it, in this order."""
    slug: str
    """The agent to select afterwards."""


class AgentUndo(UndoStack[AgentChange]):
    """The newest changes of agents from any screen.

    Attributes:
        order: Held while a change is made or taken back, so that keys in quick succession are stored in their order.
    """

    def __init__(self) -> None:
        super().__init__()
        self.order = asyncio.Lock()


def agents_text(agents: Sequence[Agent]) -> str:
    """Return whom it is about: ``claude``, ``claude, codex, git and 4 more``."""
    names = ", ".join(agent.slug for agent in agents[:_MOST_NAMES])
    return names + (f" and {len(agents) - _MOST_NAMES} more" if len(agents) > _MOST_NAMES else "")


async def turn(screen: ServiceScreen[None], agents: Sequence[Agent], undo: AgentUndo) -> None:
    """Turn agents off when all of them are on, else those on that are off. Must run in a worker."""
    services = await screen.services()
    service = services.agents
    is_turning_on = not all(agent.is_active for agent in agents)
    word, back = ("on", _disable) if is_turning_on else ("off", _enable)
    changed: list[Agent] = []
    try:
        async with undo.order:
            for agent in agents:
                if agent.is_active is not is_turning_on:
                    await (service.enable if is_turning_on else service.disable)(agent.slug, actor=services.actor)
                    changed.append(agent)
    finally:
        if changed:
            names = agents_text(changed)
            inverses = [partial(back, slug=agent.slug) for agent in changed]
            undo.push(AgentChange(f"the turning {word} of {names}", inverses, changed[0].slug))
            screen.notify(f"{names} {'is' if len(changed) == 1 else 'are'} {word}")
            screen.request_refresh(at_once=True)


async def edit(screen: ServiceScreen[None], agent: Agent, undo: AgentUndo) -> None:
    """Show all that can be changed of the agent. Must run in a worker."""
    from agentmon.screens.agents.agent_editor import AgentEditor  # noqa: PLC0415 - not needed before

    changed = await screen.ask(AgentEditor(await screen.services(), agent))
    if changed is not None:
        undo.push(_edit_change(agent, changed))
        screen.request_refresh(at_once=True)


async def copy(screen: ServiceScreen[None], agent: Agent, undo: AgentUndo) -> str | None:
    """Ask for a name, and make a copy of the agent; return its slug. Must run in a worker."""
    from agentmon.screens.dialogs.menu_dialog import MenuDialog, MenuEntry  # noqa: PLC0415 - not needed before

    services = await screen.services()
    taken = {one.slug for one in await services.agents.list(active_only=False)}
    free = next(
        f"{agent.slug}-{number}" for number in range(2, len(taken) + 3) if f"{agent.slug}-{number}" not in taken
    )
    chosen = await screen.ask(
        MenuDialog(
            f"Copy {agent.slug} as", [MenuEntry(_SLUG, free)], free_kind=_SLUG, free_words="or type another name"
        )
    )
    if chosen is None:
        return None
    made = await services.agents.duplicate(agent.slug, chosen.word, actor=services.actor)
    undo.push(AgentChange(f"the copy {made.slug}", [partial(remove_again, slug=made.slug)], agent.slug))
    screen.notify(f"{made.slug} is a copy of {agent.slug}; e changes it")
    screen.request_refresh(at_once=True)
    return made.slug


async def remove(screen: ServiceScreen[None], agents: Sequence[Agent], undo: AgentUndo) -> None:
    """Take agents out of the registry; what they did stays. Must run in a worker."""
    services = await screen.services()
    removed: list[Agent] = []
    try:
        async with undo.order:
            for agent in agents:
                await services.agents.remove(agent.slug, actor=services.actor)
                removed.append(agent)
    finally:
        if removed:
            names = agents_text(removed)
            inverses = [partial(_restore, slug=agent.slug) for agent in removed]
            undo.push(AgentChange(f"the removal of {names}", inverses, removed[0].slug))
            screen.notify(f"{names} removed; ctrl+z brings {'it' if len(removed) == 1 else 'them'} back")
            screen.request_refresh(at_once=True)


async def release(screen: ServiceScreen[None], agent: Agent) -> None:
    """Let a parked agent start again. Must run in a worker.

    Raises:
        ConflictError: It is not parked.
    """
    services = await screen.services()
    await services.agents.release(agent.slug, actor=services.actor)
    screen.notify(f"{agent.slug} may start again")
    screen.request_refresh(at_once=True)


async def test_run(screen: ServiceScreen[None], agent: Agent) -> None:
    """Ask the program for its version and its login, and tell. Must run in a worker."""
    services = await screen.services()
    screen.notify(f"asking {agent.slug} …", timeout=2)
    tested = await services.agents.test_run(agent.slug)
    words = [agent.slug, tested.version or "tells no version"]
    if tested.found_path:
        words.append(tested.found_path)
    if tested.is_logged_in is not None:
        words.append("logged in" if tested.is_logged_in else "not logged in")
    screen.notify(
        "\n".join([" · ".join(words), *tested.problems]), severity="warning" if tested.problems else "information"
    )
    screen.request_refresh(at_once=True)


async def learn(screen: ServiceScreen[None], agent: Agent) -> None:
    """Look what else the agent can be asked to do, and take what the person approves. Must run in a worker."""
    from agentmon.screens.agents.capability_proposals import CapabilityProposals  # noqa: PLC0415 - not needed before

    if await screen.ask(CapabilityProposals(await screen.services(), agent)) is not None:
        screen.request_refresh(at_once=True)


async def take_back(screen: ServiceScreen[_ResultT], undo: AgentUndo) -> str | None:
    """Undo the newest change; return the agent it was about. Must run in a worker."""
    services = await screen.services()
    async with undo.order:
        change = undo.pop()
        if change is None:
            screen.notify("nothing to undo")
            return None
        for at, inverse in enumerate(change.inverses):
            try:
                await inverse(services)
            except AgentmonError:
                # What could not be taken back can be tried again.
                undo.push(change._replace(inverses=change.inverses[at:]))
                raise
    screen.notify(f"undone: {change.words}")
    screen.request_refresh(at_once=True)
    return change.slug


async def remove_again(services: Services, *, slug: str) -> None:
    """Take back that an agent was made."""
    await services.agents.remove(slug, actor=services.actor)


def _edit_change(before: Agent, after: Agent) -> AgentChange:
    return AgentChange(
        words=f"the edit of {even_line(before.slug)}",
        inverses=[partial(_edit_back, before=before, after=after)],
        slug=before.slug,
    )


async def _edit_back(services: Services, *, before: Agent, after: Agent) -> None:
    old = {
        field.name: getattr(before, field.name)
        for field in fields(AgentChanges)
        if field.name != _MODES and getattr(before, field.name) != getattr(after, field.name)
    }
    if before.session_config != after.session_config and before.session_config is not None:
        old[_MODES] = before.session_config.permission_modes
    if old:
        await services.agents.edit(before.slug, AgentChanges(**old), actor=services.actor)
    tools = {
        name: before.tools.get(name)
        for name in {*before.tools, *after.tools}
        if before.tools.get(name) != after.tools.get(name)
    }
    if tools:
        await services.agents.set_tools(before.slug, tools, actor=services.actor)


async def _enable(services: Services, *, slug: str) -> None:
    await services.agents.enable(slug, actor=services.actor)


async def _disable(services: Services, *, slug: str) -> None:
    await services.agents.disable(slug, actor=services.actor)


async def _restore(services: Services, *, slug: str) -> None:
    await services.agents.restore(slug, actor=services.actor)
