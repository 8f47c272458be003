"""The order of a capability's arguments, which JSON does not keep: a list of names beside them in the schema."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

ORDER_KEY: Final = "x-order"
"""An entry of the schema that no validator looks at."""


def argument_names(schema: Mapping[str, object]) -> tuple[str, ...]:
    """Return the names of all arguments in their order; those that the order does not name come behind the others."""
    properties = schema.get("properties")
    names = [str(name) for name in properties] if isinstance(properties, dict) else []
    told = schema.get(ORDER_KEY)
    order = [name for name in told if name in names] if isinstance(told, list | tuple) else []
    return tuple(dict.fromkeys([*order, *names]))


def with_order(schema: Mapping[str, object]) -> dict[str, Any]:
    """Return the schema with the present order of its arguments told in it; without a second argument there is none."""
    names = argument_names(schema)
    bare = {key: value for key, value in schema.items() if key != ORDER_KEY}
    return bare | {ORDER_KEY: list(names)} if len(names) > 1 else bare
