"""What is piped into a command."""

import sys

from agentmon.domain.errors import UsageError
from agentmon.domain.written_text import text_of


def piped_text(*, max_bytes: int = -1) -> str:
    """Return what standard input holds, up to so many bytes; what is not UTF-8 in it is replaced by ``�``.

    Raises:
        UsageError: It is in another encoding, or longer.
    """
    content = sys.stdin.buffer.read(max_bytes + 1 if max_bytes >= 0 else -1)
    if 0 <= max_bytes < len(content):
        raise UsageError(f"the input has more than {max_bytes // 1_000_000} MB", hint="split it")
    try:
        return text_of(content, errors="replace")
    except ValueError as error:
        raise UsageError(f"the input cannot be read: {error}") from error
