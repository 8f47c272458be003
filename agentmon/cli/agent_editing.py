"""``agentmon agents add|edit|enable|disable|duplicate|remove|restore|test``: what a person does with agents."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import typer

from agentmon.bootstrap import Services
from agentmon.cli.context import JsonOption, with_services
from agentmon.cli.json_form import json_form
from agentmon.cli.option_groups import spreading
from agentmon.cli.output import say, say_document, tell
from agentmon.cli.piped_text import piped_text
from agentmon.cli.task_options import valid_text
from agentmon.domain.agent_changes import AgentChanges
from agentmon.domain.agents import Agent
from agentmon.domain.errors import FieldError, UsageError
from agentmon.domain.sandboxes import read_sandbox
from agentmon.domain.verifications import read_optional_command
from agentmon.domain.worktrees import Isolation
from agentmon.runners.adapters.template import parse_command

SlugArgument = Annotated[str, typer.Argument(metavar="SLUG", help="The program, as `agentmon agents` names it.")]


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentOptions:
    """Fields of an agent, as they were typed; None means that the option was not given, an empty text clears."""

    name: Annotated[str | None, typer.Option("--name", metavar="TEXT", help="What people read.")] = None
    description: Annotated[str | None, typer.Option("--description", "-d", metavar="TEXT", help="What it is.")] = None
    role: Annotated[str | None, typer.Option("--role", metavar="TEXT", help="What it is for; an AI agent is told.")] = (
        None
    )
    program: Annotated[
        str | None, typer.Option("--program", metavar="PATH", help="Its program: a name, or a whole path.")
    ] = None
    base_args: Annotated[
        str | None, typer.Option("--base-args", metavar="WORDS", help="First words of each command, in shell quotes.")
    ] = None
    folder: Annotated[
        str | None, typer.Option("--dir", metavar="PATH", help="Where it works when the task names no folder.")
    ] = None
    isolation: Annotated[
        str | None,
        typer.Option(
            "--isolation", metavar="auto|folder|worktree", help="Whether it works in git worktrees of its own."
        ),
    ] = None
    """An empty one leaves it to the workspace again."""
    sandbox: Annotated[
        str | None,
        typer.Option(
            "--sandbox",
            metavar="off|agentmon|project",
            help="Hide agentmon from its runs; with project they also write there only.",
        ),
    ] = None
    """An empty one leaves it to the workspace again."""
    verify: Annotated[
        str | None,
        typer.Option("--verify", metavar="COMMAND", help="What its work has to pass to count as done; or `none`."),
    ] = None
    """An empty one leaves it to the workspace again."""
    passed: Annotated[
        list[str] | None,
        typer.Option(
            "--env", metavar="NAME", help="Pass this variable on; NAME* passes all that begin so. Repeatable."
        ),
    ] = None
    not_passed: Annotated[
        list[str] | None, typer.Option("--no-env", metavar="NAME", help="Pass it on no more; repeatable.")
    ] = None
    max_concurrent: Annotated[
        int | None, typer.Option("--limit", metavar="N", min=0, help="Most runs at one time; 0 means no limit.")
    ] = None
    model: Annotated[str | None, typer.Option("--model", metavar="MODEL", help="The model of an AI agent.")] = None
    model_tier: Annotated[str | None, typer.Option("--tier", metavar="1-4", help="1 is the strongest model.")] = None
    temperature: Annotated[str | None, typer.Option("--temperature", metavar="0-2", help="How free it speaks.")] = None
    instructions: Annotated[
        str | None,
        typer.Option("--instructions", metavar="TEXT|-", help="What it is told before every task; - reads it."),
    ] = None
    permission_mode: Annotated[
        str | None, typer.Option("--permission-mode", metavar="MODE", help="Its mode when a run names none.")
    ] = None
    icon: Annotated[str | None, typer.Option("--icon", metavar="SIGN", help="A sign for lists.")] = None
    color: Annotated[str | None, typer.Option("--color", metavar="#RRGGBB", help="A colour for lists.")] = None
    homepage: Annotated[str | None, typer.Option("--homepage", metavar="URL", help="Where one reads about it.")] = None

    def changes(self, agent: Agent) -> AgentChanges:
        """Return what is to be changed of this agent.

        Raises:
            UsageError: A value cannot be read.
        """
        texts = {name: getattr(self, name) for name in ("name", "description", "icon", "color", "homepage")}
        clearing = {"role": self.role, "working_dir": self.folder, "model": self.model}
        new: dict[str, Any] = {name: valid_text(text) for name, text in texts.items() if text is not None}
        new |= {name: valid_text(text) or None for name, text in clearing.items() if text is not None}
        if self.program is not None:
            new["binary_path"] = self.program
        if self.base_args is not None:
            new["base_args"] = parse_command(valid_text(self.base_args)) if self.base_args.strip() else ()
        new |= self._of_work()
        if self.passed or self.not_passed:
            new["env_allowlist"] = _names(agent.env_allowlist, self.passed or (), self.not_passed or ())
        if self.max_concurrent is not None:
            new["max_concurrent"] = self.max_concurrent
        if self.model_tier is not None:
            new["model_tier"] = int(_number("model_tier", self.model_tier)) if self.model_tier else None
        if self.temperature is not None:
            new["temperature"] = _number("temperature", self.temperature) if self.temperature else None
        if self.instructions is not None:
            text = piped_text() if self.instructions == "-" else valid_text(self.instructions)
            new["instructions"] = text.strip() or None
        if self.permission_mode is not None:
            new["permission_modes"] = _modes(agent, self.permission_mode)
        return AgentChanges(**new)

    def _of_work(self) -> dict[str, Any]:
        """Return what is to be changed of where it works, and of what its work has to pass."""
        new: dict[str, Any] = {}
        if self.isolation is not None:
            new["isolation"] = _isolation(self.isolation.strip())
        if self.sandbox is not None:
            new["sandbox"] = read_sandbox(self.sandbox, name="--sandbox")
        if self.verify is not None:
            new["verify"] = read_optional_command(valid_text(self.verify))
        return new


def _isolation(text: str) -> Isolation | None:
    if text and text not in set(Isolation):
        raise UsageError(f"--isolation {text!r} is none of {', '.join(Isolation)}")
    return Isolation(text) if text else None


def add(
    program: Annotated[str, typer.Argument(metavar="PROGRAM", help="A name on the PATH, or a path.")],
    slug: Annotated[str | None, typer.Option("--as", metavar="SLUG", help="How it is called.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Make an agent of a program: with all that a preset knows of it, or with free words. The program is not started.

    Examples:
      agentmon agents add shellcheck
      agentmon agents add ~/bin/deploy --as deploy
      agentmon agents add claude --as reviewer
    """

    async def work(services: Services) -> Agent:
        return await services.agents.add_program(program, slug=slug, actor=services.actor)

    agent = with_services(work)
    _tell(agent, f"added {agent.slug}: {', '.join(one.key for one in agent.capabilities)}", as_json=as_json)


