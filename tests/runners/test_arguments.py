from __future__ import annotations

import warnings
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread

import pytest

from agentmon.domain.errors import ArgumentsError
from agentmon.runners.adapters.arguments import check_arguments, coerce_arguments

SCHEMA: dict[str, object] = {
    "type": "object",
    "properties": {
        "count": {"type": "integer", "minimum": 1, "maximum": 100, "default": 20},
        "level": {"enum": ["low", "high", 3]},
        "name": {"type": "string", "pattern": "^[a-z]+$", "minLength": 1},
        "paths": {"type": "array", "items": {"type": "string"}, "minItems": 1},
        "ratio": {"type": "number"},
        "sizes": {"type": "array", "items": {"type": "integer"}},
        "verbose": {"type": "boolean"},
        "limit": {"type": ["integer", "null"]},
        "extra": {"type": "object"},
        "loose": {},
    },
}


def test_defaults_are_filled_in_and_the_order_is_that_of_the_schema() -> None:
    assert list(check_arguments(SCHEMA, {"name": "a"}).items()) == [("count", 20), ("name", "a")]


def test_a_former_name_means_the_present_argument() -> None:
    schema = {"type": "object", "properties": {"max": {"type": "integer", "x-former-names": ["count"]}}}

    assert check_arguments(schema, {"count": 5}) == {"max": 5}
    assert coerce_arguments(schema, {"count": "5"}) == {"max": 5}
    with pytest.raises(ArgumentsError, match="no argument count"):
        check_arguments(schema, {"count": 5, "max": 6})


def test_none_leaves_an_argument_out_even_where_it_has_a_default() -> None:
    assert check_arguments(SCHEMA, {"count": None}) == {"count": None}


@pytest.mark.parametrize(
    ("args", "message", "hint"),
    [
        (
            {"count": "x"},
            "argument count must be a whole number, not x",
            "count: a whole number, at least 1, at most 100; default 20",
        ),
        ({"count": True}, "argument count must be a whole number, not true", None),
        ({"count": 0}, "argument count must be at least 1, not 0", None),
        ({"count": 101}, "argument count must be at most 100, not 101", None),
        ({"level": "mid"}, "argument level must be one of low, high, 3, not mid", "level: one of low, high, 3"),
        ({"name": "A b"}, "argument name must have the form ^[a-z]+$, not A b", "name: text, in the form ^[a-z]+$"),
        ({"paths": []}, "argument paths must not be empty, not []", "paths: a list"),
        ({"paths": ["a", 2]}, "argument paths[1] must be text, not 2", None),
        ({"paths": "a"}, "argument paths must be a list, not a", None),
        ({"limit": "x"}, "argument limit must be a whole number or nothing, not x", None),
    ],
)
def test_an_argument_that_does_not_fit_is_named_with_what_is_allowed(
    args: dict[str, object], message: str, hint: str | None
) -> None:
    with pytest.raises(ArgumentsError) as caught:
        check_arguments(SCHEMA, args)

    assert str(caught.value) == message
    assert hint is None or caught.value.hint == hint


def test_a_long_value_is_cut_in_the_message() -> None:
    with pytest.raises(ArgumentsError) as caught:
        check_arguments(SCHEMA, {"count": "x" * 10_000})

    assert len(str(caught.value)) < 200


@pytest.mark.parametrize("args", [{}, {"a": None}])
def test_a_missing_argument_is_named(args: dict[str, object]) -> None:
    schema: dict[str, object] = {
        "properties": {"a": {"type": "string"}, "property": {"type": "integer"}},
        "required": ["property", "a"],
    }

    with pytest.raises(ArgumentsError, match="argument property is missing"):
        check_arguments(schema, args)
    with pytest.raises(ArgumentsError, match="argument a is missing") as caught:
        check_arguments(schema, {"property": 1, **args})

    assert caught.value.hint == "a: text"


