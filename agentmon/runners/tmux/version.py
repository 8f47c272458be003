"""Which tmux is on this machine, found without libtmux so that a client can refuse early and cheaply."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from agentmon.domain.errors import TmuxUnavailableError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

MINIMUM_VERSION: Final = "3.2a"
"""libtmux 0.62 supports nothing older, and ``-N``, ``-T`` and the arithmetic of the status line came with 3.2."""

_FIRST_GOOD_OPENBSD: Final = (7, 0)
"""OpenBSD numbers its own tmux by the system; 7.0 (October 2021) has everything of tmux 3.2a (June 2021)."""
_NEWEST: Final = (sys.maxsize, 0, 0)
_VERSION: Final = re.compile(r"(?P<next>next-)?(?P<major>\d+)\.(?P<minor>\d+)(?P<letter>[a-z])?(?P<candidate>-rc\d*)?")
_INSTALL_LINES: Final = (
    ("apt-get", "sudo apt install tmux"),
    ("dnf", "sudo dnf install tmux"),
    ("pacman", "sudo pacman -S tmux"),
    ("zypper", "sudo zypper install tmux"),
    ("apk", "sudo apk add tmux"),
    ("brew", "brew install tmux"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class TmuxVersion:
    """What ``tmux -V`` said, and where that tmux is."""

    text: str
    """The version as tmux writes it: ``3.3a``, ``next-3.5``, ``master``, ``openbsd-7.4``."""
    binary: str
    """The absolute path of the program."""
    order: tuple[int, int, int]
    """Sorts versions: major, minor, and 0 for a plain release, 1 for ``a``, -1 for what came before the release."""


def order_of(text: str) -> tuple[int, int, int]:
    """Return the place of a version among all; one that cannot be read counts as the newest."""
    if openbsd := re.fullmatch(r"openbsd-(\d+)\.(\d+)", text):
        good = (int(openbsd[1]), int(openbsd[2])) >= _FIRST_GOOD_OPENBSD
        return _NEWEST if good else (0, 0, 0)
    match = _VERSION.match(text)
    if match is None:
        return _NEWEST
    step = ord(match["letter"]) - ord("a") + 1 if match["letter"] else 0
    return int(match["major"]), int(match["minor"]), -1 if match["next"] or match["candidate"] else step


def find_tmux(environ: Mapping[str, str]) -> str:
    """Return the absolute path of the tmux on the PATH of ``environ``.

    Raises:
        TmuxUnavailableError: There is none; the hint is the line that installs it.
    """
    binary = shutil.which("tmux", path=environ.get("PATH", os.defpath))
    if binary is None:
        raise TmuxUnavailableError("tmux is not installed, or not on PATH", hint=install_hint(environ))
    return str(Path(binary).absolute())


def find_version(environ: Mapping[str, str], *, time_limit_s: float = 2.0) -> TmuxVersion:
    """Return the version of the tmux on the PATH of ``environ``; blocks for some 3 ms, at most ``time_limit_s``.

    Raises:
        TmuxUnavailableError: tmux is missing, does not run, does not answer in time, or is older than the minimum.
    """
    binary = find_tmux(environ)
    try:
        answer = subprocess.run(
            [binary, "-V"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=time_limit_s,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        message = f"{binary} -V did not answer within {time_limit_s:g} s"
        raise TmuxUnavailableError(message, hint="run it by hand to see why") from error
    except OSError as error:
        message = f"{binary} cannot be run: {error.strerror}"
        raise TmuxUnavailableError(message, hint="run it by hand to see why") from error
    word, _, text = answer.stdout.strip().partition(" ")
    if answer.returncode != 0 or word != "tmux" or not text:
        words = (answer.stderr or answer.stdout).strip().splitlines()
        said = f"it said: {words[0]}" if words else f"it said nothing and ended with {answer.returncode}"
        raise TmuxUnavailableError(f"{binary} -V gave no version; {said}", hint="run it by hand to see why")
    version = TmuxVersion(text=text, binary=binary, order=order_of(text))
    if version.order < order_of(MINIMUM_VERSION):
        message = f"tmux {text} is too old: agentmon needs {MINIMUM_VERSION} or later ({binary})"
        raise TmuxUnavailableError(message, hint=install_hint(environ))
    return version


def install_hint(
    environ: Mapping[str, str],
    *,
    platform: str = sys.platform,
    find_program: Callable[..., str | None] = shutil.which,
) -> str:
    """Return the line that installs tmux on this machine, chosen by the package manager that is there."""
    if platform == "darwin":
        return "install it with: brew install tmux"
    for program, line in _INSTALL_LINES:
        if find_program(program, path=environ.get("PATH", os.defpath)) is not None:
            return f"install it with: {line}"
    return f"install tmux {MINIMUM_VERSION} or later with the package manager of this machine"
