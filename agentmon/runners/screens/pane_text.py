"""What tmux says of a pane, as lines that each have their own colours and no letters of another character set."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from agentmon.logs.coloured_text import style_sequence
from agentmon.logs.line_text import PLAIN_STYLE, style_after

if TYPE_CHECKING:
    from collections.abc import Sequence

HISTORY_LINES: Final = 5000
"""As many as tmux keeps of a pane."""
_SGR: Final = re.compile(r"\x1b\[[0-9;:]*m")
_DRAWN: Final = re.compile("\x0e([^\x0f]*)(\x0f?)")
# Source: the special graphics of the VT100, as terminfo(5) names them in acs_chars.
_GRAPHICS: Final = str.maketrans("`afgjklmnopqrstuvwxyz{|}~", "◆▒°±┘┐┌└┼⎺⎻─⎼⎽├┤┴┬│≤≥π≠£·")


def pane_text(lines: Sequence[str]) -> bytes:
    """Return the lines of a coloured look at a pane as a text, without blank ones at its end.

    A colour and a character set go on in the next line there, until they are taken back.
    """
    style, charset = PLAIN_STYLE, ""
    shown = []
    for line in lines:
        drawn = charset + line
        charset = "\x0e" if drawn.rfind("\x0e") > drawn.rfind("\x0f") else ""
        if "\x0e" in drawn:
            drawn = _DRAWN.sub(_graphics, drawn)
        shown.append(f"{style_sequence(style)}{drawn}".rstrip())
        style = style_after(line, style)
    while shown and not _SGR.sub("", shown[-1]).strip():
        shown.pop()
    return "".join(f"{line}\n" for line in shown).encode("utf-8", "replace")


def _graphics(found: re.Match[str]) -> str:
    # Letters of a colour's sequence between them are none.
    parts = re.split(r"(\x1b\[[0-9;:]*m)", found[1])
    return "".join(part if part.startswith("\x1b") else part.translate(_GRAPHICS) for part in parts)
