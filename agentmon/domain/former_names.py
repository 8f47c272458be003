"""Arguments that had another name in an earlier release: a task that still says it means the present one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeVar

if TYPE_CHECKING:
    from collections.abc import Mapping

FORMER_NAMES_KEY: Final = "x-former-names"
"""An entry of an argument in the schema, a list of names, that no validator looks at."""

_Value = TypeVar("_Value")


def with_present_names(schema: Mapping[str, object], args: Mapping[str, _Value]) -> dict[str, _Value]:
    """Return the arguments, in their order, under the names that the schema has for them.

    A name that the schema knows stays, and so does a former one whose present one is given as well.
    """
    properties = schema.get("properties")
    present: dict[str, str] = {}
    for name, described in properties.items() if isinstance(properties, dict) else ():
        former = described.get(FORMER_NAMES_KEY) if isinstance(described, dict) else None
        present |= {str(one): str(name) for one in former} if isinstance(former, list) else {}
    known = properties if isinstance(properties, dict) else {}
    return {
        present[name] if name in present and name not in known and present[name] not in args else name: value
        for name, value in args.items()
    }
