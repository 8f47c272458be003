"""The ways by which the worker tells a person of something: the desktop, a command of theirs, a webhook."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import shutil
import signal
import sys
import urllib.error
import urllib.request
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from agentmon import __version__
from agentmon.domain.plain_text import plain_line
from agentmon.domain.redaction import redact
from agentmon.runners.session_marks import is_of_session

if TYPE_CHECKING:
    from agentmon.domain.notifications import Notification

COMMAND_TIMEOUT_S: Final = 10.0
WEBHOOK_TIMEOUT_S: Final = 10.0
_WEBHOOK_PAUSES_S: Final = (0.5, 2.0)
"""Before the second and the third try."""
_MAX_COMPLAINT: Final = 200
_READ_BYTES: Final = 4_096
_CLIENT_ERRORS: Final = range(400, 500)


class ChannelError(Exception):
    """A person was not told; the message says why."""


async def tell_desktop(notification: Notification) -> None:
    """Show it on the desktop, with ``notify-send`` or macOS' own means.

    Raises:
        ChannelError: There is no desktop to show it on, or it refused.
    """
    if sys.platform == "darwin":
        # The texts are arguments of the script, never part of it.
        script = "on run argv\ndisplay notification (item 2 of argv) with title (item 1 of argv)\nend run"
        command = ["osascript", "-e", script, notification.title, notification.text]
    else:
        command = ["notify-send", "--app-name=agentmon", "--", notification.title, notification.text]
    if shutil.which(command[0]) is None:
        raise ChannelError(f"there is no {command[0]} here")
    await _run(command, b"")


async def tell_command(command: str, notification: Notification) -> None:
    """Run a person's own command in a shell, with the notification as one line of JSON on its standard input.

    Raises:
        ChannelError: It failed, or took longer than ``COMMAND_TIMEOUT_S`` and was ended.
    """
    await _run(["/bin/sh", "-c", command], json.dumps(notification.as_document()).encode() + b"\n")


async def tell_webhook(url: str, notification: Notification) -> None:
    """Send it as JSON by POST, again when the other side is not there or errs.

    Raises:
        ChannelError: It was refused, or three tries were in vain.
    """
    body = json.dumps(notification.as_document()).encode()
    problem = ""
    for pause_s in (*_WEBHOOK_PAUSES_S, None):
        try:
            await asyncio.to_thread(_post, url, body)
        except urllib.error.HTTPError as error:
            problem = f"it answered {error.code}"
            error.close()
            if error.code in _CLIENT_ERRORS:
                break
        except (OSError, ValueError) as error:
            problem = str(getattr(error, "reason", error))
        else:
            return
        if pause_s is not None:
            await asyncio.sleep(pause_s)
    # A path may hold a secret; the host is enough to know which one it is.
    raise ChannelError(f"the webhook at {urlsplit(url).hostname} was not reached: {_plain(problem)}")


def _post(url: str, body: bytes) -> None:
    if urlsplit(url).scheme not in {"http", "https"}:
        raise ValueError("only http:// and https:// are spoken")
    headers = {"Content-Type": "application/json", "User-Agent": f"agentmon/{__version__}"}
    request = urllib.request.Request(url, data=body, headers=headers, method="POST")
    with urllib.request.urlopen(request, timeout=WEBHOOK_TIMEOUT_S) as answer:
        answer.read(1)


async def _run(command: list[str], told: bytes) -> None:
    environment = {name: value for name, value in os.environ.items() if not is_of_session(name)}
    try:
        process = await asyncio.create_subprocess_exec(
            *command,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.PIPE,
            env=environment,
            start_new_session=True,
        )
    except OSError as error:
        raise ChannelError(f"{command[0]} could not be started: {error.strerror}") from error
    try:
        async with asyncio.timeout(COMMAND_TIMEOUT_S):
            _, complaint, _ = await asyncio.gather(_hand_over(process, told), _last_words(process), process.wait())
    except TimeoutError as error:
        raise ChannelError(f"it took longer than {COMMAND_TIMEOUT_S:.0f} s and was ended") from error
    finally:
        # What it left behind in its group goes with it, whether it ended, was too slow or the worker ends.
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        if process.returncode is None:
            await process.wait()
    if process.returncode:
        said = _plain(complaint.decode("utf-8", "replace").strip().rpartition("\n")[2])
        raise ChannelError(f"it ended with {process.returncode}" + (f": {said}" if said else ""))


async def _hand_over(process: asyncio.subprocess.Process, told: bytes) -> None:
    """Give the program its standard input; one that does not want it is no failure."""
    if process.stdin is None:
        return
    with contextlib.suppress(BrokenPipeError, ConnectionResetError):
        process.stdin.write(told)
        await process.stdin.drain()
    process.stdin.close()


async def _last_words(process: asyncio.subprocess.Process) -> bytes:
    """Return the end of what the program complains, however much that is."""
    last = b""
    while process.stderr is not None and (part := await process.stderr.read(_READ_BYTES)):
        last = (last + part)[-_READ_BYTES:]
    return last


def _plain(text: str) -> str:
    return plain_line(redact(text), max_characters=_MAX_COMPLAINT)
