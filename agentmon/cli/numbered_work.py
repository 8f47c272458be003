"""One thing done to several tasks that a person named: a failure of one is told and does not hold up the others."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Annotated, TypeVar

import typer

from agentmon.cli.json_form import json_form
from agentmon.cli.output import tell_error
from agentmon.domain.errors import AgentmonError, UsageError
from agentmon.domain.executions import Execution
from agentmon.domain.tasks import Task

Outcome = TypeVar("Outcome")

NumbersArgument = Annotated[
    list[str] | None, typer.Argument(metavar="NUMBER", help="The tasks, such as 12 or '#12'.", show_default=False)
]


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskExecution:
    """A task and the execution that came of what was asked."""

    task: Task
    execution: Execution


async def for_each_number(
    numbers: Sequence[str], work: Callable[[str], Awaitable[Outcome]]
) -> tuple[list[Outcome], int]:
    """Do the work for one number after the other; return what came of it, and how many failed, which has been told.

    Args:
        numbers: As they were typed; one that is there twice counts once.
        work: What to do with a number.

    Raises:
        AgentmonError: The work failed for the only number.
    """
    different = list(dict.fromkeys(number.strip().removeprefix("#") for number in numbers))
    outcomes = []
    failed = 0
    for number in different:
        try:
            outcomes.append(await work(number))
        except AgentmonError as error:
            if len(different) == 1:
                raise
            failed += 1
            name = f"#{number}"
            tell_error(str(error) if name in str(error) else f"{name}: {error}", error.hint)
    return outcomes, failed


def require_one_for_key(key: str | None, *, is_one: bool) -> None:
    """Refuse an idempotency key for several tasks.

    Raises:
        UsageError: It is given, and not for exactly one task.
    """
    if key is not None and not is_one:
        raise UsageError("an idempotency key is for one request", hint="name one task, and give each a key of its own")


def executions_form(outcomes: Sequence[TaskExecution], *, is_one: bool) -> object:
    """Return the executions as a JSON array; the only one by itself when one was asked for."""
    executions = [outcome.execution for outcome in outcomes]
    return json_form(executions[0] if is_one else executions)
