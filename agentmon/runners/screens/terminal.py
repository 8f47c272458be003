"""What a terminal would show of a program's output: its screen and what scrolled off it, by an emulator."""

from __future__ import annotations

import re
import time
import unicodedata
from collections import deque
from functools import lru_cache
from typing import TYPE_CHECKING, Final

import pyte
from pyte import modes
from pyte.charsets import LAT1_MAP

from agentmon.logs.coloured_text import coloured_runs
from agentmon.logs.line_text import StyledRun, TextStyle
from agentmon.runners.screens.pane_text import HISTORY_LINES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import Concatenate, ParamSpec

    from pyte.screens import Char

    _Given = ParamSpec("_Given")

MAX_BYTES: Final = 256 * 1024
"""Of a longer output only so much of its end is read: half a second of a core."""
TIME_LIMIT_S: Final = 2.0
_MAX_ROWS, _MAX_COLUMNS = 500, 1000
_MAX_STYLES: Final = 4096
_PIECE_CHARACTERS: Final = 2048
# What begins a screen anew: everything before it is out of sight.
_FRESH: Final = re.compile(rb"\x1bc|\x1b\[(?:2J|H\x1b\[J|\?(?:1049|1047|47)h)")
# What the emulator would draw: strings for the device, applications and privacy.
_STRINGS: Final = re.compile(rb"\x1b[PX^_][^\x1b\x07]*(?:\x1b\\|\x07)?")
_ALTERNATE_SCREENS: Final = frozenset({47, 1047, 1049})
_PALETTE: Final = ("black", "red", "green", "brown", "blue", "magenta", "cyan", "white")
_HEX_DIGITS: Final = 6


def terminal_text(output: bytes, *, rows: int, columns: int, begins_within: bool = False) -> bytes:
    """Return what a terminal of this size would show after the output: scrolled lines, then its screen.

    Colours stand in it as sequences of SGR; blank lines at the end are left out. Any bytes will do: what the emulator
    does not take is passed over, and after ``TIME_LIMIT_S`` the rest of the output is.

    Args:
        output: What was written; no more than the last ``MAX_BYTES`` are read.
        rows: Height of the terminal.
        columns: Its width.
        begins_within: Whether there was output before this.
    """
    if len(output) > MAX_BYTES:
        output, begins_within = output[-MAX_BYTES:], True
    screen = _Screen(max(2, min(columns, _MAX_COLUMNS)), max(1, min(rows, _MAX_ROWS)))
    if begins_within:
        fresh = _FRESH.search(output)
        # Else it begins behind a line, and the cursor stands where it stands in a terminal that is full.
        output = output[fresh.start() if fresh else output.find(b"\n") + 1 :]
        screen.cursor_to_line(screen.lines)
    # The host takes back what the terminal made of line feeds, so that one alone begins a line; but for a program that
    # had switched that off, which writes both itself.
    if output.count(b"\r\n") * 2 <= output.count(b"\n"):
        screen.set_mode(modes.LNM)
    stream = _Stream(screen)
    stream.use_utf8 = False  # else it knows no other character set
    output = _STRINGS.sub(b"", output)
    text = output.decode("utf-8", "replace")
    deadline = time.monotonic() + TIME_LIMIT_S
    for start in range(0, len(text), _PIECE_CHARACTERS):
        stream.feed(text[start : start + _PIECE_CHARACTERS])
        if time.monotonic() > deadline:
            break
    return screen.text().encode("utf-8", "replace")


def _forgiving(
    method: Callable[Concatenate[_Screen, _Given], None],
) -> Callable[Concatenate[_Screen, _Given], None]:
    """Return a method that passes over a sequence with parameters that it cannot take."""

    def call(self: _Screen, /, *args: _Given.args, **kwargs: _Given.kwargs) -> None:
        try:
            method(self, *args, **kwargs)
        except (ArithmeticError, LookupError, NameError, TypeError, ValueError):
            return

    return call


