"""The menu of workspaces: whose board is shown, or that of all together."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from agentmon.domain.board import ALL_WORKSPACES
from agentmon.domain.live_state import LiveState
from agentmon.screens.dialogs.menu_dialog import MenuDialog, MenuEntry
from agentmon.widgets.cells import cells, even_line

if TYPE_CHECKING:
    from collections.abc import Sequence

    from agentmon.domain.ids import WorkspaceId
    from agentmon.domain.tasks import Workspace
    from agentmon.domain.workspace_counts import WorkspaceCounts
    from agentmon.screens.frame import ServiceScreen

_ALL: Final = "together"
_ONE: Final = "workspace"
_FOLDER: Final = "folder"
_NAME_MAX_CELLS: Final = 24


class AllWorkspaces:
    """Stands for the choice of all workspaces together."""


async def choose_workspace(
    screen: ServiceScreen[None], present: WorkspaceId | None
) -> Workspace | AllWorkspaces | None:
    """Return whose board a person wants to see; None when they left. Must run in a worker.

    Args:
        screen: Shows the menu.
        present: The workspace that is shown; None while all are.

    Raises:
        NotFoundError: The folder that was typed is not there.
    """
    services = await screen.services()
    counts = await services.workspaces.counts()
    dialog = MenuDialog(
        "Whose board?",
        workspace_entries(counts, present),
        free_kind=_FOLDER,
        free_words="the path of another folder",
        is_wide=True,
    )
    chosen = await screen.ask(dialog)
    if chosen is None:
        return None
    if chosen.kind == _ALL:
        return AllWorkspaces()
    if chosen.kind == _FOLDER:
        return await services.workspaces.open(Path(chosen.word))
    return next(one.workspace for one in counts if one.workspace.id == chosen.meaning)


def workspace_entries(counts: Sequence[WorkspaceCounts], present: WorkspaceId | None) -> list[MenuEntry]:
    """Return a line for all together, and one for each workspace: name, what goes on in it, path."""
    lines = [(ALL_WORKSPACES, _total_words(counts), "")]
    lines += [(one.short_name, _words(one), _place(one)) for one in counts]
    names = [even_line(name, max_characters=_NAME_MAX_CELLS) for name, _, _ in lines]
    name_width = max(map(cells, names))
    word_width = max(cells(words) for _, words, _ in lines)
    texts = [
        f"{name}{' ' * (name_width - cells(name))}  {words}{' ' * (word_width - cells(words))}  {path}".rstrip()
        for name, (_, words, path) in zip(names, lines, strict=True)
    ]
    return [
        MenuEntry(_ALL, texts[0], present is None),
        *(
            MenuEntry(_ONE, line, one.workspace.id == present, one.workspace.id)
            for one, line in zip(counts, texts[1:], strict=True)
        ),
    ]


def _place(one: WorkspaceCounts) -> str:
    place = _near_home(one.workspace.root_path)
    return f"{place} (moved or missing)" if one.is_gone else place


def _near_home(path: str) -> str:
    home = str(Path.home())
    return f"~{path[len(home) :]}" if path.startswith(f"{home}/") else path


def _total_words(counts: Sequence[WorkspaceCounts]) -> str:
    return _count_words(
        sum(one.running for one in counts),
        sum(one.needs_you for one in counts),
        sum(one.open_tasks for one in counts),
    )


def _words(one: WorkspaceCounts) -> str:
    return _count_words(one.running, one.needs_you, one.open_tasks)


def _count_words(running: int, needs_you: int, open_tasks: int) -> str:
    return f"{LiveState.RUNNING.glyph} {running:<3} {LiveState.NEEDS_YOU.glyph} {needs_you:<3} {open_tasks:>6,} open"
