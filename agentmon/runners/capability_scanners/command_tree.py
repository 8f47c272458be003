"""Gathers what one source tells of a program, option by option and in any order, into scanned commands."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from agentmon.runners.capability_scanners.help_text import argument_key, capability_key
from agentmon.runners.capability_scanners.merging import merge_options, option_key
from agentmon.runners.capability_scanners.scanned import ScannedCapability, ScannedOption, ValueJoin, ValueKind

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from agentmon.domain.agents import CapabilitySource


@dataclass(slots=True)
class _Command:
    description: str = ""
    options: list[ScannedOption] = field(default_factory=list)
    words: list[ScannedOption] = field(default_factory=list)
    """Positional arguments, in their order."""
    is_learned: bool = False


class CommandTree:
    """The commands of one program as one source describes them."""

    def __init__(self, program: str, source: CapabilitySource) -> None:
        self._program = program
        self._source = source
        self._commands: dict[tuple[str, ...], _Command] = {}

    @property
    def subcommands(self) -> tuple[tuple[str, ...], ...]:
        """The commands that are known so far, the program itself among them when something is known of it."""
        return tuple(self._commands)

    def name(self, subcommand: Sequence[str], description: str = "") -> None:
        """Note that there is such a command; what is said of it first counts."""
        command = self._command(subcommand)
        command.description = command.description or description.strip()

    def learn(self, subcommand: Sequence[str]) -> None:
        """Note that all options of the command are told, even when there are none."""
        self._command(subcommand).is_learned = True

    def add_option(
        self,
        subcommand: Sequence[str],
        names: Iterable[str],
        *,
        kind: ValueKind = ValueKind.BOOLEAN,
        value_name: str = "",
        description: str = "",
        choices: Sequence[str] = (),
        is_repeated: bool = False,
        is_required: bool = False,
        is_value_optional: bool = False,
        join: ValueJoin | None = None,
    ) -> None:
        """Note an option; one that shares a name with an earlier one is the same.

        Args:
            subcommand: The command that takes it.
            names: As they are typed; nothing is noted when there are none.
            kind: What it takes.
            value_name: What the value is called.
            description: What it does.
            choices: The values that it takes.
            is_repeated: Whether it may be given several times.
            is_required: Whether the command needs it.
            is_value_optional: Whether it also stands alone.
            join: What stands before its value; None means ``=`` for a long name and a word of its own for a short one.
        """
        typed = tuple(dict.fromkeys(names))
        if not typed:
            return
        command = self._command(subcommand)
        command.is_learned = True
        if join is None:
            join = ValueJoin.EQUALS if any(name.startswith("--") for name in typed) else ValueJoin.WORD
        command.options.append(
            ScannedOption(
                key=option_key(typed),
                names=typed,
                kind=kind,
                value_name=value_name,
                description=description.strip(),
                choices=tuple(dict.fromkeys(choices)),
                is_repeated=is_repeated,
                is_required=is_required,
                is_value_optional=is_value_optional,
                join=join,
                source=self._source,
            )
        )

    def add_word(
        self,
        subcommand: Sequence[str],
        name: str,
        *,
        description: str = "",
        choices: Sequence[str] = (),
        is_repeated: bool = False,
        is_required: bool = False,
    ) -> None:
        """Note a positional argument, behind those that are noted already."""
        command = self._command(subcommand)
        command.is_learned = True
        command.words.append(
            ScannedOption(
                key=argument_key(name.strip().lower()),
                kind=ValueKind.STRING,
                value_name=name,
                description=description.strip(),
                choices=tuple(dict.fromkeys(choices)),
                is_repeated=is_repeated,
                is_required=is_required,
                source=self._source,
            )
        )

    def capabilities(self) -> tuple[ScannedCapability, ...]:
        """Return the commands in the order in which they were first named, the program itself first."""
        ordered = sorted(self._commands, key=bool)
        return tuple(self._scanned(subcommand, self._commands[subcommand]) for subcommand in ordered)

    def _command(self, subcommand: Sequence[str]) -> _Command:
        return self._commands.setdefault(tuple(subcommand), _Command())

    def _scanned(self, subcommand: tuple[str, ...], command: _Command) -> ScannedCapability:
        words = " ".join((self._program, *subcommand))
        return ScannedCapability(
            key=capability_key(subcommand),
            label=words,
            description=command.description,
            subcommand=subcommand,
            options=merge_options([*command.options, *command.words]),
            is_learned=command.is_learned,
            source=self._source,
        )
