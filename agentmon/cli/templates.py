"""``agentmon template …``: what new tasks are filled with."""

from typing import Annotated

import typer

from agentmon.bootstrap import Services
from agentmon.cli.columns import table, terminal_width
from agentmon.cli.context import JsonOption, WorkspaceOption, numbered_task, with_services, with_workspace
from agentmon.cli.json_form import json_form
from agentmon.cli.output import say, say_document, tell
from agentmon.cli.registration import register, register_default
from agentmon.domain.plain_text import plain_line, plain_lines
from agentmon.domain.tasks import Workspace, draft_of
from agentmon.domain.templates import TaskTemplate, written_form
from agentmon.services.templates import TemplateShelf

group = typer.Typer(rich_markup_mode=None)

NameArgument = Annotated[str, typer.Argument(metavar="NAME", help="Its name: that of its file without .toml.")]


def templates(context: typer.Context, folder: WorkspaceOption = None, as_json: JsonOption = False) -> None:
    """List, show, save and remove task templates.

    Examples:
      agentmon template
      agentmon template show bug
      agentmon template save bug --from 12
    """
    if context.invoked_subcommand is None:
        list_templates(folder=folder, as_json=as_json)


def list_templates(folder: WorkspaceOption = None, as_json: JsonOption = False) -> None:
    """List the templates, and the files that are none, with the reason.

    They are files of your own in the folder templates beside config.toml, and in .agentmon/templates of the project;
    yours hide those of the same name. One of a project cannot bring an environment, a schedule, a folder, a command to
    verify with, or what a program is given.

    Examples:
      agentmon template list
    """

    async def read(services: Services, workspace: Workspace) -> TemplateShelf:
        return await services.templates.list(workspace)

    shelf = with_workspace(folder, read)
    if as_json:
        problems = [{"name": one.name, "file": one.file, "reason": one.reason} for one in shelf.problems]
        say_document({"templates": [json_form(one) for one in shelf.templates], "problems": problems})
    elif shelf.templates:
        rows = [
            (one.name, "project" if one.is_shared else "own", _program_words(one), plain_line(one.title or "-"))
            for one in shelf.templates
        ]
        say("\n".join(table(("NAME", "FROM", "PROGRAM", "TITLE"), rows, terminal_width())))
    else:
        tell("no templates; agentmon template save NAME --from NUMBER makes one from a task")
    for problem in shelf.problems:
        tell(f"warning: {problem.file}: {problem.reason}")


def show(name: NameArgument, folder: WorkspaceOption = None, as_json: JsonOption = False) -> None:
    """Show what a new task would be filled with.

    Examples:
      agentmon template show bug
    """

    async def read(services: Services, workspace: Workspace) -> TaskTemplate:
        return await services.templates.get(workspace, name)

    template = with_workspace(folder, read)
    if as_json:
        say_document(json_form(template))
        return
    say(f"{template.name} ({'of the project' if template.is_shared else 'your own'})")
    for key, value in written_form(template).items():
        text = plain_lines(str(value)) if not isinstance(value, list) else " ".join(str(one) for one in value)
        say(f"  {key + ':':<13}{text.replace(chr(10), chr(10) + ' ' * 15)}")
    if template.left_out:
        tell(f"warning: not taken, since it is a template of a project: {', '.join(template.left_out)}")


def save(
    name: NameArgument,
    *,
    number: Annotated[str, typer.Option("--from", metavar="NUMBER", help="The task that it is made from.")],
    folder: WorkspaceOption = None,
    is_forced: Annotated[bool, typer.Option("--force", help="Replace the one of the same name.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Save a task as a template of your own.

    What it waits for, its parent, due date and budget are not part of it. {{title}} in any text of the file stands
    for the title of the new task.

    Examples:
      agentmon template save bug --from 12
      agentmon task add --template bug "The login fails"
    """

    async def work(services: Services, workspace: Workspace) -> str:
        task = await numbered_task(services, workspace, number)
        return str(await services.templates.save(name, draft_of(task), replaces=is_forced, actor=services.actor))

    file = with_workspace(folder, work)
    if as_json:
        say_document({"name": name.strip(), "file": file})
    else:
        say(f"saved {name.strip()} in {file}")


def remove(name: NameArgument, as_json: JsonOption = False) -> None:
    """Remove a template of your own.

    Examples:
      agentmon template remove bug
    """

    async def work(services: Services) -> str:
        return str(await services.templates.remove(name, actor=services.actor))

    file = with_services(work)
    if as_json:
        say_document({"name": name.strip(), "file": file})
    else:
        say(f"removed {file}")


def _program_words(template: TaskTemplate) -> str:
    return plain_line(template.program or " ".join(template.command) or "-", max_characters=30)


register_default(group, templates)
register(group, "list", list_templates)
register(group, "show", show)
register(group, "save", save)
register(group, "remove", remove)
