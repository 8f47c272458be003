"""Templates of tasks: found in the config folder and in the project, read, written, and made into drafts."""

from __future__ import annotations

import asyncio
import os
import re
import tempfile
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from agentmon.domain.any_command import ANY_COMMAND_KEY, ANY_COMMAND_SLUG
from agentmon.domain.due_dates import parse_due
from agentmon.domain.errors import ConflictError, NotFoundError, StoreError, UsageError
from agentmon.domain.tasks import InputContext, Schedule, TaskDraft
from agentmon.domain.templates import TaskTemplate, TemplateError, check_template_name, template_of, written_form
from agentmon.domain.written_text import text_of, toml_of_text
from agentmon.private_folders import make_private_folder
from agentmon.runners.task_environment import with_variable
from agentmon.schedule import local_zone_name
from agentmon.services.folders import existing_folder

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime
    from typing import TypeAlias

    from agentmon.domain.agents import Agent
    from agentmon.domain.clock import Clock
    from agentmon.domain.events import Actor
    from agentmon.domain.tasks import Workspace
    from agentmon.paths import Paths
    from agentmon.services.agents import AgentService

    Notes: TypeAlias = list[str]

_SUFFIX: Final = ".toml"
_SHARED_FOLDER: Final = (".agentmon", "templates")
_SIZE_MAX_BYTES: Final = 256_000
_MOST: Final = 500


class TemplateProblem(NamedTuple):
    """A file that is no template."""

    name: str
    file: str
    reason: str
    """With the line, where that is known: ``line 3: …``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TemplateShelf:
    """All templates that can be used here."""

    templates: tuple[TaskTemplate, ...] = ()
    """In the order of the alphabet; one of the person's own hides one of the project of the same name."""
    problems: tuple[TemplateProblem, ...] = ()


class FilledDraft(NamedTuple):
    """A draft made from a template."""

    draft: TaskDraft
    notes: tuple[str, ...] = ()
    """What the template says and could not be taken."""


