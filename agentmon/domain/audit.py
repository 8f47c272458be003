"""The audit trail as sentences: who did what, in the words of a person, the same on screens and the command line."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Final

from agentmon.domain.budgets import ALL_PERCENT
from agentmon.domain.clock import in_zone
from agentmon.domain.events import Actor, ActorType, TaskEvent, TaskEventType
from agentmon.domain.executions import CommandType
from agentmon.domain.ids import LOCAL_USER_ID
from agentmon.domain.live_state import end_label
from agentmon.domain.plain_text import plain_line
from agentmon.domain.task_status import TaskStatus

_LONGEST_PART: Final = 120
_FIELD_WORDS: Final = {
    "assignee_agent_id": "the program",
    "input_context": "what the program is given",
    "due_at": "the due date",
    "parent_task_id": "the parent",
    "cron": "the schedule",
    "cron_zone": "the time zone of the schedule",
}


def actor_name(actor: Actor) -> str:
    """Return who an actor is for the person at this machine."""
    match actor.type:
        case ActorType.USER:
            return "You" if actor.id in {None, LOCAL_USER_ID} else "A user"
        case ActorType.AGENT:
            return "An agent"
        case ActorType.SYSTEM:
            return "agentmon"


def event_sentence(event: TaskEvent) -> str:
    """Return what happened, without who did it: ``moved it from Todo to In progress (its run started)``.

    It is one line that is safe to draw letter for letter; a part of the payload that is missing is passed over.
    """
    sentence = _SENTENCES[event.event_type]
    return sentence if isinstance(sentence, str) else sentence(event.payload)


def _created(payload: Mapping[str, object]) -> str:
    other = payload.get("alternative_to")
    return f"made the task, as an alternative to #{_part(other)}" if other else "made the task"


def _edited(payload: Mapping[str, object]) -> str:
    changed = payload.get("changed")
    names = [str(name) for name in changed] if isinstance(changed, Sequence) and not isinstance(changed, str) else []
    parts = []
    for name in ("title", "priority"):
        change = payload.get(name)
        if name not in names or not isinstance(change, Mapping):
            continue
        before, after = _part(change.get("from")), _part(change.get("to"))
        told = f"renamed it from “{before}” to “{after}”"
        parts.append(told if name == "title" else f"changed the priority from P{before} to P{after}")
        names.remove(name)
    labels = payload.get("labels")
    if "labels" in names and isinstance(labels, Mapping):
        parts += _label_changes(labels.get("from"), labels.get("to"))
        names.remove("labels")
    if names:
        parts.append("changed " + ", ".join(_FIELD_WORDS.get(name, f"the {_part(name)}") for name in names))
    return "; ".join(parts) or "changed the task"


def _label_changes(before: object, after: object) -> list[str]:
    old, new = ([_part(label) for label in one] if isinstance(one, list | tuple) else [] for one in (before, after))
    told = (
        ("added", [label for label in new if label not in old]),
        ("took away", [label for label in old if label not in new]),
    )
    return [f"{verb} " + ", ".join(f"#{label}" for label in labels) for verb, labels in told if labels]


def _ended(payload: Mapping[str, object]) -> str:
    try:
        words = f"recorded the end of the run: {end_label(payload)}"
    except ValueError:
        return "recorded the end of the run"
    error = payload.get("error")
    return f"{words}, {_part(error)}" if error else words


def _with_cause(words: str, payload: Mapping[str, object]) -> str:
    cause = payload.get("cause")
    return f"{words} ({_part(cause)})" if cause else words


def _column(value: object) -> str:
    try:
        return TaskStatus(str(value)).label
    except ValueError:
        return _part(value)


def _part(value: object) -> str:
    return plain_line(str(value), max_characters=_LONGEST_PART)


def _moved(payload: Mapping[str, object]) -> str:
    return _with_cause(f"moved it from {_column(payload.get('from'))} to {_column(payload.get('to'))}", payload)


def _archived(payload: Mapping[str, object]) -> str:
    return _with_cause("archived the task", payload)


def _dependency_added(payload: Mapping[str, object]) -> str:
    return f"made it wait for #{_part(payload.get('on'))}"


def _dependency_removed(payload: Mapping[str, object]) -> str:
    return f"took away that it waits for #{_part(payload.get('on'))}"


def _started(payload: Mapping[str, object]) -> str:
    retry_count = payload.get("retry_count")
    return f"started a run, retry {_part(retry_count)}" if retry_count else "started a run"


def _stop_requested(payload: Mapping[str, object]) -> str:
    match payload.get("type"):
        case CommandType.KILL:
            words = "asked to kill the run"
        case CommandType.INTERRUPT:
            words = "interrupted the agent, to end the run"
        case _:
            words = "asked the run to stop"
    reason = payload.get("reason")
    return f"{words}: {_part(reason)}" if reason else words


def _requeued(payload: Mapping[str, object]) -> str:
    retry = f"retry {_part(payload.get('retry_count'))} of {_part(payload.get('max_retries'))}"
    return f"queued the run again, {retry}"


def _queued(payload: Mapping[str, object]) -> str:
    not_before = payload.get("not_before")
    return f"queued a run that starts at {_time(not_before)} at the earliest" if not_before else "queued a run"


def _parked(payload: Mapping[str, object]) -> str:
    until = payload.get("until")
    words = f"parked the run until {_time(until)}" if until else "parked the run"
    return f"{words}: {_part(payload.get('text'))}"


def _held(payload: Mapping[str, object]) -> str:
    return f"noted that the run {_part(payload.get('title'))}"


def _agent_parked(payload: Mapping[str, object]) -> str:
    return f"parked {_part(payload.get('agent'))} until {_time(payload.get('until'))}: {_part(payload.get('text'))}"


def _agent_released(payload: Mapping[str, object]) -> str:
    cause = f": {_part(payload['cause'])}" if payload.get("cause") else ""
    return f"let {_part(payload.get('agent'))} start again{cause}"


def _audit_thinned(payload: Mapping[str, object]) -> str:
    return f"removed lines of the audit trail from before {_time(payload.get('before'))}"


def _agent_changed(payload: Mapping[str, object]) -> str:
    agent, capability = _part(payload.get("agent")), payload.get("capability")
    what = f"the capability {_part(capability)} of {agent}" if capability else agent
    verb = _AGENT_VERBS.get(str(payload.get("change")))
    if verb is not None:
        return f"{verb} {what}"
    changes = {name: change for name, change in payload.items() if isinstance(change, Mapping) and "to" in change}
    if changes.keys() == {"is_active"}:
        return f"switched {what} {'on' if changes['is_active'].get('to') else 'off'}"
    if not changes:
        return f"changed {what}"
    told = [_field_changed(name, change) for name, change in list(changes.items())[:_MOST_FIELDS_TOLD]]
    more = ", …" if len(changes) > _MOST_FIELDS_TOLD else ""
    return f"changed of {what}: {', '.join(told)}{more}"


def _field_changed(name: str, change: Mapping[str, object]) -> str:
    shown = _AGENT_FIELD_WORDS.get(name, name.replace("_", " "))
    before, after = change.get("from"), change.get("to")
    if name == "max_concurrent":
        before, after = before or "no limit", after or "no limit"
    if any(isinstance(end, list | Mapping) or len(str(end)) > _SHORT_VALUE for end in (before, after)):
        return shown
    if before == after:
        return f"{shown} stays {_end(after)}"
    return f"{shown} from {_end(before)} to {_end(after)}"


def _end(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "nothing" if value is None or value == "" else _part(value)


def _setting_changed(payload: Mapping[str, object]) -> str:
    before = payload.get("from")
    told = "" if before is None else f" from {_part(before)}"
    workspace = payload.get("workspace")
    where = f" of {_part(workspace)}" if workspace else ""
    return f"set {_part(payload.get('key'))}{where}{told} to {_part(payload.get('to'))}"


def _workspace_moved(payload: Mapping[str, object]) -> str:
    return f"moved the workspace {_part(payload.get('from'))} to {_part(payload.get('to'))}"


def _undone(payload: Mapping[str, object]) -> str:
    what = "changes of a tool call" if payload.get("operation_id") else "changes of a run"
    done = f"redid {what}" if payload.get("is_redo") else f"undid {what}"
    return done + (", finished after it was broken off" if payload.get("is_late") else "")


def _log_removed(payload: Mapping[str, object]) -> str:
    reason = "it was too old" if payload.get("reason") == "age" else "all logs together were too large"
    return f"removed the log of a run, since {reason}"


def _passed_over(payload: Mapping[str, object]) -> str:
    return f"did not queue the run of {_time(payload.get('time'))}: {_part(payload.get('reason'))}"


def _queue_paused(payload: Mapping[str, object]) -> str:
    return "paused the queue and halted what runs" if payload.get("halts_running") else "paused the queue"


def _asked(payload: Mapping[str, object]) -> str:
    cause = payload.get("cause")
    again = f" – {_part(cause)}" if cause else ""
    return f"noted that a decision is needed: {_part(payload.get('title'))}{again}"


def _decided(payload: Mapping[str, object]) -> str:
    status = str(payload.get("status"))
    verb = {"allowed": "allowed", "denied": "denied", "answered": "answered", "expired": "denied"}.get(
        status, "decided"
    )
    reach = {"session": " for the whole session", "always": " from now on"}.get(str(payload.get("scope")), "")
    reason = payload.get("reason")
    return f"{verb}{reach}: {_part(payload.get('title'))}" + (f" ({_part(reason)})" if reason else "")


def _withdrawn(payload: Mapping[str, object]) -> str:
    cause = payload.get("cause")
    if cause:
        return f"noted of a request: {_part(payload.get('title'))} – {_part(cause)}"
    return f"noted that nobody asks any more: {_part(payload.get('title'))}"


def _rule_changed(payload: Mapping[str, object]) -> str:
    verb = payload.get("change") or "changed"
    named = [payload.get(name) for name in ("decision", "tool", "path", "command_prefix")]
    return f"{_part(verb)} the rule “{_part(' '.join(str(part) for part in named if part))}”"


def _budget_changed(payload: Mapping[str, object]) -> str:
    verb = payload.get("change") or "changed"
    action = {"warn": ", to warn only", "block": ", to start nothing more", "stop": ", to stop what runs"}
    return f"{_part(verb)} {_part(payload.get('text'))}{action.get(str(payload.get('action')), '')}"


def _budget_reached(payload: Mapping[str, object]) -> str:
    percent = payload.get("percent")
    share = "all" if percent == ALL_PERCENT else f"{_part(percent)} %"
    return f"noted that {share} of {_part(payload.get('text'))}, is used: {_part(payload.get('used'))}"


def _message_sent(payload: Mapping[str, object]) -> str:
    words = "typed into the run's terminal" if payload.get("type") == CommandType.TYPE else "told the agent something"
    return _with_cause(words, payload)


def _runs_overlap(payload: Mapping[str, object]) -> str:
    return f"noted that its run gets in the way of another: {_part(payload.get('text'))}"


def _edits_discarded(payload: Mapping[str, object]) -> str:
    return f"noted that #{_part(payload.get('other'))} discarded edits of its run in {_files(payload.get('files'))}"


def _worktree_restored(payload: Mapping[str, object]) -> str:
    return f"restored the worktree with {_files(payload.get('files'))} beyond its branch"


def _files(count: object) -> str:
    return "1 file" if count == 1 else f"{_part(count)} files"


def _agent_commanded(payload: Mapping[str, object]) -> str:
    match payload.get("type"):
        case CommandType.INTERRUPT:
            return _with_cause("interrupted the agent", payload)
        case CommandType.FINISH:
            return "let the conversation end"
        case CommandType.SET_MODEL:
            return f"switched the agent to the model {_part(payload.get('model'))}"
        case CommandType.SET_PERMISSION_MODE:
            return f"switched the agent to the permission mode {_part(payload.get('permission_mode'))}"
        case _:
            return "gave the agent a command"


def _merged(payload: Mapping[str, object]) -> str:
    commits = f"{str(payload.get('from'))[:10]} → {str(payload.get('commit'))[:10]}"
    words = f"merged {_part(payload.get('branch'))} into {_part(payload.get('into'))} by {_part(payload.get('how'))}"
    return _with_cause(f"{words}: {_part(commits)}", payload)


def _merge_undone(payload: Mapping[str, object]) -> str:
    return _with_cause(f"reverted the merge with commit {_part(payload.get('commit'))[:10]}", payload)


def _merge_broken_off(payload: Mapping[str, object]) -> str:
    return f"undid a merge into {_part(payload.get('into'))} that a kill had broken off"


def _pull_request_opened(payload: Mapping[str, object]) -> str:
    number = payload.get("number")
    verb = "pushed the branch" if number is None else f"opened pull request {_part(number)}"
    return f"{verb}: {_part(payload.get('url'))}"


def _time(value: object) -> str:
    try:
        moment = datetime.fromisoformat(str(value))
    except ValueError:
        return _part(value)
    return in_zone(moment).strftime("%Y-%m-%d %H:%M:%S %Z")


_MOST_FIELDS_TOLD: Final = 3
_SHORT_VALUE: Final = 60
_AGENT_FIELD_WORDS: Final = {
    "max_concurrent": "the limit",
    "binary_path": "the program",
    "base_args": "its first words",
    "env_allowlist": "its environment",
    "working_dir": "the folder",
    "args_schema": "the arguments",
    "command_tokens": "the words",
    "timeout_s": "the seconds it may take",
    "is_enabled": "whether it is on",
}
_AGENT_VERBS: Final = {
    "added": "added",
    "learned": "took over what was learned of",
    "copied": "added a copy:",
    "removed": "removed",
    "restored": "brought back",
    "refreshed": "brought up to its preset:",
    "imported": "imported",
    "trusted": "trusted a workspace's file with",
    "untrusted": "no longer trusts a workspace's file with",
}

_SENTENCES: Final[Mapping[TaskEventType, str | Callable[[Mapping[str, object]], str]]] = {
    TaskEventType.TASK_CREATED: _created,
    TaskEventType.TASK_EDITED: _edited,
    TaskEventType.TASK_MOVED: _moved,
    TaskEventType.TASK_DELETED: "deleted the task",
    TaskEventType.WORKTREE_MADE: "made a worktree",
    TaskEventType.WORKTREE_REMOVED: "removed the worktree",
    TaskEventType.BRANCH_MERGED: _merged,
    TaskEventType.MERGE_UNDONE: _merge_undone,
    TaskEventType.MERGE_BROKEN_OFF: _merge_broken_off,
    TaskEventType.PULL_REQUEST_OPENED: _pull_request_opened,
    TaskEventType.WORKTREE_RESTORED: _worktree_restored,
    TaskEventType.TASK_RESTORED: "brought the task back",
    TaskEventType.TASK_ARCHIVED: _archived,
    TaskEventType.TASK_UNARCHIVED: "brought the task back from the archive",
    TaskEventType.DEPENDENCY_ADDED: _dependency_added,
    TaskEventType.DEPENDENCY_REMOVED: _dependency_removed,
    TaskEventType.EXECUTION_QUEUED: _queued,
    TaskEventType.EXECUTION_STARTED: _started,
    TaskEventType.EXECUTION_STOP_REQUESTED: _stop_requested,
    TaskEventType.EXECUTION_ENDED: _ended,
    TaskEventType.EXECUTION_REQUEUED: _requeued,
    TaskEventType.CHANGES_UNDONE: _undone,
    TaskEventType.EXECUTION_HASTENED: "let the waiting run start at once",
    TaskEventType.EXECUTION_HELD: _held,
    TaskEventType.EXECUTION_PARKED: _parked,
    TaskEventType.EXECUTION_LOG_REMOVED: _log_removed,
    TaskEventType.SCHEDULE_PASSED_OVER: _passed_over,
    TaskEventType.QUEUE_PAUSED: _queue_paused,
    TaskEventType.QUEUE_RESUMED: "let the queue go on",
    TaskEventType.AGENT_PARKED: _agent_parked,
    TaskEventType.AGENT_RELEASED: _agent_released,
    TaskEventType.AGENT_CHANGED: _agent_changed,
    TaskEventType.SETTING_CHANGED: _setting_changed,
    TaskEventType.WORKSPACE_MOVED: _workspace_moved,
    TaskEventType.APPROVAL_ASKED: _asked,
    TaskEventType.APPROVAL_DECIDED: _decided,
    TaskEventType.APPROVAL_WITHDRAWN: _withdrawn,
    TaskEventType.APPROVAL_RULE_CHANGED: _rule_changed,
    TaskEventType.BUDGET_CHANGED: _budget_changed,
    TaskEventType.BUDGET_REACHED: _budget_reached,
    TaskEventType.AUDIT_THINNED: _audit_thinned,
    TaskEventType.RUNS_OVERLAP: _runs_overlap,
    TaskEventType.EDITS_DISCARDED: _edits_discarded,
    TaskEventType.MESSAGE_SENT: _message_sent,
    TaskEventType.MESSAGE_UNHEARD: lambda payload: _with_cause("did not deliver a message", payload),
    TaskEventType.AGENT_COMMANDED: _agent_commanded,
}
