"""Explaining a state: which signal or rule decided it, and what each source says now."""

from __future__ import annotations

import asyncio
import json
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

from agentmon.domain.errors import AgentmonError, ConflictError
from agentmon.domain.events import EventType
from agentmon.domain.execution_mode import ExecutionMode
from agentmon.domain.execution_status import EndReason, ExecutionStatus, WaitReason
from agentmon.domain.live_state import LiveState
from agentmon.domain.plain_text import plain_line
from agentmon.domain.redaction import redact
from agentmon.domain.tasks import awaited_text
from agentmon.domain.worktrees import FOLDER_HINT
from agentmon.runners.execution_folder import ExecutionFolder, open_at_once
from agentmon.runners.screens.reading import ScreenText, box_text, read_screen, read_title
from agentmon.runners.screens.rules import NO_RULES, find_agent_rules
from agentmon.runners.screens.signals import is_halted, read_signal
from agentmon.runners.tmux import Tmux
from agentmon.store.task_moves import DEPENDENCY_SOURCE

if TYPE_CHECKING:
    from collections.abc import Mapping

    from agentmon.domain.agents import Agent
    from agentmon.domain.clock import Clock
    from agentmon.domain.events import Event
    from agentmon.domain.executions import Execution
    from agentmon.domain.ids import TaskId
    from agentmon.paths import Paths
    from agentmon.runners.screens.rules import ScreenRules
    from agentmon.services.agents import AgentService
    from agentmon.services.settings import SettingsService
    from agentmon.services.sightings import SightingService
    from agentmon.store.claims import ClaimRepository
    from agentmon.store.dependencies import DependencyRepository
    from agentmon.store.events import EventRepository
    from agentmon.store.executions import ExecutionRepository
    from agentmon.store.queue_pause import QueuePauseRepository

_UNSEEN: Final = "the lock of its host, which nobody holds or a halted host does; no worker is at work"
_JOURNAL: Final = "the journal of its host"
_END_SOURCES: Final = {
    EndReason.FINISHED: "its agent, which had nothing left to do",
    EndReason.STOPPED: "a stop that was asked for",
    EndReason.TIMED_OUT: "its time limit",
    EndReason.START_FAILED: "its start, which failed",
    EndReason.TERMINATED: "a signal that its host got from elsewhere",
    EndReason.LOST: "the lock of its host, which is gone without a word",
    EndReason.REFUSED: "what the vendor said",
    EndReason.BUDGET: "a budget that was spent",
    EndReason.UNVERIFIED: "the command that its work has to pass",
}
_WAIT_SOURCES: Final = {
    WaitReason.RETRY: "its last try, which failed",
    WaitReason.USAGE_LIMIT: "what the vendor said of its quota",
    WaitReason.RATE_LIMIT: "what the vendor said of its rate limit",
    WaitReason.FAILURES: "its failures in a row",
    WaitReason.NOT_STARTED: "what agentmon starts runs with, which did not work",
    WaitReason.SCHEDULED: "the time that it was queued for",
    WaitReason.BUDGET: "a budget that is spent",
}
_FULL_WORDS: Final = {
    "agent": "its agent has no place free",
    "workspace": "its workspace has no place free",
    "all": "as many runs as worker.max_running allows are at work",
}
_STATE_EVENTS: Final = (EventType.STATUS_CHANGE, EventType.APPROVAL, EventType.ERROR)
_MAX_EVENTS: Final = 5
_MAX_ENTRIES: Final = 10
_TAIL_BYTES: Final = 64 * 1024
_MAX_SCREEN_LINES: Final = 25
_MAX_CHARACTERS: Final = 300


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceReading:
    """What one source says now."""

    source: str
    """``signal``, ``title``, ``screen``, ``input box`` or ``process``."""
    says: str
    """In words; says so when it says nothing."""
    decided_by: str = ""
    """The rule, where one fits."""
    where: str = ""
    """File and line of the rule, or the file of the signal."""
    evidence: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """Why an execution is shown as it is."""

    execution: Execution
    state: str
    """The word that screens show."""
    note: str = ""
    source: str = ""
    """The signal or rule that decided the present state."""
    decided: Mapping[str, object] = field(default_factory=dict)
    """Payload of the event that decided, with the evidence of each source at that look."""
    readings: tuple[SourceReading, ...] = ()
    """What each source says now; only for an agent in its own screen that runs."""
    screen: tuple[str, ...] = ()
    """The last lines of its screen now, without secrets."""
    rule_files: tuple[str, ...] = ()
    """Files with rules for its agent, the first asked first."""
    entries: tuple[str, ...] = ()
    """The last entries of its journal or its stream, one line each, oldest first."""


