"""Editing a text in the person's own editor: the application lends it the terminal and waits."""

from __future__ import annotations

import asyncio
import os
import sys
from typing import TYPE_CHECKING

from textual.app import SuspendNotSupported

from agentmon.domain.errors import AgentmonError, ConflictError, RunnerError, UsageError
from agentmon.domain.plain_text import plain_line
from agentmon.paths import find_paths

if TYPE_CHECKING:
    from pathlib import Path

    from textual.app import App

    from agentmon.domain.ids import TaskId
    from agentmon.runners.text_editor import LentFile, WrittenText
    from agentmon.screens.frame import ServiceScreen
    from agentmon.screens.tasks.editing import StoredEdit


async def edit_outside(app: App[object], text: str, *, title: str) -> tuple[WrittenText, LentFile]:
    """Return what the person's editor made of the text, and its file, to be removed once the text has arrived.

    Raises:
        UsageError: There is no editor.
        RunnerError: It cannot be started, the terminal cannot be lent, or the file cannot be written or read.
    """
    from agentmon.runners.text_editor import find_editor, left_files, lend_file, run_editor  # noqa: PLC0415 - rare

    argv = find_editor(os.environ)
    drafts_dir = find_paths().drafts_dir
    left = await asyncio.to_thread(left_files, drafts_dir)
    if left:
        more = f" and {len(left) - 1} more" if len(left) > 1 else ""
        app.notify(
            f"An earlier text is still in {plain_line(str(left[-1]))}{more}; remove it when you have it",
            timeout=10,
            markup=False,
        )
    lent = await asyncio.to_thread(lend_file, drafts_dir, text, title=title)
    try:
        with app.suspend():
            sys.stdout.write(f"editing {plain_line(str(lent.path))}\n")
            sys.stdout.flush()
            # Blocks on purpose: while the terminal is lent nothing here may draw or read.
            written = run_editor(argv, lent, os.environ)
    except SuspendNotSupported as error:
        lent.remove()
        raise RunnerError("this terminal cannot be lent to an editor", hint="agentmon task edit --editor") from error
    return written, lent


async def open_file_outside(app: App[object], path: Path, *, line: int) -> None:
    """Open a file at a line in the person's editor, which gets the terminal until it ends.

    Raises:
        UsageError: There is no editor, or no such file.
        RunnerError: It cannot be started, or the terminal cannot be lent.
    """
    from agentmon.runners.text_editor import find_editor, open_file  # noqa: PLC0415 - rare

    argv = find_editor(os.environ)
    if not await asyncio.to_thread(path.is_file):
        raise UsageError(f"{plain_line(str(path))} is not there any more", hint="the run may have removed or moved it")
    try:
        with app.suspend():
            # Blocks on purpose: while the terminal is lent nothing here may draw or read.
            open_file(argv, path, os.environ, line=line)
    except SuspendNotSupported as error:
        raise RunnerError("this terminal cannot be lent to an editor", hint=f"open {plain_line(str(path))}") from error


async def edit_description(screen: ServiceScreen[None], task_id: TaskId) -> StoredEdit | None:
    """Let a person write the description of a task in their editor, and store it; None when nothing was changed.

    What cannot be stored stays in its file, which the error names. Must run in a worker of the screen.

    Raises:
        AgentmonError: It could not be edited or stored.
    """
    from dataclasses import replace  # noqa: PLC0415 - rare

    from agentmon.domain.tasks import draft_of  # noqa: PLC0415 - not part of the first frame
    from agentmon.screens.dialogs.confirm import ConfirmDialog  # noqa: PLC0415 - not part of the first frame
    from agentmon.screens.tasks.editing import StoredEdit  # noqa: PLC0415 - not part of the first frame

    services = await screen.services()
    task = await services.tasks.get(task_id)
    written, lent = await edit_outside(screen.app, task.description, title=task.title)
    if written.text == task.description:
        if written.complaint:
            screen.notify(f"{written.complaint}; nothing was changed", severity="warning", markup=False)
        lent.remove()
        return None
    if written.complaint:
        loss = "The description stays as it was otherwise."
        if not await screen.ask(ConfirmDialog(f"{written.complaint}. Take its text?", loss=loss, yes="Take it")):
            lent.remove()
            return None
    try:
        newest = await services.tasks.get(task_id)
        if newest.description != task.description:
            raise ConflictError("the description was changed by somebody else meanwhile")
        draft = replace(draft_of(newest), description=written.text)
        after = await services.tasks.edit(task_id, draft, expected_version=newest.version, actor=services.actor)
    except AgentmonError as error:
        raise ConflictError(f"not saved: {error}", hint=f"what you wrote is in {lent.path}") from error
    lent.remove()
    dependencies = tuple(one.number for one in await services.tasks.dependencies(task_id))
    return StoredEdit(before=newest, after=after, should_run=False, dependencies_before=dependencies)
