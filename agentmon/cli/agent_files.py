"""``agentmon agents export|import|trust|untrust``: agents as files, and the file of a workspace."""

import sys
import termios
from pathlib import Path
from typing import Annotated

import typer

from agentmon.bootstrap import Services
from agentmon.cli import exit_codes
from agentmon.cli.agent_text import file_lines
from agentmon.cli.calling import require_not_called
from agentmon.cli.context import JsonOption, WorkspaceOption, with_services, with_workspace
from agentmon.cli.json_form import json_form
from agentmon.cli.output import flush, say, say_bytes, say_document, tell, tell_error
from agentmon.cli.piped_text import piped_text
from agentmon.domain.agent_files import AgentFileState, ExportedAgents, ImportedAgent, ImportVerdict
from agentmon.domain.errors import UsageError
from agentmon.domain.tasks import Workspace
from agentmon.domain.written_text import text_of
from agentmon.paths import expanded

_LARGEST_BYTES = 4 * 1024 * 1024


def export(
    slugs: Annotated[
        list[str] | None, typer.Argument(metavar="SLUG...", help="Which; those you made or changed by default.")
    ] = None,
    output: Annotated[str | None, typer.Option("--output", "-o", metavar="FILE", help="Write a file instead.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Print agents as TOML, to share them or to keep them with your other files; secrets are left out and named.

    Examples:
      agentmon agents export > agents.toml
      agentmon agents export claude reviewer -o .agentmon/agents.toml
    """
    if output is not None:
        require_not_called("it writes no files", hint="`agentmon agents export > FILE`")
    exported: ExportedAgents = with_services(lambda services: services.agent_files.export(slugs or ()))
    if output is not None:
        _write(expanded(output), exported.text)
    if as_json:
        say_document(json_form(exported))
    elif output is not None:
        say(f"{output}: {', '.join(exported.slugs)}")
    else:
        say_bytes(exported.text.encode())
    for place in exported.left_out:
        tell(f"left out: {place}")


def import_(
    file: Annotated[str, typer.Argument(metavar="FILE", help="A file of `agentmon agents export`; - reads it.")],
    is_replacing: Annotated[
        bool, typer.Option("--replace", help="Agents of the same name become what the file says.")
    ] = False,
    is_dry: Annotated[bool, typer.Option("--dry-run", help="Only tell what would be done.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Take in agents from a file; all of it is looked at before anything is written. No program is started.

    Examples:
      agentmon agents import agents.toml --dry-run
      agentmon agents import agents.toml --replace
    """
    text, place = _read(file)

    async def work(services: Services) -> tuple[ImportedAgent, ...]:
        return await services.agent_files.import_text(
            text, place=place, replaces=is_replacing, is_dry=is_dry, actor=services.actor
        )

    imported = with_services(work)
    if as_json:
        say_document(json_form(imported))
        return
    for one in imported:
        kept = "; --replace makes it what the file says" if one.verdict is ImportVerdict.KEPT else ""
        say(f"{one.slug}: {one.verdict.value}{kept}")
        for note in one.notes:
            tell(f"note: {note}")
    if is_dry:
        tell("nothing was written")


def trust(
    folder: WorkspaceOption = None,
    digest: Annotated[
        str | None, typer.Option("--digest", metavar="SHA256", help="Trust the file without asking, if it is this one.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Show what a project's .agentmon/agents.toml would run, and use it if you say so.

    What you trust is this file as it is; after any change of it you are asked again. With --json it only tells.

    Examples:
      agentmon agents trust
      agentmon agents trust --json
    """

    async def look(services: Services, workspace: Workspace) -> AgentFileState:
        return await services.agent_files.state(workspace)

    state = with_workspace(folder, look)
    if digest is None and as_json:
        say_document(_document(state))
        return
    if not as_json:
        say("\n".join(file_lines(state)))
    if state.problem:
        tell_error(state.problem, state.hint)
        raise typer.Exit(exit_codes.FAILED)
    if digest is None and not state.asks:
        return
    chosen = _asked(state) if digest is None else digest

    async def work(services: Services, workspace: Workspace) -> AgentFileState:
        return await services.agent_files.trust(workspace, chosen, actor=services.actor)

    trusted = with_workspace(folder, work, registers=True)
    if as_json:
        say_document(_document(trusted))
    else:
        of_project = {"the set-up of worktrees": trusted.setup, "the verification": trusted.verification}
        named = [*(agent.slug for agent in trusted.agents), *(name for name, text in of_project.items() if text)]
        say(f"trusted: {', '.join(named)}")


def untrust(folder: WorkspaceOption = None, as_json: JsonOption = False) -> None:
    """Use a project's .agentmon/agents.toml no more; what its agents have done stays.

    Examples:
      agentmon agents untrust
    """

    async def work(services: Services, workspace: Workspace) -> AgentFileState:
        return await services.agent_files.untrust(workspace, actor=services.actor)

    state = with_workspace(folder, work)
    if as_json:
        say_document(_document(state))
    else:
        say(f"{state.path} is not trusted any more")


def _asked(state: AgentFileState) -> str:
    """Return the digest of the file that was shown, when the person trusts it."""
    if not sys.stdin.isatty():
        raise UsageError(
            "nothing was trusted, since nobody could be asked", hint=f"agentmon agents trust --digest {state.digest}"
        )
    flush()
    # What was typed before the question was shown is no answer to it.
    termios.tcflush(sys.stdin, termios.TCIFLUSH)
    if not typer.confirm("Do you trust this file, as it is?", err=True):
        raise typer.Exit(exit_codes.INTERRUPTED)
    return state.digest


def _document(state: AgentFileState) -> dict[str, object]:
    document = json_form(state)
    return {**document, "commands": json_form(state.commands)} if isinstance(document, dict) else {}


def _read(file: str) -> tuple[str, str]:
    if file == "-":
        return piped_text(), "the text"
    path = expanded(file)
    try:
        if path.stat().st_size > _LARGEST_BYTES:
            raise UsageError(f"{file} has more than 4 MB", hint="take it apart: each part is imported alone")
        return text_of(path.read_bytes()), path.name
    except ValueError as error:
        raise UsageError(
            f"{file} cannot be read: {error}", hint="`agentmon agents export` writes such a file"
        ) from error
    except OSError as error:
        raise UsageError(
            f"{file} cannot be read: {error.strerror}", hint="name a file that `agentmon agents export` wrote, or -"
        ) from error


def _write(path: Path, text: str) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise UsageError(f"{path} cannot be written: {error.strerror}") from error
