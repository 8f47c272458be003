"""How a function becomes a command: its help comes from its docstring, and its errors end in exit codes."""

import functools
import inspect
from collections.abc import Callable

import typer

from agentmon.cli import exit_codes
from agentmon.cli.failures import find_expected, tell_failure
from agentmon.cli.output import discard_output, flush

_HEADING = "\n\nExamples:\n"


def register(
    parent: typer.Typer, name: str, command: Callable[..., None], *, takes_words_with_dashes: bool = False
) -> None:
    """Make the function a command of the parent.

    Args:
        parent: The group.
        name: As it is typed.
        command: What it does.
        takes_words_with_dashes: Whether a word such as ``-1`` that is no option is an argument.
    """
    text, epilog = _help_of(command)
    context = {"ignore_unknown_options": takes_words_with_dashes}
    parent.command(name, help=text, epilog=epilog, context_settings=context)(_ending_in_exit_codes(command))


def register_default(group: typer.Typer, command: Callable[..., None]) -> None:
    """Make the function what a group does before any of its commands, and when none is named."""
    text, epilog = _help_of(command)
    group.callback(invoke_without_command=True, help=text, epilog=epilog)(_ending_in_exit_codes(command))


def _help_of(command: Callable[..., None]) -> tuple[str, str | None]:
    text, _, examples = inspect.cleandoc(command.__doc__ or "").partition(_HEADING)
    # A line with a backspace alone keeps the paragraph's line breaks.
    return text, "\b\nExamples:\n" + examples if examples else None


def _ending_in_exit_codes(command: Callable[..., None]) -> Callable[..., None]:
    @functools.wraps(command)
    def run(*words: object, **options: object) -> None:
        try:
            command(*words, **options)
            flush()
        except KeyboardInterrupt:
            raise typer.Exit(exit_codes.INTERRUPTED) from None
        except Exception as error:
            if _is_left_by_reader(error):
                # Here and not in main, since typer makes a failure of it.
                discard_output()
                raise typer.Exit from None
            if find_expected(error) is None:
                raise
            raise typer.Exit(tell_failure(error)) from None

    return run


def _is_left_by_reader(error: Exception) -> bool:
    if isinstance(error, ExceptionGroup):
        return error.subgroup(BrokenPipeError) is not None
    return isinstance(error, BrokenPipeError)
