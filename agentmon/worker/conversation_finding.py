"""Which conversation in an agent's files is that of a run in its own screen, where the agent itself does not say so."""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from agentmon.domain.executions import ConversationStart
from agentmon.runners.screens.signals import is_descendant
from agentmon.usage.beginnings import find_beginnings
from agentmon.usage.gemini_log import begun_by_process_of
from agentmon.usage.opencode_log import made_by_process_of
from agentmon.usage.sources import CLAUDE, CODEX, GEMINI, OPENCODE, find_sources_of
from agentmon.worker.preparation import working_dir_of

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from agentmon.domain.executions import ClaimedExecution, Execution
    from agentmon.domain.ids import ExecutionId
    from agentmon.usage.beginnings import Beginning

    Fitting = Mapping[ExecutionId, Sequence[Beginning]]

_BEGUN_BEFORE_MS: Final = 2_000
"""Two clocks, of which one counts whole seconds."""
_COMPARED_CHARACTERS: Final = 1_000
_KEEP_RECORDS: Final = frozenset({CLAUDE, CODEX, GEMINI, OPENCODE})
"""Agents that write down what they are told before they answer."""


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
    forked_ref: str = ""
    """The conversation of which it makes a copy; empty when it begins a new one."""
    session_ref: str = ""
    """The conversation that it has; empty while that is looked for."""
    pid: int
    """0 when its process is not known, or gone."""


def screen_run_of(
    claimed: ClaimedExecution, environ: Mapping[str, str], *, pid: int, session_ref: str = ""
) -> ScreenRun | None:
    """Return what tells the conversation of an execution from others; None when it has not started."""
    execution = claimed.execution
    if execution.started_at is None:
        return None
    is_fork = claimed.start is ConversationStart.FORK
    return ScreenRun(
        execution_id=execution.id,
        agent_slug=claimed.agent.slug,
        environ=environ,
        folder=working_dir_of(claimed),
        started_ms=int(execution.started_at.timestamp() * 1000),
        prompt=execution.prompt or "",
        forked_ref=(claimed.resumed_ref or "") if is_fork else "",
        session_ref=session_ref,
        pid=pid,
    )


def find_fitting(runs: Sequence[ScreenRun]) -> dict[ExecutionId, list[Beginning]]:
    """Return the conversations that each of the runs may have, as far as the agents' files tell; blocks.

    A conversation fits a run when it began in its folder, since it started, with its prompt or as the copy it makes.
    """
    fitting: dict[ExecutionId, list[Beginning]] = {}
    for run in runs:
        since_ms = run.started_ms - _BEGUN_BEFORE_MS
        fits = [one for one in find_beginnings(run.agent_slug, run.environ, since_ms=since_ms) if _fits(run, one)]
        # The same conversation may stand in several files.
        fitting[run.execution_id] = list({one.session_ref: one for one in fits}.values())
    return fitting


def choose_conversations(
    runs: Sequence[ScreenRun], fitting: Fitting, *, known: Collection[str] = (), rivals: Sequence[Execution] = ()
) -> dict[ExecutionId, str]:
    """Return the agents' own ids of the conversations of these runs, of those for which it is certain; blocks.

    Where several fit, or one without words to compare, the process that holds the file open decides, and otherwise
    nobody does.

    Args:
        runs: All of one look.
        fitting: What ``find_fitting`` returned for them.
        known: Ids of conversations that are somebody else's.
        rivals: Other runs of the same agents whose conversation nobody knows, over or not.
    """
    free = {
        run.execution_id: [one for one in fitting[run.execution_id] if one.session_ref not in known] for run in runs
    }
    claims = Counter(one.session_ref for fits in free.values() for one in fits)
    begun = {one.session_ref: one for fits in free.values() for one in fits}
    claims.update(ref for ref, one in begun.items() if any(_may_be_of(rival, one) for rival in rivals))
    found = {}
    for run in runs:
        fits = free[run.execution_id]
        is_by_words = bool(run.prompt or run.forked_ref)
        if len(fits) > 1 or not is_by_words or any(claims[one.session_ref] > 1 for one in fits):
            opened = _open_files(run.pid)
            fits = [one for one in fits if one.path in opened]
        if len(fits) == 1:
            found[run.execution_id] = fits[0].session_ref
    taken = Counter(found.values())
    return {execution_id: ref for execution_id, ref in found.items() if taken[ref] == 1}


def find_begun_anew(run: ScreenRun) -> list[str]:
    """Return the conversations that a run began in the same screen behind the one that it has, oldest first; blocks.

    What began in its folder is its own when its process holds the file open, or the agent's log says that the process
    which has the one made the other; a record that says neither proves nothing.
    """
    in_folder = [
        one
        for one in find_beginnings(run.agent_slug, run.environ, since_ms=run.started_ms)
        if one.prompt and _is_in_folder(run, one)
    ]
    begun = [one for one in in_folder if one.session_ref != run.session_ref]
    if not begun:
        return []
    opened = _open_files(run.pid)
    made: Collection[str] = ()
    if run.agent_slug == OPENCODE:
        made = made_by_process_of(run.session_ref, run.environ, since_ms=run.started_ms)
    elif run.agent_slug == GEMINI:
        made = begun_by_process_of(run.session_ref, in_folder)
    own = [one for one in begun if one.path in opened or one.session_ref in made]
    return list(dict.fromkeys(one.session_ref for one in sorted(own, key=lambda one: one.begun_ms)))


def keeps_no_record(run: ScreenRun) -> bool:
    """Return whether an agent that writes down what it is told has written nothing since the run started; blocks."""
    since_ns = (run.started_ms - _BEGUN_BEFORE_MS) * 1_000_000
    # Only Claude Code names its files by the conversation alone.
    name = run.session_ref if run.agent_slug == CLAUDE else ""
    return run.agent_slug in _KEEP_RECORDS and not any(
        source.mtime_ns >= since_ns and name in source.path for source in find_sources_of(run.agent_slug, run.environ)
    )


def _is_in_folder(run: ScreenRun, one: Beginning) -> bool:
    return bool(one.folder) and os.path.realpath(one.folder) == os.path.realpath(run.folder)


def _fits(run: ScreenRun, one: Beginning) -> bool:
    if not _is_in_folder(run, one) or one.parent_ref != run.forked_ref:
        return False
    # What is read of it may have been cut.
    said, given = _compared(one.prompt), _compared(run.prompt)
    return bool(said) and (bool(run.forked_ref) or not given or said == given)


def _may_be_of(rival: Execution, one: Beginning) -> bool:
    if rival.started_at is None or os.path.realpath(rival.working_dir or "") != os.path.realpath(one.folder):
        return False
    since_ms = rival.started_at.timestamp() * 1000 - _BEGUN_BEFORE_MS
    until_ms = float("inf") if rival.ended_at is None else rival.ended_at.timestamp() * 1000 + _BEGUN_BEFORE_MS
    given = _compared(rival.prompt or "")
    return since_ms <= one.begun_ms <= until_ms and (bool(one.parent_ref) or given in {"", _compared(one.prompt)})


def _compared(text: str) -> str:
    return "".join(text.split())[:_COMPARED_CHARACTERS]


def _open_files(pid: int) -> set[str]:
    """Return the files that the process, or one that it started, holds open."""
    found: set[str] = set()
    if not pid:
        return found
    for folder in Path("/proc").glob("[0-9]*/fd"):
        if is_descendant(int(folder.parent.name), pid):
            try:
                found.update(str(one.readlink()) for one in folder.iterdir())
            except OSError:
                continue
    return found
