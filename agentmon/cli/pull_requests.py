"""``agentmon pr``: a pull request for a task's branch."""

from typing import Annotated

import typer

from agentmon.bootstrap import Services
from agentmon.cli.context import JsonOption, NumberArgument, WorkspaceOption, numbered_task, with_workspace
from agentmon.cli.json_form import json_form
from agentmon.cli.output import say, say_document, tell
from agentmon.domain.plain_text import plain_line, plain_lines
from agentmon.domain.tasks import Workspace
from agentmon.services.pull_requests import OpenedPullRequest


def open_pull_request(
    number: NumberArgument,
    folder: WorkspaceOption = None,
    title: Annotated[
        str | None, typer.Option("--title", metavar="TEXT", help="The title; the task's by default.")
    ] = None,
    body: Annotated[
        str | None, typer.Option("--body", metavar="TEXT", help="The text; the agent's last message by default.")
    ] = None,
    base: Annotated[
        str | None, typer.Option("--base", metavar="BRANCH", help="The branch to merge into; the base by default.")
    ] = None,
    *,
    is_draft: Annotated[bool, typer.Option("--draft", help="Open it as a draft.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Push a task's branch and open a pull request.

    It takes gh or glab; without either it only pushes. Uncommitted work of its agent is committed first. Run it again
    to push more commits. Card and task page show checks and review.

    Examples:
      agentmon pr 12
      agentmon pr 12 --draft --title "Fix the login"
    """

    async def work(services: Services, workspace: Workspace) -> OpenedPullRequest:
        task = await numbered_task(services, workspace, number)
        return await services.pull_requests.open(
            task, title=title, body=body, base=base, is_draft=is_draft, actor=services.actor
        )

    opened = with_workspace(folder, work)
    if as_json:
        say_document(json_form(opened))
        return
    one, pushed = opened.pull_request, opened.pushed
    if opened.has_committed:
        say(f"committed uncommitted work on {one.branch}")
    say(f"pushed {one.branch} to {plain_line(pushed.address)}")
    if one.number is None:
        if pushed.said:
            say(plain_lines(pushed.said))
        tell("no pull request was opened: neither gh nor glab is installed for this remote")
    else:
        say(f"{'opened' if opened.is_new else 'updated'} {plain_line(one.url)}")
