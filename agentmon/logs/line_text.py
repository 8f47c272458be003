"""The bytes of one log line as a terminal would leave them: safe text in styled runs.

Colours are kept, cursor moves inside the line are obeyed, every other escape sequence is dropped, and no control code
or direction override survives. Each line begins unstyled.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import groupby
from typing import Final, TypeAlias, TypedDict

from agentmon.domain.letters import columns_of, letters
from agentmon.domain.plain_text import plain_line

Colour: TypeAlias = int | tuple[int, int, int]
"""A palette index 0-255, or red, green and blue 0-255 each."""

TAB_COLUMNS: Final = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class TextStyle:
    """How a run of text looks; None stands for the terminal's own colour."""

    foreground: Colour | None = None
    background: Colour | None = None
    bold: bool = False
    dim: bool = False
    italic: bool = False
    underline: bool = False
    reverse: bool = False
    strike: bool = False
    link: str = ""
    """The web address that the program put behind the text; any other kind of address is dropped."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StyledRun:
    """Text that is safe to draw, and one style for all of it."""

    text: str
    style: TextStyle


PLAIN_STYLE: Final = TextStyle()

_MARKER: Final = re.compile(rb"\[agentmon: [\d,]{1,26} bytes left out here\]")

# Anything that is not ordinary text: C0, DEL and C1 controls, and what the domain calls unsafe.
_SPECIAL: Final = re.compile(
    "[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]"
)
_ESCAPE_OR_MOVE: Final = re.compile("[\x08\r\x1b\x90\x98\x9b\x9d-\x9f]")
# Sequences end at the line's end when nothing else ends them. Source: ECMA-48, 5.4 and 5.6.
_TOKEN: Final = re.compile(
    r"(?P<text>[^\x00-\x1f\x7f-\x9f]+)"
    r"|(?:\x1b\[|\x9b)(?P<parameters>[0-?]*)(?P<intermediates>[ -/]*)(?P<final>[@-~]?)"
    r"|(?:\x1b\]|\x9d)8;[^;\x07\x1b\x9c]*;(?P<link>[^\x07\x1b\x9c]*)(?:\x07|\x1b\\|\x9c)"
    r"|(?:\x1b[\]PX^_]|[\x9d\x90\x98\x9e\x9f])[^\x07\x1b\x9c]*(?:\x07|\x1b\\|\x9c)?"
    r"|\x1b[ -/]*[0-~]?"
    r"|(?P<control>[\x00-\x1f\x7f-\x9f])",
    re.DOTALL,
)
_MOVES: Final = re.compile(r"[\x08\r]|(?:\x1b\[|\x9b)[0-9;]*[CDGJK`a]")
# A carriage return whose line is erased at once: nothing before it can be seen any more.
_FRESH_START: Final = re.compile(
    r"\r(?:(?:\x1b\[|\x9b)[0-9;:]*m)*(?:\x1b\[|\x9b)[02]?[JK]|(?:\x1b\[|\x9b)2K(?:\r|\x1b\[1?G)"
)
# What may be opened by a click: nothing but the web, and no letter that looks like another one.
_SAFE_ADDRESS: Final = re.compile(r"https?://[!-~]{1,2000}", re.IGNORECASE)
_SGR: Final = re.compile(r"(?:\x1b\[|\x9b)([0-9;:]*)m")
# Characters known to take one column: enough to spare most lines a look at each character.
_NARROW: Final = re.compile(
    "[\x20-\x7e\xa0-\xac\xae-\u02ff\u0370-\u0482\u2010-\u2027\u2190-\u21ff\u2500-\u25fc\u2800-\u28ff]*"
)
# The only control codes that the domain makes blanks of, besides tabs and line ends.
_VERTICAL: Final = {"\v": "␋", "\f": "␌"}
_VERTICAL_TABLE: Final = str.maketrans(_VERTICAL)
_MAX_PARAMETERS: Final = 256
# A cursor sent beyond the text stops at the right edge of a terminal; nobody knows how wide that one was.
_RIGHT_EDGE: Final = 512
_MAX_CLUSTER: Final = 32
_WHOLE_LINE: Final = 2
_MAX_DIGITS: Final = 6


class _Switches(TypedDict, total=False):
    bold: bool
    dim: bool
    italic: bool
    underline: bool
    reverse: bool
    strike: bool


_SWITCHES: Final[dict[int, _Switches]] = {
    1: {"bold": True},
    2: {"dim": True},
    3: {"italic": True},
    4: {"underline": True},
    7: {"reverse": True},
    9: {"strike": True},
    21: {"underline": True},
    22: {"bold": False, "dim": False},
    23: {"italic": False},
    24: {"underline": False},
    27: {"reverse": False},
    29: {"strike": False},
}
_FOREGROUNDS: Final[dict[int, int | None]] = {
    39: None,
    **{30 + colour: colour for colour in range(8)},
    **{90 + colour: 8 + colour for colour in range(8)},
}
_BACKGROUNDS: Final[dict[int, int | None]] = {
    49: None,
    **{40 + colour: colour for colour in range(8)},
    **{100 + colour: 8 + colour for colour in range(8)},
}
_UNDERLINE, _FOREGROUND, _BACKGROUND, _UNDERLINE_COLOUR = 4, 38, 48, 58
_FROM_PALETTE, _FROM_CHANNELS = 5, 2
_CHANNELS: Final = 3
_MAX_CHANNEL: Final = 255


def plain_text(line: bytes) -> str:
    """Return the text of one line (without its line feed) as a terminal would leave it, without colours."""
    text = line.decode("utf-8", "replace")
    if text.isprintable() or _SPECIAL.search(text) is None:
        return text
    if _ESCAPE_OR_MOVE.search(text) is None:
        return _without_controls(text)
    return "".join(run.text for run in _terminal_runs(text))


def styled_runs(line: bytes) -> tuple[StyledRun, ...]:
    """Return one line (without its line feed) as a terminal would leave it: runs of text, none of them empty."""
    if not line:
        return ()
    text = line.decode("utf-8", "replace")
    if text.isprintable() or _SPECIAL.search(text) is None:
        style = _MARKER_STYLE if is_left_out_marker(line) else PLAIN_STYLE
        return (StyledRun(text=text, style=style),)
    if _ESCAPE_OR_MOVE.search(text) is None:
        return (StyledRun(text=_without_controls(text), style=PLAIN_STYLE),)
    return _terminal_runs(text)


def is_left_out_marker(line: bytes) -> bool:
    """Return whether the line is the one that stands where a capped log left bytes out."""
    return line.startswith(b"[agentmon: ") and _MARKER.fullmatch(line) is not None


_MARKER_STYLE: Final = TextStyle(dim=True)


def _without_controls(text: str) -> str:
    """Expand tabs and replace controls in a text that has no escape sequence and no cursor move."""
    if "\t" in text:
        text = text.expandtabs(TAB_COLUMNS) if text.isascii() else _expand_tabs(text)
    return text if text.isprintable() else plain_line(text.translate(_VERTICAL_TABLE))


def _expand_tabs(text: str, column: int = 0) -> str:
    first, *others = text.split("\t")
    expanded = [first]
    column += columns_of(first)
    for part in others:
        blanks = TAB_COLUMNS - column % TAB_COLUMNS
        expanded += (" " * blanks, part)
        column += blanks + columns_of(part)
    return "".join(expanded)


def style_after(text: str, style: TextStyle) -> TextStyle:
    """Return the style that a terminal has behind a text, of one that it had before it."""
    for parameters in _SGR.findall(text):
        style = _restyled(style, parameters)
    return style


def _terminal_runs(text: str) -> tuple[StyledRun, ...]:
    text = text.rstrip("\r")
    if _MOVES.search(text) is None:
        return _runs_in_order(text)
    style = PLAIN_STYLE
    fresh_start = -1
    for match in _FRESH_START.finditer(text):
        fresh_start = match.start()
    if fresh_start > 0:
        style = style_after(text[:fresh_start], PLAIN_STYLE)
        text = text[fresh_start:]
    screen = _ScreenLine(style)
    for match in _TOKEN.finditer(text):
        screen.take(match)
    return screen.runs()


def _runs_in_order(text: str) -> tuple[StyledRun, ...]:
    """Read a text in which the cursor only ever moves on by writing."""
    runs: list[StyledRun] = []
    parts: list[str] = []
    style = PLAIN_STYLE
    column = 0
    for match in _TOKEN.finditer(text):
        written = match["text"]
        if written is not None:
            written = _safe(written)
            parts.append(written)
            column += columns_of(written)
        elif match["control"] is not None:
            written = _control_text(match["control"], column)
            parts.append(written)
            column += len(written)
        elif match["link"] is not None or (match["final"] == "m" and not match["intermediates"]):
            link = match["link"]
            restyled = _restyled(style, match["parameters"]) if link is None else _linked(style, link)
            if restyled != style and parts:
                runs.append(StyledRun(text="".join(parts), style=style))
                parts = []
            style = restyled
    if parts:
        runs.append(StyledRun(text="".join(parts), style=style))
    return tuple(runs)


def _safe(text: str) -> str:
    return text if text.isprintable() or _SPECIAL.search(text) is None else plain_line(text)


def _control_text(control: str, column: int) -> str:
    if control == "\t":
        return " " * (TAB_COLUMNS - column % TAB_COLUMNS)
    return _VERTICAL.get(control) or plain_line(control)


class _ScreenLine:
    """One line of a terminal: a character and a style for each column, and a cursor.

    The column after a wide character holds an empty string; a combining mark joins the character before it.
    """

    def __init__(self, style: TextStyle) -> None:
        self._style = style
        self._characters: list[str] = []
        self._styles: list[TextStyle] = []
        self._column = 0

    def take(self, match: re.Match[str]) -> None:
        if match["text"] is not None:
            self._write(_safe(match["text"]))
        elif match["control"] is not None:
            self._take_control(match["control"])
        elif match["link"] is not None:
            self._style = _linked(self._style, match["link"])
        elif match["final"] and not match["intermediates"]:
            self._take_sequence(match["final"], match["parameters"])

    def runs(self) -> tuple[StyledRun, ...]:
        columns = zip(self._characters, self._styles, strict=True)
        runs: list[StyledRun] = []
        for style, run in groupby(columns, key=lambda column: column[1]):
            text = "".join(character for character, _ in run)
            if text:
                runs.append(StyledRun(text=text, style=style))
        return tuple(runs)

    def _take_control(self, control: str) -> None:
        if control == "\r":
            self._column = 0
        elif control == "\b":
            self._column = max(0, self._column - 1)
        elif control == "\t":
            self._move_to(self._column + TAB_COLUMNS - self._column % TAB_COLUMNS)
            self._fill()
        else:
            self._write(_control_text(control, 0))

    def _take_sequence(self, final: str, parameters: str) -> None:
        if final == "m":
            self._style = _restyled(self._style, parameters)
            return
        if parameters[:1] in {"<", "=", ">", "?"}:
            return
        first = parameters.partition(";")[0]
        number = _number(first)
        if final in "Ca":
            self._move_to(self._column + max(1, number))
        elif final == "D":
            self._column = max(0, self._column - max(1, number))
        elif final in "G`":
            self._move_to(max(1, number) - 1)
        elif final in "JK":
            self._erase(number)

    def _move_to(self, column: int) -> None:
        self._column = min(column, max(_RIGHT_EDGE, len(self._characters)))

    def _erase(self, kind: int) -> None:
        if kind == 0:
            self._split_wide(self._column)
            del self._characters[self._column :]
            del self._styles[self._column :]
        elif kind == _WHOLE_LINE:
            self._characters.clear()
            self._styles.clear()

    def _write(self, text: str) -> None:
        if _NARROW.fullmatch(text):
            self._fill()
            self._put(self._column, list(text), self._style)
            self._column += len(text)
            return
        for letter in letters(text):
            columns = columns_of(letter)
            if columns:
                self._fill()
                self._put(self._column, [letter[:_MAX_CLUSTER], *[""] * (columns - 1)], self._style)
                self._column += columns
            else:
                self._join(letter)

    def _join(self, mark: str) -> None:
        position = min(self._column, len(self._characters)) - 1
        while position > 0 and not self._characters[position]:
            position -= 1
        if position < 0:
            self._put(0, [f" {mark}"[:_MAX_CLUSTER]], self._style)
            self._column = max(1, self._column)
        else:
            self._characters[position] = f"{self._characters[position]}{mark}"[:_MAX_CLUSTER]

    def _fill(self) -> None:
        missing = self._column - len(self._characters)
        if missing > 0:
            self._characters += [" "] * missing
            self._styles += [PLAIN_STYLE] * missing

    def _put(self, start: int, characters: list[str], style: TextStyle) -> None:
        end = start + len(characters)
        if start < len(self._characters):
            self._split_wide(start)
            self._split_wide(end)
        self._characters[start:end] = characters
        self._styles[start:end] = [style] * len(characters)

    def _split_wide(self, column: int) -> None:
        """Turn a letter of several columns, one of which but the first stands at ``column``, into blanks."""
        if not 0 < column < len(self._characters) or self._characters[column]:
            return
        end = column
        while end < len(self._characters) and not self._characters[end]:
            end += 1
        while not self._characters[column]:
            column -= 1
        self._characters[column:end] = " " * (end - column)


def _linked(style: TextStyle, address: str) -> TextStyle:
    """Return the style with another address behind it, or with none."""
    linked = replace(style, link=address if _SAFE_ADDRESS.fullmatch(address) else "")
    return PLAIN_STYLE if linked == PLAIN_STYLE else linked


def _without_looks(style: TextStyle) -> TextStyle:
    return TextStyle(link=style.link) if style.link else PLAIN_STYLE


def _restyled(style: TextStyle, parameters: str) -> TextStyle:
    if not parameters:
        return _without_looks(style)
    if len(parameters) > _MAX_PARAMETERS or parameters[0] in "<=>?":
        return style
    return _apply_sgr(style, parameters)


@lru_cache(maxsize=4096)
def _apply_sgr(style: TextStyle, parameters: str) -> TextStyle:
    """Return the style after one SGR sequence; unknown attributes change nothing.

    Source: ECMA-48, 8.3.117, and ISO 8613-6 for colours.
    """
    attributes = parameters.split(";")
    position = 0
    while position < len(attributes):
        attribute, *subparameters = attributes[position].split(":")
        position += 1
        code = _number(attribute)
        if code in {_FOREGROUND, _BACKGROUND, _UNDERLINE_COLOUR}:
            if subparameters:
                colour = _colon_colour(subparameters)
            else:
                colour, used = _semicolon_colour(attributes[position:])
                position += used
            if colour is not None and code == _FOREGROUND:
                style = replace(style, foreground=colour)
            elif colour is not None and code == _BACKGROUND:
                style = replace(style, background=colour)
        elif code == _UNDERLINE and subparameters:
            style = replace(style, underline=_number(subparameters[0]) != 0)
        else:
            style = _switched(style, code)
    return style


def _switched(style: TextStyle, code: int) -> TextStyle:
    if code == 0:
        return _without_looks(style)
    if code in _SWITCHES:
        return replace(style, **_SWITCHES[code])
    if code in _FOREGROUNDS:
        return replace(style, foreground=_FOREGROUNDS[code])
    if code in _BACKGROUNDS:
        return replace(style, background=_BACKGROUNDS[code])
    return style


def _semicolon_colour(attributes: list[str]) -> tuple[Colour | None, int]:
    """Return the colour of ``38;5;N`` or ``38;2;R;G;B`` and how many attributes after the 38 belong to it."""
    kind = _number(attributes[0]) if attributes else 0
    if kind == _FROM_PALETTE:
        return _palette_colour(attributes[1:2]), 2
    if kind == _FROM_CHANNELS:
        return _true_colour(attributes[1 : 1 + _CHANNELS]), 1 + _CHANNELS
    return None, 1


def _colon_colour(subparameters: list[str]) -> Colour | None:
    """Return the colour of ``38:5:N``, ``38:2:R:G:B`` or ``38:2:colour space:R:G:B``."""
    kind = _number(subparameters[0])
    if kind == _FROM_PALETTE:
        return _palette_colour(subparameters[1:2])
    if kind == _FROM_CHANNELS:
        has_colour_space = len(subparameters) > 1 + _CHANNELS
        return _true_colour(subparameters[2 : 2 + _CHANNELS] if has_colour_space else subparameters[1:])
    return None


def _palette_colour(parts: list[str]) -> Colour | None:
    index = _number(parts[0]) if parts else _MAX_CHANNEL + 1
    return index if index <= _MAX_CHANNEL else None


def _true_colour(parts: list[str]) -> Colour | None:
    if len(parts) != _CHANNELS:
        return None
    red, green, blue = map(_number, parts)
    return (red, green, blue) if max(red, green, blue) <= _MAX_CHANNEL else None


def _number(text: str) -> int:
    """Return a parameter's value: 0 when it is left out, a value without meaning when it is none."""
    if not text:
        return 0
    return int(text) if text.isascii() and text.isdigit() and len(text) <= _MAX_DIGITS else 10**_MAX_DIGITS
