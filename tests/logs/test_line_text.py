from __future__ import annotations

import time
import unicodedata

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from agentmon.logs.line_text import PLAIN_STYLE, StyledRun, TextStyle, is_left_out_marker, plain_text, styled_runs

FRAGMENTS = [
    b"text",
    "漢字".encode(),
    "é".encode(),
    "e\u0301".encode(),
    b"\t",
    b"\r",
    b"\b",
    b"\x00",
    b"\x1b",
    b"\x1b[",
    b"\x1b[K",
    b"\x1b[2K",
    b"\x1b[1K",
    b"\x1b[5G",
    b"\x1b[999999999C",
    b"\x1b[3D",
    b"\x1b[31m",
    b"\x1b[38;5;200m",
    b"\x1b[48:2::1:2:3m",
    b"\x1b[38;2m",
    b"\x1b[;;m",
    b"\x1b[4:3m",
    b"\x1b]0;title\x07",
    b"\x1b]52;c;AAAA",
    b"\x1bP1$r\x1b\\",
    b"\x1b(B",
    b"\x9b",
    "\x9b31m".encode(),
    "\x85".encode(),
    b"\xff",
    b"\xe2\x82",
    "\u202e".encode(),
    "\u2028".encode(),
    "👩\u200d💻".encode(),
]
line_bytes = st.one_of(st.binary(), st.lists(st.sampled_from(FRAGMENTS)).map(b"".join))


def is_safe(character: str) -> bool:
    return unicodedata.category(character) not in {"Cc", "Cs", "Zl", "Zp"} and unicodedata.bidirectional(
        character
    ) not in {"LRE", "RLE", "PDF", "LRO", "RLO", "LRI", "RLI", "FSI", "PDI"}


@given(line_bytes)
@example(b"\x1b[999999C" * 50 + b"x")
@example("\r\u0301".encode())
@example("漢\b漢\b\b\u0301x".encode())
def test_any_bytes_become_text_without_control_codes(line: bytes) -> None:
    runs = styled_runs(line)

    assert all(is_safe(character) for run in runs for character in run.text)
    assert all(run.text for run in runs)
    assert len(plain_text(line)) <= 512 + 8 * len(line)


@given(line_bytes)
def test_plain_text_is_the_text_of_the_styled_runs(line: bytes) -> None:
    assert plain_text(line) == "".join(run.text for run in styled_runs(line))


@given(st.text(alphabet=st.characters(min_codepoint=32, max_codepoint=126)))
def test_plain_text_stays_as_it_is(text: str) -> None:
    assert plain_text(text.encode()) == text


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        (b"10%\r50%\r100%", "100%"),
        (b"abcdef\rXY", "XYcdef"),
        (b"abcdef\r\x1b[KXY", "XY"),
        (b"downloading\x1b[2K\rdone", "done"),
        (b"downloading\x1b[2K\x1b[1Gdone", "done"),
        (b"downloading\r\x1b[Jdone", "done"),
        (b"working...\r", "working..."),
        (b"ends with a carriage return\r\r", "ends with a carriage return"),
        (b"abc\b\bX", "aXc"),
        (b"\b\bx", "x"),
        (b"a\x1b[5Gb", "a   b"),
        (b"a\x1b[3Cb", "a   b"),
        (b"abc\x1b[2DX", "aXc"),
        (b"a\tb", "a       b"),
        ("漢\tb".encode(), "漢      b"),
        ("漢字\ra".encode(), "a 字"),
        ("🇩🇪🇫🇷\ra".encode(), "a 🇫🇷"),
        ("🇩🇪🇫🇷\x1b[2D\x1b[Dx".encode(), " x🇫🇷"),
        ("👩\u200d👧b\x1b[3Dx".encode(), "x b"),
        ("क्षिb\ra\x1b[K".encode(), "a"),
        ("\u1112\u1161\u11abb\x1b[2Dx".encode(), " xb"),
        (b"\rx\ty\rz", "z       y"),
        (b"\x00\x07\x7f\v\f", "␀␇␡␋␌"),
        (b"\x1b]0;new title\x07kept", "kept"),
        (b"\x1b]8;;https://example.org\x1b\\link\x1b]8;;\x1b\\", "link"),
        (b"kept\x1b]52;c;unfinished", "kept"),
        (b"\x1bPq#0\x1b\\kept", "kept"),
        (b"\x1b(0kept\x1b)B", "kept"),
        (b"\x1b[?25l\x1b[>4mkept\x1b[6n\x1bc", "kept"),
        ("\x9b31mkept\x9d0;x\x9c".encode(), "kept"),
        (b"\xffbad\xe2\x82", "�bad�"),
        ("a\u202eb".encode(), "a�b"),
        (b"[bold]kept[/bold]", "[bold]kept[/bold]"),
    ],
)
def test_a_line_reads_as_a_terminal_would_leave_it(line: bytes, shown: str) -> None:
    assert plain_text(line) == shown


