"""JSON through the interpreter's own accelerator: importing ``json`` costs 8 ms and 1 MB at every start."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    _encode_text: Callable[[str], str]
    _make_scanner: Callable[[object], Callable[[str, int], tuple[object, int]]]
else:
    try:
        from _json import encode_basestring_ascii as _encode_text
        from _json import make_scanner as _make_scanner
    except ImportError:  # an interpreter without the accelerator
        from json.encoder import encode_basestring_ascii as _encode_text
        from json.scanner import make_scanner as _make_scanner

_BLANKS = " \t\r\n"


def _refuse_constant(name: str) -> object:
    message = f"{name} is not a JSON value"
    raise ValueError(message)


class _Settings:
    """What the scanner asks its decoder for."""

    strict = True
    object_hook = None
    object_pairs_hook = None
    parse_float = float
    parse_int = int
    parse_constant = staticmethod(_refuse_constant)

    def __init__(self) -> None:
        self.memo: dict[str, str] = {}


def parse(text: str) -> object:
    """Return the one JSON value that the text holds.

    Raises:
        ValueError: The text is not one JSON value, or is nested too deeply.
    """
    start = len(text) - len(text.lstrip(_BLANKS))
    try:
        value, end = _make_scanner(_Settings())(text, start)
    except StopIteration:
        message = "this is not JSON"
        raise ValueError(message) from None
    except RecursionError:
        message = "this JSON is nested too deeply"
        raise ValueError(message) from None
    if text[end:].strip(_BLANKS):
        message = "something follows the JSON value"
        raise ValueError(message)
    return value


def encode(value: object) -> str:
    """Return the value as JSON on one line, in ASCII.

    Raises:
        TypeError: The value is not made of strings, numbers, booleans, ``None``, sequences and mappings.
    """
    if isinstance(value, str):
        return _encode_text(value)
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_encode_text(str(key))}: {encode(entry)}" for key, entry in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(encode(entry) for entry in value) + "]"
    message = f"{type(value).__name__} has no JSON form"
    raise TypeError(message)
