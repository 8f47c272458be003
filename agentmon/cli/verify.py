"""``agentmon verify``: whether the work of a run passes what it has to pass."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from agentmon.bootstrap import Services
from agentmon.cli import exit_codes
from agentmon.cli.context import (
    JsonOption,
    NumberArgument,
    RunOption,
    WorkspaceOption,
    chosen_execution,
    numbered_task,
    with_workspace,
)
from agentmon.cli.json_form import json_form
from agentmon.cli.output import flush, say, say_document, tell
from agentmon.domain.plain_text import plain_line
from agentmon.domain.tasks import Workspace
from agentmon.domain.verifications import Verification, VerificationStatus
from agentmon.logs.line_text import plain_text
from agentmon.runners.execution_folder import open_at_once


def verify(
    number: NumberArgument,
    folder: WorkspaceOption = None,
    run: RunOption = None,
    is_log: Annotated[
        bool, typer.Option("--log", help="Show the newest verification and its output; run nothing.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Run the verification command of a task's newest run now.

    In the folder of that run. The command is --verify of the task, else of its program, else the setting
    workspace.verify, else [verification] in .agentmon/agents.toml. The worker runs it whenever a run succeeds; only
    with a pass the run counts as done. The exit code is 1 when it does not pass. Run and card stay as they are.

    Examples:
      agentmon verify 12
      agentmon verify 12 --log
      agentmon verify 12 --run 2 --json
    """

    async def work(services: Services, workspace: Workspace) -> Verification:
        task = await numbered_task(services, workspace, number)
        execution = await chosen_execution(services, task, run)
        if is_log:
            return await services.verifications.newest(task, execution)
        command = await services.verifications.command(task, execution)
        if not as_json:
            tell(f"{plain_line(command)}  in {execution.working_dir}")
        return await services.verifications.verify(
            task, execution, command, actor=services.actor, on_output=None if as_json else _print
        )

    verification = with_workspace(folder, work)
    output = _output(verification) if is_log else ""
    if as_json:
        form = json_form(verification)
        shown = {"verdict": verification.verdict.text} | ({"output": output} if is_log else {})
        say_document(form | shown if isinstance(form, dict) else form)
    else:
        if output:
            say(output)
        say(verification.verdict.text)
        if verification.failure:
            tell(verification.failure)
    if verification.status not in {VerificationStatus.PASSED, VerificationStatus.RUNNING}:
        raise typer.Exit(exit_codes.FAILED)


def _print(output: bytes) -> None:
    flush()
    sys.stdout.buffer.write(output)
    sys.stdout.buffer.flush()


def _output(verification: Verification) -> str:
    with open_at_once(Path(verification.log_path)) as file:
        return "\n".join(plain_text(line.rstrip(b"\n")) for line in file)
