"""Templates of tasks: what a form is filled with at first, read from a file that a person may edit.

One that lies in a project comes from whoever wrote there. It never brings an environment, a schedule, a command to
verify with, or what a program is given: it fills in words for a person to read, and at most names a program.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from agentmon.domain.errors import UsageError
from agentmon.domain.labels import parse_labels
from agentmon.domain.task_status import Priority
from agentmon.domain.tasks import TITLE_MAX_CHARACTERS
from agentmon.domain.verifications import command_text, read_optional_command
from agentmon.domain.worktrees import Isolation, is_readable_base

if TYPE_CHECKING:
    from collections.abc import Callable

    from agentmon.domain.tasks import TaskDraft

TITLE_PLACEHOLDER: Final = "{{title}}"
"""Where the title of the task goes, in any text of a template."""
_NAME: Final = re.compile(r"[^\W_][\w .-]{0,59}")
_RETRIES_MAX: Final = 99
_VERIFY_RETRIES_MAX: Final = 20
_TEXTS: Final = (
    "title",
    "description",
    "program",
    "capability",
    "due",
    "folder",
    "schedule",
    "zone",
    "prompt",
    "verify",
)
_PLACE: Final = ("isolation", "base")
_LISTS: Final = ("command", "labels", "environment")
_NUMBERS: Final = ("priority", "retries", "verify_retries")
_KEYS: Final = (*_TEXTS, *_PLACE, *_LISTS, *_NUMBERS, "args")
_OWN_ONLY: Final = ("environment", "schedule", "zone", "command", "capability", "args", "folder", "verify")
"""What a template of a project cannot say."""


class TemplateError(UsageError):
    """A file is no template."""

    def __init__(self, message: str, *, key: str = "") -> None:
        super().__init__(message)
        self.key = key
        """The key that is wrong; empty when it is about the whole file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskTemplate:
    """What a new task is filled with."""

    name: str
    is_shared: bool = False
    """Whether it lies in the project rather than among the person's own."""
    title: str = ""
    description: str = ""
    priority: Priority = Priority.NORMAL
    program: str | None = None
    capability: str | None = None
    command: tuple[str, ...] = ()
    """Of "any command", as words."""
    args: Mapping[str, object] = field(default_factory=dict)
    labels: tuple[str, ...] = ()
    due: str = ""
    """As a person types it: ``in 2 days``."""
    retries: int = 0
    folder: str | None = None
    isolation: Isolation | None = None
    base: str | None = None
    """What its worktree is made from."""
    schedule: str = ""
    zone: str = ""
    environment: tuple[str, ...] = ()
    """``NAME`` or ``NAME=value``."""
    prompt: str = ""
    verify: str | None = None
    verify_retries: int | None = None
    """As ``InputContext`` has them; in the file ``none`` is no command."""
    left_out: tuple[str, ...] = ()
    """Keys that the file has and a template of a project cannot say."""


def check_template_name(name: str) -> str:
    """Return the name of a template, which is that of its file.

    Raises:
        UsageError: No file can be called so.
    """
    name = name.strip()
    if not _NAME.fullmatch(name) or name.endswith("."):
        raise UsageError(
            f"{name!r} is no name of a template", hint="letters, digits, blanks, - _ and ., 60 characters at most"
        )
    return name


