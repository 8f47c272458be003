from __future__ import annotations

import time
import unicodedata
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agentmon.logs.line_text import plain_text
from agentmon.runners.screens.pane_text import HISTORY_LINES, pane_text
from agentmon.runners.screens.terminal import MAX_BYTES, TIME_LIMIT_S, terminal_text
from agentmon.runners.tmux import Tmux
from tests.runners.tmux_servers import short_folder
from tests.waiting import until

if TYPE_CHECKING:
    from pathlib import Path

ROWS, COLUMNS = 10, 40
FRAME = b"\x1b[2K\x1b[1A\x1b[2K\x1b[1A\x1b[2K\x1b[G"
"""How Ink takes its last three lines back."""
OUTPUTS = {
    "lines": b"one\r\ntwo\r\n" + b"".join(b"line %d\r\n" % number for number in range(30)) + b"unfinished",
    "a bar": b"".join(b"\r\x1b[K%d %%" % share for share in range(101)) + b"\r\ndone\r\n",
    "an answered dialog": b"Do you trust this?\r\n> 1. Yes\r\n  2. No" + FRAME + b"ready\r\n> \x1b[31mtyped\x1b[0m",
    "a full screen": b"before\r\n\x1b[2J\x1b[H\x1b[7m top \x1b[0m\x1b[10;1Hbottom\x1b[5;9Hhere\x1b[5;20Hthere\x1b[1K",
    "a scrolled region": b"\x1b[2;5r\x1b[5;1H" + b"".join(b"\r\nin %d" % number for number in range(9)) + b"\x1b[rout",
    "lines put in above": b"a\r\nb\r\nc\x1b[1;5r\x1b[1;1H\x1bMfirst\x1b[2;1H\x1b[1Lsecond\x1b[r\x1b[9;1Hlast",
    "scrolled by number": b"".join(b"n%d\r\n" % number for number in range(9)) + b"\x1b[2S\x1b[1Tx",
    "wide letters": "日本語 ok 👍🏽 é e\u0301 end\r\n┌──┐\r\n".encode(),
    "colours that go on": b"\x1b[1;32mgreen\r\nstill green\x1b[0m\r\nplain\x1b[48;5;21m blue \x1b[38;2;1;2;3mrgb\r\n",
    "a graphic frame": b"\x1b(0lqqk\r\nx  x\x1b(B frame\r\n",
    "private sequences": b"\x1b[>4;2m\x1b[?2026h\x1b[?25l\x1b]0;title\x07\x1b[>1u\x1bP+q\x1b\\\x1b[?2026lhere\r\n",
    "a tab and a backspace": b"a\tb\b\bc\x1b[3Cd\x1b[2Pe\x1b[4@f\x1b[2X\r\n",
}


def lines_of(text: bytes) -> list[str]:
    return [unicodedata.normalize("NFC", plain_text(line)).rstrip() for line in text.splitlines()]


@pytest.mark.parametrize("name", OUTPUTS)
async def test_the_emulator_shows_what_tmux_shows(name: str) -> None:
    with short_folder() as folder:
        tmux = Tmux(folder / "s")
        try:
            assert lines_of(await shown_by_tmux(tmux, folder, OUTPUTS[name])) == lines_of(
                terminal_text(OUTPUTS[name], rows=ROWS, columns=COLUMNS)
            )
        finally:
            await tmux.kill_session("am-1")
            tmux.close()


async def shown_by_tmux(tmux: Tmux, folder: Path, output: bytes) -> bytes:
    (folder / "output").write_bytes(output)
    # The title is set once everything before it is drawn.
    script = f"stty raw -echo; cat {folder}/output; printf '\\033]2;drawn\\007'; sleep 600"
    handle = await tmux.start_session(
        name="am-1", command=("sh", "-c", script), working_dir=folder, title="t", columns=COLUMNS, rows=ROWS + 1
    )

    async def is_drawn() -> bool:
        return (await tmux.look_at_panes([])).panes["am-1"].title == "drawn"

    await until(is_drawn)
    looks = await tmux.look_at_panes([handle.pane_id], history_lines=HISTORY_LINES, is_coloured=True)
    return pane_text(looks.screens[handle.pane_id])


