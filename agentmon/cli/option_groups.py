"""Options that several commands have: a dataclass whose fields are options, one parameter of a command each."""

import functools
import inspect
from collections.abc import Callable
from dataclasses import fields
from typing import get_type_hints


def spreading(*groups: type) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Return a decorator that gives a command the options of dataclasses in the place of the dataclasses themselves.

    The command has one parameter for each group, annotated with it; whoever calls the command, typer above all, sees
    the fields of the group as parameters of their own instead.
    """

    def spread(command: Callable[..., None]) -> Callable[..., None]:
        signature = inspect.signature(command)
        group_of = {
            parameter.name: parameter.annotation
            for parameter in signature.parameters.values()
            if parameter.annotation in groups
        }

        @functools.wraps(command)
        def gathering(*words: object, **options: object) -> None:
            for name, group in group_of.items():
                options[name] = group(**{field.name: options.pop(field.name) for field in fields(group)})
            command(*words, **options)

        parameters: list[inspect.Parameter] = []
        for parameter in signature.parameters.values():
            group = group_of.get(parameter.name)
            parameters += [parameter] if group is None else _parameters_of(group)
        gathering.__dict__["__signature__"] = signature.replace(parameters=parameters)
        return gathering

    return spread


def _parameters_of(group: type) -> list[inspect.Parameter]:
    hints = get_type_hints(group, include_extras=True)
    return [
        inspect.Parameter(
            field.name, inspect.Parameter.KEYWORD_ONLY, default=field.default, annotation=hints[field.name]
        )
        for field in fields(group)
    ]
