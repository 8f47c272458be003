"""What a scanner learned about a program: its options, its positional arguments and its subcommands."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from agentmon.domain.agents import CapabilitySource


class ValueKind(StrEnum):
    """What an option takes, named as JSON Schema names it."""

    BOOLEAN = "boolean"
    """No value: it is there or it is not."""
    INTEGER = "integer"
    NUMBER = "number"
    STRING = "string"


class ValueJoin(StrEnum):
    """What stands between an option and its value on the command line."""

    EQUALS = "="
    COLON = ":"
    NOTHING = ""
    WORD = " "
    """The value is a word of its own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScannedOption:
    """One option or positional argument of a command."""

    key: str
    """The name of the argument: ``max_count`` for ``--max-count``. Unique within its capability."""
    names: tuple[str, ...] = ()
    """As they are typed, in the order of the text: ``("-m", "--max-count")``; empty for a positional argument."""
    kind: ValueKind = ValueKind.BOOLEAN
    value_name: str = ""
    """As the text calls the value: ``NUM``; for a positional argument its name."""
    description: str = ""
    choices: tuple[str, ...] = ()
    default: str | int | float | bool | None = None
    """As the text tells it; None when it tells none."""
    is_required: bool = False
    is_repeated: bool = False
    """Whether it may be given several times; a positional one: whether it takes several words."""
    is_value_optional: bool = False
    """Whether the option also stands without its value: ``--color[=WHEN]``."""
    join: ValueJoin = ValueJoin.EQUALS
    source: CapabilitySource = CapabilitySource.SCAN_HELP

    @property
    def is_positional(self) -> bool:
        """Whether it has no name of its own on the command line."""
        return not self.names

    @property
    def spelling(self) -> str:
        """The name that a command line gets: the first long one, or else the first; empty for a positional one.

        ``-NUM`` stands for the number itself, and its name is the dash alone.
        """
        if self.names and self.names[0] in {"-NUM", "-NUMBER"}:
            return "-"
        return next((name for name in self.names if name.startswith("--")), next(iter(self.names), ""))


@dataclass(frozen=True, slots=True, kw_only=True)
class ScannedCapability:
    """One command of a program: the program itself, or a subcommand of it."""

    key: str
    """``run`` for the program itself, ``remote-add`` for ``remote add``; fits a capability's key."""
    label: str
    description: str = ""
    subcommand: tuple[str, ...] = ()
    """The words that choose it; empty for the program itself."""
    options: tuple[ScannedOption, ...] = ()
    """In the order of the command line; positional arguments are mostly the last."""
    is_learned: bool = True
    """False for a subcommand that is only named so far; it takes any words until it is scanned itself."""
    takes_double_dash: bool = False
    """Whether ``--`` ends its options, so that a positional argument may begin with a dash."""
    source: CapabilitySource = CapabilitySource.SCAN_HELP
