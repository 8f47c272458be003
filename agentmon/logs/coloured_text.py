"""A log line for a terminal: its colours as sequences of our own, and nothing else that a terminal obeys."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from agentmon.logs.line_text import PLAIN_STYLE, styled_runs

if TYPE_CHECKING:
    from collections.abc import Iterable

    from agentmon.logs.line_text import Colour, StyledRun, TextStyle

_END: Final = "\x1b[0m"
_BRIGHT: Final = 8
_PALETTE: Final = 16


def coloured_text(line: bytes) -> str:
    """Return one line (without its line feed) as a terminal would leave it, coloured as the program coloured it."""
    return coloured_runs(styled_runs(line))


def coloured_rest(line: bytes, start: int) -> str:
    """Return what ``coloured_text`` returns, without the first ``start`` characters of the text."""
    rest = []
    for run in styled_runs(line):
        if len(run.text) > start:
            rest.append(replace(run, text=run.text[start:]))
        start = max(0, start - len(run.text))
    return coloured_runs(rest)


def coloured_runs(runs: Iterable[StyledRun]) -> str:
    """Return runs of text for a terminal, each with its colours and none behind it."""
    return "".join(
        run.text if run.style == PLAIN_STYLE else f"{style_sequence(run.style)}{run.text}{_END}" for run in runs
    )


@lru_cache(maxsize=1024)
def style_sequence(style: TextStyle) -> str:
    """Return the sequence that begins a style; empty for the plain one. Source: ECMA-48, 8.3.117."""
    switches = ((style.bold, 1), (style.dim, 2), (style.italic, 3), (style.underline, 4), (style.reverse, 7))
    codes = [str(code) for is_on, code in (*switches, (style.strike, 9)) if is_on]
    codes += _colour_codes(style.foreground, 30) + _colour_codes(style.background, 40)
    return f"\x1b[{';'.join(codes)}m" if codes else ""


def _colour_codes(colour: Colour | None, base: int) -> list[str]:
    if colour is None:
        return []
    if isinstance(colour, tuple):
        return [f"{base + 8};2;{colour[0]};{colour[1]};{colour[2]}"]
    if colour >= _PALETTE:
        return [f"{base + 8};5;{colour}"]
    return [str(base + colour if colour < _BRIGHT else base + 60 + colour - _BRIGHT)]
