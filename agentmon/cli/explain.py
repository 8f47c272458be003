"""``agentmon explain``: why a task is shown as it is."""

from agentmon.bootstrap import Services
from agentmon.cli.context import JsonOption, NumberArgument, WorkspaceOption, numbered_task, with_workspace
from agentmon.cli.json_form import json_form
from agentmon.cli.output import say, say_document
from agentmon.domain.tasks import Task, Workspace
from agentmon.services.explaining import Explanation, SourceReading


def explain(number: NumberArgument, folder: WorkspaceOption = None, as_json: JsonOption = False) -> None:
    """Explain the state of a task's newest run.

    It names the signal or rule that decided, and the state by each source. Rules for an agent's own screen can be
    changed without a release: put a file into the folder screens beside config.toml.

    Examples:
      agentmon explain 12
      agentmon explain 12 --json
    """

    async def work(services: Services, workspace: Workspace) -> tuple[Task, Explanation]:
        task = await numbered_task(services, workspace, number)
        return task, await services.explaining.explain(task.id)

    task, explanation = with_workspace(folder, work)
    if as_json:
        say_document(json_form(explanation))
    else:
        say("\n".join(explanation_lines(task, explanation)))


def explanation_lines(task: Task, explanation: Explanation) -> list[str]:
    """Return the explanation for a person, one fact a line."""
    lines = [f"#{task.number} {explanation.state}" + (f": {explanation.note}" if explanation.note else "")]
    lines.append(f"  decided by  {explanation.source}")
    where, evidence = explanation.decided.get("where"), explanation.decided.get("evidence")
    lines += [f"  at          {where}"] if where else []
    lines += [f"  since it said  {evidence}"] if evidence else []
    if explanation.readings:
        lines += ["", "  what each source says now:"]
        lines += [line for reading in explanation.readings for line in _reading_lines(reading)]
    if explanation.rule_files:
        lines += ["", "  rules, the first file asked first:", *(f"    {path}" for path in explanation.rule_files)]
    if explanation.screen:
        lines += ["", "  the end of its screen:", *(f"    | {line}" for line in explanation.screen)]
    if explanation.entries:
        lines += ["", "  what was recorded last:", *(f"    {entry}" for entry in explanation.entries)]
    return lines


def _reading_lines(reading: SourceReading) -> list[str]:
    lines = [f"    {reading.source + ':':<11}{reading.says}"]
    if reading.decided_by:
        lines.append(f"      {reading.decided_by}" + (f", {reading.where}" if reading.where else ""))
    if reading.evidence:
        lines.append(f"      saw: {reading.evidence}")
    return lines
