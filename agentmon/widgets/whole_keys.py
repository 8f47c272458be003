"""Keys whose escape sequence came in two pieces: the rest, a moment behind a lone ESC, is no letters that act.

A terminal behind a slow line sends ``ESC`` and ``[D`` apart. Textual takes the first for the escape key after 100 ms,
as nobody can tell it from one, and would take the rest for two keys.
"""

from __future__ import annotations

import re
from time import monotonic
from typing import TYPE_CHECKING, Final

from textual import constants, events
from textual._xterm_parser import XTermParser

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from textual.message import Message

_ESC: Final = "\x1b"
_REST: Final = re.compile(r"\[(?:[0-9;:<=>?]*[ -/]*[@-~]|<[0-9;]*$|[0-9;]+$)|O[@-~]")
"""What follows ESC in a sequence, in one piece; of a long one at least its beginning. Nobody types it at once."""
_REST_WITHIN_S: Final = 3.0
_BEGUN: Final = re.compile(r"\x1b(?:\[[0-9;]*|O)?")
_SSH_DELAY_S: Final = 0.3


class WholeKeyParser(XTermParser):
    """Reads the rest of a sequence as what it is the rest of."""

    _alone_at = float("-inf")
    """When the last key was a lone ESC; long ago when it was another."""

    def feed(self, data: str) -> Iterable[Message]:
        """Yield the events of what came."""
        if _REST.match(data) and monotonic() - self._alone_at < _REST_WITHIN_S:
            data = _ESC + data
        return self._seen(super().feed(data))

    def tick(self) -> Iterable[Message]:
        """Yield the events of what will not come any more."""
        return self._seen(super().tick())

    def _seen(self, tokens: Iterable[Message]) -> Iterator[Message]:
        for token in tokens:
            if isinstance(token, events.Key):
                self._alone_at = monotonic() if token.key == "escape" else float("-inf")
            yield token


class SplitSequence:
    """Follows the keys that a sequence becomes which comes in three or more pieces: ``ESC``, ``[``, ``D``."""

    def __init__(self) -> None:
        self.within_s = _REST_WITHIN_S
        """So long after one piece a key may be the next one."""
        self._begun = ""
        self._at = float("-inf")

    def may_go_on_with(self, key: events.Key) -> bool:
        """Take the next key, and return whether it may be no key but the next piece of a sequence that has begun."""
        begun = self._begun if key.time - self._at < self.within_s else ""
        character = _ESC if key.key == "escape" else key.character or ""
        is_begun = _BEGUN.fullmatch(begun + character) is not None
        self._begun = begun + character if is_begun else _ESC if character == _ESC else ""
        self._at = key.time
        return (is_begun and begun != "") or begun not in {"", _ESC}


def escape_delay_s(environ: Mapping[str, str]) -> float:
    """Return how long the rest of a sequence is waited for: longer over SSH, but as long as ``ESCDELAY`` says."""
    is_far = "ESCDELAY" not in environ and bool(environ.get("SSH_CONNECTION") or environ.get("SSH_TTY"))
    return _SSH_DELAY_S if is_far else constants.ESCAPE_DELAY