@pytest.mark.parametrize(
    ("codes", "style"),
    [
        ("31", TextStyle(foreground=1)),
        ("97;44", TextStyle(foreground=15, background=4)),
        ("105", TextStyle(background=13)),
        ("1;2;3;4;7;9", TextStyle(bold=True, dim=True, italic=True, underline=True, reverse=True, strike=True)),
        ("1;2;3;4;7;9;22;23;24;27;29", PLAIN_STYLE),
        ("38;5;200", TextStyle(foreground=200)),
        ("48;2;1;2;3", TextStyle(background=(1, 2, 3))),
        ("38:2::1:2:3", TextStyle(foreground=(1, 2, 3))),
        ("38:2:1:2:3", TextStyle(foreground=(1, 2, 3))),
        ("38:5:7", TextStyle(foreground=7)),
        ("58;5;9;1", TextStyle(bold=True)),
        ("38;5;300", PLAIN_STYLE),
        ("38;2;1", PLAIN_STYLE),
        ("4:3", TextStyle(underline=True)),
        ("4;4:0", PLAIN_STYLE),
        ("31;39;41;49", PLAIN_STYLE),
        ("31;0", PLAIN_STYLE),
        ("31;", PLAIN_STYLE),
        ("999999999999", PLAIN_STYLE),
    ],
)
def test_colours_and_attributes_are_read(codes: str, style: TextStyle) -> None:
    assert styled_runs(f"\x1b[{codes}mx".encode()) == (StyledRun(text="x", style=style),)


def test_a_colour_lasts_until_it_is_reset() -> None:
    red = TextStyle(foreground=1)

    runs = styled_runs(b"a\x1b[31mb\x1b[mc")

    assert runs == (
        StyledRun(text="a", style=PLAIN_STYLE),
        StyledRun(text="b", style=red),
        StyledRun(text="c", style=PLAIN_STYLE),
    )


@pytest.mark.parametrize("move", [b"", b"\r"])
@pytest.mark.parametrize("end", [b"\x1b\\", b"\x07"])
def test_the_address_behind_a_text_is_kept_until_its_end(move: bytes, end: bytes) -> None:
    line = b"a\x1b[31m\x1b]8;id=1;https://example.org/b" + end + b"here\x1b[m!\x1b]8;;" + end + b"c" + move * 2

    assert styled_runs(move + line) == (
        StyledRun(text="a", style=PLAIN_STYLE),
        StyledRun(text="here", style=TextStyle(foreground=1, link="https://example.org/b")),
        StyledRun(text="!", style=TextStyle(link="https://example.org/b")),
        StyledRun(text="c", style=PLAIN_STYLE),
    )


@pytest.mark.parametrize(
    "address",
    [
        "javascript:alert(1)",
        "file:///etc/passwd",
        "ssh://host",
        "https://ex\u0430mple.org",
        "https://a b",
        "http://",
        "",
    ],
)
def test_an_address_that_is_not_plainly_of_the_web_is_dropped(address: str) -> None:
    runs = styled_runs(f"\x1b]8;;{address}\x1b\\click\x1b]8;;\x1b\\".encode())

    assert runs == (StyledRun(text="click", style=PLAIN_STYLE),)


def test_a_colour_set_before_an_erased_start_still_holds() -> None:
    assert styled_runs(b"\x1b[31m10%\r\x1b[K20%") == (StyledRun(text="20%", style=TextStyle(foreground=1)),)


def test_the_marker_of_left_out_bytes_is_dim() -> None:
    marker = b"[agentmon: 12,345 bytes left out here]"

    assert is_left_out_marker(marker)
    assert not is_left_out_marker(marker + b" and more")
    assert styled_runs(marker)[0].style.dim


@pytest.mark.parametrize(
    "line",
    [
        b"\r".join(b"%3d%% |######    | 12/34 [00:01<00:00]" % (n % 100) for n in range(25_000)),
        "e\u0301\u0301\u0301\u0301".encode() * 100_000 + b"\r" + "\u0301".encode() * 200_000,
        b"\x1b[511Cx\x1b[2K\r" * 60_000,
    ],
)
def test_a_hostile_megabyte_on_one_line_takes_bounded_time(line: bytes) -> None:
    started = time.process_time()

    plain_text(line)

    assert time.process_time() - started < 8
