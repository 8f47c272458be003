"""Which conversation in an agent's files is that of a run in its own screen, where the agent itself does not say so."""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from agentmon.runners.screens.signals import is_descendant
from agentmon.usage.beginnings import find_beginnings

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from agentmon.domain.ids import ExecutionId
    from agentmon.usage.beginnings import Beginning

_BEGUN_BEFORE_MS: Final = 2_000
"""Two clocks, of which one counts whole seconds."""
_COMPARED_CHARACTERS: Final = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class ScreenRun:
    """A run in its own screen whose conversation is looked for."""

    execution_id: ExecutionId
    agent_slug: str
    environ: Mapping[str, str]
    folder: str
    started_ms: int
    prompt: str
    """What it is given first; empty when a person types it."""
    pid: int


def find_conversations(runs: Sequence[ScreenRun], *, known: Collection[str] = ()) -> dict[ExecutionId, str]:
    """Return the agents' own ids of the conversations of these runs, of those for which it is certain; blocks.

    A conversation is a run's when it began in its folder, since it started, with its prompt. Where that fits several,
    the process that holds the file open decides, and otherwise nobody does.

    Args:
        runs: All of one look.
        known: Ids of conversations that are somebody else's.
    """
    fitting: dict[ExecutionId, list[Beginning]] = {}
    for run in runs:
        since_ms = run.started_ms - _BEGUN_BEFORE_MS
        begun = find_beginnings(run.agent_slug, run.environ, since_ms=since_ms)
        fits = [one for one in begun if one.session_ref not in known and _fits(run, one)]
        # The same conversation may stand in several files.
        fitting[run.execution_id] = list({one.session_ref: one for one in fits}.values())
    claims = Counter(one.session_ref for fits in fitting.values() for one in fits)
    found = {}
    for run in runs:
        fits = fitting[run.execution_id]
        if len(fits) > 1 or any(claims[one.session_ref] > 1 for one in fits):
            opened = _open_files(run.pid)
            fits = [one for one in fits if one.path in opened]
        if len(fits) == 1:
            found[run.execution_id] = fits[0].session_ref
    taken = Counter(found.values())
    return {execution_id: ref for execution_id, ref in found.items() if taken[ref] == 1}


def _fits(run: ScreenRun, one: Beginning) -> bool:
    is_there = bool(one.folder) and os.path.realpath(one.folder) == os.path.realpath(run.folder)
    # What is read of it may have been cut.
    said, given = _compared(one.prompt), _compared(run.prompt)
    return is_there and not one.parent_ref and bool(said) and (not given or said == given)


def _compared(text: str) -> str:
    return "".join(text.split())[:_COMPARED_CHARACTERS]


def _open_files(pid: int) -> set[str]:
    """Return the files that the process, or one that it started, holds open."""
    found: set[str] = set()
    for folder in Path("/proc").glob("[0-9]*/fd"):
        if is_descendant(int(folder.parent.name), pid):
            try:
                found.update(str(one.readlink()) for one in folder.iterdir())
            except OSError:
                continue
    return found
