"""A line typed into the pane of a conversation: shown while it is typed, and sent as a message with enter."""

from __future__ import annotations

_MAX_CHARACTERS = 16 * 1024
_SHOWN_CHARACTERS = 60
"""So many fit on a line of every pane."""
_INTERRUPT = "\x03"
_KILL_LINE = "\x15"
_BACKSPACES = ("\x7f", "\b")


class PaneTyping:
    """Collects keys; ``take`` returns what they ask for."""

    __slots__ = ("_held", "_is_in_sequence", "_line", "_sequence_length")

    def __init__(self) -> None:
        self._line = ""
        self._held = b""
        self._is_in_sequence = False
        self._sequence_length = 0

    @property
    def prompt(self) -> str:
        """What is to be shown of the line at present; empty when nothing is typed."""
        return f"> {self._line[-_SHOWN_CHARACTERS:]}" if self._line else ""

    def take(self, keys: bytes) -> tuple[list[str], bool]:
        """Return the messages that were finished with enter, and whether ctrl+c was pressed."""
        text, self._held = _decode(self._held + keys)
        messages, is_interrupted = [], False
        for letter in text:
            if self._is_in_sequence:
                # Arrow keys and the like have no meaning here; a sequence ends with a letter or ~ (ESC O is a start).
                is_start = letter in "[O" and self._sequence_length == 0
                self._sequence_length += 1
                self._is_in_sequence = is_start or not (letter.isalpha() or letter == "~")
            elif letter == "\x1b":
                self._is_in_sequence = True
                self._sequence_length = 0
            elif letter == _INTERRUPT:
                is_interrupted = True
                self._line = ""
            elif letter in _BACKSPACES:
                self._line = self._line[:-1]
            elif letter == _KILL_LINE:
                self._line = ""
            elif letter in "\r\n":
                if self._line.strip():
                    messages.append(self._line)
                self._line = ""
            elif letter.isprintable() and len(self._line) < _MAX_CHARACTERS:
                self._line += letter
        return messages, is_interrupted


def _decode(keys: bytes) -> tuple[str, bytes]:
    """Return the text of the keys, and the bytes of a character that is not complete yet."""
    for cut in range(min(4, len(keys) + 1)):
        try:
            return keys[: len(keys) - cut].decode(), keys[len(keys) - cut :]
        except UnicodeDecodeError:
            continue
    return keys.decode("utf-8", "replace"), b""
