"""What a person types into the pane, as it is recorded: how many keys, and by setting which."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from agentmon.runners.host.journal import Journal

_IDLE_S = 5.0
"""After the last key, so that what is typed at a stretch is one entry."""
_MOST_KEYS = 4000
_MOST_HELD_BYTES = 4096
# Source of the sequences: ECMA-48, and xterm's control sequences.
_ESC = 0x1B
_FINALS = bytes(range(0x40, 0x7F))
_CONTINUES_LETTER = bytes(range(0x80, 0xC0))
_STRING_STARTS = (b"]", b"P", b"_", b"^", b"X")
_MOUSE_BYTES = 6
_NAMES = {0x0D: "enter", 0x09: "tab", 0x7F: "backspace", _ESC: "esc"}
_NAMES.update({code: f"ctrl+{chr(code + 0x60)}" for code in range(1, 0x1B) if code not in _NAMES})
_NAMES.update(dict.fromkeys((0, *range(28, 32)), "ctrl"))


class TypedKeys:
    """Counts keys. What a terminal says by itself (mouse, focus, answers to questions) is none.

    The text is kept only when that was asked for, and nothing of it while the program has the echo off.
    """

    __slots__ = ("_held", "_is_pasting", "_journal", "_keeps_text", "_keys", "_pasted", "_text", "next_step")

    def __init__(self, journal: Journal, *, keeps_text: bool) -> None:
        self._journal = journal
        self._keeps_text = keeps_text
        self._keys = self._pasted = 0
        self._text = bytearray()
        self._held = b""
        """The beginning of a sequence that is not whole yet."""
        self._is_pasting = False
        self.next_step = float("inf")
        """When ``advance`` has something to do, on the monotonic clock."""

    def take(self, keys: bytes, now: float, *, is_hidden: bool) -> None:
        """Count what was typed; ``is_hidden`` says that the program lets nobody read it."""
        before = self._keys + self._pasted
        self._count(keys, is_hidden=is_hidden)
        count = self._keys + self._pasted
        if count > before:
            self.next_step = now if count >= _MOST_KEYS else now + _IDLE_S

    def advance(self, now: float) -> None:
        """Record what was typed when its time has come."""
        if now >= self.next_step:
            self.record()

    def record(self, command_id: str | None = None) -> None:
        """Record what was typed since it was recorded last, by the command if one is named."""
        self.next_step = float("inf")
        if self._keys or self._pasted:
            told = {"keys": self._keys, "pasted": self._pasted, "text": self._masked_text()}
            self._journal.add("typed", **told, command_id=command_id)
        self._keys = self._pasted = 0
        self._text.clear()

    def record_sent(self, command_id: str, text: bytes, *, is_hidden: bool) -> None:
        """Record what a command of a client types."""
        self.record()
        self._count(text, is_hidden=is_hidden)
        self.record(command_id)

    def _masked_text(self) -> str | None:
        if not self._keeps_text:
            return None
        from agentmon.runners.host.masking import mask_text  # noqa: PLC0415 - seldom asked for

        return mask_text(self._text.decode("utf-8", "replace"))

    def _count(self, keys: bytes, *, is_hidden: bool) -> None:
        seen, at = self._held + keys, 0
        while at < len(seen):
            end = _find_end(seen, at)
            if end is None:
                break
            self._take(seen[at:end], is_hidden=is_hidden)
            at = end
        rest = seen[at:]
        # A terminal sends a sequence in one piece: so few bytes of one are a key themselves.
        is_key = 0 < len(rest) <= len(b"\x1b[")
        if is_key:
            self._note("esc" if len(rest) == 1 else "alt", rest[1:], is_hidden=is_hidden)
        self._held = b"" if is_key or len(rest) > _MOST_HELD_BYTES else rest

    def _take(self, piece: bytes, *, is_hidden: bool) -> None:
        """Take one byte of a text, or one sequence."""
        if piece[0] in _CONTINUES_LETTER:
            self._keep(piece, is_hidden=is_hidden)
        elif len(piece) == 1:
            name = _NAMES.get(piece[0], "")
            self._note(name, b"" if name else piece, is_hidden=is_hidden)
        elif piece in (b"\x1b[200~", b"\x1b[201~"):
            self._is_pasting = piece == b"\x1b[200~"
        elif not _is_said_by_terminal(piece):
            is_letter = len(piece) == len(b"\x1bx")
            self._note("alt" if is_letter else "key", piece[1:] if is_letter else b"", is_hidden=is_hidden)

    def _note(self, name: str, letter: bytes, *, is_hidden: bool) -> None:
        """Count one key, or one letter of a paste."""
        if self._is_pasting:
            self._pasted += 1
        else:
            self._keys += 1
        self._keep((f"<{name}>".encode() if name else b"") + letter, is_hidden=is_hidden)

    def _keep(self, text: bytes, *, is_hidden: bool) -> None:
        if self._keeps_text and not is_hidden:
            self._text += text


def _find_end(seen: bytes, at: int) -> int | None:
    """Return where a letter or a sequence ends; None when it is not whole."""
    if seen[at] != _ESC:
        return at + 1
    kind = seen[at + 1 : at + 2]
    if kind == b"[" and seen[at + 2 : at + 3] == b"M":
        end: int | None = at + _MOUSE_BYTES
    elif kind == b"[":
        end = next((place + 1 for place in range(at + 2, len(seen)) if seen[place] in _FINALS), None)
    elif kind in _STRING_STARTS:
        ends = [place + len(mark) for mark in (b"\a", b"\x1b\\") if (place := seen.find(mark, at + 2)) >= 0]
        end = min(ends, default=None)
    elif kind == b"\x1b":
        end = at + 1
    else:
        end = at + (len(b"\x1bOP") if kind == b"O" else len(b"\x1bx"))
    return end if end is not None and end <= len(seen) else None


def _is_said_by_terminal(sequence: bytes) -> bool:
    """Return whether a whole sequence is no key: a report of the mouse or the focus, or an answer to a question."""
    if sequence[1:2] in _STRING_STARTS:
        return len(sequence) > len(b"\x1b]")
    if sequence[1:2] != b"[":
        return False
    inside, final = sequence[2:-1], sequence[-1:]
    if final == b"R":
        # Where the cursor is; F3 with another key held begins with 1 and has one digit.
        row, _, column = inside.partition(b";")
        return bool(column) and (row != b"1" or len(column) > 1)
    return inside[:1] in (b"<", b"?", b">", b"=", b"M") or final in b"ncty" or (final in b"IO" and not inside)
