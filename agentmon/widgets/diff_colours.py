"""Syntax colours of the lines of a difference: worked out in short slices behind the paint, for what is in view."""

from __future__ import annotations

from collections import OrderedDict
from time import monotonic
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any, TypeAlias

    Colours: TypeAlias = tuple[tuple[int, int, str], ...]
    """Start, end and style of pieces of a line; what lies between them has none."""

CHUNK_LINES: Final = 48
"""How many lines of a hunk get their colours together."""
_LONGEST_LINE: Final = 400
_MOST_CHARACTERS: Final = 8000
"""Of a chunk; a lexer may take the square of it."""
_KEPT_CHUNKS: Final = 400
_SLOWEST_S: Final = 0.25
"""Of a file of which some lines take longer than this no more lines get colours."""
_STYLES: Final = {
    "Comment": "comment",
    "Keyword": "keyword",
    "Keyword.Constant": "number",
    "Literal.String": "string",
    "Literal.String.Doc": "comment",
    "Literal.Number": "number",
    "Name.Function": "name",
    "Name.Class": "name",
    "Name.Tag": "keyword",
    "Name.Attribute": "name",
    "Name.Decorator": "number",
    "Operator.Word": "keyword",
    "Generic.Heading": "keyword",
    "Generic.Subheading": "keyword",
}
"""Style of each token type of Pygments, and of those below it."""


class Chunk(NamedTuple):
    """Some lines of a hunk, by number."""

    path: str
    hunk: str
    """Its digest, so that what was worked out holds while other hunks change."""
    number: int


class DiffColours:
    """The colours of chunks of lines; the owner asks for those in view and gives time.

    Code is read from the first line of its chunk on, since a patch has no more: what lies in a long comment that began
    above is taken for code.
    """

    def __init__(self) -> None:
        self._lexers: dict[str, Any] = {}
        """Of each path its lexer; None where there is none, or where it was too slow."""
        self._known: OrderedDict[Chunk, dict[int, Colours]] = OrderedDict()
        self._wanted: dict[Chunk, list[dict[int, str]]] = {}
        self._step: Iterator[None] | None = None
        self._stepped: Chunk | None = None
        self._took_s = 0.0

    def of(self, chunk: Chunk, line: int) -> Colours | None:
        """Return the colours of a line; None while they are not known."""
        known = self._known.get(chunk)
        return None if known is None else known.get(line, ())

    def drop_wanted(self) -> None:
        """Want nothing more; who draws asks again for what is in view."""
        self._wanted.clear()

    def want(self, chunk: Chunk, sides: list[dict[int, str]]) -> None:
        """Ask for the colours of a chunk.

        Args:
            chunk: Which one.
            sides: The shown text of its lines by number, for each of the two sides.
        """
        is_begun = self._step is not None and chunk == self._stepped
        if chunk not in self._known and not is_begun:
            self._wanted[chunk] = sides

    @property
    def unknown_path(self) -> str | None:
        """A path whose lexer is wanted and not known; ``find_lexer`` finds it, in a thread."""
        return next((chunk.path for chunk in self._wanted if chunk.path not in self._lexers), None)

    def take_lexer(self, path: str, lexer: Any) -> None:  # noqa: ANN401 - Pygments has no types
        """Take what ``find_lexer`` found."""
        self._lexers[path] = lexer

    @property
    def has_work(self) -> bool:
        """Whether ``work`` has anything to do."""
        return self._step is not None or any(chunk.path in self._lexers for chunk in self._wanted)

    def work(self, seconds: float) -> bool:
        """Go on for some time; return whether a chunk has its colours now that had none."""
        started = monotonic()
        is_news = False
        while monotonic() - started < seconds:
            if self._step is None:
                self._stepped = next((chunk for chunk in self._wanted if chunk.path in self._lexers), None)
                if self._stepped is None:
                    break
                self._took_s = 0.0
                self._step = self._read(self._stepped, self._wanted.pop(self._stepped))
            is_news |= self._go_on(started + seconds)
        return is_news

    def _go_on(self, until: float) -> bool:
        began = monotonic()
        chunk, step = self._stepped, self._step
        for _ in step or ():
            now = monotonic()
            if self._took_s + now - began > _SLOWEST_S and chunk is not None:
                self._lexers[chunk.path] = None
                self._keep(chunk, {})
                break
            if now > until:
                self._took_s += now - began
                return False
        self._step = None
        return True

    def _read(self, chunk: Chunk, sides: list[dict[int, str]]) -> Iterator[None]:
        lexer = self._lexers[chunk.path]
        colours: dict[int, Colours] = {}
        for side in sides if lexer is not None else ():
            numbers: list[int] = []
            starts: list[int] = []
            length = 0
            for number, text in side.items():
                if len(text) <= _LONGEST_LINE and length + len(text) <= _MOST_CHARACTERS:
                    numbers.append(number)
                    starts.append(length)
                    length += len(text) + 1
            found: list[list[tuple[int, int, str]]] = [[] for _ in numbers]
            at = 0
            for start, token, value in lexer.get_tokens_unprocessed("\n".join(side[one] for one in numbers)):
                yield
                style = _style_of(token)
                if not style:
                    continue
                while at + 1 < len(starts) and starts[at + 1] <= start:
                    at += 1
                # A token may go over several lines.
                line, begin = at, start - starts[at] if starts else 0
                for piece in value.split("\n"):
                    if piece and line < len(found):
                        found[line].append((begin, begin + len(piece), style))
                    line, begin = line + 1, 0
            # Of an unchanged line, which both sides have, the new one counts.
            colours.update((number, tuple(pieces)) for number, pieces in zip(numbers, found, strict=True))
        self._keep(chunk, colours)

    def _keep(self, chunk: Chunk, colours: dict[int, Colours]) -> None:
        self._known[chunk] = colours
        if len(self._known) > _KEPT_CHUNKS:
            self._known.popitem(last=False)


def find_lexer(path: str) -> Any:  # noqa: ANN401 - Pygments has no types
    """Return what reads the language of a file, by its name alone; None when nothing does. It may take 100 ms."""
    from pygments import lexers  # type: ignore[import-untyped] # noqa: PLC0415 - 30 ms

    found = lexers.find_lexer_class_for_filename(path.rsplit("/", 1)[-1])
    return None if found is None else found()


def _style_of(token: Any) -> str:  # noqa: ANN401 - as above
    known = _style_names.get(token)
    if known is None:
        name, style = token, ""
        while name is not None and not style:
            style = _STYLES.get(str(name).removeprefix("Token."), "")
            name = name.parent
        known = _style_names[token] = style
    return known


_style_names: Final[dict[Any, str]] = {}