@spreading(AgentOptions)
def edit(slug: SlugArgument, *, options: AgentOptions, as_json: JsonOption = False) -> None:
    """Change an agent; what you change is yours, and no scan or new release writes it again. An empty text clears.

    Examples:
      agentmon agents edit claude --model opus --role reviewer
      agentmon agents edit claude --instructions - < rules.md
      agentmon agents edit make --dir ~/shop --limit 1
      agentmon agents edit gh --env GH_TOKEN
    """

    async def work(services: Services) -> Agent:
        agent = await services.agents.by_slug(slug)
        changes = options.changes(agent)
        if not changes.named():
            raise UsageError("what is to be changed?", hint="`agentmon agents edit --help` names all that can be")
        return await services.agents.edit(slug, changes, actor=services.actor)

    agent = with_services(work)
    _tell(agent, f"changed {agent.slug}", as_json=as_json)


def enable(slugs: Annotated[list[str], typer.Argument(metavar="SLUG...")], as_json: JsonOption = False) -> None:
    """Let agents be given work.

    Examples:
      agentmon agents enable docker kubectl
    """

    async def work(services: Services, slug: str) -> Agent:
        enabled = await services.agents.enable(slug, actor=services.actor)
        await services.queue.deliver()
        return enabled

    _each(slugs, work, "on", as_json=as_json)


