"""The names that one model has: as an agent recorded it, without its wrapping, and without its date."""

from __future__ import annotations

import re
from typing import Final

_SUFFIX_IN_BRACKETS: Final = re.compile(r"\[[^\]]*\]$")
_BEDROCK_MAKER: Final = re.compile(
    r"^(?:[a-z]{2,7}(?:-[a-z]{2,7})?\.)?(?:anthropic|amazon|openai|meta|mistral|deepseek)\."
)
_BEDROCK_VERSION: Final = re.compile(r"-v\d{1,2}(?::\d{1,3}(?::\w+)?)?$")
_FLOATING: Final = re.compile(r"[-@](?:latest|default)$")
_DATE: Final = re.compile(r"[-@](?:20\d{2}-\d{2}-\d{2}|20\d{6})$")


def recorded_name(model: str) -> str:
    """Return the name in small letters and without ``[1m]``, which says how long a prompt may be."""
    return _SUFFIX_IN_BRACKETS.sub("", model.strip().lower())


def bare_name(model: str) -> str:
    """Return the maker's own name of the model.

    ``us.anthropic.claude-opus-4-8-v1:0``, ``anthropic/claude-opus-4-8[1m]`` and
    ``publishers/anthropic/models/claude-opus-4-8@default`` all are ``claude-opus-4-8``. A date stays.
    """
    name = recorded_name(model).rpartition("/")[2]
    if match := _BEDROCK_MAKER.match(name):
        name = _BEDROCK_VERSION.sub("", name[match.end() :])
    return _FLOATING.sub("", name).replace("@", "-")


def names_of(model: str) -> tuple[str, ...]:
    """Return the names to look for, the most exact first; none twice, none empty."""
    bare = bare_name(model)
    return tuple(dict.fromkeys(name for name in (recorded_name(model), bare, _DATE.sub("", bare)) if name))


def is_of_bedrock(model: str) -> bool:
    """Return whether the name has the form that Amazon Bedrock gives models."""
    return _BEDROCK_MAKER.match(recorded_name(model).rpartition("/")[2]) is not None