class TemplateService:
    """Reads templates each time, since a person may edit their files at any moment."""

    def __init__(self, *, agents: AgentService, paths: Paths, clock: Clock) -> None:
        self._agents = agents
        self._paths = paths
        self._clock = clock

    async def list(self, workspace: Workspace) -> TemplateShelf:
        """Return the templates of the person and of the project, and the files that are none."""
        return await asyncio.to_thread(self._read_all, workspace)

    async def get(self, workspace: Workspace, name: str) -> TaskTemplate:
        """Return the template of this name.

        Raises:
            NotFoundError: There is none; the hint names those that are there.
            UsageError: Its file is broken; the message says where and why.
        """
        shelf = await self.list(workspace)
        wanted = name.strip()
        found = next((one for one in shelf.templates if one.name == wanted), None)
        if found is not None:
            return found
        broken = next((one for one in shelf.problems if one.name == wanted), None)
        if broken is not None:
            raise UsageError(f"the template {wanted!r} cannot be read: {broken.reason}", hint=broken.file)
        known = ", ".join(one.name for one in shelf.templates)
        hint = f"there are: {known}" if known else "agentmon template save NAME --from NUMBER makes one from a task"
        raise NotFoundError(f"there is no template {wanted!r}", hint=hint)

    async def save(self, name: str, draft: TaskDraft, *, replaces: bool = False, actor: Actor) -> Path:
        """Write the draft as a template of the person's own; links, due date and budget are not part of it.

        Raises:
            UsageError: No file can be called so.
            ConflictError: There is one of this name, and ``replaces`` is not set; or the actor is an agent.
            StoreError: It cannot be written.
        """
        name = check_template_name(name)
        agent = None if draft.assignee_agent_id is None else await self._agents.get(draft.assignee_agent_id)
        template = _template_from(name, draft, agent)
        return await asyncio.to_thread(self._write, template, replaces=replaces)

    async def remove(self, name: str, *, actor: Actor) -> Path:
        """Remove a template of the person's own, also a broken one.

        Raises:
            NotFoundError: There is none.
            ConflictError: The actor is an agent.
        """
        file = self._paths.templates_dir / f"{check_template_name(name)}{_SUFFIX}"
        try:
            await asyncio.to_thread(file.unlink)
        except OSError as error:
            raise NotFoundError(
                f"there is no template {name!r} of your own", hint=f"they are files in {self._paths.templates_dir}"
            ) from error
        return file

    async def draft(self, workspace: Workspace, template: TaskTemplate) -> FilledDraft:
        """Return a draft filled by the template; what cannot be taken here is told and left out."""
        notes = [_left_out_words(template)] if template.left_out else []
        context = InputContext(
            max_retries=template.retries,
            prompt_additions=template.prompt,
            isolation=template.isolation,
            base=template.base,
            verify=template.verify,
            verify_retries=template.verify_retries,
        )
        agent = await self._find_agent(workspace, template, notes)
        if agent is not None and template.command:
            context = replace(context, capability_key=ANY_COMMAND_KEY, args={"argv": [*template.command]})
        elif agent is not None:
            context = replace(context, capability_key=template.capability, args=dict(template.args))
        context = await _with_place(context, template, workspace, notes)
        schedule = None
        if template.schedule:
            schedule = Schedule(cron=template.schedule, zone=template.zone or await asyncio.to_thread(local_zone_name))
        draft = TaskDraft(
            title=template.title,
            description=template.description,
            priority=template.priority,
            assignee_agent_id=None if agent is None else agent.id,
            input_context=context,
            due_at=self._due_at(template, notes),
            schedule=schedule,
            labels=template.labels,
        )
        return FilledDraft(draft, tuple(notes))

    async def _find_agent(self, workspace: Workspace, template: TaskTemplate, notes: Notes) -> Agent | None:
        slug = ANY_COMMAND_SLUG if template.command else template.program
        if slug is None:
            return None
        agents = await self._agents.list(workspace_id=workspace.id)
        agent = next((one for one in agents if one.slug == slug), None)
        if agent is None:
            notes.append(f"there is no program {slug} here")
        return agent

    def _due_at(self, template: TaskTemplate, notes: Notes) -> datetime | None:
        now = self._clock.now()
        zone = now.astimezone().tzinfo
        if not template.due or zone is None:
            return None
        try:
            return parse_due(template.due, now=now, zone=zone)
        except UsageError as error:
            notes.append(str(error))
            return None

    def _read_all(self, workspace: Workspace) -> TemplateShelf:
        found: dict[str, TaskTemplate] = {}
        problems: dict[str, TemplateProblem] = {}
        shared = Path(workspace.root_path, *_SHARED_FOLDER)
        for folder, is_shared in ((shared, True), (self._paths.templates_dir, False)):
            for file in _files(folder):
                name = file.stem
                found.pop(name, None)
                problems.pop(name, None)
                try:
                    found[name] = _read(file, is_shared=is_shared)
                except UsageError as error:
                    problems[name] = TemplateProblem(name, str(file), str(error))
        order = sorted(found, key=str.casefold)
        return TemplateShelf(templates=tuple(found[name] for name in order), problems=tuple(problems.values()))

    def _write(self, template: TaskTemplate, *, replaces: bool) -> Path:
        import tomlkit  # noqa: PLC0415 - here alone

        folder = self._paths.templates_dir
        file = folder / f"{template.name}{_SUFFIX}"
        if file.exists() and not replaces:
            raise ConflictError(f"there is a template {template.name!r} already", hint="replace it with --force")
        document = tomlkit.document()
        for key, value in written_form(template).items():
            is_long = isinstance(value, str) and "\n" in value
            document.add(key, tomlkit.string(str(value), multiline=True) if is_long else tomlkit.item(value))
        temporary: str | None = None
        try:
            make_private_folder(folder)
            descriptor, temporary = tempfile.mkstemp(prefix=".", dir=folder)
            with os.fdopen(descriptor, "w", encoding="utf-8") as stream:
                stream.write(tomlkit.dumps(document))
            Path(temporary).replace(file)
        except OSError as error:
            if temporary is not None:
                with suppress(OSError):
                    Path(temporary).unlink()
            raise StoreError(f"the template cannot be written: {error.strerror}", hint=str(file)) from error
        return file


