"""The one place that prints: what was asked for goes to standard output, everything else to standard error."""

import codecs
import io
import os
import sys

_LIKENESS = "agentmon.likeness"


def say(text: str = "") -> None:
    """Print lines for a person on standard output, with everything that a terminal would obey made visible."""
    _write(_plain(text))


def tell(text: str) -> None:
    """Print lines for a person on standard error, cleaned like ``say``."""
    sys.stdout.flush()
    _write_aside(_plain(text))
    sys.stderr.flush()


def tell_in_place(text: str) -> None:
    """Replace the last line of a terminal on standard error by this one, cleaned; an empty text only wipes it."""
    sys.stderr.write("\r\x1b[2K" + _plain(text))
    sys.stderr.flush()


def tell_error(message: str, hint: str = "") -> None:
    """Print what failed and the next step on standard error, without anything that has the shape of a secret."""
    from agentmon.domain.redaction import redact  # noqa: PLC0415 - only errors need it

    tell(redact(f"error: {message}"))
    if hint:
        tell(redact(f"hint: {hint}"))


def say_document(document: object) -> None:
    """Print one JSON document on standard output; it is pure ASCII, so that no text in it can reach a terminal."""
    import json  # noqa: PLC0415 - a status line without --json needs none

    _write(json.dumps(document, indent=2))


def say_document_line(document: object) -> None:
    """Print a JSON document as one line of a stream of them."""
    import json  # noqa: PLC0415 - only who follows something needs it

    _write(json.dumps(document))


def say_bytes(chunk: bytes) -> None:
    """Write bytes to standard output as they are."""
    sys.stdout.flush()
    sys.stdout.buffer.write(chunk)
    sys.stdout.buffer.flush()


def say_clean_line(line: str) -> None:
    """Print a line that is known to be safe, without cleaning it again."""
    _write(line)


def say_clean_part(part: str) -> None:
    """Print the beginning of a line that is known to be safe; the rest follows on the same line."""
    sys.stdout.write(part)


def discard_output() -> None:
    """Send whatever is still printed nowhere: the reader of standard output went away."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def flush() -> None:
    """Hand everything printed so far to the reader."""
    sys.stdout.flush()


def _plain(text: str) -> str:
    from agentmon.domain.plain_text import plain_lines  # noqa: PLC0415 - the status line needs none

    return plain_lines(text)


def _write(text: str) -> None:
    _replace_what_cannot_be_shown(sys.stdout)
    print(text)


def _write_aside(text: str) -> None:
    _replace_what_cannot_be_shown(sys.stderr)
    print(text, file=sys.stderr)


def _replace_what_cannot_be_shown(stream: object) -> None:
    # A terminal without Unicode gets what is like it in ASCII instead of an encoding error.
    if isinstance(stream, io.TextIOWrapper):
        stream.reconfigure(errors=_LIKENESS)


def _likeness(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    from agentmon.widgets.ascii_filter import ascii_text  # noqa: PLC0415 - most terminals show everything

    return ascii_text(error.object[error.start : error.end]), error.end


codecs.register_error(_LIKENESS, _likeness)
