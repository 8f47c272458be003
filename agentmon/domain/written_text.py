"""Bytes of any editor as text and as TOML; imports nothing, since the first frame reads settings."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

# UTF-32 comes first: its mark begins with that of UTF-16.
_OTHERS = (
    (b"\xff\xfe\0\0", "UTF-32"),
    (b"\0\0\xfe\xff", "UTF-32"),
    (b"\xff\xfe", "UTF-16"),
    (b"\xfe\xff", "UTF-16"),
)


def text_of(content: bytes, *, errors: str = "strict") -> str:
    """Return the text of UTF-8 bytes with line feeds, without a byte order mark and without zeros at the end.

    Args:
        content: All of a file, or of what was read.
        errors: What becomes of bytes that are not UTF-8, as for ``bytes.decode``.

    Raises:
        ValueError: It is another encoding; the message says which, or in which line.
    """
    other = next((name for mark, name in _OTHERS if content.startswith(mark)), "")
    content = content.removeprefix(b"\xef\xbb\xbf").rstrip(b"\0")
    # Without a mark: one of the two bytes of a first letter of ASCII is zero.
    if other or b"\0" in content[:2]:
        raise ValueError(f"it is {other or 'UTF-16'} text; save it as UTF-8")
    try:
        return content.decode("utf-8", errors).replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise ValueError(f"it is not UTF-8 text (line {line})") from error


def toml_of(content: bytes, *, parse_float: Callable[[str], object] = float) -> dict[str, Any]:
    """Return the TOML document that the bytes are; decoded as by ``text_of``.

    Raises:
        ValueError: They are none, or nested too deep.
    """
    return toml_of_text(text_of(content), parse_float=parse_float)


def toml_of_text(text: str, *, parse_float: Callable[[str], object] = float) -> dict[str, Any]:
    """Return the TOML document that a text is.

    Raises:
        ValueError: It is none, or nested too deep.
    """
    import tomllib  # noqa: PLC0415 - most settings files are never read as TOML

    try:
        return tomllib.loads(text, parse_float=parse_float)
    except RecursionError as error:
        raise ValueError("it is nested too deep") from error