async def _with_place(
    context: InputContext, template: TaskTemplate, workspace: Workspace, notes: list[str]
) -> InputContext:
    """Return the context with the environment and the folder of the template, as far as they make sense here."""
    for entry in template.environment:
        try:
            context, _ = with_variable(context, entry, os.environ)
        except UsageError as error:
            notes.append(str(error))
    if template.folder is not None:
        try:
            return replace(context, working_dir=await existing_folder(template.folder, workspace.root_path))
        except UsageError as error:
            notes.append(str(error))
    return context


def _files(folder: Path) -> list[Path]:
    try:
        names = sorted(entry.name for entry in os.scandir(folder) if entry.name.endswith(_SUFFIX))
    except OSError:
        return []
    return [folder / name for name in names if not name.startswith(".")][:_MOST]


def _read(file: Path, *, is_shared: bool) -> TaskTemplate:
    """Return the template of the file.

    Raises:
        UsageError: It is none; the message says where and why.
    """
    try:
        check_template_name(file.stem)
        # A link in a project could lead to any file of the person.
        if is_shared and any(place.is_symlink() for place in (file, *file.parents[: len(_SHARED_FOLDER)])):
            raise UsageError("a template of a project cannot be a link, nor lie behind one")
        if not file.is_file():
            raise UsageError("this is no file")
        if file.stat().st_size > _SIZE_MAX_BYTES:
            raise UsageError(f"it has more than {_SIZE_MAX_BYTES // 1000} KB")
        text = text_of(file.read_bytes())
        written: Mapping[str, object] = toml_of_text(text)
    except ValueError as error:
        raise UsageError(_with_line_first(str(error))) from error
    except OSError as error:
        raise UsageError(f"it cannot be read: {error.strerror}") from error
    try:
        return template_of(file.stem, written, is_shared=is_shared)
    except TemplateError as error:
        line = _line_of(text, error.key)
        raise UsageError(f"line {line}: {error}" if line else str(error)) from error


def _with_line_first(message: str) -> str:
    """Return ``line 3, column 5: …`` for what the reader of TOML calls ``… (at line 3, column 5)``."""
    found = re.fullmatch(r"(?P<what>.*) \(at (?P<where>line .*|end of document)\)", message, re.DOTALL)
    return message if found is None else f"{found['where']}: {found['what'][:1].lower()}{found['what'][1:]}"


def _line_of(text: str, key: str) -> int | None:
    pattern = re.compile(rf"\s*(?:\[\s*)?[\"']?{re.escape(key)}\b")
    return next((at for at, line in enumerate(text.splitlines(), start=1) if key and pattern.match(line)), None)


def _left_out_words(template: TaskTemplate) -> str:
    return f"left out, since only templates of your own may say it: {', '.join(template.left_out)}"


def _template_from(name: str, draft: TaskDraft, agent: Agent | None) -> TaskTemplate:
    context = draft.input_context
    is_command = agent is not None and agent.slug == ANY_COMMAND_SLUG
    argv = context.args.get("argv")
    return TaskTemplate(
        name=name,
        title=draft.title,
        description=draft.description,
        priority=draft.priority,
        program=None if agent is None or is_command else agent.slug,
        capability=None if is_command else context.capability_key,
        command=tuple(str(word) for word in argv) if is_command and isinstance(argv, list | tuple) else (),
        args={} if is_command else context.args,
        labels=draft.labels,
        retries=min(context.max_retries, 99),
        folder=context.working_dir,
        isolation=context.isolation,
        base=context.base,
        schedule="" if draft.schedule is None else draft.schedule.cron,
        zone="" if draft.schedule is None else draft.schedule.zone,
        environment=(*context.env_passed, *(f"{key}={value}" for key, value in context.env_overrides.items())),
        prompt=context.prompt_additions,
        verify=context.verify,
        verify_retries=context.verify_retries,
    )