def disable(slugs: Annotated[list[str], typer.Argument(metavar="SLUG...")], as_json: JsonOption = False) -> None:
    """Let nothing of agents start any more; what runs may finish, what is queued waits.

    Examples:
      agentmon agents disable docker
    """
    _each(slugs, lambda services, slug: services.agents.disable(slug, actor=services.actor), "off", as_json=as_json)


def duplicate(
    slug: SlugArgument,
    new_slug: Annotated[str, typer.Argument(metavar="NEW", help="How the copy is called.")],
    as_json: JsonOption = False,
) -> None:
    """Add a copy of an agent, to change it without changing the first.

    Examples:
      agentmon agents duplicate claude reviewer
    """

    async def work(services: Services) -> Agent:
        return await services.agents.duplicate(slug, new_slug, actor=services.actor)

    _tell(with_services(work), f"added {new_slug}, a copy of {slug}", as_json=as_json)


def remove(slugs: Annotated[list[str], typer.Argument(metavar="SLUG...")], as_json: JsonOption = False) -> None:
    """Take agents out of the lists; what they have done stays, and `restore` brings them back.

    Examples:
      agentmon agents remove reviewer
    """
    _each(slugs, lambda services, slug: services.agents.remove(slug, actor=services.actor), "removed", as_json=as_json)


def restore(slugs: Annotated[list[str], typer.Argument(metavar="SLUG...")], as_json: JsonOption = False) -> None:
    """Bring removed agents back as they were.

    Examples:
      agentmon agents restore reviewer
    """
    _each(slugs, lambda services, slug: services.agents.restore(slug, actor=services.actor), "back", as_json=as_json)


def try_out(slug: SlugArgument, as_json: JsonOption = False) -> None:
    """Look whether an agent could work now: its program, its version, its login. Nothing is billed.

    The exit code is 1 when something is in the way.

    Examples:
      agentmon agents test claude
    """
    tested = with_services(lambda services: services.agents.test_run(slug))
    if as_json:
        say_document(json_form(tested))
    else:
        login = {True: "logged in", False: "not logged in", None: ""}[tested.is_logged_in]
        version = tested.version or ("tells no version" if tested.found_path else "")
        facts = [tested.found_path, version, login, tested.login_note if login else ""]
        nothing = "needs no program" if tested.is_fine else "nothing was found"
        say(f"{slug}: " + (", ".join(fact for fact in facts if fact) or nothing))
        for problem in tested.problems:
            tell(f"✗ {problem}")
    if not tested.is_fine:
        raise typer.Exit(1)


def _each(slugs: Sequence[str], work: Callable[[Services, str], Awaitable[Agent]], word: str, *, as_json: bool) -> None:
    async def all_of_them(services: Services) -> list[Agent]:
        for slug in slugs:
            await services.agents.by_slug(slug, removed_too=True)
        return [await work(services, slug) for slug in slugs]

    agents = with_services(all_of_them)
    if as_json:
        say_document(json_form(agents[0] if len(agents) == 1 else agents))
    else:
        for agent in agents:
            say(f"{agent.slug}: {word}")


def _tell(agent: Agent, sentence: str, *, as_json: bool) -> None:
    if as_json:
        say_document(json_form(agent))
    else:
        say(sentence)


def _names(known: Sequence[str], added: Sequence[str], dropped: Sequence[str]) -> tuple[str, ...]:
    missing = [name for name in dropped if name not in known]
    if missing:
        raise UsageError(f"--no-env: {missing[0]} is not passed on", hint=f"these are: {', '.join(known) or 'none'}")
    return tuple(dict.fromkeys([*(name for name in known if name not in dropped), *added]))


def _number(field: str, text: str) -> float:
    try:
        return float(text)
    except ValueError as error:
        raise FieldError(field, f"{text!r} is no number") from error


def _modes(agent: Agent, mode: str) -> tuple[str, ...]:
    modes = () if agent.session_config is None else agent.session_config.permission_modes
    if mode not in modes:
        raise FieldError(
            "permission_modes",
            f"{agent.slug} has no permission mode {mode}",
            hint=f"it has: {', '.join(modes)}" if modes else "it has none",
        )
    return (mode, *(one for one in modes if one != mode))
