"""What several sources tell of the same commands and options, put together; each keeps the names of its sources."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from agentmon.domain.agents import CapabilitySource
from agentmon.runners.capability_scanners.help_text import argument_key
from agentmon.runners.capability_scanners.scanned import ScannedCapability, ScannedOption, ValueKind

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence


_TELL_WORDS: Final = frozenset({CapabilitySource.SCAN_HELP, CapabilitySource.SCAN_FIG})
"""The sources that tell the positional arguments too; where no other one told, any words are taken."""
_ANY_WORDS: Final = ScannedOption(
    key="words",
    kind=ValueKind.STRING,
    value_name="WORDS",
    description="What else stands on the command line",
    is_repeated=True,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class MergedCapability:
    """One command as all its sources together describe it."""

    scanned: ScannedCapability
    sources: tuple[CapabilitySource, ...]
    """The one whose words count comes first."""
    option_sources: Mapping[str, tuple[CapabilitySource, ...]]
    """By the key of the option or positional argument."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Merged:
    option: ScannedOption
    sources: tuple[CapabilitySource, ...]
    scan: int
    """Which of the scans told of it first."""


def merge(scans: Iterable[Sequence[ScannedCapability]], *, adds_any_words: bool = True) -> tuple[MergedCapability, ...]:
    """Return the commands that the scans tell of, each once, in the order in which they are first named.

    Args:
        scans: What each source told, the most trusted one first. What it says of a label, a description, a default or
            the choices counts before what later ones say; an option takes a value when any of them says so.
        adds_any_words: Whether a command takes any words where no source has told its positional arguments.
    """
    by_words: dict[tuple[str, ...], list[ScannedCapability]] = {}
    for scan in scans:
        for capability in scan:
            by_words.setdefault(capability.subcommand, []).append(capability)
    return tuple(_merge_command(told, adds_any_words=adds_any_words) for told in by_words.values())


def merge_options(options: Iterable[ScannedOption]) -> tuple[ScannedOption, ...]:
    """Return the options with those that share a name made one, each under a key of its own."""
    return tuple(merged.option for merged in _with_own_keys(_merge_all((0, option) for option in options)))


def option_key(names: Sequence[str]) -> str:
    """Return the name of the argument for an option of these names: ``max_count`` for ``-m`` and ``--max-count``."""
    long = [name for name in names if name.startswith("--")]
    return argument_key(max(long[:1] or names, key=len).lstrip("-+"))


def _merge_command(told: Sequence[ScannedCapability], *, adds_any_words: bool) -> MergedCapability:
    learned = [capability for capability in told if capability.is_learned] or [told[0]]
    first, first_learned = told[0], learned[0]
    named = [
        (scan, option)
        for scan, capability in enumerate(learned)
        for option in capability.options
        if not option.is_positional
    ]
    # The same word has another name in each source, so that those of one source alone can be told apart.
    positional: tuple[ScannedOption, ...] = next(
        (found for capability in learned if (found := _positional(capability))), ()
    )
    is_untold = first_learned.is_learned and not {one.source for one in learned} & _TELL_WORDS
    if adds_any_words and is_untold and not positional:
        positional = (replace(_ANY_WORDS, source=first_learned.source),)
    words = [_Merged(option=one, sources=(one.source,), scan=0) for one in positional]
    leading = _leading_words(learned)
    merged = _with_own_keys([*words[:leading], *_merge_all(named), *words[leading:]])
    return MergedCapability(
        scanned=replace(
            first,
            description=next((capability.description for capability in told if capability.description), ""),
            options=tuple(one.option for one in merged),
            is_learned=any(capability.is_learned for capability in told),
            takes_double_dash=any(capability.takes_double_dash for capability in learned),
            source=first_learned.source,
        ),
        sources=tuple(dict.fromkeys(capability.source for capability in (*learned, *told))),
        option_sources={one.option.key: one.sources for one in merged},
    )


def _leading_words(learned: Sequence[ScannedCapability]) -> int:
    """Return how many positional arguments come before the options, as the folder of ``find`` does."""
    told = next((capability for capability in learned if _positional(capability)), None)
    if told is None or all(option.is_positional for option in told.options):
        return 0
    return next(place for place, option in enumerate(told.options) if not option.is_positional)


def _positional(capability: ScannedCapability) -> tuple[ScannedOption, ...]:
    return tuple(option for option in capability.options if option.is_positional)


def _merge_all(options: Iterable[tuple[int, ScannedOption]]) -> list[_Merged]:
    merged: dict[int, _Merged] = {}
    place_of: dict[str, int] = {}
    for scan, option in options:
        fresh = _Merged(option=option, sources=(option.source,), scan=scan)
        places = sorted({place_of[name] for name in option.names if name in place_of})
        if not places:
            places = [len(merged) and max(merged) + 1]
            merged[places[0]] = fresh
        elif len(places) == 1 or all(merged[place].scan == scan for place in places):
            merged[places[0]] = _joined([*(merged.pop(place) for place in places), fresh])
        else:
            # A more trusted source tells these apart, as two that share a line of the other one.
            for place in places:
                others = {name for name in option.names if place_of.get(name, places[0]) != place}
                names = tuple(name for name in option.names if name not in others)
                part = replace(fresh, option=replace(option, names=names))
                merged[place] = _joined([merged[place], part])
        for place in places:
            if place in merged:
                place_of |= dict.fromkeys(merged[place].option.names, place)
    return [merged[place] for place in sorted(merged)]


def _joined(parts: Sequence[_Merged]) -> _Merged:
    options = [part.option for part in parts]
    first = options[0]
    with_value = [option for option in options if option.kind is not ValueKind.BOOLEAN]
    told = with_value[0] if with_value else first
    names = tuple(dict.fromkeys(name for option in options for name in option.names))
    return _Merged(
        option=replace(
            first,
            key=first.key if len(names) == len(first.names) else option_key(names),
            names=names,
            kind=next((one.kind for one in with_value if one.kind is not ValueKind.STRING), told.kind),
            value_name=next((option.value_name for option in options if option.value_name), ""),
            description=next((option.description for option in options if option.description), ""),
            choices=next((option.choices for option in options if option.choices), ()),
            default=next((option.default for option in options if option.default is not None), None),
            is_required=any(option.is_required for option in options),
            is_repeated=any(option.is_repeated for option in options),
            is_value_optional=told.is_value_optional,
            join=told.join,
        ),
        sources=tuple(dict.fromkeys(source for part in parts for source in part.sources)),
        scan=parts[0].scan,
    )


def _with_own_keys(merged: Iterable[_Merged]) -> list[_Merged]:
    taken: set[str] = set()
    own: list[_Merged] = []
    for one in merged:
        key = one.option.key
        count = 1
        while key in taken:
            count += 1
            key = f"{one.option.key}_{count}"
        taken.add(key)
        own.append(one if key == one.option.key else replace(one, option=replace(one.option, key=key)))
    return own