def template_of(name: str, written: Mapping[str, object], *, is_shared: bool) -> TaskTemplate:
    """Return the template that a file describes.

    Raises:
        TemplateError: Something in it makes no sense.
    """
    unknown = [key for key in written if key not in _KEYS]
    if unknown:
        raise TemplateError(f"{unknown[0]!r} is not known here; there are {', '.join(_KEYS)}", key=unknown[0])
    left_out = tuple(key for key in _OWN_ONLY if key in written) if is_shared else ()
    told = {key: value for key, value in written.items() if key not in left_out}
    for keys, fits, what in (
        ((*_TEXTS, "base"), _is_text, "a text"),
        (("isolation",), _is_isolation, f"one of {', '.join(Isolation)}"),
        (("base",), _is_base, "a branch, tag or commit"),
        (_LISTS, _is_list, "a list of texts"),
        (_NUMBERS, _is_number, "a number"),
        (("args",), _is_table, "a table"),
    ):
        _require(told, keys, fits, what)
    texts = {key: str(told.get(key, "")) for key in _TEXTS}
    lists = {key: _words(told.get(key)) for key in _LISTS}
    args = told.get("args", {})
    if len(texts["title"]) > TITLE_MAX_CHARACTERS:
        raise TemplateError(f"the title has more than {TITLE_MAX_CHARACTERS:,} characters", key="title")
    if texts["zone"] and not texts["schedule"]:
        raise TemplateError("a zone needs a schedule", key="zone")
    if lists["command"] and (texts["program"] or args):
        raise TemplateError("a command stands alone, without program and args", key="command")
    try:
        labels = parse_labels(lists["labels"])
    except UsageError as error:
        raise TemplateError(str(error), key="labels") from error
    return TaskTemplate(
        name=name,
        is_shared=is_shared,
        title=texts["title"],
        description=texts["description"],
        priority=Priority(_bounded(told, "priority", Priority.NORMAL.value, 1, 5)),
        program=texts["program"] or None,
        capability=texts["capability"] or None,
        command=lists["command"],
        args=args if isinstance(args, Mapping) else {},
        labels=labels,
        due=texts["due"],
        retries=_bounded(told, "retries", 0, 0, _RETRIES_MAX),
        folder=texts["folder"] or None,
        isolation=Isolation(str(told["isolation"])) if told.get("isolation") else None,
        base=str(told.get("base", "")) or None,
        schedule=texts["schedule"],
        zone=texts["zone"],
        environment=lists["environment"],
        prompt=texts["prompt"],
        verify=read_optional_command(texts["verify"]),
        verify_retries=None
        if "verify_retries" not in told
        else _bounded(told, "verify_retries", 0, 0, _VERIFY_RETRIES_MAX),
        left_out=left_out,
    )


def written_form(template: TaskTemplate) -> dict[str, object]:
    """Return what stands in the file of a template; what says nothing is left out."""
    form: dict[str, object] = {
        "title": template.title,
        "description": template.description,
        "priority": None if template.priority is Priority.NORMAL else template.priority.value,
        "program": template.program,
        "capability": template.capability,
        "command": list(template.command),
        "labels": list(template.labels),
        "due": template.due,
        "retries": template.retries or None,
        "folder": template.folder,
        "isolation": None if template.isolation is None else template.isolation.value,
        "base": template.base,
        "schedule": template.schedule,
        "zone": template.zone,
        "environment": list(template.environment),
        "prompt": template.prompt,
        "verify": command_text(template.verify),
        "verify_retries": template.verify_retries,
        "args": {key: value for key, value in template.args.items() if value is not None},
    }
    return {key: value for key, value in form.items() if value or value == 0}


def with_title(draft: TaskDraft, title: str) -> TaskDraft:
    """Return the draft with the title in every place that waits for it."""
    context = draft.input_context
    filled = replace(
        context,
        args={key: _filled(value, title) for key, value in context.args.items()},
        prompt_additions=context.prompt_additions.replace(TITLE_PLACEHOLDER, title),
    )
    own_title = draft.title.replace(TITLE_PLACEHOLDER, title) if TITLE_PLACEHOLDER in draft.title else title
    return replace(
        draft,
        title=own_title,
        description=draft.description.replace(TITLE_PLACEHOLDER, title),
        input_context=filled,
    )


def _filled(value: object, title: str) -> object:
    if isinstance(value, str):
        return value.replace(TITLE_PLACEHOLDER, title)
    return [_filled(one, title) for one in value] if isinstance(value, list) else value


def _require(told: Mapping[str, object], keys: tuple[str, ...], fits: Callable[[object], bool], what: str) -> None:
    wrong = next((key for key in keys if key in told and not fits(told[key])), None)
    if wrong is not None:
        raise TemplateError(f"{wrong} has to be {what}", key=wrong)


def _bounded(told: Mapping[str, object], key: str, fallback: int, least: int, most: int) -> int:
    number = told.get(key, fallback)
    if not isinstance(number, int) or not least <= number <= most:
        raise TemplateError(f"{key} has to be {least} to {most}", key=key)
    return number


def _words(value: object) -> tuple[str, ...]:
    return tuple(str(one) for one in value) if isinstance(value, list) else ()


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _is_isolation(value: object) -> bool:
    return value in {"", *Isolation}


def _is_base(value: object) -> bool:
    return not value or is_readable_base(str(value))


def _is_list(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(one, str) for one in value)


def _is_number(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_table(value: object) -> bool:
    return isinstance(value, dict)
