"""Asking a program for its version or its help: the one place where agentmon runs a program to learn about it.

Nobody is asked who was not named: by a preset, or by a person. The program gets no terminal, no input, no network where
that can be had, a home that is thrown away, and none of the person's secrets; nothing that it starts outlives the
answer.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import shutil
import signal
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from agentmon.domain.ids import new_id
from agentmon.runners.environment import looks_secret
from agentmon.runners.host.family import send_to_same
from agentmon.runners.host.process_table import read_processes

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

MOST_BYTES: Final = 256 * 1024
"""Most of an output that is kept; a program that says more is ended."""
_BOX: Final = Path(__file__).with_name("probe_box.py")
_MARKER: Final = "AGENTMON_PROBE_ID"
_MOST_OF_BOX: Final = 2
"""What the box is asked for; it makes do with less where the kernel refuses."""
_BOX_GRACE_S: Final = 4.0
"""How long the box may take beside the program: Python's start, and killing what is left."""
_PIECE_BYTES: Final = 65536
_SIGNAL_BASE: Final = 128

_NAMES: Final = frozenset(
    {
        *("LANG", "LOGNAME", "PATH", "SHELL", "SYSTEMROOT", "TZ", "USER"),
        *("DYLD_LIBRARY_PATH", "LD_LIBRARY_PATH", "JAVA_HOME", "GOROOT", "NODE_PATH", "PYTHONPATH", "VIRTUAL_ENV"),
        *("NIX_PATH", "NIX_PROFILES", "GEM_HOME", "GEM_PATH", "DOTNET_ROOT", "MANPATH", "RUSTUP_TOOLCHAIN"),
        *("PYENV_VERSION", "RBENV_VERSION", "NODENV_VERSION", "CONDA_PREFIX", "NVM_DIR", "FNM_DIR"),
    }
)
"""What of the environment a program needs to start at all."""
_HOMES: Final = (
    ("ASDF_DATA_DIR", ".asdf"),
    ("BUN_INSTALL", ".bun"),
    ("CARGO_HOME", ".cargo"),
    ("MISE_CONFIG_DIR", ".config/mise"),
    ("MISE_DATA_DIR", ".local/share/mise"),
    ("NODENV_ROOT", ".nodenv"),
    ("PYENV_ROOT", ".pyenv"),
    ("PYTHONUSERBASE", ".local"),
    ("RBENV_ROOT", ".rbenv"),
    ("RUSTUP_HOME", ".rustup"),
    ("VOLTA_HOME", ".volta"),
)
"""Where version managers keep what they start, which they would look for in the thrown-away home."""
_CALM: Final = {
    "LC_ALL": "C.UTF-8",
    "LANGUAGE": "",
    "TERM": "dumb",
    "NO_COLOR": "1",
    "COLUMNS": "120",
    "LINES": "50",
    **dict.fromkeys(("PAGER", "MANPAGER", "GIT_PAGER", "EDITOR", "VISUAL", "BROWSER"), "cat"),
    "GIT_TERMINAL_PROMPT": "0",
    "PYTHONDONTWRITEBYTECODE": "1",
    # Nobody asked for an update or to be counted.
    "DO_NOT_TRACK": "1",
    "DISABLE_AUTOUPDATER": "1",
    "DISABLE_TELEMETRY": "1",
    "NO_UPDATE_NOTIFIER": "1",
    "NPM_CONFIG_UPDATE_NOTIFIER": "false",
    "HOMEBREW_NO_AUTO_UPDATE": "1",
    "HOMEBREW_NO_ANALYTICS": "1",
    "GOTOOLCHAIN": "local",
    "DOTNET_CLI_TELEMETRY_OPTOUT": "1",
    "RUSTUP_AUTO_INSTALL": "0",
    "COREPACK_ENABLE_DOWNLOAD_PROMPT": "0",
}
_NOWHERE: Final = "http://127.0.0.1:9"
"""A proxy that is not there, for a system that gives no network of its own."""
_PROXIES: Final = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy")


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeAnswer:
    """What a program said when it was asked."""

    output: str
    """Both streams as they came, at most ``MOST_BYTES``; what is no UTF-8 is replaced."""
    exit_code: int | None
    """128 and the number of a signal that ended it; None when it was ended from here or never started."""
    problem: str | None
    """Why the answer is not whole, as the end of a sentence that begins with the program; None when it is."""


async def ask(
    path: str, words: Sequence[str], *, timeout_s: float = 5.0, environ: Mapping[str, str] | None = None
) -> ProbeAnswer:
    """Run a program with these words and return what it says; an exit code other than 0 is no problem by itself.

    When the caller is cancelled, or dies, the program ends as well.

    Args:
        path: The program, absolute or a name on the PATH.
        words: Its arguments, such as ``--version``.
        timeout_s: How long it may take.
        environ: Where variables are taken from, this process's own by default; what is no part of a program's start or
            looks secret is left out.
    """
    environ = os.environ if environ is None else environ
    program = path if os.sep in path else await asyncio.to_thread(shutil.which, path, path=environ.get("PATH"))
    if program is None:
        return ProbeAnswer(output="", exit_code=None, problem="is not on the PATH")
    absolute = Path(program) if Path(program).is_absolute() else Path.cwd() / program
    marker = new_id()
    chosen = _environment(environ, absolute) | {_MARKER: marker}
    try:
        # A box that is ended by force leaves it.
        scratch = tempfile.TemporaryDirectory(
            prefix="agentmon-probe-", dir=chosen["TMPDIR"], ignore_cleanup_errors=True
        )
    except OSError as error:
        return ProbeAnswer(output="", exit_code=None, problem=f"could not be started: {error}")
    with scratch as folder:
        home = environ.get("HOME") or str(Path.home())
        return await _ask((folder, home, str(absolute), *words), chosen, timeout_s, marker)


