from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from agentmon.domain.agents import CapabilitySource, DangerLevel
from agentmon.domain.ids import AgentId
from agentmon.runners.adapters.arguments import check_arguments, coerce_arguments
from agentmon.runners.adapters.template import render_command
from agentmon.runners.capability_scanners import (
    ScannedCapability,
    ScannedOption,
    ValueJoin,
    ValueKind,
    args_schema,
    to_capability,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

SEARCH = ScannedCapability(
    key="search",
    label="Search",
    subcommand=("search",),
    takes_double_dash=True,
    options=(
        ScannedOption(key="all", names=("-a", "--all"), description="All of them"),
        ScannedOption(key="verbose", names=("-v", "--verbose"), is_repeated=True),
        ScannedOption(key="max", names=("-m", "--max"), kind=ValueKind.INTEGER, value_name="N", default=20),
        ScannedOption(key="color", names=("--color",), kind=ValueKind.STRING, choices=("auto", "never")),
        ScannedOption(key="not", names=("--not",), kind=ValueKind.STRING, is_repeated=True),
        ScannedOption(key="I", names=("-I",), kind=ValueKind.STRING, is_repeated=True, join=ValueJoin.NOTHING),
        ScannedOption(key="cp", names=("-cp",), kind=ValueKind.STRING, join=ValueJoin.WORD),
        ScannedOption(key="stat", names=("--stat",), kind=ValueKind.STRING, value_name="W", is_value_optional=True),
        ScannedOption(key="stat_value", names=("--stat-value",), kind=ValueKind.STRING),
        ScannedOption(key="help", names=("-h", "--help")),
        ScannedOption(key="pattern", kind=ValueKind.STRING, value_name="PATTERN", is_required=True),
        ScannedOption(key="files", kind=ValueKind.STRING, value_name="FILES", is_repeated=True),
    ),
)


def command_line(words: dict[str, str | Sequence[str]], scanned: ScannedCapability = SEARCH) -> tuple[str, ...]:
    capability = to_capability(scanned, agent_id=AgentId("agent"))
    args = check_arguments(capability.args_schema, coerce_arguments(capability.args_schema, words))
    return render_command(capability, binary="prog", base_args=(), task_title="T", args=args, prompt_additions="")


@pytest.mark.parametrize(
    ("words", "line"),
    [
        ({}, "-- p"),
        ({"all": "yes", "verbose": "2", "max": "5"}, "--all --verbose --verbose --max=5 -- p"),
        ({"all": "no", "verbose": "0", "color": "never"}, "--color=never -- p"),
        ({"not": ["x", "y"], "I": ["lib"], "cp": "a:b"}, "--not=x --not=y -Ilib -cp a:b -- p"),
        ({"stat": "yes"}, "--stat -- p"),
        ({"stat_value_value": "80", "stat_value": "x"}, "--stat=80 --stat-value=x -- p"),
        ({"files": ["-f", "g"]}, "-- p -f g"),
    ],
)
def test_a_scanned_command_is_run_with_what_was_chosen_and_nothing_else(
    words: dict[str, str | Sequence[str]], line: str
) -> None:
    assert command_line({"pattern": "p", **words}) == ("prog", "search", *line.split())


def test_arguments_are_described_with_title_kind_choices_and_default() -> None:
    schema = args_schema(SEARCH)

    assert schema["required"] == ["pattern"]
    properties = schema["properties"]
    assert isinstance(properties, dict)
    assert "help" not in properties
    assert properties["max"] == {"type": "integer", "title": "-m, --max N", "description": "(default: 20)"}
    assert properties["color"]["enum"] == ["auto", "never"]
    assert properties["not"]["items"] == {"type": "string"}
    assert properties["files"]["title"] == "FILES"


def test_a_dangerous_command_requires_an_approval_and_names_its_source() -> None:
    capability = to_capability(SEARCH, agent_id=AgentId("agent"), danger_level=DangerLevel.DANGEROUS)

    assert capability.requires_approval
    assert capability.source is CapabilitySource.SCAN_HELP


def test_a_command_that_is_only_named_takes_any_words() -> None:
    named = ScannedCapability(key="remote-add", label="Add", subcommand=("remote", "add"), is_learned=False)

    assert command_line({"words": ["-f", "x y"]}, named) == ("prog", "remote", "add", "-f", "x y")