class ExplainService:
    """Says why a task's newest execution is shown as it is."""

    def __init__(
        self,
        *,
        executions: ExecutionRepository,
        sightings: SightingService,
        events: EventRepository,
        agents: AgentService,
        dependencies: DependencyRepository,
        pauses: QueuePauseRepository,
        claims: ClaimRepository,
        settings: SettingsService,
        paths: Paths,
        clock: Clock,
    ) -> None:
        self._dependencies = dependencies
        self._pauses = pauses
        self._claims = claims
        self._settings = settings
        self._executions = executions
        self._sightings = sightings
        self._events = events
        self._agents = agents
        self._paths = paths
        self._clock = clock

    async def explain(self, task_id: TaskId) -> Explanation:
        """Return why the newest execution of a task is in its state.

        Raises:
            ConflictError: The task was never run.
            NotFoundError: Its agent is gone.
        """
        found = await self._sightings.add_to(await self._executions.of_task(task_id, limit=1))
        if not found:
            raise ConflictError("it was never run, so there is no state to explain", hint="r on the card runs it")
        execution = found[0]
        waits_for = awaited_text(await self._dependencies.of_task(task_id))
        source, note = await self._decided(execution, waits_for)
        agent = await self._agents.get(execution.agent_id)
        events = await self._events.last(execution_id=execution.id, types=_STATE_EVENTS, limit=_MAX_EVENTS)
        changes = [event for event in events if event.type is EventType.STATUS_CHANGE]
        explanation = Explanation(
            execution=execution,
            state=execution.state_label(self._clock.now(), waits_for=waits_for, parked_until=agent.parked_until)[1],
            note=note,
            source=source,
            decided=changes[-1].payload if changes and execution.activity is not None else {},
            entries=tuple(_event_line(event) for event in events)
            if execution.mode.is_conversation and events
            else await asyncio.to_thread(_journal_tail, execution),
        )
        if execution.mode is not ExecutionMode.TMUX or not execution.status.is_live:
            return explanation
        return await self._with_look(explanation, agent)

    async def _decided(self, execution: Execution, waits_for: str) -> tuple[str, str]:
        """Return the signal that decides the state of an execution, and what it says."""
        note = execution.activity_note or execution.error or ""
        match execution.live_state:
            case LiveState.UNKNOWN if execution.sighting.last_seen_at is not None:
                return _UNSEEN, note
            case LiveState.STUCK:
                return "its host, which looks for what is left of it", execution.error or ""
            case LiveState.PAUSED:
                return "its host, which halted its processes", note
            case LiveState.STOPPING:
                return "a stop that was asked for", note
            case LiveState.VERIFYING:
                return "the command that its work has to pass", note
            case LiveState.FINALIZING:
                return "the journal of its host: all its processes are gone", note
        if execution.status is ExecutionStatus.QUEUED:
            return await self._queued(execution, note, waits_for)
        if execution.end_reason is not None:
            return _END_SOURCES.get(execution.end_reason, _JOURNAL), note
        return execution.activity_source or _JOURNAL, note

    async def _queued(self, execution: Execution, note: str, waits_for: str) -> tuple[str, str]:
        """Return what keeps a queued execution from starting: what a person sees first comes first."""
        agent, now = await self._agents.get(execution.agent_id), self._clock.now()
        if execution.live_state is LiveState.NEEDS_YOU:
            return execution.activity_source or "approval", note
        is_time = execution.not_before is not None and execution.not_before <= now
        if execution.wait_reason is not None and not is_time:
            return _WAIT_SOURCES[execution.wait_reason], note
        if agent.parked_until is not None and agent.parked_until > now:
            return f"{agent.slug} is parked", agent.park_note or ""
        if waits_for:
            return DEPENDENCY_SOURCE, f"starts after {waits_for}"
        if agent.off_words:
            return "the registry of agents", agent.off_words
        if await self._pauses.get() is not None:
            return "the pause of the queue", note
        if self._sightings.worker_seen_at() is not None:
            return "the worker, which is not at work", "`agentmon` or a run brings one back"
        limits = await self._settings.worker()
        full = await self._claims.find_full(
            execution.id, max_running=limits.max_running, park_after=limits.park_after_failures, at=now
        )
        if full == "folder":
            holder = await self._claims.find_folder_holder(execution.task_id)
            return "the limit of runs at one time", folder_words(holder)
        return ("its turn in the queue", note) if full is None else ("the limit of runs at one time", _FULL_WORDS[full])

    async def _with_look(self, explanation: Explanation, agent: Agent) -> Explanation:
        execution = explanation.execution
        own_folder = self._paths.config_dir / "screens"
        try:
            rules = find_agent_rules(agent.slug, agent.binary_path, own_folder=own_folder)
            problem = ""
        except AgentmonError as error:
            rules, problem = find_agent_rules(agent.slug, agent.binary_path), str(error)
        readings = [SourceReading(source="rules", says=problem)] if problem else []
        readings += await asyncio.to_thread(_signal_readings, rules, execution, agent)
        screen = ScreenText.of("", [])
        try:
            screen = await self._look(execution)
        except AgentmonError as error:
            readings.append(SourceReading(source="screen", says=f"cannot be seen: {error}"))
        else:
            readings += _screen_readings(rules, screen)
        return Explanation(
            execution=execution,
            state=explanation.state,
            note=explanation.note,
            source=explanation.source,
            decided=explanation.decided,
            readings=tuple(readings),
            screen=tuple(redact(line) for line in screen.lines[-_MAX_SCREEN_LINES:]),
            rule_files=tuple(dict.fromkeys(rule.where.rpartition(":")[0] for rule in rules.rules)),
            entries=explanation.entries,
        )

    async def _look(self, execution: Execution) -> ScreenText:
        tmux = Tmux(self._paths.tmux_socket)
        try:
            looks = await tmux.look_at_panes([])
            pane = looks.panes.get(execution.tmux_session_name or "")
            if pane is None:
                raise ConflictError("its pane is not there")
            looks = await tmux.look_at_panes([pane.pane_id])
            return ScreenText.of(pane.title, looks.screens.get(pane.pane_id, ()))
        finally:
            tmux.close()