async def _ask(told_box: Sequence[str], environ: Mapping[str, str], timeout_s: float, marker: str) -> ProbeAnswer:
    told, telling = os.pipe()
    try:
        box = await asyncio.create_subprocess_exec(
            *(sys.executable, "-I", "-S", str(_BOX), str(telling), str(_MOST_OF_BOX), str(timeout_s), *told_box),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            env=environ,
            cwd="/",
            start_new_session=True,
            pass_fds=(telling,),
        )
    except (OSError, ValueError) as error:
        os.close(told)
        return ProbeAnswer(output="", exit_code=None, problem=f"could not be started: {error}")
    finally:
        os.close(telling)
    try:
        return await _listen(box, told, timeout_s)
    finally:
        os.close(told)
        await asyncio.shield(_end(box, marker))


async def _listen(box: asyncio.subprocess.Process, told: int, timeout_s: float) -> ProbeAnswer:
    output, is_whole = bytearray(), True
    try:
        async with asyncio.timeout(timeout_s + _BOX_GRACE_S):
            while box.stdout is not None and (piece := await box.stdout.read(_PIECE_BYTES)):
                output += piece[: MOST_BYTES - len(output)]
                if len(output) == MOST_BYTES:
                    is_whole = False
                    break
            if is_whole:
                await box.wait()
    except TimeoutError:
        return ProbeAnswer(output=_text(output), exit_code=None, problem="did not end, whatever was done")
    if not is_whole:
        problem = f"says more than {MOST_BYTES // 1024} KiB; the rest is left out"
        return ProbeAnswer(output=_text(output), exit_code=None, problem=problem)
    os.set_blocking(told, False)
    with contextlib.suppress(BlockingIOError, ValueError):
        report = json.loads(os.read(told, _PIECE_BYTES) or b"{}")
        return _answer(_text(output), report, timeout_s)
    return ProbeAnswer(output=_text(output), exit_code=None, problem="could not be watched")


def _answer(output: str, report: Mapping[str, object], timeout_s: float) -> ProbeAnswer:
    match report:
        case {"end": "exit", "status": int(status)}:
            code = os.waitstatus_to_exitcode(status)
            if code >= 0:
                return ProbeAnswer(output=output, exit_code=code, problem=None)
            name = signal.Signals(-code).name if -code in set(signal.Signals) else str(-code)
            return ProbeAnswer(output=output, exit_code=_SIGNAL_BASE - code, problem=f"was ended by {name}")
        case {"end": "time"}:
            return ProbeAnswer(output=output, exit_code=None, problem=f"did not answer within {timeout_s:g} s")
        case {"end": "unstarted", "why": str(why)}:
            return ProbeAnswer(output=output, exit_code=None, problem=f"could not be started: {why}")
        case _:
            return ProbeAnswer(output=output, exit_code=None, problem="was ended before it had answered")


async def _end(box: asyncio.subprocess.Process, marker: str) -> None:
    """Let the box end what it holds; when it does not, end both, and what carries the mark anywhere."""
    if box.stdin is not None:
        box.stdin.close()
    try:
        async with asyncio.timeout(_BOX_GRACE_S):
            # What it still says is in the way of its end.
            while box.stdout is not None and await box.stdout.read(_PIECE_BYTES):
                pass
            await box.wait()
    except TimeoutError:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(box.pid, signal.SIGKILL)
        await box.wait()
        await asyncio.to_thread(_kill_marked, marker)
    else:
        if sys.platform != "linux":
            await asyncio.to_thread(_kill_marked, marker)


def _kill_marked(marker: str) -> None:
    for process in read_processes(f"{_MARKER}={marker}".encode()):
        if process.has_marker:
            send_to_same(process, signal.SIGKILL)


def _environment(environ: Mapping[str, str], program: Path) -> dict[str, str]:
    chosen = {name: environ[name] for name in environ if name in _NAMES and not looks_secret(name)}
    # What came with one version of node is started by that one.
    chosen["PATH"] = os.pathsep.join((chosen.get("PATH") or os.defpath, str(program.parent)))
    home = Path(environ.get("HOME") or Path.home())
    for name, folder in _HOMES:
        place = environ.get(name) or str(home / folder)
        with contextlib.suppress(OSError):
            if Path(place).is_dir():
                chosen[name] = place
    chosen["TMPDIR"] = environ.get("TMPDIR") or tempfile.gettempdir()
    return chosen | _CALM | dict.fromkeys(_PROXIES, _NOWHERE)


def _text(output: bytes | bytearray) -> str:
    return output.decode("utf-8", "replace")
