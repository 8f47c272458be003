"""Logs that are gone: when, and by which setting."""

from agentmon.bootstrap import Services
from agentmon.cli.local_time import local_words
from agentmon.domain.errors import ConflictError
from agentmon.domain.events import TaskEventType
from agentmon.domain.executions import Execution
from agentmon.domain.tasks import Task

_MOST_EVENTS = 100_000
_BY_AGE = ("worker.keep_logs_days", "it was too old")
_BY_SIZE = ("worker.keep_logs_mb", "all logs together were too large")


async def require_log(services: Services, task: Task, execution: Execution) -> None:
    """Return when the log of the execution was not removed.

    Raises:
        ConflictError: It was; the message says when and by which setting.
    """
    if execution.log_removed_at is None:
        return
    key, reason = await _cause(services, task, execution)
    setting = await services.settings.get(key)
    raise ConflictError(
        f"the log of this run was removed {local_words(execution.log_removed_at)}, since {reason}"
        f" ({key} = {setting.value})",
        hint=f"`agentmon settings {key} 0` keeps those that are left; "
        f"`agentmon task history {task.number}` still tells how the run ended",
    )


async def _cause(services: Services, task: Task, execution: Execution) -> tuple[str, str]:
    for event in reversed(await services.audit.of_task(task.id, limit=_MOST_EVENTS)):
        is_removal = event.event_type is TaskEventType.EXECUTION_LOG_REMOVED
        if is_removal and event.payload.get("execution_id") == execution.id:
            return _BY_AGE if event.payload.get("reason") == "age" else _BY_SIZE
    return _BY_SIZE