def folder_words(holder: int | None) -> str:
    """Return which task's run a queued one waits for, since both would work in one folder, and how not to."""
    who = "another agent" if holder is None else f"#{holder}"
    return f"{who} works in its folder; {FOLDER_HINT}"


def _signal_readings(rules: ScreenRules, execution: Execution, agent: Agent) -> list[SourceReading]:
    readings = []
    if execution.pid is not None and is_halted(execution.pid):
        readings.append(SourceReading(source="process", says="halted by a signal"))
    if not rules.signal:
        return [*readings, SourceReading(source="signal", says="this agent gives none beside its screen")]
    folder = ExecutionFolder(Path(execution.log_file_path or "").parent)
    config = agent.session_config
    environ = (dict(config.environment) if config is not None else {}) | dict(folder.read_environment() or {})
    finding = read_signal(rules.signal, environ, execution.pid) if execution.pid is not None else None
    if finding is None:
        return [*readings, SourceReading(source="signal", says="nothing yet", decided_by=rules.signal)]
    says = finding.state.value + (f": {finding.note}" if finding.note else "")
    return [
        *readings,
        SourceReading(
            source="signal", says=says, decided_by=finding.source, where=finding.where, evidence=finding.evidence
        ),
    ]


def _screen_readings(rules: ScreenRules, screen: ScreenText) -> list[SourceReading]:
    if rules is NO_RULES:
        return [SourceReading(source="screen", says="there are no rules for this agent")]
    readings = []
    for source, finding in (("title", read_title(rules, screen)), ("screen", read_screen(rules, screen))):
        if finding is None:
            shown = f" ({plain_line(redact(screen.title), max_characters=80)})" if source == "title" else ""
            readings.append(SourceReading(source=source, says=f"no rule fits{shown}"))
            continue
        says = finding.state.value + (f": {finding.note}" if finding.note else "")
        readings.append(
            SourceReading(
                source=source, says=says, decided_by=finding.source, where=finding.where, evidence=finding.evidence
            )
        )
    inside = box_text(rules, screen)
    words = "not seen" if inside is None else "empty" if not inside else plain_line(redact(inside), max_characters=80)
    return [*readings, SourceReading(source="input box", says=words)]


def _event_line(event: Event) -> str:
    payload = {name: content for name, content in event.payload.items() if content not in (None, "", [])}
    return _line(f"{event.type.value} {json.dumps(payload, ensure_ascii=False)}")


def _journal_tail(execution: Execution) -> tuple[str, ...]:
    path = ExecutionFolder(Path(execution.log_file_path or "").parent).journal
    try:
        with open_at_once(path) as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - _TAIL_BYTES))
            lines = file.read(_TAIL_BYTES).split(b"\n")
    except OSError:
        return ()
    return tuple(_line(line.decode("utf-8", "replace")) for line in lines if line)[-_MAX_ENTRIES:]


def _line(text: str) -> str:
    return plain_line(redact(text), max_characters=_MAX_CHARACTERS)