class _Screen(pyte.Screen):
    """The emulator's screen, with what it lacks: scrolled lines, the other screen, scrolling and repeating."""

    def __init__(self, columns: int, lines: int) -> None:
        self._scrolled: deque[Mapping[int, Char]] = deque(maxlen=HISTORY_LINES)
        self._cells: dict[Char, dict[str, Char]] = {}
        self._drawn = ""
        super().__init__(columns, lines)

    def text(self) -> str:
        on_screen: list[Mapping[int, Char]] = [self.buffer.get(y, {}) for y in range(self.lines)]
        shown = [self._line_text(line) for line in (*self._scrolled, *on_screen)]
        while shown and not shown[-1]:
            shown.pop()
        return "".join(f"{line}\n" for line in shown)

    def draw(self, data: str) -> None:
        self._drawn = data[-1:]
        if data.isascii() and modes.IRM not in self.mode and self.g0_charset is LAT1_MAP and not self.charset:
            self._draw_plain(data)
            return
        # One without width, such as a joiner of emoji, would end the text there.
        super().draw("".join(letter for letter in data if unicodedata.combining(letter) or _has_width(letter)))

    def _draw_plain(self, data: str) -> None:
        """Draw letters of one cell each; the emulator itself looks at each anew, which takes ten times as long."""
        style = self.cursor.attrs
        if len(self._cells) > _MAX_STYLES:
            self._cells.clear()
        cells = self._cells.setdefault(style, {})
        while data:
            if self.cursor.x >= self.columns:
                if modes.DECAWM in self.mode:
                    self.carriage_return()
                    self.linefeed()
                else:
                    self.cursor.x = self.columns - 1
            x = self.cursor.x
            part, data = data[: self.columns - x], data[self.columns - x :]
            line = self.buffer[self.cursor.y]
            for letter in part:
                cell = cells.get(letter)
                if cell is None:
                    cell = cells[letter] = style._replace(data=letter)
                line[x] = cell
                x += 1
            self.cursor.x = x

    def index(self) -> None:
        top, bottom = self.margins or (0, self.lines - 1)
        if self.cursor.y != bottom:
            self.cursor_down()
            return
        # As in tmux, also what scrolls off a part of the screen is kept.
        self._scrolled.append(self.buffer.pop(top, {}))
        moved = {y - (top < y <= bottom): line for y, line in self.buffer.items()}
        self.buffer.clear()
        self.buffer.update(moved)

    def reset(self) -> None:
        super().reset()
        self._drawn = ""

    def set_mode(self, *mode: int, **kwargs: bool) -> None:
        if kwargs.get("private") and _ALTERNATE_SCREENS.intersection(mode):
            self.erase_in_display(2)
            self.cursor_position()
        super().set_mode(*mode, **kwargs)

    def reset_mode(self, *mode: int, **kwargs: bool) -> None:
        super().reset_mode(*mode, **kwargs)
        if kwargs.get("private") and _ALTERNATE_SCREENS.intersection(mode):
            # What stood there last stays to be seen, above what comes.
            self.set_margins()
            self.cursor_to_line(self.lines)
            self.carriage_return()
            self.index()

    def select_graphic_rendition(self, *attrs: int, private: bool = False) -> None:
        if not private:
            super().select_graphic_rendition(*attrs)

    def set_margins(self, top: int | None = None, bottom: int | None = None) -> None:
        super().set_margins(top, bottom)
        self.cursor_position()

    def scroll_up(self, count: int | None = None, *_others: int, private: bool = False) -> None:
        if private:
            return
        top, bottom = self.margins or (0, self.lines - 1)
        x, y = self.cursor.x, self.cursor.y
        self.cursor.y = bottom
        for _ in range(min(count or 1, bottom - top + 1)):
            self.index()
        self.cursor.x, self.cursor.y = x, y

    def scroll_down(self, count: int | None = None, *_others: int, private: bool = False) -> None:
        if private:
            return
        top, bottom = self.margins or (0, self.lines - 1)
        x, y = self.cursor.x, self.cursor.y
        self.cursor.y = top
        for _ in range(min(count or 1, bottom - top + 1)):
            self.reverse_index()
        self.cursor.x, self.cursor.y = x, y

    def repeat(self, count: int | None = None, *_others: int, **_kwargs: bool) -> None:
        self.draw(self._drawn * min(count or 1, self.columns))

    def _line_text(self, line: Mapping[int, Char]) -> str:
        shown = [line.get(x, self.default_char) for x in range(min(self.columns, max(line, default=-1) + 1))]
        while shown and shown[-1].data == " " and shown[-1].bg == "default" and not shown[-1].reverse:
            shown.pop()
        return coloured_runs(_runs(shown))


_ADDED: Final = {"S": "scroll_up", "T": "scroll_down", "b": "repeat"}
for _event in (pyte.Stream.events | set(_ADDED.values())) - {"draw", "debug"}:
    setattr(_Screen, _event, _forgiving(getattr(_Screen, _event)))


class _Stream(pyte.Stream):
    csi = {  # noqa: RUF012 - as the emulator declares it
        **pyte.Stream.csi,
        **_ADDED,
    }
    events = pyte.Stream.events | set(_ADDED.values())


@lru_cache(maxsize=4096)
def _has_width(letter: str) -> bool:
    return unicodedata.category(letter) not in {"Mn", "Me", "Cf", "Cc", "Cs"}


def _runs(cells: Iterable[Char]) -> list[StyledRun]:
    runs: list[StyledRun] = []
    text, shown = "", None
    for cell in cells:
        if shown is not None and cell[1:] != shown[1:]:
            runs.append(StyledRun(text=text, style=_style(shown)))
            text = ""
        text, shown = text + cell.data, cell
    if shown is not None and text:
        runs.append(StyledRun(text=text, style=_style(shown)))
    return runs


def _style(cell: Char) -> TextStyle:
    return _style_of(cell._replace(data=" "))


@lru_cache(maxsize=1024)
def _style_of(cell: Char) -> TextStyle:
    return TextStyle(
        foreground=_colour(cell.fg),
        background=_colour(cell.bg),
        bold=cell.bold,
        italic=cell.italics,
        underline=cell.underscore,
        reverse=cell.reverse,
        strike=cell.strikethrough,
    )


def _colour(name: str) -> int | tuple[int, int, int] | None:
    if name in _PALETTE:
        return _PALETTE.index(name)
    plain = name.removeprefix("bright").removeprefix("bfight")
    if plain in _PALETTE:
        return 8 + _PALETTE.index(plain)
    if len(name) == _HEX_DIGITS and name != "default":
        return int(name[:2], 16), int(name[2:4], 16), int(name[4:], 16)
    return None