def test_an_unknown_argument_is_refused_with_the_known_ones() -> None:
    with pytest.raises(ArgumentsError, match="there is no argument cuont") as caught:
        check_arguments({"properties": {"count": {}, "path": {}}}, {"cuont": 3})

    assert caught.value.hint == "known arguments: count, path"


def test_a_capability_without_arguments_says_so() -> None:
    with pytest.raises(ArgumentsError) as caught:
        check_arguments({}, {"a": 1})

    assert caught.value.hint == "this capability takes no arguments"


def test_a_schema_may_allow_arguments_that_it_does_not_describe() -> None:
    schema: dict[str, object] = {"properties": {}, "additionalProperties": {"type": "integer"}}

    assert check_arguments(schema, {"a": 1}) == {"a": 1}
    with pytest.raises(ArgumentsError, match="argument a must be a whole number"):
        check_arguments(schema, {"a": "x"})


@pytest.mark.parametrize(
    "schema",
    [
        {"properties": {"a": {"type": "nonsense"}}},
        {"properties": []},
        {"properties": {"a": {"$ref": "#/missing"}}},
    ],
)
def test_a_broken_schema_is_named_as_the_fault(schema: dict[str, object]) -> None:
    with pytest.raises(ArgumentsError, match="not described by a valid JSON Schema"):
        check_arguments(schema, {"a": 1})


def test_a_reference_to_another_document_is_never_fetched() -> None:
    requested: list[str] = []

    class Recorder(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            requested.append(self.path)
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b"{}")

    with HTTPServer(("127.0.0.1", 0), Recorder) as server, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        schema: dict[str, object] = {
            "properties": {"a": {"$ref": f"http://127.0.0.1:{server.server_port}/schema.json"}}
        }
        try:
            with pytest.raises(ArgumentsError, match="not described by a valid JSON Schema"):
                check_arguments(schema, {"a": 1})
        finally:
            server.shutdown()

    assert requested == []


@pytest.mark.parametrize(
    ("name", "word", "value"),
    [
        ("count", "20", 20),
        ("count", " -3 ", -3),
        ("ratio", "2", 2),
        ("ratio", "-.5e3", -500.0),
        ("verbose", "yes", True),
        ("verbose", "TRUE", True),
        ("verbose", "off", False),
        ("name", "20", "20"),
        ("name", "", ""),
        ("level", "high", "high"),
        ("level", "3", 3),
        ("limit", "null", None),
        ("limit", "4", 4),
        ("extra", '{"a": [1]}', {"a": [1]}),
        ("loose", "7", "7"),
        ("paths", "a", ["a"]),
        ("paths", ["a", "--b"], ["a", "--b"]),
        ("sizes", ["1", "2"], [1, 2]),
    ],
)
def test_words_become_values_of_the_kind_that_the_schema_wants(name: str, word: str | list[str], value: object) -> None:
    coerced = coerce_arguments(SCHEMA, {name: word})

    assert coerced == {name: value}
    assert type(coerced[name]) is type(value)


@pytest.mark.parametrize(
    ("name", "word", "message"),
    [
        ("count", "many", "argument count must be a whole number, not many"),
        ("count", "1_000", "argument count must be a whole number, not 1_000"),
        ("count", "٣", "argument count must be a whole number, not ٣"),
        ("count", "2.0", "argument count must be a whole number, not 2.0"),
        ("count", "9" * 5000, "argument count must be a whole number, not 999"),
        ("ratio", "nan", "argument ratio must be a number, not nan"),
        ("verbose", "maybe", "argument verbose must be true or false, not maybe"),
        ("extra", "[1]", "argument extra must be an object, not [1]"),
        ("sizes", ["1", "b"], "argument sizes must be a whole number, not b"),
        ("count", ["1", "2"], "argument count takes one value, and 2 are given"),
        ("size", "1", "there is no argument size"),
    ],
)
def test_words_that_cannot_be_read_are_named(name: str, word: str | list[str], message: str) -> None:
    with pytest.raises(ArgumentsError) as caught:
        coerce_arguments(SCHEMA, {name: word})

    assert str(caught.value).startswith(message)
    assert caught.value.hint
