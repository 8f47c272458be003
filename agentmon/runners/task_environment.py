"""The environment of a task as people write it: ``API_KEY MODE=fast``.

A name alone is passed from the environment of whoever starts a run, and never stored; a value is stored, so that what
has the shape of a secret is refused.
"""

from __future__ import annotations

import re
import shlex
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from agentmon.domain.errors import UsageError
from agentmon.domain.redaction import has_secret
from agentmon.runners.environment import looks_secret

if TYPE_CHECKING:
    from collections.abc import Mapping

    from agentmon.domain.tasks import InputContext

_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)


def with_variable(context: InputContext, entry: str, environ: Mapping[str, str]) -> tuple[InputContext, str]:
    """Return the context with one variable more, and what a person should know of it; mostly empty.

    Args:
        context: What the task has.
        entry: ``NAME`` or ``NAME=value``; the newest of a name counts.
        environ: The environment of the person, for what is not set there.

    Raises:
        UsageError: It is no variable, or its value has the shape of a secret.
    """
    name, separator, value = entry.partition("=")
    if not _NAME.fullmatch(name):
        raise UsageError(f"{name!r} is not the name of a variable", hint="write NAME=VALUE or NAME")
    overrides = {other: kept for other, kept in context.env_overrides.items() if other != name}
    passed = tuple(other for other in context.env_passed if other != name)
    if not separator:
        note = "" if name in environ else f"{name} is not set here; it is looked up when the task is run"
        kept = context.env_passed if name in context.env_passed else (*passed, name)
        return replace(context, env_overrides=overrides, env_passed=kept), note
    if has_secret(value):
        raise UsageError(
            f"the value of {name} has the shape of a secret and would be stored",
            hint=f"{name} alone (`--env {name}`) takes it from your environment at each run and stores nothing",
        )
    note = ""
    if value and looks_secret(name):
        note = f"{name} looks like a secret and its value is stored; {name} alone (`--env {name}`) stores nothing"
    kept_overrides = (
        {**context.env_overrides, name: value} if name in context.env_overrides else {**overrides, name: value}
    )
    return replace(context, env_overrides=kept_overrides, env_passed=passed), note


def read_environment(context: InputContext, text: str, environ: Mapping[str, str]) -> tuple[InputContext, list[str]]:
    """Return the context with the variables of a line and no others, and what a person should know of them.

    Raises:
        UsageError: A quote is not closed, or one of them makes no sense.
    """
    try:
        entries = shlex.split(text)
    except ValueError as error:
        raise UsageError("a quote is not closed", hint="NAME='two words'") from error
    context = replace(context, env_overrides={}, env_passed=())
    notes = []
    for entry in entries:
        context, note = with_variable(context, entry, environ)
        notes += [note] if note else []
    return context, notes


def environment_text(context: InputContext) -> str:
    """Return the variables as a line that can be written again."""
    values = (f"{name}={shlex.quote(value) if value else ''}" for name, value in context.env_overrides.items())
    return " ".join([*context.env_passed, *values])
