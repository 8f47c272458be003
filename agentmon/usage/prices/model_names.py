"""The names that one model has: as an agent recorded it, without its wrapping, and without its date."""

from __future__ import annotations

import re
from typing import Final

_SUFFIX_IN_BRACKETS: Final = re.compile(r"\[[^\]]*\]$")
_REGION: Final = r"(?:[a-z]{2}|apac|us-gov|global)\."
_BEDROCK_MAKER: Final = re.compile(rf"^(?:{_REGION})?(?:anthropic|amazon|openai|meta|mistral|deepseek)\.")
_BEFORE_NAME: Final = re.compile(rf"(?:.*/)?(?:{_REGION})?(?:[a-z]+\.)?")
_BEDROCK_VERSION: Final = re.compile(r"-v\d{1,2}(?::\d{1,3}(?::\w+)?)?$")
_FLOATING: Final = re.compile(r"[-@](?:latest|default)$")
_MONTH: Final = r"(?:0[1-9]|1[0-2])"
_DAY: Final = r"(?:0[1-9]|[12]\d|3[01])"
_DATE: Final = re.compile(rf"[-@](?:20\d\d-{_MONTH}-{_DAY}|20\d\d{_MONTH}{_DAY})$")
_LIKE_A_DATE: Final = re.compile(r"[-@]20\d\d(?:-\d\d-\d\d|\d{4})$")
_FINE_TUNED: Final = "ft:"
_COMPACT_DATE: Final = re.compile(rf"(?<=[-@])(20\d\d)({_MONTH})({_DAY})$")
_RELEASE: Final = re.compile(
    rf"(?:[-@:](?:latest|default|preview|exp|experimental)"
    rf"|[-@](?:20\d\d-?{_MONTH}-?{_DAY}|{_MONTH}-(?:20\d\d|{_DAY})|{_MONTH}{_DAY}|2\d{_MONTH}|00\d)"
    r"|-v\d{1,2}:\d{1,3}(?::\w+)?|:\d)+$"
)
"""A state or date of release (``-preview-05-20``, ``-2507``, ``-001``), or Bedrock's version (``-v1:0``)."""


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


def without_release(name: str) -> str:
    """Return the name of a model without what only tells which release of it: a date, ``-latest``, ``-preview``.

    Nor with whose it is, of a fine-tuned one: ``ft:gpt-4o-2024-08-06:acme::b1`` is ``ft:gpt-4o``.
    """
    if name.startswith(_FINE_TUNED):
        name = ":".join(name.split(":")[:2])
    if _BEDROCK_MAKER.match(name.rpartition("/")[2]):
        name = _BEDROCK_VERSION.sub("", name)
    return _RELEASE.sub("", name)


def begins_a_name(before: str) -> bool:
    """Return whether a model's name begins behind these letters: nothing, a path, a region, a maker (``us.meta.``)."""
    return _BEFORE_NAME.fullmatch(before) is not None


def has_impossible_date(name: str) -> bool:
    """Return whether the name ends like a date in a month or on a day that does not exist."""
    return _LIKE_A_DATE.search(name) is not None and _DATE.search(name) is None


def with_dashed_date(name: str) -> str:
    """Return the name with a date at its end written as ``2026-01-31``."""
    return _COMPACT_DATE.sub(r"\1-\2-\3", name)


def is_of_bedrock(model: str) -> bool:
    """Return whether the name has the form that Amazon Bedrock gives models."""
    return _BEDROCK_MAKER.match(recorded_name(model).rpartition("/")[2]) is not None
