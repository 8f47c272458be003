"""How a failed command ends: errors of the domain as what, hint and exit code; the unforeseen as a line and a file."""

import os
import sys
import traceback

from agentmon.cli import exit_codes
from agentmon.cli.output import tell, tell_error
from agentmon.domain.errors import AgentmonError, UsageError
from agentmon.domain.redaction import redact
from agentmon.logs.error_file import write_error
from agentmon.paths import find_paths


def tell_failure(error: BaseException) -> int:
    """Tell the person what failed and return the exit code."""
    expected = find_expected(error)
    if expected is None:
        return _tell_unforeseen(error)
    tell_error(str(expected), expected.hint)
    return exit_codes.USAGE if isinstance(expected, UsageError) else exit_codes.FAILED


def find_expected(error: BaseException) -> AgentmonError | None:
    """Return the error of the domain that this is, or that a group of concurrent failures holds; None for a defect."""
    if isinstance(error, AgentmonError):
        return error
    if isinstance(error, BaseExceptionGroup):
        return next((found for part in error.exceptions if (found := find_expected(part)) is not None), None)
    if isinstance(error, UnicodeEncodeError) and any(map(_has_other_bytes, sys.argv)):
        return UsageError("a word of the command is not valid UTF-8", hint="type it in UTF-8")
    return None


def _has_other_bytes(word: str) -> bool:
    return word.encode(errors="replace") != os.fsencode(word)


def _tell_unforeseen(error: BaseException) -> int:
    report = redact("".join(traceback.format_exception(error)))
    summary = f"{type(error).__name__}: {error}".partition("\n")[0]
    if os.environ.get("AGENTMON_DEBUG") == "1":
        tell(report)
        return exit_codes.FAILED
    log_file = write_error(find_paths().logs_dir, error)
    if log_file is None:
        tell_error(f"unexpected {summary}", hint="AGENTMON_DEBUG=1 shows the traceback; no log file could be written")
    else:
        tell_error(f"unexpected {summary}", hint=f"the traceback is in {log_file}")
    return exit_codes.FAILED
