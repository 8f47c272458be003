from __future__ import annotations

import json

import pytest

from agentmon.domain.agents import CapabilitySource
from agentmon.domain.errors import RunnerError
from agentmon.domain.ids import AgentId
from agentmon.runners.capability_scanners.answer import MOST_TEXT_CHARACTERS, Answer, question, read_answer

TEXT = "usage: tool [--all] [-n N] [--out=FILE]\n-v, --verbose"
FINE: dict[str, object] = {
    "key": "list",
    "label": "List",
    "description": "Lists things",
    "words": [
        "ls",
        "{{--all args.all}}",
        "{{-n args.most}}",
        "--out={{args.out}}",
        "{{-v* args.loud}}",
        "{{args.paths}}",
    ],
    "arguments": {
        "all": {"type": "boolean", "title": "All"},
        "most": {"type": "integer", "minimum": 1, "maximum": 9, "default": 3, "required": True},
        "out": {"type": "string", "choices": ["a", "b"]},
        "loud": {"type": "integer"},
        "paths": {"type": "array", "choices": ["x", "y"]},
    },
}


def read(*entries: object) -> Answer:
    return read_answer(
        f"```json\n{json.dumps({'capabilities': entries})}\n```", program="tool", text=TEXT, agent_id=AgentId("a")
    )


def test_an_answer_of_the_right_form_becomes_a_capability() -> None:
    answer = read(FINE)
    (capability,) = answer.capabilities

    assert answer.problems == ()
    assert capability.source is CapabilitySource.LLM_GENERATED
    assert capability.command_tokens == tuple(FINE["words"])  # type: ignore[arg-type]
    assert capability.args_schema == {
        "type": "object",
        "properties": {
            "all": {"type": "boolean", "title": "All"},
            "most": {"type": "integer", "minimum": 1, "maximum": 9, "default": 3},
            "out": {"type": "string", "enum": ["a", "b"]},
            "loud": {"type": "integer"},
            "paths": {"type": "array", "items": {"type": "string", "enum": ["x", "y"]}},
        },
        "required": ["most"],
    }


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"key": "List all"}, "small letters, digits and dashes"),
        ({"label": "two\nlines"}, "its label has to be one line"),
        ({"label": "x" * 81}, "at most 80 characters"),
        ({"danger_level": 0}, "a field 'danger_level' that nobody asked for"),
        ({"words": "ls --all"}, "its words have to be a list"),
        ({"words": ["ls", 5]}, "its words have to be texts"),
        ({"words": ["tool", "ls"], "arguments": {}}, "tool itself must not be among its words"),
        ({"words": ["ls", "--hidden"], "arguments": {}}, "the option --hidden stands nowhere"),
        ({"words": ["{{--hidden args.all}}"]}, "the option --hidden stands nowhere"),
        ({"words": ["--all-of-it"], "arguments": {}}, "the option --all-of-it stands nowhere"),
        ({"words": ["a\0b"], "arguments": {}}, "cannot be a word of a command line"),
        ({"words": ["{{task_title}}"], "arguments": {}}, "has a placeholder that nobody knows"),
        ({"words": ["{{args.x}}"], "arguments": {}}, "x is no argument of it"),
        ({"words": ["ls"], "arguments": {"x": {"type": "string"}}}, "x is an argument of no word"),
        ({"words": ["{{args.x}}"], "arguments": {"x": {"type": "file"}}}, "has no type that is known"),
        ({"words": ["{{args.x}}"], "arguments": {"x": {"type": "string", "run": "y"}}}, "that nobody asked for"),
        ({"words": ["{{args.x}}"], "arguments": {"x": {"type": "string", "required": 1}}}, "true or false"),
        ({"words": ["{{args.x}}"], "arguments": {"x": {"type": "integer", "default": "y"}}}, "argument x must be"),
        ({"words": ["{{args.x}}"], "arguments": {"x": {"type": "string", "choices": []}}}, "a list of texts"),
        ({"words": ["-n={{args.x}}"], "arguments": {"x": {"type": "array"}}}, "is a list and cannot be a part"),
    ],
)
def test_what_is_not_as_it_should_be_is_refused_with_the_reason(change: dict[str, object], reason: str) -> None:
    answer = read(FINE | {"key": "odd"} | change, FINE)

    assert [capability.key for capability in answer.capabilities] == ["list"]
    assert len(answer.problems) == 1
    assert reason in answer.problems[0]


@pytest.mark.parametrize("said", ["", "no", "{}", '{"capabilities": 5}', "[" * 9999])
def test_an_answer_without_such_an_object_is_an_error(said: str) -> None:
    with pytest.raises(RunnerError, match="did not answer in the form"):
        read_answer(said, program="tool", text=TEXT, agent_id=AgentId("a"))


def test_an_answer_that_names_nothing_is_an_error() -> None:
    with pytest.raises(RunnerError, match="found nothing"):
        read()


def test_the_question_holds_the_text_and_an_example_that_would_be_understood() -> None:
    asked = question("tool", "---\n" + "x" * 100_000, subcommand=("add",))
    example = asked[asked.index('{"capabilities"') : asked.index("\n\nRules:")]

    answer = read_answer(example, program="tool", text="--all --depth", agent_id=AgentId("a"))

    assert [capability.key for capability in answer.capabilities] == ["list-files"]
    assert asked.count("x" * 100) > 1
    assert len(asked) < MOST_TEXT_CHARACTERS + 4000
    assert "of `tool add` alone" in asked
