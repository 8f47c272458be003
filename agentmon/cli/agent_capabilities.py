"""``agentmon agents capability …``: what an agent can be asked to do, added, changed and taken away."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any

import typer

from agentmon.bootstrap import Services
from agentmon.cli.agent_argument import schema_from, schema_of
from agentmon.cli.agent_editing import SlugArgument
from agentmon.cli.agent_text import capability_lines
from agentmon.cli.context import JsonOption, with_services
from agentmon.cli.json_form import json_form
from agentmon.cli.option_groups import spreading
from agentmon.cli.output import say, say_document
from agentmon.cli.piped_text import piped_text
from agentmon.cli.registration import register
from agentmon.cli.task_options import valid_text
from agentmon.domain.agent_changes import CapabilityChanges
from agentmon.domain.agents import Agent, Capability, CapabilitySource, DangerLevel, InteractionMode
from agentmon.domain.errors import UsageError
from agentmon.domain.ids import CapabilityId
from agentmon.domain.limit_words import parse_size_limit, parse_time_limit
from agentmon.runners.adapters.template import parse_command

group = typer.Typer(rich_markup_mode=None, help="Show, add, change and take away what an agent can be asked to do.")

KeyArgument = Annotated[str, typer.Argument(metavar="KEY", help="The capability, as `agentmon agents show` names it.")]


@dataclass(frozen=True, slots=True, kw_only=True)
class CapabilityOptions:
    """Fields of a capability, as they were typed; None means that the option was not given."""

    label: Annotated[str | None, typer.Option("--label", metavar="TEXT", help="What people read.")] = None
    description: Annotated[str | None, typer.Option("--description", "-d", metavar="TEXT", help="What it does.")] = None
    words: Annotated[
        str | None,
        typer.Option("--words", metavar="WORDS", help="What stands behind the program: 'log -n {{args.max}}'."),
    ] = None
    prompt: Annotated[
        str | None,
        typer.Option("--prompt", metavar="TEXT|-", help="What an AI agent is told: 'Review {{task_title}}'."),
    ] = None
    arguments: Annotated[
        list[str] | None,
        typer.Option("--argument", metavar="NAME:TYPE", help="path:string!, max:integer=20, level:a|b. Repeatable."),
    ] = None
    schema: Annotated[
        str | None, typer.Option("--schema", metavar="FILE", help="The arguments as a JSON Schema instead.")
    ] = None
    danger: Annotated[
        int | None, typer.Option("--danger", metavar="0-3", min=0, max=3, help="From 2 on it waits in the inbox.")
    ] = None
    asks_first: Annotated[
        bool | None, typer.Option("--ask-first/--no-ask-first", help="Let each run wait in the inbox.")
    ] = None
    is_enabled: Annotated[bool | None, typer.Option("--on/--off", help="Offer it, or not.")] = None
    timeout: Annotated[
        str | None, typer.Option("--timeout", metavar="TIME", help="15m, 1h30m, or none for no limit.")
    ] = None
    max_output: Annotated[
        str | None, typer.Option("--max-output", metavar="SIZE", help="10MiB, or none for no limit.")
    ] = None

    def changes(self) -> CapabilityChanges:
        """Return what is to be changed.

        Raises:
            UsageError: A value cannot be read.
        """
        if self.arguments and self.schema is not None:
            raise UsageError("--argument and --schema exclude each other")
        given: dict[str, tuple[Any, Callable[[Any], object]]] = {
            "label": (self.label, valid_text),
            "description": (self.description, valid_text),
            "command_tokens": (self.words, split_words),
            "prompt_template": (self.prompt, _text),
            "args_schema": (self.arguments or self.schema, _schema),
            "danger_level": (self.danger, DangerLevel),
            "requires_approval": (self.asks_first, bool),
            "is_enabled": (self.is_enabled, bool),
            "timeout_s": (self.timeout, parse_time_limit),
            "max_output_bytes": (self.max_output, parse_size_limit),
        }
        new: dict[str, Any] = {name: read(typed) for name, (typed, read) in given.items() if typed is not None}
        return CapabilityChanges(**new)


def split_words(text: str) -> tuple[str, ...]:
    """Return the words of a capability; a placeholder is part of its word, blanks inside it too."""
    if not text.strip():
        return ()
    kept: list[str] = []
    pieces = valid_text(text).split("{{")
    for piece in pieces[1:]:
        inside, closing, _ = piece.partition("}}")
        if not closing:
            raise UsageError(f"a placeholder of {text!r} is not closed", hint="such as {{args.path}}")
        kept.append(inside)
    plain = pieces[0] + "".join(f"\x01{at}\x02{piece.partition('}}')[2]}" for at, piece in enumerate(pieces[1:]))
    words = parse_command(plain)
    return tuple(_with_placeholders(word, kept) for word in words)


def show(slug: SlugArgument, key: KeyArgument, as_json: JsonOption = False) -> None:
    """Show one capability with its arguments.

    Examples:
      agentmon agents capability show git log
    """
    agent = with_services(lambda services: services.agents.by_slug(slug))
    _tell(agent, agent.get_capability(key), as_json=as_json)


@spreading(CapabilityOptions)
def add(slug: SlugArgument, key: KeyArgument, *, options: CapabilityOptions, as_json: JsonOption = False) -> None:
    """Add a capability.

    Examples:
      agentmon agents capability add git tags --words 'tag --list {{args.pattern}}' --argument pattern:string
      agentmon agents capability add claude review --prompt 'Review {{task_title}}'
    """

    async def work(services: Services) -> Agent:
        agent = await services.agents.by_slug(slug)
        changes = options.changes()
        is_prompt = options.prompt is not None
        plain = Capability(
            id=CapabilityId(""),
            agent_id=agent.id,
            key=key,
            label=key,
            source=CapabilitySource.MANUAL,
            interaction_mode=InteractionMode.PROMPT if is_prompt else InteractionMode.TEMPLATE,
            args_schema=schema_of(()),
            danger_level=DangerLevel.CAUTION,
            timeout_s=0 if is_prompt else 300,
        )
        return await services.agents.add_capability(slug, changes.applied(plain), actor=services.actor)

    agent = with_services(work)
    _tell(agent, agent.get_capability(key), as_json=as_json)


@spreading(CapabilityOptions)
def edit(slug: SlugArgument, key: KeyArgument, *, options: CapabilityOptions, as_json: JsonOption = False) -> None:
    """Change a capability; what you change is yours, and no scan or new release writes it again.

    Examples:
      agentmon agents capability edit docker prune --danger 3
      agentmon agents capability edit pytest test --timeout 1h --max-output 50MiB
      agentmon agents capability edit npm publish --off
    """

    async def work(services: Services) -> Agent:
        changes = options.changes()
        if not changes.named():
            raise UsageError("what is to be changed?", hint="`agentmon agents capability edit --help` names all")
        return await services.agents.edit_capability(slug, key, changes, actor=services.actor)

    agent = with_services(work)
    _tell(agent, agent.get_capability(key), as_json=as_json)


def remove(slug: SlugArgument, key: KeyArgument, as_json: JsonOption = False) -> None:
    """Take a capability away; what ran with it stays, and `restore` brings it back.

    Examples:
      agentmon agents capability remove git clean
    """

    async def work(services: Services) -> Agent:
        return await services.agents.remove_capability(slug, key, actor=services.actor)

    _tell_done(with_services(work), f"{slug}.{key}: removed", as_json=as_json)


def restore(slug: SlugArgument, key: KeyArgument, as_json: JsonOption = False) -> None:
    """Bring back a capability that was taken away.

    Examples:
      agentmon agents capability restore git clean
    """

    async def work(services: Services) -> Agent:
        return await services.agents.restore_capability(slug, key, actor=services.actor)

    _tell_done(with_services(work), f"{slug}.{key}: back", as_json=as_json)


def _text(typed: str) -> str:
    return piped_text() if typed == "-" else valid_text(typed)


def _schema(typed: list[str] | str) -> dict[str, object]:
    return schema_from(typed) if isinstance(typed, str) else schema_of([valid_text(text) for text in typed])


def _with_placeholders(word: str, kept: list[str]) -> str:
    for at, inside in enumerate(kept):
        word = word.replace(f"\x01{at}\x02", f"{{{{{inside}}}}}")
    return word


def _tell(agent: Agent, capability: Capability, *, as_json: bool) -> None:
    if as_json:
        say_document(json_form(capability))
    else:
        say("\n".join(capability_lines(agent, capability)))


def _tell_done(agent: Agent, sentence: str, *, as_json: bool) -> None:
    if as_json:
        say_document(json_form(agent))
    else:
        say(sentence)


register(group, "show", show)
register(group, "add", add)
register(group, "edit", edit)
register(group, "remove", remove)
register(group, "restore", restore)
