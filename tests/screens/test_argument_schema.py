"""Arguments of a capability changed one by one; whatever else the schema says stays."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from agentmon.domain.argument_order import with_order
from agentmon.runners.adapters.template import check_arguments
from agentmon.screens.agents.argument_schema import (
    sample_arguments,
    undescribed_arguments,
    with_argument,
    with_argument_moved,
    with_placeholder_renamed,
    without_argument,
)
from agentmon.widgets.arguments_form import ArgumentKind, ArgumentSpec, argument_specs

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "count": {"type": "integer", "title": "Commits", "minimum": 3, "maximum": 9, "x-note": "kept"},
        "paths": {"type": "array", "items": {"type": "string"}},
        "style": {"enum": ["short", "long"], "type": "string"},
        "all": {"type": "boolean"},
    },
    "required": ["count"],
    "additionalProperties": True,
}


def spec(name: str) -> ArgumentSpec:
    return next(one for one in argument_specs(SCHEMA) if one.name == name)


def test_an_argument_keeps_its_place_and_what_no_dialog_shows() -> None:
    changed = with_argument(SCHEMA, replace(spec("count"), name="max", default=5), replaces="count")

    assert list(changed["properties"]) == ["max", "paths", "style", "all"]
    assert changed["properties"]["max"] == SCHEMA["properties"]["count"] | {"default": 5}
    assert changed["required"] == ["max"]
    assert changed["additionalProperties"] is True
    assert with_argument(SCHEMA, spec("paths"), replaces="paths") == with_order(SCHEMA)


def test_another_type_drops_what_made_sense_for_the_old_one_alone() -> None:
    text = with_argument(SCHEMA, replace(spec("count"), kind=ArgumentKind.TEXT, is_required=False), replaces="count")
    choice = replace(spec("all"), kind=ArgumentKind.CHOICE, choices=("a", "b"))

    assert text["properties"]["count"] == {"type": "string", "title": "Commits", "x-note": "kept"}
    assert "required" not in text
    assert with_argument(SCHEMA, choice, replaces="all")["properties"]["all"] == {"type": "string", "enum": ["a", "b"]}


def test_arguments_are_added_moved_and_taken_away() -> None:
    added = with_argument(SCHEMA, ArgumentSpec(name="new", kind=ArgumentKind.TEXTS, label="new"), replaces=None)

    assert added["properties"]["new"] == {"type": "array", "items": {"type": "string"}}
    assert list(with_argument_moved(SCHEMA, "count", 1)["properties"]) == ["paths", "count", "style", "all"]
    assert with_argument_moved(SCHEMA, "count", -1) == with_order(SCHEMA)
    assert list(without_argument(SCHEMA, "count")["properties"]) == ["paths", "style", "all"]
    assert "required" not in without_argument(SCHEMA, "count")


def test_samples_fit_the_schema() -> None:
    samples = sample_arguments(SCHEMA)

    assert samples == {"count": 3, "paths": ["PATHS"], "style": "short", "all": True}
    assert check_arguments(SCHEMA, samples) == samples
    assert sample_arguments(SCHEMA, is_least=True) == {"count": 3, "paths": None, "style": None, "all": None}


def test_a_placeholder_follows_the_name_of_its_argument_and_no_other_does() -> None:
    text = "a {{args.max}} {{ args.max }} {{--max args.max}} {{args.max_count}} args.max"

    assert with_placeholder_renamed(text, "max", "top") == (
        "a {{args.top}} {{ args.top }} {{--max args.top}} {{args.max_count}} args.max"
    )


def test_arguments_that_nobody_has_described_are_named_once() -> None:
    text = "a {{args.count}} {{--x args.new}} {{ args.new }} {{task_title}} {{args.other_one}}"

    assert undescribed_arguments(text, SCHEMA) == ("new", "other_one")


def test_the_order_of_arguments_outlives_a_store_that_sorts_names() -> None:
    moved = with_argument_moved(SCHEMA, "style", -2)

    stored = json.loads(json.dumps(moved, sort_keys=True))

    assert [one.name for one in argument_specs(stored)] == ["style", "count", "paths", "all"]
    assert [one.name for one in argument_specs(without_argument(stored, "count"))] == ["style", "paths", "all"]