def test_the_colours_of_each_line_stand_in_it() -> None:
    text = terminal_text(OUTPUTS["colours that go on"], rows=ROWS, columns=COLUMNS)

    assert text.splitlines()[0] == b"\x1b[1;32mgreen\x1b[0m"
    assert text.splitlines()[1] == b"\x1b[1;32mstill green\x1b[0m"
    assert pane_text(["\x1b[32ma", "b\x1b[0m", "c", "\x1b[32m", "   "]) == b"\x1b[32ma\n\x1b[32mb\x1b[0m\nc\n"


def test_a_colour_that_was_taken_back_or_changed_does_not_go_on_in_later_lines() -> None:
    lines = [f"\x1b[38;2;{n};0;0m\x1b[4{n % 8}mred\x1b[39;49m" for n in range(200)]
    bold = ["\x1b[1;31mone", "\x1b[0;1mtwo", "\x1b[22mthree"]

    assert pane_text([*lines, "plain"]).decode().splitlines() == [*lines, "plain"]
    assert pane_text([*bold, "four"]).decode().splitlines() == [
        "\x1b[1;31mone",
        "\x1b[1;31m\x1b[0;1mtwo",
        "\x1b[1m\x1b[22mthree",
        "four",
    ]


def test_what_stood_on_the_other_screen_last_stays_to_be_seen() -> None:
    output = b"$ agent\n\x1b[?1049h\x1b[2;3Hits last screen\x1b[?1049lResume with: agent -r 1\n"

    assert lines_of(terminal_text(output, rows=4, columns=40)) == [
        "",
        "  its last screen",
        "",
        "",
        "Resume with: agent -r 1",
    ]


def test_the_end_of_a_long_output_is_read_from_its_newest_clean_screen_on() -> None:
    old = b"old words " * 100_000
    output = old + b"\x1b[2J\x1b[Hnew\x1b[3;1Hthird"

    assert lines_of(terminal_text(output, rows=ROWS, columns=COLUMNS)) == ["new", "", "third"]


def test_within_an_output_the_cursor_stands_at_the_end_of_a_full_screen() -> None:
    output = b"half a line\nabove\nstatus" + b"\x1b[1A\x1b[Gother"

    shown = lines_of(terminal_text(output, rows=3, columns=COLUMNS, begins_within=True))

    assert shown[-2:] == ["other", "status"]


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.lists(
        st.one_of(
            st.binary(max_size=40),
            st.sampled_from(
                [b"\x1b[", b"\x1b]", b"\x1bP", b"\x1b(", b"\x9b", b"\xf0\x9f", b"\x1b[?", b"\x1b[>", b"\n"]
            ),
            st.from_regex(rb"\x1b\[[<=>?]?[0-9;:]{0,12}[ -/]?[@-~]", fullmatch=True),
        ),
        max_size=60,
    )
)
def test_any_bytes_give_lines_that_are_safe_to_draw(pieces: list[bytes]) -> None:
    text = terminal_text(b"".join(pieces), rows=5, columns=20)

    for line in text.splitlines():
        assert not set(plain_text(line)) & set(map(chr, range(32)))


@pytest.mark.proof
@pytest.mark.parametrize(
    "output",
    [
        b"a" + "\u0301".encode() * MAX_BYTES,
        b"\x1b[9999b" * MAX_BYTES,
        b"\x1b[9999;9999H\x1b[9999L\x1b[9999P\x1b[9999@\x1b[9999S" * MAX_BYTES,
        b"\x1b]0;" + b"x" * MAX_BYTES,
        b"\n" * MAX_BYTES,
    ],
    ids=["marks", "repeats", "large numbers", "a title without end", "line feeds"],
)
def test_no_output_takes_longer_than_its_limit(output: bytes) -> None:
    began = time.process_time()

    text = terminal_text(output, rows=500, columns=1000)

    # One piece is always read whole, however slow the machine; without the limit it takes hours.
    assert time.process_time() - began < 30 * TIME_LIMIT_S
    assert len(text) < 32 * MAX_BYTES
