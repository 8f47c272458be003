"""Borders stay straight where tmux, as a terminal, takes a character for another width than the app does."""

from __future__ import annotations

import re
import shlex
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.app_program import START, environment
from tests.idle_worker import idle_worker
from tests.runners.tmux_servers import RawTmux, short_folder
from tests.screens.boards import make_place
from tests.waiting import wait_for

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.screens.boards import Place

pytestmark = pytest.mark.proof
ROOT = Path(__file__).parents[2]
TITLES = (
    "हिन्दी में कि की का",
    "தமிழ் கொடுக்க",
    "ক্ষি বাংলা",
    "new 🫩 🪉 🛘 emoji",
    "❤️ ☑️ ⚠️ 1️⃣ signs",
    "👍🏽 👩‍👩‍👧 🇩🇪 joined",
    "ไทยำ ລາວຳ",
    "ꦏꦺ ᬓᬾ ᜴",
    "한글 漢字 ｱ e\u0301",
)


@pytest.fixture
def folder() -> Iterator[Path]:
    with short_folder() as path:
        yield path


class Ruler:
    """Says how wide a text is for tmux, by where the cursor is behind it."""

    def __init__(self, raw: RawTmux) -> None:
        self._raw = raw
        raw("new-session", "-d", "-s", "ruler", "-x", "200", "-y", "5", "stty raw -echo; echo ready; exec cat")
        wait_for(lambda: "ready" in raw.screen("=ruler:"), "the ruler")

    def measure(self, text: str) -> int:
        title = text.encode().hex()
        self._raw("send-keys", "-t", "=ruler:", "-l", f"\r\x1b[K{text}\x1b]2;{title}\x07")
        wait_for(lambda: self._raw("display-message", "-p", "-t", "=ruler:", "#{pane_title}") == title, "the text")
        return int(self._raw("display-message", "-p", "-t", "=ruler:", "#{cursor_x}"))


@contextmanager
def shown(folder: Path, raw: RawTmux, place: Place) -> Iterator[None]:
    program = folder / "starting.py"
    program.write_text(START.format(extra="App = AgentmonApp"))
    told = environment(place, PYTHONPATH=str(ROOT), TERM="tmux-256color", LANG="C.UTF-8")
    words = ["env", "-i", *(f"{name}={value}" for name, value in told.items()), sys.executable, str(program)]
    with idle_worker(place.paths):
        raw("new-session", "-d", "-s", "app", "-x", "100", "-y", "20", shlex.join([*words, str(place.root)]))
        wait_for(lambda: f"#{len(TITLES)}" not in raw.screen("=app:") and "#1" in raw.screen("=app:"), "the board")
        yield


def borders(ruler: Ruler, raw: RawTmux) -> set[int]:
    """Return at which width the last column of the board begins, in all rows that show a title."""
    rows = [line for line in raw.screen("=app:").splitlines() if "#" in line and "││" in line]
    assert rows
    return {ruler.measure(line.rpartition("││")[0]) for line in rows}


async def test_borders_stay_straight_and_no_scraps_stay(folder: Path) -> None:
    place = make_place(folder)
    await place.fill(*TITLES)
    raw = RawTmux(folder / "outer", environ={"TERM": "xterm-256color"})
    ruler = Ruler(raw)
    with shown(folder, raw, place):
        first = borders(ruler, raw)
        raw("send-keys", "-t", "=app:", *"jjjjjjjj")
        wait_for(lambda: f"#{len(TITLES)}" in raw.screen("=app:"), "the last card")
        scrolled = borders(ruler, raw)
        raw("send-keys", "-t", "=app:", "/", *"signs", "Enter")
        wait_for(lambda: raw.screen("=app:").count(" P3 ") == 1, "one card alone")
        rest = [line for line in raw.screen("=app:").splitlines() if "signs" not in line]

    assert first == scrolled
    assert len(first) == 1
    assert not [line for line in rest if re.search("[^\x00-\x7e\u2000-\u25ff]", line)]
